"""The Kruskal–Wallis test of several samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, public_generator
from privatest.data.bounds import Bounds
from privatest.data.by_group import resolve_samples
from privatest.data.categories import Category
from privatest.data.limits import rows_of_a_person
from privatest.data.samples import Sample
from privatest.data.source import Source
from privatest.laws.law import Law, simulated_law
from privatest.laws.ranks import mann_whitney_law
from privatest.mechanisms.lattice import lattice_outcome
from privatest.several_groups.rank_sums import by_blocks, check_drawable, null_rank_sums
from privatest.statistics.far_statistics import are_far, far_kruskal_wallis
from privatest.statistics.ranks import kruskal_wallis, kruskal_wallis_width
from privatest.two_sample.common import NULL_HYPOTHESIS
from privatest.two_sample.ranks import BY_SIZES, PublicGroups, group_facts, read_groups

__all__ = ["kruskal"]

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
