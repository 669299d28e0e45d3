"""Search for neighbours that move a count, or a table of groups and outcomes, too far."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.data.encoding import Sample
from privatest.data.schema import Domain
from privatest.methods.proportions import outcome_table, success_counts, success_width
from tests.sensitivity.harness import Space, assert_sensitivity

COIN = Domain((2,))


def won(rows):
    return rows[:, 0] == 1


def counts(rows, first):
    return success_counts(*((Sample(own, None), won) for own in (rows[first], rows[~first])))


def table(rows, first):
    return outcome_table(counts(rows, first), [first.sum(), (~first).sum()]).ravel()


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 7), (9, 4)])
@pytest.mark.parametrize("adjacency", ["one", "both"])
def test_each_count_moves_by_its_width(n, m, adjacency):
    widths = [success_width()] * 2
    assert assert_sensitivity(counts, widths, Space(COIN, n, m, adjacency)) == 1  # attained


@pytest.mark.parametrize(("n", "m"), [(1, 3), (5, 5)])
def test_a_record_is_in_one_group(n, m):
    """Parallel composition: the two counts together move by one width, not by two."""
    space = Space(COIN, n, m)
    assert assert_sensitivity(lambda *data: sum(counts(*data)), success_width(), space) == 1
    both = Space(COIN, n, m, "both")
    with pytest.raises(AssertionError):
        assert_sensitivity(lambda *data: sum(counts(*data)), success_width(), both)


@pytest.mark.parametrize(("n", "m"), [(1, 3), (5, 5), (0, 6)])
def test_cells_of_private_groups(n, m):
    space = Space(COIN, n, m, "row")
    assert assert_sensitivity(table, np.ones(4), space) == 1
    # signs of the way from one cell to another: the l1 norm of the movement, 2
    signs = np.array([1, -1, 1, -1])
    assert assert_sensitivity(lambda *data: signs @ table(*data), 2.0, space) == 1
    with pytest.raises(AssertionError):
        assert_sensitivity(lambda *data: signs @ table(*data), 1.0, space)
