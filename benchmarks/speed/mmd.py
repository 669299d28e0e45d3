"""Speed of mmd_test against the paper's algorithm in plain NumPy, in one run, as ratios."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import privatest as pt
from benchmarks.measure import best_time, peak_memory, save, start
from benchmarks.reference import mmd_decision
from benchmarks.report import print_table

PERMUTATIONS = 1999


def samples(n: int, d: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two samples from the uniform law on the unit cube."""
    rng = np.random.default_rng(n + d)
    return rng.uniform(size=(n, d)), rng.uniform(size=(n, d))


def reference(n: int, d: int) -> Callable[[], object]:
    """Return a call of the plain NumPy version."""
    x, y = samples(n, d)
    rng = np.random.default_rng(1)
    return lambda: mmd_decision(
        x, y, epsilon=1, bandwidth=d**0.5, rng=rng, n_permutations=PERMUTATIONS
    )


def ours(n: int, d: int, **options: object) -> Callable[[], object]:
    """Return a call of mmd_test, secure noise and all."""
    x, y = samples(n, d)
    options = {"n_permutations": PERMUTATIONS} | options
    return lambda: pt.mmd_test(x, y, epsilon=1, bounds=(0, 1), **options)  # type: ignore[call-overload]


def main() -> None:
    """Measure, print the table, write the JSON."""
    start = time.perf_counter()
    ours(100, 1)()  # imports and caches
    rows = []
    base_1, base_50 = best_time(reference(3000, 1), 3), best_time(reference(3000, 50), 3)
    rows.append(["reference, n = m = 3000, d = 1", base_1, None, None])
    rows.append(["reference, n = m = 3000, d = 50", base_50, None, None])
    for label, base, target, call in (
        ("one bandwidth, d = 1", base_1, 20, ours(3000, 1, bandwidths=1.0)),
        ("adaptive (default), d = 1", base_1, 5, ours(3000, 1)),
        (
            "exact kernel, one bandwidth, d = 50",
            base_50,
            5,
            ours(3000, 50, bandwidths=50**0.5, method="exact"),
        ),
        ("private groups (row), d = 1", base_1, None, ours(3000, 1, adjacency="row")),
    ):
        seconds = best_time(call, 5)
        rows.append([label, seconds, base / seconds, target])
    large = ours(1_000_000, 10, n_permutations=999)
    memory = peak_memory(large) / 1e9
    seconds = best_time(large, 2)
    rows.append(["n = m = 1,000,000, d = 10, default", seconds, base_1 / seconds, 1])
    half, whole = best_time(ours(250_000, 10), 2), best_time(ours(500_000, 10), 2)
    rows.append(["n = m = 250,000, d = 10", half, None, None])
    rows.append(["n = m = 500,000, d = 10", whole, None, None])
    print_table(
        "mmd_test against plain NumPy (2000 statistics)",
        ["case", "seconds", "times faster", "asked for"],
        rows,
    )
    print(f"memory above the data at n = m = 1,000,000: {memory:.2f} GB (asked for: below 1)")
    print(f"doubling n at 500,000: {whole / half:.2f} times the time (asked for: below 2.3)")
    save(
        "speed-mmd",
        {
            "cases": [
                dict(zip(("case", "seconds", "ratio", "target"), row, strict=True)) for row in rows
            ],
            "memory_gb": memory,
            "doubling": whole / half,
            "total_seconds": time.perf_counter() - start,
        },
    )


if __name__ == "__main__":
    start(main, __doc__)
