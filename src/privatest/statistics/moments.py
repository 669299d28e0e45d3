"""Means and second moments of rows in a ball, and how far the two move together.

One Gaussian mechanism over both (:func:`privatest.mechanisms.moments.release_moments`) costs less
than two with half of the budget each. Proof: docs/proofs/moments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.engines.summaries import FixedPoint, summarise
from privatest.engines.sums import Terms, column_sums, pieces, square_sums, sum_rounding

__all__ = [
    "MomentSums",
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

Floats = NDArray[np.float64]
_Positions = tuple[NDArray[np.intp], NDArray[np.intp], Floats]
_FEW_COLUMNS = 32  # of a matrix whose positions are kept: 13 KB


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Moments:
    """Number of rows, their mean and the mean of row · row'; private."""

    n: int
    mean: Floats
    second: Floats


class MomentSums:
    """Sums of psi and of psi · psi' over rows: what one pass keeps.

    Parameters
    ----------
    psi : function
        Rows to rows × dimension, each row by itself; it travels to other processes.
    dimension : int
        Number of features.
    n : int
        Number of rows of the whole sample.
    radius : float
        No psi is longer than this.
    """

    __slots__ = ("psi", "second", "total")

    def __init__(self, psi: Terms, dimension: int, n: int, radius: float) -> None:
        self.psi = psi
        self.total = FixedPoint((dimension,), n * radius)
        self.second = FixedPoint((dimension, dimension), n * radius**2)

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        del start
        total, second = np.zeros(self.total.units.shape), np.zeros(self.second.units.shape)
        for piece in pieces(rows):
            features = self.psi(piece)
            total += column_sums(features)
            second += square_sums(features)
        self.total.add(total)
        self.second.add(second)

    def merge(self, other: MomentSums) -> None:
        """Add other blocks."""
        self.total.merge(other.total)
        self.second.merge(other.second)


def moments(*samples: Sample, psi: Terms, dimension: int, radius: float) -> list[Moments]:
    """Return the moments of each sample, all in one pass.

    Parameters
    ----------
    *samples : Sample
        In memory or not.
    psi, dimension, radius
        The map of a row, its length and the largest norm, as in :class:`MomentSums`.
    """
    found = summarise(
        *((sample, partial(MomentSums, psi, dimension, len(sample), radius)) for sample in samples)
    )
    return [
        Moments(len(sample), sums.total.value / scale, sums.second.value / scale)
        for sample, sums in zip(samples, found, strict=True)
        for scale in (max(len(sample), 1),)
    ]


def moments_rounding(
    n: int, radius: float, dimension: int, feature_error: float = 0.0
) -> tuple[float, float]:
    """Bound the rounding errors, in l2, of the mean and of the second moment.

    ``feature_error`` is the l2 error of one row. The terms of a row have l2 norm ``radius``, or
    its square; every entry of a sum is rounded to fixed point by itself.
    """
    if n == 0:
        return 0.0, 0.0
    relative, fixed = sum_rounding(n, radius)
    _, fixed_second = sum_rounding(n, radius**2)
    mean = feature_error + relative * (radius + feature_error) + math.sqrt(dimension) * fixed / n
    second = (
        2.01 * radius * feature_error
        + feature_error**2
        + relative * (radius + feature_error) ** 2
        + dimension * fixed_second / n
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


def _positions(dimension: int) -> _Positions:
    return _few_positions(dimension) if dimension <= _FEW_COLUMNS else _all_positions(dimension)


def _all_positions(dimension: int) -> _Positions:
    rows, columns = np.triu_indices(dimension)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


@cache
def _few_positions(dimension: int) -> _Positions:
    """Keep them: finding them takes longer than stacking a small matrix."""
    found = _all_positions(dimension)
    for each in found:
        each.flags.writeable = False
    return found


def scatter_draws(
    root: NDArray[np.float64], n: int, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw Σ (x - x̄)(x - x̄)' of n normal rows with covariance root · root' (Wishart's law)."""
    dimension = len(root)
    if n - 1 <= dimension:
        factor = root @ rng.standard_normal((count, dimension, n - 1))
    else:  # Bartlett: a triangle of normals, with chi on its diagonal
        steps = np.arange(dimension)
        normals = rng.standard_normal((count, dimension, dimension))
        triangle = np.where(steps[:, None] > steps, normals, 0.0)
        freedom = n - 1 - steps
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
