"""From released means of several groups to F, its p-value and intervals: post-processing only.

The parametric bootstrap of :mod:`privatest.means.bootstrap`, with its scenarios, for k groups.
Proof: docs/proofs/means.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.intervals import Interval
from privatest.core.validation import public_generator
from privatest.data.domain import Box
from privatest.means.bootstrap import Contrast, Scenario, redraw, scenarios
from privatest.means.inference import Calibration, upper_point
from privatest.means.samples import in_units

__all__ = ["Found", "GroupIntervals", "GroupMeans", "infer_groups"]

_HIGHEST = 0.99999

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GroupMeans(Contrast):
    """Released means of k groups of one column; ``size`` is the number of rows of the smallest."""

    @property
    def sizes(self) -> Floats:
        """Public numbers of rows."""
        return np.array([sample.plan.n for sample in self.samples], dtype=np.float64)

    @property
    def extra(self) -> float:
        """Variance that noise adds to the mean of the smallest group, times its size; ridge."""
        noise = max(sample.plan.variance for sample in self.samples)
        ridges = zip(self.weights, self.samples, strict=True)
        return self.size * noise + sum(weight * sample.ridge for weight, sample in ridges)

    def variances(self, own: Floats) -> Floats:
        """Return the variance of each released mean, noise included, from variances of rows.

        Groups are along the last axis. Equal variances are pooled, divisor N - k.
        """
        noise = np.array([sample.plan.variance for sample in self.samples])
        ridge = np.array([sample.ridge for sample in self.samples])
        sizes = self.sizes
        if self.equal:
            freedom = sizes.sum() - len(sizes)
            pooled = ((own + ridge) * sizes).sum(axis=-1, keepdims=True) / freedom
            return np.asarray(pooled / sizes + noise)
        return np.asarray((own + ridge) / (sizes - 1) + noise)

    @property
    def means(self) -> Floats:
        """The released means, in [-1, 1] up to noise."""
        return np.array([sample.mean[0] for sample in self.samples])

    @property
    def own(self) -> Floats:
        """The released variances of rows."""
        return np.array([sample.covariance[0, 0] for sample in self.samples])


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """F with its p-value, and how far simultaneous intervals of the means reach."""

    statistic: float
    pvalue: float
    reach: Floats


def f_value(means: Floats, variances: Floats) -> Floats:
    """F = Σ w (m - m̄)²/(k - 1), w = 1/variance and m̄ the mean with these weights.

    Without noise and with equal variances it is the classical F; for two groups it is t².
    """
    weights = 1 / variances
    middle = (weights * means).sum(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True)
    spread = (weights * np.square(means - middle)).sum(axis=-1)
    value: Floats = spread / (means.shape[-1] - 1)
    return value


def infer_groups(
    groups: GroupMeans, *, alpha: float, calibration: Calibration, n_bootstrap: int, seed: int
) -> Found:
    """Test whether all groups have the same mean.

    Notes
    -----
    **Sensitivity** None: this uses released values only.

    **Privacy** Post-processing.
    """
    variances = groups.variances(groups.own)
    observed, errors = float(f_value(groups.means, variances)), np.sqrt(variances)
    if calibration == "asymptotic":
        from scipy.special import chdtrc, ndtri  # noqa: PLC0415

        freedom = len(errors) - 1
        point = -float(ndtri(alpha / (2 * len(errors))))
        return Found(observed, float(chdtrc(freedom, observed * freedom)), point * errors)
    pvalue, point = 0.0, 0.0
    for scenario in scenarios(groups, rare=calibration == "bootstrap"):
        deviations, drawn = _replicate(groups, scenario, n_bootstrap, seed)
        values = f_value(deviations, drawn)
        pvalue = max(pvalue, float((1 + np.sum(values >= observed)) / (n_bootstrap + 1)))
        largest = np.max(np.abs(deviations) / np.sqrt(drawn), axis=1)
        point = max(point, upper_point(largest, alpha))
    return Found(observed, pvalue, point * errors)


def _replicate(
    groups: GroupMeans, scenario: Scenario, count: int, seed: int
) -> tuple[Floats, Floats]:
    """Redraw the release of every group: deviations of the means, and their variances."""
    rng, rare = public_generator(seed), scenario.rare
    deviations, own = np.empty((count, len(groups.samples))), np.empty((count, len(groups.samples)))
    for index, (sample, covariance) in enumerate(
        zip(groups.samples, scenario.covariances, strict=True)
    ):
        mine = rare if rare and rare.sample == index else None
        moved, covariances = redraw(sample, covariance, mine, count, rng)
        deviations[:, index], own[:, index] = moved[:, 0], covariances[:, 0, 0]
    return deviations, groups.variances(own)


@dataclass(frozen=True, slots=True, eq=False)
class GroupIntervals:
    """From a level to simultaneous intervals of the means; released and public numbers only."""

    groups: GroupMeans
    box: Box
    seed: int
    n_bootstrap: int
    calibration: Calibration

    def __call__(self, level: float) -> Interval:
        """Return the intervals, an array of them."""
        from scipy.special import stdtrit  # noqa: PLC0415

        if level > _HIGHEST:
            raise ParameterError(f"confidence_level must be at most {_HIGHEST}.")
        alpha, groups, half = 1 - level, self.groups, float(self.box.half[0])
        count = max(self.n_bootstrap, math.ceil(1 / alpha))
        found = infer_groups(
            groups, alpha=alpha, calibration=self.calibration, n_bootstrap=count, seed=self.seed
        )
        low, high = self.ends(found)
        sizes = groups.sizes
        freedom = sizes.sum() - len(sizes)
        spread = (groups.own * sizes).sum() / freedom if groups.equal else groups.own
        quantile = stdtrit(freedom, 1 - alpha / (2 * len(sizes)))
        without_noise = 2 * half * quantile * np.sqrt(spread / sizes)
        return Interval.around(low, high, level, without_noise)

    def ends(self, found: Found) -> tuple[Floats, Floats]:
        """Return the ends in the units of the data, cut at the public bounds."""
        low, high = (np.clip(self.groups.means + sign * found.reach, -1.0, 1.0) for sign in (-1, 1))
        return in_units(self.box, low), in_units(self.box, high)
