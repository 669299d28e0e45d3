"""What a failure costs: nothing where it says nothing about anybody, else it says what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from privatest.cli.spending import open_ledger
from privatest.core.errors import ParameterError
from privatest.data import files
from privatest.data.files import read_table
from privatest.data.schema import Schema
from privatest.requests.rehearsal import made_up_rows, rehearse_call
from privatest.requests.request import Prepared
from tests.e2e.command_line import GROUP, refused, released, table, write

WHY = "cannot be refunded"
HALVES = ["basic"] * 40 + ["plus"] * 39
COST = ["--epsilon", "1"]
DELTA = ["--epsilon", "1", "--delta", "1e-6"]


def spent(name: str = "a") -> int:
    """How many requests were charged."""
    with open_ledger(None) as ledger:
        return ledger.totals(name).account.spent.events


@pytest.mark.parametrize(
    "changes",
    [
        {"plan": [*HALVES, "third"]},
        {"plan": [*HALVES, None]},
        {"visits": [*range(79), None]},
        {"visits": [*["1"] * 79, "x"]},
    ],
    ids=["third group", "missing group", "missing value", "text"],
)
def test_what_depends_on_values_is_spent_and_said(cli, changes):
    refused(
        cli("two-sample", write("a.csv", table(**changes)), *GROUP, *COST),
        "Epsilon 1 was spent",
        WHY,
    )
    assert spent() == 1


@pytest.mark.parametrize(
    ("command", "delta"),
    [
        (["independence", "--x", "visits", "--y", "age", "--bounds", "age=0:80"], False),
        (["fit", "--column", "visits", "--dist", "norm(0, 1)"], False),
        (["paired", "--before", "age", "--after", "visits", "--bounds", "age=0:80"], False),
        (["mean"], True),
        (["share", "--plan", "plan.json", "-o", "share.json"], True),
        (["release", "-o", "made.parquet", "--points", "5"], True),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_command_says_what_a_missing_value_cost(cli, command, delta, monkeypatch):
    monkeypatch.setenv("PRIVATEST_QUIET", "1")  # the error alone, without a hint before it
    data = write("a.csv", table(visits=[*range(79), None]))
    bounds = ["--bounds", "visits=0:80"]
    cost = DELTA if delta else COST
    if command[0] == "share":
        assert cli("plan-share", *bounds, *cost, "-o", "plan.json").code == 0
        bounds, cost = [], []
    run = cli(command[0], data, *command[1:], *bounds, *cost)
    said = "Epsilon 1, delta 1e-06 was spent" if delta else "Epsilon 1 was spent"
    refused(run, "missing", said, WHY)
    assert spent() == 1


@pytest.mark.parametrize(
    "command",
    [
        ["two-sample", "--group", "plan", "--groups", "basic", "plus"],
        ["independence", "--x", "visits", "--y", "age", "--bounds", "age=0:80"],
        ["paired", "--before", "age", "--after", "visits", "--bounds", "age=0:80"],
        ["fit", "--column", "visits", "--dist", "norm(0, 1)"],
        ["mean"],
        ["share", "--plan", "plan.json", "-o", "share.json"],
        ["release", "-o", "made.parquet", "--points", "5"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_charges_before_it_reads(cli, command, monkeypatch):
    """Before, rows are counted in a column whose values nobody looks at: it is read as text."""
    data, bounds = write("a.csv", table()), ["--bounds", "visits=0:80"]
    if command[0] == "share":
        assert cli("plan-share", *bounds, *DELTA, "-o", "plan.json").code == 0
    rest = [] if command[0] == "share" else [*bounds, *DELTA]
    charged: list[tuple[bool, int]] = []

    def noted(
        path: object, names: list[str], *, text: Sequence[str] = (), **more: object
    ) -> pa.Table:
        charged.append((set(names) <= set(text), spent()))
        return read_table(path, names, text=text, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "read_table", noted)
    assert cli(command[0], data, *command[1:], *rest).code == 0
    assert [sum_ for counting, sum_ in charged if not counting] == [1]
    assert len(charged) == 2


def test_without_a_ledger_it_is_to_be_counted(cli):
    data = write("a.csv", table(visits=[*range(79), None]))
    refused(
        cli("two-sample", data, *GROUP, *COST, "--no-ledger"),
        "Count epsilon 1 as spent; it cannot be refunded",
    )


@pytest.mark.parametrize(
    "changes",
    [{"plan": ["basic"] * 80}, {"plan": [*HALVES, None]}],
    ids=["empty group", "missing group"],
)
def test_public_groups_are_looked_at_before(cli, changes):
    """Who is in which group is public: a refusal by that alone tells nothing new."""
    run = cli(
        "two-sample", write("a.csv", table(**changes)), *GROUP, "--membership", "public", *COST
    )
    refused(run, "'plan'")
    assert "spent" not in run.err
    assert spent() == 0


def test_public_sizes_are_rehearsed_before(cli):
    few = write("a.csv", table().slice(39, 41))  # one row in the first group
    run = cli("two-sample", few, *GROUP, "--membership", "public", *COST)
    refused(run, "at least 2 rows")
    assert "spent" not in run.err
    assert spent() == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--membership", "public", "--method", "tot", "--subtest", "nonsense"],
        ["--estimator", "u"],
        ["--method", "tv", "--epsilon", "1"],
    ],
    ids=lambda options: options[-1],
)
def test_what_a_test_refuses_is_found_in_the_rehearsal(cli, options):
    run = cli("two-sample", write("a.csv", table()), *GROUP, *COST, *options)
    refused(run)
    assert "spent" not in run.err
    assert spent() == 0


def test_an_unforeseen_failure_says_what_it_cost(cli, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("8675309")

    monkeypatch.setattr("privatest.requests.rehearsal.rehearse_call", lambda *_: None)
    monkeypatch.setattr(Prepared, "run", broken)
    run = cli("two-sample", write("a.csv", table()), *GROUP, *COST)
    assert run.code == 1
    assert "ZeroDivisionError" in run.err
    assert "Epsilon 1 was spent" in run.err


def test_an_interruption_says_what_it_cost(cli, monkeypatch):
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("privatest.requests.rehearsal.rehearse_call", lambda *_: None)
    monkeypatch.setattr(Prepared, "run", stopped)
    run = cli("two-sample", write("a.csv", table()), *GROUP, *COST)
    assert run.code == 130
    assert "Epsilon 1 was spent" in run.err


def test_the_budget_is_looked_at_before_the_rehearsal(cli, monkeypatch):
    data = write("a.csv", table())
    assert cli("ledger", "init", "a", "--epsilon", "0.5").code == 0
    monkeypatch.setattr("privatest.requests.rehearsal.rehearse_call", None)
    refused(cli("two-sample", data, *GROUP, *COST, "--dataset", "a"), "left")


def test_the_suggested_budget_is_enough(cli):
    """A suggestion that is followed to the letter must lead to an answer."""
    data = write("north.csv", table())
    bounds = ["--bounds", "visits=0:80"]
    assert cli("plan-share", *bounds, "--epsilon", "5", "--delta", "1e-6", "-o", "p.json").code == 0
    share = ["share", data, "--plan", "p.json", "-o", "s.json", "--dataset", "north"]
    assert cli("ledger", "init", "other", "--epsilon", "1").code == 0
    run = cli(*share)
    refused(run, "not in the ledger", "--delta 1e-05")
    suggested = run.err.split("`")[1].split()
    assert cli(*suggested[1:]).code == 0
    assert cli(*share).code == 0


def test_large_data_are_rehearsed_by_few_rows_first():
    seen: list[tuple[int, ...]] = []
    rehearse_call(lambda *sizes: seen.append(sizes), [10**9, 7])
    assert seen == [(200, 7)]


def test_what_few_rows_cannot_do_is_tried_with_all():
    def needs_many(n: int) -> None:
        if n < 5000:
            raise ParameterError("more rows")

    rehearse_call(needs_many, [6000])
    with pytest.raises(ParameterError, match="more rows"):
        rehearse_call(needs_many, [4000])


def test_made_up_rows_fit_any_schema():
    text = """
        [columns.wide]
        type = "numeric"
        bounds = [-8e307, 8e307]
        [columns.whole]
        type = "numeric"
        bounds = [0, 3]
        integer = true
        [columns.kind]
        type = "categorical"
        categories = ["a", "ö"]
    """
    schema = Schema.from_text(text)
    rows = made_up_rows([*schema.columns, "other"], schema, 50, {"kind": np.repeat(["a", "ö"], 25)})
    assert rows.num_rows == 50
    assert np.isfinite(schema.encode(rows.select([*schema.columns]))).all()
    assert rows.column("kind").to_pylist() == ["a"] * 25 + ["ö"] * 25
    assert pa.types.is_floating(rows.column("other").type)


def test_the_document_has_the_ledger_line(cli):
    document = released(cli("two-sample", write("a.csv", table()), *GROUP, *COST, "--json"))
    (line,) = document["ledger"]
    assert line["dataset"] == "a"
    with open_ledger(None) as ledger:
        assert line["entry"] in {entry.body.get("opens") for entry in ledger.history("a")}
    assert line["spent"]["epsilon"] == "1"
    assert float(line["left"]["epsilon"]) == 10**9 - 1
    assert document["request"]["columns"] == ["visits"]
    assert document["request"]["groups"] == ["basic", "plus"]
    assert document["request"]["membership"] == "private"
    assert document["files"] == ["a.csv"]


def test_two_files_that_may_hold_the_same_people(cli):
    """Each group costs a person in both the whole epsilon, and only one was charged."""
    Path("new").mkdir()
    first, second = write("a.csv", table()), write("new/a.csv", table())
    asked = ["--columns", "visits", "--bounds", "visits=0:80", *COST]
    refused(cli("two-sample", first, first, *asked), "everybody would be in both groups")
    refused(cli("two-sample", first, second, *asked), "--adjacency both", "--dataset NAME")
    assert spent() == 0
    released(cli("two-sample", first, second, *asked, "--adjacency", "both", "--json"))
    released(cli("two-sample", first, second, *asked, "--dataset", "a", "--json"))
    assert spent() == 2
