"""Rows that are read as they are needed: parts of known size, each of which can be read alone.

A source holds no rows. It knows its columns and the number of rows of each part beforehand, so
that everything public is decided before a value is read. Parts travel to other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, Protocol

from privatest.core.errors import DataError, PrivatestError
from privatest.core.validation import integer_at_least, listed, one_of, reject

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ENGINES", "Part", "Source", "Workers", "labelled"]

Engine = Literal["local", "dask"]
ENGINES: tuple[Engine, ...] = ("local", "dask")


class Part(Protocol):
    """A stretch of rows that can be read alone: a row group, a file, the answer to a query.

    Every reading gives the same rows in the same order, whichever columns are asked for: a row
    is known by its number. Several readings may go on at a time.

    A part whose values have no types of their own (CSV) has a method ``as_text(names)`` too, which
    returns the part with these columns read as they are written. One that only this process can
    read says ``travels = False``; one that takes its rows from another has it as ``part``.
    """

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
    progress : callable, optional
        Called with the rows done and all rows of a pass, in this process only.
    """

    engine: Engine = "local"
    threads: int | None = None
    scheduler: str | None = None
    progress: Callable[[int, int], None] | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[Workers], tuple[object, ...]]:
        """Leave the progress callback here when rows are read by another process."""
        return Workers, (self.engine, self.threads, self.scheduler)

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
    named : bool
        Whether the columns have names of their own; those of an array are x1, x2, ...
    some_of : int or None
        Of how many rows these were chosen, if they were: that number is public, theirs may not be.
    """

    names: tuple[str, ...]
    parts: tuple[Part, ...]
    workers: Workers = field(default_factory=Workers)
    named: bool = True
    some_of: int | None = None

    def with_progress(self, progress: Callable[[int, int], None] | None) -> Source:
        """Return the source with a callback for passes over its rows: see :class:`Workers`."""
        return replace(self, workers=replace(self.workers, progress=progress))

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(part.rows for part in self.parts)

    def __repr__(self) -> str:
        """Say what is public."""
        columns = f"{len(self.names)} columns"
        if self.some_of is not None:
            return f"<some of {self.some_of:,} rows of {columns}>"
        return f"<{len(self):,} rows of {columns} in {len(self.parts):,} parts>"

    @property
    def public_rows(self) -> int:
        """A number of rows that is public, and no less than there are."""
        return len(self) if self.some_of is None else self.some_of

    def select(self, names: Sequence[str]) -> Source:
        """Return the same rows with these columns only."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        missing = next((name for name in wanted if name not in self.names), None)
        if missing is not None:  # a database may take an unknown name for a text
            # names of which none was asked for may be somebody's row, read as a header
            known = f"; the columns are: {listed(self.names)}" if {*wanted} & {*self.names} else ""
            raise DataError(f"column {missing!r} is missing{known}.")
        return replace(self, names=wanted)

    def as_text(self, names: Collection[str]) -> Source:
        """Read these columns as they are written, where values have no types: "01" is not 1."""
        parts = (p.as_text(names) if hasattr(p, "as_text") else p for p in self.parts)
        return replace(self, parts=tuple(parts)) if names else self

    @property
    def starts(self) -> list[int]:
        """The number of the first row of each part, and the number of all rows."""
        return [0, *accumulate(part.rows for part in self.parts)]

    def tables(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Any]:
        """Yield rows ``start`` to ``stop`` as record batches, in order; see :meth:`pieces`."""
        for _, batch in self.pieces(start, stop, columns):
            yield batch

    def pieces(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yield rows ``start`` to ``stop`` as record batches, each with the label of its part.

        Raises
        ------
        DataError
            If a part cannot be read, or has another number of rows than was said: what is public
            was decided by it.
        """
        for part, first in zip(self.parts, self.starts, strict=False):
            if first + part.rows <= start or first >= stop:
                continue
            at, label = first, part.label  # made from a path: not once a batch
            for batch in _read(part, columns):
                low, high = max(start - at, 0), min(stop - at, len(batch))
                at += len(batch)
                if at > first + part.rows:
                    _refuse_count(part)
                if low < high:
                    yield label, batch.slice(low, high - low)
                if at >= stop:
                    break
            if at < min(first + part.rows, stop):
                _refuse_count(part)

    def load(self) -> pa.Table:
        """Return all rows in memory."""
        import pyarrow as pa  # noqa: PLC0415

        batches = list(self.tables(0, len(self), self.names))
        if not batches:
            return pa.table({name: pa.nulls(0) for name in self.names})
        with labelled("the data"):  # files may differ in the width of their integers
            columns = {
                name: _together([batch.column(place) for batch in batches])
                for place, name in enumerate(self.names)
            }
            return pa.table(columns)


def _together(pieces: Sequence[Any]) -> Any:
    """Put pieces of a column together; where some are text, all are: that is then refused."""
    import pyarrow as pa  # noqa: PLC0415

    kinds = {piece.type for piece in pieces}
    if len(kinds) > 1 and pa.string() in kinds:
        return pa.chunked_array([piece.cast(pa.string()) for piece in pieces])
    tables = [pa.table({"": piece}) for piece in pieces]
    return pa.concat_tables(tables, promote_options="permissive").column(0)


def _read(part: Part, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the batches of a part; whatever goes wrong, no library's message is passed on."""
    batches, label = part.batches(columns), part.label
    while True:
        with labelled(label):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Put a message without data in the place of those that may quote it."""
    try:
        yield
    except (PrivatestError, MemoryError):
        raise
    except Exception as error:
        raise DataError(
            f"{label} cannot be read ({type(error).__name__}); is it complete, and as it was when "
            "it was opened?"
        ) from None


def _refuse_count(part: Part) -> None:
    raise DataError(
        f"{part.label} does not have the number of rows that it had when it was opened; nothing "
        "may write to data while it is read."
    )
