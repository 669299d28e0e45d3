"""Tests that need the order of all rows, of more rows than are held: passes, time and memory.

Run: python -m benchmarks.scale.order --rows 50000000. Rows are made as they are read, so that no
disk is needed; the time of making them is in every pass. Writes results/scale-order.json.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import privatest as pt
from benchmarks.measure import save
from privatest.data.engines import EngineConfig
from privatest.data.sources import Part, Source
from privatest.numerics import order as value_cells
from privatest.numerics import order as value_order

PART = 1 << 20


@dataclass(frozen=True)
class Made(Part):
    """Normal values that follow from a seed; rounded ones have many ties."""

    seed: int
    rows: int
    digits: int | None
    label: str = "made-up rows"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        values = np.random.default_rng(self.seed).standard_normal(self.rows)
        if self.digits is not None:
            values = np.round(values, self.digits)
        yield pa.record_batch({columns[0]: values})


def sample(first: int, rows: int, digits: int | None, threads: int) -> Source:
    """Return rows in parts of about a million."""
    starts = range(0, rows, PART)
    parts = tuple(Made(first + start, min(PART, rows - start), digits) for start in starts)
    return Source(("value",), parts, EngineConfig(threads=threads))


def measured(run: Callable[[], Any]) -> dict[str, Any]:
    """Run a test; count its passes."""
    passes, summarise = [0], value_cells.summarise  # type: ignore[attr-defined]

    def counting(*asked: Any) -> Any:
        passes[0] += 1
        return summarise(*asked)

    value_cells.summarise = counting  # type: ignore[attr-defined]
    wall, processor = time.perf_counter(), time.process_time()
    try:
        run()
    finally:
        value_cells.summarise = summarise  # type: ignore[attr-defined]
    return {
        "passes": passes[0],
        "seconds": round(time.perf_counter() - wall, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000, help="of each of two samples")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ties", action="store_true", help="values of one digit")
    chosen = parser.parse_args()
    if 2 * chosen.rows <= value_order.HELD_ROWS:
        raise SystemExit(f"--rows must be above {value_order.HELD_ROWS // 2:,}: others are held.")
    digits, kind = (1, "ties") if chosen.ties else (None, "no ties")
    x, y = (sample(first, chosen.rows, digits, chosen.threads) for first in (0, 1 << 40))
    tests: dict[str, Callable[[], Any]] = {
        "ks_2samp": lambda: pt.ks_2samp(x, y, epsilon=1),
        "median_test": lambda: pt.median_test(x, y, epsilon=1),
        "mannwhitneyu": lambda: pt.mannwhitneyu(x, y, epsilon=1),
    }
    found: dict[str, Any] = {
        "rows": 2 * chosen.rows,
        "threads": chosen.threads,
        "runs": 1,
        "values": kind,
    }
    for name, run in tests.items():
        found[name] = measured(run)
        print(name, kind, found[name], flush=True)
        save("scale-order" + "-ties" * chosen.ties, found)


if __name__ == "__main__":
    main()
