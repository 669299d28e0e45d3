"""Tables and queries of SQLite files, as Arrow streams through ADBC; the file must not change."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.core.errors import DataError
from privatest.core.validation import printable
from privatest.data.scanning.drivers import driver, quoted_name
from privatest.data.scanning.frames import frame_parts
from privatest.data.source import Part

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SQLite"]


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
        with driver("sqlite").connect(address) as connection, connection.cursor() as cursor:
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
            found = ", ".join(f"max(typeof({quoted_name(name)}) = 'text')" for name in names)
            cursor.execute(f"SELECT {found} FROM ({inner})")
            texts = {
                name for name, any_text in zip(names, cursor.fetchone(), strict=True) if any_text
            }
            batches = list(_sqlite_batches(cursor, f"({inner})", names, texts))
        return frame_parts(batches)

    def opened(self, table: str) -> tuple[tuple[str, ...], list[Part]]:
        """Return the columns of a table, and its rows in one part."""
        name = quoted_name(table)
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
            rows = f"{quoted_name(self.table)} NOT INDEXED"
            yield from _sqlite_batches(cursor, rows, columns, self.text)


def _sqlite_batches(
    cursor: Any, rows: str, columns: Sequence[str], texts: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield typed columns.

    The driver guesses a column's type from its first rows, which may be missing, or integers
    among others. A row of ours before them says what it is, and is dropped; a value of another
    kind is then an error.
    """
    ours = ", ".join(f"{_kind(name, texts)} AS {quoted_name(name)}" for name in columns)
    theirs = ", ".join(_sqlite_selected(name, texts) for name in columns)
    cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
    cursor.execute(f"SELECT {ours} UNION ALL SELECT {theirs} FROM {rows}")
    for number, batch in enumerate(cursor.fetch_record_batch()):
        yield batch if number else batch.slice(1)


def _kind(name: str, texts: Collection[str]) -> str:
    return "''" if name in texts else "0.0"


def _sqlite_selected(name: str, texts: Collection[str]) -> str:
    column = quoted_name(name)
    if name in texts:
        return f"CAST({column} AS TEXT)"
    return f"CASE typeof({column}) WHEN 'integer' THEN CAST({column} AS REAL) ELSE {column} END"
