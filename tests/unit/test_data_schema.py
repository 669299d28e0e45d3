from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.core.errors import DataError, ParameterError
from privatest.data.schema import (
    CategoricalColumn,
    Column,
    Domain,
    NumericColumn,
    Schema,
    parse_bounds,
    schema_template,
)

DESIGN = """
rows_per_person = 5

[columns.mdvis]
type = "numeric"
bounds = [0, 77]
integer = true
missing = "refuse"            # or a public value

[columns.idp]
type = "categorical"
categories = [0, 1]
membership = "private"        # "public" where everybody knows who is in which group
"""


def refused(text: str) -> str:
    with pytest.raises(ParameterError) as caught:
        Schema.from_text(text)
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- columns --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds",
    [
        (1, 0),
        (1, 1),
        (0, np.inf),
        (-np.inf, 0),
        (np.nan, 1),
        ("0", 1),
        (False, True),
        (None, 1),
        (0, 10**400),
        (-1.7e308, 1.7e308),  # the distance overflows
        (0j, 1),
    ],
)
def test_bounds_that_are_no_range(bounds):
    with pytest.raises(ParameterError, match="bounds must be"):
        NumericColumn(*bounds)


@pytest.mark.parametrize("missing", [-1, 78, np.nan, "skip", True, None, [1], 0.5])
def test_missing_must_be_a_value_the_column_may_have(missing):
    with pytest.raises(ParameterError, match="missing must be"):
        NumericColumn(0, 77, integer=True, missing=missing)


def test_integer_column_has_integer_bounds():
    with pytest.raises(ParameterError, match="integer = true"):
        NumericColumn(0.5, 3, integer=True)
    with pytest.raises(ParameterError, match="integer must be true or false"):
        NumericColumn(0, 3, integer=1)  # type: ignore[arg-type]


def test_numpy_numbers_become_python_ones():
    numbers: list[Any] = [np.int64(0), np.float32(2), False, np.int8(1)]
    column = NumericColumn(*numbers)
    assert column == NumericColumn(0.0, 2.0, missing=1.0)
    assert {type(value) for value in (column.lower, column.upper, column.missing)} == {float}
    values: Any = (np.int64(1), np.str_("a"), np.bool_(True))
    assert [type(value) for value in CategoricalColumn(values).categories] == [int, str, bool]


@pytest.mark.parametrize(
    "categories",
    [
        (),
        ("a",),
        ("a", "a"),
        (1, 1.0),
        (1, "1"),
        ("1", "1", "2"),
        (True, "TRUE"),
        ("a", None),
        ("a", np.nan),
        ("a", np.inf),
        ("a", ("b",)),
        "ab",
        7,
        {"a": 1, "b": 2},
    ],
)
def test_categories_that_are_no_choice(categories):
    with pytest.raises(ParameterError, match="categories must be"):
        CategoricalColumn(categories)


def test_codes_with_and_without_leading_zero_are_two_categories():
    assert CategoricalColumn(("01", "1", "001")).categories == ("01", "1", "001")


def test_a_list_of_categories_is_kept_as_a_tuple():
    assert CategoricalColumn(["a", "b"]).categories == ("a", "b")  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", ["c", 2, None, np.nan, True])
def test_missing_must_be_a_category(missing):
    with pytest.raises(ParameterError, match="missing must be"):
        CategoricalColumn(("a", "b", 1), missing=missing)


def test_membership_is_a_word():
    with pytest.raises(ParameterError, match="membership must be one of"):
        CategoricalColumn(("a", "b"), membership="secret")  # type: ignore[arg-type]


# --- the schema -----------------------------------------------------------------------------


def test_the_schema_of_the_design():
    schema = Schema.from_text(DESIGN)
    assert schema == Schema(
        {
            "mdvis": NumericColumn(0, 77, integer=True),
            "idp": CategoricalColumn((0, 1), membership="private"),
        },
        rows_per_person=5,
    )
    assert list(schema.columns) == ["mdvis", "idp"]
    assert schema.domain == Domain((0, 2))
    assert schema.unit == "person with at most 5 rows"
    assert schema.categorical_names == ("idp",)


def test_one_row_per_person_by_default():
    schema = Schema.from_bounds({"a": (0, 1)})
    assert (schema.rows_per_person, schema.unit) == (1, "row")


@pytest.mark.parametrize("rows", [0, -1, 1.5, "2", True, None])
def test_rows_per_person(rows):
    with pytest.raises(ParameterError, match="rows_per_person must be an integer of at least 1"):
        Schema.from_bounds({"a": (0, 1)}, rows_per_person=rows)


@pytest.mark.parametrize("columns", [{}, None, [], {"a": (0, 1)}, {1: NumericColumn(0, 1)}])
def test_columns_must_be_described(columns):
    with pytest.raises(ParameterError, match="column"):
        Schema(columns)


@pytest.mark.parametrize("pair", [(1, 0), (0,), (0, 1, 2), "01", 5, None, np.zeros((2, 2))])
def test_from_bounds_names_the_column(pair):
    with pytest.raises(ParameterError, match="column 'visits': bounds must be"):
        Schema.from_bounds({"visits": pair})


def test_a_schema_cannot_be_changed():
    columns = {"a": NumericColumn(0, 1)}
    schema = Schema(columns)
    columns["b"] = NumericColumn(0, 2)
    assert list(schema.columns) == ["a"]
    with pytest.raises(TypeError):
        schema.columns["b"] = NumericColumn(0, 1)  # type: ignore[index]
    with pytest.raises(AttributeError):
        schema.rows_per_person = 2  # type: ignore[misc]


def test_a_schema_can_be_copied_and_sent():
    schema = Schema.from_text(DESIGN)
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert copy.deepcopy(schema) == schema


def test_select_keeps_the_order_that_was_asked_for():
    schema = Schema.from_text(DESIGN)
    chosen = schema.select(["idp", "mdvis"])
    assert list(chosen.columns) == ["idp", "mdvis"]
    assert chosen.domain == Domain((2, 0))
    assert chosen.rows_per_person == 5
    assert list(schema.select("idp").columns) == ["idp"]


def test_select_lists_the_declared_columns():
    with pytest.raises(ParameterError, match=r"mdvis, idp.*got 'visits'"):
        Schema.from_text(DESIGN).select(["idp", "visits"])
    for names in ([], ["idp", "idp"]):
        with pytest.raises(ParameterError, match="each only once"):
            Schema.from_text(DESIGN).select(names)


# --- TOML -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ("", "type"),
        ("type = 'text'", "type"),
        ("type = 3", "type"),
        ("type = 'numeric'", "bounds"),
        ("type = 'numeric'\nbounds = []", "bounds must be filled in"),
        ("type = 'numeric'\nbounds = [1]", "bounds"),
        ("type = 'numeric'\nbounds = [0, 1, 2]", "bounds"),
        ("type = 'numeric'\nbounds = [1, 0]", "bounds"),
        ("type = 'numeric'\nbounds = [1, 1]", "bounds"),
        ("type = 'numeric'\nbounds = [0, inf]", "bounds"),
        ("type = 'numeric'\nbounds = [nan, 1]", "bounds"),
        ("type = 'numeric'\nbounds = ['0', '1']", "bounds"),
        ("type = 'numeric'\nbounds = '01'", "bounds"),
        ("type = 'numeric'\nbounds = [true, false]", "bounds"),
        ("type = 'numeric'\nbounds = {lower = 0, upper = 1}", "bounds"),
        (f"type = 'numeric'\nbounds = [0, {'9' * 400}]", "bounds"),
        ("type = 'numeric'\nbounds = [0, 1]\ninteger = 'yes'", "integer"),
        ("type = 'numeric'\nbounds = [0, 1]\ninteger = 1", "integer"),
        ("type = 'numeric'\nbounds = [0, 1.5]\ninteger = true", "bounds"),
        ("type = 'numeric'\nbounds = [0, 1]\nmissing = 2", "missing"),
        ("type = 'numeric'\nbounds = [0, 1]\nmissing = 'drop'", "missing"),
        ("type = 'numeric'\nbounds = [0, 1]\nmissing = 1979-05-27", "missing"),
        ("type = 'numeric'\nbounds = [0, 1]\ncategories = [0, 1]", "'categories'"),
        ("type = 'numeric'\nbound = [0, 1]", "'bound'"),
        ("type = 'categorical'", "categories"),
        ("type = 'categorical'\ncategories = []", "categories must be filled in"),
        ("type = 'categorical'\ncategories = ['a']", "categories"),
        ("type = 'categorical'\ncategories = ['a', 'a']", "categories"),
        ("type = 'categorical'\ncategories = [1, 1.0]", "categories"),
        ("type = 'categorical'\ncategories = 'ab'", "categories"),
        ("type = 'categorical'\ncategories = [1979-05-27, 'a']", "categories"),
        ("type = 'categorical'\ncategories = [['a'], 'b']", "categories"),
        ("type = 'categorical'\ncategories = [0, 1]\nmembership = 'secret'", "membership"),
        ("type = 'categorical'\ncategories = [0, 1]\nmissing = 2", "missing"),
        ("type = 'categorical'\ncategories = [0, 1]\nbounds = [0, 1]", "'bounds'"),
    ],
)
def test_errors_in_a_column_name_it_and_the_key(lines, key):
    message = refused(f"[columns.ok]\ntype='numeric'\nbounds=[0, 1]\n[columns.visits]\n{lines}\n")
    assert message.startswith("column 'visits': ")
    assert key in message


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "columns"),
        ("rows_per_person = 2", "columns"),
        ("columns = 3", "columns"),
        ("columns = []", "columns"),
        ("[columns]", "columns"),
        ("[columns]\nvisits = 3", "'visits'"),
        ("[columns]\nvisits = [0, 77]", "'visits'"),
        ("rows = 2\n[columns.a]\ntype='numeric'\nbounds=[0, 1]", "'rows'"),
        ("rows_per_person = 0\n[columns.a]\ntype='numeric'\nbounds=[0, 1]", "rows_per_person"),
        ("rows_per_person = '5'\n[columns.a]\ntype='numeric'\nbounds=[0, 1]", "rows_per_person"),
        ("[columns.a", "TOML"),
        ("[columns.a]\n[columns.a]", "TOML"),
        ("a = " + "9" * 5000, "TOML"),
    ],
)
def test_errors_around_columns(text, key):
    assert key in refused(text)


def test_from_toml_reads_a_file(tmp_path):
    path = tmp_path / "schema.toml"
    for content in (DESIGN.encode(), DESIGN.replace("\n", "\r\n").encode()):
        for mark in (b"", b"\xef\xbb\xbf"):
            path.write_bytes(mark + content)
            assert Schema.from_toml(path) == Schema.from_text(DESIGN)
            assert Schema.from_toml(str(path)) == Schema.from_text(DESIGN)


def test_from_toml_without_a_readable_file(tmp_path):
    with pytest.raises(ParameterError, match=r"schema nowhere\.toml cannot be read"):
        Schema.from_toml(tmp_path / "nowhere.toml")
    with pytest.raises(ParameterError, match="cannot be read"):
        Schema.from_toml(tmp_path)
    path = tmp_path / "latin.toml"
    path.write_bytes(b"[columns.\xe9]")
    with pytest.raises(ParameterError, match="UTF-8"):
        Schema.from_toml(path)


# TOML has no way to write half of a surrogate pair
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.floats(-1e300, 1e300)


@st.composite
def numeric_columns(draw):
    integer = draw(st.booleans())
    values = st.integers(-(10**20), 10**20) if integer else numbers
    lower, middle, upper = sorted(draw(st.lists(values, min_size=3, max_size=3)))
    if float(upper) - float(lower) < 1e-150:
        lower, middle, upper = -1, 0, 1
    return NumericColumn(lower, upper, integer, draw(st.sampled_from(["refuse", middle])))


@st.composite
def categorical_columns(draw):
    kinds = st.one_of(words, st.integers(), numbers, st.booleans())
    drawn = draw(st.lists(kinds, min_size=2, max_size=5))
    try:
        column = CategoricalColumn(tuple(drawn))
    except ParameterError:
        column = CategoricalColumn(("a", 1))
    membership = draw(st.sampled_from(["private", "public"]))
    missing = draw(st.sampled_from(["refuse", *column.categories]))
    return CategoricalColumn(column.categories, membership, missing)


@given(
    st.dictionaries(words, numeric_columns() | categorical_columns(), min_size=1, max_size=4),
    st.integers(1, 99),
)
def test_toml_there_and_back(columns, rows):
    schema = Schema(columns, rows)
    again = Schema.from_text(schema.to_toml())
    assert again == schema
    assert list(again.columns) == list(schema.columns)
    assert Schema.from_text(again.to_toml()).to_toml() == again.to_toml()


def test_toml_as_a_person_would_write_it():
    columns: dict[str, Column] = {
        "age": NumericColumn(0, 110, integer=True),
        "my height": NumericColumn(0.5, 2.5, missing=1.5),
        "plan": CategoricalColumn(("basic", 2, True), "public", "basic"),
    }
    assert Schema(columns, 5).to_toml() == (
        "rows_per_person = 5\n\n"
        '[columns.age]\ntype = "numeric"\nbounds = [0, 110]\ninteger = true\nmissing = "refuse"\n\n'
        '[columns."my height"]\ntype = "numeric"\nbounds = [0.5, 2.5]\ninteger = false\n'
        "missing = 1.5\n\n"
        '[columns.plan]\ntype = "categorical"\ncategories = ["basic", 2, true]\n'
        'membership = "public"\nmissing = "basic"\n'
    )


# --- the command line -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("visits=0:77", ("visits", 0.0, 77.0)),
        ("x=-1e3:2.5", ("x", -1000.0, 2.5)),
        ("x=-2:-1", ("x", -2.0, -1.0)),
        ("x=+1E-3:.5", ("x", 0.001, 0.5)),
        ("a=b=0:1", ("a=b", 0.0, 1.0)),
        ("a:b=0:1", ("a:b", 0.0, 1.0)),
        ("my column=0:1", ("my column", 0.0, 1.0)),
    ],
)
def test_parse_bounds(text, expected):
    assert parse_bounds(text) == expected


@pytest.mark.parametrize(
    "text", ["", "visits", "visits=", "visits=0", "visits=0:", "=0:1", "0:1", "v=0:1:2", "v=a:b"]
)
def test_parse_bounds_says_how(text):
    with pytest.raises(ParameterError, match="NAME=LOWER:UPPER, for example visits=0:77"):
        parse_bounds(text)


@pytest.mark.parametrize("pair", ["1:0", "1:1", "0:inf", "nan:1"])
def test_parse_bounds_names_the_column(pair):
    with pytest.raises(ParameterError, match="column 'visits': bounds must be"):
        parse_bounds(f"visits={pair}")


# --- the template ---------------------------------------------------------------------------


def test_template_is_filled_in_by_hand():
    fields = {
        "visits": pa.int32(),
        "small": pa.uint8(),
        "income": pa.float64(),
        "price": pa.decimal128(8, 2),
        "plan": pa.string(),
        "long": pa.large_string(),
        "smokes": pa.bool_(),
        "site": pa.dictionary(pa.int8(), pa.string()),
        "born on": pa.date32(),
        'quoted"\n[x]': pa.list_(pa.int8()),
        "nothing": pa.null(),
    }
    text = schema_template(pa.schema(list(fields.items())))
    assert "column 'visits': bounds must be filled in" in refused(text)
    filled = text.replace("bounds = []", "bounds = [0, 1]")
    assert "column 'plan': categories must be filled in" in refused(filled)
    schema = Schema.from_text(filled.replace("categories = []", "categories = ['a', 'b']"))
    assert schema.domain.levels == (0, 0, 0, 0, 2, 2, 2, 2)
    assert list(schema.columns) == list(fields)[:8]
    integers = [getattr(column, "integer", None) for column in schema.columns.values()]
    assert integers[:4] == [True, True, False, False]
    assert '# "born on" is left out' in text
    assert "# nothing is left out" in text


@given(st.lists(words, unique=True, min_size=1, max_size=5))
def test_template_stays_toml_whatever_the_names(names):
    text = schema_template(pa.schema([(name, pa.int64()) for name in names]))
    filled = Schema.from_text(text.replace("bounds = []", "bounds = [0, 1]"))
    assert list(filled.columns) == names


def test_template_needs_distinct_names():
    with pytest.raises(DataError, match="more than once"):
        schema_template(pa.schema([("a", pa.int8()), ("a", pa.int8())]))


@pytest.mark.e2e
def test_describing_data_needs_no_arrow():
    code = (
        "import sys, privatest.data.encoding as e\n"
        "e.encode_samples([1.0, 2.0], [[0.5]], (0, 3))\n"
        "sys.exit(bool({'pyarrow', 'pandas', 'polars'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_bounds_the_wrong_way_round_are_quoted():
    with pytest.raises(ParameterError) as caught:
        parse_bounds("x=60:0")
    assert str(caught.value) == (
        "column 'x': bounds must be two finite numbers, the lower below the upper; got 60 and 0."
    )
    with pytest.raises(ParameterError, match=r"got 0\.5 and 2\."):
        NumericColumn(0.5, 2, integer=True)


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\x9b2J", "\u202eb", "\U000e0041", "\x7f", "\u2028"])
def test_a_template_cannot_act_on_a_terminal(name):
    text = Schema.from_bounds({name: (0, 1)}).to_toml()
    assert all(char.isprintable() or char == "\n" for char in text)
    assert list(Schema.from_text(text).columns) == [name]
