"""Algorithm 2 of Balog et al., lines 5 to 7: points and weights with a given mean feature.

Everything here is post-processing of a private mean, which may be used without limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.domain import Domain
from privatest.kernels.fourier import angles
from privatest.kernels.kernels import gram
from privatest.synthetic.embedding.fourier import NoisyFeatures

__all__ = ["Constraint", "reduced_set"]

Constraint = Literal["simplex", "l1", "equal"]
Floats = NDArray[np.float64]

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
        From :func:`privatest.synthetic.embedding.fourier.noisy_features`.
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
    search = _Search(goal, noisy, domain, constraint, weight_bound, max_iterations)
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
    for column, level in enumerate(domain.levels):
        low, high = (0, max(level - 1, 1)) if level or domain.bounded else (-np.inf, np.inf)
        values = points[:, column]
        inside = values.min() >= low and values.max() <= high
        if not inside or (level and not np.array_equal(values, np.rint(values))):
            raise ParameterError("start must hold encoded rows within the domain.")
    return np.vstack([points, even])


def _candidates(
    goal: _Goal,
    noisy: NoisyFeatures,
    domain: Domain,
    even: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Add candidates near those with the best scores: a box has too many corners."""
    best, scores = even, goal.scores(even)
    found = [even]
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
        found.append(children)
        best = np.vstack([parents, children])
        scores = goal.scores(best)
    return np.vstack(found)


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
        kept = len(points) * len(self._amplitudes) <= _MOST_KEPT
        tiles: Any = list(self._tiles(points)) if kept else None
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
class _Search:
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
        found = minimize(
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
        shares = self._place(found.x, moved, movable)
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
