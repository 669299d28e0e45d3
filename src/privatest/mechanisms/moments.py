"""Means and second moments of one sample or two in one joint Gaussian release.

Proof: docs/proofs/moments.md. Shares, the embedding tests and Hotelling's test build on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Budget, Sensitivity
from privatest.mechanisms.additive import gaussian, gaussian_noise_scale
from privatest.numerics.moments import (
    Moments,
    PooledMoments,
    joint_sensitivity,
    moments_rounding,
    smat,
    svec,
    svec_size,
)

_CENTRE = 2.0  # noise on the pooled mean, in units of that on the difference


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMoments:
    """A released mean and second moment, with the known scales of their noise.

    Attributes
    ----------
    n : int
        Public number of rows.
    mean, second : ndarray
        Noisy mean, and noisy mean of row · row'; ``second`` may have negative eigenvalues.
    sigma : float
        Standard deviation of the noise on each entry of ``mean``.
    sigma_second : float
        That on each entry of svec(second): a diagonal entry has it, others have it / sqrt(2).
    """

    n: int
    mean: NDArray[np.float64]
    second: NDArray[np.float64]
    sigma: float
    sigma_second: float


def moment_scale(
    n: int,
    dimension: int,
    *,
    radius: float,
    budget: Budget,
    spread: float | None = None,
    balance: float | None = None,
    rows_per_person: int = 1,
    feature_error: float = 0.0,
) -> tuple[float, float]:
    """Return (sigma, sigma_second) of :func:`release_moments`: public, known before any data."""
    ratio = radius if balance is None else balance
    rounding = moments_rounding(n, radius, dimension, feature_error)
    sensitivity = _sensitivity(n, ratio, radius, spread, rows_per_person, rounding)
    sigma = gaussian_noise_scale(dimension + svec_size(dimension), sensitivity, budget)
    return sigma, ratio * sigma


def release_moments(
    sample: Moments,
    *,
    radius: float,
    budget: Budget,
    noise: NoiseSource,
    spread: float | None = None,
    balance: float | None = None,
    rows_per_person: int = 1,
    feature_error: float = 0.0,
) -> NoisyMoments:
    """Release mean and second moment of rows of norm at most ``radius``.

    Parameters
    ----------
    sample : Moments
        From :func:`privatest.numerics.moments.moments`.
    radius, spread : float
        No row is longer than ``radius``; no two are further apart than ``spread``.
    budget : Budget
        Needs delta > 0.
    noise : NoiseSource
        The secret randomness.
    balance : float, optional
        sigma_second / sigma, a public choice; ``radius`` by default.
    rows_per_person : int
        Rows that a person may have.
    feature_error : float
        Bound on the l2 rounding error of one row.

    Notes
    -----
    **Sensitivity** :func:`joint_sensitivity` with alpha = 1/n and beta = 1/(n · balance), times
    ``rows_per_person``, plus rounding.

    **Privacy** Both together are (epsilon, delta)-private by one analytic Gaussian mechanism.
    """
    ratio = radius if balance is None else balance
    rounding = moments_rounding(sample.n, radius, len(sample.mean), feature_error)
    sensitivity = _sensitivity(sample.n, ratio, radius, spread, rows_per_person, rounding)
    values = np.concatenate([sample.mean, svec(sample.second) / ratio])
    sigma = gaussian_noise_scale(values.size, sensitivity, budget)
    noisy = gaussian(values, sensitivity=sensitivity, budget=budget, noise=noise)
    dimension = len(sample.mean)
    second = smat(noisy[dimension:] * ratio)
    return NoisyMoments(sample.n, noisy[:dimension], second, sigma, ratio * sigma)


def _sensitivity(
    n: int,
    ratio: float,
    radius: float,
    spread: float | None,
    rows_per_person: int,
    errors: tuple[float, float],
) -> Sensitivity:
    moved = joint_sensitivity(1 / n, 1 / (n * ratio), radius=radius, spread=spread)
    slack = 2 * math.hypot(errors[0], errors[1] / ratio)  # of each neighbour
    # the slack too for each row: a person's rows may lie in several samples, each with its own
    return Sensitivity(rows_per_person * (moved + slack) * (1 + 1e-12), "l2")


def difference_sensitivity(
    n: int,
    m: int,
    *,
    radius: float,
    spread: float | None = None,
    balance: float | None = None,
    adjacency: Adjacency = "one",
) -> float:
    """How far (w, g/2, svec(C)/balance) moves in l2.

    w = m_x - m_y, g the pooled mean, C = (m M_x + n M_y)/N; ``balance`` is ``radius`` by default.

    Notes
    -----
    **Sensitivity** A row of the sample of size n1 (the other n2) enters w with weight 1/n1, g/2
    with 1/(2N) and C with n2/(N n1): :func:`joint_sensitivity` of alpha² = 1/n1² + 1/(2N)² and
    beta = n2/(N n1 balance); the larger of the two samples', or for "both" their sum. Proof:
    docs/proofs/moments.md.

    Examples
    --------
    >>> from privatest.core.privacy import gaussian_scale
    >>> bound = difference_sensitivity(1000, 1000, radius=1.0)
    >>> round(gaussian_scale(bound, Budget(1, "1e-5")), 8)
    0.00769089
    """
    ratio = radius if balance is None else balance
    total = n + m
    moved = []
    for own, other in ((n, m), (m, n)):
        alpha = math.hypot(1 / own, 1 / (_CENTRE * total))
        beta = other / (total * own * ratio)
        moved.append(joint_sensitivity(alpha, beta, radius=radius, spread=spread))
    return sum(moved) if adjacency == "both" else max(moved)


def release_difference(
    x: Moments,
    y: Moments,
    *,
    radius: float,
    spread: float | None,
    budget: Budget,
    noise: NoiseSource,
    adjacency: Adjacency = "one",
    balance: float | None = None,
    rows_per_person: int = 1,
    feature_error: float = 0.0,
) -> PooledMoments:
    """Release difference and mean of the samples' means, and their second moment, together.

    Parameters
    ----------
    x, y : Moments
        Of rows of norm at most ``radius`` and at most ``spread`` apart.
    budget : Budget
        Needs delta > 0.
    noise : NoiseSource
        The secret randomness.
    adjacency : {"one", "both"}
        What is hidden.
    balance : float, optional
        sigma_second / sigma_difference, a public choice; ``radius`` by default.
    rows_per_person : int
        Rows that a person may have.
    feature_error : float
        Bound on the l2 rounding error of one row.

    Notes
    -----
    **Sensitivity** :func:`difference_sensitivity` times ``rows_per_person``, plus rounding.

    **Privacy** All of it together is (epsilon, delta)-private by one analytic Gaussian mechanism.
    """
    ratio = radius if balance is None else balance
    total = x.n + y.n
    moved = difference_sensitivity(
        x.n, y.n, radius=radius, spread=spread, balance=ratio, adjacency=adjacency
    )
    errors = [moments_rounding(each.n, radius, len(x.mean), feature_error) for each in (x, y)]
    mean, second = map(max, zip(*errors, strict=True))
    error = math.hypot(2 * mean, mean / _CENTRE, second / ratio) + 1e-15 * radius
    bound = Sensitivity((rows_per_person * moved + 2 * error) * (1 + 1e-12), "l2", adjacency)
    centre = (x.n * x.mean + y.n * y.mean) / total
    pooled = (y.n * x.second + x.n * y.second) / total
    values = np.concatenate([x.mean - y.mean, centre / _CENTRE, svec(pooled) / ratio])
    sigma = gaussian_noise_scale(values.size, bound, budget)
    noisy = gaussian(values, sensitivity=bound, budget=budget, noise=noise)
    size = len(centre)
    return PooledMoments(
        n_x=x.n,
        n_y=y.n,
        difference=noisy[:size],
        centre=_CENTRE * noisy[size : 2 * size],
        second=smat(ratio * noisy[2 * size :]),
        sigma_difference=sigma,
        sigma_centre=_CENTRE * sigma,
        sigma_second=ratio * sigma,
        share=y.n / total,
    )


def svec_noise(
    dimension: int, sigma: float, rng: np.random.Generator, count: int
) -> NDArray[np.float64]:
    """Draw symmetric matrices like the noise on ``second``: for null laws, not for privacy."""
    return smat(rng.normal(scale=sigma, size=(count, svec_size(dimension))))


def nearest_psd(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut negative eigenvalues; leading axes are a stack of matrices."""
    if matrix.shape[-1] == 1:  # the number itself is the eigenvalue
        return np.maximum(matrix, 0.0)
    values, vectors = np.linalg.eigh((matrix + np.swapaxes(matrix, -1, -2)) / 2)
    cut = np.maximum(values, 0.0)
    result: NDArray[np.float64] = (vectors * cut[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return result
