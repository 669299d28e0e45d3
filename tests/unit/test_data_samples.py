from __future__ import annotations

import datetime
import traceback
import tracemalloc
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from privatest.core.errors import DataError, ParameterError
from privatest.data.encoding import encode_samples
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn, Schema

CANARY = 987654.321
CANARY_TEXT = "987654.321"
UNIT = NumericColumn(0, 1)


def one(column, values, name="visits"):
    """Encode a single column."""
    return Schema({name: column}).encode({name: values})[:, 0].tolist()


def message_of(call, *arguments) -> str:
    """The refusal, after looking for the canary in everything that could be printed."""
    with pytest.raises(DataError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "987654" not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in message
    return message


# --- numbers --------------------------------------------------------------------------------


def test_numbers_are_clipped_and_mapped_to_the_unit_interval():
    column = NumericColumn(10, 30)
    assert one(column, [10, 15, 30, -5, 1e300, np.inf, -np.inf]) == [0, 0.25, 1, 0, 1, 1, 0]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0, 2, 4], pa.int8()),
        pa.array([0, 2, 4], pa.uint64()),
        pa.array([0, 2, 4], pa.float32()),
        pa.array(np.array([0, 2, 4], np.float16)),
        pa.array([Decimal("0.00"), Decimal("2.00"), Decimal("4.00")]),
        pa.array([0, 2, 4]).dictionary_encode(),
        pa.chunked_array([[0], [], [2, 4]]),
        np.array([0, 2, 4], np.uint8),
        np.array([0, 2, 4], np.longdouble),
        np.array([0, 2, 4], ">i4"),
        np.arange(0, 10)[:5:2],
        [0, 2, 4.0],
        (0, 2, 4),
        range(0, 5, 2),
        pd.Series([0, 2, 4], index=[7, 8, 9]),
        pd.Series([0, 2, 4], dtype="Int64"),
        pd.Series([0, 2, 4], dtype="category"),
        pl.Series([0, 2, 4]),
    ],
)
def test_numbers_of_every_make(values):
    assert one(NumericColumn(0, 8, integer=True), values) == [0, 0.25, 0.5]


def test_truth_values_count_as_0_and_1():
    assert one(UNIT, [True, False]) == [1, 0]
    assert one(UNIT, np.array([True, False])) == [1, 0]


def test_integers_beyond_the_floats_are_clipped():
    assert one(UNIT, pa.array([2**63 - 1, -(2**63), 2**53 + 1])) == [1, 0, 1]


@given(
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=20),
    st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)).filter(
        lambda b: b[1] - b[0] >= 1e-150
    ),
)
def test_numbers_never_leave_the_domain_and_keep_their_order(values, bounds):
    encoded = np.array(one(NumericColumn(*bounds), sorted(values)))
    assert encoded.min() >= 0
    assert encoded.max() <= 1
    assert (np.diff(encoded) >= 0).all()
    assert one(NumericColumn(*bounds), list(bounds)) == [0, 1]
    array = encode_samples(sorted(values), [], bounds).x.rows[:, 0]
    assert array.tolist() == encoded.tolist()


@pytest.mark.parametrize(
    "values",
    [
        [1.0, None, CANARY],
        [1.0, np.nan, CANARY],
        np.array([1.0, np.nan, CANARY]),
        np.ma.masked_values([1.0, 2.0, CANARY], 2.0),
        pa.array([1.0, None, CANARY]),
        pa.array([1.0, float("nan"), CANARY]),
        pa.array([None, None]),
        pd.Series([1.0, None, CANARY]),
        pd.Series([1, None, 987654], dtype="Int64"),
        pl.Series([1.0, None, CANARY]),
        pa.array([1.0, None, CANARY]).dictionary_encode(),
    ],
)
def test_missing_numbers_are_refused(values):
    message = message_of(one, NumericColumn(0, 9), values)
    assert "column 'visits'" in message
    assert 'missing = "refuse"' in message


def test_missing_numbers_become_the_public_value():
    column = NumericColumn(0, 8, missing=2)
    expected = [0.5, 0.25, 0.25]
    assert one(column, [4, None, np.nan]) == expected
    assert one(column, np.array([4, np.nan, np.nan])) == expected
    assert one(column, pa.array([4, None, None])) == expected
    assert one(column, pa.nulls(2)) == [0.25, 0.25]
    assert one(column, pd.Series([4, None, None], dtype="Int64")) == expected


@pytest.mark.parametrize(
    "values",
    [
        [CANARY, 1.0],
        np.array([1.0, CANARY]),
        pa.array([Decimal("987654.321")]),
        [987654.5],  # not an integer, although it would be clipped to one
    ],
)
def test_integer_columns_refuse_fractions(values):
    message = message_of(one, NumericColumn(0, 77, integer=True), values)
    assert "column 'visits'" in message
    assert "integer" in message


def test_integer_columns_clip_infinity():
    assert one(NumericColumn(0, 4, integer=True), [np.inf, -np.inf, 2.0]) == [1, 0, 0.5]


@pytest.mark.parametrize(
    "values",
    [
        [CANARY_TEXT, "b"],
        ["1", "2"],
        pa.array([CANARY_TEXT]).dictionary_encode(),
        pa.array([b"987654.321"]),
        [datetime.date(2020, 1, 1)],
        [[CANARY], [1.0]],
        np.array([[CANARY, 1.0]]),
        np.array([CANARY + 1j]),
        np.array([CANARY_TEXT, CANARY], dtype=object),
        [CANARY_TEXT, CANARY],
        [CANARY, object()],
        [987654 * 10**40],
        pd.Series([CANARY, CANARY_TEXT], dtype=object),
        pl.Series([CANARY_TEXT]),
    ],
)
def test_what_is_not_a_number_is_refused(values):
    assert "column 'visits'" in message_of(one, UNIT, values)


# --- categories -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("categories", "values", "codes"),
    [
        (("a", "b", "c"), ["c", "a", "b", "a"], [2, 0, 1, 0]),
        (("a", "b"), pa.array(["b", "a"], pa.large_string()), [1, 0]),
        (("a", "b"), pa.array(["b", "a"], pa.string_view()), [1, 0]),
        (("a", "b"), pa.array(["b", "a", "b"]).dictionary_encode(), [1, 0, 1]),
        (("a", "b"), pa.chunked_array([["b"], [], ["a"]]), [1, 0]),
        (("a", "b"), np.array(["b", "a"]), [1, 0]),
        (("a", "b"), pd.Series(["b", "a"], dtype="category"), [1, 0]),
        (("a", "b"), pl.Series(["b", "a"], dtype=pl.Categorical), [1, 0]),
        (("a", "b"), pl.Series(["b", "a"]), [1, 0]),
        ((0, 1), [1, 0], [1, 0]),
        ((0, 1), [1.0, -0.0], [1, 0]),
        ((0, 1), ["1", "0"], [1, 0]),
        ((0, 1), ["1.0", " 0", "+1", "01", "1e0"], [1, 0, 1, 1, 1]),
        ((0, 1), np.array([1, 0], ">i8"), [1, 0]),
        ((0, 1), np.array([1, 0], np.longdouble), [1, 0]),
        ((0, 1), np.array([1, 0], np.float16), [1, 0]),
        ((0, 1), [Decimal("1.00"), Decimal("0.00")], [1, 0]),
        ((0.0, 1.0), [1, 0], [1, 0]),
        ((0.5, 1.5), ["1.50", "0.5"], [1, 0]),
        ((0.5, 1.5), [Decimal("1.5"), Decimal("0.5")], [1, 0]),
        ((2**60, 2**60 + 1), [2**60 + 1, 2**60], [1, 0]),
        ((2**60, 2**60 + 1), [str(2**60 + 1)], [1]),
        (("0", "1"), [1, 0], [1, 0]),
        (("01", "1"), ["1", "01"], [1, 0]),
        (("01", "02"), ["02", "01"], [1, 0]),
        ((False, True), [True, False], [1, 0]),
        ((False, True), np.array([True, False]), [1, 0]),
        ((False, True), ["true", "FALSE", "True"], [1, 0, 1]),
        (("false", "true"), [True, False], [1, 0]),
        (("Yes", "No"), ["No", "Yes"], [1, 0]),
        (("a", 1, True), ["a", "1", "true"], [0, 1, 2]),
        (("NA", "EU"), ["EU", "NA"], [1, 0]),
        (("", "x"), ["x", ""], [1, 0]),
    ],
)
def test_categories_become_codes(categories, values, codes):
    assert one(CategoricalColumn(categories), values, "plan") == codes


@pytest.mark.parametrize(
    ("categories", "values"),
    [
        (("a", "b"), ["a", CANARY_TEXT]),
        (("a", "b"), [CANARY]),
        (("a", "b"), ["A"]),
        (("a", "b"), ["a "]),
        ((0, 1), [0, 987654]),
        ((0, 1), [CANARY]),
        ((0, 1), np.array([CANARY])),
        ((0, 1), [0.5]),
        ((0, 1), [True]),
        ((0, 1), ["one"]),
        ((0, 1), ["1_0", "0"]),
        ((0, 1), ["٠"]),  # a zero, but not one that Arrow would read from a file
        ((0, 1), [float("inf")]),
        ((0, 1), ["1e999"]),
        ((0, 1), ["1" * 5000]),
        (("1", "2"), ["01"]),
        (("01", "02"), [1]),
        ((False, True), [1]),
        ((False, True), ["yes"]),
        ((2**60, 2**60 + 1), [2**60 + 2]),
        (("a", "b"), pa.array([CANARY_TEXT, "a"]).dictionary_encode()),
        (("a", "b"), pd.Series(["a", CANARY_TEXT], dtype="category")),
    ],
)
def test_values_outside_the_categories_are_refused(categories, values):
    message = message_of(one, CategoricalColumn(categories), values, "plan")
    assert message == "column 'plan' has a value outside its declared categories."


def test_unused_entries_of_a_dictionary_do_no_harm():
    values = pd.Series(["a", "b"], dtype=pd.CategoricalDtype(["a", "b", CANARY_TEXT]))
    assert one(CategoricalColumn(("a", "b")), values) == [0, 1]


@pytest.mark.parametrize(
    "values",
    [
        ["a", None],
        ["a", ""],
        ["a", "NA"],
        ["a", "NaN"],
        [None, None],
        pa.array(["a", None]).dictionary_encode(),
        pd.Series(["a", None], dtype="category"),
        pd.Series(["a", np.nan]),
        pl.Series(["a", None]),
        np.array(["a", None], dtype=object),
    ],
)
def test_missing_categories(values):
    message = message_of(one, CategoricalColumn(("a", "b")), values, "plan")
    assert message.startswith(
        "column 'plan' has a missing value; the rule is missing = \"refuse\"."
    )
    encoded = one(CategoricalColumn(("a", "b"), missing="b"), values)
    assert encoded[1] == 1


@pytest.mark.parametrize("missing", [1, 1.0, "1"])
def test_missing_codes_of_numbers(missing):
    for values in ([0, None], np.array([0.0, np.nan]), pa.array([0.0, float("nan")]), ["0", ""]):
        assert one(CategoricalColumn((0, 1), missing=missing), values) == [0, 1]


def test_many_categories_need_more_than_a_byte():
    names = tuple(f"c{i}" for i in range(300))
    values = pd.Series([*names[:120], None], dtype=pd.CategoricalDtype(names[:127]))
    column = CategoricalColumn(names, missing="c299")
    assert one(column, values) == [*range(120), 299]


@pytest.mark.parametrize(
    "values", [[datetime.date(2020, 1, 1)], pa.array([b"987654.321"]), [["987654.321"]]]
)
def test_types_that_are_no_categories(values):
    assert "column 'plan'" in message_of(one, CategoricalColumn(("a", "b")), values, "plan")


kinds = st.one_of(
    st.text(max_size=4), st.integers(-3, 3), st.floats(-3, 3).map(lambda v: round(v, 1))
)


@given(st.lists(kinds, min_size=2, max_size=6), st.data())
def test_written_categories_are_found_again(drawn, data):
    try:
        column = CategoricalColumn(tuple(drawn))
    except ParameterError:
        reject()  # and draw others: to return would pass even if all were refused
    codes = data.draw(st.lists(st.integers(0, len(drawn) - 1), min_size=1, max_size=8))
    written = [str(drawn[code]) for code in codes]
    assert one(column, pa.array(written, pa.string())) == codes


@pytest.mark.parametrize(
    ("text", "categories"),
    [
        ("0\n1\n1\n", (0, 1)),
        ("0\n1\n1\n", ("0", "1")),
        ("0\n1.0\n1\n", (0, 1)),
        ("true\nFALSE\nfalse\n", (True, False)),
        ("true\nfalse\nfalse\n", ("true", "false")),
        ("a\n1\n1\n", ("a", 1)),
        ("a\n1\n1\n", ("a", "1")),
        ("a\nb\nb\n", ("a", "b")),
        ("2020-01-01\nb\nb\n", ("2020-01-01", "b")),
    ],
)
def test_categories_as_csv_guesses_them(text, categories):
    for types in ({}, {"plan": pa.string()}):
        table = pc.read_csv(
            pa.BufferReader(f"plan\n{text}".encode()),
            convert_options=pc.ConvertOptions(column_types=types),
        )
        assert Schema({"plan": CategoricalColumn(categories)}).encode(table)[:, 0].tolist() == [
            0,
            1,
            1,
        ]


# --- tables ---------------------------------------------------------------------------------

DATA = {"plan": ["b", "a"], "visits": [2, 8], "note": ["x", "y"]}
SCHEMA = Schema(
    {"visits": NumericColumn(0, 8), "plan": CategoricalColumn(("a", "b"))}, rows_per_person=3
)
ENCODED = [[0.25, 1.0], [1.0, 0.0]]


class Stream:
    """Anything that speaks Arrow's protocol."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


TABLES = [
    DATA,
    pa.table(DATA),
    pa.record_batch(DATA),
    pd.DataFrame(DATA),
    pd.DataFrame(DATA, index=[5, 3]),
    pl.DataFrame(DATA),
    Stream(pa.table(DATA)),
    pa.table(DATA).to_struct_array(),
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: type(table).__name__)
def test_tables_of_every_make(table):
    encoded = SCHEMA.encode(table)
    assert encoded.tolist() == ENCODED
    assert encoded.dtype == np.float64
    assert encode_samples(table, table, SCHEMA).y.rows.tolist() == ENCODED


def test_a_column_that_is_not_there():
    for table in ({"plan": ["a"], "n": [CANARY]}, pd.DataFrame({"plan": ["a"], "n": [CANARY]})):
        message = message_of(SCHEMA.encode, table)
        assert message == "column 'visits' is missing; the columns are: plan, n."


def test_a_column_that_is_there_twice():
    frame = pd.DataFrame([[1, CANARY]], columns=["visits", "visits"])
    assert "column 'visits' occurs more than once" in message_of(SCHEMA.encode, frame)
    table = pa.table([[1], [CANARY]], names=["visits", "visits"])
    assert "column 'visits' occurs more than once" in message_of(SCHEMA.encode, table)


def test_columns_of_different_lengths():
    message = message_of(SCHEMA.encode, {"visits": [1.0, CANARY], "plan": ["a"]})
    assert message == "column 'plan' must be as long as the other columns."


@pytest.mark.parametrize("table", [np.array([[CANARY]]), [CANARY], pa.array([CANARY])])
def test_encode_needs_names(table):
    assert "named columns" in message_of(SCHEMA.encode, table)


def test_no_rows():
    assert SCHEMA.encode({"visits": [], "plan": []}).shape == (0, 2)
    empty = pa.table({"visits": pa.array([], pa.int8()), "plan": pa.array([], pa.string())})
    assert SCHEMA.encode(empty).shape == (0, 2)
    assert SCHEMA.encode(pd.DataFrame(DATA)[:0]).shape == (0, 2)
    message = message_of(SCHEMA.encode, {"visits": pa.array([], pa.string()), "plan": []})
    assert "column 'visits'" in message


def test_long_columns_are_read_in_blocks():
    rng = np.random.default_rng(1)
    visits, plan = rng.integers(0, 9, 50_000), rng.integers(0, 2, 50_000)
    table = pa.table({"visits": visits, "plan": np.array(["a", "b"])[plan]})
    chunked = pa.concat_tables([table.slice(0, 20_001), table.slice(20_001)])
    expected = np.column_stack([visits / 8, plan])
    for rows in (table, chunked, table.to_pandas(), pl.from_arrow(chunked)):
        np.testing.assert_array_equal(SCHEMA.encode(rows), expected)


# --- two samples ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds", [(0, 8), [0, 8.0], np.array([0, 8]), [(0, 8)], np.array([[0.0, 8.0]])]
)
@pytest.mark.parametrize(
    "x",
    [
        [2, 8],
        [[2], [8]],
        np.array([2, 8]),
        np.array([[2.0], [8.0]]),
        np.array([2, 8], np.uint8),
        pd.Series([2, 8]),
        pd.DataFrame({"a": [2, 8]}),
        pl.Series([2, 8]),
        pl.DataFrame({"a": [2, 8]}),
        pa.array([2, 8]),
        pa.chunked_array([[2], [8]]),
        pa.table({"a": [2, 8]}),
        {"a": [2, 8]},
    ],
    ids=lambda x: type(x).__name__,
)
def test_samples_of_every_make(x, bounds):
    samples = encode_samples(x, [4], bounds)
    assert samples.x.rows.tolist() == [[0.25], [1.0]]
    assert samples.y.rows.tolist() == [[0.5]]
    assert samples.domain == Domain((0,))
    assert (samples.unit, samples.rows_per_person) == ("row", 1)


def test_bounds_for_each_column():
    x = np.array([[2, -1.0], [9, 0.5]])
    assert encode_samples(x, x[:0], [(0, 8), (-1, 1)]).x.rows.tolist() == [[0.25, 0], [1, 0.75]]
    frame = pd.DataFrame(x, columns=["a", "b"])
    reordered = pl.DataFrame({"b": x[:, 1], "a": x[:, 0]})
    samples = encode_samples(frame, reordered, [(0, 8), (-1, 1)])
    assert samples.x.rows.tolist() == samples.y.rows.tolist() == [[0.25, 0], [1, 0.75]]


def test_a_schema_matches_arrays_by_position_and_frames_by_name():
    array = np.array([[2, "b"], [8, "a"]], dtype=object)
    samples = encode_samples(array, pd.DataFrame(DATA), SCHEMA)
    assert samples.x.rows.tolist() == samples.y.rows.tolist() == ENCODED
    assert samples.domain == Domain((0, 2))
    assert (samples.unit, samples.rows_per_person) == ("person with at most 3 rows", 3)
    numbers = Schema({"v": NumericColumn(0, 8), "g": CategoricalColumn((0, 1))})
    array = np.array([[2.0, 1.0], [8.0, 0.0]])
    assert encode_samples(array, array.tolist(), numbers).y.rows.tolist() == ENCODED
    plan = SCHEMA.select(["plan"])
    assert encode_samples(["b", "a"], pd.Series(["a"]), plan).x.rows.tolist() == [[1.0], [0.0]]


def test_a_schema_needs_all_of_its_columns():
    message = message_of(encode_samples, [[2, 1]], [CANARY], SCHEMA)
    assert "column 'plan' of x" in message
    x = np.array([[2, "a"]], dtype=object)
    assert message_of(encode_samples, x, [CANARY], SCHEMA) == (
        "y must have the schema's 2 columns (visits, plan); it has 1."
    )
    message = message_of(encode_samples, DATA, {"visits": [CANARY]}, SCHEMA)
    assert message == "column 'plan' of y is missing; the columns are: visits."


def test_without_bounds_numbers_stay_as_they_are():
    x = np.array([[1.5, -1e300]])
    samples = encode_samples(x, [[1, 2]], None)
    assert samples.x.rows.tolist() == x.tolist()
    assert samples.y.rows.dtype == np.float64
    assert samples.domain == Domain((0, 0), bounded=False)
    assert np.shares_memory(samples.x.rows, x)
    assert not samples.x.rows.flags.writeable
    assert x.flags.writeable
    frame = pd.DataFrame(x, columns=["a", "b"])
    assert encode_samples(frame, pl.from_pandas(frame), None).y.rows.tolist() == x.tolist()


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([np.inf, CANARY], "x has an infinite value"),
        ([-np.inf, CANARY], "x has an infinite value"),
        (pd.Series([np.inf, CANARY]), "x has an infinite value"),
        (pl.DataFrame({"a": [np.inf, CANARY]}), "column 'a' of x has an infinite value"),
        ([np.nan, CANARY], "x has a missing value"),
        (pa.array([None, CANARY]), "x has a missing value"),
    ],
)
def test_without_bounds_numbers_must_be_finite(x, words):
    assert message_of(encode_samples, x, [1.0], None).startswith(words)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([1.0, np.nan, CANARY], "x has a missing value"),
        ([[1.0, 2.0], [CANARY, np.nan]], "column 2 of x has a missing value"),
        (np.ma.masked_equal([1.0, CANARY], 1.0), "x has a missing value"),
        (pd.Series([None, CANARY]), "x has a missing value"),
        (pd.DataFrame({"a": [None, CANARY]}), "column 'a' of x has a missing value"),
        ([None, CANARY], "x must hold real numbers"),
        (["a", CANARY_TEXT], "x must hold real numbers"),
        (np.array(["a", CANARY], dtype=object), "x must hold real numbers"),
        (np.array([CANARY + 1j]), "x must hold real numbers"),
        (np.array(["2020-01-01"], "M8[D]"), "x must hold real numbers"),
        (pd.Series([CANARY_TEXT]), "x must hold numbers"),
        (pl.DataFrame({"a": [CANARY_TEXT]}), "column 'a' of x must hold numbers"),
        (pd.DataFrame({"a": [CANARY, "b"]}), "column 'a' of x must be one column of numbers"),
        ([[1.0], [CANARY, 2.0]], "x must have rows of one length"),
        (np.zeros((1, 1, 1)), "x must be a data frame, or an array of one or two dimensions"),
        (CANARY, "x must be a data frame, or an array of one or two dimensions"),
        (None, "x must be a data frame, or an array of one or two dimensions"),
        (np.array([(CANARY, 1)], dtype="f8,i4"), "x must be a data frame"),
        (pl.LazyFrame({"a": [CANARY]}), "x must be a data frame"),
        (np.empty((3, 0)), "x must have at least one column"),
        ([[]], "x must have at least one column"),
        (pd.DataFrame(index=[1]), "x must have at least one column"),
    ],
)
def test_samples_that_are_refused(x, words):
    width = 2 if "column 2" in words else 1
    assert message_of(encode_samples, x, np.ones((1, width)), (0, 9)).startswith(words)
    if "at least one" not in words:
        message = message_of(encode_samples, np.ones((1, width)), x, (0, 9))
        assert message.startswith(words.replace("x ", "y ", 1).replace("of x", "of y"))


def test_samples_of_different_widths():
    message = message_of(encode_samples, [[CANARY, 1]], [CANARY], (0, 1))
    assert message == "x and y must have the same columns: x has 2, y has 1."
    message = message_of(encode_samples, {"a": [CANARY]}, {"b": [CANARY]}, (0, 1))
    assert message == "column 'a' of y is missing."


@pytest.mark.parametrize(
    "bounds",
    [
        (1, 0),
        (0, 0),
        (0, np.inf),
        (np.nan, 1),
        (-1.7e308, 1.7e308),
        [(0, 1), (1, 1)],
        (0, 1, 2),
        [(0, 1)] * 3,
        [[0, 1], [2]],
        np.zeros((2, 2, 2)),
        5,
        "ab",
        ("0", "1"),
        (False, True),
        (0, 1j),
        {"a": (0, 1)},
        [],
    ],
)
def test_bounds_that_are_refused(bounds):
    with pytest.raises(ParameterError, match="bounds must be") as caught:
        encode_samples(np.ones((3, 2)), np.ones((3, 2)), bounds)
    assert "\n" not in str(caught.value)


def test_data_passed_as_bounds_is_not_quoted():
    x = np.full((5, 2), CANARY)
    with pytest.raises(ParameterError) as caught:
        encode_samples(x, x, np.full((5, 3), CANARY))
    assert "987654" not in str(caught.value)


def test_samples_are_not_shown():
    assert "987654" not in repr(encode_samples([CANARY], [CANARY], None))


def test_no_rows_but_known_columns():
    samples = encode_samples([], np.empty((0, 1)), (0, 1))
    assert samples.x.rows.shape == samples.y.rows.shape == (0, 1)
    assert encode_samples(np.empty((0, 3)), np.ones((2, 3)), None).x.rows.shape == (0, 3)
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    assert encode_samples(frame[:0], frame, (0, 3)).x.rows.shape == (0, 2)


@given(
    npst.arrays(
        st.sampled_from([np.float64, np.float32, np.int16, np.bool_]),
        st.tuples(st.integers(0, 5), st.integers(1, 3)),
        elements=st.integers(0, 1),
    )
)
def test_the_caller_keeps_its_data(x):
    before = x.copy()
    frame = pd.DataFrame(x)
    for bounds in (None, (0.25, 0.75)):
        samples = encode_samples(x, frame, bounds)
        np.testing.assert_array_equal(samples.x.rows, samples.y.rows)
        np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(frame.to_numpy(), before)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_read_only_and_strided_arrays(layout):
    x = np.array([[2.0, 8.0], [4.0, 0.0]], order=layout)
    x.flags.writeable = False
    assert encode_samples(x, x[::-1, ::-1], (0, 8)).y.rows.tolist() == [[0, 0.5], [1, 0.25]]
    assert encode_samples(x, x[::-1, ::-1], None).y.rows.tolist() == [[0, 4], [8, 2]]


@pytest.mark.parametrize("bounds", [(0, 1), Schema({f"c{i}": UNIT for i in range(10)})])
def test_memory_is_one_encoded_copy(bounds):
    x = np.random.default_rng(0).normal(size=(200_000, 10))
    encode_samples(x[:10], x[:10], bounds)  # imports
    tracemalloc.start()
    samples = encode_samples(x, x[:1], bounds)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert samples.x.rows.nbytes == x.nbytes
    assert peak < 1.1 * x.nbytes


# --- no rows, masks, extended floats --------------------------------------------------------


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        (),
        np.array([]),
        np.array([], dtype=object),
        np.empty((0, 1)),
        pa.array([], pa.float64()),
    ],
    ids=["list", "tuple", "array", "objects", "column", "arrow"],
)
@pytest.mark.parametrize("columns", [1, 3])
def test_nothing_has_as_many_columns_as_it_takes(nothing, columns):
    rows = np.random.default_rng(0).random((5, columns))
    schema = Schema({f"c{k}": NumericColumn(0, 1) for k in range(columns)})
    frame = {f"c{k}": rows[:, k] for k in range(columns)}
    by_name = {f"c{k}": (0, 1) for k in range(columns)}
    for data, bounds in (
        (rows, (0, 1)),
        (rows.tolist(), None),
        (rows, schema),
        (frame, schema),
        (frame, (0, 1)),
        (frame, by_name),
    ):
        samples = encode_samples(nothing, data, bounds)
        assert (samples.x.rows.shape, samples.y.rows.shape) == ((0, columns), (5, columns))
        samples = encode_samples(data, nothing, bounds)
        assert (samples.x.rows.shape, samples.y.rows.shape) == ((5, columns), (0, columns))


def test_rows_with_masks_are_not_taken_for_numbers():
    rows = [np.ma.array([0.1, 0.2]), np.ma.array([0.3, 999.0], mask=[False, True])]
    for data in (rows, tuple(rows)):
        with pytest.raises(DataError, match="missing"):
            encode_samples(data, [[0.1, 0.2]], (0, 1))
    fine = [np.ma.array([0.1, 0.2]), np.ma.array([0.3, 0.4])]
    assert encode_samples(fine, [[0.1, 0.2]], (0, 1)).x.rows.shape == (2, 2)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        (np.array([2**53, 2**53 + 1] * 3), CategoricalColumn((2**53, 2**53 + 1, 7), missing=7)),
        (np.array([True, False] * 3), CategoricalColumn((True, False, "none"), missing="none")),
        (np.array(["a", "b"] * 3), CategoricalColumn(("a", "b", "none"), missing="none")),
        (np.array([0.5, 1.5] * 3, np.longdouble), NumericColumn(0, 2, missing=1)),
        (np.array([0, 1] * 3, np.uint8), NumericColumn(0, 2, integer=True, missing=2)),
    ],
    ids=["large integers", "truth", "text", "extended floats", "small integers"],
)
@pytest.mark.parametrize("whole", [True, False], ids=["array", "column"])
def test_a_mask_says_nothing_of_other_records(values, column, whole):
    """One person's mask must not change how all others are read, nor whether they are."""
    schema, found = Schema({"a": column}), []
    for masked in (False, True):
        data = np.ma.array(values, mask=[False] * 5 + [masked])
        shown = data if whole else {"a": data}
        found.append(encode_samples(shown, shown, schema).x.rows)
    plain = values if whole else {"a": values}
    assert np.array_equal(found[0], encode_samples(plain, plain, schema).x.rows)
    assert np.array_equal(found[0][:5], found[1][:5])
    assert not np.array_equal(found[0][5], found[1][5])


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no such floats")
def test_extended_floats_give_no_warning():
    """Whether there is one would tell of the values."""
    huge = np.array([np.longdouble(10) ** 4000, -(np.longdouble(10) ** 4000), 0.25])
    schema = Schema({"a": NumericColumn(0, 1)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data, bounds in ((huge, (0, 1)), (huge, schema), ({"a": huge}, schema)):
            rows = encode_samples(data, [0.5] if bounds == (0, 1) else data, bounds).x.rows
            assert rows[:, 0].tolist() == [1, 0, 0.25]
        with pytest.raises(DataError, match="infinite"):
            encode_samples(huge, huge, None)
        categories = Schema({"a": CategoricalColumn((0, 1))})
        with pytest.raises(DataError, match="declared categories"):
            encode_samples({"a": huge}, {"a": huge}, categories)
