"""What an independence test decides before it looks at the data.

Chosen by public facts alone: columns, bounds, sizes, epsilon and what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome, declare_level
from privatest.core.secret_order import secret_order
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.encoding import TwoSamples, beside, encode_pairs
from privatest.data.schema import Domain
from privatest.data.summaries import in_secret_order
from privatest.mechanisms.permutation import (
    RELEASES,
    LevelShare,
    NullLaw,
    Release,
    permutation_result,
    shared_result,
    strongest,
    two_sided_result,
)
from privatest.methods.descriptor import SMOOTHED, Method, Offered, Option
from privatest.numerics.dependence import (
    Bases,
    Functions,
    Products,
    block_shuffles,
    covariance_moments,
    covariance_sensitivity,
    cross_sums,
    feature_bases,
    hsic_sensitivity,
    hsic_u_sensitivity,
    indicators,
    largest,
    null_moments,
    pair_signs,
    permuted_hsic_exact,
    permuted_hsic_features,
    signed_covariance_sensitivity,
    swapped_covariance_sensitivity,
    swapped_hsic_sensitivity,
    trends,
    values,
)
from privatest.numerics.features import (
    SharedFeatures,
    additive,
    additive_moments,
    nystrom,
    resolved,
    stacked,
    tabulated,
)
from privatest.numerics.kernels import Kernel, KernelFamily, kernel_grid
from privatest.numerics.portfolio import STATISTICS, check_bandwidths, named_statistics

Computation = Literal["auto", "exact", "nystrom"]
COMPUTATIONS = ("auto", "exact", "nystrom")
Shuffle = Literal["auto", "permute", "swap"]
SHUFFLES = ("auto", "permute", "swap")
TREND = "trend"
NAMES: tuple[str, ...] = (*(name for name in STATISTICS if name != "pairwise"), TREND)
_MAX_RANK = 24  # per kernel; more did not change power (benchmarks/power/hsic.py)
_MOST_PAIRS = 1 << 15  # of functions: sums of all pairs of blocks then take 256 MB
_TREND_SHARE = Fraction(1, 4)  # of the level, if other statistics take part
# A trend looks at the middle of the bounds, the less of it the more noise there is: the widest
# for which n epsilon² is above (benchmarks/power/independence.py).
_TREND_WIDTHS = {1e4: 0.5, 1e3: 0.375, 1e2: 0.25, 0.0: 0.125}
# Swaps have less noise, permutations a smaller statistic under the null hypothesis: their power
# is the same near this n epsilon² (benchmarks/power/independence.py).
_EQUAL_POWER: dict[Release, float] = {"decision": 190.0, "pvalue": 240.0}

Kernels = tuple[tuple[Kernel, ...], tuple[Kernel, ...]]
# "mean": columns as they are, and clipped to the middle of their bounds, each a statistic
FUNCTIONS: dict[str, tuple[Functions, ...]] = {
    "kolmogorov": (indicators,),
    "mean": (values, *(partial(values, width=width) for width in (0.5, 0.25, 0.125))),
    TREND: (partial(trends, width=0.5),),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller asks for: statistics, how they are computed, and what is released."""

    statistics: str | Sequence[str] | None
    estimator: Literal["v", "u"]
    method: Computation
    shuffle: Shuffle
    n_permutations: int
    default_bandwidths: bool
    release: Release
    alpha: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before looking at the data, and the data."""

    sides: TwoSamples
    kernels: Kernels
    exact: bool
    names: tuple[str, ...]
    estimator: Literal["v", "u"]
    n_permutations: int
    swap: bool
    trend_width: float

    @property
    def domains(self) -> tuple[Domain, Domain]:
        """The public domains of both sides."""
        return self.sides[0].domain, self.sides[1].domain

    @property
    def family(self) -> tuple[str, ...]:
        """The statistics that the maximum is taken over."""
        return tuple(name for name in self.names if name != TREND)

    @property
    def trend_share(self) -> Fraction:
        """Share of the level that goes to a trend."""
        if TREND not in self.names:
            return Fraction(0)
        return _TREND_SHARE if self.family else Fraction(1)


def make_plan(sides: TwoSamples, kernels: Kernels, asked: Asked) -> Plan:
    """Decide how to compute, and which statistics."""
    bounded = all(side.domain.bounded for side in sides)
    if asked.method == "nystrom" and not bounded:
        raise ParameterError("method='nystrom' needs bounds on both sides for its public points.")
    if asked.method == "nystrom" and asked.estimator == "u":
        raise ParameterError("estimator='u' needs method='exact': features have no diagonal.")
    exact = asked.method == "exact" or asked.estimator == "u" or not bounded
    if not exact:
        first, second = (
            side_features(grid, side.domain)[0] for side, grid in zip(sides, kernels, strict=True)
        )
        kernels = (first, second)
    domains = sides[0].domain, sides[1].domain
    names = chosen_names(domains, asked, exact=exact)
    if not asked.default_bandwidths:
        check_bandwidths(names)
    strength = len(sides[0]) * (asked.epsilon / sides.rows_per_person) ** 2
    width = next(width for least, width in _TREND_WIDTHS.items() if strength >= least)
    swap = asked.shuffle == "swap"
    if asked.shuffle == "auto":
        swap = not exact and strength < _EQUAL_POWER[asked.release]
    if exact and swap:
        raise ParameterError(
            "shuffle='swap' needs bounds on both sides, estimator='v' and method='auto'."
        )
    estimator, count = asked.estimator, asked.n_permutations
    return Plan(sides, kernels, exact, names, estimator, count, swap, width)


def chosen_names(domains: tuple[Domain, Domain], asked: Asked, *, exact: bool) -> tuple[str, ...]:
    """Names of the statistics, in the order of NAMES."""
    if asked.statistics is not None:
        return _checked(named_statistics(asked.statistics, NAMES), domains, asked, exact=exact)
    if exact or not asked.default_bandwidths:
        return ("kernel",)
    several = any(domain.dimension > 1 for domain in domains)
    left_out = set() if several else {"additive"}
    if asked.release == "pvalue" or not _trend_counts(domains, asked):
        left_out.add(TREND)
    return tuple(
        name
        for name in NAMES
        if name == "kernel" or (name not in left_out and 0 < _pairs(name, domains) <= _MOST_PAIRS)
    )


def _trend_counts(domains: tuple[Domain, Domain], asked: Asked) -> bool:
    """Whether permutations are enough for each sign's share of the level, with room to spare."""
    signs = 2 * _pairs(TREND, domains)
    return _TREND_SHARE * asked.alpha * (asked.n_permutations + 1) >= 2 * signs


def _checked(
    names: tuple[str, ...], domains: tuple[Domain, Domain], asked: Asked, *, exact: bool
) -> tuple[str, ...]:
    """Refuse names that these columns, or this way of computing, have no statistics for."""
    if exact and names != ("kernel",):
        raise ParameterError(
            "statistics other than 'kernel' need bounds on both sides, estimator='v' and "
            "method='auto'."
        )
    for name in names:
        if name != "kernel" and not 0 < _pairs(name, domains) <= _MOST_PAIRS:
            raise ParameterError(
                f"statistics={name!r} needs, on each side, a numeric column or one with at "
                "most 24 categories, and not too many columns; leave it out."
            )
    alone = names == (TREND,) and _pairs(TREND, domains) == 1
    if TREND in names and asked.release == "pvalue" and not alone:
        raise ParameterError(
            "statistics='trend' has a p-value only by itself, and for one column a side that is a "
            "number or has two categories; ask for release='decision'."
        )
    if names == (TREND,) and asked.shuffle == "swap":
        raise ParameterError("shuffle='swap' does not apply to statistics='trend'; leave it out.")
    return names


def _pairs(name: str, domains: tuple[Domain, Domain]) -> int:
    """Count the pairs of functions that a statistic takes covariances of."""
    if name == "additive":
        return int(np.prod([additive("gaussian", domain).width for domain in domains]))
    return sum(
        int(np.prod([make(np.zeros((0, own.dimension)), own).shape[1] for own in domains]))
        for make in FUNCTIONS[name]
    )


def count_pairs(
    domains: tuple[Domain, Domain],
    statistics: str | Sequence[str] | None,
    *,
    exact: bool,
    alone: bool,
) -> int:
    """Count the pairs of functions of all statistics but kernels, which have their own."""
    asked = Asked(
        statistics, "v", "auto", "auto", 999, not alone, release="decision", alpha=0.05, epsilon=1.0
    )
    names = chosen_names(domains, asked, exact=exact)
    return sum(_pairs(name, domains) for name in names if name != "kernel")


@lru_cache(maxsize=32)
def side_features(
    kernels: tuple[Kernel, ...], domain: Domain
) -> tuple[tuple[Kernel, ...], SharedFeatures]:
    """Return the kernels that public points resolve, and their features."""
    landmarks = domain.landmarks()
    kept = resolved(kernels, landmarks, domain)
    table = tabulated(kept, domain, max_rank=_MAX_RANK)
    return kept, table or stacked(nystrom(kept, landmarks, domain, max_rank=_MAX_RANK))


# The family of statistics that an independence test takes the maximum over, and trends.


Matrix = NDArray[np.float64]
Moments = tuple[Matrix, Matrix]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Values (statistics × permutations), how far each moves, and null moments if known."""

    values: Matrix
    sensitivities: list[PermutationSensitivity]
    null: Moments | None

    @property
    def law(self) -> NullLaw | None:
        """The null moments, as a maximum takes them."""
        return None if self.null is None else NullLaw(*self.null)


@dataclass(frozen=True, slots=True)
class Found:
    """Statistics for the maximum, and signed covariances with the sensitivity of each."""

    family: Statistics | None
    trends: tuple[Matrix, PermutationSensitivity] | None


@dataclass(frozen=True, slots=True)
class _Member:
    """A statistic, or several: what is summed for it, and what is made of the sums."""

    bases: Bases
    finish: Callable[[Products], Statistics]


def compute(plan: Plan, rng: np.random.Generator, noise: NoiseSource) -> Found:
    """Compute every statistic, those of the family for the same permutations."""
    if plan.exact:
        order = secret_order(len(plan.sides.x), noise)  # partners stay together
        x, y = (side.rows[order] for side in plan.sides)
        return Found(_exact(plan, x, y, rng), None)
    n, split = len(plan.sides.x), plan.sides.x.width
    draws = (pair_signs if plan.swap else block_shuffles)(n, plan.n_permutations, rng)
    blocks = None if plan.swap else draws.shape[1]
    members = [member for name in plan.family for member in _members(name, plan, draws)]
    asked: list[tuple[Bases, int | None]] = [(member.bases, blocks) for member in members]
    shuffles = None
    if plan.trend_share:
        # permuted in any case: a trend looks at differences, which swaps do not make smaller
        shuffles = block_shuffles(n, plan.n_permutations, rng)
        asked.append((_bases(partial(trends, width=plan.trend_width), plan), shuffles.shape[1]))
    sums = cross_sums(in_secret_order(beside(*plan.sides), noise), split, asked)
    # sums of the next pass replace those of the one before
    parts = [member.finish(next(sums)) for member in members]
    found = None if shuffles is None else _trends(plan, next(sums), shuffles)
    return Found(_joined(parts) if parts else None, found)


def _joined(parts: list[Statistics]) -> Statistics:
    """Put statistics one below the other."""
    nulls = [part.null for part in parts if part.null is not None]
    return Statistics(
        np.vstack([part.values for part in parts]),
        [bound for part in parts for bound in part.sensitivities],
        (
            np.concatenate([means for means, _ in nulls]),
            np.concatenate([deviations for _, deviations in nulls]),
        ),
    )


def _trends(
    plan: Plan, products: Products, shuffles: NDArray[np.intp]
) -> tuple[Matrix, PermutationSensitivity]:
    """Signed covariances (pairs of functions × permutations)."""
    found = products.reduced(shuffles, _flat)
    bound = signed_covariance_sensitivity(len(plan.sides.x)) * plan.sides.rows_per_person
    return found, bound.widened(products.rounding() + products.fixed)


def _flat(sums: Matrix) -> Matrix:
    return sums.reshape(len(sums), -1)


@dataclass(frozen=True, slots=True)
class _On:
    """Functions of the rows of one side; it travels to other processes."""

    make: Functions
    domain: Domain

    def __call__(self, rows: Matrix) -> Matrix:
        return self.make(rows, self.domain)


def _bases(make: Functions, plan: Plan) -> Bases:
    """Functions with values in [0, 1] of both sides."""
    left, right = (_On(make, domain) for domain in plan.domains)
    widths = [make(np.zeros((0, own.dimension)), own).shape[1] for own in plan.domains]
    return Bases(left, right, (widths[0], widths[1]))


def _members(name: str, plan: Plan, draws: NDArray[Any]) -> Iterator[_Member]:
    if name in FUNCTIONS:
        for make in FUNCTIONS[name]:
            yield _Member(_bases(make, plan), partial(_largest, plan, draws, make))
        return
    if name == "additive":
        families = plan.kernels[0][0].family, plan.kernels[1][0].family
        sides = list(zip(families, plan.domains, strict=True))
        features = [additive(*side) for side in sides]
        moments = [additive_moments(*side) for side in sides]
    else:
        pairs = list(zip(plan.kernels, plan.domains, strict=True))
        features = [side_features(*pair)[1] for pair in pairs]
        moments = [null_moments(*pair) for pair in pairs]
    null = _hsic_null(np.array(moments[0]), np.array(moments[1]), len(plan.sides.x), "v")
    both = features[0], features[1]
    yield _Member(feature_bases(both), partial(_hsic, plan, draws, both, null))


def _largest(plan: Plan, draws: NDArray[Any], make: Functions, products: Products) -> Statistics:
    """Return the largest covariance of functions."""
    n = len(plan.sides.x)
    sensitivity = swapped_covariance_sensitivity if plan.swap else covariance_sensitivity
    error = products.rounding() + products.fixed
    mean, deviation = np.array(covariance_moments(make, plan.domains)) / np.sqrt(n)
    return Statistics(
        products.reduced(draws, largest),
        [(sensitivity(n) * plan.sides.rows_per_person).widened(error)],
        _null(plan, np.array([mean]), np.array([deviation])),
    )


def _hsic(
    plan: Plan,
    draws: NDArray[Any],
    features: tuple[SharedFeatures, SharedFeatures],
    null: Moments,
    products: Products,
) -> Statistics:
    """HSIC of every pair of kernels."""
    n, persons = len(plan.sides.x), plan.sides.rows_per_person
    found, errors = permuted_hsic_features(products, features, draws)
    sensitivity = swapped_hsic_sensitivity if plan.swap else hsic_sensitivity
    bounds = [
        (sensitivity(a, b, n) * persons).widened(float(error))
        for (a, b), error in zip(
            ((a, b) for a in features[0].spreads for b in features[1].spreads), errors, strict=True
        )
    ]
    return Statistics(found, bounds, _null(plan, *null))


def _null(plan: Plan, means: Matrix, deviations: Matrix) -> Moments:
    """Moments of statistics, given those if all rows are permuted."""
    factor = np.sqrt(2) if plan.swap else 1.0
    return means * factor, deviations * factor


def _exact(plan: Plan, x: Matrix, y: Matrix, rng: np.random.Generator) -> Statistics:
    n, persons = len(x), plan.sides.rows_per_person
    shuffles = np.tile(np.arange(n), (plan.n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    unbiased = plan.estimator == "u"
    found, errors = permuted_hsic_exact(
        x, y, plan.kernels, plan.domains, shuffles, unbiased=unbiased
    )
    spreads = [
        [kernel.spread(domain) for kernel in grid]
        for grid, domain in zip(plan.kernels, plan.domains, strict=True)
    ]
    sensitivity = hsic_u_sensitivity if unbiased else hsic_sensitivity
    bounds = [sensitivity(a, b, n) * persons for a in spreads[0] for b in spreads[1]]
    widened = [bound.widened(float(error)) for bound, error in zip(bounds, errors, strict=True)]
    if not all(domain.bounded for domain in plan.domains):
        return Statistics(found, widened, None)
    first, second = (
        np.array(null_moments(grid, domain))
        for grid, domain in zip(plan.kernels, plan.domains, strict=True)
    )
    return Statistics(found, widened, _hsic_null(first, second, n, plan.estimator))


def _hsic_null(
    first: Matrix,
    second: Matrix,
    n: int,
    estimator: Literal["v", "u"],
) -> Moments:
    """Mean and standard deviation of each pair's statistic if both sides were uniform."""
    squares = np.outer(first[:, 1], second[:, 1]).ravel()
    if estimator == "u":
        return np.zeros(len(squares)), np.sqrt(2 * squares) / n
    means = np.sqrt(np.outer(first[:, 0], second[:, 0]).ravel() / n)
    # a kernel that rounds to 1 everywhere has neither
    return means, np.sqrt(squares / 2) / (n * np.where(means > 0, means, np.inf))


# Are two sides of the same rows independent?


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
    asked = Asked(
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
    plan = make_plan(sides, kernels, asked)
    found = compute(plan, generator, source)
    shared = {"budget": budget, "alpha": alpha, "noise": source, "facts": _facts(plan)}
    return _result(plan, found, release, **shared)


def _result(plan: Plan, found: Found, release: Release, **shared: Any) -> Decision:
    """Weigh the statistics and release what was asked for."""
    tests = []
    if found.family is not None:
        maxima, sensitivity = strongest(
            found.family.values,
            None,
            found.family.sensitivities,
            found.family.law,
            rows=len(plan.sides[0]),
            epsilon=shared["budget"].pure_epsilon,
            release=release,
        )
        if found.trends is None:
            return permutation_result(maxima, sensitivity=sensitivity, release=release, **shared)
        tests.append(LevelShare(maxima, sensitivity, 1 - plan.trend_share))
    assert found.trends is not None
    covariances, bound = found.trends
    if release == "pvalue":
        return two_sided_result(covariances[0], sensitivity=bound, **shared)
    share = plan.trend_share / (2 * len(covariances))
    tests += [LevelShare(sign * own, bound, share) for own in covariances for sign in (1.0, -1.0)]
    return shared_result(tests, **shared)


def _facts(plan: Plan) -> dict[str, Any]:
    kernels: dict[str, Any] = {
        "kernel_x": plan.kernels[0][0].family,
        "kernel_y": plan.kernels[1][0].family,
        "bandwidths_x": tuple(kernel.bandwidth for kernel in plan.kernels[0]),
        "bandwidths_y": tuple(kernel.bandwidth for kernel in plan.kernels[1]),
        "estimator": plan.estimator,
        "computation": "exact" if plan.exact else "nystrom",
    }
    kind = "kernel" if plan.names == ("kernel",) else "largest" if plan.family else "trend"
    return {
        "adjacency": "one",
        "method_id": f"hsic_test/{kind}",
        "method": _name(plan),
        "null_hypothesis": "the two sides are independent",
        "sizes": {"n": len(plan.sides[0])},
        "parameters": {
            "statistics": plan.names,
            **(kernels if "kernel" in plan.names else {}),
            **({"shuffle": "swap" if plan.swap else "permute"} if plan.family else {}),
            "n_permutations": plan.n_permutations,
        },
        "rows_per_person": plan.sides[0].rows_per_person,
    }


def _name(plan: Plan) -> str:
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
