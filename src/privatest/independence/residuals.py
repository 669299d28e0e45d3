"""Two private regressions on features of z, and what they leave of x and of y.

All of it in the cube: x, y and features lie in [-1, 1]. Proof: docs/proofs/conditional.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.means.bootstrap import replicate_covariances
from privatest.means.release import Released

__all__ = ["Floats", "Regressions", "features", "regress"]

_REACH = 3.0  # standard deviations at which residuals are clipped

Floats = NDArray[np.float64]


def features(rows: Floats, domain: Domain, degree: int) -> Floats:
    """Return Legendre polynomials of numeric columns, and ±1 for each category but the first."""
    found = []
    for column, levels in enumerate(domain.levels):
        values = rows[:, column]
        if levels:
            found += [np.where(values == code, 1.0, -1.0) for code in range(1, levels)]
        else:
            powers = np.polynomial.legendre.legvander(2 * values - 1, degree)[:, 1:]
            found += list(np.clip(powers, -1.0, 1.0).T)
    return np.column_stack(found)


@dataclass(frozen=True, slots=True, eq=False)
class Regressions:
    """Two regressions, from what was released.

    Attributes
    ----------
    released : Released
        Private mean and covariance of features, x and y.
    slopes : ndarray of shape (features, 2)
        Of x and of y.
    limits : ndarray of shape (2,)
        Where the residuals of each are clipped.
    """

    released: Released
    slopes: Floats
    limits: Floats

    @property
    def unit(self) -> float:
        """The largest product of residuals."""
        return float(np.prod(self.limits))

    def products(self, rows: Floats, both: Floats) -> Floats:
        """Return the clipped product of residuals of each row, over its largest size.

        A function of single rows and released numbers, in [-1, 1].
        """
        size = len(self.slopes)
        mean = self.released.mean
        fitted = np.tile(mean[size:], (len(rows), 1))
        for column, slopes in enumerate(self.slopes):
            # no matrix product: its last bits may depend on where a row is
            fitted += (rows[:, column] - mean[column])[:, None] * slopes
        left = np.clip(both - np.clip(fitted, -1.0, 1.0), -self.limits, self.limits)
        return np.clip(left[:, 0] * left[:, 1] / self.unit, -1.0, 1.0)

    def unexplained(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw the mean product of what regressions with such noise fail to explain.

        Each draw takes a covariance as it may have been released for the true one. With g = b - A
        slope for x and for y, the mean product of the errors of two regressions is g_x' A^-1 g_y.
        """
        size, plan = len(self.slopes), self.released.plan
        drawn = replicate_covariances(self.released, count, rng)
        inner = drawn[:, :size, :size]
        gaps = drawn[:, :size, size:] - inner @ self.slopes
        solved = np.linalg.solve(inner + self.released.ridge * np.eye(size), gaps[:, :, 1:])
        slope_part = np.sum(gaps[:, :, 0] * solved[:, :, 0], axis=1)
        # the intercepts: noise of the means, of features too
        weights = np.sqrt(plan.variance * (1 + np.sum(self.slopes**2, axis=0)))
        level_part = np.prod(rng.standard_normal((count, 2)) * weights, axis=1)
        result: Floats = (slope_part + level_part) / self.unit
        return result


def regress(released: Released) -> Regressions:
    """Return the regressions of the last two columns on the others; post-processing."""
    size = len(released.mean) - 2
    covariance = released.covariance
    inner, across = covariance[:size, :size], covariance[:size, size:]
    solved = np.linalg.solve(inner + released.ridge * np.eye(size), across)
    slopes = np.asarray(solved, dtype=np.float64)
    whole = np.diagonal(covariance)[size:]
    left = whole - 2 * np.sum(slopes * across, axis=0) + np.sum(slopes * (inner @ slopes), axis=0)
    # a variance that is lost in the noise is taken to be as large as the noise
    spread = np.sqrt(np.maximum(left, 0.0) + released.ridge)
    return Regressions(released, slopes, np.minimum(_REACH * spread, 2.0))
