"""A table of PostgreSQL, read through ADBC: the answer is that of its Parquet export."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import numpy as np
import psycopg
import pyarrow.parquet as pq
import pytest

import privatest as pt
from privatest.cli import main
from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import SimulatedNoise
from privatest.curator import Curator
from privatest.data.encoding import encode_sample
from tests.e2e.postgres import server_or_skip

ROWS = 2000
CANARY = "s3cret"


@pytest.fixture(scope="module")
def server():
    yield from server_or_skip()


@pytest.fixture(scope="module")
def url(server) -> str:
    address: str = server.database("people")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create schema care")
        connection.execute(
            "create table care.visits (id serial primary key, visits double precision, age integer,"
            " cost numeric, arm text, old boolean)"
        )
        connection.execute(
            "insert into care.visits (visits, age, cost, arm, old) select 40 + 30 * sin(i), i % 90,"
            " i / 7.0, case when i % 3 = 0 then 'a' else 'b' end, i % 2 = 0"
            f" from generate_series(1, {ROWS}) i"
        )
        connection.execute("create index covering on care.visits (age)")
        connection.execute("create view care.aged as select * from care.visits where age > 40")
        connection.execute("analyze care.visits")
    return address


SCHEMA = """
[columns.visits]
type = "numeric"
bounds = [0, 80]
[columns.age]
type = "numeric"
bounds = [0, 100]
[columns.arm]
type = "categorical"
categories = ["a", "b"]
"""
CONFIG = """
[datasets.visits]
source = "{url}"
table = "care.visits"
schema = "visits.toml"
epsilon = 9
engine = "local"
[analysts.ada]
datasets = ["visits"]
"""
BOUNDS = {"visits": (0, 80), "age": (0, 90), "cost": (0, 300)}


def test_the_answer_is_that_of_the_parquet_export(url, tmp_path):
    table = pt.scan_sql(url, table="care.visits")
    assert len(table) == ROWS
    pq.write_table(table.load(), tmp_path / "visits.parquet", row_group_size=300)
    exported = pt.scan(tmp_path / "visits.parquet")
    options: dict[str, Any] = {"group": "arm", "groups": ("a", "b"), "bounds": BOUNDS, "epsilon": 1}
    found = [
        pt.mmd_test(data, **options, rng=1, noise=SimulatedNoise(5)).to_dict()
        for data in (table, exported)
    ]
    assert found[0] == found[1]


def test_every_reading_sees_the_state_that_was_counted(url):
    source = pt.scan_sql(url, table="care.visits")
    before = encode_sample(source, BOUNDS).rows
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update care.visits set visits = 0 where id = 1")
        connection.execute("insert into care.visits (visits, age, cost, arm) values (1, 1, 1, 'a')")
    np.testing.assert_array_equal(encode_sample(source, BOUNDS).rows, before)
    # another process joins; each column has its rows in the same order, index or not
    other = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(encode_sample(other, {"age": (0, 90)}).rows[:, 0], before[:, 1])
    again = pt.scan_sql(url, table="care.visits")
    assert len(again) == ROWS + 1
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("delete from care.visits where cost = 1 and visits = 1")


def test_large_tables_are_read_by_ranges_of_pages(url, monkeypatch):
    whole = pt.scan_sql(url, table="care.visits")
    monkeypatch.setattr("privatest.data.databases._PAGES_OF_PART", 3)
    cut = pt.scan_sql(url, table="care.visits")
    assert len(whole.parts) == 1
    assert len(cut.parts) > 3
    assert cut.load().equals(whole.load())
    assert cut.parts[1].label == "table care.visits, page 3 and on"


def test_queries_and_views_are_held(url):
    asked = pt.scan_sql(url, query="select visits, cost from care.visits order by id;")
    assert len(asked) == ROWS
    assert asked.load()["cost"].type == "double"
    view = pt.scan_sql(url, table="care.aged")
    assert 0 < len(view) < ROWS


def test_a_command_and_a_curator_ask_a_table(url, tmp_path, capsys):
    options = ["--group", "arm", "--groups", "a", "b", "--bounds", "visits=0:80", "--epsilon", "1"]
    words = [url, "--table", "care.visits", *options, "--permutations", "99", "--no-ledger"]
    for more in ([], ["--threads", "2"]):
        assert main(["two-sample", *words, *more]) == 0
    captured = capsys.readouterr()
    assert "postgres@" not in captured.out + captured.err
    (tmp_path / "visits.toml").write_text(SCHEMA, encoding="utf-8")
    path = tmp_path / "curator.toml"
    path.write_text(CONFIG.format(url=url), encoding="utf-8")
    asked = {"dataset": "visits", "question": "two-sample", "method": "mmd", "group": "arm"}
    with Curator.open(path, create=True) as curator:
        assert curator.register("visits").rows == ROWS
        assert curator.not_ready("visits") is None
        curator.run(asked | {"columns": ["visits"], "epsilon": 1}, analyst="ada")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("update care.visits set age = age + 1 where id = 5")
        with pytest.raises(ParameterError, match="has changed since"):
            curator.run(asked | {"columns": ["age"], "epsilon": 1}, analyst="ada")


def refused(*arguments, **options) -> str:
    with pytest.raises(DataError) as caught:
        pt.scan_sql(*arguments, **options)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def test_refusals_say_neither_address_nor_value(url, server):
    assert "no such table" in refused(url, table="nobody")
    assert "no such table" in refused(url, query=f"select '{CANARY}'::int")
    dead = f"postgresql://postgres:{CANARY}@127.0.0.1:1/people"
    assert "cannot be reached" in refused(dead, table="care.visits")
    source = pt.scan_sql(url, table="care.visits")
    server.stop()
    try:
        with pytest.raises(DataError, match=r"table care.visits cannot be read \(\w+\)"):
            source.load()
    finally:
        server.start()
