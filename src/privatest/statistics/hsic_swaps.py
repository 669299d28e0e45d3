"""Norms of cross-covariances whose null is made by swapping y within pairs of rows.

Rows come in a secret order, and rows 0 and 1, 2 and 3, ... make pairs (a, b). The covariance is
the mean over pairs of (f(x_a) - f(x_b)) (x) (g(y_a) - g(y_b))/2, and swapping y_a and y_b turns a
pair's sign. A swap keeps a replaced row within its pair, so that permuted statistics move no
further than the observed one; but under the null hypothesis they are sqrt 2 larger than those of
all rows permuted. Proof: docs/proofs/hsic-sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.kernels.shared import Basis
from privatest.statistics.bins import parallel, tiles

__all__ = [
    "pair_signs",
    "swapped_covariance_sensitivity",
    "swapped_covariances",
    "swapped_hsic_sensitivity",
]

_BINS = 128  # of pairs, which are swapped together
_SUM_ENTRIES = 1 << 21  # sums of permutations held at a time

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
    signs = np.ones((n_permutations + 1, len(_edges(rows)) - 1))
    signs[1:] = 2.0 * rng.integers(2, size=signs[1:].shape) - 1.0
    return signs


def _edges(rows: int) -> NDArray[np.intp]:
    """Where each bin of pairs starts, and the end; an odd last row is in none."""
    pairs = rows // 2
    size = -(-pairs // _BINS)
    return 2 * np.minimum(np.arange(0, pairs + size, size), pairs)


def swapped_covariances(
    x: Matrix,
    y: Matrix,
    bases: tuple[Basis, Basis],
    signs: Matrix,
    reduce: Callable[[Matrix], Matrix],
) -> Matrix:
    """Reduce the cross-covariance of two bases for each swap: statistics × permutations.

    ``reduce`` takes permutations × basis of x × basis of y to permutations × statistics, each a
    norm. One pass sums the products of differences in bins; swaps then add up signed bins.
    """
    widths = [basis(side[:0]).shape[1] for basis, side in zip(bases, (x, y), strict=True)]
    edges = _edges(len(x))
    products = np.zeros((len(edges) - 1, math.prod(widths)))

    def piece(tile: tuple[int, NDArray[np.intp]]) -> tuple[int, Matrix]:
        first, own = tile
        left, right = (
            np.subtract(made[::2], made[1::2])
            for made in (bases[0](x[own[0] : own[-1]]), bases[1](y[own[0] : own[-1]]))
        )
        cuts = (own - own[0]) // 2
        sums = [left[start:stop].T @ right[start:stop] for start, stop in pairwise(cuts)]
        return first, np.reshape(sums, (len(sums), -1))

    for first, part in parallel(piece, tiles(edges), len(x) * products.shape[1]):
        products[first : first + len(part)] += part

    def statistics(chunk: Matrix) -> Matrix:
        return reduce((chunk @ products).reshape(len(chunk), *widths)) / len(x)

    size = max(1, _SUM_ENTRIES // products.shape[1])
    chunks = [signs[start : start + size] for start in range(0, len(signs), size)]
    work = signs.size * products.shape[1]
    return np.ascontiguousarray(np.concatenate(list(parallel(statistics, chunks, work))).T)
