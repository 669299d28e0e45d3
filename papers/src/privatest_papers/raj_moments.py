"""Raj et al. (2019): noisy means and covariances (TCMC) and without a trusted party (NTE).

A REFERENCE FOR COMPARISON, NOT FOR USE: constants are those of the authors' code (kappa = 1), for
which the guarantee is not proved, and noise must be simulated. Private tests are
:func:`privatest.me_test`, :func:`privatest.scf_test` and :func:`privatest.compare`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest_papers import simulated
from privatest_papers.raj import noise_ratio

__all__ = ["embedded", "paper_nte_pvalues", "paper_tcmc_pvalues", "smooth_waves"]

Floats = NDArray[np.float64]
_LEAST = 1e-4  # that eigenvalues are lifted to
_DRAWS = 2000  # of weighted chi-squares


def embedded(rows: Floats, locations: Floats, variance: float) -> Floats:
    """Return k(x, t_j) for all rows: the features of ME."""
    squares = np.square(rows).sum(axis=1)[:, None] + np.square(locations).sum(axis=1)
    distances = np.maximum(squares - 2 * rows @ locations.T, 0.0)
    result: Floats = np.exp(-distances / (2 * variance))
    return result


def smooth_waves(rows: Floats, frequencies: Floats, width: float) -> Floats:
    """Return smoothed sines and cosines: the features of SCF."""
    scaled = rows / width
    smooth = np.exp(-np.square(scaled).sum(axis=1) / 2)[:, None]
    angles = scaled @ frequencies.T
    return np.hstack([np.sin(angles) * smooth, np.cos(angles) * smooth])


def paper_tcmc_pvalues(
    x: Floats,
    y: Floats,
    *,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    noise: NoiseSource | None,
) -> tuple[float, float]:
    """Return p-values of TCMC on paired features: by weighted chi-squares, and asymptotic.

    Notes
    -----
    **Sensitivity** sqrt(J)/n of the mean and J/(n - 1) of the second moment, as in the code.

    **Privacy** None here; half of epsilon and delta for each.
    """
    differences = x - y
    n, width = differences.shape
    mean, covariance, sigma = _release(differences, epsilon, delta, noise)
    statistic = float(n * mean @ np.linalg.solve(covariance, mean))
    weights = np.linalg.eigvals(
        np.linalg.solve(covariance, covariance + n * sigma**2 * np.eye(width))
    ).real
    return _pvalues(statistic, weights, rng)


def paper_nte_pvalues(
    x: Floats,
    y: Floats,
    *,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    noise: NoiseSource | None,
) -> tuple[float, float]:
    """Return p-values of NTE, where each owner publishes noisy moments of its own features.

    Notes
    -----
    **Sensitivity** As in :func:`paper_tcmc_pvalues`, for each owner.

    **Privacy** None here.
    """
    n, m = len(x), len(y)
    released = [_release(rows, epsilon, delta, noise) for rows in (x, y)]
    (first, one, sigma), (second, two, tau) = released
    pooled = ((n - 1) * one + (m - 1) * two) / (n + m - 2)
    size, gap = n * m / (n + m), first - second
    statistic = float(size * gap @ np.linalg.solve(pooled, gap))
    spread = one / n + two / m + (sigma**2 + tau**2) * np.eye(len(gap))
    weights = size * np.linalg.eigvals(np.linalg.solve(pooled, spread)).real
    return _pvalues(statistic, weights, rng)


def _release(
    rows: Floats, epsilon: float, delta: float, noise: NoiseSource | None
) -> tuple[Floats, Floats, float]:
    """Return a noisy mean, a noisy covariance and the noise of the mean."""
    source = simulated(noise, "me_test, scf_test or compare")
    n, width = rows.shape
    ratio = noise_ratio(Budget(epsilon / 2, delta / 2), analytic=True)
    sigma = ratio * math.sqrt(width) / n
    mean = source.gaussian(rows.mean(axis=0), sigma, -1000)
    added = source.gaussian(np.zeros((width, width)), ratio * width / (n - 1), -1000)
    upper = np.triu(added)
    second = _lifted(rows.T @ rows / n + upper + np.triu(upper, 1).T)
    return mean, _lifted(second - np.outer(mean, mean)), sigma


def _lifted(matrix: Floats) -> Floats:
    """Lift eigenvalues that are not positive, as the authors do."""
    values, vectors = np.linalg.eigh(matrix)
    if (values > 0).all():
        return matrix
    positive = values[values > 0]
    least = min(_LEAST, float(positive.min())) if positive.size else _LEAST
    result: Floats = (vectors * np.where(values > 0, values, least)) @ vectors.T
    return result


def _pvalues(statistic: float, weights: Floats, rng: np.random.Generator) -> tuple[float, float]:
    from scipy.special import chdtrc  # noqa: PLC0415

    drawn = rng.chisquare(1, size=(_DRAWS, len(weights))) @ np.maximum(weights, 0.0)
    return float(np.mean(drawn > statistic)), float(chdtrc(len(weights), statistic))
