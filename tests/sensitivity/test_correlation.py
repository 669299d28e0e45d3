"""Search for neighbours that move a correlation's statistic by more than its declared width.

Labels belong to places, so that neighbours share them: the coupling of the proofs.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privatest.data.domain import Domain
from privatest.data.samples import Sample
from privatest.statistics import linear, rank_correlation
from tests.sensitivity.harness import Space, assert_sensitivity

PLANE = Domain((0, 0))  # ties at corners and elsewhere
RANKS = {
    "kendall": (rank_correlation.kendall_score, rank_correlation.kendall_width),
    "spearman": (rank_correlation.spearman_score, rank_correlation.spearman_width),
}


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
    moved = [rank_correlation.spearman_score(*pair, labels, labels) for pair in (before, after)]
    assert moved[1] - moved[0] == rank_correlation.spearman_width(n)
    before = np.append(rest, -1.0), np.append(falling, n)
    after = np.append(rest, n), np.append(falling, n)
    moved = [rank_correlation.kendall_score(*pair, labels, labels) for pair in (before, after)]
    assert moved[1] - moved[0] == rank_correlation.kendall_width(n)


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
    n, products = 5, linear.Products((0.2, -0.1), terms, limit=1.5)

    def square(rows, first):
        del first
        return linear.mean_square(Sample(rows, None), products)

    bound = linear.mean_square_sensitivity(n, 1, products.limit)
    assert assert_sensitivity(square, bound, Space(PLANE, n - 1, 1), restarts=8) > 0.99
