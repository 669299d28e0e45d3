"""A private second moment of rows in a cube, entry by entry: no eigenvalues and no axes.

Integer noise on all entries at once, drawn exactly. For two or three columns it is nearer than
:mod:`privatest.mechanisms.covariance`, or as near. Proof: docs/proofs/covariance.md.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.mechanisms.additive import linf_mean, linf_scale

__all__ = ["entries_deviation", "entries_scale", "entry_noise", "noisy_entries"]

Floats = NDArray[np.float64]


def entries_scale(n: int, *, epsilon: float, rows_per_person: int = 1, error: float = 0.0) -> float:
    """Return the s of the noise of :func:`noisy_entries`; public, known before any data."""
    return linf_scale(_moved(n, rows_per_person, error), epsilon)


def _moved(n: int, rows_per_person: int, error: float) -> float:
    return rows_per_person * (1 / n + 2 * error) * (1 + 1e-12)


def noisy_entries(
    second: Floats,
    *,
    n: int,
    epsilon: float,
    noise: NoiseSource,
    rows_per_person: int = 1,
    error: float = 0.0,
) -> Floats:
    """Release (1/n) Σ x x' of rows of [-1, 1]^d.

    Parameters
    ----------
    second : ndarray
        The private second moment, symmetric, about the centre of the cube.
    n : int
        Public number of rows.
    epsilon : float
        What is spent, a part of a budget.
    noise : NoiseSource
        The secret randomness.
    rows_per_person : int
        Rows that a person may have.
    error : float
        Bound on the rounding error of each entry.

    Returns
    -------
    ndarray
        A symmetric matrix; it may have negative eigenvalues.

    Notes
    -----
    **Sensitivity** A replaced row moves a mean of squares by at most 1/n and a mean of products
    by at most 2/n. So diagonal entries, and half of the others, move by at most 1/n each, and
    all of them at once; times ``rows_per_person``, with the rounding of both neighbours.

    **Privacy** Integer noise in the l-infinity norm on a grid, drawn exactly: epsilon-private and
    float-safe (:func:`privatest.mechanisms.additive.linf_mean`).
    """
    dimension = len(second)
    if second.shape != (dimension, dimension):
        raise ParameterError("value must be a square matrix: noise was not drawn.")
    moved = _moved(n, rows_per_person, error)
    row, column, weights = _places(dimension)
    noisy = linf_mean(
        second[row, column] / weights, sensitivity=moved, epsilon=epsilon, noise=noise
    )
    found: Floats = _symmetric(noisy[None], dimension)[0]
    return found


def entries_deviation(dimension: int, scale: float) -> float:
    """Return the standard deviation of the noise in a direction, the root of its mean square.

    That of a diagonal entry is t = s sqrt((k + 1)(k + 2)/3), k the number of entries, and that of
    another 2t: together d(4d - 3) t² in the Frobenius norm, a d-th part of it for a direction.
    """
    count = dimension * (dimension + 1) // 2
    return scale * math.sqrt((count + 1) * (count + 2) / 3 * (4 * dimension - 3))


def entry_noise(dimension: int, scale: float, count: int, rng: np.random.Generator) -> Floats:
    """Draw symmetric matrices like the noise: for a bootstrap, not for privacy."""
    size = dimension * (dimension + 1) // 2
    radius = rng.gamma(size + 1, scale, size=(count, 1))
    return _symmetric(radius * rng.uniform(-1, 1, size=(count, size)), dimension)


@cache
def _places(dimension: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return where entries are, and the range of x_i x_j: 1 for a square, 2 for a product."""
    row, column = np.triu_indices(dimension)
    return row, column, np.where(row == column, 1.0, 2.0)


def _symmetric(vectors: Floats, dimension: int) -> Floats:
    """Return matrices from weighted entries, for stacks along the first axis."""
    row, column, weights = _places(dimension)
    found = np.empty((len(vectors), dimension, dimension))
    found[:, row, column] = found[:, column, row] = vectors * weights
    return found
