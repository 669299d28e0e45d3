"""Locations and frequencies that tell two PUBLIC samples apart: the power criterion.

Jitkrittum et al. (2016) maximise w'(Sigma + gamma I)^-1 w over locations and bandwidth. Here
gamma is what the private test will add, so that locations are chosen for the noise they will
meet. Real data must not be used here: what is chosen from private rows leaks them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.privacy import Amount, Budget, gaussian_scale
from privatest.core.validation import Rng, integer_at_least, number, public_generator
from privatest.data.encoding import TwoSamples, encode_samples
from privatest.data.schema import Schema
from privatest.mechanisms.moments import difference_sensitivity
from privatest.methods.embedding import (
    ChosenFrequencies,
    ChosenLocations,
    in_own_units,
    public_kernel,
)
from privatest.methods.two_groups import check_sizes
from privatest.numerics.features import RIDGE

_TRIED = 300  # frequencies tried before a search
_NARROWEST, _WIDEST = np.log(0.02), np.log(50.0)  # of the bandwidth, in diameters of the box


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

    def criterion(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        places, log_bandwidth = point[:-1].reshape(count, -1), float(point[-1])
        return power_criterion(places, log_bandwidth, x, y, ridge)

    def start() -> NDArray[np.float64]:
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

    def criterion(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return wave_criterion(point.reshape(count, -1), x, y, ridge)

    def start() -> NDArray[np.float64]:
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
    criterion: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    starts: list[NDArray[np.float64]],
    limits: list[tuple[float, float]],
) -> tuple[NDArray[np.float64], float]:
    """Maximise a criterion, given with its gradient, from each start; return the best."""
    from scipy.optimize import minimize  # noqa: PLC0415 -- not needed to import privatest

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, slope = criterion(point)
        # the logarithm: gradients of similar size, however far apart the samples are
        return -float(np.log(value + 1e-12)), -slope / (value + 1e-12)

    found = [minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits) for start in starts]
    best = min(found, key=lambda each: each.fun)
    return best.x, float(np.exp(-best.fun))


def _ridge(sizes: tuple[int, int], budget: Budget, spread: float, count: int) -> float:
    """Return gamma of the private test; see PooledMoments.ridge."""
    n, m = (integer_at_least("sizes", size, 2) for size in sizes)
    sigma = gaussian_scale(difference_sensitivity(n, m, radius=1.0, spread=spread), budget)
    return float(n * m / (n + m) * sigma**2 + np.sqrt(2 * count) * sigma)


def power_criterion(
    locations: NDArray[np.float64],
    log_bandwidth: float,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    ridge: float,
) -> tuple[float, NDArray[np.float64]]:
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


def wave_criterion(
    waves: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64], ridge: float
) -> tuple[float, NDArray[np.float64]]:
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


def _quotient(
    x: NDArray[np.float64], y: NDArray[np.float64], penalty: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], list[NDArray[np.float64]]]:
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


def _squares(rows: NDArray[np.float64], locations: NDArray[np.float64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = (
        np.square(rows).sum(axis=1)[:, None]
        + np.square(locations).sum(axis=1)
        - 2 * rows @ locations.T
    )
    return np.maximum(squares, 0.0)
