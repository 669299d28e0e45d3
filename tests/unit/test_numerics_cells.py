"""Cells on a line: counts, distances from them, and the slow forms they stand for."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatest.data.schema import Domain, equal_cuts
from privatest.numerics.cells import (
    FINE_STEPS,
    LineKind,
    area_cells,
    bin_sums,
    cell_codes,
    cell_counts,
    cut_cells,
    rank_cells,
)
from privatest.numerics.distances import (
    CellMetric,
    LineMetric,
    cell_metric,
    metric,
    permuted_distance,
)
from privatest.numerics.ecdf import one_sample, one_sample_counts, two_sample, two_sample_counts
from privatest.numerics.permutation import bin_layout, block_permutation, pair_swaps, permuted_cells

KINDS: tuple[LineKind, ...] = ("kolmogorov", "kuiper", "above", "below")
small = st.lists(st.integers(0, 12), min_size=4, max_size=60)
seeds = st.integers(0, 2**32 - 1)


def draws(seed):
    return np.random.default_rng(seed)


# --- codes and counts --------------------------------------------------------------------------


@given(seeds, st.integers(1, 40), st.booleans())
def test_codes_are_those_of_a_search(seed, count, even):
    rng = draws(seed)
    cuts = equal_cuts(-3.0, 5.0, count + 1) if even else np.unique(rng.normal(size=count))
    near = np.concatenate([cuts, np.nextafter(cuts, -9), np.nextafter(cuts, 9)])
    values = np.concatenate([rng.normal(scale=4, size=50), near, [-1e308, 1e308, cuts[0] - 8]])
    assert np.array_equal(cell_codes(values, cuts), np.searchsorted(cuts, values))


def test_a_far_value_gives_no_warning(recwarn):
    cuts = equal_cuts(-1e308, 1e308, 10)
    assert cell_codes(np.array([-1.7e308, 1.7e308]), cuts).tolist() == [0, 9]
    assert cell_codes(np.array([1e308]), np.linspace(0, 1e-300, 5)).tolist() == [5]
    assert not recwarn.list


@given(seeds, st.integers(0, 100))
def test_counts_add_up_over_parts(seed, cut):
    values, cuts = draws(seed).random(100), equal_cuts(0, 1, 16)
    parts = cell_counts(values[:cut], cuts) + cell_counts(values[cut:], cuts)
    assert np.array_equal(parts, cell_counts(values, cuts))
    assert parts.sum() == 100


def test_sums_of_bins_add_up_over_parts():
    rng = draws(0)
    line = area_cells(rng.random(300), 0.0, 1.0, 8)
    weights = rng.integers(-1, 2, size=300).astype(float)
    whole = bin_sums(line, np.array([0, 300]), weights)
    parts = bin_sums(line, np.array([0, 17, 120, 300]), weights)
    assert np.array_equal(whole[0], parts.sum(axis=0))


# --- public groups, from counts ----------------------------------------------------------------


@given(small, small, st.sampled_from(["ks", "kuiper"]), seeds)
def test_two_samples_from_counts(x, y, statistic, seed):
    x, y = np.sort(np.array(x, float)), np.sort(np.array(y, float))
    cuts = np.arange(12.0)  # a cell for each value
    counts = cell_counts(x, cuts), cell_counts(y, cuts)
    labels = draws(seed).permutation(len(x) + len(y))
    exact = two_sample(x, y, statistic, labels)
    assert two_sample_counts(*counts, statistic, labels) == exact
    at_ends = two_sample_counts(*counts, statistic, None)
    assert at_ends <= exact
    gaps = (x[:, None] <= cuts).sum(axis=0) * len(y) - (y[:, None] <= cuts).sum(axis=0) * len(x)
    slow = np.abs(gaps).max() if statistic == "ks" else max(gaps.max(), 0) - min(gaps.min(), 0)
    assert at_ends == slow


@given(seeds, st.sampled_from(["two-sided", "greater", "less"]))
def test_fewer_cells_never_make_the_distance_larger(seed, alternative):
    rng = draws(seed)
    x, y = rng.random(30), rng.random(40)
    labels = rng.permutation(70)
    fine, coarse = equal_cuts(0, 1, 64), equal_cuts(0, 1, 8)
    found = [
        two_sample_counts(cell_counts(x, cuts), cell_counts(y, cuts), "ks", None, alternative)
        for cuts in (coarse, fine)
    ]
    exact = two_sample(np.sort(x), np.sort(y), "ks", labels, alternative)
    assert found[0] <= found[1] <= exact


@pytest.mark.parametrize("statistic", ["ks", "kuiper", "cvm", "wasserstein"])
def test_one_sample_from_counts(statistic):
    rng = draws(4)
    x, labels = np.sort(rng.random(500)), rng.random(500)
    cuts = equal_cuts(0, 1, 10)
    codes = cell_codes(x, cuts)
    edges = np.append(0, np.append(cuts, 1))
    u = edges[codes] + (edges[codes + 1] - edges[codes]) * labels
    found = one_sample_counts(cell_counts(x, cuts), cuts, statistic, labels)
    assert found == pytest.approx(one_sample(u, statistic), abs=1e-9)


@given(seeds, st.sampled_from(["two-sided", "greater", "less"]), st.sampled_from(["ks", "kuiper"]))
def test_one_sample_at_the_ends_of_cells(seed, alternative, statistic):
    rng = draws(seed)
    x, labels, cuts = np.sort(rng.random(60)), rng.random(60), equal_cuts(0, 1, 12)
    side: Any = alternative if statistic == "ks" else "two-sided"
    counts = cell_counts(x, cuts)
    found = one_sample_counts(counts, cuts, statistic, None, side)
    gaps = np.append((x[:, None] <= cuts).sum(axis=0) - 60 * cuts, 0)
    slow = {"two-sided": np.abs(gaps).max(), "greater": gaps.max(), "less": -gaps.min()}[side]
    assert found == pytest.approx(slow if statistic == "ks" else np.ptp(gaps))
    assert found <= one_sample_counts(counts, cuts, statistic, labels, side) + 1e-9


# --- permuted statistics, against sorted values ------------------------------------------------


def permuted(line, cells, labels, kind, draw):
    relabelling = draw(len(line), 30, draws(5))
    metric_of_line = LineMetric(np.ones((1, 1)), kind, 1.0)
    exact, _ = permuted_distance(relabelling, line[:, None], labels, metric_of_line)
    found, error = permuted_cells(relabelling, [cells], labels)
    assert error.shape == (1,)
    assert 0 < error[0] < 1e-12
    return found, exact


@settings(max_examples=40)
@given(small, seeds, st.sampled_from(KINDS), st.sampled_from([block_permutation, pair_swaps]))
def test_a_cell_for_each_value_is_exact(values, seed, kind, draw):
    line = np.array(values, float)
    labels = draws(seed).integers(2, size=len(line)).astype(float)
    cells = cut_cells(line, np.arange(12.0), kind)
    found, exact = permuted(line, cells, labels, kind, draw)
    np.testing.assert_allclose(found, exact, atol=1e-13)


@settings(max_examples=40)
@given(small, seeds, st.sampled_from(KINDS))
def test_a_cut_point_at_each_rank_is_exact(values, seed, kind):
    line = np.array(values, float)
    labels = draws(seed).integers(2, size=len(line)).astype(float)
    cells = rank_cells(line, len(line), kind)
    found, exact = permuted(line, cells, labels, kind, block_permutation)
    np.testing.assert_allclose(found, exact, atol=1e-13)  # a share of ties is between their ends


def test_a_cut_point_among_ties_counts_a_share_of_them():
    """The mean over all orders of ties, by enumeration."""
    line, labels = np.array([0.0, 1, 1, 1, 2]), np.array([0.0, 1, 0, 1, 0])
    cells = rank_cells(line, 2, "above")  # one cut point, at rank 2
    found, _ = permuted_cells(block_permutation(5, 1, draws(0)), [cells], labels)
    centred = labels - labels.mean()
    means = [centred[0] + centred[order[0]] for order in permutations([1, 2, 3])]
    assert found[0, 0] == pytest.approx(max(0.0, np.mean(means)) / 5)


@pytest.mark.parametrize("draw", [block_permutation, pair_swaps])
def test_many_cells_are_close_to_wasserstein(draw):
    rng = draws(8)
    line, labels = rng.beta(2, 5, size=2000), rng.integers(2, size=2000).astype(float)
    cells = area_cells(line, 0.0, 1.0, 512)
    found, exact = permuted(line, cells, labels, "wasserstein", draw)
    assert (found <= exact + 1e-8).all()
    np.testing.assert_allclose(found, exact, rtol=0.02)


def test_one_cell_is_the_difference_of_means():
    rng = draws(9)
    line = np.floor(rng.random(400) * FINE_STEPS) / FINE_STEPS
    labels = rng.integers(2, size=400).astype(float)
    permutation = block_permutation(400, 3, draws(0))
    found, _ = permuted_cells(permutation, [area_cells(line, 0.0, 1.0, 1)], labels)
    assert found[0, 0] == pytest.approx(abs(((labels - labels.mean()) * line).mean()), abs=1e-12)


@pytest.mark.parametrize("kind", [*KINDS, "wasserstein"])
@pytest.mark.parametrize(("n", "m"), [(300, 300), (100, 520)])
def test_public_groups(kind, n, m):
    """Bins whose cells are counted give what sums over sorted rows give."""
    rng = draws(n)
    x, y = (np.floor(rng.random((size, 1)) * 64) / 64 for size in (n, m))
    layout = bin_layout(n, m, 7, 999)
    rows = layout.arrange(x, y, rng.permutation(n), rng.permutation(m))
    permutation = layout.permute(20, rng)
    bin_of_row = np.repeat(np.arange(len(layout.edges) - 1), np.diff(layout.edges))
    exact, _ = LineMetric(np.ones((1, 1)), kind, 1.0).values(
        rows, lambda order: lambda part: permutation.weights[part][:, bin_of_row[order]], 21
    )
    same, _ = permuted_distance(permutation, rows, None, LineMetric(np.ones((1, 1)), kind, 1.0))
    np.testing.assert_allclose(same, exact, rtol=1e-13)
    cells = (
        area_cells(rows[:, 0], 0.0, 1.0, 64)
        if kind == "wasserstein"
        else cut_cells(rows[:, 0], np.arange(63) / 64, kind)
    )
    found, _ = permuted_cells(permutation, [cells], None)
    np.testing.assert_allclose(found, exact, atol=1e-12)


def test_several_lines_are_close_to_sliced_wasserstein():
    rng = draws(3)
    rows, labels = rng.random((900, 3)), rng.integers(2, size=900).astype(float)
    chosen = metric("wasserstein", Domain((0, 0, 0)))
    assert isinstance(chosen, LineMetric)
    cells = cell_metric(chosen, None, None)
    assert isinstance(cells, CellMetric)
    permutation = block_permutation(900, 5, draws(1))
    exact, _ = permuted_distance(permutation, rows, labels, chosen)
    found, _ = permuted_cells(permutation, cells.lines(rows), labels)
    np.testing.assert_allclose(found, exact, rtol=0.01)
    assert chosen.diameter < cells.diameter < chosen.diameter * (1 + 1e-6)


def test_the_same_row_has_the_same_place_wherever_it_is_stored():
    """A matrix product may round a row by where it lies in memory."""
    rows = draws(2).random((999, 7))
    cells = cell_metric(metric("wasserstein", Domain((0,) * 7)), None, None)  # type: ignore[arg-type]
    order = draws(3).permutation(999)
    for here, there in zip(cells.lines(rows), cells.lines(rows[order]), strict=True):
        assert here.inside is not None
        assert there.inside is not None
        assert np.array_equal(here.inside[order], there.inside)
        assert np.array_equal(here.codes[order], there.codes)
