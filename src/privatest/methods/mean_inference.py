"""From released means and covariances to p-values, intervals and confidence regions.

Means of several columns: a parametric bootstrap. Normal samples like the released ones are drawn
(only their sufficient statistics are), the whole private release is run on them, and Hotelling's
statistic is computed around the released means (Dunsche, Kutta and Dette, 2022, algorithm 3). One
column: Student's law with the noise, by quadrature, or a bound that is valid for every law.
Variances are known up to noise, so each p-value is the largest over plausible ones (as in Berger
and Boos, 1994). Without noise the tests are the classical ones.

All but the readers of samples is post-processing. Proof and measurements: docs/proofs/means.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Budget
from privatest.core.results import (
    Interval,
    Outcome,
    PrivateEstimate,
    confidence,
    known_values,
    side_alpha,
)
from privatest.core.text import EstimateTable, numbered
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    printable,
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
from privatest.mechanisms.additive import entry_noise
from privatest.mechanisms.covariance import ed_replicates, less_a_square
from privatest.mechanisms.moments import (
    MomentPlan,
    ReleasedMoments,
    centred,
    cube_moments,
    plan_release,
    release_sample,
    svec_noise,
)
from privatest.numerics.laws import Alternative
from privatest.numerics.moments import scatter_draws, spread_steps
from privatest.numerics.permutation import parallel

Floats = NDArray[np.float64]
Calibration = Literal["classical", "any"]
CALIBRATIONS = ("classical", "any")
_FORMER = ("bootstrap", "normal", "asymptotic")
BY_SIZES = "the noise and the statistic need the group sizes"
HIGHEST_LEVEL = 0.99999  # a bootstrap needs at least 1/(1 - level) replicates


# --- samples of numeric columns with public bounds ---


def numeric_sample(x: Any, bounds: Bounds) -> Sample:
    """Read a sample of numeric columns with public bounds."""
    _require_bounds(bounds)
    sample = encode_sample(x, bounds)
    _check_columns(sample)
    return sample


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


def column_titles(names: Sequence[str] | None, count: int) -> list[str]:
    """Return the printable names of columns, or their numbers."""
    return numbered(count) if names is None else [printable(name) for name in names]


def sample_budget(budget: Budget, adjacency: Adjacency, groups: int = 2) -> Budget:
    """Return what each sample may spend: a person is in one of them, or in all."""
    if adjacency == "row":
        raise ParameterError(
            "adjacency must be 'one' or 'both': the noise and the statistic need the sizes of "
            "the groups, so they have to be public. For private groups use mmd_test or ipm_test."
        )
    one_of("adjacency", adjacency, ("one", "both"))
    return budget if adjacency == "one" else budget.divided(groups)


# --- what is released ---


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A mean or a difference of two means, and how covariances are pooled for it.

    Attributes
    ----------
    samples : tuple of ReleasedMoments
        One or two.
    weights : tuple of float
        Weights of their covariances; they sum to 1.
    size : float
        n, or n m/(n + m): the covariance of the contrast is the pooled one over this.
    equal : bool
        Whether the samples are assumed to have the same covariance.
    """

    samples: tuple[ReleasedMoments, ...]
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


def one_sample_contrast(
    sample: Sample, budget: Budget, noise: NoiseSource, **share: float
) -> Contrast:
    """Release one sample."""
    if len(sample) < 2:
        raise DataError("x must have at least 2 rows.")
    return Contrast(release_rows([sample], budget, noise, **share), (1.0,), float(len(sample)))


def two_sample_contrast(
    samples: TwoSamples, budget: Budget, noise: NoiseSource, *, equal: bool
) -> Contrast:
    """Release two samples, of equal covariance or not; ``budget`` is that of each."""
    n, m = map(len, samples)
    if min(n, m) < 2:
        raise DataError("each sample must have at least 2 rows.")
    released = release_rows(samples, budget, noise)
    # unequal: remark 3.2 of Dunsche, Kutta and Dette
    pooled, unequal = ((n - 1) / (n + m - 2), (m - 1) / (n + m - 2)), (m / (n + m), n / (n + m))
    return Contrast(released, pooled if equal else unequal, n * m / (n + m), equal)


def release_rows(
    samples: Sequence[Sample], budget: Budget, noise: NoiseSource, **share: float
) -> tuple[ReleasedMoments, ...]:
    """Release mean and covariance of each sample; ``budget`` is that of each."""
    person = rows_of_a_person(*samples)
    plans = [plan_release(len(sample), sample.width, budget, person, **share) for sample in samples]
    sums = cube_moments(*samples)  # all of it is read before noise is drawn
    return tuple(release_sample(own, plan, noise) for own, plan in zip(sums, plans, strict=True))


# --- Hotelling's law, by bootstrap ---


_STACK = 1 << 18  # matrix entries processed at a time
_FEWEST = 19  # draws from which a correlation is taken
Scenario = tuple[Floats, ...]  # a population: covariances, one for each sample


def scenarios(contrast: Contrast) -> list[Scenario]:
    """Return covariances as released, and inflated by some deviations of noise and sampling.

    Only those that matter at these sizes and this noise; post-processing.
    """
    smallest = float(np.linalg.eigvalsh(contrast.released_scale)[0])
    # covariance, standard deviation of its noise, degrees of freedom
    parts = [(each.covariance, each.spread_noise, each.plan.n - 1) for each in contrast.samples]
    if contrast.equal:
        noise = math.hypot(
            *(weight * part[1] for weight, part in zip(contrast.weights, parts, strict=True))
        )
        parts = [(contrast.released_covariance, noise, contrast.freedom)] * len(parts)
    largest = max(noise for _, noise, _ in parts)
    return [
        tuple(_larger(step, *part) for part in parts)
        for step in spread_steps(len(contrast.value), largest, smallest)
    ]


def _larger(step: float, covariance: Floats, noise: float, freedom: int) -> Floats:
    grown = covariance + step * noise * np.eye(len(covariance))
    return grown * (1 + step * math.sqrt(2 / freedom))


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


def redraw(
    sample: ReleasedMoments, covariance: Floats, count: int, rng: np.random.Generator
) -> Redrawn:
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


def _mean_noise(plan: MomentPlan, count: int, rng: np.random.Generator) -> Floats:
    shape = (count, plan.dimension)
    if plan.budget.delta > 0:
        return rng.normal(scale=plan.mean_scale, size=shape)
    # density exp(-|z|∞/s): the radius is Gamma(d + 1, s), the point uniform in its cube
    radius = rng.gamma(plan.dimension + 1, plan.mean_scale, size=(count, 1))
    return radius * rng.uniform(-1, 1, size=shape)


def _noisy_covariance(
    second: Floats, mean: Floats, sample: ReleasedMoments, rng: np.random.Generator
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


def _replicate_block(
    contrast: Contrast, scenario: Scenario, count: int, rng: np.random.Generator
) -> Replicates:
    drawn = [
        redraw(sample, covariance, count, rng)
        for sample, covariance in zip(contrast.samples, scenario, strict=True)
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


def replicate_covariances(sample: ReleasedMoments, count: int, rng: np.random.Generator) -> Floats:
    """Draw private covariances of samples like the released one."""
    block = max(1, _STACK // sample.plan.dimension**2)
    parts = [
        redraw(sample, sample.covariance, min(block, count - start), rng).covariance
        for start in range(0, count, block)
    ]
    return np.concatenate(parts)


def statistic(deviations: Floats, scales: Floats, size: float) -> Floats:
    """Hotelling's t² = size · w' S^-1 w, for stacks along the leading axes."""
    solved = np.linalg.solve(scales, deviations[..., None])[..., 0]
    result: Floats = size * np.sum(deviations * solved, axis=-1)
    return result


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
        shared = np.corrcoef(np.sqrt(self.values), np.sqrt(self.classical))[0, 1]
        return float(shared) if shared > 0.5 else 0.0

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


# --- Student's law with noise, by quadrature ---


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
    cases = [tuple(float(v[0, 0]) for v in each) for each in scenarios(contrast)]
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
        quadrature = float(np.mean(ndtr(-t * np.sqrt(self.exact / self.size) / self.error)))
        return noisy * (exact / quadrature) if noisy < quadrature else noisy - quadrature + exact

    def pvalue(self, t: float, alternative: Alternative) -> float:
        """Return the p-value of t, above 0."""
        size = max(abs(t), _SMALLEST)
        if alternative == "two-sided":
            tail = self._survival(size, 1) + self._survival(size, -1)
        else:
            side = 1 if alternative == "greater" else -1
            if side * t <= 0:  # the tail on the other side is the smaller one
                tail = 1.0 - self._survival(size, -side)
            else:
                tail = self._survival(size, side)
        return min(1.0, max(tail, _TINY))

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


# --- any law within the bounds: a region for mean and variance, then Chernoff's bound ---


SHARE = 0.1  # of alpha, for the confidence regions
_ROUNDS = 30  # of narrowing a region; each of them is valid
_POINTS = 400  # of the exponents over which Chernoff's bound is minimised
_GRID = 2.0**-30  # of the sensitivity: noise is added on a grid at most this wide
_ROUNDING = 1e-12
_SHORTEST = 1e-6
Term = tuple[ReleasedMoments, float, float]  # a sample, how far a row may exceed its mean, variance


def contrast_pvalue(
    contrast: Contrast, deviation: float, alternative: Alternative, alpha: float
) -> float:
    """Return a p-value that is valid for every law within the bounds.

    Parameters
    ----------
    contrast : Contrast
        One column.
    deviation : float
        ReleasedMoments contrast minus its hypothetical value.
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
    lower = math.inf if alternative == "less" else _tail_reach(up, tail) + slack
    upper = math.inf if alternative == "greater" else _tail_reach(down, tail) + slack
    return lower, upper


def _sides(contrast: Contrast, alpha: float) -> tuple[list[Term], list[Term]]:
    """Return the terms of an upward and of a downward deviation of the contrast."""
    share = SHARE * alpha / len(contrast.samples)
    regions = [region(sample, share) for sample in contrast.samples]
    above = [(s, 1 - r.low, r.variance) for s, r in zip(contrast.samples, regions, strict=True)]
    below = [(s, 1 + r.high, r.variance) for s, r in zip(contrast.samples, regions, strict=True)]
    if len(regions) == 1:
        return above, below
    return [above[0], below[1]], [below[0], above[1]]


@dataclass(frozen=True, slots=True)
class Region:
    """Where the mean of a sample's rows lies, and the most that their variance can be."""

    low: float
    high: float
    variance: float


def region(sample: ReleasedMoments, beta: float) -> Region:
    """Return a region that misses mean or variance with probability at most ``beta``.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    mean, slack = float(sample.mean[0]), _slack(sample)
    area = Region(-1.0, 1.0, 1.0)
    for _ in range(_ROUNDS):  # a mean in the region stays in it: see the proof
        variance = _largest_variance(sample, area, beta / 2)
        up = _tail_reach([(sample, 1 - area.low, variance)], beta / 4) + slack
        down = _tail_reach([(sample, 1 + area.high, variance)], beta / 4) + slack
        low, high = max(area.low, mean - up), min(area.high, mean + down)
        if low >= high:  # the noise went far beyond the bounds: the event of probability beta
            return Region(-1.0, 1.0, 1.0)
        area = Region(low, high, variance)
    return area


def _largest_variance(sample: ReleasedMoments, area: Region, beta: float) -> float:
    """Bound E(X - μ)² for the mean μ, which is in the region, except with probability ``beta``.

    For each exponent λ Markov's inequality of exp(-λ Q), Q the noisy mean of (X - μ)², gives a
    bound in closed form; the smallest one counts.
    """
    plan, mean = sample.plan, float(sample.mean[0])
    furthest = max(abs(area.low), abs(area.high))
    reach = (1 + furthest) ** 2
    # the covariance was cut at 0, which only raises it
    second = float(sample.covariance[0, 0]) / plan.unbiased + mean**2 - plan.variance
    # convex in μ: largest at an end
    observed = max(second - 2 * end * mean + end**2 for end in (area.low, area.high))
    observed = max(observed, 0.0) + 3 * _slack(sample)
    scales = (sample.second_scale, 2 * furthest * plan.mean_scale)
    exponents = _exponents(plan.n, max(scales), plan.budget.delta > 0)
    noise = sum(_log_mgf(exponents * scale, plan.budget.delta > 0) for scale in scales)
    gain = -np.expm1(-exponents * reach / plan.n) / reach
    bounds = -np.expm1((math.log(beta) - exponents * observed - noise) / plan.n) / gain
    most = 1 - min(abs(area.low), abs(area.high)) ** 2 * (area.low * area.high > 0)
    return min(float(np.min(bounds)), most)


def _tail_reach(terms: list[Term], tail: float) -> float:
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


def _slack(sample: ReleasedMoments) -> float:
    """Bound the rounding of a mean, and of a mean square, to the noise's grid and in summing."""
    plan, square = sample.plan, float(sample.mean[0]) ** 2
    grid = 2 * plan.rows_per_person / plan.n + plan.mean_scale + sample.second_scale
    return _GRID * grid + _ROUNDING * (1 + square + plan.variance)


# --- results ---


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


@dataclass(frozen=True, slots=True, eq=False)
class MeanInference:
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
) -> MeanInference:
    """Test whether the contrast equals ``hypothesis``, and find its confidence region.

    Notes
    -----
    **Sensitivity** None: this uses released values only.

    **Privacy** Post-processing.
    """
    if len(hypothesis) == 1:  # without draws
        inference = infer_one_column(contrast, float(hypothesis[0]), alpha=alpha)
        return replace(inference, statistic=inference.statistic**2)
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
    return MeanInference(
        observed, p, radius, *_within_bounds(contrast, point * errors, point * errors)
    )


def infer_one_column(
    contrast: Contrast,
    hypothesis: float,
    *,
    alpha: float,
    alternative: Alternative = "two-sided",
    calibration: Calibration = "classical",
) -> MeanInference:
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
    return MeanInference(deviation / error, p, radius, *_within_bounds(contrast, below, above))


def _within_bounds(contrast: Contrast, below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Cut intervals at the public bounds: a mean is in [-1, 1], a difference of two in [-2, 2].

    A noisy mean may be outside of its bounds, and so of its interval: a reach is negative then.
    """
    value, end = contrast.value, float(len(contrast.samples))
    lower, upper = np.clip(value - below, -end, end), np.clip(value + above, -end, end)
    return value - lower, upper - value


def estimates(contrast: Contrast, box: Box, inference: MeanInference) -> dict[str, Any]:
    """Return the released estimates, in the units of the data.

    Noise may take a mean out of its public bounds, where it cannot be: it is cut there, as the
    ends of its interval are. The region is about the mean before that.
    """
    samples, end = contrast.samples, float(len(contrast.samples))
    units = partial(np.multiply, box.half) if len(samples) == 2 else partial(in_units, box)
    middle, centre = units(np.clip(contrast.value, -end, end)), units(contrast.value)
    released = {
        "lower": centre - box.half * inference.lower,
        "upper": centre + box.half * inference.upper,
        "covariance": covariance_in_units(box, contrast.released_covariance),
        "region_shape": covariance_in_units(box, contrast.released_scale / contrast.size),
        "region_radius": inference.radius,
        "region_centre": centre,
    }
    if len(samples) == 1:
        return {"mean": middle} | released
    means = {
        name: in_units(box, np.clip(sample.mean, -1.0, 1.0))
        for name, sample in zip(("mean_x", "mean_y"), samples, strict=True)
    }
    return means | {"difference": middle} | released


def calibrated(method: str, calibration: Calibration) -> dict[str, str]:
    """Return a method's name, with its calibration where that is not the usual one, and level."""
    if calibration == "classical":
        return {"method": method, "level": "measured"}
    return {"method": f"{method}, valid for any law", "level": "valid"}


def outcome(
    inference: MeanInference,
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
        reject=inference.pvalue <= options["alpha"],
        alpha=options["alpha"],
        pvalue=inference.pvalue,
        statistic=inference.statistic,
        estimates=released,
        estimated="difference" if "difference" in released else "mean",
        parameters=shown,
        intervals=intervals,
        **facts,
    )


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
        inference = infer(self.contrast, hypothesis, alpha=alpha, n_bootstrap=count, seed=self.seed)
        shown = estimates(self.contrast, self.box, inference)
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

    def _finding(self, alpha: float) -> MeanInference:
        if not self.equal_tails:
            return self._side(self.alternative, alpha)
        below, above = self._side("greater", alpha / 2), self._side("less", alpha / 2)
        return MeanInference(below.statistic, 1.0, below.radius, below.lower, above.upper)

    def _side(self, alternative: Alternative, alpha: float) -> MeanInference:
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


@dataclass(frozen=True, slots=True, eq=False)
class MeanEstimate(PrivateEstimate):
    """A private mean, with a confidence region for the population mean.

    Attributes
    ----------
    mean : ndarray
        The private mean of each column, cut to the public bounds.
    lower, upper : ndarray
        Simultaneous confidence intervals: all of them cover with probability ``confidence``.
    covariance : ndarray
        The private covariance of the rows.
    region_shape, region_radius : ndarray, float
        The region is all θ with (c - θ)' region_shape^-1 (c - θ) at most the radius.
    region_centre : ndarray or None
        c: the private mean before it was cut; None where the estimate is the mean itself.
    estimated : {"mean", "share"}
        What the means are, for a reader.
    confidence : float
        Level of the region, and of the intervals.
    spent : Budget
        What releasing this cost.
    n : int
        Public number of rows.
    columns : tuple of str or None
        Names of the columns.
    rows_per_person : int
        The most rows that one person has; the guarantee hides all of them.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    intervals : callable or None
        From a level to intervals of that level, computed from released numbers alone; not part
        of the JSON document.
    """

    mean: Floats
    lower: Floats
    upper: Floats
    covariance: Floats
    region_shape: Floats
    region_radius: float
    confidence: float
    spent: Budget
    n: int
    columns: tuple[str, ...] | None = None
    rows_per_person: int = 1
    simulated: bool = False
    region_centre: Floats | None = None
    estimated: str = "mean"
    intervals: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return simultaneous intervals of another level; they cost nothing more.

        Parameters
        ----------
        confidence_level : float
            How often such intervals cover, all of them at once.

        Notes
        -----
        **Privacy** Post-processing: computed from what was released and public numbers.
        """
        level = confidence(confidence_level)
        if self.intervals is not None:
            return self.intervals(level)
        if abs(level - self.confidence) > 1e-12:
            raise ParameterError(
                f"confidence_level must be {self.confidence:g}: an estimate that was read from a "
                f"record has its own intervals only."
            )
        return Interval(self.lower, self.upper, level)

    @property
    def method_id(self) -> str:
        """The function that made the result."""
        return f"private_{self.estimated}"

    @property
    def heading(self) -> str:
        """What was estimated, from how many rows."""
        level = f"{100 * self.confidence:.4g}%"
        if len(self.mean) == 1:
            return f"Private {self.estimated} of {self.n:,} rows, with its {level} interval"
        return f"Private means of {self.n:,} rows, with simultaneous {level} intervals"

    def estimate_table(self) -> EstimateTable:
        """Return name, mean and interval of each column, as text."""
        values = zip(
            column_titles(self.columns, len(self.mean)),
            self.mean,
            self.lower,
            self.upper,
            strict=True,
        )
        rows = (
            (name, f"{mean:.6g}", f"({low:.6g} to {high:.6g})") for name, mean, low, high in values
        )
        return EstimateTable(self.heading, tuple(rows))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], spent: Budget) -> MeanEstimate:
        """Read what :meth:`to_dict` wrote; of the cost it has only rounded numbers."""
        known = known_values(cls, values) | {"spent": spent}
        if known["columns"] is not None:
            known["columns"] = tuple(known["columns"])
        for name in ("mean", "lower", "upper", "covariance", "region_shape", "region_centre"):
            if known.get(name) is not None:
                known[name] = np.asarray(known[name], dtype=np.float64)
        return cls(**known)
