"""Confidence intervals of any level from one release: post-processing, at a fixed public seed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.intervals import Interval, side_alpha
from privatest.data.domain import Box
from privatest.laws.law import Alternative
from privatest.means.bootstrap import Contrast
from privatest.means.inference import Calibration, Finding, estimates, infer, infer_one_column

__all__ = ["MeanIntervals"]

_HIGHEST = 0.99999  # a bootstrap needs at least 1/(1 - level) replicates

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeanIntervals:
    """From a level to the interval of a released mean or difference.

    Attributes
    ----------
    contrast : Contrast
        What was released.
    box : Box
        Public bounds, for the units.
    seed, n_bootstrap, calibration
        As in the test: the interval of level 1 - alpha is then that of the result.
    alternative : str or None
        Side of a t-test; None for simultaneous intervals of several columns.
    equal_tails : bool
        Whether each end misses half: a two-sided t-test takes |t| instead.
    """

    contrast: Contrast
    box: Box
    seed: int
    n_bootstrap: int
    calibration: Calibration
    alternative: Alternative | None = None
    equal_tails: bool = False

    def __call__(self, level: float) -> Interval:
        """Return the interval, or an array of simultaneous ones.

        Notes
        -----
        **Privacy** Post-processing of released and public numbers.
        """
        if level > _HIGHEST:
            raise ParameterError(f"confidence_level must be at most {_HIGHEST}.")
        shown = estimates(self.contrast, self.box, self._finding(1 - level))
        low, high = shown["lower"], shown["upper"]
        middle = shown["mean"] if "mean" in shown else shown["difference"]
        width = self._without_noise(level, shown["covariance"], low, middle, high)
        if self.alternative is None:
            return Interval.around(low, high, level, width)
        return Interval.around(float(low[0]), float(high[0]), level, float(width[0]))

    def _finding(self, alpha: float) -> Finding:
        if self.alternative is None:
            return infer(self.contrast, np.zeros_like(self.box.half), **self._options(alpha))
        if not self.equal_tails:
            return self._side(self.alternative, alpha)
        below, above = self._side("greater", alpha / 2), self._side("less", alpha / 2)
        return Finding(below.statistic, 1.0, below.radius, below.lower, above.upper)

    def _side(self, alternative: Alternative, alpha: float) -> Finding:
        options = self._options(alpha)
        return infer_one_column(self.contrast, 0.0, alternative=alternative, **options)

    def _options(self, alpha: float) -> dict[str, Any]:
        least = math.ceil(1 / alpha)
        return {
            "alpha": alpha,
            "calibration": self.calibration,
            "n_bootstrap": max(self.n_bootstrap, least),
            "seed": self.seed,
        }

    def _without_noise(
        self, level: float, covariance: Floats, low: Floats, middle: Floats, high: Floats
    ) -> Floats:
        """Return the width of the classical t interval, Bonferroni's for several columns."""
        from scipy.special import stdtrit  # noqa: PLC0415

        side = self.alternative or "two-sided"
        freedom = sum(sample.plan.n - 1 for sample in self.contrast.samples)
        tail = side_alpha(level, side) / len(self.box.half)
        reach = stdtrit(freedom, 1 - tail) * np.sqrt(np.diagonal(covariance) / self.contrast.size)
        if side == "two-sided":
            return np.asarray(2 * reach)
        # the other end is a public bound, with or without noise
        return np.asarray(reach + (high - middle if side == "greater" else middle - low))
