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

from privatest.data.domain import Domain
from privatest.kernels.features import Unprojected
from privatest.kernels.fourier import cos_sin
from privatest.kernels.kernels import UNIT_ROUNDOFF

__all__ = ["ColumnMap", "Harmonics", "PairMap"]

Floats = NDArray[np.float64]

WIDTHS = (1.0, 0.25)  # of the one-column kernels, as shares of a column's bounds
_GRID = 4097  # distances at which a one-column kernel is evaluated for its range


@dataclass(frozen=True)
class Harmonics:
    """The first harmonics of each column: cosine and sine of pi k x, k = 1, ..., count.

    A category is an indicator of its code, modulo 2 count. Weighted by :meth:`energies` these
    are features of a kernel of each width: on a number periodic with period 2, on a category
    that of equality.
    """

    domain: Domain
    count: int

    @cached_property
    def sizes(self) -> list[int]:
        """Number of features of each column."""
        return [min(level, 2 * self.count) or 2 * self.count for level in self.domain.levels]

    @cached_property
    def starts(self) -> list[int]:
        """Where the features of each column start, and the end."""
        return [0, *np.cumsum(self.sizes).tolist()]

    def __call__(self, rows: Floats) -> Floats:
        """Map rows to rows × features."""
        features = np.empty((len(rows), self.starts[-1]))
        for column, level in enumerate(self.domain.levels):
            own = features[:, self.starts[column] : self.starts[column + 1]]
            if level:
                codes = rows[:, column].astype(np.intp) % own.shape[1]
                own[:] = codes[:, None] == np.arange(own.shape[1])
            else:
                self._number(rows[:, column], own)
        return features

    def _number(self, values: Floats, out: Floats) -> None:
        """Cosine and sine of the first harmonic, then each next one by a rotation."""
        turn = np.empty(len(values), dtype=np.complex128)
        turn.real, turn.imag = cos_sin(2 * values)  # in quarter turns: pi x
        power = turn.copy()
        for k in range(self.count):
            if k:
                power *= turn
            out[:, k], out[:, self.count + k] = power.real, power.imag

    @property
    def rounding(self) -> float:
        """Bound on the error of a feature: each rotation adds that of one cosine, and 3 units."""
        return 40 * self.count * UNIT_ROUNDOFF

    def energies(self, column: int, width: float) -> tuple[Floats, float]:
        """Squared weights of a column's features that give them spread 1, and their norm².

        Notes
        -----
        **Sensitivity** Two numbers at distance t have features at squared distance
        f(t) = sum_k a_k² (2 - 2 cos pi k t). Between points of a grid of step h a maximum is at
        most h²/8 max |f''| above the larger of its neighbours. f is even around 0 and 1, so the
        ends are no exception.
        """
        if self.domain.levels[column]:
            return np.full(self.sizes[column], 0.5), 0.5
        k = np.arange(1, self.count + 1)
        squares = np.exp(-((math.pi * width / 2 * k) ** 2))
        distances = np.linspace(0, 1, _GRID)
        values = (2 - 2 * np.cos(math.pi * np.outer(distances, k))) @ squares
        curvature = 2 * math.pi**2 * float(k**2 @ squares)
        largest = float(values.max()) + curvature / (8 * (_GRID - 1) ** 2)
        squares /= largest * (1 + 1e-12)
        return np.concatenate([squares, squares]), float(squares.sum())

    def paired(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """One-column kernels of row i of ``a`` and of ``b``: pairs × columns × widths.

        With them their values at equal rows, columns × widths.
        """
        products = self(a) * self(b)
        columns = range(self.domain.dimension)
        own = [[self.energies(column, width) for width in WIDTHS] for column in columns]
        kernels = [
            products[:, self.starts[column] : self.starts[column + 1]]
            @ np.stack([squares for squares, _ in own[column]], axis=1)
            for column in columns
        ]
        return np.stack(kernels, axis=1), np.array([[norm for _, norm in each] for each in own])


@dataclass(frozen=True)
class ColumnMap(Unprojected):
    """One-column kernels: for each width their mean over columns (squared), and the largest."""

    harmonics: Harmonics

    name = "additive"
    blocks = 1
    varies = True

    @cached_property
    def _energies(self) -> list[Floats]:
        """For each column, features × widths."""
        columns = range(self.harmonics.domain.dimension)
        return [
            np.stack([self.harmonics.energies(column, width)[0] for width in WIDTHS], axis=1)
            for column in columns
        ]

    @property
    def spreads(self) -> tuple[float, ...]:
        """One: so for each column, their mean and their maximum."""
        return (1.0,) * (len(WIDTHS) * (1 if len(self._energies) == 1 else 2))

    @property
    def roundings(self) -> tuple[float, ...]:
        """Rounding error of one raw feature."""
        return (self.harmonics.rounding,) * len(self.spreads)

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
        kernels, equal = self.harmonics.paired(a, b)
        return _mean_and_largest((equal - kernels.mean(axis=0))[:, None, :])[:, 0]


@dataclass(frozen=True)
class PairMap(Unprojected):
    """Products of one-column kernels: their mean over pairs of columns, and the largest pair's.

    The features of a pair are the products of the features of its columns. Sums over many rows
    are one matrix product.
    """

    harmonics: Harmonics

    name = "pairwise"
    blocks = 1
    varies = True

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.harmonics.domain.dimension), 2))

    @cached_property
    def _energies(self) -> list[Floats]:
        """For each pair, features × widths, weighted to spread 1."""
        columns = range(self.harmonics.domain.dimension)
        own = [[self.harmonics.energies(column, width) for width in WIDTHS] for column in columns]
        return [
            np.stack([_product(*both) for both in zip(own[i], own[j], strict=True)], axis=1)
            for i, j in self._pairs
        ]

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Where the products of each pair are in the matrix of all products, flattened."""
        starts, width = self.harmonics.starts, self.harmonics.starts[-1]
        return np.concatenate(
            [
                np.add.outer(
                    np.arange(starts[i], starts[i + 1]) * width, np.arange(starts[j], starts[j + 1])
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
        """Rounding error of one product."""
        return (2 * self.harmonics.rounding + 2 * UNIT_ROUNDOFF,) * len(self.spreads)

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
        """Yield sums of products over the rows between edges."""
        features = self.harmonics(x)
        weighted = features if weights is None else features * weights[:, None]
        sums = np.empty((len(edges) - 1, len(self._places)))
        for index, (start, stop) in enumerate(pairwise(edges)):
            products = features[start:stop].T @ weighted[start:stop]
            np.take(products.ravel(), self._places, out=sums[index])
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
        kernels, equal = self.harmonics.paired(a, b)
        means = np.einsum("piw,pjw->ijw", kernels, kernels, optimize=True) / len(a)
        found = np.array(
            [
                [
                    (r * q - means[i, j, width]) / _squared_spread(r, q)
                    for width, (r, q) in enumerate(zip(equal[i], equal[j], strict=True))
                ]
                for i, j in self._pairs
            ]
        )
        return _mean_and_largest(found[:, None, :])[:, 0]


def _product(first: tuple[Floats, float], second: tuple[Floats, float]) -> Floats:
    """Squared weights of the products of two columns' features that give them spread 1.

    Features of a column have norm² r and spread 1, so inner products in [r - 1/2, r]. Products
    have inner products no less than the least corner of the two intervals' product.
    """
    (left, r), (right, q) = first, second
    squares: Floats = np.outer(left, right).ravel() / _squared_spread(r, q)
    return squares


def _squared_spread(r: float, q: float) -> float:
    least = min((r - 0.5) * (q - 0.5), (r - 0.5) * q, r * (q - 0.5))
    return 2 * (r * q - least) * (1 + 1e-12)


def _mean_and_largest(squares: Floats) -> Floats:
    """Combine parts × rows × widths to the mean over parts, and the largest: members × rows."""
    if len(squares) == 1:
        only: Floats = squares[0].T
        return only
    return np.vstack([squares.mean(axis=0).T, squares.max(axis=0).T])
