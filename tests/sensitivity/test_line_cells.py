"""Cells on a line: neighbours cannot move a distance further than declared."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import pytest

from privatest.data.schema import Domain, equal_cuts
from privatest.numerics.cells import (
    LineKind,
    area_cells,
    bin_sums,
    cell_counts,
    cut_cells,
    rank_cells,
)
from privatest.numerics.distances import cell_metric, metric, rank_cells_sensitivity
from privatest.numerics.ecdf import (
    LATTICE,
    on_lattice,
    one_sample_counts,
    one_sample_width,
    two_sample_counts,
    two_sample_width,
)
from privatest.numerics.permutation import (
    bin_layout,
    block_permutation,
    mmd_sensitivity,
    pair_swaps,
    pair_swaps_sensitivity,
    permuted_cells,
    private_groups_sensitivity,
)
from tests.sensitivity.harness import Space, assert_permutation_sensitivity, assert_sensitivity

LINE = Domain((0,))
KINDS: tuple[LineKind, ...] = get_args(LineKind)
RANKED = tuple(kind for kind in KINDS if kind != "wasserstein")
DRAWS = 12
SEARCH: dict[str, Any] = {"restarts": 6, "steps": 100, "slack": 1e-12}


def placed(rows, kind, cells=5):
    if kind == "wasserstein":
        return area_cells(rows[:, 0], 0.0, 1.0, cells)
    return cut_cells(rows[:, 0], equal_cuts(0, 1, cells), kind)


def centred(line, labels):
    """T of private groups; the harness permutes single labels. Compared with the code below."""
    weights, edges = labels.astype(float), np.array([0, len(labels)])
    of_one, of_all = (line.heights(bin_sums(line, edges, own)[0]) for own in (weights, None))
    return float(line.distance((of_one - weights.mean() * of_all) / len(labels)))


def at_ranks(cells, kind):
    return lambda rows, labels: centred(rank_cells(rows[:, 0], cells, kind), labels)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_attacked_is_what_is_computed(kind):
    rng = np.random.default_rng(5)
    rows, labels = np.round(rng.random((31, 1)), 1), rng.random(31) < 0.4
    lines = [placed(rows, kind)]
    if kind != "wasserstein":
        lines.append(rank_cells(rows[:, 0], 4, kind))
    for line in lines:
        found, _ = permuted_cells(block_permutation(31, 3, rng), [line], labels.astype(float))
        assert found[0, 0] == pytest.approx(centred(line, labels), abs=1e-14)


# --- cut points at ranks -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", RANKED)
@pytest.mark.parametrize(("total", "cells"), [(4, 2), (9, 3), (12, 5), (7, 7)])
def test_cut_points_at_ranks(kind, total, cells):
    bound = rank_cells_sensitivity(kind, total)
    space = Space(LINE, total // 2, total - total // 2, "row")
    assert_permutation_sensitivity(at_ranks(cells, kind), bound, space, **SEARCH)


def test_the_bounds_of_ranks_are_nearly_attained():
    space = Space(LINE, 20, 20, "row")
    observed, permuted = assert_permutation_sensitivity(
        at_ranks(2, "kolmogorov"), rank_cells_sensitivity("kolmogorov", 40), space, **SEARCH
    )
    assert observed > 0.99
    assert permuted > 0.74  # at half of the ranks a label moves the sum by 1/2


def test_a_rank_among_ties_moves_little():
    """One of six zeros becomes a one: the rank between them falls among seven ones."""
    rows, labels = np.repeat([[0.0], [1.0]], 6, axis=0), np.arange(12) < 6
    value, moved = at_ranks(2, "kolmogorov"), rows.copy()
    moved[0] = 1.0
    movement = 12 * (value(rows, labels) - value(moved, labels))
    assert movement == pytest.approx(3 - (2.5 - 2.5 / 7))
    assert movement <= 1


def test_between_two_ranks_the_observed_distance_moves_further():
    """The lowest row passes all others and changes its label: at both ends a row is exchanged."""
    rows, labels = np.arange(8.0)[:, None], np.array([0, 0, 1, 0, 1, 1, 0, 0], dtype=np.bool_)
    moved, changed = rows.copy(), labels.copy()
    moved[0], changed[0] = 8, True
    value = at_ranks(4, "kuiper")
    movement = abs(value(rows, labels) - value(moved, changed))
    assert 8 * movement == pytest.approx(1.5)
    assert movement <= rank_cells_sensitivity("kuiper", 8).observed


@pytest.mark.parametrize("kind", RANKED)
def test_all_small_data_sets_at_ranks(kind):
    """Every data set of four rows with three values, every neighbour, observed."""
    total, cells = 4, 3
    value = at_ranks(cells, kind)
    records = list(itertools.product((0.0, 1.0, 2.0), (0, 1)))
    found = {}
    for data in itertools.combinations_with_replacement(records, total):
        rows = np.array([[record[0]] for record in data])
        found[data] = value(rows, np.array([record[1] for record in data]))
    largest = max(
        abs(found[data] - found[tuple(sorted((*data[:place], new, *data[place + 1 :])))])
        for data in found
        for place in range(total)
        for new in records
    )
    bound = rank_cells_sensitivity(kind, total).observed
    assert largest <= bound * (1 + 1e-12)
    assert largest >= (0.74 if kind != "kuiper" else 0.5) * bound


def test_a_bound_planted_too_small_is_caught():
    bound = private_groups_sensitivity(1.0, 12).observed * 0.9
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(
            at_ranks(3, "kolmogorov"), bound, Space(LINE, 6, 6, "row"), restarts=8, steps=200
        )


def test_ranks_are_not_for_swaps():
    """There a replaced value moves two pairs, which is why swaps are exact or on a public grid."""

    def value(rows, labels):
        line = rank_cells(rows[:, 0], 3, "kolmogorov")
        swaps = pair_swaps(len(rows), 0, np.random.default_rng(0))
        return permuted_cells(swaps, [line], labels.astype(float))[0][0]

    bound = pair_swaps_sensitivity(1.0, 12).observed
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(value, bound, Space(LINE, 6, 6, "row"), restarts=4, steps=100)


# --- public cut points, and areas --------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "m"), [(1, 3), (6, 5)])
def test_private_groups_on_public_cells(kind, n, m):
    def value(rows, labels):
        return centred(placed(rows, kind), labels)

    bound = private_groups_sensitivity(1.0, n + m)
    observed, _ = assert_permutation_sensitivity(value, bound, Space(LINE, n, m, "row"), **SEARCH)
    assert observed > 0.99


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "m"), [(1, 3), (6, 5)])
def test_swaps_on_public_cells(kind, n, m):
    def value(rows, labels):
        swaps = pair_swaps(n + m, DRAWS, np.random.default_rng(3))
        return permuted_cells(swaps, [placed(rows, kind)], labels.astype(float))[0][0]

    bound = pair_swaps_sensitivity(1.0, n + m).permuted
    assert assert_sensitivity(value, bound, Space(LINE, n, m, "row"), **SEARCH) > 0.99


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["one", "both"])
def test_public_groups_on_public_cells(kind, adjacency):
    n, m = 5, 7

    def value(rows, labels):
        order = np.argsort(~labels, kind="stable")  # a bin for each row, none left over
        permutation = bin_layout(n, m, 1, n + m).permute(0, np.random.default_rng(0))
        found, _ = permuted_cells(permutation, [placed(rows[order], kind)], None)
        return float(found[0, 0])

    bound = mmd_sensitivity(1.0, n, m, adjacency).observed
    ratio = assert_sensitivity(value, bound, Space(LINE, n, m, adjacency), **SEARCH)
    assert ratio > 0.99


def test_several_columns_are_rounded():
    """Places on a line are multiples of a step: two rows may be two steps further apart."""
    cells = cell_metric(metric("wasserstein", Domain((0, 0))), None, 4)  # type: ignore[arg-type]

    def value(rows, labels):
        return float(np.mean([centred(line, labels) for line in cells.lines(rows)]))

    bound = private_groups_sensitivity(cells.diameter, 7)
    assert_permutation_sensitivity(
        value, bound, Space(Domain((0, 0)), 3, 4, "row"), restarts=3, steps=60, slack=1e-12
    )


# --- statistics from counts --------------------------------------------------------------------


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
@pytest.mark.parametrize("adjacency", ["one", "both"])
def test_two_samples_from_counts(statistic, adjacency, labelled):
    """Labels belong to records; here to places, in the order in which cells are written out."""
    n, m, cuts = 4, 6, equal_cuts(0, 1, 3)
    own = np.random.default_rng(1).permutation(n + m)

    def value(rows, first):
        parts = [(rows[first, 0], own[first]), (rows[~first, 0], own[~first])]
        counts = [cell_counts(values, cuts) for values, _ in parts]
        labels = [lab[np.argsort(np.searchsorted(cuts, v), kind="stable")] for v, lab in parts]
        joined = np.concatenate(labels) if labelled else None
        return two_sample_counts(counts[0], counts[1], statistic, joined)

    width = two_sample_width(n, m, adjacency)
    assert assert_sensitivity(value, width, Space(LINE, n, m, adjacency), **SEARCH) > 0.9999


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("statistic", ["ks", "kuiper", "cvm", "wasserstein"])
def test_one_sample_from_counts(statistic, labelled):
    if not labelled and statistic in ("cvm", "wasserstein"):
        pytest.skip("labels are always drawn")
    n, cuts = 9, equal_cuts(0, 1, 4)
    own = np.random.default_rng(1).random(n)

    def value(rows, _):
        codes = np.searchsorted(cuts, rows[:, 0])
        labels = own[np.argsort(codes, kind="stable")] if labelled else None
        return on_lattice(one_sample_counts(cell_counts(rows[:, 0], cuts), cuts, statistic, labels))

    ratio = assert_sensitivity(value, one_sample_width(n), Space(LINE, n - 1, 1), **SEARCH)
    assert ratio > (0.999 * LATTICE / one_sample_width(n) if statistic in ("ks", "kuiper") else 0.3)
