"""The paper's algorithm in plain NumPy, to measure against; not private arithmetic.

Kim and Schrab (2023), algorithm 1 for dpMMD and dpHSIC: dense Gram matrices, permutations of
rows, noise on all B + 1 statistics, the rank compared with alpha.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def mmd_decision(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    *,
    epsilon: float,
    bandwidth: float,
    rng: np.random.Generator,
    n_permutations: int = 1999,
    alpha: float = 0.05,
) -> bool:
    """Decide with a Gaussian kernel of one bandwidth."""
    n, m = len(x), len(y)
    rows = np.vstack([x, y])
    norms = np.square(rows).sum(axis=1)
    gram = np.exp(-(norms[:, None] + norms[None, :] - 2 * rows @ rows.T) / bandwidth**2)
    weights = np.tile(np.repeat([1 / n, -1 / m], [n, m]), (n_permutations + 1, 1))
    weights[1:] = rng.permuted(weights[1:], axis=1)
    squares = ((weights @ gram) * weights).sum(axis=1)
    statistics = np.sqrt(np.maximum(squares, 0))
    scale = 2 * np.sqrt(2) / min(n, m) / epsilon
    noisy = statistics + rng.laplace(scale=scale, size=len(statistics))
    return bool(np.mean(noisy >= noisy[0]) <= alpha)


def hsic_decision(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    *,
    epsilon: float,
    bandwidth: float,
    rng: np.random.Generator,
    n_permutations: int = 1999,
    alpha: float = 0.05,
) -> bool:
    """Decide with Gaussian kernels of one bandwidth: two Gram matrices, a gather each time."""
    n = len(x)
    left, right = (_centred_gram(side, bandwidth) for side in (x, y))
    statistics = [math.sqrt(max(float(np.vdot(left, right)), 0.0)) / n]
    for _ in range(n_permutations):
        shuffle = rng.permutation(n)
        trace = float(np.vdot(left, right[np.ix_(shuffle, shuffle)]))
        statistics.append(math.sqrt(max(trace, 0.0)) / n)
    scale = 2 * 4 * (n - 1) / n**2 / epsilon
    noisy = np.array(statistics) + rng.laplace(scale=scale, size=len(statistics))
    return bool(np.mean(noisy >= noisy[0]) <= alpha)


def _centred_gram(rows: NDArray[np.float64], bandwidth: float) -> NDArray[np.float64]:
    norms = np.square(rows).sum(axis=1)
    gram = np.exp(-(norms[:, None] + norms[None, :] - 2 * rows @ rows.T) / bandwidth**2)
    means = gram.mean(axis=0)
    centred: NDArray[np.float64] = gram - means - means[:, None] + means.mean()
    return centred
