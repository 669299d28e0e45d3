"""Where rows are: a file, a folder, a pattern, an address or a database; and how they are read.

Small data is read into memory, as tests are quickest there. What is larger, or has an engine of
its own, is read as it passes. Which of them it is depends on public sizes only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from privatest.core.errors import DataError, ParameterError
from privatest.data.source import Source, Workers

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.data.schema import Schema

__all__ = ["MOST_HELD", "Place"]

MOST_HELD = 1 << 25  # numbers that are read into memory, 256 MiB
_MOST_BYTES = 1 << 28  # of a CSV file that is read without counting its rows first
_SIMPLE = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows are, as it was written.

    Attributes
    ----------
    text : str
        A path, a pattern, or an address.
    table, query : str or None
        What is read of a database.
    workers : Workers or None
        Who reads, if somebody said so.
    """

    text: str
    table: str | None = None
    query: str | None = None
    workers: Workers | None = None
    _opened: dict[str, Source] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        """Return the place without a password."""
        if not self.is_database:
            return self.text
        parts = urlsplit(self.text)
        host = parts.netloc.rpartition("@")[2]
        what = f"#{self.table}" if self.table else ""
        return f"{parts.scheme}://{host}{parts.path}{what}"

    @property
    def is_database(self) -> bool:
        """Whether it is the address of a database."""
        return self.text.partition("://")[0] in ("postgresql", "postgres", "sqlite")

    @property
    def path(self) -> Path:
        """The place as a path."""
        return Path(self.text)

    @property
    def name(self) -> str:
        """What the ledger calls it by default: a table's name, a file's or a folder's."""
        if self.is_database:
            if self.table is None:
                raise ParameterError("--dataset must be given for a query: its name in the ledger.")
            return self.table.rpartition(".")[2]
        parts = [part for part in self.text.replace("\\", "/").split("/") if part]
        while len(parts) > 1 and re.search(r"[*?\[]", parts[-1]):
            parts.pop()
        return re.split(r"[*?\[]", parts[-1])[0] if parts else ""

    def exists(self) -> bool:
        """Whether it is a file or a folder of this machine."""
        return not self.is_database and self.path.exists()

    def same(self, other: Place | Path) -> bool:
        """Whether both are one."""
        if isinstance(other, Place) and (self.is_database or other.is_database):
            return self == other
        path = other.path if isinstance(other, Place) else other
        return self.exists() and path.exists() and self.path.samefile(path)

    # --- what is public ---------------------------------------------------------------------

    def check(self, names: Sequence[str]) -> None:
        """Refuse what can be refused without reading rows: no such file, column or database."""
        from privatest.data.sources import check_columns  # noqa: PLC0415
        from privatest.data.tables import arranged, read_data  # noqa: PLC0415

        if self._is_simple(names):
            check_columns(self.path, names)
        else:
            arranged(read_data(self.source, "data"), tuple(names), "")

    def check_types(self, described: Schema | None) -> None:
        """Refuse columns whose types do not fit: they are public, and CSV has none."""
        from privatest.data.sources import read_schema  # noqa: PLC0415

        if described is None:
            return
        names = list(described.columns)
        if self._is_simple(names):
            if self.path.suffix == ".parquet":
                described.encode(read_schema(self.path).empty_table().select(names))
        elif not _has_no_types(self.source):
            first = next(self.source.select(names).tables(0, 1, names))
            described.encode(first.slice(0, 0))

    def count(self, names: Sequence[str]) -> int:
        """Return the public number of rows; values do not matter."""
        from privatest.data.sources import read_table  # noqa: PLC0415

        if self._is_simple(names):
            return int(read_table(self.path, names[:1], text=names[:1]).num_rows)
        return len(self.source)

    def schema(self) -> pa.Schema:
        """Return names and types of the columns; those of CSV are guessed from its beginning."""
        from privatest.data.sources import read_schema  # noqa: PLC0415

        if self._is_simple([""]):
            return read_schema(self.path)
        part = self.source.parts[0]
        if hasattr(part, "single"):  # CSV
            return read_schema(part.file.path)  # type: ignore[attr-defined]
        return next(self.source.tables(0, 1, self.source.names)).schema

    @property
    def source(self) -> Source:
        """The rows, opened once: what was counted is what will be read."""
        from privatest.data.scanning import scan, scan_sql  # noqa: PLC0415

        if "" not in self._opened:
            workers = self.workers or Workers()
            who: dict[str, Any] = {"engine": workers.engine, "threads": workers.threads}
            who["scheduler"] = workers.scheduler
            if self.is_database:
                found = scan_sql(self.text, table=self.table, query=self.query, **who)
            else:
                found = replace(scan(self.text, **who), named=True)  # x1, x2, ... of an array
            if not len(found):
                raise DataError("the data has no rows.")
            self._opened[""] = found
        return self._opened[""]

    # --- rows -------------------------------------------------------------------------------

    def read(
        self, names: Sequence[str], text: Sequence[str] = (), *, registered: bool = False
    ) -> pa.Table | Source:
        """Return the rows in memory, or a source of them where they are many.

        ``registered`` is whether these contents were read and checked before.
        """
        from privatest.data.sources import read_table  # noqa: PLC0415

        if self._is_simple(names):
            return read_table(self.path, names, text=text, registered=registered)
        source = self.source.select(names).as_text(text)
        return source if self.passes(names) else source.load()

    def passes(self, names: Sequence[str]) -> bool:
        """Whether rows are read as they pass, and not into memory."""
        if self._is_simple(names):
            return False
        return self.workers is not None or len(self.source) * len(names) > MOST_HELD

    def _is_simple(self, names: Sequence[str]) -> bool:
        """Whether this is one file, to be read into memory at once."""
        name = self.path.name.lower()
        if self.workers is not None or "://" in self.text or self.path.is_dir():
            return False
        if not self.path.exists():  # a pattern, or a mistake that is told as before
            return not any(char in self.text for char in "*?[") and name.endswith(_SIMPLE)
        if not name.endswith(_SIMPLE):
            return False
        if not name.endswith(".parquet"):
            return self.path.stat().st_size <= _MOST_BYTES
        return self._few_rows(len(names))

    def _few_rows(self, columns: int) -> bool:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        try:
            return bool(pq.read_metadata(self.path).num_rows * columns <= MOST_HELD)
        except (pa.ArrowException, OSError):
            return True  # reading it says what is wrong


def _has_no_types(source: Source) -> bool:
    part: Any = source.parts[0]
    while hasattr(part, "part"):
        part = part.part
    return hasattr(part, "as_text")
