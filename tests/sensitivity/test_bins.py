"""Bins: every row once, one size for both samples, permutations that form a subgroup."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.numerics.kernels import sum_rows, tiles
from privatest.numerics.permutation import two_sample_bins

SIZES = st.integers(2, 60)


def cut(n, m, size, *, max_bins=2_048, seed=0):
    """Rows that hold their own index: x counts up from 0, y down from -1."""
    rng = np.random.default_rng(seed)
    x, y = np.arange(n, dtype=float)[:, None], -1 - np.arange(m, dtype=float)[:, None]
    orders = rng.permutation(n), rng.permutation(m)
    return two_sample_bins(x, y, *orders, size=size, max_bins=max_bins), orders


@given(SIZES, SIZES, st.integers(1, 70))
def test_every_row_is_in_one_bin_of_its_own_sample(n, m, size):
    bins, (order_x, order_y) = cut(n, m, size)
    values = bins.rows(0, n + m)[:, 0]
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
    bins, _ = cut(n, m, size)
    lengths = np.diff(bins.edges)
    assert set(lengths[:-2]) == {bins.size}
    assert lengths[-2:].tolist() == [n % bins.size, m % bins.size]
    assert bins.edges[-1] == n + m
    assert sum(bins.counts) == len(lengths) - 2
    assert min(bins.counts) >= 1


@given(SIZES, SIZES, st.integers(1, 20), st.integers(0, 99))
def test_permutations_keep_the_numbers_of_bins(n, m, size, seed):
    bins, _ = cut(n, m, size)
    membership = bins.membership(9, np.random.default_rng(seed))
    bins_x, bins_y = bins.counts
    assert membership.shape == (10, bins_x + bins_y)
    assert np.all(membership.sum(axis=1) == bins_x)
    assert membership[0].tolist() == [True] * bins_x + [False] * bins_y


@given(SIZES, SIZES, st.integers(1, 20))
def test_weights_sum_to_one_in_each_sample(n, m, size):
    bins, _ = cut(n, m, size)
    weights = bins.weights(bins.membership(5, np.random.default_rng(0)))
    lengths = np.diff(bins.edges)
    assert np.maximum(weights, 0) @ lengths == pytest.approx(1)
    assert np.minimum(weights, 0) @ lengths == pytest.approx(-1)


def test_permutations_are_uniform_over_the_subgroup():
    bins, _ = cut(6, 4, 2)  # three bins and two: 10 ways
    membership = bins.membership(20_000, np.random.default_rng(1))
    ways, counts = np.unique(membership[1:], axis=0, return_counts=True)
    assert len(ways) == math.comb(5, 3)
    assert np.abs(counts - 2_000).max() < 6 * math.sqrt(2_000)


def test_the_size_is_chosen_from_the_sizes_alone():
    assert cut(50, 60, None)[0].size == 1
    assert cut(3_000, 2_000, None)[0].size == 15
    assert cut(300, 300, None, max_bins=100)[0].size == 6
    assert cut(10, 3, 50)[0].size == 3


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
