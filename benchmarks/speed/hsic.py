"""Speed of hsic_test against the paper's algorithm in plain NumPy, in one run, as ratios.

And against the authors' way with JAX where that is installed, in processor seconds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import privatest as pt
from benchmarks.compiled import hsic_call
from benchmarks.measure import best_time, peak_memory, processor_time, save, start
from benchmarks.reference import hsic_decision
from benchmarks.report import print_table

PERMUTATIONS = 1999
REFERENCE_PERMUTATIONS = 199  # timed with a tenth of them: they all cost the same


def reference(n: int, d: int) -> float:
    """Seconds that the plain NumPy version needs, extrapolated from a tenth of it."""
    rng = np.random.default_rng(n + d)
    x, y = rng.uniform(size=(n, d)), rng.uniform(size=(n, d))

    def run(count: int) -> float:
        return best_time(
            lambda: hsic_decision(x, y, epsilon=1, bandwidth=d**0.5, rng=rng, n_permutations=count),
            1,
        )

    few, more = run(1), run(1 + REFERENCE_PERMUTATIONS)
    return few + (more - few) * (PERMUTATIONS - 1) / REFERENCE_PERMUTATIONS


def ours(n: int, d: int, **options: object) -> Callable[[], object]:
    """Return a call of hsic_test, secure noise and all."""
    rng = np.random.default_rng(n + d)
    x, y = rng.uniform(size=(n, d)), rng.uniform(size=(n, d))
    options = {"n_permutations": PERMUTATIONS, "bounds_x": (0, 1), "bounds_y": (0, 1)} | options
    return lambda: pt.hsic_test(x, y, epsilon=1, **options)  # type: ignore[call-overload]


def against_compiled(n: int) -> list[list[object]]:
    """Processor seconds of the default test and of compiled code, in turn; none without JAX."""
    rng = np.random.default_rng(n)
    compiled = hsic_call(rng.uniform(size=(n, 1)), rng.uniform(size=(n, 1)), PERMUTATIONS)
    if compiled is None:
        return []
    calls = {
        f"n = {n}, d = 1 + 1, default grid, 1000 statistics": ours(n, 1, n_permutations=999),
        f"n = {n}, d = 1 + 1, default grid, 2000 statistics": ours(n, 1),
    }
    base = processor_time(compiled, 3)
    rows: list[list[object]] = [[f"JAX, n = {n}, one bandwidth, 2000 statistics", base, None, None]]
    for label, call in calls.items():
        seconds = processor_time(call, 5)
        rows.append([label + ", against JAX", seconds, base / seconds, 50])
    return rows


def main() -> None:
    """Measure, print the table, write the JSON."""
    ours(100, 1, n_permutations=9)()  # imports and caches
    base_1, base_20 = reference(3000, 1), reference(3000, 20)
    large = ours(200_000, 1)
    memory = peak_memory(large) / 1e9
    rows: list[list[object]] = [
        ["reference, n = 3000, d = 1 + 1", base_1, None, None],
        ["reference, n = 3000, d = 20 + 20", base_20, None, None],
    ]
    for label, base, target, call in (
        ("adaptive (default), d = 1 + 1", base_1, 30, ours(3000, 1)),
        ("one bandwidth, d = 1 + 1", base_1, 30, ours(3000, 1, bandwidths_x=1, bandwidths_y=1)),
        ("adaptive (default), d = 20 + 20", base_20, 5, ours(3000, 20)),
        ("n = 200,000, d = 1 + 1, default", base_1, 1, large),
    ):
        seconds = best_time(call, 2)
        rows.append([label, seconds, base / seconds, target])
    rows += against_compiled(1000)
    print_table(
        "hsic_test against plain NumPy (2000 statistics)",
        ["case", "seconds", "times faster", "asked for"],
        rows,
    )
    print(f"memory above the data at n = 200,000: {memory:.2f} GB (asked for: below 2)")
    save(
        "speed-hsic",
        {
            "cases": [
                dict(zip(("case", "seconds", "ratio", "target"), row, strict=True)) for row in rows
            ],
            "memory_gb": memory,
        },
    )


if __name__ == "__main__":
    start(main, __doc__)
