"""A private second moment by its eigenvalues and its axes: the ED mechanism, corrected.

Amin et al. (2019), Dunsche, Kutta and Dette (2022, algorithm 4). Proof: docs/proofs/covariance.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, record, released
from privatest.mechanisms.bingham import Draw, orthogonal_axes, rational_root, secret_draws
from privatest.mechanisms.signed_sums import (
    signed_sums,
    signed_sums_deviation,
    signed_sums_draws,
    signed_sums_scale,
)

__all__ = [
    "EdScales",
    "assembled",
    "covariance_ed",
    "ed_replicates",
    "ed_scales",
    "less_a_square",
]

_UNIT_ROUNDOFF = 2.0**-53
_GRID_BITS = 30  # a released matrix is rounded to 2^-30 of its noise

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EdScales:
    """The public scales of an ED release.

    Attributes
    ----------
    eigenvalues : float
        The s of the noise on the eigenvalues of the sum of squares, of density exp(-|z|/s) in
        the norm of :mod:`privatest.mechanisms.signed_sums`.
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
    moved = _moved(dimension, rows_per_person, slack)
    scale = _up(signed_sums_scale(moved, _share(epsilon, dimension), dimension))
    deviation = scale * signed_sums_deviation(dimension)
    if dimension == 1:
        return EdScales(scale, deviation, 0.0)
    turned = _turned(dimension, rows_per_person, slack)
    concentration = _share(epsilon, dimension) / (dimension * turned)
    return EdScales(scale, deviation, concentration * (1 - 1e-12))


def _share(epsilon: float, dimension: int) -> float:
    """Return what eigenvalues get, and axes if there are any."""
    half = epsilon / 2
    return epsilon if dimension == 1 else half


def _slack(n: int, dimension: int, error: float) -> float:
    return error + 16 * dimension * _UNIT_ROUNDOFF * n


def _moved(dimension: int, rows_per_person: int, slack: float) -> float:
    """Bound the movement of the eigenvalues, with the rounding of each for both neighbours."""
    return _up(rows_per_person * (1 + 2 * dimension * slack))


def _turned(dimension: int, rows_per_person: int, slack: float) -> float:
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
    moved = _moved(dimension, rows_per_person, _slack(n, dimension, error))
    share = _share(epsilon, dimension)
    noisy = signed_sums(values[0], sensitivity=moved, epsilon=share, noise=noise)
    if dimension > 1:
        bound = _turned(dimension, rows_per_person, _slack(n, dimension, error))
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
