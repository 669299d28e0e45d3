"""Each column on its own: the budget is shared, p-values are adjusted, nothing else changes."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import privatest as pt
from privatest.core.documents import canonical
from privatest.core.privacy import Budget
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.requests.prepare import prepare
from privatest.requests.rehearsal import rehearse
from privatest.requests.request import PreparedEach, Request
from privatest.requests.results import ColumnResults, result_from_dict

SCHEMA = Schema(
    {
        "visits": NumericColumn(0, 80),
        "age": NumericColumn(0, 100),
        "score": NumericColumn(0, 1),
        "plan": CategoricalColumn(("basic", "plus")),
        "region": CategoricalColumn(("north", "south"), membership="public"),
    },
    rows_per_person=2,
)
RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "visits": np.repeat([5.0, 60.0], 400),
        "age": RNG.uniform(0, 100, size=800),
        "score": RNG.uniform(size=800),
        "plan": ["basic"] * 400 + ["plus"] * 400,
        "region": ["north", "south"] * 400,
    }
)
NUMBERS = ["visits", "age", "score"]


def asked(**more) -> Request:
    document = {"question": "two-sample", "method": "mmd", "epsilon": "6", "group": "plan"}
    return Request.from_dict({**document, "columns": NUMBERS, "each_column": "holm"} | more)


def answered(request: Request) -> ColumnResults:
    result = prepare(request, SCHEMA).run(TABLE, noise=SimulatedNoise(1))
    assert isinstance(result, ColumnResults)
    return result


def test_each_column_has_an_equal_share_and_an_adjusted_p_value():
    result = answered(asked(epsilon="1"))
    assert list(result.columns) == NUMBERS
    assert result.spent == Budget(1)
    shares = [each.spent.epsilon for each in result.columns.values()]
    assert sum(shares) <= 1
    assert min(shares) == max(shares) > Decimal("0.33333333333333")
    assert all(each.parameters["adjusted"] == "holm, 3 tests" for each in result.columns.values())
    assert {each.unit for each in result.columns.values()} == {"person with at most 2 rows"}


@pytest.mark.parametrize("how", ["holm", "bonferroni", "bh", "by"])
def test_a_column_that_differs_is_found(how):
    result = answered(asked(each_column=how))
    assert [each.reject for each in result.columns.values()] == [True, False, False]
    assert result.adjustment == how


def test_it_is_read_back_from_the_record():
    result = answered(asked())
    written = canonical(result.to_dict())  # as a ledger does: names are sorted
    again = result_from_dict(json.loads(written), result.spent)
    assert isinstance(again, ColumnResults)
    assert again.to_dict() == result.to_dict()
    assert str(again) == str(result)
    assert "visits" in again._repr_html_()


def test_several_gaussian_mechanisms_are_not_charged_as_one():
    request = asked(method="ttest", group="region", delta="1e-6", columns=["visits", "age"])
    assert not request.gaussian
    alone = Request.from_dict(
        {k: v for k, v in request.to_dict().items() if k not in ("each_column", "columns")}
    )
    assert alone.gaussian


def test_methods_of_one_column_take_several_this_way():
    result = answered(asked(method="mann-whitney"))
    assert result.columns["visits"].reject


def test_all_described_columns_are_taken_where_none_is_named():
    request = asked()
    parts = {name: value for name, value in request.parts.items() if name != "columns"}
    everything = Request("two-sample", "mmd", Budget(6), parts=parts)
    prepared = prepare(everything, SCHEMA)
    assert isinstance(prepared, PreparedEach)
    assert list(prepared.columns) == [*NUMBERS, "region"]


def test_a_rehearsal_takes_the_whole_path():
    rehearse(prepare(asked(), SCHEMA), (20, 20))
    with pytest.raises(pt.DataError, match="at least 4 rows"):
        rehearse(prepare(asked(), SCHEMA), (1, 1))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"columns": ["visits"]}, "at least two"),
        ({"columns": ["visits", "visits"]}, "two different"),
        ({"each_column": "sidak"}, "each_column must be one of"),
        ({"each_column": True}, "each_column must be one of 'holm'"),
        ({"release": "decision"}, "needs p-values"),
        ({"epsilon": "0.000002"}, "epsilon must be at least"),
    ],
)
def test_what_cannot_be_asked(more, message):
    with pytest.raises(pt.ParameterError, match=message):
        prepare(asked(**more), SCHEMA)


# --- names and bounds as a SciPy user has them ------------------------------------------------


@pytest.mark.parametrize(
    ("alias", "name"),
    [("mannwhitneyu", "mann-whitney"), ("t-test", "ttest"), ("ks_2samp", "ks")],
)
def test_other_names_become_the_catalogues(alias, name):
    request = Request("two-sample", alias, Budget(1))
    assert request.method == name
    assert Request.from_dict(request.to_dict()).method == name


@pytest.mark.parametrize("method", ["ks", "mann-whitney"])
def test_ranks_need_no_bounds(method):
    request = Request.from_dict(
        {
            "question": "two-sample",
            "method": method,
            "epsilon": "5",
            "group": "plan",
            "groups": ["basic", "plus"],
            "columns": ["visits"],
        }
    )
    prepared = prepare(request, None)
    rehearse(prepared, (20, 20))
    assert prepared.run(TABLE.select(["visits", "plan"])).reject  # type: ignore[attr-defined]
    with pytest.raises(pt.ParameterError, match="has no bounds"):
        prepare(Request.from_dict(request.to_dict() | {"method": "mmd"}), None)


def test_a_schema_that_has_rows_per_person_is_never_passed_by():
    request = Request.from_dict(
        {
            "question": "two-sample",
            "method": "ks",
            "epsilon": "5",
            "group": "plan",
            "columns": ["weight"],
        }
    )
    with pytest.raises(pt.ParameterError, match="'weight' has no bounds"):
        prepare(request, SCHEMA)


@pytest.mark.parametrize("text", ["norm", "expon"])
def test_a_distribution_needs_its_parameters(text):
    request = Request.from_dict({"question": "fit", "column": "age", "dist": text, "epsilon": "1"})
    with pytest.raises(pt.ParameterError, match="dist must have its parameters"):
        prepare(request, None)
