"""ipm_test: the distances are what they are called, and bad input is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.data.schema import CategoricalColumn, Domain, Schema
from privatest.noise import SimulatedNoise
from privatest.numerics.distances import ipm, metric

LINE, SQUARE = Domain((0,)), Domain((0, 0))


def tied(n: int, top: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, top, size=(n, 1)) / 10


def test_distances_agree_with_scipy():
    x, y = tied(50, 9, 1), tied(31, 7, 2)
    expected: dict[Any, float] = {
        "kolmogorov": stats.ks_2samp(x[:, 0], y[:, 0]).statistic,
        "wasserstein": stats.wasserstein_distance(x[:, 0], y[:, 0]),
        "mean": abs(x.mean() - y.mean()),
    }
    for distance, value in expected.items():
        assert ipm(x, y, metric(distance, LINE)) == pytest.approx(value, abs=1e-12)


def test_norms_of_means():
    rng = np.random.default_rng(3)
    x, y = rng.uniform(size=(20, 2)), rng.uniform(size=(30, 2))
    gap = x.mean(axis=0) - y.mean(axis=0)
    norms: dict[Any, float] = {"l1": 1, "l2": 2, "linf": np.inf}
    for norm, order in norms.items():
        assert ipm(x, y, metric("mean", SQUARE, norm)) == pytest.approx(np.linalg.norm(gap, order))


def test_total_variation():
    x = np.array([[0, 0], [0, 1], [2, 1], [2, 1.0]])
    y = np.array([[0, 0], [1, 0], [2, 1], [2, 1], [0, 0.0]])
    # shares of the cells (0,0), (0,1), (1,0), (2,1)
    expected = 0.5 * (abs(1 / 4 - 2 / 5) + 1 / 4 + 1 / 5 + abs(2 / 4 - 2 / 5))
    assert ipm(x, y, metric("total-variation", Domain((3, 2)))) == pytest.approx(expected)


@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
@pytest.mark.parametrize("distance", ["mean", "wasserstein", "kolmogorov"])
@pytest.mark.parametrize("columns", [1, 2])
def test_finds_a_difference_and_nothing_where_there_is_none(distance, adjacency, columns):
    rng = np.random.default_rng(6)
    x, y = rng.uniform(size=(203, columns)), rng.uniform(size=(150, columns))
    options = {
        "distance": distance,
        "adjacency": adjacency,
        "bounds": (0, 1),
        "epsilon": 1000,
        "n_permutations": 199,
        "rng": 0,
        "noise": SimulatedNoise(2),
    }
    assert pt.ipm_test(x, y**2, **options).reject
    assert not pt.ipm_test(x, y, **options).reject
    shown = pt.ipm_test(x, y, **options).sizes
    assert shown == ({"N": 353} if adjacency == "row" else {"n": 203, "m": 150})


def test_categories():
    schema = Schema({"kind": CategoricalColumn(("a", "b", "c"))})
    x, y = {"kind": ["a"] * 60 + ["b"] * 40}, {"kind": ["a"] * 20 + ["c"] * 80}
    options: dict[str, Any] = {"distance": "total-variation", "bounds": schema, "epsilon": 1000}
    assert pt.ipm_test(x, y, **options).reject
    assert pt.ipm_test(x, y, adjacency="row", release="decision", **options).reject
    with pytest.raises(ParameterError, match="numeric columns only"):
        pt.ipm_test(x, y, **(options | {"distance": "mean"}))


def test_an_empty_private_group_is_no_error():
    result = pt.ipm_test(
        np.empty(0),
        np.linspace(0, 1, 40),
        distance="mean",
        bounds=(0, 1),
        epsilon=1,
        adjacency="row",
    )
    assert 0 < result.pvalue <= 1


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"distance": "energy"}, ParameterError, "distance"),
        ({"norm": "l3"}, ParameterError, "norm"),
        ({"bounds": None}, ParameterError, "bounds must be given"),
        ({"distance": "total-variation"}, ParameterError, "categorical columns only"),
        ({"epsilon": float("nan")}, ParameterError, "epsilon"),
        ({"adjacency": "none"}, ParameterError, "adjacency"),
    ],
)
def test_bad_parameters(change, error, words):
    good = {"distance": "mean", "bounds": (0, 1), "epsilon": 1}
    with pytest.raises(error, match=words):
        pt.ipm_test(np.zeros(5), np.ones(5), **(good | change))


def test_too_many_cells_and_too_few_rows():
    wide = Schema({name: CategoricalColumn(tuple(range(20))) for name in ("a", "b", "c")})
    rows = np.zeros((5, 3))
    with pytest.raises(ParameterError, match="8000"):
        pt.ipm_test(rows, rows, distance="total-variation", bounds=wide, epsilon=1)
    with pytest.raises(DataError, match="at least 2"):
        pt.ipm_test([0.5], [0.1, 0.2], distance="mean", bounds=(0, 1), epsilon=1)


@pytest.mark.parametrize("distance", ["mean", "total-variation", "kolmogorov"])
def test_metrics_travel_to_other_processes(distance):
    domain = Domain((2, 3)) if distance == "total-variation" else Domain((0, 0))
    own: Any = metric(distance, domain)
    there = pickle.loads(pickle.dumps(own))
    rows = np.random.default_rng(0).integers(2, size=(9, 2)).astype(float)
    np.testing.assert_array_equal(there.features(rows), own.features(rows))
    np.testing.assert_array_equal(there.norm(rows), own.norm(rows))
