"""Laws of rank statistics under the null hypothesis.

They depend on sizes alone: not on data, not on epsilon. Exact for every size, except that wide
laws are put into 16,384 cells, each counted at the end that makes the p-value larger.
Derivations and errors: docs/proofs/rank-tests.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.laws.law import Law
from privatest.statistics.ranks import Symmetry

__all__ = ["by_fourier", "mann_whitney_law", "symmetry_law", "wilcoxon_law"]

Array = NDArray[np.float64]

_CELLS = 1 << 14
_REACH = 10.0  # standard deviations; what lies beyond has mass below 1e-20
_FOURIER_ERROR = 1e-9  # added to p-values: they are never too small
_EXACT_WORK = 1_000_000  # table look-ups for an exact Mann–Whitney law
_FEW = 20  # so small a sample is far from normal: always exact
_EXACT_PAIRS = 300
_DIRECT = 10_000  # factors of a characteristic function; for more its logarithm is a series


# --- symmetry --------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def symmetry_law(n: int, statistic: Symmetry) -> Law:
    """Return the law of max |S| ("ks") or of the range of S, 0 and n fair steps."""
    last = min(n, math.ceil(_REACH * math.sqrt(n)) + 10)
    if statistic == "ks":
        below = [_stays_within(n, a) for a in range(1, last + 1)]
        survival = 1 - np.array(below)
    else:
        # P(range <= r) = B(r + 1) - B(r)
        walks = [_reflected(n, barrier) for barrier in range(1, last + 1)]
        survival = 1 - np.concatenate([[0.0], np.diff(walks)])
    survival = np.minimum.accumulate(np.clip(survival, 0.0, 1.0))
    masses = survival - np.append(survival[1:], 0.0)
    return Law(np.arange(1.0, last + 1), masses)


def _angles(n: int, share: float) -> int:
    """Return up to which j the power cos(j share)^n <= exp(-n (j share)²/2) is not nothing."""
    return math.ceil(math.sqrt(90 / n) / share)


def _stays_within(n: int, a: int) -> float:
    """Return P(max |S| < a): (1/a) sum of sin(j pi/2) cot(j pi/4a) cos^n(j pi/2a), j odd < 2a."""
    if a == 1:
        return 0.0
    # j and 2a - j together; at j = a the cosine is 0
    last = min(a - 1, _angles(n, math.pi / (2 * a)))
    j = np.arange(1, last + 1, 2, dtype=np.float64)
    quarter = np.tan(j * math.pi / (4 * a))
    pairs = 1 / quarter - (-1) ** (a + n) * quarter
    signs = 1 - 2 * ((j // 2) % 2)
    return float(np.sum(signs * pairs * np.cos(j * math.pi / (2 * a)) ** n) / a)


def _reflected(n: int, barrier: int) -> float:
    """Return B(L) = 2/(L+1) sum of cot²(j pi/(2L+2)) cos^n(j pi/(L+1)) over odd j <= L."""
    side = barrier + 1
    last = _angles(n, math.pi / side)
    j = np.arange(1, side, 2, dtype=np.float64)
    if 2 * last < side:  # the cosines in between are too small to count
        j = j[(j <= last) | (j >= side - last)]
    terms = np.tan(j * math.pi / (2 * side)) ** -2 * np.cos(j * math.pi / side) ** n
    return float(2 / side * np.sum(terms))


# --- sums of ranks ---------------------------------------------------------------------------


@lru_cache(maxsize=32)
def mann_whitney_law(n: int, m: int) -> Law:
    """Return the law of 2U - nm."""
    few, many = min(n, m), max(n, m)
    if few < _FEW or few * few * many <= _EXACT_WORK:
        return Law(2 * np.arange(n * m + 1.0) - n * m, _mann_whitney_masses(few, many))
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    return by_fourier(
        lambda t: _log_mann_whitney(few, many, t), deviation, half_range=n * m / 2
    ).scaled(2)


def _mann_whitney_masses(n: int, m: int) -> Array:
    """Invert the characteristic function prod_i i sin((m+i)t/2) / ((m+i) sin(it/2)).

    At t = 2 pi k/L with L prime no sine is 0, and angles are reduced as integers, so that each
    factor has full accuracy.
    """
    period = _prime_above(n * m + n + m)
    table = np.log(np.sin(np.pi * np.arange(1, period) / period), dtype=np.float64)
    k = np.arange(1, (period + 1) // 2, dtype=np.int64)
    logs, turns = np.zeros(len(k)), np.zeros(len(k), dtype=np.int64)
    for i in range(1, n + 1):
        for factor, sign in ((m + i, 1), (i, -1)):
            half_turns, rest = np.divmod(factor * k, period)
            logs += sign * (table[rest - 1] - math.log(factor))
            turns += half_turns
    phase = np.pi * ((k * (n * m)) % (2 * period)) / period
    transform = np.exp(logs + np.pi * 1j * (turns % 2) - 1j * phase)
    masses = np.fft.irfft(np.concatenate([[1.0], transform]), n=period)[: n * m + 1]
    return np.clip(masses, 0.0, None)


def _prime_above(number: int) -> int:
    candidate = number + 1 + number % 2
    while any(candidate % d == 0 for d in range(3, math.isqrt(candidate) + 1, 2)):
        candidate += 2
    return candidate


def _log_mann_whitney(n: int, m: int, t: Array) -> tuple[Array, Array]:
    """Return logarithm and sign of the characteristic function of U - nm/2."""
    half = t / 2
    if n > _DIRECT:  # log(sin x / x), and all angles are small
        series = (1 / 6, 1 / 180, 1 / 2835, 1 / 37800, 1 / 467775, 691 / 3831077250)
        sums = (_power_sums(size, 2 * len(series)) for size in (n + m, m, n))
        powers = [whole - high - low for whole, high, low in zip(*sums, strict=True)]
        scaled = (half * (n + m)) ** 2
        total = sum(
            -a * scaled**r * (powers[2 * r] / (n + m) ** (2 * r))
            for r, a in enumerate(series, start=1)
        )
        return np.asarray(total), np.ones(len(t))
    logs, signs = np.zeros(len(t)), np.ones(len(t))
    for i in range(1, n + 1):
        ratio = np.sin((m + i) * half) / np.sin(i * half) * (i / (m + i))
        logs += np.log(np.abs(ratio))
        signs *= np.sign(ratio)
    return logs, signs


def _power_sums(n: int, highest: int) -> list[int]:
    """Return 1^p + ... + n^p for p = 0, 1, ..., exactly, without going through the terms.

    (n + 1)^(p + 1) - 1 is the sum over k <= p of binomial(p + 1, k) times the sum of k-th powers.
    """
    sums: list[int] = []
    for power in range(highest + 1):
        rest = sum(math.comb(power + 1, k) * found for k, found in enumerate(sums))
        sums.append(((n + 1) ** (power + 1) - 1 - rest) // (power + 1))
    return sums


@lru_cache(maxsize=32)
def wilcoxon_law(n: int) -> Law:
    """Return the law of 2W, W the sum of the ranks 1 ... n with fair signs."""
    if n > _EXACT_PAIRS:
        deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 6) / 2
        return by_fourier(
            lambda t: _log_wilcoxon(n, t), deviation, half_range=n * (n + 1) / 4
        ).scaled(4)
    masses = np.zeros(n * (n + 1) // 2 + 1)
    masses[0] = 1.0
    for rank in range(1, n + 1):  # rank is in or out, each with probability 1/2
        masses[rank:] = (masses[rank:] + masses[:-rank]) / 2
        masses[:rank] /= 2
    return Law(4 * np.arange(float(len(masses))) - n * (n + 1), masses)


def _log_wilcoxon(n: int, t: Array) -> tuple[Array, Array]:
    """Return logarithm and sign of prod_i cos(i t/2), the characteristic function of W/2."""
    half = t / 2
    if n > _DIRECT:  # log cos x, and all angles are small
        series = (1 / 2, 1 / 12, 1 / 45, 17 / 2520, 31 / 14175)
        powers = _power_sums(n, 2 * len(series))
        total = sum(
            -a * (half * n) ** (2 * r) * (powers[2 * r] / n ** (2 * r))
            for r, a in enumerate(series, start=1)
        )
        return np.asarray(total), np.ones(len(t))
    logs, signs = np.zeros(len(t)), np.ones(len(t))
    for i in range(1, n + 1):
        cosine = np.cos(i * half)
        logs += np.log(np.abs(cosine))
        signs *= np.sign(cosine)
    return logs, signs


def by_fourier(
    log_transform: Callable[[Array], tuple[Array, Array]], deviation: float, half_range: float
) -> Law:
    """Return the symmetric law on -half_range, -half_range + 1, ... from its transform.

    P(T < x) = 1/2 + (x + sum_k f(2 pi k/L) sin(2 pi k x/L) / sin(pi k/L)) / L for x between two
    lattice points, up to the mass more than L - |x| away from 0.
    """
    period = math.ceil(2 * _REACH * deviation)
    k = np.arange(1.0, 33.0)  # to ten inverse standard deviations
    logs, signs = log_transform(2 * np.pi * k / period)
    small = np.flatnonzero(logs < -42)  # below 1e-18, and so is all that follows
    kept = slice(0, int(small[0]) if len(small) else len(k))
    weights = (signs * np.exp(logs) / np.sin(np.pi * k / period))[kept]
    first = max(0, math.ceil(half_range - _REACH * deviation)) - half_range
    points = round(-2 * first) + 1
    step = -(-points // _CELLS)
    low: Array = first + step * np.arange(-(-points // step), dtype=np.float64)
    edges = np.append(low, low[-1] + step) - 0.5
    waves = np.sin(np.outer(edges, 2 * np.pi * k[kept] / period)) @ weights
    below = np.clip(0.5 + (edges + waves) / period, 0.0, 1.0)
    below[0], below[-1] = 0.0, 1.0
    masses = np.clip(np.diff(below), 0.0, None)
    return Law(low + (step - 1), masses, _FOURIER_ERROR, low)
