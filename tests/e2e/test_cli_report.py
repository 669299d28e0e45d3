"""``--report``: a page for every command that answers, and nothing in it that was not paid for."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import html5lib
import pytest

from privatest.cli import main
from tests.e2e.command_line import CANARY, CLEAR, GROUP, refused, table, write

pytest.importorskip("matplotlib")

BOUNDS = ["--bounds", "visits=0:80", "--bounds", "age=0:100"]
ONE = ["--epsilon", "1"]
SIDES = ["--x", "visits", "--y", "age"]
COMMANDS = {
    "two-sample": ["two-sample", "d.csv", *GROUP, *ONE],
    "each": ["two-sample", "d.csv", *GROUP, "--bounds", "age=0:100", "--each-column", *ONE],
    "ttest": ["two-sample", "d.csv", *GROUP, *ONE, "--method", "ttest", "--membership", "public"],
    "independence": ["independence", "d.csv", *SIDES, "--method", "kendall", *ONE],
    "paired": ["paired", "d.csv", "--before", "visits_2023", "--after", "visits_2024", *ONE],
    "fit": ["fit", "d.csv", "--column", "age", "--dist", "uniform(0, 80)", *ONE],
    "mean": ["mean", "d.csv", *BOUNDS, *ONE],
    "median": ["mean", "d.csv", "--q", "0.5", "--bounds", "visits=0:80", *ONE],
}


def page_of(name: str) -> str:
    """A page is valid HTML, has no canary, and fits into 2 MB."""
    page = Path(name).read_text(encoding="utf-8")
    html5lib.HTMLParser(strict=True).parse(page)
    assert str(CANARY) not in page
    assert str(CANARY)[:7] not in page.split("<details>")[0].replace("base64", "")
    assert len(page.encode()) < 2_000_000
    for part in ("guarantee", "budget", "methods", "again"):
        assert f'id="{part}"' in page
    return page


@pytest.mark.parametrize("name", COMMANDS)
def test_every_test_has_a_page(cli, name, monkeypatch):
    if name != "ttest":  # to be quick; tests of plots draw every kind of result
        monkeypatch.setattr("privatest.display.style.find_spec", lambda _: None)
    write("d.csv", table())
    run = cli(*COMMANDS[name], "--report", "r.html")
    assert (run.code, "Privacy spent" in run.out) == (0, True), run.err
    page = page_of("r.html")
    assert "e<sup>1</sup>" in page
    assert "Ledger, with this answer" in page
    assert "privatest " + COMMANDS[name][0] in page


def test_the_page_of_a_document_is_the_same(cli):
    write("d.csv", table())
    run = cli(*COMMANDS["two-sample"], "--report", "a.html", "--json")
    Path("a.json").write_text(run.out, encoding="utf-8")
    assert cli("report", "a.json", "-o", "b.html").out == "Wrote b.html.\n"
    first, second = (page_of(name).split("<details>")[0] for name in ("a.html", "b.html"))
    assert first == second
    refused(cli("report", "a.json", "-o", "b.html"), "exists; pass --force")
    refused(cli("report", "a.json", "-o", "b.txt"), "--output must end in .html")
    Path("c.json").write_text("[1]", encoding="utf-8")
    refused(cli("report", "c.json", "-o", "c.html"), "--json")
    Path("c.json").write_text("{}", encoding="utf-8")
    refused(cli("report", "c.json", "-o", "c.html"), "nothing to report")
    refused(cli("report", "gone.json", "-o", "c.html"), "cannot be read")


def test_the_command_and_the_code_of_a_page_run(cli, capsys):
    write("d.csv", table())
    done = [*COMMANDS["two-sample"], "--report", "r.html", "--no-ledger"]
    assert cli(*done).code == 0
    root = html5lib.parse(Path("r.html").read_text(encoding="utf-8"), namespaceHTMLElements=False)
    lines = {each.get("aria-label"): "".join(each.itertext()) for each in root.iter("pre")}
    words = shlex.split(lines["Command"].replace("\\\n", " "))
    assert words[0] == "privatest"
    assert main(words[1:]) == 0
    assert "two samples" in capsys.readouterr().out
    exec(compile(lines["Python"], "page", "exec"), {})
    assert "two samples" in capsys.readouterr().out


@pytest.mark.slow
def test_pages_of_releases_and_of_shares(cli):
    write("d.csv", table())
    rows = ["release", "d.csv", *BOUNDS, *ONE, "--delta", "1e-3", "--points", "30"]
    assert cli(*rows, "-o", "s.parquet", "--report", "r.html").code == 0
    assert "Pairs of columns" in page_of("r.html")
    refused(cli(*rows, "-o", "t.parquet", "--report", "r.html"), "exists; pass --force")
    plan = ["--epsilon", "1", "--delta", "1e-3", "-o", "plan.json"]
    cli("plan-share", "--bounds", "visits=0:80", *plan)
    for name in "abc":
        cli("share", "d.csv", "--plan", "plan.json", "-o", f"{name}.json")
    assert cli("compare", "a.json", "b.json", "--report", "two.html").code == 0
    assert "Raj et al. 2019" in page_of("two.html")
    assert cli("compare", "a.json", "b.json", "c.json", "--report", "three.html").code == 0
    assert "of 3 pairs differ" in Path("three.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "size", "--effect", "0.5", "--epsilon", "1", "--method", "ks"],
        ["plan", "recommend", "--n", "90", "--epsilon", "1"],
    ],
)
def test_plans_have_pages(cli, words):
    assert cli(*words, "--report", "r.html").code == 0
    page = Path("r.html").read_text(encoding="utf-8")
    html5lib.HTMLParser(strict=True).parse(page)
    assert "No data was read and nothing was spent" in page
    assert ("price of privacy" in page) == ("size" in words)


def test_a_page_that_cannot_be_written_costs_nothing(cli, no_noise):
    path = write("d.csv", table())
    asked = ["two-sample", path, *GROUP, *ONE]
    refused(cli(*asked, "--report", "nowhere/r.html"), "--report", "cannot be written")
    refused(cli(*asked, "--report", "r.txt"), "--report must end in .html")
    Path("folder.html").mkdir()
    refused(cli(*asked, "--report", "folder.html"), "cannot be written")


def test_a_page_that_fails_loses_no_answer(cli, monkeypatch):
    def broken(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("privatest.display.reports.write_text", broken)
    run = cli("two-sample", write("d.csv", table()), *GROUP, *CLEAR, "--report", "r.html")
    assert run.code == 2
    assert "We reject the hypothesis" in run.out
    assert "r.html cannot be written: No space left on device" in run.err
    entries = json.loads(cli("ledger", "history", "d", "--json").out)["entries"]
    assert [each["kind"] for each in entries][:2] == ["committed", "reserved"]


def test_budgets_over_time(cli):
    write("d.csv", table())
    for _ in range(2):
        cli(*COMMANDS["two-sample"])
    assert cli("ledger", "history", "d", "--plot", "b.svg").code == 0
    assert Path("b.svg").stat().st_size > 1000
    refused(cli("ledger", "history", "d", "--plot", "b.txt"), "--plot must end in")


def test_json_and_page_together(cli):
    write("d.csv", table())
    run = cli(*COMMANDS["mean"], "--json", "--report", "r.html")
    assert json.loads(run.out)["schema"].startswith("rows_per_person = 1")
