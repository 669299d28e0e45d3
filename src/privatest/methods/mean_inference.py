"""The private mean and covariance of one sample, with its bounds mapped to [-1, 1]^d.

Proofs: docs/proofs/means.md, docs/proofs/covariance.md, docs/proofs/moments.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Budget
from privatest.core.results import Interval, Outcome, side_alpha
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.encoding import (
    Sample,
    TwoSamples,
    encode_pairs,
    encode_sample,
    encode_several,
    refuse_wide_bounds,
    rows_of_a_person,
)
from privatest.data.reading import bounds_of_measurements
from privatest.data.schema import Bounds, Box, NumericColumn, Schema
from privatest.data.sources import Joined
from privatest.data.summaries import sum_rounding
from privatest.mechanisms.additive import (
    entries_deviation,
    entries_scale,
    entry_noise,
    linf_mean,
    linf_scale,
    noisy_entries,
)
from privatest.mechanisms.covariance import (
    EdScales,
    covariance_ed,
    ed_replicates,
    ed_scales,
    less_a_square,
)
from privatest.mechanisms.moments import moment_scale, nearest_psd, release_moments, svec_noise
from privatest.numerics.laws import Alternative
from privatest.numerics.moments import (
    Moments,
    moments,
    moments_rounding,
    scatter_draws,
    spread_steps,
)
from privatest.numerics.permutation import parallel

MEAN_SHARE = 0.7  # fraction of epsilon for the mean, in tests; the rest is for the covariance
ENTRIES_UP_TO = 3  # columns: noise on entries is nearer than on eigenvalues and axes, or as near
_BELOW = 1 - 1e-12  # parts are rounded down, so that they never sum to more than epsilon


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
    :func:`privatest.numerics.moments.joint_sensitivity`. Times ``rows_per_person``.
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


# The law of Hotelling's statistic under the null hypothesis, from released values alone.
#
# A parametric bootstrap: normal samples like the released ones are drawn (only their sufficient
# statistics are), the whole private release is run on them, and the statistic is computed around
# the released means. It uses no data, so it costs nothing. Dunsche, Kutta and Dette (2022),
# algorithm 3, with the covariance mechanism rerun in each replicate.
#
# The variance is known only up to noise. So the statistic is redrawn with larger variances too, and
# the largest p-value counts (as in Berger and Boos, 1994). The statistic is studentized: where
# noise is small these scenarios agree. Each replicate also has the statistic without noise, whose
# law is the classical one: the difference of the two counts is added to the classical p-value, so
# that as noise vanishes the p-value becomes exactly that of the classical test
# (:class:`NullDraws`). Proof: docs/proofs/means.md.


_STACK = 1 << 18  # matrix entries processed at a time
_FEWEST = 19  # draws from which a correlation is taken

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A mean or a difference of two means, and how covariances are pooled for it.

    Attributes
    ----------
    samples : tuple of Released
        One or two.
    weights : tuple of float
        Weights of their covariances; they sum to 1.
    size : float
        n, or n m/(n + m): the covariance of the contrast is the pooled one over this.
    equal : bool
        Whether the samples are assumed to have the same covariance.
    """

    samples: tuple[Released, ...]
    weights: tuple[float, ...]
    size: float
    equal: bool = True

    @property
    def value(self) -> Floats:
        """The private mean, or the first minus the second."""
        means = [sample.mean for sample in self.samples]
        return means[0] if len(means) == 1 else means[0] - means[1]

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the pooled covariance."""
        return sum(sample.plan.n - 1 for sample in self.samples)

    @property
    def has_classical_law(self) -> bool:
        """Whether t² of normal rows without noise has Hotelling's law: one covariance, pooled."""
        return self.equal and self.freedom >= len(self.value)

    def classical_survival(self, values: Floats) -> Floats:
        """Return P(t² >= value) without noise: (f - d + 1)/(f d) t² is F with d and f - d + 1."""
        from scipy.special import fdtrc  # noqa: PLC0415

        dimension = len(self.value)
        rest = self.freedom - dimension + 1
        survival: Floats = fdtrc(dimension, rest, values * rest / (self.freedom * dimension))
        return survival

    @property
    def extra(self) -> float:
        """Variance that noise adds to each entry, and the ridge; public."""
        noise = self.size * sum(sample.plan.variance for sample in self.samples)
        ridges = zip(self.weights, self.samples, strict=True)
        return noise + sum(weight * sample.ridge for weight, sample in ridges)

    def pooled(self, covariances: list[Floats]) -> Floats:
        """Return the weighted mean of covariances, one for each sample, or stacks of them."""
        return sum(
            (weight * each for weight, each in zip(self.weights, covariances, strict=True)),
            start=np.zeros_like(covariances[0]),
        )

    def scale(self, covariances: list[Floats]) -> Floats:
        """Return S, pooled covariance plus noise: (3.1) of the paper with the factor it lacks."""
        pooled = self.pooled(covariances)
        return pooled + self.extra * np.eye(pooled.shape[-1])

    @property
    def released_covariance(self) -> Floats:
        """The pooled private covariance."""
        return self.pooled([sample.covariance for sample in self.samples])

    @property
    def released_scale(self) -> Floats:
        """S of the released covariances."""
        return self.scale([sample.covariance for sample in self.samples])


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A population that may have produced the release: covariances, one for each sample."""

    covariances: tuple[Floats, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Redrawn:
    """Releases of simulated samples: deviations of means, and covariances, a stack of each.

    ``white_mean`` and ``white_covariance`` are those of the same rows before noise and before
    they got their covariance: of standard normal rows.
    """

    deviation: Floats
    covariance: Floats
    white_mean: Floats
    white_covariance: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """Bootstrap draws: deviations of the contrast, and the diagonal of S and t² of each.

    ``classical`` is t² of the same samples without noise; None where that has no exact law.
    """

    deviations: Floats
    diagonals: Floats
    statistics: Floats
    classical: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NullDraws:
    """Draws of a statistic under the null hypothesis, with the classical law as control variate.

    The p-value of t is (1 + #{T* >= t})/(B + 1) + c (P(t) - #{T0* >= t}/(B + 1)), where T0* is the
    statistic of the same simulated sample without noise, P the survival function of its classical
    law, and c the correlation of the two statistics' roots: 1 where there is hardly any noise, and
    taken as 0 below one half, where noise decides. It is made monotone; without a classical law it
    is the usual rank.

    Attributes
    ----------
    values : ndarray
        T*.
    classical : ndarray or None
        T0*.
    law : callable or None
        P, vectorised.
    """

    values: Floats
    classical: Floats | None = None
    law: Callable[[Floats], Floats] | None = None

    def _levels(self, values: Floats) -> Floats:
        """Return the p-values of ascending values: a larger one never has a larger p-value."""
        count = len(self.values)
        above = count - np.searchsorted(np.sort(self.values), values, side="left")
        levels = (1.0 + above) / (count + 1)
        if self.classical is not None and self.law is not None:
            matched = count - np.searchsorted(np.sort(self.classical), values, side="left")
            levels = levels + self._shared * (self.law(values) - matched / (count + 1))
        monotone = np.maximum.accumulate(levels[::-1])[::-1]
        return np.clip(monotone, 1 / (count + 1), 1.0)

    @property
    def _shared(self) -> float:
        """How much of the simulation error the draws without noise share."""
        if self.classical is None or len(self.values) < _FEWEST:
            return 0.0
        found = np.corrcoef(np.sqrt(self.values), np.sqrt(self.classical))[0, 1]
        return float(found) if found > 0.5 else 0.0

    def pvalue(self, observed: float) -> float:
        """Return the p-value of a statistic; never below 1/(B + 1)."""
        larger = np.sort(self.values[self.values > observed])
        return float(self._levels(np.append(observed, larger))[0])

    def critical(self, alpha: float) -> float:
        """Return the largest draw whose p-value is above alpha: what is rejected exceeds it."""
        ordered = np.sort(self.values)
        place = int(np.sum(self._levels(ordered) > alpha))
        return float(ordered[place - 1]) if place else -math.inf


def upper_point(values: Floats, alpha: float) -> float:
    """Return the critical value of draws that have no classical law."""
    # (1 + #{v >= t})/(count + 1) <= alpha if and only if t is above the k-th largest
    k = math.floor(alpha * (len(values) + 1) + 1e-9)
    return float(np.partition(values, len(values) - k)[len(values) - k])


def statistic(deviations: Floats, scales: Floats, size: float) -> Floats:
    """Hotelling's t² = size · w' S^-1 w, for stacks along the leading axes."""
    solved = np.linalg.solve(scales, deviations[..., None])[..., 0]
    result: Floats = size * np.sum(deviations * solved, axis=-1)
    return result


def replicate(
    contrast: Contrast, scenario: Scenario, count: int, rng: np.random.Generator
) -> Replicates:
    """Draw deviations of the contrast from its released value, in a scenario."""
    dimension = len(contrast.value)
    block = max(1, _STACK // dimension**2)
    counts = [min(block, count - start) for start in range(0, count, block)]

    def part(job: tuple[int, np.random.Generator]) -> Replicates:
        return _replicate_block(contrast, scenario, *job)

    # each block has a stream of its own: the draws do not depend on the number of threads
    jobs = zip(counts, rng.spawn(len(counts)), strict=True)
    parts = list(parallel(part, jobs, count * dimension**3))
    if len(parts) == 1:
        return parts[0]
    without = [part.classical for part in parts if part.classical is not None]
    return Replicates(
        np.concatenate([part.deviations for part in parts]),
        np.concatenate([part.diagonals for part in parts]),
        np.concatenate([part.statistics for part in parts]),
        np.concatenate(without) if without else None,
    )


def replicate_covariances(sample: Released, count: int, rng: np.random.Generator) -> Floats:
    """Draw private covariances of samples like the released one."""
    block = max(1, _STACK // sample.plan.dimension**2)
    parts = [
        redraw(sample, sample.covariance, min(block, count - start), rng).covariance
        for start in range(0, count, block)
    ]
    return np.concatenate(parts)


def _replicate_block(
    contrast: Contrast, scenario: Scenario, count: int, rng: np.random.Generator
) -> Replicates:
    drawn = [
        redraw(sample, covariance, count, rng)
        for sample, covariance in zip(contrast.samples, scenario.covariances, strict=True)
    ]
    deviations = _difference([each.deviation for each in drawn])
    scales = contrast.scale([each.covariance for each in drawn])
    diagonals = np.diagonal(scales, axis1=1, axis2=2)
    values = statistic(deviations, scales, contrast.size)
    if not contrast.has_classical_law:
        return Replicates(deviations, diagonals, values)
    # t² does not change when all rows are multiplied by a matrix
    shift = _difference([each.white_mean for each in drawn])
    pooled = contrast.pooled([each.white_covariance for each in drawn])
    return Replicates(deviations, diagonals, values, statistic(shift, pooled, contrast.size))


def _difference(means: list[Floats]) -> Floats:
    return means[0] if len(means) == 1 else means[0] - means[1]


def redraw(sample: Released, covariance: Floats, count: int, rng: np.random.Generator) -> Redrawn:
    """Run the release on simulated normal samples with this covariance."""
    plan = sample.plan
    if plan.dimension == 1:  # as NumPy would find, at a tenth of the time
        root = np.sqrt(np.maximum(covariance, 0.0))
    else:
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    white_mean = rng.standard_normal((count, plan.dimension)) / math.sqrt(plan.n)
    white = scatter_draws(np.eye(plan.dimension), plan.n, count, rng) / plan.n
    noise = _mean_noise(plan, count, rng)
    shift = white_mean @ root.T
    offset = sample.mean + shift - sample.about
    second = root @ white @ root.T + offset[:, :, None] * offset[:, None, :]
    noisy = _noisy_covariance(second, offset + noise, sample, rng)
    return Redrawn(shift + noise, noisy, white_mean, plan.unbiased * white)


def _mean_noise(plan: Plan, count: int, rng: np.random.Generator) -> Floats:
    shape = (count, plan.dimension)
    if plan.budget.delta > 0:
        return rng.normal(scale=plan.mean_scale, size=shape)
    # density exp(-|z|∞/s): the radius is Gamma(d + 1, s), the point uniform in its cube
    radius = rng.gamma(plan.dimension + 1, plan.mean_scale, size=(count, 1))
    return radius * rng.uniform(-1, 1, size=shape)


def _noisy_covariance(
    second: Floats, mean: Floats, sample: Released, rng: np.random.Generator
) -> Floats:
    """Release second moments anew, and subtract the squares of noisy means."""
    plan = sample.plan
    if plan.ed is None:
        noise = (
            svec_noise(plan.dimension, plan.sigma_second, rng, len(second))
            if plan.budget.delta > 0
            else entry_noise(plan.dimension, plan.entries, len(second), rng)
        )
        return plan.unbiased * centred(second + noise, mean, plan.variance)
    unit = sample.unit
    values, axes = ed_replicates(second / unit, plan.ed, rng)
    return plan.unbiased * less_a_square(unit * values + plan.variance, axes, mean)


def scenarios(contrast: Contrast) -> list[Scenario]:
    """Return covariances as released, and inflated by some deviations of noise and sampling.

    Only those that matter at these sizes and this noise; post-processing.
    """
    smallest = float(np.linalg.eigvalsh(contrast.released_scale)[0])
    parts = _pooled_parts(contrast) if contrast.equal else _own_parts(contrast)
    largest = max(noise for _, noise, _ in parts)
    return [
        Scenario(tuple(_larger(step, *part) for part in parts))
        for step in spread_steps(len(contrast.value), largest, smallest)
    ]


Part = tuple[Floats, float, int]  # covariance, standard deviation of its noise, degrees of freedom


def _own_parts(contrast: Contrast) -> list[Part]:
    return [(each.covariance, each.spread_noise, each.plan.n - 1) for each in contrast.samples]


def _pooled_parts(contrast: Contrast) -> list[Part]:
    own = _own_parts(contrast)
    noise = math.hypot(*(w * noise for w, (_, noise, _) in zip(contrast.weights, own, strict=True)))
    freedom = sum(each for _, _, each in own)
    return [(contrast.released_covariance, noise, freedom)] * len(own)


def _larger(step: float, covariance: Floats, noise: float, freedom: int) -> Floats:
    grown = covariance + step * noise * np.eye(len(covariance))
    return grown * (1 + step * math.sqrt(2 / freedom))


# Samples of numeric columns with public bounds, and the units that estimates are shown in.


BY_SIZES = "the noise and the statistic need the group sizes"


def numeric_sample(x: Any, bounds: Bounds) -> Sample:
    """Read a sample of numeric columns with public bounds."""
    _require_bounds(bounds)
    sample = encode_sample(x, bounds)
    _check_columns(sample)
    return sample


def numeric_samples(x: Any, y: Any, bounds: Bounds, adjacency: Adjacency) -> TwoSamples:
    """Read two samples of numeric columns with public bounds."""
    first, second = numeric_groups((x, y), bounds, adjacency)
    return TwoSamples(first, second)


def numeric_groups(data: Sequence[Any], bounds: Bounds, adjacency: Adjacency) -> tuple[Sample, ...]:
    """Read samples of the same numeric columns with public bounds."""
    _require_bounds(bounds)
    samples = encode_several(data, bounds, adjacency=adjacency)
    _check_columns(samples[0])
    return samples


def difference_sample(x: Any, y: Any, bounds: Bounds) -> Sample:
    """Read the differences x - y of paired rows of one bounded column each, as one sample.

    Their bounds follow from those of x and y, so that they are public. A difference is a function
    of its own pair alone, rounding included.
    """
    _require_bounds(bounds)
    sides = encode_pairs(x, y, *bounds_of_measurements(bounds, x, y), units="own")
    for side in sides:
        if side.domain.levels != (0,):
            raise DataError("x and y must each be one numeric column.")
        _check_columns(side)
    left, right = sides
    low = float(left.box.lower[0] - right.box.upper[0])
    high = float(left.box.upper[0] - right.box.lower[0])
    rows = Joined((left.held, right.held), partial(_differences, low, high), 1)
    titles = [(side.names or (fallback,))[0] for side, fallback in zip(sides, "xy", strict=True)]
    name = " - ".join(titles)
    schema = Schema({name: NumericColumn(low, high)}, left.rows_per_person)
    return Sample(rows, schema, None if titles == ["x", "y"] else (name,))


def _differences(low: float, high: float, left: Floats, right: Floats) -> Floats:
    return np.clip((left - right - low) / (high - low), 0.0, 1.0)


def check_one_column(sample: Sample, name: str) -> None:
    """Refuse several columns."""
    if sample.domain.dimension != 1:
        raise DataError(f"{name} must have one column; for several use hotelling_test.")


def _require_bounds(bounds: Bounds) -> None:
    """Refuse to go on without public bounds: a mean of unbounded values cannot be private."""
    if bounds is None:
        raise ParameterError(
            "bounds must be given: a pair (lower, upper), one for each column, or a Schema. The "
            "noise depends on them, and bounds found from the data would leak it."
        )


def _check_columns(sample: Sample) -> None:
    """Refuse columns that have no mean, and bounds whose squares are not finite."""
    if sample.domain.categorical:
        name = (sample.names or ())[sample.domain.categorical[0]]
        raise DataError(f"column {name!r} is categorical: means need numeric columns.")
    refuse_wide_bounds(sample)


def in_units(box: Box, u: Floats) -> Floats:
    """Return a point of the cube [-1, 1]^d in the units of the data."""
    return box.centre + box.half * u


def covariance_in_units(box: Box, covariance: Floats) -> Floats:
    """Return a covariance of the cube [-1, 1]^d in the units of the data."""
    return covariance * np.outer(box.half, box.half)


def shown_columns(sample: Sample) -> dict[str, Any]:
    """Names of the columns, where there are any: a public parameter."""
    return {} if sample.names is None else {"columns": list(sample.names)}


def sample_budget(budget: Budget, adjacency: Adjacency, groups: int = 2) -> Budget:
    """Return what each sample may spend: a person is in one of them, or in all."""
    if adjacency == "row":
        raise ParameterError(
            "adjacency must be 'one' or 'both': the noise and the statistic need the sizes of "
            "the groups, so they have to be public. For private groups use mmd_test or ipm_test."
        )
    one_of("adjacency", adjacency, ("one", "both"))
    return budget if adjacency == "one" else budget.divided(groups)


def look_at_one(sample: Sample, budget: Budget, noise: NoiseSource, **share: float) -> Contrast:
    """Release one sample."""
    if len(sample) < 2:
        raise DataError("x must have at least 2 rows.")
    return Contrast(release_rows([sample], budget, noise, **share), (1.0,), float(len(sample)))


def compare_two(
    samples: TwoSamples, budget: Budget, noise: NoiseSource, *, equal_covariance: bool
) -> Contrast:
    """Release two samples; ``budget`` is that of each."""
    n, m = map(len, samples)
    if min(n, m) < 2:
        raise DataError("each sample must have at least 2 rows.")
    if not isinstance(equal_covariance, bool):
        reject("equal_covariance", "True or False", equal_covariance)
    released = release_rows(samples, budget, noise)
    # unequal: remark 3.2 of Dunsche, Kutta and Dette
    weights = (
        ((n - 1) / (n + m - 2), (m - 1) / (n + m - 2))
        if equal_covariance
        else (m / (n + m), n / (n + m))
    )
    return Contrast(released, weights, n * m / (n + m), equal_covariance)


def release_rows(
    samples: Sequence[Sample], budget: Budget, noise: NoiseSource, **share: float
) -> tuple[Released, ...]:
    """Release mean and covariance of each sample; ``budget`` is that of each."""
    person = rows_of_a_person(*samples)
    plans = [plan_release(len(sample), sample.width, budget, person, **share) for sample in samples]
    found = cube_moments(*samples)  # all of it is read before noise is drawn
    return tuple(release_sample(own, plan, noise) for own, plan in zip(found, plans, strict=True))


# Tests of means that are valid for every law within the bounds: ``calibration="any"``.
#
# Rows are independent and lie in [-1, 1]; nothing else is assumed. The mean and the mean square
# were released with noise. First a confidence region of level 1 - beta for the mean and the
# variance of each sample (Chernoff's bound with Hoeffding's moment generating function, noise
# included). Then the tail of the contrast, by Chernoff's bound with Bennett's moment generating
# function for the largest variance in the region. The p-value is beta plus that bound (Berger and
# Boos, 1994).
#
# It uses released and public numbers only: post-processing. Proof: docs/proofs/means.md.


SHARE = 0.1  # of alpha, for the confidence regions
_ROUNDS = 30  # of narrowing a region; each of them is valid
_POINTS = 400  # of the exponents over which Chernoff's bound is minimised
_GRID = 2.0**-30  # of the sensitivity: noise is added on a grid at most this wide
_ROUNDING = 1e-12
_SHORTEST = 1e-6


@dataclass(frozen=True, slots=True)
class Region:
    """Where the mean of a sample's rows lies, and the most that their variance can be."""

    low: float
    high: float
    variance: float


def region(sample: Released, beta: float) -> Region:
    """Return a region that misses mean or variance with probability at most ``beta``.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    mean, slack = float(sample.mean[0]), _slack(sample)
    found = Region(-1.0, 1.0, 1.0)
    for _ in range(_ROUNDS):  # a mean in the region stays in it: see the proof
        variance = _largest_variance(sample, found, beta / 2)
        up = _any_law_reach([(sample, 1 - found.low, variance)], beta / 4) + slack
        down = _any_law_reach([(sample, 1 + found.high, variance)], beta / 4) + slack
        low, high = max(found.low, mean - up), min(found.high, mean + down)
        if low >= high:  # the noise went far beyond the bounds: the event of probability beta
            return Region(-1.0, 1.0, 1.0)
        found = Region(low, high, variance)
    return found


def contrast_pvalue(
    contrast: Contrast, deviation: float, alternative: Alternative, alpha: float
) -> float:
    """Return a p-value that is valid for every law within the bounds.

    Parameters
    ----------
    contrast : Contrast
        One column.
    deviation : float
        Released contrast minus its hypothetical value.
    alternative : {"two-sided", "greater", "less"}
        The side.
    alpha : float
        The public level; a tenth of it pays for the regions, so no p-value is below that.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    up, down = _sides(contrast, alpha)
    slack = sum(map(_slack, contrast.samples))
    above, below = _bound(up, deviation - slack), _bound(down, -deviation - slack)
    tail = {"greater": above, "less": below, "two-sided": 2 * min(above, below)}[alternative]
    return min(1.0, SHARE * alpha + tail)


def contrast_reach(
    contrast: Contrast, alternative: Alternative, alpha: float
) -> tuple[float, float]:
    """Return how far an interval of level 1 - alpha extends below and above the contrast.

    It excludes exactly what :func:`contrast_pvalue` rejects; a one-sided one is open.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    up, down = _sides(contrast, alpha)
    slack = sum(map(_slack, contrast.samples))
    tail = (1 - SHARE) * alpha / (2 if alternative == "two-sided" else 1)
    lower = math.inf if alternative == "less" else _any_law_reach(up, tail) + slack
    upper = math.inf if alternative == "greater" else _any_law_reach(down, tail) + slack
    return lower, upper


Term = tuple[Released, float, float]  # a sample, how far a row may exceed its mean, variance


def _sides(contrast: Contrast, alpha: float) -> tuple[list[Term], list[Term]]:
    """Return the terms of an upward and of a downward deviation of the contrast."""
    share = SHARE * alpha / len(contrast.samples)
    regions = [region(sample, share) for sample in contrast.samples]
    above = [(s, 1 - r.low, r.variance) for s, r in zip(contrast.samples, regions, strict=True)]
    below = [(s, 1 + r.high, r.variance) for s, r in zip(contrast.samples, regions, strict=True)]
    if len(regions) == 1:
        return above, below
    return [above[0], below[1]], [below[0], above[1]]


def _largest_variance(sample: Released, found: Region, beta: float) -> float:
    """Bound E(X - μ)² for the mean μ, which is in the region, except with probability ``beta``.

    For each exponent λ Markov's inequality of exp(-λ Q), Q the noisy mean of (X - μ)², gives a
    bound in closed form; the smallest one counts.
    """
    plan, mean = sample.plan, float(sample.mean[0])
    furthest = max(abs(found.low), abs(found.high))
    reach = (1 + furthest) ** 2
    # the covariance was cut at 0, which only raises it
    second = float(sample.covariance[0, 0]) / plan.unbiased + mean**2 - plan.variance
    # convex in μ: largest at an end
    observed = max(second - 2 * end * mean + end**2 for end in (found.low, found.high))
    observed = max(observed, 0.0) + 3 * _slack(sample)
    scales = (sample.second_scale, 2 * furthest * plan.mean_scale)
    exponents = _exponents(plan.n, max(scales), plan.budget.delta > 0)
    noise = sum(_log_mgf(exponents * scale, plan.budget.delta > 0) for scale in scales)
    gain = -np.expm1(-exponents * reach / plan.n) / reach
    bounds = -np.expm1((math.log(beta) - exponents * observed - noise) / plan.n) / gain
    most = 1 - min(abs(found.low), abs(found.high)) ** 2 * (found.low * found.high > 0)
    return min(float(np.min(bounds)), most)


def _any_law_reach(terms: list[Term], tail: float) -> float:
    """Return what the sum of the terms' noisy mean deviations exceeds with at most this chance."""
    exponents, logs = _cumulants(terms)
    return float(np.min((logs - math.log(tail)) / exponents))


def _bound(terms: list[Term], value: float) -> float:
    """Bound the probability that the sum of the terms' deviations is at least ``value``."""
    if value <= 0:
        return 1.0
    exponents, logs = _cumulants(terms)
    return math.exp(min(0.0, float(np.min(logs - exponents * value))))


def _cumulants(terms: list[Term]) -> tuple[Floats, Floats]:
    """Return exponents and the logarithm of the moment generating function there."""
    normal = terms[0][0].plan.budget.delta > 0
    smallest = min(sample.plan.n for sample, _, _ in terms)
    exponents = _exponents(smallest, max(s.plan.mean_scale for s, _, _ in terms), normal)
    logs = np.zeros_like(exponents)
    for sample, reach, variance in terms:
        n = sample.plan.n
        logs += n * _bennett(exponents / n, variance, reach)
        logs += _log_mgf(exponents * sample.plan.mean_scale, normal)
    return exponents, logs


def _bennett(exponents: Floats, variance: float, reach: float) -> Floats:
    """Return log E exp(λX) for the worst X <= reach with mean 0 and this variance: two values."""
    reach = max(reach, _SHORTEST)  # a larger reach has a larger bound
    rare = variance / (variance + reach**2)
    if rare == 0:
        return np.zeros_like(exponents)
    log: Floats = np.logaddexp(
        math.log(rare) + exponents * reach, math.log1p(-rare) - exponents * variance / reach
    )
    return log


def _log_mgf(scaled: Floats, normal: bool) -> Floats:
    """Return log E exp(λZ) of noise, ``scaled`` = λ times its scale; Laplace's needs λ < 1."""
    log: Floats = scaled**2 / 2 if normal else -np.log1p(-(scaled**2))
    return log


def _exponents(n: int, scale: float, normal: bool) -> Floats:
    """Return public exponents λ: below what the noise allows, and far beyond what is useful."""
    most = 100.0 * n if normal else min(100.0 * n, (1 - 1e-9) / scale)
    return np.geomspace(most * 1e-7, most, _POINTS)


def _slack(sample: Released) -> float:
    """Bound the rounding of a mean, and of a mean square, to the noise's grid and in summing."""
    plan, square = sample.plan, float(sample.mean[0]) ** 2
    grid = 2 * plan.rows_per_person / plan.n + plan.mean_scale + sample.second_scale
    return _GRID * grid + _ROUNDING * (1 + square + plan.variance)


# The t-tests of one column: Student's law with the privacy noise, by quadrature.
#
# The statistic is t = (difference of noisy means)/sqrt(S/size), where S holds the noisy variances
# and the variance of the noise. Its law under the null hypothesis, for normal rows with given
# variances, is an integral over the noise on means and mean squares, over the sample variances
# (chi-square) and over one normal variable, which is done in closed form; a lattice rule does the
# rest. The same integral without noise is replaced by Student's exact tail: as the noise
# vanishes, the p-value becomes exactly that of the classical t-test, or of Welch's.
#
# All of it is computed from released and public numbers: post-processing. Proof and measurements:
# docs/proofs/means.md.


_NODES = 1 << 12
_WIDER = 2.0  # Laplace noise is sampled with this many times its scale: its tails decide
_WIDER_NORMAL = 1.5
_TINY = 1e-300
_SMALLEST = 1e-9  # t at which a tail is taken for that at 0
_LARGEST = 1e6
_NEAR = 4.0  # scales of its noise by which a mean square may differ from 1 in a 0/1 column
_ROW = 1.75  # scales of the noise on a mean that a continuity correction may have
_PRECISION = 1e-7  # of the logarithm of a p-value


def t_pvalue(contrast: Contrast, deviation: float, alternative: Alternative) -> float:
    """Return the p-value of a deviation of the contrast: the largest over plausible variances.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    error, half = _standard_error(contrast), _half_a_row(contrast)
    if alternative == "two-sided":
        deviation = max(abs(deviation) - half, 0.0)
    else:
        deviation += half if alternative == "less" else -half
    return max(law.pvalue(deviation / error, alternative) for law in _laws(contrast))


def t_reach(contrast: Contrast, alternative: Alternative, alpha: float) -> float:
    """Return the deviation whose p-value is alpha, in the direction of the alternative.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    point = max(law.critical(alternative, alpha) for law in _laws(contrast))
    return point * _standard_error(contrast) + _half_a_row(contrast)


def _standard_error(contrast: Contrast) -> float:
    return math.sqrt(contrast.released_scale[0, 0] / contrast.size)


def _half_a_row(contrast: Contrast) -> float:
    """Return the continuity correction of one sample of a 0/1 column.

    The rate of a test on whole numbers jumps with each of them, and noise that is smaller than a
    row only blurs the steps. A column whose mean square is 1 up to the noise has rows at its two
    bounds alone; the correction is half a row, and vanishes with the noise.
    """
    if len(contrast.samples) > 1:
        return 0.0
    (sample,), plan = contrast.samples, contrast.samples[0].plan
    square = float(sample.covariance[0, 0]) / plan.unbiased + float(sample.mean[0]) ** 2
    if 1 - square + plan.variance > _NEAR * sample.second_scale:
        return 0.0
    return min(1 / plan.n, _ROW * plan.mean_scale)


def _laws(contrast: Contrast) -> list[NoisyStudent]:
    """Return the laws of t for the plausible variances of each sample's rows."""
    cases = [tuple(float(v[0, 0]) for v in each.covariances) for each in scenarios(contrast)]
    return [NoisyStudent(contrast, case) for case in cases]


class NoisyStudent:
    """The law of t under the null hypothesis for normal rows, noise included.

    Parameters
    ----------
    contrast : Contrast
        One column; its noise and its public sizes are used, and the released means: the noise on
        a mean square less a squared mean depends on them.
    variances : tuple of float
        Those of each sample's rows.
    """

    __slots__ = ("error", "exact", "freedom", "sides", "size", "weights")

    def __init__(self, contrast: Contrast, variances: tuple[float, ...]) -> None:
        samples, self.size, self.freedom = contrast.samples, contrast.size, _freedom(contrast)
        means = sum(v / sample.plan.n for v, sample in zip(variances, samples, strict=True))
        self.error = math.sqrt(max(means, _TINY))  # of the contrast without noise
        constant, self.exact = np.full(_NODES, contrast.extra), np.zeros(_NODES)
        slope, noise, self.weights = np.zeros(_NODES), np.zeros(_NODES), np.ones(_NODES)
        count = 3 * len(samples)
        for index, sample in enumerate(samples):
            plan, normal = sample.plan, sample.plan.budget.delta > 0
            sign, weight, variance = (1, -1)[index], contrast.weights[index], variances[index]
            eta, own = _noise(normal, 3 * index, count)
            zeta, others = _noise(normal, 3 * index + 1, count)
            eta, zeta = plan.mean_scale * eta, sample.second_scale * zeta
            place = 2 if contrast.equal else 3 * index + 2
            freedom = contrast.freedom if contrast.equal else plan.n - 1
            spread = variance * _chi_square(freedom, place, count)
            # a mean square less a squared mean, both noisy, about the released mean
            moved = zeta - (2 * float(sample.mean[0]) + eta) * eta + plan.variance
            noisy = spread + plan.unbiased * moved
            constant += weight * np.maximum(noisy, 0.0)
            self.exact += weight * spread
            bend = 2 * weight * plan.unbiased * variance * sign / (plan.n * self.error**2)
            slope += np.where(noisy > 0, bend * eta, 0.0)
            noise += sign * eta
            self.weights *= own * others
        self.weights /= self.weights.sum()
        self.sides = {
            side: (constant + slope * noise, side * slope, side * noise) for side in (1, -1)
        }

    def _tail(self, t: float, side: int) -> float:
        """Return P(side · T >= t), t > 0.

        Given the noise and the sample variances S = C - b u, where u is the numerator of T: with
        the noise of a mean the numerator rises and S falls. So T >= t where u is at least the
        positive root of (size/t²) u² + b u - C = 0, and u is normal.
        """
        from scipy.special import ndtr  # noqa: PLC0415

        constant, bend, noise = self.sides[side]
        width = self.size / t**2
        root = (np.sqrt(bend**2 + 4 * width * np.maximum(constant, _TINY)) - bend) / (2 * width)
        return float(self.weights @ ndtr((noise - root) / self.error))

    def _survival(self, t: float, side: int) -> float:
        """Return P(side · T >= t), t > 0, with Student's tail in place of its quadrature.

        Where noise makes the tail smaller it is multiplied by the ratio of the two, which share
        their error; where it makes it larger their difference is added. Far out the quadrature of
        Student's tail is much too small, and the ratio of the two is no correction.
        """
        from scipy.special import ndtr, stdtr  # noqa: PLC0415

        noisy, exact = self._tail(t, side), float(stdtr(self.freedom, -t))
        found = float(np.mean(ndtr(-t * np.sqrt(self.exact / self.size) / self.error)))
        return noisy * (exact / found) if noisy < found else noisy - found + exact

    def pvalue(self, t: float, alternative: Alternative) -> float:
        """Return the p-value of t, above 0."""
        size = max(abs(t), _SMALLEST)
        if alternative == "two-sided":
            found = self._survival(size, 1) + self._survival(size, -1)
        else:
            side = 1 if alternative == "greater" else -1
            if side * t <= 0:  # the tail on the other side is the smaller one
                found = 1.0 - self._survival(size, -side)
            else:
                found = self._survival(size, side)
        return min(1.0, max(found, _TINY))

    def critical(self, alternative: Alternative, alpha: float) -> float:
        """Find where the p-value is alpha: regula falsi in the logarithm, Illinois' form."""
        goal, sign = math.log(alpha), -1.0 if alternative == "less" else 1.0

        def excess(t: float) -> float:
            return math.log(max(self.pvalue(sign * t, alternative), _TINY)) - goal

        low, high = (0.0 if alternative == "two-sided" else -8.0), 4.0
        below, above = excess(low), excess(high)
        while above > 0:
            low, below, high = high, above, 2 * high
            above = excess(high)
            if high > _LARGEST:  # noise hides everything
                return high
        for _ in range(60):
            middle = (low * above - high * below) / (above - below)
            value = excess(middle)
            if abs(value) < _PRECISION:
                return middle
            if value > 0:
                low, below, above = middle, value, above / 2
            else:
                high, above, below = middle, value, below / 2
        return high


def _freedom(contrast: Contrast) -> float:
    """Return the degrees of freedom: of the pooled variance, or Welch and Satterthwaite's."""
    if contrast.equal:
        return float(contrast.freedom)
    parts = [float(each.covariance[0, 0]) / each.plan.n for each in contrast.samples]
    if sum(parts) == 0:
        return float(min(each.plan.n for each in contrast.samples) - 1)
    squares = (p**2 / (e.plan.n - 1) for p, e in zip(parts, contrast.samples, strict=True))
    return sum(parts) ** 2 / sum(squares)


@lru_cache(maxsize=8)
def _lattice(dimension: int) -> Floats:
    """Return points spread evenly over the unit cube: multiples of powers of a golden ratio.

    The generalised golden ratio g solves g^(d+1) = g + 1.
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    points: Floats = ((np.arange(_NODES)[:, None] + 0.5) * steps + 0.5) % 1.0
    return points


@lru_cache(maxsize=32)
def _noise(normal: bool, column: int, dimension: int) -> tuple[Floats, Floats]:
    """Return noise of scale 1 at the lattice points, and weights: it is sampled wider."""
    from scipy.special import ndtri  # noqa: PLC0415

    place = _lattice(dimension)[:, column]
    if normal:
        drawn = _WIDER_NORMAL * ndtri(place)
        return drawn, _WIDER_NORMAL * np.exp(-(drawn**2) / 2 * (1 - _WIDER_NORMAL**-2))
    centred = 2 * place - 1
    drawn = -_WIDER * np.sign(centred) * np.log1p(-np.abs(centred))
    return drawn, _WIDER * np.exp(-np.abs(drawn) * (1 - 1 / _WIDER))


@lru_cache(maxsize=32)
def _chi_square(freedom: int, column: int, dimension: int) -> Floats:
    """Return a chi-square variable over its degrees of freedom, at the lattice points."""
    from scipy.special import gammaincinv  # noqa: PLC0415

    drawn: Floats = gammaincinv(freedom / 2, _lattice(dimension)[:, column]) * (2 / freedom)
    return drawn


# From a released contrast to a p-value and a confidence region: post-processing only.


Calibration = Literal["classical", "any"]
CALIBRATIONS = ("classical", "any")
_FORMER = ("bootstrap", "normal", "asymptotic")


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """What is inferred from a release.

    Attributes
    ----------
    statistic, pvalue : float
        t², or t for one column tested one-sided.
    radius : float
        The region is all θ with size · (w - θ)' S^-1 (w - θ) at most this.
    lower, upper : ndarray
        How far the simultaneous intervals extend below and above each entry.
    """

    statistic: float
    pvalue: float
    radius: float
    lower: Floats
    upper: Floats


def infer(
    contrast: Contrast, hypothesis: Floats, *, alpha: float, n_bootstrap: int, seed: int
) -> Finding:
    """Test whether the contrast equals ``hypothesis``, and find its confidence region.

    Notes
    -----
    **Sensitivity** None: this uses released values only.

    **Privacy** Post-processing.
    """
    if len(hypothesis) == 1:  # without draws
        found = infer_one_column(contrast, float(hypothesis[0]), alpha=alpha)
        return replace(found, statistic=found.statistic**2)
    scale, size = contrast.released_scale, contrast.size
    observed = float(statistic(contrast.value - hypothesis, scale, size))
    errors = np.sqrt(np.diagonal(scale) / size)
    p, radius, point = 0.0, 0.0, 0.0
    for scenario in scenarios(contrast):
        # the same random numbers in each scenario, so that their maximum is less noisy
        draws = replicate(contrast, scenario, n_bootstrap, public_generator(seed))
        null = NullDraws(draws.statistics, draws.classical, contrast.classical_survival)
        largest = np.max(np.abs(draws.deviations) / np.sqrt(draws.diagonals / size), axis=1)
        p, radius = max(p, null.pvalue(observed)), max(radius, null.critical(alpha))
        point = max(point, upper_point(largest, alpha))
    if p > alpha:  # the region holds what is not rejected, also between two draws
        radius = max(radius, observed * (1 + 1e-9))
    return Finding(observed, p, radius, *_within_bounds(contrast, point * errors, point * errors))


def infer_one_column(
    contrast: Contrast,
    hypothesis: float,
    *,
    alpha: float,
    alternative: Alternative = "two-sided",
    calibration: Calibration = "classical",
) -> Finding:
    """Like :func:`infer` for one column, with a signed t and one-sided alternatives.

    Notes
    -----
    **Sensitivity** None: this uses released values only.

    **Privacy** Post-processing.
    """
    error = math.sqrt(contrast.released_scale[0, 0] / contrast.size)
    deviation = float(contrast.value[0] - hypothesis)
    if calibration == "any":
        p = contrast_pvalue(contrast, deviation, alternative, alpha)
        reach = contrast_reach(contrast, alternative, alpha)
        radius = (max(each for each in reach if each < math.inf) / error) ** 2
    else:
        p = t_pvalue(contrast, deviation, alternative)
        far = t_reach(contrast, alternative, alpha)
        # a one-sided interval is open on the other side, so it ends at the public bounds there
        lower = math.inf if alternative == "less" else far
        upper = math.inf if alternative == "greater" else far
        reach, radius = (lower, upper), (far / error) ** 2
    below, above = (np.array([each]) for each in reach)
    return Finding(deviation / error, p, radius, *_within_bounds(contrast, below, above))


def _within_bounds(contrast: Contrast, below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Cut intervals at the public bounds: a mean is in [-1, 1], a difference of two in [-2, 2].

    A noisy mean may be outside of its bounds, and so of its interval: a reach is negative then.
    """
    value, end = contrast.value, float(len(contrast.samples))
    lower, upper = np.clip(value - below, -end, end), np.clip(value + above, -end, end)
    return value - lower, upper - value


def estimates(contrast: Contrast, box: Box, found: Finding) -> dict[str, Any]:
    """Return the released estimates, in the units of the data.

    Noise may take a mean out of its public bounds, where it cannot be: it is cut there, as the
    ends of its interval are. The region is about the mean before that.
    """
    samples, end = contrast.samples, float(len(contrast.samples))
    units = partial(np.multiply, box.half) if len(samples) == 2 else partial(in_units, box)
    middle, centre = units(np.clip(contrast.value, -end, end)), units(contrast.value)
    released = {
        "lower": centre - box.half * found.lower,
        "upper": centre + box.half * found.upper,
        "covariance": covariance_in_units(box, contrast.released_covariance),
        "region_shape": covariance_in_units(box, contrast.released_scale / contrast.size),
        "region_radius": found.radius,
        "region_centre": centre,
    }
    if len(samples) == 1:
        return {"mean": middle} | released
    means = {
        name: in_units(box, np.clip(sample.mean, -1.0, 1.0))
        for name, sample in zip(("mean_x", "mean_y"), samples, strict=True)
    }
    return means | {"difference": middle} | released


def checked_calibration(alpha: float, calibration: str, rng: Rng) -> dict[str, Any]:
    """Return the options of :func:`infer_one_column`, checked."""
    one_of("calibration", calibration, (*CALIBRATIONS, *_FORMER))
    if calibration in _FORMER:
        warnings.warn(
            f"calibration={calibration!r} is called 'classical' now, and will be refused.",
            DeprecationWarning,
            stacklevel=3,
        )
        calibration = "classical"
    public_generator(rng)
    return {"alpha": number("alpha", alpha, above=0, below=1), "calibration": calibration}


def check_replicates(n_bootstrap: int, alpha: float) -> None:
    """Refuse a bootstrap that could never reject."""
    integer_at_least("n_bootstrap", n_bootstrap, 1)
    if alpha * (n_bootstrap + 1) < 1:
        least = f"at least {1 / (n_bootstrap + 1):.3g} with {n_bootstrap} bootstrap replicates"
        reject("alpha", least, alpha)


def checked_bootstrap(alpha: float, n_bootstrap: int, rng: Rng) -> dict[str, Any]:
    """Return the options of :func:`infer`, checked."""
    level = number("alpha", alpha, above=0, below=1)
    check_replicates(n_bootstrap, level)
    # the seed is public, and kept: intervals of other levels come from the same draws
    seed = int(public_generator(rng).integers(2**63))
    return {"alpha": level, "n_bootstrap": n_bootstrap, "seed": seed}


def calibrated(method: str, calibration: Calibration) -> dict[str, str]:
    """Return a method's name, with its calibration where that is not the usual one, and level."""
    if calibration == "classical":
        return {"method": method, "level": "measured"}
    return {"method": f"{method}, valid for any law", "level": "valid"}


def outcome(
    found: Finding,
    released: dict[str, Any],
    sample: Sample,
    options: dict[str, Any],
    facts: dict[str, Any],
    intervals: Callable[[float], Interval],
    **shown: object,
) -> Outcome:
    """Return the result of a test of means."""
    public = ("calibration", "n_bootstrap")
    shown |= {name: options[name] for name in public if name in options} | shown_columns(sample)
    facts |= calibrated(facts["method"], options.get("calibration", "classical"))
    return Outcome(
        reject=found.pvalue <= options["alpha"],
        alpha=options["alpha"],
        pvalue=found.pvalue,
        statistic=found.statistic,
        estimates=released,
        estimated="difference" if "difference" in released else "mean",
        parameters=shown,
        intervals=intervals,
        **facts,
    )


# Confidence intervals of any level from one release: post-processing, at a fixed public seed.


HIGHEST_LEVEL = 0.99999  # a bootstrap needs at least 1/(1 - level) replicates


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
