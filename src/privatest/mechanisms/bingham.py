"""Random axes: Bingham's law on the sphere, and chains of orthogonal axes drawn by it.

The rejection sampler of Kent, Ganeiban and Mardia (2018), with angular central Gaussian
proposals, for stacks of matrices at once. Randomness comes in as functions, so that the same
code draws secret axes (:mod:`privatest.mechanisms.covariance`) and public replicates of a
bootstrap. Proof: docs/proofs/covariance.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource

__all__ = ["Draw", "bingham", "orthogonal_axes", "secret_draws"]

Floats = NDArray[np.float64]
Draw = Callable[[int], Floats]
"""Returns so many independent numbers."""

_TRIES = 4  # proposals at a time for each axis that is still to be drawn; about half are accepted
_NEWTON_STEPS = 60  # converges in about ten; more do no harm
_FLAT = 3.0  # up to this logarithm of largest over smallest density, uniform proposals will do


def secret_draws(noise: NoiseSource) -> tuple[Draw, Draw]:
    """Return functions that draw secret normal and uniform numbers."""
    from scipy.special import ndtri  # noqa: PLC0415

    def normals(size: int) -> Floats:
        drawn: Floats = ndtri(noise.uniforms(size))
        return drawn

    return normals, noise.uniforms


def bingham(
    matrices: Floats, values: Floats, concentration: float, normals: Draw, uniforms: Draw
) -> Floats:
    """Draw a unit vector u for each matrix A, with density proportional to exp(c u'Au).

    Parameters
    ----------
    matrices : ndarray
        A stack of symmetric matrices, (count, q, q).
    values : ndarray
        Their eigenvalues in ascending order, (count, q).
    concentration : float
        The factor c, at least 0.
    normals, uniforms : Draw
        Sources of standard normal and of uniform numbers.

    Returns
    -------
    ndarray
        (count, q); the sign of each is random.

    Notes
    -----
    With a = c (largest eigenvalue - eigenvalues) and t = Σ a u² the density is exp(-t). It is at
    most M times (1 + 2t/b)^(-q/2), the density of X/|X| for X normal with variances
    1/(1 + 2a/b), M = exp(-(q-b)/2) (q/b)^(q/2), for every b in (0, q]; the b with
    Σ 1/(b + 2a) = 1 accepts most.
    """
    size, top = values.shape[1], values[:, -1]
    b = _best_b(concentration * (top[:, None] - values))
    roots = _proposal_roots(matrices, top, concentration, b)
    log_most = -(size - b) / 2 + size / 2 * np.log(size / b)

    def log_ratio(forms: Floats, some: NDArray[np.intp]) -> Floats:
        t = concentration * (top[some, None] - forms)
        ratio: Floats = -t + size / 2 * np.log1p(2 * t / b[some, None]) - log_most[some, None]
        return ratio

    return _rejection(matrices, roots, log_ratio, normals, uniforms)


def _flat_bingham(
    matrices: Floats, top: Floats, concentration: float, normals: Draw, uniforms: Draw
) -> Floats:
    """Draw as :func:`bingham` does, from uniform proposals: quicker where densities differ little.

    ``top`` is at least every eigenvalue, so that exp(c (u'Au - top)) is at most 1.
    """

    def log_ratio(forms: Floats, some: NDArray[np.intp]) -> Floats:
        return concentration * (forms - top[some, None])

    return _rejection(matrices, None, log_ratio, normals, uniforms)


def _rejection(
    matrices: Floats,
    roots: Floats | None,
    log_ratio: Callable[[Floats, NDArray[np.intp]], Floats],
    normals: Draw,
    uniforms: Draw,
) -> Floats:
    """Propose directions of normal vectors, times roots, until one is accepted for each matrix.

    ``log_ratio`` gives the log of the acceptance probability of points with quadratic forms u'Au,
    for some of the matrices.
    """
    count, size = matrices.shape[:2]
    drawn, waiting = np.empty((count, size)), np.arange(count)
    while len(waiting):
        points = normals(len(waiting) * _TRIES * size).reshape(len(waiting), _TRIES, size)
        if roots is not None:
            points = points @ roots[waiting]
        points /= np.linalg.norm(points, axis=2, keepdims=True)
        forms = np.sum((points @ matrices[waiting]) * points, axis=2)
        chances = np.log(uniforms(forms.size)).reshape(forms.shape)
        taken = chances < log_ratio(forms, waiting)
        first, found = taken.argmax(axis=1), taken.any(axis=1)
        drawn[waiting[found]] = points[found, first[found]]
        waiting = waiting[~found]
    return drawn


def _proposal_roots(matrices: Floats, top: Floats, concentration: float, b: Floats) -> Floats:
    """Return R with R'R the inverse of I + 2c (top I - A)/b, the covariance of proposals."""
    identity = np.eye(matrices.shape[1])
    factor = (2 * concentration / b)[:, None, None]
    shape = identity + factor * (top[:, None, None] * identity - matrices)
    try:
        result: Floats = np.linalg.inv(np.linalg.cholesky(shape))
    except np.linalg.LinAlgError:  # so concentrated that rounding makes it indefinite
        values, vectors = np.linalg.eigh(shape)
        result = np.swapaxes(vectors, 1, 2) / np.sqrt(np.maximum(values, 1.0))[:, :, None]
    return result


def _best_b(slopes: Floats) -> Floats:
    """Solve Σ 1/(b + 2a) = 1 for b in [1, q], by Newton's method from below."""
    size = slopes.shape[1]
    b = np.ones(len(slopes))
    for _ in range(_NEWTON_STEPS):
        terms = 1 / (b[:, None] + 2 * slopes)
        # convex and decreasing in b: steps from the left never pass the root
        step = (terms.sum(axis=1) - 1) / (terms**2).sum(axis=1)
        b += step
        if np.all(np.abs(step) <= 1e-9 * b):
            break
    return np.clip(b, 1.0, size)


def orthogonal_axes(
    matrices: Floats, concentration: float, normals: Draw, uniforms: Draw
) -> Floats:
    """Draw orthonormal axes one after the other, each by Bingham's law on what is left.

    Parameters
    ----------
    matrices, concentration, normals, uniforms
        As in :func:`bingham`.

    Returns
    -------
    ndarray
        (count, d, d); row i of each is its i-th axis.
    """
    count, size = matrices.shape[:2]
    rest, basis = matrices, np.broadcast_to(np.eye(size), (count, size, size))
    axes, top, flat = np.empty((count, size, size)), np.empty(count), False
    for step in range(size - 1):
        if not flat:
            values: Floats = np.linalg.eigvalsh(rest).astype(np.float64, copy=False)
            # eigenvalues of restrictions lie between these: flat once is flat for good
            top = values[:, -1]
            flat = bool(concentration * np.max(top - values[:, 0]) <= _FLAT)
        if flat:
            u = _flat_bingham(rest, top, concentration, normals, uniforms)
        else:
            u = bingham(rest, values, concentration, normals, uniforms)
        axes[:, step] = np.einsum("nq,nqd->nd", u, basis)
        rest, basis = _complement(u, rest, basis)
    axes[:, size - 1] = basis[:, 0]  # one direction is left; its sign does not matter
    return axes


def _complement(u: Floats, matrices: Floats, basis: Floats) -> tuple[Floats, Floats]:
    """Restrict matrices and bases to what is orthogonal to u, by a Householder reflection.

    H = I - factor w w' takes u to a multiple of the first unit vector, so that its other rows
    are a basis of the complement. It is a function of u alone.
    """
    w = u.copy()
    w[:, 0] += np.where(u[:, 0] >= 0, 1.0, -1.0)
    factor = (1 / (1 + np.abs(u[:, 0])))[:, None, None]
    moved = np.einsum("nij,nj->ni", matrices, w)
    form = np.einsum("ni,ni->n", w, moved)[:, None, None]
    cross = moved[:, 1:, None] * w[:, None, 1:]
    rest = matrices[:, 1:, 1:] - factor * (cross + np.swapaxes(cross, 1, 2))
    rest += factor**2 * form * (w[:, 1:, None] * w[:, None, 1:])
    along = np.einsum("ni,nid->nd", w, basis)
    return rest, basis[:, 1:] - factor * (w[:, 1:, None] * along[:, None, :])
