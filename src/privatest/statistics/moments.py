"""Means and second moments of rows in a ball, and how far the two move together.

One Gaussian mechanism over both (:func:`privatest.mechanisms.moments.release_moments`) costs less
than two with half of the budget each. Proof: docs/proofs/moments.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Moments",
    "joint_sensitivity",
    "moments",
    "moments_rounding",
    "scatter_draws",
    "smat",
    "spread_steps",
    "svec",
    "svec_size",
]

_UNIT_ROUNDOFF = 2.0**-53
BLOCK = 8192  # rows that are summed at once


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Moments:
    """Number of rows, their mean and the mean of row · row'; private."""

    n: int
    mean: NDArray[np.float64]
    second: NDArray[np.float64]


def moments(blocks: Iterable[NDArray[np.float64]], dimension: int) -> Moments:
    """Sum over blocks of rows in one pass; only one block is in memory."""
    n, total, second = 0, np.zeros(dimension), np.zeros((dimension, dimension))
    for block in blocks:
        n += len(block)
        total += block.sum(axis=0)
        second += block.T @ block
    scale = 1.0 / max(n, 1)
    return Moments(n, total * scale, second * scale)


def moments_rounding(n: int, radius: float, feature_error: float = 0.0) -> tuple[float, float]:
    """Bound the rounding errors, in l2, of the mean and of the second moment.

    ``feature_error`` is the l2 error of one row. A sum of blocks has at most BLOCK + n/BLOCK
    roundings in each term, and the terms of a row have l2 norm ``radius``.
    """
    steps = (BLOCK + n / BLOCK + 4) * _UNIT_ROUNDOFF * 1.01
    mean = feature_error + steps * (radius + feature_error)
    second = (
        2.01 * radius * feature_error + feature_error**2 + steps * (radius + feature_error) ** 2
    )
    return mean, second


def joint_sensitivity(
    alpha: float, beta: float, *, radius: float, spread: float | None = None
) -> float:
    """Largest l2 movement of (alpha · psi, beta · svec(psi psi')) when one row psi is replaced.

    Parameters
    ----------
    alpha, beta : float
        Weights of the row and of its square; beta > 0.
    radius : float
        Every row has norm at most this.
    spread : float, optional
        Any two rows are at most this far apart; 2 · radius by default.

    Notes
    -----
    **Sensitivity** With P = radius² and d the distance of the two rows the movement squared is
    at most alpha² d² + beta² max(2 P d² - d⁴/2, d² (2 radius - d)²), and the second form is the
    larger only for d < 2 radius/3 (docs/proofs/moments.md). Without ``spread`` this is
    4 alpha² P if alpha² >= 2 beta² P, else 2 alpha² P + 2 beta² P² + alpha⁴/(2 beta²).

    Examples
    --------
    >>> joint_sensitivity(1.0, 1e-9, radius=1.0)
    2.0
    >>> round(joint_sensitivity(1.0, 1.0, radius=1.0), 12) == round(4.5**0.5, 12)
    True
    """
    power = radius**2
    reach = 2 * radius if spread is None else min(spread, 2 * radius)
    a, b = alpha**2, beta**2
    if reach < 2 * radius / 3:
        squared = a * reach**2 + b * (reach * (2 * radius - reach)) ** 2
    else:
        distance = min(reach**2, 2 * power + a / b)  # where a d² + b (2 P d² - d⁴/2) is largest
        squared = a * distance + b * (2 * power * distance - distance**2 / 2)
    return math.sqrt(squared)


def svec_size(dimension: int) -> int:
    """Entries of a symmetric matrix on and above its diagonal."""
    return dimension * (dimension + 1) // 2


def svec(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stack a symmetric matrix so that its Frobenius norm becomes the l2 norm.

    Off-diagonal entries occur once, times sqrt(2). Leading axes are kept.
    """
    rows, columns, weights = _positions(matrix.shape[-1])
    stacked: NDArray[np.float64] = matrix[..., rows, columns] * weights
    return stacked


def smat(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Undo :func:`svec`."""
    dimension = (math.isqrt(8 * vector.shape[-1] + 1) - 1) // 2
    rows, columns, weights = _positions(dimension)
    matrix = np.empty((*vector.shape[:-1], dimension, dimension))
    matrix[..., rows, columns] = matrix[..., columns, rows] = vector / weights
    return matrix


def _positions(
    dimension: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    rows, columns = np.triu_indices(dimension)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


def scatter_draws(
    root: NDArray[np.float64], n: int, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw Σ (x - x̄)(x - x̄)' of n normal rows with covariance root · root' (Wishart's law)."""
    dimension = len(root)
    if n - 1 <= dimension:
        factor = root @ rng.standard_normal((count, dimension, n - 1))
    else:  # Bartlett: a triangle of normals, with chi on its diagonal
        triangle = np.tril(rng.standard_normal((count, dimension, dimension)), -1)
        freedom = n - 1 - np.arange(dimension)
        steps = np.arange(dimension)
        triangle[:, steps, steps] = np.sqrt(rng.chisquare(freedom, size=(count, dimension)))
        factor = root @ triangle
    result: NDArray[np.float64] = factor @ np.swapaxes(factor, 1, 2)
    return result


def spread_steps(dimension: int, noise: float, smallest: float) -> tuple[float, ...]:
    """By how many deviations of its noise a released covariance may be too small as a whole.

    A null law that is redrawn from a covariance that is too small is too narrow, and the noise on
    a mean moves both the statistic and the covariance. So the law is redrawn with a larger one
    too, and the larger p-value counts. ``smallest`` is the smallest variance that the statistic
    divides by: where noise is far below it one law is enough.

    In many dimensions the errors of the eigenvalues cancel, and cutting negative ones makes
    them too large on average: from ten on nothing is left to add. Measured, not proved:
    benchmarks/level/moments.py.
    """
    most = 2 / dimension - 0.2
    return (0.0, most / 2, most) if most > 0 and noise > 0.01 * smallest else (0.0,)
