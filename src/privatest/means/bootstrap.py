"""The law of Hotelling's statistic under the null hypothesis, from released values alone.

A parametric bootstrap: samples like the released ones are drawn (only their sufficient statistics
are), the whole private release is run on them, and the statistic is computed around the released
means. It uses no data, so it costs nothing. Dunsche, Kutta and Dette (2022), algorithm 3, with
the covariance mechanism rerun in each replicate.

A p-value must be valid for every population within the null hypothesis. But the variance is known
only up to noise, and a small sample may contain none of the rows that make a law skewed. So the
statistic is redrawn in several scenarios, and the largest p-value counts (as in Berger and Boos,
1994). The statistic is studentized: where noise is small the scenarios agree and nothing is lost.
Proof: docs/proofs/means.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.means.release import Plan, Released, centred
from privatest.mechanisms.covariance import ed_replicates, less_a_square
from privatest.mechanisms.entries import entry_noise
from privatest.mechanisms.moments import nearest_psd, svec_noise
from privatest.statistics.bins import parallel
from privatest.statistics.moments import scatter_draws, spread_steps

__all__ = [
    "Contrast",
    "RareRows",
    "Replicates",
    "Scenario",
    "redraw",
    "replicate",
    "replicate_covariances",
    "scenarios",
    "statistic",
]

_STACK = 1 << 18  # matrix entries processed at a time
_UNSEEN = (1.0, 2.0, 4.0)  # expected number of rows at a corner, if the sample contains none
_SEEN = (4.0, 8.0, 16.0)  # the same if it does: they are then in the released covariance
_HIDDEN = 0.3  # standard deviations of the statistic by which an ignored row may move it

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
    """Rows at a corner of the cube, so rare that a sample may contain none of them.

    Attributes
    ----------
    sample : int
        Which of the samples has them.
    corner : ndarray
        Where they are.
    rate : float
        Their expected number in a sample.
    """

    sample: int
    corner: Floats
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A population that may have produced the release: covariances, one for each sample."""

    covariances: tuple[Floats, ...]
    rare: RareRows | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """Bootstrap draws: deviations of the contrast, and the diagonal of S and t² of each."""

    deviations: Floats
    diagonals: Floats
    statistics: Floats


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
    return Replicates(
        np.concatenate([part.deviations for part in parts]),
        np.concatenate([part.diagonals for part in parts]),
        np.concatenate([part.statistics for part in parts]),
    )


def replicate_covariances(sample: Released, count: int, rng: np.random.Generator) -> Floats:
    """Draw private covariances of samples like the released one."""
    block = max(1, _STACK // sample.plan.dimension**2)
    parts = [
        redraw(sample, sample.covariance, None, min(block, count - start), rng)
        for start in range(0, count, block)
    ]
    return np.concatenate([covariance for _, covariance in parts])


def _replicate_block(
    contrast: Contrast, scenario: Scenario, count: int, rng: np.random.Generator
) -> Replicates:
    rare = scenario.rare
    drawn = [
        redraw(sample, covariance, rare if rare and rare.sample == index else None, count, rng)
        for index, (sample, covariance) in enumerate(
            zip(contrast.samples, scenario.covariances, strict=True)
        )
    ]
    deviations = drawn[0][0] if len(drawn) == 1 else drawn[0][0] - drawn[1][0]
    scales = contrast.scale([covariance for _, covariance in drawn])
    diagonals = np.diagonal(scales, axis1=1, axis2=2)
    return Replicates(deviations, diagonals, statistic(deviations, scales, contrast.size))


def redraw(
    sample: Released,
    covariance: Floats,
    rare: RareRows | None,
    count: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Run the release on simulated samples: deviations of their means, and their covariances."""
    plan = sample.plan
    if plan.dimension == 1:  # as NumPy would find, at a tenth of the time
        root = np.sqrt(np.maximum(covariance, 0.0))
    else:
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    shift = rng.standard_normal((count, plan.dimension)) @ root.T / math.sqrt(plan.n)
    scatter = scatter_draws(root, plan.n, count, rng) / plan.n
    noise = _mean_noise(plan, count, rng)
    if rare is not None:
        shift, scatter = _with_rare(shift, scatter, sample, rare, rng)
    offset = sample.mean + shift - sample.about
    second = scatter + offset[:, :, None] * offset[:, None, :]
    return shift + noise, _noisy_covariance(second, offset + noise, sample, rng)


def _with_rare(
    shift: Floats, scatter: Floats, sample: Released, rare: RareRows, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Put some rows at a corner, keeping the population mean."""
    n = sample.plan.n
    part = rng.binomial(n, min(rare.rate / n, 1.0), size=len(shift)) / n
    away = rare.corner - sample.mean
    shift = np.sqrt(1 - part)[:, None] * shift + np.outer(part - min(rare.rate / n, 1.0), away)
    between = (part * (1 - part))[:, None, None] * np.outer(away, away)
    return shift, (1 - part)[:, None, None] * scatter + between


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
        return centred(second + noise, mean, plan.variance)
    unit = sample.unit
    values, axes = ed_replicates(second / unit, plan.ed, rng)
    return less_a_square(unit * values + plan.variance, axes, mean)


def scenarios(contrast: Contrast, *, rare: bool = True) -> list[Scenario]:
    """Return the scenarios that matter at these sizes and this noise (post-processing).

    ``rare`` is whether the population may have rows that the samples do not contain.
    """
    return [*_spreads(contrast), *(_rare_rows(contrast) if rare else [])]


def _spreads(contrast: Contrast) -> list[Scenario]:
    """Covariances as released, and inflated by some standard deviations of noise and sampling."""
    smallest = float(np.linalg.eigvalsh(contrast.released_scale)[0])
    found = []
    for parts in [_pooled_parts(contrast)] * contrast.equal + [_own_parts(contrast)]:
        largest = max(noise for _, noise, _ in parts)
        for step in spread_steps(len(contrast.value), largest, smallest):
            found.append(Scenario(tuple(_larger(step, *part) for part in parts)))
        if len({sample.plan.n for sample in contrast.samples}) == 1:
            break  # one sample, or equal sizes: only the pooled covariance matters
    return found


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


def _rare_rows(contrast: Contrast) -> list[Scenario]:
    """Rows at opposite corners, along the axis to which the statistic is most sensitive."""
    base = _spreads(contrast)[0].covariances
    scale = contrast.released_scale
    _, axes = np.linalg.eigh(scale)
    corner = np.where(axes[:, 0] < 0, -1.0, 1.0)
    smaller = min(range(len(contrast.samples)), key=lambda k: contrast.samples[k].plan.n)
    n = contrast.samples[smaller].plan.n
    # t² of d columns varies by sqrt(2d) anyway: a row has to move it more to matter
    hidden = _HIDDEN * len(corner) ** 0.25
    found = []
    for side in (corner, -corner):
        away = side - contrast.samples[smaller].mean
        moved = math.sqrt(contrast.size * float(away @ np.linalg.solve(scale, away))) / n
        if moved > hidden:
            found += [Scenario(base, RareRows(smaller, side, rate)) for rate in _UNSEEN]
            for rate in _SEEN:
                theirs = rate / n * np.outer(away, away)
                rest = tuple(nearest_psd(covariance - theirs) for covariance in base)
                found.append(Scenario(rest, RareRows(smaller, side, rate)))
    return found
