"""Test two samples by noisy means and second moments: what a tester does with the releases.

Everything here is post-processing of private releases: no data, no budget. The trusted curator's
test and the comparison of two owners' shares both come down to :class:`PooledMoments`. Raj et
al. (2019), sections 4.1 and 5.3, with the null law of docs/proofs/embedding-tests.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.moments import scatter_draws, smat, spread_steps, svec_size

__all__ = [
    "NULLS",
    "Null",
    "PooledMoments",
    "ReleasedMoments",
    "moment_pvalue",
    "pool_releases",
    "pooled_covariance",
]

Null = Literal["corrected", "asymptotic"]
NULLS: tuple[str, ...] = get_args(Null)

_BATCH = 1 << 20  # matrix entries that are drawn at once


class ReleasedMoments(Protocol):
    """One sample's released mean and second moment, and the scales of their noise."""

    @property
    def n(self) -> int:
        """Public number of rows."""

    @property
    def mean(self) -> NDArray[np.float64]:
        """Noisy mean."""

    @property
    def second(self) -> NDArray[np.float64]:
        """Noisy mean of row · row'."""

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on each entry of ``mean``."""

    @property
    def sigma_second(self) -> float:
        """That on each entry of svec(second)."""


@dataclass(frozen=True, slots=True, eq=False)
class PooledMoments:
    """Noisy moments of two samples, with independent Gaussian noise on each part.

    Attributes
    ----------
    n_x, n_y : int
        Public sizes.
    difference, sigma_difference
        m_x - m_y, and the standard deviation of the noise on each entry.
    centre, sigma_centre
        A mean of both samples, and that of its noise.
    second, sigma_second
        (n_y M_x + n_x M_y)/N, and that of the noise on each entry of its svec.
    share : float
        The means are centre + share · difference and centre - (1 - share) · difference.
    """

    n_x: int
    n_y: int
    difference: NDArray[np.float64]
    centre: NDArray[np.float64]
    second: NDArray[np.float64]
    sigma_difference: float
    sigma_centre: float
    sigma_second: float
    share: float

    @property
    def harmonic(self) -> float:
        """H = n_x n_y/N: the difference of means has covariance Sigma/H."""
        return self.n_x * self.n_y / (self.n_x + self.n_y)

    @property
    def ridge(self) -> float:
        """Gamma = H sigma² + sqrt(2J) sigma_second, known before any data.

        The first part is what the noise adds to H times the difference's covariance. The second
        is how far noise moves the eigenvalues of a symmetric J × J matrix: without it directions
        whose variance is lost in the noise would be divided by next to nothing, and rejected.
        """
        edge = math.sqrt(2 * len(self.difference)) * self.sigma_second
        return self.harmonic * self.sigma_difference**2 + edge

    @property
    def spread_noise(self) -> float:
        """Deviation of the noise on a variance: that of the second moment and of the squares."""
        squares = []
        for part, other in ((self.share, self.n_y), (self.share - 1, self.n_x)):
            mean = self.centre + part * self.difference
            noise = math.hypot(self.sigma_centre, part * self.sigma_difference)
            weight = other / (self.n_x + self.n_y)
            squares.append(2 * weight * float(np.linalg.norm(mean)) * noise)
        return math.hypot(self.sigma_second, *squares)


def pool_releases(x: ReleasedMoments, y: ReleasedMoments) -> PooledMoments:
    """Pool two separate releases (no trusted entity).

    The centre is the mean of both means, weighed by the precision of their noise, which makes its
    noise independent of the difference's.
    """
    total = x.n + y.n
    variance = x.sigma**2 + y.sigma**2
    share = x.sigma**2 / variance
    return PooledMoments(
        n_x=x.n,
        n_y=y.n,
        difference=x.mean - y.mean,
        centre=(1 - share) * x.mean + share * y.mean,
        second=(y.n * x.second + x.n * y.second) / total,
        sigma_difference=math.sqrt(variance),
        sigma_centre=x.sigma * y.sigma / math.sqrt(variance),
        sigma_second=math.hypot(y.n * x.sigma_second, x.n * y.sigma_second) / total,
        share=share,
    )


def pooled_covariance(pooled: PooledMoments) -> NDArray[np.float64]:
    """Covariance within the samples, as released: it may have negative eigenvalues."""
    return _within(pooled, pooled.second, pooled.centre, pooled.difference)


def moment_pvalue(
    pooled: PooledMoments,
    *,
    null: Null = "corrected",
    n_bootstrap: int = 999,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the statistic and its p-value; post-processing of what was released.

    Parameters
    ----------
    pooled : PooledMoments
        The released moments of both samples.
    null : {"corrected", "asymptotic"}
        "corrected" redraws the statistic with all of its noise. "asymptotic" is chi² without
        a regulariser, the law of the test without noise: it rejects far too often where noise
        matters, and is offered to show that.
    n_bootstrap : int
        Draws of the corrected null.
    rng : Generator
        Public randomness.

    Notes
    -----
    **Privacy** Nothing private is touched.
    """
    if null == "asymptotic":
        from scipy.special import chdtrc  # noqa: PLC0415 -- not needed to import privatest

        size = len(pooled.difference)
        # a ridge that only keeps the inverse finite
        covariance = pooled_covariance(pooled)
        smallest = max(1e-8 * float(np.trace(covariance)) / size, 1e-12)
        statistic = float(_statistics(pooled, pooled.difference, covariance, smallest))
        return statistic, float(chdtrc(size, statistic))
    covariance = _symmetric(pooled_covariance(pooled))
    statistic = float(_statistics(pooled, pooled.difference, covariance, pooled.ridge))
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    noise, smallest = pooled.spread_noise, float(values[0]) + pooled.ridge
    seed = int(rng.integers(2**63))  # the same draws each time: their maximum is not noisy
    larger = max(
        _count_larger(
            pooled,
            vectors * np.sqrt(values + step * noise),
            statistic,
            n_bootstrap,
            np.random.default_rng(seed),
        )
        for step in spread_steps(len(values), noise, smallest)
    )
    return statistic, (1 + larger) / (n_bootstrap + 1)


def _count_larger(
    pooled: PooledMoments,
    root: NDArray[np.float64],
    statistic: float,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> int:
    larger, done = 0, 0
    while done < n_bootstrap:
        count = min(n_bootstrap - done, max(1, _BATCH // len(root) ** 2))
        larger += int(np.count_nonzero(_null_draws(pooled, root, count, rng) >= statistic))
        done += count
    return larger


def _null_draws(
    pooled: PooledMoments, root: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the statistic where both samples have covariance root · root' and the same mean.

    Each part is drawn with its sampling error and its noise, and the covariance is made of them
    as the released one was.
    """
    size = len(pooled.difference)
    sampled = rng.normal(size=(count, size)) @ root.T / math.sqrt(pooled.harmonic)
    difference = rng.normal(scale=pooled.sigma_difference, size=(count, size))
    centre = pooled.centre + rng.normal(scale=pooled.sigma_centre, size=(count, size))
    noise = smat(rng.normal(scale=pooled.sigma_second, size=(count, svec_size(size))))
    # the error of the means is left out here: the covariance is taken around the samples' own
    second = _scatter_within(pooled, root, count, rng)
    second += np.outer(pooled.centre, pooled.centre) + noise
    covariance = _within(pooled, second, centre, difference)
    return _statistics(pooled, difference + sampled, covariance, pooled.ridge)


def _scatter_within(
    pooled: PooledMoments, root: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw (n_y C_x + n_x C_y)/N, the C being the covariances of normal samples."""
    total = pooled.n_x + pooled.n_y
    drawn: NDArray[np.float64] = sum(
        (
            other / (total * n) * scatter_draws(root, n, count, rng)
            for n, other in ((pooled.n_x, pooled.n_y), (pooled.n_y, pooled.n_x))
        ),
        start=np.zeros((count, *root.shape)),
    )
    return drawn


def _within(
    pooled: PooledMoments,
    second: NDArray[np.float64],
    centre: NDArray[np.float64],
    difference: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(n_y (M_x - m_x m_x') + n_x (M_y - m_y m_y'))/N; leading axes are a stack."""
    total = pooled.n_x + pooled.n_y
    mean_x = centre + pooled.share * difference
    mean_y = centre - (1 - pooled.share) * difference
    squares = [mean[..., :, None] * mean[..., None, :] for mean in (mean_x, mean_y)]
    within: NDArray[np.float64] = (
        second - (pooled.n_y * squares[0] + pooled.n_x * squares[1]) / total
    )
    return within


def _statistics(
    pooled: PooledMoments,
    difference: NDArray[np.float64],
    covariance: NDArray[np.float64],
    ridge: float,
) -> NDArray[np.float64]:
    """H w'(Sigma + ridge I)^-1 w by eigenvalues, negative ones cut; leading axes are a stack."""
    values, vectors = np.linalg.eigh(_symmetric(covariance))
    along = np.einsum("...ji,...j->...i", vectors, difference)
    total: NDArray[np.float64] = np.sum(along**2 / (np.maximum(values, 0.0) + ridge), axis=-1)
    return pooled.harmonic * total


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    symmetric: NDArray[np.float64] = (matrix + np.swapaxes(matrix, -1, -2)) / 2
    return symmetric
