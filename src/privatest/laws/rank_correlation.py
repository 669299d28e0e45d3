"""Laws of Kendall's and Spearman's rank correlation under independence.

They depend on the number of rows alone. Kendall's is exact for every number; Spearman's up to 12
rows, from there on it is an Edgeworth series, and what that may miss is added to the p-value.
Derivations and errors: docs/proofs/correlation.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.laws.law import ROUNDING, Law
from privatest.laws.ranks import by_fourier

__all__ = ["kendall_law", "spearman_law"]

Array = NDArray[np.float64]

_EXACT_KENDALL = 200
_EXACT_SPEARMAN = 12
_SERIES_MISSES = 0.4  # times n^-2: twice the largest error of a tail, at 13 and 14 rows
_DIRECT = 10_000  # factors of a characteristic function; for more its logarithm is a series
_REACH, _CELLS = 12.0, 1 << 13


@lru_cache(maxsize=32)
def kendall_law(n: int) -> Law:
    """Return the law of concordant minus discordant pairs of n rows."""
    pairs = n * (n - 1) // 2
    if n <= _EXACT_KENDALL:
        return Law(2 * np.arange(pairs + 1.0) - pairs, _mahonian_masses(n))
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 72)
    return by_fourier(lambda t: _log_mahonian(n, t), deviation, half_range=pairs / 2).scaled(2)


def _mahonian_masses(n: int) -> Array:
    """Return the law of the number of inversions: a sum of uniforms on 0 ... j - 1, j <= n."""
    masses = np.ones(1)
    for j in range(2, n + 1):
        sums = np.cumsum(np.concatenate([masses, np.zeros(j - 1)]))
        sums[j:] -= sums[:-j].copy()
        masses = sums / j
    return np.clip(masses, 0.0, None)


def _log_mahonian(n: int, t: Array) -> tuple[Array, Array]:
    """Return logarithm and sign of prod_j sin(jt/2) / (j sin(t/2))."""
    half = t / 2
    if n > _DIRECT:  # log(sin x / x), and all angles are small
        series = (1 / 6, 1 / 180, 1 / 2835, 1 / 37800, 1 / 467775, 691 / 3831077250)
        share, scaled = np.arange(1.0, n + 1) / n, (half * n) ** 2
        total = sum(
            -a * scaled**r * float(np.sum(share ** (2 * r)) - n ** (1.0 - 2 * r))
            for r, a in enumerate(series, start=1)
        )
        return np.asarray(total), np.ones(len(t))
    logs, signs = np.zeros(len(t)), np.ones(len(t))
    for j in range(2, n + 1):
        ratio = np.sin(j * half) / (j * np.sin(half))
        logs += np.log(np.abs(ratio))
        signs *= np.sign(ratio)
    return logs, signs


@lru_cache(maxsize=32)
def spearman_law(n: int) -> Law:
    """Return the law of 2 ΣRQ - n (n + 1)²/2 for n rows."""
    centre = n * (n + 1) ** 2 // 2
    if n <= _EXACT_SPEARMAN:
        products, masses = _products_of_ranks(n)
        return Law(np.asarray(2.0 * products - centre, dtype=np.float64), masses)
    return _by_series(n)


def _products_of_ranks(n: int) -> tuple[NDArray[np.int64], Array]:
    """Return the values of Σ i p(i) and their masses: one rank after the other gets a place.

    The ranks that are used up are a set; the sets of one size are all that has to be kept.
    """
    largest = n * (n + 1) * (2 * n + 1) // 6
    sets = {0: np.eye(1, largest + 1)[0]}
    for place in range(1, n + 1):
        grown: dict[int, Array] = {}
        for used, masses in sets.items():
            for rank in range(1, n + 1):
                if not used & (1 << rank):
                    moved = grown.setdefault(used | 1 << rank, np.zeros(largest + 1))
                    moved[place * rank :] += masses[: largest + 1 - place * rank]
        sets = grown
    (counts,) = sets.values()
    values = np.flatnonzero(counts)
    return values, counts[values] / math.factorial(n)


def _by_series(n: int) -> Law:
    """Return the law in cells of equal width, from an Edgeworth series with the exact kurtosis."""
    from scipy.special import ndtr  # noqa: PLC0415

    top = n * (n * n - 1) // 6  # at correlation 1
    deviation = top / math.sqrt(n - 1)
    kurtosis = 3 * (-38 * n * n - 10 * n + 72) / (25 * n * (n * n - 1))
    reach = min(float(top), _REACH * deviation)
    step = 2 * max(1, math.ceil(2 * reach / (2 * _CELLS)))  # values are 2 apart
    cells = math.ceil((reach + 1) / step)
    low = -top % 2 + step * np.arange(-cells, cells + 1.0)
    z = (np.append(low, low[-1] + step) - 1) / deviation  # half-way between two values
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    below = ndtr(z) - density * kurtosis / 24 * (z**3 - 3 * z)
    below = np.maximum.accumulate(np.clip(below, 0.0, 1.0))
    below[0], below[-1] = 0.0, 1.0
    return Law(
        low + (step - 2), np.diff(below), _SERIES_MISSES / n**2 + ROUNDING, low, proved=False
    )
