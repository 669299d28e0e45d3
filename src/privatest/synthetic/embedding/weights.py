"""From coefficients to weights of points: signed, bounded in l1, non-negative, or equal.

Post-processing: this uses only public points and released coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.answers import Weighting
from privatest.synthetic.embedding.shrinkage import Denoised, Moments, signed_weights

__all__ = [
    "Weights",
    "best_points",
    "bounded_weights",
    "equal_weights",
    "nonnegative_weights",
    "weighted",
]

Weights = Literal["signed", "bounded", "nonnegative", "equal"]

_DRAWS = 100  # for error bars, which are then accurate to about 7%
_CONSTRAINED_DRAWS = 32  # each takes an optimisation

_STEPS = 500
_CONVERGED = 1e-6
Projection = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def weighted(
    coordinates: NDArray[np.float64],
    denoised: Denoised,
    points: Moments | None = None,
    *,
    kind: Weights,
    bound: float,
    count: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], Weighting, Weighting | None]:
    """Return which points to release (with repeats), and their weights with draws.

    Constrained weights are returned with the signed weights of the same points.

    Parameters
    ----------
    coordinates : ndarray
        Coordinates of the points that may be released.
    denoised : Denoised
        The coefficients to match.
    points : Moments, optional
        Moments of ``coordinates``, if known already.
    kind, bound, count
        The kind of weights, the bound for "bounded" and the number of rows for "equal".
    rng : Generator
        Public randomness for the draws.
    """
    draws = denoised.draws(_DRAWS if kind in ("signed", "equal") else _CONSTRAINED_DRAWS, rng)
    targets = np.column_stack([denoised.values, draws])
    chosen = np.arange(len(coordinates))
    if kind == "equal":
        chosen = equal_weights(coordinates, denoised.values, count)
        coordinates, points = coordinates[chosen], None
    free = signed_weights(coordinates, targets, points)
    if kind == "signed":
        return chosen, _weighting(free), None
    if kind == "equal":
        # equal weights cannot show the noise: the draws are signed ones around them
        moved = free - free[:, :1] + 1 / count
        return chosen, _weighting(moved), _weighting(free)
    if kind == "nonnegative":
        matrix = nonnegative_weights(coordinates, targets)
    else:
        matrix = bounded_weights(coordinates, targets, free, bound)
    return chosen, _weighting(matrix), _weighting(free)


def _weighting(matrix: NDArray[np.float64]) -> Weighting:
    return Weighting(matrix[:, 0], matrix[:, 1:])


def nonnegative_weights(
    coordinates: NDArray[np.float64], targets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weights w >= 0, sum w = 1, whose L'w is nearest to each target (columns)."""
    return _nearest(coordinates, targets, to_simplex)


def bounded_weights(
    coordinates: NDArray[np.float64],
    targets: NDArray[np.float64],
    start: NDArray[np.float64],
    bound: float,
) -> NDArray[np.float64]:
    """Return weights with sum |w| <= bound, nearest to each target (Theorem 11).

    ``start`` are unconstrained weights: columns within the bound are the solution already.
    """
    weights = start.copy()
    over = np.abs(start).sum(axis=0) > bound
    if over.any():
        weights[:, over] = _nearest(
            coordinates, targets[:, over], lambda matrix: _to_l1_ball(matrix, bound)
        )
    return weights


def equal_weights(
    coordinates: NDArray[np.float64], target: NDArray[np.float64], count: int
) -> NDArray[np.intp]:
    """Choose ``count`` points, with repeats, whose plain mean is near the target.

    Kernel herding: each new point brings the mean of those chosen so far closest to the target.
    """
    gain = coordinates @ target
    half_norms = 0.5 * np.einsum("ij,ij->i", coordinates, coordinates)
    total, chosen = np.zeros(coordinates.shape[1]), []
    for step in range(1, count + 1):
        # |(total + L_m)/step - target|² up to what does not depend on m
        score = (coordinates @ total + half_norms) / step - gain
        best = int(np.argmin(score))
        chosen.append(best)
        total += coordinates[best]
    return np.sort(np.array(chosen, dtype=np.intp))


def best_points(
    coordinates: NDArray[np.float64],
    target: NDArray[np.float64],
    count: int,
    sigma: float = 0.0,
) -> NDArray[np.intp]:
    """Choose at most ``count`` points whose span captures most of the target, best first.

    Each new point captures as much as possible of the rest of the target; the first ones are
    those that a smaller ``count`` would choose. The search stops when the best of M points
    captures no more than sigma² log M, as it would of noise alone.
    """
    least = sigma**2 * math.log(max(len(coordinates), 2))
    norms = np.einsum("ij,ij->i", coordinates, coordinates)  # of what is outside the span
    smallest = 1e-8 * norms.max()
    heights = coordinates @ target  # inner products with the rest of the target
    basis = np.zeros((min(count, len(coordinates)), coordinates.shape[1]))
    chosen: list[int] = []
    for step in range(len(basis)):
        useful = norms > smallest
        if not useful.any():
            break
        gains = np.where(useful, heights**2 / np.maximum(norms, smallest), -1.0)
        best = int(np.argmax(gains))
        if chosen and gains[best] < least:
            break
        direction = coordinates[best].copy()
        for _ in range(2):  # twice is enough for rounding errors
            direction -= basis[:step].T @ (basis[:step] @ direction)
        direction /= math.sqrt(float(direction @ direction))
        shares = coordinates @ direction
        heights -= heights[best] / shares[best] * shares
        norms -= shares**2
        norms[best] = 0.0
        basis[step] = direction
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)


def _nearest(
    coordinates: NDArray[np.float64], targets: NDArray[np.float64], projection: Projection
) -> NDArray[np.float64]:
    """Minimise |L'w - target|² over a convex set: accelerated projected gradients, restarted."""
    count = len(coordinates)
    step = 1 / max(float(np.linalg.norm(coordinates, 2)) ** 2, 1e-300)
    goal = step * (coordinates @ targets)
    scaled = coordinates * step
    weights = projection(np.full((count, targets.shape[1]), 1 / count))
    ahead, momentum = weights.copy(), np.ones(targets.shape[1])
    for _ in range(_STEPS):
        following = projection(ahead - scaled @ (coordinates.T @ ahead) + goal)
        change = following - weights
        # restart the momentum where it points uphill
        uphill = np.einsum("ij,ij->j", ahead - following, change) > 0
        larger = np.where(uphill, 1.0, (1 + np.sqrt(1 + 4 * momentum**2)) / 2)
        ahead = following + np.where(uphill, 0.0, (momentum - 1) / larger) * change
        weights, momentum = following, larger
        if float(np.abs(change).sum(axis=0).max()) < _CONVERGED:
            break
    return weights


def to_simplex(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project each column on {w >= 0, sum w = 1}."""
    ordered = -np.sort(-matrix, axis=0)
    excess = np.cumsum(ordered, axis=0) - 1
    ranks = np.arange(1, len(matrix) + 1)[:, None]
    size = np.count_nonzero(ordered * ranks > excess, axis=0)
    shift = np.take_along_axis(excess, size[None, :] - 1, axis=0) / size
    projected: NDArray[np.float64] = np.maximum(matrix - shift, 0.0)
    return projected


def _to_l1_ball(matrix: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    sizes = np.abs(matrix)
    outside = sizes.sum(axis=0) > bound
    result = matrix.copy()
    if outside.any():
        shrunk = bound * to_simplex(sizes[:, outside] / bound)
        result[:, outside] = np.sign(matrix[:, outside]) * shrunk
    return result
