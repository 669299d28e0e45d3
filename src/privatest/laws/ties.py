"""Ties make rank statistics vary less: by how much, and a p-value that knows it from noisy counts.

With midranks the law of a rank statistic depends on the ties. Its shape is taken to be that without
ties and its variance that with them, as in SciPy's normal approximation. The number of ties is
known up to noise, so a confidence bound stands in for it. Proofs: docs/proofs/rank-tests.md.
"""

from __future__ import annotations

import math

from privatest.laws.law import Alternative, Law
from privatest.laws.tulap import LatticeTulap

__all__ = [
    "bounded_pvalue",
    "kendall_factor",
    "spearman_factor",
    "sure_ties",
    "tie_miss",
    "tie_reach",
    "tied_pvalue",
    "wilcoxon_factor",
]

_LEAST_REACH = 10.0  # scales of the noise: exp(-10) is below 1e-4
_LOWERED = 2.0  # scales by which ties that are beyond doubt are lowered


def tie_reach(size: float) -> float:
    """Return how many scales of its noise a number of ties must be to be beyond doubt.

    ``size`` is the number of rows times epsilon. As that grows so does the number, and it is a
    smaller share of what the ties may be.
    """
    return max(_LEAST_REACH, 1.2 * math.sqrt(math.sqrt(size)))


def tie_miss(reach: float, numbers: int = 1) -> float:
    """Return at most how often any of so many numbers passes ``reach`` where there are no ties."""
    return numbers * math.exp(-reach)


def sure_ties(noisy: float, scale: float, reach: float) -> float:
    """Return a number of ties that is hardly too large: 0 unless some are beyond doubt."""
    return noisy - _LOWERED * scale if noisy > reach * scale else 0.0


def bounded_pvalue(worst: float, within: float, miss: float) -> float:
    """Return a p-value from one for all values of a nuisance and one for a confidence set.

    Parameters
    ----------
    worst : float
        The largest p-value over all values that the nuisance may have.
    within : float
        The largest over a confidence set.
    miss : float
        How often the set misses the true value, at most.

    Notes
    -----
    Berger and Boos (1994) add ``miss``, so that no p-value is below it. Here the set is used only
    for p-values above the root of ``miss``, and all are raised by that share of themselves.
    """
    least = math.sqrt(miss)
    return min(1.0, min(worst, max(within, least)) / (1 - least))


def wilcoxon_factor(counted: int, cubes: float) -> float:
    """Return the standard deviation of W with ties over that without.

    ``cubes`` is the sum of t³ - t over sets of t equal sizes of differences.
    """
    whole = 2 * counted * (counted + 1) * (2 * counted + 1)
    return math.sqrt(1 - min(max(cubes, 0.0), counted**3 - counted) / whole) if whole else 1.0


def spearman_factor(n: int, cubes: tuple[float, float]) -> float:
    """Return the standard deviation of Spearman's score with ties over that without."""
    whole = n**3 - n
    left = [1 - min(max(each, 0.0), whole) / whole for each in cubes]
    return math.sqrt(left[0] * left[1])


def kendall_factor(n: int, pairs: tuple[float, float], cubes: tuple[float, float]) -> float:
    """Return the standard deviation of Kendall's score with ties over that without.

    ``pairs`` are the numbers of tied pairs of each column, ``cubes`` the sums of t³ - t.
    """
    m, whole = n * (n - 1), n**3 - n
    (px, py), (kx, ky) = (
        tuple(min(max(each, 0.0), top) for each in both)
        for both, top in ((pairs, m / 2), (cubes, float(whole)))
    )
    plain = m * (2 * n + 5) / 18
    tied = plain - (2 * kx + 6 * px + 2 * ky + 6 * py) / 18 + 2 * px * py / m
    if n > 2:
        tied += max(kx - 6 * px, 0.0) * max(ky - 6 * py, 0.0) / (9 * m * (n - 2))
    return math.sqrt(min(max(tied / plain, 0.0), 1.0))


def tied_pvalue(
    law: Law,
    place: float,
    noise: LatticeTulap,
    alternative: Alternative,
    *,
    factor: float,
    miss: float,
) -> float:
    """Return the p-value of a noisy score whose law has the shape of ``law`` and ties.

    Parameters
    ----------
    law : Law
        Without ties.
    place : float
        The p-value is P(score + noise >= place), the score as ``alternative`` has it.
    noise, alternative
        As in :meth:`Law.pvalue`.
    factor : float
        The standard deviation with ties over that without; 1 where there are no ties, but for
        the chance ``miss``.
    miss : float
        See :func:`bounded_pvalue`.
    """
    worst = law.pvalue(place, noise, alternative)
    tied = law.scaled(factor).pvalue(place, noise, alternative) if factor > 0 else 1.0
    # below the centre of a one-sided test a smaller spread makes the p-value larger
    return bounded_pvalue(worst, tied, miss) if place > 0 else max(worst, tied)
