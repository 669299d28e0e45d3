"""Search for neighbours that move the counts of a tree by more than their declared width."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.data.encoding import Sample
from privatest.data.schema import Domain
from privatest.numerics.order import (
    cell_counts,
    pair_counts,
    pairs_of_a_person,
    tree_counts,
    tree_of,
    tree_width,
)
from tests.sensitivity.harness import Space, _change_rows, _start

LINE = Domain((0,))


def moved(statistic, space, *, tries=300, seed=0):
    """The largest l1 movement that was found."""
    rng, best = np.random.default_rng(seed), 0
    for _ in range(tries):
        pair = _start(space, rng)
        _change_rows(pair, space, rng)
        first, second = statistic(*pair.first()), statistic(*pair.second())
        best = max(best, int(np.abs(first - second).sum()))
    return best


@pytest.mark.parametrize("cells", [2, 7, 100, 1500])
def test_rows(cells):
    tree, edges = tree_of(cells), np.linspace(0, 1, cells + 1)

    def nodes(rows, _):
        (counts,) = cell_counts(Sample(rows, None), edges=edges)
        return tree_counts(counts, tree)

    assert moved(nodes, Space(LINE, 4, 3)) == tree_width(tree, 1)  # it is attained


@pytest.mark.parametrize("adjacency", ["one", "both"])
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 7), (9, 4)])
def test_pairs(n, m, adjacency):
    cells = 6
    tree, edges = tree_of(2 * cells - 1), np.linspace(0, 1, cells + 1)

    def nodes(rows, first):
        samples = Sample(rows[first], None), Sample(rows[~first], None)
        return tree_counts(pair_counts(*cell_counts(*samples, edges=edges)), tree)

    width = tree_width(tree, pairs_of_a_person(n, m, adjacency))
    found = moved(nodes, Space(LINE, n, m, adjacency))
    assert 0.7 * width < found <= width


def test_a_tree_with_a_level_forgotten_is_caught():
    tree, edges = tree_of(100), np.linspace(0, 1, 101)

    def nodes(rows, _):
        (counts,) = cell_counts(Sample(rows, None), edges=edges)
        return tree_counts(counts, tree)

    assert moved(nodes, Space(LINE, 4, 3)) > tree_width(tree, 1) * (tree.levels - 1) / tree.levels
