"""Balog, Tolstikhin and Schölkopf (2018): algorithm 1 with the constants of the paper.

A REFERENCE FOR COMPARISON, NOT FOR USE: noise must be simulated. The private release is
:func:`privatest.release`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.reproduce import simulated
from privatest.reproduce.raj import noise_ratio

__all__ = ["SequentialBasis", "sequential_basis"]

Floats = NDArray[np.float64]
_TOLERANCE = 1e-5  # squared distance to the span below which the authors add no direction
_BLOCK = 2_000_000  # kernel values at a time


@dataclass(frozen=True, slots=True, eq=False)
class SequentialBasis:
    """Coefficients of the data in the authors' basis: Gram-Schmidt in the order of the points.

    Attributes
    ----------
    parents : ndarray
        The points that added a direction.
    coefficients : ndarray
        Of the mean embedding of the data.
    squared : float
        Squared norm of that embedding.
    n : int
        Rows of the data.
    """

    parents: NDArray[np.intp]
    coefficients: Floats
    squared: float
    n: int

    def distance(
        self, points: int, epsilon: float, delta: float, noise: NoiseSource | None
    ) -> float:
        """Return the RKHS distance of one release with the first ``points`` public points.

        Notes
        -----
        **Sensitivity** 2/n; sqrt 2/n is enough.

        **Privacy** The classical Gaussian mechanism, which is proved for epsilon below 1.
        """
        source = simulated(noise, "privatest.release")
        kept = int(np.searchsorted(self.parents, points))
        scale = 2 / self.n * noise_ratio(Budget(epsilon, delta), analytic=False)
        added = source.gaussian(np.zeros(kept), scale, -1000)
        left = self.squared - float(np.square(self.coefficients[:kept]).sum())
        return math.sqrt(max(left, 0.0) + float(np.square(added).sum()))


def sequential_basis(points: Floats, rows: Floats, gamma: float, squared: float) -> SequentialBasis:
    """Span public points one after the other, and project the data.

    Parameters
    ----------
    points, rows : ndarray
        Public points, and the data.
    gamma : float
        Of the kernel exp(-gamma |x - y|²).
    squared : float
        Mean of the kernel over all pairs of rows.
    """
    residual = np.ones(len(points))
    parents: list[int] = []
    columns = np.empty((64, len(points)))
    while (above := np.flatnonzero(residual > _TOLERANCE)).size:
        place, known = int(above[0]), len(parents)
        if known == len(columns):
            columns = np.vstack([columns, np.empty_like(columns)])
        column = _kernel(points, points[place : place + 1], gamma)[:, 0]
        column -= columns[:known, place] @ columns[:known]
        column /= math.sqrt(residual[place])
        residual -= np.square(column)
        residual[: place + 1] = 0.0
        columns[known] = column
        parents.append(place)
    triangle = columns[: len(parents), parents].T
    chosen, size = points[parents], max(_BLOCK // len(parents), 1)
    means = np.zeros(len(parents))
    for start in range(0, len(rows), size):
        means += _kernel(chosen, rows[start : start + size], gamma).sum(axis=1)
    solved = np.linalg.solve(np.tril(triangle), means / len(rows))
    return SequentialBasis(np.array(parents), solved.astype(np.float64), squared, len(rows))


def _kernel(rows: Floats, others: Floats, gamma: float) -> Floats:
    squares = np.square(rows).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
    result: Floats = np.exp(-gamma * np.maximum(squares - 2 * rows @ others.T, 0.0))
    return result
