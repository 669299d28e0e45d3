"""The family of statistics that an independence test takes the maximum over, and trends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import PermutationSensitivity
from privatest.data.domain import Domain
from privatest.independence.plan import FUNCTIONS, Plan, side_features
from privatest.kernels.additive import additive, additive_moments
from privatest.kernels.shared import Basis, SharedFeatures
from privatest.mechanisms.family import NullLaw
from privatest.statistics.dependence import (
    Functions,
    covariance_moments,
    covariance_sensitivity,
    largest,
    signed_covariance_sensitivity,
    trends,
)
from privatest.statistics.hsic import hsic_sensitivity, hsic_u_sensitivity, permuted_hsic_exact
from privatest.statistics.hsic_features import (
    Covariances,
    block_shuffles,
    permuted_covariances,
    permuted_hsic_features,
    summation_error,
)
from privatest.statistics.hsic_swaps import (
    pair_signs,
    swapped_covariance_sensitivity,
    swapped_covariances,
    swapped_hsic_sensitivity,
)
from privatest.statistics.kernel_moments import null_moments

__all__ = ["Found", "Statistics", "compute"]

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
class _Rearranged:
    """Rows in their secret order, and how y is rearranged against x."""

    plan: Plan
    x: Matrix
    y: Matrix
    draws: NDArray[Any]

    @classmethod
    def draw(cls, plan: Plan, x: Matrix, y: Matrix, rng: np.random.Generator) -> _Rearranged:
        make = pair_signs if plan.swap else block_shuffles
        return cls(plan, x, y, make(len(x), plan.n_permutations, rng))

    @property
    def covariances(self) -> Covariances:
        return swapped_covariances if self.plan.swap else permuted_covariances

    def null(self, means: Matrix, deviations: Matrix) -> Moments:
        """Moments of statistics, given those if all rows are permuted."""
        factor = np.sqrt(2) if self.plan.swap else 1.0
        return means * factor, deviations * factor


def compute(plan: Plan, rng: np.random.Generator, noise: NoiseSource) -> Found:
    """Compute every statistic, those of the family for the same permutations."""
    left, right = plan.sides
    order = noise.permutation(len(left))  # secret; partners stay together
    x, y = left.rows[order], right.rows[order]
    if plan.exact:
        return Found(_exact(plan, x, y, rng), None)
    rearranged = _Rearranged.draw(plan, x, y, rng)
    parts = [part for name in plan.family for part in _members(name, rearranged)]
    found = None
    if plan.trend_share:
        # permuted in any case: a trend looks at differences, which swaps do not make smaller
        found = _trends(plan, x, y, block_shuffles(len(x), plan.n_permutations, rng))
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
    plan: Plan, x: Matrix, y: Matrix, shuffles: NDArray[np.intp]
) -> tuple[Matrix, PermutationSensitivity]:
    """Signed covariances (pairs of functions × permutations)."""
    make = partial(trends, width=plan.trend_width)
    first, second = (_on(make, domain) for domain in plan.domains)
    found = permuted_covariances(
        x, y, (first, second), shuffles, lambda sums: sums.reshape(len(sums), -1)
    )
    bound = signed_covariance_sensitivity(len(x)) * plan.sides[0].rows_per_person
    return found, bound.widened(summation_error(len(x), shuffles.shape[1], 0))


def _on(make: Functions, domain: Domain) -> Basis:
    return lambda rows: make(rows, domain)


def _members(name: str, given: _Rearranged) -> Iterator[Statistics]:
    plan = given.plan
    if name in FUNCTIONS:
        for make in FUNCTIONS[name]:
            yield _largest(make, given)
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
    null = _hsic_null(np.array(moments[0]), np.array(moments[1]), len(given.x), "v")
    yield _hsic((features[0], features[1]), null, given)


def _largest(make: Functions, given: _Rearranged) -> Statistics:
    """Return the largest covariance of functions."""
    n, domains = len(given.x), given.plan.domains
    bases = _on(make, domains[0]), _on(make, domains[1])
    found = given.covariances(given.x, given.y, bases, given.draws, largest)
    sensitivity = swapped_covariance_sensitivity if given.plan.swap else covariance_sensitivity
    error = summation_error(n, given.draws.shape[1], 0)
    mean, deviation = np.array(covariance_moments(make, domains)) / np.sqrt(n)
    return Statistics(
        found,
        [(sensitivity(n) * given.plan.sides[0].rows_per_person).widened(error)],
        given.null(np.array([mean]), np.array([deviation])),
    )


def _hsic(
    features: tuple[SharedFeatures, SharedFeatures], null: Moments, given: _Rearranged
) -> Statistics:
    """HSIC of every pair of kernels."""
    n, persons = len(given.x), given.plan.sides[0].rows_per_person
    found, errors = permuted_hsic_features(
        given.x, given.y, features, given.draws, given.covariances
    )
    sensitivity = swapped_hsic_sensitivity if given.plan.swap else hsic_sensitivity
    bounds = [
        (sensitivity(a, b, n) * persons).widened(float(error))
        for (a, b), error in zip(
            ((a, b) for a in features[0].spreads for b in features[1].spreads), errors, strict=True
        )
    ]
    return Statistics(found, bounds, given.null(*null))


def _exact(plan: Plan, x: Matrix, y: Matrix, rng: np.random.Generator) -> Statistics:
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
