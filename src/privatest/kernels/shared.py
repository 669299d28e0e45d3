"""Features of all bandwidths as linear functions of one vector, the basis of a row.

Sums of products of bases then serve every pair of bandwidths. For one column the features of all
bandwidths nearly lie in one space of few functions, which a public table holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.features import FeatureMaps, nystrom
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel

__all__ = ["Basis", "SharedFeatures", "diameter", "interpolation", "stacked", "tabulated"]

_LATTICE = 513  # points of the table of a numeric column
_MOST_LEVELS = 1024  # categories of a table
# Directions with less than this share of the largest variance are left out: of each kernel's
# features, which they hardly change, and of all of them together, where only rounding may remain.
_VARIANCE_CUT = 1e-3
_TABLE_CUT = 1e-3
_LEAST_SPREAD = 1e-30  # a kernel that rounds to 1 everywhere has none, and a sensitivity is not 0

Basis = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class SharedFeatures:
    """One basis for the features of several kernels.

    Parameters
    ----------
    basis : function
        Encoded rows to rows × basis.
    mix : array or None
        Basis × features of all kernels, side by side; None if the basis is these features.
    weights : array
        Features × kernels: the factor of each squared feature in a kernel's squared norm; 1
        where a feature belongs to a kernel, else 0, if each kernel has features of its own.
    spreads : tuple of float
        Largest distance between the features of two rows, for each kernel.
    sizes : tuple of float
        Bound on the norm of any row's features, and of what they are computed from.
    errors : tuple of float
        Bound on the rounding error of a row's features.
    reach : float
        Bound on the absolute value of a number of the basis, at least 1.
    """

    basis: Basis
    mix: NDArray[np.float64] | None
    weights: NDArray[np.float64]
    spreads: tuple[float, ...]
    sizes: tuple[float, ...]
    errors: tuple[float, ...]
    reach: float = 1.0

    @property
    def width(self) -> int:
        """Length of the basis."""
        return len(self.weights) if self.mix is None else len(self.mix)

    @property
    def gains(self) -> NDArray[np.float64]:
        """How long a kernel's features are at most, if no number of the basis is larger than 1.

        A product of gains bounds the norm of mixed products of two bases in the same way.
        """
        squares = (
            np.ones(len(self.weights)) if self.mix is None else np.square(self.mix).sum(axis=0)
        )
        width = 1 if self.mix is None else len(self.mix)
        found: NDArray[np.float64] = np.sqrt(width * (squares @ self.weights)) * (1 + 1e-12)
        return found


def stacked(maps: FeatureMaps) -> SharedFeatures:
    """Put the features of all kernels side by side; they have norm at most 1."""
    nothing = np.zeros((0, maps.raw_width))
    kernels = range(len(maps.spreads))
    return SharedFeatures(
        basis=_Projected(maps),
        mix=None,
        weights=_owners([maps.project(index, nothing).shape[1] for index in kernels]),
        spreads=maps.spreads,
        sizes=(1.0,) * len(maps.spreads),
        errors=tuple(
            amplification * (rounding + maps.raw_width * UNIT_ROUNDOFF)
            for amplification, rounding in zip(maps.amplifications, maps.roundings, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Projected:
    """The features of all kernels side by side; it travels to other processes."""

    maps: FeatureMaps

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        raw = enumerate(self.maps.raw(rows))
        return np.hstack([self.maps.project(index, each) for index, each in raw])


def tabulated(
    kernels: tuple[Kernel, ...], domain: Domain, *, max_rank: int
) -> SharedFeatures | None:
    """Tabulate the kernels' features of one column on a public lattice, in one short basis.

    Features are centred on the lattice: tests centre them anyway, and a constant needs no room.
    None where a table does not serve: several columns, no bounds, or too many categories.

    Notes
    -----
    **Sensitivity** Between two points of the lattice the basis is interpolated, so features lie
    in the convex hull of the table's rows, and no two are further apart than two rows of the
    table: ``spreads`` is the largest distance, by computing them all.
    """
    levels = domain.levels[0]
    if domain.dimension > 1 or not domain.bounded or levels > _MOST_LEVELS:
        return None
    points = np.arange(float(levels)) if levels else np.linspace(0, 1, _LATTICE)
    features = stacked(nystrom(kernels, domain.landmarks(), domain, max_rank=max_rank))
    every = features.basis(points[:, None])
    every -= every.mean(axis=0)
    parts = [_main_directions(part) for part in _split(every, features.weights)]
    left, strengths, right = np.linalg.svd(np.hstack(parts), full_matrices=False)
    kept = strengths >= _TABLE_CUT * strengths[0]
    table, mix = left[:, kept] * strengths[kept], right[kept]
    weights = _owners([part.shape[1] for part in parts])
    size = float(np.linalg.norm(table, axis=1).max())
    mixes = _split(mix, weights)
    sizes = tuple(size * float(np.linalg.norm(each)) * (1 + 1e-12) for each in mixes)
    roundoff = 4 * (len(mix) + 8) * UNIT_ROUNDOFF
    return SharedFeatures(
        basis=interpolation(table, numeric=levels == 0),
        mix=np.ascontiguousarray(mix),
        weights=weights,
        spreads=tuple(
            diameter(table @ each) + 2 * roundoff * bound
            for each, bound in zip(mixes, sizes, strict=True)
        ),
        sizes=sizes,
        errors=tuple(roundoff * bound for bound in sizes),
        reach=max(1.0, float(np.abs(table).max())),
    )


def _owners(widths: list[int]) -> NDArray[np.float64]:
    """Features × kernels: 1 where a feature belongs to a kernel."""
    return np.repeat(np.eye(len(widths)), widths, axis=0)


def _split(matrix: NDArray[np.float64], weights: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Take the columns of each kernel."""
    return [matrix[:, owned > 0] for owned in weights.T]


def _main_directions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotate features and leave out directions in which nearly nothing varies."""
    left, strengths, _ = np.linalg.svd(points, full_matrices=False)
    kept = strengths**2 >= _VARIANCE_CUT * strengths[0] ** 2
    main: NDArray[np.float64] = left[:, kept] * strengths[kept]
    return main


def interpolation(table: NDArray[np.float64], *, numeric: bool) -> Basis:
    """Return the function that looks rows up in the table: by their code, or between points."""
    return _Between(table, np.diff(table, axis=0)) if numeric else _AtCodes(table)


@dataclass(frozen=True, slots=True, eq=False)
class _AtCodes:
    """Rows of a table by the code of a category."""

    table: NDArray[np.float64]

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.table[rows[:, 0].astype(np.intp)]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Between:
    """Rows of a table of points of [0, 1], interpolated between neighbours."""

    table: NDArray[np.float64]
    steps: NDArray[np.float64]

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        position = rows[:, 0] * len(self.steps)
        index = np.minimum(position.astype(np.intp), len(self.steps) - 1)
        found: NDArray[np.float64] = self.steps[index]
        found *= (position - index)[:, None]
        found += self.table[index]
        return found


def diameter(points: NDArray[np.float64]) -> float:
    """Largest distance between two rows, rounded up."""
    squares = np.einsum("ij,ij->i", points, points)
    distances = squares[:, None] + squares - 2 * (points @ points.T)
    slack = 8 * (points.shape[1] + 8) * UNIT_ROUNDOFF * float(squares.max())
    widest = math.sqrt(max(float(distances.max()), 0.0) + slack) * (1 + 1e-14)
    return max(widest, _LEAST_SPREAD)
