"""Rank tests: Mann–Whitney U, the median test, Kruskal–Wallis.

The statistics depend on the data only through ranks in the pooled sample, so they need no bounds;
:mod:`privatest.numerics.order` has them as integers, with their sensitivities. Ties are broken at
random, in secret, so that the null distributions are exact.

Public group sizes ("one", "both")
    The null distribution follows from the sizes. One noisy integer is released; the p-value is
    post-processing. Proof: docs/proofs/rank-tests.md.
Private groups ("row")
    The null distribution needs the sizes, so labels are permuted: the smoothed permutation test
    releases a p-value or a decision. Proof: docs/proofs/private-groups.md.
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
from privatest.core.privacy import Adjacency, Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome, declare_level
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.encoding import Sample, encode_samples, encode_several, rows_of_a_person
from privatest.data.reading import GroupOptions, resolve_samples
from privatest.data.schema import Bounds, Category
from privatest.data.sources import Source
from privatest.mechanisms.lattice import PublicNull, lattice_outcome
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result
from privatest.methods.descriptor import EXACT, Method, Offered, Option
from privatest.methods.two_groups import (
    NULL_HYPOTHESIS,
    PublicGroups,
    check_sizes,
    group_facts,
    labelled_rows,
    shown_sizes,
)
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
    require_public_groups,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


# --- Statistics and their sensitivities -------------------------------------------------------


def _mann_whitney_statistic(x: Sample, y: Sample, noise: NoiseSource) -> int:
    """Return 2U - nm, ties in a secret order."""
    total = len(x) + len(y)
    if are_far(total, noise):
        return far_mann_whitney(x, y, noise)
    first, second = np.sort(x.values), np.sort(y.values)  # for speed: any order would do
    return mann_whitney(first, second, noise.permutation(total))


def _median_statistic(x: Sample, y: Sample, noise: NoiseSource) -> int:
    """Return N S - n h, ties in a secret order."""
    total = len(x) + len(y)
    if are_far(total, noise):
        return far_median_balance(x, y, noise)
    return median_balance(np.sort(x.values), np.sort(y.values), noise.permutation(total))


def _kruskal_statistic(samples: Sequence[Sample], noise: NoiseSource) -> int:
    """Return the sum over groups of |2 R_i - n_i (N + 1)|, ties in a secret order."""
    total = sum(map(len, samples))
    if are_far(total, noise):
        return far_kruskal_wallis(samples, noise)
    return kruskal_wallis([sample.values for sample in samples], noise.permutation(total))


# Private groups: T = v (2U - nm)/N² with v = 1 - (5/6)|n/N - 1/2|. Where groups are unequal one row
# can pass nearly all others; v is smaller there, and permutations do not change it.
_GROUP_SHARE_SLOPE = 5 / 6
_PERMUTED_BLOCKS = 1024  # with more rows, labels are permuted in blocks


def permuted_ranks(
    values: Floats, labels: Floats, n_permutations: int, rng: np.random.Generator
) -> Floats:
    """Return T for the observed labels, then for random permutations of them.

    Rows come in a secret random order, which breaks ties. Rows left over by the blocks keep their
    labels. 2U - nm is an integer, exact for N below 10^7.
    """
    total = len(values)
    centred_ranks = np.empty(total)
    centred_ranks[np.argsort(values, kind="stable")] = 2.0 * np.arange(total) - (total - 1)
    size = -(-total // _PERMUTED_BLOCKS)
    blocks = total // size
    used = blocks * size
    by_block, ranks_by_block = (
        part[:used].reshape(blocks, size).astype(np.float64) for part in (labels, centred_ranks)
    )
    products = by_block @ ranks_by_block.T
    order = np.tile(np.arange(blocks), (n_permutations + 1, 1))
    rng.permuted(order[1:], axis=1, out=order[1:])
    statistics = products[order, np.arange(blocks)].sum(axis=1)
    statistics += labels[used:] @ centred_ranks[used:]
    v = 1 - _GROUP_SHARE_SLOPE * abs(float(labels.mean()) - 0.5)
    scaled: Floats = v * statistics / total**2
    return scaled


def private_ranks_sensitivity(total: int) -> PermutationSensitivity:
    """Return the sensitivity of T: (29/24)/N observed, (20/9)/N permuted.

    A replaced value passes at most all rows of the other group; a replaced label changes 2U - nm by
    at most N - 1 and v by 5/(6N). After a permutation both can happen at once. The bound is widened
    for rounding in v (2U - nm)/N², which is at most 1/4.
    """
    exact = PermutationSensitivity(29 / 24 / total, 20 / 9 / total)
    return exact.widened(4 * UNIT_ROUNDOFF)


# --- Null distributions for public group sizes ------------------------------------------------


def mann_whitney_null(n: int, m: int, adjacency: Adjacency) -> PublicNull:
    """Return the null distribution of 2U - nm."""
    width = mann_whitney_width(n, m, adjacency)
    return PublicNull(mann_whitney_law(n, m), width, 2, 2, n * m, smaller=True)


def median_null(n: int, m: int, adjacency: Adjacency) -> PublicNull:
    """Return the null distribution of N S - n h: S is hypergeometric."""
    total, width = n + m, median_width(n, m, adjacency)
    offset = n * (total - total // 2)
    return PublicNull(hypergeometric_law(n, m), width, total, total, offset)


def _kruskal_law(sizes: Sequence[int], n_resamples: int, rng: Rng) -> Law:
    """Return a law whose absolute value is the Kruskal–Wallis sum: exact for two groups."""
    if len(sizes) == 2:
        return mann_whitney_law(sizes[0], sizes[1]).scaled(2)
    if isinstance(rng, np.random.Generator):  # its state must advance
        return _simulated_kruskal_law(sizes, n_resamples, rng)
    return _cached_kruskal_law(tuple(sizes), n_resamples, None if rng is None else int(rng))


def _simulated_kruskal_law(sizes: Sequence[int], n_resamples: int, rng: np.random.Generator) -> Law:
    draws = np.abs(null_rank_sums(sizes, n_resamples, rng)).sum(axis=1)
    return simulated_law(draws, proved=not by_blocks(sizes))


@lru_cache(maxsize=16)
def _cached_kruskal_law(sizes: tuple[int, ...], n_resamples: int, seed: int | None) -> Law:
    """Simulate the law of these public sizes once in a process; the draws depend on no data."""
    law = _simulated_kruskal_law(sizes, n_resamples, np.random.default_rng(seed))
    law.values.flags.writeable = law.masses.flags.writeable = False
    return law


# Kruskal–Wallis with three groups or more: simulated rank sums. Few ranks are permuted. Many are
# split into 64 blocks: how many ranks of each group are in a block is drawn exactly, and the sums
# within blocks, 1/4096 of the variance, as normal numbers of the same covariance.
# Accuracy: docs/proofs/rank-tests.md.
_HALVINGS = 6
_PERMUTED_RANKS = 2000  # up to here, and for a group below 64 ranks, ranks are permuted
_SIMULATED_AT_ONCE = 4_000_000  # numbers in memory
_SIMULATED_RANKS = 20_000_000  # total work by default where ranks are permuted
_LARGEST_SIMULATED = 10**9  # NumPy's hypergeometric generator takes fewer rows than this


def by_blocks(sizes: Sequence[int]) -> bool:
    """Return whether rank sums of groups of these sizes are drawn by blocks."""
    return sum(sizes) > _PERMUTED_RANKS and min(sizes) >= 1 << _HALVINGS


def check_simulation_size(sizes: Sequence[int]) -> None:
    """Refuse public sizes of three groups or more whose law cannot be drawn."""
    if len(sizes) > 2 and max(*sizes[:-1], sum(sizes[1:])) >= _LARGEST_SIMULATED:
        raise DataError(
            f"kruskal of three samples or more must have fewer than {_LARGEST_SIMULATED:,} rows in "
            "the first sample, and in all others together: no law of more can be drawn. Compare "
            "two samples at a time, with kruskal or mannwhitneyu, at a share of epsilon each."
        )


def null_rank_sums(sizes: Sequence[int], count: int, rng: np.random.Generator) -> Floats:
    """Draw 2 R - n (N + 1), R the rank sum of a group of n among N: a row for each draw."""
    in_blocks = by_blocks(sizes)
    per_draw = (len(sizes) << _HALVINGS) if in_blocks else sum(sizes)
    batch = max(1, _SIMULATED_AT_ONCE // per_draw)
    draw = _rank_sums_in_blocks if in_blocks else _permuted_rank_sums
    batches = [min(batch, count - start) for start in range(0, count, batch)]
    return np.concatenate([draw(np.array(sizes), size, rng) for size in batches])


def _permuted_rank_sums(sizes: Integers, count: int, rng: np.random.Generator) -> Floats:
    total = int(sizes.sum())
    ranks = np.arange(2, 2 * total + 1, 2, dtype=np.int64)
    shuffled = rng.permuted(np.tile(ranks, (count, 1)), axis=1)
    sums = np.add.reduceat(shuffled, np.cumsum(sizes) - sizes, axis=1)
    return np.asarray(sums - sizes * (total + 1), dtype=np.float64)


def _rank_sums_in_blocks(sizes: Integers, count: int, rng: np.random.Generator) -> Floats:
    total = int(sizes.sum())
    counts = np.tile(sizes, (count, 1, 1))  # draw, block, group
    lengths = np.array([total])
    for _ in range(_HALVINGS):
        lower_lengths = lengths // 2
        lower = _hypergeometric_counts(counts, lengths, lower_lengths, rng)
        counts = np.stack([lower, counts - lower], axis=2).reshape(count, -1, len(sizes))
        lengths = np.stack([lower_lengths, lengths - lower_lengths], axis=1).ravel()
    starts = np.cumsum(lengths) - lengths
    between = np.einsum("dbg,b->dg", counts, 2 * starts + lengths + 1) - sizes * (total + 1)
    within = _normal_sums_within_blocks(counts.astype(np.float64), lengths, rng)
    sums: Floats = between + 2 * within
    return sums


def _hypergeometric_counts(
    counts: Integers, lengths: Integers, lower_lengths: Integers, rng: np.random.Generator
) -> Integers:
    """Draw how many ranks of each group are in the lower half of each block."""
    others = np.broadcast_to(lengths, counts.shape[:2]).copy()
    places = np.broadcast_to(lower_lengths, counts.shape[:2]).copy()
    lower = np.empty_like(counts)
    for group in range(counts.shape[2] - 1):
        own = counts[:, :, group]
        others -= own
        lower[:, :, group] = rng.hypergeometric(own, others, places)
        places -= lower[:, :, group]
    lower[:, :, -1] = places
    return lower


def _normal_sums_within_blocks(
    counts: Floats, lengths: Integers, rng: np.random.Generator
) -> Floats:
    """Draw centred sums of ranks within blocks, which are independent given the counts."""
    spread = (lengths + 1) / 12
    covariance = -np.einsum("b,dbg,dbh->dgh", spread, counts, counts)
    diagonal = np.arange(counts.shape[2])
    covariance[:, diagonal, diagonal] += np.einsum("b,dbg->dg", spread * lengths, counts)
    free = covariance[:, :-1, :-1]  # the sums of all groups add up to 0
    jitter = 1e-9 * np.einsum("dgg->d", free)[:, None, None] * np.eye(len(diagonal) - 1)
    root = np.linalg.cholesky(free + jitter)
    draws = (root @ rng.standard_normal((*free.shape[:2], 1)))[..., 0]
    return np.concatenate([draws, -draws.sum(axis=1, keepdims=True)], axis=1)


# --- Public functions -------------------------------------------------------------------------


BY_SIZES = "the p-value needs the group sizes"
_ONE_COLUMN = "each sample must be one numeric column; mmd_test takes several."
_NULLS = {
    "two-sided": NULL_HYPOTHESIS,
    "greater": "the first sample does not tend to larger values than the second",
    "less": "the first sample does not tend to smaller values than the second",
}


class MannWhitneyOptions(GroupOptions, total=False):
    """Keyword arguments of :func:`mannwhitneyu` besides ``epsilon`` and ``release``."""

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
    method, null = "Mann–Whitney U test", _NULLS[alternative]
    if adjacency != "row":
        samples = _read_groups(data, bounds, adjacency)
        return lattice_outcome(
            _mann_whitney_statistic(samples[0], samples[1], source),
            mann_whitney_null(len(samples[0]), len(samples[1]), adjacency),
            rows_per_person=rows_of_a_person(*samples),
            alternative=alternative,
            budget=budget,
            alpha=alpha,
            noise=source,
            facts=group_facts(samples, adjacency, method, null, {"alternative": alternative}),
            named="the smaller of U and nm - U",
        )
    sides = encode_samples(data[0], data[1], bounds, units="own", adjacency="row")
    if sides.domain.levels != (0,):
        raise DataError(_ONE_COLUMN)
    check_sizes(sides, "row")
    rows, labels = labelled_rows(sides.x.rows, sides.y.rows, source)
    statistics = permuted_ranks(rows[:, 0], labels, n_permutations, generator)
    sign = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    return permutation_result(
        sign(statistics),
        sensitivity=private_ranks_sensitivity(len(rows)) * sides.rows_per_person,
        release=release,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts={
            "adjacency": "row",
            "method": method,
            "null_hypothesis": null,
            "sizes": shown_sizes(sides, "row"),
            "parameters": {"alternative": alternative, "n_permutations": n_permutations},
            "rows_per_person": sides.rows_per_person,
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
    x, y, group, groups, columns, epsilon, delta, alpha, alternative, bounds, noise
        As in :func:`mannwhitneyu`.
    adjacency : {"one", "both"}, optional
        What is hidden. For a frame, pass it or declare public membership in the schema.

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
    require_public_groups(chosen)
    source = noise_source(noise)
    data, bounds = layout.read((x, y))
    samples = _read_groups(data, bounds, chosen)
    return lattice_outcome(
        _median_statistic(samples[0], samples[1], source),
        median_null(len(samples[0]), len(samples[1]), chosen),
        rows_per_person=rows_of_a_person(*samples),
        alternative=alternative,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=group_facts(
            samples, chosen, "median test", _NULLS[alternative], {"alternative": alternative}
        ),
        named="distance of the number above the median from what is expected",
    )


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
    group, groups, columns, epsilon, delta, alpha, adjacency, bounds, noise
        As in :func:`median_test`.
    n_resamples : int, optional
        Simulations of the law for three samples or more; by default 9,999, fewer (at least
        999) for more than 2,000 records if a group has less than 64. For two samples the law is
        exact.
    rng : None, int or Generator
        Public randomness, for these simulations. With None they are drawn once in a process, for
        given sizes.

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
        check_simulation_size([len(each) for each in samples])
    require_public_groups(chosen)
    public_generator(rng)
    source = noise_source(noise)
    data, bounds = layout.read(samples)
    ranked = _read_groups(data, bounds, chosen)
    sizes = [len(sample) for sample in ranked]
    check_simulation_size(sizes)
    total, pair = sum(sizes), len(sizes) == 2
    affordable = 9_999 if by_blocks(sizes) else _SIMULATED_RANKS // total
    count = n_resamples or min(9_999, max(999, affordable))
    # the statistic of Couch et al. is the integer times half of their g
    half_g = 2 * (total - 1) / total**2 if total % 2 == 0 else 2 / (total + 1)
    width = kruskal_wallis_width(sizes, chosen)
    outcome = lattice_outcome(
        _kruskal_statistic(ranked, source),
        PublicNull(_kruskal_law(sizes, count, rng), width, step=2, unit=1 / half_g),
        rows_per_person=rows_of_a_person(*ranked),
        alternative="two-sided",  # the sum is not negative; for two samples its law is that of |2U|
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=group_facts(
            ranked,
            chosen,
            "Kruskal–Wallis test (absolute)",
            NULL_HYPOTHESIS if pair else "all samples come from the same distribution",
            {} if pair else {"n_resamples": count},
        ),
        named="sum of absolute distances of mean ranks, scaled as in Couch et al. 2019; not H",
    )
    if not pair:
        return outcome
    # of two groups both terms of the sum are equal, and H is the square of one over its variance
    distance = max(float(outcome.statistic or 0.0) / (2 * half_g), 0.0)
    h = 3 * distance**2 / (sizes[0] * sizes[1] * (total + 1))
    return replace(outcome, statistic=h, statistic_name="")


def _read_groups(data: tuple[Any, ...], bounds: Bounds, adjacency: Adjacency) -> tuple[Sample, ...]:
    """Read samples of one column in their own units: values that differ keep their ranks."""
    samples = encode_several(data, bounds, units="own", adjacency=adjacency)
    if samples[0].domain.levels != (0,):
        raise DataError(_ONE_COLUMN)
    if min(map(len, samples)) < 2:
        raise DataError("each sample must have at least 2 rows.")
    return samples


# --- Descriptors ------------------------------------------------------------------------------


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
