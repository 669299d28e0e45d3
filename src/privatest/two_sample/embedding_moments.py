"""Release of the difference of two mean embeddings with what its null law needs (TCMC).

Raj et al. (2019), section 4.1, with one joint Gaussian mechanism in place of two halves of the
budget, and samples of any sizes. Proof: docs/proofs/moments.md.
"""

from __future__ import annotations

import math

import numpy as np

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Budget, Sensitivity
from privatest.mechanisms.additive import gaussian, gaussian_noise_scale
from privatest.statistics.moment_test import PooledMoments
from privatest.statistics.moments import (
    Moments,
    joint_sensitivity,
    moments_rounding,
    smat,
    svec,
)

__all__ = ["CENTRE", "difference_sensitivity", "release_difference"]

CENTRE = 2.0  # noise on the pooled mean, in units of that on the difference


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
        alpha = math.hypot(1 / own, 1 / (CENTRE * total))
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
    mean, second = moments_rounding(max(x.n, y.n), radius, feature_error)
    error = math.hypot(2 * mean, mean / CENTRE, second / ratio) + 1e-15 * radius
    bound = Sensitivity((rows_per_person * moved + 2 * error) * (1 + 1e-12), "l2", adjacency)
    centre = (x.n * x.mean + y.n * y.mean) / total
    pooled = (y.n * x.second + x.n * y.second) / total
    values = np.concatenate([x.mean - y.mean, centre / CENTRE, svec(pooled) / ratio])
    sigma = gaussian_noise_scale(values.size, bound, budget)
    noisy = gaussian(values, sensitivity=bound, budget=budget, noise=noise)
    size = len(centre)
    return PooledMoments(
        n_x=x.n,
        n_y=y.n,
        difference=noisy[:size],
        centre=CENTRE * noisy[size : 2 * size],
        second=smat(ratio * noisy[2 * size :]),
        sigma_difference=sigma,
        sigma_centre=CENTRE * sigma,
        sigma_second=ratio * sigma,
        share=y.n / total,
    )
