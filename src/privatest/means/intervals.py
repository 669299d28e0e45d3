"""Confidence intervals of any level from one release: post-processing, at a fixed public seed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.intervals import Interval, side_alpha
from privatest.data.domain import Box
from privatest.laws.law import Alternative
from privatest.means.bootstrap import Contrast
from privatest.means.inference import Calibration, Finding, estimates, infer, infer_one_column

__all__ = ["HIGHEST_LEVEL", "MeanIntervals", "TIntervals"]

HIGHEST_LEVEL = 0.99999  # a bootstrap needs at least 1/(1 - level) replicates

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeanIntervals:
    """From a level to simultaneous intervals of released means or differences.

    Attributes
    ----------
    contrast : Contrast
        What was released.
    box : Box
        Public bounds, for the units.
    seed, n_bootstrap
        As in the test: the interval of level 1 - alpha is then that of the result.
    """

    contrast: Contrast
    box: Box
    seed: int
    n_bootstrap: int

    def __call__(self, level: float) -> Interval:
        """Return an array of simultaneous intervals.

        Notes
        -----
        **Privacy** Post-processing of released and public numbers.
        """
        alpha = 1 - _checked(level)
        count = max(self.n_bootstrap, math.ceil(1 / alpha))
        hypothesis = np.zeros_like(self.box.half)
        found = infer(self.contrast, hypothesis, alpha=alpha, n_bootstrap=count, seed=self.seed)
        shown = estimates(self.contrast, self.box, found)
        reach = _classical_reach(self.contrast, shown["covariance"], level, "two-sided")
        return Interval.around(shown["lower"], shown["upper"], level, 2 * reach)


@dataclass(frozen=True, slots=True, eq=False)
class TIntervals:
    """From a level to the interval of a t-test's mean or difference.

    Attributes
    ----------
    contrast, box
        As in :class:`MeanIntervals`.
    calibration, alternative : str
        As in the test.
    equal_tails : bool
        Whether each end misses half: a two-sided t-test takes |t| instead.
    """

    contrast: Contrast
    box: Box
    calibration: Calibration
    alternative: Alternative
    equal_tails: bool = False

    def __call__(self, level: float) -> Interval:
        """Return the interval.

        Notes
        -----
        **Privacy** Post-processing of released and public numbers.
        """
        shown = estimates(self.contrast, self.box, self._finding(1 - _checked(level)))
        low, high = float(shown["lower"][0]), float(shown["upper"][0])
        middle = float((shown["mean"] if "mean" in shown else shown["difference"])[0])
        side = self.alternative
        reach = float(_classical_reach(self.contrast, shown["covariance"], level, side)[0])
        if side == "two-sided":
            return Interval.around(low, high, level, 2 * reach)
        # the other end is a public bound, with or without noise
        open_end = high - middle if side == "greater" else middle - low
        return Interval.around(low, high, level, reach + open_end)

    def _finding(self, alpha: float) -> Finding:
        if not self.equal_tails:
            return self._side(self.alternative, alpha)
        below, above = self._side("greater", alpha / 2), self._side("less", alpha / 2)
        return Finding(below.statistic, 1.0, below.radius, below.lower, above.upper)

    def _side(self, alternative: Alternative, alpha: float) -> Finding:
        return infer_one_column(
            self.contrast, 0.0, alpha=alpha, alternative=alternative, calibration=self.calibration
        )


def _checked(level: float) -> float:
    if level > HIGHEST_LEVEL:
        raise ParameterError(f"confidence_level must be at most {HIGHEST_LEVEL}.")
    return level


def _classical_reach(
    contrast: Contrast, covariance: Floats, level: float, side: Alternative
) -> Floats:
    """Return half the width of the t interval without noise, Bonferroni's for several columns."""
    from scipy.special import stdtrit  # noqa: PLC0415

    tail = side_alpha(level, side) / len(covariance)
    quantile = stdtrit(contrast.freedom, 1 - tail)
    reach: Floats = quantile * np.sqrt(np.diagonal(covariance) / contrast.size)
    return reach
