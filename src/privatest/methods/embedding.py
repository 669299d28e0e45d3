"""Two-sample tests by features: kernel values at public locations, or characteristic functions.

With delta > 0 the difference of mean features is released with its covariance (Raj et al., 2019,
section 4.1, with one joint Gaussian mechanism). With pure epsilon, and by permutation, the
statistic is the regularised correlation of features and labels: for rows a_i = (h, psi_i) and
labels y_i of mean square 1, m = mean(y_i a_i), Lambda = mean(a_i a_i'),

    r = sqrt(m' (Lambda + gamma I)^-1 m)  in [0, 1).

One row moves r further the larger r is; S = G(r) undoes that, so that one bound is tight
everywhere. Proofs: docs/proofs/moments.md, docs/proofs/embedding-tests.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, Required, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError, PrivacyError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import (
    ADJACENCIES,
    Adjacency,
    Amount,
    Budget,
    PermutationSensitivity,
    Sensitivity,
)
from privatest.core.results import Decision, Outcome, declare_level
from privatest.core.secret_order import secret_bins
from privatest.core.validation import (
    Rng,
    boolean,
    integer_at_least,
    number,
    one_of,
    public_generator,
)
from privatest.data.encoding import TwoSamples, beside, encode_samples
from privatest.data.summaries import summarise
from privatest.mechanisms.additive import laplace, noisy_argmax
from privatest.mechanisms.moments import release_difference, release_moments
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result
from privatest.methods.descriptor import NEEDS_SIZES, SMOOTHED, Method, Offered, Option
from privatest.methods.locations import (
    PrivateChoice,
    characteristic_features,
    embedding_estimates,
    in_own_units,
    location_features,
)
from privatest.methods.two_groups import NULL_HYPOTHESIS, check_sizes
from privatest.numerics.features import Embedding, MeanEmbedding, SmoothCharacteristic
from privatest.numerics.kernels import KernelFamily
from privatest.numerics.moments import (
    NULLS,
    Moments,
    Null,
    PooledMoments,
    moment_pvalue,
    moments,
    moments_rounding,
)
from privatest.numerics.permutation import BinnedMoments, bin_layout, binned_rounding

Floats = NDArray[np.float64]
_UNIT_ROUNDOFF = 2.0**-53
_STRAIGHTENING_ERROR = 1e-12  # of G in floating point, relative to 1 + G
_NEWTON_STEPS = 12
_RELEASE_CONDITION = 100.0  # K of a released statistic; benchmarks/power/embedding.py
_CHOICE_CONDITION = 2.0  # K of a choice, which needs no null law
_PERMUTATION_CONDITION = 2.0  # K: small for less noise; only a null law would need a larger one
_CHOOSING = 5  # one row in five chooses
_GRID = 4096
_BAKIROV = 1.5365  # above it no weights of sum 1 have a larger tail than a single chi²
_PAIR_BINS = 256
_MAX_BINS = 16_384
_PAIRED_NULL = "the two members of a pair can be exchanged"


# --- samples as moments of features ---


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Inputs:
    """Two encoded samples, what is to be hidden, and what may be spent."""

    samples: TwoSamples
    budget: Budget
    alpha: float
    adjacency: Adjacency
    paired: bool
    noise: NoiseSource

    @property
    def sizes(self) -> dict[str, int]:
        """Public sizes."""
        if self.paired:
            return {"n": len(self.samples.x)}
        return {"n": len(self.samples.x), "m": len(self.samples.y)}

    @property
    def steps(self) -> int:
        """Replacements of one row (or pair) that lead from neighbour to neighbour."""
        each = 2 if self.adjacency == "both" else 1
        return each * self.samples.rows_per_person


def read_inputs(
    x: Any,
    y: Any,
    bounds: Any,
    budget: Budget,
    alpha: float,
    adjacency: Adjacency,
    paired: bool,
    noise: NoiseSource | None,
) -> Inputs:
    """Check and read what all embedding tests take."""
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("adjacency", adjacency, ADJACENCIES)
    boolean("paired", paired)
    if adjacency == "row":
        raise PrivacyError(
            "adjacency='row' is not offered by embedding tests: their labels and noise depend on "
            "the group sizes, which must be public. Use mmd_test, or declare the groups public."
        )
    if paired and adjacency == "both":
        raise ParameterError("paired=True already hides both rows of a pair; leave adjacency out.")
    source = noise_source(noise)
    # rows of a pair are one person's
    samples = encode_samples(x, y, bounds, adjacency="both" if paired else adjacency)
    check_sizes(samples, adjacency)
    if paired and len(samples.x) != len(samples.y):
        raise DataError("x and y must have the same number of rows: row i of each is one pair.")
    return Inputs(samples, budget, alpha, adjacency, paired, source)


def sample_moments(inputs: Inputs, embedding: Embedding) -> tuple[Moments, Moments]:
    """Mean and second moment of each sample's features, in one pass."""
    x, y = moments(
        *inputs.samples, psi=embedding, dimension=embedding.dimension, radius=embedding.radius
    )
    return x, y


def feature_differences(embedding: Embedding, rows: Floats) -> Floats:
    """Features of x minus those of y, for pairs of rows side by side."""
    x, y = np.split(rows, 2, axis=1)
    return embedding(np.ascontiguousarray(x)) - embedding(np.ascontiguousarray(y))


def pair_moments(inputs: Inputs, embedding: Embedding) -> Moments:
    """Mean and second moment of the differences of paired rows."""
    (pairs,) = moments(
        beside(*inputs.samples),
        psi=partial(feature_differences, embedding),
        dimension=embedding.dimension,
        radius=embedding.spread,
    )
    return pairs


def released_moments(inputs: Inputs, embedding: Embedding) -> PooledMoments:
    """Release the difference of mean features, the pooled mean and second moment."""
    if not inputs.paired:
        x, y = sample_moments(inputs, embedding)
        return release_difference(
            x,
            y,
            radius=embedding.radius,
            spread=embedding.spread,
            budget=inputs.budget,
            noise=inputs.noise,
            adjacency=inputs.adjacency,
            rows_per_person=inputs.samples.rows_per_person,
            feature_error=embedding.rounding,
        )
    # a difference of features is at most the spread long, and two are at most twice that apart
    released = release_moments(
        pair_moments(inputs, embedding),
        radius=embedding.spread,
        budget=inputs.budget,
        noise=inputs.noise,
        rows_per_person=inputs.samples.rows_per_person,
        feature_error=2 * embedding.rounding,
    )
    # Two samples of 2n rows have H = n; the mean difference is that of means +w/2 and -w/2.
    return PooledMoments(
        n_x=2 * released.n,
        n_y=2 * released.n,
        difference=released.mean,
        centre=np.zeros_like(released.mean),
        second=released.second,
        sigma_difference=released.sigma,
        sigma_centre=0.0,
        sigma_second=released.sigma_second,
        share=0.5,
    )


def embedding_facts(inputs: Inputs, embedding: Embedding, test: str) -> dict[str, Any]:
    """Return the public fields of a result; ``test`` is the name of the test."""
    parameters: dict[str, Any] = {"paired": inputs.paired}
    if isinstance(embedding, MeanEmbedding):
        test = f"{test} ({embedding.kernel.family} kernel)"
        parameters |= {
            "kernel": embedding.kernel.family,
            "bandwidth": embedding.kernel.bandwidth,
            "locations": in_own_units(embedding.locations, inputs.samples.x.schema),
        }
    elif isinstance(embedding, SmoothCharacteristic):
        parameters |= {
            "bandwidth": embedding.bandwidth,
            "frequencies": embedding.frequencies.T.tolist(),  # per unit of the box
        }
    return {
        "adjacency": inputs.adjacency,
        "method": f"{'paired' if inputs.paired else 'two-sample'} {test}",
        "null_hypothesis": _PAIRED_NULL if inputs.paired else NULL_HYPOTHESIS,
        "sizes": inputs.sizes,
        "parameters": parameters,
        "rows_per_person": inputs.samples.rows_per_person,
    }


# --- the straightened correlation and its sensitivity ---


@dataclass(frozen=True, slots=True)
class Scale:
    """The public constants of a straightened correlation.

    Attributes
    ----------
    constant : float
        h, the coordinate that all rows share; 0 for paired rows.
    ridge : float
        gamma.
    slant : float or None
        epsilon of G for rows with a constant; None is G for paired rows.
    stretch : float
        G is taken at stretch · r.
    sensitivity : float
        How far S moves when one row is replaced.
    """

    constant: float
    ridge: float
    slant: float | None
    stretch: float
    sensitivity: float


def two_sample_scale(n: int, m: int, *, radius: float, spread: float, condition: float) -> Scale:
    """Return the constants for two samples of sizes ``n`` and ``m``.

    Parameters
    ----------
    n, m : int
        Public sizes; labels are sqrt(m/n) on the first sample and -sqrt(n/m) on the second.
    radius, spread : float
        No feature vector is longer than ``radius``; no two are further apart than ``spread``.
    condition : float
        K: gamma = 2 radius²/K. Large K looks at every direction of the features alike, small K
        needs less noise.

    Notes
    -----
    **Sensitivity** With h = radius, U² = K/(2 radius²), e = radius - spread/2 the statistic
    S = G(U h r/Y) moves by at most spread · h U²/(N - M), M = spread U² (e + sqrt(h² + e²))/2.
    Proof: docs/proofs/embedding-tests.md. For spread = 2 radius this is K/(N - K/2).
    """
    total, apart = n + m, min(spread, 2 * radius)
    steepest = condition / (2 * radius**2)  # U²
    slack = max(radius - apart / 2, 0.0)
    slope = apart * steepest * (slack + math.hypot(radius, slack)) / 2
    if total <= 2 * slope:
        raise ValueError("condition is too large for so few rows")
    label = math.sqrt(max(n, m) / min(n, m))
    return Scale(
        constant=radius,
        ridge=1 / steepest,
        slant=slack / radius,
        stretch=math.sqrt(steepest) * radius / label,
        sensitivity=apart * radius * steepest / (total - slope),
    )


def paired_scale(n: int, *, reach: float, condition: float) -> Scale:
    """Return the constants for ``n`` paired rows, differences of norm at most ``reach``.

    Notes
    -----
    **Sensitivity** gamma = reach²/K; S = G(sqrt(K) r) moves by at most K/(n - K/2) when both
    halves of a pair are replaced. Proof: docs/proofs/embedding-tests.md.
    """
    if n <= condition:
        raise ValueError("condition is too large for so few rows")
    return Scale(
        constant=0.0,
        ridge=reach**2 / condition,
        slant=None,
        stretch=math.sqrt(condition),
        sensitivity=condition / (n - condition / 2),
    )


def embedding_scale(
    inputs: Inputs, embedding: Embedding, condition: float | None, default: float
) -> Scale:
    """Return the public constants of S; by default K is small enough for the sizes."""
    n, m = len(inputs.samples.x), len(inputs.samples.y)
    total = n if inputs.paired else n + m
    if condition is None:
        chosen = min(default, total / 4)
    else:
        chosen = number("condition", condition, above=0)
        if chosen > total / 2:
            raise ParameterError("condition must be at most half the number of rows.")
    if inputs.paired:
        return paired_scale(n, reach=embedding.spread, condition=chosen)
    return two_sample_scale(
        n, m, radius=embedding.radius, spread=embedding.spread, condition=chosen
    )


def correlation(products: Floats, pooled: Moments, scale: Scale) -> Floats:
    """Return r for each row of ``products``, the means of label · features.

    The mean label is 0 for two samples, so that the constant coordinate of m is 0 and enters
    through its part of Lambda only: with it eliminated the matrix that is left is
    M - h²/(h² + gamma) mean mean' + gamma I, which lies between gamma I and M + gamma I.
    """
    weight = scale.constant**2 / (scale.constant**2 + scale.ridge)
    matrix = pooled.second - weight * np.outer(pooled.mean, pooled.mean)
    matrix = (matrix + matrix.T) / 2 + scale.ridge * np.eye(len(matrix))
    lower = np.linalg.cholesky(matrix)
    whitened = np.linalg.solve(lower, products.T)
    lengths: Floats = np.sqrt(np.sum(whitened**2, axis=0))
    return np.minimum(lengths, 1.0)


def correlation_rounding(
    dimension: int, scale: Scale, radius: float, errors: tuple[float, float, float]
) -> float:
    """Bound the rounding error of S, given those of products, mean and second moment (l2).

    r = |A^(-1/2) m| with A >= gamma I: an error of m adds at most its size/sqrt(gamma), one of
    A at most r |E|/gamma; the factorisation is exact for a matrix 8 dimension² u |A| away.
    """
    products, mean, second = errors
    matrix = second + 2.01 * radius * mean + mean**2
    matrix += 8 * (dimension + 2) ** 2 * _UNIT_ROUNDOFF * (radius**2 + scale.ridge)
    moved = products / math.sqrt(scale.ridge) + 1.01 * matrix / scale.ridge
    # G has slope at most 1 in stretch · r
    return scale.stretch * moved + _STRAIGHTENING_ERROR * (1 + scale.stretch)


def straightened(correlations: Floats, scale: Scale) -> Floats:
    """Return S = G(stretch · r): increasing, 0 at 0, of slope at most 1.

    Examples
    --------
    >>> paired = Scale(0.0, 1.0, None, 1.0, 1.0)
    >>> straightened(np.array([2.0, 10.0]), paired).round(6).tolist()
    [0.977597, 3.091314]
    """
    at = scale.stretch * np.asarray(correlations, dtype=np.float64)
    if scale.slant is None:
        return _paired_curve(at)
    return _curve(at, scale.slant)


def _paired_curve(x: Floats) -> Floats:
    """x/2 up to 1, then 1/2 + 2 [ln((x + 1)/2) + 1/(x + 1) - 1/2]."""
    far = np.maximum(x, 1.0)
    curve: Floats = np.where(x <= 1, x / 2, 0.5 + 2 * (np.log((far + 1) / 2) + 1 / (far + 1) - 0.5))
    return curve


def _curve(x: Floats, slant: float) -> Floats:
    """G in its parameter k in [0, a), x = k sqrt(1 + k²)/(1 - 2 slant k - k²)."""
    root = math.hypot(1.0, slant)
    pole, other = 1 / (root + slant), root + slant  # 1 - 2 slant k - k² = (pole - k)(other + k)
    k = np.full_like(x, pole)
    for _ in range(_NEWTON_STEPS):  # increasing and convex in k: from above, it never overshoots
        root_k = np.sqrt(1 + k**2)
        value = k * root_k - x * (pole - k) * (other + k)
        k = k - value / ((1 + 2 * k**2) / root_k + 2 * x * (slant + k))
    k = np.clip(k, 0.0, pole)
    first, second = (1 - slant * pole) / (2 * root), (1 + slant * other) / (2 * root)
    shear = np.log1p(-slant * k) / slant if slant > 0 else -k
    logs = second * np.log1p(k / other) - first * np.log1p(-k / pole)
    curve: Floats = 4 * logs + shear - 2 * k
    return curve


def embedding_statistic(
    inputs: Inputs, embedding: Embedding, scale: Scale
) -> tuple[float, int, float, float]:
    """Return S, the number of labelled rows, S's rounding error and the largest variance."""
    if inputs.paired:
        pairs = pair_moments(inputs, embedding)
        products, pooled, reach = pairs.mean, pairs, embedding.spread
        variance, feature_error = reach**2, 2 * embedding.rounding
    else:
        x, y = sample_moments(inputs, embedding)
        total = x.n + y.n
        pooled = Moments(
            total,
            (x.n * x.mean + y.n * y.mean) / total,
            (x.n * x.second + y.n * y.second) / total,
        )
        products = math.sqrt(x.n * y.n) / total * (x.mean - y.mean)
        reach, feature_error = embedding.radius, embedding.rounding
        # the variance of vectors in a ball is E|psi - psi'|²/2, and at most E|psi|²
        variance = min(embedding.radius**2, embedding.spread**2 / 2)
    mean, second = moments_rounding(pooled.n, reach, embedding.dimension, feature_error)
    errors = 2 * mean, mean, second
    error = correlation_rounding(embedding.dimension, scale, reach, errors)
    value = straightened(correlation(products[None], pooled, scale), scale)[0]
    return float(value), pooled.n, error, variance


def relabelled(
    inputs: Inputs,
    embedding: Embedding,
    scale: Scale,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[Floats, float]:
    """S for the observed labels and for permuted ones: one pass, then sums over bins."""
    n, m = map(len, inputs.samples)
    layout = bin_layout(n, m, None, _MAX_BINS)
    permutation = layout.permute(n_permutations, rng)
    passes = []
    secret = permutation.secret_bins(inputs.samples, inputs.noise)
    for sample, bins in zip(inputs.samples, secret, strict=True):
        sizes = len(sample), layout.size
        accumulator = partial(
            BinnedMoments, embedding, embedding.dimension, bins, sizes, embedding.radius
        )
        passes.append((sample, accumulator))
    x, y = summarise(*passes)
    sums, total = permutation.join(x.sums.value, y.sums.value), n + m
    pooled = Moments(total, sums.sum(axis=0) / total, (x.second.value + y.second.value) / total)
    # labels are sqrt(m/n) and -sqrt(n/m): sqrt(nm) times the weights 1/n and -1/m
    products = math.sqrt(n * m) / total * (permutation.weights @ sums)
    rounding = binned_rounding(
        total,
        min(n, m),
        len(sums),
        layout.size,
        embedding.radius,
        embedding.rounding,
        embedding.dimension,
    )
    return _straight(products, pooled, scale, embedding.radius, rounding)


def _flipped(
    inputs: Inputs,
    embedding: Embedding,
    scale: Scale,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[Floats, float]:
    """S for the observed differences and for bins of them with flipped signs."""
    n, size, reach = len(inputs.samples.x), embedding.dimension, embedding.spread
    edges = np.linspace(0, n, min(n, _PAIR_BINS) + 1).astype(np.intp)
    in_bins = np.diff(edges).tolist()
    psi = partial(feature_differences, embedding)
    bins = secret_bins(in_bins, inputs.noise)
    accumulator = partial(BinnedMoments, psi, size, bins, (n, max(in_bins)), reach)
    (binned,) = summarise((beside(*inputs.samples), accumulator))
    sums = binned.sums.value
    pooled = Moments(n, sums.sum(axis=0) / n, binned.second.value / n)
    signs = np.ones((n_permutations + 1, len(sums)))
    signs[1:] = rng.choice([-1.0, 1.0], size=(n_permutations, len(sums)))
    products = signs @ sums / n
    error = 2 * embedding.rounding
    rounding = binned_rounding(n, n, len(sums), max(in_bins), reach, error, size)
    return _straight(products, pooled, scale, reach, rounding)


def _straight(
    products: Floats,
    pooled: Moments,
    scale: Scale,
    reach: float,
    rounding: tuple[float, float],
) -> tuple[Floats, float]:
    mean, second = rounding
    errors = 2 * mean, mean, second
    error = correlation_rounding(products.shape[1], scale, reach, errors)
    return straightened(correlation(products, pooled, scale), scale), error


# --- null law and releases of the statistic ---


def statistic_pvalue(
    noisy: float, *, size: int, dimension: int, variance: float, scale: Scale, noise_scale: float
) -> float:
    """Probability that S with its noise is as large under the null hypothesis; public.

    ``size`` is the number of labelled rows. The law of S is taken from above on a grid, so the
    p-value is never too small but for the normal approximation of a mean.
    """
    masses, values = _null_law(size, dimension, variance, scale)
    distance = (noisy - values) / noise_scale
    small = 0.5 * np.exp(-np.abs(distance))
    above = np.where(distance > 0, small, 1 - small)
    return min(1.0, float(masses @ above))


@lru_cache(maxsize=16)
def _null_law(size: int, dimension: int, variance: float, scale: Scale) -> tuple[Floats, Floats]:
    """Return masses and values of a discrete law that is nowhere below that of S."""
    tail = _correlation_tail(dimension, variance, scale.ridge)
    grid = np.linspace(0.0, 1.0, _GRID + 1) ** 2  # finer near 0, where the law has its mass
    survival = tail(size * grid**2)
    masses = survival - np.append(survival[1:], 0.0)
    return masses, straightened(np.append(grid[1:], 1.0), scale)  # each mass at its right end


def _correlation_tail(dimension: int, variance: float, ridge: float) -> Callable[[Floats], Floats]:
    """Upper bound on P(N r² >= q), whatever the covariance of the features.

    N r² tends to sum t_i z_i², t_i = l_i/(l_i + ridge) with l_i the eigenvalues of the features'
    covariance, at most ``variance`` together. So t_i <= v/(v + ridge) gives a scaled chi²_J, and
    sum t_i <= J v/(v + J ridge) gives, above 1.5365 times it, a scaled chi²_1 (Bakirov 1987).
    """
    from scipy.special import chdtrc  # noqa: PLC0415 -- not needed to import privatest

    largest = variance / (variance + ridge)
    total = dimension * variance / (variance + dimension * ridge)

    def tail(q: Floats) -> Floats:
        every: Floats = chdtrc(dimension, q / largest)
        single = np.where(q >= _BAKIROV * total, chdtrc(1, q / total), 1.0)
        return np.minimum(every, single)

    return tail


def released_statistic(
    inputs: Inputs, embedding: Embedding, condition: float | None
) -> tuple[float, float, float]:
    """Release S with Laplace noise; return it with its p-value and the ridge."""
    scale = embedding_scale(inputs, embedding, condition, _RELEASE_CONDITION)
    value, total, error, variance = embedding_statistic(inputs, embedding, scale)
    bound = Sensitivity(
        (inputs.steps * scale.sensitivity + 2 * error) * (1 + 1e-12),
        adjacency=inputs.adjacency,
    )
    noisy = laplace(value, sensitivity=bound, budget=inputs.budget, noise=inputs.noise)
    pvalue = statistic_pvalue(
        noisy,
        size=total,
        dimension=embedding.dimension,
        variance=variance,
        scale=scale,
        noise_scale=bound.value / inputs.budget.pure_epsilon,
    )
    return noisy, pvalue, scale.ridge


def select_privately(inputs: Inputs, candidates: Sequence[Embedding]) -> tuple[int, Inputs]:
    """Return the chosen candidate's index and the rows that did not choose.

    Notes
    -----
    **Sensitivity** S of each candidate moves by at most its scale's sensitivity.

    **Privacy** Report-noisy-max on the S: the index, and nothing else, is epsilon-private. Rows
    are first put into a secret random order, so which part a row is in does not depend on the
    data. A row is seen by the choice or by the test, never by both: together they cost the larger
    of the two budgets, not the sum. That needs one row per person; a pair is one row.
    """
    if inputs.steps > 1:
        raise PrivacyError(
            "PrivateChoice needs one row per person and adjacency='one': a person with rows in "
            "both parts would be used twice."
        )
    choosing, testing = _split(inputs)
    scales = [
        embedding_scale(choosing, embedding, None, _CHOICE_CONDITION) for embedding in candidates
    ]
    values, widest = [], 0.0
    for embedding, scale in zip(candidates, scales, strict=True):
        value, _, error, _ = embedding_statistic(choosing, embedding, scale)
        values.append(value)
        widest = max(widest, (scale.sensitivity + 2 * error) * (1 + 1e-12))
    chosen = noisy_argmax(
        values, sensitivity=Sensitivity(widest), budget=inputs.budget, noise=inputs.noise
    )
    return chosen, testing


def _split(inputs: Inputs) -> tuple[Inputs, Inputs]:
    """Cut rows in a secret order; pairs stay together."""
    x, y = inputs.samples
    first_x, first_y = len(x) // _CHOOSING, len(y) // _CHOOSING
    if min(first_x, first_y) < 2:
        raise DataError(f"PrivateChoice needs at least {2 * _CHOOSING} rows in each sample.")
    order_x, order_y = inputs.samples.secret_orders(inputs.noise, paired=inputs.paired)

    def part(rows_x: slice, rows_y: slice) -> Inputs:
        samples = TwoSamples(x.part(order_x[rows_x]), y.part(order_y[rows_y]))
        return replace(inputs, samples=samples)

    return (
        part(slice(first_x), slice(first_y)),
        part(slice(first_x, None), slice(first_y, None)),
    )


# --- tests ---


@dataclass(frozen=True, slots=True)
class MomentsRelease:
    """Release the difference at each location with its covariance, and test with them.

    Attributes
    ----------
    n_bootstrap : int
        Draws of the corrected null law; post-processing.
    null : {"corrected", "asymptotic"}
        The null law. "asymptotic" ignores the noise and rejects too often; it is here to show
        that.
    """

    n_bootstrap: int = 999
    null: Null = "corrected"

    def __post_init__(self) -> None:
        """Check the fields."""
        integer_at_least("n_bootstrap", self.n_bootstrap, 1)
        one_of("null", self.null, NULLS)


@dataclass(frozen=True, slots=True)
class StatisticRelease:
    """Release one number and its p-value, with pure epsilon.

    Attributes
    ----------
    condition : float, optional
        K: a large one weighs all directions of the features alike, a small one needs less noise.
    """

    condition: float | None = None

    def __post_init__(self) -> None:
        """Check the field."""
        if self.condition is not None:
            number("condition", self.condition, above=0)


EmbeddingRelease = Literal["moments", "statistic"] | MomentsRelease | StatisticRelease


def embedding_release(
    release: EmbeddingRelease | None, budget: Budget
) -> MomentsRelease | StatisticRelease:
    """Return what is released; by default moments where delta > 0."""
    if release is None:
        release = "moments" if budget.delta else "statistic"
    if isinstance(release, (MomentsRelease, StatisticRelease)):
        return release
    one_of("release", release, ("moments", "statistic"))
    return MomentsRelease() if release == "moments" else StatisticRelease()


@declare_level("measured")
def me_test(
    x: Any,
    y: Any,
    *,
    locations: Offered[Any],
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Offered[EmbeddingRelease | None] = None,
    bounds: Any = None,
    kernel: Offered[KernelFamily] = "gaussian",
    bandwidth: Annotated[float | None, Option("bandwidths")] = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples differ, by mean kernel values at public locations.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; a row is a record, a 1-D array is one column.
    locations : int, array, data frame, Arrow table, ChosenLocations or PrivateChoice
        Public points at which the samples are compared, in the data's own units; a number of
        points to spread evenly over the bounds; what :func:`optimise_locations` found on public
        samples, with its bandwidth; or a :class:`PrivateChoice` among several of these. Never
        points of the private data.
    epsilon, delta : float, int, str or Decimal
        The privacy budget; ``release="moments"`` needs delta > 0.
    alpha : float
        Level of the decision.
    release : {"moments", "statistic"}, MomentsRelease or StatisticRelease, optional
        "moments" releases the difference at each location with its covariance, and tests with
        them; "statistic" one number, with pure epsilon. By default "moments" where delta > 0.
        :class:`MomentsRelease` and :class:`StatisticRelease` set what goes with one of the two.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns. Data outside is clipped. Without bounds ``bandwidth`` must
        be given, in the data's own units.
    kernel : {"gaussian", "laplace", "imq"}
        Kernel of the numeric columns.
    bandwidth : float, optional
        As a share of each column's bounds; by default half of the box's diameter.
    adjacency : {"one", "both"}
        What is hidden: one record's values, or one record in each group.
    paired : bool
        Row i of ``x`` and row i of ``y`` belong to one person, who is hidden with both.
    rng : None, int or Generator
        Public randomness, for the null law.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        For "moments" with ``estimates``: "difference" of mean kernel values at the locations,
        "noise" (standard deviation of the privacy noise on each), "error" (that of noise and
        sampling together) and "covariance" of kernel values. See :func:`distinguishing_features`.

    Notes
    -----
    **Sensitivity** Features have norm at most 1 and are at most c = sqrt(2 (1 - inf k)) apart.
    "moments": joint l2 sensitivity of difference, mean and second moment
    (docs/proofs/moments.md). "statistic": c U²/(N - M), U² = K/2 (docs/proofs/embedding-tests.md).
    "both" and several rows per person by the triangle inequality. "row" is refused: the test
    needs public group sizes.

    **Privacy** "moments": everything in the result comes from one analytic Gaussian mechanism,
    (epsilon, delta). "statistic": one number with Laplace noise; the p-value is post-processing.

    References
    ----------
    Raj, Law, Sejdinovic and Park (2019), A differentially private kernel two-sample test. Its
    perturbed statistic is not private and is not offered here.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=5000), rng.beta(2, 1, size=5000)
    >>> found = me_test(x, y, locations=[0.25, 0.75], bounds=(0, 1), epsilon=1, delta=1e-6)
    >>> found.reject
    True
    """
    budget = Budget(epsilon, delta)
    form, generator = embedding_release(release, budget), public_generator(rng)
    inputs = read_inputs(x, y, bounds, budget, alpha, adjacency, paired, noise)
    choice = isinstance(locations, PrivateChoice)
    embeddings = [
        location_features(candidate, inputs.samples.x, kernel, bandwidth)
        for candidate in (locations.candidates if choice else [locations])
    ]
    chosen = 0
    if choice:
        chosen, inputs = select_privately(inputs, embeddings)
    return _outcome(inputs, embeddings[chosen], "mean embedding test", form, generator)


@declare_level("measured")
def scf_test(
    x: Any,
    y: Any,
    *,
    frequencies: Annotated[Any, Option("locations")],
    bounds: Any,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Offered[EmbeddingRelease | None] = None,
    bandwidth: Annotated[float | None, Option("bandwidths")] = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples differ, by their smooth characteristic functions.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; numeric columns.
    frequencies : int, array or ChosenFrequencies
        Public frequencies, in radians per unit of the data, one row for each; how many to draw,
        the same ones in every run; or what :func:`optimise_frequencies` found.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns. Data outside is clipped.
    epsilon, delta, alpha, release, adjacency, paired, rng, noise
        As in :func:`me_test`.
    bandwidth : float, optional
        Width of the Gaussian weight exp(-|x - centre|²/(2 bandwidth²)) that smooths the
        characteristic function, as a share of the bounds; none by default.

    Returns
    -------
    Outcome
        As in :func:`me_test`; the differences are those of the cosines, then of the sines.

    Notes
    -----
    **Sensitivity** Features have norm at most 1; on the box they are at most
    sqrt(2 - 2 mean cos(min(|w|₁, pi))) apart (with a weight: or 1, if that is more). The rest is
    as in :func:`me_test`.

    **Privacy** As in :func:`me_test`.

    References
    ----------
    Chwialkowski, Ramdas, Sejdinovic and Gretton (2015); Raj et al. (2019).

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=5000), rng.beta(2, 1, size=5000)
    >>> scf_test(x, y, frequencies=[2.0, 4.0], bounds=(0, 1), epsilon=1, delta=1e-6).reject
    True
    """
    budget = Budget(epsilon, delta)
    form, generator = embedding_release(release, budget), public_generator(rng)
    inputs = read_inputs(x, y, bounds, budget, alpha, adjacency, paired, noise)
    embedding = characteristic_features(frequencies, inputs.samples.x, bandwidth)
    name = "smooth characteristic function test"
    return _outcome(inputs, embedding, name, form, generator)


def _outcome(
    inputs: Inputs,
    embedding: Embedding,
    test: str,
    release: MomentsRelease | StatisticRelease,
    rng: np.random.Generator,
) -> Outcome:
    facts = embedding_facts(inputs, embedding, test)
    estimates: dict[str, Any] = {}
    if isinstance(release, StatisticRelease):
        statistic, pvalue, ridge = released_statistic(inputs, embedding, release.condition)
        facts["parameters"] |= {"release": "statistic", "ridge": ridge}
    else:
        pooled = released_moments(inputs, embedding)
        draws: dict[str, Any] = {"null": release.null, "n_bootstrap": release.n_bootstrap}
        statistic, pvalue = moment_pvalue(pooled, **draws, rng=rng)
        facts["parameters"] |= {"release": "moments"} | draws
        estimates = embedding_estimates(pooled, embedding)
    return Outcome(
        reject=pvalue <= inputs.alpha,
        alpha=inputs.alpha,
        pvalue=pvalue,
        statistic=statistic,
        spent=inputs.budget,
        simulated=inputs.noise.simulated,
        estimated="feature_differences" if estimates else "",
        estimates=estimates,
        **facts,
    )


class EmbeddingOptions(TypedDict, total=False):
    """What the embedding permutation tests share besides data and ``release``."""

    epsilon: Required[Amount]
    delta: Amount
    alpha: float
    adjacency: Adjacency
    paired: bool
    bandwidth: float | None
    condition: float | None
    n_permutations: int
    rng: Rng
    noise: NoiseSource | None


class LocationOptions(EmbeddingOptions, total=False):
    """What :func:`me_permutation_test` takes."""

    locations: Required[Any]
    bounds: Any
    kernel: KernelFamily


class FrequencyOptions(EmbeddingOptions):
    """What :func:`scf_permutation_test` takes."""

    frequencies: Any
    bounds: Any


@overload
def me_permutation_test(
    x: Any, y: Any, *, release: Literal["pvalue"] = ..., **options: Unpack[LocationOptions]
) -> Outcome: ...
@overload
def me_permutation_test(
    x: Any, y: Any, *, release: Release, **options: Unpack[LocationOptions]
) -> Decision: ...
@declare_level("valid")
def me_permutation_test(
    x: Any,
    y: Any,
    *,
    locations: Offered[Any],
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Offered[Release] = "pvalue",
    bounds: Any = None,
    kernel: Offered[KernelFamily] = "gaussian",
    bandwidth: Annotated[float | None, Option("bandwidths")] = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    condition: float | None = None,
    n_permutations: Annotated[int, Option("permutations")] = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether two samples differ, by a permutation test at public locations.

    Parameters
    ----------
    x, y, locations, bounds, kernel, bandwidth, adjacency, paired
        As in :func:`me_test`. With ``paired`` the signs of differences are flipped instead.
    epsilon, delta : float, int, str or Decimal
        The privacy budget; delta may be 0.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    condition : float, optional
        K, a public constant: a large one weighs all directions of the features alike, a small
        one needs less noise; 2 by default.
    n_permutations : int
        Number of random permutations.
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        An Outcome without a statistic for ``release="pvalue"``, else a Decision.

    Notes
    -----
    **Sensitivity** c U²/(N - M) with U² = K/2 and c as in :func:`me_test`, under every
    permutation of the labels; paired: K/(n - K/2) under all flips. Proof:
    docs/proofs/embedding-tests.md.

    **Privacy** Only the p-value (a multiple of 1/10,000) or the decision is released, at
    (epsilon, delta). Proof: docs/proofs/smoothed-permutation-test.md.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=5000), rng.beta(2, 1, size=5000)
    >>> me_permutation_test(x, y, locations=[0.25, 0.75], bounds=(0, 1), epsilon=1).reject
    True
    """
    options = _permutation_options(release, condition, n_permutations, rng)
    inputs = read_inputs(x, y, bounds, Budget(epsilon, delta), alpha, adjacency, paired, noise)
    embedding = location_features(locations, inputs.samples.x, kernel, bandwidth)
    name = "mean embedding permutation test"
    return _permuted_result(inputs, embedding, name, **options)


@overload
def scf_permutation_test(
    x: Any, y: Any, *, release: Literal["pvalue"] = ..., **options: Unpack[FrequencyOptions]
) -> Outcome: ...
@overload
def scf_permutation_test(
    x: Any, y: Any, *, release: Release, **options: Unpack[FrequencyOptions]
) -> Decision: ...
@declare_level("valid")
def scf_permutation_test(
    x: Any,
    y: Any,
    *,
    frequencies: Annotated[Any, Option("locations")],
    bounds: Any,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Offered[Release] = "pvalue",
    bandwidth: Annotated[float | None, Option("bandwidths")] = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    condition: float | None = None,
    n_permutations: Annotated[int, Option("permutations")] = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether two samples differ, by permuting characteristic functions.

    Parameters
    ----------
    x, y, frequencies, bounds, bandwidth
        As in :func:`scf_test`.
    epsilon, delta, alpha, release, adjacency, paired, condition, n_permutations, rng, noise
        As in :func:`me_permutation_test`.

    Returns
    -------
    Outcome or Decision
        An Outcome without a statistic for ``release="pvalue"``, else a Decision.

    Notes
    -----
    **Sensitivity** As in :func:`me_permutation_test`, with the spread of :func:`scf_test` for c.

    **Privacy** As in :func:`me_permutation_test`.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=5000), rng.beta(2, 1, size=5000)
    >>> scf_permutation_test(x, y, frequencies=[2.0, 4.0], bounds=(0, 1), epsilon=1).reject
    True
    """
    options = _permutation_options(release, condition, n_permutations, rng)
    inputs = read_inputs(x, y, bounds, Budget(epsilon, delta), alpha, adjacency, paired, noise)
    embedding = characteristic_features(frequencies, inputs.samples.x, bandwidth)
    name = "smooth characteristic function permutation test"
    return _permuted_result(inputs, embedding, name, **options)


def _permutation_options(
    release: Release, condition: float | None, n_permutations: int, rng: Rng
) -> dict[str, Any]:
    """Return the checked options of :func:`_permuted_result`."""
    return {
        "release": one_of("release", release, RELEASES),
        "condition": None if condition is None else number("condition", condition, above=0),
        "n_permutations": integer_at_least("n_permutations", n_permutations, 1),
        "rng": public_generator(rng),
    }


def _permuted_result(
    inputs: Inputs,
    embedding: Embedding,
    test: str,
    *,
    release: Release,
    condition: float | None,
    n_permutations: int,
    rng: np.random.Generator,
) -> Decision:
    """Release a p-value or a decision; see :func:`me_permutation_test`."""
    scale = embedding_scale(inputs, embedding, condition, _PERMUTATION_CONDITION)
    permuted = _flipped if inputs.paired else relabelled
    statistics, error = permuted(inputs, embedding, scale, n_permutations, rng)
    moved = inputs.steps * scale.sensitivity
    facts = embedding_facts(inputs, embedding, test)
    facts["parameters"] |= {"ridge": scale.ridge, "n_permutations": n_permutations}
    return permutation_result(
        statistics,
        sensitivity=PermutationSensitivity(moved, moved).widened(error),
        budget=inputs.budget,
        alpha=inputs.alpha,
        release=release,
        noise=inputs.noise,
        facts=facts,
    )


DESCRIPTORS = (
    Method(
        name="me",
        question="two-sample",
        function=me_test,
        about="at locations",
        public_groups=NEEDS_SIZES,
        gaussian=True,
        sentence=(
            "We compared mean embeddings of the samples at public locations with a private test"
        ),
        papers=("raj2019", "chwialkowski2015"),
    ),
    Method(
        name="scf",
        question="two-sample",
        function=scf_test,
        about="at locations",
        public_groups=NEEDS_SIZES,
        gaussian=True,
        sentence="We compared smoothed characteristic functions of the samples with a private test",
        papers=("raj2019", "chwialkowski2015"),
    ),
    Method(
        name="me-permutation",
        question="two-sample",
        function=me_permutation_test,
        public_groups=NEEDS_SIZES,
        sentence=f"We compared mean embeddings of the samples at public locations, {SMOOTHED}",
        papers=("kim2023", "chwialkowski2015"),
    ),
    Method(
        name="scf-permutation",
        question="two-sample",
        function=scf_permutation_test,
        public_groups=NEEDS_SIZES,
        sentence=f"We compared smoothed characteristic functions of the samples, {SMOOTHED}",
        papers=("kim2023", "chwialkowski2015"),
    ),
)
