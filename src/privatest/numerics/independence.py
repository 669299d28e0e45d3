"""A family of independence statistics: what is computed, by public facts alone, and its values.

Independence tests, and tests of three samples or more (values against the group), take the maximum
over the family; a trend is tested by its sign beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import PermutationSensitivity
from privatest.core.secret_order import secret_order
from privatest.data.encoding import TwoSamples, beside
from privatest.data.schema import Domain
from privatest.data.summaries import in_secret_order
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
from privatest.numerics.kernels import Kernel
from privatest.numerics.portfolio import STATISTICS, check_bandwidths, named_statistics

Matrix = NDArray[np.float64]
Moments = tuple[Matrix, Matrix]
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
_EQUAL_POWER: dict[str, float] = {"decision": 190.0, "pvalue": 240.0}

Kernels = tuple[tuple[Kernel, ...], tuple[Kernel, ...]]
# "mean": columns as they are, and clipped to the middle of their bounds, each a statistic
FUNCTIONS: dict[str, tuple[Functions, ...]] = {
    "kolmogorov": (indicators,),
    "mean": (values, *(partial(values, width=width) for width in (0.5, 0.25, 0.125))),
    TREND: (partial(trends, width=0.5),),
}


@dataclass(frozen=True, slots=True)
class DependenceQuery:
    """What a caller asks for: statistics, how they are computed, and what is released."""

    statistics: str | Sequence[str] | None
    estimator: Literal["v", "u"]
    method: Computation
    shuffle: Shuffle
    n_permutations: int
    default_bandwidths: bool
    release: Literal["pvalue", "decision"]
    alpha: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class DependencePlan:
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

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters that a result shows."""
        kernels: dict[str, Any] = {
            "kernel_x": self.kernels[0][0].family,
            "kernel_y": self.kernels[1][0].family,
            "bandwidths_x": tuple(kernel.bandwidth for kernel in self.kernels[0]),
            "bandwidths_y": tuple(kernel.bandwidth for kernel in self.kernels[1]),
            "estimator": self.estimator,
            "computation": "exact" if self.exact else "nystrom",
        }
        return {
            "statistics": self.names,
            **(kernels if "kernel" in self.names else {}),
            **({"shuffle": "swap" if self.swap else "permute"} if self.family else {}),
            "n_permutations": self.n_permutations,
        }


def make_plan(sides: TwoSamples, kernels: Kernels, query: DependenceQuery) -> DependencePlan:
    """Decide how to compute, and which statistics."""
    bounded = all(side.domain.bounded for side in sides)
    if query.method == "nystrom" and not bounded:
        raise ParameterError("method='nystrom' needs bounds on both sides for its public points.")
    if query.method == "nystrom" and query.estimator == "u":
        raise ParameterError("estimator='u' needs method='exact': features have no diagonal.")
    exact = query.method == "exact" or query.estimator == "u" or not bounded
    if not exact:
        first, second = (
            side_features(grid, side.domain)[0] for side, grid in zip(sides, kernels, strict=True)
        )
        kernels = (first, second)
    domains = sides[0].domain, sides[1].domain
    names = chosen_names(domains, query, exact=exact)
    if not query.default_bandwidths:
        check_bandwidths(names)
    strength = len(sides[0]) * (query.epsilon / sides.rows_per_person) ** 2
    width = next(width for least, width in _TREND_WIDTHS.items() if strength >= least)
    swap = query.shuffle == "swap"
    if query.shuffle == "auto":
        swap = not exact and strength < _EQUAL_POWER[query.release]
    if exact and swap:
        raise ParameterError(
            "shuffle='swap' needs bounds on both sides, estimator='v' and method='auto'."
        )
    estimator, count = query.estimator, query.n_permutations
    return DependencePlan(sides, kernels, exact, names, estimator, count, swap, width)


def chosen_names(
    domains: tuple[Domain, Domain], query: DependenceQuery, *, exact: bool
) -> tuple[str, ...]:
    """Names of the statistics, in the order of NAMES."""
    if query.statistics is not None:
        return _checked(named_statistics(query.statistics, NAMES), domains, query, exact=exact)
    if exact or not query.default_bandwidths:
        return ("kernel",)
    several = any(domain.dimension > 1 for domain in domains)
    left_out = set() if several else {"additive"}
    if query.release == "pvalue" or not _trend_counts(domains, query):
        left_out.add(TREND)
    return tuple(
        name
        for name in NAMES
        if name == "kernel" or (name not in left_out and 0 < _pairs(name, domains) <= _MOST_PAIRS)
    )


def _trend_counts(domains: tuple[Domain, Domain], query: DependenceQuery) -> bool:
    """Whether permutations are enough for each sign's share of the level, with room to spare."""
    signs = 2 * _pairs(TREND, domains)
    return _TREND_SHARE * query.alpha * (query.n_permutations + 1) >= 2 * signs


def _checked(
    names: tuple[str, ...], domains: tuple[Domain, Domain], query: DependenceQuery, *, exact: bool
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
    if TREND in names and query.release == "pvalue" and not alone:
        raise ParameterError(
            "statistics='trend' has a p-value only by itself, and for one column a side that is a "
            "number or has two categories; ask for release='decision'."
        )
    if names == (TREND,) and query.shuffle == "swap":
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
    query = DependenceQuery(
        statistics, "v", "auto", "auto", 999, not alone, release="decision", alpha=0.05, epsilon=1.0
    )
    names = chosen_names(domains, query, exact=exact)
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


@dataclass(frozen=True, slots=True)
class FamilyStatistics:
    """Values (statistics × permutations), how far each moves, and null moments if known."""

    values: Matrix
    sensitivities: list[PermutationSensitivity]
    null: Moments | None


@dataclass(frozen=True, slots=True)
class DependenceStatistics:
    """FamilyStatistics for the maximum, and signed covariances with the sensitivity of each."""

    family: FamilyStatistics | None
    trends: tuple[Matrix, PermutationSensitivity] | None


@dataclass(frozen=True, slots=True)
class _Member:
    """A statistic, or several: what is summed for it, and what is made of the sums."""

    bases: Bases
    finish: Callable[[Products], FamilyStatistics]


def compute(
    plan: DependencePlan, rng: np.random.Generator, noise: NoiseSource
) -> DependenceStatistics:
    """Compute every statistic, those of the family for the same permutations."""
    if plan.exact:
        order = secret_order(len(plan.sides.x), noise)  # partners stay together
        x, y = (side.rows[order] for side in plan.sides)
        return DependenceStatistics(_exact(plan, x, y, rng), None)
    n, split = len(plan.sides.x), plan.sides.x.width
    draws = (pair_signs if plan.swap else block_shuffles)(n, plan.n_permutations, rng)
    blocks = None if plan.swap else draws.shape[1]
    members = [member for name in plan.family for member in _members(name, plan, draws)]
    requests: list[tuple[Bases, int | None]] = [(member.bases, blocks) for member in members]
    shuffles = None
    if plan.trend_share:
        # permuted in any case: a trend looks at differences, which swaps do not make smaller
        shuffles = block_shuffles(n, plan.n_permutations, rng)
        requests.append((_bases(partial(trends, width=plan.trend_width), plan), shuffles.shape[1]))
    sums = cross_sums(in_secret_order(beside(*plan.sides), noise), split, requests)
    # sums of the next pass replace those of the one before
    parts = [member.finish(next(sums)) for member in members]
    found = None if shuffles is None else _trends(plan, next(sums), shuffles)
    return DependenceStatistics(_joined(parts) if parts else None, found)


def _joined(parts: list[FamilyStatistics]) -> FamilyStatistics:
    """Put statistics one below the other."""
    nulls = [part.null for part in parts if part.null is not None]
    return FamilyStatistics(
        np.vstack([part.values for part in parts]),
        [bound for part in parts for bound in part.sensitivities],
        (
            np.concatenate([means for means, _ in nulls]),
            np.concatenate([deviations for _, deviations in nulls]),
        ),
    )


def _trends(
    plan: DependencePlan, products: Products, shuffles: NDArray[np.intp]
) -> tuple[Matrix, PermutationSensitivity]:
    """Signed covariances (pairs of functions × permutations)."""
    found = products.reduced(shuffles, _flat)
    bound = signed_covariance_sensitivity(len(plan.sides.x)) * plan.sides.rows_per_person
    return found, bound.widened(products.rounding() + products.fixed)


def _flat(sums: Matrix) -> Matrix:
    return sums.reshape(len(sums), -1)


@dataclass(frozen=True, slots=True)
class _Functions:
    """Functions of the rows of one side; it travels to other processes."""

    make: Functions
    domain: Domain

    def __call__(self, rows: Matrix) -> Matrix:
        return self.make(rows, self.domain)


def _bases(make: Functions, plan: DependencePlan) -> Bases:
    """Functions with values in [0, 1] of both sides."""
    left, right = (_Functions(make, domain) for domain in plan.domains)
    widths = [make(np.zeros((0, own.dimension)), own).shape[1] for own in plan.domains]
    return Bases(left, right, (widths[0], widths[1]))


def _members(name: str, plan: DependencePlan, draws: NDArray[Any]) -> Iterator[_Member]:
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


def _largest(
    plan: DependencePlan, draws: NDArray[Any], make: Functions, products: Products
) -> FamilyStatistics:
    """Return the largest covariance of functions."""
    n = len(plan.sides.x)
    sensitivity = swapped_covariance_sensitivity if plan.swap else covariance_sensitivity
    error = products.rounding() + products.fixed
    mean, deviation = np.array(covariance_moments(make, plan.domains)) / np.sqrt(n)
    return FamilyStatistics(
        products.reduced(draws, largest),
        [(sensitivity(n) * plan.sides.rows_per_person).widened(error)],
        _null(plan, np.array([mean]), np.array([deviation])),
    )


def _hsic(
    plan: DependencePlan,
    draws: NDArray[Any],
    features: tuple[SharedFeatures, SharedFeatures],
    null: Moments,
    products: Products,
) -> FamilyStatistics:
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
    return FamilyStatistics(found, bounds, _null(plan, *null))


def _null(plan: DependencePlan, means: Matrix, deviations: Matrix) -> Moments:
    """Moments of statistics, given those if all rows are permuted."""
    factor = np.sqrt(2) if plan.swap else 1.0
    return means * factor, deviations * factor


def _exact(
    plan: DependencePlan, x: Matrix, y: Matrix, rng: np.random.Generator
) -> FamilyStatistics:
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
        return FamilyStatistics(found, widened, None)
    first, second = (
        np.array(null_moments(grid, domain))
        for grid, domain in zip(plan.kernels, plan.domains, strict=True)
    )
    return FamilyStatistics(found, widened, _hsic_null(first, second, n, plan.estimator))


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
