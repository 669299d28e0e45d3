"""Settings of all tests."""

from __future__ import annotations

import os
from pathlib import Path

# Before NumPy is loaded: tests run in parallel already, and threads would only fight.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings

MARKS = {"e2e": "e2e", "privacy": "privacy", "sensitivity": "privacy", "statistical": "statistical"}

# The same examples in every run: a test that fails on some days is a bug.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, so that no file can forget it."""
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0] if item.path.is_relative_to(here) else ""
        if folder in MARKS:
            item.add_marker(MARKS[folder])
