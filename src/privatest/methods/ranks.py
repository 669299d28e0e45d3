"""Mann–Whitney's statistic where a person's group is part of the row.

J = sum of g_i (2 rank_i - N - 1) = 2U - nm, with labels g in {0, 1}. The null is made by permuting
labels, so that neither the widths nor a law need the group sizes. They still matter: if nearly
all rows are in one group, a row of the other can pass all of them. T = v J/N², with v a little
smaller for unequal groups, is two fifths less sensitive than J, and permutations leave v as it is.
Proof: docs/proofs/private-groups.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome, declare_level
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.encoding import Sample, encode_samples, encode_several, rows_of_a_person
from privatest.data.reading import GroupOptions, resolve_samples
from privatest.data.schema import Bounds, Category
from privatest.data.sources import Source
from privatest.mechanisms.lattice import lattice_outcome
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result
from privatest.methods.descriptor import EXACT, Method, Offered, Option
from privatest.methods.two_groups import NULL_HYPOTHESIS, check_sizes, labelled_rows, shown_sizes
from privatest.numerics.ecdf import (
    are_far,
    far_kruskal_wallis,
    far_mann_whitney,
    far_median_balance,
)
from privatest.numerics.kernels import UNIT_ROUNDOFF
from privatest.numerics.laws import (
    ALTERNATIVES,
    Alternative,
    Law,
    hypergeometric_law,
    mann_whitney_law,
    simulated_law,
)
from privatest.numerics.order import (
    kruskal_wallis,
    kruskal_wallis_width,
    mann_whitney,
    mann_whitney_width,
    median_balance,
    median_width,
)

_BLOCKS = 1024  # up to so many rows single labels are permuted
_SLOPE = 5 / 6  # of v = 1 - slope |n/N - 1/2|: least noise in all for equal groups


def private_ranks_sensitivity(total: int) -> PermutationSensitivity:
    """How far T moves: (29/24)/N observed, (20/9)/N permuted.

    Notes
    -----
    **Sensitivity** A replaced value passes at most all rows of the other group; a replaced label
    moves J by at most N - 1, and v by 5/(6N). A permutation separates value and label, so that
    both happen at once. The bound is widened for the rounding of v J/N², which is at most 1/4.
    Proof: docs/proofs/private-groups.md.
    """
    exact = PermutationSensitivity(29 / 24 / total, 20 / 9 / total)
    return exact.widened(4 * UNIT_ROUNDOFF)


def permuted_ranks(
    values: NDArray[np.float64],
    labels: NDArray[np.float64],
    n_permutations: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return T, observed and for random permutations of labels.

    Rows come in a secret order, which breaks ties. Labels are permuted in blocks, position by
    position; leftover rows keep theirs. J is an integer, and exact for N below 10^7.
    """
    total = len(values)
    heights = np.empty(total)
    heights[np.argsort(values, kind="stable")] = 2.0 * np.arange(total) - (total - 1)
    size = -(-total // _BLOCKS)
    blocks = total // size
    table, raised = (
        part[: blocks * size].reshape(blocks, size).astype(np.float64) for part in (labels, heights)
    )
    products = table @ raised.T  # labels' block × heights' block
    shuffles = np.tile(np.arange(blocks), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    sums = products[shuffles, np.arange(blocks)].sum(axis=1)
    sums += labels[blocks * size :] @ heights[blocks * size :]
    share = 1 - _SLOPE * abs(float(labels.mean()) - 0.5)
    scaled: NDArray[np.float64] = share * sums / total**2
    return scaled


# Two-sample tests by ranks: Mann–Whitney and the median test.


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
    release: Offered[Release] = "pvalue",
    alternative: Offered[Alternative] = "two-sided",
    adjacency: Adjacency | None = None,
    bounds: Bounds = None,
    n_permutations: Annotated[int, Option("permutations")] = 999,
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
    alternative: Offered[Alternative] = "two-sided",
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


# Rank sums of several groups under the null hypothesis, drawn fast for many rows.
#
# Every division of the ranks 1 ... N among groups is equally likely. Few ranks are permuted. Many
# are cut into blocks: how many ranks of a block each group has is drawn exactly, and what the
# places within blocks add, 1/4096 of the variance, is drawn from the normal law with the same
# covariance. How near that is: docs/proofs/rank-tests.md.


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LEVELS = 6  # halvings: 64 blocks
_FEW_RANKS = 2000  # up to here, and for a group below 64 ranks, permutations are exact
_AT_ONCE = 4_000_000  # numbers in memory
_DRAWABLE = 10**9  # NumPy draws hypergeometric numbers of fewer rows of one kind


def by_blocks(sizes: Sequence[int]) -> bool:
    """Whether rank sums of groups of these sizes are drawn by blocks."""
    return sum(sizes) > _FEW_RANKS and min(sizes) >= 1 << _LEVELS


def check_drawable(sizes: Sequence[int]) -> None:
    """Refuse public sizes of three groups or more whose law cannot be drawn."""
    if len(sizes) > 2 and max(*sizes[:-1], sum(sizes[1:])) >= _DRAWABLE:
        raise DataError(
            f"kruskal of three samples or more must have fewer than {_DRAWABLE:,} rows in the "
            "first sample, and in all others together: no law of more can be drawn. Compare two "
            "samples at a time, with kruskal or mannwhitneyu, at a share of epsilon each."
        )


def null_rank_sums(sizes: Sequence[int], count: int, rng: np.random.Generator) -> Floats:
    """Draw 2 R - n (N + 1), R the rank sum of a group of n among N: a row for each draw."""
    blocks = by_blocks(sizes)
    kept = (len(sizes) << _LEVELS) if blocks else sum(sizes)
    rows = max(1, _AT_ONCE // kept)
    draw = _by_blocks if blocks else _by_permutation
    parts = [
        draw(np.array(sizes), min(rows, count - start), rng) for start in range(0, count, rows)
    ]
    return np.concatenate(parts)


def _by_permutation(sizes: Integers, count: int, rng: np.random.Generator) -> Floats:
    total = int(sizes.sum())
    ranks = np.arange(2, 2 * total + 1, 2, dtype=np.int64)
    shuffled = rng.permuted(np.tile(ranks, (count, 1)), axis=1)
    sums = np.add.reduceat(shuffled, np.cumsum(sizes) - sizes, axis=1)
    return np.asarray(sums - sizes * (total + 1), dtype=np.float64)


def _by_blocks(sizes: Integers, count: int, rng: np.random.Generator) -> Floats:
    total = int(sizes.sum())
    counts = np.tile(sizes, (count, 1, 1))  # draws, blocks, groups
    lengths = np.array([total])
    for _ in range(_LEVELS):
        lower = lengths // 2
        first = _halves(counts, lengths, lower, rng)
        counts = np.stack([first, counts - first], axis=2).reshape(count, -1, len(sizes))
        lengths = np.stack([lower, lengths - lower], axis=1).ravel()
    starts = np.cumsum(lengths) - lengths
    between = np.einsum("dbg,b->dg", counts, 2 * starts + lengths + 1) - sizes * (total + 1)
    within: Floats = between + 2 * _places(counts.astype(np.float64), lengths, rng)
    return within


def _halves(
    counts: Integers, lengths: Integers, lower: Integers, rng: np.random.Generator
) -> Integers:
    """Draw how many of each group are in the lower part of each block: hypergeometric."""
    others = np.broadcast_to(lengths, counts.shape[:2]).copy()
    left = np.broadcast_to(lower, counts.shape[:2]).copy()
    found = np.empty_like(counts)
    for group in range(counts.shape[2] - 1):
        own = counts[:, :, group]
        others -= own
        found[:, :, group] = rng.hypergeometric(own, others, left)
        left -= found[:, :, group]
    found[:, :, -1] = left
    return found


def _places(counts: Floats, lengths: Integers, rng: np.random.Generator) -> Floats:
    """Draw sums of places within blocks, centred; given the counts blocks are independent."""
    spread = (lengths + 1) / 12
    covariance = -np.einsum("b,dbg,dbh->dgh", spread, counts, counts)
    own = np.arange(counts.shape[2])
    covariance[:, own, own] += np.einsum("b,dbg->dg", spread * lengths, counts)
    # sums of all groups are 0: the last follows from the others
    kept = covariance[:, :-1, :-1]
    root = np.linalg.cholesky(
        kept + 1e-9 * np.einsum("dgg->d", kept)[:, None, None] * np.eye(len(own) - 1)
    )
    drawn = (root @ rng.standard_normal((*kept.shape[:2], 1)))[..., 0]
    return np.concatenate([drawn, -drawn.sum(axis=1, keepdims=True)], axis=1)


# The Kruskal–Wallis test of several samples.


_ABSOLUTE = "sum of absolute distances of mean ranks, scaled as in Couch et al. 2019; not H"
_SIMULATED_RANKS = 20_000_000  # ranks permuted for a law that has no formula


@declare_level("valid", measured="more than 2,000 rows in three groups or more of at least 64")
def kruskal(
    *samples: Any,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    adjacency: PublicGroups | None = None,
    bounds: Bounds = None,
    n_resamples: int | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether several samples have the same distribution (Kruskal–Wallis).

    The absolute version of Couch et al. (2019): it is far less sensitive than the sum of squares.

    Parameters
    ----------
    *samples : array, series or table of one column
        Two samples or more; or one frame that ``group`` splits.
    group, groups, columns
        How a frame is split and which column is compared, as in :func:`privatest.mmd_test`.
    epsilon, delta, alpha
        The privacy budget, and the level of the decision.
    adjacency, bounds
        As in :func:`median_test`.
    n_resamples : int, optional
        Simulations of the law for three samples or more; by default 9,999, fewer (at least
        999) for more than 2,000 records if a group has less than 64. For two samples the law is
        exact.
    rng : None, int or Generator
        Public randomness, for these simulations. With None they are drawn once in a process, for
        given sizes.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is not H, the sum of squares that SciPy shows, but the private
        g · sum of n_i |mean rank - (N + 1)/2|, with g = 4(N-1)/N² for even N and 4/(N+1) for odd N.
        For two samples it is H: there one follows from the other.

    Notes
    -----
    Ties are broken at random, in secret. A simulated p-value is (1 + sum over simulations of
    P(noisy value >= released))/(B + 1): valid, and never 0. For more than 2,000 records the
    simulation is exact but for 1/4096 of the variance, which is taken as normal.

    **Sensitivity** sum |2 R_i - n_i (N+1)| moves by 4 (N - n_min) ("one"), for k groups by
    4 ((k-1) N - k(k-1)/2) ("both"), times the rows of a person. Private groups ("row") are
    refused: the law needs their sizes. Proof: docs/proofs/rank-tests.md.

    **Privacy** That sum is released at (epsilon, delta) with Tulap noise, or Laplace noise where
    epsilon >= 4.16 and delta = 0; the p-value follows from it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups = [rng.normal(shift, 1, size=600) for shift in (0, 0.2, 0.8)]
    >>> kruskal(*groups, epsilon=1, rng=0).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    if n_resamples is not None:
        integer_at_least("n_resamples", n_resamples, 1)
    layout = resolve_samples(
        samples,
        bounds,
        adjacency,
        several=True,
        public_groups=BY_SIZES,
        group=group,
        groups=groups,
        columns=columns,
    )
    chosen = layout.adjacency
    if layout.count < 2:
        raise ParameterError("kruskal must have two samples or more.")
    if group is None and all(isinstance(each, Source) for each in samples):  # sizes are known
        check_drawable([len(each) for each in samples])
    public_generator(rng)  # refused before anything is paid
    source = noise_source(noise)
    data, bounds = layout.read(samples)
    ranked = read_groups(data, bounds, chosen)
    sizes = [len(sample) for sample in ranked]
    check_drawable(sizes)
    total = sum(sizes)
    fast = by_blocks(sizes)
    count = n_resamples or (9_999 if fast else min(9_999, max(999, _SIMULATED_RANKS // total)))
    outcome = lattice_outcome(
        _statistic(ranked, source),
        _law(sizes, count, rng),
        width=kruskal_wallis_width(sizes, chosen) * rows_of_a_person(*ranked),
        step=2,
        alternative="two-sided",  # the sum is not negative; for two samples its law is that of |2U|
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=group_facts(
            ranked,
            chosen,
            "Kruskal–Wallis test (absolute)",
            NULL_HYPOTHESIS if len(data) == 2 else "all samples come from the same distribution",
            {} if len(data) == 2 else {"n_resamples": count},
        ),
        unit=1 / _published(total),
        named=_ABSOLUTE,
    )
    if len(sizes) > 2:
        return outcome
    # of two groups the sum of absolute values is that of one, and H its square over its variance
    distance = max(float(outcome.statistic or 0.0) / (2 * _published(total)), 0.0)
    h = 3 * distance**2 / (sizes[0] * sizes[1] * (total + 1))
    return replace(outcome, statistic=h, statistic_name="")


def _statistic(samples: Sequence[Sample], noise: NoiseSource) -> int:
    """Return the sum over groups, ties in a secret order."""
    total = sum(map(len, samples))
    if are_far(total, noise):
        return far_kruskal_wallis(samples, noise)
    return kruskal_wallis([sample.values for sample in samples], noise.permutation(total))


def _published(total: int) -> float:
    """Return g/2: the statistic of Couch et al. is this times the integer one."""
    return 2 * (total - 1) / total**2 if total % 2 == 0 else 2 / (total + 1)


def _law(sizes: Sequence[int], n_resamples: int, rng: Rng) -> Law:
    """Return a law whose absolute value is the Kruskal–Wallis sum: for two groups exact."""
    if len(sizes) == 2:
        return mann_whitney_law(sizes[0], sizes[1]).scaled(2)
    if isinstance(rng, np.random.Generator):  # it goes on from where it is
        return _drawn_law(sizes, n_resamples, rng)
    return _kept_law(tuple(sizes), n_resamples, None if rng is None else int(rng))


def _drawn_law(sizes: Sequence[int], n_resamples: int, rng: np.random.Generator) -> Law:
    draws = np.abs(null_rank_sums(sizes, n_resamples, rng)).sum(axis=1)
    return simulated_law(draws, proved=not by_blocks(sizes))


@lru_cache(maxsize=16)
def _kept_law(sizes: tuple[int, ...], n_resamples: int, seed: int | None) -> Law:
    """Draw the law of these public sizes once in a process; without a seed from fresh randomness.

    A p-value is valid whatever else was compared with the same draws: they know of no data.
    """
    law = _drawn_law(sizes, n_resamples, np.random.default_rng(seed))
    law.values.flags.writeable = law.masses.flags.writeable = False
    return law


DESCRIPTORS = (
    Method(
        name="mann-whitney",
        question="two-sample",
        function=mannwhitneyu,
        about="one column, by ranks",
        aliases=("mannwhitneyu", "ranksums"),
        columns="one numeric",
        unbounded=True,
        sentence="We used a private Mann–Whitney test",
        papers=("couch2019",),
    ),
    Method(
        name="kruskal",
        question="two-sample",
        function=kruskal,
        about="one column, by ranks",
        public_groups="its p-value needs the group sizes",
        columns="one numeric",
        unbounded=True,
        sentence="We used a private Kruskal–Wallis test on absolute differences of mean ranks",
        papers=("couch2019",),
    ),
    Method(
        name="median",
        question="two-sample",
        function=median_test,
        about="one column, by ranks",
        aliases=("median_test",),
        public_groups="its p-value needs the group sizes",
        columns="one numeric",
        unbounded=True,
        sentence=f"We used a median test with Tulap noise; {EXACT}",
        papers=("awan2018",),
    ),
)
