"""One grammar: what a value means for a category of a schema, and for a label of a request."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from privatest.core.errors import DataError, ParameterError
from privatest.data.reading import Grouping
from privatest.data.schema import (
    MISSING,
    UNKNOWN,
    CategoricalColumn,
    Categories,
    Schema,
    label_spelling,
)

ONE = [1, 1.0, Decimal("1.00"), "1"]  # what 1 means everywhere
OTHER_SPELLINGS = ["01", "+1", " 1", "1 ", "1e0", "1.", "1E+0"]


@pytest.mark.parametrize("value", [*ONE, "1.0", "1.000", *OTHER_SPELLINGS])
def test_a_declared_number_is_spelled_in_any_way(value):
    assert Categories.declared((0, 1)).code_of(value) == 1
    assert Categories.declared(("a", 1.0)).code_of(value) == 1


@pytest.mark.parametrize("value", [*ONE, "1.0", "1.000"])
@pytest.mark.parametrize("label", ["1", "1.0"])
def test_a_label_that_is_a_number_matches_plain_numbers(label, value):
    assert Categories.labelled(("0", label)).code_of(value) == 1


@pytest.mark.parametrize("value", [*OTHER_SPELLINGS, "١", "1_0", "one", True, 2, "2", 1.5])
def test_a_label_matches_no_code_that_only_looks_like_it(value):
    assert Categories.labelled(("0", "1")).code_of(value) == UNKNOWN


@pytest.mark.parametrize("value", [1, "1", "1.0", "001", " 01"])
def test_text_with_zeros_stands_for_itself(value):
    for categories in (Categories.labelled(("0", "01")), Categories.declared(("0", "01"))):
        assert categories.code_of("01") == 1
        assert categories.code_of(value) == UNKNOWN


def test_declared_text_is_matched_literally():
    categories = Categories.declared(("1", "1.0", "2"))
    assert [categories.code_of(value) for value in ("1", "1.0", 1, 1.0, "2.0")] == [
        0,
        1,
        0,
        0,
        UNKNOWN,
    ]


@pytest.mark.parametrize("make", [Categories.declared, Categories.labelled])
def test_truth_missing_values_and_empty_text(make):
    categories = make(("true", "x"))
    assert [categories.code_of(value) for value in (True, "TRUE", "True", False)] == [
        0,
        0,
        0,
        UNKNOWN,
    ]
    for value in (None, float("nan"), "", "NA", "nan", "NULL"):
        assert categories.code_of(value) == MISSING
    assert make(("NA", "")).code_of("NA") == 0
    assert make(("NA", "")).code_of("") == 1
    assert make(("NA", "")).code_of("x") == UNKNOWN  # "" is not what is no number


def test_labels_that_mean_the_same():
    assert label_spelling("1.0") == label_spelling("1") == "1"
    assert label_spelling("-0") == label_spelling("0.0")
    assert label_spelling("01") == "01"
    with pytest.raises(ParameterError, match="must be different values"):
        Grouping.ask("g", None, ("1", "1.0"), None)


def test_groups_of_a_request_and_of_a_schema():
    table = pa.table({"g": ["1", "01", "1.0", "2"], "v": [1, 2, 3, 4]})
    first, rest = Grouping.ask("g", None, ("1", "rest"), "public").split(table)
    assert (first["v"].to_pylist(), rest["v"].to_pylist()) == ([1, 3], [2, 4])
    schema = Schema({"g": CategoricalColumn((1, 2))})
    for label in ("1", "1.0", "01"):  # as the schema reads the file
        first, rest = Grouping.ask("g", schema, (label, "rest"), None).split(table)
        assert (first["v"].to_pylist(), rest["v"].to_pylist()) == ([1, 2, 3], [4])


def test_a_label_of_a_text_category_is_literal():
    schema = Schema({"g": CategoricalColumn(("1", "2"))})
    assert Grouping.ask("g", schema, ("1", "2"), None).codes == (0, 1)
    with pytest.raises(ParameterError, match="not a category"):
        Grouping.ask("g", schema, ("1.0", "2"), None)


@pytest.mark.parametrize("values", [[b"987654"], np.array(["2020-01-01"], "M8[D]")])
def test_other_types_are_no_groups(values):
    table = pa.table({"g": values, "v": [1]})
    with pytest.raises(DataError, match="column 'g' must hold text") as caught:
        Grouping.ask("g", None, ("1", "2"), "public").split(table)
    assert "987654" not in str(caught.value)
