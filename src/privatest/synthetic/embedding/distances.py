"""RKHS distances between released rows and public ones: post-processing."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.kernels import Kernel, gram
from privatest.statistics.bins import parallel
from privatest.synthetic.answers import Estimate, Progress, Weighting, unexplained

__all__ = ["distance", "embedding_distance", "mean_kernel", "point_means"]

_TILE = 512
_STRIP = 8192  # rows per progress report


def distance(
    rows: NDArray[np.float64],
    points: NDArray[np.float64],
    used: Weighting,
    before: Weighting | None,
    kernel: Kernel,
    domain: Domain,
    progress: Progress | None = None,
) -> Estimate:
    """Estimate the distance of encoded public rows to weighted points."""
    own = mean_kernel(rows, kernel, domain, progress)
    means = point_means(points, rows, kernel, domain)
    value = embedding_distance(used.weights, points, means, own, kernel, domain)
    matrix = gram(kernel, points, points, domain)
    weights = used.weights[:, None]
    noise, misfit = _size(matrix, used.draws - weights), 0.0
    if before is not None:
        free = before.weights[:, None]
        free_noise = _size(matrix, before.draws - free)
        misfit = unexplained(_size(matrix, free - weights), free_noise)
    return Estimate(value, math.hypot(noise, misfit), misfit)


def _size(matrix: NDArray[np.float64], moved: NDArray[np.float64]) -> float:
    """Root mean square RKHS norm of columns of weights."""
    squares = np.einsum("ij,ij->j", moved, matrix @ moved)
    return math.sqrt(max(float(squares.mean()), 0.0)) if squares.size else math.nan


def mean_kernel(
    rows: NDArray[np.float64], kernel: Kernel, domain: Domain, progress: Progress | None = None
) -> float:
    """Return the mean of k over all pairs of rows, including a row with itself.

    Every pair is computed once, in tiles: time grows with N², memory does not.
    """
    count, total = len(rows), 0.0
    for first in range(0, count, _STRIP):
        strip = rows[first : first + _STRIP]
        work = len(strip) * (count - first)
        tiles = range(first, count, _TILE)

        def tile(start: int, strip: NDArray[np.float64] = strip, first: int = first) -> float:
            block = rows[start : start + _TILE]
            # within the strip tiles cover both orders of a pair; later rows are counted twice
            factor = 1.0 if start < first + len(strip) else 2.0
            parts = [
                float(gram(kernel, block, strip[part : part + _TILE], domain).sum())
                for part in range(0, len(strip), _TILE)
            ]
            return factor * math.fsum(parts)

        total += math.fsum(parallel(tile, tiles, work))
        if progress is not None:
            progress(1 - (1 - min(first + _STRIP, count) / count) ** 2)
    return total / count**2


def point_means(
    points: NDArray[np.float64], rows: NDArray[np.float64], kernel: Kernel, domain: Domain
) -> NDArray[np.float64]:
    """Return the mean over rows of k(point, row), for each point."""

    def tile(start: int) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = gram(kernel, points, rows[start : start + _TILE], domain).sum(
            axis=1
        )
        return sums

    total = np.zeros(len(points))
    for part in parallel(tile, range(0, len(rows), _TILE), len(rows) * len(points)):
        total += part
    return total / len(rows)


def embedding_distance(
    weights: NDArray[np.float64],
    points: NDArray[np.float64],
    means: NDArray[np.float64],
    own: float,
    kernel: Kernel,
    domain: Domain,
) -> float:
    """Return |sum_m w_m phi(z_m) - mean phi(x)|, given mean k(z_m, x) and mean k(x, x')."""
    square = 0.0
    for start in range(0, len(points), _TILE):
        block = gram(kernel, points[start : start + _TILE], points, domain)
        square += float(weights[start : start + _TILE] @ (block @ weights))
    return math.sqrt(max(square - 2 * float(weights @ means) + own, 0.0))
