"""HSIC of features, observed and rearranged, from sums of products of two bases."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.kernels.shared import SharedFeatures
from privatest.statistics.cross_sums import BLOCKS, Bases, Products

__all__ = ["block_shuffles", "feature_bases", "permuted_hsic_features"]

Matrix = NDArray[np.float64]
Features = tuple[SharedFeatures, SharedFeatures]


def block_shuffles(rows: int, n_permutations: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Permutations of blocks; the first is the identity, which gives the observed statistic."""
    blocks = min(BLOCKS, rows)
    shuffles = np.tile(np.arange(blocks), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    return shuffles


def feature_bases(features: Features) -> Bases:
    """Return the functions whose products are summed."""
    left, right = features
    return Bases(left.basis, right.basis, (left.width, right.width), (left.reach, right.reach))


def permuted_hsic_features(
    products: Products, features: Features, draws: NDArray[Any]
) -> tuple[Matrix, Matrix]:
    """Return HSIC of features (pairs of kernels × permutations) and a bound on its error.

    ``draws`` is how rows are rearranged: permutations of blocks, or signs of bins.
    """
    return products.reduced(draws, partial(_norms, features)), _errors(features, products)


def _norms(features: Features, sums: Matrix) -> Matrix:
    return np.sqrt(_squares(sums, features)).reshape(len(sums), -1)


def _squares(sums: Matrix, features: Features) -> Matrix:
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


def _errors(features: Features, products: Products) -> Matrix:
    """Bound the rounding error of HSIC of features, for each pair of kernels.

    Features are off by their own error, and centred ones have norm at most twice their size;
    products are then summed, and mixed by two matrix products.
    """
    left, right = features
    summing = products.rounding(left.width + right.width)
    errors: Matrix = (
        2 * np.outer(left.errors, right.sizes)
        + 2 * np.outer(left.sizes, right.errors)
        + summing * np.outer(left.sizes, right.sizes)
        + products.fixed * np.outer(left.gains, right.gains)
    ).ravel()
    return errors
