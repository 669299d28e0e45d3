"""Settings of all tests."""

from __future__ import annotations

import os

# Before NumPy is loaded: tests run in parallel already, and threads would only fight.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

# The same examples in every run: a test that fails on some days is a bug.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
