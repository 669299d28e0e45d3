"""A schema with an id_column: nobody has more rows than it says, in every function and form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privatest as pt
from privatest.core.errors import DataError
from privatest.data.reading import check_person_rows
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from tests.unit.test_public_bounds import COLUMNS, ONE, SEVERAL, TINY, UNSEEDED, run
from tests.unit.test_public_budget import Till, paying

PUBLIC = {"optimise_locations", "optimise_frequencies"}  # they see public rows
CALLS = {name: call for name, call in (SEVERAL | ONE).items() if name not in PUBLIC}
IDS = np.array([f"person {i}" for i in range(60)])
MANY = np.where(np.arange(60) < 11, "person 0", IDS)  # one of them has 11 rows
PAIRED = {  # rows of both sides are one row of a person
    *("hsic_test", "ttest_rel", "tost_rel", "symmetry_test", "wilcoxon", "kendalltau"),
    *("spearmanr", "pearsonr", "linregress", "conditional_independence_test"),
    "conditional_randomisation_test",
}
SINGLE = {
    *("hotelling_1samp", "private_mean", "private_covariance", "share", "release", "ttest_1samp"),
    *("ks_1samp", "ks_family", "sign_test", "private_median", "private_quantile", "binom_test"),
    "private_share",
}


def _schema(name: str, rows: int = 1) -> Schema:
    columns = {"visits": NumericColumn(0, 80), "age": NumericColumn(15, 45)}
    chosen = columns if name in SEVERAL else {"age": columns["age"]}
    return Schema(chosen, rows, "who")


def _table(ids: Any) -> dict[str, Any]:
    return COLUMNS | {"who": ids}


@pytest.mark.parametrize("name", CALLS)
def test_a_person_with_more_rows_is_refused(name, monkeypatch):
    """It depends on the data, so the cost is spent as for a missing value."""
    options: dict[str, Any] = dict(TINY) if name in UNSEEDED | {"ks_2samp"} else TINY | {"rng": 0}
    for own in ("share", "release"):  # by their public names, which pay
        monkeypatch.setattr(f"tests.unit.test_public_bounds.{own}", getattr(pt, own))
    with paying(Till()) as till, pytest.raises(DataError, match="more than 1 rows") as refused:
        CALLS[name](_table(MANY), _schema(name), **options)
    assert len(till.costs) == 1
    assert "person 0" not in str(refused.value)
    assert "11" not in str(refused.value)


@pytest.mark.parametrize("name", CALLS)
def test_a_person_in_all_samples_has_rows_in_all(name):
    """The same table is passed twice, or three times, and once for pairs and for one sample."""
    if name == "sarrm_test":
        pytest.skip("refuses more than one row of a person")
    samples = 1 if name in PAIRED | SINGLE else 3 if name == "f_oneway" else 2
    schema = _schema(name, samples)
    expected = run(name, COLUMNS, schema.select(schema.columns))
    assert run(name, _table(IDS), schema) == expected
    if samples > 1:
        with pytest.raises(DataError, match=f"more than {samples - 1} rows"):
            run(name, _table(IDS), replace(schema, rows_per_person=samples - 1))


@pytest.mark.parametrize("name", CALLS)
def test_data_without_the_id_column_is_refused(name):
    with pytest.raises(DataError, match=r"'who' of the data must be there once.*schema\.select"):
        run(name, COLUMNS, _schema(name))
    if name in SEVERAL:
        rows = np.column_stack(list(COLUMNS.values()))
        with pytest.raises(DataError, match="'who' of the data must be there once"):
            run(name, rows, _schema(name))


TWO: dict[str, Any] = {
    "mmd_test": pt.mmd_test,
    "ks_2samp": pt.ks_2samp,
    "kruskal": pt.kruskal,
    "ttest_ind": pt.ttest_ind,
    "f_oneway": pt.f_oneway,
    "proportions_test": lambda *x, **o: pt.proportions_test(*x, success=30, n_simulations=99, **o),
}


@pytest.mark.parametrize("name", TWO)
def test_with_both_rows_are_counted_in_each_sample(name):
    schema, shared = _schema("ks_2samp"), {"epsilon": 1, "noise": SimulatedNoise(1)}
    x, y = _table(IDS), _table(IDS)
    TWO[name](x, y, bounds=schema, adjacency="both", **shared)
    with pytest.raises(DataError, match="more than 1 rows"):
        TWO[name](x, _table(MANY), bounds=schema, adjacency="both", **shared)
    frame = pd.concat([pd.DataFrame(x).assign(arm="a"), pd.DataFrame(y).assign(arm="b")])
    grouped = Schema(
        {**schema.columns, "arm": CategoricalColumn(("a", "b"), membership="public")}, 1, "who"
    )
    options: dict[str, Any] = {"group": "arm", "columns": "age", "bounds": grouped, **shared}
    for data in (frame, pl.DataFrame(frame), pt.scan(frame)):
        TWO[name](data, adjacency="both", **options)
        with pytest.raises(DataError, match="more than 1 rows"):
            TWO[name](data, **options)  # everybody is in both groups
    worse = frame.assign(who=[*MANY, *IDS])
    with pytest.raises(DataError, match="more than 1 rows"):
        TWO[name](worse, adjacency="both", **options)


def test_private_groups_and_empty_ones():
    schema, data = _schema("mmd_test"), _table(IDS)
    options: dict[str, Any] = {"bounds": schema, "epsilon": 1, "adjacency": "row"}
    several: list[Any] = [([], data), (data, {}), ([], data, pd.DataFrame())]
    for samples in several:
        pt.mmd_test(*samples, noise=SimulatedNoise(1), **options)
    with pytest.raises(DataError, match="more than 1 rows"):
        pt.mmd_test([], _table(MANY), [], **options)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table, pt.scan])
@pytest.mark.parametrize("kind", ["text", "whole", "decimal", "dictionary"])
def test_all_forms_of_ids(make, kind):
    numbers = np.arange(60)
    ids: Any = {
        "text": IDS,
        "whole": numbers,
        "decimal": numbers + 0.5,
        "dictionary": pa.array(IDS).dictionary_encode().to_pandas(),
    }[kind]
    frame = pd.DataFrame(_table(ids))
    data = dict(frame.items()) if make is dict else make(frame)
    data = pa.Table.from_pandas(frame) if make is pa.table else data
    schema = _schema("private_mean", 2)
    assert check_person_rows(schema, [data]) == schema.select(schema.columns)
    assert check_person_rows(schema, [data, data]) == schema.select(schema.columns)
    with pytest.raises(DataError, match="more than 2 rows"):
        check_person_rows(schema, [data, data, data])


def test_a_number_is_the_same_person_with_and_without_decimals():
    schema = _schema("private_mean")
    with pytest.raises(DataError, match="more than 1 rows"):
        check_person_rows(schema, [{"who": [1, 2, 3]}, {"who": [4.0, 2.0]}])
    with pytest.raises(DataError, match="missing values"):
        check_person_rows(schema, [{"who": [1.0, np.nan]}])
    check_person_rows(schema, [{"who": ["1", "01", "1.0"]}])  # as they are written


def test_what_was_released_does_not_ask_for_ids():
    schema = _schema("release")
    options: dict[str, Any] = TINY | {"n_points": 20, "method": "subspace", "rng": 0}
    made = pt.release(_table(IDS), bounds=schema, **options)
    assert made.facts.schema is not None
    assert made.facts.schema.id_column is None
    made.mmd(COLUMNS)
    plan = pt.plan_share(bounds=schema, locations=3, epsilon=1, delta=1e-6)
    assert plan.schema.id_column is None
