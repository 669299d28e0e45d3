"""With private groups nothing depends on how many rows a group has: it may have none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privatest import ipm_test, ks_2samp, mannwhitneyu, mmd_test
from privatest.data.schema import CategoricalColumn, Schema
from privatest.noise import SimulatedNoise

CATEGORIES = Schema({"a": CategoricalColumn((0, 1)), "b": CategoricalColumn((0, 1))})
TESTS: dict[str, tuple[Any, dict[str, Any]]] = {
    **{f"mmd {method}": (mmd_test, {"method": method}) for method in ("exact", "nystrom")},
    "mmd decision": (mmd_test, {"release": "decision"}),
    "mmd unbounded": (mmd_test, {"bounds": None, "bandwidths": 1.0}),
    **{f"ipm {name}": (ipm_test, {"distance": name}) for name in ("mean", "wasserstein")},
    "ipm kolmogorov": (ipm_test, {"distance": "kolmogorov"}),
    "ipm variation": (ipm_test, {"distance": "total-variation", "bounds": CATEGORIES}),
    "ks": (ks_2samp, {}),
    "kuiper": (ks_2samp, {"statistic": "kuiper"}),
    "ks on a grid": (ks_2samp, {"grid": 4}),
    "kuiper at ranks": (ks_2samp, {"statistic": "kuiper", "epsilon": 10}),
    "ipm wasserstein cells": (ipm_test, {"distance": "wasserstein", "grid": 4}),
    "mann-whitney": (mannwhitneyu, {}),
    "mmd permuted": (mmd_test, {"relabel": "permute"}),
    "mmd swapped in pairs": (mmd_test, {"relabel": "swap"}),
}
NOTHING = {
    "list": [],
    "array": np.array([]),
    "series": pd.Series([], dtype=float),
    "arrow": pa.array([], pa.float64()),
}
ONE_COLUMN = (
    "ks",
    "kuiper",
    "ks on a grid",
    "kuiper at ranks",
    "mann-whitney",
    "ipm wasserstein",
    "ipm kolmogorov",
)


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("name", TESTS)
def test_an_empty_group_runs_without_a_word(name, nothing, monkeypatch):
    if name == "kuiper at ranks":
        monkeypatch.setattr("privatest.two_sample.ks_groups.EXACT_ROWS", 0)
    test, options = TESTS[name]
    rows = np.random.default_rng(0).integers(2, size=(20, 2)).astype(float)
    forms: list[Any] = [rows, rows.tolist(), pd.DataFrame(rows, columns=["a", "b"])]
    if name in ONE_COLUMN:
        forms = [rows[:, 0], rows[:, 0].tolist(), rows[:, :1], pd.Series(rows[:, 0])]
    elif name != "ipm variation":
        forms += [rows[:, 0], rows[:, 0].tolist()]
    shared: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1, "adjacency": "row", "rng": 1}
    for data in forms:
        for pair in ((nothing, data), (data, nothing)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = test(*pair, noise=SimulatedNoise(3), **shared | options)
            assert result.sizes == {"N": 20}
