"""The law of Hotelling's statistic under the null hypothesis, from released values alone.

A parametric bootstrap: normal samples like the released ones are drawn (only their sufficient
statistics are), the whole private release is run on them, and the statistic is computed around the
released means. It uses no data, so it costs nothing. Dunsche, Kutta and Dette (2022), algorithm 3,
with the covariance mechanism rerun in each replicate.

The variance is known only up to noise. So the statistic is redrawn with larger variances too, and
the largest p-value counts (as in Berger and Boos, 1994). The statistic is studentized: where noise
is small these scenarios agree. Each replicate also has the statistic without noise, whose law is
the classical one: the difference of the two counts is added to the classical p-value, so that as
noise vanishes the p-value becomes exactly that of the classical test (:class:`NullDraws`).
Proof: docs/proofs/means.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.means.release import Plan, Released, centred
from privatest.mechanisms.additive import entry_noise
from privatest.mechanisms.covariance import ed_replicates, less_a_square
from privatest.mechanisms.moments import svec_noise
from privatest.statistics.bins import parallel
from privatest.statistics.moments import scatter_draws, spread_steps

__all__ = [
    "Contrast",
    "NullDraws",
    "Redrawn",
    "Replicates",
    "Scenario",
    "redraw",
    "replicate",
    "replicate_covariances",
    "scenarios",
    "statistic",
    "upper_point",
]

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
