"""The attack itself is tested: a bound that is a little too small must be caught."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.numerics.kernels import Kernel
from privatest.numerics.permutation import mmd, mmd_sensitivity, private_groups_sensitivity
from tests.sensitivity.harness import Space, assert_sensitivity, two_sample

KERNEL = Kernel("gaussian", 1.0)
LINE = Domain((0,))


def statistic_of(adjacency):
    function = two_sample(partial(mmd, kernel=KERNEL, domain=LINE))
    if adjacency != "row":
        return function

    def weighted(rows, labels):
        share = labels.mean() * (1 - labels.mean())
        return share * function(rows, labels) if share else 0.0

    return weighted


def sensitivity_of(adjacency, n, m):
    spread = KERNEL.spread(LINE)
    if adjacency == "row":
        return private_groups_sensitivity(spread, n + m)
    return mmd_sensitivity(spread, n, m, adjacency)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 6), (7, 4)])
@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("adjacency", ["one", "both"])
def test_a_bound_that_is_ten_percent_too_small_is_caught(adjacency, permuted, sizes):
    n, m = sizes
    sensitivity = sensitivity_of(adjacency, n, m)
    bound = sensitivity.permuted if permuted else sensitivity.observed
    space = Space(LINE, n, m, adjacency, permuted)
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(statistic_of(adjacency), 0.9 * bound, space)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 6), (7, 4)])
def test_a_row_bound_that_is_ten_percent_too_small_is_caught(sizes):
    n, m = sizes
    bound = 0.9 * sensitivity_of("row", n, m).observed
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(statistic_of("row"), bound, Space(LINE, n, m, "row"))


def test_a_sensitivity_for_the_wrong_adjacency_is_caught():
    bound = sensitivity_of("one", 4, 4).observed
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(statistic_of("both"), bound, Space(LINE, 4, 4, "both"))


def test_one_bound_of_several_that_is_too_small_is_caught():
    bound = sensitivity_of("one", 4, 4).observed
    function = statistic_of("one")

    def twice(rows, labels):
        return np.array([function(rows, labels), 2 * function(rows, labels)])

    assert_sensitivity(twice, [bound, 2 * bound], Space(LINE, 4, 4))
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(twice, [bound, 1.9 * bound], Space(LINE, 4, 4))


def test_a_statistic_that_is_not_finite_is_caught():
    with pytest.raises(AssertionError, match="not finite"):
        assert_sensitivity(lambda rows, labels: np.nan, 1.0, Space(LINE, 3, 3))


def test_the_search_can_be_repeated():
    bound = sensitivity_of("row", 3, 4).permuted
    space = Space(LINE, 3, 4, "row", permuted=True)
    search = partial(assert_sensitivity, statistic_of("row"), bound, space, restarts=2, steps=20)
    assert search(seed=1) == search(seed=1)
