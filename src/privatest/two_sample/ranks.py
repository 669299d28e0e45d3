"""Two-sample tests by ranks: Mann–Whitney and the median test."""

from __future__ import annotations

from typing import Any, Literal

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import number, one_of
from privatest.data.bounds import Bounds
from privatest.data.samples import Sample, encode_samples
from privatest.laws.counts import hypergeometric_law
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.laws.ranks import mann_whitney_law
from privatest.mechanisms.lattice import lattice_outcome
from privatest.statistics.ranks import (
    mann_whitney,
    mann_whitney_width,
    median_balance,
    median_width,
)
from privatest.two_sample.common import NULL_HYPOTHESIS

__all__ = ["PublicGroups", "group_facts", "mannwhitneyu", "median_test", "read_groups"]

PublicGroups = Literal["one", "both"]
_NULLS = {
    "two-sided": NULL_HYPOTHESIS,
    "greater": "the first sample does not tend to larger values than the second",
    "less": "the first sample does not tend to smaller values than the second",
}


def mannwhitneyu(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    adjacency: PublicGroups = "one",
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether one sample tends to larger values (Mann–Whitney, Wilcoxon).

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    alternative : {"two-sided", "greater", "less"}
        "greater": x tends to larger values.
    adjacency : {"one", "both"}
        What is hidden: one record's values within its group, or one record in each group.
    bounds : None, pair or Schema
        Not needed. A schema checks and clips values and says how many rows a person may have.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the private U, the number of pairs with x above y ("greater",
        "less"), or |U - nm/2| ("two-sided").

    Notes
    -----
    Ties are broken at random, in secret, so that the law of U under the null hypothesis is
    exact for all sizes; where there are none U is that of SciPy. The one-sided tests keep
    their level whenever x is stochastically not larger (smaller) than y.

    **Sensitivity** max(n, m) ("one"), n + m - 1 ("both"), times the rows of a person. Private
    groups ("row") are refused: the law needs their sizes. Proof: docs/proofs/rank-tests.md.

    **Privacy** 2U - nm or its absolute value is released at (epsilon, delta) with Tulap noise, or
    Laplace noise where epsilon >= 4.16 and delta = 0; the p-value follows from it.

    References
    ----------
    Couch, Kazan, Shi, Bray and Groce (2019), Differentially private nonparametric hypothesis
    testing; the statistic is theirs, corrected for n ≠ m.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> mannwhitneyu(rng.normal(size=900), rng.normal(0.5, 1, size=800), epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("alternative", alternative, ALTERNATIVES)
    source = noise_source(noise)
    samples = read_groups((x, y), bounds, adjacency)
    n, m = map(len, samples)
    return lattice_outcome(
        mann_whitney(samples[0].values, samples[1].values, source.permutation(n + m)),
        mann_whitney_law(n, m),
        width=mann_whitney_width(n, m, adjacency) * samples[0].rows_per_person,
        step=2,
        alternative=alternative,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=group_facts(
            samples,
            adjacency,
            "Mann–Whitney U test",
            _NULLS[alternative],
            {"alternative": alternative},
        ),
        unit=2,
        offset=n * m,
    )


def median_test(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    adjacency: PublicGroups = "one",
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples have the same share above their common median.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
    epsilon, delta, alpha
        The privacy budget, and the level of the decision.
    alternative, adjacency, bounds, noise
        As in :func:`mannwhitneyu`.

    Returns
    -------
    Outcome
        The statistic is the private number of records of x among the N - floor(N/2) largest of
        all, or its distance from what is expected ("two-sided").

    Notes
    -----
    Ties are broken at random, in secret. With midranks, as published, a whole block of ties
    changes sides at once: the sensitivity is then n, not 1.

    **Sensitivity** 1 ("one" and "both"), times the rows of a person. Private groups ("row") are
    refused: the law needs their sizes. Proof: docs/proofs/rank-tests.md.

    **Privacy** The number, or its distance from what is expected, is released with Tulap noise
    at (epsilon, delta); the p-value follows from it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> median_test(rng.normal(size=900), rng.normal(0.5, 1, size=800), epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("alternative", alternative, ALTERNATIVES)
    source = noise_source(noise)
    samples = read_groups((x, y), bounds, adjacency)
    n, m = map(len, samples)
    return lattice_outcome(
        median_balance(samples[0].values, samples[1].values, source.permutation(n + m)),
        hypergeometric_law(n, m),
        width=median_width(n, m, adjacency) * samples[0].rows_per_person,
        step=n + m,
        alternative=alternative,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=group_facts(
            samples, adjacency, "median test", _NULLS[alternative], {"alternative": alternative}
        ),
        unit=n + m,
        offset=n * (n + m - (n + m) // 2),
    )


def read_groups(data: tuple[Any, ...], bounds: Bounds, adjacency: Adjacency) -> tuple[Sample, ...]:
    """Read samples of one column in their own units: values that differ keep their ranks."""
    one_of("adjacency", adjacency, ADJACENCIES)
    mann_whitney_width(2, 2, adjacency)  # refuses private groups before data is read
    pairs = [encode_samples(data[0], other, bounds, units="own") for other in data[1:]]
    samples = (pairs[0].x, *(pair.y for pair in pairs))
    if samples[0].domain.levels != (0,):
        raise DataError("each sample must be one numeric column; mmd_test takes several.")
    if min(map(len, samples)) < 2:
        raise DataError("each sample must have at least 2 rows.")
    return samples


def group_facts(
    samples: tuple[Sample, ...],
    adjacency: Adjacency,
    method: str,
    null: str,
    parameters: dict[str, Any],
) -> dict[str, Any]:
    """Return the public facts of a result."""
    names = ["n", "m"] if len(samples) == 2 else [f"n{k}" for k in range(1, len(samples) + 1)]
    return {
        "adjacency": adjacency,
        "method": method,
        "null_hypothesis": null,
        "sizes": dict(zip(names, map(len, samples), strict=True)),
        "parameters": parameters,
        "unit": samples[0].unit,
    }
