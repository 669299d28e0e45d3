"""Balog, Tolstikhin and Schölkopf (2018): both algorithms with the constants of the paper.

A REFERENCE FOR COMPARISON, NOT FOR USE: noise must be simulated. The private release is
:func:`privatest.release`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest_papers import simulated
from privatest_papers.raj import noise_ratio

__all__ = ["RandomFeatures", "SequentialBasis", "pre_images", "sequential_basis"]

Floats = NDArray[np.float64]
_TOLERANCE = 1e-5  # squared distance to the span below which the authors add no direction
_BLOCK = 2_000_000  # kernel values at a time
# of the authors' program for algorithm 2: steps for a point, their size, and the penalty
_STEPS, _STEP_SIZE, _PENALTY = 100, 100.0, 100.0
_SWEEPS = 1000  # of the lasso, at most


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


@dataclass(frozen=True, slots=True, eq=False)
class RandomFeatures:
    """The authors' features sqrt(2/J) cos(w'x + b) of the kernel exp(-gamma |x - y|²).

    Their norms exceed 1, so that the bound of 2/N does not cover them: a reference only.
    """

    waves: Floats
    shifts: Floats

    @classmethod
    def drawn(cls, columns: int, gamma: float, count: int, rng: np.random.Generator) -> Self:
        """Draw ``count`` of them."""
        waves = rng.normal(scale=math.sqrt(2 * gamma), size=(columns, count))
        return cls(waves, rng.uniform(0, 2 * math.pi, size=count))

    @property
    def _scale(self) -> float:
        return math.sqrt(2 / len(self.shifts))

    def of(self, rows: Floats) -> Floats:
        """Return the features of rows."""
        return self._scale * np.cos(rows @ self.waves + self.shifts)

    def mean(self, rows: Floats) -> Floats:
        """Return the mean features of rows, block by block."""
        size = max(_BLOCK // len(self.shifts), 1)
        total = np.zeros(len(self.shifts))
        for start in range(0, len(rows), size):
            total += self.of(rows[start : start + size]).sum(axis=0)
        return total / len(rows)

    def climb(self, target: Floats, start: Floats) -> Floats:
        """Maximise <target, phi(z)>²/|phi(z)|² by Adam, from ``start``."""
        z, first, second = start.copy(), np.zeros_like(start), np.zeros_like(start)
        for step in range(1, _STEPS + 1):
            angles = z @ self.waves + self.shifts
            phi, slope = self._scale * np.cos(angles), -self._scale * np.sin(angles)
            inner, square = float(target @ phi), float(phi @ phi)
            along = 2 * inner / square * target - 2 * inner**2 / square**2 * phi
            gradient = self.waves @ (along * slope)
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * np.square(gradient)
            ahead, spread = first / (1 - 0.9**step), second / (1 - 0.999**step)
            z = z + _STEP_SIZE * ahead / (np.sqrt(spread) + 1e-8)
        return z


def pre_images(
    features: RandomFeatures, noisy: Floats, starts: Floats, sizes: Sequence[int], n: int
) -> list[tuple[Floats, Floats]]:
    """Find weighted points with nearly the mean features ``noisy``: algorithm 2, line 6.

    Points are found one after the other, each from its start, for what those before it leave;
    weights of the first ``sizes`` by the lasso, as in the authors' program.

    Parameters
    ----------
    features : RandomFeatures
        The map.
    noisy : ndarray
        Mean features with noise, which makes everything here post-processing.
    starts : ndarray
        Public points where the search for each begins.
    sizes : sequence of int
        Numbers of points to give weights to, in increasing order.
    n : int
        Rows of the data, for the penalty.
    """
    left, found = noisy.copy(), np.empty_like(starts[: sizes[-1]])
    phis = np.empty((sizes[-1], len(noisy)))
    released = []
    for place in range(sizes[-1]):
        found[place] = features.climb(left, starts[place])
        phi = phis[place] = features.of(found[place])
        left = left - float(left @ phi) / float(phi @ phi) * phi
        if place + 1 in sizes:
            own = phis[: place + 1]
            released.append((found[: place + 1].copy(), _lasso(own @ own.T, own @ noisy, n)))
    return released


def _lasso(gram: Floats, inner: Floats, n: int) -> Floats:
    """Minimise w'Gw - 2 w'c + penalty/n |w|₁, one weight at a time."""
    weights, slack = np.zeros(len(inner)), inner.copy()  # slack = c - Gw
    half = _PENALTY / n / 2
    for _ in range(_SWEEPS):
        largest = 0.0
        for place, curvature in enumerate(np.diag(gram)):
            aim = float(slack[place]) + curvature * weights[place]
            new = math.copysign(max(abs(aim) - half, 0.0), aim) / curvature
            moved = new - weights[place]
            if moved:
                slack -= moved * gram[place]
                weights[place] = new
                largest = max(largest, abs(moved))
        if largest <= 1e-4 * float(np.abs(weights).max(initial=0.0)):
            break
    return weights
