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

from privatest.core.privacy import SMALLEST_SENSITIVITY, PermutationSensitivity
from privatest.data.domain import Domain
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings, grams
from privatest.statistics.bins import parallel

__all__ = [
    "hsic",
    "hsic_sensitivity",
    "hsic_u",
    "hsic_u_sensitivity",
    "permuted_hsic_exact",
]


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
    step = max(step, SMALLEST_SENSITIVITY)  # kernels that round to 1 everywhere
    return PermutationSensitivity(step, step)


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
