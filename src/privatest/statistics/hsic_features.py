"""HSIC of features and other norms of cross-covariances, observed and permuted by blocks of rows.

Rows come in a secret order and are cut into blocks by position. A permutation pairs block a of x
with block pi(a) of y, position by position: a subgroup of all permutations. Products of blocks are
summed once, in one pass; leftover rows keep their partners.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.kernels.kernels import UNIT_ROUNDOFF
from privatest.kernels.shared import Basis, SharedFeatures
from privatest.statistics.bins import parallel

__all__ = [
    "Covariances",
    "block_shuffles",
    "permuted_covariances",
    "permuted_hsic_features",
    "summation_error",
]

_BLOCKS = 32  # blocks of rows that are permuted
_PIECE_ENTRIES = 1 << 20  # bases made at a time
_SUM_ENTRIES = 1 << 16  # sums of permutations held at a time: they stay in the processor's cache

Matrix = NDArray[np.float64]
Shuffles = NDArray[np.intp]
Reduce = Callable[[Matrix], Matrix]
Covariances = Callable[[Matrix, Matrix, tuple[Basis, Basis], Any, Reduce], Matrix]
"""Rows, bases, what is rearranged, and how covariances are reduced: as permuted_covariances."""


def block_shuffles(rows: int, n_permutations: int, rng: np.random.Generator) -> Shuffles:
    """Permutations of blocks; the first is the identity, which gives the observed statistic."""
    blocks = min(_BLOCKS, rows)
    shuffles = np.tile(np.arange(blocks), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    return shuffles


def permuted_covariances(
    x: Matrix,
    y: Matrix,
    bases: tuple[Basis, Basis],
    shuffles: Shuffles,
    reduce: Reduce,
) -> Matrix:
    """Reduce the cross-covariance of two bases for each permutation: statistics × permutations.

    ``reduce`` takes permutations × basis of x × basis of y to permutations × statistics. Each
    has to be a norm, or linear: what it returns is divided by the number of rows.
    """
    products, fixed = _block_products(x, y, bases, shuffles.shape[1])

    def statistics(chunk: Shuffles) -> Matrix:
        sums = np.broadcast_to(fixed, (len(chunk), *fixed.shape)).copy()
        for block, partners in enumerate(chunk.T):
            sums += products[block, partners]
        return reduce(sums) / len(x)

    size = max(1, _SUM_ENTRIES // fixed.size)
    chunks = [shuffles[start : start + size] for start in range(0, len(shuffles), size)]
    work = shuffles.size * fixed.size
    return np.ascontiguousarray(np.concatenate(list(parallel(statistics, chunks, work))).T)


def permuted_hsic_features(
    x: Matrix,
    y: Matrix,
    features: tuple[SharedFeatures, SharedFeatures],
    draws: NDArray[Any],
    covariances: Covariances = permuted_covariances,
) -> tuple[Matrix, Matrix]:
    """Return HSIC of features (pairs of kernels × permutations) and a bound on its error.

    ``draws`` (permutations × blocks) is what ``covariances`` rearranges rows by.
    """

    def norms(sums: Matrix) -> Matrix:
        return np.sqrt(_squares(sums, features)).reshape(len(sums), -1)

    values = covariances(x, y, (features[0].basis, features[1].basis), draws, norms)
    return values, _errors(features, len(x), draws.shape[1])


def _squares(sums: Matrix, features: tuple[SharedFeatures, SharedFeatures]) -> Matrix:
    """Squared norms of each pair of kernels' features, from sums of products of bases."""
    left, right = features
    if left.mix is not None:
        sums = np.matmul(left.mix.T, sums)
    count, height, width = sums.shape
    if right.mix is not None:
        sums = sums.reshape(-1, width) @ right.mix
    squares = np.square(sums, out=sums).reshape(count * height, -1) @ right.weights
    pairs: Matrix = np.matmul(left.weights.T, squares.reshape(count, height, -1))
    return pairs


def _block_products(
    x: Matrix, y: Matrix, bases: tuple[Basis, Basis], blocks: int
) -> tuple[Matrix, Matrix]:
    """Sum products of bases over every pair of blocks: (block of x, block of y, basis²).

    Also what every permutation shares: the leftover rows' products less the product of the means.
    """
    total, size = len(x), len(x) // blocks
    starts = np.arange(blocks)[:, None] * size
    rest = slice(blocks * size, total)
    left, right = bases[0](x[rest]), bases[1](y[rest])
    widths = left.shape[1], right.shape[1]
    step = max(1, _PIECE_ENTRIES // (blocks * sum(widths)))

    def piece(first: int) -> tuple[Matrix, Matrix, Matrix]:
        rows = (starts + np.arange(first, min(first + step, size))).ravel()
        left, right = bases[0](x[rows]), bases[1](y[rows])
        left, right = left.reshape(blocks, -1, widths[0]), right.reshape(blocks, -1, widths[1])
        product = np.matmul(left[:, None].transpose(0, 1, 3, 2), right)
        return product, left.sum(axis=1), right.sum(axis=1)

    product = np.zeros((blocks, blocks, *widths))
    # by block, as products are: one sum over all rows would round more than summation_error allows
    sums_left, sums_right = np.zeros((blocks, widths[0])), np.zeros((blocks, widths[1]))
    work = total * widths[0] * widths[1]
    for part, left_sum, right_sum in parallel(piece, range(0, size, step), work):
        product += part
        sums_left += left_sum
        sums_right += right_sum
    total_left = sums_left.sum(axis=0) + left.sum(axis=0)
    total_right = sums_right.sum(axis=0) + right.sum(axis=0)
    return product, left.T @ right - np.outer(total_left, total_right) / total


def summation_error(rows: int, blocks: int, widths: int) -> float:
    """Bound the rounding error of a covariance of vectors of norm at most 1.

    No sum has more additions one after the other than a block has rows, and two for each block.
    The mean product and both means are off by at most so many roundings each.
    """
    return 4 * (rows / blocks + 2 * blocks + widths + 64) * UNIT_ROUNDOFF


def _errors(features: tuple[SharedFeatures, SharedFeatures], rows: int, blocks: int) -> Matrix:
    """Bound the rounding error of HSIC of features, for each pair of kernels.

    Features are off by their own error, and centred ones have norm at most twice their size;
    products are then summed, and mixed by two matrix products.
    """
    left, right = features
    summing = summation_error(rows, blocks, left.width + right.width)
    errors: Matrix = (
        2 * np.outer(left.errors, right.sizes)
        + 2 * np.outer(left.sizes, right.errors)
        + summing * np.outer(left.sizes, right.sizes)
    ).ravel()
    return errors
