"""What kernel statistics look like under the uniform law on a public domain.

Tests weigh kernels against each other by these numbers; level and privacy do not depend on
them, so an accuracy of 20% is enough.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from privatest.data.domain import Domain
from privatest.kernels.kernels import Kernel, grams

__all__ = ["null_moments"]

_REFERENCE_POINTS = 768


@lru_cache(maxsize=64)
def null_moments(kernels: tuple[Kernel, ...], domain: Domain) -> tuple[tuple[float, float], ...]:
    """Return (1 - E k, E k~²) of each kernel under the uniform law on the public domain.

    k~ is the doubly centred kernel. From these follow mean and standard deviation that MMD and
    HSIC would have if the data were uniform:

    - MMD: mean² = (1/n + 1/m)(1 - E k), sd = (1/n + 1/m) sqrt(E k~²/2) / mean;
    - HSIC: mean² = (1 - E k)(1 - E l)/n, sd = sqrt(E k~² E l~²/2) / (n mean).
    """
    points = domain.points(_REFERENCE_POINTS)
    moments = []
    for matrix in grams(kernels, points, points, domain):
        count = len(points)
        off_diagonal_mean = (matrix.sum() - count) / (count * (count - 1))
        column_means = matrix.mean(axis=0)
        total_mean = column_means.mean()
        centred = matrix - column_means - column_means[:, None] + total_mean
        squares = np.einsum("ij,ij->", centred, centred) - np.square(np.diag(centred)).sum()
        moments.append((float(1 - off_diagonal_mean), float(squares / (count * (count - 1)))))
    return tuple(moments)
