"""Feature maps that look at single columns, or at pairs of columns, of a bounded domain.

A kernel in all columns sees little where only a few differ, or where rows crowd in a part of
wide bounds. These maps are cheap, all of them have spread 1, and each gives several statistics
("members") from one pass over the rows. Proofs: docs/proofs/portfolio.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from privatest.kernels.features import Unprojected
from privatest.kernels.harmonics import PADDED, WIDTHS, Energies, Harmonics
from privatest.kernels.sums import pieces

__all__ = ["ColumnMap", "PairMap"]

Floats = NDArray[np.float64]

_EXACT_ROWS = 256  # products of two are multiples of 2^-16, so this many add up exactly in 24 bits


@dataclass(frozen=True)
class ColumnMap(Unprojected):
    """One-column kernels: for each width their mean over columns (squared), and the largest."""

    harmonics: Harmonics

    name = "additive"
    exact = True
    blocks = 1
    varies = True

    @cached_property
    def _energies(self) -> list[Floats]:
        """For each column, features × widths."""
        columns = range(self.harmonics.domain.dimension)
        return [
            np.stack([self.harmonics.energies(column, width).squares for width in WIDTHS], axis=1)
            for column in columns
        ]

    @property
    def spreads(self) -> tuple[float, ...]:
        """One: so for each column, their mean and their maximum."""
        return (1.0,) * (len(WIDTHS) * (1 if len(self._energies) == 1 else 2))

    @property
    def roundings(self) -> tuple[float, ...]:
        """None: raw features are exact."""
        return (0.0,) * len(self.spreads)

    @property
    def amplifications(self) -> tuple[float, ...]:
        """An error in every feature of a column, in the largest of the norms."""
        largest = max(math.sqrt(float(own.sum(axis=0).max())) for own in self._energies)
        return (largest,) * len(self.spreads)

    @property
    def raw_width(self) -> int:
        """Number of features."""
        return self.harmonics.starts[-1]

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield the harmonics."""
        yield self.harmonics(x)

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield sums of harmonics over the rows between edges."""
        yield self.harmonics.sums(x, edges, weights)

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the members' statistics, members × rows of ``sums``."""
        del index
        starts = self.harmonics.starts
        squares = np.square(sums)
        columns = np.stack(
            [
                squares[:, start:stop] @ own
                for start, stop, own in zip(starts, starts[1:], self._energies, strict=False)
            ]
        )
        return np.sqrt(_mean_and_largest(columns))

    def variances(self, a: Floats, b: Floats) -> Floats:
        """Half the mean squared distance of features, for each member."""
        across, of_a, of_b = self.harmonics.paired(a, b)
        halves = ((of_a + of_b) / 2 - across).mean(axis=0)
        return _mean_and_largest(halves[:, None, :])[:, 0]


@dataclass(frozen=True)
class PairMap(Unprojected):
    """Products of one-column kernels: their mean over pairs of columns, and the largest pair's.

    The features of a pair are the products of the features of its columns. Sums over many rows
    are one matrix product.
    """

    harmonics: Harmonics

    name = "pairwise"
    exact = True
    blocks = 1
    varies = True

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.harmonics.domain.dimension), 2))

    @cached_property
    def _energies(self) -> list[Floats]:
        """For each pair, features × widths, weighted to spread 1."""
        return [
            np.stack([_product(*both) for both in zip(self._own[i], self._own[j], strict=True)], 1)
            for i, j in self._pairs
        ]

    @cached_property
    def _own(self) -> list[list[Energies]]:
        """Of each column, for each width."""
        columns = range(self.harmonics.domain.dimension)
        return [[self.harmonics.energies(column, width) for width in WIDTHS] for column in columns]

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        return self.product_places(PADDED)

    def product_places(self, padded: int) -> NDArray[np.intp]:
        """Return where the products of each pair are in the matrix of all, flattened.

        ``padded`` is the number of features that each column has there.
        """
        sizes, width = self.harmonics.sizes, padded * self.harmonics.domain.dimension
        return np.concatenate(
            [
                np.add.outer(
                    (padded * i + np.arange(sizes[i])) * width, padded * j + np.arange(sizes[j])
                ).ravel()
                for i, j in self._pairs
            ]
        )

    @property
    def spreads(self) -> tuple[float, ...]:
        """One: so for each pair, their mean and their maximum."""
        return (1.0,) * (len(WIDTHS) * (1 if len(self._pairs) == 1 else 2))

    @property
    def roundings(self) -> tuple[float, ...]:
        """None: products are exact."""
        return (0.0,) * len(self.spreads)

    @property
    def amplifications(self) -> tuple[float, ...]:
        """An error in every feature of a pair, in the largest of the norms."""
        largest = max(math.sqrt(float(own.sum(axis=0).max())) for own in self._energies)
        return (largest,) * len(self.spreads)

    @property
    def raw_width(self) -> int:
        """Number of features."""
        return sum(len(own) for own in self._energies)

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield the products, for each row."""
        features, starts = self.harmonics(x), self.harmonics.starts
        yield np.hstack(
            [
                np.einsum(
                    "ni,nj->nij",
                    features[:, starts[i] : starts[i + 1]],
                    features[:, starts[j] : starts[j + 1]],
                ).reshape(len(x), -1)
                for i, j in self._pairs
            ]
        )

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield sums of products over the rows between edges; weights are -1, 0 and 1.

        Pieces of 256 rows add up exactly in single precision, and then in double.
        """
        features = self.harmonics.padded(x)
        signed = features
        if weights is not None:
            signed = features * weights.astype(np.float32)[:, None]
        sums = np.zeros((len(edges) - 1, len(self._places)))
        for index, (start, stop) in enumerate(pairwise(edges)):
            for piece in pieces(start, stop, _EXACT_ROWS):
                products = features[piece].T @ signed[piece]
                sums[index] += np.take(products.ravel(), self._places)
        yield sums

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the members' statistics, members × rows of ``sums``."""
        del index
        squares = np.square(sums)
        pairs = np.empty((len(self._pairs), len(sums), len(WIDTHS)))
        start = 0
        for pair, own in zip(pairs, self._energies, strict=True):
            np.matmul(squares[:, start : start + len(own)], own, out=pair)
            start += len(own)
        return np.sqrt(_mean_and_largest(pairs))

    def variances(self, a: Floats, b: Floats) -> Floats:
        """Half the mean squared distance of features, for each member.

        Products of features have products of kernels as inner products.
        """
        across, of_a, of_b = self.harmonics.paired(a, b)
        halves = (_means(of_a) + _means(of_b)) / 2 - _means(across)  # columns × columns × widths
        found = [
            [
                halves[i, j, width] / _squared_spread(self._own[i][width], self._own[j][width])
                for width in range(len(WIDTHS))
            ]
            for i, j in self._pairs
        ]
        return _mean_and_largest(np.array(found)[:, None, :])[:, 0]


def _means(kernels: Floats) -> Floats:
    """Mean products of the kernels of two columns: columns × columns × widths."""
    means: Floats = np.einsum("piw,pjw->ijw", kernels, kernels, optimize=True) / len(kernels)
    return means


def _product(first: Energies, second: Energies) -> Floats:
    """Squared weights of the products of two columns' features that give them spread 1."""
    squares: Floats = np.outer(first.squares, second.squares).ravel()
    return squares / _squared_spread(first, second)


def _squared_spread(first: Energies, second: Energies) -> float:
    """Bound the squared distance of two rows' products of features.

    Products have inner products no less than the least corner of the two intervals' product, and
    squared norms no more than the product of the two largest.
    """
    ends = [(first.least, first.most), (second.least, second.most)]
    least = min(a * b for a in ends[0] for b in ends[1])
    return 2 * (first.most * second.most - least) * (1 + 1e-12)


def _mean_and_largest(squares: Floats) -> Floats:
    """Combine parts × rows × widths to the mean over parts, and the largest: members × rows."""
    if len(squares) == 1:
        only: Floats = squares[0].T
        return only
    return np.vstack([squares.mean(axis=0).T, squares.max(axis=0).T])
