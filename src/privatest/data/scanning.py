"""Sources of rows: files, folders, frames and tables, opened but not read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.core.errors import DataError
from privatest.core.validation import printable
from privatest.data.source import Engine, Part, Source, Workers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["scan"]

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """A row group of a Parquet file."""

    path: str
    group: int
    rows: int

    @property
    def label(self) -> str:
        """The file and the row group."""
        return f"row group {self.group} of {printable(Path(self.path).name)}"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow.parquet as pq  # noqa: PLC0415

        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(
                _BATCH_ROWS, row_groups=[self.group], columns=list(columns), use_threads=False
            ):
                yield batch.select(list(columns))


def scan(
    data: Any,
    *,
    engine: Engine = "local",
    threads: int | None = None,
    scheduler: str | None = None,
) -> Source:
    """Open rows that are read as a test needs them, once, and never all at a time."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    workers = Workers(engine, threads, scheduler)
    if not isinstance(data, (str, os.PathLike)):
        raise DataError("data must be a path.")
    with pq.ParquetFile(data) as file:
        names = tuple(file.schema_arrow.names)
        parts: list[Part] = [
            ParquetRows(os.fspath(data), group, file.metadata.row_group(group).num_rows)
            for group in range(file.metadata.num_row_groups)
        ]
    return Source(names, tuple(parts), workers)
