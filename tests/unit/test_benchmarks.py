"""Asking a benchmark for help runs nothing, and overwrites no result."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks import measure
from benchmarks.level import groups

FOLDER = Path(measure.__file__).parent
PROGRAMS = [
    "benchmarks",
    *sorted(
        f"benchmarks.{path.parent.name}.{path.stem}"
        for path in FOLDER.glob("*/*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    ),
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_help(program, monkeypatch, capsys):
    def measured(*_: object) -> None:
        raise AssertionError("it ran")

    for name in ("best_time", "peak_memory", "save"):
        monkeypatch.setattr(measure, name, measured)
    monkeypatch.setattr(sys, "argv", [program, "--help"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module(program, run_name="__main__")
    assert stop.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_a_benchmark_that_is_not_there(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "speed"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("benchmarks", run_name="__main__")
    assert stop.value.code == 2
    assert "there are mmd, hsic" in capsys.readouterr().err


def test_no_cell_of_the_levels_of_means_exceeds_what_is_promised():
    """What docs/figures.md shows: the worst of 146 cells is within 3 standard errors."""
    rows = json.loads((measure.RESULTS / "level-groups.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) == len(groups.cases())
    assert max(row[f"excess {alpha}"] for row in rows for alpha in groups.ALPHAS) < 3
    page = (FOLDER.parent / "docs" / "figures.md").read_text(encoding="utf-8")
    assert all(" | ".join(line) in page for line in groups.summary(rows))
