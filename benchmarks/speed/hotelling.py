"""Time of a whole hotelling_test with 999 replicates, with the default noise.

Run: python -m benchmarks.speed.hotelling. Writes results/speed-hotelling.json.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import numpy as np

from benchmarks.measure import best_time, save, start
from benchmarks.report import print_table
from privatest.methods.means import hotelling_test

# dimension, n, epsilon, delta, seconds asked for; isotropic and stretched data differ in how
# concentrated the axes are
CASES = [
    (1, 1000, 1.0, 0.0, None),
    (10, 1000, 1.0, 0.0, 2.0),
    (10, 100_000, 5.0, 0.0, 2.0),
    (10, 1000, 1.0, 1e-6, 2.0),
    (30, 1000, 1.0, 0.0, 15.0),
    (30, 100_000, 5.0, 0.0, 15.0),
    (30, 1000, 1.0, 1e-6, 15.0),
    (64, 1000, 1.0, 0.0, 2.0),
    (64, 100_000, 5.0, 0.0, 2.0),
]


def main() -> None:
    """Measure, print the table, write the JSON."""
    rng = np.random.default_rng(0)
    rows = []
    for dimension, n, epsilon, delta, asked in CASES:
        spread = np.linspace(1.0, 0.1, dimension)
        x, y = rng.uniform(-1, 1, size=(2, n, dimension)) * spread

        def call(
            x: object = x, y: object = y, epsilon: float = epsilon, delta: float = delta
        ) -> object:
            return hotelling_test(x, y, bounds=(-1, 1), epsilon=epsilon, delta=delta, rng=0)

        case = f"d = {dimension}, n = {n:,}, epsilon = {epsilon:g}"
        case = f"{case}, delta = {delta:g}" if delta else case
        rows.append([case, best_time(call, 3 if dimension < 30 else 2), asked])
    print_table("hotelling_test, 999 replicates", ["case", "seconds", "asked for"], rows)
    save(
        "speed-hotelling",
        [dict(zip(("case", "seconds", "target"), row, strict=True)) for row in rows],
    )


if __name__ == "__main__":
    start(main, __doc__)
