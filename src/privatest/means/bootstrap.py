"""The law of Hotelling's statistic under the null hypothesis, from private estimates alone.

A parametric bootstrap: samples like the released ones are drawn (their sufficient statistics
are), the whole private release is run on them again, and the statistic is computed around the
released means. It touches no data, so it costs nothing. Dunsche, Kutta and Dette (2022),
algorithm 3, with the mechanism of the covariance run anew in each replicate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.means.release import Plan, Released, centred
from privatest.mechanisms.covariance import ed_replicates
from privatest.mechanisms.moments import svec_noise
from privatest.statistics.moments import scatter_draws

__all__ = [
    "Contrast",
    "RareRows",
    "Replicates",
    "Scenario",
    "replicate",
    "replicate_covariances",
    "statistic",
]

_STACK = 1 << 18  # matrix entries that are worked on at once

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A mean, or a difference of two, and how covariances are pooled for it.

    Attributes
    ----------
    samples : tuple of Released
        One or two.
    weights : tuple of float
        Of their covariances; they add up to 1.
    size : float
        n, or n m/(n + m): the covariance of the contrast is the pooled one over this.
    equal : bool
        Whether the samples are taken to have one covariance.
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
class RareRows:
    """Rows at a corner of the cube, so rare that a sample may hold none of them.

    Attributes
    ----------
    sample : int
        Which of the samples has them.
    corner : ndarray
        Where they are.
    rate : float
        How many of them a sample holds on average.
    """

    sample: int
    corner: Floats
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A population that may have led to what was released: covariances, one for each sample."""

    covariances: tuple[Floats, ...]
    rare: RareRows | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """Bootstrap draws: deviations of the contrast, and the diagonal of S and t² of each."""

    deviations: Floats
    diagonals: Floats
    statistics: Floats


def statistic(deviations: Floats, scales: Floats, size: float) -> Floats:
    """Hotelling's t² = size · w' S^-1 w; leading axes are a stack."""
    solved = np.linalg.solve(scales, deviations[..., None])[..., 0]
    result: Floats = size * np.sum(deviations * solved, axis=-1)
    return result


def replicate(
    contrast: Contrast, scenario: Scenario, count: int, rng: np.random.Generator
) -> Replicates:
    """Draw the law of the contrast around its released value, in a scenario."""
    dimension = len(contrast.value)
    block = max(1, _STACK // dimension**2)
    parts = [
        _replicate_block(contrast, scenario, min(block, count - start), rng)
        for start in range(0, count, block)
    ]
    return Replicates(
        np.concatenate([part.deviations for part in parts]),
        np.concatenate([part.diagonals for part in parts]),
        np.concatenate([part.statistics for part in parts]),
    )


def replicate_covariances(sample: Released, count: int, rng: np.random.Generator) -> Floats:
    """Draw private covariances of samples like the released one."""
    block = max(1, _STACK // sample.plan.dimension**2)
    parts = [
        _redraw(sample, sample.covariance, None, min(block, count - start), rng)
        for start in range(0, count, block)
    ]
    return np.concatenate([covariance for _, covariance in parts])


def _replicate_block(
    contrast: Contrast, scenario: Scenario, count: int, rng: np.random.Generator
) -> Replicates:
    rare = scenario.rare
    drawn = [
        _redraw(sample, covariance, rare if rare and rare.sample == index else None, count, rng)
        for index, (sample, covariance) in enumerate(
            zip(contrast.samples, scenario.covariances, strict=True)
        )
    ]
    deviations = drawn[0][0] if len(drawn) == 1 else drawn[0][0] - drawn[1][0]
    scales = contrast.scale([covariance for _, covariance in drawn])
    diagonals = np.diagonal(scales, axis1=1, axis2=2)
    return Replicates(deviations, diagonals, statistic(deviations, scales, contrast.size))


def _redraw(
    sample: Released,
    covariance: Floats,
    rare: RareRows | None,
    count: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Release made-up samples: deviations of their means, and their covariances."""
    plan = sample.plan
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    shift = rng.standard_normal((count, plan.dimension)) @ root.T / math.sqrt(plan.n)
    scatter = scatter_draws(root, plan.n, count, rng) / plan.n
    noise = _mean_noise(plan, count, rng)
    if rare is not None:
        shift, scatter = _with_rare(shift, scatter, sample, rare, rng)
    offset = sample.mean + shift - sample.about
    second = scatter + offset[:, :, None] * offset[:, None, :]
    noisy = _noisy_second(second, sample, rng)
    return shift + noise, centred(noisy, offset + noise, plan.variance)


def _with_rare(
    shift: Floats, scatter: Floats, sample: Released, rare: RareRows, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Put some rows at a corner; the mean of the population stays where it is."""
    n = sample.plan.n
    part = rng.binomial(n, min(rare.rate / n, 1.0), size=len(shift)) / n
    away = rare.corner - sample.mean
    shift = np.sqrt(1 - part)[:, None] * shift + np.outer(part - min(rare.rate / n, 1.0), away)
    between = (part * (1 - part))[:, None, None] * np.outer(away, away)
    return shift, (1 - part)[:, None, None] * scatter + between


def _mean_noise(plan: Plan, count: int, rng: np.random.Generator) -> Floats:
    shape = (count, plan.dimension)
    if plan.ed is None:
        return rng.normal(scale=plan.mean_scale, size=shape)
    # density exp(-|z|∞/s): the radius is Gamma(d + 1, s), the point uniform in its cube
    radius = rng.gamma(plan.dimension + 1, plan.mean_scale, size=(count, 1))
    return radius * rng.uniform(-1, 1, size=shape)


def _noisy_second(second: Floats, sample: Released, rng: np.random.Generator) -> Floats:
    plan = sample.plan
    if plan.ed is None:
        return second + svec_noise(plan.dimension, plan.sigma_second, rng, len(second))
    return sample.unit * ed_replicates(second / sample.unit, plan.ed, rng)
