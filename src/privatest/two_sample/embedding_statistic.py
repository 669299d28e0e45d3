"""Release of one straightened correlation with Laplace noise, and its null law (TCS, corrected)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.correlation import Scale, straightened

__all__ = ["statistic_pvalue", "variance_bound"]

_GRID = 4096
_BAKIROV = 1.5365  # above it no weights of sum 1 have a larger tail than a single chi²


def variance_bound(radius: float, spread: float) -> float:
    """Largest total variance of feature vectors in a ball: E|psi - psi'|²/2 and E|psi|²."""
    return min(radius**2, spread**2 / 2)


def statistic_pvalue(
    noisy: float, *, size: int, dimension: int, variance: float, scale: Scale, noise_scale: float
) -> float:
    """Probability that S with its noise is as large under the null hypothesis; public.

    ``size`` is the number of labelled rows. The law of S is taken from above on a grid, so the
    p-value is never too small but for the normal approximation of a mean.
    """
    masses, values = _null_law(size, dimension, variance, scale)
    distance = (noisy - values) / noise_scale
    small = 0.5 * np.exp(-np.abs(distance))
    above = np.where(distance > 0, small, 1 - small)
    return min(1.0, float(masses @ above))


@lru_cache(maxsize=16)
def _null_law(
    size: int, dimension: int, variance: float, scale: Scale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return masses and values of a discrete law that is nowhere below that of S."""
    tail = _correlation_tail(dimension, variance, scale.ridge)
    grid = np.linspace(0.0, 1.0, _GRID + 1) ** 2  # finer near 0, where the law has its mass
    survival = tail(size * grid**2)
    masses = survival - np.append(survival[1:], 0.0)
    return masses, straightened(np.append(grid[1:], 1.0), scale)  # each mass at its right end


def _correlation_tail(
    dimension: int, variance: float, ridge: float
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Upper bound on P(N r² >= q), whatever the covariance of the features.

    N r² tends to sum t_i z_i², t_i = l_i/(l_i + ridge) with l_i the eigenvalues of the features'
    covariance, at most ``variance`` together. So t_i <= v/(v + ridge) gives a scaled chi²_J, and
    sum t_i <= J v/(v + J ridge) gives, above 1.5365 times it, a scaled chi²_1 (Bakirov 1987).
    """
    from scipy.special import chdtrc  # noqa: PLC0415 -- not needed to import privatest

    largest = variance / (variance + ridge)
    total = dimension * variance / (variance + dimension * ridge)

    def tail(q: NDArray[np.float64]) -> NDArray[np.float64]:
        every: NDArray[np.float64] = chdtrc(dimension, q / largest)
        single = np.where(q >= _BAKIROV * total, chdtrc(1, q / total), 1.0)
        return np.minimum(every, single)

    return tail
