"""Swapping labels in pairs: neighbours cannot move the statistic further than declared."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from privatest import Schema
from privatest.data.schema import Domain, NumericColumn
from privatest.numerics.distances import LineMetric, metric, permuted_distance
from privatest.numerics.features import fourier, nystrom
from privatest.numerics.kernels import Kernel, gram
from privatest.numerics.permutation import (
    pair_swaps,
    pair_swaps_sensitivity,
    permuted_features,
    permuted_mmd,
)
from tests.sensitivity.harness import Neighbours, Space, assert_sensitivity, movement
from tests.sensitivity.test_whole_path import MIXED, MIXED_SCHEMA, SEARCH, attack, whole_path

LINE, SQUARE = Domain((0,)), Domain((0, 0))
KERNEL = Kernel("gaussian", 0.8)
LINEAR = metric("mean", SQUARE)
DRAWS = 20


def fixed(function, *arguments, domain=LINE):
    """Statistics with the same swaps for all data: as observed, then 20 draws."""

    def statistic(rows, labels):
        swaps = pair_swaps(len(rows), DRAWS, np.random.default_rng(3))
        return function(swaps, rows, labels.astype(float), *arguments)[0].ravel()

    return statistic, domain


LINE_FEATURES = nystrom([KERNEL], LINE.points(32), LINE)
SPECTRUM = fourier([KERNEL], 32, LINE, np.random.default_rng(0))
CASES: dict[str, tuple[Any, float]] = {
    "exact": (fixed(permuted_mmd, (KERNEL,), LINE), KERNEL.spread(LINE)),
    "exact, mixed": (
        fixed(permuted_mmd, (KERNEL,), MIXED, domain=MIXED),
        KERNEL.spread(MIXED),
    ),
    "nystrom": (fixed(permuted_features, LINE_FEATURES), LINE_FEATURES.spreads[0]),
    "fourier": (fixed(permuted_features, SPECTRUM), SPECTRUM.spreads[0]),
    "mean": (
        fixed(permuted_features, LINEAR, domain=SQUARE),
        LINEAR.diameter,
    ),
    "kolmogorov": (fixed(permuted_distance, metric("kolmogorov", LINE)), 1.0),
    "wasserstein": (fixed(permuted_distance, metric("wasserstein", LINE)), 1.0),
}


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 4), (8, 6)])
@pytest.mark.parametrize("name", CASES)
def test_no_neighbour_moves_a_statistic_further(name, n, m):
    (statistic, domain), diameter = CASES[name]
    bound = pair_swaps_sensitivity(diameter, n + m).permuted
    space = Space(domain, n, m, "row")
    ratio = assert_sensitivity(statistic, bound, space, slack=1e-7, restarts=4, steps=80)
    # Fourier features spread less than their bound says
    assert ratio > (0.6 if name == "fourier" else 0.99)


def test_a_sensitivity_planted_too_small_is_caught():
    (statistic, domain), diameter = CASES["exact"]
    bound = 0.9 * pair_swaps_sensitivity(diameter, 6).permuted
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(statistic, bound, Space(domain, 3, 3, "row"))


@pytest.mark.parametrize("release", ["pvalue", "decision"])
@pytest.mark.parametrize("method", ["exact", "nystrom", "fourier"])
def test_the_whole_path(method, release):
    run = whole_path("row", relabel="swap", method=method, bandwidths=1.0, release=release)
    assert attack(run, Space(LINE, 7, 4, "row"), **SEARCH) > 0.6


def test_the_whole_path_with_several_kernels_and_mixed_rows():
    run = whole_path("row", relabel="swap", bounds=MIXED_SCHEMA, bandwidths=[1.0, 0.3])
    attack(run, Space(MIXED, 6, 5, "row"), restarts=2, steps=25)


@pytest.mark.parametrize("method", ["exact", "nystrom"])
def test_bins_of_several_pairs(method, monkeypatch):
    """43 rows: 21 pairs in 8 bins of three or fewer, and a row left over."""
    monkeypatch.setattr("privatest.numerics.permutation.SWAP_BINS", 8)
    run = whole_path("row", relabel="swap", method=method, bandwidths=0.5)
    attack(run, Space(LINE, 20, 23, "row"), restarts=1, steps=40)


@pytest.mark.parametrize("places", [(0, 1), (0, 2)], ids=["one pair", "two pairs"])
def test_two_rows_of_a_person(places):
    """In one pair or in two, they move the statistic by at most twice the bound; two attain it."""
    schema = Schema({"number": NumericColumn(0, 1)}, rows_per_person=2)
    run = whole_path("row", bounds=schema, relabel="swap", bandwidths=1.0)
    # pair 3 stands at c/N already, so that the others add to it
    rows, labels = np.zeros((8, 1)), np.array([0, 0, 0, 0, 0, 0, 1, 0], dtype=bool)
    rows[6] = 1.0
    if places == (0, 1):
        rows[1], labels[0] = 1.0, True  # turned against pair 3; its rows change places
    moved, found = [], run(rows, labels)
    new_rows, new_labels = rows.copy(), labels.copy()
    new_rows[list(places)], new_labels[list(places)] = [[1.0], [0.0]], [True, False]
    if places == (0, 2):
        new_rows[2], new_labels[2] = 1.0, True
    other = run(new_rows, new_labels)
    moved = abs(found.statistics[0] - other.statistics[0])
    assert 0.99 * found.sensitivity.observed < moved <= found.sensitivity.observed


def test_a_leftover_row_moves_nothing():
    pair = Neighbours(
        rows=np.array([[0.0], [1.0], [0.0], [1.0], [0.3]]),
        labels=np.array([True, False, True, True, False]),
        replaced=np.array([4]),
        new_rows=np.array([[0.9]]),
        new_label=True,
        permutation=np.arange(5),
    )
    assert np.all(movement(CASES["exact"][0][0], pair) == 0)


# --- what is computed ------------------------------------------------------------------------


@pytest.mark.parametrize("total", [2, 3, 7, 40, 1_103])
def test_all_ways_of_computing_agree_with_the_definition(total):
    rng = np.random.default_rng(total)
    rows, labels = rng.uniform(size=(total, 1)), rng.integers(2, size=total).astype(float)
    pairs = total // 2
    values, _ = permuted_mmd(pair_swaps(total, 0, rng), rows, labels, (KERNEL,), LINE)
    first, second = rows[: 2 * pairs : 2], rows[1 : 2 * pairs : 2]
    terms = labels[: 2 * pairs : 2] - labels[1 : 2 * pairs : 2]
    inner = gram(KERNEL, first, first, LINE) - gram(KERNEL, first, second, LINE)
    inner += gram(KERNEL, second, second, LINE) - gram(KERNEL, second, first, LINE)
    assert values[0, 0] == pytest.approx(np.sqrt(max(terms @ inner @ terms, 0)) / total, abs=1e-7)
    landmarks = nystrom([KERNEL], LINE.points(64), LINE)
    swaps = pair_swaps(total, 30, np.random.default_rng(5))
    exact, _ = permuted_mmd(swaps, rows, labels, (KERNEL,), LINE)
    features, _ = permuted_features(swaps, rows, labels, landmarks)
    assert features == pytest.approx(exact, abs=1e-4)


def test_swaps_turn_signs_of_whole_bins(monkeypatch):
    """A line metric and features with the same swaps: the mean is the mean of the line."""
    monkeypatch.setattr("privatest.numerics.permutation.SWAP_BINS", 5)
    rng = np.random.default_rng(2)
    rows, labels = rng.integers(2, size=(57, 1)).astype(float), rng.integers(2, size=57)
    mean: Any = metric("mean", LINE)
    swaps = pair_swaps(57, 50, np.random.default_rng(5))
    line = cast("LineMetric", metric("wasserstein", LINE))
    by_line, _ = permuted_distance(swaps, rows, labels.astype(float), line)
    by_mean, _ = permuted_features(swaps, rows, labels.astype(float), mean)
    assert by_line == pytest.approx(by_mean)  # of two values they are the same
    assert len(np.unique(np.round(by_mean, 9))) == 4
