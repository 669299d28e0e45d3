"""What :func:`mmd_test` decides before it looks at the data: from public quantities only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome, declare_level
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.encoding import Sample, TwoSamples, encode_pairs, encode_samples, encode_several
from privatest.data.reading import GroupOptions, SampleLayout, resolve_samples
from privatest.data.schema import CategoricalColumn, Category, Column, Domain, NumericColumn, Schema
from privatest.mechanisms.permutation import (
    RELEASES,
    NullLaw,
    Release,
    dependence_result,
    permutation_result,
    strongest,
)
from privatest.methods.descriptor import SMOOTHED, Method, Offered, Option
from privatest.methods.locations import distinguishing_features
from privatest.methods.two_groups import (
    NULL_HYPOTHESIS,
    Relabel,
    check_relabel,
    check_sizes,
    labelled_rows,
    public_sizes,
    shown_sizes,
    swaps_labels,
)
from privatest.numerics.coded import CODE_CELLS, CodedMaps, has_codes
from privatest.numerics.dependence import null_moments
from privatest.numerics.features import FeatureMaps, Together, fourier, nystrom, resolved
from privatest.numerics.independence import DependenceQuery
from privatest.numerics.independence import compute as compute_dependence
from privatest.numerics.independence import make_plan as make_dependence_plan
from privatest.numerics.kernels import (
    Kernel,
    KernelFamily,
    TabulatedKernels,
    kernel_grid,
    tabulated_kernels,
)
from privatest.numerics.permutation import (
    LABEL_BLOCKS,
    SWAP_BINS,
    BinPermutation,
    PairSwaps,
    Statistics,
    bin_layout,
    block_permutation,
    label_permutation,
    mmd_sensitivity,
    mmd_u_sensitivity,
    pair_swaps,
    pair_swaps_sensitivity,
    permuted_features,
    permuted_mmd,
    permuted_mmd_u,
    private_groups_sensitivity,
    stack_statistics,
    streamed_features,
)
from privatest.numerics.portfolio import (
    Member,
    PooledVariances,
    Statistic,
    check_bandwidths,
    chosen_statistics,
    members,
    pooled_variances,
    secret_pairs,
    unit_moments,
    usual_variances,
)

Computation = Literal["auto", "exact", "nystrom", "fourier"]
COMPUTATIONS = ("auto", "exact", "nystrom", "fourier")
# Up to here the exact kernel is quick; permuting private labels costs N² per permutation. In more
# than two columns public points can miss what lies between them, so it is worth more time.
_EXACT_ROWS, _EXACT_ROWS_PRIVATE, _EXACT_ROWS_MANY_COLUMNS = 2_000, 500, 10_000
_FREQUENCIES = 256
_MANY_ROWS = 1_000_000  # of both samples, from which reading them is not to be outweighed
_FEW_POINTS = 16
EXACT_BINS, _FEATURE_BINS = 2_048, 16_384  # rows of public groups are permuted in so many bins


@dataclass(frozen=True, slots=True)
class MMDPlan:
    """What is decided before looking at the data, and the data."""

    samples: TwoSamples
    kernels: tuple[Kernel, ...]
    family: tuple[Statistic, ...]
    kernel_maps: FeatureMaps | None  # None: the exact kernel
    others: tuple[Member, ...]  # members that are not kernels in all columns
    adjacency: Adjacency
    estimator: Literal["v", "u"]
    method: Computation
    swap: bool  # private groups are relabelled within pairs
    bin_size: int | None
    coded: bool = False  # rows are so many that only codes of them are looked at

    @property
    def sizes(self) -> tuple[int, int]:
        """The two sample sizes, as far as they are public."""
        return public_sizes(self.samples, self.adjacency)

    @property
    def max_bins(self) -> int:
        """How many bins rows of public groups are permuted in, at most."""
        return _max_bins(exact=bool(self.exact))

    @property
    def sums(self) -> int:
        """About how many sums of features are kept for permutations."""
        exact, size = bool(self.exact), self.bin_size
        return sums_kept(*self.sizes, self.adjacency, exact=exact, swap=self.swap, bin_size=size)

    @property
    def exact(self) -> tuple[Kernel, ...]:
        """Kernels that are evaluated at every pair of rows."""
        return self.kernels if self.kernel_maps is None else ()

    @property
    def maps(self) -> FeatureMaps | None:
        """All members that are norms of features, if there are any."""
        parts = self.others if self.kernel_maps is None else (self.kernel_maps, *self.others)
        if self.coded:
            return CodedMaps(parts, self.samples.domain)
        return Together(parts) if parts else None

    @property
    def spreads(self) -> tuple[float, ...]:
        """Of all members, in the order of their statistics."""
        exact = tuple(kernel.spread(self.samples.domain) for kernel in self.exact)
        return exact if self.maps is None else exact + self.maps.spreads


def make_plan(
    samples: TwoSamples,
    kernels: tuple[Kernel, ...],
    family: tuple[Statistic, ...],
    adjacency: Adjacency,
    estimator: Literal["v", "u"],
    method: Computation,
    *,
    swap: bool,
    bin_size: int | None,
) -> MMDPlan:
    """Decide how to compute, from public quantities only.

    Pairs of many columns may have no room: the plan's family is what takes part.
    """
    domain, total = samples.domain, len(samples.x) + len(samples.y)
    if estimator == "u" and method not in ("auto", "exact"):
        raise ParameterError("estimator='u' needs method='exact': features have no diagonal.")
    if not domain.bounded and method not in ("auto", "exact"):
        raise ParameterError(f"method={method!r} needs bounds, to place its public points.")
    if method == "auto":
        quick = is_quick(total, domain.dimension, adjacency, swap=swap)
        method = "exact" if estimator == "u" or not domain.bounded or quick else "nystrom"
    maps: FeatureMaps | None = None
    coded = method == "nystrom" and total >= _MANY_ROWS and has_codes(domain)
    if kernels and method == "nystrom":
        # where others look at single columns and pairs, a few points are enough for the rest
        few = coded and "pairwise" in family
        kernels, maps = _on_landmarks(kernels, domain, coded=coded, few=few)
        coded = coded and isinstance(maps, TabulatedKernels)
    elif kernels and method == "fourier":
        # public frequencies, the same in every run
        maps = fourier(kernels, _FREQUENCIES, domain, public_generator(0))
    plan = MMDPlan(samples, kernels, family, maps, (), adjacency, estimator, method, swap, bin_size)
    others = members(family, domain, plan.sums, coded=coded)
    present = {"kernel", *(part.name for part in others)}
    family = tuple(name for name in family if name in present)
    return replace(plan, others=others, family=family, coded=coded)


@lru_cache(maxsize=32)
def _on_landmarks(
    kernels: tuple[Kernel, ...], domain: Domain, *, coded: bool, few: bool
) -> tuple[tuple[Kernel, ...], FeatureMaps]:
    """Return the kernels that public points resolve, and their features."""
    if few:  # the widest sees means of columns, as others do
        landmarks = domain.landmarks(_FEW_POINTS)
        own = resolved(kernels[1:] or kernels, landmarks, domain)
        found = tabulated_kernels(own, landmarks, domain, CODE_CELLS)
        if found is not None:
            return own, found
    landmarks = domain.landmarks()
    kernels = resolved(kernels, landmarks, domain)
    exact = tabulated_kernels(kernels, landmarks, domain, CODE_CELLS if coded else 0)
    return kernels, nystrom(kernels, landmarks, domain) if exact is None else exact


def is_quick(total: int, dimension: int, adjacency: Adjacency, *, swap: bool) -> bool:
    """Return whether "auto" takes the exact kernel, by public numbers of rows and columns."""
    most = _EXACT_ROWS if dimension <= 2 else _EXACT_ROWS_MANY_COLUMNS
    return total <= (_EXACT_ROWS_PRIVATE if adjacency == "row" and not swap else most)


def sums_kept(
    n: int, m: int, adjacency: Adjacency, *, exact: bool, swap: bool, bin_size: int | None = None
) -> int:
    """About how many sums of features are kept for permutations, by public sizes.

    ``exact``: there are kernels that are evaluated at every pair of rows.
    """
    if adjacency != "row":
        return (n + m) // bin_layout(n, m, bin_size, _max_bins(exact=exact)).size + 2
    if swap:
        return SWAP_BINS
    return n + m if exact else LABEL_BLOCKS**2


def _max_bins(*, exact: bool) -> int:
    return EXACT_BINS if exact else _FEATURE_BINS


def null_law(plan: MMDPlan) -> NullLaw | None:
    """Say what each member would be like if both samples were uniform."""
    domain = plan.samples.domain
    if not domain.bounded:
        return None
    n, m = plan.sizes
    rate = 1 / n + 1 / m
    moments = np.zeros((0, 2))
    if plan.kernels:
        moments = np.array(null_moments(plan.kernels, domain))
    if plan.estimator == "u":
        return NullLaw(np.zeros(len(moments)), rate * np.sqrt(2 * moments[:, 1]))
    # a kernel that rounds to 1 everywhere has neither
    means = np.sqrt(moments[:, 0])
    deviations = np.sqrt(moments[:, 1] / 2) / np.where(means > 0, means, np.inf)
    both = np.vstack(
        [np.stack([means, deviations], axis=1), *(unit_moments(own, domain) for own in plan.others)]
    )
    share = n * m / (n + m) ** 2 if plan.adjacency == "row" else 1.0  # T is (nm/N²) MMD
    if plan.swap:  # half of the pairs have two labels
        share *= math.sqrt(2)
    both *= share * math.sqrt(rate)
    usual = [moments[:, 0], *(usual_variances(own, domain) for own in plan.others)]
    return NullLaw(both[:, 0], both[:, 1], np.concatenate(usual))


def needs_pairs(plan: MMDPlan) -> bool:
    """Whether members are weighed by how widely rows vary: there are several, and a box."""
    return plan.samples.domain.bounded and plan.estimator != "u" and len(plan.spreads) > 1


def pooled(plan: MMDPlan, pairs: tuple[Floats, Floats] | None) -> PooledVariances | None:
    """How widely the rows of both groups together vary, in the features of each member."""
    if pairs is None:
        return None
    persons = 2 if plan.adjacency == "both" else 1
    return pooled_variances(
        pairs,
        plan.kernels,
        plan.others,
        plan.samples.domain,
        replaced=persons * plan.samples.rows_per_person,
    )


def declared(plan: MMDPlan) -> list[PermutationSensitivity]:
    """How far the statistic of each member moves between neighbours, but for rounding."""
    n, m = plan.sizes
    if plan.adjacency == "row":
        own = pair_swaps_sensitivity if plan.swap else private_groups_sensitivity
        bounds = [own(spread, n + m) for spread in plan.spreads]
    else:
        bound = mmd_u_sensitivity if plan.estimator == "u" else mmd_sensitivity
        bounds = [bound(spread, n, m, plan.adjacency) for spread in plan.spreads]
    return [sensitivity * plan.samples.rows_per_person for sensitivity in bounds]


def public_facts(plan: MMDPlan, n_permutations: int) -> dict[str, Any]:
    """Return what a result says besides its answer; never which member was the largest."""
    return {
        "adjacency": plan.adjacency,
        "method_id": "mmd_test/kernel" if plan.family == ("kernel",) else "mmd_test/largest",
        "method": _name(plan),
        "null_hypothesis": NULL_HYPOTHESIS,
        "sizes": shown_sizes(plan.samples, plan.adjacency),
        "parameters": {"statistics": plan.family}
        | (
            {
                "kernel": plan.kernels[0].family,
                "bandwidths": tuple(kernel.bandwidth for kernel in plan.kernels),
                "estimator": plan.estimator,
                "computation": plan.method,
            }
            if plan.kernels
            else {}
        )
        | {"n_permutations": n_permutations}
        | ({"relabel": "swap" if plan.swap else "permute"} if plan.adjacency == "row" else {}),
        "rows_per_person": plan.samples.rows_per_person,
    }


def _name(plan: MMDPlan) -> str:
    if plan.family == ("kernel",):
        return f"two-sample MMD test ({plan.kernels[0].family} kernel)"
    return "two-sample test by the largest of " + ", ".join(plan.family)


# The test of three samples or more: HSIC of the values and a label of the group.


def _k_samples(
    data: tuple[Any, ...],
    layout: SampleLayout,
    kernel: KernelFamily,
    bandwidths: float | Sequence[float] | None,
    query: DependenceQuery,
    noise: NoiseSource,
    rng: np.random.Generator,
    **shared: Any,
) -> Decision:
    """Test whether three samples or more have the same distribution.

    Notes
    -----
    **Sensitivity** That of HSIC, of the values and a label with k public categories: one record
    is replaced, values and group together. A replacement within the group is a special case.

    **Privacy** That of the independence test: p-value or decision, at (epsilon, delta).
    """
    samples, bounds = layout.read(data)
    groups = encode_several(samples, bounds, adjacency=layout.adjacency)
    sizes = list(map(len, groups))
    if layout.adjacency == "one" and min(sizes) < 2:
        raise DataError("each sample must have at least 2 rows.")
    if sum(sizes) < 4:
        raise DataError("the groups must have at least 4 rows together.")
    rows, schema = _stacked(groups)
    labels = Schema(
        {"group": CategoricalColumn(tuple(range(len(groups))))}, groups[0].rows_per_person
    )
    sides = encode_pairs(rows, {"group": np.repeat(np.arange(len(groups)), sizes)}, schema, labels)
    kernels = (
        kernel_grid(kernel, bandwidths, sides.x.domain),
        kernel_grid("gaussian", None, sides.y.domain),
    )
    plan = make_dependence_plan(sides, kernels, query)
    facts = {
        "adjacency": layout.adjacency,
        "method_id": "mmd_test/several",
        "method": f"{len(groups)}-sample MMD test",
        "null_hypothesis": "all samples come from the same distribution",
        "sizes": {"N": sum(sizes)}
        if layout.adjacency == "row"
        else {f"n{place}": size for place, size in enumerate(sizes, start=1)},
        "parameters": plan.parameters,
        "rows_per_person": sides.x.rows_per_person,
    }
    statistics = compute_dependence(plan, rng, noise)
    return dependence_result(plan, statistics, query.release, noise=noise, facts=facts, **shared)


def _stacked(groups: Sequence[Sample]) -> tuple[Any, Schema | None]:
    """Return encoded rows below one another, and what is publicly known of them.

    They are already in [0, 1], or codes: encoding them once more changes nothing.
    """
    rows, schema = np.vstack([group.rows for group in groups]), groups[0].schema
    if schema is None:
        return rows, None
    columns: dict[str, Column] = {
        name: CategoricalColumn(tuple(range(levels))) if levels else NumericColumn(0.0, 1.0)
        for name, levels in zip(schema.columns, schema.domain.levels, strict=True)
    }
    table = {name: rows[:, place] for place, name in enumerate(columns)}
    for name in Schema(columns).categorical_names:
        table[name] = table[name].astype(np.intp)
    return table, Schema(columns, schema.rows_per_person)


# The kernel two-sample test, by the maximum mean discrepancy.


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
    method: Computation
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
    release: Offered[Release] = "pvalue",
    adjacency: Adjacency | None = None,
    relabel: Relabel = "auto",
    bounds: Any = None,
    kernel: Offered[KernelFamily] = "gaussian",
    bandwidths: Offered[float | Sequence[float] | None] = None,
    statistics: Offered[Statistic | Sequence[Statistic] | None] = None,
    estimator: Offered[Literal["v", "u"]] = "v",
    method: Annotated[Computation, Option("computation")] = "auto",
    n_permutations: Annotated[int, Option("permutations")] = 999,
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
        Further samples. Three or more are tested by HSIC of the values and the group:
        ``statistics`` are those of :func:`privatest.hsic_test`, "both" and "fourier" do not apply.
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
    one_of("method", method, COMPUTATIONS)
    if adjacency == "row" and estimator == "u":
        raise ParameterError("adjacency='row' needs estimator='v'.")
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    if bin_size is not None:
        bin_size = integer_at_least("bin_size", bin_size, 1)
        if adjacency == "row":
            raise ParameterError("bin_size cannot be used with adjacency='row'.")
    if layout.count > 2:
        if adjacency == "both":
            raise ParameterError("adjacency must be 'one' or 'row' for three samples or more.")
        if method == "fourier":
            raise ParameterError("method='fourier' is for two samples.")
        for name, option in (("relabel", relabel), ("bin_size", bin_size)):
            if option not in (None, "auto"):
                raise ParameterError(f"{name} is for two samples.")
        query = DependenceQuery(
            statistics,
            estimator,
            method,
            "auto",
            n_permutations,
            default_bandwidths=bandwidths is None,
            release=release,
            alpha=alpha,
            epsilon=budget.pure_epsilon,
        )
        return _k_samples(
            (x, y, *others),
            layout,
            kernel,
            bandwidths,
            query,
            noise_source(noise),
            public_generator(rng),
            budget=budget,
            alpha=alpha,
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
    (values, errors), pairs = _statistics(plan, n_permutations, generator, source)
    maxima, sensitivity = strongest(
        values,
        pooled(plan, pairs),
        [bound.widened(float(error)) for bound, error in zip(declared(plan), errors, strict=True)],
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


def _statistics(
    plan: MMDPlan, n_permutations: int, rng: np.random.Generator, noise: NoiseSource
) -> tuple[Statistics, tuple[Floats, Floats] | None]:
    """Return the permuted statistics of each member, and secret pairs of rows if needed."""
    if _streams(plan, noise):
        assert plan.maps is not None  # a family has a member
        relabelling = _two_sample_relabelling(plan, n_permutations, rng)
        return streamed_features(
            relabelling, plan.samples, plan.maps, noise, pairs=needs_pairs(plan)
        )
    x, y = plan.samples.x.rows, plan.samples.y.rows
    compute = _private_groups if plan.adjacency == "row" else _public_groups
    statistics = compute(plan, x, y, n_permutations, rng, noise)
    return statistics, secret_pairs(x, y, noise) if needs_pairs(plan) else None


def _streams(plan: MMDPlan, noise: NoiseSource) -> bool:
    """Whether features are summed as rows are read, each sample by itself."""
    # blocks of a private group follow from its size: where time must not tell, held rows are mixed
    told = noise.constant_time and isinstance(plan.samples.x.held, np.ndarray)
    return not plan.exact and (plan.adjacency != "row" or (plan.swap and not told))


def _two_sample_relabelling(
    plan: MMDPlan, n_permutations: int, rng: np.random.Generator
) -> PairSwaps | BinPermutation:
    """Draw how labels are swapped, or bins of public groups permuted."""
    n, m = plan.sizes
    if plan.adjacency == "row":
        return pair_swaps(n + m, n_permutations, rng)
    return bin_layout(n, m, plan.bin_size, plan.max_bins).permute(n_permutations, rng)


def _public_groups(
    plan: MMDPlan,
    x: Floats,
    y: Floats,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> Statistics:
    """Look at all pairs of rows: the exact kernel needs them."""
    layout = bin_layout(len(x), len(y), plan.bin_size, plan.max_bins)
    rows = layout.arrange(
        x,
        y,
        noise.permutation(len(x)),
        noise.permutation(len(y)),
    )
    permutation, domain = layout.permute(n_permutations, rng), plan.samples.domain
    if plan.estimator == "u":
        return permuted_mmd_u(permutation, rows, plan.exact, domain)
    exact = permuted_mmd(permutation, rows, None, plan.exact, domain)
    if plan.maps is None:
        return exact
    return stack_statistics(exact, permuted_features(permutation, rows, None, plan.maps))


def _private_groups(
    plan: MMDPlan,
    x: Floats,
    y: Floats,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> Statistics:
    rows, labels = labelled_rows(x, y, noise)
    if not plan.exact:
        assert plan.maps is not None  # a family has a member
        draw = pair_swaps if plan.swap else block_permutation
        return permuted_features(draw(len(rows), n_permutations, rng), rows, labels, plan.maps)
    relabelling = (pair_swaps if plan.swap else label_permutation)(len(rows), n_permutations, rng)
    exact = permuted_mmd(relabelling, rows, labels, plan.exact, plan.samples.domain)
    if plan.maps is None:
        return exact
    return stack_statistics(exact, permuted_features(relabelling, rows, labels, plan.maps))


speaking_features = distinguishing_features  # its former name


DESCRIPTORS = (
    Method(
        name="mmd",
        question="two-sample",
        function=mmd_test,
        about="whole distributions, by kernels and more",
        sentence=(
            "We compared whole distributions by the largest of several statistics, among them "
            f"the maximum mean discrepancy with several bandwidths, {SMOOTHED}"
        ),
        papers=("kim2023", "gretton2012"),
    ),
)
