"""Laws of counts: binomial and hypergeometric. Derivations: docs/proofs/rank-tests.md."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.laws.law import Law

__all__ = ["binomial_law", "binomial_masses", "hypergeometric_law", "sign_law"]

_REACH = 10.0  # standard deviations; what lies beyond has mass below 1e-20
_ROUNDING = 1e-11  # arithmetic moves a p-value by less than this for up to 10,000 counts,
_PER_COUNT = 1e-15  # and by less than this times their number: five roundings for each ratio

Floats = NDArray[np.float64]


@lru_cache(maxsize=64)
def binomial_law(n: int, probability: float) -> Law:
    """Return the binomial law.

    Examples
    --------
    The published p-value of the test of tests: 20 subsets of level 1/4, 7 reject, noise 0.3.

    >>> from privatest.laws.tulap import LatticeTulap
    >>> round(binomial_law(20, 0.25).pvalue(7.3, LatticeTulap(1, 1.0)), 9)
    0.162225406
    """
    counts, masses = binomial_masses(n, probability)
    return Law(counts, masses, max(_ROUNDING, _PER_COUNT * counts.size))


def binomial_masses(n: int, probability: float) -> tuple[Floats, Floats]:
    """Return the counts that have any mass to speak of, and their masses."""
    deviation = math.sqrt(n * probability * (1 - probability))
    counts = _window(n * probability, deviation, 0, n)
    odds = math.inf if probability == 1 else probability / (1 - probability)
    return counts, _from_ratios((n - counts[:-1]) / (counts[:-1] + 1) * odds)


@lru_cache(maxsize=64)
def sign_law(n: int) -> Law:
    """Return the law of 2S - n, S binomial(n, 1/2)."""
    counts = _window(n / 2, math.sqrt(n) / 2, 0, n)
    ratios = (n - counts[:-1]) / (counts[:-1] + 1)
    return Law(2 * counts - n, _from_ratios(ratios))


@lru_cache(maxsize=64)
def hypergeometric_law(n: int, m: int) -> Law:
    """Return the law of N S - n h, S the number of x among the h = N - floor(N/2) largest."""
    total = n + m
    top = total - total // 2
    deviation = math.sqrt(top * (total - top) / total * n / total * m / max(total - 1, 1))
    counts = _window(top * n / total, deviation, max(0, top - m), min(n, top))
    below = counts[:-1]
    ratios = (n - below) * (top - below) / ((below + 1) * (m - top + below + 1))
    return Law(total * counts - n * top, _from_ratios(ratios))


def _window(mean: float, deviation: float, low: int, high: int) -> Floats:
    """Return the counts that have any mass to speak of."""
    reach = _REACH * deviation + 10
    first, last = max(low, math.floor(mean - reach)), min(high, math.ceil(mean + reach))
    return np.arange(first, last + 1, dtype=np.float64)


def _from_ratios(ratios: Floats) -> Floats:
    """Return masses from the ratios of neighbours, outwards from the mode: no cancellation."""
    mode = int(np.count_nonzero(ratios >= 1))  # ratios fall
    below = np.cumprod(1 / ratios[:mode][::-1])[::-1]
    masses = np.concatenate([below, [1.0], np.cumprod(ratios[mode:])])
    result: Floats = masses / masses.sum()
    return result
