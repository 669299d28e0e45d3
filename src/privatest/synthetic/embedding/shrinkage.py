"""Denoise coefficients by shrinkage, given the scale of the noise and the public points.

Post-processing of noisy coefficients: no private data, no cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Denoised", "Moments", "denoise", "moments", "nested_moments", "signed_weights"]

_NO_DIRECTION = 1e-13  # eigenvalues below this fraction of the largest are rounding errors
_FEWEST = 500  # points of a nested prior
_SCALES = np.logspace(-9, 9, 55)  # of the prior; infinity (no shrinkage) is added


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Mean and eigendecomposed second moment S = L'L/M of the public points' coordinates."""

    mean: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    eigenvectors: NDArray[np.float64]


def moments(coordinates: NDArray[np.float64]) -> Moments:
    """Return the moments of the rows of L."""
    values, vectors = np.linalg.eigh(coordinates.T @ coordinates / len(coordinates))
    return Moments(coordinates.mean(axis=0), np.maximum(values, 0.0), vectors)


@dataclass(frozen=True, slots=True, eq=False)
class Denoised:
    """Coefficients after shrinkage, and how uncertain they are.

    Attributes
    ----------
    values : ndarray
        The estimate, in the coordinates of the subspace.
    sigma : float
        Standard deviation of the noise in each coordinate.
    scale : float
        The chosen scale of the prior; infinity for no shrinkage.
    widest : float
        The largest scale that noise makes indistinguishable from it; used for error bars.
    points : Moments
        Moments of the public points.
    """

    values: NDArray[np.float64]
    sigma: float
    scale: float
    widest: float
    points: Moments

    def draws(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return ``count`` draws around the estimate (columns), with public randomness.

        Their covariance sigma² A is the posterior one of the coefficients under the prior that
        the shrinkage corresponds to; without shrinkage it is that of the noise.
        """
        normal = rng.normal(size=(len(self.values), count))
        kept = _kept(self.points.eigenvalues, self.widest, self.sigma)
        normal *= (self.sigma * np.sqrt(kept))[:, None]
        return self.values[:, None] + self.points.eigenvectors @ normal


def nested_moments(coordinates: NDArray[np.float64]) -> list[Moments]:
    """Return the moments of all public points, then of the first quarter, sixteenth, ...

    Many points span directions that hold more noise than signal. Shrinkage by fewer of them may
    do better, so that more points do not hurt.
    """
    count = len(coordinates)
    found = [moments(coordinates)]
    while count // 4 >= _FEWEST:
        count //= 4
        found.append(moments(coordinates[:count]))
    return found


def denoise(
    noisy: NDArray[np.float64], points: Moments, sigma: float, fewer: Sequence[Moments] = ()
) -> Denoised:
    """Shrink noisy coefficients towards the public points' mean by the best of several rules.

    Parameters
    ----------
    noisy : ndarray
        Coefficients plus Gaussian noise.
    points : Moments
        Moments of the public points' coordinates.
    sigma : float
        Standard deviation of the noise.
    fewer : sequence of Moments
        Moments of some of the points, as further rules (:func:`nested_moments`). Error bars
        use all points.

    Notes
    -----
    The rules are a + A (noisy - a), A = tS (tS + sigma²)^-1, a the points' mean and S = L'L/M
    their second moments: Bayes estimates under independent weights of variance t/M. Stein's
    unbiased estimate of the squared error, |(I - A)(noisy - a)|² + 2 sigma² tr A - F sigma²,
    picks t from a public grid that ends with infinity, which keeps everything.
    """
    scales, risks = _risks(noisy, points, sigma)
    smallest, chosen, best = min(risks), points, scales[risks.index(min(risks))]
    # the estimated risks are off by about sigma² sqrt(2F)
    alike = smallest + sigma**2 * math.sqrt(2 * len(noisy))
    widest = max(scale for scale, risk in zip(scales, risks, strict=True) if risk <= alike)
    for some in fewer:
        scales, risks = _risks(noisy, some, sigma)
        if min(risks) < smallest:
            smallest, chosen, best = min(risks), some, scales[risks.index(min(risks))]
    rotated = chosen.eigenvectors.T @ (noisy - chosen.mean)
    kept = _kept(chosen.eigenvalues, best, sigma)
    shrunk = chosen.mean + chosen.eigenvectors @ (kept * rotated)
    return Denoised(shrunk, sigma, best, widest, points)


def _risks(
    noisy: NDArray[np.float64], points: Moments, sigma: float
) -> tuple[list[float], list[float]]:
    """Return the scales of the prior and the estimated risk of each."""
    values = points.eigenvalues
    rotated = points.eigenvectors.T @ (noisy - points.mean)
    scales = [*(_SCALES * sigma**2 / max(float(values.mean()), 1e-300)).tolist(), math.inf]
    return scales, [_risk(rotated, _kept(values, scale, sigma), sigma) for scale in scales]


def _risk(rotated: NDArray[np.float64], kept: NDArray[np.float64], sigma: float) -> float:
    """Stein's unbiased estimate of the squared error."""
    lost = (1 - kept) * rotated
    return float(lost @ lost) + sigma**2 * (2 * float(kept.sum()) - len(rotated))


def signed_weights(
    coordinates: NDArray[np.float64],
    targets: NDArray[np.float64],
    points: Moments | None = None,
) -> NDArray[np.float64]:
    """Return the weights w nearest to 1/M with L'w = each target (columns).

    If the points cannot reach a target, L'w is the nearest point that they can. ``points`` are
    the moments of ``coordinates``, if known already.
    """
    count, rank = coordinates.shape
    missing = targets - coordinates.mean(axis=0)[:, None]
    if count < rank:  # L L' is smaller than L'L and has the same eigenvalues
        values, vectors = np.linalg.eigh(coordinates @ coordinates.T)
        weights = _pseudo_solve(values, vectors, coordinates @ missing)
    else:
        points = moments(coordinates) if points is None else points
        solved = _pseudo_solve(points.eigenvalues, points.eigenvectors, missing)
        weights = coordinates @ (solved / count)
    weights += 1 / count
    return weights


def _pseudo_solve(
    values: NDArray[np.float64], vectors: NDArray[np.float64], targets: NDArray[np.float64]
) -> NDArray[np.float64]:
    kept = values > _NO_DIRECTION * values[-1]
    rotated = vectors[:, kept].T @ targets
    solved: NDArray[np.float64] = vectors[:, kept] @ (rotated / values[kept][:, None])
    return solved


def _kept(values: NDArray[np.float64], scale: float, sigma: float) -> NDArray[np.float64]:
    if math.isinf(scale):
        return np.ones_like(values)
    kept: NDArray[np.float64] = scale * values / (scale * values + sigma**2)
    return kept
