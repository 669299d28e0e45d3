"""Feature maps that look at single columns, or at pairs of columns, of a bounded domain.

A kernel in all columns sees little where only a few differ, or where rows crowd in a part of
wide bounds. These maps are cheap, all of them have spread 1, and each gives several statistics
("members") from one pass over the rows. Proofs: docs/proofs/portfolio.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.features import Unprojected, pieces, sum_rows

__all__ = ["ColumnMap", "Harmonics", "PairMap"]

Floats = NDArray[np.float64]

WIDTHS = (1.0, 0.25)  # of the one-column kernels, as shares of a column's bounds
CELLS = 1024  # a number counts as the centre of its cell: features are looked up, not computed
PADDED = 8  # features of a column in the fast form: 32 bytes
_FINE = 256  # features are multiples of 1/256
_EXACT_ROWS = 256  # products of two are multiples of 2^-16, so this many add up exactly in 24 bits


@dataclass(frozen=True, slots=True)
class Energies:
    """Squared weights of a column's features that give them spread 1.

    Inner products of two rows' features are between ``least`` and ``most``, which is also the
    largest squared norm.
    """

    squares: Floats
    least: float
    most: float


@dataclass(frozen=True)
class Harmonics:
    """The first harmonics of each column: cosine and sine of pi k x, k = 1, ..., count <= 4.

    A number is rounded to the centre of one of 1024 public cells, and its features to multiples of
    2^-8: a table holds them, and products of two of them add up exactly. A category is an
    indicator of its code, modulo 2 count. Weighted by :meth:`energies` these are features of a
    kernel of each width: on a number periodic with period 2, on a category that of equality.
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

    @cached_property
    def cells(self) -> list[int]:
        """Number of cells of each column: those of numbers, or features of a category."""
        levels = self.domain.levels
        return [own if level else CELLS for own, level in zip(self.sizes, levels, strict=True)]

    @cached_property
    def tables(self) -> list[Floats]:
        """For each column, cells × features."""
        return [
            np.eye(own) if level else _harmonics(self.count)
            for own, level in zip(self.sizes, self.domain.levels, strict=True)
        ]

    def codes(self, rows: Floats, column: int) -> NDArray[np.intp]:
        """Return the cell of each row in one column."""
        values, cells = rows[:, column], self.cells[column]
        if self.domain.levels[column]:
            return values.astype(np.intp) % cells
        found = (values * cells).astype(np.intp)
        return np.minimum(found, cells - 1, out=found)

    def __call__(self, rows: Floats) -> Floats:
        """Map rows to rows × features."""
        columns = enumerate(self.tables)
        found: Floats = np.hstack([table[self.codes(rows, column)] for column, table in columns])
        return found

    def padded(self, rows: Floats) -> NDArray[np.float32]:
        """Map rows to rows × 8 features a column, of which the last may be 0: the fast form."""
        places = np.empty((len(rows), len(self.cells)), dtype=np.intp)
        start = 0
        for column, cells in enumerate(self.cells):
            np.add(self.codes(rows, column), start, out=places[:, column])
            start += cells
        found = np.empty(places.shape, dtype=self._lookup.dtype)
        np.take(self._lookup, places, out=found, mode="clip")  # the other modes are slower
        return found.view(np.float32)

    @cached_property
    def _lookup(self) -> NDArray[np.void]:
        """All tables one below the other, a row being one item: items of 32 bytes are quick."""
        rows = np.zeros((sum(self.cells), PADDED), dtype=np.float32)
        start = 0
        for table in self.tables:
            rows[start : start + len(table), : table.shape[1]] = table
            start += len(table)
        return rows.view(np.dtype((np.void, rows.strides[0])))[:, 0]

    def sums(self, rows: Floats, edges: NDArray[np.intp], weights: Floats | None) -> Floats:
        """Return the (weighted) sums of features over rows between edges.

        From counts of cells, where rows are more than bins × cells; exact either way.
        """
        bins = len(edges) - 1
        if bins * CELLS > 2 * len(rows):
            return sum_rows(self(rows), edges, weights)
        bin_of_row = np.repeat(np.arange(bins), np.diff(edges))
        parts = []
        for column, (cells, table) in enumerate(zip(self.cells, self.tables, strict=True)):
            codes = bin_of_row * cells
            codes += self.codes(rows, column)
            counts = np.bincount(codes, weights, minlength=bins * cells).reshape(bins, cells)
            parts.append(counts @ table)
        return np.hstack(parts)

    def energies(self, column: int, width: float) -> Energies:
        """Return the weights of a column's features for a kernel of this width."""
        if self.domain.levels[column]:
            return Energies(np.full(self.sizes[column], 0.5), 0.0, 0.5)
        return _energies(self.count, width)

    def paired(self, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
        """One-column kernels of row i of ``a`` and of ``b``: pairs × columns × widths.

        With them the kernels of ``a`` and ``a``, and of ``b`` and ``b``.
        """
        left, right = self(a), self(b)
        weights = [
            np.stack([self.energies(column, width).squares for width in WIDTHS], axis=1)
            for column in range(self.domain.dimension)
        ]

        def kernels(products: Floats) -> Floats:
            starts = self.starts
            parts = zip(starts, starts[1:], weights, strict=False)
            found: Floats = np.stack([products[:, i:j] @ own for i, j, own in parts], axis=1)
            return found

        return kernels(left * right), kernels(left * left), kernels(right * right)


@lru_cache(maxsize=8)
def _harmonics(count: int) -> Floats:
    """Cells × features of a number: cosines, then sines, in multiples of 2^-8."""
    centres = (np.arange(CELLS) + 0.5) / CELLS
    angles = math.pi * np.outer(centres, np.arange(1, count + 1))
    table: Floats = np.rint(np.hstack([np.cos(angles), np.sin(angles)]) * _FINE) / _FINE
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _energies(count: int, width: float) -> Energies:
    """Weigh the features of a number.

    Notes
    -----
    **Sensitivity** The features of a row are a row of the table, so that all distances and inner
    products there are can be computed; 1e-12 covers the rounding of doing so.
    """
    k = np.arange(1, count + 1)
    squares = np.tile(np.exp(-((math.pi * width / 2 * k) ** 2)), 2)
    points = _harmonics(count) * np.sqrt(squares)
    products = points @ points.T
    norms = np.diag(products)
    largest = float((norms[:, None] + norms - 2 * products).max()) * (1 + 1e-12) + 1e-12
    least, most = float(products.min()) / largest - 1e-12, float(norms.max()) / largest + 1e-12
    return Energies(squares / largest, least, most)


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
        """Where the products of each pair are in the matrix of all padded products, flattened."""
        sizes, width = self.harmonics.sizes, PADDED * self.harmonics.domain.dimension
        return np.concatenate(
            [
                np.add.outer(
                    (PADDED * i + np.arange(sizes[i])) * width, PADDED * j + np.arange(sizes[j])
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
