"""``bounds={"age": (15, 45)}`` means the same as a schema, in every function that takes bounds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privatest as pt
from privatest.core.errors import ParameterError
from privatest.data.schema import Schema
from privatest.noise import SimulatedNoise
from privatest.shares import share
from privatest.synthetic import release

RNG = np.random.default_rng(0)
COLUMNS = {"visits": RNG.uniform(0, 80, 60), "age": RNG.uniform(15, 45, 60)}
NAMED = {"age": (15, 45), "visits": (0, 80)}
AGE = {"age": (15, 45)}
TINY: dict[str, Any] = {"epsilon": 5, "delta": 1e-6}

# all columns of a frame, and the bounds in every form
SEVERAL: dict[str, Callable[..., Any]] = {
    "mmd_test": lambda t, b, **o: pt.mmd_test(t, t, bounds=b, n_permutations=19, **o),
    "ipm_test": lambda t, b, **o: pt.ipm_test(
        t, t, distance="wasserstein", bounds=b, n_permutations=19, **o
    ),
    "hsic_test": lambda t, b, **o: pt.hsic_test(
        t, t, bounds_x=b, bounds_y=b, n_permutations=19, **o
    ),
    "hotelling_test": lambda t, b, **o: pt.hotelling_test(t, t, bounds=b, **o),
    "hotelling_1samp": lambda t, b, **o: pt.hotelling_1samp(t, [30, 40], bounds=b, **o),
    "private_mean": lambda t, b, **o: pt.private_mean(t, bounds=b, **o),
    "private_covariance": lambda t, b, **o: pt.private_covariance(t, bounds=b, **o),
    "me_test": lambda t, b, **o: pt.me_test(t, t, locations=[[30, 40]], bounds=b, **o),
    "scf_test": lambda t, b, **o: pt.scf_test(t, t, frequencies=[[0.1, 0.1]], bounds=b, **o),
    "me_permutation_test": lambda t, b, **o: pt.me_permutation_test(
        t, t, locations=[[30, 40]], bounds=b, n_permutations=19, **o
    ),
    "scf_permutation_test": lambda t, b, **o: pt.scf_permutation_test(
        t, t, frequencies=[[0.1, 0.1]], bounds=b, n_permutations=19, **o
    ),
    "test_of_tests": lambda t, b, **o: pt.test_of_tests(
        t, t, pvalue="mmd", bounds=b, n_subsets=3, n_permutations=19, **o
    ),
    "permutation_test": lambda t, b, **o: pt.permutation_test(
        (t, t),
        lambda x, y: abs(x[:, 0].mean() - y[:, 0].mean()),
        sensitivity=1,
        bounds=b,
        n_permutations=19,
        **o,
    ),
    "share": lambda t, b, **o: share(t, bounds=b, locations=3, **o).moments.mean.tolist(),
    "release": lambda t, b, **o: release(t, bounds=b, n_points=20, **o).weights.tolist(),
}
ONE: dict[str, Callable[..., Any]] = {
    "ttest_ind": lambda t, b, **o: pt.ttest_ind(t, t, bounds=b, **o),
    "ttest_1samp": lambda t, b, **o: pt.ttest_1samp(t, 30, bounds=b, **o),
    "ks_2samp": lambda t, b, **o: pt.ks_2samp(t, t, bounds=b, **o),
    "ks_1samp": lambda t, b, **o: pt.ks_1samp(t, "norm(30, 9)", bounds=b, **o),
    "ks_family": lambda t, b, **o: pt.ks_family(t, "norm", bounds=b, **o),
    "mannwhitneyu": lambda t, b, **o: pt.mannwhitneyu(t, t, bounds=b, **o),
    "median_test": lambda t, b, **o: pt.median_test(t, t, bounds=b, **o),
    "kruskal": lambda t, b, **o: pt.kruskal(t, t, bounds=b, **o),
    "symmetry_test": lambda t, b, **o: pt.symmetry_test(t, t, bounds=b, **o),
    "sign_test": lambda t, b, **o: pt.sign_test(t, bounds=b, **o),
    "wilcoxon": lambda t, b, **o: pt.wilcoxon(t, t, bounds=b, **o),
}
UNSEEDED = {"mannwhitneyu", "median_test", "symmetry_test", "sign_test", "wilcoxon"}


def run(name: str, data: Any, bounds: Any) -> str:
    """The whole result, as text that can be compared."""
    options: dict[str, Any] = TINY | {"noise": SimulatedNoise(1)}
    if name not in UNSEEDED | {"ks_2samp"}:
        options["rng"] = 0
    result = (SEVERAL | ONE)[name](data, bounds, **options)
    return result.to_json() if hasattr(result, "to_json") else str(result)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_columns(name, make):
    data = make(COLUMNS)
    assert run(name, data, NAMED) == run(name, data, Schema.from_bounds(NAMED))


@pytest.mark.parametrize("name", ONE)
def test_one_column(name):
    expected = run(name, {"age": COLUMNS["age"]}, Schema.from_bounds(AGE))
    frame = pd.DataFrame(COLUMNS)
    for data in (frame[["age"]], frame["age"], pl.DataFrame(COLUMNS)["age"], {"age": frame["age"]}):
        assert run(name, data, AGE) == expected


@pytest.mark.parametrize("name", [*SEVERAL, *ONE])
def test_plain_arrays_have_no_names(name):
    columns = list(COLUMNS.values()) if name in SEVERAL else [COLUMNS["age"]]
    bounds = NAMED if name in SEVERAL else AGE
    with pytest.raises(ParameterError, match=r"not for plain arrays|the names of x and y"):
        run(name, np.column_stack(columns), bounds)


def test_every_function_with_bounds_is_here():
    takes = {
        name
        for name in pt.__all__
        if callable(getattr(pt, name))
        and not inspect.isclass(getattr(pt, name))
        and {"bounds", "bounds_x"} & set(inspect.signature(getattr(pt, name)).parameters)
    }
    public = {"optimise_locations", "optimise_frequencies", "plan_share"}  # of public data, or none
    assert takes - public - {"sarrm_test"} <= {*SEVERAL, *ONE}  # sarrm_test reads as test_of_tests


def test_one_pair_is_for_all_columns_of_a_share():
    rows = np.column_stack(list(COLUMNS.values()))
    for data, names in ((rows, ["x1", "x2"]), (pd.DataFrame(COLUMNS), ["visits", "age"])):
        one = share(data, bounds=(0, 80), locations=3, **TINY)
        each = share(data, bounds=[(0, 80)] * 2, locations=3, **TINY)
        assert list(one.plan.schema.columns) == names
        assert one.plan.digest == each.plan.digest
    with pytest.raises(ParameterError, match="a pair for each of the 2 columns"):
        share(rows, bounds=[(0, 80)] * 3, locations=3, **TINY)
