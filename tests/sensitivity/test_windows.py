"""Search for neighbours that move the score of a window by more than their declared width."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from privatest.data.encoding import Sample
from privatest.data.schema import Domain
from privatest.mechanisms.additive import selection_weights
from privatest.methods.quantiles import window_scores, windows
from privatest.numerics.order import cell_counts, pair_counts, pairs_of_a_person
from tests.sensitivity.harness import Space, _change_rows, _start

LINE = Domain((0,))


def moved(scores, space, *, tries=300, seed=0):
    """The largest movement of one score that was found."""
    rng, best = np.random.default_rng(seed), 0
    for _ in range(tries):
        pair = _start(space, rng)
        _change_rows(pair, space, rng)
        first, second = scores(*pair.first()), scores(*pair.second())
        best = max(best, int(np.abs(first - second).max()))
    return best


def scores_of(counts, low, high, cap):
    below = np.concatenate([[0], np.cumsum(counts)])
    return window_scores(below, windows(len(counts)), low, high, cap=cap)


@pytest.mark.parametrize("cells", [1, 5, 64, 300])
@pytest.mark.parametrize("cap", [1, 1000])
def test_rows(cells, cap):
    edges = np.linspace(0, 1, cells + 1)

    def scores(rows, _):
        (counts,) = cell_counts(Sample(rows, None), edges=edges)
        return scores_of(counts, 2, 5, cap)

    found = moved(scores, Space(LINE, 4, 3))
    assert found <= 1
    assert found == 1 or cells == 1  # it is attained


@pytest.mark.parametrize("adjacency", ["one", "both"])
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 7), (9, 4)])
def test_pairs(n, m, adjacency):
    edges = np.linspace(0, 1, 41)

    def scores(rows, first):
        samples = Sample(rows[first], None), Sample(rows[~first], None)
        counts = pair_counts(*cell_counts(*samples, edges=edges))
        return scores_of(counts, n * m // 4, 3 * n * m // 4, 10**6)

    width = pairs_of_a_person(n, m, adjacency)
    assert 0.4 * width < moved(scores, Space(LINE, n, m, adjacency)) <= width


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.3, 1.0, 5.0, 60.0, 3000.0])
@pytest.mark.parametrize("sensitivity", [1, 7, 10**6])
def test_weights_keep_their_ratio_exactly(epsilon, sensitivity):
    """Scores that differ by the sensitivity or less, near 0, in between, and where weights end."""
    rng = np.random.default_rng(0)
    end = min(2**40, int(80 * sensitivity / epsilon) + 2)
    scores = np.unique(np.append(rng.integers(0, end, size=3000), np.arange(200)))
    weights = selection_weights(scores, sensitivity=sensitivity, epsilon=epsilon)
    for other in (sensitivity, max(1, sensitivity // 2)):
        further = selection_weights(scores + other, sensitivity=sensitivity, epsilon=epsilon)
        assert (further <= weights).all()
        # a float below e^(epsilon/2), as a fraction; where it overflows no ratio could be too large
        largest = (
            Fraction(exp(epsilon / 2) * (1 - 1e-15)) if epsilon < 1000 else Fraction(10) ** 300
        )
        pairs = zip(weights.tolist(), further.tolist(), strict=True)
        assert all(Fraction(a, b) <= largest for a, b in pairs)


def test_weights_without_their_constant_are_caught():
    """Rounded weights alone fall from 1 to 0, and from 2 to 1: more than any small epsilon."""
    epsilon = 0.1
    weights = selection_weights(np.arange(2000), sensitivity=1, epsilon=epsilon)
    alone = weights - weights.min()
    below = alone[1:] > 0
    assert (alone[:-1][below] / alone[1:][below]).max() > exp(epsilon / 2) * 1.5
