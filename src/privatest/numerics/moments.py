"""Means and second moments of rows in a ball, and tests of two samples by noisy ones.

One Gaussian mechanism over both (:func:`privatest.mechanisms.moments.release_moments`) costs less
than two with half of the budget each. The test of two samples, with a trusted curator or from two
owners' shares, is post-processing of :class:`PooledMoments` (Raj et al., 2019, sections 4.1 and
5.3). Proofs: docs/proofs/moments.md, docs/proofs/embedding-tests.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.data.encoding import Sample
from privatest.data.summaries import (
    FixedPoint,
    Terms,
    column_sums,
    pieces,
    square_sums,
    sum_rounding,
    summarise,
)

Floats = NDArray[np.float64]
Null = Literal["corrected", "asymptotic"]
NULLS: tuple[str, ...] = get_args(Null)
_BATCH = 1 << 20  # matrix entries that are drawn at once


# --- moments and how far they move ---


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Moments:
    """Number of rows, their mean and the mean of row · row'; private."""

    n: int
    mean: Floats
    second: Floats


class MomentSums:
    """Sums of psi and of psi · psi' over rows: what one pass keeps.

    Parameters
    ----------
    psi : function
        Rows to rows × dimension, each row by itself; it travels to other processes.
    dimension : int
        Number of features.
    n : int
        Number of rows of the whole sample.
    radius : float
        No psi is longer than this.
    """

    __slots__ = ("psi", "second", "total")

    def __init__(self, psi: Terms, dimension: int, n: int, radius: float) -> None:
        self.psi = psi
        self.total = FixedPoint((dimension,), n * radius)
        self.second = FixedPoint((dimension, dimension), n * radius**2)

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        del start
        total, second = np.zeros(self.total.units.shape), np.zeros(self.second.units.shape)
        for piece in pieces(rows):
            features = self.psi(piece)
            total += column_sums(features)
            second += square_sums(features)
        self.total.add(total)
        self.second.add(second)

    def merge(self, other: MomentSums) -> None:
        """Add other blocks."""
        self.total.merge(other.total)
        self.second.merge(other.second)


def moments(*samples: Sample, psi: Terms, dimension: int, radius: float) -> list[Moments]:
    """Return the moments of each sample, all in one pass.

    Parameters
    ----------
    *samples : Sample
        In memory or not.
    psi, dimension, radius
        The map of a row, its length and the largest norm, as in :class:`MomentSums`.
    """
    found = summarise(
        *((sample, partial(MomentSums, psi, dimension, len(sample), radius)) for sample in samples)
    )
    return [
        Moments(len(sample), sums.total.value / scale, sums.second.value / scale)
        for sample, sums in zip(samples, found, strict=True)
        for scale in (max(len(sample), 1),)
    ]


def moments_rounding(
    n: int, radius: float, dimension: int, feature_error: float = 0.0
) -> tuple[float, float]:
    """Bound the rounding errors, in l2, of the mean and of the second moment.

    ``feature_error`` is the l2 error of one row. The terms of a row have l2 norm ``radius``, or
    its square; every entry of a sum is rounded to fixed point by itself.
    """
    if n == 0:
        return 0.0, 0.0
    relative, fixed = sum_rounding(n, radius)
    _, fixed_second = sum_rounding(n, radius**2)
    mean = feature_error + relative * (radius + feature_error) + math.sqrt(dimension) * fixed / n
    second = (
        2.01 * radius * feature_error
        + feature_error**2
        + relative * (radius + feature_error) ** 2
        + dimension * fixed_second / n
    )
    return mean, second


def joint_sensitivity(
    alpha: float, beta: float, *, radius: float, spread: float | None = None
) -> float:
    """Largest l2 movement of (alpha · psi, beta · svec(psi psi')) when one row psi is replaced.

    Parameters
    ----------
    alpha, beta : float
        Weights of the row and of its square; beta > 0.
    radius : float
        Every row has norm at most this.
    spread : float, optional
        Any two rows are at most this far apart; 2 · radius by default.

    Notes
    -----
    **Sensitivity** With P = radius² and d the distance of the two rows the movement squared is
    at most alpha² d² + beta² max(2 P d² - d⁴/2, d² (2 radius - d)²), and the second form is the
    larger only for d < 2 radius/3 (docs/proofs/moments.md). Without ``spread`` this is
    4 alpha² P if alpha² >= 2 beta² P, else 2 alpha² P + 2 beta² P² + alpha⁴/(2 beta²).

    Examples
    --------
    >>> joint_sensitivity(1.0, 1e-9, radius=1.0)
    2.0
    >>> round(joint_sensitivity(1.0, 1.0, radius=1.0), 12) == round(4.5**0.5, 12)
    True
    """
    power = radius**2
    reach = 2 * radius if spread is None else min(spread, 2 * radius)
    a, b = alpha**2, beta**2
    if reach < 2 * radius / 3:
        squared = a * reach**2 + b * (reach * (2 * radius - reach)) ** 2
    else:
        distance = min(reach**2, 2 * power + a / b)  # where a d² + b (2 P d² - d⁴/2) is largest
        squared = a * distance + b * (2 * power * distance - distance**2 / 2)
    return math.sqrt(squared)


def svec_size(dimension: int) -> int:
    """Entries of a symmetric matrix on and above its diagonal."""
    return dimension * (dimension + 1) // 2


def svec(matrix: Floats) -> Floats:
    """Stack a symmetric matrix so that its Frobenius norm becomes the l2 norm.

    Off-diagonal entries occur once, times sqrt(2). Leading axes are kept.
    """
    rows, columns, weights = _positions(matrix.shape[-1])
    stacked: Floats = matrix[..., rows, columns] * weights
    return stacked


def smat(vector: Floats) -> Floats:
    """Undo :func:`svec`."""
    dimension = (math.isqrt(8 * vector.shape[-1] + 1) - 1) // 2
    rows, columns, weights = _positions(dimension)
    matrix = np.empty((*vector.shape[:-1], dimension, dimension))
    matrix[..., rows, columns] = matrix[..., columns, rows] = vector / weights
    return matrix


@lru_cache(maxsize=4)
def _positions(dimension: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return the entries of a symmetric matrix that are stacked, and their weights."""
    rows, columns = np.triu_indices(dimension)
    positions = rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))
    for each in positions:
        each.flags.writeable = False
    return positions


# --- tests by released moments ---


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
    mean: Floats
    second: Floats
    sigma: float
    sigma_second: float


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
    difference: Floats
    centre: Floats
    second: Floats
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


def pool_releases(x: NoisyMoments, y: NoisyMoments) -> PooledMoments:
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


def pooled_covariance(pooled: PooledMoments) -> Floats:
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
    batch, most = max(1, _BATCH // len(values) ** 2), 0
    for step in spread_steps(len(values), noise, smallest):
        root, generator = vectors * np.sqrt(values + step * noise), np.random.default_rng(seed)
        larger = 0
        for start in range(0, n_bootstrap, batch):
            draws = _null_draws(pooled, root, min(batch, n_bootstrap - start), generator)
            larger += int(np.count_nonzero(draws >= statistic))
        most = max(most, larger)
    return statistic, (1 + most) / (n_bootstrap + 1)


def _null_draws(
    pooled: PooledMoments, root: Floats, count: int, rng: np.random.Generator
) -> Floats:
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
    pooled: PooledMoments, root: Floats, count: int, rng: np.random.Generator
) -> Floats:
    """Draw (n_y C_x + n_x C_y)/N, the C being the covariances of normal samples."""
    total = pooled.n_x + pooled.n_y
    drawn: Floats = sum(
        (
            other / (total * n) * scatter_draws(root, n, count, rng)
            for n, other in ((pooled.n_x, pooled.n_y), (pooled.n_y, pooled.n_x))
        ),
        start=np.zeros((count, *root.shape)),
    )
    return drawn


def scatter_draws(root: Floats, n: int, count: int, rng: np.random.Generator) -> Floats:
    """Draw Σ (x - x̄)(x - x̄)' of n normal rows with covariance root · root' (Wishart's law)."""
    dimension = len(root)
    if n - 1 <= dimension:
        factor = root @ rng.standard_normal((count, dimension, n - 1))
    else:  # Bartlett: a triangle of normals, with chi on its diagonal
        steps = np.arange(dimension)
        normals = rng.standard_normal((count, dimension, dimension))
        triangle = np.where(steps[:, None] > steps, normals, 0.0)
        freedom = n - 1 - steps
        triangle[:, steps, steps] = np.sqrt(rng.chisquare(freedom, size=(count, dimension)))
        factor = root @ triangle
    result: Floats = factor @ np.swapaxes(factor, 1, 2)
    return result


def spread_steps(dimension: int, noise: float, smallest: float) -> tuple[float, ...]:
    """By how many deviations of its noise a released covariance may be too small as a whole.

    A null law that is redrawn from a covariance that is too small is too narrow, and the noise on
    a mean moves both the statistic and the covariance. So the law is redrawn with a larger one
    too, and the larger p-value counts. ``smallest`` is the smallest variance that the statistic
    divides by: where noise is far below it one law is enough.

    In many dimensions the errors of the eigenvalues cancel, and cutting negative ones makes
    them too large on average: from ten on nothing is left to add. Measured, not proved:
    benchmarks/level/moments.py.
    """
    most = 2 / dimension - 0.2
    return (0.0, most / 2, most) if most > 0 and noise > 0.01 * smallest else (0.0,)


def _within(
    pooled: PooledMoments,
    second: Floats,
    centre: Floats,
    difference: Floats,
) -> Floats:
    """(n_y (M_x - m_x m_x') + n_x (M_y - m_y m_y'))/N; leading axes are a stack."""
    total = pooled.n_x + pooled.n_y
    mean_x = centre + pooled.share * difference
    mean_y = centre - (1 - pooled.share) * difference
    squares = [mean[..., :, None] * mean[..., None, :] for mean in (mean_x, mean_y)]
    within: Floats = second - (pooled.n_y * squares[0] + pooled.n_x * squares[1]) / total
    return within


def _statistics(
    pooled: PooledMoments,
    difference: Floats,
    covariance: Floats,
    ridge: float,
) -> Floats:
    """H w'(Sigma + ridge I)^-1 w by eigenvalues, negative ones cut; leading axes are a stack."""
    values, vectors = np.linalg.eigh(_symmetric(covariance))
    along = np.einsum("...ji,...j->...i", vectors, difference)
    total: Floats = np.sum(along**2 / (np.maximum(values, 0.0) + ridge), axis=-1)
    return pooled.harmonic * total


def _symmetric(matrix: Floats) -> Floats:
    symmetric: Floats = (matrix + np.swapaxes(matrix, -1, -2)) / 2
    return symmetric
