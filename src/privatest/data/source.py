"""Rows that are read as they are needed: parts of known size, each of which can be read alone.

A source holds no rows. It knows its columns and the number of rows of each part beforehand, so
that everything public is decided before a value is read. Parts travel to other processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, Protocol

from privatest.core.errors import DataError
from privatest.core.validation import integer_at_least, one_of, reject

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ENGINES", "Part", "Source", "Workers"]

Engine = Literal["local", "dask"]
ENGINES: tuple[Engine, ...] = ("local", "dask")


class Part(Protocol):
    """A stretch of rows that can be read alone: a row group, a file, the answer to a query."""

    @property
    def rows(self) -> int:
        """How many there are."""

    @property
    def label(self) -> str:
        """What messages call it; never a value."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in their order, with these columns."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who reads and adds up.

    Parameters
    ----------
    engine : {"local", "dask"}
        Threads of this process, or workers of a Dask cluster.
    threads : int or None
        Of the local engine; by default one for each processor.
    scheduler : str or None
        Address of the cluster, such as "tcp://host:8786"; by default one on this machine.
    """

    engine: Engine = "local"
    threads: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        """Refuse words that do not go together."""
        one_of("engine", self.engine, ENGINES)
        if self.threads is not None:
            integer_at_least("threads", self.threads, 1)
        if self.scheduler is not None and self.engine != "dask":
            reject("scheduler", "left out: it needs engine='dask'", self.scheduler)


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # parts may hold data
class Source:
    """Columns of parts, one below the other; made by :func:`privatest.scan`.

    Attributes
    ----------
    names : tuple of str
        The columns.
    parts : tuple of Part
        In the order of their rows.
    workers : Workers
        Who reads them.
    """

    names: tuple[str, ...]
    parts: tuple[Part, ...]
    workers: Workers = field(default_factory=Workers)

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(part.rows for part in self.parts)

    def __repr__(self) -> str:
        """Say what is public."""
        return f"<{len(self):,} rows of {len(self.names)} columns in {len(self.parts):,} parts>"

    def select(self, names: Sequence[str]) -> Source:
        """Return the same rows with these columns only."""
        return replace(self, names=tuple(names))

    @property
    def starts(self) -> list[int]:
        """The number of the first row of each part, and the number of all rows."""
        return [0, *accumulate(part.rows for part in self.parts)]

    def tables(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Any]:
        """Yield rows ``start`` to ``stop`` as record batches, in order.

        Raises
        ------
        DataError
            If a part has another number of rows than was said: what is public was decided by it.
        """
        for part, first in zip(self.parts, self.starts, strict=False):
            if first + part.rows <= start or first >= stop:
                continue
            at = first
            for batch in part.batches(columns):
                low, high = max(start - at, 0), min(stop - at, len(batch))
                at += len(batch)
                if at > first + part.rows:
                    _refuse_count(part)
                if low < high:
                    yield batch.slice(low, high - low)
                if at >= stop:
                    break
            if at < min(first + part.rows, stop):
                _refuse_count(part)


def _refuse_count(part: Part) -> None:
    raise DataError(
        f"{part.label} does not have the number of rows that it had when it was opened; nothing "
        "may write to data while it is read."
    )
