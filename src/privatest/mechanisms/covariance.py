"""A private second moment by its eigenvalues and axes: the ED mechanism, corrected.

Amin et al. (2019), Dunsche, Kutta and Dette (2022, algorithm 4). Axes are a chain, each drawn from
Bingham's law on the orthogonal complement of the last, by the rejection sampler of Kent, Ganeiban
and Mardia (2018) with angular central Gaussian proposals, for stacks of matrices at once. The
same sampler draws secret axes and public bootstrap replicates. Proof: docs/proofs/covariance.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, record, released
from privatest.mechanisms.additive import (
    signed_sums,
    signed_sums_deviation,
    signed_sums_draws,
    signed_sums_scale,
)

_UNIT_ROUNDOFF = 2.0**-53
_GRID_BITS = 30  # a released matrix is rounded to 2^-30 of its noise

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


# The ED mechanism


@dataclass(frozen=True, slots=True)
class EdScales:
    """The public scales of an ED release.

    Attributes
    ----------
    eigenvalues : float
        The s of the noise on the eigenvalues of the sum of squares, of density exp(-|z|/s) in
        the norm of :mod:`privatest.mechanisms.additive`.
    deviation : float
        Standard deviation of that noise on each eigenvalue.
    concentration : float
        The c of exp(c u'Au), from which axes are drawn; 0 for one dimension.
    """

    eigenvalues: float
    deviation: float
    concentration: float


def ed_scales(
    n: int, dimension: int, *, epsilon: float, rows_per_person: int = 1, error: float = 0.0
) -> EdScales:
    """Return the scales of :func:`covariance_ed`: public, known before any data.

    Notes
    -----
    **Sensitivity** A replaced row raises eigenvalues of Σ x x', |x| <= 1, by at most 1 together
    and lowers others by at most 1 together, and moves the logarithm of the density of the axes by
    at most d times the concentration. ``error`` bounds the rounding of the matrix in the spectral
    norm, and the eigenvalues' own rounding is added to it: up to 2 d of both for the eigenvalues,
    and 4 (d - 1) for the axes. ``rows_per_person`` multiplies all of it, rounding too: a person's
    rows may lie in several samples, each with its own.
    """
    slack = _slack(n, dimension, error)
    moved = _eigenvalue_change(dimension, rows_per_person, slack)
    scale = _up(signed_sums_scale(moved, _share(epsilon, dimension), dimension))
    deviation = scale * signed_sums_deviation(dimension)
    if dimension == 1:
        return EdScales(scale, deviation, 0.0)
    turned = _axes_change(dimension, rows_per_person, slack)
    concentration = _share(epsilon, dimension) / (dimension * turned)
    return EdScales(scale, deviation, concentration * (1 - 1e-12))


def _share(epsilon: float, dimension: int) -> float:
    """Return what eigenvalues get, and axes if there are any."""
    half = epsilon / 2
    return epsilon if dimension == 1 else half


def _slack(n: int, dimension: int, error: float) -> float:
    return error + 16 * dimension * _UNIT_ROUNDOFF * n


def _eigenvalue_change(dimension: int, rows_per_person: int, slack: float) -> float:
    """Bound the movement of the eigenvalues, with the rounding of each for both neighbours."""
    return _up(rows_per_person * (1 + 2 * dimension * slack))


def _axes_change(dimension: int, rows_per_person: int, slack: float) -> float:
    """Bound what axes lose, over d times their concentration, with rounding for both neighbours."""
    return _up(rows_per_person * (1 + 4 * (dimension - 1) / dimension * slack))


def covariance_ed(
    matrix: Floats,
    *,
    n: int,
    epsilon: float,
    noise: NoiseSource,
    rows_per_person: int = 1,
    error: float = 0.0,
) -> Floats:
    """Release Σ x x' of n rows of norm at most 1.

    Parameters
    ----------
    matrix : ndarray
        The private sum, symmetric; not centred: the bounds below do not hold for Σ (x - x̄)(x - x̄)'.
    n : int
        Public number of rows.
    epsilon : float
        What is spent, a part of a budget.
    noise : NoiseSource
        The secret randomness.
    rows_per_person : int
        Rows that a person may have.
    error : float
        Bound on the rounding error of ``matrix``, in the spectral norm.

    Returns
    -------
    ndarray
        A symmetric matrix with no negative eigenvalue, up to rounding to 2^-30 of the noise.

    Notes
    -----
    **Sensitivity** :func:`ed_scales`.

    **Privacy** Half of epsilon goes to the eigenvalues (integer noise on a grid, float-safe), half
    to the axes (a chain of Bingham draws), all of it to the one eigenvalue if d = 1. The Bingham
    draws are not float-safe: docs/known-limitations.md.
    """
    dimension = len(matrix)
    if matrix.shape != (dimension, dimension) or not np.isfinite(matrix).all():
        raise ParameterError("value must be a finite square matrix: noise was not drawn.")
    scales = ed_scales(n, dimension, epsilon=epsilon, rows_per_person=rows_per_person, error=error)
    values, vectors = np.linalg.eigh((matrix + matrix.T)[None] / 2)
    moved = _eigenvalue_change(dimension, rows_per_person, _slack(n, dimension, error))
    share = _share(epsilon, dimension)
    noisy = signed_sums(values[0], sensitivity=moved, epsilon=share, noise=noise)
    if dimension > 1:
        bound = _axes_change(dimension, rows_per_person, _slack(n, dimension, error))
        repeat = partial(
            covariance_ed,
            matrix=matrix,
            n=n,
            epsilon=epsilon,
            rows_per_person=rows_per_person,
            error=error,
        )
        record(noise, "axes", matrix, "spectral", (bound,), 1 / scales.concentration, repeat)
    axes = _axes(values, vectors, scales, *secret_draws(noise))
    result = assembled(_cut(noisy[None]), axes)[0]
    # the low bits of the axes, which are not float-safe, are not released
    grid = math.ldexp(1.0, math.floor(math.log2(scales.eigenvalues)) - _GRID_BITS)
    rounded: Floats = np.rint(result / grid) * grid
    return released(noise, (rounded + rounded.T) / 2)


def ed_replicates(
    matrices: Floats, scales: EdScales, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Run the mechanism on made-up matrices, a stack at a time: for a bootstrap, not private.

    Returns the eigenvalues, largest first, and the axes, one in each row.
    """
    count, dimension = matrices.shape[:2]
    if dimension == 1:  # as NumPy would find, at a tenth of the time
        values, vectors = matrices[:, 0], np.ones_like(matrices)
    else:
        values, vectors = np.linalg.eigh(matrices)
    noisy = values + signed_sums_draws(count, dimension, scales.eigenvalues, rng)
    return _cut(noisy), _axes(values, vectors, scales, rng.standard_normal, rng.random)


def assembled(values: Floats, axes: Floats) -> Floats:
    """Return the matrices with these eigenvalues on these axes, which are rows."""
    result: Floats = np.swapaxes(axes, 1, 2) @ (values[:, :, None] * axes)
    return result


def less_a_square(values: Floats, axes: Floats, m: Floats) -> Floats:
    """Return Σ value axis axis' - m m' with its negative eigenvalue cut; values are positive.

    There is at most one, -s with Σ w²/(value + s) = 1, w = m along the axes. Its eigenvector is
    proportional to w/(value + s), so no eigenvalue problem has to be solved.
    """
    w = (axes @ m[:, :, None])[:, :, 0]
    s = rational_root(w**2, values, 1.0, np.maximum(np.max(w**2 - values, axis=1), 0.0))
    y = w / (values + s[:, None])
    lengths = np.sqrt((y * y).sum(axis=1))
    y *= (np.sqrt(s) / np.maximum(lengths, np.finfo(float).tiny))[:, None]
    cut = (y[:, None] @ axes)[:, 0]
    return assembled(values, axes) - _square(m) + _square(cut)


def _square(vectors: Floats) -> Floats:
    return vectors[:, :, None] * vectors[:, None, :]


def _cut(noisy: Floats) -> Floats:
    return np.sort(np.maximum(noisy, 0.0), axis=1)[:, ::-1]


def _axes(
    values: Floats, vectors: Floats, scales: EdScales, normals: Draw, uniforms: Draw
) -> Floats:
    if values.shape[1] == 1:
        return np.ones((len(values), 1, 1))
    return orthogonal_axes(values, vectors, scales.concentration, normals, uniforms)


def _up(scale: float) -> float:
    return math.nextafter(scale * (1 + 1e-12), math.inf)
