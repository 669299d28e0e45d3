"""``grid`` of ks_1samp, ks_2samp and ipm_test: what it means, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.core.errors import ParameterError
from privatest.core.results import Outcome
from privatest.data.schema import cut_points, read_grid
from privatest.noise import SimulatedNoise

ks_1samp: Callable[..., Outcome] = pt.ks_1samp
ks_2samp: Callable[..., Outcome] = pt.ks_2samp
ipm_test: Callable[..., Any] = pt.ipm_test


def samples(n=300, m=400, shift=0.0):
    """Normal quantiles: as close as two samples can be, or shifted."""
    x, y = (stats.norm.ppf((np.arange(size) + 0.5) / size) for size in (n, m))
    return x, y + shift


@pytest.mark.parametrize("grid", [20, np.linspace(-3, 3, 12), [0.0]])
@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_two_samples(grid, adjacency, statistic):
    options = {"grid": grid, "adjacency": adjacency, "statistic": statistic, "bounds": (-4, 4)}
    options |= {"epsilon": 50, "rng": 1}
    far = ks_2samp(*samples(shift=1.5), noise=SimulatedNoise(1), **options)
    near = ks_2samp(*samples(), noise=SimulatedNoise(1), **options)
    assert (far.reject, near.reject) == (True, False)
    assert far.parameters["grid"] == (grid if isinstance(grid, int) else len(grid) + 1)


@pytest.mark.parametrize("statistic", ["ks", "kuiper", "cvm", "wasserstein"])
def test_one_sample(statistic):
    x, _ = samples(2000)
    options = {"statistic": statistic, "epsilon": 50}
    for grid in (32, [-1.0, 0.0, 1.0]):
        own = {"grid": grid, "bounds": (-4, 4), "noise": SimulatedNoise(1)} | options
        assert not ks_1samp(x, "norm(0, 1)", **own).reject
        far = ks_1samp(x, "norm(0.4, 1)", **own)
        assert far.reject
        assert far.parameters["grid"] == (32 if grid == 32 else 4)


def test_a_grid_is_rounding():
    """Values of one cell are ties: the same as without a grid on rounded values."""
    x, y = samples()
    cuts = np.linspace(-2, 2, 9)
    rounded = [np.searchsorted(cuts, values).astype(float) for values in (x, y)]
    for side in ("two-sided", "greater", "less"):
        shared: dict[str, Any] = {"epsilon": 1, "alternative": side}
        found = ks_2samp(x, y, grid=cuts, noise=SimulatedNoise(4), **shared)
        plain = ks_2samp(*rounded, noise=SimulatedNoise(4), **shared)
        assert (found.statistic, found.pvalue) == (plain.statistic, plain.pvalue)


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_many_rows_are_measured_at_the_ends_of_cells(statistic, monkeypatch):
    """No label is drawn then, and the distance is that at the cut points."""
    monkeypatch.setattr("privatest.methods.ks.LABELLED_ROWS", 10)
    monkeypatch.setattr("privatest.methods.ks.LABELLED_ROWS", 10)

    def fail(*_):
        raise AssertionError("an order was drawn")

    monkeypatch.setattr(SimulatedNoise, "permutation", fail)
    x, y = samples(shift=0.5)
    cuts = np.linspace(-1, 1, 7)
    below = [(values[:, None] <= cuts).mean(axis=0) for values in (x, y)]
    common: dict[str, Any] = {"grid": cuts, "statistic": statistic, "epsilon": 1e5}
    two = ks_2samp(x, y, noise=SimulatedNoise(0), **common)
    one = ks_1samp(x, "norm(0, 1)", noise=SimulatedNoise(0), **common)
    for found, other in ((two, below[1]), (one, stats.norm.cdf(cuts))):
        gaps = np.append(below[0] - other, 0)
        expected = np.abs(gaps).max() if statistic == "ks" else np.ptp(gaps)
        assert found.statistic == pytest.approx(expected, abs=0.01)


def test_private_groups_of_many_rows_are_measured_at_ranks():
    x, y = samples(9_000, 9_000)
    options: dict[str, Any] = {"adjacency": "row", "n_permutations": 99, "epsilon": 1}
    options |= {"noise": SimulatedNoise(1), "rng": 1}
    for statistic in ("ks", "kuiper"):
        far = ks_2samp(x, y + 0.2, statistic=statistic, **options)
        assert far.reject
        assert far.parameters["rank_cells"] == 1024
        assert "grid" not in far.parameters
    exact = ks_2samp(x, y, grid="exact", **options | {"n_permutations": 9})
    assert "rank_cells" not in exact.parameters
    few = ks_2samp(x[:300], y[:300], **options)
    assert "rank_cells" not in few.parameters
    swapped = ks_2samp(x, y + 1, **options | {"epsilon": 0.1})  # swaps are exact, however many
    assert swapped.parameters["relabel"] == "swap"
    assert "rank_cells" not in swapped.parameters
    assert swapped.reject


@pytest.mark.parametrize("distance", ["wasserstein", "kolmogorov"])
@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
def test_integral_probability_metrics(distance, adjacency):
    options: dict[str, Any] = {"distance": distance, "adjacency": adjacency, "bounds": (-5, 5)}
    options |= {"noise": SimulatedNoise(1), "rng": 1}  # else noise rejects "near" once in 200 runs
    few = ipm_test(*samples(), epsilon=1, **options)
    assert "grid" not in few.parameters
    for grid in (16, None):
        n, m = (300, 400) if grid else (9_000, 9_001)
        far = ipm_test(*samples(n, m, 2.0), grid=grid, epsilon=5, n_permutations=99, **options)
        near = ipm_test(*samples(n, m), grid=grid, epsilon=5, n_permutations=99, **options)
        assert (far.reject, near.reject) == (True, False)
        assert far.parameters["grid"] == (grid or {"wasserstein": 1024}.get(distance, 4096))
    exact = ipm_test(*samples(9_000, 9_000), grid="exact", epsilon=5, n_permutations=9, **options)
    assert "grid" not in exact.parameters


def test_cut_points_of_a_metric_are_in_units_of_the_data():
    x, y = np.array([1.0] * 40 + [3.0] * 40), np.array([1.0] * 20 + [3.0] * 60)
    options: dict[str, Any] = {"distance": "kolmogorov", "bounds": (0, 4), "epsilon": 100}
    options |= {"noise": SimulatedNoise(1), "rng": 1}  # equal samples are rejected at level .05
    assert ipm_test(x, y, grid=[2.0], **options).reject
    assert not ipm_test(x, y, grid=[0.5, 3.5], **options).reject


def test_sliced_wasserstein_of_many_rows():
    rng = np.random.default_rng(0)
    x, y = rng.random((9_000, 3)), rng.random((9_000, 3)) ** 1.2
    found = ipm_test(
        x,
        y,
        distance="wasserstein",
        bounds=(0, 1),
        epsilon=5,
        n_permutations=99,
        alpha=0.05,
        noise=SimulatedNoise(1),
        rng=1,
    )
    assert found.reject
    assert found.parameters["grid"] == 256


@pytest.mark.parametrize(
    "grid", [1, 0, -3, 9000, True, 2.5, "fine", [], [1.0, 1.0], [2, 1], [np.nan], [[1.0]], {}]
)
def test_bad_grids(grid):
    x, y = samples()
    for call in (
        lambda: ks_2samp(x, y, epsilon=1, grid=grid, bounds=(0, 1)),
        lambda: ks_1samp(x, "norm(0, 1)", epsilon=1, grid=grid, bounds=(0, 1)),
        lambda: ipm_test(x, y, distance="kolmogorov", epsilon=1, grid=grid, bounds=(0, 1)),
    ):
        with pytest.raises(ParameterError, match="grid must be"):
            call()


def test_what_does_not_go_together():
    x, y = samples()
    with pytest.raises(ParameterError, match=r"grid, as a number of cells, needs bounds"):
        ks_2samp(x, y, epsilon=1, grid=8)
    with pytest.raises(ParameterError, match=r"grid, as a number of cells, needs bounds"):
        ks_1samp(x, "norm(0, 1)", epsilon=1, grid=8)
    with pytest.raises(ParameterError, match="grid is for distance"):
        ipm_test(x, y, distance="mean", bounds=(0, 1), epsilon=1, grid=8)
    with pytest.raises(ParameterError, match="grid must be a number of cells"):
        ipm_test(x, y, distance="wasserstein", bounds=(0, 1), epsilon=1, grid=[0.5])


def test_cut_points():
    assert cut_points(4, 0.0, 2.0).tolist() == [0.5, 1.0, 1.5]
    assert np.isfinite(cut_points(5, -1.7e308, 1.7e308)).all()
    own = np.array([3.0, 4.0])
    checked = read_grid(own)
    own[0] = 9  # the caller's array may change later
    assert isinstance(checked, np.ndarray)
    assert checked.tolist() == [3.0, 4.0]
