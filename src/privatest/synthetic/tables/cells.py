"""Public cells of a column: categories, integers, bins between public bounds, and atoms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.results import read_only
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema

__all__ = ["MOST_CELLS", "Cells", "cells_from", "column_cells", "schema_cells"]

MOST_CELLS = 20_000  # of a column: each takes noise, and one row says nothing about so many
_FEW_VALUES = 1024  # integers that are counted one by one
_BINS = 128  # of other numbers
_LARGEST_INTEGER, _LARGEST_NUMBER = 1 << 53, 1e150  # floats hold no larger ones exactly


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """How one column is counted. Everything here follows from the schema.

    Attributes
    ----------
    lowest, highest : ndarray
        The ends of each cell, in the column's own units (categories are 0, 1, ...). They are
        equal for a single value: a category, an integer, an atom. Between real numbers the
        highest belongs to the next cell, but for the last.
    ordered : bool
        Whether neighbours are alike: numbers are, categories are not.
    whole : bool
        Whether values between the ends are integers.
    """

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    ordered: bool = True
    whole: bool = True

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.lowest)

    @property
    def places(self) -> NDArray[np.float64]:
        """The middles of the cells, where the lowest value is 0 and the highest 1."""
        middles = (self.lowest + self.highest) / 2
        span = self.highest[-1] - self.lowest[0]
        places: NDArray[np.float64] = (middles - self.lowest[0]) / span
        return places

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the cell of each value; values lie within the column's bounds."""
        found = np.searchsorted(self.lowest, values, side="right") - 1
        return found.clip(0, len(self) - 1).astype(np.intp)

    def parts(self, cell: int, count: int) -> NDArray[np.float64]:
        """Return where ``count`` parts of equal length of a cell begin; fewer if it has no more."""
        low, high = float(self.lowest[cell]), float(self.highest[cell])
        if self.whole:
            even = np.floor(low + (high + 1 - low) * (np.arange(count) / count))
            return np.unique(np.minimum(even, high))
        edges = low + (high - low) * (np.arange(count) / count)
        return np.unique(edges[(edges < high) | (edges == low)])

    def values(
        self, codes: NDArray[np.intp], shares: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw a value for each code: within a cell by a density that leans to its neighbours.

        ``shares`` are the cells' shares of all rows. Values of a cell are spread evenly over the
        law, so that their mean is that of the law, and handed out in random order.
        """
        values = self.lowest[codes]
        leaning = self._leanings(shares)
        for cell in np.unique(codes[self.highest[codes] > values]):
            rows = np.flatnonzero(codes == cell)
            even = (rng.permutation(len(rows)) + rng.random()) / len(rows)
            values[rows] = self._within(int(cell), _leaned(even, leaning[cell]))
        return values

    def _within(self, cell: int, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values at places from 0 to 1 of a cell."""
        low, high = float(self.lowest[cell]), float(self.highest[cell])
        found: NDArray[np.float64]
        if self.whole:
            found = np.minimum(low + np.floor(places * (high - low + 1)), high)
        else:
            last = high if cell == len(self) - 1 else np.nextafter(high, low)
            found = np.clip(low * (1 - places) + high * places, low, last)
        return found

    def _leanings(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much more likely the upper end of a cell is than its middle, in [-1, 1]."""
        widths = self.highest - self.lowest + (1.0 if self.whole else 0.0)
        wide = np.flatnonzero(self.highest > self.lowest)
        leanings = np.zeros(len(self))
        if len(wide) < 2:
            return leanings
        # in a public unit, a power of two: shares over widths of any size stay within the floats
        heights = shares[wide] / np.ldexp(widths[wide], -int(np.frexp(widths[wide].max())[1]))
        around = np.concatenate([[heights[0]], heights, [heights[-1]]])
        # from the middle of the cell below to that of the cell above; at the ends from its own
        steps = np.full(len(wide), 4.0)
        steps[[0, -1]] = 2.0
        slopes = (around[2:] - around[:-2]) / (steps * np.maximum(heights, 1e-300))
        leanings[wide] = slopes.clip(-1, 1)
        return leanings


def _leaned(even: NDArray[np.float64], leaning: float) -> NDArray[np.float64]:
    """Return quantiles of the density 1 + leaning (2x - 1) on [0, 1]."""
    if abs(leaning) < 1e-9:
        return even
    root = np.sqrt((1 - leaning) ** 2 + 4 * leaning * even)
    places: NDArray[np.float64] = ((root - (1 - leaning)) / (2 * leaning)).clip(0, 1)
    return places


def schema_cells(
    schema: Schema, starts: Mapping[str, Sequence[float]] | None = None
) -> tuple[Cells, ...]:
    """Return the cells of all columns; refuse a column that has too many.

    ``starts`` say where those of some columns begin, if that was bought (:mod:`refining`).
    """
    cells = []
    for name, column in schema.columns.items():
        if isinstance(column, NumericColumn):
            largest = max(abs(column.lower), abs(column.upper))
            if largest > (_LARGEST_INTEGER if column.integer else _LARGEST_NUMBER):
                raise ParameterError(
                    f"bounds of column {name!r} are too large for method='tables': at most "
                    f"{_LARGEST_INTEGER:,} for integers and {_LARGEST_NUMBER:g} for others."
                )
        count = len(column.categories) if isinstance(column, CategoricalColumn) else 0
        if count > MOST_CELLS:
            raise ParameterError(
                f"column {name!r} must have at most {MOST_CELLS:,} categories for "
                f"method='tables'; it has {count:,}. Merge categories, or leave the column out."
            )
        own = (starts or {}).get(name)
        if own is None or isinstance(column, CategoricalColumn):
            cells.append(column_cells(column))
        else:
            cells.append(cells_from(column, np.array(own)))
    return tuple(cells)


def column_cells(column: Column) -> Cells:
    """Return the cells of one column: public, from its description alone."""
    if isinstance(column, CategoricalColumn):
        codes = read_only(np.arange(len(column.categories), dtype=np.float64))
        return Cells(codes, codes, ordered=False)
    lower, upper, atoms = column.lower, column.upper, np.array(column.atoms)
    edges = lower + (upper - lower) * (np.arange(_BINS) / _BINS)
    if column.integer and upper - lower < _FEW_VALUES:
        values = read_only(np.arange(lower, upper + 1))
        return Cells(values, values)
    edges = np.ceil(edges) if column.integer else edges
    after = atoms + 1 if column.integer else np.nextafter(atoms, np.inf)
    starts = np.unique(np.concatenate([edges, atoms, after]))
    return cells_from(column, starts[starts <= upper])


def cells_from(column: NumericColumn, starts: NDArray[np.float64]) -> Cells:
    """Return the cells of numbers that begin at ``starts``, which rise from the lower bound.

    Every atom begins a cell, and so does the number after it.
    """
    lowest = read_only(np.asarray(starts, dtype=np.float64))
    rising = lowest[0] == column.lower and (np.diff(lowest) > 0).all()
    if not rising or lowest[-1] > column.upper or not np.isin(column.atoms, lowest).all():
        raise ValueError("starts must rise from the lower bound, and have all atoms.")
    if column.integer:
        return Cells(lowest, read_only(np.append(lowest[1:] - 1, column.upper)))
    highest = np.append(lowest[1:], column.upper)
    single = np.isin(lowest, column.atoms)
    highest[single] = lowest[single]
    return Cells(lowest, read_only(highest), whole=False)
