"""Maximum mean discrepancy: the statistic, its sensitivity, and its permuted values.

T = |sum_i v_i phi(z_i)| in the kernel's RKHS, v = 1/n on the first sample and -1/m on the
second. Kim and Schrab (2023), section 4.1, with the sharper constants of
docs/proofs/mmd-sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import Adjacency, PermutationSensitivity
from privatest.data.domain import Domain
from privatest.kernels.features import FeatureMaps
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings, grams
from privatest.kernels.sums import quadratic_forms, sum_rows
from privatest.statistics.bin_sums import block_additions
from privatest.statistics.bins import (
    BinLayout,
    TwoSampleBins,
    feature_rounding,
    feature_sums,
    parallel,
    summation_depth,
    tiles,
)

__all__ = [
    "mmd",
    "mmd_sensitivity",
    "mmd_u",
    "mmd_u_sensitivity",
    "permuted_mmd_exact",
    "permuted_mmd_features",
    "permuted_mmd_sums",
]

_GRAM_TILE = 512


def mmd(x: NDArray[np.float64], y: NDArray[np.float64], kernel: Kernel, domain: Domain) -> float:
    """Return the MMD (V-statistic) of two encoded samples; not private."""
    rows = np.vstack([x, y])
    weights = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
    return math.sqrt(max(float(weights @ (gram(kernel, rows, rows, domain) @ weights)), 0.0))


def mmd_u(x: NDArray[np.float64], y: NDArray[np.float64], kernel: Kernel, domain: Domain) -> float:
    """Return the unbiased estimate of MMD² (U-statistic) of two encoded samples; not private."""
    n, m = len(x), len(y)
    within_x = (gram(kernel, x, x, domain).sum() - n) / (n * (n - 1))
    within_y = (gram(kernel, y, y, domain).sum() - m) / (m * (m - 1))
    return float(within_x + within_y - 2 * gram(kernel, x, y, domain).mean())


def mmd_sensitivity(
    spread: float, n: int, m: int, adjacency: Adjacency = "one"
) -> PermutationSensitivity:
    """How far MMD moves, ``spread`` being c = sqrt(2 (sup k - inf k)).

    Notes
    -----
    **Sensitivity** "one": c/min(n, m), attained. "both": c (1/n + 1/m) for the observed
    statistic, but 2c/min(n, m) for permuted ones, where both replaced records may land in the
    smaller sample (attained). Proof: docs/proofs/mmd-sensitivity.md.

    Examples
    --------
    Without bounds it is sqrt(2)/min(n, m), lemma 5 of Kim and Schrab (2023); less on [0, 1].

    >>> kernel = Kernel("gaussian", 1.0)
    >>> round(mmd_sensitivity(kernel.spread(Domain((0,), bounded=False)), 3, 2).observed, 6)
    0.707107
    >>> round(mmd_sensitivity(kernel.spread(Domain((0,))), 3, 2).observed, 6)
    0.562192
    """
    smaller = min(n, m)
    if adjacency == "both":
        observed = spread * (1 / n + 1 / m)
        return PermutationSensitivity(observed, max(2 * spread / smaller, observed))
    return PermutationSensitivity(spread / smaller, spread / smaller)


def mmd_u_sensitivity(
    spread: float, n: int, m: int, adjacency: Adjacency = "one"
) -> PermutationSensitivity:
    """How far the U-statistic of MMD² moves.

    Notes
    -----
    **Sensitivity** A record of the first sample appears in terms of total weight 4/n, each of
    which moves by at most sup k - inf k = c²/2: 2c²/n, or 2c²/min(n, m) wherever a permutation
    puts it. "both" adds two of them.
    """
    step = 2 * spread**2 / min(n, m)
    if adjacency == "both":
        observed = 2 * spread**2 * (1 / n + 1 / m)
        return PermutationSensitivity(observed, max(2 * step, observed))
    return PermutationSensitivity(step, step)


def permuted_mmd_features(
    bins: TwoSampleBins,
    membership: NDArray[np.bool_],
    maps: FeatureMaps,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return norms of features (members × permutations) and a bound on their rounding errors.

    One pass over the rows sums features per bin; a permutation then adds up bins.
    """
    return permuted_mmd_sums(feature_sums(bins, maps), bins, membership, maps)


def permuted_mmd_sums(
    sums: Sequence[NDArray[np.float64]],
    layout: BinLayout,
    membership: NDArray[np.bool_],
    maps: FeatureMaps,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same from sums of raw features, bins × features for each block of the maps."""
    weights = layout.weights(membership)
    values = np.vstack(
        [maps.measure(index, weights @ maps.project(index, raw)) for index, raw in enumerate(sums)]
    )
    rows, smaller = layout.n + layout.m, min(layout.n, layout.m)
    additions = weights.shape[1] + block_additions(maps, rows, smaller, weights.shape[1])
    return values, 2 * feature_rounding(maps, additions)  # weights have total mass 2


def permuted_mmd_exact(
    bins: TwoSampleBins,
    membership: NDArray[np.bool_],
    kernels: Sequence[Kernel],
    domain: Domain,
    *,
    unbiased: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return MMD (kernels × permutations), or MMD² unbiased, and a bound on its rounding error.

    One pass over the Gram matrix in tiles sums it into bins × bins; no N×N matrix is kept.
    """
    blocks = _binned_grams(bins, kernels, domain)
    weights = bins.weights(membership)
    # |error of v'Kv| <= (sum |v|)² times the error of an entry, and its sum over a tile
    additions = 2 * summation_depth(bins.size) + 2 * weights.shape[1]
    errors = 4 * (np.array(gram_roundings(kernels, domain)) + additions * UNIT_ROUNDOFF)
    if unbiased:
        return np.array([_unbiased(block, weights, bins) for block in blocks]), 2 * errors
    squares = np.array([quadratic_forms(block, weights) for block in blocks])
    return np.sqrt(np.maximum(squares, 0.0)), np.sqrt(errors)


def _unbiased(
    block: NDArray[np.float64], weights: NDArray[np.float64], bins: TwoSampleBins
) -> NDArray[np.float64]:
    """MMD² without the diagonal, where k = 1, from sums of the Gram matrix over bins."""
    n, m = bins.n, bins.m
    in_x = (weights > 0).astype(np.float64)
    within_x = quadratic_forms(block, in_x)
    across = in_x @ block.sum(axis=1) - within_x
    within_y = block.sum() - within_x - 2 * across
    result: NDArray[np.float64] = (
        (within_x - n) / (n * (n - 1)) + (within_y - m) / (m * (m - 1)) - 2 * across / (n * m)
    )
    return result


def _binned_grams(
    bins: TwoSampleBins, kernels: Sequence[Kernel], domain: Domain
) -> list[NDArray[np.float64]]:
    """Sum each kernel's Gram matrix over pairs of bins."""
    cuts = list(tiles(bins.edges, _GRAM_TILE))
    pairs = [(left, right) for left in range(len(cuts)) for right in range(left, len(cuts))]
    count = len(bins.edges) - 1
    blocks = [np.zeros((count, count)) for _ in kernels]

    def tile_sums(pair: tuple[int, int]) -> list[NDArray[np.float64]]:
        edges_left, edges_right = cuts[pair[0]][1], cuts[pair[1]][1]
        left = bins.rows(edges_left[0], edges_left[-1])
        right = bins.rows(edges_right[0], edges_right[-1])
        return [
            sum_rows(sum_rows(matrix, edges_left - edges_left[0]).T, edges_right - edges_right[0])
            for matrix in grams(kernels, left, right, domain)
        ]

    work = (bins.n + bins.m) ** 2 * len(kernels)
    for pair, sums in zip(pairs, parallel(tile_sums, pairs, work), strict=True):
        first_left, first_right = cuts[pair[0]][0], cuts[pair[1]][0]
        for block, part in zip(blocks, sums, strict=True):  # part is right × left
            rows = slice(first_right, first_right + part.shape[0])
            columns = slice(first_left, first_left + part.shape[1])
            block[rows, columns] += part
            if pair[0] != pair[1]:
                block[columns, rows] += part.T
    return blocks
