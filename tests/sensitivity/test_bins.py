"""Bins: every row once, one size for both samples, permutations that form a subgroup."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.numerics.kernels import sum_rows, tiles
from privatest.numerics.permutation import bin_layout

SIZES = st.integers(2, 60)


def cut(n, m, size, *, seed=0):
    """Rows that hold their own index: x counts up from 0, y down from -1."""
    rng = np.random.default_rng(seed)
    x, y = np.arange(n, dtype=float)[:, None], -1 - np.arange(m, dtype=float)[:, None]
    orders = rng.permutation(n), rng.permutation(m)
    layout = bin_layout(n, m, size, 2_048)
    return layout, layout.arrange(x, y, *orders), orders


@given(SIZES, SIZES, st.integers(1, 70))
def test_every_row_is_in_one_bin_of_its_own_sample(n, m, size):
    _, rows, (order_x, order_y) = cut(n, m, size)
    values = rows[:, 0]
    assert sorted(values) == list(range(-m, n))
    used = min(size, n, m)
    whole_x, whole_y = n - n % used, m - m % used
    expected = np.concatenate(
        [
            order_x[:whole_x],
            -1 - order_y[:whole_y],
            order_x[whole_x:],
            -1 - order_y[whole_y:],
        ]
    )
    assert np.array_equal(values, expected)


@given(SIZES, SIZES, st.integers(1, 70))
def test_bins_have_one_size_and_leftovers_keep_their_place(n, m, size):
    bins = bin_layout(n, m, size, 2_048)
    lengths = np.diff(bins.edges)
    assert set(lengths[:-2]) == {bins.size}
    assert lengths[-2:].tolist() == [n % bins.size, m % bins.size]
    assert bins.edges[-1] == n + m
    assert sum(bins.counts) == len(lengths) - 2
    assert min(bins.counts) >= 1


@given(SIZES, SIZES, st.integers(1, 20), st.integers(0, 99))
def test_permutations_keep_the_numbers_of_bins(n, m, size, seed):
    bins = bin_layout(n, m, size, 2_048)
    membership = bins.permute(9, np.random.default_rng(seed)).in_x
    bins_x, bins_y = bins.counts
    assert membership.shape == (10, bins_x + bins_y)
    assert np.all(membership.sum(axis=1) == bins_x)
    assert membership[0].tolist() == [True] * bins_x + [False] * bins_y


@given(SIZES, SIZES, st.integers(1, 20))
def test_weights_sum_to_one_in_each_sample(n, m, size):
    bins = bin_layout(n, m, size, 2_048)
    weights = bins.permute(5, np.random.default_rng(0)).weights
    lengths = np.diff(bins.edges)
    assert np.maximum(weights, 0) @ lengths == pytest.approx(1)
    assert np.minimum(weights, 0) @ lengths == pytest.approx(-1)


def test_permutations_are_uniform_over_the_subgroup():
    bins = bin_layout(6, 4, 2, 2_048)  # three bins and two: 10 ways
    membership = bins.permute(20_000, np.random.default_rng(1)).in_x
    ways, counts = np.unique(membership[1:], axis=0, return_counts=True)
    assert len(ways) == math.comb(5, 3)
    assert np.abs(counts - 2_000).max() < 6 * math.sqrt(2_000)


def test_the_size_is_chosen_from_the_sizes_alone():
    assert bin_layout(50, 60, None, 2_048).size == 1
    assert bin_layout(3_000, 2_000, None, 2_048).size == 15
    assert bin_layout(300, 300, None, 100).size == 6
    assert bin_layout(10, 3, 50, 2_048).size == 3


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 12))
def test_tiles_cover_every_row_of_every_bin_once(lengths, limit):
    edges = np.cumsum([0, *lengths])
    covered = np.zeros((len(lengths), edges[-1]), dtype=int)
    for first, inner in tiles(edges, limit):
        assert inner[-1] - inner[0] <= limit
        for offset, (start, stop) in enumerate(itertools.pairwise(inner)):
            covered[first + offset, start:stop] += 1
    for index, (start, stop) in enumerate(itertools.pairwise(edges)):
        assert np.all(covered[index, start:stop] == 1)
        assert covered[index].sum() == stop - start


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_rows_are_summed_within_edges(lengths):
    edges = np.cumsum([0, *lengths])
    matrix = np.random.default_rng(0).integers(9, size=(edges[-1], 3)).astype(float)
    expected = [matrix[a:b].sum(axis=0) for a, b in itertools.pairwise(edges)]
    assert np.array_equal(sum_rows(matrix, edges), np.array(expected))
