"""The command line as people use it.

Every file holds a canary, a value that must never be printed; every run looks for it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import privatest
from privatest.cli import app, main
from privatest.datasets import randhie
from privatest.noise import SecureNoise
from tests.e2e.command_line import (
    CANARY,
    CLEAR,
    GROUP,
    KEYS,
    SOMETIMES,
    Run,
    refused,
    released,
    table,
    write,
)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_private_groups_hide_their_sizes(cli, name):
    run = cli("two-sample", write(name, table()), *GROUP, *CLEAR)
    assert run.code == 0
    assert run.err == ""
    assert run.out.startswith("We reject the hypothesis that the two samples come from the same")
    assert "visits: plan = basic against plan = plus" in run.out
    assert "only the total of 80 rows is shown" in run.out
    assert "p-value" in run.out
    assert "Privacy spent: epsilon = 1000 (one row replaced, values and group" in run.out
    assert "40" not in run.out.replace("1000", "")

    document = released(cli("two-sample", name, *GROUP, *CLEAR, "--json"))
    assert document.keys() - SOMETIMES == KEYS | {"pvalue", "statistic"}
    assert (document["adjacency"], document["sizes"]) == ("row", {"N": 80})
    assert document["reject"] == (document["pvalue"] <= 0.05) is True


def test_public_groups(cli):
    path = write("a.csv", table(plan=["basic"] * 30 + ["plus"] * 40 + ["other"] * 10))
    for adjacency in ("one", "both"):
        extra = ["--membership", "public", "--adjacency", adjacency, "--json"]
        document = released(cli("two-sample", path, *GROUP, *CLEAR, *extra))
        assert document["adjacency"] == adjacency
        assert document["sizes"] == {"n": 30, "m": 40}
    run = cli("two-sample", path, *GROUP, *CLEAR, "--membership", "public")
    assert "n = 30, m = 40" in run.out
    assert "total" not in run.out


def test_one_group_against_the_rest(cli):
    path = write("a.csv", table(plan=["basic"] * 30 + [str(CANARY)] * 40 + ["other"] * 10))
    rest = ["--group", "plan", "--groups", "basic", "rest", "--bounds", "visits=0:80"]
    asked = ["two-sample", path, *rest, *CLEAR]
    run = cli(*asked, "--membership", "public")
    assert "plan = basic against the rest" in run.out
    assert "n = 30, m = 50" in run.out
    refused(cli(*asked), "'plan'", "mistyped", "--schema", "--membership")


def test_an_empty_private_group_is_not_told(cli):
    path = write("a.csv", table(plan=["basic"] * 80))
    for engine in ([], ["--engine", "local"]):
        run = cli("two-sample", path, *GROUP, *CLEAR, *engine, "--json")
        assert released(run)["sizes"] == {"N": 80}
    refused(cli("two-sample", path, *GROUP, *CLEAR, "--membership", "public"), "no row in group")


def test_two_files(cli):
    first, second = write("a.csv", table().slice(0, 40)), write("b.parquet", table().slice(40))
    arguments = ["two-sample", first, second, "--bounds", "visits=0:80", *CLEAR, "--json"]
    document = released(cli(*arguments))
    assert (document["adjacency"], document["sizes"]) == ("one", {"n": 40, "m": 40})
    assert document["unit"] == "row"
    hidden = released(cli(*arguments, "--membership", "private", "--rows-per-person", "3"))
    assert (hidden["adjacency"], hidden["sizes"]) == ("row", {"N": 80})
    assert hidden["unit"] == "person with at most 3 rows"


def test_decision_and_every_option(cli):
    run = cli(
        *("two-sample", write("a.csv", table()), *GROUP, "--membership", "public", "--json"),
        *("--epsilon", "0.1", "--delta", "1e-6", "--alpha", "0.01", "--release", "decision"),
        *("--kernel", "laplace", "--bandwidths", "1,0.5", "--permutations", "99"),
        *("--computation", "exact", "--estimator", "u", "--columns", "visits"),
    )
    document = released(run)
    assert document.keys() - SOMETIMES == KEYS
    assert (document["epsilon"], document["delta"], document["alpha"]) == (0.1, 1e-6, 0.01)
    assert document["parameters"]["bandwidths"] == [1, 0.5]
    assert document["parameters"]["n_permutations"] == 99


def test_members_of_the_family(cli):
    document = released(
        cli(
            *("two-sample", write("a.csv", table()), *GROUP, "--membership", "public", "--json"),
            *("--epsilon", "1", "--permutations", "99", "--statistics", "mean, kolmogorov"),
        )
    )
    assert document["parameters"]["statistics"] == ["kolmogorov", "mean"]
    assert document["request"]["statistics"] == ["mean", "kolmogorov"]
    assert document["method"] == "two-sample test by the largest of kolmogorov, mean"


def test_template_to_schema_to_test(cli):
    path = write("a.csv", table())
    assert "[columns.visits]" in cli("schema", path).out
    assert cli("schema", path, "-o", "a.toml").code == 0
    refused(cli("schema", path, "-o", "a.toml"), "'a.toml' exists", "--force")
    assert cli("schema", path, "-o", "a.toml", "--force").code == 0
    grouped = ["two-sample", path, "--schema", "a.toml", "--group", "plan", *CLEAR]
    refused(cli(*grouped), "visits", "bounds must be filled in")

    text = Path("a.toml").read_text()
    for empty, full in (
        ("bounds = [] ", "bounds = [0, 80]"),
        ("categories = [] ", 'categories = ["basic", "plus"]'),
        ("categories = [] ", 'categories = ["north", "south"]'),
    ):
        text = text.replace(empty, full, 1)
    Path("a.toml").write_text(text.partition("[columns.note]")[0])
    run = cli(*grouped)  # a numeric and a categorical column together
    assert "visits, region: plan = basic against plan = plus" in run.out
    assert released(cli(*grouped, "--json"))["sizes"] == {"N": 80}


SCHEMA = """
rows_per_person = 2
[columns.visits]
type = "numeric"
bounds = [0, 80]
[columns.plan]
type = "categorical"
categories = ["basic", "plus", "other"]
membership = "public"
missing = "other"
"""


def test_schema_decides_membership_and_missing(cli):
    Path("a.toml").write_text(SCHEMA)
    path = write("a.parquet", table(plan=["basic"] * 30 + ["plus"] * 40 + [None] * 10))
    asked = ["two-sample", path, "--schema", "a.toml", "--group", "plan", *CLEAR, "--json"]
    document = released(cli(*asked, "--groups", "basic", "plus"))
    assert document["sizes"] == {"n": 30, "m": 40}
    assert document["unit"] == "person with at most 2 rows"
    assert released(cli(*asked, "--groups", "basic", "rest"))["sizes"] == {"n": 30, "m": 50}
    private = [*asked, "--membership", "private"]
    assert released(cli(*private, "--groups", "basic", "rest"))["sizes"] == {"N": 80}
    refused(cli(*private, "--groups", "basic", "plus"), "'plan'", "basic and rest", "--membership")
    refused(cli(*asked, "--method", "ks"), "Pass --groups", "3 categories")
    several = {"n1": 30, "n2": 40, "n3": 10}
    assert sorted(released(cli(*asked))["sizes"].values()) == sorted(several.values())
    more = [*asked, "--groups", "basic", "plus", "--more-groups", "rest"]
    assert released(cli(*more))["sizes"] == several
    assert released(cli(*more, "--membership", "private"))["sizes"] == {"N": 80}
    refused(cli(*more, "--method", "tv"), "list of two")
    refused(cli(*asked, "--more-groups", "plus"), "--groups A B")
    refused(cli(*asked, "--groups", "basic", "gone"), "'gone' is not a category of column 'plan'")
    refused(cli(*asked, "--groups", "basic", "basic"), "different")
    refused(cli(*asked, "--groups", "basic", "plus", "--rows-per-person", "3"), "contradicts")


@pytest.mark.parametrize(
    ("name", "values", "label", "other"),
    [
        ("a.csv", [1, 0], "1", "0"),
        ("a.csv", [1, 0], "1.0", "0"),
        ("a.csv", ["1.0", "0.0"], "1", "0"),
        ("a.csv", ["01", "1"], "01", "1"),
        ("a.csv", ["True", "False"], "true", "false"),
        ("a.csv", ["yes, please", "no"], "yes, please", "no"),
        ("a.csv", ["rest", "work"], "work", "rest"),
        ("a.parquet", [1, 0], "1", "0"),
        ("a.parquet", [-1.5, 2.0], "-1.5", "2"),
        ("a.parquet", [True, False], "true", "False"),
        ("a.parquet", ["NA", "SA"], "NA", "SA"),
        ("a.parquet", ["x", "y"], "x", "y"),
    ],
)
def test_labels_match_what_the_file_shows(cli, name, values, label, other):
    column = pa.array([values[0]] * 30 + [values[1]] * 50)
    path = write(name, table(plan=column.dictionary_encode() if "x" in values else column))
    asked = ["two-sample", path, "--group", "plan", "--bounds", "visits=0:80", *CLEAR, "--json"]
    document = released(cli(*asked, "--groups", label, other, "--membership", "public"))
    assert sorted(document["sizes"].values()) == [30, 50]
    if other != "rest":
        assert document["sizes"]["n"] == 30


def test_demo(cli):
    run = cli("demo", "--report", "report.html")
    assert run.code == 0
    assert run.err == ""
    assert "epsilon 3 of 3, delta 1e-06 of 1e-06" in run.out  # one budget for all three
    pages = ("report.html", "report-2.html", "report-3.html")
    assert all("<html" in Path(page).read_text(encoding="utf-8") for page in pages)
    for words in ("Question 3", "up to 5 rows", "only the total of 20,190 rows", "e^epsilon"):
        assert words in " ".join(run.out.split())
    command = next(line for line in run.out.splitlines() if "privatest two-sample " in line)
    again = released(cli(*shlex.split(command)[1:], "--json"))
    document = released(cli("demo", "--json", "--epsilon", "0.5"))
    assert document["epsilon"] == 0.5
    ways = [found["parameters"].pop("relabel") for found in (again, document)]
    assert ways == ["permute", "swap"]  # 5 rows a person: N (epsilon/5)² is 808 and 202
    differing = ["pvalue", "reject", "verdict", "epsilon", "guarantee", "request", "ledger"]
    differing += ["noise_to_chance", "noise_note"]
    one, other = ({k: v for k, v in d.items() if k not in differing} for d in (again, document))
    assert one == other
    refused(cli("demo", "--epsilon", "nan"), "epsilon")
    assert randhie().data.stat().st_size < 100_000


DESCRIBED = """
[columns]
sex = { type = "categorical", categories = ["f", "m"] }
plan = { type = "categorical", categories = ["basic", "plus"] }
"""


# serve runs until it is stopped: tests/e2e/test_serve.py
ENDING = [command for command in app.registered_commands if command.name != "serve"]


@pytest.mark.parametrize("command", ENDING, ids=lambda command: command.name)
def test_help_has_an_example_that_runs(cli, command):
    write("visits.csv", table(income=[*range(80)], sex=["f", "m"] * 40))
    if command.name != "schema":  # which writes it
        Path("visits.toml").write_text(DESCRIBED, encoding="utf-8")
    example = re.split("Examples?:", command.callback.__doc__)[1].replace("\\\n", " ")
    for line in re.split(r"\n\s*(?=privatest )", example.strip()):
        asked, _, file = line.partition(" > ")
        run = cli(*shlex.split(asked)[1:])
        assert run.code == 0
        assert run.err == "" or run.err.startswith("note: to see")
        if file:
            Path(file.strip()).write_text(run.out, encoding="utf-8")
    assert command.name in cli("--help").out
    assert re.search("Examples?:", cli(command.name, "--help").out)


# --- faults, interruptions, and what is loaded -----------------------------------------------


def test_faults_say_nothing_about_data(cli, no_noise, monkeypatch, capsys):
    path = write("a.csv", table())
    run = cli("two-sample", path, *GROUP, "--epsilon", "1")
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith("error: internal error (AssertionError); run with PRIVATEST_DEBUG=1")
    assert run.err.count("\n") == 1
    monkeypatch.setenv("PRIVATEST_DEBUG", "1")
    assert main(["two-sample", path, *GROUP, "--epsilon", "1"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_interruption(cli, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SecureNoise, "permutation", interrupt)
    run = cli("two-sample", write("a.csv", table()), *GROUP, "--epsilon", "1")
    assert (run.code, run.out, run.err.strip()) == (130, "", "")


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PRIVATEST_DEBUG"}
    command = [sys.executable, "-m", "privatest.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write("a.csv", table())
    book = ["--ledger", "book.db"]
    assert program("ledger", "init", "a", "--epsilon", "1500", *book).returncode == 0
    run = program("two-sample", path, *GROUP, *CLEAR, *book, "--json")
    assert released(Run(run.returncode, run.stdout, run.stderr))["reject"] is True
    again = program("two-sample", path, *GROUP, *CLEAR, *book)
    refused(Run(again.returncode, again.stdout, again.stderr), "budget")
    run = program("two-sample", path, *GROUP, "--epsilon", "0")
    refused(Run(run.returncode, run.stdout, run.stderr), "epsilon")
    assert program("--version").stdout == f"privatest {privatest.__version__}\n"
    assert "two-sample" in program().stdout


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from privatest.cli import main; main(['two-sample', '--help']);"
        "heavy = 'opendp scipy.stats pyarrow pandas matplotlib'.split();"
        "print('loaded:', [name for name in heavy if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("loaded: []\n")


def test_help_imports_no_method():
    code = (
        "import sys; from privatest.cli import main; main(['--help']);"
        "imported = set(sys.modules);"
        "from privatest.requests.catalogue import METHODS;"
        "every = [m.function for methods in METHODS.values() for m in methods.values()];"
        "homes = {function.__module__ for function in every};"
        "assert {'privatest.methods.mmd', 'privatest.synthetic.releases'} <= homes, homes;"
        "print('imported:', sorted(homes & imported))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("imported: []\n")


@pytest.mark.parametrize(
    ("command", "foreign"),
    [
        ("independence", ["scf", "moments", "mmd", "two-sample"]),
        ("mean", ["hypothesis", "compare", "Level of the test"]),
        ("paired", ["first sample", "mann-whitney"]),
        ("two-sample", ["hsic", "after"]),
        ("fit", ["--columns", "mmd", "--release"]),
    ],
)
def test_help_speaks_of_its_own_command(cli, command, foreign):
    text = " ".join(cli(command, "--help").out.split())
    for words in foreign:
        assert words not in text, words
