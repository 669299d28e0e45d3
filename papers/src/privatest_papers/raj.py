"""Raj et al. (2019): the perturbed statistic (TCS) as published. It is NOT private.

A REFERENCE FOR COMPARISON, NOT FOR USE. Theorem 1 bounds the sensitivity of
s = n w'(Sigma + gamma I)^-1 w with |w|² <= kappa² J/n² in step (12); in fact |w|² <= kappa² J,
and the sensitivity does not shrink with n. Noise must be simulated. Private tests are
:func:`privatest.me_test` and :func:`privatest.me_permutation_test`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Amount, Budget, gaussian_scale
from privatest.core.validation import Rng, integer_at_least, number, public_generator
from privatest_papers import finite_rows, simulated

__all__ = [
    "noise_ratio",
    "paper_sensitivity",
    "paper_statistic",
    "paper_tcs_decision",
]


def paper_statistic(
    x: ArrayLike, y: ArrayLike, locations: ArrayLike, *, variance: float, gamma: float = 1e-3
) -> float:
    """Return s = n w'(Sigma + gamma I)^-1 w of paired features; not private.

    Parameters
    ----------
    x, y : array
        Samples of one size, taken as pairs.
    locations : array
        Public locations.
    variance : float
        sigma² of k = exp(-|x - t|²/(2 sigma²)).
    gamma : float
        The regulariser.
    """
    rows_x, rows_y = finite_rows("x", x), finite_rows("y", y)
    points = finite_rows("locations", locations, 1)
    if len(rows_x) != len(rows_y) or len(rows_x) < 2:
        raise DataError("x and y must have the same number of rows, at least 2.")
    variance = number("variance", variance, above=0)
    differences = _kernel(rows_x, points, variance) - _kernel(rows_y, points, variance)
    mean = differences.mean(axis=0)
    centred = differences - mean
    covariance = centred.T @ centred / (len(centred) - 1)
    regular = covariance + number("gamma", gamma, above=0) * np.eye(len(points))
    return float(len(centred) * mean @ np.linalg.solve(regular, mean))


def paper_sensitivity(
    n: int, n_locations: int, *, gamma: float = 1e-3, kappa: float = 2.0
) -> float:
    """Sensitivity of the statistic in the paper: WRONG, far too small.

    Parameters
    ----------
    n, n_locations : int
        Pairs, and locations J.
    gamma : float
        The regulariser.
    kappa : float
        2 by the paper's assumption k <= kappa/2; the code of its experiments has 1.

    Notes
    -----
    **Sensitivity** 4 kappa² J^1.5/(n gamma) (1 + kappa² J/(n - 1)) (theorem 1). The
    tests of this module hold pairs of neighbours that move the statistic by up to 31,188 times
    as much.

    Examples
    --------
    >>> round(paper_sensitivity(10, 1), 1)
    2311.1
    """
    squared = kappa**2
    lead = 4 * squared * math.sqrt(n_locations) * n_locations / (n * gamma)
    return lead * (1 + squared * n_locations / (n - 1))


def paper_tcs_decision(
    x: ArrayLike,
    y: ArrayLike,
    locations: ArrayLike,
    *,
    variance: float,
    gamma: float = 1e-3,
    kappa: float = 2.0,
    analytic: bool = False,
    epsilon: Amount,
    delta: Amount,
    alpha: float = 0.05,
    n_draws: int = 2000,
    rng: Rng = None,
    noise: NoiseSource | None,
) -> bool:
    """Decide by the published TCS. NOT private: it takes simulated noise only.

    Parameters
    ----------
    x, y, locations, variance, gamma
        As in :func:`paper_statistic`.
    kappa : float
        As in :func:`paper_sensitivity`.
    analytic : bool
        Whether noise is that of the analytic Gaussian mechanism, as in the code of the paper's
        experiments, or of the classical one, as printed.
    epsilon, delta : float, int, str or Decimal
        The budget that the paper claims.
    alpha : float
        Level of the decision.
    n_draws : int
        Draws of the null law chi²_J + noise.
    rng : None, int or Generator
        Public randomness for the null law.
    noise : SimulatedNoise
        Anything else is refused.

    Notes
    -----
    **Sensitivity** :func:`paper_sensitivity`, which is wrong.

    **Privacy** None.
    """
    source = simulated(noise, "me_test")
    alpha = number("alpha", alpha, above=0, below=1)
    draws = integer_at_least("n_draws", n_draws, 1)
    generator = public_generator(rng)
    statistic = paper_statistic(x, y, locations, variance=variance, gamma=gamma)
    size = len(finite_rows("locations", locations, 1))
    step = paper_sensitivity(len(finite_rows("x", x)), size, gamma=gamma, kappa=kappa)
    scale = step * noise_ratio(Budget(epsilon, delta), analytic=analytic)
    noisy = float(source.gaussian(np.array([statistic]), scale, -1000)[0])
    null = generator.chisquare(size, size=draws) + generator.normal(scale=scale, size=draws)
    return (1 + int(np.count_nonzero(null >= noisy))) / (draws + 1) <= alpha


def noise_ratio(budget: Budget, *, analytic: bool) -> float:
    """Return the noise of the Gaussian mechanism over the sensitivity.

    The classical ratio, sqrt(2 log(1.25/delta))/epsilon, is used for every epsilon in the paper.
    """
    if analytic:
        return gaussian_scale(1.0, budget)
    epsilon, delta = budget.as_floats
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _kernel(
    rows: NDArray[np.float64], points: NDArray[np.float64], variance: float
) -> NDArray[np.float64]:
    squares = np.square(rows[:, None, :] - points[None, :, :]).sum(axis=2)
    values: NDArray[np.float64] = np.exp(-squares / (2 * variance))
    return values
