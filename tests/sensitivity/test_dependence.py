"""Members of the independence test's family never move further than they say."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.numerics.dependence import (
    block_shuffles,
    covariance_sensitivity,
    hsic_sensitivity,
    indicators,
    largest,
    values,
)
from privatest.numerics.features import additive
from tests.sensitivity.cross_moments import permuted_covariances, permuted_hsic, summation_error
from tests.sensitivity.test_hsic_and_ipm import draw, largest_hsic_ratio

LINE, SQUARE, MIXED = Domain((0,)), Domain((0, 0)), Domain((0, 3))
TOLERANCE = 1e-9


def covariance(make, domains):
    """Return the largest covariance as the test computes it, for the rows as they stand."""

    def value(x, y):
        first, second = (partial(make, domain=domain) for domain in domains)
        found = permuted_covariances(x, y, (first, second), np.arange(4)[None, :], largest)
        return float(found[0, 0])

    return value


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("domains", [(LINE, LINE), (SQUARE, LINE), (MIXED, MIXED)])
@pytest.mark.parametrize("make", [values, indicators])
def test_largest_covariance(make, domains, permuted):
    for n in (4, 7):
        ratio = largest_hsic_ratio(
            covariance(make, domains),
            covariance_sensitivity(n),
            domains,
            n,
            permuted=permuted,
            trials=15,
        )
        assert 0.4 < ratio <= 1 + TOLERANCE


@pytest.mark.parametrize("make", [values, indicators])
def test_the_observed_covariance_attains_its_bound_for_large_n(make):
    """Among two-point data with few, half or most of the other rows at the other point."""
    n = 400
    value = covariance(make, (LINE, LINE))
    largest_move = 0.0
    for share in (1, n // 2, n - 2):
        x, y = np.zeros((n, 1)), np.zeros((n, 1))
        x[:share] = y[:share] = 1.0
        for old in ((0, 0), (1, 1), (0, 1), (1, 0)):
            for new in ((0, 0), (1, 1), (0, 1), (1, 0)):
                first, second = (x.copy(), y.copy()), (x.copy(), y.copy())
                first[0][-1], first[1][-1] = old
                second[0][-1], second[1][-1] = new
                largest_move = max(largest_move, abs(value(*first) - value(*second)))
    bound = covariance_sensitivity(n).observed
    assert 0.99 * bound < largest_move <= bound * (1 + TOLERANCE)


def test_a_permutation_parts_a_pair_of_covariances():
    """The permuted bound is needed: x and y of the replaced pair sit in two rows."""
    n = 40
    x, y = np.zeros((n, 1)), np.zeros((n, 1))
    x[1] = y[2] = 1.0
    pi = np.arange(n)
    pi[[0, 1, 2]] = [2, 0, 1]
    other_x, other_y = x.copy(), y.copy()
    other_x[0] = other_y[0] = 1.0
    value = covariance(values, (LINE, LINE))
    moved = abs(value(x, y[pi]) - value(other_x, other_y[pi]))
    bound = covariance_sensitivity(n)
    assert bound.observed < moved <= bound.permuted


@pytest.mark.parametrize("domain", [LINE, SQUARE, MIXED, Domain((0,) * 30)])
def test_additive_features_stay_within_their_spread(domain):
    features = additive("gaussian", domain)
    rng = np.random.default_rng(0)
    rows = np.vstack([draw(domain, 60, rng) for _ in range(6)])
    rows = np.vstack(
        [rows, np.zeros((1, domain.dimension)), [max(1, k - 1) for k in domain.levels]]
    )
    basis = features.basis(rows)
    for weights, spread, size in zip(
        features.weights.T, features.spreads, features.sizes, strict=True
    ):
        mapped = basis * np.sqrt(weights)
        norms = np.square(mapped).sum(axis=1)
        squares = norms[:, None] + norms - 2 * mapped @ mapped.T
        furthest = np.sqrt(squares.max())
        assert 0.8 * spread < furthest <= spread
        assert np.sqrt(norms.max()) <= size


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("domains", [(SQUARE, LINE), (MIXED, SQUARE)])
def test_hsic_of_additive_kernels(domains, permuted):
    features = (additive("gaussian", domains[0]), additive("gaussian", domains[1]))
    identity = np.arange(5)[None, :]
    for index in (1, 3):
        bound = hsic_sensitivity(features[0].spreads[index], features[1].spreads[index], 5)

        def value(x, y, index=index):
            found, _ = permuted_hsic(x, y, features, identity)
            return float(found[index * len(features[1].spreads) + index, 0])

        ratio = largest_hsic_ratio(value, bound, domains, 5, permuted=permuted, trials=15)
        assert 0.2 < ratio <= 1 + TOLERANCE


@pytest.mark.parametrize("n", [99_999, 2**17 - 13])
@pytest.mark.parametrize("levels", [3, 4, 5, 0])
def test_rounding_of_many_equal_rows_is_within_the_stated_error(levels, n):
    """Equal rows have no covariance, and their roundings all go the same way."""
    domain, shuffles = Domain((levels,)), block_shuffles(n, 1, np.random.default_rng(0))
    features = additive("gaussian", domain)
    functions = partial(values, domain=domain)
    for value in range(levels) if levels else (0.1, 0.7):
        x = np.full((n, 1), float(value))
        found, errors = permuted_hsic(x, x, (features, features), shuffles)
        assert (found <= errors[:, None]).all()
        found = permuted_covariances(x, x, (functions, functions), shuffles, largest)
        assert (found <= summation_error(x, (functions, functions), shuffles.shape[1])).all()
