"""Settings of all tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

# Before NumPy is loaded: tests run in parallel already, and threads would only fight.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Workers and the programs that tests start, hundreds of them, compile the package once together.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import pytest
from hypothesis import HealthCheck, settings

from tests.connections import watch_connections

HERE = Path(__file__).parent
MARKS = {"e2e": "e2e", "privacy": "privacy", "sensitivity": "privacy", "statistical": "statistical"}
# Run after everything else, in this order: the longest do not begin when all others have ended.
LATE = ("slow", "e2e", "privacy", "statistical")
SLOW = 5.0  # seconds of processor time

# The same examples in every run, and no clock: a test that fails on some days is a bug.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # on a machine that is busy
)
settings.load_profile("repeatable")

watch_connections()  # "error" in filterwarnings makes a forgotten one fail


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, so that no file can forget it; quick ones come first."""
    for item in items:
        folder = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
        if folder in MARKS:
            item.add_marker(MARKS[folder])
    items.sort(key=lateness)


def lateness(item: pytest.Item) -> int:
    return min(
        (LATE.index(mark.name) + 1 for mark in item.iter_markers() if mark.name in LATE), default=0
    )


# --- a test that starts a program is marked e2e -----------------------------------------------

_start = subprocess.Popen.__init__
_current: list[pytest.Item] = []


def _watched(process: Any, *arguments: Any, **options: Any) -> None:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == subprocess.__file__:
        frame = frame.f_back
    from_a_test = Path(frame.f_code.co_filename).is_relative_to(HERE)  # not from Matplotlib, say
    if from_a_test and _current and not _current[0].get_closest_marker("e2e"):
        pytest.fail("it starts a program: mark it e2e")
    _start(process, *arguments, **options)


subprocess.Popen.__init__ = _watched  # type: ignore[assignment, method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _current[:] = [item]
    try:
        return (yield)
    finally:
        _current.clear()


# --- a test that takes long is marked slow ----------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    start = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        seconds = sum(os.times()[:4]) - start
        if seconds > SLOW and not item.get_closest_marker("slow"):
            item.user_properties.append(("unmarked", seconds))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name them: no failure, as how long a test takes depends on the machine."""
    found = [
        f"{seconds:.0f} s  {report.nodeid}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, seconds in report.user_properties
        if name == "unmarked"
    ]
    if found:
        terminalreporter.section(f"over {SLOW:g} seconds of processor time and not marked slow")
        terminalreporter.write_line("\n".join(sorted(found, reverse=True)))
