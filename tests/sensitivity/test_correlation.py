"""Search for neighbours that move a correlation's statistic by more than its declared width.

Labels belong to places, so that neighbours share them: the coupling of the proofs.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from privatest.data.encoding import Sample
from privatest.data.schema import Domain
from privatest.methods import correlation as rank_correlation
from privatest.methods import regression as linear
from privatest.numerics.order import kendall_score, kendall_width
from tests.sensitivity.harness import Space, assert_sensitivity

PLANE = Domain((0, 0))  # ties at corners and elsewhere


def spearman_score(x, y, *_):
    return rank_correlation.spearman_ties(x, y).values[0] / 2


RANKS = {
    "kendall": (kendall_score, kendall_width),
    "spearman": (spearman_score, rank_correlation.spearman_width),
}
TIED = {"kendall": rank_correlation.kendall_ties, "spearman": rank_correlation.spearman_ties}


def ranked(score, n):
    rng = np.random.default_rng(3)
    labels = rng.permutation(n), rng.permutation(n)

    def statistic(rows, first):
        del first
        return score(rows[:, 0], rows[:, 1], *labels)

    return statistic


@pytest.mark.parametrize("name", RANKS)
@pytest.mark.parametrize("n", [2, 4, 9, 20])
def test_rank_scores(name, n):
    score, width = RANKS[name]
    space = Space(PLANE, n - 1, 1)
    assert_sensitivity(ranked(score, n), width(n), space, restarts=8)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_rank_widths_are_the_largest_movements(n):
    # all orders of the other rows, and all places of the row that is replaced
    rest, labels = np.arange(n - 1.0), np.arange(n)
    largest = dict.fromkeys(RANKS, 0)
    for order in itertools.permutations(rest):
        for name, (score, _) in RANKS.items():
            values = [
                score(np.append(rest, r - 0.5), np.append(order, s - 0.5), labels, labels)
                for r in range(n)
                for s in range(n)
            ]
            largest[name] = max(largest[name], max(values) - min(values))
    assert largest == {name: width(n) for name, (_, width) in RANKS.items()}


@pytest.mark.parametrize("n", [10, 101])
def test_rank_widths_are_attained(n):
    labels, rest = np.arange(n), np.arange(n - 1.0)
    falling = rest[::-1]
    before = np.append(rest, -1.0), np.append(rest, n)  # from one corner ...
    after = np.append(rest, n), np.append(rest, n)  # ... to the next
    moved = [spearman_score(*pair) for pair in (before, after)]
    assert moved[1] - moved[0] == rank_correlation.spearman_width(n)
    before = np.append(rest, -1.0), np.append(falling, n)
    after = np.append(rest, n), np.append(falling, n)
    moved = [kendall_score(*pair, labels, labels) for pair in (before, after)]
    assert moved[1] - moved[0] == kendall_width(n)


def weighted(name, x, y):
    found = TIED[name](x, y)
    return np.array(found.values) * found.weights, found.sensitivity


def largest_movement(name, rest, places):
    """Return how far score and ties move between any two places of one row, over the bound."""
    found = [weighted(name, *(np.append(*s) for s in zip(rest, p, strict=True))) for p in places]
    values, bound = np.array([each for each, _ in found]), found[0][1]
    return np.abs(values[:, None] - values).sum(axis=2).max() / bound


@pytest.mark.parametrize("name", TIED)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_score_and_ties_of_every_small_neighbour(name, n):
    """All weak orders of the other rows, and all places of the row: beside them and tied."""
    values = range(1, 2 * n - 2, 2)
    places = [*itertools.product(range(2 * n - 1), repeat=2)]
    columns = [*itertools.product(map(float, values), repeat=n - 1)]
    # rows may be put in any order: the first column rises
    rising = [column for column in columns if list(column) == sorted(column)]
    worst = max(largest_movement(name, rest, places) for rest in itertools.product(rising, columns))
    assert 0.85 < worst <= 1 + 1e-12


@pytest.mark.parametrize("name", TIED)
@pytest.mark.parametrize("n", [6, 13, 40, 200])
def test_score_and_ties_move_together(name, n):
    """Columns with few and with many values, sorted or not, and a row that goes to the ends."""
    rng, worst = np.random.default_rng(n), 0.0
    for kind in [*range(3)] * 40:
        rest = [2.0 * rng.integers(rng.integers(1, n + 1), size=n - 1) + 1 for _ in "xy"]
        if kind:
            rest = [np.sort(rest[0]), np.sort(rest[1])[:: 3 - 2 * kind]]
        ends = [[-1.0, 2.0 * n + 5, *side, *(side + 1)] for side in rest]
        places = [tuple(rng.choice(side) for side in ends) for _ in range(6)]
        places += [(-1.0, -1.0), (-1.0, 2.0 * n + 5), (2.0 * n + 5, 2.0 * n + 5)]
        worst = max(worst, largest_movement(name, rest, places))
    assert 0.95 < worst <= 1 + 1e-12


@pytest.mark.parametrize("name", TIED)
def test_ties_that_weigh_more_are_caught(name, monkeypatch):
    """With more weight for ties some neighbour is beyond the bound."""
    plain = TIED[name]

    def heavier(x, y):
        found = plain(x, y)
        more = 1.5 if name == "kendall" else 8  # the proof for Spearman is not sharp
        weights = (1.0, *(more * weight for weight in found.weights[1:]))
        return replace(found, weights=weights)

    monkeypatch.setitem(TIED, name, heavier)
    rest = np.append(np.zeros(20), np.ones(19)) if name == "kendall" else np.zeros(39)
    worst = max(
        largest_movement(name, (side, other), [*itertools.product((-1.0, 0.0, 1.0, 2.0), repeat=2)])
        for side in (rest, np.arange(39.0))
        for other in (rest, np.arange(39.0))
    )
    assert worst > 1


def test_a_wrong_width_is_caught():
    space = Space(PLANE, 7, 1)
    score, width = RANKS["spearman"]
    with pytest.raises(AssertionError):
        assert_sensitivity(ranked(score, 8), width(8) - 2, space, restarts=30)


@pytest.mark.parametrize("n", [4, 11])
def test_line_moments(n):
    def largest(rows, first):
        del first
        return linear.line_moments(Sample(rows, None))

    bound = linear.line_sensitivity(n, 1)
    assert assert_sensitivity(largest, bound, Space(PLANE, n - 1, 1), restarts=8) > 0.999


@pytest.mark.parametrize("terms", [(-0.4, 1.0, 0.0), (-2.0, 5.0, -2.0)])
def test_mean_squares(terms):
    n, products = 5, linear.RegressionProducts((0.2, -0.1), terms, limit=1.5)

    def square(rows, first):
        del first
        return linear.mean_square(Sample(rows, None), products)

    bound = linear.mean_square_sensitivity(n, 1, products.limit)
    assert assert_sensitivity(square, bound, Space(PLANE, n - 1, 1), restarts=8) > 0.99
