"""The kernel two-sample test, by the maximum mean discrepancy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.by_group import GroupOptions, resolve_samples
from privatest.data.categories import Category
from privatest.data.samples import encode_samples
from privatest.kernels.kernels import KernelFamily, kernel_grid
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result, strongest
from privatest.statistics.bin_sums import binned_samples
from privatest.statistics.bins import BinLayout, one_below_other, rows_per_bin, two_sample_bins
from privatest.statistics.mmd import (
    permuted_mmd_exact,
    permuted_mmd_features,
    permuted_mmd_sums,
)
from privatest.statistics.pair_swaps import (
    permuted_swaps_exact,
    permuted_swaps_features,
    permuted_swaps_streamed,
)
from privatest.statistics.pooled import secret_pairs
from privatest.statistics.portfolio import Statistic, check_bandwidths, chosen_statistics
from privatest.statistics.private_groups import (
    permuted_groups_exact,
    permuted_groups_features,
)
from privatest.two_sample.common import (
    Relabel,
    check_relabel,
    check_sizes,
    labelled_rows,
    swaps_labels,
)
from privatest.two_sample.mmd_plan import (
    METHODS,
    Method,
    Plan,
    declared,
    make_plan,
    needs_pairs,
    null_law,
    pooled,
    public_facts,
)
from privatest.two_sample.mmd_several import several_samples

__all__ = ["mmd_test"]

Floats = NDArray[np.float64]


class MmdOptions(GroupOptions, total=False):
    """What :func:`mmd_test` takes besides data, budget and ``release``."""

    delta: Amount
    alpha: float
    adjacency: Adjacency | None
    relabel: Relabel
    bounds: Any
    kernel: KernelFamily
    bandwidths: float | Sequence[float] | None
    statistics: Statistic | Sequence[Statistic] | None
    estimator: Literal["v", "u"]
    method: Method
    n_permutations: int
    bin_size: int | None
    rng: Rng
    noise: NoiseSource | None


@overload
def mmd_test(
    x: Any,
    y: Any = ...,
    *others: Any,
    epsilon: Amount,
    release: Literal["pvalue"] = ...,
    **options: Unpack[MmdOptions],
) -> Outcome: ...
@overload
def mmd_test(
    x: Any,
    y: Any = ...,
    *others: Any,
    epsilon: Amount,
    release: Release,
    **options: Unpack[MmdOptions],
) -> Decision: ...
@declare_level("valid")
def mmd_test(
    x: Any,
    y: Any = None,
    *others: Any,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    adjacency: Adjacency | None = None,
    relabel: Relabel = "auto",
    bounds: Any = None,
    kernel: KernelFamily = "gaussian",
    bandwidths: float | Sequence[float] | None = None,
    statistics: Statistic | Sequence[Statistic] | None = None,
    estimator: Literal["v", "u"] = "v",
    method: Method = "auto",
    n_permutations: int = 999,
    bin_size: int | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether samples come from the same distribution (dpMMD and others).

    The maximum over a family of statistics, at the price of one: the maximum mean discrepancy
    over a public grid of bandwidths, and what single columns and pairs of columns show. With a
    smoothed permutation test, valid for every sample size: a true hypothesis is rejected with
    probability at most alpha.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; a row is a record, a 1-D array is one column. Or ``x`` alone, one frame
        that ``group`` splits.
    *others : array, data frame or Arrow table
        Further samples. With three or more it is :func:`privatest.hsic_test` of the values and
        the group: ``statistics`` are those of that test, "both" and "fourier" do not apply.
    group : str, optional
        The column of the frame ``x`` that says which sample a row is in.
    groups : sequence of str, int, float or bool, optional
        Its values, one for each sample; the last may be "rest", all others. By default the
        categories that a schema in ``bounds`` lists. They are never found from the data.
    columns : str or sequence of str, optional
        The columns to compare; by default all that ``bounds`` describe by name.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    adjacency : {"one", "both", "row"}, optional
        What is hidden: one record's values within its group; one record in each group; or one
        record with its group ("row": group sizes are private too). By default "one" for samples;
        for a frame "row", or "one" where its schema says ``membership = "public"``.
    relabel : {"auto", "permute", "swap"}
        How private groups are relabelled: all labels permuted, or swapped within secret pairs of
        rows, with a third less noise and a larger statistic under the null hypothesis. "auto"
        swaps where N epsilon² is small, and from 2,000,000 rows on.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns. Data outside is clipped. Without bounds ``bandwidths``
        must be given, in the data's own units.
    kernel : {"gaussian", "laplace", "imq"}
        Kernel of the numeric columns.
    bandwidths : float or sequence of float, optional
        Public bandwidths, as a share of each column's bounds; by default a grid from 4 to 1/16
        of the box.
    statistics : str or sequence of str, optional
        Members of the family: "kernel" (MMD in all columns), "additive" (MMD of single columns,
        their mean and the largest), "pairwise" (the same of pairs of columns), "kolmogorov"
        (largest difference of a column's distribution functions, or of a category's shares, at
        public thresholds) and "mean" (largest difference of a column's means). By default all
        that apply; "kernel" alone if ``bandwidths`` or ``estimator="u"`` are given or bounds are
        not.
    estimator : {"v", "u"}
        MMD, or the unbiased estimate of its square (more noise; exact kernel only).
    method : {"auto", "exact", "nystrom", "fourier"}
        The exact kernel, or features on public points or frequencies. "auto" looks at public
        sizes only.
    n_permutations : int
        Number of random permutations.
    bin_size : int, optional
        Rows that are permuted rows; chosen from the sizes by default.
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
    **Sensitivity** With c² = 2 (sup k - inf k) over the public box, MMD moves by at most
    c/min(n, m) ("one"); permuted statistics by at most 2c/min(n, m) ("both"); with private
    groups (nm/N²) MMD moves by c (N-1)/N², permuted ones by twice that ("row"), swapped ones
    both by c/N. All of it is multiplied by the rows a person may have. Proofs:
    docs/proofs/mmd-sensitivity.md and docs/proofs/private-groups.md.

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
    >>> x, y = rng.uniform(size=2000), rng.beta(2, 1, size=2000)
    >>> pt.mmd_test(x, y, epsilon=1, bounds=(0, 1)).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("release", release, RELEASES)
    layout = resolve_samples(
        (x, y, *others),
        bounds,
        adjacency,
        several=True,
        group=group,
        groups=groups,
        columns=columns,
    )
    adjacency = layout.adjacency
    check_relabel(relabel, adjacency)
    one_of("estimator", estimator, ("v", "u"))
    one_of("method", method, METHODS)
    if adjacency == "row" and estimator == "u":
        raise ParameterError("adjacency='row' needs estimator='v'.")
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    if bin_size is not None:
        bin_size = integer_at_least("bin_size", bin_size, 1)
        if adjacency == "row":
            raise ParameterError("bin_size cannot be used with adjacency='row'.")
    if layout.count > 2:
        return several_samples(
            (x, y, *others),
            layout=layout,
            kernel=kernel,
            bandwidths=bandwidths,
            method=method,
            only_two={"relabel": relabel, "bin_size": bin_size},
            epsilon=epsilon,
            delta=delta,
            alpha=alpha,
            release=release,
            statistics=statistics,
            estimator=estimator,
            n_permutations=n_permutations,
            rng=rng,
            noise=noise,
        )
    generator, source = public_generator(rng), noise_source(noise)
    data, bounds = layout.read((x, y, *others))
    samples = encode_samples(data[0], data[1], bounds, adjacency=adjacency)
    check_sizes(samples, adjacency)
    kernel_only = bandwidths is not None or estimator == "u"
    family = chosen_statistics(statistics, samples.domain, kernel_only=kernel_only)
    if estimator == "u" and family != ("kernel",):
        raise ParameterError("estimator='u' needs statistics='kernel'.")
    if bandwidths is not None:
        check_bandwidths(family)
    kernels = kernel_grid(kernel, bandwidths, samples.domain) if "kernel" in family else ()
    total, rows_per_person = len(samples.x) + len(samples.y), samples.rows_per_person
    swap = adjacency == "row" and swaps_labels(
        relabel, total, rows_per_person, budget.pure_epsilon, release
    )
    plan = make_plan(
        samples, kernels, family, adjacency, estimator, method, swap=swap, bin_size=bin_size
    )
    if statistics is not None and plan.family != family:
        raise ParameterError(
            "statistics='pairwise' has no room for so many pairs of columns. Leave it out, or test "
            "fewer columns."
        )
    found = _statistics(plan, n_permutations, generator, source)
    maxima, sensitivity = strongest(
        found.values,
        pooled(plan, found.pairs),
        found.sensitivities(plan),
        null_law(plan),
        rows=total,
        epsilon=budget.pure_epsilon,
        release=release,
    )
    return permutation_result(
        maxima,
        sensitivity=sensitivity,
        budget=budget,
        alpha=alpha,
        release=release,
        noise=source,
        facts=public_facts(plan, n_permutations),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """Statistics (members × permutations), bounds on their errors, and secret pairs of rows."""

    values: Floats
    errors: Floats
    pairs: tuple[Floats, Floats] | None

    def sensitivities(self, plan: Plan) -> list[PermutationSensitivity]:
        """How far each member's statistic moves, rounding included."""
        return [
            sensitivity.widened(float(error))
            for sensitivity, error in zip(declared(plan), self.errors, strict=True)
        ]


def _statistics(
    plan: Plan, n_permutations: int, rng: np.random.Generator, noise: NoiseSource
) -> _Found:
    if _streams(plan, noise):
        return _one_pass(plan, n_permutations, rng, noise)
    x, y = plan.samples.x.rows, plan.samples.y.rows
    compute = _private_groups if plan.adjacency == "row" else _public_groups
    values, errors = compute(plan, x, y, n_permutations, rng, noise)
    return _Found(values, errors, secret_pairs(x, y, noise) if needs_pairs(plan) else None)


def _streams(plan: Plan, noise: NoiseSource) -> bool:
    """Whether features are summed as rows are read, each sample by itself."""
    # blocks of a private group follow from its size: where time must not tell, held rows are mixed
    told = noise.constant_time and isinstance(plan.samples.x.held, np.ndarray)
    return not plan.exact and (plan.adjacency != "row" or (plan.swap and not told))


def _one_pass(
    plan: Plan, n_permutations: int, rng: np.random.Generator, noise: NoiseSource
) -> _Found:
    """Features need one pass over the rows, which may be anywhere."""
    assert plan.maps is not None  # a family has a member
    if plan.adjacency == "row":
        return _Found(
            *permuted_swaps_streamed(
                plan.samples, plan.maps, n_permutations, rng, noise, pairs=needs_pairs(plan)
            )
        )
    n, m = plan.sizes
    layout = BinLayout(n, m, rows_per_bin(n, m, plan.bin_size, plan.max_bins))
    sums, kept = binned_samples(plan.samples, layout, plan.maps, noise, pairs=needs_pairs(plan))
    membership = layout.membership(n_permutations, rng)
    return _Found(*permuted_mmd_sums(sums, layout, membership, plan.maps), kept)


def _public_groups(
    plan: Plan,
    x: Floats,
    y: Floats,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> tuple[Floats, Floats]:
    """Look at all pairs of rows: the exact kernel needs them."""
    bins = two_sample_bins(
        x,
        y,
        noise.permutation(len(x)),
        noise.permutation(len(y)),
        size=plan.bin_size,
        max_bins=plan.max_bins,
    )
    membership = bins.membership(n_permutations, rng)
    unbiased, domain = plan.estimator == "u", plan.samples.domain
    found = [permuted_mmd_exact(bins, membership, plan.exact, domain, unbiased=unbiased)]
    if plan.maps is not None:
        found.append(permuted_mmd_features(bins, membership, plan.maps))
    return one_below_other(*found)


def _private_groups(
    plan: Plan,
    x: Floats,
    y: Floats,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> tuple[Floats, Floats]:
    rows, labels = labelled_rows(x, y, noise)
    if plan.exact:
        exact = permuted_swaps_exact if plan.swap else permuted_groups_exact
        domain = plan.samples.domain
        return exact(rows, labels, plan.exact, domain, n_permutations, rng, plan.maps)
    assert plan.maps is not None  # a family has a member
    permuted = permuted_swaps_features if plan.swap else permuted_groups_features
    return permuted(rows, labels, plan.maps, n_permutations, rng)
