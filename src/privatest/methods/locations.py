"""Public locations and frequencies of embedding tests: given, optimised on public data, or ranked.

The optimisers maximise the power criterion of Jitkrittum et al. (2016), w'(Sigma + gamma I)^-1 w,
where gamma is what the private test will add, so that locations are chosen for the noise they will
meet. They must not see real data: what is chosen from private rows leaks them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Amount, Budget, gaussian_scale
from privatest.core.results import EqualByValue, Outcome
from privatest.core.text import places_of
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    of_type,
    public_generator,
    reject,
)
from privatest.data.encoding import Sample, TwoSamples, encode_like, encode_samples
from privatest.data.schema import Domain, Schema
from privatest.mechanisms.moments import difference_sensitivity, nearest_psd
from privatest.methods.two_groups import check_sizes
from privatest.numerics.features import (
    RIDGE,
    Embedding,
    MeanEmbedding,
    mean_embedding,
    smooth_characteristic,
)
from privatest.numerics.kernels import Kernel, KernelFamily, kernel_grid
from privatest.numerics.moments import PooledMoments, pooled_covariance

Floats = NDArray[np.float64]
_MOST_FEATURES = 500  # the second moment of more would be lost in noise
_TRIED = 300  # frequencies tried before a search
_NARROWEST, _WIDEST = np.log(0.02), np.log(50.0)  # of the bandwidth, in diameters of the box


# --- locations and frequencies as features ---


class ChosenLocations(NamedTuple):
    """Public locations in the data's own units, and a bandwidth as a share of the bounds."""

    locations: Floats
    bandwidth: float
    criterion: float


class ChosenFrequencies(NamedTuple):
    """Public frequencies, in radians per unit of the data."""

    frequencies: Floats
    criterion: float


@dataclass(frozen=True, slots=True, eq=False)
class PrivateChoice:
    """Sets of public locations, of which the private data chooses one for :func:`me_test`.

    A fifth of the rows, in secret order, chooses by report-noisy-max; the others test. So the
    cost stays the same, and the choice is part of the result.

    Attributes
    ----------
    candidates : sequence
        At least two, each as ``locations`` of :func:`me_test`.
    """

    candidates: Sequence[Any]

    def __post_init__(self) -> None:
        """Check that there is a choice."""
        if not isinstance(self.candidates, (list, tuple)) or len(self.candidates) < 2:
            reject("candidates", "a list of at least two sets of locations", self.candidates)


def public_kernel(family: KernelFamily, bandwidth: float | None, domain: Domain) -> Kernel:
    """Return the kernel; by default half of the box's diameter wide."""
    if bandwidth is None:
        if not domain.bounded:
            raise ParameterError(
                "bandwidth must be given when bounds are not: choosing it from the data would "
                "leak it."
            )
        diameter = domain.dimension if family == "laplace" else math.sqrt(domain.dimension)
        bandwidth = diameter / 2
    (kernel,) = kernel_grid(family, bandwidth, domain)
    return kernel


def unpacked_locations(
    locations: Any, family: str, bandwidth: float | None
) -> tuple[Any, float | None]:
    """Return locations and bandwidth; locations that were optimised have one of their own."""
    if not isinstance(locations, ChosenLocations):
        return locations, bandwidth
    if bandwidth is not None or family != "gaussian":
        raise ParameterError(
            "kernel and bandwidth must be left out: they come with the chosen locations."
        )
    return locations.locations, locations.bandwidth


def unpacked_frequencies(frequencies: Any) -> Any:
    """Return frequencies as an array if they were optimised, else as they were given."""
    chosen = isinstance(frequencies, ChosenFrequencies)
    return frequencies.frequencies if chosen else frequencies


def location_features(
    locations: Any, sample: Sample, family: KernelFamily, bandwidth: float | None
) -> MeanEmbedding:
    """Build the mean embedding at public ``locations``: see :func:`me_test`."""
    if isinstance(locations, PrivateChoice):
        raise ParameterError("locations must not be a PrivateChoice here: only me_test takes one.")
    locations, bandwidth = unpacked_locations(locations, family, bandwidth)
    domain = sample.domain
    kernel = public_kernel(family, bandwidth, domain)
    if isinstance(locations, Integral) and not isinstance(locations, bool):
        _check_count("locations", int(locations))
        return mean_embedding(kernel, domain.points(int(locations)), domain)
    try:
        rows = encode_like(locations, sample, "locations").rows
    except DataError as error:  # they are no data, but a public parameter
        raise ParameterError(str(error)) from None
    _check_count("locations", len(rows))
    return mean_embedding(kernel, np.array(rows), domain)


def characteristic_features(frequencies: Any, sample: Sample, bandwidth: float | None) -> Embedding:
    """Build the smooth characteristic function at public ``frequencies``.

    Given ones are in radians per unit of the data; a number draws as many from the spectrum of
    a Gaussian kernel of half the box's diameter, the same in every run.
    """
    domain = sample.domain
    if isinstance(frequencies, Integral) and not isinstance(frequencies, bool):
        count = int(frequencies)
        _check_count("frequencies", 2 * count)
        width = math.sqrt(domain.dimension) / 2  # exp(-t²/w²) is the cf of N(0, 2/w²)
        drawn = public_generator(0).normal(size=(count, domain.dimension)) * math.sqrt(2) / width
        return smooth_characteristic(drawn, bandwidth, domain)
    waves = np.asarray(unpacked_frequencies(frequencies))
    if waves.ndim == 1 and domain.dimension == 1:
        waves = waves[:, None]
    shaped = waves.ndim == 2 and waves.shape[1] == domain.dimension
    if not shaped or waves.dtype.kind not in "iuf" or not np.isfinite(waves).all():
        reject("frequencies", "an integer, or one finite number for each column in each row", waves)
    _check_count("frequencies", 2 * len(waves))
    widths = 1.0 if sample.schema is None else sample.box.width  # radians per unit of the box
    return smooth_characteristic(waves * widths, bandwidth, domain)


def in_own_units(rows: Floats, schema: Schema | None) -> list[list[Any]]:
    """Write encoded public rows in the data's own units."""
    if schema is None:
        return [[float(value) for value in row] for row in rows]
    columns = schema.decode(rows, integers=False).values()
    return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _check_count(name: str, count: int) -> None:
    if not 1 <= count <= _MOST_FEATURES:
        raise ParameterError(f"{name} must give between 1 and {_MOST_FEATURES} features.")


# --- what was released at each location ---


def embedding_estimates(pooled: PooledMoments, embedding: Embedding) -> dict[str, Any]:
    """Write released moments as kernel values at the locations, or as cosines and sines.

    Embedding tests and comparisons of shares show them; :func:`distinguishing_features` reads
    them. "noise" is the standard deviation of the privacy noise on each difference, "error" that
    of noise and sampling together.
    """
    back = embedding.unscaling
    covariance = back @ nearest_psd(pooled_covariance(pooled)) @ back.T
    noise = pooled.sigma_difference * np.linalg.norm(back, axis=1)
    return {
        "difference": back @ pooled.difference,
        "noise": noise,
        "error": np.sqrt(noise**2 + np.diag(covariance) / pooled.harmonic),
        "covariance": covariance,
    }


@dataclass(frozen=True, slots=True, eq=False)
class DistinguishingFeature(EqualByValue):
    """One location (or wave) with the private difference there.

    Attributes
    ----------
    place : tuple
        The location, in the data's own units; for waves "cos" or "sin" and the frequency, in
        radians per range of a column.
    difference : float
        Private mean of x minus that of y there: of kernel values, cosines or sines.
    noise : float
        Standard deviation of the privacy noise in it.
    error : float
        Standard deviation of noise and sampling together.
    """

    place: tuple[Any, ...]
    difference: float
    noise: float
    error: float

    @property
    def clarity(self) -> float:
        """The absolute difference, in standard errors."""
        return abs(self.difference) / self.error


def distinguishing_features(outcome: Outcome) -> list[DistinguishingFeature]:
    """Rank the locations of a test by how clearly the samples differ there, clearest first.

    Parameters
    ----------
    outcome : Outcome
        Of :func:`me_test` or :func:`scf_test` with ``release="moments"``.

    Notes
    -----
    **Privacy** Post-processing of what was released: it costs nothing. The largest of many
    differences is not a test by itself; the p-value of the outcome is.

    Examples
    --------
    >>> import numpy as np
    >>> from privatest.methods.embedding import me_test
    >>> x, y = np.full(5000, 0.2), np.full(5000, 0.8)
    >>> found = me_test(x, y, locations=[0.0, 0.5], bounds=(0, 1), epsilon=1, delta=1e-6)
    >>> distinguishing_features(found)[0].place
    (0.0,)
    """
    if not of_type(outcome, Outcome) or "difference" not in outcome.estimates:
        raise ParameterError("outcome must come from an embedding test with release='moments'.")
    estimates, places = outcome.estimates, places_of(outcome.parameters)
    features = [
        DistinguishingFeature(place, float(difference), float(noise), float(error))
        for place, difference, noise, error in zip(
            places,
            estimates["difference"],
            estimates["noise"],
            estimates["error"],
            strict=True,
        )
    ]
    return sorted(features, key=lambda feature: -feature.clarity)


# --- the best locations for two public samples ---


def optimise_locations(
    public_x: Any,
    public_y: Any,
    *,
    n_locations: int,
    bounds: Any,
    sizes: tuple[int, int],
    epsilon: Amount,
    delta: Amount,
    bandwidth: float | None = None,
    n_starts: int = 3,
    rng: Rng = None,
) -> ChosenLocations:
    """Choose locations and bandwidth of a Gaussian kernel on PUBLIC or simulated samples.

    Parameters
    ----------
    public_x, public_y : array, data frame or Arrow table
        Two PUBLIC samples that differ as the private ones may: simulated, or from another
        study. Numeric columns.
    n_locations : int
        How many locations.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns.
    sizes : pair of int
        Sizes of the private samples that will be tested.
    epsilon, delta : float, int, str or Decimal
        The budget of that test.
    bandwidth : float, optional
        Where the search starts; half of the box's diameter by default.
    n_starts : int
        Searches from different starting points; the best result is kept.
    rng : None, int or Generator
        Public randomness, for the starts.

    Returns
    -------
    ChosenLocations
        To be given to :func:`me_test` as ``locations``; it holds the bandwidth too, and the
        criterion reached.

    Notes
    -----
    **Privacy** None: both samples are taken as public.
    """
    count = integer_at_least("n_locations", n_locations, 1)
    starts = integer_at_least("n_starts", n_starts, 1)
    generator = public_generator(rng)
    samples = _public_samples("optimise_locations", public_x, public_y, bounds)
    domain, (x, y) = samples.domain, (sample.rows for sample in samples)
    kernel = public_kernel("gaussian", bandwidth, domain)
    ridge = _ridge(sizes, Budget(epsilon, delta), kernel.spread(domain), count)
    pool, size = np.vstack([x, y]), count * domain.dimension
    diameter = np.sqrt(domain.dimension)
    limits = [(0.0, 1.0)] * size + [(_NARROWEST + np.log(diameter), _WIDEST + np.log(diameter))]

    def criterion(point: Floats) -> tuple[float, Floats]:
        places, log_bandwidth = point[:-1].reshape(count, -1), float(point[-1])
        return power_criterion(places, log_bandwidth, x, y, ridge)

    def start() -> Floats:
        drawn = pool[generator.integers(len(pool), size=count)]
        return np.append(drawn.ravel(), np.log(kernel.bandwidth))

    best, reached = _climb(criterion, [start() for _ in range(starts)], limits)
    rows = best[:-1].reshape(count, -1)
    places = np.array(in_own_units(rows, samples.x.schema), dtype=np.float64)
    return ChosenLocations(places, float(np.exp(best[-1])), reached)


def optimise_frequencies(
    public_x: Any,
    public_y: Any,
    *,
    n_frequencies: int,
    bounds: Any,
    sizes: tuple[int, int],
    epsilon: Amount,
    delta: Amount,
    fastest: float = 30.0,
    n_starts: int = 3,
    rng: Rng = None,
) -> ChosenFrequencies:
    """Choose frequencies of :func:`scf_test` (without smoothing) on PUBLIC or simulated samples.

    Parameters
    ----------
    public_x, public_y, bounds, sizes, epsilon, delta, n_starts, rng
        As in :func:`optimise_locations`.
    n_frequencies : int
        How many frequencies.
    fastest : float
        Largest frequency tried, in radians per range of a column.

    Returns
    -------
    ChosenFrequencies
        To be given to :func:`scf_test` as ``frequencies``; it holds the criterion reached too.

    Notes
    -----
    **Privacy** None: both samples are taken as public.
    """
    count = integer_at_least("n_frequencies", n_frequencies, 1)
    starts = integer_at_least("n_starts", n_starts, 1)
    fastest = number("fastest", fastest, above=0)
    generator = public_generator(rng)
    samples = _public_samples("optimise_frequencies", public_x, public_y, bounds)
    domain, (x, y) = samples.domain, (sample.rows for sample in samples)
    ridge = _ridge(sizes, Budget(epsilon, delta), 2.0, 2 * count)

    def criterion(point: Floats) -> tuple[float, Floats]:
        return wave_criterion(point.reshape(count, -1), x, y, ridge)

    def start() -> Floats:
        # there are many local maxima: start from the best of many single frequencies
        drawn = generator.uniform(-fastest, fastest, size=(_TRIED, domain.dimension))
        alone = [wave_criterion(wave[None], x, y, ridge)[0] for wave in drawn]
        return drawn[np.argsort(alone)[-count:]].ravel()

    limits = [(-fastest, fastest)] * (count * domain.dimension)
    best, reached = _climb(criterion, [start() for _ in range(starts)], limits)
    return ChosenFrequencies(best.reshape(count, -1) / samples.x.box.width, reached)


def _public_samples(name: str, public_x: Any, public_y: Any, bounds: Any) -> TwoSamples:
    described = bounds.select(bounds.columns) if isinstance(bounds, Schema) else bounds
    samples = encode_samples(public_x, public_y, described)
    check_sizes(samples, "one")
    if not samples.domain.bounded or samples.domain.categorical:
        raise ParameterError(f"{name} needs numeric columns with bounds.")
    return samples


def _climb(
    criterion: Callable[[Floats], tuple[float, Floats]],
    starts: list[Floats],
    limits: list[tuple[float, float]],
) -> tuple[Floats, float]:
    """Maximise a criterion, given with its gradient, from each start; return the best."""
    from scipy.optimize import minimize  # noqa: PLC0415 -- not needed to import privatest

    def loss(point: Floats) -> tuple[float, Floats]:
        value, slope = criterion(point)
        # the logarithm: gradients of similar size, however far apart the samples are
        return -float(np.log(value + 1e-12)), -slope / (value + 1e-12)

    searches = [
        minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits) for start in starts
    ]
    best = min(searches, key=lambda each: each.fun)
    return best.x, float(np.exp(-best.fun))


def _ridge(sizes: tuple[int, int], budget: Budget, spread: float, count: int) -> float:
    """Return gamma of the private test; see PooledMoments.ridge."""
    n, m = (integer_at_least("sizes", size, 2) for size in sizes)
    sigma = gaussian_scale(difference_sensitivity(n, m, radius=1.0, spread=spread), budget)
    return float(n * m / (n + m) * sigma**2 + np.sqrt(2 * count) * sigma)


def power_criterion(
    locations: Floats,
    log_bandwidth: float,
    x: Floats,
    y: Floats,
    ridge: float,
) -> tuple[float, Floats]:
    """Return w'(Sigma + ridge (K + 1e-3 I))^-1 w of kernel values, and its gradient.

    That is the criterion of the whitened features. The gradient is by locations, row by row,
    then by the logarithm of the bandwidth.
    """
    rate = np.exp(-2 * log_bandwidth)
    squares = [_squares(rows, locations) for rows in (x, y, locations)]
    values_x, values_y, gram = (np.exp(-rate * square) for square in squares)
    penalty = ridge * (gram + RIDGE * np.eye(len(locations)))
    criterion, v, weights = _quotient(values_x, values_y, penalty)
    pulled = [
        weights[0] * values_x,
        weights[1] * values_y,
        -ridge * np.outer(v, v) * gram,
    ]
    slope_bandwidth = sum(
        2 * rate * float(np.sum(pull * square))
        for pull, square in zip(pulled, squares, strict=True)
    )
    slope = np.zeros_like(locations)
    for pull, rows in zip(pulled, (x, y, locations), strict=True):
        # a kernel value changes with its location t by 2 rate (row - t) times itself
        slope += 2 * rate * (pull.T @ rows - pull.sum(axis=0)[:, None] * locations)
    # a Gram entry changes with both of its locations
    pull = pulled[2]
    slope += 2 * rate * (pull @ locations - pull.sum(axis=1)[:, None] * locations)
    return criterion, np.append(slope.ravel(), slope_bandwidth)


def wave_criterion(waves: Floats, x: Floats, y: Floats, ridge: float) -> tuple[float, Floats]:
    """Return w'(Sigma + ridge I)^-1 w of cosines and sines, and its gradient by frequencies."""
    scale = 1 / np.sqrt(len(waves))
    angles = [rows @ waves.T for rows in (x, y)]
    cosines, sines = [scale * np.cos(a) for a in angles], [scale * np.sin(a) for a in angles]
    features = [np.hstack(pair) for pair in zip(cosines, sines, strict=True)]
    criterion, _, weights = _quotient(features[0], features[1], ridge * np.eye(2 * len(waves)))
    slope = np.zeros_like(waves)
    for weight, cosine, sine, rows in zip(weights, cosines, sines, (x, y), strict=True):
        of_cosine, of_sine = np.hsplit(weight, 2)
        slope += (of_sine * cosine - of_cosine * sine).T @ rows
    return criterion, slope.ravel()


def _quotient(x: Floats, y: Floats, penalty: Floats) -> tuple[float, Floats, list[Floats]]:
    """Return w'A^-1 w with A = Sigma + penalty, A^-1 w, and the slopes by x and by y.

    d criterion = 2 v'dw - v'(dA)v with v = A^-1 w, written as a weight on each feature of each
    row; that of the penalty is left to the caller.
    """
    share = len(y) / (len(x) + len(y))
    centred = [rows - rows.mean(axis=0) for rows in (x, y)]
    matrix = penalty.copy()
    for part, rows in zip((share, 1 - share), centred, strict=True):
        matrix += part * rows.T @ rows / len(rows)
    w = x.mean(axis=0) - y.mean(axis=0)
    v = np.linalg.solve(matrix, w)
    weights = []
    for sign, part, rows in zip((1.0, -1.0), (share, 1 - share), centred, strict=True):
        per_row = (2 * sign - 2 * part * (rows @ v)) / len(rows)
        weights.append(per_row[:, None] * v)
    return float(w @ v), v, weights


def _squares(rows: Floats, locations: Floats) -> Floats:
    squares: Floats = (
        np.square(rows).sum(axis=1)[:, None]
        + np.square(locations).sum(axis=1)
        - 2 * rows @ locations.T
    )
    return np.maximum(squares, 0.0)
