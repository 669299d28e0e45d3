"""Tests on noisy tables: the law under the null hypothesis has sampling error and the noise.

A synthetic row is no person, and tests that count rows as people reject true hypotheses. These
use the released counts and the known size of their noise instead. Post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.embedding.weights import to_simplex

__all__ = ["Counted", "coarsened", "common_groups", "independence_pvalue", "same_law_pvalue"]

_AGAIN = 0.03  # p-values below this are looked for with more draws
_BLOCK = 1 << 22  # counts that are drawn at once

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Noisy counts of ``n`` rows of which ``n/rows`` people have at most ``rows`` each.

    Rows of one person may be equal; then counts vary as those of n/rows people do, times rows.
    """

    counts: Floats
    sigma: float | Floats  # of every count, or one for each in a flat array
    n: int
    rows: int = 1

    def drawn(self, shares: Floats, draws: int, rng: np.random.Generator) -> Floats:
        """Draw counts with noise from given shares: draws × cells."""
        people = max(round(self.n / self.rows), 1)
        found = rng.multinomial(people, shares.ravel() / shares.sum(), size=draws)
        noise = rng.normal(scale=self.sigma, size=found.shape)
        drawn: Floats = found * (self.n / people) + noise
        return drawn

    @property
    def spread(self) -> float:
        """By how much more counts vary than those of n people, in units of their variance."""
        return float(self.rows)


def same_law_pvalue(
    first: Counted, second: Counted, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return a statistic of the difference of two tables, and its p-value.

    The statistic sums squared differences of shares over their variances, at pooled shares.
    """
    pair = first, second

    def statistic(*counts: Floats) -> Floats:
        pooled = _shares(counts[0] + counts[1])
        variance = sum(
            (each.spread * pooled / each.n + (each.sigma / each.n) ** 2 for each in pair),
            start=np.zeros_like(pooled),
        )
        away = counts[0] / first.n - counts[1] / second.n
        return np.asarray((away**2 / variance).sum(axis=1), dtype=np.float64)

    observed = first.counts.reshape(1, -1), second.counts.reshape(1, -1)
    pooled = _shares(observed[0] + observed[1])[0]
    return _pvalue(
        float(statistic(*observed)[0]),
        lambda size: statistic(*(each.drawn(pooled, size, rng) for each in pair)),
        draws,
        pooled.size,
    )


def independence_pvalue(
    table: Counted, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return a statistic of the dependence in a table of two columns, and its p-value."""
    shape = table.counts.shape

    def sides(counts: Floats) -> tuple[Floats, Floats]:
        cube = counts.reshape(-1, *shape)
        return _shares(cube.sum(axis=2)), _shares(cube.sum(axis=1))

    def statistic(counts: Floats) -> Floats:
        first, second = sides(counts)
        expected = (first[:, :, None] * second[:, None, :]).reshape(len(counts), -1)
        variance = table.spread * table.n * expected + table.sigma**2
        away = counts - table.n * expected
        return np.asarray((away**2 / variance).sum(axis=1), dtype=np.float64)

    observed = table.counts.reshape(1, -1)
    first, second = sides(observed)
    product = np.outer(first[0], second[0])
    return _pvalue(
        float(statistic(observed)[0]),
        lambda size: statistic(table.drawn(product, size, rng)),
        draws,
        product.size,
    )


def _pvalue(
    observed: float, null: Callable[[int], Floats], draws: int, cells: int
) -> tuple[float, float]:
    """Compare with draws of the null law: a few first, all of them if the p-value is small."""
    few = min(draws, 999)
    pvalue = _share_above(observed, null, few, cells)
    if pvalue < _AGAIN and draws > few:
        pvalue = _share_above(observed, null, draws, cells)
    return observed, pvalue


def _share_above(observed: float, null: Callable[[int], Floats], draws: int, cells: int) -> float:
    above, left = 0, draws
    while left:
        size = min(left, max(_BLOCK // cells, 1))
        above += int(np.count_nonzero(null(size) >= observed))
        left -= size
    return (1 + above) / (1 + draws)


def _shares(counts: Floats) -> Floats:
    """Return the nearest probabilities to each row of counts."""
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return to_simplex((counts / totals).T).T


def common_groups(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the finest groups of cells of which both groupings' groups are parts.

    Examples
    --------
    >>> common_groups(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])).tolist()
    [0, 0, 0, 1]
    """
    found = first.copy()
    while True:
        lowest = np.full(int(second.max()) + 1, found.size, dtype=np.intp)
        np.minimum.at(lowest, second, found)
        merged = lowest[second]
        back = np.full(int(first.max()) + 1, found.size, dtype=np.intp)
        np.minimum.at(back, first, merged)
        merged = back[first]
        if np.array_equal(merged, found):
            return np.unique(found, return_inverse=True)[1].astype(np.intp)
        found = merged


def coarsened(
    counts: Floats, groups: tuple[NDArray[np.intp], ...], wanted: tuple[NDArray[np.intp], ...]
) -> tuple[Floats, Floats]:
    """Sum a table's counts over coarser groups of cells.

    Returns
    -------
    counts, sizes : ndarray
        The sums, and how many counts are in each: the variances of their noise add up.
    """
    size = np.ones_like(counts)
    for axis, (own, coarse) in enumerate(zip(groups, wanted, strict=True)):
        of_group = np.zeros(int(own.max()) + 1, dtype=np.intp)
        of_group[own] = coarse
        counts, size = (_summed(each, of_group, axis) for each in (counts, size))
    return counts, size


def _summed(values: Floats, groups: NDArray[np.intp], axis: int) -> Floats:
    shape = list(values.shape)
    shape[axis] = int(groups.max()) + 1
    found = np.zeros((shape[axis], *(size for place, size in enumerate(shape) if place != axis)))
    np.add.at(found, groups, np.moveaxis(values, axis, 0))
    return np.moveaxis(found, 0, axis)


def share_pvalue(value: float, hypothesis: float, n: int, noise: float, unseen: float) -> float:
    """Return the p-value of a share: a binomial share, normal noise, and a bounded rest.

    Exact for every n: the law of Binomial(n, p)/n + N(0, noise²) is summed.
    """
    away = max(abs(value - hypothesis) - unseen, 0.0)
    width = 12 * math.sqrt(n * hypothesis * (1 - hypothesis)) + 30
    low, high = (
        max(0, math.floor(n * hypothesis - width)),
        min(n, math.ceil(n * hypothesis + width)),
    )
    successes = np.arange(low, high + 1)
    masses = _binomial(successes, n, hypothesis)
    at = successes / n - hypothesis
    if noise <= 0:
        return min(1.0, float(masses[np.abs(at) >= away - 1e-12].sum()))
    beyond = _tail((away - at) / noise) + _tail((away + at) / noise)
    return min(1.0, float(masses @ beyond) + 1e-12)


def normal_pvalue(value: float, hypothesis: float, deviation: float, unseen: float) -> float:
    """Return the p-value of a mean whose error is normal, but for a bounded rest."""
    away = max(abs(value - hypothesis) - unseen, 0.0)
    if deviation <= 0:
        return 1.0 if away == 0 else 0.0
    # a bias towards the side of the value is the worst
    far = max(abs(value - hypothesis) + unseen, away)
    return min(1.0, float(_tail(np.array([away / deviation, far / deviation])).sum()))


def _tail(z: Floats) -> Floats:
    from scipy.special import ndtr  # noqa: PLC0415

    return np.asarray(ndtr(-z), dtype=np.float64)


def _binomial(successes: NDArray[np.intp], n: int, share: float) -> Floats:
    from scipy.special import gammaln, xlogy  # noqa: PLC0415

    logs = gammaln(n + 1) - gammaln(successes + 1) - gammaln(n - successes + 1)
    logs = logs + xlogy(successes, share) + xlogy(n - successes, 1 - share)
    return np.asarray(np.exp(logs), dtype=np.float64)
