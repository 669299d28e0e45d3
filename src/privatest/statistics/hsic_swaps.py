"""Norms of cross-covariances whose null is made by swapping y within pairs of rows.

Rows come in a secret order, and rows 0 and 1, 2 and 3, ... make pairs (a, b). The covariance is
the mean over pairs of (f(x_a) - f(x_b)) (x) (g(y_a) - g(y_b))/2, and swapping y_a and y_b turns a
pair's sign. A swap keeps a replaced row within its pair, so that permuted statistics move no
further than the observed one; but under the null hypothesis they are sqrt 2 larger than those of
all rows permuted. Proof: docs/proofs/hsic-sensitivity.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.statistics.cross_sums import pair_edges

__all__ = [
    "pair_signs",
    "swapped_covariance_sensitivity",
    "swapped_hsic_sensitivity",
]

Matrix = NDArray[np.float64]


def swapped_hsic_sensitivity(spread_x: float, spread_y: float, n: int) -> PermutationSensitivity:
    """How far HSIC of pairs moves when one row is replaced, spreads being c of the two kernels.

    Notes
    -----
    **Sensitivity** sqrt(3/2) c_x c_y/n, observed or permuted. A row is in one pair, whose term is
    a product of differences from its partner's features: the vectors that bound the observed
    statistic when all rows are permuted. Proof: docs/proofs/hsic-sensitivity.md.
    """
    step = math.sqrt(1.5) * spread_x * spread_y / n * (1 + 1e-15)
    return PermutationSensitivity(step, step)


def swapped_covariance_sensitivity(n: int) -> PermutationSensitivity:
    """How far the largest covariance of pairs moves, for functions with values in [0, 1].

    Notes
    -----
    **Sensitivity** 1/n, observed or permuted: the products (f - f_b)(g - g_b) lie within 1 of
    each other. Proof: docs/proofs/hsic-sensitivity.md.
    """
    step = 1 / n * (1 + 1e-15)
    return PermutationSensitivity(step, step)


def pair_signs(rows: int, n_permutations: int, rng: np.random.Generator) -> Matrix:
    """Signs of bins of pairs (permutations × bins); the first are as observed."""
    signs = np.ones((n_permutations + 1, len(pair_edges(rows)) - 1))
    signs[1:] = 2.0 * rng.integers(2, size=signs[1:].shape) - 1.0
    return signs
