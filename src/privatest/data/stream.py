"""Encoded rows of a source, block by block.

Blocks are cut by row numbers alone: whatever the parts and the batches of a source are, the same
rows come in the same blocks. What is computed from a block is then the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.secret_order import SecretBins
from privatest.data.source import Source, Workers

__all__ = [
    "BEFORE_LOADING",
    "BLOCK_ROWS",
    "Arranged",
    "Held",
    "Joined",
    "Shuffled",
    "Stream",
    "array_blocks",
    "blocks_of",
    "source_of",
]

BLOCK_ROWS = 1 << 16  # rows of a block; the last one may be shorter
BEFORE_LOADING: list[Callable[[Workers], None]] = []
"""What is asked before rows are read into memory: engines refuse workers that do not answer."""

_MOST_LOADED = 1 << 31  # numbers that are held in memory at most, 16 GiB

Blocks = Iterator[tuple[int, NDArray[np.float64]]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stream:
    """Rows that are encoded as they pass.

    Parameters
    ----------
    source : Source
        Where they come from; its names are the columns that are read.
    encode : function
        Writes a record batch into an array of its rows × width; it travels to other processes.
    width : int
        Number of columns.
    """

    source: Source
    encode: Callable[[Any, NDArray[np.float64]], None]
    width: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.source)

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the number of its first row, and each block; ``start`` begins a block.

        A block may be overwritten by the next one: fresh memory would cost as much as reading.
        """
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

    def load(self) -> NDArray[np.float64]:
        """Return all rows, for tests that need them together."""
        return _loaded(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Joined:
    """Rows made from rows that belong together: row i of each, wherever each comes from.

    Parameters
    ----------
    sides : tuple
        Rows in memory, or ways to read them; all have the same number.
    make : function
        A block of each side to the joined block; it travels to other processes.
    width : int
        Number of columns.
    """

    sides: tuple[Held, ...]
    make: Callable[..., NDArray[np.float64]]
    width: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.sides[0])

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the number of its first row, and each block: those of the sides are cut alike."""
        for parts in zip(*(blocks_of(side, start, stop) for side in self.sides), strict=True):
            yield parts[0][0], self.make(*(rows for _, rows in parts))

    def load(self) -> NDArray[np.float64]:
        """Return all rows, for tests that need them together."""
        return _loaded(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shuffled:
    """Rows in a secret order, a slice at a time: all rows are read, and those of a slice are kept.

    Parameters
    ----------
    held : Stream or Joined
        The rows as they are stored.
    slices : SecretBins
        Which slice each row is in; within it rows stand in the order of their keys.
    edges : tuple of int
        Where slices begin in the secret order, and the number of rows.
    """

    held: Stream | Joined
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
    def sides(self) -> tuple[Held, ...]:
        """What the rows are made of."""
        return (self.held,)

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the place of its first row, and each block, of the slices from start to stop."""
        rows, order = self.slice(start, stop)
        for first in range(start, stop, BLOCK_ROWS):
            yield first, rows[order[first - start : min(first + BLOCK_ROWS, stop) - start]]

    def slice(self, start: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Read the slices from start to stop; return their rows, and the order of these."""
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

    def load(self) -> NDArray[np.float64]:
        """Return all rows, for tests that need them together."""
        return _loaded(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arranged:
    """Rows in memory in another order.

    Parameters
    ----------
    held : array or Joined
        The rows, all of them in memory.
    order : array of int
        The numbers of those that there are, in their order.
    """

    held: NDArray[np.float64] | Joined
    order: NDArray[np.intp]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.order)

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.held.shape[1] if isinstance(self.held, np.ndarray) else self.held.width

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the place of its first row, and each block."""
        for first in range(start, stop, BLOCK_ROWS):
            yield first, _taken(self.held, self.order[first : min(first + BLOCK_ROWS, stop)])

    def load(self) -> NDArray[np.float64]:
        """Return all rows."""
        return _taken(self.held, self.order)


def _taken(held: Any, numbers: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return rows in memory by their numbers."""
    found: NDArray[np.float64]
    if isinstance(held, Joined):
        found = held.make(*(_taken(side, numbers) for side in held.sides))
    else:
        found = held[numbers]
    return found


Held = NDArray[np.float64] | Stream | Joined | Shuffled | Arranged
"""Rows in memory, or a way to read them."""


def _loaded(held: Stream | Joined | Shuffled) -> NDArray[np.float64]:
    source = source_of(held)
    # the size of a group may be private
    public = len(held) if source is None else source.public_rows
    _check_room(public, held.width)
    if source is not None:
        for check in BEFORE_LOADING:
            check(source.workers)
    rows = np.empty((len(held), held.width))
    for start, block in held.blocks(0, len(held)):
        rows[start : start + len(block)] = block
    return rows


def _check_room(rows: int, width: int) -> None:
    """Refuse to hold too much; the numbers are public."""
    if rows * width > _MOST_LOADED:
        raise DataError(
            f"this test holds its rows in memory, and {rows:,} rows of {width} "
            "columns are too many. docs/how-to/scale.md lists the tests that need one pass."
        )


def array_blocks(rows: NDArray[np.float64], start: int, stop: int) -> Blocks:
    """Yield the blocks of rows that are in memory, laid out as those of a stream.

    No rows are one block: that a private group is empty is not to be seen.
    """
    for first in range(start, stop, BLOCK_ROWS) or [start]:
        yield first, np.ascontiguousarray(rows[first : min(first + BLOCK_ROWS, stop)])


def blocks_of(held: Held, start: int, stop: int) -> Blocks:
    """Yield the number of its first row, and each block; ``start`` begins a block."""
    if isinstance(held, np.ndarray):
        return array_blocks(held, start, stop)
    return held.blocks(start, stop)


def source_of(held: Held) -> Source | None:
    """Return where rows are read from, the first place if there are several; None in memory."""
    if isinstance(held, (Joined, Shuffled)):
        return next(filter(None, map(source_of, held.sides)), None)
    return held.source if isinstance(held, Stream) else None
