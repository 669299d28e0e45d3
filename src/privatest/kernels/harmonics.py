"""Cosines and sines of single columns, from a table: features whose sums are exact.

Proofs: docs/proofs/portfolio.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.sums import sum_rows

__all__ = ["CELLS", "FINE", "PADDED", "WIDTHS", "Energies", "Harmonics"]

Floats = NDArray[np.float64]

WIDTHS = (1.0, 0.25)  # of the one-column kernels, as shares of a column's bounds
CELLS = 1024  # a number counts as the centre of its cell: features are looked up, not computed
PADDED = 8  # features of a column in the fast form: 32 bytes
FINE = 256  # features are multiples of 1/256


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

    A number is rounded to the centre of one of ``most`` public cells, and its features to
    multiples of 1/fine: a table holds them, and products of two of them add up exactly. A category
    is an indicator of its code, modulo 2 count. Weighted by :meth:`energies` these are features of
    a kernel of each width: on a number periodic with period 2, on a category that of equality.

    With ``apart`` there are two harmonics, the first and the third, and in the place of the two
    widths each has a kernel of its own: of the whole box, and of a third of it.
    """

    domain: Domain
    count: int
    most: int = CELLS
    fine: int = FINE
    apart: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """Which harmonics there are."""
        return (1, 3) if self.apart else tuple(range(1, self.count + 1))

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
        return [own if level else self.most for own, level in zip(self.sizes, levels, strict=True)]

    @cached_property
    def tables(self) -> list[Floats]:
        """For each column, cells × features."""
        return [
            np.eye(own) if level else _harmonics(self.numbers, self.most, self.fine)
            for own, level in zip(self.sizes, self.domain.levels, strict=True)
        ]

    def cell_tables(self, cells: int) -> list[Floats]:
        """Return the same with so many cells for each column: codes of categories."""
        return [
            table[np.arange(cells) % len(table)] if level else table
            for table, level in zip(self.tables, self.domain.levels, strict=True)
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

        From counts of cells, unless these are many more than rows; exact either way.
        """
        bins = len(edges) - 1
        if bins * self.most > 8 * len(rows):
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
        own = np.exp(-((math.pi * width / 2 * np.array(self.numbers)) ** 2))
        if self.apart:
            own = np.equal(WIDTHS, width).astype(np.float64)
        return _energies(self.numbers, tuple(own.tolist()), self.most, self.fine)

    def paired(self, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
        """One-column kernels of row i of ``a`` and of ``b``: pairs × columns × widths.

        With them the kernels of ``a`` and ``a``, and of ``b`` and ``b``.
        """
        shape = len(a), self.domain.dimension, len(WIDTHS)
        across, of_a, of_b = (np.empty(shape) for _ in range(3))
        for column, table in enumerate(self.tables):
            weights = np.stack([self.energies(column, each).squares for each in WIDTHS], axis=1)
            left, right = self.codes(a, column), self.codes(b, column)
            across[:, column] = (table[left] * table[right]) @ weights
            same = np.square(table) @ weights  # of a row with itself: all rows of a cell are alike
            of_a[:, column], of_b[:, column] = same[left], same[right]
        return across, of_a, of_b


@lru_cache(maxsize=8)
def _harmonics(numbers: tuple[int, ...], cells: int, fine: int) -> Floats:
    """Cells × features of a number: cosines, then sines, in multiples of 1/fine."""
    centres = (np.arange(cells) + 0.5) / cells
    angles = math.pi * np.outer(centres, numbers)
    table: Floats = np.rint(np.hstack([np.cos(angles), np.sin(angles)]) * fine) / fine
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _energies(
    numbers: tuple[int, ...], squared: tuple[float, ...], cells: int, fine: int
) -> Energies:
    """Weigh the features of a number.

    Notes
    -----
    **Sensitivity** The features of a row are a row of the table, so that all distances and inner
    products there are can be computed; 1e-12 covers the rounding of doing so.
    """
    squares = np.tile(squared, 2)
    points = _harmonics(numbers, cells, fine) * np.sqrt(squares)
    products = points @ points.T
    norms = np.diag(products)
    largest = float((norms[:, None] + norms - 2 * products).max()) * (1 + 1e-12) + 1e-12
    least, most = float(products.min()) / largest - 1e-12, float(norms.max()) / largest + 1e-12
    return Energies(squares / largest, least, most)
