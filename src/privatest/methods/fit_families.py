"""Does a sample come from a location-scale family, whatever its location and scale?

The statistic is the distance of the sample to the nearest member of the family, found by linear
programs in exact arithmetic. Its null distribution is that of the standard member, so it is public:
from tables, or simulated. Proof: docs/proofs/location-scale.md.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome, declare_level
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.encoding import encode_one_column, rows_of_a_person
from privatest.data.schema import Bounds
from privatest.mechanisms.lattice import MECHANISMS, Mechanism, PublicNull, lattice_outcome
from privatest.methods.descriptor import EXACT, Method, Offered
from privatest.numerics.laws import Law, simulated_law

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.intp]


# --- Families by the quantile function of their standard member ---------------------------------
#
# Computed quantiles lie within one grid step of a nondecreasing function: that is all that the fits
# rely on.


@dataclass(frozen=True, slots=True)
class Family:
    """Distributions F((x - m)/s) for all m and all s > 0, by SciPy's name.

    ``ppf`` is the quantile function of the standard member on (0, 1), and ``lower`` and ``upper``
    are the ends of its support.
    """

    name: str
    ppf: Callable[[Floats], Floats]
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def least(self) -> tuple[int, int]:
        """Smallest levels (c1, c2) in grid steps: 0 needs a finite end to put a record at."""
        return int(math.isinf(self.upper)), int(math.isinf(self.lower))

    def lower_limits(self, m: Integers, total: int) -> Floats:
        """Return the smallest z with F(z) >= m/total."""
        return self.quantiles(m / total, -math.inf, self.upper)

    def upper_limits(self, m: Integers, total: int) -> Floats:
        """Return the largest z with F(z) <= m/total."""
        return self.quantiles(m / total, self.lower, math.inf)

    def quantiles(self, p: Floats, below: float, above: float) -> Floats:
        """Return quantiles at p, and ``below`` and ``above`` where p is not inside of (0, 1)."""
        inside = (p > 0) & (p < 1)
        if inside.all():
            return self.ppf(p)
        values = np.where(p <= 0, below, above)
        values[inside] = self.ppf(p[inside])
        return values

    def sample(self, uniforms: Floats) -> Floats:
        """Return draws from the standard member, by inversion."""
        return self.ppf(uniforms)


def _normal(p: Floats) -> Floats:
    from scipy.special import ndtri  # noqa: PLC0415 - only when it is needed

    return np.asarray(ndtri(p), dtype=np.float64)


def _laplace(p: Floats) -> Floats:
    # the smaller tail, without a rounding error of 1 - p where it matters
    tail = np.log(2 * np.minimum(p, 1 - p))
    values: Floats = np.where(p < 0.5, tail, -tail)
    return values


def _cauchy(p: Floats) -> Floats:
    # tan has a pole: in the tails 1/tan of the small angle is accurate
    tail = np.minimum(p, 1 - p)
    size = np.where(tail < 0.25, 1 / np.tan(np.pi * tail), np.tan(np.pi * (0.5 - tail)))
    return np.where(p < 0.5, -size, size)


def _logistic(p: Floats) -> Floats:
    values: Floats = np.log(p) - np.log1p(-p)
    return values


BUILT_IN = {
    "norm": Family("norm", _normal),
    "laplace": Family("laplace", _laplace),
    "cauchy": Family("cauchy", _cauchy),
    "logistic": Family("logistic", _logistic),
    "gumbel_r": Family("gumbel_r", lambda p: -np.log(-np.log(p))),
    "expon": Family("expon", lambda p: -np.log1p(-p), lower=0.0),
    "uniform": Family("uniform", lambda p: np.asarray(p, dtype=np.float64), lower=0.0, upper=1.0),
}
_OTHER_NAMES = {
    "normal": "norm",
    "gaussian": "norm",
    "gumbel": "gumbel_r",
    "exponential": "expon",
}


def plain_name(name: str) -> str:
    """Return SciPy's name for a name that people use."""
    return _OTHER_NAMES.get(name, name)


def family_named(name: object) -> Family:
    """Return a family by SciPy's name, or by its plain name.

    Any continuous distribution of ``scipy.stats`` without shape parameters is a
    location-scale family.

    Examples
    --------
    >>> family_named("normal").name
    'norm'
    """
    if not isinstance(name, str):
        raise ParameterError(f"family must be a name: {_known()}.")
    plain = plain_name(name)
    return BUILT_IN[plain] if plain in BUILT_IN else _of_scipy(plain)


@lru_cache(maxsize=64)
def _of_scipy(name: str) -> Family:
    from scipy import stats  # noqa: PLC0415 - slow to import

    scipy_family: Any = getattr(stats, name, None)
    if not isinstance(scipy_family, stats.rv_continuous) or scipy_family.numargs:
        raise ParameterError(f"family must be one of {_known()}; got {name!r}.")
    lower, upper = (float(end) for end in scipy_family.support())

    def ppf(p: Floats) -> Floats:
        return np.asarray(scipy_family.ppf(p), dtype=np.float64)

    p = np.arange(1, 1024) / 1024
    values = ppf(p)
    increases = np.isfinite(values).all() and (np.diff(values) > 0).all()
    if not increases or np.abs(scipy_family.cdf(values) - p).max() > 1e-9:
        raise ParameterError(f"family {name!r} has no usable quantile function in SciPy.")
    return Family(name, ppf, lower, upper)


def _known() -> str:
    """Return the names of all families, for an error message."""
    from scipy import stats  # noqa: PLC0415

    others = sorted(
        name
        for name, item in vars(stats).items()
        if isinstance(item, stats.rv_continuous) and not item.numargs and name not in BUILT_IN
    )
    return ", ".join([*BUILT_IN, *others])


# --- One level: a linear program in two unknowns, solved exactly --------------------------------
#
# Is there a member within the level? With beta = 1/scale and mu = location/scale, if and only if
# a_i <= beta x_i - mu <= b_i for all records, x sorted, with a_i = q(i/n - c1) and
# b_i = q((i - 1)/n + c2): that is G(beta) >= 0 for some beta >= 0 with
#
#     G(beta) = min_i (b_i - beta x_i) + min_j (beta x_j - a_j).
#
# G is concave and piecewise linear; Kelley's cuts find its maximum. Records are integers and limits
# are floats, which are fractions: floats only choose candidates, and decisions are made in exact
# arithmetic. Levels are integers: c = k/(n steps).


_LINE_ROUNDING = 2.0**-49  # of b - beta x in floats, relative to |b| + |beta x|; with room to spare


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class GridSample:
    """Records as sorted integers, relative to a median record.

    The first ``low`` of them are at the lower bound and the last ``high`` at the upper one. They
    may have been clipped there, so the sample's distribution function is only known between the
    bounds, and is only compared there.
    """

    x: Integers
    low: int = 0
    high: int = 0

    @property
    def size(self) -> int:
        """Number of records."""
        return self.x.size


@dataclass(frozen=True, slots=True)
class Certificate:
    """Two lines above G at every level: weights[r] (b at upper[r] - a at lower[r]), summed.

    Where the sum is negative no member is within the level.
    """

    upper: tuple[int, ...]
    lower: tuple[int, ...]
    weights: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Cut:
    """G(beta) <= height + slope beta, from the records ``upper`` and ``lower``."""

    upper: int
    lower: int
    slope: int
    height: Fraction


def program(
    sample: GridSample, family: Family, steps: int, level: tuple[int, int]
) -> tuple[bool, Certificate | None]:
    """Decide exactly whether a level is feasible, with the certificate of max G.

    There is no certificate where G has no bound.
    """
    n = sample.size
    ranks = np.arange(n, dtype=np.int64) * steps
    # b is finite for the first records, a for the last: the others have no limit
    tops = slice(sample.low, min(n, max(0, -(-(n * steps - level[1]) // steps))))
    bottoms = slice(min(n, level[0] // steps), n - sample.high)
    if tops.start >= tops.stop or bottoms.start >= bottoms.stop:
        return True, None
    b = family.upper_limits(ranks[tops] + level[1], n * steps)
    a = family.lower_limits(ranks[bottoms] + (steps - level[0]), n * steps)
    return _kelley(
        _Side(sample.x[tops], b, tops.start), _Side(-sample.x[bottoms], -a, bottoms.start)
    )


class _Side:
    """min_i (height_i - beta x_i), and which record attains it, exactly."""

    __slots__ = ("floats", "heights", "offset", "sizes", "x")

    def __init__(self, x: Integers, heights: Floats, offset: int) -> None:
        self.x, self.heights, self.offset = x, heights, offset
        self.floats = x.astype(np.float64)  # exact: below 2^53
        self.sizes = np.abs(self.floats), np.abs(heights)

    def lowest(self, beta: Fraction) -> tuple[int, Fraction]:
        """Return the record with the smallest height - beta x, and that value."""
        slope = float(beta)
        values = self.heights - slope * self.floats
        errors = _LINE_ROUNDING * (self.sizes[1] + slope * self.sizes[0])
        candidates = np.flatnonzero(values - errors <= (values + errors).min())
        exact = ((self.exact(int(i)) - beta * int(self.x[i]), int(i)) for i in candidates)
        return min(exact)[::-1]

    def farthest(self) -> int:
        """Return the record that is lowest for all large beta."""
        tied = np.flatnonzero(self.x == self.x.max())
        return int(tied[np.argmin(self.heights[tied])])

    def exact(self, index: int) -> Fraction:
        """Return a height as the fraction that a float is."""
        return Fraction(float(self.heights[index]))


def _cut(tops: _Side, bottoms: _Side, i: int, j: int) -> _Cut:
    return _Cut(
        upper=tops.offset + i,
        lower=bottoms.offset + j,
        slope=-int(tops.x[i]) - int(bottoms.x[j]),
        height=tops.exact(i) + bottoms.exact(j),
    )


def _kelley(tops: _Side, bottoms: _Side) -> tuple[bool, Certificate | None]:
    """Maximise G over beta >= 0: cut where two lines meet until G touches them there."""
    # the slope of G at 0
    left = _cut(tops, bottoms, int(np.argmin(tops.heights)), int(np.argmin(bottoms.heights)))
    if left.slope <= 0:
        return left.height >= 0, Certificate((left.upper,), (left.lower,), (1,))
    right = _cut(tops, bottoms, tops.farthest(), bottoms.farthest())
    if right.slope > 0:
        return True, None
    while True:
        beta = (right.height - left.height) / (left.slope - right.slope)
        (i, top), (j, bottom) = tops.lowest(beta), bottoms.lowest(beta)
        if top + bottom == left.height + left.slope * beta:  # exact: G touches both lines
            break
        line = _cut(tops, bottoms, i, j)
        if line.slope == 0:
            return line.height >= 0, Certificate((line.upper,), (line.lower,), (1,))
        if line.slope > 0:
            left = line
        else:
            right = line
    if right.slope == 0:  # it bounds G alone
        return right.height >= 0, Certificate((right.upper,), (right.lower,), (1,))
    certificate = Certificate(
        (left.upper, right.upper), (left.lower, right.lower), (-right.slope, left.slope)
    )
    return top + bottom >= 0, certificate


# --- The distances: minimum over all members, certified -----------------------------------------
#
# The two lines that decide a program are a certificate, which excludes other levels too.


GRID_BITS = 40  # records are rounded to this many bits of their bounds
QUANTILE_SLACK = 1  # computed quantiles are this many grid steps from a nondecreasing function
_SECTIONS = 64
_PLAIN_STEPS = 2  # after that many steps every other one halves the interval, on a log scale


def on_grid(unit: Floats) -> GridSample:
    """Round records of [0, 1] to a grid of 2^-40 and sort them.

    A fixed public map of each record: neighbours stay neighbours.
    """
    top = 1 << GRID_BITS
    x = np.sort(np.rint(unit * float(top)).astype(np.int64))
    low, high = int(np.searchsorted(x, 1)), x.size - int(np.searchsorted(x, top))
    return GridSample(x - x[(x.size - 1) // 2], low, high)


def ks_fit_sensitivity(steps: int, rows_per_person: int = 1) -> int:
    """Bound how far :func:`ks_fit` moves if one person's records are replaced, as an integer.

    A replaced record moves the exact minimum by at most 1/n = ``steps`` grid steps; inexact
    quantiles move what is computed by at most one step, for each of two neighbours.
    """
    return rows_per_person * steps + 2 * QUANTILE_SLACK


def ks_fit(sample: GridSample, family: Family, steps: int) -> int:
    """Return n · steps · inf over members of the Kolmogorov-Smirnov distance, rounded up.

    ``steps`` are grid steps for a distance of 1/n, an even number.

    Examples
    --------
    >>> from privatest.methods.fit_families import family_named
    >>> sample = on_grid(np.array([-1.2, -0.3, 0.1, 0.4, 2.5]) / 10 + 0.5)
    >>> round(ks_fit(sample, family_named("norm"), 2**36) / (5 * 2**36), 9)
    0.182114579
    """
    n = sample.size
    least = max(steps // 2, *family.least)  # a step of height 1/n is at least half of it away
    middle = n * steps // 2  # beta = 0 puts all records at the median: always feasible
    typical = min(middle, steps // 2 + int(0.45 * steps * n**0.5))
    return _first_feasible(sample, family, steps, None, (least, typical, middle))[0]


def _first_feasible(
    sample: GridSample,
    family: Family,
    steps: int,
    first: int | None,
    search: tuple[int, int, int],
) -> tuple[int, Certificate | None]:
    """Return the smallest k for which (k, k), or (first, k), is feasible.

    It comes with a certificate that the level before is not. ``search`` is (least, first guess,
    most), where ``most`` is feasible. An exact certificate at k excludes all levels before its
    root, and is tight at k: two to seven programs usually suffice, and halving the interval makes
    sure that there are never more than about a hundred.
    """
    low, guess, high = search
    certificate: Certificate | None = None
    count = 0
    while low < high:
        if count > _PLAIN_STEPS and count % 2:
            guess = math.isqrt(max(low, 1) * high)
        guess = min(max(guess, low), high - 1)
        level = guess if first is None else first, guess
        feasible, proof = program(sample, family, steps, level)
        if feasible:
            high = guess
        else:
            low, certificate = guess + 1, proof
        if proof is not None:
            root = _root(proof, family, (sample.size, steps), first, (low, high))
            if root > low:
                low, certificate = root, proof
        guess = low
        count += 1
    return low, certificate


def _root(
    certificate: Certificate,
    family: Family,
    shape: tuple[int, int],
    first: int | None,
    search: tuple[int, int],
) -> int:
    """Return the first level in [low, high] that the certificate does not exclude, or high.

    The sum grows with the level. Floats choose where to look, exact signs decide.
    """
    low, high = search  # below low is excluded; high is not, or is the end
    exact = 0
    while low < high:
        middle = (low + high) // 2
        if exact == 0:
            middle = min(max(_float_root(certificate, family, shape, first, search), low), high - 1)
        elif exact == 1:
            middle = max(low, high - 1)
        exact += 1
        level = middle if first is None else first, middle
        if _allows(certificate, family, shape, level):
            high = middle
        else:
            low = middle + 1
    return low


def _float_root(
    certificate: Certificate,
    family: Family,
    shape: tuple[int, int],
    first: int | None,
    search: tuple[int, int],
) -> int:
    low, high = search
    while high - low > 1:
        inner = np.linspace(low, high, min(_SECTIONS, high - low) + 1)[1:-1].astype(np.int64)
        levels = np.stack([inner if first is None else np.full_like(inner, first), inner], axis=1)
        b, a = _limits(certificate, family, shape, levels)
        allowed = (b - a) @ np.array(certificate.weights, dtype=np.float64) >= 0
        place = int(np.argmax(allowed)) if allowed.any() else inner.size
        low = int(inner[place - 1]) if place else low
        high = int(inner[place]) if place < inner.size else high
    return high


def _limits(
    certificate: Certificate, family: Family, shape: tuple[int, int], levels: Integers
) -> tuple[Floats, Floats]:
    """Return b and a of the certificate's records, one row for each level."""
    n, steps = shape
    upper, lower = np.array(certificate.upper), np.array(certificate.lower)
    b = family.upper_limits(upper * steps + levels[:, 1:], n * steps)
    a = family.lower_limits((lower + 1) * steps - levels[:, :1], n * steps)
    return b, a


def _allows(
    certificate: Certificate, family: Family, shape: tuple[int, int], level: tuple[int, int]
) -> bool:
    """Decide exactly whether the certificate leaves a level open."""
    b, a = _limits(certificate, family, shape, np.array([level], dtype=np.int64))
    if np.isinf(b).any() or np.isinf(a).any():
        return True  # b = inf or a = -inf: no limit at all
    terms = zip(certificate.weights, b[0], a[0], strict=True)
    total = sum((Fraction(float(u)) - Fraction(float(v))) * w for w, u, v in terms)
    return total >= 0


# Kuiper's distance is the minimum of k1 + k2 over feasible levels. It is not convex in k1, so
# [0, best) is cut into cells of k1, and each cell gets a lower bound from every certificate. The
# smallest k2 falls as k1 grows; in the cell (l, u] the sum is at least l + k2(u).


_SPLIT = 8  # a cell that is still open is cut into that many
_SUM_ROUNDING = 2.0**-48  # of a certificate's sums in floats, relative to the sizes of their terms


def kuiper_fit_sensitivity(steps: int, slack: int, rows_per_person: int = 1) -> int:
    """Bound how far :func:`kuiper_fit` moves if one person's records are replaced.

    ``steps`` for a replaced record, ``slack`` because the minimum is found up to it, and one
    step for each level and neighbour because quantiles are.
    """
    return rows_per_person * steps + slack + 4 * QUANTILE_SLACK


def kuiper_fit(sample: GridSample, family: Family, steps: int, slack: int) -> int:
    """Return a number in [T, T + slack], T = n · steps · the smallest Kuiper distance, rounded up.

    T is never below ``steps``: with records at the bounds the distance may be below 1/n. ``slack``
    is at least 2.
    """
    search = _Search(sample, family, steps)
    width = max(slack // 2, 1)
    while width < search.best // 64:
        width *= _SPLIT
    lows = np.arange(0, search.best, width, dtype=np.int64)
    while True:
        lows = search.close(lows, width, max(slack, 2 * width))
        if width == max(slack // 2, 1):
            return max(search.best, steps)
        width //= _SPLIT
        lows = (lows[:, None] + width * np.arange(_SPLIT, dtype=np.int64)).ravel()
        lows = search.still_open(lows, width, slack)


class _Search:
    """The best pair so far, and what is known about all others."""

    def __init__(self, sample: GridSample, family: Family, steps: int) -> None:
        self.sample, self.family, self.steps = sample, family, steps
        self.total = sample.size * steps
        self.best = min(2 * ks_fit(sample, family, steps), self.total)
        self.certificates: list[Certificate] = []
        self.last = self.best // 2

    def try_first(self, first: int) -> None:
        """Find the smallest second level for a first one, and keep the certificate."""
        least = self.family.least[1]
        # (first, total - first) puts all records at one point; from there on up all is feasible
        most = max(self.total - first, least)
        guess = min(max(self.last, least), most)
        self.last, certificate = _first_feasible(
            self.sample, self.family, self.steps, first, (least, guess, most)
        )
        self.best = min(self.best, first + self.last)
        if certificate is not None:
            self.certificates.append(certificate)

    def close(self, lows: Integers, width: int, gap: int) -> Integers:
        """Try cells, most promising first, until all bounds are within ``gap`` of the best.

        Returns the cells that a finer cut has to look at. Each cell is tried at most once.
        """
        bounds = self.bounds(lows, width)
        tried = np.zeros(lows.size, dtype=np.bool_)
        while True:
            waiting = np.where(tried | (bounds >= self.best - gap), self.total + 1, bounds)
            if lows.size == 0 or (k := int(np.argmin(waiting))) < 0 or waiting[k] > self.total:
                return lows
            tried[k] = True
            known = len(self.certificates)
            self.try_first(max(int(lows[k]) + width, self.family.least[0]))
            for certificate in self.certificates[known:]:
                bounds = np.maximum(bounds, lows + self._second(certificate, lows + width, width))

    def still_open(self, lows: Integers, width: int, slack: int) -> Integers:
        """Drop the cells that cannot hold anything better than the best by more than slack."""
        return lows[self.bounds(lows, width) < self.best - slack]

    def bounds(self, lows: Integers, width: int) -> Integers:
        """Lower bounds on the sum in the cells (low, low + width]."""
        result = np.maximum(lows, self.steps)  # T is, too
        for certificate in self.certificates:
            result = np.maximum(result, lows + self._second(certificate, lows + width, width))
        return result

    def _second(self, certificate: Certificate, first: Integers, width: int) -> Integers:
        """Lower bounds on the second level that a certificate gives, to multiples of width.

        Sum of weights · b(k2) >= sum of weights · a(k1) is necessary. Both sums are rounded to
        the safe side, and the left one grows with k2.
        """
        nodes = np.arange(0, self.best + width, width, dtype=np.int64)
        left, right = np.zeros(nodes.size), np.zeros(first.size)
        whole = float(sum(certificate.weights))
        for i, j, weight in zip(
            certificate.upper, certificate.lower, certificate.weights, strict=True
        ):
            share = weight / whole
            b = self.family.upper_limits(i * self.steps + nodes, self.total)
            a = self.family.lower_limits((j + 1) * self.steps - first, self.total)
            left += share * (b + _SUM_ROUNDING * np.abs(np.where(np.isinf(b), 0, b)))
            right += share * (a - _SUM_ROUNDING * np.abs(np.where(np.isinf(a), 0, a)))
        place = np.searchsorted(np.maximum.accumulate(left), right)  # all nodes before are too low
        seconds: Integers = np.maximum(place - 1, 0) * width
        return seconds


# --- Simulated null distributions ---------------------------------------------------------------
#
# Many samples are fitted side by side in floats; privacy does not depend on it. Draws are the
# Kolmogorov-Smirnov distance up to about 1e-9, and an upper bound of Kuiper's (a search over first
# levels that a hidden second minimum may escape): p-values are then too large, not too small.


_CELLS = 1 << 17  # numbers held in one array at a time
_CLOSE = 1e-9
_MOST_PROGRAMS = 40
_MOST_CUTS = 60
_HALVINGS = 33


def simulate_distances(
    family: Family, statistic: str, n: int, count: int, rng: np.random.Generator
) -> Floats:
    """Return ``count`` independent draws of sqrt(n) · distance under the null hypothesis."""
    rows = max(1, _CELLS // n)
    parts = []
    for start in range(0, count, rows):
        uniforms = rng.uniform(size=(min(rows, count - start), n))
        # 0 has no quantile; half a float's resolution does
        x = np.sort(family.sample(np.maximum(uniforms, 2.0**-54)), axis=1)
        x -= x[:, [(n - 1) // 2]]
        batch = _Batch(x, family)
        parts.append(batch.ks() if statistic == "ks" else batch.kuiper())
    distances: Floats = np.sqrt(n) * np.concatenate(parts)
    return distances


@dataclass(frozen=True, slots=True, eq=False)
class _BatchCuts:
    """One line above G for each row: height + slope beta, from two records."""

    upper: Indices
    lower: Indices
    slope: Floats
    height: Floats

    def take(self, chosen: Indices | NDArray[np.bool_]) -> _BatchCuts:
        return _BatchCuts(
            self.upper[chosen], self.lower[chosen], self.slope[chosen], self.height[chosen]
        )

    def put(self, chosen: Indices, other: _BatchCuts) -> None:
        self.upper[chosen], self.lower[chosen] = other.upper, other.lower
        self.slope[chosen], self.height[chosen] = other.slope, other.height


class _Batch:
    """Samples as rows, sorted."""

    def __init__(self, x: Floats, family: Family) -> None:
        self.x, self.family = x, family
        self.n = x.shape[1]

    def ks(self) -> Floats:
        """Smallest c for which (c, c) is feasible."""
        guess = min(0.5, 0.5 / self.n + 0.45 / self.n**0.5)
        return self._first(np.arange(len(self.x)), None, np.full(len(self.x), guess))

    def kuiper(self) -> Floats:
        """Smallest c1 + c2 found: a coarse look at all plausible c1, then two finer ones."""
        rows = np.arange(len(self.x))
        level = self.ks()
        best, where = np.full(len(rows), 2.0), level.copy()
        width = 0.8 * level
        for places in (np.linspace(-1, 1, 9), np.linspace(-0.75, 0.75, 4), np.linspace(-1, 1, 4)):
            centre, second = where.copy(), level
            for place in places:
                first = np.clip(centre + place * width, 1e-12, 1.0)
                second = self._first(rows, first, second)  # the last one is a good guess
                total = first + second
                better = total < best
                best[better], where[better] = total[better], first[better]
            width = width / 5
        return np.asarray(np.minimum(best, 1.0))

    def _first(self, rows: Indices, first: Floats | None, guess: Floats) -> Floats:
        """Smallest c with (c, c) or (first, c) feasible: follow the certificates' roots.

        Every root is a lower bound. We are done at a level that is feasible, which is where its
        own root is not above it, and that is not far above the largest root.
        """
        level, low = guess.copy(), np.zeros(len(guess))
        for _ in range(_MOST_PROGRAMS):
            start = None if first is None else first[rows]
            left, right, weight = self._program(self.x[rows], *self._limits(start, level[rows]))
            root = self._root(left, right, weight, start)
            root[right.slope > 0] = 0.0  # no limit on G, no root
            low[rows] = np.maximum(low[rows], root)
            above = level[rows] - low[rows]
            open_ = (above < 0) | (above > _CLOSE)
            rows, limitless = rows[open_], (right.slope > 0)[open_]
            level[rows] = low[rows] + np.where(limitless, 0.5 * above[open_], 0.1 * _CLOSE)
            if rows.size == 0:
                break
        return level

    def _limits(self, first: Floats | None, level: Floats) -> tuple[Floats, Floats]:
        ranks = np.arange(self.n + 1) / self.n  # rounded as in _root: limits end at the same level
        low = level if first is None else first
        return self._lower(ranks[1:] - low[:, None]), self._upper(ranks[:-1] + level[:, None])

    def _lower(self, p: Floats) -> Floats:
        return self.family.quantiles(p, -np.inf, self.family.upper)

    def _upper(self, p: Floats) -> Floats:
        return self.family.quantiles(p, self.family.lower, np.inf)

    def _root(
        self, left: _BatchCuts, right: _BatchCuts, weight: Floats, first: Floats | None
    ) -> Floats:
        """Smallest level that two lines leave open, by bisection."""
        upper = np.stack([left.upper, right.upper]) / self.n
        lower = (np.stack([left.lower, right.lower]) + 1) / self.n
        shares = np.stack([weight, 1 - weight])
        low, high = np.zeros(len(weight)), np.full(len(weight), 0.5 if first is None else 1.0)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            terms = self._upper(upper + middle) - self._lower(
                lower - (middle if first is None else first)
            )
            total = np.where(shares > 0, shares * np.where(shares > 0, terms, 0), 0).sum(axis=0)
            low, high = np.where(total >= 0, low, middle), np.where(total >= 0, middle, high)
        return high

    def _program(self, x: Floats, a: Floats, b: Floats) -> tuple[_BatchCuts, _BatchCuts, Floats]:
        """Kelley's cuts for all rows at once: the two lines at the top of G, and a weight."""
        every = np.arange(len(x))
        first = np.isfinite(a).argmax(axis=1)
        last = self.n - 1 - np.isfinite(b)[:, ::-1].argmax(axis=1)
        left = _batch_cuts(x, a, b, np.zeros_like(every), np.full_like(every, self.n - 1))
        right = _batch_cuts(x, a, b, last, first)
        rows = every[(left.slope > 0) & (right.slope <= 0)]
        for _ in range(_MOST_CUTS):
            one, two = left.take(rows), right.take(rows)
            beta = np.maximum((two.height - one.height) / (one.slope - two.slope), 0.0)
            shifted = beta[:, None] * x[rows]
            upper, lower = (b[rows] - shifted).argmin(axis=1), (shifted - a[rows]).argmin(axis=1)
            cut = _batch_cuts(x[rows], a[rows], b[rows], upper, lower)
            top = one.height + one.slope * beta
            lowered = cut.height + cut.slope * beta < top - 1e-13 * (1 + np.abs(top))
            rows, cut = rows[lowered], cut.take(lowered)
            rising = cut.slope > 0
            left.put(rows[rising], cut.take(rising))
            right.put(rows[~rising], cut.take(~rising))
            if rows.size == 0:
                break
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = -right.slope / (left.slope - right.slope)
        return left, right, np.where(left.slope <= 0, 1.0, np.clip(weight, 0.0, 1.0))


def _batch_cuts(x: Floats, a: Floats, b: Floats, upper: Indices, lower: Indices) -> _BatchCuts:
    rows = np.arange(len(x))
    return _BatchCuts(
        upper, lower, x[rows, lower] - x[rows, upper], b[rows, upper] - a[rows, lower]
    )


# --- Tables of null distributions ---------------------------------------------------------------
#
# A table holds upper confidence limits of quantiles of sqrt(n) · distance, simulated by
# tools/family_laws.py, so that p-values are too large rather than too small. Between its sizes n
# quantiles are interpolated in 1/sqrt(n). A user's own tables are in the file that the environment
# variable PRIVATEST_FAMILY_LAWS names.


LAWS_VARIABLE = "PRIVATEST_FAMILY_LAWS"
CONFIDENCE = 0.99
# P(distance > quantile), descending; closer together where tests decide
SURVIVALS: Floats = np.concatenate(
    [np.linspace(0.99, 0.2, 80), np.geomspace(0.2, 2e-4, 81)[1:]]
).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class QuantileTable:
    """Quantiles of sqrt(n) · distance, one row for each n; infinite if simulations were too few."""

    sizes: NDArray[np.int64]
    quantiles: Floats

    def covers(self, n: int) -> bool:
        """Return whether the table covers n: it is interpolated above its smallest size."""
        return n >= int(self.sizes[0])

    def upper_law(self, n: int, most: float) -> Law:
        """Return a law of the distance that is not below the true one.

        What lies between two quantiles is put at the upper one; what is above the last one is
        put at ``most``, the largest distance there is.
        """
        last = self.sizes.size - 1
        high = min(int(np.searchsorted(self.sizes, n)), last)
        low = high if int(self.sizes[high]) == n else max(high - 1, 0)
        places = 1 / np.sqrt(self.sizes)
        gap = places[low] - places[high]
        share = (places[low] - 1 / np.sqrt(n)) / gap if gap > 0 else 1.0
        first, second = self.quantiles[low], self.quantiles[high]
        known = np.isfinite(first) & np.isfinite(second)
        row = np.full(first.size, np.inf)
        row[known] = (1 - share) * first[known] + share * second[known]
        row = np.maximum.accumulate(row)
        if n > int(self.sizes[last]):  # towards the limit law, along the last two, but never down
            row = np.maximum(row, self.quantiles[last])
        values = np.minimum(row / np.sqrt(n), most)
        masses = -np.diff(np.concatenate([[1.0], SURVIVALS, [0.0]]))
        return Law(np.concatenate([values, [most]]), masses, proved=False)


def upper_quantiles(draws: Floats) -> Floats:
    """Return upper confidence limits of the quantiles at SURVIVALS from independent draws.

    The probability of exceeding the r-th largest of B draws is at most that of a Beta(r, B + 1 - r)
    variable in law, so P(T > quantile) <= s with confidence 99% for the largest r with
    P(Beta > s) <= 1%.
    """
    from scipy.special import betaincc  # noqa: PLC0415 - only when it is needed

    count = draws.size
    ordered = np.sort(draws)[::-1]
    # the risk P(Beta > s) grows with the rank: bisect for the largest rank with a small one
    low, high = np.zeros(SURVIVALS.size), np.full(SURVIVALS.size, count + 1.0)
    while (high - low > 1).any():
        rank = np.clip(np.floor((low + high) / 2), 1, count)
        safe = betaincc(rank, count + 1 - rank, SURVIVALS) <= 1 - CONFIDENCE
        low, high = np.where(safe, rank, low), np.where(safe, high, rank)
    chosen = low.astype(np.intp)
    result: Floats = np.where(chosen > 0, ordered[chosen - 1], np.inf)
    return result


def law_table(family: str, statistic: str) -> QuantileTable | None:
    """Return the table of a family, the user's own first, or None."""
    key = f"{family}/{statistic}"
    own = os.environ.get(LAWS_VARIABLE)
    tables = (_read(Path(own)) if own else {}), _built_in()
    return next((table[key] for table in tables if key in table), None)


@lru_cache(maxsize=1)
def _built_in() -> Mapping[str, QuantileTable]:
    with as_file(files("privatest.methods") / "family_laws.npz") as path:
        return _read(path) if path.exists() else {}


@lru_cache(maxsize=8)
def _read(path: Path) -> Mapping[str, QuantileTable]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            names = [name.removesuffix("/sizes") for name in stored if name.endswith("/sizes")]
            laws = {
                name: QuantileTable(
                    stored[f"{name}/sizes"].astype(np.int64),
                    stored[f"{name}/quantiles"].astype(np.float64),
                )
                for name in names
            }
    except (OSError, ValueError, KeyError):
        raise ParameterError(f"{LAWS_VARIABLE} must name a file of tools/family_laws.py.") from None
    if any(law.quantiles.shape != (law.sizes.size, SURVIVALS.size) for law in laws.values()):
        raise ParameterError(f"{LAWS_VARIABLE} must name a file of this version's tools.")
    return laws


# --- Public functions ---------------------------------------------------------------------------


FamilyStatistic = Literal["ks", "kuiper"]
STATISTICS: tuple[str, ...] = get_args(FamilyStatistic)
_NAMES = {"ks": "Kolmogorov-Smirnov", "kuiper": "Kuiper"}
_LARGEST = {"ks": 0.5, "kuiper": 1.0}  # distance, attained if all records are the same
_STEPS = 1 << 20  # of the statistic's grid, for a distance of 1/n
_SLACK = _STEPS // 100  # Kuiper's minimum is found up to .01/n
_SIMULATIONS = 999  # where there is no table


@declare_level("measured", valid="laws that are simulated, as with n_simulations")
def ks_family(
    x: Any,
    family: str,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    statistic: Offered[FamilyStatistic] = "ks",
    mechanism: Mechanism = "auto",
    n_simulations: int | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a sample comes from a family, with unknown location and scale.

    Parameters
    ----------
    x : array, series or table of one column
        The sample.
    family : str
        "norm", "laplace", "cauchy", "logistic", "gumbel_r", "expon", "uniform", or any other
        continuous distribution of ``scipy.stats`` without shape parameters.
    bounds : (lower, upper) or Schema
        Public bounds. Values outside are clipped, values at a bound count as "there or beyond",
        so that the test is valid for all bounds; wide ones include the tails. Between the bounds
        values are rounded to 40 bits.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    statistic : {"ks", "kuiper"}
        Distance to the nearest member of the family: Kolmogorov-Smirnov, or Kuiper, which is
        more sensitive to tails and shape, and slower.
    mechanism : {"auto", "tulap", "laplace"}
        The noise. "auto" is Tulap, or Laplace where epsilon >= 4.16 and delta = 0.
    n_simulations : int, optional
        Number of simulations of the distance under the null hypothesis. By default its law comes
        from a table, or from 999 simulations if there is none for this family.
    rng : None, int or Generator
        Public randomness, for these simulations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        With the private distance and its p-value.

    Notes
    -----
    **Sensitivity** The distance T = inf over members of d moves by at most 1/n, times the rows of
    a person, because d does for every member; this needs the infimum itself, which is found by
    linear programs in exact arithmetic. A heuristic fit is not private.
    Proof: docs/proofs/location-scale.md.

    **Privacy** n T in steps of 2^-20 is released with noise at (epsilon, delta); the p-value
    follows from it by the law of T, which is the same for all locations and scales.

    **Validity** Tables hold 99% upper confidence limits of simulated quantiles; with
    ``n_simulations`` the p-value is (1 + sum over simulations of P(simulated + noise >= released))
    / (n_simulations + 1), which is valid for every number of simulations.

    References
    ----------
    Awan and Wang (2022), "Differentially private Kolmogorov-Smirnov-type tests".

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_cauchy(2000)
    >>> ks_family(x, "norm", bounds=(-1000, 1000), epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    chosen = family_named(family)
    one_of("statistic", statistic, STATISTICS)
    one_of("mechanism", mechanism, MECHANISMS)
    if n_simulations is not None:
        integer_at_least("n_simulations", n_simulations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    if bounds is None:
        raise ParameterError(
            "bounds must be given: without them values cannot be put on a fixed grid, and no "
            "fit of floats is certain."
        )
    encoded = encode_one_column(x, bounds)
    sample, rows = on_grid(encoded.values), rows_of_a_person(encoded)
    if statistic == "ks":
        distance, width = ks_fit(sample, chosen, _STEPS), ks_fit_sensitivity(_STEPS, rows)
    else:
        distance = kuiper_fit(sample, chosen, _STEPS, _SLACK)
        width = kuiper_fit_sensitivity(_STEPS, _SLACK, rows)
    law = _law(chosen, statistic, sample.size, n_simulations, generator)
    return lattice_outcome(
        distance,
        PublicNull(law, width, unit=sample.size * _STEPS),
        mechanism=mechanism,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts={
            "adjacency": "one",
            "method_id": f"ks_family/{statistic}",
            "method": f"{_NAMES[statistic]} test of a location-scale family",
            "null_hypothesis": f"the data come from the {chosen.name} family",
            "sizes": {"n": sample.size},
            "parameters": {"statistic": statistic, "family": chosen.name}
            | ({} if n_simulations is None else {"n_simulations": n_simulations}),
            "rows_per_person": encoded.rows_per_person,
        },
    )


def _law(
    family: Family,
    statistic: FamilyStatistic,
    n: int,
    n_simulations: int | None,
    rng: np.random.Generator,
) -> Law:
    """Return an upper bound on the law of the computed statistic, from a table or simulations."""
    table = law_table(family.name, statistic) if n_simulations is None else None
    if table is not None and table.covers(n):
        law = table.upper_law(n, _LARGEST[statistic])
    else:
        count = n_simulations or _SIMULATIONS
        law = simulated_law(simulate_distances(family, statistic, n, count, rng) / np.sqrt(n))
    # what is computed may be above n · steps · distance: rounded up, a quantile off, the slack
    excess = 4.0 + (_SLACK if statistic == "kuiper" else 0)
    return law.scaled(n * _STEPS, excess)


# --- Descriptors --------------------------------------------------------------------------------


DESCRIPTORS = (
    Method(
        name="family",
        question="fit",
        function=ks_family,
        part="family",
        caution="the time of an exact fit depends on values",
        sentence=(
            "We used the private distance of Kolmogorov–Smirnov type to the nearest member of a "
            f"location-scale family; {EXACT}"
        ),
        papers=("awan2022",),
    ),
)
