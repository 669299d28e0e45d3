"""Two-sample tests by ranks: Mann–Whitney and the median test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget
from privatest.core.results import Decision, Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.bounds import Bounds
from privatest.data.by_group import GroupOptions, resolve_samples
from privatest.data.categories import Category
from privatest.data.limits import rows_of_a_person
from privatest.data.samples import Sample, encode_samples, encode_several
from privatest.laws.counts import hypergeometric_law
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.laws.ranks import mann_whitney_law
from privatest.mechanisms.lattice import lattice_outcome
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result
from privatest.statistics.far_statistics import are_far, far_mann_whitney, far_median_balance
from privatest.statistics.private_ranks import permuted_ranks, private_ranks_sensitivity
from privatest.statistics.ranks import (
    mann_whitney,
    mann_whitney_width,
    median_balance,
    median_width,
)
from privatest.two_sample.common import NULL_HYPOTHESIS, check_sizes, labelled_rows, shown_sizes

__all__ = ["BY_SIZES", "PublicGroups", "group_facts", "mannwhitneyu", "median_test", "read_groups"]

PublicGroups = Literal["one", "both"]
BY_SIZES = "the p-value needs the group sizes"
_METHOD = "Mann–Whitney U test"
_ONE_COLUMN = "each sample must be one numeric column; mmd_test takes several."
_NULLS = {
    "two-sided": NULL_HYPOTHESIS,
    "greater": "the first sample does not tend to larger values than the second",
    "less": "the first sample does not tend to smaller values than the second",
}


class MannWhitneyOptions(GroupOptions, total=False):
    """What :func:`mannwhitneyu` takes besides data, budget and ``release``."""

    delta: Amount
    alpha: float
    alternative: Alternative
    adjacency: Adjacency | None
    bounds: Bounds
    n_permutations: int
    rng: Rng
    noise: NoiseSource | None


@overload
def mannwhitneyu(
    x: Any,
    y: Any = ...,
    *,
    epsilon: Amount,
    release: Literal["pvalue"] = ...,
    **options: Unpack[MannWhitneyOptions],
) -> Outcome: ...
@overload
def mannwhitneyu(
    x: Any,
    y: Any = ...,
    *,
    epsilon: Amount,
    release: Release,
    **options: Unpack[MannWhitneyOptions],
) -> Decision: ...
@declare_level("valid")
def mannwhitneyu(
    x: Any,
    y: Any = None,
    *,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    alternative: Alternative = "two-sided",
    adjacency: Adjacency | None = None,
    bounds: Bounds = None,
    n_permutations: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether one sample tends to larger values (Mann–Whitney, Wilcoxon).

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
    group, groups, columns
        Where x is one frame, how it is split and compared: as in :func:`privatest.mmd_test`.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        "decision", with less noise, is for ``adjacency="row"`` only.
    alternative : {"two-sided", "greater", "less"}
        "greater": x tends to larger values.
    adjacency : {"one", "both", "row"}, optional
        What is hidden: one record's values within its group, one record in each group, or a
        record together with its group, so that group sizes are private. By default "one" for
        samples, and "row" for a frame, as in :func:`mmd_test`.
    bounds : None, pair or Schema
        Not needed. A schema checks and clips values and says how many rows a person may have.
    n_permutations : int
        Number of permutations of labels; for ``adjacency="row"`` only.
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        The statistic is the private U, the number of pairs with x above y ("greater",
        "less"), or the smaller of U and nm - U ("two-sided": SciPy shows U). For "row" there is
        none: an Outcome with the p-value, or a Decision.

    Notes
    -----
    Ties are broken at random, in secret, so that the law of U under the null hypothesis is
    exact for all sizes; where there are none U is that of SciPy. The one-sided tests keep
    their level whenever x is stochastically not larger (smaller) than y ("row": up to 1024 rows;
    beyond, labels are permuted in blocks, and the level is exact for equal distributions).

    **Sensitivity** max(n, m) ("one"), n + m - 1 ("both"), times the rows of a person. "row":
    v (2U - nm)/N², v = 1 - (5/6)|n/N - 1/2|, moves by (29/24)/N, permuted by (20/9)/N. Proofs:
    docs/proofs/rank-tests.md and docs/proofs/private-groups.md.

    **Privacy** 2U - nm or its absolute value is released at (epsilon, delta) with Tulap noise, or
    Laplace noise where epsilon >= 4.16 and delta = 0; the p-value follows from it. "row": the
    p-value (a multiple of 1/10,000) or the decision of the smoothed permutation test is released.

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
    one_of("release", release, RELEASES)
    layout = resolve_samples((x, y), bounds, adjacency, group=group, groups=groups, columns=columns)
    adjacency = layout.adjacency
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    if release == "decision" and adjacency != "row":
        raise ParameterError(
            "release must be 'pvalue' for public groups: it costs no more than a decision there."
        )
    generator, source = public_generator(rng), noise_source(noise)
    data, bounds = layout.read((x, y))
    if adjacency == "row":
        chosen = {"alternative": alternative, "n_permutations": n_permutations}
        common = {"budget": budget, "alpha": alpha, "release": release, "noise": source}
        return _private_groups(data, bounds, chosen, generator, common)
    samples = read_groups(data, bounds, adjacency)
    n, m = map(len, samples)
    return lattice_outcome(
        _mann_whitney(samples, source),
        mann_whitney_law(n, m),
        width=mann_whitney_width(n, m, adjacency) * rows_of_a_person(*samples),
        step=2,
        alternative=alternative,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=group_facts(
            samples,
            adjacency,
            _METHOD,
            _NULLS[alternative],
            {"alternative": alternative},
        ),
        unit=2,
        offset=n * m,
        smaller=True,
        named="the smaller of U and nm - U",
    )


def _mann_whitney(samples: Sequence[Sample], noise: NoiseSource) -> int:
    """Return 2U - nm, ties in a secret order."""
    total = sum(map(len, samples))
    if are_far(total, noise):
        return far_mann_whitney(samples[0], samples[1], noise)
    return mann_whitney(*_ordered(samples), noise.permutation(total))


def _median_balance(samples: Sequence[Sample], noise: NoiseSource) -> int:
    """Return how many of x are above the median, ties in a secret order."""
    total = sum(map(len, samples))
    if are_far(total, noise):
        return far_median_balance(samples[0], samples[1], noise)
    return median_balance(*_ordered(samples), noise.permutation(total))


def _ordered(samples: Sequence[Sample]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of two samples, sorted for speed: labels go with any order."""
    return np.sort(samples[0].values), np.sort(samples[1].values)


def _private_groups(
    data: tuple[Any, ...],
    bounds: Bounds,
    chosen: dict[str, Any],
    rng: np.random.Generator,
    common: dict[str, Any],
) -> Decision:
    """Permute the labels: the law of U needs the group sizes, which are private."""
    samples = encode_samples(data[0], data[1], bounds, units="own", adjacency="row")
    if samples.domain.levels != (0,):
        raise DataError(_ONE_COLUMN)
    check_sizes(samples, "row")
    rows, labels = labelled_rows(samples.x.rows, samples.y.rows, common["noise"])
    statistics = permuted_ranks(rows[:, 0], labels, chosen["n_permutations"], rng)
    if chosen["alternative"] == "two-sided":
        statistics = np.abs(statistics)
    elif chosen["alternative"] == "less":
        statistics = -statistics
    return permutation_result(
        statistics,
        sensitivity=private_ranks_sensitivity(len(rows)) * samples.rows_per_person,
        **common,
        facts={
            "adjacency": "row",
            "method": _METHOD,
            "null_hypothesis": _NULLS[chosen["alternative"]],
            "sizes": shown_sizes(samples, "row"),
            "parameters": chosen,
            "rows_per_person": samples.rows_per_person,
        },
    )


@declare_level("valid")
def median_test(
    x: Any,
    y: Any = None,
    *,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    adjacency: PublicGroups | None = None,
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples have the same share above their common median.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
    group, groups, columns
        Where x is one frame, how it is split and compared: as in :func:`privatest.mmd_test`.
    epsilon, delta, alpha
        The privacy budget, and the level of the decision.
    alternative, adjacency, bounds, noise
        As in :func:`mannwhitneyu`, without "row": for a frame "one" must be passed, or be what
        the schema says.

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
    layout = resolve_samples(
        (x, y),
        bounds,
        adjacency,
        public_groups=BY_SIZES,
        group=group,
        groups=groups,
        columns=columns,
    )
    chosen = layout.adjacency
    source = noise_source(noise)
    data, bounds = layout.read((x, y))
    samples = read_groups(data, bounds, chosen)
    n, m = map(len, samples)
    return lattice_outcome(
        _median_balance(samples, source),
        hypergeometric_law(n, m),
        width=median_width(n, m, chosen) * rows_of_a_person(*samples),
        step=n + m,
        alternative=alternative,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=group_facts(
            samples, chosen, "median test", _NULLS[alternative], {"alternative": alternative}
        ),
        unit=n + m,
        offset=n * (n + m - (n + m) // 2),
        named="distance of the number above the median from what is expected",
    )


def read_groups(data: tuple[Any, ...], bounds: Bounds, adjacency: Adjacency) -> tuple[Sample, ...]:
    """Read samples of one column in their own units: values that differ keep their ranks."""
    one_of("adjacency", adjacency, ADJACENCIES)
    mann_whitney_width(2, 2, adjacency)  # refuses private groups before data is read
    samples = encode_several(data, bounds, units="own", adjacency=adjacency)
    if samples[0].domain.levels != (0,):
        raise DataError(_ONE_COLUMN)
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
        "rows_per_person": samples[0].rows_per_person,
    }
