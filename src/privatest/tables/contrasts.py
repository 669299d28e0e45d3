"""Difference and ratio of two shares, from intervals of each: post-processing.

MOVER (Newcombe 1998; Donner and Zou 2012) recovers from the ends of an interval how uncertain its
estimate is on that side, and adds up the squares.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.core.intervals import Interval, side_alpha
from privatest.laws.law import Alternative
from privatest.tables.public_shares import Shares, Wanted

__all__ = ["ReleasedShares", "difference_ends", "difference_interval", "equivalence", "ratio_ends"]

_HALVINGS = 16  # of the logarithm of a level


class ReleasedShares(Protocol):
    """Released shares of groups, with public or with private sizes."""

    @property
    def finest(self) -> float:
        """The smallest level at which ends can be computed."""

    @property
    def estimates(self) -> NDArray[np.float64]:
        """Shares in [0, 1]."""

    @property
    def scarce(self) -> bool:
        """Whether a group has few successes or few failures, by what was released."""

    def ends(self, side: float, wanted: Wanted = "both") -> Shares:
        """Return shares as if those beyond 0 and 1 existed; each end is missed with ``side``."""

    def within(self, side: float) -> Shares:
        """Return shares in [0, 1]."""

    def without_noise(self, side: float) -> Shares:
        """Return shares as if nothing had noise."""


def difference_ends(shares: Shares) -> tuple[float, float]:
    """Return the ends for the first share minus the second, within [-1, 1]."""
    middle, low, high = (part.tolist() for part in shares)
    difference = middle[0] - middle[1]
    down = math.hypot(middle[0] - low[0], high[1] - middle[1])
    up = math.hypot(high[0] - middle[0], middle[1] - low[1])
    return min(max(difference - down, -1.0), 1.0), min(max(difference + up, -1.0), 1.0)


def difference_interval(
    released: ReleasedShares, alternative: Alternative, level: float
) -> Interval:
    """Return the confidence interval of the difference; a one-sided one ends at -1 or 1."""
    side = side_alpha(level, alternative)
    low, high = _opened(difference_ends(released.ends(side)), alternative)
    first, last = _opened(difference_ends(released.without_noise(side)), alternative)
    return Interval.around(low, high, level, last - first)


def _opened(ends: tuple[float, float], alternative: Alternative) -> tuple[float, float]:
    return (
        -1.0 if alternative == "less" else ends[0],
        1.0 if alternative == "greater" else ends[1],
    )


def ratio_ends(shares: Shares) -> tuple[float, float | None]:
    """Return the ends for the first share over the second; None is infinity.

    They are the r at which an end of the interval for p1 - r p2 is 0.
    """
    (p1, p2), (low1, low2), (high1, high2) = (part.tolist() for part in shares)
    lower = _root(p1, p2, low1, high2, -1)
    upper = _root(p1, p2, high1, low2, 1)
    return lower or 0.0, upper


def _root(p1: float, p2: float, end1: float, end2: float, sign: int) -> float | None:
    """Solve (p1 - r p2)² = (p1 - end1)² + r² (p2 - end2)²."""
    inside = (p1 * p2) ** 2 - end1 * end2 * (2 * p1 - end1) * (2 * p2 - end2)
    root = math.sqrt(max(inside, 0.0))
    # the two forms of the solution, of which one has no cancellation and no division by 0
    if sign < 0:
        below = p1 * p2 + root
        return end1 * (2 * p1 - end1) / below if below > 0 else 0.0
    if end2 <= 0:
        return None
    return (p1 * p2 + root) / (end2 * (2 * p2 - end2))


def equivalence(released: ReleasedShares, low: float, high: float) -> float:
    """Return the larger of two p-values: that the difference is at most ``low``, at least ``high``.

    Each is the level at which a one-sided interval just ends there. Where successes or failures
    are scarce, MOVER misjudges a single one (level .07): there the ends of both shares count in
    full, each at half the level, which is valid by Bonferroni's inequality.
    """
    return max(_level_at(released, low, 0), _level_at(released, high, 1))


def _level_at(released: ReleasedShares, target: float, end: int) -> float:
    """Return the smallest level at which an end of the interval is inside of ``target``."""
    sign = -1.0 if end == 0 else 1.0
    wanted: Wanted = "least difference" if end == 0 else "largest difference"

    def end_at(level: float) -> float:
        side = level / 2 if released.scarce else level
        shares = released.ends(side, wanted)
        if released.scarce:
            _, (low1, low2), (high1, high2) = (part.tolist() for part in shares)
            return float(low1 - high2 if end == 0 else high1 - low2)
        return difference_ends(shares)[end]

    middle = end_at(0.5)
    if sign * (target - middle) <= 0:
        return 1.0  # at least one half; equivalence is not shown at any level that is used
    finest = math.log(released.finest)

    def inside(level: float) -> bool:
        return sign * (target - end_at(level)) > 0

    good, bad = math.log(0.5), finest
    if inside(math.exp(finest)):
        return math.exp(finest)
    for _ in range(_HALVINGS):
        half = 0.5 * (good + bad)
        good, bad = (half, bad) if inside(math.exp(half)) else (good, half)
    return math.exp(good)
