"""Exact laws of what a permutation test releases, for given statistics: no sampling.

Statistics come as distinct values with counts; the first is the observed one (count 1), so
that a test with very many permutations costs no more than a small one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "Statistics",
    "decision_loss",
    "log_cells",
    "log_mass",
    "pvalue_loss",
    "rejection",
    "survival",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The observed statistic, and permuted ones with how often each occurs."""

    observed: float
    values: Array
    counts: Array

    @classmethod
    def from_list(cls, statistics: Array) -> Statistics:
        """Return them from a list whose first entry is the observed one."""
        values, counts = np.unique(statistics[1:], return_counts=True)
        return cls(float(statistics[0]), values, counts.astype(float))

    def moved(self, observed: float, permuted: Array) -> Statistics:
        """Return those of a neighbour."""
        return Statistics(self.observed + observed, self.values + permuted, self.counts)

    def survival_mean(self, at: Array, scale: float) -> Array:
        """G: how likely noise lifts a statistic, taken at random, above each point."""
        values = np.append(self.values, self.observed)
        weights = np.append(self.counts, 1.0)
        tails: Array = (
            survival((np.asarray(at)[:, None] - values) / scale) @ weights / weights.sum()
        )
        return tails

    def quantiles(self, levels: Array, scale: float) -> Array:
        """Solve G(x) = level; infinite at levels 0 and 1.

        Between two neighbouring statistics the total of G is above - rising e^x/2 +
        falling e^-x/2, with a statistic as origin, so that e^x solves a quadratic equation.
        """
        values = np.append(self.values, self.observed)
        order = np.argsort(values)
        values, weights = values[order] / scale, np.append(self.counts, 1.0)[order]
        at_values = self.survival_mean(values * scale, scale)
        segment = np.searchsorted(-at_values, -levels, side="right")  # G is decreasing
        origins = values[np.maximum(segment - 1, 0)]
        below = np.arange(len(values)) < segment[:, None]
        decay = weights * np.exp(-np.abs(values - origins[:, None]))
        falling, rising = (decay * below).sum(axis=1), (decay * ~below).sum(axis=1)
        half = weights.sum() * levels - (weights * ~below).sum(axis=1)
        root = np.hypot(half, np.sqrt(falling * rising))
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = np.where(half > 0, falling / (half + root), (root - half) / rising)
            found = scale * (origins + np.log(growth))
        result: Array = np.where(levels <= 0, np.inf, np.where(levels >= 1, -np.inf, found))
        return result

    def chances_below(self, levels: Array, scale: float) -> Array:
        """P(p-value <= level) for each level."""
        return survival((self.quantiles(levels, scale) - self.observed) / scale)


def survival(y: Array) -> Array:
    """P(Laplace(0, 1) > y)."""
    tail = 0.5 * np.exp(-np.abs(y))
    result: Array = np.where(y > 0, tail, 1 - tail)
    return result


def log_mass(low: Array, high: Array) -> Array:
    """Log P(low < Laplace(0, 1) < high), accurate in both tails."""
    # mirror intervals below 0, so that only those above 0 and those across it are left
    mirrored = high <= 0
    low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        beyond = -low + np.log(-0.5 * np.expm1(low - high))
        across = np.log(-0.5 * np.expm1(low) - 0.5 * np.expm1(-high))
    result: Array = np.where(low >= 0, beyond, across)
    return result


def log_cells(statistics: Statistics, scale: float, grid: int, cells: Array) -> Array:
    """Log P(p-value = k/grid) for each k of ``cells``, the p-value being rounded up."""
    edges, places = np.unique(np.concatenate([cells, cells - 1]), return_inverse=True)
    at = statistics.quantiles(edges / grid, scale)[places]  # most edges are those of two cells
    lower, upper = np.split(at, 2)
    return log_mass((lower - statistics.observed) / scale, (upper - statistics.observed) / scale)


def pvalue_loss(
    first: Statistics, second: Statistics, scale: float, grid: int, cells: Array
) -> float:
    """Largest log-ratio of the probabilities of a p-value under the two."""
    difference = log_cells(first, scale, grid, cells) - log_cells(second, scale, grid, cells)
    return float(np.abs(difference).max())


def rejection(statistics: Statistics, scale: float, alpha: float) -> tuple[float, float]:
    """Log P(reject) and log P(do not reject)."""
    edge = (statistics.quantiles(np.array([alpha]), scale) - statistics.observed) / scale
    infinite = np.array([np.inf])
    return float(log_mass(edge, infinite)[0]), float(log_mass(-infinite, edge)[0])


def decision_loss(first: Statistics, second: Statistics, scale: float, alpha: float) -> float:
    """Largest log-ratio of the probabilities of a decision under the two."""
    pairs = zip(rejection(first, scale, alpha), rejection(second, scale, alpha), strict=True)
    return max(abs(one - other) for one, other in pairs)
