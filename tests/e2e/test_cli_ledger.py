"""The command line spends from a ledger, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privatest.accounting import Pure
from privatest.cli.spending import open_ledger
from privatest.core.documents import default_ledger
from privatest.core.privacy import Budget
from tests.e2e.command_line import GROUP, refused, table, write

BOOK = ("--ledger", "book.db")
ASKED = ("two-sample", "visits.csv", *GROUP, "--permutations", "99")


@pytest.fixture
def budget_of_one(cli):
    """A data set with a budget of epsilon 1."""
    write("visits.csv", table())
    run = cli("ledger", "init", "visits", "--epsilon", "1", *BOOK)
    assert run.code == 0
    assert "has a budget of epsilon = 1." in run.out
    return cli


def spent() -> str:
    with open_ledger("book.db") as ledger:
        return f"{ledger.totals('visits').account.spent.epsilon.normalize():f}"


def test_a_budget_is_spent_and_then_refused(budget_of_one):
    cli = budget_of_one
    for used in ("40%", "80%"):
        run = cli(*ASKED, "--epsilon", "0.4", *BOOK)
        assert run.code == 0
        assert f"Ledger: {used} of the budget of visits spent." in run.out
    refused(cli(*ASKED, "--epsilon", "0.4", *BOOK), "budget")
    assert spent() == "0.8"
    assert cli(*ASKED, "--epsilon", "0.2", *BOOK).code == 0
    assert spent() == "1"


def test_json_stands_alone(budget_of_one):
    run = budget_of_one(*ASKED, "--epsilon", "0.4", *BOOK, "--json")
    assert run.err == ""
    assert json.loads(run.out)["epsilon"] == 0.4


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ((*ASKED, "--epsilon", "0.4", "--adjacency", "one"), "membership"),
        ((*ASKED, "--epsilon", "-1"), "epsilon"),
        (("two-sample", "gone.csv", *GROUP, "--epsilon", "1", "--dataset", "visits"), "not exist"),
        (
            ("two-sample", "visits.csv", *GROUP, "--bounds", "height=0:3", "--epsilon", "1"),
            "no column 'height'",
        ),
    ],
)
def test_mistakes_cost_nothing(budget_of_one, arguments, fragment):
    refused(budget_of_one(*arguments, *BOOK), fragment)
    assert spent() == "0"


def test_what_fails_after_the_data_was_read_is_spent(budget_of_one):
    write("visits.csv", table(visits=[None, *range(79)]))
    refused(budget_of_one(*ASKED, "--epsilon", "0.4", *BOOK), "missing")
    assert spent() == "0.4"
    run = budget_of_one("ledger", "history", "visits", *BOOK)
    assert "failed" in run.out
    assert "DataError" in run.out


def test_an_unknown_data_set_and_a_missing_ledger_say_what_to_do(budget_of_one):
    write("other.csv", table())
    asked = ("two-sample", "other.csv", *GROUP, "--epsilon", "0.1")
    refused(budget_of_one(*asked, *BOOK), "ledger init other --epsilon 3", "--no-ledger")
    refused(
        budget_of_one(*asked, "--ledger", "none.db"), "no ledger at 'none.db'", "--ledger none.db"
    )
    assert not Path("none.db").exists()
    assert budget_of_one(*asked, *BOOK, "--dataset", "visits").code == 0
    assert spent() == "0.1"


def test_without_a_ledger_it_says_what_that_means(budget_of_one):
    run = budget_of_one(*ASKED, "--epsilon", "5", "--no-ledger")
    assert run.code == 0
    assert "recorded nowhere" in run.err
    assert spent() == "0"
    refused(budget_of_one(*ASKED, "--epsilon", "1", "--no-ledger", *BOOK), "--no-ledger")


def test_two_files_are_two_data_sets(cli):
    write("a.csv", table().slice(0, 40))
    write("b.csv", table().slice(40))
    cli("ledger", "init", "a", "--epsilon", "1", *BOOK)
    asked = ("two-sample", "a.csv", "b.csv", "--bounds", "visits=0:80", "--epsilon", "0.5", *BOOK)
    refused(cli(*asked), "data set 'b'")
    cli("ledger", "init", "b", "--epsilon", "0.5", *BOOK)
    assert "50% of the budget of a and 100% of the budget of b spent" in cli(*asked).out
    refused(cli(*asked), "budget")  # b cannot pay, so a is not charged
    with open_ledger("book.db") as ledger:
        assert ledger.totals("a").account.spent.epsilon == Budget("0.5").epsilon


def test_show_draws_bars(budget_of_one):
    budget_of_one(*ASKED, "--epsilon", "0.5", *BOOK)
    run = budget_of_one("ledger", "show", *BOOK)
    assert "visits" in run.out
    assert "████████████░░░░░░░░░░░░" in run.out
    assert "50.0%" in run.out
    assert "epsilon 0.5 of 1" in run.out
    shown = json.loads(budget_of_one("ledger", "show", *BOOK, "--json").out)
    assert shown["format"] == 1
    (account,) = shown["datasets"]
    assert account["dataset"] == "visits"
    assert account["spent"]["epsilon"] == "0.5"


def test_history_is_a_table(budget_of_one):
    budget_of_one(*ASKED, "--epsilon", "0.5", *BOOK)
    run = budget_of_one("ledger", "history", "visits", *BOOK)
    kinds = [line.split()[3] for line in run.out.splitlines()[1:]]
    assert kinds == ["committed", "reserved", "created"]
    document = json.loads(budget_of_one("ledger", "history", "visits", *BOOK, "--json").out)
    assert document["format"] == 1
    rows = document["entries"]
    assert [row["kind"] for row in rows] == kinds
    assert rows[0]["body"]["released"]["epsilon"] == 0.5
    refused(budget_of_one("ledger", "history", "nobody", *BOOK), "nobody")


def test_a_second_init_changes_nothing(budget_of_one):
    assert budget_of_one("ledger", "init", "visits", "--epsilon", "1", *BOOK).code == 0
    refused(budget_of_one("ledger", "init", "visits", "--epsilon", "2", *BOOK), "budget")
    refused(budget_of_one("ledger", "init", "x", "--epsilon", "0", *BOOK), "epsilon")


def test_history_says_what_was_asked(budget_of_one):
    budget_of_one(*ASKED, "--epsilon", "0.25", *BOOK)
    budget_of_one("mean", "visits.csv", "--bounds", "age=0:99", "--epsilon", "0.5", *BOOK)
    lines = budget_of_one("ledger", "history", "visits", *BOOK).out.splitlines()
    words = "two-sample; method mmd; columns visits; group plan; groups basic, plus"
    assert words in lines[4]
    assert "epsilon 0.25" in lines[4]
    assert "bounds visits 0, 80" in lines[4]
    assert "mean; method moments; columns age" in lines[2]
    rows = json.loads(budget_of_one("ledger", "history", "visits", *BOOK, "--json").out)["entries"]
    asked = rows[3]["body"]["asked"]
    assert asked["method"] == "mmd"
    assert asked["permutations"] == 99
    assert asked["membership"] == "private"
    assert asked["bounds"] == {"visits": [0, 80]}
    assert asked["files"] == ["visits.csv"]


def test_an_entry_of_an_older_privatest_is_shown_without_its_words(budget_of_one):
    with open_ledger("book.db") as ledger:
        ledger.reserve("visits", Pure("0.1"))
    assert "not recorded" in budget_of_one("ledger", "history", "visits", *BOOK).out


def test_names_do_not_command_the_terminal(budget_of_one):
    with open_ledger("book.db") as ledger:
        ledger.reserve("visits", Pure("0.1"), asked={"columns": ["a\x1b[2Jb"]})
    run = budget_of_one("ledger", "history", "visits", *BOOK)
    assert "\x1b" not in run.out
    assert "a\\x1b[2Jb" in run.out


def id_of(cli, kind: str) -> str:
    lines = cli("ledger", "history", "visits", *BOOK).out.splitlines()
    line = next(line for line in lines if line.split()[3:4] == [kind])
    return str(line.split("id ")[1][:8])


def test_an_answer_is_printed_again_at_no_cost(budget_of_one):
    cli = budget_of_one
    first = cli(*ASKED, "--epsilon", "0.4", *BOOK).out.splitlines()
    again = cli("ledger", "answer", id_of(cli, "committed"), *BOOK)
    assert again.code == 0
    lines = again.out.splitlines()
    assert [line for line in first if line.startswith(("We ", "  p-value", "Privacy"))] == [
        line for line in lines if line.startswith(("We ", "  p-value", "Privacy"))
    ]
    assert "groups basic, plus" in again.out
    assert "cost nothing more" in lines[-1]
    document = json.loads(cli("ledger", "answer", id_of(cli, "committed"), *BOOK, "--json").out)
    assert document["format"] == 1
    assert document["released"]["epsilon"] == 0.4
    assert document["asked"]["group"] == "plan"
    assert spent() == "0.4"


def test_a_mean_is_printed_again(budget_of_one):
    cli = budget_of_one
    first = cli("mean", "visits.csv", "--bounds", "age=0:99", "--epsilon", "0.5", *BOOK)
    again = cli("ledger", "answer", id_of(cli, "committed"), *BOOK)
    assert next(line for line in first.out.splitlines() if line.startswith("  age")) in again.out


def test_what_has_no_answer_says_why(budget_of_one):
    with open_ledger("book.db") as ledger:
        ledger.reserve("visits", Pure("0.1"))
    refused(
        budget_of_one("ledger", "answer", id_of(budget_of_one, "reserved"), *BOOK), "no recorded"
    )
    refused(budget_of_one("ledger", "answer", "0123456789", *BOOK), "no request")
    refused(budget_of_one("ledger", "answer", "1", *BOOK), "at least 4 digits")


def test_a_refusal_names_delta_and_the_way_out(cli):
    write("north.csv", table())
    cli("ledger", "init", "north", "--epsilon", "3", *BOOK)
    asked = ("mean", "north.csv", "--bounds", "age=0:99", "--epsilon", "1", "--delta", "1e-6")
    run = cli(*asked, *BOOK)
    refused(run, "delta: 1e-06 asked, 0 left", "privatest ledger set north --delta 0.000001")
    refused(
        cli("ledger", "init", "north", "--epsilon", "3", "--delta", "1e-5", *BOOK),
        "privatest ledger set north --epsilon 3 --delta 1e-5",
    )
    assert cli("ledger", "set", "north", "--delta", "0.000001", *BOOK).code == 0
    assert cli(*asked, *BOOK).code == 0


def test_a_budget_is_raised_and_lowered_on_record(budget_of_one):
    cli = budget_of_one
    cli(*ASKED, "--epsilon", "0.4", *BOOK)
    run = cli("ledger", "set", "visits", "--epsilon", "2", "--delta", "1e-5", *BOOK)
    assert "now has a budget of epsilon = 2, delta = 1e-05; it was epsilon = 1." in run.out
    refused(cli("ledger", "set", "visits", "--epsilon", "0.3", *BOOK), "epsilon 0.4", "is spent")
    refused(cli("ledger", "set", "visits", *BOOK), "--epsilon, --delta or both")
    refused(cli("ledger", "set", "nowhere", "--epsilon", "1", *BOOK), "it has: visits")
    run = cli("ledger", "set", "visits", "--epsilon", "0.4", *BOOK, "--json")
    assert json.loads(run.out)["before"] == {"epsilon": "2", "delta": "0.00001"}
    refused(cli(*ASKED, "--epsilon", "0.1", *BOOK), "epsilon: 0.1 asked, 0 left")
    changes = [
        row for row in cli("ledger", "history", "visits", *BOOK).out.split() if row == "budget"
    ]
    assert len(changes) == 2
    assert cli("ledger", "verify", *BOOK).code == 0


@pytest.mark.parametrize("command", ["show", "verify", "history visits", "export -", "backup x.db"])
def test_a_missing_ledger_is_named_and_nothing_else_is_suggested(cli, command):
    run = cli("ledger", *command.split(), "--ledger", "none.db")
    refused(run, "no ledger at 'none.db'", "ledger init")
    assert "--no-ledger" not in run.err
    assert not Path("none.db").exists()


def test_show_of_an_unknown_data_set_says_which_there_are(budget_of_one):
    refused(budget_of_one("ledger", "show", "nobody", *BOOK), "'nobody'; it has: visits")


def test_a_damaged_ledger_is_refused(budget_of_one):
    Path("book.db").write_bytes(b"this is not a database" * 100)
    for arguments in ((*ASKED, "--epsilon", "0.1"), ("ledger", "show"), ("ledger", "verify")):
        refused(budget_of_one(*arguments, *BOOK))


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_STATE_HOME", "folder/privatest/ledger.db"),
        ("linux", "", ".local/state/privatest/ledger.db"),
        ("darwin", "", "Library/Application Support/privatest/ledger.db"),
        ("win32", "LOCALAPPDATA", "folder/privatest/ledger.db"),
    ],
)
def test_where_the_ledger_is(monkeypatch, platform, variable, expected):
    for name in ("PRIVATEST_LEDGER", "XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "folder")
    monkeypatch.setattr("sys.platform", platform)
    assert default_ledger().endswith(expected)
    monkeypatch.setenv("PRIVATEST_LEDGER", "mine.db")
    assert default_ledger() == "mine.db"
