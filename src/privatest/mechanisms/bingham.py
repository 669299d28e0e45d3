"""Random axes: chains of orthogonal axes, each drawn by Bingham's law on what is left.

The rejection sampler of Kent, Ganeiban and Mardia (2018), with angular central Gaussian
proposals, for stacks of matrices at once. Randomness comes in as functions, so that the same
code draws secret axes (:mod:`privatest.mechanisms.covariance`) and public replicates of a
bootstrap. Proof: docs/proofs/covariance.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource

__all__ = ["Draw", "orthogonal_axes", "rational_root", "secret_draws"]

Floats = NDArray[np.float64]
Draw = Callable[[int], Floats]
"""Returns so many independent numbers."""

_TRIES = 2  # proposals at a time for each axis that is still to be drawn; most are accepted
_ROUNDS = 8  # after so many without success other proposals are tried
_NEWTON_STEPS = 60  # converges in about ten; more do no harm


def secret_draws(noise: NoiseSource) -> tuple[Draw, Draw]:
    """Return functions that draw secret normal and uniform numbers."""
    from scipy.special import ndtri  # noqa: PLC0415

    def normals(size: int) -> Floats:
        drawn: Floats = ndtri(noise.uniforms(size))
        return drawn

    return normals, noise.uniforms


def orthogonal_axes(
    values: Floats, vectors: Floats, concentration: float, normals: Draw, uniforms: Draw
) -> Floats:
    """Draw orthonormal axes one after the other, u with density exp(c u'Au) on what is left.

    Parameters
    ----------
    values, vectors : ndarray
        Eigenvalues, ascending, and eigenvectors of a stack of matrices A, at least 2 × 2, as
        ``np.linalg.eigh`` gives them: (count, d) and (count, d, d).
    concentration : float
        The factor c, at least 0.
    normals, uniforms : Draw
        Sources of standard normal and of uniform numbers.

    Returns
    -------
    ndarray
        (count, d, d); row i of each is its i-th axis. Signs have no meaning.
    """
    count, size = values.shape
    axes, basis, done = np.empty((count, size, size)), np.swapaxes(vectors, 1, 2), 0
    while True:
        drawn = _some_axes(concentration * (values[:, -1:] - values), normals, uniforms)
        # the axes, orthonormal to the last digit, then a basis of what is left
        turned = np.swapaxes(np.linalg.qr(np.swapaxes(drawn, 1, 2), mode="complete")[0], 1, 2)
        basis, some = turned @ basis, drawn.shape[1]
        axes[:, done : done + some] = basis[:, :some]
        done += some
        if done == size - 1:
            axes[:, done] = basis[:, some]  # one direction is left
            return axes
        left = turned[:, some:]
        values, vectors = np.linalg.eigh((left * values[:, None, :]) @ np.swapaxes(left, 1, 2))
        basis = np.swapaxes(vectors, 1, 2) @ basis[:, some:]


def _some_axes(slopes: Floats, normals: Draw, uniforms: Draw) -> Floats:
    """Draw the first few of a chain of axes; how many depends on how often proposals are taken.

    With slopes a = c (largest eigenvalue - eigenvalues), in the eigenbasis, and t = Σ a u² the
    density is exp(-t). Proposals are directions of normal vectors with variances 1/(b + 2a),
    conditioned to be orthogonal to the axes drawn before. One b serves until proposals are rejected
    too often; then the caller restricts the matrices to what is left, and b is chosen anew.
    """
    count, size = slopes.shape
    most = min(size - 1, int(3 * math.sqrt(size)))
    # Σ 1/(b + 2a) = 1 is best for the first axis; a little more is better for those in the middle
    total = size / (size - (most - 1) / 2)
    b = rational_root(np.ones_like(slopes), 2 * slopes, total, np.full(count, 1 / total))
    roots = 1 / np.sqrt(b[:, None] + 2 * slopes)
    # x = root z is orthogonal to an axis v if z is orthogonal to root v: the walls
    axes, walls = np.empty((count, most, size)), np.empty((count, most, size))
    for step in range(most):
        axis = _next_axis(b[:, None], roots, walls[:, :step], normals, uniforms)
        if axis is None:
            return axes[:, :step]
        axes[:, step], wall = axis, (roots * axis)[:, None]
        wall = _within(_within(wall, walls[:, :step]), walls[:, :step])  # twice is enough
        walls[:, step] = (wall / np.sqrt(_squares(wall))[:, :, None])[:, 0]
    return axes


def _next_axis(
    b: Floats, roots: Floats, walls: Floats, normals: Draw, uniforms: Draw
) -> Floats | None:
    """Draw one axis for each matrix, or none if proposals are rejected too often.

    With q dimensions left proposals have a density proportional to (b + 2t)^(-q/2), and
    exp(-t) (b + 2t)^(q/2) is largest where b + 2t = q, or at t = 0 if b > q: acceptance is exact
    for every b > 0. The first axis is drawn in any case: its b is the best one.
    """
    count, size = roots.shape
    free, patient = size - walls.shape[1], walls.shape[1] == 0
    top = np.maximum(free, b)
    log_most = (free * np.log(top) - top) / 2
    axes, waiting, rounds = np.empty((count, size)), np.arange(count), 0
    while len(waiting):
        part: NDArray[np.intp] | slice = waiting if rounds else slice(None)
        points = normals(len(waiting) * _TRIES * size).reshape(len(waiting), _TRIES, size)
        points = _within(points, walls[part])
        power = _squares(points)
        points *= roots[part, None]
        lengths = _squares(points)
        form = power / lengths  # b + 2t
        log_ratio = (free * np.log(form) - form) / 2 - log_most[part]
        taken = np.log(uniforms(form.size)).reshape(form.shape) < log_ratio
        found, first = taken.any(axis=1), taken.argmax(axis=1)[taken.any(axis=1)]
        axes[waiting[found]] = points[found, first] / np.sqrt(lengths[found, first])[:, None]
        waiting, rounds = waiting[~found], rounds + 1
        # only counts decide, and they say nothing about the axes that were accepted
        if not patient and (2 * len(waiting) > count or (len(waiting) and rounds == _ROUNDS)):
            return None
    return axes


def _squares(points: Floats) -> Floats:
    lengths: Floats = np.einsum("...i,...i->...", points, points)
    return lengths


def _within(points: Floats, walls: Floats) -> Floats:
    """Project points on what is orthogonal to the walls, which are orthonormal."""
    return points - (points @ np.swapaxes(walls, 1, 2)) @ walls


def rational_root(numerators: Floats, poles: Floats, total: float, start: Floats) -> Floats:
    """Solve Σ numerator/(pole + s) = total for s, for each row, from below.

    ``start`` is at most the root and makes all denominators positive; where the sum is at most
    ``total`` there, it is returned.
    """
    s = start.copy()
    for _ in range(_NEWTON_STEPS):
        terms = 1 / (poles + s[:, None])
        # convex and decreasing in s: steps from the left never pass the root
        excess = (numerators * terms).sum(axis=1) - total
        slope = (numerators * terms**2).sum(axis=1)
        step = np.divide(excess, slope, out=np.zeros_like(s), where=excess > 0)
        s += step
        if np.all(step <= 1e-9 * np.abs(s)):
            break
    return s
