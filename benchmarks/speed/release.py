"""Speed and memory of release: Algorithm 1, secure noise and all.

Run: python -m benchmarks.speed.release. Writes results/speed-release.json.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import peak_memory, save, start
from benchmarks.report import print_table
from privatest.synthetic import release


def timed(call: Callable[[], object]) -> tuple[float, float, float]:
    """Seconds on the clock, seconds of all processors, and gigabytes above the start."""
    clock, used = time.perf_counter(), time.process_time()
    memory = peak_memory(call)
    return time.perf_counter() - clock, time.process_time() - used, memory / 1e9


def main() -> None:
    """Measure, print the table, write the JSON."""
    rng = np.random.default_rng(0)
    small, large = rng.normal(size=(100_000, 2)), rng.uniform(size=(5_000_000, 2))
    points = rng.normal(scale=3, size=(1000, 2))
    release(small[:1000], bounds=(-3, 3), epsilon=1, delta=1e-6, n_points=10)  # imports

    def paper() -> object:
        return release(small, public_points=points, bandwidth=0.85, epsilon=1, delta=1e-6)

    def scale() -> object:
        return release(large, bounds=(0, 1), epsilon=1, delta=1e-6, n_points=500)

    rows: list[list[object]] = [
        ["N = 100,000, D = 2, M = 1000", *timed(paper), "below 3 s"],
        ["N = 5,000,000, D = 2, M = 500", *timed(scale), "below 1 GB"],
    ]
    names = ["case", "seconds", "processor seconds", "GB above the data", "asked for"]
    print_table("release, Algorithm 1", names, rows)
    save("speed-release", [dict(zip(names, row, strict=True)) for row in rows])


if __name__ == "__main__":
    start(main, __doc__)
