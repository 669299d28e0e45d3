"""Dunsche, Kutta and Dette (2022): Hotelling's test with the constants of the paper.

A REFERENCE FOR COMPARISON, NOT FOR USE: the covariance is centred, for which the constants of
its mechanism do not hold (docs/proofs/covariance.md), and noise must be simulated. The private
test is :func:`privatest.hotelling_test`.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Amount, Budget
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.mechanisms.covariance import orthogonal_axes, secret_draws
from privatest_papers import finite_rows, simulated

__all__ = [
    "PAPER_EIGENVALUE_SENSITIVITY",
    "exceeds_asymptotic",
    "exceeds_bootstrap",
    "hotelling_decision",
    "hotelling_statistics",
    "paper_covariance",
    "paper_ed_scales",
]

PAPER_EIGENVALUE_SENSITIVITY = 2.0
"""The l1 sensitivity of eigenvalues that algorithm 4 assumes; a pair in the tests has 4.379."""

Floats = NDArray[np.float64]


def paper_ed_scales(dimension: int, epsilon: float) -> tuple[float, float]:
    """Return the Laplace scale of eigenvalues and the concentration of axes in algorithm 4."""
    part = epsilon / (dimension + 1)
    return PAPER_EIGENVALUE_SENSITIVITY / part, part / 4


def paper_covariance(
    covariance: Floats, n: int, *, bound: float, epsilon: float, noise: NoiseSource | None
) -> Floats:
    """Release a centred covariance by algorithm 4 (ED). A reference: simulated noise only.

    Parameters
    ----------
    covariance : ndarray
        The sample covariance of rows in [-bound, bound]^d.
    n : int
        Number of rows.
    bound, epsilon : float
        The m and the epsilon of the algorithm. The result is multiplied by d m², which the paper
        omits, and the exponent of its algorithm 5 is corrected.
    noise : SimulatedNoise
        Anything else is refused.

    Notes
    -----
    **Sensitivity** 2 for the eigenvalues, as printed: too small for a centred covariance.

    **Privacy** NOT epsilon-private for d = 2: a pair of neighbours loses more than 1.05 epsilon.
    """
    source, dimension = simulated(noise, "hotelling_test"), len(covariance)
    unit = dimension * bound**2 / n
    scale, concentration = paper_ed_scales(dimension, epsilon)
    matrix = covariance / unit
    values = np.linalg.eigvalsh(matrix)[::-1]
    noisy = np.abs([source.laplace(float(value), scale) for value in values])
    axes = orthogonal_axes(*np.linalg.eigh(matrix[None]), concentration, *secret_draws(source))[0]
    result: Floats = unit * (axes.T @ (noisy[:, None] * axes))
    return result


def hotelling_decision(
    x: ArrayLike,
    y: ArrayLike,
    *,
    bound: float,
    epsilon: Amount,
    alpha: float = 0.05,
    calibration: Literal["bootstrap", "asymptotic"] = "bootstrap",
    n_bootstrap: int = 200,
    rng: Rng = None,
    noise: NoiseSource | None,
) -> bool:
    """Decide by the paper's test, (3.4) or (3.3). A reference: simulated noise only.

    Parameters
    ----------
    x, y : array
        The two samples, in [-bound, bound]^d; nothing is clipped.
    bound : float
        The m of the paper.
    epsilon : float, int, str or Decimal
        A quarter of it goes to each mean and to each covariance.
    alpha, calibration, n_bootstrap, rng
        Level, algorithm 3 or the chi-square law, number of replicates, public randomness.
    noise : SimulatedNoise
        Anything else is refused.

    Returns
    -------
    bool
        Whether to reject the hypothesis of equal means.

    Notes
    -----
    **Sensitivity** 2md/n of each mean in l1; :func:`paper_covariance`.

    **Privacy** NOT proved: see :func:`paper_covariance`.
    """
    one_of("calibration", calibration, ("bootstrap", "asymptotic"))
    integer_at_least("n_bootstrap", n_bootstrap, 1)
    alpha = number("alpha", alpha, above=0, below=1)
    observed, replicates, dimension = hotelling_statistics(
        x, y, bound=bound, epsilon=epsilon, n_bootstrap=n_bootstrap, rng=rng, noise=noise
    )
    if calibration == "asymptotic":
        return exceeds_asymptotic(observed, dimension, alpha)
    return exceeds_bootstrap(observed, replicates, alpha)


def exceeds_asymptotic(observed: float, dimension: int, alpha: float) -> bool:
    """Whether a statistic is above the quantile of the chi-square law: (3.3)."""
    from scipy.special import chdtri  # noqa: PLC0415

    return bool(observed > chdtri(dimension, alpha))


def exceeds_bootstrap(observed: float, replicates: Floats, alpha: float) -> bool:
    """Whether a statistic is above the quantile of its replicates: (3.4)."""
    return bool(observed > replicates[math.floor((1 - alpha) * len(replicates)) - 1])


def hotelling_statistics(
    x: ArrayLike,
    y: ArrayLike,
    *,
    bound: float,
    epsilon: Amount,
    n_bootstrap: int = 200,
    rng: Rng = None,
    noise: NoiseSource | None,
) -> tuple[float, Floats, int]:
    """Return t^DP, its sorted replicates (algorithm 3) and the dimension.

    Parameters are those of :func:`hotelling_decision`. A reference: simulated noise only.
    """
    source, generator = simulated(noise, "hotelling_test"), public_generator(rng)
    bound = number("bound", bound, above=0)
    samples = finite_rows("x", x), finite_rows("y", y)
    dimension, quarter = samples[0].shape[1], Budget(epsilon).pure_epsilon / 4
    sizes = np.array([len(rows) for rows in samples], dtype=np.float64)
    scales = 2 * bound * dimension / (sizes * quarter)
    means = [
        np.array([source.laplace(float(value), float(scale)) for value in rows.mean(axis=0)])
        for rows, scale in zip(samples, scales, strict=True)
    ]
    covariances = []
    for rows in samples:
        covariance = np.cov(rows.T).reshape(dimension, dimension)
        options = {"bound": bound, "epsilon": quarter}
        covariances.append(paper_covariance(covariance, len(rows), noise=source, **options))
    pooled = sum((n - 1) * each for n, each in zip(sizes, covariances, strict=True))
    pooled = pooled / (sizes.sum() - 2) + np.sum(2 * scales**2) * np.eye(dimension)  # (3.1)
    size = sizes.prod() / sizes.sum()
    observed = _statistic((means[0] - means[1])[None], pooled, size)[0]
    drawn = _differences(covariances, sizes, scales, n_bootstrap, generator)
    return float(observed), np.sort(_statistic(drawn, pooled, size)), dimension


def _differences(
    covariances: list[Floats],
    sizes: Floats,
    scales: Floats,
    count: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw noisy differences of means under the null hypothesis (algorithm 3)."""
    drawn = np.zeros((count, len(covariances[0])))
    for sign, n, scale, each in zip((1, -1), sizes, scales, covariances, strict=True):
        values, vectors = np.linalg.eigh(each)
        root = vectors * np.sqrt(np.maximum(values, 0.0) / n)
        drawn += sign * rng.standard_normal(drawn.shape) @ root.T
        drawn += rng.laplace(scale=scale, size=drawn.shape)
    return drawn


def _statistic(differences: Floats, pooled: Floats, size: float) -> Floats:
    solved = np.linalg.solve(pooled, differences.T).T
    result: Floats = size * np.sum(differences * solved, axis=1)
    return result
