"""Sources of rows that are read as they are needed, and blocks of encoded rows.

A source holds no rows. It knows its columns and the number of rows of each part beforehand, so
that everything public is decided before a value is read. Parts are sent to other processes.

Blocks are cut by row numbers alone: whatever the parts and the batches of a source are, the same
rows come in the same blocks, and what is computed from a block is the same to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, PrivatestError
from privatest.core.secret_order import SecretBins
from privatest.core.validation import listed
from privatest.data.engines import BLOCK_ROWS, EngineConfig, check_workers

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_LOADED = 1 << 31  # numbers that are held in memory at most, 16 GiB

Blocks = Iterator[tuple[int, NDArray[np.float64]]]

# --- sources --------------------------------------------------------------------------------


class Part:
    """A stretch of rows that can be read alone: a row group, a file, the answer to a query.

    Every reading gives the same rows in the same order, whichever columns are asked for: a row
    is identified by its number. Several threads may read at a time.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def rows(self) -> int:
            """Number of rows."""

        @property
        def label(self) -> str:
            """Name in messages; never a value."""

    @property
    def travels(self) -> bool:
        """Whether other processes can read it."""
        return True

    @property
    def typed(self) -> bool:
        """Whether values have types of their own: those of CSV have none."""
        return True

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in their order, with these columns."""
        raise NotImplementedError

    def as_text(self, names: Collection[str]) -> Part:
        """Return the part with these columns read as they are written, if it is not typed."""
        del names
        return self

    def schema(self, names: Sequence[str]) -> pa.Schema:
        """Return names and types of these columns."""
        return next(self.batches(names)).schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # parts may hold data
class Source:
    """Columns of parts, one below the other; made by :func:`privatest.scan`.

    Attributes
    ----------
    names : tuple of str
        The columns.
    parts : tuple of Part
        In the order of their rows.
    workers : EngineConfig
        Who reads them.
    named : bool
        Whether the columns have names of their own; those of an array are x1, x2, ...
    some_of : int or None
        Of how many rows these were chosen, if they were: that number is public, theirs may not be.
    """

    names: tuple[str, ...]
    parts: tuple[Part, ...]
    workers: EngineConfig = field(default_factory=EngineConfig)
    named: bool = True
    some_of: int | None = None

    def with_progress(self, progress: Callable[[int, int], None] | None) -> Source:
        """Return the source with a callback for passes over its rows: see :class:`EngineConfig`."""
        return replace(self, workers=replace(self.workers, progress=progress))

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(part.rows for part in self.parts)

    def __repr__(self) -> str:
        """Return a summary of what is public."""
        columns = f"{len(self.names)} columns"
        if self.some_of is not None:
            return f"<some of {self.some_of:,} rows of {columns}>"
        return f"<{len(self):,} rows of {columns} in {len(self.parts):,} parts>"

    @property
    def public_rows(self) -> int:
        """A public upper bound on the number of rows."""
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
        return replace(self, parts=tuple(p.as_text(names) for p in self.parts)) if names else self

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
            If a part cannot be read, or has another number of rows than when it was opened: what
            is public was decided by it.
        """
        for part, first in zip(self.parts, self.starts, strict=False):
            if first + part.rows <= start or first >= stop:
                continue
            at, label = first, part.label  # made from a path: not once a batch
            batches = part.batches(columns)
            while True:
                with hiding_values(label):
                    batch = next(batches, None)
                if batch is None:
                    break
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

    def schema(self) -> pa.Schema:
        """Return names and types of the columns; those of CSV are guessed from its beginning."""
        with hiding_values(self.parts[0].label):
            return self.parts[0].schema(self.names)

    def load(self) -> pa.Table:
        """Return all rows in memory."""
        import pyarrow as pa  # noqa: PLC0415

        batches = list(self.tables(0, len(self), self.names))
        if not batches:
            return pa.table({name: pa.nulls(0) for name in self.names})
        with hiding_values("the data"):  # files may differ in the width of their integers
            columns = {
                name: _concatenated([batch.column(place) for batch in batches])
                for place, name in enumerate(self.names)
            }
            return pa.table(columns)

    def partition(
        self,
        names: Sequence[str],
        deciding: Sequence[str],
        codes: Callable[[Any], NDArray[Any]],
        count: int,
    ) -> tuple[Source, ...]:
        """Return the rows of code 0, 1, ..., ``count`` - 1; any of them may be empty.

        The deciding columns are read once, to count the rows of each code in each part. Counts
        of private groups are private, as the rows are: they stay with the rows.

        Parameters
        ----------
        names, deciding : sequence of str
            The columns to return, and those that decide.
        codes : function
            A record batch of the deciding columns to the code of each row; it is sent to other
            processes.
        count : int
            Number of codes.
        """
        deciding = tuple(deciding)
        read = self.select(deciding).as_text(deciding)

        def count_codes(part: Part) -> NDArray[np.intp]:
            counts = np.zeros(count, dtype=np.intp)
            for batch in replace(read, parts=(part,)).tables(0, part.rows, deciding):
                of_rows = codes(batch).astype(np.intp, copy=False)
                counts += np.bincount(of_rows[of_rows >= 0], minlength=count)
            return counts

        with ThreadPoolExecutor(self.workers.threads or os.cpu_count() or 1) as pool:
            counts = list(pool.map(count_codes, read.parts))
        chosen = self.select(names)
        return tuple(
            replace(
                chosen,
                parts=tuple(
                    FilteredRows(part, deciding, codes, code, int(rows[code]))
                    for part, rows in zip(read.parts, counts, strict=True)
                    if rows[code]
                ),
                some_of=self.public_rows,
            )
            for code in range(count)
        )


class WrappedPart(Part):
    """A part that takes its rows from another, its field ``part``."""

    __slots__ = ()

    part: Part

    @property
    def label(self) -> str:
        """The label of the part."""
        return self.part.label

    @property
    def travels(self) -> bool:
        """Whether other processes can read the part."""
        return self.part.travels

    @property
    def typed(self) -> bool:
        """Whether the part is typed."""
        return self.part.typed


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # the number of rows may be private
class FilteredRows(WrappedPart):
    """The rows of a part that have one code."""

    part: Part
    deciding: tuple[str, ...]
    codes: Callable[[Any], NDArray[Any]]
    code: int
    rows: int

    def as_text(self, names: Collection[str]) -> Part:
        """Return it with these columns read as they are written."""
        return replace(self, part=self.part.as_text(names))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow as pa  # noqa: PLC0415

        more = [name for name in self.deciding if name not in columns]
        for batch in self.part.batches([*columns, *more]):
            chosen = self.codes(batch.select(list(self.deciding))) == self.code
            yield batch.select(list(columns)).filter(pa.array(chosen))


def _concatenated(pieces: Sequence[Any]) -> Any:
    """Concatenate pieces of a column; where some are text, all are: that is then refused."""
    import pyarrow as pa  # noqa: PLC0415

    kinds = {piece.type for piece in pieces}
    if len(kinds) > 1 and pa.string() in kinds:
        return pa.chunked_array([piece.cast(pa.string()) for piece in pieces])
    tables = [pa.table({"": piece}) for piece in pieces]
    return pa.concat_tables(tables, promote_options="permissive").column(0)


@contextmanager
def hiding_values(label: str) -> Iterator[None]:
    """Replace the errors of other libraries, which may quote values."""
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


# --- blocks of encoded rows -----------------------------------------------------------------


class RowBlocks:
    """Encoded rows that are read block by block."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def width(self) -> int:
            """Number of columns."""

        def __len__(self) -> int:
            """Return the number of rows."""

    @property
    def source(self) -> Source | None:
        """The first source that rows are read from; None in memory."""
        return None

    @property
    def travels(self) -> bool:
        """Whether other processes can read the rows."""
        return False

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the number of its first row, and each block; ``start`` begins a block.

        A block may be overwritten by the next one: fresh memory would cost as much as reading.
        """
        raise NotImplementedError

    def load(self) -> NDArray[np.float64]:
        """Return all rows, for tests that need them together."""
        source = self.source
        # the size of a group may be private
        _check_room(len(self) if source is None else source.public_rows, self.width)
        if source is not None and source.workers.scheduler is not None:
            check_workers(source.workers)  # a scheduler that is named must be used
        rows = np.empty((len(self), self.width))
        for start, block in self.blocks(0, len(self)):
            rows[start : start + len(block)] = block
        return rows

    def take(self, numbers: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return rows in memory by their numbers."""
        return self.load()[numbers]


Held = NDArray[np.float64] | RowBlocks
"""Rows in memory, or a way to read them."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ArrayBlocks(RowBlocks):
    """Rows in memory."""

    array: NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.array)

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the blocks, laid out as those of a stream.

        An empty sample has one empty block: that a private group is empty must not show.
        """
        for first in range(start, stop, BLOCK_ROWS) or [start]:
            yield first, np.ascontiguousarray(self.array[first : min(first + BLOCK_ROWS, stop)])

    def load(self) -> NDArray[np.float64]:
        """Return all rows."""
        return self.array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stream(RowBlocks):
    """Rows that are encoded as they pass.

    Parameters
    ----------
    source : Source
        Where they come from; its names are the columns that are read.
    encode : function
        Writes a record batch into an array of its rows × width; it is sent to other processes.
    width : int
        Number of columns.
    """

    source: Source = field()
    encode: Callable[[Any, NDArray[np.float64]], None]
    width: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.source)

    @property
    def travels(self) -> bool:
        """Whether other processes can read all parts."""
        return all(part.travels for part in self.source.parts)

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the blocks."""
        held = np.empty((min(BLOCK_ROWS, max(stop - start, 0)), self.width))
        filled = 0
        if not len(held):  # a private group may be empty, and has a block as others have
            yield start, held
        for label, batch in self.source.pieces(start, stop, self.source.names):
            taken = 0
            while taken < len(batch):
                count = min(len(batch) - taken, len(held) - filled)
                try:
                    self.encode(batch.slice(taken, count), held[filled : filled + count])
                except DataError as error:
                    raise DataError(f"{label}: {error}") from None
                filled, taken = filled + count, taken + count
                if filled == len(held):
                    yield start, held
                    start += filled
                    held, filled = held[: stop - start], 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Joined(RowBlocks):
    """Rows made from rows that belong together: row i of each side.

    Parameters
    ----------
    sides : tuple
        Rows in memory, or ways to read them; all have the same number.
    make : function
        A block of each side to the joined block; it is sent to other processes.
    width : int
        Number of columns.
    """

    sides: tuple[Held, ...]
    make: Callable[..., NDArray[np.float64]]
    width: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.sides[0])

    @property
    def source(self) -> Source | None:
        """The first source of a side."""
        return next(filter(None, map(source_of, self.sides)), None)

    @property
    def travels(self) -> bool:
        """Whether other processes can read all sides."""
        return all(as_blocks(side).travels for side in self.sides)

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the blocks: those of all sides are cut alike."""
        for parts in zip(*(blocks_of(side, start, stop) for side in self.sides), strict=True):
            yield parts[0][0], self.make(*(rows for _, rows in parts))

    def take(self, numbers: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return rows in memory by their numbers."""
        return self.make(*(as_blocks(side).take(numbers) for side in self.sides))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shuffled(RowBlocks):
    """Rows in a secret order, by slices: for each slice all rows are read, and its rows returned.

    Parameters
    ----------
    held : RowBlocks
        The rows as they are stored.
    slices : SecretBins
        Which slice each row is in; within it rows stand in the order of their keys.
    edges : tuple of int
        Where slices begin in the secret order, and the number of rows.
    """

    held: RowBlocks
    slices: SecretBins
    edges: tuple[int, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.held)

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.held.width

    @property
    def source(self) -> Source | None:
        """The source of the rows."""
        return self.held.source

    @property
    def travels(self) -> bool:
        """Whether other processes can read the rows."""
        return self.held.travels

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the blocks of the slices from ``start`` to ``stop``."""
        rows, order = self.slice(start, stop)
        for first in range(start, stop, BLOCK_ROWS):
            yield first, rows[order[first - start : min(first + BLOCK_ROWS, stop) - start]]

    def slice(self, start: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Read the slices from ``start`` to ``stop``; return their rows, and the order of these."""
        _check_room(stop - start, self.width)
        wanted = range(self.edges.index(start), self.edges.index(stop))
        rows = np.empty((stop - start, self.width))
        keys = np.empty(stop - start, dtype=np.uint64)
        numbers = np.empty(stop - start, dtype=np.intp)
        filled = 0
        for first, block in self.held.blocks(0, len(self)):
            mine, own = self.slices.between(first, first + len(block), wanted)
            place = slice(filled, filled + len(mine))
            rows[place], keys[place], numbers[place] = block[mine], own, first + mine
            filled += len(mine)
        return rows, self.slices.order(keys, numbers)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arranged(RowBlocks):
    """Rows in memory in another order: ``order`` holds the numbers of the rows that there are."""

    held: RowBlocks
    order: NDArray[np.intp]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.order)

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.held.width

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the blocks."""
        for first in range(start, stop, BLOCK_ROWS):
            yield first, self.held.take(self.order[first : min(first + BLOCK_ROWS, stop)])

    def load(self) -> NDArray[np.float64]:
        """Return all rows."""
        return self.held.take(self.order)


def as_blocks(held: Held) -> RowBlocks:
    """Return rows that can be read block by block."""
    return ArrayBlocks(held) if isinstance(held, np.ndarray) else held


def blocks_of(held: Held, start: int, stop: int) -> Blocks:
    """Yield the number of its first row, and each block; ``start`` begins a block."""
    return as_blocks(held).blocks(start, stop)


def source_of(held: Held) -> Source | None:
    """Return where rows are read from, the first source if there are several; None in memory."""
    return as_blocks(held).source


def __getattr__(name: str) -> Any:
    if name == "read_table":  # its name until 0.9
        import warnings  # noqa: PLC0415

        from privatest.data.files import read_table  # noqa: PLC0415

        warnings.warn(
            "import read_table from privatest.data.files", DeprecationWarning, stacklevel=2
        )
        return read_table
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _check_room(rows: int, width: int) -> None:
    """Refuse to hold too much; the numbers are public."""
    if rows * width > _MOST_LOADED:
        raise DataError(
            f"this test holds its rows in memory, and {rows:,} rows of {width} "
            "columns are too many. docs/how-to/scale.md lists the tests that need one pass."
        )
