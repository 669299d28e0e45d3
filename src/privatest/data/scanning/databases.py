"""Tables and queries of databases, as Arrow streams through ADBC.

All readings of a table see it as it was when it was opened. PostgreSQL keeps that state for us (an
exported snapshot, which other connections and other machines join); of SQLite the file must not
change. Messages hold neither a value nor an address, which may have a password.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from privatest.core.errors import DataError, ParameterError, PrivatestError
from privatest.core.validation import printable
from privatest.data.scanning.frames import frame_parts
from privatest.data.source import Engine, Part, Source, Workers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["scan_sql", "sqlite_stamp"]

_URLS = "postgresql://user@host/database or sqlite:///folder/file.db"
_LONGEST_NAME = 200
# a table is read from its beginning to its end, whichever columns are asked for
_AS_STORED = (
    "synchronize_seqscans = off",
    "max_parallel_workers_per_gather = 0",
    "enable_indexscan = off",
    "enable_indexonlyscan = off",
    "enable_bitmapscan = off",
)


def scan_sql(
    url: str,
    *,
    table: str | None = None,
    query: str | None = None,
    text: Collection[str] = (),
    engine: Engine = "local",
    threads: int | None = None,
    scheduler: str | None = None,
) -> Source:
    """Open a table or a query of a database; see :func:`privatest.scan`.

    Parameters
    ----------
    url : str
        "postgresql://user@host/database" or "sqlite:///folder/file.db".
    table : str, optional
        Name of the table, with its schema before a point where it needs one. It is read in
        pieces, and only the columns that are needed.
    query : str, optional
        A SELECT statement instead. Its answer is held in memory: run again, it may have its rows
        in another order.
    text : collection of str
        Columns of SQLite to read as text, besides those that a schema describes by categories.
    engine, threads, scheduler
        As in :func:`privatest.scan`; workers must reach the database too.

    Returns
    -------
    Source
        Columns and number of rows, both of one state of the database.

    Raises
    ------
    DataError
        If the database cannot be reached, or has no such table. Neither the address nor the
        database's own words are repeated: they may hold a password, or values.

    Notes
    -----
    PostgreSQL keeps the state that was counted until the source is let go; what others write
    meanwhile is not seen. An SQLite file must not be written to. Nothing is written to either.
    """
    workers = Workers(engine, threads, scheduler)
    if (table is None) == (query is None):
        raise ParameterError("table or query must be given, one of them.")
    place = _place(url)
    if table is not None and not 0 < len(table) <= _LONGEST_NAME:
        raise ParameterError("table must be the name of a table.")
    with _telling("the database cannot be reached, or has no such table"):
        names, parts = place.held(query) if table is None else place.opened(table)
    return Source(names, tuple(parts), workers).as_text(text)


def sqlite_stamp(url: str) -> tuple[int, ...]:
    """Return sizes and times of an SQLite database's files; nothing if they are gone."""
    place = _place(url)
    assert isinstance(place, SQLite)
    return place.stamp


def _place(url: object) -> PostgreSQL | SQLite:
    if not isinstance(url, str):
        raise ParameterError(f"url must be {_URLS}.")
    parts = urlsplit(url)
    if parts.scheme in ("postgresql", "postgres"):
        return PostgreSQL(url)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        # as elsewhere: three slashes before a relative path, four before an absolute one
        path = Path(unquote(parts.path[1:]))
        return SQLite(str(path if path.exists() else Path("/") / path))
    raise ParameterError(f"url must be {_URLS}.")


@dataclass(frozen=True, slots=True, repr=False)  # an address may have a password
class PostgreSQL:
    """A PostgreSQL database."""

    url: str

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Give a cursor in a transaction that writes nothing."""
        with _driver("postgresql").connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield cursor

    def held(self, query: str | None) -> tuple[tuple[str, ...], list[Part]]:
        """Return the answer to a query."""
        with self.connected() as cursor:
            inner = (query or "").strip().rstrip(";")
            cursor.execute(f"SELECT * FROM ({inner}) AS q LIMIT 0")
            schema = cursor.fetch_arrow_table().schema
            wanted = ", ".join(_selected(field) for field in schema)
            cursor.execute(f"SELECT {wanted} FROM ({inner}) AS q")
            return frame_parts(cursor.fetch_arrow_table())

    def opened(self, table: str) -> tuple[tuple[str, ...], list[Part]]:
        """Return the columns of a table, and its rows in one part."""
        name = _quoted(table)
        snapshot = Snapshot.taken(self)
        with snapshot.connection.cursor() as cursor:
            cursor.execute("SELECT relkind::text FROM pg_class WHERE oid = $1::regclass", (name,))
            (kind,) = cursor.fetchone()
            if kind not in ("r", "p", "m"):  # a view may have another order each time
                return self.held(f"SELECT * FROM {name}")
            cursor.execute(f"SELECT * FROM {name} LIMIT 0")
            schema = cursor.fetch_arrow_table().schema
            cursor.execute(f"SELECT count(*) FROM {name}")
            (rows,) = cursor.fetchone()
        selected = tuple((field.name, _selected(field)) for field in schema)
        return tuple(schema.names), [PostgreSQLRows(snapshot, table, selected, int(rows))]


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Snapshot:
    """A state of a database, which lasts as long as the transaction that saw it."""

    database: PostgreSQL
    name: str
    connection: Any = None

    @classmethod
    def taken(cls, database: PostgreSQL) -> Snapshot:
        """Begin the transaction."""
        connection = _driver("postgresql").connect(database.url)
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute("SELECT pg_export_snapshot()")
                taken = cls(database, cursor.fetchone()[0], connection)
        except BaseException:
            connection.close()
            raise
        weakref.finalize(taken, connection.close)  # then the database forgets it
        return taken

    def __reduce__(self) -> tuple[Any, ...]:
        """Let others join the state; it ends with the one who saw it first."""
        return type(self), (self.database, self.name)

    @contextmanager
    def joined(self) -> Iterator[Any]:
        """Give a cursor that sees the same state."""
        with self.database.connected() as cursor:
            cursor.execute(f"SET TRANSACTION SNAPSHOT '{self.name}'")
            for setting in _AS_STORED:
                cursor.execute(f"SET LOCAL {setting}")
            yield cursor


@dataclass(frozen=True, slots=True, repr=False)
class PostgreSQLRows:
    """A table of PostgreSQL, in the order in which it is stored."""

    snapshot: Snapshot
    table: str
    selected: tuple[tuple[str, str], ...]
    rows: int

    @property
    def label(self) -> str:
        """The table."""
        return f"table {printable(self.table)}"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        known = dict(self.selected)
        wanted = ", ".join(known[name] for name in columns)
        with self.snapshot.joined() as cursor:
            cursor.execute(f"SELECT {wanted} FROM {_quoted(self.table)}")
            yield from cursor.fetch_record_batch()


@dataclass(frozen=True, slots=True)
class SQLite:
    """An SQLite file."""

    path: str

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Give a cursor that can only read."""
        if not Path(self.path).is_file():
            raise DataError(f"{printable(Path(self.path).name)} does not exist.")
        address = f"{Path(self.path).absolute().as_uri()}?mode=ro"
        with _driver("sqlite").connect(address) as connection, connection.cursor() as cursor:
            yield cursor

    @property
    def stamp(self) -> tuple[int, ...]:
        """Sizes and times of the file and of what is not yet written into it."""
        files = (Path(self.path), Path(f"{self.path}-wal"), Path(f"{self.path}-journal"))
        found = [file.stat() for file in files if file.exists() and file.stat().st_size]
        return tuple(number for each in found for number in (each.st_size, each.st_mtime_ns))

    def held(self, query: str | None) -> tuple[tuple[str, ...], list[Part]]:
        """Return the answer to a query."""
        inner = (query or "").strip().rstrip(";")
        with self.connected() as cursor:
            cursor.execute(f"SELECT * FROM ({inner}) LIMIT 0")
            names = tuple(column[0] for column in cursor.description)
            found = ", ".join(f"max(typeof({_quoted_name(name)}) = 'text')" for name in names)
            cursor.execute(f"SELECT {found} FROM ({inner})")
            texts = {
                name for name, any_text in zip(names, cursor.fetchone(), strict=True) if any_text
            }
            batches = list(_sqlite_batches(cursor, f"({inner})", names, texts))
        return frame_parts(batches)

    def opened(self, table: str) -> tuple[tuple[str, ...], list[Part]]:
        """Return the columns of a table, and its rows in one part."""
        name = _quoted_name(table)
        before = self.stamp
        with self.connected() as cursor:
            cursor.execute("SELECT type FROM sqlite_master WHERE lower(name) = ?", (table.lower(),))
            found = cursor.fetchone()
            if found is None:
                raise DataError(f"the database has no table {printable(table)}.")
            if found[0] != "table":  # a view may have another order each time
                return self.held(f"SELECT * FROM {name}")
            cursor.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
            columns = cursor.fetchall()
            cursor.execute(f"SELECT count(*) FROM {name}")
            (rows,) = cursor.fetchone()
        names = tuple(column for column, _ in columns)
        texts = frozenset(c for c, kind in columns if re.search("CHAR|CLOB|TEXT", kind or "", re.I))
        return names, [SQLiteRows(self, table, before, int(rows), texts)] if rows else []


@dataclass(frozen=True, slots=True)
class SQLiteRows:
    """A table of SQLite, in the order in which it is stored."""

    database: SQLite
    table: str
    stamp: tuple[int, ...]
    rows: int
    text: frozenset[str] = field(default=frozenset())

    @property
    def label(self) -> str:
        """The table."""
        return f"table {printable(self.table)}"

    def as_text(self, names: Collection[str]) -> SQLiteRows:
        """Return it with these columns as text, besides those that are."""
        return replace(self, text=self.text | set(names))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        with self.database.connected() as cursor:
            if self.database.stamp != self.stamp:
                raise DataError(
                    f"the file of {self.label} changed since it was opened; nothing may write to "
                    "data while it is read."
                )
            # an index that has the columns would give another order
            rows = f"{_quoted_name(self.table)} NOT INDEXED"
            yield from _sqlite_batches(cursor, rows, columns, self.text)


def _sqlite_batches(
    cursor: Any, rows: str, columns: Sequence[str], texts: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield typed columns.

    The driver guesses a column's type from its first rows, which may be missing, or integers
    among others. A row of ours before them says what it is, and is dropped; a value of another
    kind is then an error.
    """
    ours = ", ".join(f"{_kind(name, texts)} AS {_quoted_name(name)}" for name in columns)
    theirs = ", ".join(_sqlite_selected(name, texts) for name in columns)
    cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
    cursor.execute(f"SELECT {ours} UNION ALL SELECT {theirs} FROM {rows}")
    for number, batch in enumerate(cursor.fetch_record_batch()):
        yield batch if number else batch.slice(1)


def _kind(name: str, texts: Collection[str]) -> str:
    return "''" if name in texts else "0.0"


def _sqlite_selected(name: str, texts: Collection[str]) -> str:
    column = _quoted_name(name)
    if name in texts:
        return f"CAST({column} AS TEXT)"
    return f"CASE typeof({column}) WHEN 'integer' THEN CAST({column} AS REAL) ELSE {column} END"


def _selected(column: pa.Field) -> str:
    """Return how a column of PostgreSQL is asked for: decimal numbers have no type in ADBC."""
    name = _quoted_name(column.name)
    numeric = b"numeric" in (column.metadata or {}).values()
    return f"{name}::double precision AS {name}" if numeric else name


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(table: str) -> str:
    """Quote the name of a table, and that of its schema before the last point."""
    if '"' in table or table.count(".") > 1:
        raise ParameterError("table must be a name, or a schema and a name with a point between.")
    return ".".join(map(_quoted_name, table.split(".")))


def _driver(kind: str) -> Any:
    try:
        return import_module(f"adbc_driver_{kind}.dbapi")
    except ImportError:
        extra = "postgres" if kind == "postgresql" else kind
        raise ParameterError(
            f'scan_sql needs a driver for {kind}: pip install "privatest[{extra}]".'
        ) from None


@contextmanager
def _telling(what: str) -> Iterator[None]:
    try:
        yield
    except PrivatestError:
        raise
    except Exception as error:
        raise DataError(f"{what} ({type(error).__name__}).") from None
