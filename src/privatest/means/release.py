"""The private mean and covariance of one sample, with its bounds mapped to [-1, 1]^d.

Proofs: docs/proofs/means.md, docs/proofs/covariance.md, docs/proofs/moments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.data.samples import Sample
from privatest.engines.sums import sum_rounding
from privatest.mechanisms.additive import (
    entries_deviation,
    entries_scale,
    linf_mean,
    linf_scale,
    noisy_entries,
)
from privatest.mechanisms.covariance import EdScales, covariance_ed, ed_scales
from privatest.mechanisms.moments import moment_scale, nearest_psd, release_moments
from privatest.statistics.moments import Moments, moments, moments_rounding

__all__ = [
    "MEAN_SHARE",
    "Plan",
    "Released",
    "centred",
    "cube_moments",
    "plan_release",
    "release_sample",
]

MEAN_SHARE = 0.7  # fraction of epsilon for the mean, in tests; the rest is for the covariance
ENTRIES_UP_TO = 3  # columns: noise on entries is nearer than on eigenvalues and axes, or as near
_BELOW = 1 - 1e-12  # parts are rounded down, so that they never sum to more than epsilon

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known about a release before any data is read.

    Attributes
    ----------
    n, dimension : int
        The numbers of rows and columns.
    rows_per_person : int
        The most rows that a person may have.
    budget : Budget
        What is spent on this sample.
    mean_scale : float
        Scale s of the noise on the mean: density exp(-|z|∞/s), or normal with deviation s.
    variance : float
        Variance of the noise on each entry of the mean.
    ed : EdScales or None
        Scales of the noise on eigenvalues and axes of the covariance, for rows of norm at most 1,
        if delta = 0 and there is one column, or more than three.
    entries : float
        Scale of the noise on the entries of the second moment, if delta = 0 and there are two or
        three columns.
    sigma_second : float
        Standard deviation of the noise on the second moment, if delta > 0.
    mean_share : float
        Fraction of epsilon for the mean, if delta = 0.
    """

    n: int
    dimension: int
    rows_per_person: int
    budget: Budget
    mean_scale: float
    variance: float
    ed: EdScales | None = None
    entries: float = 0.0
    sigma_second: float = 0.0
    mean_share: float = MEAN_SHARE

    @property
    def unbiased(self) -> float:
        """n/(n - 1), by which a covariance with divisor n is multiplied."""
        return self.n / (self.n - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """A private mean and covariance; everything here was paid for.

    Attributes
    ----------
    plan : Plan
        The noise.
    mean, covariance : ndarray
        What was released; the covariance has divisor n - 1.
    about : ndarray
        The point about which the second moment was taken; a function of ``mean``.
    """

    plan: Plan
    mean: Floats
    covariance: Floats
    about: Floats

    @property
    def unit(self) -> float:
        """The most that one row adds to the second moment."""
        return _reach(self.about) ** 2 / self.plan.n

    @property
    def second_scale(self) -> float:
        """Scale of the noise on the mean square of one column: Laplace's, or a deviation."""
        plan = self.plan
        return plan.sigma_second if plan.ed is None else self.unit * plan.ed.eigenvalues

    @property
    def ridge(self) -> float:
        """The size of the noise on the covariance; a statistic adds it to the diagonal."""
        if self.plan.budget.delta > 0:
            return self.plan.sigma_second * math.sqrt(self.plan.dimension / 2)
        return self._moment_noise / math.sqrt(2)

    @property
    def spread_noise(self) -> float:
        """Standard deviation of the noise on a variance: second moment minus squared mean."""
        variance = self.plan.variance
        square = 2 * float(np.linalg.norm(self.mean - self.about)) * math.sqrt(variance)
        return math.hypot(self._moment_noise, square, 4 * variance)

    @property
    def _moment_noise(self) -> float:
        """Standard deviation of the noise on the second moment in a direction."""
        plan = self.plan
        if plan.budget.delta > 0:
            return plan.sigma_second
        if plan.ed is None:
            return entries_deviation(plan.dimension, plan.entries)
        return plan.ed.deviation * self.unit


def plan_release(
    n: int,
    dimension: int,
    budget: Budget,
    rows_per_person: int,
    mean_share: float = MEAN_SHARE,
) -> Plan:
    """Choose the noise from public values only.

    Notes
    -----
    **Sensitivity** The mean moves by at most 2/n in each entry at once, the second moment as in
    :func:`privatest.mechanisms.additive.noisy_entries` or
    :func:`privatest.mechanisms.covariance.ed_scales`; with delta > 0 both together as in
    :func:`privatest.statistics.moments.joint_sensitivity`. Times ``rows_per_person``.
    """
    if budget.delta > 0:
        radius = math.sqrt(dimension)
        sigma, sigma_second = moment_scale(
            n, dimension, radius=radius, budget=budget, rows_per_person=rows_per_person
        )
        scales = sigma, sigma**2
        return Plan(n, dimension, rows_per_person, budget, *scales, sigma_second=sigma_second)
    mean_epsilon, epsilon = _shares(budget, mean_share)
    scale = linf_scale(_mean_sensitivity(n, dimension, rows_per_person), mean_epsilon)
    scales = scale, (dimension + 1) * (dimension + 2) / 3 * scale**2
    plan = Plan(n, dimension, rows_per_person, budget, *scales, mean_share=mean_share)
    if 1 < dimension <= ENTRIES_UP_TO:
        error = _entry_rounding(n, dimension)
        entries = entries_scale(n, epsilon=epsilon, rows_per_person=rows_per_person, error=error)
        return replace(plan, entries=entries)
    ed = ed_scales(
        n,
        dimension,
        epsilon=epsilon,
        rows_per_person=rows_per_person,
        error=_second_rounding(n, dimension),
    )
    return replace(plan, ed=ed)


def cube_moments(*samples: Sample) -> list[Moments]:
    """Return the moments of encoded rows, mapped from [0, 1]^d to [-1, 1]^d, in one pass."""
    dimension = samples[0].width
    return moments(*samples, psi=_cube, dimension=dimension, radius=math.sqrt(dimension))


def _cube(rows: Floats) -> Floats:
    cube: Floats = 2 * rows
    cube -= 1
    return cube


def release_sample(sample: Moments, plan: Plan, noise: NoiseSource) -> Released:
    """Release mean and covariance from the moments of rows in [-1, 1]^d.

    Notes
    -----
    **Sensitivity** :func:`plan_release`.

    **Privacy** Together they are private at ``plan.budget``: if delta = 0, 0.7 of epsilon goes to
    the mean and 0.3 to the second moment; otherwise one Gaussian mechanism releases both.
    """
    if plan.budget.delta > 0:
        released = release_moments(
            sample,
            radius=math.sqrt(plan.dimension),
            budget=plan.budget,
            noise=noise,
            rows_per_person=plan.rows_per_person,
        )
        about = np.zeros(plan.dimension)
        covariance = centred(released.second, released.mean, plan.variance)
        return Released(plan, released.mean, plan.unbiased * covariance, about)
    mean_epsilon, epsilon = _shares(plan.budget, plan.mean_share)
    mean = linf_mean(
        sample.mean,
        sensitivity=_mean_sensitivity(plan.n, plan.dimension, plan.rows_per_person),
        epsilon=mean_epsilon,
        noise=noise,
    )
    if plan.ed is None:
        second = noisy_entries(
            sample.second,
            n=plan.n,
            epsilon=epsilon,
            noise=noise,
            rows_per_person=plan.rows_per_person,
            error=_entry_rounding(plan.n, plan.dimension),
        )
        covariance = plan.unbiased * centred(second, mean, plan.variance)
        return Released(plan, mean, covariance, np.zeros_like(mean))
    about = _about(mean, plan)
    unit = _reach(about) ** 2 / plan.n
    second = unit * covariance_ed(
        _moved(sample, about) / unit,
        n=plan.n,
        epsilon=epsilon,
        noise=noise,
        rows_per_person=plan.rows_per_person,
        error=_second_rounding(plan.n, plan.dimension),
    )
    covariance = plan.unbiased * centred(second, mean - about, plan.variance)
    return Released(plan, mean, covariance, about)


def _moved(sample: Moments, about: Floats) -> Floats:
    """Return the second moment about a point, from that about 0: rows are read once."""
    cross = np.outer(about, sample.mean)
    return sample.second - cross - cross.T + np.outer(about, about)


def _about(mean: Floats, plan: Plan) -> Floats:
    """Return the point for the second moment: the released mean, if clearly off the centre.

    A mean far from the centre would become the leading axis of the second moment, and the noise
    on that axis would swamp the covariance. With one column there are no axes, and a moment
    about the centre needs less noise.
    """
    if plan.dimension == 1:
        return np.zeros(1)
    beyond = np.maximum(np.abs(mean) - 2 * math.sqrt(plan.variance), 0.0)
    return np.asarray(np.sign(mean) * np.minimum(beyond, 1.0))


def _reach(about: Floats) -> float:
    """Return the largest |x - about| over the cube, with a margin for rounding."""
    corner = 1 + np.abs(about)
    return math.sqrt(corner.dot(corner)) * (1 + 1e-12)


def centred(second: Floats, mean: Floats, variance: float) -> Floats:
    """Return the covariance from a noisy mean and second moment, for stacks along leading axes.

    The squared noise on the mean has expectation ``variance`` · I, which is added back.
    """
    square = mean[..., :, None] * mean[..., None, :]
    return nearest_psd(second - square + variance * np.eye(mean.shape[-1]))


def _shares(budget: Budget, mean_share: float) -> tuple[float, float]:
    epsilon = budget.pure_epsilon * _BELOW
    return mean_share * epsilon, (1 - mean_share) * epsilon


def _mean_sensitivity(n: int, dimension: int, rows_per_person: int) -> float:
    # an entry is at most 1, but its fixed point is that of rows of norm sqrt(d): cube_moments
    relative, fixed = sum_rounding(n, math.sqrt(dimension))
    slack = relative + fixed / n
    # the slack too for each row: a person's rows may lie in several samples, each with its own
    return (2 / n + 2 * slack) * rows_per_person * (1 + 1e-12)


def _entry_rounding(n: int, dimension: int) -> float:
    """Bound the rounding error of an entry of the second moment, by that of all of them."""
    return moments_rounding(n, math.sqrt(dimension), dimension)[1]


def _second_rounding(n: int, dimension: int) -> float:
    """Bound the rounding error of Σ x x', |x| <= 1, in the Frobenius norm.

    x = (y - a)/r with y and a in the cube, both of norm sqrt(d) at most, and r² >= d: the error of
    the second moment of y, twice sqrt(d) that of its mean, and a few roundings of each entry.
    """
    mean, second = moments_rounding(n, math.sqrt(dimension), dimension)
    moved = (second + 2 * math.sqrt(dimension) * mean) / dimension
    return n * (moved + 16 * (dimension + 1) * 2.0**-53)
