"""Is a share what it should be? The binomial test of one sample."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from privatest.core.errors import DataError
from privatest.core.intervals import Interval, side_alpha
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import number, one_of, reject
from privatest.data.bounds import Bounds
from privatest.data.categories import Category
from privatest.laws.counts import binomial_law
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.laws.proportions import NO_NOISE, share_interval
from privatest.laws.tulap import LatticeTulap
from privatest.means.estimates import MeanEstimate
from privatest.mechanisms.lattice import noise_law, noisy_integer
from privatest.statistics.outcomes import success_width
from privatest.tables.outcomes import Outcomes, count_successes, person_of, read_outcomes

__all__ = ["binom_test", "private_share"]

_NULLS = {"two-sided": "", "greater": "at most ", "less": "at least "}


@declare_level("valid")
def binom_test(
    x: Any,
    p: float = 0.5,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    success: Category | None = None,
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether the share of successes is a given one.

    Parameters
    ----------
    x : array, series or table of one column
        One outcome per row: 0 and 1, true and false, or categories.
    p : float
        The hypothesised share, which is public; in [0, 1].
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision; the confidence interval has level 1 - alpha.
    alternative : {"two-sided", "greater", "less"}
        "greater": successes are more frequent than ``p``.
    success : str, int, float or bool, optional
        The value that is a success; all others are failures. By default 1 or true.
    bounds : None, pair or Schema
        Not needed. A schema describes the categories and says how many rows a person may have.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the private number of successes, which may be below 0 or above n. In
        ``estimates``: the ``proportion`` and its confidence interval ``lower`` to ``upper``.

    Notes
    -----
    p-values and intervals are exact at every n, p and epsilon: the law of a binomial number with
    Tulap noise is known. One-sided tests are the most powerful private ones (Awan and Slavkovic
    2018). The two-sided p-value is twice the smaller one-sided one. If noise takes the count far
    beyond 0 or n, the interval is a single point there.

    **Sensitivity** 1, times the rows of a person. Proof: docs/proofs/proportions.md.

    **Privacy** The number of successes is released with Tulap noise at (epsilon, delta);
    everything else is computed from it.

    References
    ----------
    Awan and Slavkovic (2018), Differentially private uniformly most powerful tests for binomial
    data.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.random.default_rng(0).uniform(size=2000) < 0.6
    >>> result = binom_test(answers, 0.5, epsilon=1)
    >>> result.reject
    True
    >>> low, high = result.confidence_interval(0.99)
    >>> bool(0.5 < low < high < 0.7)
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("alternative", alternative, ALTERNATIVES)
    share = number("p", p, at_least=0)
    if share > 1:
        reject("p", "a number of at least 0 and at most 1", p)
    source = noise_source(noise)
    outcomes = read_outcomes(x, bounds, success, "x")
    n = len(outcomes)
    noisy, law = _release(outcomes, budget, source)
    pvalue = _pvalue(n, share, noisy, law, alternative)
    intervals = partial(_interval, n, noisy, law, alternative)
    low, high = intervals(1 - alpha)
    shown = {"p": share, "alternative": alternative, "success": success}
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        simulated=source.simulated,
        pvalue=pvalue,
        statistic=noisy,
        adjacency="one",
        method="binomial test",
        null_hypothesis=f"the share of successes is {_NULLS[alternative]}{share:g}",
        sizes={"n": n},
        parameters={name: value for name, value in shown.items() if value is not None},
        rows_per_person=outcomes.rows_per_person,
        estimated="proportion",
        estimates={"proportion": float(np.clip(noisy / n, 0, 1)), "lower": low, "upper": high},
        intervals=intervals,
    )


def private_share(
    x: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    success: Category | None = None,
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> MeanEstimate:
    """Estimate the share of successes privately, with an exact confidence interval.

    Parameters
    ----------
    x, epsilon, delta, alpha, success, bounds, noise
        As in :func:`privatest.binom_test`; the interval has level 1 - alpha.

    Returns
    -------
    MeanEstimate
        The share is the mean of outcomes that are 0 and 1.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.binom_test`.

    **Privacy** As in :func:`privatest.binom_test`.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.random.default_rng(0).uniform(size=2000) < 0.6
    >>> estimate = private_share(answers, epsilon=1)
    >>> bool(0.5 < estimate.lower[0] < estimate.upper[0] < 0.7)
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    source = noise_source(noise)
    outcomes = read_outcomes(x, bounds, success, "x")
    noisy, law = _release(outcomes, budget, source)
    intervals = partial(_as_means, len(outcomes), noisy, law)
    low, high = intervals(1 - alpha)
    share = float(np.clip(noisy / len(outcomes), 0, 1))
    return MeanEstimate(
        mean=np.array([share]),
        lower=low,
        upper=high,
        covariance=np.array([[share * (1 - share)]]),
        # the interval need not be symmetric: its longer side
        region_shape=np.array([np.maximum(high - share, share - low) ** 2]),
        region_radius=1.0,
        confidence=1 - alpha,
        spent=budget,
        n=len(outcomes),
        columns=outcomes.names,
        rows_per_person=outcomes.rows_per_person,
        simulated=source.simulated,
        estimated="share",
        intervals=intervals,
    )


def _release(outcomes: Outcomes, budget: Budget, noise: NoiseSource) -> tuple[float, LatticeTulap]:
    """Release the number of successes."""
    if len(outcomes) < 1:
        raise DataError("x must have at least 1 row.")
    law = noise_law(success_width() * person_of([outcomes]), budget, "auto")
    (count,) = count_successes([outcomes])
    return noisy_integer(count, law=law, noise=noise), law


def _pvalue(
    n: int, share: float, noisy: float, noise: LatticeTulap, alternative: Alternative
) -> float:
    law = binomial_law(n, share)
    greater = law.pvalue(noisy, noise, "greater")
    less = law.pvalue(-noisy, noise, "less")
    if alternative == "two-sided":
        return min(1.0, 2 * min(greater, less))
    return greater if alternative == "greater" else less


def _interval(
    n: int, noisy: float, noise: LatticeTulap, alternative: Alternative, level: float
) -> Interval:
    side = side_alpha(level, alternative)
    sides = (side * (alternative != "less"), side * (alternative != "greater"))
    low, high = share_interval(n, noisy, noise, *sides)
    first, last = share_interval(n, float(np.clip(noisy, 0, n)), NO_NOISE, *sides)
    return Interval.around(low, high, level, last - first)


def _as_means(n: int, noisy: float, noise: LatticeTulap, level: float) -> Interval:
    """Return the two-sided interval as that of a mean: one entry for each column."""
    found = _interval(n, noisy, noise, "two-sided", level)
    low, high, sampling = (np.array([end]) for end in (*found, found.sampling))
    return Interval.around(low, high, level, sampling)
