"""Kim and Schrab (2023): algorithm 1, dpMMD and dpHSIC as published.

A REFERENCE FOR COMPARISON, NOT FOR USE: noise is added to every statistic, constants are those
of the paper, rows keep their stored order, and noise must be simulated. Private tests are
:func:`privatest.mmd_test`, :func:`privatest.hsic_test` and
:func:`privatest.methods.custom.permutation_test`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Amount, Budget
from privatest.core.validation import Rng, integer_at_least, number, public_generator
from privatest.data.schema import Domain
from privatest.numerics.dependence import permuted_hsic_exact
from privatest.numerics.kernels import Kernel, KernelFamily
from privatest.numerics.permutation import bin_layout, permuted_mmd
from privatest_papers import finite_rows, simulated

__all__ = [
    "dp_hsic_decision",
    "dp_mmd_decision",
    "dp_permutation_decision",
    "paper_hsic_sensitivity",
    "paper_mmd_sensitivity",
]

_INSTEAD = "permutation_test, mmd_test or hsic_test"


def dp_permutation_decision(
    statistics: Sequence[float] | NDArray[np.float64],
    *,
    sensitivity: float,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    noise: NoiseSource | None,
) -> bool:
    """Decide by algorithm 1 of the paper. A reference: it takes simulated noise only.

    Parameters
    ----------
    statistics : sequence of float
        The observed statistic, then the permuted ones.
    sensitivity : float
        How far each of them moves between neighbours.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    noise : SimulatedNoise
        Anything else is refused.

    Returns
    -------
    bool
        Whether the rank p-value of equation (7) is at most ``alpha``. The p-value itself is
        not returned: it is not private (docs/proofs/smoothed-permutation-test.md).

    Notes
    -----
    **Sensitivity** As declared, under every permutation (equation 4).

    **Privacy** Noise of scale 2 sensitivity/xi, xi = epsilon + log(1/(1 - delta)), on all B + 1
    statistics: by theorem 2 the decision, at one alpha, would be (epsilon, delta)-private.
    """
    source = simulated(noise, _INSTEAD)
    step = number("sensitivity", sensitivity, above=0)
    alpha = number("alpha", alpha, above=0, below=1)
    values = np.asarray(statistics, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise ParameterError("statistics must be at least two finite numbers, observed first.")
    epsilon_, delta_ = Budget(epsilon, delta).as_floats
    scale = 2 * step / (epsilon_ - math.log1p(-delta_))
    # all at once: of 2001 values a draw each would take most of the time
    uniform = 2 * source.uniforms(len(values)) - 1
    noisy = values - scale * np.sign(uniform) * np.log1p(-np.abs(uniform))
    rank = Fraction(int(np.count_nonzero(noisy >= noisy[0])), len(noisy))
    return rank <= Fraction(Decimal(repr(alpha)))


def paper_mmd_sensitivity(n: int, m: int) -> float:
    """Sensitivity of MMD in the paper.

    Notes
    -----
    **Sensitivity** sqrt(2K)/min(n, m), K = 1 (lemma 5).
    """
    return math.sqrt(2) / min(n, m)


def paper_hsic_sensitivity(n: int) -> float:
    """Sensitivity of HSIC in the paper.

    Notes
    -----
    **Sensitivity** 4 (n-1)/n² sqrt(KL), K = L = 1 (lemma 6).
    """
    return 4 * (n - 1) / n**2


def dp_mmd_decision(
    x: ArrayLike,
    y: ArrayLike,
    *,
    bandwidth: float,
    kernel: KernelFamily = "gaussian",
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_permutations: int = 2000,
    rng: Rng = None,
    noise: NoiseSource | None,
) -> bool:
    """Decide by the paper's dpMMD test, one kernel. A reference: simulated noise only.

    Parameters
    ----------
    x, y : array
        The two samples; nothing is clipped or rescaled.
    bandwidth, kernel
        w and the family: exp(-|x-y|²/w²), exp(-|x-y|₁/w) or (1 + |x-y|²/w²)^(-1/2).
    epsilon, delta, alpha, n_permutations, rng, noise
        As in :func:`dp_permutation_decision`; ``rng`` draws the permutations.

    Returns
    -------
    bool
        Whether to reject the hypothesis of equal distributions.

    Notes
    -----
    **Sensitivity** :func:`paper_mmd_sensitivity`.

    **Privacy** As in :func:`dp_permutation_decision`.
    """
    simulated(noise, _INSTEAD)
    rows_x, rows_y = finite_rows("x", x), finite_rows("y", y)
    if rows_x.shape[1] != rows_y.shape[1]:
        raise DataError("x and y must have the same columns.")
    n, m = len(rows_x), len(rows_y)
    domain = Domain((0,) * rows_x.shape[1], bounded=False)
    orders = np.arange(n), np.arange(m)
    layout = bin_layout(n, m, 1, n + m)
    integer_at_least("n_permutations", n_permutations, 1)
    permutation = layout.permute(n_permutations, public_generator(rng))
    rows = layout.arrange(rows_x, rows_y, *orders)
    values, _ = permuted_mmd(permutation, rows, None, [Kernel(kernel, bandwidth)], domain)
    return dp_permutation_decision(
        values[0],
        sensitivity=paper_mmd_sensitivity(n, m),
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        noise=noise,
    )


def dp_hsic_decision(
    x: ArrayLike,
    y: ArrayLike,
    *,
    bandwidth_x: float,
    bandwidth_y: float,
    kernel: KernelFamily = "gaussian",
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_permutations: int = 2000,
    rng: Rng = None,
    noise: NoiseSource | None,
) -> bool:
    """Decide by the paper's dpHSIC test, one kernel per side. A reference: simulated noise only.

    Parameters
    ----------
    x, y : array
        Row i of ``x`` and row i of ``y`` are one record.
    bandwidth_x, bandwidth_y, kernel
        As in :func:`dp_mmd_decision`, for each side.
    epsilon, delta, alpha, n_permutations, rng, noise
        As in :func:`dp_permutation_decision`; ``rng`` draws the permutations.

    Returns
    -------
    bool
        Whether to reject the hypothesis of independence.

    Notes
    -----
    **Sensitivity** :func:`paper_hsic_sensitivity`.

    **Privacy** As in :func:`dp_permutation_decision`.
    """
    simulated(noise, _INSTEAD)
    rows_x, rows_y = finite_rows("x", x), finite_rows("y", y)
    if len(rows_x) != len(rows_y):
        raise DataError("x and y must have the same number of rows.")
    domains = tuple(Domain((0,) * rows.shape[1], bounded=False) for rows in (rows_x, rows_y))
    kernels = [Kernel(kernel, bandwidth_x)], [Kernel(kernel, bandwidth_y)]
    integer_at_least("n_permutations", n_permutations, 1)
    shuffles = np.tile(np.arange(len(rows_x)), (n_permutations + 1, 1))
    public_generator(rng).permuted(shuffles[1:], axis=1, out=shuffles[1:])
    values, _ = permuted_hsic_exact(rows_x, rows_y, kernels, (domains[0], domains[1]), shuffles)
    return dp_permutation_decision(
        values[0],
        sensitivity=paper_hsic_sensitivity(len(rows_x)),
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        noise=noise,
    )
