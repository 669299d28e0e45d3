"""HSIC of features, observed and permuted: blocks of rows are permuted, not rows.

Rows come in a secret order and are cut into blocks by position. A permutation pairs block a of x
with block pi(a) of y, position by position: a subgroup of all permutations. Products of blocks are
summed once, in one pass; leftover rows keep their partners.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privatest.kernels.kernels import UNIT_ROUNDOFF
from privatest.kernels.shared import SharedFeatures
from privatest.statistics.bins import parallel

__all__ = ["permuted_hsic_features"]

_BLOCKS = 32  # blocks of rows that are permuted
_PIECE_ENTRIES = 1 << 20  # bases made at a time
_SUM_ENTRIES = 1 << 16  # sums of permutations held at a time: they stay in the processor's cache

Matrix = NDArray[np.float64]


def permuted_hsic_features(
    x: Matrix,
    y: Matrix,
    features: tuple[SharedFeatures, SharedFeatures],
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[Matrix, Matrix]:
    """Return HSIC of features (pairs of kernels × permutations) and a bound on its error."""
    blocks = min(_BLOCKS, len(x))
    shuffles = np.tile(np.arange(blocks), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    products, fixed = _block_products(x, y, features, blocks)

    def norms(chunk: NDArray[np.intp]) -> Matrix:
        sums = np.broadcast_to(fixed, (len(chunk), *fixed.shape)).copy()
        for block in range(blocks):
            sums += products[block, chunk[:, block]]
        return np.sqrt(_squares(sums, features)).reshape(len(chunk), -1) / len(x)

    size = max(1, _SUM_ENTRIES // fixed.size)
    chunks = [shuffles[start : start + size] for start in range(0, len(shuffles), size)]
    work = shuffles.size * fixed.size
    values = np.concatenate(list(parallel(norms, chunks, work))).T
    return np.ascontiguousarray(values), _errors(features, len(x) / blocks + 2 * blocks)


def _squares(sums: Matrix, features: tuple[SharedFeatures, SharedFeatures]) -> Matrix:
    """Squared norms of each pair of kernels' features, from sums of products of bases."""
    left, right = features
    if left.mix is not None:
        sums = np.matmul(left.mix.T, sums)
    count, height, width = sums.shape
    if right.mix is not None:
        sums = sums.reshape(-1, width) @ right.mix
    squares = np.square(sums, out=sums).reshape(count * height, -1) @ right.owners
    pairs: Matrix = np.matmul(left.owners.T, squares.reshape(count, height, -1))
    return pairs


def _block_products(
    x: Matrix, y: Matrix, features: tuple[SharedFeatures, SharedFeatures], blocks: int
) -> tuple[Matrix, Matrix]:
    """Sum products of bases over every pair of blocks: (block of x, block of y, basis²).

    Also what every permutation shares: the leftover rows' products less the product of the means.
    """
    total, size = len(x), len(x) // blocks
    starts = np.arange(blocks)[:, None] * size
    widths = features[0].width, features[1].width
    step = max(1, _PIECE_ENTRIES // (blocks * sum(widths)))

    def piece(first: int) -> tuple[Matrix, Matrix, Matrix]:
        rows = (starts + np.arange(first, min(first + step, size))).ravel()
        left, right = features[0].basis(x[rows]), features[1].basis(y[rows])
        tall = left.reshape(blocks, 1, -1, widths[0]).transpose(0, 1, 3, 2)
        product = np.matmul(tall, right.reshape(blocks, -1, widths[1]))
        return product, left.sum(axis=0), right.sum(axis=0)

    product = np.zeros((blocks, blocks, *widths))
    mean_left, mean_right = np.zeros(widths[0]), np.zeros(widths[1])
    work = total * widths[0] * widths[1]
    for part, left_sum, right_sum in parallel(piece, range(0, size, step), work):
        product += part
        mean_left += left_sum
        mean_right += right_sum
    rest = slice(blocks * size, total)
    left, right = features[0].basis(x[rest]), features[1].basis(y[rest])
    mean_left += left.sum(axis=0)
    mean_right += right.sum(axis=0)
    fixed = left.T @ right - np.outer(mean_left, mean_right) / total
    return product, fixed


def _errors(features: tuple[SharedFeatures, SharedFeatures], additions: float) -> Matrix:
    """Bound the rounding error of HSIC of features, for each pair of kernels.

    Features are off by their own error, and centred ones have norm at most twice their size;
    products are then summed, and mixed by two matrix products.
    """
    left, right = features
    operations = additions + left.width + right.width + 64
    errors: Matrix = (
        2 * np.outer(left.errors, right.sizes)
        + 2 * np.outer(left.sizes, right.errors)
        + 4 * operations * UNIT_ROUNDOFF * np.outer(left.sizes, right.sizes)
    ).ravel()
    return errors
