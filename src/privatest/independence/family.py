"""The family of statistics that an independence test takes the maximum over.

Chosen by public facts alone: columns, bounds and what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import PermutationSensitivity
from privatest.data.domain import Domain
from privatest.data.samples import TwoSamples
from privatest.kernels.additive import additive, additive_moments
from privatest.kernels.features import nystrom, resolved
from privatest.kernels.kernels import Kernel
from privatest.kernels.shared import Basis, SharedFeatures, stacked, tabulated
from privatest.statistics.dependence import (
    covariance_moments,
    covariance_sensitivity,
    indicators,
    largest,
    values,
)
from privatest.statistics.hsic import hsic_sensitivity, hsic_u_sensitivity, permuted_hsic_exact
from privatest.statistics.hsic_features import (
    block_shuffles,
    permuted_covariances,
    permuted_hsic_features,
    summation_error,
)
from privatest.statistics.kernel_moments import null_moments
from privatest.statistics.portfolio import STATISTICS, check_bandwidths, named_statistics

__all__ = ["METHODS", "Method", "Plan", "Statistics", "compute", "count_pairs", "make_plan"]

Method = Literal["auto", "exact", "nystrom"]
METHODS = ("auto", "exact", "nystrom")
NAMES = tuple(name for name in STATISTICS if name != "pairwise")
_MAX_RANK = 24  # per kernel; more did not change power (benchmarks/power/hsic.py)
_MOST_PAIRS = 1 << 15  # of functions: sums of all pairs of blocks then take 256 MB

Kernels = tuple[tuple[Kernel, ...], tuple[Kernel, ...]]
Moments = tuple[NDArray[np.float64], NDArray[np.float64]]
FUNCTIONS: dict[str, Callable[[NDArray[np.float64], Domain], NDArray[np.float64]]] = {
    "kolmogorov": indicators,
    "mean": values,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before looking at the data, and the data."""

    sides: TwoSamples
    kernels: Kernels
    exact: bool
    names: tuple[str, ...]
    estimator: Literal["v", "u"]
    n_permutations: int

    @property
    def domains(self) -> tuple[Domain, Domain]:
        """The public domains of both sides."""
        return self.sides[0].domain, self.sides[1].domain


@dataclass(frozen=True, slots=True)
class Statistics:
    """Values (statistics × permutations), how far each moves, and null moments if known."""

    values: NDArray[np.float64]
    sensitivities: list[PermutationSensitivity]
    null: Moments | None


def make_plan(
    sides: TwoSamples,
    kernels: Kernels,
    asked: str | Sequence[str] | None,
    *,
    estimator: Literal["v", "u"],
    method: Method,
    n_permutations: int,
    default_bandwidths: bool,
) -> Plan:
    """Decide how to compute, and which statistics."""
    bounded = all(side.domain.bounded for side in sides)
    if method == "nystrom" and not bounded:
        raise ParameterError("method='nystrom' needs bounds on both sides for its public points.")
    if method == "nystrom" and estimator == "u":
        raise ParameterError("estimator='u' needs method='exact': features have no diagonal.")
    exact = method == "exact" or estimator == "u" or not bounded
    if not exact:
        first, second = (
            _side_features(grid, side.domain)[0] for side, grid in zip(sides, kernels, strict=True)
        )
        kernels = (first, second)
    names = _names(
        (sides[0].domain, sides[1].domain), asked, exact=exact, alone=not default_bandwidths
    )
    if not default_bandwidths:
        check_bandwidths(names)
    return Plan(sides, kernels, exact, names, estimator, n_permutations)


def _names(
    domains: tuple[Domain, Domain],
    asked: str | Sequence[str] | None,
    *,
    exact: bool,
    alone: bool,
) -> tuple[str, ...]:
    """Names of the family's members, in the order of NAMES."""
    if asked is not None:
        names = named_statistics(asked, NAMES)
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
        return names
    if exact or alone:
        return ("kernel",)
    several = any(domain.dimension > 1 for domain in domains)
    return tuple(
        name
        for name in NAMES
        if name == "kernel"
        or ((name != "additive" or several) and 0 < _pairs(name, domains) <= _MOST_PAIRS)
    )


def _functions(name: str, domain: Domain) -> Basis:
    return lambda rows: FUNCTIONS[name](rows, domain)


def _pairs(name: str, domains: tuple[Domain, Domain]) -> int:
    """Count the pairs of functions that a statistic takes covariances of."""
    widths = [
        additive("gaussian", domain).width
        if name == "additive"
        else FUNCTIONS[name](np.zeros((0, domain.dimension)), domain).shape[1]
        for domain in domains
    ]
    return int(widths[0] * widths[1])


def count_pairs(
    domains: tuple[Domain, Domain], asked: str | Sequence[str] | None, *, exact: bool, alone: bool
) -> int:
    """Count the pairs of functions of all members but kernels, which have their own."""
    names = _names(domains, asked, exact=exact, alone=alone)
    return sum(_pairs(name, domains) for name in names if name != "kernel")


@lru_cache(maxsize=32)
def _side_features(
    kernels: tuple[Kernel, ...], domain: Domain
) -> tuple[tuple[Kernel, ...], SharedFeatures]:
    """Return the kernels that public points resolve, and their features."""
    landmarks = domain.landmarks()
    kept = resolved(kernels, landmarks, domain)
    table = tabulated(kept, domain, max_rank=_MAX_RANK)
    return kept, table or stacked(nystrom(kept, landmarks, domain, max_rank=_MAX_RANK))


def compute(plan: Plan, rng: np.random.Generator, noise: NoiseSource) -> Statistics:
    """Compute every member of the family for the same permutations."""
    left, right = plan.sides
    order = noise.permutation(len(left.rows))  # secret; partners stay together
    x, y = left.rows[order], right.rows[order]
    if plan.exact:
        return _exact(plan, x, y, rng)
    shuffles = block_shuffles(len(x), plan.n_permutations, rng)
    parts = [_member(name, plan, x, y, shuffles) for name in plan.names]
    nulls = [part.null for part in parts if part.null is not None]
    return Statistics(
        np.vstack([part.values for part in parts]),
        [bound for part in parts for bound in part.sensitivities],
        (
            np.concatenate([means for means, _ in nulls]),
            np.concatenate([deviations for _, deviations in nulls]),
        ),
    )


def _member(
    name: str,
    plan: Plan,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    shuffles: NDArray[np.intp],
) -> Statistics:
    n, persons = len(x), plan.sides[0].rows_per_person
    if name in FUNCTIONS:
        first, second = (_functions(name, domain) for domain in plan.domains)
        found = permuted_covariances(x, y, (first, second), shuffles, largest)
        bound = covariance_sensitivity(n) * persons
        error = summation_error(n, shuffles.shape[1], 0)
        mean, deviation = np.array(covariance_moments(name, plan.domains)) / np.sqrt(n)
        return Statistics(found, [bound.widened(error)], (np.array([mean]), np.array([deviation])))
    if name == "additive":
        families = plan.kernels[0][0].family, plan.kernels[1][0].family
        sides = list(zip(families, plan.domains, strict=True))
        features = [additive(*side) for side in sides]
        moments = [additive_moments(*side) for side in sides]
    else:
        pairs = list(zip(plan.kernels, plan.domains, strict=True))
        features = [_side_features(*pair)[1] for pair in pairs]
        moments = [null_moments(*pair) for pair in pairs]
    found, errors = permuted_hsic_features(x, y, (features[0], features[1]), shuffles)
    bounds = [
        (hsic_sensitivity(a, b, n) * persons).widened(float(error))
        for (a, b), error in zip(
            ((a, b) for a in features[0].spreads for b in features[1].spreads), errors, strict=True
        )
    ]
    return Statistics(found, bounds, _hsic_null(np.array(moments[0]), np.array(moments[1]), n, "v"))


def _exact(
    plan: Plan, x: NDArray[np.float64], y: NDArray[np.float64], rng: np.random.Generator
) -> Statistics:
    n, persons = len(x), plan.sides[0].rows_per_person
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
    first: NDArray[np.float64],
    second: NDArray[np.float64],
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
