"""The curator on the command line, in several processes, and killed in the middle."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from privatest.cli import curator as commands
from privatest.curator.config import EXAMPLE
from privatest.ledger import Ledger
from tests.curators import CONFIG, SCHEMA, opened, request, write
from tests.e2e.command_line import Cli, Run, refused
from tests.e2e.postgres import server_or_skip

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "how-to" / "curator.md"


def ask(**document: Any) -> str:
    Path("request.json").write_text(json.dumps(request(**document)), encoding="utf-8")
    return "<request.json"


@pytest.fixture
def shell(cli: Cli, monkeypatch) -> Cli:
    """Run commands as a shell does: <FILE becomes standard input, >FILE keeps the output."""

    def run(*arguments: str) -> Run:
        words = " ".join(arguments).replace("< ", "<").replace("> ", ">").split()
        if words[-1].startswith(">"):
            *rest, target = words
            done = run(*rest)
            Path(target[1:]).write_text(done.out, encoding="utf-8")
            return Run(done.code, "", done.err)
        for word in [word for word in words if word.startswith("<")]:
            content = io.BytesIO(Path(word[1:]).read_bytes())
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content, encoding="utf-8"))
            words.remove(word)
        return cli(*words)

    return run


@pytest.fixture
def ready(shell, tmp_path):
    write(tmp_path)
    run = shell("curator", "register")
    assert (run.code, run.err) == (0, "")
    assert run.out == "Registered people: 40 rows, budget epsilon = 3, delta = 1e-06.\n"
    return shell


# --- commands --------------------------------------------------------------------------------


def test_the_whole_way(ready):
    name = ask(epsilon=1)
    price = ready("curator", "price", name, "--analyst", "ada")
    assert price.out == "Price: epsilon = 1, charged to people.\nThe budget has that left.\n"
    assert ready("curator", "run", name, "--analyst", "ada", "--dry-run").out == price.out
    run = ready("curator", "run", name, "--analyst", "ada")
    assert (run.code, run.err) == (0, "")
    assert "compared  visits: plan = basic against plan = plus\n" in run.out
    assert "Group sizes are private" in run.out
    again = ready("curator", "run", name, "--analyst", "ada")
    assert again.out.startswith(run.out)
    assert "Answered from the record" in again.out
    price = ready("curator", "price", name, "--analyst", "ada")
    assert price.out == "Nothing: the answer about people is in the record.\n"


def test_json(ready):
    name = ask(where={"region": ["north", "south"]})
    price = ready("curator", "price", name, "--analyst", "bob", "--json")
    assert json.loads(price.out)["affordable"] is True
    run = ready("curator", "run", name, "--analyst", "bob", "--json")
    document = json.loads(run.out)
    assert document["sizes"] == {"N": 36}
    assert document["recorded"] is False
    assert document["simulated"] is False
    again = json.loads(ready("curator", "run", name, "--analyst", "bob", "--json").out)
    assert again == document | {"id": None, "recorded": True}


def test_filters_are_shown(ready):
    run = ready("curator", "run", ask(where={"region": "north"}), "--analyst", "ada")
    assert "plan = plus; where region = north\n" in run.out


def test_a_request_from_standard_input(ready, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request())))
    assert ready("curator", "run", "-", "--analyst", "ada").code == 0


def test_init_and_check(cli, tmp_path):
    assert cli("curator", "init").out.startswith("Wrote curator.toml.")
    assert Path("curator.toml").read_text(encoding="utf-8") == EXAMPLE
    refused(cli("curator", "init"), "exists; pass --force")
    assert cli("curator", "init", "--force").code == 0
    refused(cli("curator", "init", "no/where.toml"), "cannot be written")
    run = cli("curator", "check")  # its files are not there
    assert run.code == 2
    lines = run.err.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == [
        "curator.toml, line 8",
        "curator.toml, line 9",
    ]


def test_check_says_what_comes_next(cli, tmp_path):
    write(tmp_path)
    run = cli("curator", "check")
    assert run.out.startswith("curator.toml is in order. Data sets: 1; analysts: 2.\n")
    assert "privatest curator register" in run.out
    assert cli("curator", "register", "people").code == 0
    assert cli("curator", "check").out.endswith("  people       ready\n")
    assert "All data sets are registered" in cli("curator", "register").out
    Path("people.toml").write_text(SCHEMA.replace("[0, 80]", "[0, 90]"), encoding="utf-8")
    assert "The schema of data set 'people' differs" in cli("curator", "check").out


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["price", "gone.json", "--analyst", "ada"], "write < request.json"),
        (["run", "request.json", "--analyst", "ada"], "write < request.json"),
        (["run", "<people.csv", "--analyst", "ada"], "not JSON"),
        (["run", "<list.json", "--analyst", "ada"], "one JSON object"),
        (["run", "<nan.json", "--analyst", "ada"], "NaN, which is no number"),
        (["run", "<deep.json", "--analyst", "ada"], "request"),
        (["run", "<long.json", "--analyst", "ada"], "at most 100,000 characters"),
        (["run", "<bytes.json", "--analyst", "ada"], "not JSON"),
        (["run", "<request.json", "--analyst", "eve"], "analyst must be one"),
        (["run", "<request.json", "--analyst", "ada", "--config", "gone.toml"], "gone.toml"),
        (["register", "others"], "dataset must be one"),
        (["register", "--config", "gone.toml"], "gone.toml"),
    ],
)
def test_bad_input(ready, arguments, fragment):
    ask()
    Path("list.json").write_text("[1]", encoding="utf-8")
    Path("nan.json").write_text('{"epsilon": NaN}', encoding="utf-8")
    Path("deep.json").write_text("[" * 100_000, encoding="utf-8")
    Path("long.json").write_text(f'{{"a": "{"x" * 100_000}"}}', encoding="utf-8")
    Path("bytes.json").write_bytes(b"\xff\xfe{}")
    refused(ready("curator", *arguments), fragment)


def test_budgets_end(ready):
    for alpha in (0.01, 0.02):
        assert ready("curator", "run", ask(epsilon=1, alpha=alpha), "--analyst", "ada").code == 0
    refused(ready("curator", "run", ask(epsilon=1), "--analyst", "ada"), "Nothing was spent")
    run = ready("curator", "price", ask(epsilon=1), "--analyst", "ada")
    assert "The budget is too small." in run.out


def test_a_request_is_not_opened_with_the_rights_of_the_custodian(ready):
    # errors quote what a request says; here that would be what only the custodian may read
    Path("private.json").write_text('{"canary_key": "canary_value"}', encoding="utf-8")
    for command in ("run", "price"):
        run = ready("curator", command, "private.json", "--analyst", "ada")
        refused(run, "standard input")
        assert "canary" not in run.err
    refused(ready("curator", "run", "curator.state.json", "--analyst", "ada"), "standard input")


def test_data_errors_are_for_the_custodian(shell, tmp_path):
    write(tmp_path, plan=["basic", "8675309"] * 20)
    refused(shell("curator", "register"), "column 'plan'")
    refused(shell("curator", "run", ask(), "--analyst", "ada"), "not registered")


def test_a_new_name_for_old_data_is_mentioned(ready, tmp_path):
    renamed = CONFIG.replace("datasets.people", "datasets.folk").replace('["people"]', '["folk"]')
    Path("curator.toml").write_text(renamed, encoding="utf-8")
    run = ready("curator", "register")
    assert run.code == 0
    assert "  The same contents were registered as people before." in run.out


def test_revoking_and_renewing(ready, tmp_path):
    run = ready("curator", "revoke", "ada", "--reason", "left", "--json")
    assert json.loads(run.out)["changed"] == ["people"]
    refused(ready("curator", "run", "--analyst", "ada", ask()), "may not ask any more")
    assert "revoked, left" in ready("ledger", "history", "people", "--ledger", "ledger.db").out
    assert "may ask again: people" in ready("curator", "revoke", "ada", "--undo").out
    assert "No data set declares a period" in ready("curator", "renew").out
    write(tmp_path, CONFIG.replace("epsilon = 3", 'renew = "yearly"\nepsilon = 3'))
    assert json.loads(ready("curator", "renew", "--json").out)["renewed"] == {"people": False}


def test_a_damaged_ledger(ready):
    for end in ("-wal", "-shm"):
        Path(f"ledger.db{end}").unlink(missing_ok=True)
    Path("ledger.db").write_bytes(b"no database" * 1000)
    refused(ready("curator", "run", ask(), "--analyst", "ada"), "not a ledger, or it is damaged")
    refused(ready("curator", "check"), "damaged")
    Path("ledger.db").unlink()
    for command in ("check", "register"):
        refused(ready("curator", command), "The ledger is gone", "Put it back")


@pytest.mark.parametrize("name", ["init", "check", "register", "calibrate", "run", "price"])
def test_help_has_an_example_that_runs(shell, tmp_path, name):
    (command,) = [c for c in commands.curator.registered_commands if c.name == name]
    assert command.callback is not None
    (line,) = re.findall(r"^ +(privatest .*)$", command.callback.__doc__ or "", re.M)
    if name != "init":
        few = 'tests = ["two-sample/ks"]'  # each is measured
        write(tmp_path, CONFIG.replace("people", "visits").replace("largest_epsilon = 1", few))
        for end in ("csv", "toml"):
            Path(f"people.{end}").rename(f"visits.{end}")
        ask(dataset="visits")
    if name in ("run", "price", "calibrate"):
        assert shell("curator", "register").code == 0
    run = shell(*shlex.split(line)[1:])
    assert (run.code, run.err) == (0, "")
    assert "Example:" in shell("curator", name, "--help").out


# --- several processes, and crashes ------------------------------------------------------------

ASKING = """
import json, sys
from privatest.curator import Curator
from privatest.core.errors import BudgetError
granted = 0
with Curator.open("curator.toml") as curator:
    for alpha in json.loads(sys.argv[1]):
        try:
            curator.run({"dataset": "people", "question": "paired", "method": "sign",
                         "before": "visits", "after": "age", "epsilon": "0.3", "alpha": alpha},
                        analyst="bob")
            granted += 1
        except BudgetError:
            pass
print(granted)
"""


def start(code: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )


def race(folder: Path) -> int:
    """Let four curators ask four times each; return how often they were answered."""
    levels = [[(4 * i + j + 1) / 100 for j in range(4)] for i in range(4)]
    running = [start(ASKING, folder, json.dumps(own)) for own in levels]
    granted = 0
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        granted += int(out)
    return granted


def test_curators_share_one_budget(tmp_path):
    opened(tmp_path).close()
    assert race(tmp_path) == 10  # 16 requests of 0.3 against a budget of 3
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.totals("people").account.spent.epsilon == 3
        ledger.verify()


@pytest.fixture(scope="module")
def postgres():
    yield from server_or_skip()


def test_curators_share_one_budget_on_postgresql(tmp_path, postgres):
    url = postgres.database("curators")
    opened(tmp_path, CONFIG.replace("ledger.db", url)).close()
    assert race(tmp_path) == 10
    with Ledger.open(url) as ledger:
        assert ledger.totals("people").account.spent.epsilon == 3


DYING = """
import os, signal, sys
from privatest.curator import Curator
from privatest.curator import curator as module
from privatest.ledger import Ledger
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "before":
    Ledger.reserve = die
elif sys.argv[1] == "looking":
    module.answer_from_rows = die
else:
    Ledger.commit = die
with Curator.open("curator.toml") as curator:
    curator.run({"dataset": "people", "question": "paired", "method": "sign",
                 "before": "visits", "after": "age", "epsilon": "0.3"}, analyst="bob")
"""


@pytest.mark.parametrize(
    ("moment", "spent"), [("before", "0"), ("looking", "0.3"), ("committing", "0.3")]
)
def test_killed(tmp_path, moment, spent):
    opened(tmp_path).close()
    process = start(DYING, tmp_path, moment)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert out == ""
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        totals = ledger.totals("people")
        assert totals.account.spent.epsilon == Decimal(spent)
        assert totals.analysts["bob"].spent.epsilon == Decimal(spent)
        assert len(ledger.unfinished("people")) == (1 if spent != "0" else 0)
        ledger.verify()
