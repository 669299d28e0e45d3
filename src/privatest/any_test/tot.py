"""The test of tests: how many subsets reject, with noise."""

# ruff: noqa: PT028 -- test_of_tests is a test, but not one of pytest

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privatest.any_test.running import (
    Plan,
    check_rows,
    facts,
    most_subsets,
    rejections,
)
from privatest.any_test.sides import TwoSides, read_sides
from privatest.any_test.subtests import Bandwidth, SubTest, scheme_of, sub_test, units_of
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, public_generator, reject
from privatest.custom.space import Scheme
from privatest.laws.counts import binomial_law
from privatest.mechanisms.lattice import lattice_outcome
from privatest.mechanisms.subsample import rejections_width

__all__ = ["test_of_tests"]


@declare_level("valid", measured="a function of yours as the sub-test")
def test_of_tests(
    x: Any,
    y: Any,
    *,
    pvalue: str | Callable[..., object],
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_subsets: int | None = None,
    sub_alpha: float | None = None,
    scheme: Scheme | None = None,
    adjacency: Adjacency = "one",
    bounds: Any = None,
    bounds_x: Any = None,
    bounds_y: Any = None,
    bandwidth: Bandwidth = None,
    n_permutations: int = 199,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Make any test private by running it on disjoint subsets (test of tests, TOT).

    The number of subsets whose p-value is small is released with Tulap noise; its law under
    the null hypothesis is known.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        Two samples, or for independence the two sides of the same rows.
    pvalue : callable or str
        A function of (x, y) that returns a p-value, or an object that has one, as the tests of
        scipy.stats do. It is your code and runs on the private data: it must only compute.
        One column comes as a flat array.
        Or a name, whose statistic is then tested by permutations: "mmd" and "hsic"; for one
        column the two-sided statistics of scipy.stats "anderson_ksamp", "ansari",
        "brunnermunzel", "cramervonmises_2samp", "epps_singleton_2samp", "kruskal", "ks_2samp",
        "mannwhitneyu", "mood" and "ttest_ind" (two samples), "kendalltau", "pearsonr" and
        "spearmanr" (independence).
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    n_subsets : int, optional
        Number of subsets; by default the square root of the smaller sample's size.
    sub_alpha : float, optional
        A subset rejects if its p-value is at most this; by default 5 alpha, at most 1/2.
    scheme : {"two-sample", "independence"}, optional
        What a function tests; "two-sample" by default. A name implies it.
    adjacency : {"one", "both"}
        Two samples: one record is replaced, or one in each. Independence: one pair, always.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema, optional
        Public bounds of two samples. A function sees values clipped to them, in their own
        units; categories as 0, 1, ... Without bounds the data is used as it is.
    bounds_x, bounds_y : pair, (d, 2) array, mapping of names to pairs, or Schema, optional
        The same for each side, for independence.
    bandwidth : float or pair of float, optional
        Of the Gaussian kernel of "mmd" and "hsic" (a pair: of each side), as a share of the
        bounds; by default a quarter of the box's diagonal. Must be given without bounds.
    n_permutations : int
        Permutations of each subset, for a test by its name.
    rng : None, int or Generator
        Public randomness, for permutations and the order of ties.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        Its statistic is the noisy number of subsets that reject.

    Notes
    -----
    **Sensitivity** A row lies in one subset, so the number of rejections moves by at most 1,
    by 2 for "both", times the rows a person may have; whatever the test is. Proof:
    docs/proofs/subsample.md.

    **Privacy** The noisy number is released at (epsilon, delta), and the p-value follows from
    it. A function must depend on nothing but its arguments. On private rows one that raises,
    warns or returns no number in [0, 1] counts as a p-value of 1; such a fault is reported,
    before noise is drawn, if it shows on public synthetic rows of the same sizes.

    **Level** By a name the p-value is valid for every law of independent rows and every number of
    them, with ties: each subset is tested by permutations. Of a function it is as valid as the
    p-values that the function returns, and the result says so. Many are only approximate on few
    rows: SciPy's ``kruskal`` on 8 and 8 rows has p <= .25 with probability .279.

    References
    ----------
    Kazan, Shi, Groce and Bray (2023), The test of tests: a framework for differentially private
    hypothesis testing.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=2000), rng.normal(0.5, 1, size=2000)
    >>> test_of_tests(x, y, pvalue="mannwhitneyu", epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    integer_at_least("n_permutations", n_permutations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    kind = scheme_of(pvalue, scheme)
    given = bounds, bounds_x, bounds_y
    sides = read_sides(x, y, kind, adjacency, given, units_of(pvalue))
    test = sub_test(pvalue, sides, bandwidth)
    count = _subsets(n_subsets, sides, test)
    level = _on_grid(_level(sub_alpha, alpha), n_permutations, test)
    plan = Plan(test, count, level, n_permutations)
    return lattice_outcome(
        sum(rejections(sides, plan, generator, source)),
        binomial_law(count, level),
        width=rejections_width(count, sides.adjacency, sides.samples.rows_per_person),
        mechanism="tulap",
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=facts(sides, plan, "test of tests"),
    )


# pytest would take the name for a test wherever it is imported
test_of_tests.__dict__["__test__"] = False


def _subsets(given: int | None, sides: TwoSides, test: SubTest) -> int:
    most = most_subsets(sides, test)
    if given is None:
        count = min(math.isqrt(min(sides.sizes)), most)
    else:
        count = integer_at_least("n_subsets", given, 1)
        if count > most:
            reject("n_subsets", f"at most {most}: {test.least_rows} rows for each", given)
    check_rows(sides, test, count)
    return count


def _level(given: float | None, alpha: float) -> float:
    if given is None:
        # in decimals: 5 · 0.011 is 0.055, not the float below it
        return float(min(5 * Decimal(repr(alpha)), Decimal("0.5")))
    return number("sub_alpha", given, above=0, below=1)


def _on_grid(level: float, n_permutations: int, test: SubTest) -> float:
    """Return the level that a rank p-value has: a multiple of 1/(permutations + 1)."""
    if not test.by_rank:
        return level
    ranks = math.floor(Fraction(Decimal(repr(level))) * (n_permutations + 1))
    if ranks == 0:
        least = math.ceil(1 / Fraction(Decimal(repr(level)))) - 1
        reject("n_permutations", f"at least {least} for sub_alpha = {level:g}", n_permutations)
    return ranks / (n_permutations + 1)
