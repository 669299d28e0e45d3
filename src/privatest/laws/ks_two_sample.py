"""Laws of KS and Kuiper statistics of two samples from one continuous law.

They do not depend on that law, so they are public and can be cached. Ties that are broken by
secret labels leave them as they are. Proofs: docs/proofs/ks-type.md.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privatest.laws.law import Law, continuous_law
from privatest.statistics.ecdf import TwoSampleStatistic

__all__ = ["kuiper_limit", "two_sample_law"]


_MOST_PATHS = 4_000_000  # n · m up to which n != m is counted exactly: about a second
_MOST_THRESHOLDS = 250
# Above these lambda = sqrt(nm/(n+m)) T thresholds are this far apart. With upper end points a
# p-value near .05 is too large by about 3% of itself.
_ZONES = ((0.3, 0.05), (0.8, 0.01), (2.6, 0.1), (4.6, math.inf))
_MOST_WORK = 1e8  # cells of walks; beyond, thresholds are further apart
_CHUNK = 24  # thresholds that walk together, so that narrow bands are not padded to wide ones
_LIMIT_ERROR = 0.3  # over max(n, m): of KS with n = m; otherwise the limit law is above the exact

Floats = NDArray[np.float64]


@lru_cache(maxsize=256)
def two_sample_law(
    statistic: TwoSampleStatistic, n: int, m: int, *, one_sided: bool = False
) -> Law:
    """Return the law of J = n m T; the integer that ``ecdf.two_sample`` computes.

    ``one_sided`` is for "ks": the law of the largest i m - j n, which is also that of the largest
    j n - i m, for a path that is turned around is as likely.

    Exact for n = m. Otherwise exact at thresholds (all of them, or close ones), upper end points
    in between; for more than 4,000,000 = n · m the limit law with a bound on its error.

    Examples
    --------
    >>> law = two_sample_law("ks", 5, 5)
    >>> law.masses[::-1].cumsum()[::-1].round(8).tolist()
    [1.0, 1.0, 0.87301587, 0.35714286, 0.07936508, 0.00793651]
    """
    n, m = min(n, m), max(n, m)
    if n == m:
        return _equal_one_sided(n) if one_sided else _equal_sizes(statistic, n)
    if n * m > _MOST_PATHS:
        return _large_sizes("one-sided" if one_sided else statistic, n, m)
    step = math.gcd(n, m)
    thresholds = _thresholds(n, m, step)
    walk = _ks_walk if statistic == "ks" else _kuiper_walk
    if one_sided:
        walk = partial(_ks_walk, least=_ceil_to(step, _ZONES[-1][0] * math.sqrt(n * m * (n + m))))
    chunks = np.split(thresholds, range(_CHUNK, len(thresholds), _CHUNK))
    below = np.concatenate([walk(n, m, chunk, step) for chunk in chunks])
    survival = np.concatenate([[1.0], np.minimum.accumulate(np.clip(1 - below, 0, 1)), [0.0]])
    values = np.concatenate([thresholds - step, [n * m]]).astype(np.float64)
    return Law(values, -np.diff(survival))


def _ceil_to(step: int, value: float) -> int:
    return math.ceil(value / step) * step


def _equal_one_sided(n: int) -> Law:
    """Reflection at one barrier: P(max(i - j) >= k) = C(2n, n+k)/C(2n, n)."""
    survival = np.append(_ratios(n, min(n, math.ceil(10 * math.sqrt(n)))), 0.0)
    return Law(n * np.arange(len(survival) - 1.0), -np.diff(survival))


def _ratios(n: int, top: int) -> Floats:
    """Return C(2n, n+k)/C(2n, n) for k = 0, ..., top; beyond 10 sqrt(n) it is below 1e-43."""
    i = np.arange(1.0, top + 1)
    ratios: Floats = np.exp(np.concatenate([[0.0], np.cumsum(np.log((n - i + 1) / (n + i)))]))
    return ratios


def _equal_sizes(statistic: TwoSampleStatistic, n: int) -> Law:
    """Reflection: KS 2 sum (-1)^(j+1) c(jk); Kuiper 2 [k S(k) - (k+1) S(k+1)], S(w) = sum c(jw).

    c(k) is that of :func:`_ratios`. Below sqrt(n)/4 the survival function is 1 up to 1e-15.
    """
    top = min(n, math.ceil(10 * math.sqrt(n)))
    ratios = _ratios(n, top)
    first = max(1, int(math.sqrt(n) / 4))
    sums = np.zeros(top + 2 - first)  # for k = first, ..., top + 1
    for j in range(1, top // first + 1):
        terms = ratios[j * first :: j]
        sign = -1 if statistic == "ks" and j % 2 == 0 else 1
        sums[: len(terms)] += sign * terms
    if statistic == "ks":
        upper = 2 * sums
    else:
        weighted = np.arange(first, top + 2) * sums
        upper = 2 * (weighted - np.append(weighted[1:], 0.0))
    survival = np.concatenate([np.ones(first), upper])
    survival = np.minimum.accumulate(np.clip(survival, 0.0, 1.0))
    survival[-1] = 0.0
    return Law(n * np.arange(top + 1.0), -np.diff(survival))


def _thresholds(n: int, m: int, step: int) -> NDArray[np.int64]:
    """Choose multiples of ``step`` at which the law is computed, in increasing order.

    All of them; or, if these are too many, a sixteenth of the sensitivity apart or as the
    zones say.
    """
    unit = math.sqrt(n * m * (n + m))  # lambda = J / unit
    least = max(step, m / 16)
    last = min(n * m, _ZONES[-1][0] * unit)
    points: list[float] = []
    if last / least <= _MOST_THRESHOLDS:
        points.extend(np.arange(1, math.floor(last / least) + 1) * least)
    else:
        # about 200 thresholds, and bands of 1.6 · 2 · unit / n cells on average in each of n rows
        coarser = max(1.0, 640 * unit / _MOST_WORK)
        for (start, width), (stop, _) in pairwise(_ZONES):
            spacing = max(coarser * width * unit, least)
            points.extend(np.arange(start * unit, min(stop * unit, last), spacing))
    rounded = np.unique(np.ceil(np.array(points) / step - 1e-9)).astype(np.int64) * step
    return rounded[rounded <= n * m]


def _row_filter(share: float) -> tuple[Floats, Floats]:
    """Coefficients of q[j] = p[j] + share · q[j-1] for scipy.signal.lfilter."""
    return np.array([1.0]), np.array([1.0, -share])


def _end_probability(n: int, m: int) -> float:
    """Probability that n + m independent steps, a share n/(n+m) of them up, go up n times."""
    from scipy.stats import binom  # noqa: PLC0415 -- slow to import

    return float(binom.pmf(n, n + m, n / (n + m)))


def _ks_walk(n: int, m: int, thresholds: NDArray[np.int64], step: int, *, least: int = 0) -> Floats:
    """Return P(J < r): a path from (0, 0) to (n, m) that is killed where |i m - j n| >= r.

    One row i at a time; within a row the walk in j is a linear recurrence. Steps are
    independent, and what ends elsewhere is divided out at the end. On the other side, j n - i m,
    a path is killed at ``least`` only, if that is larger: with a distance that has a probability
    below 1e-17 it is a one-sided law.
    """
    from scipy.signal import lfilter  # noqa: PLC0415 -- slow to import

    del step
    up, along = n / (n + m), m / (n + m)
    others = np.maximum(thresholds, least)
    alive = np.zeros((len(thresholds), m + 1))
    for i in range(n + 1):
        low = np.maximum(0, (i * m - thresholds) // n + 1)[:, None]
        high = np.minimum(m, -((-i * m - others) // n) - 1)[:, None]
        row = slice(int(low.min()), int(high.max()) + 1)
        columns = np.arange(row.start, row.stop)
        if i == 0:
            alive[:, 0] = 1.0
            entering = alive[:, row].copy()
        else:
            entering = up * alive[:, row] * (columns >= low)
        alive[:, row] = lfilter(*_row_filter(along), entering, axis=1) * (columns <= high)
    result: Floats = alive[:, m] / _end_probability(n, m)
    return result


def _kuiper_walk(n: int, m: int, thresholds: NDArray[np.int64], step: int) -> Floats:
    """Return P(J < r): rotate the circle of steps so that it starts at its first minimum.

    Paths with 0 <= i m - j n < r. Layer 0 has not yet come back to 0; when it does it moves to
    layer 1 with the time of return as its weight, the number of rotations it stands for.
    """
    from scipy.signal import lfilter  # noqa: PLC0415 -- slow to import

    up, along = n / (n + m), m / (n + m)
    limits = thresholds - step  # all values are multiples of the step
    layers = np.zeros((2, len(limits), m + 1))
    layers[0, :, 0] = 1.0
    for i in range(1, n + 1):
        low = np.maximum(0, -((limits - i * m) // n))[:, None]
        last = i * m // n
        row = slice(int(low.min()), last + 1)
        entering = up * layers[:, :, row] * (np.arange(row.start, row.stop) >= low)
        layers[:, :, row] = lfilter(*_row_filter(along), entering, axis=2)
        if i * m % n == 0:
            layers[1, :, last] += (i + last) * layers[0, :, last]
            layers[0, :, last] = 0.0
    result: Floats = layers[1, :, m] / _end_probability(n, m)
    return result


def kuiper_limit(x: Floats, n: float = math.inf) -> Floats:
    """Return P(sqrt(n) V >= x) by Kuiper's series, with its term of order 1/sqrt(n)."""
    j = np.arange(1.0, 41.0)[:, None]
    x = np.maximum(x, 0.3)  # below, it is 1 up to 1e-20, and the series is slow
    decay = np.exp(-2 * np.square(j * x))
    total = 2 * ((4 * np.square(j * x) - 1) * decay).sum(axis=0)
    correction = (np.square(j) * (4 * np.square(j * x) - 3) * decay).sum(axis=0)
    result: Floats = total - 8 * x / (3 * math.sqrt(n)) * correction
    return np.clip(result, 0.0, 1.0)


def _large_sizes(statistic: TwoSampleStatistic | Literal["one-sided"], n: int, m: int) -> Law:
    from scipy.special import kolmogorov  # noqa: PLC0415

    x = np.linspace(0.0, 6.0, 24_001)
    if statistic == "one-sided":
        survival = np.exp(-2 * np.square(x))  # Smirnov
    else:
        survival = kolmogorov(x) if statistic == "ks" else kuiper_limit(x)
    return continuous_law(x * math.sqrt(n * m * (n + m)), survival, _LIMIT_ERROR / m, proved=False)
