"""``bounds`` in every form mean the same, in every function that takes them."""

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
from privatest.methods.shares import share
from privatest.noise import SimulatedNoise
from privatest.synthetic import release

RNG = np.random.default_rng(0)
COLUMNS = {"visits": RNG.uniform(0, 80, 60), "age": RNG.uniform(15, 45, 60)}
NAMED = {"age": (15, 45), "visits": (0, 80)}
AGE = {"age": (15, 45)}
TINY: dict[str, Any] = {"epsilon": 5, "delta": 1e-6}


def _public(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "noise"}


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
        sensitivity=2,
        bounds=b,
        n_permutations=19,
        check_sensitivity=False,
        **o,
    ),
    "sarrm_test": lambda t, b, **o: pt.sarrm_test(
        t, t, pvalue="mmd", bounds=b, n_permutations=19, **o | {"epsilon": 40}
    ),
    "optimise_locations": lambda t, b, **o: pt.optimise_locations(
        t, t, n_locations=1, bounds=b, sizes=(60, 60), n_starts=1, **_public(o)
    ),
    "optimise_frequencies": lambda t, b, **o: pt.optimise_frequencies(
        t, t, n_frequencies=1, bounds=b, sizes=(60, 60), n_starts=1, **_public(o)
    ),
    "share": lambda t, b, **o: share(t, bounds=b, locations=3, **o).moments.mean.tolist(),
    "release": lambda t, b, **o: release(t, bounds=b, n_points=20, **o).weights.tolist(),
}
ONE: dict[str, Callable[..., Any]] = {
    "ttest_ind": lambda t, b, **o: pt.ttest_ind(t, t, bounds=b, **o),
    "ttest_1samp": lambda t, b, **o: pt.ttest_1samp(t, 30, bounds=b, **o),
    "ttest_rel": lambda t, b, **o: pt.ttest_rel(t, t, bounds=b, **o),
    "tost_ind": lambda t, b, **o: pt.tost_ind(t, t, -1, 1, bounds=b, **o),
    "tost_rel": lambda t, b, **o: pt.tost_rel(t, t, -1, 1, bounds=b, **o),
    "ks_2samp": lambda t, b, **o: pt.ks_2samp(t, t, bounds=b, **o),
    "ks_1samp": lambda t, b, **o: pt.ks_1samp(t, "norm(30, 9)", bounds=b, **o),
    "ks_family": lambda t, b, **o: pt.ks_family(t, "norm", bounds=b, **o),
    "mannwhitneyu": lambda t, b, **o: pt.mannwhitneyu(t, t, bounds=b, **o),
    "median_test": lambda t, b, **o: pt.median_test(t, t, bounds=b, **o),
    "kruskal": lambda t, b, **o: pt.kruskal(t, t, bounds=b, **o),
    "f_oneway": lambda t, b, **o: pt.f_oneway(t, t, t, bounds=b, **o),
    "symmetry_test": lambda t, b, **o: pt.symmetry_test(t, t, bounds=b, **o),
    "sign_test": lambda t, b, **o: pt.sign_test(t, bounds=b, **o),
    "wilcoxon": lambda t, b, **o: pt.wilcoxon(t, t, bounds=b, **o),
    "kendalltau": lambda t, b, **o: pt.kendalltau(t, t, bounds_x=b, bounds_y=b, **o),
    "spearmanr": lambda t, b, **o: pt.spearmanr(t, t, bounds_x=b, bounds_y=b, **o),
    "pearsonr": lambda t, b, **o: pt.pearsonr(t, t, bounds_x=b, bounds_y=b, **o),
    "linregress": lambda t, b, **o: pt.linregress(t, t, bounds_x=b, bounds_y=b, **o),
    "conditional_independence_test": lambda t, b, **o: pt.conditional_independence_test(
        t, t, t, bounds_x=b, bounds_y=b, bounds_z=b, n_bootstrap=19, **o
    ),
    "conditional_randomisation_test": lambda t, b, **o: pt.conditional_randomisation_test(
        t, t, np.zeros(60), lambda u, z: 15 + 30 * u, bounds_x=b, bounds_y=b, n_resamples=9, **o
    ),
    "hodges_lehmann": lambda t, b, **o: pt.hodges_lehmann(t, t, bounds=b, **o),
    "private_median": lambda t, b, **o: pt.private_median(t, bounds=b, **o),
    "private_quantile": lambda t, b, **o: pt.private_quantile(t, 0.2, bounds=b, **o),
    "binom_test": lambda t, b, **o: pt.binom_test(t, success=30, bounds=b, **o),
    "private_share": lambda t, b, **o: pt.private_share(t, success=30, bounds=b, **o),
    "proportions_test": lambda t, b, **o: pt.proportions_test(
        t, t, success=30, bounds=b, n_simulations=99, **o
    ),
    "tost_proportions": lambda t, b, **o: pt.tost_proportions(
        t, t, -0.1, 0.1, success=30, bounds=b, **o
    ),
}
OTHERS = {"plan_share", "chisquare", "chi2_contingency"}  # no data; categories and no numbers
UNSEEDED = {
    "mannwhitneyu",
    "median_test",
    "symmetry_test",
    "sign_test",
    "wilcoxon",
    "kendalltau",
    "spearmanr",
    "hodges_lehmann",
    "private_median",
    "private_quantile",
    "binom_test",
    "private_share",
    "tost_proportions",
}


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


FRAME = pd.DataFrame(COLUMNS)
BOTH = {"visits": (0, 80), "age": (0, 80)}
FORMS = [(0, 80), [(0, 80), (0, 80)], np.array([[0, 80], [0, 80]]), BOTH]


@pytest.mark.parametrize("form", FORMS, ids=["pair", "pairs", "array", "mapping"])
@pytest.mark.parametrize("name", SEVERAL)
def test_every_form_means_the_same(name, form):
    assert run(name, FRAME, form) == run(name, FRAME, Schema.from_bounds(BOTH))


@pytest.mark.parametrize("name", SEVERAL)
def test_every_form_for_plain_arrays(name):
    rows = FRAME.to_numpy()
    pair, *others = (run(name, rows, form) for form in FORMS[:3])
    assert others == [pair, pair]
    run(name, rows, Schema.from_bounds(BOTH))  # it brings names, which results may show


@pytest.mark.parametrize("form", [(15, 45), [(15, 45)], np.array([[15.0, 45.0]])])
@pytest.mark.parametrize("name", ONE)
def test_every_form_for_one_column(name, form):
    expected = run(name, FRAME[["age"]], Schema.from_bounds(AGE))
    assert run(name, FRAME[["age"]], form) == run(name, FRAME["age"], form) == expected
    array = run(name, FRAME["age"].to_numpy(), form)
    assert array == run(name, FRAME["age"].tolist(), (15, 45))


SIDES: dict[str, Callable[..., Any]] = {
    "symmetry_test": lambda x, y, b, **o: pt.symmetry_test(x, y, bounds=b, **o),
    "sign_test": lambda x, y, b, **o: pt.sign_test(x, y, bounds=b, **o),
    "wilcoxon": lambda x, y, b, **o: pt.wilcoxon(x, y, bounds=b, **o),
    "permutation_test": lambda x, y, b, **o: pt.permutation_test(
        (x, y),
        lambda x, y: abs(np.corrcoef(x, y)[0, 1]),
        sensitivity=1,
        scheme="independence",
        bounds=b,
        n_permutations=19,
        check_sensitivity=False,
        rng=0,
        **o,
    ),
}


@pytest.mark.parametrize("name", SIDES)
def test_every_form_for_the_two_sides_of_pairs(name):
    """One pair for each side, a pair for each column, names, a schema: in their order or not."""

    def run(x, y, bounds):
        return SIDES[name](x, y, bounds, **TINY, noise=SimulatedNoise(1)).to_json()

    pairs = [(0, 80), (15, 45)]
    schema, turned = (
        Schema.from_bounds(NAMED),
        Schema.from_bounds(dict(zip(COLUMNS, pairs, strict=True))),
    )
    x, y = FRAME["visits"], FRAME["age"]
    expected = run(x, y, ((0, 80), (15, 45)))
    for bounds in (pairs, np.array(pairs), NAMED, schema, turned):
        assert run(x, y, bounds) == expected
        assert run(FRAME[["visits"]], FRAME[["age"]], bounds) == expected
    for bounds in (pairs, np.array(pairs), turned):  # arrays go by order
        assert run(x.to_numpy(), y.to_numpy(), bounds) == expected
    assert run(x, y, (0, 80)) == run(x, y, [(0, 80), (0, 80)])


@pytest.mark.parametrize("bounds", [[], (), "ab", 5, np.array(5.0), [(0, 1)] * 3, (0,), (0, 1, 2)])
@pytest.mark.parametrize("name", SIDES)
def test_bounds_of_sides_that_are_refused(name, bounds):
    with pytest.raises(ParameterError, match="bounds must"):
        SIDES[name](FRAME["visits"], FRAME["age"], bounds, **TINY)


def test_pairs_of_several_columns_are_parted():
    def first(x, y):
        return float(x[0, 0] + x[0, 1] + y[0])

    def run(x, y, bounds):
        return pt.permutation_test(
            (x, y),
            first,
            sensitivity=100,
            scheme="independence",
            bounds=bounds,
            n_permutations=19,
            check_sensitivity=False,
            rng=0,
            noise=SimulatedNoise(1),
            **TINY,
        ).to_json()

    frame = FRAME.assign(extra=1.0)
    x, y = frame[["visits", "extra"]], frame["age"]
    each = [(0, 80), (0, 1), (15, 45)]
    named = dict(zip(("age", "visits", "extra"), ((15, 45), (0, 80), (0, 1)), strict=True))
    expected = run(x, y, (each[:2], each[2]))
    for bounds in (each, np.array(each), named, Schema.from_bounds(named)):
        assert run(x, y, bounds) == expected
    with pytest.raises(ParameterError, match="bounds must"):
        run(x, y, each[:1] * 4)
    with pytest.raises(ParameterError, match="the columns of x and those of y"):
        run(x.to_numpy(), y.to_numpy(), Schema.from_bounds(AGE))


EXACT = {
    "ks_2samp",
    "ks_1samp",
    "mannwhitneyu",
    "median_test",
    "kruskal",
    "symmetry_test",
    "sign_test",
    "wilcoxon",
}
SUBTESTS: dict[str, Callable[..., Any]] = {
    "own test": lambda x, b: pt.test_of_tests(
        x,
        x[::-1] + 1e-9,
        pvalue=lambda x, y: float(np.mean(x < np.median(y))),
        bounds=b,
        epsilon=5,
        n_subsets=3,
        rng=0,
        noise=SimulatedNoise(1),
    ).to_json(),
    "own statistic": lambda x, b: pt.permutation_test(
        (x, x[::-1] + 1e-9),
        lambda x, y: float(len(set(x) & set(y))),
        sensitivity=1,
        bounds=b,
        epsilon=5,
        n_permutations=19,
        check_sensitivity=False,
        rng=0,
        noise=SimulatedNoise(1),
    ).to_json(),
}


@pytest.mark.parametrize("name", [*sorted(EXACT), *SUBTESTS])
def test_wide_bounds_change_no_value(name):
    """Mapped to [0, 1], all of these values would be 1/2."""
    values = COLUMNS["age"]
    call = SUBTESTS.get(name, lambda x, b: run(name, x, b))
    assert call(values, (-1e300, 1e300)) == call(values, None)


def test_every_function_with_bounds_is_here():
    takes = {
        name
        for name in pt.__all__
        if callable(getattr(pt, name))
        and not inspect.isclass(getattr(pt, name))
        and {"bounds", "bounds_x"} & set(inspect.signature(getattr(pt, name)).parameters)
    }
    assert takes - OTHERS <= {*SEVERAL, *ONE}


@pytest.mark.parametrize("pairs", [[(0, 80), (15, 45)], np.array([[0, 80], [15, 45]])])
def test_plans_in_every_form(pairs):
    plan = pt.plan_share(pairs, locations=3, **TINY)
    named = dict(zip(("x1", "x2"), pairs, strict=True))
    for form in (named, Schema.from_bounds(named)):
        assert pt.plan_share(form, locations=3, **TINY).digest == plan.digest
    assert list(pt.plan_share((0, 80), locations=3, **TINY).schema.columns) == ["x1"]


def test_one_pair_is_for_all_columns_of_a_share():
    rows = np.column_stack(list(COLUMNS.values()))
    for data, names in ((rows, ["x1", "x2"]), (pd.DataFrame(COLUMNS), ["visits", "age"])):
        one = share(data, bounds=(0, 80), locations=3, **TINY)
        each = share(data, bounds=[(0, 80)] * 2, locations=3, **TINY)
        assert list(one.plan.schema.columns) == names
        assert one.plan.digest == each.plan.digest
    with pytest.raises(ParameterError, match="a pair for each of the 2 columns"):
        share(rows, bounds=[(0, 80)] * 3, locations=3, **TINY)
