"""One frame with a group column, as on the command line; and what a result says is public."""

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
from privatest.core.errors import DataError, ParameterError
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise

RNG = np.random.default_rng(0)
N = 80
COLUMNS: dict[str, Any] = {
    "arm": np.tile(["a", "b"], N // 2),
    "site": np.tile(["north", "south", "west", "west"], N // 4),
    "age": RNG.uniform(0, 100, N),
    "visits": RNG.integers(0, 20, N),
    "won": RNG.integers(0, 2, N),
}
SCHEMA = Schema(
    {
        "arm": CategoricalColumn(("a", "b")),
        "site": CategoricalColumn(("north", "south", "west")),
        "age": NumericColumn(0, 100),
        "visits": NumericColumn(0, 20),
        "won": NumericColumn(0, 1, integer=True),
    }
)
PUBLIC = Schema(
    dict(SCHEMA.columns) | {"arm": CategoricalColumn(("a", "b"), membership="public")},
)

FEW: dict[str, Any] = {"n_permutations": 19}
Test = tuple[Callable[..., Any], str, dict[str, Any]]
PRIVATE: dict[str, Test] = {
    "mmd_test": (pt.mmd_test, "age", FEW),
    "ipm_test": (pt.ipm_test, "age", {"distance": "wasserstein"} | FEW),
    "ks_2samp": (pt.ks_2samp, "age", FEW),
    "mannwhitneyu": (pt.mannwhitneyu, "age", FEW),
    "proportions_test": (pt.proportions_test, "won", {"n_simulations": 99}),
}
SIZES: dict[str, Test] = {
    "median_test": (pt.median_test, "age", {}),
    "kruskal": (pt.kruskal, "age", {}),
    "f_oneway": (pt.f_oneway, "age", {"n_bootstrap": 19}),
    "ttest_ind": (pt.ttest_ind, "age", {}),
    "hotelling_test": (pt.hotelling_test, "age", {"n_bootstrap": 19}),
}
ALL = PRIVATE | SIZES


def run(name: str, *data: Any, **options: Any) -> Any:
    test, column, usual = ALL[name]
    if "group" in options:
        options = {"columns": column} | options
    seeded = {"rng": 0} if "rng" in inspect.signature(test).parameters else {}
    return test(*data, **{"epsilon": 1, "bounds": SCHEMA} | usual | seeded | options)


def halves(column: str) -> tuple[Any, Any]:
    first = COLUMNS["arm"] == "a"
    return {column: COLUMNS[column][first]}, {column: COLUMNS[column][~first]}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_frame_gives_what_its_two_samples_give(name, make):
    column = ALL[name][1]
    for adjacency in ("row", "one") if name in PRIVATE else ("one",):
        options = {"adjacency": adjacency, "noise": SimulatedNoise(1)}
        framed = run(name, make(COLUMNS), group="arm", **options)
        options = {"adjacency": adjacency, "noise": SimulatedNoise(1)}
        apart = run(name, *halves(column), **options | {"bounds": SCHEMA.select([column])})
        names = [each.parameters.get("group_names") for each in (framed, apart)]
        assert names in ([None, None], [["a", "b"], ["group 1", "group 2"]])
        framed, apart = (each.to_dict() for each in (framed, apart))
        for each in (framed, apart):
            each["parameters"].pop("group_names", None)
        assert framed == apart


@pytest.mark.parametrize("name", PRIVATE)
def test_groups_of_a_frame_are_private_unless_somebody_says_otherwise(name):
    private = run(name, COLUMNS, group="arm")
    assert private.adjacency == "row"
    assert dict(private.sizes) == {"N": N}
    assert "only the total is public" in private.guarantee
    for public in (
        run(name, COLUMNS, group="arm", bounds=PUBLIC),
        run(name, COLUMNS, group="arm", adjacency="one"),
    ):
        assert public.adjacency == "one"
        assert "group sizes are public" in public.guarantee
    assert run(name, COLUMNS, group="arm", bounds=PUBLIC, adjacency="row").adjacency == "row"


@pytest.mark.parametrize("name", SIZES)
def test_tests_that_need_sizes_say_why_and_what_to_pass(name):
    with pytest.raises(ParameterError, match=r"group sizes: pass adjacency='one'.*mmd_test"):
        run(name, COLUMNS, group="arm")
    assert run(name, COLUMNS, group="arm", bounds=PUBLIC).adjacency == "one"
    assert run(name, COLUMNS, group="arm", adjacency="both").adjacency == "both"


@pytest.mark.parametrize("name", PRIVATE)
def test_an_empty_private_group_does_not_fail(name):
    alone = COLUMNS | {"arm": ["a"] * N}
    assert run(name, alone, group="arm").sizes["N"] == N
    assert run(name, alone, group="arm", groups=("b", "rest")).sizes["N"] == N
    described = SCHEMA.select([ALL[name][1]])
    assert run(name, alone, group="arm", groups=("a", "b"), bounds=described).sizes["N"] == N
    with pytest.raises(DataError, match="'arm' has no row in group 'b'"):  # a public size
        run(name, alone, group="arm", adjacency="one")


@pytest.mark.parametrize("name", PRIVATE)
def test_a_bad_value_does_not_say_which_group_it_is_in(name):
    """The message is the same, whoever's value is missing."""
    column = ALL[name][1]
    said = set()
    for place in (0, N - 1):
        values = list(COLUMNS[column])
        values[place] = None if isinstance(values[place], str) else float("nan")
        with pytest.raises(DataError, match="x or y") as error:
            run(name, COLUMNS | {column: values}, group="arm")
        said.add(str(error.value))
    assert len(said) == 1


@pytest.mark.parametrize("name", PRIVATE)
def test_the_data_does_not_say_whether_a_label_is_mistyped(name):
    with pytest.raises(ParameterError, match="'c' is not a category of column 'arm'"):
        run(name, COLUMNS, group="arm", groups=("c", "rest"))
    without = SCHEMA.select([ALL[name][1]])
    for label in ("a", "c"):  # refused alike, whether somebody has that value or not
        with pytest.raises(ParameterError, match="'rest' need a Schema that lists the categories"):
            run(name, COLUMNS, group="arm", groups=(label, "rest"), bounds=without)
    with pytest.raises(DataError, match="third group or more"):
        run(name, COLUMNS, group="arm", groups=("a", "c"), bounds=without)
    with pytest.raises(ParameterError, match="groups must be given, or a schema"):
        run(name, COLUMNS, group="arm", bounds=without)


def test_more_than_two_groups():
    three: dict[str, Any] = {"group": "site", "noise": SimulatedNoise(0)}
    assert dict(run("mmd_test", COLUMNS, **three).sizes) == {"N": N}
    for name in ("mmd_test", "kruskal", "f_oneway", "proportions_test"):
        sizes = dict(run(name, COLUMNS, adjacency="one", **three).sizes)
        assert sizes == {"n1": N // 4, "n2": N // 4, "n3": N // 2}
    with pytest.raises(ParameterError, match="one value and 'rest', or pass adjacency='one'"):
        run("proportions_test", COLUMNS, **three)
    with pytest.raises(ParameterError, match="column 'site' has 3 categories"):
        run("mannwhitneyu", COLUMNS, **three)
    with pytest.raises(ParameterError, match="would make the number of rows private"):
        run("mannwhitneyu", COLUMNS, groups=("north", "south"), **three)
    assert run("mannwhitneyu", COLUMNS, groups=("west", "rest"), **three).sizes["N"] == N


@pytest.mark.parametrize("labels", [(0, 1), (np.int64(0), np.int64(1)), ("0", "1"), (0.0, 1.0)])
def test_groups_that_are_numbers(labels):
    frame = COLUMNS | {"arm": np.tile([0, 1], N // 2)}
    options: dict[str, Any] = {"groups": labels, "bounds": (0, 100), "noise": SimulatedNoise(1)}
    assert run("ks_2samp", frame, group="arm", **options).sizes["N"] == N
    truth = COLUMNS | {"arm": np.tile([False, True], N // 2)}
    options["groups"] = (np.False_, True)
    assert run("ks_2samp", truth, group="arm", **options).sizes["N"] == N


def test_columns_are_those_that_bounds_describe_or_that_are_named():
    frame = pd.DataFrame(COLUMNS)
    common: dict[str, Any] = {"group": "arm", "groups": ("a", "b"), "epsilon": 1}
    by_name = {"age": (0, 100), "visits": (0, 20)}
    two = pt.mmd_test(frame, bounds=by_name, n_permutations=19, **common)
    named = pt.mmd_test(
        frame, columns=["age", "visits"], bounds=SCHEMA, n_permutations=19, **common
    )
    assert two.method == named.method
    assert pt.mannwhitneyu(frame[["arm", "age"]], n_permutations=19, **common).sizes["N"] == N
    with pytest.raises(ParameterError, match="columns must be given"):
        pt.mannwhitneyu(frame, **common)


MISTAKES: list[tuple[dict[str, Any], tuple[Any, ...], str]] = [
    ({"group": "arm"}, (COLUMNS, COLUMNS), "group splits one frame"),
    ({"groups": ("a", "b")}, (COLUMNS,), "groups and columns need group"),
    ({}, (COLUMNS,), "y must be given"),
    ({"group": "arm", "groups": "ab"}, (COLUMNS,), "groups must be a list of values"),
    ({"group": "arm", "groups": (None, "b")}, (COLUMNS,), "groups must be text"),
    ({"group": "arm", "columns": ["arm", "age"]}, (COLUMNS,), "different from"),
    ({"group": "arm", "columns": []}, (COLUMNS,), "at least one column"),
    ({"group": "arm", "columns": ["height"]}, (COLUMNS,), "among those that bounds describe"),
    ({"group": "arm", "adjacency": "all"}, (COLUMNS,), "adjacency must be"),
    ({"group": "age"}, (COLUMNS,), "must be categorical"),
    ({"group": "arm"}, (np.zeros((N, 2)),), "x must have named columns"),
    ({"group": "arm"}, (COLUMNS | {"age": [1.0, 2.0]},), "must be as long as"),
    ({"group": "arm"}, (COLUMNS | {"arm": [None] * N},), "has a missing value"),
]


@pytest.mark.parametrize(("options", "data", "message"), MISTAKES)
def test_mistakes(options, data, message):
    with pytest.raises((ParameterError, DataError), match=message):
        run("mmd_test", *data, **options)


ROWS: tuple[Any, Any] = (COLUMNS["age"][:40], COLUMNS["age"][40:] + 0.5)
PLACES: dict[str, Any] = {"bounds": (0, 101), "epsilon": 1}
CALLED: Any = pt
# tests whose groups are always arrays: what the default adjacency leaves public
OTHERS: dict[str, Callable[[], Any]] = {
    "hodges_lehmann": lambda: CALLED.hodges_lehmann(*ROWS, **PLACES),
    "me_test": lambda: CALLED.me_test(*ROWS, locations=[[30]], delta=1e-6, **PLACES),
    "scf_test": lambda: CALLED.scf_test(*ROWS, frequencies=[[0.1]], delta=1e-6, **PLACES),
    "me_permutation_test": lambda: CALLED.me_permutation_test(
        *ROWS, locations=[[30]], **FEW, **PLACES
    ),
    "scf_permutation_test": lambda: CALLED.scf_permutation_test(
        *ROWS, frequencies=[[0.1]], **FEW, **PLACES
    ),
    "permutation_test": lambda: CALLED.permutation_test(
        ROWS,
        lambda x, y: abs(x.mean() - y.mean()),
        sensitivity=101 / 40,
        check_sensitivity=False,
        **FEW,
        **PLACES,
    ),
    "test_of_tests": lambda: CALLED.test_of_tests(
        *ROWS, pvalue="mmd", n_subsets=3, **FEW, **PLACES
    ),
    "sarrm_test": lambda: CALLED.sarrm_test(*ROWS, pvalue="mmd", **FEW, **PLACES | {"epsilon": 40}),
    "tost_ind": lambda: CALLED.tost_ind(*ROWS, -5, 5, **PLACES),
    "tost_proportions": lambda: CALLED.tost_proportions(*halves("won"), -0.5, 0.5, epsilon=1),
}


def test_every_test_of_groups_is_here():
    functions = {name: getattr(pt, name) for name in pt.__all__}
    takes = {
        name
        for name, function in functions.items()
        if inspect.isfunction(function) and "adjacency" in inspect.signature(function).parameters
    }
    assert takes == {*ALL, *OTHERS}


@pytest.mark.parametrize("name", [*ALL, *OTHERS])
def test_a_default_that_hides_less_is_said(name):
    """Samples have public sizes, and whoever reads the result is told so."""
    column = ALL[name][1] if name in ALL else ""
    own = {"bounds": SCHEMA.select([column])} if column else {}
    result = OTHERS[name]() if name in OTHERS else run(name, *halves(column), **own)
    assert result.adjacency == "one"
    assert "group sizes are public" in result.guarantee
    assert "group sizes are public" in str(result)


@pytest.mark.parametrize("group", [["a", ["b"]], 3, b"g"])
def test_a_group_that_is_no_name_is_refused(group):
    with pytest.raises(ParameterError, match="group must be the name of a column"):
        pt.ttest_ind({"x": [0.0, 1.0], "g": ["a", "b"]}, group=group, bounds=(0, 1), epsilon=1)
