"""Sums and counts over the rows of a sample: the summaries that most tests need.

A block is mapped piece by piece, so that features of few columns need little memory, and a sum
over a piece is one over stretches: fewer roundings than one after the other.
Proof: docs/proofs/exact-sums.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.data.stream import BLOCK_ROWS
from privatest.engines.summaries import FixedPoint, fixed_rounding, summarise

__all__ = [
    "PIECE",
    "UNIT_ROUNDOFF",
    "Counts",
    "Sums",
    "Terms",
    "column_sums",
    "counts_of",
    "pieces",
    "square_sums",
    "sum_rounding",
    "sums_of",
]

UNIT_ROUNDOFF = 2.0**-53
PIECE = 1 << 13  # rows that are mapped at once
STRETCH = 1 << 10  # rows that are summed in any order
# of a product and the sum over a stretch, over stretches, over pieces; of an integer made a float,
# and of the steps after it
_ROUNDINGS = STRETCH + PIECE // STRETCH + BLOCK_ROWS // PIECE + 8
_ONES = np.ones(STRETCH)

Floats = NDArray[np.float64]
CellsOf = Callable[[Floats], NDArray[np.intp] | NDArray[np.bool_]]
"""Rows to the cell of each, or to whether they count; it travels to other processes."""

Terms = Callable[[Floats], Floats]
"""Rows to a vector of each; a row by itself."""


def sum_rounding(rows: int, largest: float) -> tuple[float, float]:
    """Bound the rounding of a sum over rows, by two parts that are added.

    Parameters
    ----------
    rows : int
        How many are summed.
    largest : float
        Bound on the absolute value of one term.

    Returns
    -------
    relative, absolute : float
        The error is at most relative · Σ |term|, of floats within blocks, and ``absolute``, of
        fixed point.
    """
    # (1 + u)^k - 1 <= 1.01 k u for all k here
    return 1.01 * _ROUNDINGS * UNIT_ROUNDOFF, fixed_rounding(rows, rows * largest)


def pieces(rows: Floats) -> Iterator[Floats]:
    """Yield the pieces of a block."""
    for first in range(0, len(rows), PIECE):
        yield rows[first : first + PIECE]


def column_sums(terms: Floats) -> Floats:
    """Return the sum over the rows of a piece."""
    whole, width = len(terms) // STRETCH * STRETCH, terms.shape[1]
    stretches = _ONES @ terms[:whole].reshape(-1, STRETCH, width)
    total: Floats = stretches.sum(axis=0)
    return total if whole == len(terms) else total + _ONES[: len(terms) - whole] @ terms[whole:]


def square_sums(terms: Floats) -> Floats:
    """Return the sum of row · row' over a piece."""
    whole, width = len(terms) // STRETCH * STRETCH, terms.shape[1]
    stretches = terms[:whole].reshape(-1, STRETCH, width)
    total: Floats = (stretches.transpose(0, 2, 1) @ stretches).sum(axis=0)
    return total if whole == len(terms) else total + terms[whole:].T @ terms[whole:]


class Sums:
    """Sum of a vector of each row.

    Parameters
    ----------
    terms : function
        Rows to rows × width terms, each row by itself; it travels to other processes.
    width : int
        Number of terms of a row.
    largest : float
        Bound on the absolute value of a whole sum.
    """

    __slots__ = ("sums", "terms")

    def __init__(self, terms: Terms, width: int, largest: float) -> None:
        self.terms, self.sums = terms, FixedPoint((width,), largest)

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        del start
        total = np.zeros(self.sums.units.shape)
        for piece in pieces(rows):
            total += column_sums(self.terms(piece))
        self.sums.add(total)

    def merge(self, other: Sums) -> None:
        """Add other blocks."""
        self.sums.merge(other.sums)


def sums_of(sample: Sample, terms: Terms, width: int, largest: float) -> Floats:
    """Return the sum over all rows; ``largest`` bounds a term of one row."""
    (found,) = summarise((sample, partial(Sums, terms, width, len(sample) * largest)))
    return found.sums.value


class Counts:
    """Number of rows in each cell.

    Parameters
    ----------
    cells_of : function
        Rows to the cell of each.
    size : int
        Number of cells.
    """

    __slots__ = ("cells_of", "counts")

    def __init__(self, cells_of: CellsOf, size: int) -> None:
        self.cells_of, self.counts = cells_of, np.zeros(size, dtype=np.int64)

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        del start
        self.counts += np.bincount(self.cells_of(rows), minlength=len(self.counts))

    def merge(self, other: Counts) -> None:
        """Add other blocks."""
        self.counts += other.counts


def counts_of(*samples: Sample, cells_of: CellsOf, size: int) -> list[NDArray[np.int64]]:
    """Count the rows of each sample in public cells: exact, whatever the order."""
    found = summarise(*((sample, partial(Counts, cells_of, size)) for sample in samples))
    return [each.counts for each in found]
