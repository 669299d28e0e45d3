"""Distances from counts by secret bin and cell, against sums over the rows themselves."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from privatest.core.secret_order import secret_pair_bins
from privatest.data.encoding import Sample, TwoSamples
from privatest.noise import SimulatedNoise
from privatest.numerics.cells import LineKind, PlacedLine, cut_cells
from privatest.numerics.distances import LineMetric, cell_metric
from privatest.numerics.permutation import bin_layout, pair_bin_sizes, pair_swaps, streamed_cells

CUTS = np.arange(1, 16) / 16
AREAS = cell_metric(LineMetric(np.ones((1, 1)), "wasserstein", 1.0), None, 16)


def placed(kind: LineKind, rows: np.ndarray) -> PlacedLine:
    return cut_cells(rows[:, 0], CUTS, kind)


def two_samples(n, m):
    rng = np.random.default_rng(n)
    x, y = rng.beta(2, 3, size=(n, 1)), rng.uniform(size=(m, 1))
    return TwoSamples(Sample(x, None), Sample(y, None))


def below(values):
    """Whether each value is at most each cut point."""
    return np.less_equal.outer(values[:, 0], CUTS).astype(float)


@pytest.mark.parametrize(("n", "m"), [(800, 500), (70_001, 3), (31, 66_000)])
def test_the_observed_distance_is_that_of_distribution_functions(n, m):
    samples = two_samples(n, m)
    rng = np.random.default_rng(0)
    permutation = bin_layout(len(samples.x), len(samples.y), None, 64).permute(9, rng)
    place = partial(placed, "kolmogorov")
    found, _ = streamed_cells(permutation, samples, place, SimulatedNoise(1))
    x, y = samples.x.rows, samples.y.rows
    expected = np.abs(below(x).mean(axis=0) - below(y).mean(axis=0)).max()
    assert found.shape == (1, 10)
    assert found[0, 0] == pytest.approx(expected, rel=1e-12)


def test_the_observed_area_is_the_difference_of_means_where_one_sample_lies_above():
    """Where two distribution functions do not cross, cells lose nothing but their fine steps."""
    x = np.random.default_rng(3).uniform(0, 0.4, size=(3_000, 1))
    samples = TwoSamples(Sample(x, None), Sample(x + 0.5, None))
    rng = np.random.default_rng(0)
    permutation = bin_layout(len(samples.x), len(samples.y), None, 64).permute(9, rng)
    found, _ = streamed_cells(permutation, samples, AREAS.line, SimulatedNoise(1))
    assert found[0, 0] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(("n", "m"), [(800, 501), (70_001, 3), (0, 40)])
def test_swapped_labels_are_those_of_mixed_pairs(n, m):
    samples, total = two_samples(n, m), n + m
    rng = np.random.default_rng(0)
    place = partial(placed, "kuiper")
    found, _ = streamed_cells(pair_swaps(total, 5, rng), samples, place, SimulatedNoise(4))
    sizes = pair_bin_sizes(total)
    bins = secret_pair_bins(n, m, [*sizes, total % 2], SimulatedNoise(4))
    signs = np.random.default_rng(0).integers(2, size=(5, len(sizes))) * 2.0 - 1.0
    sums = np.zeros((len(sizes), len(CUTS)))
    for sample, own, sign in zip(samples, bins, (1, -1), strict=True):
        of_rows = own.of_rows(0, len(sample))
        mixed = (of_rows % 2 == 0) & (of_rows < 2 * len(sizes))
        np.add.at(sums, of_rows[mixed] // 2, sign * below(sample.rows[mixed]))
    walks = np.vstack([np.ones(len(sizes)), signs]) @ sums / total
    expected = np.maximum(walks.max(axis=1), 0) - np.minimum(walks.min(axis=1), 0)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-15)
