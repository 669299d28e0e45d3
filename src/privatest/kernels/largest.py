"""Feature maps whose norm is the largest absolute feature: thresholds, and means of columns.

All of them have spread 1. Proofs: docs/proofs/portfolio.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.features import Unprojected

__all__ = ["MeanMap", "ThresholdMap"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ThresholdMap(Unprojected):
    """Kolmogorov's distance at public thresholds, the largest over columns.

    For a category: the largest difference of a share, codes being taken modulo ``thresholds``. Its
    sensitivity does not depend on bounds.
    """

    domain: Domain
    thresholds: int

    name = "kolmogorov"
    exact = True
    blocks = 1
    varies = False
    spreads = (1.0,)
    roundings = (0.0,)  # indicators are exact
    amplifications = (1.0,)

    @cached_property
    def _cells(self) -> list[int]:
        """Number of cells of each column."""
        most = self.thresholds
        return [min(level, most) or most for level in self.domain.levels]

    @property
    def raw_width(self) -> int:
        """Number of cells."""
        return sum(self._cells)

    def _codes(self, x: Floats) -> Iterator[tuple[NDArray[np.intp], int]]:
        for column, cells in enumerate(self._cells):
            if self.domain.levels[column]:
                codes = x[:, column].astype(np.intp) % cells
            else:
                codes = np.minimum(x[:, column] * cells, cells - 1).astype(np.intp)
            yield codes, cells

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield indicators: at or below each threshold; of each category."""
        parts = [
            np.equal.outer(codes, np.arange(cells))
            if level
            else np.less_equal.outer(codes, np.arange(cells))
            for level, (codes, cells) in zip(self.domain.levels, self._codes(x), strict=True)
        ]
        yield np.hstack(parts).astype(np.float64)

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield counts of the indicators over the rows between edges."""
        bins = len(edges) - 1
        bin_of_row = np.repeat(np.arange(bins), np.diff(edges))
        parts = []
        for level, (codes, cells) in zip(self.domain.levels, self._codes(x), strict=True):
            counts = np.bincount(bin_of_row * cells + codes, weights, minlength=bins * cells)
            counts = counts.reshape(bins, cells)
            parts.append(counts if level else np.cumsum(counts, axis=1))
        yield np.hstack(parts).astype(np.float64)

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the largest, 1 × rows of ``sums``."""
        del index
        return _largest(sums)

    def variances(self, a: Floats, b: Floats) -> Floats:
        """Return 1/4, the variance at a median: this distance hardly depends on the law of rows."""
        del a, b
        return np.array([0.25])


@dataclass(frozen=True)
class MeanMap(Unprojected):
    """Difference of means, the largest over numeric columns.

    Numbers are rounded down to multiples of 2^-bits of their bounds, so that sums are exact.
    """

    domain: Domain
    bits: int = 24

    name = "mean"
    exact = True
    blocks = 1
    varies = True
    spreads = (1.0,)
    roundings = (0.0,)
    amplifications = (1.0,)

    @property
    def raw_width(self) -> int:
        """Number of numeric columns."""
        return len(self.domain.numeric)

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield numeric columns, around the centre of the box."""
        yield self._placed(x[:, self.domain.numeric])

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield sums over the rows between edges, a column at a time."""
        sums = np.zeros((len(edges) - 1, self.raw_width))
        filled = np.flatnonzero(np.diff(edges))
        for place, column in enumerate(self.domain.numeric if len(filled) else ()):
            numbers = self._placed(x[:, column])
            if weights is not None:
                numbers *= weights
            sums[filled, place] = np.add.reduceat(numbers, edges[filled])
        yield sums

    def _placed(self, values: Floats) -> Floats:
        """Return multiples of 2^-bits, at least -1/2 and below 1/2."""
        numbers = values * 2.0**self.bits
        np.minimum(numbers, 2.0**self.bits - 1, out=numbers)
        np.floor(numbers, out=numbers)
        numbers *= 2.0**-self.bits
        numbers -= 0.5
        return numbers

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the largest, 1 × rows of ``sums``."""
        del index
        return _largest(sums)

    def variances(self, a: Floats, b: Floats) -> Floats:
        """Half the mean squared difference, of the column where it is largest."""
        numeric = self.domain.numeric
        squares = np.square(a[:, numeric] - b[:, numeric]).mean(axis=0)
        return np.array([squares.max() / 2])


def _largest(sums: Floats) -> Floats:
    largest: Floats = np.maximum(sums.max(axis=1), -sums.min(axis=1))[None, :]
    return largest
