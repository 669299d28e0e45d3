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

from privatest.covariance_ed import ed_replicates
from privatest.means.release import Plan, Released, centred
from privatest.moment_release import svec_noise

__all__ = ["Contrast", "Replicates", "replicate", "replicate_covariances", "statistic"]

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
    """

    samples: tuple[Released, ...]
    weights: tuple[float, ...]
    size: float

    @property
    def value(self) -> Floats:
        """The private mean, or the first minus the second."""
        means = [sample.mean for sample in self.samples]
        return means[0] if len(means) == 1 else means[0] - means[1]

    @property
    def extra(self) -> float:
        """Variance that noise adds to each entry, and the ridge; public."""
        plans = [sample.plan for sample in self.samples]
        noise = self.size * sum(plan.variance for plan in plans)
        ridges = zip(self.weights, plans, strict=True)
        return noise + sum(weight * plan.ridge for weight, plan in ridges)

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


def replicate(contrast: Contrast, count: int, rng: np.random.Generator) -> Replicates:
    """Draw the law of the contrast around its released value."""
    dimension = len(contrast.value)
    block = max(1, _STACK // dimension**2)
    parts = [
        _replicate_block(contrast, min(block, count - start), rng)
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
    parts = [_redraw(sample, min(block, count - start), rng) for start in range(0, count, block)]
    return np.concatenate([covariance for _, covariance in parts])


def _replicate_block(contrast: Contrast, count: int, rng: np.random.Generator) -> Replicates:
    drawn = [_redraw(sample, count, rng) for sample in contrast.samples]
    deviations = drawn[0][0] if len(drawn) == 1 else drawn[0][0] - drawn[1][0]
    scales = contrast.scale([covariance for _, covariance in drawn])
    diagonals = np.diagonal(scales, axis1=1, axis2=2)
    return Replicates(deviations, diagonals, statistic(deviations, scales, contrast.size))


def _redraw(sample: Released, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Release made-up normal samples: deviations of their means, and their covariances."""
    plan = sample.plan
    values, vectors = np.linalg.eigh(sample.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    shift = rng.standard_normal((count, plan.dimension)) @ root.T / math.sqrt(plan.n)
    centre = sample.mean + shift
    second = _scatter(root, plan.n, count, rng) / plan.n
    second += centre[:, :, None] * centre[:, None, :]
    shift = shift + _mean_noise(plan, count, rng)
    noisy = _noisy_second(second, plan, rng)
    return shift, centred(noisy, sample.mean + shift, plan.variance)


def _mean_noise(plan: Plan, count: int, rng: np.random.Generator) -> Floats:
    shape = (count, plan.dimension)
    if plan.ed is None:
        return rng.normal(scale=plan.mean_scale, size=shape)
    # density exp(-|z|∞/s): the radius is Gamma(d + 1, s), the point uniform in its cube
    radius = rng.gamma(plan.dimension + 1, plan.mean_scale, size=(count, 1))
    return radius * rng.uniform(-1, 1, size=shape)


def _noisy_second(second: Floats, plan: Plan, rng: np.random.Generator) -> Floats:
    if plan.ed is None:
        return second + svec_noise(plan.dimension, plan.sigma_second, rng, len(second))
    unit = plan.dimension / plan.n
    return unit * ed_replicates(second / unit, plan.ed, rng)


def _scatter(root: Floats, n: int, count: int, rng: np.random.Generator) -> Floats:
    """Draw Σ (x - x̄)(x - x̄)' of n normal rows with covariance root · root' (Wishart's law)."""
    dimension = len(root)
    if n - 1 <= dimension:
        factor = root @ rng.standard_normal((count, dimension, n - 1))
    else:  # Bartlett: a triangle of normals, with chi on its diagonal
        triangle = np.tril(rng.standard_normal((count, dimension, dimension)), -1)
        freedom = n - 1 - np.arange(dimension)
        steps = np.arange(dimension)
        triangle[:, steps, steps] = np.sqrt(rng.chisquare(freedom, size=(count, dimension)))
        factor = root @ triangle
    result: Floats = factor @ np.swapaxes(factor, 1, 2)
    return result
