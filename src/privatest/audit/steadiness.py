"""Time, steps and memory on rows of the same public sizes: constant, spread, extreme, tied.

What is promised: a curator answers at public times, and no test of the catalogue takes a number
of steps that depends grossly on values unless its entry says so. Smaller differences are
measured, and not promised to be absent: caches, branches of libraries and sorting are not secret.
All runs are given the same released numbers: how long it takes to compute from them is
post-processing, as the answer is.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.audit.cases import Case
from privatest.audit.findings import Finding
from privatest.audit.running import attempt
from privatest.core.noise import AuditHook, SimulatedNoise
from privatest.data.schema import CategoricalColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["attack_time"]

ROWS = 100
_REPEATS = 3  # the least time of as many runs, taken in turns: what else runs here adds, not takes
_GROSS_RATIO, _GROSS_SECONDS, _GROSS_STEPS = 5.0, 0.1, 50_000


def attack_time(case: Case, seed: int) -> Finding:
    """Measure runs on rows of several kinds."""
    tables = _tables(case, seed)
    first = AuditHook()
    attempt(case, next(iter(tables.values())), SimulatedNoise(seed, audit=first), seed)

    def run(kind: str) -> None:
        audit = AuditHook(first.released)
        attempt(case, tables[kind], SimulatedNoise(seed, audit=audit), seed)

    seconds = dict.fromkeys(tables, float("inf"))
    for _ in range(_REPEATS):
        for kind in tables:
            start = time.perf_counter()
            run(kind)
            seconds[kind] = min(seconds[kind], time.perf_counter() - start)
    steps = {kind: _steps(partial(run, kind)) for kind in tables}
    memory = {kind: _memory(partial(run, kind)) for kind in tables}
    slow, quick = max(seconds.values()), min(seconds.values())
    many, few = max(steps.values()), min(steps.values())
    gross = slow > _GROSS_RATIO * quick and slow - quick > _GROSS_SECONDS
    gross |= many > _GROSS_RATIO * few and many - few > _GROSS_STEPS
    told = f"time ratio {slow / quick:.2f}, steps {many / few:.2f}"
    if case.caution:
        told += f"; not promised: {case.caution}"
    numbers = {
        "seconds": seconds,
        "steps": steps,
        "peak_bytes": memory,
        "promised": not case.caution,
    }
    return Finding("time", bool(case.caution) or not gross, told, numbers)


def _tables(case: Case, seed: int) -> dict[str, pa.Table]:
    """Return rows of the same sizes whose values are as different as can be."""
    import pyarrow as pa  # noqa: PLC0415

    rng, rows = np.random.default_rng(seed), max(ROWS, case.rows)
    found: dict[str, pa.Table] = {}
    for kind in ("constant", "spread", "extreme", "ties"):
        columns: dict[str, Any] = {}
        for name, column in case.schema.columns.items():
            if name == "arm":
                columns[name] = ["a"] * (rows // 2) + ["b"] * (rows - rows // 2)
            elif isinstance(column, CategoricalColumn):
                codes = rng.integers(len(column.categories), size=rows) * (kind != "constant")
                columns[name] = [column.categories[i] for i in codes]
            else:
                columns[name] = _numbers(kind, column, rows, rng)
        found[kind] = pa.table(columns)
    return found


def _numbers(kind: str, column: Any, rows: int, rng: np.random.Generator) -> Any:
    low, high = column.lower, column.upper
    if column.integer:
        drawn = rng.integers(int(low), int(high) + 1, size=rows)
        return np.full(rows, int(low)) if kind == "constant" else drawn
    if kind == "constant":
        return np.full(rows, low)
    if kind == "extreme":
        return np.where(rng.random(rows) < 0.5, low - 1e6 * (high - low), np.nextafter(high, low))
    spread = rng.uniform(low, high, size=rows)
    return spread if kind == "spread" else np.where(spread > (low + high) / 2, high, low)


def _steps(run: Callable[[], None]) -> int:
    """Count calls of functions, Python's and C's: no clock, the same in every run."""
    count = [0]

    def counted(frame: Any, event: str, argument: Any) -> None:
        del frame, argument
        if event in ("call", "c_call"):
            count[0] += 1

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count[0]


def _memory(run: Callable[[], None]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
