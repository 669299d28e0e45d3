"""Laws of n · T for one sample from a known continuous law: KS, Kuiper, CvM, Wasserstein.

Values are in units of the sensitivity 1/n. Where a law is not exact, a bound on its error is
added to the p-value. Proofs and measured errors: docs/proofs/ks-type.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privatest.laws.ks_two_sample import kuiper_limit
from privatest.laws.law import Law, continuous_law
from privatest.statistics.ecdf import OneSampleStatistic

__all__ = ["kuiper_cdf", "one_sample_law"]

_EXACT_KS = 1000  # up to this n: beyond, scipy's kstwo takes seconds
_EXACT_KUIPER = 400
_REACH = 3.7  # of sqrt(n) T, beyond which all probabilities are below 1e-9
_CELLS = 4000
_INTERPOLATION_ERROR = 1e-7
_TERMS = 24  # of the series of Cramér-von Mises; below 1e-15 for all arguments up to 4
_WASSERSTEIN_TABLE = Path(__file__).parent / "wasserstein.npz"

Floats = NDArray[np.float64]


@lru_cache(maxsize=64)
def one_sample_law(statistic: OneSampleStatistic, n: int, *, one_sided: bool = False) -> Law:
    """Return the law of n · T, ``ecdf.one_sample`` of n independent uniform values.

    ``one_sided`` is for "ks": the law of sup (F_n - F), which is also that of sup (F - F_n).
    """
    points = np.linspace(0.0, min(_REACH, math.sqrt(n)), _CELLS + 1)  # of sqrt(n) T
    laws = {"ks": _ks, "kuiper": _kuiper, "cvm": _cvm, "wasserstein": _wasserstein}
    survival, error = (_ks_one_sided if one_sided else laws[statistic])(points, n)
    proved = statistic == "ks" or (statistic == "kuiper" and n <= _EXACT_KUIPER)
    return continuous_law(points * math.sqrt(n), survival, error, proved=proved)


def _ks(x: Floats, n: int) -> tuple[Floats, float]:
    from scipy.special import kolmogorov  # noqa: PLC0415

    root = math.sqrt(n)

    # Vrbik's correction of the limit law: what is left to interpolate is small
    def corrected_at(x: Floats) -> Floats:
        shifted = x + 1 / (6 * root) + (x - 1) / (4 * n)
        return np.asarray(kolmogorov(np.maximum(shifted, 0.0)), dtype=np.float64)

    if n > _EXACT_KS:
        bound = np.minimum(2 * _massart(x), 1.0)
        return bound, float(bound[-1])  # what is beyond the last point
    from scipy.stats import kstwo  # noqa: PLC0415 -- slow to import

    nodes = _nodes(x, n)
    left = kstwo.sf(nodes / root, n) - corrected_at(nodes)
    return corrected_at(x) + _interpolate(nodes, left, x), max(1e-5 / n, _INTERPOLATION_ERROR)


def _ks_one_sided(x: Floats, n: int) -> tuple[Floats, float]:
    """Birnbaum and Tingey's finite sum; beyond n = 1000 Massart's bound."""
    from scipy.special import smirnov  # noqa: PLC0415

    root = math.sqrt(n)
    if n > _EXACT_KS:
        bound = _massart(x)
        return np.where(bound <= 0.5, bound, 1.0), float(bound[-1])
    limit = np.exp(-2 * np.square(x + 1 / (6 * root)))
    if n <= 64:  # a kink at n T = 1 is too sharp to interpolate
        return np.asarray(smirnov(n, np.minimum(x / root, 1.0))), _INTERPOLATION_ERROR
    # a polynomial between integers n T, least smooth near 0; nodes must not be nearly equal
    close = np.concatenate([np.arange(0, 3, 1 / 128), np.arange(3, 16, 1 / 16)])
    scaled = np.unique(np.round(np.append(_nodes(x, n) * root, close) * 128) / 128)
    last = x[-1] * root
    scaled = np.append(scaled[scaled < last - 1 / 256], last)
    nodes = scaled / root
    left = smirnov(n, np.minimum(scaled / n, 1.0)) - np.exp(-2 * np.square(nodes + 1 / (6 * root)))
    return limit + _interpolate(nodes, left, x), 1e-5


def _massart(x: Floats) -> Floats:
    """Return exp(-2 y²) for y a cell below x: half a cell's mass may be counted a cell too low.

    Massart (1990): P(√n D⁺ > y) is at most this where it is at most 1/2, and P(√n D > y) at most
    twice this for all y.
    """
    before = np.concatenate([x[:1], x[:-1]])
    bound: Floats = np.exp(-2 * np.square(before))
    return bound


def _nodes(x: Floats, n: int) -> Floats:
    """Points at which the exact law is computed: for small n it has kinks, at steps of 1/(2n).

    What is left to interpolate between them is small.
    """
    if n > 100:
        return x[:: _CELLS // 200]
    spacing, root = 0.5 / max(8, 512 // n), math.sqrt(n)  # the spacing is that of n T
    return np.append(np.arange(0, x[-1] * root - 1e-9, spacing) / root, x[-1])


def _interpolate(nodes: Floats, values: Floats, x: Floats) -> Floats:
    from scipy.interpolate import PchipInterpolator  # noqa: PLC0415

    return np.asarray(PchipInterpolator(nodes, values)(x), dtype=np.float64)


def _kuiper(x: Floats, n: int) -> tuple[Floats, float]:
    if n > _EXACT_KUIPER:  # 6.5e-4 at n = 400
        return kuiper_limit(x, n), 0.3 / n
    parts = 16 if n <= 100 else 8  # thresholds in each 1/n
    most = min(n, math.ceil(_REACH * math.sqrt(n)))
    below = np.array([kuiper_cdf(n, part / parts, most) for part in range(parts)])
    scaled = np.append(np.arange(most * parts) / parts, most)  # of n V
    survival = 1 - np.append(below.T.ravel(), 1.0)
    return _interpolate(scaled, survival, np.minimum(x * math.sqrt(n), most)), _INTERPOLATION_ERROR


def kuiper_cdf(n: int, fraction: float, count: int) -> Floats:
    """Return P(n V <= k + fraction) for k = 0, ..., count - 1, exactly.

    P = n P((i+1)/n - v <= U_(i) <= i/n for all i < n), U of n - 1 uniforms: a Poisson process
    of rate n that counts n - 1 at its end, kept between floor(n t) and n (t + v) - 1. The bounds
    change only at i/n and at (i - fraction)/n, so that one pass serves all k.

    Examples
    --------
    >>> float(kuiper_cdf(3, 0.8, 2)[1].round(8)), float(kuiper_cdf(10, 0.0, 5)[4].round(7))
    (0.42666667, 0.6872208)
    """
    from scipy.stats import poisson  # noqa: PLC0415 -- slow to import

    # state: the count above floor(n t), one row of states for each k
    states, k = np.arange(count + 1), np.arange(count)[:, None]
    rises = states[None, :] - states[:, None]
    before, after = (poisson.pmf(rises, size) for size in (1 - fraction, fraction))
    alive = np.zeros((count, count + 1))
    alive[:, 0] = 1.0
    for _ in range(1, n):
        alive = (alive @ before) * (states < k)  # just before (i - fraction)/n: at most i + k - 2
        alive = alive @ after
        # at i/n at least i: state 0 is dead, and the others are now one less above the floor
        alive = np.append(alive[:, 1:], np.zeros((count, 1)), axis=1)
    # nothing happens in the last 1/n, and the whole count was n - 1
    ends = n * math.exp(-1) * alive[:, 0] / poisson.pmf(n - 1, n)
    return np.asarray(np.clip(ends, 0.0, 1.0), dtype=np.float64)


def _cvm(x: Floats, n: int) -> tuple[Floats, float]:
    """Csörgő and Faraway (1996), equation 1.8: an error of .0023 at n = 5, and of order 1/n²."""
    nodes = np.square(np.linspace(0.03, 2.0, 800))  # of n times the integral of (F_n - F)²
    below = (1 + 1 / (12 * n)) * _cvm_limit(nodes) + _cvm_correction(nodes) / n
    squares = np.square(x)
    survival = 1 - _interpolate(nodes, below, np.clip(squares, nodes[0], nodes[-1]))
    survival[squares >= min(4.0, n / 3)] = 0.0
    survival[squares <= max(1e-3, 1 / (12 * n))] = 1.0
    return survival, 0.12 / n**2 + _INTERPOLATION_ERROR


def _cvm_limit(x: Floats) -> Floats:
    from scipy.special import gamma, kv  # noqa: PLC0415

    total = np.zeros_like(x)
    for k in range(_TERMS):
        y = 4 * k + 1
        q = y**2 / (16 * x)
        weight = gamma(k + 0.5) / gamma(k + 1) * math.sqrt(y) / math.pi**1.5
        total += weight / np.sqrt(x) * np.exp(-q) * kv(0.25, q)
    return total


def _cvm_correction(x: Floats) -> Floats:
    """Return the term psi_1 of order 1/n, without the part that is in the limit law."""
    from scipy.special import gamma, kv  # noqa: PLC0415

    def second(y: Floats) -> Floats:
        z = np.square(y) / 4
        return np.asarray(np.exp(-z) * (y / 2) ** 1.5 * (kv(0.25, z) + kv(0.75, z)))

    def third(y: Floats) -> Floats:
        z = np.square(y) / 4
        terms = 2 * kv(0.25, z) + 3 * kv(0.75, z) - kv(1.25, z)
        return np.asarray(np.exp(-z) * (y / 2) ** 2.5 * terms)

    total, root = np.zeros_like(x), 2 * np.sqrt(x)
    for k in range(_TERMS):
        first, middle, last = ((4 * k + shift) / root for shift in (1, 3, 5))
        odd = 2 * k + 1
        low = odd * (second(middle) / 9 + 7 * (second(first) + second(last)) / 144)
        high = third(first) / 72 + (odd + 2) * (k + 0.5) * third(last) / 6
        scale = gamma(k + 0.5) / gamma(k + 1) / math.pi**1.5
        total -= scale * (low / x**0.75 + high / x**1.25)
    return total


def _wasserstein(x: Floats, n: int) -> tuple[Floats, float]:
    """Upper limits of a simulation; between the sizes in the table the larger neighbour."""
    sizes, points, survival = _wasserstein_table()
    above = min(int(np.searchsorted(sizes, n)), len(sizes) - 1)
    below = above if sizes[above] <= n else above - 1
    larger = np.maximum(survival[above], survival[below])
    # never 0: beyond the last point the value there is still a bound
    return np.interp(x, points, larger), float(larger[-1]) + _INTERPOLATION_ERROR


@lru_cache(maxsize=1)
def _wasserstein_table() -> tuple[NDArray[np.int64], Floats, Floats]:
    with np.load(_WASSERSTEIN_TABLE) as table:
        return table["sizes"], table["points"], table["survival"].astype(np.float64)
