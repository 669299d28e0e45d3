"""The family of statistics that an independence test takes the maximum over, and trends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import PermutationSensitivity
from privatest.core.secret_order import secret_order
from privatest.data.domain import Domain
from privatest.data.samples import beside
from privatest.engines.shuffled import in_secret_order
from privatest.independence.plan import FUNCTIONS, Plan, side_features
from privatest.kernels.additive import additive, additive_moments
from privatest.kernels.shared import SharedFeatures
from privatest.mechanisms.permutation import NullLaw
from privatest.statistics.cross_sums import Bases, Products, cross_sums
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
    block_shuffles,
    feature_bases,
    permuted_hsic_features,
)
from privatest.statistics.hsic_swaps import (
    pair_signs,
    swapped_covariance_sensitivity,
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
