"""Tables and queries of PostgreSQL, as Arrow streams through ADBC.

All readings of a table see it as it was when it was opened: the database keeps that state for us
(an exported snapshot), and other connections and other machines join it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError
from privatest.core.validation import printable
from privatest.data.scanning.drivers import driver, patient, quoted_name
from privatest.data.scanning.frames import frame_parts
from privatest.data.source import Part

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PostgreSQL"]

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


@dataclass(frozen=True, slots=True, repr=False)  # an address may have a password
class PostgreSQL:
    """A PostgreSQL database."""

    url: str

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Give a cursor in a transaction that writes nothing."""
        address = patient(self.url)
        with driver("postgresql").connect(address) as connection, connection.cursor() as cursor:
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
            pages = _page_ranges(cursor, name) if kind != "p" else [(None, None)]
            counts = [_count(cursor, name, *each) for each in pages]
        selected = tuple((field.name, _selected(field)) for field in schema)
        return tuple(schema.names), [
            PostgreSQLRows(snapshot, table, selected, rows, *each)
            for each, rows in zip(pages, counts, strict=True)
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


def _count(cursor: Any, name: str, first: Edge, last: Edge) -> int:
    cursor.execute(f"SELECT count(*) FROM {name}{_within(first, last)}")
    return int(cursor.fetchone()[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Snapshot:
    """A state of a database, which lasts as long as the transaction that saw it."""

    database: PostgreSQL
    name: str
    connection: Any = None

    @classmethod
    def taken(cls, database: PostgreSQL) -> Snapshot:
        """Begin the transaction."""
        connection = driver("postgresql").connect(patient(database.url))
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
            cursor.execute(f"SELECT {wanted} FROM {_quoted(self.table)}{where}")
            yield from cursor.fetch_record_batch()


def _selected(column: pa.Field) -> str:
    """Return how a column of PostgreSQL is asked for: decimal numbers have no type in ADBC."""
    name = quoted_name(column.name)
    numeric = b"numeric" in (column.metadata or {}).values()
    return f"{name}::double precision AS {name}" if numeric else name


def _quoted(table: str) -> str:
    """Quote the name of a table, and that of its schema before the last point."""
    if '"' in table or table.count(".") > 1:
        raise ParameterError("table must be a name, or a schema and a name with a point between.")
    return ".".join(map(quoted_name, table.split(".")))
