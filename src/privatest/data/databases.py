"""Tables and queries of PostgreSQL and SQLite as sources of rows, through ADBC.

All readings of a table see it as it was when it was opened: PostgreSQL keeps that state (an
exported snapshot), which other connections and machines join; an SQLite file must not change.
Messages hold neither a value nor an address, which may have a password.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from privatest.core.errors import DataError, ParameterError, PrivatestError
from privatest.core.validation import of_type, printable
from privatest.data.engines import Engine, EngineConfig
from privatest.data.files import frame_parts
from privatest.data.sources import Part, Source

if TYPE_CHECKING:
    import pyarrow as pa

_URLS = "postgresql://user@host/database or sqlite:///folder/file.db"
_LONGEST_NAME = 200
_TIMEOUT = 10  # seconds until a database that does not answer is given up
_PAGES_OF_PART = 1 << 13  # 64 MiB of a table
_HAS_RANGES = 140000  # version from which a range of pages is found without reading all
# a table is read from its beginning to its end, whichever columns are asked for
_AS_STORED = (
    "synchronize_seqscans = off",
    "max_parallel_workers_per_gather = 0",
    "enable_indexscan = off",
    "enable_indexonlyscan = off",
    "enable_bitmapscan = off",
)

Opened = tuple[tuple[str, ...], list[Part]]


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
    workers = EngineConfig(engine, threads, scheduler)
    if (table is None) == (query is None):
        raise ParameterError("table or query must be given, one of them.")
    database = _database(url)
    if table is not None and not (of_type(table, str) and 0 < len(table) <= _LONGEST_NAME):
        raise ParameterError("table must be the name of a table.")
    try:
        if table is None:
            names, parts = database.open_query((query or "").strip().rstrip(";"))
        else:
            names, parts = database.open_table(table)
    except PrivatestError:
        raise
    except Exception as error:
        raise DataError(
            f"the database cannot be reached, or has no such table ({type(error).__name__})."
        ) from None
    return Source(names, tuple(parts), workers).as_text(text)


def sqlite_stamp(url: str) -> tuple[int, ...]:
    """Return sizes and times of an SQLite database's files; nothing if they are gone."""
    database = _database(url)
    assert isinstance(database, SQLite)
    return database.stamp


def _database(url: object) -> PostgreSQL | SQLite:
    if isinstance(url, str):
        parts = urlsplit(url)
        if parts.scheme in ("postgresql", "postgres"):
            return PostgreSQL(url)
        if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
            # as elsewhere: three slashes before a relative path, four before an absolute one
            path = Path(unquote(parts.path[1:]))
            return SQLite(str(path if path.exists() else Path("/") / path))
    raise ParameterError(f"url must be {_URLS}.")


def _driver(kind: str) -> Any:
    """Return the ADBC driver of a kind of database."""
    try:
        return import_module(f"adbc_driver_{kind}.dbapi")
    except ImportError:
        extra = "postgres" if kind == "postgresql" else kind
        raise ParameterError(
            f'scan_sql needs a driver for {kind}: pip install "privatest[{extra}]".'
        ) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- PostgreSQL -----------------------------------------------------------------------------


def with_timeout(url: str) -> str:
    """Give up a connection to PostgreSQL after ten seconds, unless the address says otherwise."""
    if "connect_timeout" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}connect_timeout={_TIMEOUT}"


@dataclass(frozen=True, slots=True, repr=False)  # an address may have a password
class PostgreSQL:
    """A PostgreSQL database."""

    url: str

    def connect(self) -> Any:
        """Connect to the database."""
        return _driver("postgresql").connect(with_timeout(self.url))

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        """Give a cursor in a transaction that writes nothing."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield cursor

    def open_query(self, query: str) -> Opened:
        """Return the answer to a query, held in memory."""
        with self.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({query}) AS q LIMIT 0")
            schema = cursor.fetch_arrow_table().schema
            wanted = ", ".join(_postgresql_column(column) for column in schema)
            cursor.execute(f"SELECT {wanted} FROM ({query}) AS q")
            return frame_parts(cursor.fetch_arrow_table())

    def open_table(self, table: str) -> Opened:
        """Return the columns of a table, and its rows by ranges of pages."""
        name = _quoted_table(table)
        snapshot = Snapshot.taken(self)
        with snapshot.connection.cursor() as cursor:
            cursor.execute("SELECT relkind::text FROM pg_class WHERE oid = $1::regclass", (name,))
            (kind,) = cursor.fetchone()
            if kind not in ("r", "p", "m"):  # a view may have another order each time
                return self.open_query(f"SELECT * FROM {name}")
            cursor.execute(f"SELECT * FROM {name} LIMIT 0")
            schema = cursor.fetch_arrow_table().schema
            parts = []
            for first, last in _page_ranges(cursor, name) if kind != "p" else [(None, None)]:
                cursor.execute(f"SELECT count(*) FROM {name}{_within(first, last)}")
                parts.append((int(cursor.fetchone()[0]), first, last))
        selected = tuple((column.name, _postgresql_column(column)) for column in schema)
        return tuple(schema.names), [
            PostgreSQLRows(snapshot, table, selected, rows, first, last)
            for rows, first, last in parts
            if rows
        ]


Edge = int | None


def _page_ranges(cursor: Any, name: str) -> list[tuple[Edge, Edge]]:
    """Cut a table into ranges of pages; the last one has no end."""
    cursor.execute(
        "SELECT current_setting('server_version_num')::int, "
        "pg_relation_size($1::regclass) / current_setting('block_size')::bigint",
        (name,),
    )
    version, pages = cursor.fetchone()
    if version < _HAS_RANGES or pages <= _PAGES_OF_PART:
        return [(None, None)]
    starts = range(_PAGES_OF_PART, pages, _PAGES_OF_PART)
    return list(pairwise([None, *starts, None]))


def _within(first: Edge, last: Edge) -> str:
    """Return the condition that a row is stored on these pages."""
    edges = ((">=", first), ("<", last))
    parts = [f"ctid {sign} '({page},0)'::tid" for sign, page in edges if page is not None]
    return f" WHERE {' AND '.join(parts)}" if parts else ""


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Snapshot:
    """A state of a database, which lasts as long as the transaction that exported it."""

    database: PostgreSQL
    name: str
    connection: Any = None

    @classmethod
    def taken(cls, database: PostgreSQL) -> Snapshot:
        """Begin the transaction."""
        connection = database.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute("SELECT pg_export_snapshot()")
                snapshot = cls(database, cursor.fetchone()[0], connection)
        except BaseException:
            connection.close()
            raise
        weakref.finalize(snapshot, connection.close)  # then the database forgets it
        return snapshot

    def __reduce__(self) -> tuple[Any, ...]:
        """Let other processes join the state; it ends with the process that exported it."""
        return type(self), (self.database, self.name)

    @contextmanager
    def joined(self) -> Iterator[Any]:
        """Give a cursor that sees the same state."""
        with self.database.cursor() as cursor:
            cursor.execute(f"SET TRANSACTION SNAPSHOT '{self.name}'")
            for setting in _AS_STORED:
                cursor.execute(f"SET LOCAL {setting}")
            yield cursor


@dataclass(frozen=True, slots=True, repr=False)
class PostgreSQLRows(Part):
    """Pages of a table of PostgreSQL, in the order in which they are stored."""

    snapshot: Snapshot
    table: str
    selected: tuple[tuple[str, str], ...]
    rows: int
    first: Edge = None
    last: Edge = None

    @property
    def label(self) -> str:
        """The table, and where in it."""
        where = "" if self.first is None else f", page {self.first} and on"
        return f"table {printable(self.table)}{where}"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        known = dict(self.selected)
        wanted = ", ".join(known[name] for name in columns)
        with self.snapshot.joined() as cursor:
            where = _within(self.first, self.last)
            cursor.execute(f"SELECT {wanted} FROM {_quoted_table(self.table)}{where}")
            yield from cursor.fetch_record_batch()


def _postgresql_column(column: pa.Field) -> str:
    """Return a column as it is selected: decimal numbers have no type in ADBC."""
    name = _quoted(column.name)
    numeric = b"numeric" in (column.metadata or {}).values()
    return f"{name}::double precision AS {name}" if numeric else name


def _quoted_table(table: str) -> str:
    """Quote the name of a table, and that of its schema before the last point."""
    if '"' in table or table.count(".") > 1:
        raise ParameterError("table must be a name, or a schema and a name with a point between.")
    return ".".join(map(_quoted, table.split(".")))


# --- SQLite ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SQLite:
    """An SQLite file."""

    path: str

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        """Give a cursor that can only read."""
        if not Path(self.path).is_file():
            raise DataError(f"{printable(Path(self.path).name)} does not exist.")
        address = f"{Path(self.path).absolute().as_uri()}?mode=ro"
        with _driver("sqlite").connect(address) as connection, connection.cursor() as cursor:
            yield cursor

    @property
    def stamp(self) -> tuple[int, ...]:
        """Sizes and times of the file, its journal and its write-ahead log."""
        files = (Path(self.path), Path(f"{self.path}-wal"), Path(f"{self.path}-journal"))
        stats = [file.stat() for file in files if file.exists() and file.stat().st_size]
        return tuple(number for each in stats for number in (each.st_size, each.st_mtime_ns))

    def open_query(self, query: str) -> Opened:
        """Return the answer to a query, held in memory."""
        with self.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({query}) LIMIT 0")
            names = tuple(column[0] for column in cursor.description)
            any_text = ", ".join(f"max(typeof({_quoted(name)}) = 'text')" for name in names)
            cursor.execute(f"SELECT {any_text} FROM ({query})")
            texts = {name for name, text in zip(names, cursor.fetchone(), strict=True) if text}
            batches = list(_sqlite_batches(cursor, f"({query})", names, texts))
        return frame_parts(batches)

    def open_table(self, table: str) -> Opened:
        """Return the columns of a table, and its rows in one part."""
        name = _quoted(table)
        before = self.stamp
        with self.cursor() as cursor:
            cursor.execute("SELECT type FROM sqlite_master WHERE lower(name) = ?", (table.lower(),))
            kind = cursor.fetchone()
            if kind is None:
                raise DataError(f"the database has no table {printable(table)}.")
            if kind[0] != "table":  # a view may have another order each time
                return self.open_query(f"SELECT * FROM {name}")
            cursor.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
            columns = cursor.fetchall()
            cursor.execute(f"SELECT count(*) FROM {name}")
            (rows,) = cursor.fetchone()
        names = tuple(column for column, _ in columns)
        texts = frozenset(c for c, kind in columns if re.search("CHAR|CLOB|TEXT", kind or "", re.I))
        return names, [SQLiteRows(self, table, before, int(rows), texts)] if rows else []


@dataclass(frozen=True, slots=True)
class SQLiteRows(Part):
    """A table of SQLite, in the order in which it is stored."""

    database: SQLite
    table: str
    stamp: tuple[int, ...]
    rows: int
    text: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The table."""
        return f"table {printable(self.table)}"

    @property
    def typed(self) -> bool:
        """Values of one column may have different types."""
        return False

    def as_text(self, names: Collection[str]) -> Part:
        """Return it with these columns as text, besides those that are."""
        return replace(self, text=self.text | set(names))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        with self.database.cursor() as cursor:
            if self.database.stamp != self.stamp:
                raise DataError(
                    f"the file of {self.label} changed since it was opened; nothing may write to "
                    "data while it is read."
                )
            # an index that has the columns would give another order
            rows = f"{_quoted(self.table)} NOT INDEXED"
            yield from _sqlite_batches(cursor, rows, columns, self.text)


def _sqlite_batches(
    cursor: Any, rows: str, columns: Sequence[str], texts: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield typed columns.

    The driver guesses a column's type from its first rows, which may be missing, or integers
    among others. A row of our own before them sets the type, and is dropped; a value of another
    kind is then an error.
    """
    first, others = [], []
    for name in columns:
        column = _quoted(name)
        if name in texts:
            first.append(f"'' AS {column}")
            others.append(f"CAST({column} AS TEXT)")
        else:
            first.append(f"0.0 AS {column}")
            real = f"CAST({column} AS REAL)"
            others.append(f"CASE typeof({column}) WHEN 'integer' THEN {real} ELSE {column} END")
    cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
    cursor.execute(f"SELECT {', '.join(first)} UNION ALL SELECT {', '.join(others)} FROM {rows}")
    for number, batch in enumerate(cursor.fetch_record_batch()):
        yield batch if number else batch.slice(1)
