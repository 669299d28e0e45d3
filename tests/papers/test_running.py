"""The runner of experiments, what it keeps, and what comes with the package."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from privatest.cli import main
from privatest.core.errors import ParameterError
from privatest_papers.entries import all_experiments, experiment
from privatest_papers.experiment import Arm, Experiment, Point
from privatest_papers.results import Row, Rows, load, shipped
from privatest_papers.running import run_experiment

CALLS: list[int] = []


def coin(study, settings, seed):
    """Reject with a probability that is given: always at 1, never at 0, nowhere without one."""
    CALLS.append(seed)
    draw = np.random.default_rng([seed, study["salt"]]).random()
    shares = [each["share"] for each in settings]
    return [[None if share is None else draw < share for share in shares]]


def made_up(**changes) -> Experiment:
    shares = (0.0, 0.5, 1.0, None)
    points = tuple(Point("only", x, {"salt": 1}, {"share": s}) for x, s in enumerate(shares))
    arms = (Arm(("coin",), "paper", coin), Arm(("rare coin",), "ours", coin, 0.1))
    whole = Experiment(
        name="coins",
        paper="Nobody (2000)",
        figure="figure 0",
        title="coins",
        says="",
        differs="",
        proofs=(),
        measure="power",
        axis="x",
        points=points,
        arms=arms,
        runs=60,
    )
    return replace(whole, **changes)


def test_runs_are_counted_and_points_share_their_data():
    CALLS.clear()
    found = run_experiment(made_up(), seed=3)
    assert len(CALLS) == 60 + 6  # once for all points; a tenth for the arm that takes long
    none, half, every = found.at("only", "coin")  # where a method cannot be run there is no row
    assert (none.mean, every.mean, none.runs) == (0, 1, 60)
    assert 0.2 < half.mean < 0.8  # a fixed seed
    assert half.band[0] < half.mean < half.band[1]
    assert found.at("only", "rare coin")[0].runs == 6


def test_the_answer_does_not_depend_on_workers_or_interruptions(tmp_path):
    whole = run_experiment(made_up(), seed=1)
    assert run_experiment(made_up(), seed=1, workers=2).rows == whole.rows
    cache = tmp_path / "kept.jsonl"
    run_experiment(made_up(), runs=25, seed=1, cache=cache)
    CALLS.clear()
    again = run_experiment(made_up(), seed=1, cache=cache)
    assert again.rows == whole.rows
    assert len(CALLS) == 35 + 6  # the first 25 were kept; blocks of the rare arm were smaller
    run_experiment(made_up(), seed=1, cache=cache)
    assert len(CALLS) == 35 + 6


def test_progress_ends_at_the_whole():
    told: list[tuple[int, int]] = []
    run_experiment(made_up(), progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (66, 66)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_files_keep_what_has_more_runs(tmp_path):
    few = Rows(
        "coins", (Row("only", 1, "a", "paper", 10, 5, 5), Row("only", 2, "a", "paper", 9, 1, 1))
    )
    many = Rows("coins", (Row("only", 1, "a", "paper", 20, 8, 8),))
    both = few.with_more(many)
    assert [row.runs for row in both.at("only", "a")] == [20, 9]
    both.save(tmp_path / "coins.json")
    assert load(tmp_path / "coins.json") == both
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(ParameterError, match="reproduce run"):
        load(tmp_path / "other.json")


def test_errors_of_distances_come_from_their_spread():
    values = [0.1, 0.2, 0.4]
    row = Row("p", 1, "m", "ours", 3, sum(values), sum(v * v for v in values))
    assert row.error == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
    assert row.band[0] == pytest.approx(row.mean - 1.96 * row.error)


@pytest.mark.parametrize("name", list(all_experiments()))
def test_entries_are_whole(name):
    entry = experiment(name)
    assert entry.name == name
    methods = [method for arm in entry.arms for method in arm.names]
    assert len(set(methods)) == len(methods)
    assert {"paper"} <= set(entry.methods.values()) <= {"paper", "ours"}
    assert all(set(point.published) <= set(methods) for point in entry.points)
    places = [(point.panel, point.x) for point in entry.points]
    assert len(set(places)) == len(places)
    json.dumps([[dict(point.study), dict(point.settings)] for point in entry.points])
    known = {(point.panel, round(point.x, 10)) for point in entry.points}
    for row in shipped(entry).rows:  # results are of the entry as it is now
        assert row.method in methods
        assert (row.panel, round(row.x, 10)) in known


def test_an_unknown_name():
    with pytest.raises(ParameterError, match="reproduce list"):
        experiment("kim-schrab-99")


def test_the_command_lists_and_shows(capsys, tmp_path):
    assert main(["reproduce", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["experiments"]
    assert {each["name"] for each in listed} == set(all_experiments())
    picture = tmp_path / "a.png"
    assert main(["reproduce", "show", "kim-schrab-2", "--plot", str(picture)]) == 0
    assert "published 0.835" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["reproduce", "show", "kim-schrab-2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["points"]) == 18


def test_the_command_refuses_what_it_cannot_do(capsys):
    assert main(["reproduce", "run", "kim-schrab-2", "--method", "dpMDM"]) == 2
    assert "dpMMD" in capsys.readouterr().err
    assert main(["reproduce", "run", "kim-schrab-2", "--quick", "--runs", "7"]) == 2
    assert main(["reproduce", "show", "kim-schrab-2", "--plot", "a.doc"]) == 2
