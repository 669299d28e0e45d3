from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.core.errors import DataError, ParameterError
from privatest.data.files import check_columns, read_schema, read_table
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema, schema_template

CSV = "visits,plan,note\n1,01,x\n2,02,y\n"
ROWS = {"visits": [1, 2], "plan": ["01", "02"], "note": ["x", "y"]}
CANARY = "987654.321"


def refused(call, *arguments, **options) -> str:
    """The refusal, after looking for the canary in everything that could be printed."""
    with pytest.raises(DataError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in message
    return message


@pytest.fixture
def write(tmp_path):
    def write(name: str, content: str | bytes):
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.lower().endswith(".gz") else data)
        return path

    return write


@pytest.fixture(params=["d.csv", "D.CSV", "d.csv.gz", "d.tsv", "d.tsv.gz", "d.parquet"])
def file(request, write, tmp_path):
    """The same rows in each format."""
    if request.param == "d.parquet":
        pq.write_table(pa.table(ROWS), tmp_path / request.param)
        return tmp_path / request.param
    text = CSV.replace(",", "\t") if ".tsv" in request.param else CSV
    return write(request.param, text)


# --- what is read ---------------------------------------------------------------------------


def test_formats(file):
    assert read_table(file, text=["plan"]).to_pydict() == ROWS
    assert read_table(str(file), text=["plan"]).to_pydict() == ROWS


def test_only_the_requested_columns_in_their_order(file):
    table = read_table(file, ["note", "visits"], text=["plan"])
    assert table.column_names == ["note", "visits"]
    assert table.to_pydict() == {"note": ["x", "y"], "visits": [1, 2]}
    assert read_table(file, "note").column_names == ["note"]


def test_other_columns_may_be_anything(write):
    path = write("d.csv", b"a,b\n1,\xe9\n2,x\n")
    assert read_table(path, ["a"]).to_pydict() == {"a": [1, 2]}


def test_missing_values_of_csv(write):
    path = write("d.csv", "a,b\n1,\n,y\nNA,NA\nNaN,z\n")
    table = read_table(path)
    assert table["a"].to_pylist() == [1, None, None, None]
    assert table["b"].to_pylist() == ["", "y", "NA", "z"]  # a schema knows whether NA is meant
    schema = Schema(
        {"a": NumericColumn(0, 4, missing=4), "b": CategoricalColumn(("NA", "y", "z"), missing="z")}
    )
    assert schema.encode(table).tolist() == [[0.25, 2], [1, 1], [1, 0], [1, 2]]


def test_blank_lines_are_rows_where_there_is_one_column(write):
    assert read_table(write("d.csv", "a\n1\n\n3\n"))["a"].to_pylist() == [1, None, 3]
    assert read_table(write("e.csv", "a,b\n1,2\n\n3,4\n\n")).num_rows == 2


def test_text_over_several_lines(write):
    path = write("d.csv", 'a,b\n1,"x\ny"\n2,"z, ""q"""\n')
    assert read_table(path).to_pydict() == {"a": [1, 2], "b": ["x\ny", 'z, "q"']}


def test_byte_order_mark_and_windows_line_ends(write):
    path = write("d.csv", b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode())
    assert read_table(path, text=["plan"]).to_pydict() == ROWS


def test_types_are_guessed_from_the_whole_file(write):
    rows = ["1"] * 400_000 + ["2.5"]  # beyond the first block
    table = read_table(write("d.csv", "a,b\n" + "".join(f"{row},x\n" for row in rows)))
    assert table.schema.field("a").type == pa.float64()
    assert table["a"][-1].as_py() == 2.5


def test_names_with_dots(tmp_path):
    rows = {"a": [1], "a.b": [2], "c": [3]}
    pq.write_table(pa.table(rows), tmp_path / "d.parquet")
    for name, values in rows.items():
        assert read_table(tmp_path / "d.parquet", [name]).to_pydict() == {name: values}


def test_file_to_rows(file):
    schema = Schema(
        {"plan": CategoricalColumn(("01", "02")), "visits": NumericColumn(0, 4, integer=True)}
    )
    table = read_table(file, list(schema.columns), text=schema.categorical_names)
    np.testing.assert_array_equal(schema.encode(table), [[0, 0.25], [1, 0.5]])


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_table, read_schema])
@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d.tsv", "d.parquet"])
def test_files_that_are_not_there_or_empty(read, name, tmp_path):
    assert refused(read, tmp_path / name) == f"{name} does not exist."
    (tmp_path / name).write_bytes(b"")
    assert refused(read, tmp_path / name) == f"{name} is empty."


@pytest.mark.parametrize("name", ["d.xlsx", "d", "d.csv.zip", "csv", "d.json"])
def test_unknown_endings(name, write):
    message = refused(read_table, write(name, CANARY))
    assert message.startswith(f"{name} must end in one of .csv, ")
    assert ".parquet" in message


def test_a_folder_is_not_a_file(tmp_path):
    (tmp_path / "d.parquet").mkdir()
    assert refused(read_table, tmp_path / "d.parquet") == "d.parquet is not a file."


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_file_that_may_not_be_read(write):
    path = write("d.csv", CSV)
    path.chmod(0)
    assert "d.csv cannot be opened" in refused(read_table, path)


@pytest.mark.parametrize(
    "content",
    [
        f"a,b\n1,2\n{CANARY}\n",
        f"a,b\n1,2\n3,4,{CANARY}\n",
        b"\xe9,b\n987654.321,1\n",
        "\n\n",
    ],
)
def test_csv_that_cannot_be_parsed(content, write):
    message = refused(read_table, write("d.csv", content))
    assert message.startswith(("d.csv cannot be read as CSV", "d.csv is not in UTF-8"))


def test_csv_text_that_is_not_utf8(write):
    path = write("d.csv", b"a,b\n987654.321,\xe9\n")
    assert "UTF-8" in refused(read_table, path, text=["b"])


def test_a_fault_behind_the_first_block(write):
    content = "a,b\n" + "1,2\n" * 400_000 + f"{CANARY}\n"
    assert "cannot be read as CSV" in refused(read_table, write("d.csv", content))


@pytest.mark.parametrize("rows", [10, 1_000_000])
def test_truncated_gzip(rows, tmp_path):
    content = gzip.compress(b"a,b\n" + b"987654.321,2\n" * rows)
    (tmp_path / "d.csv.gz").write_bytes(content[: len(content) * 2 // 3])
    assert "d.csv.gz cannot be read as CSV" in refused(read_table, tmp_path / "d.csv.gz")


@pytest.mark.e2e
def test_a_truncated_gzip_does_not_keep_the_program_from_ending(tmp_path):
    content = gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000)
    (tmp_path / "d.csv.gz").write_bytes(content[: len(content) * 2 // 3])
    code = (
        f"from privatest.data.sources import read_table\nread_table({str(tmp_path / 'd.csv.gz')!r})"
    )
    command = [sys.executable, "-c", code]
    for _ in range(3):
        done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "cannot be read as CSV" in done.stderr


def test_plain_text_named_gzip(tmp_path):
    (tmp_path / "d.csv.gz").write_text(f"a,b\n{CANARY},1\n")
    assert "d.csv.gz cannot be read as CSV" in refused(read_table, tmp_path / "d.csv.gz")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_parquet(share, tmp_path):
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(0).normal(size=10_000)}), path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    expected = "d.parquet cannot be read as Parquet; is the file complete?"
    assert refused(read_table, path) == expected
    assert refused(read_schema, path) == expected


def test_damaged_parquet(tmp_path):
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"a": [CANARY] * 1000, "b": np.arange(1000.0)}), path)
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    path.write_bytes(content)
    assert "cannot be read as Parquet" in refused(read_table, path)


def test_csv_named_parquet(write):
    assert "cannot be read as Parquet" in refused(read_table, write("d.parquet", CSV))


def test_no_rows(write, tmp_path):
    assert refused(read_table, write("d.csv", "a,b\n")) == "d.csv has no rows."
    assert refused(read_table, write("d.csv.gz", "a,b\n\n\n")) == "d.csv.gz has no rows."
    pq.write_table(pa.table({"a": pa.array([], pa.int8())}), tmp_path / "d.parquet")
    assert refused(read_table, tmp_path / "d.parquet") == "d.parquet has no rows."


def test_a_column_that_is_not_there(file):
    message = refused(read_table, file, ["visits", "age"])
    assert message == f"{file.name} has no column 'age'; it has: visits, plan, note."


def test_a_column_that_is_there_twice(write):
    path = write("d.csv", f"a,a,b\n1,{CANARY},3\n")
    assert "d.csv has more than one column 'a'" in refused(read_table, path, ["a"])
    assert refused(read_table, path) == "d.csv has more than one column of the same name."
    assert read_table(path, ["b"]).to_pydict() == {"b": [3]}


# --- quotes ---------------------------------------------------------------------------------

QUOTES = {
    "not closed": 'a,b\n1,x\n2,"y\n3,z\n4,w\n5,u\n',
    "not closed, in the last row": 'a,b\n1,x\n2,"y',
    "not closed, in the last row but one": 'a,b\n1,x\n2,"y\n3,z\n',
    "not closed, and another field quoted": 'a,b\n1,"x\n2,"y"\n3,z\n',
    "closed by the quote of another row": 'a,b\n1,"x\n2,y"\n3,"z\n4,"w"\n',
    "doubled at the end": 'a,b\n1,"x""\n2,y\n',
    "text behind it": 'a,b\n1,"x"y\n2,z\n',
    "in the header": '"a,b\n1,x\n2,y\n',
}


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d.tsv", "d.tsv.gz"])
@pytest.mark.parametrize("content", QUOTES.values(), ids=QUOTES)
def test_quotes_that_swallow_rows_are_refused(content, name, write):
    """Arrow ends an open quote with the file: 2 of 5 rows were read, and nobody was told."""
    text = content.replace("2,", f"{CANARY},")
    path = write(name, text.replace(",", "\t") if ".tsv" in name else text)
    message = refused(read_table, path, ["a"])
    assert message.startswith((f"{name} cannot be read as CSV", f"{name} has no column 'a'"))


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_quotes_that_are_right_are_read(end, name, write):
    rows = [
        "\ufeffa,b",
        '1,"x, y"',
        '2,"say ""z"""',
        "",
        '"3","over{0}two lines"',
        '4,5" pipe',
        "5,",
    ]
    table = read_table(write(name, end.join(rows).format(end)))
    assert table["a"].to_pylist() == [1, 2, 3, 4, 5]
    assert table["b"].to_pylist() == ["x, y", 'say "z"', f"over{end}two lines", '5" pipe', ""]


def test_quotes_in_one_column(write):
    assert read_table(write("d.csv", 'a\n"1"\n\n"3"\n'))["a"].to_pylist() == [1, None, 3]


def test_quotes_beside_text_that_is_not_utf8(write):
    path = write("d.csv", b'a,b\n1,"\xe9"\n2,"x"\n')
    assert read_table(path, ["a"]).to_pydict() == {"a": [1, 2]}


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 9), st.text(st.sampled_from('ab,"\n\r\t é'))), min_size=1
    ),
    delimiter=st.sampled_from([("csv", ","), ("tsv", "\t")]),
)
def test_what_python_writes_is_read_whole(rows, delimiter, tmp_path_factory):
    ending, mark = delimiter
    path = tmp_path_factory.mktemp("csv") / f"d.{ending}"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=mark).writerows([("a", "b"), *rows])
    table = read_table(path, text=["b"])
    assert table.to_pydict() == {"a": [a for a, _ in rows], "b": [b for _, b in rows]}


# --- headers that are none ------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_table, check_columns])
@pytest.mark.parametrize(
    "first", [f"Anna,{CANARY},F", f"{CANARY},{CANARY},M", f"age,{CANARY},1", f"age;{CANARY}"]
)
def test_a_first_row_is_not_quoted(first, read, write):
    path = write("d.csv", f"{first}\n{first}\n")
    for columns in (["visits"], ["age", "visits"]):
        message = refused(read, path, columns)
        assert "d.csv has no column '" in message
        assert message.endswith("Does its first line name the columns, separated by commas?")
        assert "Anna" not in message


def test_no_template_is_made_of_somebodys_row(write):
    message = refused(read_schema, write("d.csv", f"Anna,{CANARY}\nBert,2\n"))
    assert message.startswith("d.csv has a number in its first line, as a row of data does.")
    assert "Anna" not in message


def test_names_of_a_file_cannot_act_on_a_terminal(write, tmp_path):
    names = ["\x1b[2Ja", "b\x9b2J", "\u202ec", "d"]
    path = write("d.csv", ",".join(names) + "\n1,2,3,4\n")
    message = refused(read_table, path, ["d", "e\x1b"])
    assert message == ("d.csv has no column 'e\\x1b'; it has: \\x1b[2Ja, b\\x9b2J, \\u202ec, d.")
    pq.write_table(pa.table({name: [1] for name in names}), tmp_path / "d.parquet")
    assert refused(read_table, tmp_path / "d.parquet", ["e"]).isprintable()
    assert refused(read_table, tmp_path / "f\x1b[2J.csv").isprintable()


# --- numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("5", 5),
        (" 5", 5),
        ("5 ", 5),
        ("+5", 5),
        ("-05", -5),
        ("5.", 5),
        (".5", 0.5),
        ("5e-1", 0.5),
        ("1E2", 100),
        ("123456789012345678901234567890", 1.2345678901234568e29),
        ("1e400", np.inf),
        ("-inf", -np.inf),
        ("-Infinity", -np.inf),
        ("1e-400", 0.0),
    ],
)
def test_numbers(written, number, write):
    path = write("d.csv", f"a,b\n{written},x\n2,y\n")
    assert read_table(path)["a"].to_pylist() == [number, 2]


@pytest.mark.parametrize(
    "written",
    [
        "0x1F",
        "0X1f",
        "-0x1",
        "1_000",
        "５",
        "٥",
        "1 000",
        '"1,5"',
        "5%",
        "5\x00",
        "1e",
        "--5",
        "\xa05",
        "0b1",
        "0o7",
        "1d5",
        "0x1p3",
        "½",
        "2024-01-01",
        "12:30",
        "1.2.3",
        "1/2",
        "(5)",
        "$5",
    ],
)
def test_what_is_no_number_is_refused(written, write):
    path = write("d.csv", f"a,b\n{written},x\n2,y\n")
    table = read_table(path)
    assert table["a"].to_pylist() == [written.strip('"'), "2"]
    message = refused(Schema.from_bounds({"a": (0, 99)}).encode, table)
    assert message == (
        "column 'a' must hold numbers, such as -1234.5 (with a point); it holds text or another "
        "type."
    )


def test_true_and_false(write):
    table = read_table(write("d.csv", "a,b\nTrue,true\nfalse,NA\n"))
    assert table.to_pydict() == {"a": [True, False], "b": [True, None]}


def test_a_column_of_missing_values(write):
    table = read_table(write("d.csv", "a,b\nNA,1\n,2\n"))
    schema = Schema({"a": NumericColumn(0, 4, missing=1)})
    assert schema.encode(table).tolist() == [[0.25], [0.25]]


def test_archives_in_parts(tmp_path):
    parts = gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n")
    (tmp_path / "d.csv.gz").write_bytes(parts)
    assert read_table(tmp_path / "d.csv.gz")["a"].to_pylist() == [1, 3]
    (tmp_path / "d.csv.gz").write_bytes(parts + b"987654.321")
    assert "cannot be read as CSV" in refused(read_table, tmp_path / "d.csv.gz")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_refused(encoding, write):
    refused(read_table, write("d.csv", f"a,b\n{CANARY},2\n".encode(encoding)), ["a"])


@pytest.mark.parametrize("columns", [[], ["visits", "visits"]])
def test_columns_to_read_must_be_a_choice(columns, write):
    with pytest.raises(ParameterError, match="columns must be at least one"):
        read_table(write("d.csv", CSV), columns)


# --- names and types ------------------------------------------------------------------------


def test_schema_of_a_file(file):
    schema = read_schema(file)
    assert schema.names == ["visits", "plan", "note"]
    assert schema.field("visits").type == pa.int64()
    assert schema.field("note").type == pa.string()


def test_template_of_a_file_has_no_values(write, tmp_path):
    content = f"income,plan,{'w' * 9}\n{CANARY},{CANARY}x,1\n"
    table = read_table(write("d.csv", content))
    pq.write_table(table, tmp_path / "d.parquet", store_schema=True)
    for name in ("d.csv", "d.parquet"):
        text = schema_template(read_schema(tmp_path / name))
        assert "[columns.income]" in text
        assert "987654" not in text


def test_schema_of_a_header_alone(write):
    assert read_schema(write("d.csv", "a,b\n")).names == ["a", "b"]
