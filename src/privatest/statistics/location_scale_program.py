"""One level of a location-scale fit: a linear program in two unknowns, solved exactly.

Is there a member within the level? With beta = 1/scale and mu = location/scale, if and only if
a_i <= beta x_i - mu <= b_i for all records, that is G(beta) >= 0 for some beta >= 0 with

    G(beta) = min_i (b_i - beta x_i) + min_j (beta x_j - a_j).

G is concave and piecewise linear; Kelley's cuts find its maximum. Records are integers and limits
are floats, which are fractions: floats only choose candidates, and decisions are made in exact
arithmetic. Proof: docs/proofs/location-scale.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.families import Family

__all__ = ["Certificate", "GridSample", "program"]

_ROUNDING = 2.0**-49  # of b - beta x in floats, relative to |b| + |beta x|; with room to spare

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
class _Line:
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
        errors = _ROUNDING * (self.sizes[1] + slope * self.sizes[0])
        candidates = np.flatnonzero(values - errors <= (values + errors).min())
        return min(
            ((self.exact(int(i)) - beta * int(self.x[i]), int(i)) for i in candidates),
        )[::-1]

    def farthest(self) -> int:
        """Return the record that is lowest for all large beta."""
        tied = np.flatnonzero(self.x == self.x.max())
        return int(tied[np.argmin(self.heights[tied])])

    def exact(self, index: int) -> Fraction:
        """Return a height as the fraction that a float is."""
        return Fraction(float(self.heights[index]))


def _line(tops: _Side, bottoms: _Side, i: int, j: int) -> _Line:
    return _Line(
        upper=tops.offset + i,
        lower=bottoms.offset + j,
        slope=-int(tops.x[i]) - int(bottoms.x[j]),
        height=tops.exact(i) + bottoms.exact(j),
    )


def _kelley(tops: _Side, bottoms: _Side) -> tuple[bool, Certificate | None]:
    """Maximise G over beta >= 0: cut where two lines meet until G touches them there."""
    left = _line(
        tops, bottoms, int(np.argmin(tops.heights)), int(np.argmin(bottoms.heights))
    )  # the slope of G at 0
    if left.slope <= 0:
        return left.height >= 0, Certificate((left.upper,), (left.lower,), (1,))
    right = _line(tops, bottoms, tops.farthest(), bottoms.farthest())
    if right.slope > 0:
        return True, None
    while True:
        beta = (right.height - left.height) / (left.slope - right.slope)
        (i, top), (j, bottom) = tops.lowest(beta), bottoms.lowest(beta)
        if top + bottom == left.height + left.slope * beta:  # exact: G touches both lines
            break
        line = _line(tops, bottoms, i, j)
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
