"""A schema that names an id_column: commands count rows per person before anything is charged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privatest.cli.spending import open_ledger
from tests.e2e.command_line import refused, released, table, write

SCHEMA = """
rows_per_person = {rows}
id_column = "who"
[columns.visits]
type = "numeric"
bounds = [0, 80]
[columns.age]
type = "numeric"
bounds = [0, 80]
[columns.plan]
type = "categorical"
categories = ["basic", "plus"]
membership = "public"
"""
ONE = [f"id-{i}" for i in range(80)]
MANY = ["id-0"] * 11 + ONE[11:]
DELTA = ["--epsilon", "1", "--delta", "1e-6"]
COMMANDS = {
    "groups": ["two-sample", "a.csv", "--group", "plan", "--columns", "visits", "--epsilon", "1"],
    "files": ["two-sample", "a.csv", "b.csv", "--columns", "visits", "--epsilon", "1"],
    "independence": ["independence", "a.csv", "--x", "visits", "--y", "age", "--epsilon", "1"],
    "paired": ["paired", "a.csv", "--before", "visits", "--after", "age", "--epsilon", "1"],
    "fit": ["fit", "a.csv", "--column", "visits", "--dist", "norm(40, 9)", "--epsilon", "1"],
    "mean": ["mean", "a.csv", "--columns", "visits", *DELTA],
    "release": ["release", "a.csv", "-o", "made.parquet", "--points", "5", *DELTA],
}


def _write(ids, rows=1, other=None):
    write("a.csv", table(who=ids))
    write("b.csv", table(who=[f"other {i}" for i in range(80)] if other is None else other))
    Path("a.toml").write_text(SCHEMA.format(rows=rows))


def _events() -> int:
    with open_ledger(None) as ledger:
        return ledger.totals("a").account.spent.events


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_refuse_a_person_with_more_rows_and_charge_nothing(cli, name):
    _write(MANY)
    run = cli(*COMMANDS[name], "--schema", "a.toml")
    refused(run, "a person has more than 1 rows by id_column 'who'")
    assert "id-0" not in run.err
    assert _events() == 0
    _write(MANY, rows=11)
    assert cli(*COMMANDS[name], "--schema", "a.toml").code == 0
    assert _events() == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_without_ids_is_refused(cli, name):
    _write(None)
    refused(cli(*COMMANDS[name], "--schema", "a.toml"), "has no column 'who'")
    assert _events() == 0


def test_two_files_are_counted_together_unless_both_are_hidden(cli):
    _write(ONE, other=ONE)
    files = [*COMMANDS["files"], "--schema", "a.toml"]
    refused(cli(*files), "a person has more than 1 rows")
    assert cli(*files, "--adjacency", "both").code == 0
    _write(MANY, other=ONE)
    refused(cli(*files, "--adjacency", "both"), "a person has more than 1 rows")


def test_groups_of_a_file_are_counted_apart_if_both_are_hidden(cli):
    twice = [f"id-{i % 40}" for i in range(80)]  # one row in each group
    _write(twice)
    groups = [*COMMANDS["groups"], "--schema", "a.toml"]
    refused(cli(*groups), "a person has more than 1 rows")
    assert cli(*groups, "--adjacency", "both").code == 0
    _write(["id-1", *twice[1:]])
    refused(cli(*groups, "--adjacency", "both"), "a person has more than 1 rows")


def test_the_unit_is_what_was_counted(cli):
    _write(MANY, rows=11)
    document = released(cli(*COMMANDS["fit"], "--schema", "a.toml", "--json"))
    assert document["unit"] == "person with at most 11 rows"


def test_check_counts_rows_per_person(cli):
    _write(MANY)
    run = cli("check", "a.csv", "--schema", "a.toml")
    assert run.code == 2
    assert "a person has 11 rows by id_column 'who', and rows_per_person of the schema is 1" in (
        " ".join(run.out.split())
    )
    assert "id-0" not in run.out
    told = json.loads(cli("check", "a.csv", "--schema", "a.toml", "--json").out)
    assert not told["fits"]
    assert [each["name"] for each in told["columns"] if each["problem"]] == ["who"]
    _write(MANY, rows=11)
    assert cli("check", "a.csv", "--schema", "a.toml").code == 0
    _write([*ONE[:79], None])
    assert "missing values" in cli("check", "a.csv", "--schema", "a.toml").out
