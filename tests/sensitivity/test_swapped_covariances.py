"""Swaps within pairs and signed covariances move no further than they say, and so far they do."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.numerics.dependence import (
    indicators,
    largest,
    pair_signs,
    signed_covariance_sensitivity,
    swapped_covariance_sensitivity,
    swapped_hsic_sensitivity,
    trends,
    values,
)
from privatest.numerics.features import additive, tabulated
from privatest.numerics.kernels import Kernel
from tests.sensitivity.cross_moments import (
    permuted_covariances,
    summation_error,
    swapped_covariances,
    swapped_hsic,
)
from tests.sensitivity.test_hsic_and_ipm import draw

LINE, SQUARE, MIXED, THREE = Domain((0,)), Domain((0, 0)), Domain((0, 3)), Domain((3,))
TOLERANCE = 1e-9


def corner(domain, rng):
    """Draw a row, at a corner of the box more often than not."""
    row = draw(domain, 1, rng)[0]
    numeric = list(domain.numeric)
    if rng.random() < 0.7:
        row[numeric] = rng.integers(2, size=len(numeric))
    return row


def furthest(statistic, domains, n, *, trials=40, steps=60):
    """Search for the neighbours between which any of the statistics moves furthest."""
    best = 0.0
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        x, y = (np.array([corner(domain, rng) for _ in range(n)]) for domain in domains)
        row, current = int(rng.integers(n)), 0.0
        other_x, other_y = x.copy(), y.copy()
        for _ in range(steps):
            new_x, new_y, new_other_x, new_other_y = (a.copy() for a in (x, y, other_x, other_y))
            place = row if rng.random() < 0.5 else int(rng.integers(n))
            drawn = corner(domains[0], rng), corner(domains[1], rng)
            new_other_x[place], new_other_y[place] = drawn
            if place != row or rng.random() < 0.5:
                drawn = (
                    drawn if place != row else (corner(domains[0], rng), corner(domains[1], rng))
                )
                new_x[place], new_y[place] = drawn
            moved = np.abs(statistic(new_x, new_y) - statistic(new_other_x, new_other_y)).max()
            if moved >= current:
                current = float(moved)
                x, y, other_x, other_y = new_x, new_y, new_other_x, new_other_y
        best = max(best, current)
    return best


def signs_of(n):
    pairs = n // 2
    return np.array(list(product((1.0, -1.0), repeat=pairs)))


@pytest.mark.parametrize("n", [4, 7])
@pytest.mark.parametrize("domains", [(LINE, LINE), (SQUARE, LINE), (MIXED, MIXED)])
@pytest.mark.parametrize("make", [values, partial(values, width=0.25), indicators])
def test_largest_covariances_of_swaps(make, domains, n):
    bases = partial(make, domain=domains[0]), partial(make, domain=domains[1])

    def statistic(x, y):
        return swapped_covariances(x, y, bases, signs_of(n), largest)[0]

    bound = swapped_covariance_sensitivity(n)
    assert bound.observed == bound.permuted
    ratio = furthest(statistic, domains, n, trials=12) / bound.observed
    assert 0.99 < ratio <= 1 + TOLERANCE


@pytest.mark.parametrize("domains", [(LINE, LINE), (SQUARE, LINE), (THREE, MIXED)])
def test_hsic_of_swaps(domains):
    n = 6
    features = additive("gaussian", domains[0]), additive("gaussian", domains[1])
    spreads = [a * b for a in features[0].spreads for b in features[1].spreads]
    bounds = np.array([swapped_hsic_sensitivity(c, 1.0, n).observed for c in spreads])

    def statistic(x, y):
        found, _ = swapped_hsic(x, y, features, signs_of(n))
        return found / bounds[:, None]

    assert 0.6 < furthest(statistic, domains, n, trials=10) <= 1 + TOLERANCE


def test_three_categories_attain_the_bound_of_hsic():
    """The partner at one, the row from the second to the third: at equal distances."""
    table = tabulated((Kernel("gaussian", 1.0),), THREE, max_rank=3)
    assert table is not None
    n, identity = 4, np.ones((1, 2))
    x, other = np.array([[0.0], [1], [0], [0]]), np.array([[0.0], [2], [0], [0]])
    # a second pair stands along the difference, so that the norm grows by all of it
    bound = swapped_hsic_sensitivity(table.spreads[0], table.spreads[0], n).observed

    def matrix(rows):
        return swapped_covariances(
            rows, rows, (table.basis, table.basis), identity, lambda s: s.reshape(1, -1)
        )[:, 0]

    mixed = np.kron(table.mix, table.mix) if table.mix is not None else np.eye(9)
    moved = float(np.linalg.norm((matrix(x) - matrix(other)) @ mixed))
    assert 0.999 * bound < moved <= bound * (1 + TOLERANCE)


@pytest.mark.parametrize("domains", [(LINE, LINE), (Domain((2,)), LINE), (THREE, THREE)])
@pytest.mark.parametrize("n", [4, 6])
def test_signed_covariances_move_by_1_over_n_from_their_permutations(domains, n):
    rng = np.random.default_rng(n)
    shuffles = np.array([np.arange(n), *(rng.permutation(n) for _ in range(30))])
    first, second = domains
    bases = partial(trends, domain=first, width=0.5), partial(trends, domain=second, width=0.5)

    def statistic(x, y):
        found = permuted_covariances(x, y, bases, shuffles, lambda s: s.reshape(len(s), -1))
        return found[:, :1] - found

    bound = signed_covariance_sensitivity(n)
    ratio = furthest(statistic, domains, n, trials=15) / bound.permuted
    assert 0.99 < ratio <= 1 + TOLERANCE
    assert ratio * bound.permuted > 0.95 / n  # a bound planted too small is caught


def test_neither_of_the_two_moves_so_little_alone():
    """Permuted covariances move by 2 C: the bound is on differences, not on each."""
    n = 40
    x, y = np.zeros((n, 1)), np.zeros((n, 1))
    x[1] = y[2] = 1.0
    pi = np.arange(n)
    pi[[0, 1, 2]] = [2, 0, 1]
    other_x, other_y = x.copy(), y.copy()
    other_x[0] = other_y[0] = 1.0
    bases = (partial(trends, domain=LINE, width=1.0),) * 2

    def both(x, y):
        found = permuted_covariances(
            x, y, bases, np.array([np.arange(n), pi]), lambda s: s.reshape(len(s), -1)
        )
        return found[0]

    before, after = both(x, y), both(other_x, other_y)
    bound = signed_covariance_sensitivity(n).permuted
    assert abs(after[1] - before[1]) > 1.8 * bound
    assert abs((after[0] - after[1]) - (before[0] - before[1])) <= bound * (1 + TOLERANCE)


def test_functions_stay_between_0_and_1():
    rng = np.random.default_rng(0)
    rows = np.vstack([draw(MIXED, 500, rng), [[0, 0]], [[1, 2]]])
    for width in (1.0, 0.5, 0.375, 0.25, 0.125):
        for make in (values, trends):
            made = make(rows, MIXED, width=width)
            assert made.min() == 0
            assert made.max() == 1
    assert trends(rows, Domain((0, 3)), 0.5).shape[1] == 4
    assert (
        trends(np.zeros((2, 1)), Domain((2,)), 0.5).shape[1] == 1
    )  # the other is its mirror image


@pytest.mark.parametrize("n", [4, 5, 40, 2_311])
def test_swaps_are_statistics_of_swapped_rows(n):
    """What is computed in bins is the definition, for rows with y swapped in whole bins."""
    rng = np.random.default_rng(n)
    x, y = rng.uniform(size=(2, n, 1))
    signs = pair_signs(n, 5, rng)
    bases = (partial(values, domain=LINE),) * 2
    found = swapped_covariances(x, y, bases, signs, largest)[0]
    pairs, bins = n // 2, signs.shape[1]
    size = -(-pairs // 128)
    assert bins == -(-pairs // size)
    for sign, value in zip(signs, found, strict=True):
        swapped = y[: 2 * pairs].reshape(pairs, 2).copy()
        turned = np.repeat(sign, size)[:pairs] < 0
        swapped[turned] = swapped[turned, ::-1]
        first, second = x[: 2 * pairs].reshape(pairs, 2), swapped
        expected = abs(np.sum(np.diff(first) * np.diff(second))) / n
        assert value == pytest.approx(expected, abs=1e-12)
    assert (signs[0] == 1).all()


def test_equal_rows_and_a_leftover_row():
    n = 99_999
    x = np.full((n, 1), 0.3)
    features = additive("gaussian", LINE)
    signs = pair_signs(n, 2, np.random.default_rng(0))
    found, errors = swapped_hsic(x, x, (features, features), signs)
    assert (found <= errors[:, None]).all()
    bases = (partial(values, domain=LINE),) * 2
    rng = np.random.default_rng(1)
    x, y = rng.uniform(size=(2, n, 1))
    before = swapped_covariances(x, y, bases, signs, largest)
    x[-1] = y[-1] = 1.0
    assert (before == swapped_covariances(x, y, bases, signs, largest)).all()
    assert summation_error(x, bases, None) < 1e-10
