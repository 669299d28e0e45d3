"""Do two columns rise together? Kendall's tau and Spearman's rho."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Amount
from privatest.core.results import Outcome
from privatest.data.bounds import Bounds
from privatest.data.samples import TwoSamples
from privatest.independence.asked import Asked, numeric_pairs
from privatest.independence.rank_intervals import Coefficient, RankInterval
from privatest.laws.law import Alternative, Law
from privatest.laws.rank_correlation import kendall_law, spearman_law
from privatest.mechanisms.lattice import lattice_outcome, noise_law
from privatest.statistics.rank_correlation import (
    kendall_score,
    kendall_width,
    spearman_score,
    spearman_width,
)

__all__ = ["kendalltau", "spearmanr"]


@declare_level("valid")
def kendalltau(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    bounds_x: Bounds = None,
    bounds_y: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two columns are independent, by Kendall's tau; and estimate tau.

    Parameters
    ----------
    x, y : array, series or table of one column
        Row i of ``x`` and row i of ``y`` belong to one record.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision, and of the interval: 1 - alpha.
    alternative : {"two-sided", "greater", "less"}
        "greater": y rises with x. Named in advance it needs less data than "two-sided".
    bounds_x, bounds_y : None, pair or Schema
        Not needed. A schema checks and clips values and says how many rows a person may have.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the private tau, which noise may carry beyond 1; ``estimates`` have it as
        "tau", cut to [-1, 1], with its interval "lower" to "upper".

    Notes
    -----
    Ties are broken at random, in secret, for each column, so that the p-value is exact for every
    n. Tau is then tau-a, where SciPy has tau-b; the two agree where there are no ties.

    The interval takes the variance of tau from a Gaussian copula, a tenth wider. It covers with
    .93 to .99 for linear dependence with normal, skewed or heavy tails and for rounded values;
    for dependence that is not monotone (a cross, a circle) it can be too short.

    **Sensitivity** 4/n, times the rows of a person: one row is in n - 1 of the n (n - 1)/2 pairs.
    Proof: docs/proofs/correlation.md.

    **Privacy** Concordant minus discordant pairs are released at (epsilon, delta) with Tulap noise,
    or Laplace noise where epsilon >= 4.16 and delta = 0; the rest follows from that.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> kendalltau(x, x + rng.normal(size=2000), epsilon=1).reject
    True
    """
    asked = Asked.checked(epsilon, delta, alpha, alternative, noise)
    # in their own units: values that differ keep their ranks
    sides = numeric_pairs(x, y, bounds_x, bounds_y, rows=2, units="own")
    n = len(sides.x)
    labels = asked.noise.permutation(n), asked.noise.permutation(n)
    return _outcome(
        asked,
        kendall_score(sides.x.values, sides.y.values, *labels),
        kendall_law(n),
        width=kendall_width(n) * sides.rows_per_person,
        top=n * (n - 1) // 2,
        sides=sides,
        coefficient="tau",
        method="Kendall's rank correlation",
    )


@declare_level("valid", measured="more than 12 rows")
def spearmanr(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    bounds_x: Bounds = None,
    bounds_y: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two columns are independent, by Spearman's rho; and estimate rho.

    Parameters
    ----------
    x, y, epsilon, delta, alpha, alternative, bounds_x, bounds_y, noise
        As in :func:`kendalltau`.

    Returns
    -------
    Outcome
        The statistic is the private rho, which noise may carry beyond 1; ``estimates`` have it as
        "rho", cut to [-1, 1], with its interval "lower" to "upper".

    Notes
    -----
    Ties are broken at random, in secret, for each column, where SciPy takes midranks; the two
    agree where there are no ties. The p-value is exact up to 12 rows, and from there on too large
    by at most about 1/n².

    The interval is that of Bonett and Wright (2000) with the noise, and a little wider. It
    covers with .93 to .99 for linear dependence with normal, skewed or heavy tails and for
    rounded values; for dependence that is not monotone it can be too short.

    **Sensitivity** 6/(n + 1), times the rows of a person. Proof: docs/proofs/correlation.md.

    **Privacy** The centred sum of products of ranks is released at (epsilon, delta) with Tulap
    noise, or Laplace noise where epsilon >= 4.16 and delta = 0; the rest follows from that.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> spearmanr(x, x + rng.normal(size=2000), epsilon=1).reject
    True
    """
    asked = Asked.checked(epsilon, delta, alpha, alternative, noise)
    # in their own units: values that differ keep their ranks
    sides = numeric_pairs(x, y, bounds_x, bounds_y, rows=2, units="own")
    n = len(sides.x)
    labels = asked.noise.permutation(n), asked.noise.permutation(n)
    return _outcome(
        asked,
        spearman_score(sides.x.values, sides.y.values, *labels),
        spearman_law(n),
        width=spearman_width(n) * sides.rows_per_person,
        top=n * (n * n - 1) // 6,
        sides=sides,
        coefficient="rho",
        method="Spearman's rank correlation",
    )


def _outcome(
    asked: Asked,
    score: int,
    law: Law,
    *,
    width: int,
    top: int,
    sides: TwoSamples,
    coefficient: Coefficient,
    method: str,
) -> Outcome:
    """Release the score, and compute the p-value and the interval from that."""
    found = lattice_outcome(
        score,
        law,
        width=width,
        step=2,
        alternative=asked.alternative,
        unit=top,
        signed=True,
        budget=asked.budget,
        alpha=asked.alpha,
        noise=asked.noise,
        facts=asked.facts(sides, method),
    )
    assert found.statistic is not None
    drawn_from = noise_law(width, asked.budget, "auto", step=2)
    noisy, n = found.statistic * top, len(sides.x)
    interval = RankInterval(coefficient, noisy, top, n, drawn_from, asked.alternative)
    low, high = interval(1 - asked.alpha)
    estimates = {coefficient: interval.estimate, "lower": low, "upper": high}
    return replace(found, estimates=estimates, intervals=interval)
