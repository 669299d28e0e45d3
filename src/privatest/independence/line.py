"""From five noisy moments to p-values and intervals: correlation and slope.

All of it is computed from released and public numbers: the noise is redrawn, and so is the
sampling error, with variances that are taken as large as noise allows. So a variance that noise
hides widens what is said instead of narrowing it. Derivation: docs/proofs/correlation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.intervals import Interval, side_alpha
from privatest.laws.law import Alternative
from privatest.statistics.linear import Products

__all__ = [
    "CorrelationInterval",
    "Line",
    "SlopeInterval",
    "correlation_products",
    "leap_pvalue",
    "line_pvalue",
    "slope_products",
]

_SEED = 20260  # of the draws behind intervals: public, so that one result has one interval
_DRAWS = 2000
_SAFETY = 2.0  # deviations of its noise by which a variance may be too small
_ANGLES, _CORRELATIONS = 101, 61  # slopes and correlations that are tried, before
_STEPS = 12  # halvings of the distance between two of them
_LEAPS = (1.0, 0.5)  # how far a row that is rare in both columns moves the covariance, of the most
_EDGE = 1 - 1e-6  # atanh is finite up to here
_WIDER = 1.1  # of the sampling error behind an interval: rows are never quite normal

Floats = NDArray[np.float64]


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


def slope_products(line: Line, limit: float) -> Products:
    """Return what rows add to the slope, with mean square 1 if errors do not depend on x."""
    vx = max(line.unbiased[0], line.noise[0])
    residual = max(line.unbiased[1] - line.slope * line.covariance, line.noise[1])
    scale = 1 / math.sqrt(vx * residual)
    return Products(line.centre, (-line.slope * scale, scale, 0.0), limit)


def correlation_products(line: Line, limit: float) -> Products:
    """Return what rows add to the correlation, with mean square 1 if they are normal."""
    vx, vy = (max(v, noise) for v, noise in zip(line.unbiased, line.noise, strict=True))
    r = line.correlation
    scale = 1 / max(1 - r**2, 0.01)
    terms = -r / (2 * vx) * scale, scale / math.sqrt(vx * vy), -r / (2 * vy) * scale
    return Products(line.centre, terms, limit)


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
        found = vy - 2 * slope * line.covariance + slope**2 * vx + safety * noise
        return min(max(found, 0.0), (1 + abs(slope)) ** 2)

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
