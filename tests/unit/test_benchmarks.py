"""Asking a benchmark for help runs nothing, and overwrites no result."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from benchmarks import measure

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
