"""Which members a family has: by public columns, sizes and words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privatest import mmd_test
from privatest.core.errors import ParameterError
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.numerics.portfolio import STATISTICS, chosen_statistics, members


def run(x: Any, y: Any, **options: Any) -> Any:
    settings: dict[str, Any] = {"bounds": (0, 1), "n_permutations": 19, "epsilon": 1}
    return mmd_test(x, y, rng=0, noise=SimulatedNoise(1), **(settings | options))


@pytest.mark.parametrize(
    ("levels", "names"),
    [
        ((0,), "kernel kolmogorov mean"),
        ((5,), "kernel kolmogorov"),
        ((0, 0), "kernel additive kolmogorov mean"),
        ((0, 2, 3), "kernel additive pairwise kolmogorov mean"),
        ((2, 2, 3), "kernel additive pairwise kolmogorov"),
    ],
)
def test_all_that_apply(levels, names):
    assert chosen_statistics(None, Domain(levels), kernel_only=False) == tuple(names.split())
    assert chosen_statistics(None, Domain(levels), kernel_only=True) == ("kernel",)


def test_without_bounds_there_are_kernels_only():
    domain = Domain.anywhere(3)
    assert chosen_statistics(None, domain, kernel_only=False) == ("kernel",)
    with pytest.raises(ParameterError, match="other than 'kernel' need bounds"):
        chosen_statistics(("kernel", "mean"), domain, kernel_only=False)


def test_names_come_in_one_order_and_once():
    chosen = chosen_statistics(["mean", "kernel", "mean"], Domain((0,)), kernel_only=True)
    assert chosen == ("kernel", "mean")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistics": "median"}, "statistics must be one of 'kernel'"),
        ({"statistics": ["mean", 5]}, "statistics must be one of 'kernel'"),
        ({"statistics": 5}, "statistics must be one or more of kernel"),
        ({"statistics": []}, "statistics must be one or more of kernel"),
        ({"statistics": ""}, "statistics must be one or more of kernel"),
        ({"statistics": "pairwise"}, "needs two columns"),
        ({"statistics": "mean", "bandwidths": 0.5}, "bandwidths needs statistics with 'kernel'"),
        ({"statistics": "mean", "estimator": "u"}, "needs statistics='kernel'"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        run(np.zeros(4), np.ones(4), **options)


def test_means_of_categories_are_refused():
    schema = Schema({"plan": CategoricalColumn(("a", "b"))})
    with pytest.raises(ParameterError, match="needs a numeric column"):
        run(["a", "b"], ["b", "b"], bounds=schema, statistics="mean")


def test_pairs_without_room_are_left_out_and_results_say_so():
    x, y = np.random.default_rng(0).uniform(size=(2, 40, 200))
    for adjacency in ("one", "row"):
        family = run(x, y, adjacency=adjacency).parameters["statistics"]
        assert family == ("kernel", "additive", "kolmogorov", "mean")
        for asked in ("pairwise", ("kernel", "pairwise")):
            with pytest.raises(ParameterError, match="no room for so many pairs"):
                run(x, y, adjacency=adjacency, statistics=asked)


@pytest.mark.parametrize("bins", [2, 300, 4096, 16_384])
@pytest.mark.parametrize("levels", [(0,) * 64, (0, 0, 100_000), (50,) * 40])
def test_sums_of_features_have_a_limit(levels, bins):
    """For each bin, and for each of about a thousand permutations."""
    for part in members(STATISTICS[2:], Domain(levels), bins):
        assert part.raw_width * max(bins, 256) <= 1 << 22


@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
@pytest.mark.parametrize("statistics", [None, *STATISTICS])
def test_smallest_samples(adjacency, statistics):
    schema = Schema(
        {
            "a": NumericColumn(0, 1),
            "b": CategoricalColumn(tuple(range(3000))),  # more than there are thresholds
            "c": NumericColumn(-5, 5),
        }
    )
    rows = np.array([[0.0, 2999, 5], [1.0, 0, -5]])
    result = run(rows, rows[::-1], bounds=schema, adjacency=adjacency, statistics=statistics)
    assert 0 < result.pvalue <= 1
    assert result.parameters["statistics"] == ((statistics,) if statistics else STATISTICS)
