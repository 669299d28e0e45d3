"""Mean and second moment of one sample in one joint Gaussian release, and the repair of matrices.

Proof: docs/proofs/moments.md. Shares, the embedding tests and Hotelling's test build on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, Sensitivity
from privatest.mechanisms.additive import gaussian, gaussian_noise_scale
from privatest.statistics.moments import (
    Moments,
    joint_sensitivity,
    moments_rounding,
    smat,
    svec,
    svec_size,
)

__all__ = ["NoisyMoments", "moment_scale", "nearest_psd", "release_moments", "svec_noise"]


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
    sensitivity = _sensitivity(n, ratio, radius, spread, rows_per_person, feature_error)
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
        From :func:`privatest.statistics.moments.moments`.
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
    sensitivity = _sensitivity(sample.n, ratio, radius, spread, rows_per_person, feature_error)
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
    feature_error: float,
) -> Sensitivity:
    moved = joint_sensitivity(1 / n, 1 / (n * ratio), radius=radius, spread=spread)
    errors = moments_rounding(n, radius, feature_error)
    slack = 2 * math.hypot(errors[0], errors[1] / ratio)  # of each neighbour
    return Sensitivity((rows_per_person * moved + slack) * (1 + 1e-12), "l2")


def svec_noise(
    dimension: int, sigma: float, rng: np.random.Generator, count: int
) -> NDArray[np.float64]:
    """Draw symmetric matrices like the noise on ``second``: for null laws, not for privacy."""
    return smat(rng.normal(scale=sigma, size=(count, svec_size(dimension))))


def nearest_psd(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut negative eigenvalues; leading axes are a stack of matrices."""
    values, vectors = np.linalg.eigh((matrix + np.swapaxes(matrix, -1, -2)) / 2)
    cut = np.maximum(values, 0.0)
    result: NDArray[np.float64] = (vectors * cut[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return result
