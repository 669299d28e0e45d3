"""Confidence intervals for Kendall's tau and Spearman's rho, from one noisy score.

The score is the sample's correlation times a public number, plus noise of a known law. The
sampling error is nearly normal in Fisher's scale, atanh(correlation), and its deviation is taken
to be that of a Gaussian copula with the same correlation, made a little wider:
docs/proofs/correlation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.intervals import Interval, side_alpha
from privatest.laws.law import Alternative
from privatest.laws.tulap import LatticeTulap

__all__ = ["Coefficient", "RankInterval", "kendall_deviation", "spearman_deviation"]

Coefficient = Literal["tau", "rho"]

# Copulas of t with 3 degrees of freedom vary more than a Gaussian one, by 1.17 and 1.14; tables
# of two by two less, by 0.93 and 0.94; skewed ones much more where dependence is strong. With
# factors a + b correlation⁴ all of them are covered between .93 and .99.
_WIDER = {"tau": (1.1, 0.3), "rho": (1.08, 0.35)}
_SMALL = 8.0  # over n²: with few rows tau is often ±1 or next to it, and no normal atanh is
_NODES = 199  # of the normal law
_EDGE = 1 - 1e-9  # atanh is finite up to here
_STEPS = 40


def kendall_deviation(tau: float, n: int) -> float:
    """Return the standard deviation of atanh(tau) in n rows with a Gaussian copula."""
    tau = min(max(tau, 1 / n - 1), 1 - 1 / n)  # closer to 1 are single pairs, not a spread
    projection = 1 / 9 - (2 / math.pi * math.asin(math.sin(math.pi * tau / 2) / 2)) ** 2
    spread = 1 - tau**2
    return math.sqrt(2 / (n * (n - 1)) * (spread + 2 * (n - 2) * projection)) / spread


def spearman_deviation(rho: float, n: int) -> float:
    """Return the standard deviation of atanh(rho) in n rows: Bonett and Wright (2000)."""
    return math.sqrt((1 + rho**2 / 2) / max(n - 3, 1))


@dataclass(frozen=True, slots=True)
class RankInterval:
    """What an interval needs: released and public numbers only.

    Attributes
    ----------
    coefficient : {"tau", "rho"}
        What is estimated.
    noisy : float
        The released score.
    tops : tuple of float
        The score of a correlation of 1: the least that noise on ties allows, the estimate, the
        most.
    n : int
        Number of rows.
    noise : LatticeTulap
        The law of the noise.
    alternative : {"two-sided", "greater", "less"}
        Which ends there are; a missing one is -1 or 1.
    spread : float
        How many times as much the correlation varies as without ties.
    rarities : pair of float
        (1 - 2p)²/(p (1 - p)) of each column if it has two values, else 0 or nearly so.
    """

    coefficient: Coefficient
    noisy: float
    tops: tuple[float, float, float]
    n: int
    noise: LatticeTulap
    alternative: Alternative
    spread: float = 1.0
    rarities: tuple[float, float] = (0.0, 0.0)

    @property
    def estimate(self) -> float:
        """The private correlation."""
        return min(max(self.noisy / self.tops[1], -1.0), 1.0)

    def __call__(self, level: float) -> Interval:
        """Return the correlations for which the released score is not in a tail."""
        side = side_alpha(level, self.alternative)
        low = -1.0 if self.alternative == "less" else _root(lambda c: self._above(c) - side)
        high = 1.0 if self.alternative == "greater" else _root(lambda c: side - self._below(c))
        low, high = min(low, self.estimate), max(high, self.estimate)
        return Interval.around(low, high, level, self._without_noise(side))

    def _deviation(self, correlation: float) -> float:
        formula = kendall_deviation if self.coefficient == "tau" else spearman_deviation
        factor, strong = _WIDER[self.coefficient]
        small = _SMALL / self.n**2 if self.coefficient == "tau" else 0.0
        wider = factor + small + strong * correlation**4
        return self.spread * wider * self._rare(correlation) * formula(correlation, self.n)

    def _rare(self, correlation: float) -> float:
        """Return how much wider tables of two by two are whose values are not equally frequent.

        The variance of phi (Yule), over that of equally frequent values.
        """
        (x, y), square = self.rarities, correlation**2
        more = abs(correlation) * (1 + square / 2) * math.sqrt(x * y) - 0.75 * square * (x + y)
        return math.sqrt(1 + max(more, 0.0) / max(1 - square, 0.05))

    def _scores(self, correlation: float) -> NDArray[np.float64]:
        """Return quantiles of the score without noise, for each number of ties."""
        inside = min(max(correlation, -_EDGE), _EDGE)
        sample = np.tanh(math.atanh(inside) + self._deviation(inside) * _normal_nodes())
        return np.outer(np.unique(self.tops), sample)

    def _above(self, correlation: float) -> float:
        """Return the probability of a score as high as the released one."""
        tails = self.noise.survival(self.noisy - self._scores(correlation))
        return float(tails.mean(axis=1).max())

    def _below(self, correlation: float) -> float:
        tails = self.noise.survival(self._scores(correlation) - self.noisy)
        return float(tails.mean(axis=1).max())

    def _without_noise(self, side: float) -> float:
        from scipy.special import ndtri  # noqa: PLC0415

        inside = min(max(self.estimate, -_EDGE), _EDGE)
        reach = -float(ndtri(side)) * self._deviation(inside)
        low, high = (math.tanh(math.atanh(inside) + sign * reach) for sign in (-1, 1))
        ends = {"two-sided": (low, high), "greater": (low, 1.0), "less": (-1.0, high)}
        return ends[self.alternative][1] - ends[self.alternative][0]


@lru_cache(maxsize=1)
def _normal_nodes() -> NDArray[np.float64]:
    from scipy.special import ndtri  # noqa: PLC0415

    nodes: NDArray[np.float64] = ndtri((np.arange(_NODES) + 0.5) / _NODES)
    return nodes


def _root(rising: Callable[[float], float]) -> float:
    """Return where a rising function passes 0 in [-1, 1], or the end that is nearest to it."""
    low, high = -1.0, 1.0
    if rising(low) >= 0:
        return low
    if rising(high) <= 0:
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
