"""``privatest plan``: tables at once, simulation that is kept, and nothing that reads data."""

from __future__ import annotations

import json

import pytest

from tests.e2e.command_line import GROUP, refused, table, write

SIZE = ["plan", "size", "--effect", "0.5", "--epsilon", "1", "--method", "ks"]


def test_size_with_the_price_of_privacy(cli):
    run = cli(*SIZE)
    assert run.code == 0
    assert "people in each group to see a shift of 0.5" in run.out
    assert "price of privacy" in run.out
    assert "no data was read" in run.out
    assert "█" in run.out


def test_what_was_simulated_is_kept(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = [*SIZE, "--refine", "--runs", "40", "--workers", "1", "--json"]
    first = json.loads(cli(*words).out)
    assert first["source"].startswith("simulation")
    monkeypatch.setattr("privatest.planning.simulation._block", None)  # nothing is run again
    assert json.loads(cli(*words).out) == first
    kept = [path.suffix for path in tmp_path.rglob("*.*") if path.is_file()]
    assert kept == [".json"]
    run = cli(*words, "--no-cache")
    assert run.code == 1


def test_pictures(cli):
    pytest.importorskip("matplotlib")
    for command in (SIZE, ["plan", "recommend", "--n", "90", "--epsilon", "1"]):
        for ending in ("png", "svg"):
            assert cli(*command, "--plot", f"p.{ending}").code == 0
    refused(cli(*SIZE, "--plot", "p.txt"), "--plot must end in")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*SIZE, "--power", "0.05"], "power must be above alpha"),
        ([*SIZE[:3], "4", *SIZE[4:]], "effect must keep values within the bounds"),
        ([*SIZE, "--method", "nothing"], "method must be one of"),
        ([*SIZE, "--kind", "nothing"], "kind must be one of"),
        ([*SIZE, "--kind", "scale"], "effect must"),
        (["plan", "epsilon", "--n", "20", "--effect", "0.2"], "because of sampling error alone"),
        (["plan", "power", "--n", "many", "--effect", "0.2", "--epsilon", "1"], "n must be"),
    ],
)
def test_refusals(cli, words, message):
    if "scale" in words:
        words[3] = "-1"
    refused(cli(*words), message)


def test_a_far_better_test_is_named_before_the_charge(cli, monkeypatch):
    path = write("a.csv", table())
    words = ["two-sample", path, *GROUP, "--epsilon", "1", "--no-ledger", "--method", "mean"]
    run = cli(*words)
    assert run.code == 0
    assert run.err.startswith("note: to see a shift of 1.6 at these sizes")
    assert "--method mann-whitney" in run.err
    assert run.err.count("note:") == 1
    assert "times the sampling error" in run.out
    monkeypatch.setenv("PRIVATEST_QUIET", "1")
    quiet = cli(*words)
    assert "note:" not in quiet.err
    assert "sampling error" not in quiet.out


def test_the_note_does_not_depend_on_values(cli):
    """The same sizes, other values: the same note and the same line."""
    notes = set()
    for place, factor in enumerate((1, 0)):
        rows = table()
        visits = [factor * value for value in rows["visits"].to_pylist()]
        rows = rows.set_column(rows.schema.get_field_index("visits"), "visits", [visits])
        path = write(f"b{place}.csv", rows)
        run = cli("two-sample", path, *GROUP, "--epsilon", "1", "--no-ledger", "--method", "mean")
        line = next(line for line in run.out.splitlines() if "sampling error" in line)
        notes.add((run.err, line))
    assert len(notes) == 1
