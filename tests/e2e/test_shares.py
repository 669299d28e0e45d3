"""Shares from the command line: who sees only their own file, and who sees only shares."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from privatest.methods.shares import Share, SharePlan, plan_share, share
from privatest.noise import SimulatedNoise
from tests.e2e.command_line import CANARY, Run, refused, released, table, write

PLAN = ["plan-share", "--bounds", "visits=0:80", "--epsilon", "1000", "--delta", "1e-6"]


def program(folder: Path, *arguments: str) -> Run:
    """Run the program in a process whose folder is all that it is given."""
    environment = {k: v for k, v in os.environ.items() if k != "PRIVATEST_DEBUG"}
    done = subprocess.run(
        [sys.executable, "-m", "privatest.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


def send(name: str, source: Path, target: Path) -> None:
    shutil.copy(source / name, target / name)


def test_owners_who_trust_nobody(tmp_path):
    """Each owner's process has its data and the plan; the tester's has the shares only."""
    planner, first, second, tester = (tmp_path / who for who in ("planner", "a", "b", "tester"))
    for folder in (planner, first, second, tester):
        folder.mkdir()
    run = program(planner, *PLAN, "--locations", "5", "-o", "plan.json")
    assert (run.code, run.err) == (0, "")
    assert "epsilon = 1000, delta = 1e-06 (one row replaced; n is public)" in run.out
    assert "Each owner runs: privatest share DATA --plan plan.json" in run.out

    rng = np.random.default_rng(0)
    for folder, name, values in (
        (first, "a", rng.uniform(0, 80, 400)),
        (second, "b", rng.uniform(40, 80, 300)),
    ):
        send("plan.json", planner, folder)
        write(
            str(folder / "data.csv"),
            pa.table({"visits": [CANARY, *values], "id": [*range(len(values) + 1)]}),
        )
        asked = ["share", "data.csv", "--plan", "plan.json", "-o", f"{name}.json"]
        run = program(folder, *asked, "--no-ledger")
        assert run.code == 0, run.err
        assert run.err.startswith("No ledger: this was recorded nowhere")
        assert "Comparing the share costs nothing more" in run.out
        assert str(CANARY) not in run.out + (folder / f"{name}.json").read_text()
        send(f"{name}.json", folder, tester)

    assert sorted(path.name for path in tester.iterdir()) == ["a.json", "b.json"]
    run = program(tester, "compare", "a.json", "b.json")
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("We reject the hypothesis that the two samples come from the same")
    assert "n = 401, m = 301" in run.out
    assert "any number of times" in run.out
    document = released(program(tester, "compare", "b.json", "a.json", "--json"))
    assert document["sizes"] == {"n": 301, "m": 401}
    assert document["pvalue"] < 0.01
    assert "any number of times" in document["parameters"]["cost"]


@pytest.fixture
def site(cli):
    """A plan and three shares, the last of other data."""
    assert cli(*PLAN, "-o", "plan.json").code == 0
    write("data.csv", table())
    write("other.parquet", table(visits=[0] * 80))
    for name, data in (("a", "data.csv"), ("b", "data.csv"), ("c", "other.parquet")):
        assert cli("share", data, "--plan", "plan.json", "-o", f"{name}.json").code == 0
    return cli


def test_more_than_two_shares(site):
    run = site("compare", "a.json", "b.json", "c.json")
    assert run.code == 0
    assert run.out.startswith("2 of 3 pairs differ in distribution, at level 0.05 for all pairs")
    lines = {line.split("  p =")[0].strip(): line for line in run.out.splitlines()}
    assert lines["a.json and b.json"].endswith("no difference found")
    assert lines["a.json and c.json"].endswith(" differ")
    assert "Privacy spent: epsilon = 1000, delta = 1e-06" in run.out
    assert "any number of times" in run.out
    pairs = json.loads(site("compare", "a.json", "b.json", "c.json", "--json").out)["pairs"]
    assert pairs[0]["shares"] == ["a.json", "b.json"]
    assert [pair["reject"] for pair in pairs] == [False, True, True]
    assert all("raw_pvalue" in pair["parameters"] for pair in pairs)


def test_the_same_answer_for_everybody(site):
    assert site("compare", "a.json", "b.json").out == site("compare", "a.json", "b.json").out


def test_the_ledger_is_asked_first(cli, no_noise):
    assert cli(*PLAN, "-o", "plan.json").code == 0
    write("data.csv", table())
    asked = ["share", "data.csv", "--plan", "plan.json", "-o", "a.json"]
    refused(cli(*asked, "--dataset", "gone"), "ledger")
    assert not Path("a.json").exists()


def test_a_plan_that_costs_too_much(cli, no_noise):
    assert cli(*PLAN, "-o", "plan.json").code == 0
    write("data.csv", table())
    asked = ["share", "data.csv", "--plan", "plan.json", "-o", "a.json"]
    refused(cli(*asked, "--max-epsilon", "2"), "epsilon = 1000", "more than you allow")
    refused(cli(*asked, "--max-delta", "1e-9"), "more than you allow")
    refused(cli(*asked, "--max-epsilon", "0"), "epsilon must be")
    allowed = cli(*asked, "--max-epsilon", "1000", "--max-delta", "1e-6")
    assert allowed.code == 1  # it got as far as the noise


def test_a_share_that_is_there_is_not_overwritten(site, no_noise):
    """A share that is lost has been paid for."""
    before = Path("a.json").read_text()
    again = ["share", "data.csv", "--plan", "plan.json", "-o", "a.json"]
    refused(site(*again), "'a.json' exists", "--force")
    refused(site(*PLAN, "-o", "plan.json"), "'plan.json' exists", "--force")
    assert Path("a.json").read_text() == before


def test_nothing_is_spent_where_the_share_cannot_be_written(site, no_noise):
    asked = ["share", "data.csv", "--plan", "plan.json", "-o"]
    refused(site(*asked, "gone/a.json"), "cannot be written")
    refused(site(*asked, ".", "--force"), "cannot be written")


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["--epsilon", "0"], "epsilon must be"),
        (["--delta", "0"], "delta must be above 0"),
        (["--bandwidth", "x"], "bandwidth must be a number"),
        (["--bandwidth", "-1"], "bandwidth must be"),
        (["--balance", "nan"], "balance must be"),
        (["--locations", "0"], "locations must be"),
        (["--locations", "gone.csv"], "gone.csv does not exist"),
        (["--locations", "-3"], "must end in"),
        (["--frequencies", "x.txt"], "must end in"),
        (["--locations", "3", "--frequencies", "3"], "not both"),
        (["--columns", "age"], "--bounds age=LOW:HIGH"),
        (["--schema", "gone.toml"], "not both"),
        (["--kernel", "x"], "--kernel"),
    ],
)
def test_plans_that_cannot_be(cli, arguments, fragment):
    refused(cli(*PLAN, "-o", "plan.json", *arguments), fragment)
    assert not Path("plan.json").exists()


def test_plan_from_a_schema_and_public_points(cli):
    Path("a.toml").write_text(
        'rows_per_person = 2\n[columns.visits]\ntype = "numeric"\nbounds = [0, 80]\n'
        '[columns.region]\ntype = "categorical"\ncategories = ["north", "south"]\n'
        '[columns.age]\ntype = "numeric"\nbounds = [0, 100]\n'
    )
    points = pa.table({"region": ["north", "south"], "visits": [40, 100], "more": [1, 2]})
    write("points.csv", points)
    run = cli(
        *("plan-share", "--schema", "a.toml", "--columns", "visits,region", "-o", "plan.json"),
        *("--epsilon", "1", "--delta", "1e-6", "--locations", "points.csv", "--kernel", "imq"),
    )
    assert run.code == 0
    assert "one person with at most 2 rows replaced" in run.out
    plan = SharePlan.load("plan.json")
    assert plan.points.tolist() == [[0.5, 0.0], [1.0, 1.0]]
    assert plan.schema.rows_per_person == 2
    write("data.csv", table())
    assert cli("share", "data.csv", "--plan", "plan.json", "-o", "a.json").code == 0
    assert Share.load("a.json").n == 80


def test_plan_of_waves(cli):
    write("waves.csv", pa.table({"visits": [0.25, 0.5]}))
    assert cli(*PLAN, "--frequencies", "waves.csv", "-o", "plan.json").code == 0
    assert SharePlan.load("plan.json").points.tolist() == [[20.0], [40.0]]
    assert cli(*PLAN, "--frequencies", "3", "-o", "other.json").code == 0
    assert SharePlan.load("other.json").points.shape == (3, 1)
    write("words.csv", pa.table({"visits": ["a", "b"]}))
    refused(cli(*PLAN, "--frequencies", "words.csv", "-o", "third.json"), "frequencies must be")


def test_shares_that_are_refused(site):
    refused(site("compare", "a.json"), "at least two shares")
    refused(site("compare", "a.json", "a.json"), "named twice")
    refused(site("compare", "a.json", "gone.json"), "gone.json cannot be read")
    refused(site("compare", "a.json", "plan.json"), "plan.json is refused", "not a privatest share")
    refused(site("compare", "a.json", "b.json", "--alpha", "2"), "alpha must be")
    shutil.copy("a.json", "copy.json")
    refused(site("compare", "a.json", "copy.json"), "the two shares are the same")
    text = Path("b.json").read_text()
    Path("b.json").write_text(text.replace('"n": 80', '"n": 81'))
    refused(site("compare", "a.json", "b.json"), "b.json is refused", "checksum")
    Path("b.json").write_text(text[:-20])
    refused(site("compare", "a.json", "b.json"), "b.json is refused", "truncated")
    assert site(*PLAN, "--bandwidth", "0.3", "-o", "p.json").code == 0
    assert site("share", "data.csv", "--plan", "p.json", "-o", "d.json").code == 0
    refused(site("compare", "a.json", "d.json"), "different plans", "differ in bandwidth")
    refused(site("compare", "a.json", "c.json", "d.json"), "different plans")


def test_data_that_does_not_fit_the_plan(site, no_noise):
    write("narrow.csv", table(visits=None))
    asked = ["--plan", "plan.json", "-o", "e.json"]
    refused(site("share", "narrow.csv", *asked), "'visits'")
    write("text.csv", table(visits=[*["1"] * 79, f"x{CANARY}"]))
    refused(site("share", "text.csv", *asked), "'visits'", "numbers")
    refused(site("share", "data.csv", "--plan", "a.json", "-o", "e.json"), "not a privatest plan")
    assert not Path("e.json").exists()


def test_simulated_shares_say_so(cli):
    plan = plan_share({"visits": (0, 80)}, epsilon=1, delta=1e-6)
    for seed, name in enumerate("abc"):
        share([1.0, 2.0, 3.0], plan=plan, noise=SimulatedNoise(seed)).save(f"{name}.json")
    assert "NOT private" in cli("compare", "a.json", "b.json").out
    assert "NOT private" in cli("compare", "a.json", "b.json", "c.json").out
    assert json.loads(cli("compare", "a.json", "b.json", "--json").out)["simulated"] is True
