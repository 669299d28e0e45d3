"""Every document of ``--json`` is as docs/reference/json.md says, and has what the text has."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import pytest
from typer.main import get_command

from privatest.cli import app
from privatest.ledger import Ledger
from tests import curators
from tests.e2e.command_line import table, write
from tools import cli_reference, json_reference

SCHEMAS = [
    json.loads(files(package).joinpath("output.schema.json").read_text("utf-8"))
    for package in ("privatest.cli", "privatest_papers")
]
DEFS: Mapping[str, Any] = {name: part for each in SCHEMAS for name, part in each["$defs"].items()}
KINDS: Mapping[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
KNOWN = {
    *("type", "properties", "required", "items", "enum", "const", "description", "$ref"),
    "additionalProperties",
}
BOUNDS = ["--bounds", "visits=0:80"]
GROUP = ["--group", "plan", "--groups", "basic", "plus", *BOUNDS]
BOUGHT = ["--epsilon", "9", "--delta", "1e-6"]
PUBLIC = ["--membership", "public"]
ME = ["--method", "me"]
DATA = ("two-sample", "independence", "paired", "fit", "mean", "release", "share")


def faults(value: Any, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yield what does not fit; a key that is not documented does not."""
    assert schema.keys() <= KNOWN, "this checker does not know all of the schema"
    if "$ref" in schema:
        yield from faults(value, DEFS[schema["$ref"].rpartition("/")[2]], place)
        return
    if "const" in schema and value != schema["const"]:
        yield f"{place}: {value!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r}"
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        fits = [isinstance(value, KINDS[kind]) for kind in kinds]
        if not any(fits) or (isinstance(value, bool) and "boolean" not in kinds):
            yield f"{place}: not {schema['type']}"
            return
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from faults(item, schema["items"], f"{place}[{index}]")
    if isinstance(value, dict):
        yield from _faults_of_keys(value, schema, place)


def _faults_of_keys(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place}.{name}: missing"
    for name, item in value.items():
        if name in schema.get("properties", {}):
            yield from faults(item, schema["properties"][name], f"{place}.{name}")
        elif "additionalProperties" in schema:
            yield from faults(item, schema["additionalProperties"], f"{place}.{name}")
        elif "properties" in schema:
            yield f"{place}.{name}: not documented"


def test_the_checker_finds_faults():
    schema = DEFS["ledger-export"]
    good = {"format": 1, "file": "a", "entries": 3}
    assert list(faults(good, schema)) == []
    for bad in ({"format": 2}, {"entries": True}, {"entries": "3"}, {"more": 1}, {"file": None}):
        assert len(list(faults(good | bad, schema))) == 1
    assert list(faults({"format": 1, "file": "a"}, schema)) == [".entries: missing"]


def test_the_files_are_up_to_date():
    for path, text in (
        (json_reference.PAGE, json_reference.render()),
        (json_reference.SCHEMA, json_reference.render_schema()),
        (json_reference.PAPERS_SCHEMA, json_reference.render_papers_schema()),
    ):
        assert path.read_text(encoding="utf-8") == text, "run: python -m tools.json_reference"


AGE = ["--bounds", "age=0:80"]

# One run of each kind of document, in an order in which each finds what it needs.
RUNS: list[tuple[str, list[str]]] = [
    ("ledger-budget", ["ledger", "init", "a", "--epsilon", "1000", "--delta", "0.1"]),
    ("ledger-budget", ["ledger", "set", "a", "--epsilon", "2000"]),
    ("check", ["check", "a.csv", *GROUP]),
    ("audit", ["audit", "paired/sign", "--pairs", "2", "--attacks", "sensitivity,exact"]),
    ("experiments", ["reproduce", "list"]),
    ("experiment_run", ["reproduce", "show", "dunsche-1"]),
    ("experiment_run", ["reproduce", "run", "dunsche-1", "--runs", "1", "--no-cache"]),
    ("test", ["two-sample", "a.csv", *GROUP, "--epsilon", "1"]),
    ("test", ["two-sample", "a.csv", *GROUP, "--epsilon", "1", "--release", "decision"]),
    ("test", ["two-sample", "a.csv", *GROUP, "--epsilon", "1", "--no-ledger"]),
    ("test", ["two-sample", "a.csv", "a.csv", *BOUNDS, "--epsilon", "1", "--adjacency", "both"]),
    (
        "test",
        [
            "two-sample",
            "a.csv",
            *GROUP,
            *BOUGHT,
            *PUBLIC,
            "--method",
            "me",
            "--draw-locations",
            "3",
        ],
    ),
    ("test", ["two-sample", "a.csv", *GROUP, *BOUGHT, *PUBLIC, "--method", "ttest"]),
    ("tests", ["two-sample", "a.csv", *GROUP, *AGE, "--epsilon", "1", "--each-column"]),
    ("test", ["independence", "a.csv", "--x", "visits", "--y", "age", *BOUNDS]),
    ("test", ["paired", "a.csv", "--before", "visits_2023", "--after", "visits_2024"]),
    ("test", ["fit", "a.csv", "--column", "age", "--dist", "norm(40, 9)"]),
    ("mean", ["mean", "a.csv", *BOUNDS, "--epsilon", "1"]),
    ("mean", ["mean", "a.csv", *AGE, "--epsilon", "1", "--success", "30"]),
    ("quantile", ["mean", "a.csv", *BOUNDS, "--epsilon", "1", "--q", "0.5"]),
    ("release", ["release", "a.csv", *BOUNDS, *BOUGHT, "--points", "5", "-o", "s.parquet"]),
    ("query-about", ["query", "s.parquet"]),
    ("query", ["query", "s.parquet", "mean", "visits"]),
    ("query", ["query", "s.parquet", "probability", "visits > 3"]),
    ("query", ["query", "s.parquet", "quantile", "visits", "0.5"]),
    ("query", ["query", "s.parquet", "compare", "a.csv"]),
    ("query", ["query", "s.parquet", "mean", "visits", "--where", "visits > 3"]),
    ("release", ["release", "a.csv", *BOUNDS, *AGE, *BOUGHT, "--points", "9", "-o", "t.parquet"]),
    ("query", ["query", "t.parquet", "correlation", "visits", "age"]),
    ("query-several", ["query", "t.parquet", "regression", "visits", "age"]),
    ("query-about", ["query", "s.parquet", "rows", "-o", "s.csv"]),
    ("query-about", ["query", "s.parquet", "plot", "-o", "s.png"]),
    ("plan", ["plan-share", *BOUNDS, *BOUGHT, "-o", "plan.json"]),
    ("plan", ["plan-share", *BOUNDS, *BOUGHT, "--frequencies", "3", "-o", "waves.json"]),
    ("share", ["share", "a.csv", "--plan", "plan.json", "-o", "x.json"]),
    ("share", ["share", "a.csv", "--plan", "plan.json", "-o", "y.json"]),
    ("share", ["share", "a.csv", "--plan", "plan.json", "-o", "z.json"]),
    ("comparison", ["compare", "x.json", "y.json"]),
    ("comparisons", ["compare", "x.json", "y.json", "z.json"]),
    ("test", ["demo"]),
    ("ledger-show", ["ledger", "show"]),
    ("ledger-history", ["ledger", "history", "a"]),
    ("ledger-verify", ["ledger", "verify"]),
    ("ledger-backup", ["ledger", "backup", "copy.db"]),
    ("ledger-restore", ["ledger", "restore", "copy.db"]),
    ("ledger-head", ["ledger", "head"]),
    ("ledger-export", ["ledger", "export", "lines.jsonl"]),
    ("study", ["plan", "size", "--effect", "0.3", "--epsilon", "1", "--no-cache"]),
    ("study", ["plan", "power", "--n", "90", "--effect", "0.3", "--epsilon", "1"]),
    ("study", ["plan", "epsilon", "--n", "900", "--effect", "0.3"]),
    ("study-recommendation", ["plan", "recommend", "--n", "180", "--epsilon", "1"]),
]


def test_every_document_is_as_documented(cli):
    write("a.csv", table())
    seen: dict[str, Any] = {}
    for kind, command in RUNS:
        words = list(command)
        if command[0] in ("independence", "paired", "fit"):
            words += ["--epsilon", "1"]
        if command[0] == "independence":
            words += ["--bounds", "age=0:80"]
        given = [] if command[0] not in DATA or "--no-ledger" in words else ["--dataset", "a"]
        run = cli(*words, *given, "--json")
        assert run.code == 0, (words, run.err)
        document = json.loads(run.out)
        assert list(faults(document, DEFS[kind])) == [], words
        seen[kind] = document
        if command[0] in DATA:
            assert bool(document["ledger"]) == ("--no-ledger" not in words)
    line = seen["share"]["ledger"][0]
    again = json.loads(cli("ledger", "answer", line["entry"], "--json").out)
    assert list(faults(again, DEFS["ledger-answer"])) == []
    documented = {name for name in DEFS if "format" in DEFS[name]["properties"]}
    kinds = ("answer", "tests", "mean", "quantile", "release")
    curated = {"price", "calibration", *(f"curator-{kind}" for kind in kinds)}
    kept = {f"curator-{kind}" for kind in KEPT}
    assert documented == {*seen, *curated, *kept, "ledger-answer"}


def test_documents_of_a_curator(cli, tmp_path, monkeypatch):
    tests = 'tests = ["two-sample", "mean", "mean/moments", "release"]'
    curators.write(tmp_path, curators.CONFIG.replace("largest_epsilon = 1", tests))
    assert cli("curator", "register").code == 0
    mean = curators.request("mean", "moments", columns=["visits"])
    median = curators.request("mean", "quantiles", columns=["visits"], q=0.5)
    synthetic = curators.request("release", "subspace", columns=["visits"], points=9, delta=1e-7)

    def ask(document: dict[str, Any], command: str, *more: str) -> Any:
        words = io.BytesIO(json.dumps(document).encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(words, encoding="utf-8"))
        run = cli("curator", command, "--analyst", "ada", *more)
        assert run.code == 0, run.err
        return run.out

    asked = (
        ("answer", curators.request()),
        ("tests", curators.request(columns=["visits", "age"], each_column="holm")),
        ("mean", mean),
        ("quantile", median),
        ("release", synthetic),
    )
    for kind, document in asked:
        for recorded in (False, True):  # the second time from the record
            price = json.loads(ask(document, "price", "--json"))
            assert list(faults(price, DEFS["price"])) == []
            assert price["recorded"] == recorded
            found = json.loads(ask(document, "run", "--json"))
            assert list(faults(found, DEFS[f"curator-{kind}"])) == []
            assert found["recorded"] == recorded
    # what an analyst keeps can be asked, and the record prints it
    (tmp_path / "kept.json").write_text(json.dumps(found), encoding="utf-8")
    assert (
        json.loads(cli("query", "kept.json", "mean", "visits", "--json").out)["release"]["n"] == 40
    )
    text = ask(synthetic, "run")
    assert "9 synthetic rows for 40 private ones" in text
    assert "--json and write > FILE.json" in text
    assert "Private mean of 40 rows, with its 95% interval" in ask(mean, "run")
    history = cli("ledger", "history", "people", "--ledger", "ledger.db", "--json").out
    ids = [e["body"]["opens"] for e in json.loads(history)["entries"] if e["kind"] == "reserved"]
    printed = cli("ledger", "answer", ids[0], "--ledger", "ledger.db").out
    assert "9 synthetic rows for 40 private ones" in printed


KEPT = {"token": "token", "tokens": "tokens", "revoked": "revoke-token", "facts": "facts"}


def test_documents_of_a_curators_keeper(cli, tmp_path):
    curators.write(tmp_path)
    assert cli("curator", "register").code == 0
    made = json.loads(cli("curator", "token", "ada", "--json").out)
    words = {"token": ["ada"], "tokens": [], "revoked": [made["id"]], "facts": ["people"]}
    for kind, command in KEPT.items():
        run = cli("curator", command, *words[kind], "--json")
        assert run.code == 0, run.err
        assert list(faults(json.loads(run.out), DEFS[f"curator-{kind}"])) == []
    assert made["token"] not in cli("curator", "tokens").out
    assert "revoked" in cli("curator", "tokens").out
    assert cli("curator", "facts", "people", "-o", "facts.html").code == 0
    assert "one row, replaced by any other" in (tmp_path / "facts.html").read_text("utf-8")
    for refused in (["token", "eve"], ["token", "ada", "--days", "0"], ["revoke-token", "abc"]):
        assert cli("curator", *refused).code == 2


def test_the_document_of_a_calibration(cli, tmp_path):
    tests = 'tests = ["paired/sign"]'
    curators.write(tmp_path, curators.CONFIG.replace("largest_epsilon = 1", tests))
    assert cli("curator", "register").code == 0
    (tmp_path / "people.csv").write_text("it is not opened\n")
    run = cli("curator", "calibrate", "--runs", "1", "--json")
    document = json.loads(run.out)
    assert list(faults(document, DEFS["calibration"])) == []
    (row,) = document["datasets"]["people"].values()
    assert row["response_time"] > 2 * row["seconds"] > 0
    kept = json.loads((tmp_path / "curator.times.json").read_text())
    assert kept["datasets"]["people"]["paired/sign"]["seconds"] == row["seconds"]
    with Ledger.open(tmp_path / "ledger.db") as ledger:  # nothing was spent
        assert [e.kind for e in ledger.history("people")].count("reserved") == 0


def test_every_command_with_a_document_is_tested():
    several = ("ledger", "plan", "reproduce")
    tested = {" ".join(c[:2]) if c[0] in several else c[0] for _, c in RUNS}
    tested |= {"ledger answer", "curator run", "curator price", "curator calibrate"}
    tested |= {f"curator {command}" for command in KEPT.values()}
    tested |= {"curator revoke", "curator renew"}  # tests/e2e/test_curator.py
    assert set(_with_json(get_command(app), "")) == tested


def _with_json(command: Any, path: str) -> Iterator[str]:
    command = cli_reference.loaded(command)
    for name, child in getattr(command, "commands", {}).items():
        yield from _with_json(child, f"{path} {name}".strip())
    if any("--json" in parameter.opts for parameter in command.params):
        yield path


@pytest.mark.parametrize(
    "command",
    [
        ["two-sample", "a.csv", *GROUP, "--epsilon", "1"],
        ["mean", "a.csv", *BOUNDS, "--epsilon", "1"],
        ["release", "a.csv", *BOUNDS, *BOUGHT, "--points", "5", "-o", "s.parquet", "--force"],
    ],
    ids=lambda command: command[0],
)
def test_the_document_has_what_the_text_has(cli, command):
    """Words of the text that do not change from run to run are in the document too."""
    write("a.csv", table())
    text = cli(*command)
    document = json.dumps(json.loads(cli(*command, "--json").out))
    assert text.code == 0
    privacy = next(line for line in text.out.splitlines() if line.startswith("Privacy spent"))
    assert json.dumps(privacy)[1:-1] in document
    for words in ("visits", '"dataset": "a"', '"used"', '"left"'):
        assert words in document
    if command[0] == "two-sample":
        compared = next(line for line in text.out.splitlines() if "compared" in line)
        assert compared.split(maxsplit=1)[1] in document
