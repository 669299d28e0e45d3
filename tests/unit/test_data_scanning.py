"""Sources: the same rows from wherever they come, and what is wrong with them said in time."""

from __future__ import annotations

import gzip
import os
import pickle
import sqlite3
import traceback
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import fs

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import SimulatedNoise
from privatest.data.databases import scan_sql, with_timeout
from privatest.data.encoding import encode_sample
from privatest.data.files import scan
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.data.sources import Source

CANARY = "987654.321"
ROWS = 500
SCHEMA = Schema(
    {
        "visits": NumericColumn(0, 80),
        "age": NumericColumn(0, 120, integer=True),
        "plan": CategoricalColumn(("01", "02"), membership="public"),
    }
)


def table(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "visits": rng.uniform(-5, 90, rows).round(6),
            "age": rng.integers(0, 120, rows),
            "plan": rng.choice(["01", "02"], rows),
            "note": ["x"] * rows,
        }
    )


ALL = table()
EXPECTED = SCHEMA.encode(ALL)


def read(source: Source, schema: Schema = SCHEMA) -> np.ndarray:
    """Encoded rows, read as a worker would that got the source from another process."""
    return encode_sample(source, schema).rows


def refused(call, *arguments, **options) -> str:
    """The refusal, after looking for the canary in everything that could be printed."""
    with pytest.raises((DataError, ParameterError)) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in message
    return message


# --- the same rows --------------------------------------------------------------------------


def write_parquet(folder):
    pq.write_table(ALL, folder / "d.parquet", row_group_size=170)
    return folder / "d.parquet"


def write_folder(folder):
    (folder / "parts").mkdir()
    for number, start in enumerate((0, 100, 420)):
        stop = (100, 420, ROWS)[number]
        pq.write_table(ALL.slice(start, stop - start), folder / "parts" / f"p{number}.parquet")
    (folder / "parts" / "_SUCCESS").write_text("")
    (folder / "parts" / ".hidden.parquet").write_text("")
    return folder / "parts"


def write_csv(folder, name="d.csv", separator=","):
    options = pa.csv.WriteOptions(delimiter=separator, quoting_style="none")
    pa.csv.write_csv(ALL, folder / "plain", options)
    content = (folder / "plain").read_bytes()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


def write_feather(folder):
    pa.feather.write_feather(ALL, folder / "d.feather", chunksize=60)
    return folder / "d.feather"


def write_arrow(folder):
    with pa.ipc.new_file(folder / "d.arrow", ALL.schema) as file:
        file.write_table(ALL, max_chunksize=77)
    return folder / "d.arrow"


def sqlite_file(folder):
    with sqlite3.connect(folder / "d.db") as database:
        database.execute("create table people (visits real, age integer, plan text, note text)")
        rows = zip(*ALL.to_pydict().values(), strict=True)
        database.executemany("insert into people values (?, ?, ?, ?)", rows)
        database.execute("create index covering on people (age)")
        database.execute("create view old as select * from people where age > 60")
    database.close()
    return f"sqlite:///{folder / 'd.db'}"


SOURCES = {
    "parquet": lambda f: scan(write_parquet(f)),
    "text path": lambda f: scan(str(write_parquet(f))),
    "folder": lambda f: scan(write_folder(f)),
    "pattern": lambda f: scan(f"{write_folder(f)}/p*.parquet"),
    "address": lambda f: scan(f"file://{write_folder(f)}"),
    "csv": lambda f: scan(write_csv(f)),
    "csv.gz": lambda f: scan(write_csv(f, "d.csv.gz")),
    "tsv": lambda f: scan(write_csv(f, "d.tsv", "\t")),
    "feather": lambda f: scan(write_feather(f)),
    "arrow": lambda f: scan(write_arrow(f)),
    "table": lambda f: scan(ALL),
    "batch": lambda f: scan(ALL.combine_chunks().to_batches()[0]),
    "batches": lambda f: scan(ALL.to_batches(90)),
    "mapping": lambda f: scan(ALL.to_pydict()),
    "data set": lambda f: scan(ds.dataset(write_folder(f))),
    "filtered data set": lambda f: scan(ds.dataset(write_folder(f)).filter(ds.field("age") > -1)),
    "pandas": lambda f: scan(ALL.to_pandas()),
    "polars": lambda f: scan(pl.from_arrow(ALL)),
    "lazy polars": lambda f: scan(pl.scan_parquet(write_parquet(f))),
    "sqlite table": lambda f: scan_sql(sqlite_file(f), table="people"),
    "sqlite query": lambda f: scan_sql(sqlite_file(f), query="select * from people;"),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_rows(kind, tmp_path):
    source = SOURCES[kind](tmp_path)
    assert len(source) == ROWS
    np.testing.assert_array_equal(read(source), EXPECTED)
    # another process gets it, and other columns are read in the same order of rows
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(read(again, SCHEMA.select(["age"])), EXPECTED[:, 1:2])
    assert source.load().num_rows == ROWS


def test_duckdb_relations(tmp_path):
    import duckdb

    connection = duckdb.connect()
    relation = connection.sql(f"select * from '{write_parquet(tmp_path)}'")
    np.testing.assert_array_equal(read(scan(relation)), EXPECTED)


def test_frames_through_narwhals():
    import narwhals

    frame = narwhals.from_native(ALL.to_pandas())
    np.testing.assert_array_equal(read(scan(frame)), EXPECTED)
    lazy = narwhals.from_native(pl.LazyFrame(ALL))
    np.testing.assert_array_equal(read(scan(lazy)), EXPECTED)


@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i4", "u8", "bool", np.longdouble])
def test_arrays(dtype, tmp_path):
    array = (EXPECTED[:, :2] * 3).astype(dtype)
    expected = encode_sample(array, (0, 2))
    assert len(scan(array)) == ROWS
    np.testing.assert_array_equal(encode_sample(scan(array), (0, 2)).rows, expected.rows)
    if array.dtype != np.longdouble:
        np.save(tmp_path / "rows.npy", array)
        saved = pickle.loads(pickle.dumps(scan(tmp_path / "rows.npy")))
        np.testing.assert_array_equal(encode_sample(saved, (0, 2)).rows, expected.rows)


def test_an_array_has_its_columns_by_position():
    schema = Schema.from_bounds({"visits": (0, 1), "age": (0, 2)})
    array = EXPECTED[:, :2]
    np.testing.assert_array_equal(read(scan(array), schema), encode_sample(array, schema).rows)
    one = scan(array[:, 0])
    assert encode_sample(one, (0, 1)).domain.dimension == 1


def test_folders_give_columns(tmp_path):
    for plan in ("01", "02"):
        own = ALL.filter(pa.compute.equal(ALL["plan"], plan)).drop_columns(["plan"])
        folder = tmp_path / "people" / f"plan={plan}" / "year=2020"
        folder.mkdir(parents=True)
        pq.write_table(own, folder / "d.parquet")
    source = scan(tmp_path / "people")
    assert source.names == ("visits", "age", "note", "plan", "year")
    rows = read(source)
    for code in (0, 1):
        np.testing.assert_array_equal(rows[rows[:, 2] == code], EXPECTED[EXPECTED[:, 2] == code])
    years = source.select(["year"]).load().column(0)
    assert years.unique().to_pylist() == [2020]
    assert scan(f"{tmp_path}/people/*/*/d.parquet").names == source.names
    assert scan(f"{tmp_path}/people/**/d.parquet").names == source.names


def test_only_the_needed_columns_are_read(tmp_path):
    pq.write_table(ALL.append_column("bad", pa.array([{"a": 1}] * ROWS)), tmp_path / "d.parquet")
    np.testing.assert_array_equal(read(scan(tmp_path / "d.parquet")), EXPECTED)


@settings(max_examples=20)
@given(st.integers(1, 600), st.integers(1, 600), st.sampled_from(["parquet", "arrow", "csv"]))
def test_cuts_do_not_matter(tmp_path_factory, size, cut, kind):
    folder = tmp_path_factory.mktemp("cut")
    for number, part in enumerate((ALL.slice(0, cut), ALL.slice(cut))):
        if not part.num_rows:
            continue
        path = folder / f"d{number}.{kind}"
        if kind == "parquet":
            pq.write_table(part, path, row_group_size=size)
        elif kind == "csv":
            pa.csv.write_csv(part, path)
        else:
            with pa.ipc.new_file(path, part.schema) as file:
                file.write_table(part, max_chunksize=size)
    np.testing.assert_array_equal(read(scan(folder)), EXPECTED)


def test_types_of_csv(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a,b,code\n1,TRUE,01\n 2.5 ,0,1\n1e1,false,02\n")
    schema = Schema(
        {
            "a": NumericColumn(0, 10),
            "b": NumericColumn(0, 1),
            "code": CategoricalColumn(("01", "1", "02")),
        }
    )
    rows = read(scan(path), schema)
    np.testing.assert_array_equal(rows, [[0.1, 1, 0], [0.25, 0, 1], [1, 0, 2]])
    assert scan(path, text=["code"]).load()["code"].to_pylist() == ["01", "1", "02"]


@pytest.mark.parametrize("value", ["0x1F", "1_000", "abc", "'1,5'"])
def test_csv_numbers_are_decimal(value, tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(f"a,b\n1,x\n{value},y\n".replace("'", '"'))
    said = refused(read, scan(path), Schema.from_bounds({"a": (0, 1)}))
    assert said.startswith("d.csv: column 'a' of x must hold numbers")


# --- what is wrong is said, with the file and the row group, without a value ------------------


def test_nothing_there(tmp_path):
    assert refused(scan, tmp_path / "no.parquet") == "no.parquet does not exist."
    (tmp_path / "empty").mkdir()
    assert "has no file that ends in" in refused(scan, tmp_path / "empty")
    assert "no file fits the pattern" in refused(scan, tmp_path / "*.parquet")
    (tmp_path / "d.txt").write_text("1")
    assert "must end in one of" in refused(scan, tmp_path / "d.txt")
    assert "address that Arrow cannot open" in refused(scan, "nowhere://host/d.parquet")
    assert "address that Arrow cannot open" in refused(scan, "nowhere://host/d?region=b")
    assert "for a database use scan_sql" in refused(scan, 3)
    assert "data is a source already" in refused(scan, scan(ALL))
    assert "data is a stream" in refused(scan, ALL.to_reader())


def test_files_of_different_columns(tmp_path):
    folder = write_folder(tmp_path)
    other = ALL.rename_columns(["visits", "age", "plan", "remark"])
    pq.write_table(other, folder / "p3.parquet")
    said = refused(scan, folder)
    assert said.startswith("p3.parquet (file 4 of 4) has other columns than p0.parquet")
    texts = ALL.set_column(1, "age", pa.array([CANARY] * ROWS))
    pq.write_table(texts, folder / "p3.parquet")
    said = refused(scan, folder)
    assert said.startswith("column 'age' holds text in p3.parquet (file 4 of 4) and numbers in p0")
    (folder / "p3.parquet").unlink()
    write_csv(folder)
    (folder / "plain").unlink()
    assert "files of different kinds (.csv, .parquet)" in refused(scan, folder)


def test_text_in_one_of_many_files_is_told_as_in_one(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text(f"a,b\n{CANARY}x,2\n")
    rows = scan(tmp_path).load()
    assert "must hold numbers" in refused(Schema.from_bounds({"a": (0, 1)}).encode, rows)


def test_csv_files_of_different_columns(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text(f"a,{CANARY}\n1,2\n")
    assert "has other columns than a.csv (file 1 of 2)" in refused(scan, tmp_path)


def test_an_empty_file_among_many(tmp_path):
    folder = write_folder(tmp_path)
    pq.write_table(ALL.slice(0, 0), folder / "p9.parquet")
    assert refused(scan, folder) == "p9.parquet (file 4 of 4) has no rows."
    (folder / "p9.parquet").write_bytes(b"")
    assert refused(scan, folder) == "p9.parquet is empty."
    (tmp_path / "d.csv").write_text("a,b\n")
    assert refused(scan, tmp_path / "d.csv") == "d.csv has no rows."


def test_a_corrupt_row_group(tmp_path):
    path = tmp_path / "d.parquet"
    pq.write_table(ALL, path, row_group_size=170, compression="zstd")
    group = pq.ParquetFile(path).metadata.row_group(1).column(0)
    content = bytearray(path.read_bytes())
    start = group.data_page_offset
    content[start : start + group.total_compressed_size] = b"\xff" * group.total_compressed_size
    path.write_bytes(content)
    assert refused(read, scan(path)).startswith("row group 1 of d.parquet cannot be read")
    path.write_bytes(content[:-20])
    assert "d.parquet cannot be read" in refused(scan, path)


def test_a_value_that_changed_on_disk_is_found_by_its_checksum(tmp_path):
    """It decodes well: nothing but a checksum can tell."""
    path = tmp_path / "d.parquet"
    plain = {"compression": "none", "use_dictionary": False, "row_group_size": 170}
    pq.write_table(ALL, path, write_page_checksum=True, **plain)
    content = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(1).column(0)
    content[group.data_page_offset + group.total_compressed_size - 5] ^= 1
    path.write_bytes(content)
    assert refused(read, scan(path)).startswith("row group 1 of d.parquet cannot be read")


@pytest.mark.parametrize("change", ["gone", "longer", "touched"])
def test_a_file_that_changed(change, tmp_path):
    source = scan(write_parquet(tmp_path))
    path = tmp_path / "d.parquet"
    if change == "gone":
        path.unlink()
    elif change == "longer":
        pq.write_table(pa.concat_tables([ALL, ALL]), path)
    else:
        os.utime(path, ns=(1, 1))
    said = refused(read, source)
    assert ("is no longer there" if change == "gone" else "changed since it was opened") in said


def test_a_value_that_breaks_a_rule(tmp_path):
    values = ALL["age"].to_pylist()
    values[300] = None
    path = tmp_path / "d.parquet"
    pq.write_table(ALL.set_column(1, "age", pa.array(values)), path, row_group_size=170)
    said = refused(read, scan(path))
    assert said.startswith("row group 1 of d.parquet: column 'age' of x has a missing value")
    notes = ALL.set_column(0, "visits", pa.array([CANARY] * ROWS))
    pq.write_table(notes, path)
    assert "row group 0 of d.parquet: column 'visits' of x must hold" in refused(read, scan(path))


def test_a_missing_column_names_others_only_if_one_fits(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(f"{CANARY},1\n1,2\n")
    assert "is missing" in refused(read, scan(path))


@pytest.mark.parametrize(
    "content", ['a,b\n1,"2\n3,4\n', "a,b\n1,2,3\n", b"a,b\n1,\xff\n", 'a,b\n"1"x,2\n']
)
def test_broken_csv_is_refused_when_it_is_opened(content, tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def both():
        scan(path).load()

    assert refused(both).startswith("d.csv ")


def test_broken_archives(tmp_path):
    path = write_csv(tmp_path, "d.csv.gz")
    path.write_bytes(path.read_bytes()[:-30])
    assert "d.csv.gz cannot be read" in refused(scan, path)
    path = write_arrow(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    assert "d.arrow cannot be read" in refused(scan, path)
    (tmp_path / "d.npy").write_bytes(b"no array")
    assert "d.npy cannot be read" in refused(scan, tmp_path / "d.npy")
    np.save(tmp_path / "d.npy", np.array(["a", "b"]))
    assert "must hold real numbers" in refused(scan, tmp_path / "d.npy")


# --- SQLite ---------------------------------------------------------------------------------


def test_sqlite_types(tmp_path):
    """The driver guesses types from the first rows: here they are missing, then integers."""
    with sqlite3.connect(tmp_path / "d.db") as database:
        database.execute("create table t (a real, b numeric, c, d text)")
        first = [(None, 1, None, None)] * 2000
        database.executemany("insert into t values (?, ?, ?, ?)", [*first, (1.5, 2.5, "01", "x")])
    database.close()
    source = scan_sql(f"sqlite:///{tmp_path}/d.db", table="t", text=["c"])
    last = source.load().slice(2000).to_pylist()
    assert last == [{"a": 1.5, "b": 2.5, "c": "01", "d": "x"}]
    assert source.load().slice(0, 1).to_pylist() == [{"a": None, "b": 1.0, "c": None, "d": None}]


def test_sqlite_refusals(tmp_path):
    url = sqlite_file(tmp_path)
    assert "one of them" in refused(scan_sql, url)
    assert "one of them" in refused(scan_sql, url, table="a", query="select 1")
    assert "has no table nobody" in refused(scan_sql, url, table="nobody")
    assert "cannot be reached" in refused(scan_sql, url, query=f"select {CANARY} from")
    assert "does not exist" in refused(scan_sql, f"sqlite:///{tmp_path}/no.db", table="t")
    assert "url must be postgresql://" in refused(scan_sql, "mysql://host/db", table="t")
    assert len(scan_sql(url, table="old")) == (EXPECTED[:, 1] * 120 > 60.5).sum()
    source = scan_sql(url, table="people")
    with sqlite3.connect(tmp_path / "d.db") as database:
        database.execute(f"update people set visits = '{CANARY}x' where rowid = 3")
    database.close()
    assert "changed since it was opened" in refused(read, source)
    said = refused(read, scan_sql(url, table="people"))
    assert said.startswith("table people: column 'visits' of x must hold numbers")


# --- groups ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "csv", "sqlite table", "pandas"])
@pytest.mark.parametrize("membership", ["public", "private"])
def test_groups_of_a_source_are_those_of_its_table(kind, membership, tmp_path):
    schema = Schema(
        {
            "visits": NumericColumn(0, 80),
            "plan": CategoricalColumn(("01", "02"), membership=membership),
        }
    )
    options: dict[str, Any] = {
        "group": "plan",
        "columns": ["visits"],
        "bounds": schema,
        "epsilon": 2,
    }
    found = [
        pt.mmd_test(data, **options, rng=1, noise=SimulatedNoise(3))
        for data in (SOURCES[kind](tmp_path), ALL)
    ]
    assert found[0].to_dict() == found[1].to_dict()


def test_groups_may_be_empty_where_they_are_private():
    schema = Schema({"visits": NumericColumn(0, 80), "plan": CategoricalColumn(("01", "02", "03"))})
    options: dict[str, Any] = {
        "group": "plan",
        "columns": ["visits"],
        "bounds": schema,
        "epsilon": 2,
    }
    found = pt.mmd_test(scan(ALL), **options, groups=("03", "rest"), noise=SimulatedNoise(3))
    assert found.sizes == {"x": None, "y": None} or sum(filter(None, found.sizes.values())) == ROWS
    said = refused(pt.mmd_test, scan(ALL), **options, groups=("03", "rest"), adjacency="one")
    assert said == "column 'plan' has no row in group '03'."
    assert "is missing" in refused(
        pt.mmd_test, scan(ALL), **options | {"group": "arm", "groups": ("a", "b")}
    )
    assert "named columns" in refused(pt.mmd_test, scan(EXPECTED), **options, groups=("03", "rest"))


def test_a_third_group_is_refused_without_its_name(tmp_path):
    said = refused(
        pt.mmd_test,
        scan(write_parquet(tmp_path)),
        group="plan",
        groups=("01", "03"),
        columns=["visits"],
        bounds={"visits": (0, 80)},
        epsilon=1,
    )
    assert "has a third group or more" in said
    assert "02" not in said


@settings(max_examples=15)
@given(st.integers(1, 600), st.integers(1, 3))
def test_groups_do_not_depend_on_cuts(tmp_path_factory, size, threads):
    path = tmp_path_factory.mktemp("cut") / "d.parquet"
    pq.write_table(ALL, path, row_group_size=size)
    found = pt.ttest_ind(
        scan(path, threads=threads),
        group="plan",
        columns=["visits"],
        bounds=SCHEMA,
        epsilon=1,
        noise=SimulatedNoise(1),
    )
    held = pt.ttest_ind(
        ALL, group="plan", columns=["visits"], bounds=SCHEMA, epsilon=1, noise=SimulatedNoise(1)
    )
    assert found.statistic == held.statistic


def test_selected_columns_must_be_there(tmp_path):
    """A database takes an unknown name in quotes for a text."""
    pq.write_table(pa.table({"age": [1.0, 2.0]}), tmp_path / "d.parquet")
    source = scan(tmp_path / "d.parquet")
    assert source.select("age").names == ("age",)
    assert "column 'nope' is missing; the columns are: age" in refused(
        source.select, ["age", "nope"]
    )
    assert refused(source.select, ["nope"]) == "column 'nope' is missing."


def test_data_sets_of_several_row_groups_are_counted_once(tmp_path):
    from pyarrow import dataset

    pq.write_table(pa.table({"v": np.arange(10.0)}), tmp_path / "d.parquet", row_group_size=3)
    source = scan(dataset.dataset(tmp_path / "d.parquet"))
    assert len(source) == 10
    assert source.load().column(0).to_pylist() == list(range(10))


def test_a_database_that_does_not_answer_is_given_up():
    assert with_timeout("postgresql://h/d") == "postgresql://h/d?connect_timeout=10"
    assert with_timeout("postgresql://h/d?sslmode=require").endswith("&connect_timeout=10")
    assert (
        with_timeout("postgresql://h/d?connect_timeout=3") == "postgresql://h/d?connect_timeout=3"
    )


def test_the_query_of_an_address_is_not_a_pattern(tmp_path, monkeypatch):
    """It goes to Arrow with the address; wildcards before it, "?" among them, stay wildcards."""
    asked = []

    def opened(address):
        asked.append(address)
        local = address.partition("?")[0].removeprefix("s3:/")
        return fs.LocalFileSystem(), local

    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=opened))
    for name in ("a1.parquet", "a2.parquet", "b.parquet"):
        pq.write_table(pa.table({"u": [1.0, 2.0]}), tmp_path / name)
    query = "?region=eu-west-1&endpoint_override=h:9?x"
    for end, rows, base in (("b.parquet", 2, "/b.parquet"), ("a?.parquet", 4, ""), ("", 6, "/")):
        assert len(scan(f"s3:/{tmp_path}/{end}{query}")) == rows  # two slashes
        assert asked[-1].endswith(f"{base}{query}")
