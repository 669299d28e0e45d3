"""Encoded rows of a source, block by block.

Blocks are cut by row numbers alone: whatever the parts and the batches of a source are, the same
rows come in the same blocks. What is computed from a block is then the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.data.source import Source

__all__ = ["BLOCK_ROWS", "Stream", "array_blocks"]

BLOCK_ROWS = 1 << 16  # rows of a block; the last one may be shorter
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
        A record batch to rows × width floats; it travels to other processes.
    width : int
        Number of columns.
    """

    source: Source
    encode: Callable[[object], NDArray[np.float64]]
    width: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.source)

    def blocks(self, start: int, stop: int) -> Blocks:
        """Yield the number of its first row, and each block; ``start`` begins a block."""
        held = np.empty((min(BLOCK_ROWS, max(stop - start, 0)), self.width))
        filled = 0
        for batch in self.source.tables(start, stop, self.source.names):
            rows = self.encode(batch)
            taken = 0
            while taken < len(rows):
                count = min(len(rows) - taken, len(held) - filled)
                held[filled : filled + count] = rows[taken : taken + count]
                filled, taken = filled + count, taken + count
                if filled == len(held):
                    yield start, held
                    start += filled
                    held, filled = np.empty((min(BLOCK_ROWS, stop - start), self.width)), 0

    def load(self) -> NDArray[np.float64]:
        """Return all rows, for tests that need them together."""
        if len(self) * self.width > _MOST_LOADED:
            raise DataError(
                f"this test holds its rows in memory, and {len(self):,} rows of {self.width} "
                "columns are too many. docs/how-to/scale.md lists the tests that need one pass."
            )
        rows = np.empty((len(self), self.width))
        for start, block in self.blocks(0, len(self)):
            rows[start : start + len(block)] = block
        return rows


def array_blocks(rows: NDArray[np.float64], start: int, stop: int) -> Blocks:
    """Yield the blocks of rows that are in memory."""
    for first in range(start, stop, BLOCK_ROWS):
        yield first, rows[first : min(first + BLOCK_ROWS, stop)]
