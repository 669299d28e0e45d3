"""Level where it is hardest to hold: tiny samples, tiny budgets, skew, bounds far off the data.

- ``hotelling_test`` of two and three columns, whose covariance is released entry by entry: 5 rows,
  5 against 50, epsilon .1 and 10, skewed, rare and off-centre rows.
- ``ks_2samp`` with private groups, 40 rows in all, epsilon 1 and 20: the cell of the audit itself,
  with its 9 permutations, and the same with 199. Four times the runs.

Run: python -m benchmarks.level.corners [--runs 1000]. Writes results/level-corners.json after each
cell, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import missing, save, stored
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise

ALPHA, NAME = 0.05, "level-corners"
Floats = NDArray[np.float64]
# of values in [0, 1]
LAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "skewed": lambda rng, shape: rng.beta(0.4, 4.0, size=shape),
    "off-centre": lambda rng, shape: rng.normal(0.9, 0.02, shape),
    "rare": lambda rng, shape: (rng.random(shape) < 0.02).astype(np.float64),
}
CORNERS = (
    ("skewed", "5, 5", 0.1),
    ("off-centre", "5, 50", 0.1),
    ("skewed", "5, 50", 10.0),
    ("rare", "5, 50", 10.0),
)


def hotelling(columns: int, law: str, sizes: str, epsilon: float, seed: int) -> bool:
    """Two samples of one law."""
    rng = np.random.default_rng([seed, columns])
    x, y = (LAWS[law](rng, (int(size), columns)) for size in sizes.split(", "))
    own: dict[str, Any] = {"n_bootstrap": 99, "rng": seed, "noise": SimulatedNoise(seed)}
    return pt.hotelling_test(x, y, bounds=(0, 1), epsilon=epsilon, **own).reject


def private_groups(permutations: int, law: str, sizes: str, epsilon: float, seed: int) -> bool:
    """Everybody's group is drawn: the first has a share of one in five, as in the audit's cell."""
    rng = np.random.default_rng([seed, permutations])
    total = int(sizes)
    values, first = LAWS[law](rng, (total, 1))[:, 0], rng.random(total) < 0.2
    own: dict[str, Any] = {"n_permutations": permutations, "rng": seed}
    own |= {"adjacency": "row", "noise": SimulatedNoise(seed)}
    return pt.ks_2samp(values[first], values[~first], epsilon=epsilon, **own).reject


TESTS: dict[str, tuple[Callable[..., bool], int]] = {
    "hotelling_test, 2 columns": (hotelling, 2),
    "hotelling_test, 3 columns": (hotelling, 3),
    "ks_2samp, private groups, 9 permutations": (private_groups, 9),
    "ks_2samp, private groups, 199 permutations": (private_groups, 199),
}


def cells() -> list[dict[str, Any]]:
    """Return the grid."""
    names, keys = list(TESTS), ("test", "law", "sizes", "epsilon")
    ranks = product(names[2:], ("uniform", "skewed"), ("40",), (1.0, 20.0))
    means = [(name, *corner) for name in names[:2] for corner in CORNERS]
    return [dict(zip(keys, values, strict=True)) for values in (*ranks, *means)]


def measured(cell: dict[str, Any], runs: int) -> dict[str, Any]:
    """Return how often a true hypothesis is rejected."""
    test, size = TESTS[cell["test"]]
    runs *= 4 if test is private_groups else 1
    given = (size, cell["law"], cell["sizes"], cell["epsilon"])
    rate = sum(test(*given, seed) for seed in range(runs)) / runs
    errors = (rate - ALPHA) / (ALPHA * 0.95 / runs) ** 0.5
    return {"runs": runs, "rejected": rate, "standard_errors": errors}


def main() -> None:
    """Measure every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    rows = stored(NAME, runs)
    for cell in track(cells(), description="level"):
        if missing(rows, cell):
            rows.append(cell | measured(cell, runs))
            save(NAME, {"runs": runs, "alpha": ALPHA, "rows": rows})
    print_table(f"level ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])
    print("highest:", max(row["standard_errors"] for row in rows), "standard errors above .05")


if __name__ == "__main__":
    main()
