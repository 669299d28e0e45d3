"""Releases from the command line: paid for once, asked for ever.

Every file holds a canary, a value that must never be printed; every run looks for it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privatest.cli.output import progress
from privatest.noise import SimulatedNoise
from privatest.synthetic import SyntheticData, release
from tests.e2e.command_line import CANARY, Cli, Run, refused, table, write

BUDGET = ["--epsilon", "100", "--delta", "1e-6"]
VISITS = ["--bounds", "visits=0:80", "--bounds", "age=0:80"]
SCHEMA = """
rows_per_person = 2
[columns.visits]
type = "numeric"
bounds = [0, 80]
integer = true
[columns.plan]
type = "categorical"
categories = ["basic", "plus"]
"""


def document(run: Run) -> Any:
    """Read the one JSON document of a good run."""
    assert (run.code, run.err) == (0, "")
    return json.loads(run.out)


def estimate(run: Run) -> tuple[float, float]:
    found = document(run)
    return found["value"], found["error"]


@pytest.fixture
def made(cli: Cli) -> Cli:
    """A release of visits and plan in s.parquet."""
    Path("a.toml").write_text(SCHEMA)
    write("a.csv", table())
    how = ["--method", "subspace", "-o", "s.parquet"]
    run = cli("release", "a.csv", "--schema", "a.toml", *BUDGET, *how)
    assert (run.code, run.err) == (0, "")
    assert "synthetic rows for 80 private ones" in run.out
    assert "Privacy spent: epsilon = 100, delta = 1e-06 (one person with at most 2 rows" in run.out
    assert "Wrote s.parquet. Queries cost nothing more" in run.out
    assert "of the budget of a spent." in run.out
    return cli


def test_release_and_ask(made):
    """In 60 releases the answers were 39.4 to 40.7, 0.47 to 0.51 and 36 to 44."""
    mean, error = estimate(made("query", "s.parquet", "mean", "visits", "--json"))
    assert mean == pytest.approx(40, abs=8)
    assert 0 < error < 8
    found = document(
        made("query", "s.parquet", "probability", "visits > 40 and plan == 'basic'", "--json")
    )
    assert found["value"] == pytest.approx(0.5, abs=0.15)
    assert found["error"] is None
    assert "finer than its points" in found["reason"]
    low, high = found["limits"]
    assert 0 <= low < found["value"] < high <= 1
    assert found["weights"] == "measured"
    middle, _ = estimate(made("query", "s.parquet", "quantile", "visits", "0.5", "--json"))
    assert 25 <= middle <= 55

    run = made("query", "s.parquet", "mean", "visits")
    assert run.out.startswith("mean of visits: ")
    assert " ± " in run.out
    assert "The bar is one standard deviation of the privacy noise: the value" in run.out
    assert "In brackets: the sampling error of 80 rows" in run.out
    run = made("query", "s.parquet", "quantile", "visits", "0.5")
    assert run.out.startswith("0.5 quantile of visits: ")
    run = made("query", "s.parquet", "probability", "visits > 40")
    assert run.out.startswith("probability of visits > 40: ")
    assert "(no bar; between " in run.out
    assert "No bar: this release says nothing about conditions finer than its points." in run.out
    assert "This query cost nothing." in run.out


def test_rows_are_rows_of_the_schema(made):
    found = SyntheticData.load("s.parquet")
    assert set(found.columns["plan"]) <= {"basic", "plus"}
    assert found.columns["visits"].dtype.kind == "i"
    assert str(CANARY) not in str(found.to_arrow().to_pylist())
    for asked in (found, found.nonnegative()):  # what was measured is the same for both
        same = asked.probability("visits > 40").to_dict()
        said = document(made("query", "s.parquet", "probability", "visits > 40", "--json"))
        assert {name: said[name] for name in same} == same


def test_conditions_groups_correlations_and_regressions(made):
    def asked(*words: str) -> Any:
        return document(made("query", "s.parquet", *words, "--json"))

    found = asked("mean", "visits", "--where", "plan == 'basic'")
    assert found["where"] == "plan == 'basic'"
    assert found["value"] == pytest.approx(60, abs=12)  # those with a basic plan go often
    found = asked("mean", "visits", "--by", "plan")
    assert [each["name"] for each in found["estimates"]] == ["basic", "plus"]
    run = made("query", "s.parquet", "probability", "visits > 40", "--by", "plan")
    assert run.out.startswith("probability of visits > 40, by plan:\n  basic  ")
    assert "hold for all groups together" in run.out
    assert -1 <= asked("correlation", "visits", "visits")["value"] <= 1
    found = asked("regression", "visits", "plan")
    assert [each["name"] for each in found["estimates"]] == ["intercept", "plan == plus"]
    assert set(found["estimates"][0]) >= {"value", "error", "sampling", "limits", "reason"}


def test_rows_for_other_programs(made):
    for name in ("r.csv", "r.parquet", "r.arrow", "r.feather"):
        assert made("query", "s.parquet", "rows", "-o", name, "--number", "50").code == 0
    assert pq.read_table("r.parquet").num_rows == 50
    assert pq.read_table("r.parquet").schema.names == ["visits", "plan"]
    assert pa.ipc.open_file("r.arrow").read_all().num_rows == 50
    assert Path("r.csv").read_text().startswith('"visits","plan"\n')
    refused(made("query", "s.parquet", "rows", "-o", "r.csv"), "exists; pass --force")
    assert made("query", "s.parquet", "rows", "-o", "r.csv", "--force").code == 0
    assert "weight" in Path("r.csv").read_text().splitlines()[0]
    refused(made("query", "s.parquet", "rows"), "-o FILE.csv")
    refused(made("query", "s.parquet", "rows", "-o", "r.xls"), ".csv, .parquet, .arrow, .feather")


def test_report(made):
    assert made("query", "s.parquet", "report", "-o", "r.html").out == "Wrote r.html.\n"
    page = Path("r.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<img") == 2
    assert "Privacy spent: epsilon = 100" in page
    assert str(CANARY) not in page


def test_facts(made):
    run = made("query", "s.parquet")
    assert "columns   visits, plan" in run.out
    facts = document(made("query", "s.parquet", "about", "--json"))["release"]
    assert (facts["n"], facts["epsilon"], facts["delta"]) == (80, 100, 1e-6)
    assert facts["columns"] == ["visits", "plan"]
    assert facts["unit"] == "person with at most 2 rows"
    assert facts["simulated"] is False


def test_compare_with_public_rows(made):
    write("same.csv", table())
    write("other.parquet", table(visits=[0] * 80, plan=["plus"] * 80))
    near, bar = estimate(made("query", "s.parquet", "compare", "same.csv", "--json"))
    far, _ = estimate(made("query", "s.parquet", "compare", "other.parquet", "--json"))
    assert 0 < bar < 0.2
    assert near < 0.5 * far
    run = made("query", "s.parquet", "compare", "other.parquet")
    assert run.out.startswith("distance to other.parquet: ")
    assert "The bar is the size of the privacy noise" in run.out
    write("less.csv", table(plan=None))
    refused(made("query", "s.parquet", "compare", "less.csv"), "less.csv has no column 'plan'")
    refused(made("query", "s.parquet", "compare", "gone.csv"), "gone.csv does not exist")
    assert "PUBLIC" in made("query", "--help").out


def test_categories_are_released_by_tables(cli):
    Path("a.toml").write_text(SCHEMA)
    write("a.csv", table())
    asked = ("release", "a.csv", "--schema", "a.toml", *BUDGET, "-o", "t.parquet")
    told = cli(*asked, "--dry-run")
    assert told.code == 0
    assert "2 tables of one column, at most 81 groups a column: noise" in told.out
    assert "Nothing was spent." in told.out
    assert not Path("t.parquet").exists()
    assert [part["share"] for part in document(cli(*asked, "--dry-run", "--json"))["rounds"]] == [
        0.1,
        0.3,
        0.6,
    ]
    run = cli(*asked)
    assert run.code == 0
    assert "80 synthetic rows for 80 private ones: tables" in run.out
    value, bar = estimate(cli("query", "t.parquet", "probability", "plan == 'plus'", "--json"))
    assert abs(value - SyntheticData.load("t.parquet").probability("plan == 'plus'").value) < 1e-9
    assert bar < 0.2
    refused(cli("query", "t.parquet", "compare", "a.csv"), "released by tables")


def test_bins_are_foretold_and_chosen(cli):
    """Nearly all visits are in the first of 128 bins: with finer ones the median is known."""
    write("a.csv", table())
    bounds = ["--bounds", "visits=0:100000", "--columns", "visits"]
    asked = ("release", "a.csv", *bounds, *BUDGET, "--method", "tables", "-o", "t.parquet")
    told = cli(*asked, "--dry-run")
    assert "3 looks at columns with bins, to split those with many rows, at most 128" in told.out
    assert "(10%)" in told.out
    even = cli(*asked, "--bins", "even", "--dry-run", "--json")
    assert len(document(even)["rounds"]) == 2
    found = document(cli(*asked, "--json"))
    assert found["parameters"]["shares"]["bins"] == pytest.approx(0.1)
    assert SyntheticData.load("t.parquet").quantile("visits", 0.5).value < 90
    refused(
        cli("release", "a.csv", *VISITS, *BUDGET, "--bins", "even", "-o", "s.parquet"),
        "bins needs method='tables'",
    )


def test_json_and_every_option(cli):
    path = write("a.parquet", table())
    run = cli(
        *("release", path, *VISITS, "--columns", "visits", "--epsilon", "0.1", "--delta", "1e-6"),
        *("--rows-per-person", "3", "--points", "10", "--weights", "nonnegative"),
        *("--kernel", "laplace", "--bandwidth", "0.5", "-o", "s.parquet", "--json"),
    )
    found = document(run)
    assert (found["file"], found["rows"], found["columns"]) == ("s.parquet", 10, ["visits"])
    assert (found["epsilon"], found["delta"], found["adjacency"]) == (0.1, 1e-6, "one")
    assert found["method"] == "subspace (laplace kernel)"
    assert found["bandwidth"] == 0.5
    assert found["parameters"]["weights"] == "nonnegative"
    assert found["unit"] == "person with at most 3 rows"
    assert SyntheticData.load("s.parquet").weights.min() >= 0


def test_features(cli):
    path = write("a.csv", table())
    asked = ["release", path, *VISITS, *BUDGET, "--method", "features", "--points", "10"]
    assert document(cli(*asked, "-o", "s.parquet", "--json"))["rows"] == 10
    refused(cli(*asked, "-o", "t.parquet", "--weights", "signed"), "weights='signed' needs")


def test_public_points_are_in_the_release(cli):
    path = write("a.csv", table())
    asked = ["release", path, *VISITS, *BUDGET, "-o", "s.parquet", "--public-points"]
    refused(cli(*asked, write("p.csv", pa.table({"visits": [1, 2]}))), "p.csv has no column 'age'")
    twice = write("t.csv", pa.table({"visits": [1, 1], "age": [2, 2]}))
    refused(cli(*asked, twice), "must be distinct")
    given = pa.table({"visits": [1, 30, 60, 79, 11], "age": [2, 70, 50, 20, 33]})
    assert cli(*asked, write("g.csv", given)).code == 0
    assert sorted(SyntheticData.load("s.parquet").columns["visits"]) == [1, 11, 30, 60, 79]


def test_pictures(made, monkeypatch):
    assert made("query", "s.parquet", "plot", "-o", "p.svg").out == "Wrote p.svg.\n"
    assert "plan" in Path("p.svg").read_text()
    refused(made("query", "s.parquet", "plot", "-o", "p.svg"), "'p.svg' exists; pass --force")
    found = document(made("query", "s.parquet", "plot", "-o", "p.svg", "--force", "--json"))
    assert found["file"] == "p.svg"
    refused(made("query", "s.parquet", "plot"), "-o FILE.png")
    refused(made("query", "s.parquet", "plot", "-o", "p.txt"), "must end in .png, .svg, .pdf")
    refused(made("query", "s.parquet", "plot", "-o", "no/p.png"), "p.png cannot be written")
    refused(
        made("query", "s.parquet", "mean", "visits", "-o", "p.png"),
        "--output is for plot, report and rows",
    )
    asked = ["release", "a.csv", "--schema", "a.toml", *BUDGET, "-o", "t.parquet"]
    assert made(*asked, "--plot", "r.png").code == 0
    assert Path("r.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    refused(made(*asked, "--force", "--plot", "x.png"), "matplotlib", "plot")


# --- what must not cost anything --------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*VISITS, "--epsilon", "1", "--delta", "0"), ("delta must be above 0", "Gaussian")),
        ((*VISITS, "--epsilon", "0", "--delta", "1e-6"), ("epsilon",)),
        ((*VISITS, "--epsilon", "1"), ("--delta",)),
        ((*VISITS, *BUDGET, "--points", "81"), ("points must be at most", "80")),
        ((*VISITS, *BUDGET, "--points", "0"), ("--points",)),
        ((*VISITS, *BUDGET, "--kernel", "linear"), ("--kernel",)),
        ((*VISITS, *BUDGET, "--bandwidth", "-1"), ("bandwidth",)),
        ((*VISITS, *BUDGET, "--bandwidth", "nan"), ("bandwidth",)),
        ((*VISITS, *BUDGET, "--columns", "gone"), ("'gone' has no bounds",)),
        (("--bounds", "gone=0:1", *BUDGET), ("no column 'gone'",)),
        (BUDGET, ("no column is described",)),
        ((*VISITS, *BUDGET, "--plot", "a.txt"), ("--plot must end in",)),
        ((*VISITS, *BUDGET, "--plot", "no/a.png"), ("a.png cannot be written",)),
        ((*VISITS, *BUDGET, "--public-points", "gone.csv"), ("gone.csv does not exist",)),
        ((*VISITS, *BUDGET, "--public-points", "./a.csv"), ("must not be the private data",)),
    ],
)
def test_mistakes_cost_nothing(cli, no_noise, arguments, words):
    path = write("a.csv", table())
    refused(cli("release", path, *arguments, "-o", "s.parquet"), *words)
    assert not Path("s.parquet").exists()
    assert cli("ledger", "init", "a", "--epsilon", "1000000000", "--delta", "0.99").code == 0
    entries = document(cli("ledger", "history", "a", "--json"))["entries"]
    assert [entry["kind"] for entry in entries] == ["created"]


def test_files_are_not_overwritten(made):
    asked = ["release", "a.csv", "--schema", "a.toml", *BUDGET]
    before = Path("s.parquet").read_bytes()
    refused(made(*asked, "-o", "s.parquet"), "'s.parquet' exists; pass --force")
    assert Path("s.parquet").read_bytes() == before
    refused(made(*asked, "-o", "s.csv"), "--output must end in .parquet")
    own = write("own.parquet", table())
    again = ["release", own, *asked[2:], "-o", own, "--force"]
    refused(made(*again), "--output must not be the private data")
    assert pq.read_table(own).equals(table())
    refused(made(*asked, "-o", "no/s.parquet"), "s.parquet cannot be written")
    assert made(*asked, "-o", "s.parquet", "--force").code == 0
    assert Path("s.parquet").read_bytes() != before


def test_the_budget_is_kept(cli):
    path = write("a.csv", table())
    asked = ["release", path, *VISITS, "--epsilon", "1", "--delta", "1e-6", "--ledger", "b.db"]
    assert cli("ledger", "init", "a", "--epsilon", "1.5", "--delta", "1e-5", "--ledger", "b.db")
    assert cli(*asked, "-o", "s.parquet").code == 0
    refused(cli(*asked, "-o", "t.parquet"), "budget")
    assert not Path("t.parquet").exists()
    for _ in range(3):  # asking is free
        assert cli("query", "s.parquet", "mean", "visits").code == 0
    run = cli(*asked[:-2], "--no-ledger", "-o", "u.parquet")
    assert run.code == 0
    assert run.err.startswith("No ledger: this was recorded nowhere")


# --- queries that cannot be answered ----------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (("mean",), ("write it as: privatest query FILE mean COLUMN",)),
        (("mean", "a", "b"), ("write it as: privatest query FILE mean COLUMN",)),
        (("about", "visits"), ("write it as: privatest query FILE about",)),
        (("median", "visits"), ("median", "quantile")),
        (("mean", "age"), ("there is no column 'age'", "visits, plan")),
        (("mean", "plan"), ("'plan'", "categories")),
        (("quantile", "visits"), ("quantile COLUMN Q",)),
        (("quantile", "visits", "often"), ("Q must be a number between 0 and 1",)),
        (("quantile", "visits", "1.5"), ("between 0 and 1",)),
        (("probability", "visits >"), ("not a condition",)),
        (("probability", "age > 3"), ("there is no column 'age'",)),
        (("probability", "__import__('os')"), ("not understood",)),
    ],
)
def test_bad_questions(made, words, fragments):
    refused(made("query", "s.parquet", *words), *fragments)


def test_bad_files(made):
    refused(made("query", "gone.parquet", "mean", "visits"), "gone.parquet", "no such file")
    refused(made("query", "a.csv", "mean", "visits"), "a.csv", "not a Parquet file")
    write("rows.parquet", table())
    refused(made("query", "rows.parquet", "mean", "visits"), "is not a release")
    damaged = bytearray(Path("s.parquet").read_bytes())
    damaged[len(damaged) // 3] ^= 255
    Path("d.parquet").write_bytes(bytes(damaged))
    refused(made("query", "d.parquet", "mean", "visits"), "d.parquet", "damaged")
    changed = pq.read_table("s.parquet")
    weights = pa.array(np.ones(changed.num_rows))
    place = changed.schema.get_field_index("weight")
    pq.write_table(changed.set_column(place, "weight", weights), "c.parquet")
    refused(made("query", "c.parquet", "mean", "visits"), "were changed")


def test_weights_that_cancel(cli):
    found = release(
        {"x": np.linspace(0, 1, 100)},
        bounds=(0, 1),
        epsilon=1,
        delta=1e-6,
        n_points=20,
        noise=SimulatedNoise(0),
    )
    weights = np.where(np.arange(20) % 2, 1.0, -1.0)
    SyntheticData(found.columns, weights, weights[:, None], found.facts).save("s.parquet")
    asked = ["query", "s.parquet", "mean", "x"]
    refused(cli(*asked, "--weights", "released"), "nearly cancel", "Pass --weights nonnegative")
    answer = document(cli(*asked, "--json"))
    assert answer["weights"] == "nonnegative"
    assert 0 <= answer["value"] <= 1
    assert answer == document(cli(*asked, "--weights", "nonnegative", "--json"))
    assert "NOT private" in cli(*asked).out


def test_poor_fits_are_named(cli):
    """All of the data is in one corner of six columns, and the points are nearly all elsewhere."""
    names = [f"c{index}" for index in range(6)]
    values = np.linspace(0, 2, 4000)
    path = write("a.csv", pa.table({name: [CANARY, *values] for name in names}))
    wide = [text for name in names for text in ("--bounds", f"{name}=0:100")]
    how = ["--method", "subspace", "--points", "40", "-o", "t.parquet"]
    run = cli("release", path, *wide, *BUDGET, *how)
    assert run.code == 0
    assert "Poorly represented: c0" in run.out
    asked = ("query", "t.parquet", "mean", "c0", "--weights", "nonnegative")
    out = cli(*asked).out
    assert "(no bar; between " in out
    assert "The limits hold with probability .95 or more" in out
    found = document(cli(*asked, "--json"))
    assert found["error"] is None
    assert found["limits"][0] <= 1 <= found["limits"][1]


def test_progress_is_shown_to_people_only(monkeypatch, capsys):
    with progress("Working", counted=True) as step:
        assert step is None
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("Working", counted=True) as step:
        assert step is not None
        step(0.5)
    assert "Working" in capsys.readouterr().err


def test_people_see_bars_one_at_a_time(made, monkeypatch):
    """A spinner around a bar would stop the command: only one of them may be shown."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    write("other.csv", table())
    for question in (("compare", "other.csv"), ("quantile", "visits", "0.5")):
        run = made("query", "s.parquet", *question, "--weights", "nonnegative")
        assert run.code == 0
        assert " ± " in run.out or "no bar" in run.out
    asked = ["release", "a.csv", "--schema", "a.toml", *BUDGET, "-o", "t.parquet"]
    run = made(*asked, "--method", "features", "--points", "10", "--plot", "t.png")
    assert run.code == 0
    assert "Releasing" in run.err


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["quantile", "visits", "50"], "between 0 and 1: 0.5 is the 50% quantile"),
        (["quantile", "visits", "1.01"], "between 0 and 1"),
        (["quantile", "visits", "nan"], "between 0 and 1"),
        (["quantile", "visits", "half"], "between 0 and 1"),
        (["quantile", "gone", "0.5"], "'gone'"),
        (["quantile", "plan", "0.5"], "probability"),
        (["mean", "plan", "--weights", "nonnegative"], "plan == 'A'"),
        (["probability", "gone > 1"], "'gone'"),
        (["probability", "visits >"], "not a condition"),
        (["probability", "plan > 'a'"], "strings"),
        (["compare", "gone.csv", "--weights", "nonnegative"], "does not exist"),
        (["about", "--weights", "released"], "does not go with about"),
        (["mean", "visits", "--where", "gone > 1"], "'gone'"),
        (["mean", "visits", "--by", "gone"], "'gone'"),
        (["mean", "visits", "--by", "visits"], "does not make groups"),
        (["quantile", "visits", "0.5", "--by", "plan"], "--by is for mean and probability"),
        (["about", "--where", "visits > 1"], "--where does not go with about"),
        (["correlation", "visits", "plan"], "'plan'"),
        (["regression", "visits"], "regression TARGET PREDICTOR"),
        (["regression", "visits", "gone"], "'gone'"),
        (["mean", "visits", "--number", "3"], "--number is for rows"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_question_is_refused_before_anything_is_computed(made, monkeypatch, words, fragment):
    def computed(*_: object) -> None:
        raise AssertionError("weights were looked for")

    monkeypatch.setattr(SyntheticData, "nonnegative", computed)
    refused(made("query", "s.parquet", *words), fragment)
