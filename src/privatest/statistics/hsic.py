"""Hilbert-Schmidt independence criterion: the statistic, its sensitivity, permuted values.

T = |(1/n) sum_i (phi(x_i) - mean) (x) (psi(y_i) - mean)|, the norm of a cross-covariance.
Kim and Schrab (2023), section 4.2, with the sharper constants of
docs/proofs/hsic-sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.data.domain import Domain
from privatest.kernels.features import FeatureMaps
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings, grams
from privatest.statistics.bins import parallel

__all__ = [
    "hsic",
    "hsic_sensitivity",
    "hsic_u",
    "hsic_u_sensitivity",
    "permuted_hsic_exact",
    "permuted_hsic_features",
]

_BLOCKS = 32  # blocks of rows that are permuted
_PIECE_ENTRIES = 1 << 20  # features made at a time
_SUM_ENTRIES = 1 << 22  # sums of permutations held at a time


def hsic(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    kernels: tuple[Kernel, Kernel],
    domains: tuple[Domain, Domain],
) -> float:
    """Return HSIC (V-statistic, square root) of paired encoded rows; not private."""
    left = _centred(gram(kernels[0], x, x, domains[0]))
    right = _centred(gram(kernels[1], y, y, domains[1]))
    return math.sqrt(max(float(np.vdot(left, right)), 0.0)) / len(x)


def hsic_u(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    kernels: tuple[Kernel, Kernel],
    domains: tuple[Domain, Domain],
) -> float:
    """Return the unbiased estimate of HSIC² (U-statistic) of paired rows; not private."""
    identity = np.arange(len(x))[None, :]
    values, _ = permuted_hsic_exact(
        x, y, (kernels[:1], kernels[1:]), domains, identity, unbiased=True
    )
    return float(values[0, 0])


def hsic_sensitivity(spread_x: float, spread_y: float, n: int) -> PermutationSensitivity:
    """How far HSIC moves when one pair is replaced, spreads being c of the two kernels.

    Notes
    -----
    **Sensitivity** With C = c_x c_y (n-1)/n²: sqrt(3/2) C for the observed statistic, where
    both parts of the pair change in one row; 2 C for permuted ones, where a permutation separates
    them. Proof: docs/proofs/hsic-sensitivity.md.

    Examples
    --------
    Without bounds that of permuted statistics is 4 (n-1)/n², lemma 6 of Kim and Schrab (2023).

    >>> unbounded = Kernel("gaussian", 1.0).spread(Domain((0,), bounded=False))
    >>> round(hsic_sensitivity(unbounded, unbounded, 4).permuted, 6)
    0.75
    """
    step = spread_x * spread_y * (n - 1) / n**2
    return PermutationSensitivity(math.sqrt(1.5) * step * (1 + 1e-15), 2 * step)


def hsic_u_sensitivity(spread_x: float, spread_y: float, n: int) -> PermutationSensitivity:
    """How far the U-statistic of HSIC² moves when one pair is replaced.

    Notes
    -----
    **Sensitivity** (16/27) c_x² c_y² (n-1)/(n (n-3)), observed or permuted. Proof:
    docs/proofs/hsic-sensitivity.md.
    """
    step = 16 * spread_x**2 * spread_y**2 * (n - 1) / (27 * n * (n - 3)) * (1 + 1e-14)
    return PermutationSensitivity(step, step)


def permuted_hsic_features(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    maps: tuple[FeatureMaps, FeatureMaps],
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return HSIC of features (pairs of kernels × permutations) and a bound on its error.

    Rows come in a secret order and are cut into blocks by position. A permutation pairs block
    a of x with block pi(a) of y, position by position: a subgroup of all permutations.
    Products of blocks are summed once, in one pass; leftover rows keep their partners.
    """
    blocks = min(_BLOCKS, len(x))
    shuffles = np.tile(np.arange(blocks), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    products, fixed, cuts = _block_products(x, y, maps, blocks)

    def norms(chunk: NDArray[np.intp]) -> NDArray[np.float64]:
        sums = np.broadcast_to(fixed, (len(chunk), *fixed.shape)).copy()
        for block in range(blocks):
            sums += products[block, chunk[:, block]]
        np.square(sums, out=sums)
        by_row = np.add.reduceat(sums, cuts[0], axis=1)
        return np.sqrt(np.add.reduceat(by_row, cuts[1], axis=2)).reshape(len(chunk), -1) / len(x)

    size = max(1, _SUM_ENTRIES // fixed.size)
    chunks = [shuffles[start : start + size] for start in range(0, len(shuffles), size)]
    work = shuffles.size * fixed.size
    values = np.concatenate(list(parallel(norms, chunks, work))).T
    return np.ascontiguousarray(values), _feature_errors(maps, len(x) / blocks + 2 * blocks)


def _block_products(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    maps: tuple[FeatureMaps, FeatureMaps],
    blocks: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Sum feature products over every pair of blocks: (block of x, block of y, features²).

    Also what every permutation shares, the leftover rows' products less the product of the
    means, and where each kernel's features start.
    """
    total = len(x)
    size = total // blocks
    starts = np.arange(blocks)[:, None] * size
    widths = [[_width(side, index) for index in range(len(side.spreads))] for side in maps]
    left_width, right_width = sum(widths[0]), sum(widths[1])
    step = max(1, _PIECE_ENTRIES // (blocks * (left_width + right_width)))

    def piece(first: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        rows = (starts + np.arange(first, min(first + step, size))).ravel()
        left, right = _features(maps[0], x[rows]), _features(maps[1], y[rows])
        means = left.sum(axis=0), right.sum(axis=0)
        tall = left.reshape(blocks, -1, left_width).transpose(0, 2, 1)
        wide = right.reshape(blocks, -1, right_width).transpose(1, 0, 2)
        positions = tall.shape[2]
        product = tall.reshape(-1, positions) @ wide.reshape(positions, -1)
        return product, *means

    product = np.zeros((blocks * left_width, blocks * right_width))
    mean_left, mean_right = np.zeros(left_width), np.zeros(right_width)
    work = total * left_width * right_width
    for part, left_sum, right_sum in parallel(piece, range(0, size, step), work):
        product += part
        mean_left += left_sum
        mean_right += right_sum
    fixed = np.zeros((left_width, right_width))
    if blocks * size < total:
        left, right = _features(maps[0], x[blocks * size :]), _features(maps[1], y[blocks * size :])
        fixed += left.T @ right
        mean_left += left.sum(axis=0)
        mean_right += right.sum(axis=0)
    fixed -= np.outer(mean_left, mean_right) / total
    pairs = product.reshape(blocks, left_width, blocks, right_width).transpose(0, 2, 1, 3)
    cuts = tuple(np.cumsum([0, *side[:-1]]) for side in widths)
    return np.ascontiguousarray(pairs), fixed, (cuts[0], cuts[1])


def _width(maps: FeatureMaps, index: int) -> int:
    """Find the number of features of one kernel by projecting nothing."""
    return int(maps.project(index, np.zeros((0, maps.raw_width))).shape[1])


def _features(maps: FeatureMaps, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Features of all kernels side by side."""
    return np.hstack([maps.project(index, raw) for index, raw in enumerate(maps.raw(rows))])


def _feature_errors(maps: tuple[FeatureMaps, FeatureMaps], additions: float) -> NDArray[np.float64]:
    """Bound the rounding error of HSIC of features, for each pair of kernels.

    Features have norm at most 1 and are off by their own error; products are then summed.
    """
    own = [
        np.array(side.amplifications) * (np.array(side.roundings) + side.raw_width * UNIT_ROUNDOFF)
        for side in maps
    ]
    sums = 2 * (own[0][:, None] + own[1]) + 4 * (additions + 64) * UNIT_ROUNDOFF
    errors: NDArray[np.float64] = sums.ravel()
    return errors


def permuted_hsic_exact(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    kernels: tuple[Sequence[Kernel], Sequence[Kernel]],
    domains: tuple[Domain, Domain],
    shuffles: NDArray[np.intp],
    *,
    unbiased: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return HSIC (pairs of kernels × permutations), or HSIC² unbiased, and a bound on its error.

    ``shuffles`` holds permutations of the rows of y. Keeps Gram matrices in memory; time grows
    with n² times permutations.
    """
    prepare = _hollow if unbiased else _centred
    left = [prepare(matrix) for matrix in grams(kernels[0], x, x, domains[0])]
    right = [prepare(matrix) for matrix in grams(kernels[1], y, y, domains[1])]
    count = len(left) * len(right)

    def values(shuffle: NDArray[np.intp]) -> NDArray[np.float64]:
        shuffled = [np.take(matrix[shuffle], shuffle, axis=1) for matrix in right]
        return np.array([np.vdot(a, b) for a in left for b in shuffled])

    n = len(x)
    traces = np.array(list(parallel(values, shuffles, shuffles.size * n * count))).T
    own = [np.array(gram_roundings(*side)) for side in zip(kernels, domains, strict=True)]
    errors = 8 * (own[0][:, None] + own[1] + 4 * n * UNIT_ROUNDOFF).ravel()
    if unbiased:
        traces += _hollow_correction(left, right, shuffles)
        return traces / (n * (n - 3)), 4 * errors
    return np.sqrt(np.maximum(traces, 0.0)) / n, np.sqrt(errors)


def _centred(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    means = matrix.mean(axis=0)
    centred: NDArray[np.float64] = matrix - means - means[:, None] + means.mean()
    return centred


def _hollow(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    hollow = matrix.copy()
    np.fill_diagonal(hollow, 0.0)
    return hollow


def _hollow_correction(
    left: list[NDArray[np.float64]], right: list[NDArray[np.float64]], shuffles: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return what turns traces of hollow matrices into n (n-3) times the U-statistic."""
    n = shuffles.shape[1]
    rows, columns = (np.array([matrix.sum(axis=0) for matrix in side]) for side in (left, right))
    both = np.outer(rows.sum(axis=1), columns.sum(axis=1)).ravel() / ((n - 1) * (n - 2))
    crossed = np.array([rows @ columns[:, shuffle].T for shuffle in shuffles])
    correction: NDArray[np.float64] = (
        both[:, None] - 2 / (n - 2) * crossed.reshape(len(shuffles), -1).T
    )
    return correction
