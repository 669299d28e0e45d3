"""Additive kernels: the mean over columns of one-column kernels, by public tables.

A kernel of all columns sees little where data crowd in a part of a box of many columns. Each
column has a few orthogonal functions, shared by all bandwidths, which differ in how much weight
these have: nearly the kernels of the default grid, whose principal functions they are, but larger
at the ends of a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.kernels import UNIT_ROUNDOFF, KernelFamily, gram, kernel_grid
from privatest.kernels.shared import Basis, SharedFeatures, diameter, interpolation

__all__ = ["additive", "additive_moments"]

_POINTS = 129  # of the table of a numeric column
_WIDEST = 4  # bandwidths of the default grid, the wide ones: few functions serve these
_MOST_FUNCTIONS = 160  # of all columns together, if there are not too many
_FUNCTIONS = (2, 12)  # fewest and most of a numeric column
_MOST_LEVELS = 24  # categories with functions of their own


@lru_cache(maxsize=64)
def _column(
    family: KernelFamily, level: int, functions: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[float, ...]]:
    """Table (points × functions), weights (functions × kernels) and spreads of one column."""
    domain = Domain((level,))
    points = np.arange(float(level)) if level else np.linspace(0, 1, _POINTS)
    operators = []
    for kernel in kernel_grid(family, None, domain)[:_WIDEST]:
        matrix = gram(kernel, points[:, None], points[:, None], domain)
        means = matrix.mean(axis=0)
        operators.append((matrix - means - means[:, None] + means.mean()) / len(points))
    typical = sum(matrix / max(float(np.trace(matrix)), 1e-300) for matrix in operators)
    _, vectors = np.linalg.eigh(typical)
    table = vectors[:, ::-1][:, : max(1, min(functions, len(points) - 1))] * np.sqrt(len(points))
    weights = np.array(
        [np.maximum(np.einsum("ia,ij,ja->a", table, each, table), 0) for each in operators]
    ).T / len(points)
    spreads = tuple(diameter(table * np.sqrt(weight)) for weight in weights.T)
    return np.ascontiguousarray(table), weights, spreads


def _functions(level: int, columns: int) -> int:
    if level:
        return min(level - 1, _MOST_LEVELS)
    fewest, most = _FUNCTIONS
    return max(fewest, min(most, _MOST_FUNCTIONS // columns))


def additive(family: KernelFamily, domain: Domain) -> SharedFeatures:
    """Features of additive kernels on a bounded domain, for some bandwidths of the default grid.

    Notes
    -----
    **Sensitivity** As for other tables (:func:`privatest.kernels.shared.tabulated`) for each
    column; squared distances of rows are means over columns, so c² is the mean of the columns' c².
    """
    count = domain.dimension
    columns = [_column(family, level, _functions(level, count)) for level in domain.levels]
    lookups = tuple(
        interpolation(table, numeric=level == 0)
        for (table, _, _), level in zip(columns, domain.levels, strict=True)
    )
    largest = [np.square(table) @ weights for table, weights, _ in columns]
    sizes = np.sqrt(np.mean([squares.max(axis=0) for squares in largest], axis=0)) * (1 + 1e-12)
    spreads = np.sqrt(np.mean([np.square(spread) for _, _, spread in columns], axis=0))
    roundoff = 4 * (sum(table.shape[1] for table, _, _ in columns) + 8) * UNIT_ROUNDOFF
    return SharedFeatures(
        basis=_EachColumn(lookups),
        mix=None,
        weights=np.vstack([weights for _, weights, _ in columns]) / count,
        spreads=tuple(float(spread) * (1 + 1e-12) for spread in spreads),
        sizes=tuple(float(size) for size in sizes),
        errors=tuple(float(roundoff * size) for size in sizes),
        reach=max(1.0, *(float(np.abs(table).max()) for table, _, _ in columns)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _EachColumn:
    """Each column's functions, side by side; it travels to other processes."""

    lookups: tuple[Basis, ...]

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        found = [lookup(rows[:, [index]]) for index, lookup in enumerate(self.lookups)]
        return np.hstack(found)


def additive_moments(family: KernelFamily, domain: Domain) -> tuple[tuple[float, float], ...]:
    """Return (1 - E k, E k~²) of each kernel under the uniform law, as ``null_moments`` does.

    A table's functions are orthonormal under it: these are sums of weights and of their squares.
    """
    count = domain.dimension
    columns = [_column(family, level, _functions(level, count)) for level in domain.levels]
    weights = np.vstack([weight for _, weight, _ in columns]) / count
    return tuple((float(w.sum()), float(np.square(w).sum())) for w in weights.T)
