"""Public functions validate public arguments, pay, read and release, in this order.

A refused public argument costs nothing, for samples and for frames with ``group=``.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from tests.unit.test_public_budget import SPENDING, Till, paying
from tests.unit.test_public_groups import COLUMNS, PUBLIC, SCHEMA

X = np.random.default_rng(0).uniform(15, 45, 60)
XX = np.column_stack([X, X[::-1]])
LABELS = np.array(["a", "b"] * 30)
FRAME = pd.DataFrame(COLUMNS)
B, AB = (0, 80), ("a", "b")
BXY: dict[str, Any] = {"bounds_x": B, "bounds_y": B}
FEW: dict[str, Any] = {"n_permutations": 19}


def gap(x: Any, y: Any) -> float:
    return abs(float(np.mean(x) - np.mean(y)))


# A valid call of every function that spends: positional arguments and options.
VALID: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "binom_test": ((X, 0.5), {"success": 30}),
    "chi2_contingency": ((LABELS, LABELS), {"categories_x": AB, "categories_y": AB}),
    "chisquare": ((LABELS, [0.5, 0.5]), {"categories": AB}),
    "conditional_independence_test": ((X, X, X), BXY | {"bounds_z": B, "n_bootstrap": 19}),
    "conditional_randomisation_test": (
        (X, X, np.zeros(60), lambda u, z: 15 + 30 * u),
        BXY | {"n_resamples": 9},
    ),
    "f_oneway": ((X, X, X), {"bounds": B, "n_bootstrap": 19}),
    "hodges_lehmann": ((X, X), {"bounds": B}),
    "hotelling_1samp": ((XX, [30, 30]), {"bounds": B, "n_bootstrap": 19}),
    "hotelling_test": ((XX, XX), {"bounds": B, "n_bootstrap": 19}),
    "hsic_test": ((X, X), BXY | FEW),
    "ipm_test": ((X, X), {"distance": "wasserstein", "bounds": B} | FEW),
    "kendalltau": ((X, X), {}),
    "kruskal": ((X, X), {}),
    "ks_1samp": ((X, "norm(30, 9)"), {"bounds": B}),
    "ks_2samp": ((X, X), FEW),
    "ks_family": ((X, "norm"), {"bounds": B, "n_simulations": 99}),
    "linregress": ((X, X), BXY | {"n_simulations": 99}),
    "mannwhitneyu": ((X, X), FEW),
    "me_permutation_test": ((X, X), {"locations": [[30]], "bounds": B} | FEW),
    "me_test": ((X, X), {"locations": [[30]], "bounds": B, "delta": 1e-6}),
    "median_test": ((X, X), {}),
    "mmd_test": ((X, X), {"bounds": B} | FEW),
    "pearsonr": ((X, X), BXY | {"n_simulations": 99}),
    "permutation_test": (
        ((X, X), gap),
        {"sensitivity": 2, "bounds": B, "check_sensitivity": False} | FEW,
    ),
    "private_covariance": ((XX,), {"bounds": B, "n_bootstrap": 19}),
    "private_mean": ((XX,), {"bounds": B, "n_bootstrap": 19}),
    "private_median": ((X,), {"bounds": B}),
    "private_quantile": ((X, 0.2), {"bounds": B}),
    "private_share": ((X,), {"success": 30}),
    "proportions_test": ((X, X), {"success": 30, "n_simulations": 99}),
    "release": ((X,), {"bounds": B, "n_points": 5, "delta": 1e-6}),
    "sarrm_test": ((X, X), {"pvalue": "mmd", "bounds": B, "epsilon": 40} | FEW),
    "scf_permutation_test": ((X, X), {"frequencies": [[0.1]], "bounds": B} | FEW),
    "scf_test": ((X, X), {"frequencies": [[0.1]], "bounds": B, "delta": 1e-6}),
    "share": ((X,), {"bounds": B, "locations": 3, "delta": 1e-6}),
    "sign_test": ((X,), {}),
    "spearmanr": ((X, X), {}),
    "symmetry_test": ((X,), {}),
    "test_of_tests": ((X, X), {"pvalue": "mmd", "bounds": B, "n_subsets": 3} | FEW),
    "tost_ind": ((X, X, -1, 1), {"bounds": B}),
    "tost_proportions": ((X, X, -0.1, 0.1), {"success": 30}),
    "tost_rel": ((X, X, -1, 1), {"bounds": B}),
    "ttest_1samp": ((X, 30), {"bounds": B}),
    "ttest_ind": ((X, X), {"bounds": B}),
    "ttest_rel": ((X, X), {"bounds": B}),
    "wilcoxon": ((X, X), {}),
}
FRAMES: dict[str, dict[str, Any]] = {
    "mmd_test": {"columns": "age"} | FEW,
    "ipm_test": {"columns": "age", "distance": "wasserstein"} | FEW,
    "ks_2samp": {"columns": "age"} | FEW,
    "mannwhitneyu": {"columns": "age"} | FEW,
    "proportions_test": {"columns": "won", "n_simulations": 99},
    "median_test": {"columns": "age"},
    "kruskal": {"columns": "age"},
    "f_oneway": {"columns": "age", "n_bootstrap": 19},
    "ttest_ind": {"columns": "age"},
    "hotelling_test": {"columns": "age", "n_bootstrap": 19},
}
COUNT: tuple[Any, ...] = (0, -1, "a")
WORD: tuple[Any, ...] = ("no", 3)
POSITIVE: tuple[Any, ...] = (-1, "a")
BOUNDS: tuple[Any, ...] = ((80, 0), "a", (0, float("nan")))
# Values that no function accepts, by the name of the parameter.
BAD: dict[str, tuple[Any, ...]] = {
    "epsilon": (-1, "a", None),
    "delta": (2, "a"),
    "alpha": (2, 0, "a"),
    "alternative": WORD,
    "adjacency": WORD,
    "release": WORD,
    "mechanism": WORD,
    "statistic": WORD,
    "statistics": (["no"], 3),
    "kernel": WORD,
    "kernel_x": WORD,
    "kernel_y": WORD,
    "method": WORD,
    "estimator": WORD,
    "relabel": WORD,
    "shuffle": WORD,
    "calibration": WORD,
    "norm": WORD,
    "distance": WORD,
    "scheme": WORD,
    "privatization": WORD,
    "family": WORD,
    "pvalue": WORD,
    "cdf": ("no", 3),
    "quantile": (3,),
    "n_permutations": COUNT,
    "n_bootstrap": COUNT,
    "n_simulations": COUNT,
    "n_resamples": COUNT,
    "n_subsets": COUNT,
    "n_frequencies": COUNT,
    "n_points": COUNT,
    "bin_size": COUNT,
    "cells": COUNT,
    "rng": ("a", -1),
    "noise": ("a", 0),
    "bandwidth": POSITIVE,
    "bandwidths": POSITIVE,
    "bandwidths_x": POSITIVE,
    "bandwidths_y": POSITIVE,
    "condition": (-1, "a"),
    "sensitivity": POSITIVE,
    "weight_bound": POSITIVE,
    "tolerance": POSITIVE,
    "balance": (2, "a"),
    "sub_alpha": (2, "a"),
    "min_sub_alpha": (2, "a"),
    "bins": WORD,
    "weights": WORD,
    "grid": ("no", [2, 1]),
    "locations": ("a",),
    "frequencies": ("a",),
    "public_points": ("a",),
    "p": (2, "a"),
    "q": (2, "a"),
    "popmean": (float("nan"), "a"),
    "mean": (float("nan"), "a"),
    "low": (float("nan"), "a", 2),
    "high": (float("nan"), "a", -2),
    "f_exp": ([-1, 2], "a"),
    "bounds": BOUNDS,
    "bounds_x": BOUNDS,
    "bounds_y": BOUNDS,
    "bounds_z": BOUNDS,
    "categories": ("a", ["a", "a"], 3),
    "categories_x": ("a", ["a", "a"], 3),
    "categories_y": ("a", ["a", "a"], 3),
    "group": (3,),
    "groups": ("a", 3),
    "columns": (3,),
    "plan": ("a",),
}
FREE = {  # parameters without a bad value
    "success",  # any value of the data
    "equal_var",
    "equal_covariance",
    "paired",
    "vectorized",
    "check_sensitivity",
    "progress",
}
EMBEDDING = ("me_permutation_test", "me_test", "scf_permutation_test", "scf_test")
OF_FRAMES: dict[str, tuple[Any, ...]] = {
    "group": (3, "gone", "age"),
    "groups": ("a", ["a"], ["a", "a"], ["a", "c"], [None, "a"]),
    "columns": (3, "gone", [], ["arm"], ["age", "age"], [3]),
    "bounds": ({"age": (1, 0)}, "a"),
    "y": (X,),
}


# Not yet in this order: they check these arguments when the data has been paid for and read, so a
# refusal costs the budget. A strict list: an entry that no longer fails has to go.
PAID_FIRST: dict[str, set[str]] = {
    "balance": {"share"},
    "bandwidth": {"sarrm_test", "share", "test_of_tests", *EMBEDDING},
    "bandwidths": {"mmd_test"},
    "bandwidths_x": {"hsic_test"},
    "bandwidths_y": {"hsic_test"},
    "bounds": {"share"},
    "bounds_y": {"chi2_contingency"},
    "bounds_z": {"conditional_independence_test"},
    "categories_y": {"chi2_contingency"},
    "f_exp": {"chisquare"},
    "frequencies": {"scf_permutation_test", "scf_test", "share"},
    "kernel": {"me_permutation_test", "me_test", "mmd_test", "share"},
    "kernel_x": {"hsic_test"},
    "kernel_y": {"hsic_test"},
    "locations": {"me_permutation_test", "me_test", "share"},
    "mean": {"hotelling_1samp"},
    "mechanism": {"chi2_contingency", "chisquare"},
    "n_subsets": {"sarrm_test", "test_of_tests"},
    "plan": {"share"},
    "public_points": {"release"},
    "rng": {"share"},
    "sensitivity": {"permutation_test"},
    "statistics": {"hsic_test", "mmd_test"},
    "sub_alpha": {"test_of_tests"},
}


def refusal(name: str, parameter: str, value: Any) -> Any:
    """Return a case; one of the list is expected to fail."""
    late = name in PAID_FIRST.get(parameter, set())
    marks = [pytest.mark.xfail(reason="it pays first")] if late else []
    return pytest.param(name, parameter, value, marks=marks, id=f"{name}-{parameter}-{value}")


def refused_for_free(name: str, data: tuple[Any, ...], options: dict[str, Any]) -> None:
    with paying(Till()) as till, pytest.raises((pt.ParameterError, TypeError)):
        getattr(pt, name)(*data, **options)
    assert not till.costs, "it paid before it refused a public argument"


def public_parameters(name: str) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(getattr(pt, name)).parameters
    data = {"x", "y", "z", "data", "samples", "others"}
    return {each: p for each, p in parameters.items() if each not in data}


def test_every_function_and_parameter_is_listed():
    assert set(VALID) == SPENDING
    framed = {name for name in SPENDING if "group" in public_parameters(name)}
    assert set(FRAMES) == framed
    assert {each for name in SPENDING for each in public_parameters(name)} <= {*BAD, *FREE}


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        refusal(name, parameter, value)
        for name in sorted(VALID)
        for parameter in public_parameters(name)
        for value in BAD.get(parameter, ())
    ],
)
def test_a_refused_argument_costs_nothing(name, parameter, value):
    data, options = VALID[name]
    signature = inspect.signature(getattr(pt, name))
    bound = signature.bind(*data, **{"epsilon": 1} | options)
    if signature.parameters[parameter].kind is inspect.Parameter.KEYWORD_ONLY:
        refused_for_free(name, data, {"epsilon": 1} | options | {parameter: value})
        return
    place = list(bound.arguments).index(parameter)
    data = (*data[:place], value, *data[place + 1 :])
    refused_for_free(name, data, {"epsilon": 1} | options)


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        refusal(name, parameter, value)
        for name in FRAMES
        for parameter in public_parameters(name)
        for value in OF_FRAMES.get(parameter, BAD.get(parameter, ()))
    ],
)
@pytest.mark.parametrize("adjacency", [None, "one"])
def test_a_refused_argument_costs_nothing_for_a_frame(name, parameter, value, adjacency):
    options: dict[str, Any] = {"epsilon": 1, "group": "arm", "bounds": SCHEMA} | FRAMES[name]
    options |= {"adjacency": adjacency} | {parameter: value}
    refused_for_free(name, (FRAME,), options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mannwhitneyu", {"release": "decision", "bounds": PUBLIC}),
        ("mannwhitneyu", {"release": "decision", "adjacency": "one"}),
        *((name, {"adjacency": "row"}) for name in sorted(FRAMES)),
    ],
)
def test_arguments_that_exclude_each_other_cost_nothing(name, options):
    call: dict[str, Any] = {"epsilon": 1, "group": "arm", "bounds": SCHEMA} | FRAMES[name] | options
    takes_private = {"mmd_test", "ipm_test", "ks_2samp", "mannwhitneyu", "proportions_test"}
    if options == {"adjacency": "row"} and name in takes_private:
        with paying(Till()) as till:
            getattr(pt, name)(FRAME, **call)
        assert len(till.costs) == 1
        return
    refused_for_free(name, (FRAME,), call)


@pytest.mark.parametrize("name", sorted(VALID))
def test_the_valid_calls_are_valid(name):
    data, options = VALID[name]
    with paying(Till()) as till:
        getattr(pt, name)(*data, **{"epsilon": 1} | options)
    assert len(till.costs) == 1
