"""Sums of two columns in cells of others, as integers, and how far they move.

Proof: docs/proofs/conditional.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import Sensitivity
from privatest.data.samples import Sample
from privatest.engines.summaries import summarise

__all__ = ["UNIT", "CellSums", "Grid", "cell_sums", "cell_sums_sensitivity", "interpolate"]

Floats = NDArray[np.float64]
Cells = NDArray[np.intp]
Corners = list[tuple[Cells, Floats]]

UNIT = 1 << 16  # 1 in the integers of sums; a count of rows has half of it


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of some columns: equal parts of numeric ones' bounds, and every category.

    Attributes
    ----------
    levels : tuple of int
        Categories of each column, 0 for a numeric one.
    sizes : tuple of int
        Cells of each column; at least 2 for a numeric one.
    """

    levels: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of cells."""
        return math.prod(self.sizes)

    def cells(self, rows: Floats) -> Cells:
        """Return the cell of each row; numeric columns are in [0, 1], categories are codes."""
        found = np.zeros(len(rows), dtype=np.intp)
        for values, levels, size in zip(rows.T, self.levels, self.sizes, strict=True):
            place = values if levels else np.minimum(values * size, size - 1)
            found = found * size + place.astype(np.intp)
        return found

    def corners(self, rows: Floats) -> Corners:
        """Return the cells whose centres surround each row, with weights that sum to 1.

        Numeric columns are interpolated (and extrapolated by half a cell at the bounds).
        """
        found: Corners = [(np.zeros(len(rows), dtype=np.intp), np.ones(len(rows)))]
        for values, levels, size in zip(rows.T, self.levels, self.sizes, strict=True):
            steps: Corners
            if levels:
                steps = [(values.astype(np.intp), np.ones(len(rows)))]
            else:
                place = values * size - 0.5
                low = np.clip(np.floor(place), 0, size - 2)
                steps = [
                    (low.astype(np.intp) + up, 1 - up + (2 * up - 1) * (place - low))
                    for up in (0, 1)
                ]
            found = [
                (cell * size + step, weight * share)
                for cell, weight in found
                for step, share in steps
            ]
        return found

    def points(self) -> Floats:
        """Return rows spread evenly over all cells, some for each cell."""
        numeric = sum(levels == 0 for levels in self.levels)
        each = 3 if numeric == 1 else 2
        axes = [
            np.arange(size, dtype=np.float64)
            if levels
            else (np.arange(each * size) + 0.5) / (each * size)
            for levels, size in zip(self.levels, self.sizes, strict=True)
        ]
        grids = np.meshgrid(*axes, indexing="ij")
        return np.column_stack([grid.ravel() for grid in grids])


def interpolate(values: Floats, corners: Corners) -> Floats:
    """Return values of cells (along the last axis) between the centres of cells."""
    # no matrix product: its last bits may depend on where a row is
    result = values[..., corners[0][0]] * corners[0][1]
    for cells, weights in corners[1:]:
        result += values[..., cells] * weights
    return np.asarray(result)


class CellSums:
    """Counts of rows by cell, sums of x and of y by cell, and their sums of squares.

    Rows are the columns of the grid, then x and y, all encoded in [0, 1]. x and y are mapped to
    [-1, 1] and rounded to multiples of 1/UNIT, so that sums are integers.
    """

    __slots__ = ("counts", "grid", "squares", "sums")

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.counts = np.zeros(grid.count, dtype=np.int64)
        self.sums = np.zeros((2, grid.count), dtype=np.int64)
        self.squares = np.zeros(2, dtype=np.int64)

    def update(self, rows: Floats, start: int) -> None:  # noqa: ARG002 -- any order
        """Add a block of rows."""
        cells = self.grid.cells(rows[:, :-2])
        both = np.clip(np.rint((2 * rows[:, -2:].T - 1) * UNIT), -UNIT, UNIT)
        self.counts += np.bincount(cells, minlength=self.grid.count)
        for side, values in enumerate(both):
            # sums of integers, exact below 2^53
            sums = np.bincount(cells, values, self.grid.count)
            self.sums[side] += sums.astype(np.int64)
            self.squares[side] += np.sum(values.astype(np.int64) ** 2 // (2 * UNIT))

    def merge(self, other: Self) -> None:
        """Add other rows."""
        self.counts += other.counts
        self.sums += other.sums
        self.squares += other.squares

    @property
    def integers(self) -> NDArray[np.int64]:
        """Counts for x, counts for y, sums of x, sums of y, squares: what meets noise.

        Counts come twice, so that the errors of two regressions are independent.
        """
        counts = self.counts * (UNIT // 2)
        return np.concatenate([counts, counts, *self.sums, self.squares])


def cell_sums(rows: Sample, grid: Grid) -> CellSums:
    """Return the sums, in one pass."""
    (found,) = summarise((rows, partial(CellSums, grid)))
    return found


def cell_sums_sensitivity(rows_per_person: int) -> Sensitivity:
    """Return how far the integers move.

    Notes
    -----
    **Sensitivity** A row adds UNIT/2 to two counts, X and Y (at most UNIT) to two sums, and
    floor(X²/(2 UNIT)), floor(Y²/(2 UNIT)) to the squares. A replaced row moves counts by at most
    2 UNIT in the l1 norm, and the sum and the square of x by |X| + |X'| + |X² - X'²|/(2 UNIT) + 1
    <= 2 UNIT + 1: together 6 UNIT + 2, times the rows of a person.
    """
    return Sensitivity(float(rows_per_person * (6 * UNIT + 2)), "l1")
