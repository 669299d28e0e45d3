"""SARRM: a majority vote of subsets, each vote flipped with a small probability."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from privatest.any_test.running import Plan, check_rows, facts, most_subsets, rejections
from privatest.any_test.sides import TwoSides, read_sides
from privatest.any_test.subtests import Bandwidth, SubTest, scheme_of, sub_test, units_of
from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Decision
from privatest.core.validation import Rng, integer_at_least, number, public_generator, reject
from privatest.custom.space import Scheme
from privatest.mechanisms.subsample import (
    LEAST_SUB_ALPHA,
    MOST_SUB_ALPHA,
    SarrmParameters,
    sarrm_parameters,
    sarrm_rejects,
)

__all__ = ["sarrm_test"]


@declare_level("valid", measured="a function of yours as the sub-test")
def sarrm_test(
    x: Any,
    y: Any,
    *,
    pvalue: str | Callable[..., object],
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_subsets: int | None = None,
    min_sub_alpha: float = LEAST_SUB_ALPHA,
    scheme: Scheme | None = None,
    adjacency: Adjacency = "one",
    bounds: Any = None,
    bounds_x: Any = None,
    bounds_y: Any = None,
    bandwidth: Bandwidth = None,
    n_permutations: int = 399,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Make any test private by a noisy majority of subsets (SARRM).

    Each subset's decision is flipped with a small probability, and the hypothesis is rejected
    if most of them then reject. The subsets are few and large: this is stronger than
    :func:`test_of_tests` at a large epsilon and impossible at a small one.

    Parameters
    ----------
    x, y, pvalue, epsilon, delta, alpha, scheme
        As in :func:`test_of_tests`.
    n_subsets : int, optional
        Number of subsets, odd; by default the smallest that works.
    min_sub_alpha : float
        Least level of the sub-tests. The level itself follows from epsilon, alpha and the
        number of subsets.
    adjacency : {"one"}
        Two samples: one record is replaced. Independence: one pair.
    bounds, bounds_x, bounds_y, bandwidth
        As in :func:`test_of_tests`.
    n_permutations : int
        Most permutations of each subset, for a test by its name. Fewer are drawn where that
        comes closer to the level of the sub-tests.
    rng, noise
        As in :func:`test_of_tests`.

    Returns
    -------
    Decision
        The decision alone.

    Notes
    -----
    **Sensitivity** A row lies in one subset and changes one rejection. A person with several
    rows, or in both samples, could change several: that is refused. Proof:
    docs/proofs/subsample.md.

    **Privacy** Only the decision is released, at (epsilon, delta). What is said of functions
    in :func:`test_of_tests` holds here too.

    **Level** A true hypothesis is rejected with probability at most alpha for a test by its
    name, and for a function whose p-values are valid.

    References
    ----------
    Peña and Barrientos (2022), Differentially private hypothesis testing with the subsampled
    and aggregated randomized response mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=2000), rng.normal(0.5, 1, size=2000)
    >>> sarrm_test(x, y, pvalue="mannwhitneyu", epsilon=40).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    integer_at_least("n_permutations", n_permutations, 2)
    least = number("min_sub_alpha", min_sub_alpha, above=0, below=MOST_SUB_ALPHA)
    generator, source = public_generator(rng), noise_source(noise)
    kind = scheme_of(pvalue, scheme)
    given = bounds, bounds_x, bounds_y
    sides = read_sides(x, y, kind, adjacency, given, units_of(pvalue))
    _refuse_several_subsets(sides)
    test = sub_test(pvalue, sides, bandwidth)
    if test.by_rank:
        least = max(least, 1 / (n_permutations + 1))
    found = _parameters(budget.pure_epsilon, alpha, least, n_subsets)
    _check_room(found, sides, test)
    if test.by_rank:
        found, n_permutations = _on_grid(found, n_permutations)
    plan = Plan(test, found.n_subsets, found.sub_alpha, n_permutations)
    public = facts(sides, plan, "SARRM test")
    public["parameters"]["truth_probability"] = found.truth
    return Decision(
        reject=sarrm_rejects(rejections(sides, plan, generator, source), found, source),
        alpha=alpha,
        spent=budget,
        simulated=source.simulated,
        **public,
    )


def _refuse_several_subsets(sides: TwoSides) -> None:
    if sides.adjacency == "both" or sides.samples.rows_per_person > 1:
        which = "adjacency='both'" if sides.adjacency == "both" else "rows_per_person above 1"
        raise PrivacyError(
            f"sarrm_test cannot be used with {which}: it hides a change of one subset, and a "
            "person could change several. Use test_of_tests."
        )


def _parameters(
    epsilon: float, alpha: float, least: float, n_subsets: int | None
) -> SarrmParameters:
    smallest = sarrm_parameters(epsilon, alpha, least)
    if math.isnan(smallest.sub_alpha):  # no float is the level of a subset then
        reject("alpha", "a larger level for SARRM", alpha)
    if n_subsets is None:
        return smallest
    count = integer_at_least("n_subsets", n_subsets, 1)
    if count % 2 == 0 or count < smallest.n_subsets:
        expected = f"an odd number of at least {smallest.n_subsets} at this epsilon and alpha"
        reject("n_subsets", expected, n_subsets)
    return sarrm_parameters(epsilon, alpha, k=count // 2)


def _check_room(found: SarrmParameters, sides: TwoSides, test: SubTest) -> None:
    needed = max(4, found.n_subsets * test.least_rows)
    if found.n_subsets > most_subsets(sides, test):
        raise ParameterError(
            f"sarrm_test needs {found.n_subsets} subsets of at least {test.least_rows} rows at "
            f"this epsilon and alpha: the smallest n that works is {needed}; got "
            f"{min(sides.sizes)}. Use a larger epsilon, or test_of_tests."
        )
    check_rows(sides, test, found.n_subsets)


def _on_grid(found: SarrmParameters, n_permutations: int) -> tuple[SarrmParameters, int]:
    """Choose permutations for which a rank p-value has nearly the level that was found.

    With r = floor((B+1) level), r/(B+1) may be far below the level; the smallest B' for which
    r/(B'+1) is not above it is at most B.
    """
    level = Fraction(found.sub_alpha)
    ranks = math.floor(level * (n_permutations + 1))
    total = math.ceil(ranks / level)
    return replace(found, sub_alpha=ranks / total), total - 1
