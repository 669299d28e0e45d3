"""Bad input: one line on standard error, exit code 2, and no noise is drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.e2e.command_line import CANARY, GROUP, refused, table, write


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        *(
            (["--epsilon", text], "epsilon must be")
            for text in ("0", "-1", "nan", "inf", "-inf", "abc", "", "1e-9", "1e400")
        ),
        *((["--delta", text], "delta must be") for text in ("-0.1", "1", "nan", "x")),
        *((["--alpha", text], "alpha must be") for text in ("0", "1", "-1", "nan", "inf", "x")),
        *((["--bandwidths", text], "bandwidths must be") for text in ("0", "1,,2", "x", "nan")),
        *(
            (["--bounds", "visits=0:80", "--statistics", text], "statistics must be one of")
            for text in ("", "mean,", "x", "mean kernel")
        ),
        (["--bounds", "visits=0:80", "--statistics", "pairwise"], "needs two columns"),
        *(
            (["--bounds", f"visits={text}"], "bounds must be")
            for text in ("80:0", "0:0", "0:inf", "nan:1", "0", "a:b")
        ),
        (["--columns", "visits,", "--bounds", "visits=0:80"], "columns must be"),
        (["--columns", "age", "--bounds", "visits=0:80"], "--bounds age=LOW:HIGH"),
        (["--columns", "plan", "--bounds", "visits=0:80"], "'plan' is the group"),
        (["--bounds", "visits=0:80", "--bounds", "visits=0:9"], "twice"),
        (["--bounds", "visits=0:80", "--adjacency", "one"], "group sizes would leak"),
        (["--bounds", "visits=0:80", "--adjacency", "both"], "group sizes would leak"),
        (["--bounds", "visits=0:80", "--groups", "a", "a"], "different"),
        (["--bounds", "visits=0:80", "--schema", "a.toml"], "not both"),
        (["--schema", "gone.toml"], "gone.toml"),
        (["--kernel", "x"], "--kernel"),
        (["--permutations", "0"], "--permutations"),
        (["--rows-per-person", "0"], "--rows-per-person"),
        (["--nonsense"], "--nonsense"),
        ([], "would leak it"),
    ],
)
def test_bad_options_are_refused_before_the_file_is_looked_for(cli, no_noise, arguments, fragment):
    asked = ["two-sample", "gone.csv", "--group", "plan", "--groups", "a", "b", "--epsilon", "1"]
    refused(cli(*asked, *arguments), fragment)


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["gone"], "gone"),
        (["two-sample"], "DATA"),
        (["two-sample", "a.csv"], "--epsilon"),
        (["two-sample", "a.csv"], "the smaller, the more private and the noisier"),
        (["two-sample", "a.csv"], "`privatest two-sample --help` has them all"),
        (["two-sample", "a.csv", "--epsilon", "1"], "error: --group must be given"),
        (["two-sample", "a.csv", "--epsilon", "1"], "Pass --group COLUMN, or OTHER."),
        (["two-sample", "a.csv", "--epsilon", "1", "--group", "plan"], "Pass --groups"),
        (["two-sample", "a.csv", "b.csv", "--epsilon", "1", "--group", "plan"], "here are two"),
        (["schema"], "DATA"),
        (["schema", "gone.csv"], "gone.csv does not exist"),
    ],
)
def test_incomplete_commands(cli, no_noise, arguments, fragment):
    refused(cli(*arguments), fragment)


HALVES = ["basic"] * 40 + ["plus"] * 39
BAD_DATA: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a third group": (
        {"plan": [*HALVES, str(CANARY)]},
        ("'plan'", "third group", "basic and rest"),
    ),
    "a missing group": ({"plan": [*HALVES, None]}, ("'plan'", "missing")),
    "no group column": ({"plan": None}, ("'plan'",)),
    "groups of dates": ({"plan": pa.array([0] * 80, pa.date32())}, ("'plan'",)),
    "a missing value": ({"visits": [*range(78), CANARY, None]}, ("'visits'", "missing")),
    "text for numbers": ({"visits": [*["1"] * 79, f"x{CANARY}"]}, ("'visits'", "numbers")),
    "no such column": ({"visits": None}, ("'visits'",)),
}


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(cli, no_noise, name, case):
    changes, fragments = BAD_DATA[case]
    if case == "groups of dates" and name == "a.csv":
        fragments = ("'plan'", "third group")  # a date in CSV is text like any other
    refused(cli("two-sample", write(name, table(**changes)), *GROUP, "--epsilon", "1"), *fragments)


def test_too_few_rows_and_other_columns(cli, no_noise):
    whole, one = write("a.csv", table()), write("b.csv", table().slice(0, 1))
    narrow = write("c.csv", table(visits=None))
    described = ["--bounds", "visits=0:80", "--epsilon", "1"]
    refused(cli("two-sample", whole, one, *described), "at least 2 rows")
    refused(cli("two-sample", whole, narrow, *described), "c.csv", "'visits'")
    few = write("d.csv", table().slice(39, 41))
    refused(cli("two-sample", few, *GROUP, "--epsilon", "1", "--membership", "public"), "2 rows")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
@pytest.mark.parametrize("damage", ["empty", "header", "noise", "half", "ragged"])
def test_damaged_files(cli, no_noise, name, damage):
    path = Path(write(name, table()))
    content = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "header": b'"visits","plan"\n',
            "noise": bytes(range(256)) + str(CANARY).encode(),
            "half": content[: len(content) // 2] if name != "a.csv" else b'"visits","plan"\n1,"bas',
            "ragged": content + f"\n{CANARY},2,3,4,5,6,{CANARY}\n".encode(),
        }[damage]
    )
    refused(cli("two-sample", name, *GROUP, "--epsilon", "1"))


@pytest.mark.parametrize("first", [f"Anna,{CANARY}", f"visits,{CANARY}", "Anna,\x1b[2Jbasic"])
def test_a_first_row_is_not_told(cli, no_noise, first):
    Path("a.csv").write_text(f"{first}\n{first}\n")
    run = cli("two-sample", "a.csv", *GROUP, "--epsilon", "1")
    refused(run, "a.csv has no column", "Does its first line name the columns")
    assert "Anna" not in run.err
    assert str(CANARY) not in run.err
    assert "\x1b" not in run.err


def test_rows_behind_an_open_quote_are_not_lost(cli, no_noise):
    rows = "".join(f"{visits},{'basic' if visits % 2 else 'plus'},x\n" for visits in range(80))
    Path("a.csv").write_text(f"visits,plan,note\n{rows}".replace("40,plus,x", '40,plus,"x'))
    refused(cli("two-sample", "a.csv", *GROUP, "--epsilon", "1"), "a.csv", "quote")


def test_names_in_a_file_cannot_act_on_the_terminal(cli, no_noise):
    Path("a.csv").write_text("visits,plan\x1b[2J\n1,basic\n")
    run = cli("two-sample", "a.csv", *GROUP, "--epsilon", "1")
    refused(run, "it has: visits, plan\\x1b[2J.")
    assert "\x1b" not in run.err
    assert "\x1b" not in cli("schema", "a.csv").out


def test_a_name_with_a_comma_is_told_from_two_names(cli, no_noise):
    data = write("a.csv", table().rename_columns([*table().column_names[:-1], "total, all"]))
    refused(
        cli(
            "two-sample",
            data,
            *GROUP,
            "--columns",
            "gone",
            "--bounds",
            "gone=0:1",
            "--epsilon",
            "1",
        ),
        '"total, all"',
    )


def test_semicolons_and_decimal_commas(cli, no_noise):
    Path("a.csv").write_text('name;size, cm\n"x";1,5\n"y";2\n')
    refused(cli("schema", "a.csv"), "by commas", "not by semicolons")


def test_names_with_commas_and_spaces(cli):
    names = ["a, b", "c d"]
    data = write("a.csv", table().select(["visits", "age"]).rename_columns(names))
    bounds = ["--bounds", "a, b=0:80", "--bounds", "c d=0:80"]
    command = ["mean", data, "--epsilon", "1", "--no-ledger", "--json"]
    for columns, found in (
        ("a, b", names[:1]),
        ('"a, b",c d', names),
        ('c d, "a, b"', names[::-1]),
    ):
        run = cli(*command, *bounds, "--columns", columns)
        assert json.loads(run.out)["request"]["columns"] == found
    refused(cli(*command, *bounds, "--columns", '"a, b'), "a name with a comma in double quotes")
    refused(cli(*command, "--columns", "c d"), "--bounds 'c d=LOW:HIGH'")
    fit = ["fit", data, "--column", "c d", "--epsilon", "1", "--no-ledger"]
    refused(cli(*fit, "--family", "norm"), "--bounds 'c d=LOW:HIGH'")
    refused(cli(*fit, "--dist", "norm", "--rows-per-person", "2"), "--bounds NAME=LOW:HIGH")
