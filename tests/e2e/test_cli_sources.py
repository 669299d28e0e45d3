"""Folders, patterns, Arrow files and databases on the command line, and who reads them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from privatest.cli.spending import open_ledger
from privatest.core.errors import DataError
from privatest.core.privacy import Budget
from privatest.data import reading, sources
from tests.e2e.command_line import CLEAR, GROUP, refused, released, table, write

FEW = ["--epsilon", "1000", "--permutations", "99"]
WHY = "cannot be refunded"


def folder(data: pa.Table | None = None) -> str:
    rows = table() if data is None else data
    Path("people").mkdir(exist_ok=True)
    for number, start in enumerate((0, 30, 60)):
        pq.write_table(rows.slice(start, 30), f"people/p{number}.parquet")
    return "people"


def database() -> str:
    with sqlite3.connect("people.db") as connection:
        connection.execute("create table people (visits real, plan text, age integer)")
        rows = table().select(["visits", "plan", "age"]).to_pydict().values()
        connection.executemany("insert into people values (?, ?, ?)", zip(*rows, strict=True))
    connection.close()
    return "sqlite:///people.db"


def allow(*names: str) -> None:
    with open_ledger(None, create=True) as ledger:
        for name in names:
            ledger.create_dataset(name, Budget(10**9, "0.99"), exist_ok=True)


def spent(name: str) -> int:
    with open_ledger(None) as ledger:
        return ledger.totals(name).account.spent.events


@pytest.fixture(params=["folder", "pattern", "feather", "sqlite", "engine", "threads"])
def words(request) -> list[str]:
    """The same rows, by another way."""
    allow("people", "people.db")
    if request.param == "sqlite":
        return [database(), "--table", "people"]
    if request.param == "feather":
        pyarrow.feather.write_feather(table(), "people.feather")
        return ["people.feather"]
    if request.param in ("engine", "threads"):
        write("people.parquet", table())
        return [
            "people.parquet",
            *(["--engine", "local"] if request.param == "engine" else ["--threads", "2"]),
        ]
    return [folder() if request.param == "folder" else f"{folder()}/p*.parquet"]


def test_the_same_answer_from_everywhere(cli, words):
    found = released(cli("two-sample", *words, *GROUP, *CLEAR, "--json"))
    assert found["reject"] is True
    assert sum(found["sizes"].values()) == 80
    assert found["ledger"][0]["dataset"] == "people"
    mean = cli(
        "mean", *words, "--bounds", "age=0:80", "--epsilon", "1000", "--delta", "1e-6", "--json"
    )
    assert mean.code == 0, mean.err
    assert cli("check", *words, "--bounds", "age=0:80").out.startswith("All columns fit")
    assert 'type = "numeric"' in cli("schema", *words).out


def test_other_questions_take_a_source(cli):
    allow("people")
    data = [folder(), "--engine", "local"]
    bounds = ["--bounds", "visits=0:80", "--bounds", "age=0:80"]
    for command in (
        ["independence", *data, "--x", "visits", "--y", "age", *bounds, *FEW],
        ["paired", *data, "--before", "age", "--after", "visits", *bounds, "--epsilon", "10"],
        ["fit", *data, "--column", "age", "--dist", "uniform(0, 80)", "--epsilon", "10"],
        ["mean", *data, "--q", "0.5", "--bounds", "age=0:80", "--epsilon", "10"],
        ["release", *data, *bounds, "--epsilon", "10", "--delta", "1e-6", "-o", "made.parquet"],
    ):
        run = cli(*command)
        assert run.code == 0, run.err


def test_columns_of_an_array_are_numbered(cli):
    allow("rows")
    np.save("rows.npy", np.random.default_rng(0).uniform(size=(200, 2)))
    sides = ["--x", "x1", "--y", "x2", "--bounds", "x1=0:1", "--bounds", "x2=0:1"]
    assert released(cli("independence", "rows.npy", *sides, "--epsilon", "1", "--json"))


def test_two_tables_of_a_database(cli):
    url = database()
    with sqlite3.connect("people.db") as connection:
        connection.execute("create table others as select * from people where plan = 'basic'")
    connection.close()
    allow("people", "others")
    options = ["--bounds", "visits=0:80", *FEW]
    found = cli(
        "two-sample", url, url, "--table", "people", "--table", "others", *options, "--json"
    )
    assert json.loads(found.out)["sizes"] == {"n": 80, "m": 40}
    assert json.loads(found.out)["files"] == [
        "sqlite:///people.db#people",
        "sqlite:///people.db#others",
    ]
    refused(cli("two-sample", url, url, "--table", "people", *options), "the two files are one")


def test_many_rows_pass_and_few_are_held(cli, monkeypatch):
    allow("people")
    write("people.parquet", table())
    monkeypatch.setattr(reading, "MOST_HELD", 79)
    assert released(cli("two-sample", "people.parquet", *GROUP, *CLEAR, "--json"))["reject"]


def nothing_spent(run, *fragments: str) -> None:
    refused(run, *fragments)
    assert WHY not in run.err
    assert spent("people") == 0


def test_what_can_be_known_costs_nothing(cli):
    allow("people")
    other = table().rename_columns([*table().column_names[:-1], "other"])
    pq.write_table(other, Path(folder()) / "p3.parquet")
    asked = [*GROUP, "--epsilon", "1"]
    nothing_spent(cli("two-sample", "people", *asked), "has other columns than p0.parquet")
    pq.write_table(table().slice(0, 0), "people/p3.parquet")
    nothing_spent(cli("two-sample", "people", *asked), "p3.parquet (file 4 of 4) has no rows")
    Path("people/p3.parquet").unlink()
    nothing_spent(
        cli(
            "two-sample",
            "people",
            "--group",
            "plan",
            "--groups",
            "basic",
            "nobody",
            "--membership",
            "public",
            "--bounds",
            "visits=0:80",
            "--epsilon",
            "1",
            "--engine",
            "local",
        ),
        "has no row in group 'nobody'",
    )
    nothing_spent(
        cli("two-sample", "people", *GROUP[:-1], "absent=0:1", "--epsilon", "1"), "is missing"
    )
    nothing_spent(
        cli("two-sample", "people", *GROUP[:-1], "note=0:1", "--epsilon", "1"), "must hold numbers"
    )
    dead = ["postgresql://me:hidden@127.0.0.1:1/db", "--table", "people", "--dataset", "people"]
    run = cli("two-sample", *dead, *asked)
    nothing_spent(run, "the database cannot be reached")
    assert "hidden" not in run.err
    nothing_spent(cli("two-sample", *dead[:1], "--dataset", "people", *asked), "--table or --query")
    nothing_spent(cli("two-sample", "people", "--table", "a", *asked), "--table goes with")
    nothing_spent(
        cli("two-sample", "people", "--scheduler", "tcp://h:1", *asked), "scheduler must be"
    )


def test_an_unreachable_scheduler_costs_nothing(cli):
    pytest.importorskip("distributed")
    allow("people")
    workers = ["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"]
    nothing_spent(cli("two-sample", folder(), *workers, *GROUP, "--epsilon", "1"), "scheduler")


def test_what_depends_on_values_is_spent_and_named_by_its_part(cli):
    allow("people")
    rows = table(visits=[*range(79), None])
    run = cli("two-sample", folder(rows), "--engine", "local", *GROUP, "--epsilon", "1")
    refused(run, "row group 0 of p2.parquet (file 3 of 3): column 'visits'", WHY)
    assert spent("people") == 1


def test_an_interrupted_run_stays_spent_and_says_so(cli, monkeypatch, capsys):
    allow("people")
    name = folder()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    from privatest.data.files import ParquetRows
    from privatest.data.reading import Place

    monkeypatch.setattr(Place, "check_types", lambda *_: None)
    monkeypatch.setattr(ParquetRows, "batches", interrupted)
    run = cli("two-sample", name, "--engine", "local", *GROUP, "--epsilon", "1")
    assert run.code == 130
    assert "interrupted" in run.err
    assert WHY in run.err
    assert spent("people") == 1


def test_more_rows_than_a_test_can_hold_cost_nothing(cli, monkeypatch):
    from privatest.data.sources import Stream

    def held(*_: object) -> None:
        raise DataError("this test holds its rows in memory")

    allow("people")
    monkeypatch.setattr(Stream, "load", held)
    monkeypatch.setattr(Stream, "blocks", held)  # whichever way a test goes
    asked = ["two-sample", folder(), "--engine", "local", *GROUP, "--epsilon", "1"]
    nothing_spent(cli(*asked), "holds its rows in memory")
    nothing_spent(cli(*asked, "--membership", "public", "--method", "ks"), "in memory")


@pytest.mark.parametrize(
    "asked",
    [
        ["independence", "--x", "visits", "--y", "age", "--bounds", "age=0:90", *FEW],
        ["two-sample", *GROUP[:-2], "--membership", "public", "--method", "tot", *FEW[:2]],
        [
            "release",
            "-o",
            "made.parquet",
            "--method",
            "subspace",
            "--points",
            "5",
            "--delta",
            ".01",
        ],
    ],
    ids=lambda asked: asked[0],
)
def test_rows_in_a_secret_order_by_slices(cli, asked, monkeypatch):
    """They are never held together, and the answer is one as ever."""
    monkeypatch.setattr(sources.RowBlocks, "load", None)
    allow("people")
    command, *options = asked
    if "--epsilon" not in options:
        options += ["--epsilon", "5"]
    engine = ["--engine", "local", "--threads", "2"]
    run = cli(command, folder(), *options, "--bounds", "visits=0:80", *engine)
    assert run.code == 0, run.err
    assert spent("people") == 1
