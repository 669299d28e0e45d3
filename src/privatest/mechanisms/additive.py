"""Additive noise and the exponential mechanism: a value, its sensitivity and a budget.

Laplace, Gaussian, l-infinity and signed-sums noise on vectors, discrete Laplace noise on integers
and counts. Proofs: docs/proofs/noise.md, counts.md, covariance.md and quantiles.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import SMALLEST_SENSITIVITY, Budget, Sensitivity, gaussian_scale
from privatest.core.validation import one_of, reject

_GAUSSIAN_GRID_BITS = 80  # the Gaussian's grid is at most 2^-80 of its sensitivity
_GRID_BITS = 30  # the grid of integer noise on real vectors is at most 2^-30 of its sensitivity

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def _finite(values: Floats) -> Floats:
    # OpenDP takes NaN for 0 and clamps infinities in silence.
    if not np.all(np.isfinite(values)):
        raise ParameterError("value must be finite: noise was not drawn.")
    return values


def laplace(value: float, *, sensitivity: Sensitivity, budget: Budget, noise: NoiseSource) -> float:
    """Add Laplace noise to one number.

    Parameters
    ----------
    value : float
        The private number.
    sensitivity : Sensitivity
        How far it moves between neighbours.
    budget : Budget
        With delta > 0 the noise is a little smaller (:attr:`Budget.pure_epsilon`).
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, in absolute value.

    **Privacy** The noisy number is (epsilon, delta)-private: exact discrete Laplace noise of
    scale sensitivity / xi on the grid of the smallest float.
    """
    _require_norm(sensitivity, "absolute", "l1")
    _finite(np.asarray(value, dtype=np.float64))
    scale = math.nextafter(sensitivity.value / budget.pure_epsilon, math.inf)
    repeat = partial(laplace, value=value, sensitivity=sensitivity, budget=budget)
    record(noise, "laplace", value, "absolute", (sensitivity.value,), scale, repeat)
    return released(noise, noise.laplace(float(value), scale))


def noisy_argmax(
    values: Sequence[float], *, sensitivity: Sensitivity, budget: Budget, noise: NoiseSource
) -> int:
    """Return the index of a large value: of the largest, after noise (report-noisy-max).

    Notes
    -----
    **Sensitivity** As declared, of each value; all of them may move at once, in either direction.

    **Privacy** Each value gets Laplace noise of scale 2 · sensitivity/xi. The index, and nothing
    else, is (epsilon, delta)-private: docs/proofs/embedding-tests.md.
    """
    twice = replace(sensitivity, value=2 * sensitivity.value)
    noisy = [laplace(value, sensitivity=twice, budget=budget, noise=noise) for value in values]
    return noisy.index(max(noisy))


def gaussian(
    values: Floats,
    *,
    sensitivity: Sensitivity,
    budget: Budget,
    noise: NoiseSource,
) -> Floats:
    """Add Gaussian noise to a vector.

    Parameters
    ----------
    values : ndarray
        The private vector, any shape.
    sensitivity : Sensitivity
        How far it moves between neighbours, in "l2" (or "absolute" for one number).
    budget : Budget
        Needs delta > 0.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, plus the rounding to the noise's grid, 2^k sqrt(size).

    **Privacy** The noisy vector is (epsilon, delta)-private by the analytic Gaussian
    mechanism on a grid so fine that its delta differs by less than 1e-29.
    """
    values = _finite(np.asarray(values, dtype=np.float64))
    _require_norm(sensitivity, "l2", *(["absolute"] if values.size == 1 else []))
    scale = gaussian_noise_scale(values.size, sensitivity, budget)
    repeat = partial(gaussian, values=values, sensitivity=sensitivity, budget=budget)
    record(noise, "gaussian", values, "l2", (sensitivity.value,), scale, repeat)
    return released(noise, noise.gaussian(values, scale, _gaussian_grid(sensitivity)))


def gaussian_noise_scale(size: int, sensitivity: Sensitivity, budget: Budget) -> float:
    """Return the standard deviation that :func:`gaussian` uses for ``size`` numbers; public."""
    widened = sensitivity.value + math.ldexp(math.sqrt(size), _gaussian_grid(sensitivity))
    return gaussian_scale(widened, budget)


def gaussian_part(
    values: Floats,
    *,
    sensitivity: Sensitivity,
    budget: Budget,
    share: Fraction,
    noise: NoiseSource,
) -> Floats:
    """Add Gaussian noise to a vector for a share of a budget: one of several rounds.

    Parameters
    ----------
    values, sensitivity, budget, noise
        As in :func:`gaussian`; the budget is that of all rounds together.
    share : Fraction
        What this round takes, above 0 and at most 1; those of all rounds add up to 1 at most.

    Notes
    -----
    **Sensitivity** As declared, plus the rounding to the noise's grid.

    **Privacy** A round with share s is Gaussian noise of 1/sqrt(s) times the scale for all of
    the budget: the squares of sensitivity over scale add up to that of one Gaussian mechanism,
    so all rounds together are (epsilon, delta)-private, also where a later round is chosen by
    what earlier ones released: docs/proofs/tables.md.
    """
    values = _finite(np.asarray(values, dtype=np.float64))
    _require_norm(sensitivity, "l2")
    scale = gaussian_part_scale(values.size, sensitivity, budget, share)
    repeat = partial(
        gaussian_part, values=values, sensitivity=sensitivity, budget=budget, share=share
    )
    record(noise, "gaussian part", values, "l2", (sensitivity.value,), scale, repeat)
    return released(noise, noise.gaussian(values, scale, _gaussian_grid(sensitivity)))


def gaussian_part_scale(
    size: int, sensitivity: Sensitivity, budget: Budget, share: Fraction
) -> float:
    """Return the standard deviation that :func:`gaussian_part` uses; public, rounded up."""
    if not 0 < share <= 1:
        reject("share", "above 0 and at most 1", float(share))
    whole = gaussian_noise_scale(size, sensitivity, budget)
    return whole / math.sqrt(share) * (1 + 1e-14)


def _gaussian_grid(sensitivity: Sensitivity) -> int:
    return math.floor(math.log2(sensitivity.value)) - _GAUSSIAN_GRID_BITS


def linf_mean(mean: Floats, *, sensitivity: float, epsilon: float, noise: NoiseSource) -> Floats:
    """Add noise to a vector whose entries may all move at once, each by a little.

    Parameters
    ----------
    mean : ndarray
        The private vector, of one dimension.
    sensitivity : float
        How far its largest change is from 0 between neighbours (the l-infinity norm).
    epsilon : float
        What is spent, a part of a budget.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, plus the rounding to the noise's grid g: an integer S with
    S g >= sensitivity + g.

    **Privacy** Integer noise z with P(z) proportional to exp(-epsilon |z|∞/S), drawn exactly:
    epsilon-private by the triangle inequality. Its radius is drawn with weight (2k+1)^d
    exp(-epsilon k/S), then z is uniform on the cube of that radius: docs/proofs/means.md.
    """
    values = _finite(np.asarray(mean, dtype=np.float64))
    steps, grid = _grid(sensitivity, 1)
    scale = math.nextafter(steps / epsilon, math.inf)
    repeat = partial(linf_mean, mean=mean, sensitivity=sensitivity, epsilon=epsilon)
    record(noise, "l-infinity", values, "linf", (sensitivity,), scale * grid, repeat)
    radius = _linf_radius(len(values), scale, noise)
    drawn = [noise.below(2 * radius + 1) - radius for _ in range(len(values))]
    return released(noise, _on_grid(values, drawn, grid))


def linf_scale(sensitivity: float, epsilon: float) -> float:
    """Return the s of the density exp(-|z|∞/s) of :func:`linf_mean`'s noise; public.

    The noise of each of d entries has variance (d + 1)(d + 2)/3 · s².
    """
    steps, grid = _grid(sensitivity, 1)
    return math.nextafter(steps / epsilon, math.inf) * grid


def _grid(sensitivity: float, rounding: int) -> tuple[int, float]:
    """Return the sensitivity in steps of a grid, and the grid, a power of two.

    ``rounding`` is how many steps rounding to the grid adds to the sensitivity.
    """
    sensitivity = max(sensitivity, SMALLEST_SENSITIVITY)
    grid = math.ldexp(1.0, math.floor(math.log2(sensitivity)) - _GRID_BITS)
    return math.floor(sensitivity / grid) + rounding, grid


def _on_grid(values: Floats, drawn: Sequence[int], grid: float) -> Floats:
    """Add integer noise to values on the grid."""
    # a quotient by a power of two is exact; so is the sum of integers
    noisy = [round(float(value) / grid) + z for value, z in zip(values, drawn, strict=True)]
    return np.array([float(integer) * grid for integer in noisy])


def _linf_radius(dimension: int, scale: float, noise: NoiseSource) -> int:
    """Draw k with weight (2k + 1)^dimension exp(-k/scale), exactly."""
    while True:
        # a sum of d + 1 geometric numbers has weight binomial(k + d, d) exp(-k/scale); the two
        # weights differ by the product of (2k + 1)/(2k + 2i), up to a constant
        radius = sum(geometric(scale, noise) for _ in range(dimension + 1))
        tries = range(1, dimension + 1)
        if all(noise.below(2 * radius + 2 * i) <= 2 * radius for i in tries):
            return radius


def geometric(scale: float, noise: NoiseSource) -> int:
    """Draw k >= 0 with weight exp(-k/scale): either half of a discrete Laplace law is one."""
    drawn = noise.discrete_laplace(scale)
    return drawn if drawn >= 0 else -drawn - 1


def _require_norm(sensitivity: Sensitivity, *norms: str) -> None:
    if sensitivity.norm not in norms:
        reject("sensitivity.norm", " or ".join(norms), sensitivity.norm)


# Integers and counts: discrete Laplace noise, docs/proofs/counts.md.


_LARGEST_COUNT, _LARGEST_SUM, _LARGEST_DRAW = 1 << 60, 1 << 61, 1 << 62

CountMechanism = Literal["auto", "laplace", "gaussian"]
COUNT_MECHANISMS: tuple[str, ...] = get_args(CountMechanism)


@dataclass(frozen=True, slots=True)
class CountNoise:
    """The noise of each cell; public.

    Attributes
    ----------
    kind : {"laplace", "gaussian"}
        Discrete Laplace on integers, or Gaussian.
    scale : float
        P(j) is proportional to exp(-abs(j)/scale), or the standard deviation.
    """

    kind: Literal["laplace", "gaussian"]
    scale: float

    @property
    def variance(self) -> float:
        """Variance of a cell's noise."""
        if self.kind == "gaussian":
            return self.scale**2
        return 2 * math.exp(-1 / self.scale) / math.expm1(-1 / self.scale) ** 2

    def draws(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Return simulated noise from public randomness, for laws under a null hypothesis."""
        if self.kind == "gaussian":
            return rng.normal(scale=self.scale, size=shape)
        success = -math.expm1(-1 / self.scale)
        first, second = rng.geometric(success, size=(2, *shape))
        return np.asarray(first - second, dtype=np.float64)


def count_noise(
    size: int, budget: Budget, mechanism: CountMechanism = "auto", *, rows_per_person: int = 1
) -> CountNoise:
    """Choose the noise for a table of ``size`` cells; by public numbers only.

    Parameters
    ----------
    size : int
        Number of cells.
    budget : Budget
        Gaussian noise needs delta > 0.
    mechanism : {"auto", "laplace", "gaussian"}
        "auto" takes the smaller variance: nearly always Laplace, as one row moves two cells only.
    rows_per_person : int
        How many rows a person may have.
    """
    one_of("mechanism", mechanism, COUNT_MECHANISMS)
    if mechanism == "gaussian" and budget.delta == 0:
        reject("delta", "above 0 for Gaussian noise", float(budget.delta))
    scale = math.nextafter(2 * rows_per_person / budget.pure_epsilon, math.inf)
    laplace = CountNoise("laplace", scale)
    if mechanism == "laplace" or budget.delta == 0:
        return laplace
    widened = gaussian_noise_scale(size, _l2(rows_per_person), budget)
    normal = CountNoise("gaussian", widened)
    return normal if mechanism == "gaussian" or normal.variance < laplace.variance else laplace


def noisy_counts(
    counts: Integers,
    *,
    law: CountNoise,
    budget: Budget,
    rows_per_person: int = 1,
    noise: NoiseSource,
) -> Floats:
    """Add noise to each cell of a table.

    Parameters
    ----------
    counts : ndarray of int
        The private table, any shape, whose total is public.
    law : CountNoise
        From :func:`count_noise`, with the same budget and rows per person.
    budget, rows_per_person
        What is spent, and how many rows a person may have.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** 2 rows_per_person in the l1 norm, sqrt(2) rows_per_person in the l2 norm:
    each replaced row moves one cell down by 1 and another up.

    **Privacy** The noisy table is (epsilon, delta)-private: exact discrete Laplace noise on
    integers, or the analytic Gaussian mechanism. Proof: docs/proofs/counts.md.
    """
    if law.kind == "gaussian":
        values = counts.astype(np.float64)
        return gaussian(values, sensitivity=_l2(rows_per_person), budget=budget, noise=noise)
    repeat = partial(
        noisy_counts, counts=counts, law=law, budget=budget, rows_per_person=rows_per_person
    )
    return _discrete_laplace(counts, 2.0 * rows_per_person, law.scale, noise, repeat)


def _discrete_laplace(
    values: Integers, sensitivity: float, scale: float, noise: NoiseSource, repeat: partial[Floats]
) -> Floats:
    record(noise, "discrete Laplace", values, "l1", (sensitivity,), scale, repeat)
    drawn = noise.discrete_laplaces(scale, values.size).reshape(values.shape)
    return released(noise, with_noise(values, drawn))


def with_noise(counts: Integers, drawn: Integers) -> Floats:
    """Return counts + noise cut at ±2^61, added as integers of 64 bits that cannot overflow.

    Notes
    -----
    **Privacy** A draw beyond ±2^62, saturated or not, puts the sum beyond ±2^61 whatever the count
    is, so what comes out is a function of the exact sum: docs/proofs/noise.md.
    """
    near = np.clip(counts, -_LARGEST_COUNT, _LARGEST_COUNT)
    total = near + np.clip(drawn, -_LARGEST_DRAW, _LARGEST_DRAW)
    cut: Floats = np.clip(total, -_LARGEST_SUM, _LARGEST_SUM).astype(np.float64)
    return cut


def _l2(rows_per_person: int) -> Sensitivity:
    # k rows that leave one cell for another: k sqrt(2), the furthest they can go together
    return Sensitivity(rows_per_person * math.sqrt(2) * (1 + 1e-15), "l2")


def integer_noise(sensitivity: Sensitivity, budget: Budget) -> CountNoise:
    """Return the law of the noise; public."""
    rounded = sensitivity.value / budget.pure_epsilon
    return CountNoise("laplace", math.nextafter(rounded, math.inf))


def noisy_integers(
    values: Integers, *, sensitivity: Sensitivity, budget: Budget, noise: NoiseSource
) -> Floats:
    """Add discrete Laplace noise to each integer.

    Notes
    -----
    **Sensitivity** The bound in the l1 norm that is passed, a whole number.

    **Privacy** epsilon, by exact discrete Laplace noise of scale sensitivity/epsilon on integers.
    Proof: docs/proofs/conditional.md.
    """
    scale = integer_noise(sensitivity, budget).scale
    repeat = partial(noisy_integers, values=values, sensitivity=sensitivity, budget=budget)
    return _discrete_laplace(values, sensitivity.value, scale, noise, repeat)


# The second moment of rows in a cube, entry by entry. For two or three columns it is at least as
# accurate as :mod:`privatest.mechanisms.covariance`. Proof: docs/proofs/covariance.md.


def entries_scale(n: int, *, epsilon: float, rows_per_person: int = 1, error: float = 0.0) -> float:
    """Return the s of the noise of :func:`noisy_entries`; public, known before any data."""
    return linf_scale(_entries_moved(n, rows_per_person, error), epsilon)


def _entries_moved(n: int, rows_per_person: int, error: float) -> float:
    return rows_per_person * (1 / n + 2 * error) * (1 + 1e-12)


def noisy_entries(
    second: Floats,
    *,
    n: int,
    epsilon: float,
    noise: NoiseSource,
    rows_per_person: int = 1,
    error: float = 0.0,
) -> Floats:
    """Release (1/n) Σ x x' of rows of [-1, 1]^d.

    Parameters
    ----------
    second : ndarray
        The private second moment, symmetric, about the centre of the cube.
    n : int
        Public number of rows.
    epsilon : float
        What is spent, a part of a budget.
    noise : NoiseSource
        The secret randomness.
    rows_per_person : int
        Rows that a person may have.
    error : float
        Bound on the rounding error of each entry.

    Returns
    -------
    ndarray
        A symmetric matrix; it may have negative eigenvalues.

    Notes
    -----
    **Sensitivity** A replaced row moves a mean of squares by at most 1/n and a mean of products
    by at most 2/n. So diagonal entries, and half of the others, move by at most 1/n each, and
    all of them at once; times ``rows_per_person``, with the rounding of both neighbours.

    **Privacy** Integer noise in the l-infinity norm on a grid, drawn exactly: epsilon-private and
    float-safe (:func:`privatest.mechanisms.additive.linf_mean`).
    """
    dimension = len(second)
    if second.shape != (dimension, dimension):
        raise ParameterError("value must be a square matrix: noise was not drawn.")
    moved = _entries_moved(n, rows_per_person, error)
    row, column, weights = _entry_places(dimension)
    noisy = linf_mean(
        second[row, column] / weights, sensitivity=moved, epsilon=epsilon, noise=noise
    )
    found: Floats = _from_entries(noisy[None], dimension)[0]
    return found


def entries_deviation(dimension: int, scale: float) -> float:
    """Return the standard deviation of the noise in a direction, the root of its mean square.

    That of a diagonal entry is t = s sqrt((k + 1)(k + 2)/3), k the number of entries, and that of
    another 2t: together d(4d - 3) t² in the Frobenius norm, a d-th part of it for a direction.
    """
    count = dimension * (dimension + 1) // 2
    return scale * math.sqrt((count + 1) * (count + 2) / 3 * (4 * dimension - 3))


def entry_noise(dimension: int, scale: float, count: int, rng: np.random.Generator) -> Floats:
    """Draw symmetric matrices like the noise: for a bootstrap, not for privacy."""
    size = dimension * (dimension + 1) // 2
    radius = rng.gamma(size + 1, scale, size=(count, 1))
    return _from_entries(radius * rng.uniform(-1, 1, size=(count, size)), dimension)


@cache
def _entry_places(dimension: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return where entries are, and the range of x_i x_j: 1 for a square, 2 for a product."""
    row, column = np.triu_indices(dimension)
    return row, column, np.where(row == column, 1.0, 2.0)


def _from_entries(vectors: Floats, dimension: int) -> Floats:
    """Return matrices from weighted entries, for stacks along the first axis."""
    row, column, weights = _entry_places(dimension)
    found = np.empty((len(vectors), dimension, dimension))
    found[:, row, column] = found[:, column, row] = vectors * weights
    return found


# Signed sums: vectors whose increases sum to at most a bound, and their decreases too, like the
# eigenvalues of a sum of squares. The norm is |z| = max(sum of the positive entries, minus the sum
# of the negative ones), with unit ball {a - b: a, b >= 0, |a|₁, |b|₁ <= 1}. It is smaller than the
# l1 ball of radius 2, so noise shaped like it is smaller too.
# Proof: docs/proofs/covariance.md.


def signed_sums_norm(z: Floats) -> Floats:
    """Return the larger of the sums of positive and of negative entries, along the last axis."""
    largest: Floats = np.maximum(np.maximum(z, 0.0).sum(-1), np.maximum(-z, 0.0).sum(-1))
    return largest


def signed_sums(
    values: Floats, *, sensitivity: float, epsilon: float, noise: NoiseSource
) -> Floats:
    """Add noise to a vector of which neither increases nor decreases sum to more than a bound.

    Parameters
    ----------
    values : ndarray
        The private vector, of one dimension.
    sensitivity : float
        How far it moves between neighbours, in the norm of :func:`signed_sums_norm`.
    epsilon : float
        What is spent, a part of a budget.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, plus the rounding to the noise's grid g: an integer S with
    S g >= sensitivity + d g.

    **Privacy** Integer noise z with P(z) proportional to exp(-epsilon |z|/S), drawn exactly:
    epsilon-private by the triangle inequality.
    """
    _finite(values)
    steps, grid = _grid(sensitivity, len(values))
    scale = math.nextafter(steps / epsilon, math.inf)
    repeat = partial(signed_sums, values=values, sensitivity=sensitivity, epsilon=epsilon)
    record(noise, "signed sums", values, "signed sums", (sensitivity,), scale * grid, repeat)
    drawn = _signed_sums_noise(len(values), scale, noise)
    return released(noise, _on_grid(values, drawn, grid))


def signed_sums_scale(sensitivity: float, epsilon: float, dimension: int) -> float:
    """Return the s of the density exp(-|z|/s) of :func:`signed_sums`' noise; public."""
    steps, grid = _grid(sensitivity, dimension)
    return math.nextafter(steps / epsilon, math.inf) * grid


def signed_sums_deviation(dimension: int) -> float:
    """Return the standard deviation of each entry of the noise, for a scale of 1."""
    sides = [math.comb(dimension, j) ** 2 for j in range(dimension + 1)]
    # of j entries of one sign, uniform where their sum is at most 1, each has this mean square
    squares = [2 * j / (dimension * (j + 1) * (j + 2)) for j in range(dimension + 1)]
    mean = 2 * sum(s * w for s, w in zip(squares, sides, strict=True)) / sum(sides)
    return math.sqrt((dimension + 1) * (dimension + 2) * mean)


def signed_sums_draws(count: int, dimension: int, scale: float, rng: np.random.Generator) -> Floats:
    """Draw such noise in floating point: for a bootstrap, not for privacy."""
    places = np.empty((count, 2 * dimension), dtype=np.intp)
    places[:] = np.arange(2 * dimension)
    rng.permuted(places, axis=1, out=places)
    positive = np.any(
        places[:, :dimension, None] == np.arange(dimension), axis=1
    )  # a random half of 2d places
    parts = rng.standard_exponential((count, dimension))
    rest = rng.standard_exponential((count, 2))
    up = np.where(positive, parts, 0.0)
    down = parts - up
    up /= (up.sum(axis=1) + rest[:, 0])[:, None]
    down /= (down.sum(axis=1) + rest[:, 1])[:, None]
    radius: Floats = rng.gamma(dimension + 1, scale, size=(count, 1))
    return radius * (up - down)


def _signed_sums_noise(dimension: int, scale: float, noise: NoiseSource) -> list[int]:
    """Draw integers z with probability proportional to exp(-|z|/scale), exactly."""
    while True:
        # weight binomial(k + d, d) exp(-k/scale), and the places of entries that are not negative
        k = sum(geometric(scale, noise) for _ in range(dimension + 1))
        places = [place for place in _subset(2 * dimension, dimension, noise) if place < dimension]
        j, below = len(places), dimension - len(places)
        # uniform points of radius k with these signs: their number over what was proposed
        if all(noise.below(k + j + 1 + i) < k - i for i in range(below)):
            break
    ups = [b - a - 1 for a, b in pairwise([-1, *_subset(k + j, j, noise)])]
    downs = [b - a for a, b in pairwise([-1, *_subset(k, below, noise)])]
    return [ups.pop() if place in places else -downs.pop() for place in range(dimension)]


def _subset(limit: int, size: int, noise: NoiseSource) -> list[int]:
    """Draw a subset of ``range(limit)``, all of one size equally likely, in ascending order."""
    chosen: set[int] = set()
    for last in range(limit - size, limit):  # Floyd's algorithm
        drawn = noise.below(last + 1)
        chosen.add(last if drawn in chosen else drawn)
    return sorted(chosen)


# The exponential mechanism on integers. Proof: docs/proofs/quantiles.md.


_WEIGHT_BITS = 48  # the weight of a candidate with score 0, before its multiplicity, is about 2^48
_HALF_BITS = 24  # sums of weights are kept in two parts
_HALF_MASK = (1 << _HALF_BITS) - 1
_UNIFORM_BITS = (
    192  # bits of the uniform number: what they leave out is below what the constant adds
)


def selection_weights(scores: Integers, *, sensitivity: int, epsilon: float) -> Integers:
    """Return integer weights that change by a factor of at most exp(epsilon/2) between neighbours.

    A score v of 0 or more has weight 2^48 exp(-epsilon v/(2 sensitivity)), rounded, plus a
    constant that pays for the rounding.
    """
    exponents = np.maximum(-(0.5 * epsilon / sensitivity) * scores, -700.0)
    rounded = np.rint(np.ldexp(np.exp(exponents), _WEIGHT_BITS)).astype(np.int64)
    # numbers that are off by at most 1 keep the ratio r = e^(epsilon/2) if (r + 1)/(r - 1) is added
    constant = math.ceil(1 / math.tanh(epsilon / 4) * (1 + 1e-9)) + 1
    weights: Integers = rounded + constant
    return weights


def select_candidate(
    scores: Integers,
    multiplicities: Integers,
    *,
    sensitivity: int,
    budget: Budget,
    noise: NoiseSource,
) -> int:
    """Return the index of a candidate with a low score (McSherry and Talwar's mechanism).

    Parameters
    ----------
    scores : ndarray of int
        The private scores, 0 or more; the lowest is the best.
    multiplicities : ndarray of int
        Public: as how many candidates each of them counts.
    sensitivity : int
        The most by which any score moves between neighbours.
    budget : Budget
        With delta > 0 the choice is a little better.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, of each score; all of them may move at once, in either direction.

    **Privacy** The index, and nothing else, is (epsilon, delta)-private: a uniform number of 192
    bits chooses among integer weights, so no float is rounded after the weights are made.
    """
    epsilon = budget.pure_epsilon
    repeat = partial(
        select_candidate,
        scores=scores,
        multiplicities=multiplicities,
        sensitivity=sensitivity,
        budget=budget,
    )
    scale = sensitivity / epsilon
    record(noise, "exponential", scores, "linf", (float(sensitivity),), scale, repeat)
    weights = selection_weights(scores, sensitivity=sensitivity, epsilon=epsilon)
    high = np.cumsum((weights >> _HALF_BITS) * multiplicities)
    low = np.cumsum((weights & _HALF_MASK) * multiplicities)

    def below(candidate: int) -> int:
        """Return the weight of all candidates up to this one."""
        return (int(high[candidate]) << _HALF_BITS) + int(low[candidate])

    # a limit that is public, so that nothing about the weights shows in how the number is drawn
    drawn = noise.below(1 << _UNIFORM_BITS) * below(len(scores) - 1) >> _UNIFORM_BITS
    return released(noise, bisect_right(range(len(scores)), drawn, key=below))
