"""Pearson's correlation and the slope of a line, from five noisy moments of two columns.

x, y, 2x² - 1, xy and 2y² - 1 of columns in [-1, 1] move by at most 2/n each, all at once: noise
for the l-infinity norm suits them. From the released moments noise and sampling error are redrawn,
with variances as large as noise allows. A part of the budget releases Kendall's score too, whose
noise does not depend on bounds, unless there are so many rows that the covariance needs no help.
Proof: docs/proofs/correlation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Interval, Outcome, declare_level, side_alpha
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.encoding import (
    Sample,
    TwoSamples,
    beside,
    encode_numeric_pairs,
    require_public_bounds,
)
from privatest.data.schema import Bounds
from privatest.data.summaries import UNIT_ROUNDOFF, sum_rounding, sums_of
from privatest.mechanisms.additive import linf_mean, linf_scale
from privatest.mechanisms.lattice import noisy_integer, part_law
from privatest.mechanisms.moments import cube_moments
from privatest.methods.descriptor import FROM_MOMENTS, INDEPENDENCE, Method, Offered
from privatest.numerics.laws import ALTERNATIVES, Alternative, kendall_law
from privatest.numerics.order import kendall_score, kendall_width

Floats = NDArray[np.float64]
_SEED = 20260  # of the draws behind intervals: public, so that one result has one interval
_DRAWS = 2000
_SAFETY = 2.0  # deviations of its noise by which a variance may be too small
_ANGLES, _CORRELATIONS = 101, 61  # slopes and correlations that are tried, before
_STEPS = 12  # halvings of the distance between two of them
_LEAPS = (1.0, 0.5)  # how far a row that is rare in both columns moves the covariance, of the most
_EDGE = 1 - 1e-6  # atanh is finite up to here
_WIDER = 1.1  # of the sampling error behind an interval: rows are never quite normal
_BELOW = 1 - 1e-12  # parts are rounded down, so that they never sum to more than epsilon
_SQUARE = 0.1  # of epsilon, for the sampling variance behind an interval
_ROWS = 100.0  # n epsilon over this is where squares are cut off: their noise is about 1/7 then
_SMALLEST_LIMIT, _LARGEST_LIMIT = 10.0, 1000.0  # with a larger one noise would not fall any more
_LEAST = 0.2
# of epsilon, for ranks: over sqrt(n) epsilon, so that their noise is half of chance; within limits
_RANKS, _FEWEST, _MOST = 18.0, 0.1, 0.5
_ENOUGH = 1e6  # n epsilon² from which on the covariance needs no help
_LEVEL = 0.85  # of the level, for ranks where both are released


# --- statistics and sensitivities ---


def line_moments(pairs: Sample) -> Floats:
    """Return the means of x, y, 2x² - 1, xy and 2y² - 1; x and y are mapped from [0, 1] to [-1, 1].

    Examples
    --------
    >>> rows = np.array([[0.5, 1.0], [1.0, 0.0]])
    >>> line_moments(Sample(rows, None)).tolist()
    [0.5, 0.0, 0.0, -0.5, 1.0]
    """
    (sums,) = cube_moments(pairs)
    (x, y), ((xx, xy), (_, yy)) = sums.mean, sums.second
    return np.array([x, y, 2 * xx - 1, xy, 2 * yy - 1])


def line_sensitivity(n: int, rows_per_person: int) -> float:
    """Return how far the moments move in the l-infinity norm, rounding included.

    What a row adds to each mean is at most 1; a mean square is doubled, and so is its rounding.
    """
    rounding = 2 * _mean_rounding(n, 2.0) + 4 * UNIT_ROUNDOFF
    return (2 * rows_per_person / n + 2 * rounding) * (1 + 1e-12)


def _mean_rounding(n: int, largest: float) -> float:
    """Bound the rounding of a mean of terms; fixed point is for ``largest``, or less."""
    relative, fixed = sum_rounding(n, largest)
    return relative * largest + fixed / n


@dataclass(frozen=True, slots=True)
class RegressionProducts:
    """What each row adds to a slope or a correlation: a quadratic form with public numbers.

    Attributes
    ----------
    centre : pair of float
        u = x - centre[0] and v = y - centre[1].
    terms : tuple of three float
        A row's p is terms[0] u² + terms[1] u v + terms[2] v².
    limit : float
        p² counts at most this much.
    """

    centre: tuple[float, float]
    terms: tuple[float, float, float]
    limit: float


def mean_square(pairs: Sample, products: RegressionProducts) -> float:
    """Return the mean of min(p², limit)."""
    terms = partial(_squares, products)
    return float(sums_of(pairs, terms, 1, products.limit)[0] / len(pairs))


def _squares(products: RegressionProducts, rows: Floats) -> Floats:
    u, v = np.ascontiguousarray((2 * rows - 1 - products.centre).T)
    uu, uv, vv = products.terms
    squares = (uu * u * u + uv * u * v + vv * v * v) ** 2
    return np.asarray(np.minimum(squares, products.limit))[:, None]


def mean_square_sensitivity(n: int, rows_per_person: int, limit: float) -> float:
    """Return how far :func:`mean_square` moves: terms lie in [0, limit], however rounded."""
    return (limit * rows_per_person / n + 2 * _mean_rounding(n, limit)) * (1 + 1e-12)


# --- released moments, and what follows from them ---


@dataclass(frozen=True, slots=True)
class Line:
    """Released means of x, y, x², xy and y² on [-1, 1]², with the scale of their noise.

    Attributes
    ----------
    n : int
        Number of rows.
    x, y, xx, xy, yy : float
        The noisy moments.
    scale : float
        s of the density exp(-|z|∞/s) of the noise on x, y, 2x² - 1, xy, 2y² - 1.
    excess : float
        Sampling variance over that of normal rows, released too where that is affordable, else 1.
    """

    n: int
    x: float
    y: float
    xx: float
    xy: float
    yy: float
    scale: float
    excess: float = 1.0

    @classmethod
    def of(cls, n: int, released: Floats, scale: float) -> Line:
        """Undo the scaling of the squares."""
        x, y, xx, xy, yy = map(float, released)
        return cls(n, x, y, (xx + 1) / 2, xy, (yy + 1) / 2, scale)

    @property
    def centre(self) -> tuple[float, float]:
        """The means, which lie in [-1, 1]."""
        return min(max(self.x, -1.0), 1.0), min(max(self.y, -1.0), 1.0)

    @property
    def outer(self) -> tuple[float, float]:
        """The means, moved away from 0 by as much as noise may have moved them towards it.

        Noise on the covariance grows with both: it must not be taken to be too small.
        """
        reach = _SAFETY * math.sqrt(14) * self.scale
        cx, cy = (math.copysign(min(abs(c) + reach, 1.0), c) for c in self.centre)
        return cx, cy

    @property
    def covariance(self) -> float:
        """The private covariance."""
        return self.xy - self.x * self.y

    @property
    def variances(self) -> tuple[float, float]:
        """The private variances; noise may make them negative."""
        return self.xx - self.x**2, self.yy - self.y**2

    @property
    def noise(self) -> tuple[float, float]:
        """Standard deviations of the noise on the variances."""
        moment = math.sqrt(14) * self.scale  # of a mean or a product; a square has half of it
        squared = math.sqrt(409) * self.scale**2  # of the square of the noise on a mean
        cx, cy = (math.hypot(moment / 2, 2 * c * moment, squared) for c in self.centre)
        return cx, cy

    @property
    def unbiased(self) -> tuple[float, float]:
        """The variances, with the square of the noise on the means added back."""
        vx, vy = self.variances
        return vx + 14 * self.scale**2, vy + 14 * self.scale**2

    def shifted(self, step: float) -> tuple[float, float]:
        """Return the variances, moved by some deviations of their noise, within [0, 1]."""
        vx, vy = zip(self.unbiased, self.noise, strict=True)
        first, second = (min(max(v + step * noise, 0.0), 1.0) for v, noise in (vx, vy))
        return first, second

    @property
    def slope(self) -> float:
        """The private slope; where noise hides the variance its deviation stands in for it."""
        return self.covariance / max(self.unbiased[0], self.noise[0])

    @property
    def correlation(self) -> float:
        """The private correlation, cut to [-1, 1]; hidden variances as in :attr:`slope`."""
        vx, vy = (max(v, noise) for v, noise in zip(self.unbiased, self.noise, strict=True))
        return min(max(self.covariance / math.sqrt(vx * vy), -1.0), 1.0)


def slope_products(line: Line, limit: float) -> RegressionProducts:
    """Return what rows add to the slope, with mean square 1 if errors do not depend on x."""
    vx = max(line.unbiased[0], line.noise[0])
    residual = max(line.unbiased[1] - line.slope * line.covariance, line.noise[1])
    scale = 1 / math.sqrt(vx * residual)
    return RegressionProducts(line.centre, (-line.slope * scale, scale, 0.0), limit)


def correlation_products(line: Line, limit: float) -> RegressionProducts:
    """Return what rows add to the correlation, with mean square 1 if they are normal."""
    vx, vy = (max(v, noise) for v, noise in zip(line.unbiased, line.noise, strict=True))
    r = line.correlation
    scale = 1 / max(1 - r**2, 0.01)
    terms = -r / (2 * vx) * scale, scale / math.sqrt(vx * vy), -r / (2 * vy) * scale
    return RegressionProducts(line.centre, terms, limit)


@dataclass(frozen=True, slots=True, eq=False)
class _Draws:
    """Redrawn noise on the covariance and the variances, and standard normals."""

    covariance: Floats
    x: Floats
    y: Floats
    normal: Floats


def _draw(
    line: Line, count: int, rng: np.random.Generator, centre: tuple[float, float] | None = None
) -> _Draws:
    radius = rng.gamma(6, line.scale, size=(count, 1))
    zx, zy, zxx, zxy, zyy = (radius * rng.uniform(-1, 1, size=(count, 5))).T
    cx, cy = centre or line.centre
    return _Draws(
        zxy - cy * zx - cx * zy - zx * zy,
        zxx / 2 - 2 * cx * zx - zx**2,
        zyy / 2 - 2 * cy * zy - zy**2,
        rng.standard_normal(count),
    )


def line_pvalue(
    line: Line, alternative: Alternative, count: int, rng: np.random.Generator
) -> float:
    """Return the p-value of independence: SciPy's, averaged over redrawn noise.

    With the values of both columns given, the covariance of independent columns has variance
    vx vy/(n - 1), whatever their laws: each order of y is equally likely. Over the root of vx vy
    its law is taken to be that of the correlation of normal rows, as SciPy does.
    """
    drawn = _draw(line, count, rng, line.outer).covariance
    vx, vy = line.shifted(_SAFETY)
    spread, observed = math.sqrt(vx * vy), line.covariance
    if alternative == "two-sided":
        above, below = abs(observed) - drawn, -abs(observed) - drawn
        tails = _correlation_tail(above, spread, line.n) + _correlation_tail(-below, spread, line.n)
    else:
        sign = -1.0 if alternative == "less" else 1.0
        tails = _correlation_tail(sign * (observed - drawn), spread, line.n)
    return min(1.0, (1 + float(np.sum(tails))) / (count + 1))


def leap_pvalue(
    line: Line, alternative: Alternative, count: int, rng: np.random.Generator
) -> float:
    """Return the p-value if chance is that of rows which stand out in both columns.

    If few rows are far from the others in x, and few in y, one that is so in both moves the
    covariance at a leap, up to the product of both distances to the bounds. At the small level
    that a covariance has beside ranks, this is far from normal.
    """
    noise = _draw(line, count, rng, line.outer).covariance
    sign = -1.0 if alternative == "less" else 1.0
    vx, vy = line.shifted(_SAFETY)
    variance, (cx, cy) = vx * vy / (line.n - 1), line.centre
    observed, most = sign * line.covariance, 0
    for part in _LEAPS:
        leap = part * (1 + abs(cx)) * (1 + abs(cy)) / line.n
        rate = variance / leap**2
        null = sign * noise + leap * (rng.poisson(rate, size=count) - rate)
        larger = np.abs(null) >= abs(observed) if alternative == "two-sided" else null >= observed
        most = max(most, int(np.sum(larger)))
    return (1 + most) / (count + 1)


def _correlation_tail(places: Floats, spread: float, n: int) -> Floats:
    """Return P(spread · r >= place), r the correlation of n independent normal rows."""
    from scipy.special import betainc  # noqa: PLC0415

    if spread == 0.0:
        return np.asarray(places <= 0, dtype=np.float64)
    shape = n / 2 - 1
    below: Floats = betainc(shape, shape, np.clip((1 - places / spread) / 2, 0.0, 1.0))
    return below


@dataclass(frozen=True, slots=True)
class SlopeInterval:
    """Slopes b for which the covariance of x and y - b x is what noise and chance make of 0.

    Attributes
    ----------
    line : Line
        What was released.
    unit : float
        What a slope of 1 on [-1, 1]² is in the data's own units.
    alternative : {"two-sided", "greater", "less"}
        Which ends there are; a missing one is infinite, as there is no public bound.
    """

    line: Line
    unit: float
    alternative: Alternative

    def __call__(self, level: float) -> Interval:
        """Return the interval; infinite if noise hides the variance of x."""
        side = side_alpha(level, self.alternative)
        drawn = _draw(self.line, _DRAWS, np.random.default_rng(_SEED))
        slopes, middle = _slopes(self.line), self.line.slope
        low = _first(slopes, lambda b: self._tails(b, drawn)[0] > side, middle)
        high = -_first(-slopes[::-1], lambda b: self._tails(-b, drawn)[1] > side, -middle)
        low = -math.inf if self.alternative == "less" else min(low, middle)
        high = math.inf if self.alternative == "greater" else max(high, middle)
        if not math.isfinite(low) or not math.isfinite(high):
            return Interval(self.unit * low, self.unit * high, level)
        return Interval.around(
            self.unit * low, self.unit * high, level, self.unit * self._without_noise(side)
        )

    def _tails(self, slope: float, drawn: _Draws) -> tuple[float, float]:
        """Return how probable as large, and as small, a covariance with the residuals is."""
        line = self.line
        observed = line.covariance - slope * line.variances[0]
        variance = line.excess * line.shifted(_SAFETY)[0] * self._residual(slope) / (line.n - 1)
        null = drawn.covariance - slope * drawn.x + _WIDER * drawn.normal * math.sqrt(variance)
        return float(np.mean(null >= observed)), float(np.mean(null <= observed))

    def _residual(self, slope: float, safety: float = _SAFETY) -> float:
        """Return the variance of y - slope · x, as large as noise allows."""
        line = self.line
        (vx, vy), (nx, ny) = line.unbiased, line.noise
        product = math.sqrt(14) * line.scale
        noise = math.hypot(ny, 2 * slope * product, slope**2 * nx)
        variance = vy - 2 * slope * line.covariance + slope**2 * vx + safety * noise
        return min(max(variance, 0.0), (1 + abs(slope)) ** 2)

    def _without_noise(self, side: float) -> float:
        from scipy.special import ndtri  # noqa: PLC0415

        spread = max(self.line.unbiased[0], self.line.noise[0]) * (self.line.n - 1)
        error = math.sqrt(self.line.excess * self._residual(self.line.slope, 0.0) / spread)
        return 2 * -float(ndtri(side)) * _WIDER * error


def _slopes(line: Line) -> Floats:
    """Return slopes around the released one, fine near it and out to what can be told from 1/0."""
    (vx, vy), (nx, ny) = line.shifted(_SAFETY), line.noise
    error = math.sqrt(max(vy, ny) / max(line.unbiased[0], nx) / line.n)
    error += math.sqrt(14) * line.scale * (1 + abs(line.slope)) / max(vx, nx)
    angles = np.linspace(-math.pi / 2, math.pi / 2, _ANGLES + 2)[1:-1]
    return np.asarray(line.slope + 4 * error * np.tan(angles))


def _first(points: Floats, accepted: Callable[[float], bool], middle: float) -> float:
    """Return where acceptance starts: -inf if at the first point, ``middle`` if nowhere."""
    flags = [accepted(float(point)) for point in points]
    if not any(flags):
        return middle
    first = flags.index(True)
    if first == 0:
        return -math.inf
    low, high = float(points[first - 1]), float(points[first])
    for _ in range(_STEPS):
        between = (low + high) / 2
        low, high = (low, between) if accepted(between) else (between, high)
    return low


@dataclass(frozen=True, slots=True)
class CorrelationInterval:
    """Correlations for which the released covariance is not in a tail.

    Attributes
    ----------
    line : Line
        What was released.
    alternative : {"two-sided", "greater", "less"}
        Which ends there are; a missing one is -1 or 1.
    """

    line: Line
    alternative: Alternative

    def __call__(self, level: float) -> Interval:
        """Return the union over variances that noise allows."""
        side, middle = side_alpha(level, self.alternative), self.line.correlation
        drawn = _draw(self.line, _DRAWS, np.random.default_rng(_SEED))
        steps = (-_SAFETY, 0.0, _SAFETY)
        pairs = sorted(
            {(self.line.shifted(a)[0], self.line.shifted(b)[1]) for a in steps for b in steps}
        )
        points, redrawn = _correlations(middle), _redrawn(drawn, pairs)
        low = _first(points, lambda c: self._within(c, drawn, redrawn, side, 1), middle)
        high = -_first(-points[::-1], lambda c: self._within(-c, drawn, redrawn, side, -1), -middle)
        low = -1.0 if self.alternative == "less" else min(max(low, -1.0), middle)
        high = 1.0 if self.alternative == "greater" else max(min(high, 1.0), middle)
        return Interval.around(low, high, level, self._without_noise(side))

    def _within(
        self,
        correlation: float,
        drawn: _Draws,
        redrawn: Sequence[tuple[float, Floats]],
        side: float,
        sign: int,
    ) -> bool:
        """Whether the tail above the released covariance, or below for -1, is more than ``side``.

        With any of the variances that noise allows; tails are counted.
        """
        line = self.line
        vx, vy = (max(v, 0.0) for v in line.variances)
        observed = line.covariance - correlation * math.sqrt(vx * vy)
        sample = np.tanh(math.atanh(correlation) + self._deviation * drawn.normal)
        for product, noisy in redrawn:
            null = sample * product + drawn.covariance - correlation * noisy
            tail = null >= observed if sign > 0 else null <= observed
            if np.count_nonzero(tail) / len(tail) > side:
                return True
        return False

    @property
    def _deviation(self) -> float:
        return _WIDER * math.sqrt(self.line.excess / max(self.line.n - 3, 1))

    def _without_noise(self, side: float) -> float:
        from scipy.special import ndtri  # noqa: PLC0415

        reach = -float(ndtri(side)) * self._deviation
        middle = math.atanh(min(max(self.line.correlation, -_EDGE), _EDGE))
        low = -1.0 if self.alternative == "less" else math.tanh(middle - reach)
        high = 1.0 if self.alternative == "greater" else math.tanh(middle + reach)
        return high - low


def _redrawn(drawn: _Draws, pairs: Sequence[tuple[float, float]]) -> list[tuple[float, Floats]]:
    """Return roots of products of variances, as they are and as noise makes them.

    The likely ones come first: more often than not they decide.
    """
    middle = len(pairs) // 2
    return [
        (
            math.sqrt(x * y),
            np.sqrt(np.maximum(x + drawn.x, 0.0) * np.maximum(y + drawn.y, 0.0)),
        )
        for x, y in sorted(pairs, key=lambda pair: abs(pairs.index(pair) - middle))
    ]


def _correlations(middle: float) -> Floats:
    """Return correlations that are tried, the released one among them."""
    inside = min(max(middle, -_EDGE), _EDGE)
    return np.unique(np.append(np.tanh(np.linspace(-4.0, 4.0, _CORRELATIONS)), inside))


# --- releases ---


@dataclass(frozen=True, slots=True)
class Shares:
    """How epsilon is divided; public.

    Attributes
    ----------
    ranks, moments, square : float
        What each release spends; 0 if it is left out.
    limit : float
        Where squares are cut off.
    """

    ranks: float
    moments: float
    square: float
    limit: float


def shares_of(n: int, rows_per_person: int, epsilon: float) -> Shares:
    """Divide epsilon by public numbers only."""
    epsilon *= _BELOW
    limit = min(n * epsilon / _ROWS, _LARGEST_LIMIT * rows_per_person)
    square = _SQUARE if limit >= _SMALLEST_LIMIT * rows_per_person else 0.0
    size = n * (epsilon / rows_per_person) ** 2
    ranks = min(max(_RANKS / math.sqrt(size), _FEWEST), _MOST) if size < _ENOUGH else 0.0
    return Shares(ranks * epsilon, (1 - square - ranks) * epsilon, square * epsilon, limit)


@dataclass(frozen=True, slots=True)
class LineRelease:
    """What was released, and a p-value that follows from the ranks.

    Attributes
    ----------
    line : Line
        Noisy moments.
    ranks : float or None
        The p-value of Kendall's score, if it was released.
    """

    line: Line
    ranks: float | None

    def pvalue(self, alternative: Alternative, count: int, rng: np.random.Generator) -> float:
        """Return the p-value of independence: ranks, where released, have most of the level."""
        covariance = line_pvalue(self.line, alternative, count, rng)
        if self.ranks is None:
            return covariance
        covariance = max(covariance, leap_pvalue(self.line, alternative, count, rng))
        return min(1.0, self.ranks / _LEVEL, covariance / (1 - _LEVEL))


def release_line(
    sides: TwoSamples,
    epsilon: float,
    alternative: Alternative,
    products: Callable[[Line, float], RegressionProducts],
    noise: NoiseSource,
) -> LineRelease:
    """Release the ranks' score, the moments, and the sampling variance.

    Parameters
    ----------
    sides : TwoSamples
        Two columns on [0, 1].
    epsilon : float
        What is spent in all.
    alternative : {"two-sided", "greater", "less"}
        Which score of the ranks is released: its absolute value, itself or its negative.
    products : callable
        From released moments to what rows add to an estimate.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** Of the score 2 (n - 1), of the moments 2/n each, of the mean square its limit
    over n, times the rows of a person.

    **Privacy** Three releases whose epsilons sum to at most ``epsilon``.
    """
    n, people = len(sides.x), sides.rows_per_person
    shares = shares_of(n, people, epsilon)
    ranks = _rank_pvalue(sides, shares.ranks, alternative, noise) if shares.ranks else None
    pairs, sensitivity = beside(*sides), line_sensitivity(n, people)
    moments = line_moments(pairs)
    released = linf_mean(moments, sensitivity=sensitivity, epsilon=shares.moments, noise=noise)
    line = Line.of(n, released, linf_scale(sensitivity, shares.moments))
    if shares.square:
        rows = products(line, shares.limit)
        line = replace(line, excess=_excess(pairs, rows, shares, people, noise))
    return LineRelease(line, ranks)


def _rank_pvalue(
    sides: TwoSamples, epsilon: float, alternative: Alternative, noise: NoiseSource
) -> float:
    """Release Kendall's score, and return its p-value: exact for every n, ties or not."""
    n = len(sides.x)
    labels = noise.permutation(n), noise.permutation(n)
    score = kendall_score(sides.x.values, sides.y.values, *labels)
    value = abs(score) if alternative == "two-sided" else -score if alternative == "less" else score
    law = part_law(kendall_width(n) * sides.rows_per_person, epsilon)
    noisy = noisy_integer(value, law=law, noise=noise)
    return kendall_law(n).pvalue(noisy, law, alternative)


def _excess(
    pairs: Sample, products: RegressionProducts, shares: Shares, people: int, noise: NoiseSource
) -> float:
    """Release the sampling variance over that of normal rows."""
    square = np.array([mean_square(pairs, products)])
    moved = mean_square_sensitivity(len(pairs), people, products.limit)
    (noisy,) = linf_mean(square, sensitivity=moved, epsilon=shares.square, noise=noise)
    error = math.sqrt(2) * linf_scale(moved, shares.square)
    return max(float(noisy) + error, _LEAST) / _kept(products.limit)


@lru_cache(maxsize=64)
def _kept(limit: float) -> float:
    """Return E min(p², limit) for the product p of two normals: what a limit leaves of 1."""
    from scipy.special import ndtri  # noqa: PLC0415

    squares = ndtri((np.arange(1000) + 0.5) / 1000) ** 2
    return float(np.minimum(np.outer(squares, squares), limit).mean())


# --- tests ---


@declare_level("measured")
def pearsonr(
    x: Any,
    y: Any,
    *,
    bounds_x: Bounds,
    bounds_y: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Offered[Alternative] = "two-sided",
    n_simulations: int = 9999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two columns are independent, by their correlation; and estimate it.

    Parameters
    ----------
    x, y : array, series or table of one column
        Row i of ``x`` and row i of ``y`` belong to one record.
    bounds_x, bounds_y : pair or Schema
        Public bounds of each column; values outside are clipped. Close ones need less noise.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision, and of the interval: 1 - alpha.
    alternative : {"two-sided", "greater", "less"}
        "greater": y rises with x.
    n_simulations : int
        Draws of the noise behind the p-value, which is at least 1/(n_simulations + 1).
    rng : None, int or Generator
        Public randomness, for these draws.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the private correlation; ``estimates`` have it as "correlation", with its
        interval "lower" to "upper".

    Notes
    -----
    The p-value needs no normal rows: if the columns are independent, the variance of their
    covariance is known. A covariance has much noise, that of the whole bounds, so below n epsilon²
    = 1,000,000 a tenth to a half of epsilon (the more the fewer rows) asks Kendall's score as well,
    whose p-value is exact. The p-value is then the smaller of that of the ranks over .85 and that
    of the covariance over .15. From there on it is that of the covariance, SciPy's with the noise.
    :func:`privatest.kendalltau` spends all on ranks.

    The interval is Fisher's with the noise. Its sampling variance is that of normal rows if n
    epsilon is below 1000; from there on a tenth of epsilon buys it, which heavy tails need. Where
    those are heavy :func:`privatest.kendalltau` is the better estimate. The interval may hold 0
    where the p-value is small: it knows nothing of the ranks.

    **Sensitivity** 2/n in each of the five moments x, y, 2x² - 1, xy, 2y² - 1 of columns mapped to
    [-1, 1], and 2 (n - 1) in Kendall's score, times the rows of a person. Proof:
    docs/proofs/correlation.md.

    **Privacy** Kendall's score is released with Tulap or Laplace noise, the moments together with
    l-infinity noise, and after them, if n epsilon is at least 1000, the mean of a bounded function
    that they choose: together at (epsilon, delta). The rest follows from these.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 10, size=2000)
    >>> y = 10 - x
    >>> pearsonr(x, y, bounds_x=(0, 10), bounds_y=(0, 10), epsilon=1, rng=0).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = _checked_options(alpha, alternative, n_simulations, rng)
    sides, source = _read_columns(x, y, bounds_x, bounds_y, noise)
    released = release_line(sides, budget.pure_epsilon, alternative, correlation_products, source)
    line, interval = released.line, CorrelationInterval(released.line, alternative)
    low, high = interval(1 - options["alpha"])
    return Outcome(
        method="Pearson's correlation",
        statistic=line.correlation,
        estimates={"correlation": line.correlation, "lower": low, "upper": high},
        estimated="correlation",
        intervals=interval,
        spent=budget,
        simulated=source.simulated,
        **_facts(released, sides, **options),
    )


@declare_level("measured")
def linregress(
    x: Any,
    y: Any,
    *,
    bounds_x: Bounds,
    bounds_y: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Offered[Alternative] = "two-sided",
    n_simulations: int = 9999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Estimate privately the slope of y on x, and test whether it is 0.

    Parameters
    ----------
    x, y : array, series or table of one column
        What explains, and what is explained; row i of both belongs to one record.
    bounds_x, bounds_y, epsilon, delta, alpha, alternative, n_simulations, rng, noise
        As in :func:`pearsonr`.

    Returns
    -------
    Outcome
        The statistic is the private slope; ``estimates`` have "slope", "intercept" and "rvalue",
        and the interval "lower" to "upper" of the slope in the data's own units. Its ends are
        infinite where noise hides the variance of x.

    Notes
    -----
    The interval is Fieller's with the noise: slopes b for which x and y - b x may be uncorrelated.
    It is for errors of any law that do not depend on x if n epsilon is below 1000; from there on a
    tenth of epsilon buys the sampling variance, and errors may grow with x. Clipping bends a line:
    bounds should hold the data.

    **Sensitivity** As in :func:`pearsonr`.

    **Privacy** As in :func:`pearsonr`.

    References
    ----------
    Alabi, McMillan, Sarathy, Smith and Vadhan (2022), Differentially private simple linear
    regression; Alabi and Vadhan (2022), Hypothesis testing for differentially private linear
    regression. The noisy moments and the redrawing are theirs, the noise and the interval are not.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 10, size=2000)
    >>> y = 1 + 2 * x
    >>> found = linregress(x, y, bounds_x=(0, 10), bounds_y=(0, 21), epsilon=1, rng=0)
    >>> bool(1 < found.estimates["slope"] < 3)
    True
    """
    budget = Budget(epsilon, delta)
    options = _checked_options(alpha, alternative, n_simulations, rng)
    sides, source = _read_columns(x, y, bounds_x, bounds_y, noise)
    released = release_line(sides, budget.pure_epsilon, alternative, slope_products, source)
    line = released.line
    box_x, box_y = (side.box for side in sides)
    unit = float(box_y.half[0]) / float(box_x.half[0])
    mean_x = float(box_x.lower[0] + (1 + line.centre[0]) * box_x.half[0])
    mean_y = float(box_y.lower[0] + (1 + line.centre[1]) * box_y.half[0])
    interval = SlopeInterval(line, unit, alternative)
    low, high = interval(1 - options["alpha"])
    slope = unit * line.slope
    return Outcome(
        method="linear regression",
        statistic=slope,
        estimates={
            "slope": slope,
            "intercept": mean_y - slope * mean_x,
            "rvalue": line.correlation,
            "lower": low,
            "upper": high,
        },
        estimated="slope",
        intervals=interval,
        spent=budget,
        simulated=source.simulated,
        **_facts(released, sides, **options),
    )


def _checked_options(
    alpha: float, alternative: Alternative, n_simulations: int, rng: Rng
) -> dict[str, Any]:
    """Return the checked options of :func:`_facts`."""
    return {
        "alpha": number("alpha", alpha, above=0, below=1),
        "alternative": one_of("alternative", alternative, ALTERNATIVES),
        "n_simulations": integer_at_least("n_simulations", n_simulations, 19),
        "rng": public_generator(rng),
    }


def _read_columns(
    x: Any, y: Any, bounds_x: Bounds, bounds_y: Bounds, noise: NoiseSource | None
) -> tuple[TwoSamples, NoiseSource]:
    """Read two bounded columns, paid for with the noise."""
    require_public_bounds(bounds_x=bounds_x, bounds_y=bounds_y)
    source = noise_source(noise)
    return encode_numeric_pairs(x, y, bounds_x, bounds_y, rows=4), source


def _facts(
    released: LineRelease,
    sides: TwoSamples,
    *,
    alpha: float,
    alternative: Alternative,
    n_simulations: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return the p-value and the public fields of a result."""
    pvalue = released.pvalue(alternative, n_simulations, rng)
    return {
        "pvalue": pvalue,
        "reject": pvalue <= alpha,
        "alpha": alpha,
        "adjacency": "one",
        "null_hypothesis": INDEPENDENCE[alternative],
        "sizes": {"n": len(sides.x)},
        "parameters": {"alternative": alternative, "n_simulations": n_simulations},
        "rows_per_person": sides.rows_per_person,
    }


DESCRIPTORS = (
    Method(
        name="pearson",
        question="independence",
        function=pearsonr,
        about="one column a side, by the covariance",
        aliases=("pearsonr",),
        columns="one numeric",
        sentence=f"We estimated Pearson's correlation {FROM_MOMENTS}",
        papers=("alabi2022",),
    ),
    Method(
        name="slope",
        question="independence",
        function=linregress,
        about="of y on x, by the covariance",
        aliases=("linregress",),
        columns="one numeric",
        sentence=f"We fitted a line of y on x {FROM_MOMENTS}",
        papers=("alabi2022",),
    ),
)
