"""Statistics of paired rows as they stand: what hsic_test computes once they are in its order."""

from __future__ import annotations

import numpy as np

from privatest.data.encoding import Sample
from privatest.data.engines import BLOCK_ROWS
from privatest.numerics.dependence import (
    Bases,
    BlockProducts,
    PairProducts,
    cross_sums,
    feature_bases,
    permuted_hsic_features,
)


def _sums(x, y, bases, blocks):
    if len(x) <= BLOCK_ROWS:  # the engine does the same, and takes longer
        small = (
            PairProducts(bases, len(x)) if blocks is None else BlockProducts(bases, len(x), blocks)
        )
        small.update(x, y, 0)
        return small
    rows = Sample(np.hstack([x, y]), None)
    (found,) = cross_sums(rows, x.shape[1], [(bases, blocks)])
    return found


def _bases(x, y, functions):
    widths = functions[0](x[:0]).shape[1], functions[1](y[:0]).shape[1]
    return Bases(functions[0], functions[1], widths)


def permuted_covariances(x, y, functions, shuffles, reduce):
    """Statistics × permutations of blocks, of functions with values in [0, 1]."""
    return _sums(x, y, _bases(x, y, functions), shuffles.shape[1]).reduced(shuffles, reduce)


def swapped_covariances(x, y, functions, signs, reduce):
    """Statistics × draws of signs of pairs."""
    return _sums(x, y, _bases(x, y, functions), None).reduced(signs, reduce)


def summation_error(x, functions, blocks):
    """What is said of the rounding of covariances."""
    found = _sums(x, x, _bases(x, x, functions), blocks)
    return found.rounding() + found.fixed


def permuted_hsic(x, y, features, shuffles):
    """HSIC of features (pairs of kernels × permutations) and a bound on its error."""
    products = _sums(x, y, feature_bases(features), shuffles.shape[1])
    return permuted_hsic_features(products, features, shuffles)


def swapped_hsic(x, y, features, signs):
    """HSIC of features (pairs of kernels × draws of signs) and a bound on its error."""
    return permuted_hsic_features(_sums(x, y, feature_bases(features), None), features, signs)
