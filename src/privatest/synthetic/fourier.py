"""Releases by Fourier features: Algorithm 2 of Balog et al. (2018).

The mean Fourier feature of the rows with noise (lines 1 to 4), and a reduced set of points and
weights with nearly that mean (lines 5 to 7), which is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Budget, Sensitivity, gaussian_scale
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.encoding import Sample
from privatest.data.engines import BLOCK_ROWS, within_block
from privatest.data.schema import Domain
from privatest.data.sources import Held
from privatest.data.summaries import FixedPoint, fixed_rounding, in_secret_order, summarise
from privatest.numerics.features import FourierMap, Frequencies, angles, cos_sin, kernel_map
from privatest.numerics.kernels import UNIT_ROUNDOFF, Kernel, gram
from privatest.synthetic.answers import Floats
from privatest.synthetic.embedding import (
    Coefficients,
    Denoised,
    Subspace,
    Weights,
    moments,
    noisy_share,
    nonnegative_weights,
    signed_weights,
)

_BLOCK_VALUES = 8_192  # of a temporary array: it stays in a processor's cache
_LONGEST_BLOCK = 1_024  # rows
_STRIP = 16_384  # rows of one thread's turn
_ANGLE_COST = 40  # of a cosine and a sine, in products of complex numbers


@dataclass(frozen=True, slots=True, eq=False)
class NoisyFeatures:
    """A private mean feature: everything in it may be published.

    Parameters
    ----------
    kernel : Kernel
        The public kernel; the features' inner products are it, or nearly.
    frequencies : ndarray
        Columns × J, public.
    amplitudes : ndarray
        J numbers whose squares sum to 1: feature j is a_j (cos, sin)(w_j · x).
    mean : ndarray
        2 × J: the mean of the cosines and of the sines over all rows, with noise.
    scale : float
        Standard deviation of the noise in every entry.
    simulated : bool
        Whether the noise was seeded, so that nothing is private.
    """

    kernel: Kernel
    frequencies: Floats
    amplitudes: Floats
    mean: Floats
    scale: float
    simulated: bool


def noisy_features(
    rows: Held,
    *,
    kernel: Kernel,
    domain: Domain,
    n_frequencies: int,
    budget: Budget,
    rows_per_person: int = 1,
    share: Fraction | None = None,
    frequencies: Frequencies = "auto",
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> NoisyFeatures:
    """Release the mean Fourier feature of encoded rows.

    Parameters
    ----------
    rows : ndarray, or a way to read them
        Encoded rows, numbers and categories, within ``domain``.
    kernel : Kernel
        Gaussian, or Laplace with random frequencies.
    domain : Domain
        Where rows may lie. Without bounds the frequencies are random, the noise is for 2/N.
    n_frequencies : int
        The most frequencies to use; random ones are that many.
    budget : Budget
        Needs delta > 0.
    rows_per_person : int
        The most rows of one person.
    share : Fraction, optional
        What it takes of the budget, if atoms are counted too; by default all of it.
    frequencies : {"auto", "lattice", "random"}
        See :func:`privatest.numerics.features.kernel_map`.
    rng : None, int or Generator
        Public randomness for random frequencies.
    noise : NoiseSource, optional
        Secret randomness.

    Notes
    -----
    **Sensitivity** rows_per_person · spread/N in l2, where spread is the largest distance
    between the features of two rows of the domain: at most 2, for a lattice at most
    sqrt(2 (1 - inf k)/(1 - tail)) (docs/proofs/fourier-release.md). Widened by the rounding
    errors of both means.

    **Privacy** The noisy mean is (epsilon, delta)-private by the analytic Gaussian mechanism.
    The frequencies are public; the noise's scale depends on public facts alone.
    """
    integer_at_least("n_frequencies", n_frequencies, 1)
    integer_at_least("rows_per_person", rows_per_person, 1)
    one_of("frequencies", frequencies, ("auto", "lattice", "random"))
    source = noise_source(noise)
    if isinstance(rows, np.ndarray):  # others were encoded as they were read
        _check_rows(rows, domain)
    features = kernel_map(kernel, domain, n_frequencies, public_generator(rng), frequencies)
    sensitivity = mean_features_sensitivity(features, len(rows), rows_per_person)
    gaussian_scale(sensitivity.value, budget)  # refuses delta = 0 before the long work
    if not domain.bounded:
        rows = in_secret_order(Sample(rows, None), source).held
    exact = mean_features(rows, features)
    mean, scale = noisy_share(
        exact, sensitivity=sensitivity, budget=budget, share=share, noise=source
    )
    constant = ~features.frequencies.any(axis=0)
    # the frequency 0 has no row in it: its mean is known
    mean[0, constant], mean[1, constant] = features.amplitudes[constant], 0.0
    return NoisyFeatures(
        kernel=kernel,
        frequencies=features.frequencies,
        amplitudes=features.amplitudes,
        mean=mean,
        scale=scale,
        simulated=source.simulated,
    )


def _check_rows(rows: Floats, domain: Domain) -> None:
    """Refuse rows that are not encoded: the sensitivity would not hold for them."""
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != domain.dimension:
        raise DataError(f"rows must be at least one row of {domain.dimension} columns.")
    if not _are_encoded(rows, domain):
        raise DataError("rows must be encoded: [0, 1] for a number, 0, 1, ... for a category.")


def _are_encoded(rows: Floats, domain: Domain) -> bool:
    for column, level in enumerate(domain.levels):
        values = rows[:, column]
        low, high = values.min(), values.max()  # NaN if there is one, and then refused
        inside = np.isfinite(low) and np.isfinite(high)
        if level or domain.bounded:
            inside = low >= 0 and high <= max(level - 1, 1)
        if not inside or (level and not np.array_equal(values, np.rint(values))):
            return False
    return True


def mean_features_sensitivity(
    features: FourierMap, n_rows: int, rows_per_person: int = 1
) -> Sensitivity:
    """How far :func:`mean_features` moves between neighbours, in l2.

    Each mean is off by the error of a feature and of its summation: the additions within a
    block, those of blocks and strips, and a few products. A feature has norm 1, so n additions
    add at most n units of roundoff in l2; twice that is taken. Sums of blocks of rows are rounded
    to fixed point, which puts each cosine and sine off by as much, and the squares of the
    amplitudes add up to 1.
    """
    blocks = math.ceil(_STRIP / _block_rows(len(features.amplitudes)))
    additions = _LONGEST_BLOCK + blocks + BLOCK_ROWS // _STRIP + 16
    fixed = 1.5 * fixed_rounding(n_rows, n_rows) / n_rows
    slack = features.rounding + 2 * additions * UNIT_ROUNDOFF + fixed
    moved = min(rows_per_person, n_rows) * features.spread / n_rows
    return Sensitivity((moved + 2 * slack) * (1 + 1e-14), norm="l2")


class _WaveSums:
    """Sums of exp(i w · x) for all pairs of parts of frequencies; real, then imaginary."""

    __slots__ = ("parts", "sums", "total")

    def __init__(self, parts: tuple[_FrequencyPart, _FrequencyPart], total: int) -> None:
        self.parts, self.total = parts, total
        shape = (2, *(part.values.shape[1] for part in parts))
        self.sums = FixedPoint(shape, total)

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        del start
        sums = np.zeros(self.sums.units.shape[1:], dtype=np.complex128)
        strips = (rows[first : first + _STRIP] for first in range(0, len(rows), _STRIP))
        summed = partial(_summed, parts=self.parts)
        for part in within_block(summed, strips, self.total, len(rows) * sums.size):
            sums += part
        self.sums.add(np.stack([sums.real, sums.imag]))

    def merge(self, other: _WaveSums) -> None:
        """Add other blocks."""
        self.sums.merge(other.sums)


def mean_features(rows: Held, features: FourierMap) -> Floats:
    """Return the mean of a_j cos(w_j · x) and of a_j sin(w_j · x) over rows: 2 × J, not private.

    exp(i w · x) is a product over two groups of columns. The frequencies of a lattice have few
    different parts in each group, so a matrix product replaces nearly all cosines. Without bounds
    rows have to be in a secret order: the last bit of an angle may depend on a row's place in its
    block, and may be a whole turn.
    """
    left, right = parts = _parts(features.frequencies)
    (result,) = summarise((Sample(rows, None), partial(_WaveSums, parts, len(rows))))
    sums = result.sums.value[:, left.index, right.index]
    return sums * features.amplitudes / len(rows)


@dataclass(frozen=True, slots=True, eq=False)
class _FrequencyPart:
    """Different frequencies of some columns, and which of them each frequency has."""

    columns: int
    values: Floats
    index: NDArray[np.intp]


def _parts(frequencies: Floats) -> tuple[_FrequencyPart, _FrequencyPart]:
    """Cut the columns where that is cheapest; random frequencies are not cut."""
    columns, count = frequencies.shape
    best = (
        _FrequencyPart(columns, frequencies, np.arange(count)),
        _FrequencyPart(0, np.zeros((0, 1)), np.zeros(count, dtype=np.intp)),
    )
    cost = float(_ANGLE_COST * count)
    for cut in range(1, columns):
        parts = []
        for group in (frequencies[:cut], frequencies[cut:]):
            values, index = np.unique(group, axis=1, return_inverse=True)
            parts.append(_FrequencyPart(len(group), values, index.reshape(-1)))
        sizes = [part.values.shape[1] for part in parts]
        if _ANGLE_COST * sum(sizes) + sizes[0] * sizes[1] < cost:
            cost = float(_ANGLE_COST * sum(sizes) + sizes[0] * sizes[1])
            best = parts[0], parts[1]
    return best


def _summed(rows: Floats, parts: tuple[_FrequencyPart, _FrequencyPart]) -> NDArray[np.complex128]:
    """Sum over rows exp(i w · x), for all pairs of parts of frequencies."""
    left, right = parts
    total = np.zeros((left.values.shape[1], right.values.shape[1]), dtype=np.complex128)
    size = _block_rows(max(total.shape))
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        first = _waves(block[:, : left.columns], left.values)
        if right.columns:
            total += first.T @ _waves(block[:, left.columns :], right.values)
        else:
            total[:, 0] += first.sum(axis=0)
    return total


def _block_rows(width: int) -> int:
    return min(max(_BLOCK_VALUES // width, 1), _LONGEST_BLOCK)


def _waves(rows: Floats, frequencies: Floats) -> NDArray[np.complex128]:
    waves = np.empty((len(rows), frequencies.shape[1]), dtype=np.complex128)
    waves.real, waves.imag = cos_sin(angles(rows, frequencies))
    return waves


# --- the reduced set -----------------------------------------------------------------------------


Constraint = Literal["simplex", "l1", "equal"]

_EVEN_POINTS = 4_096
_TILE_VALUES = 1 << 20  # features in a block, in single precision
_MOST_KEPT = 1 << 25  # features kept between the two halves of a gradient
_UNSEEN = 0.3  # a step that gains less than this many noise variances ends the search
_NEGATIVE = -5.0  # initial logarithms of negative weights
_ROUNDS, _PARENTS, _CHILDREN = 4, 256, 8  # of the evolutionary search for candidates


def reduced_set(
    noisy: NoisyFeatures,
    *,
    domain: Domain,
    n_points: int,
    constraint: Constraint = "simplex",
    weight_bound: float = 1.0,
    start: Floats | None = None,
    snap: Callable[[Floats], Floats] | None = None,
    max_iterations: int = 200,
    rng: Rng = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Floats, Floats]:
    """Find weighted points whose mean feature is closest to a noisy one (equation 5).

    Kernel herding over candidates from the public box finds a start; L-BFGS then moves points
    and weights together. Categories stay as herding chose them.

    Parameters
    ----------
    noisy : NoisyFeatures
        From :func:`privatest.synthetic.fourier.noisy_features`.
    domain : Domain
        The box that points stay in.
    n_points : int
        The number of points.
    constraint : {"simplex", "l1", "equal"}
        Weights are probabilities (w >= 0, sum 1), have |w|₁ <= ``weight_bound``, or are all
        1/n_points.
    weight_bound : float
        The bound for "l1"; the paper's is 1.
    start : ndarray, optional
        Public candidates, in addition to points spread over the box; required without bounds.
    snap : callable, optional
        Maps points to admissible ones (integers, say); the weights are then fitted again.
    max_iterations : int
        The most steps of L-BFGS. It stops earlier when the gain of a step is within the noise.
    rng : None, int or Generator
        Public randomness for further candidates.
    progress : callable, optional
        Called with (steps done, ``max_iterations``).

    Returns
    -------
    points, weights : ndarray
        ``n_points`` encoded rows, and their weights.

    Notes
    -----
    **Sensitivity** None: this uses no private data.

    **Privacy** Post-processing of the noisy mean, at no cost.
    """
    integer_at_least("n_points", n_points, 1)
    integer_at_least("max_iterations", max_iterations, 1)
    one_of("constraint", constraint, ("simplex", "l1", "equal"))
    number("weight_bound", weight_bound, above=0)
    goal = _Goal(noisy)
    generator = public_generator(rng)
    places = _candidates(goal, noisy, domain, _places(domain, n_points, start), generator)
    points = _herded(goal, noisy, domain, places, n_points)
    search = _PointFit(goal, noisy, domain, constraint, weight_bound, max_iterations)
    points, weights = search.run(points, domain.numeric, progress)
    if snap is not None:
        points, weights = search.run(snap(points), [], None)
    return points, weights


# --- candidates and herding ----------------------------------------------------------------------


def _places(domain: Domain, n_points: int, start: Floats | None) -> Floats:
    """Return candidates that do not depend on the noisy mean."""
    if start is None and not domain.bounded:
        raise ParameterError(
            "start must hold public points when there are no bounds: declare bounds, or pass "
            "points in the region where rows may be."
        )
    even = np.empty((0, domain.dimension))
    if domain.bounded:
        even = domain.points(max(_EVEN_POINTS, 2 * n_points))
    if start is None:
        return even
    points = np.array(start, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != domain.dimension or not len(points):
        reject("start", f"rows of {domain.dimension} columns", start)
    if not np.all(np.isfinite(points)):
        raise ParameterError("start must hold finite numbers.")
    if not _are_encoded(points, domain):
        raise ParameterError("start must hold encoded rows within the domain.")
    return np.vstack([points, even])


def _candidates(
    goal: _Goal, noisy: NoisyFeatures, domain: Domain, even: Floats, rng: np.random.Generator
) -> Floats:
    """Add candidates near those with the best scores: a box has too many corners."""
    best, scores = even, goal.scores(even)
    candidates = [even]
    for _ in range(_ROUNDS):
        parents = best[np.argsort(-scores)[:_PARENTS]]
        children = np.repeat(parents, _CHILDREN, axis=0)
        step = rng.normal(scale=noisy.kernel.bandwidth / 2, size=children.shape)
        for column, level in enumerate(domain.levels):
            if level:
                drawn = rng.integers(level, size=len(children))
                changed = rng.random(len(children)) < 0.2
                children[changed, column] = drawn[changed]
            else:
                children[:, column] += step[:, column]
        if domain.bounded:
            children[:, domain.numeric] = np.clip(children[:, domain.numeric], 0, 1)
        candidates.append(children)
        best = np.vstack([parents, children])
        scores = goal.scores(best)
    return np.vstack(candidates)


def _herded(
    goal: _Goal, noisy: NoisyFeatures, domain: Domain, places: Floats, count: int
) -> Floats:
    """Choose points one by one, each where the mean is least represented so far (herding)."""
    scores = goal.scores(places)
    taken = np.zeros(len(places))
    chosen = []
    for step in range(1, count + 1):
        index = int(np.argmax(scores - taken / step))
        chosen.append(index)
        taken += gram(noisy.kernel, places, places[index : index + 1], domain)[:, 0]
    return places[chosen]


# --- the fit -------------------------------------------------------------------------------------


class _Goal:
    """|sum of w_m phi(z_m) - noisy mean|² and its gradient, in single precision.

    Its rounding errors are far below the noise, and cosines are ten times faster.
    """

    def __init__(self, noisy: NoisyFeatures) -> None:
        self._frequencies = noisy.frequencies
        self._slopes = np.ascontiguousarray(
            (noisy.frequencies * noisy.amplitudes).T, dtype=np.float32
        )
        self._amplitudes = noisy.amplitudes.astype(np.float32)
        self._mean = noisy.mean.astype(np.float32)

    def _tiles(self, points: Floats) -> Iterator[tuple[slice, Any, Any]]:
        size = max(_TILE_VALUES // len(self._amplitudes), 1)
        for start in range(0, len(points), size):
            part = slice(start, start + size)
            # whole turns are removed in double precision: without bounds there may be many
            turned = angles(points[part], self._frequencies).astype(np.float32)
            turned *= np.float32(math.pi / 2)
            yield part, np.cos(turned), np.sin(turned)

    def scores(self, points: Floats) -> Floats:
        """Inner products of the points' features with the noisy mean."""
        cosines, sines = self._amplitudes * self._mean
        scores = np.empty(len(points))
        for part, cos, sin in self._tiles(points):
            scores[part] = cos @ cosines + sin @ sines
        return scores

    def gradient(self, points: Floats, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return the value, its derivatives by weights, and by points."""
        fits = len(points) * len(self._amplitudes) <= _MOST_KEPT
        tiles: Any = list(self._tiles(points)) if fits else None
        single = weights.astype(np.float32)
        sums = np.zeros_like(self._mean)
        for part, cos, sin in tiles or self._tiles(points):
            sums[0] += single[part] @ cos
            sums[1] += single[part] @ sin
        rest = sums * self._amplitudes - self._mean
        scaled = rest * self._amplitudes
        by_weights, by_points = np.empty(len(points)), np.empty(points.shape)
        cos_slopes, sin_slopes = (self._slopes * part[:, None] for part in rest)
        for part, cos, sin in tiles or self._tiles(points):
            by_weights[part] = 2 * (cos @ scaled[0] + sin @ scaled[1])
            by_points[part] = 2 * (cos @ sin_slopes - sin @ cos_slopes)
        by_points *= weights[:, None]
        return float(np.vdot(rest, rest)), by_weights, by_points


@dataclass(frozen=True, slots=True, eq=False)
class _PointFit:
    """L-BFGS over the points and over parameters of the weights."""

    goal: _Goal
    noisy: NoisyFeatures
    domain: Domain
    constraint: Constraint
    bound: float
    max_iterations: int

    def run(
        self, points: Floats, movable: list[int], progress: Callable[[int, int], None] | None
    ) -> tuple[Floats, Floats]:
        """Move the ``movable`` columns and the weights."""
        parameters = self._parameters(len(points))
        if not movable and not len(parameters):  # SciPy refuses to optimise over nothing
            return points, self._weights(parameters, len(points))
        from scipy.optimize import minimize  # noqa: PLC0415

        moved, split, steps = points.copy(), points[:, movable].size, 0

        def after_step(_: Floats) -> None:
            nonlocal steps
            steps += 1
            if progress is not None:
                progress(steps, self.max_iterations)

        unit = self.noisy.kernel.bandwidth
        limits = (0.0, 1 / unit) if self.domain.bounded else (None, None)
        fit = minimize(
            lambda variables: self._value(variables, moved, movable),
            np.concatenate([(points[:, movable] / unit).ravel(), parameters]),
            jac=True,
            method="L-BFGS-B",
            bounds=[limits] * split + [(None, None)] * len(parameters),
            callback=after_step,
            options={
                "maxiter": self.max_iterations,
                "maxcor": 20,
                "ftol": _UNSEEN / self.noisy.mean.size,
            },
        )
        shares = self._place(fit.x, moved, movable)
        return moved, self._weights(shares, len(points))

    def _place(self, variables: Floats, moved: Floats, movable: list[int]) -> Floats:
        """Write the points that the variables encode; return the softmax probabilities."""
        split = len(moved) * len(movable)
        moved[:, movable] = variables[:split].reshape(len(moved), -1) * self.noisy.kernel.bandwidth
        if self.domain.bounded:  # a product may be one rounding above 1
            moved[:, movable] = np.clip(moved[:, movable], 0, 1)
        return _softmax(variables[split:])

    def _value(self, variables: Floats, moved: Floats, movable: list[int]) -> tuple[float, Floats]:
        """Return the misfit in variances of the noise, about 2 J at best, and its gradient."""
        shares = self._place(variables, moved, movable)
        weights = self._weights(shares, len(moved))
        value, by_weights, by_points = self.goal.gradient(moved, weights)
        by_shares = self._pulled_back(by_weights)
        by_parameters = shares * (by_shares - shares @ by_shares)
        by_variables = by_points[:, movable].ravel() * self.noisy.kernel.bandwidth
        variance = self.noisy.scale**2
        return value / variance, np.concatenate([by_variables, by_parameters]) / variance

    # Weights are a function of p = softmax(parameters), so the constraint always holds. simplex:
    # w = p. l1: w = bound (p of the first M - p of the second M), with one slack p.

    def _parameters(self, count: int) -> Floats:
        if self.constraint == "equal":
            return np.zeros(0)
        if self.constraint == "simplex":
            return np.zeros(count)
        return np.concatenate([np.zeros(count), np.full(count + 1, _NEGATIVE)])

    def _weights(self, shares: Floats, count: int) -> Floats:
        if self.constraint == "equal":
            return np.full(count, 1 / count)
        if self.constraint == "simplex":
            return shares
        weights: Floats = self.bound * (shares[:count] - shares[count : 2 * count])
        return weights

    def _pulled_back(self, by_weights: Floats) -> Floats:
        if self.constraint == "equal":
            return np.zeros(0)
        if self.constraint == "simplex":
            return by_weights
        return self.bound * np.concatenate([by_weights, -by_weights, [0.0]])


def _softmax(parameters: Floats) -> Floats:
    if not len(parameters):
        return parameters
    exponentials = np.exp(parameters - parameters.max())
    shares: Floats = exponentials / exponentials.sum()
    return shares


# --- draws of the weights, for error bars --------------------------------------------------------


_DRAWS = 32
_MOST_FREQUENCIES = 250  # the heaviest ones
_PRIOR = 1.0  # weights vary by up to M^(-1/2)


def weight_draws(
    space: Subspace,
    noisy: NoisyFeatures,
    fitted: Floats,
    weights: Weights,
    rng: np.random.Generator,
) -> Floats:
    """Move the weights as the noise might have: its projection on the released points' span."""
    # points that were fitted to the noise cannot tell it from the data: hardly any shrinkage
    known = moments(space.coordinates)
    noise = Denoised(np.zeros(space.rank), noisy.scale, _PRIOR, _PRIOR, known)
    moved = noise.draws(_DRAWS, rng)
    if weights == "nonnegative":
        targets = space.coordinates.T @ fitted
        return nonnegative_weights(space.coordinates, targets[:, None] + moved)
    mean = known.mean[:, None]
    return fitted[:, None] + signed_weights(space.coordinates, mean + moved) - 1 / len(fitted)


def of_features(noisy: NoisyFeatures) -> Coefficients:
    """Keep what Algorithm 2 measured; frequency 0, whose mean is known, is left out."""
    moving = np.flatnonzero(noisy.frequencies.any(axis=0))[:_MOST_FREQUENCIES]
    return Coefficients(
        "fourier",
        noisy.frequencies[:, moving].T,
        noisy.amplitudes[moving],
        noisy.mean[:, moving].ravel(),
        noisy.scale,
    )
