"""Independence of two sides of the same rows, by the Hilbert-Schmidt independence criterion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict, Unpack, overload

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Decision, Outcome, declare_level
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.encoding import encode_pairs
from privatest.mechanisms.permutation import RELEASES, Release, dependence_result
from privatest.methods.descriptor import SMOOTHED, Method, Offered, Option
from privatest.numerics.independence import (
    COMPUTATIONS,
    SHUFFLES,
    Computation,
    DependencePlan,
    DependenceQuery,
    Shuffle,
    compute,
    make_plan,
)
from privatest.numerics.kernels import KernelFamily, kernel_grid


class HsicOptions(TypedDict, total=False):
    """What :func:`hsic_test` takes besides data, budget and ``release``."""

    delta: Amount
    alpha: float
    bounds_x: Any
    bounds_y: Any
    kernel_x: KernelFamily
    kernel_y: KernelFamily
    bandwidths_x: float | Sequence[float] | None
    bandwidths_y: float | Sequence[float] | None
    statistics: str | Sequence[str] | None
    estimator: Literal["v", "u"]
    method: Computation
    shuffle: Shuffle
    n_permutations: int
    rng: Rng
    noise: NoiseSource | None


@overload
def hsic_test(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    release: Literal["pvalue"] = ...,
    **options: Unpack[HsicOptions],
) -> Outcome: ...
@overload
def hsic_test(
    x: Any, y: Any, *, epsilon: Amount, release: Release, **options: Unpack[HsicOptions]
) -> Decision: ...
@declare_level("valid")
def hsic_test(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Offered[Release] = "pvalue",
    bounds_x: Any = None,
    bounds_y: Any = None,
    kernel_x: Annotated[KernelFamily, Option("kernel")] = "gaussian",
    kernel_y: Annotated[KernelFamily, Option("kernel")] = "gaussian",
    bandwidths_x: Annotated[float | Sequence[float] | None, Option("bandwidths")] = None,
    bandwidths_y: Annotated[float | Sequence[float] | None, Option("bandwidths")] = None,
    statistics: Offered[str | Sequence[str] | None] = None,
    estimator: Offered[Literal["v", "u"]] = "v",
    method: Computation = "auto",
    shuffle: Shuffle = "auto",
    n_permutations: Annotated[int, Option("permutations")] = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether x and y are independent (dpHSIC).

    The Hilbert-Schmidt independence criterion, adaptive over pairs of public bandwidths, with a
    smoothed permutation test, valid for every sample size: a true hypothesis is rejected with
    probability at most alpha, by default decisions under heavy noise with 3/4 of it.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        Row i of ``x`` and row i of ``y`` belong to one record.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    bounds_x, bounds_y : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns of each side. Data outside is clipped. Without bounds the
        side's bandwidths must be given, in the data's own units.
    kernel_x, kernel_y : {"gaussian", "laplace", "imq"}
        Kernel of the numeric columns of each side.
    bandwidths_x, bandwidths_y : float or sequence of float, optional
        Public bandwidths, as a share of each column's bounds; by default a grid from 4 to 1/16
        of the box.
    statistics : name or names, optional
        Which statistics the maximum is taken over: HSIC of kernels of all columns ("kernel"); of
        sums over columns of one-column kernels ("additive", if a side has several); the largest
        |F(s, t) - F(s) F(t)| over pairs of columns and public thresholds ("kolmogorov"); the
        largest covariance of two columns, as they are or clipped to the middle of their bounds
        ("mean"). And "trend": does one column rise or fall with another? It needs a third of the
        noise, and has a quarter of the level beside others; in decisions, and by itself for one
        column a side. By default all that apply; HSIC of kernels alone if bandwidths are given,
        without bounds and with ``method="exact"``.
    estimator : {"v", "u"}
        HSIC, or the unbiased estimate of its square (more noise; exact kernels only).
    method : {"auto", "exact", "nystrom"}
        Exact kernels, or features on public points. "auto" takes features where both sides
        have bounds.
    shuffle : {"auto", "permute", "swap"}
        How y is rearranged against x: among all rows, or within pairs of rows (features only).
        Swaps need less noise, but have less to compare; "auto" swaps where n epsilon² is small.
    n_permutations : int
        Number of random permutations.
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        An Outcome without a statistic for ``release="pvalue"``, else a Decision.

    Notes
    -----
    **Sensitivity** With c² = 2 (sup k - inf k) of each side's kernel over its public box and
    C = c_x c_y (n-1)/n², replacing one pair moves HSIC by at most sqrt(3/2) C and permuted
    statistics by at most 2 C, times the rows a person may have; the largest covariances move by at
    most (n-1)/n² and 2 (n-1)/n². With swaps both are sqrt(3/2) c_x c_y/n and 1/n, and a trend
    moves from its permutations by at most 1/n. A maximum with public offsets and scales moves by
    at most the largest ratio. Proof: docs/proofs/hsic-sensitivity.md.

    **Privacy** Only the p-value (a multiple of 1/10,000) or the decision is released, at
    (epsilon, delta). Proof: docs/proofs/smoothed-permutation-test.md.

    References
    ----------
    Kim and Schrab (2023), Differentially private permutation tests: applications to kernel
    methods.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=2000)
    >>> y = (x + rng.uniform(size=2000)) / 2
    >>> pt.hsic_test(x, y, epsilon=1, bounds_x=(0, 1), bounds_y=(0, 1)).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("release", release, RELEASES)
    one_of("estimator", estimator, ("v", "u"))
    one_of("method", method, COMPUTATIONS)
    one_of("shuffle", shuffle, SHUFFLES)
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    sides = encode_pairs(x, y, bounds_x, bounds_y)
    if len(sides[0]) < 4:
        raise DataError("x and y must have at least 4 rows.")
    kernels = (
        kernel_grid(kernel_x, bandwidths_x, sides[0].domain),
        kernel_grid(kernel_y, bandwidths_y, sides[1].domain),
    )
    query = DependenceQuery(
        statistics,
        estimator,
        method,
        shuffle,
        n_permutations,
        default_bandwidths=bandwidths_x is None and bandwidths_y is None,
        release=release,
        alpha=alpha,
        epsilon=budget.pure_epsilon,
    )
    plan = make_plan(sides, kernels, query)
    statistics_of_plan = compute(plan, generator, source)
    shared = {"budget": budget, "alpha": alpha, "noise": source, "facts": _facts(plan)}
    return dependence_result(plan, statistics_of_plan, release, **shared)


def _facts(plan: DependencePlan) -> dict[str, Any]:
    kind = "kernel" if plan.names == ("kernel",) else "largest" if plan.family else "trend"
    return {
        "adjacency": "one",
        "method_id": f"hsic_test/{kind}",
        "method": _name(plan),
        "null_hypothesis": "the two sides are independent",
        "sizes": {"n": len(plan.sides[0])},
        "parameters": plan.parameters,
        "rows_per_person": plan.sides[0].rows_per_person,
    }


def _name(plan: DependencePlan) -> str:
    if plan.names == ("kernel",):
        return "HSIC independence test"
    largest = "the largest of " + ", ".join(plan.family) if plan.family else ""
    trend = "a trend" if plan.trend_share else ""
    return "independence test by " + " and by ".join(part for part in (largest, trend) if part)


DESCRIPTORS = (
    Method(
        name="hsic",
        question="independence",
        function=hsic_test,
        about="any dependence, by kernels and more",
        sentence=(
            "We tested independence by the largest of several statistics, among them the "
            f"Hilbert–Schmidt independence criterion with several bandwidths, {SMOOTHED}"
        ),
        papers=("kim2023", "gretton2007"),
    ),
)
