"""Speed and memory of me_test at two million rows a sample, against one pass for its features.

Run: python -m benchmarks.speed.embedding. Writes results/speed-embedding.json.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import best_time, peak_memory, save, start
from benchmarks.report import print_table
from privatest.methods.embedding import me_permutation_test, me_test

ROWS, COLUMNS, LOCATIONS = 2_000_000, 10, 10
BLOCK = 8192


def one_pass(
    x: NDArray[np.float64], y: NDArray[np.float64], locations: NDArray[np.float64], width: float
) -> NDArray[np.float64]:
    """Mean Gaussian kernel values at the locations, in blocks: the least that any test must do."""
    total = np.zeros(len(locations))
    for sample in (x, y):
        for first in range(0, len(sample), BLOCK):
            block = sample[first : first + BLOCK]
            squares = (
                np.einsum("ij,ij->i", block, block)[:, None]
                + np.einsum("ij,ij->i", locations, locations)
                - 2 * block @ locations.T
            )
            total += np.exp(-squares / width**2).sum(axis=0)
    return total / len(x)


def main() -> None:
    """Measure, print the table, write the JSON."""
    rng = np.random.default_rng(0)
    x, y = rng.random((2, ROWS, COLUMNS))
    locations = rng.random((LOCATIONS, COLUMNS))
    width = float(np.sqrt(COLUMNS) / 2)
    shared: dict[str, Any] = {
        "locations": locations,
        "bounds": (0, 1),
        "bandwidth": width,
        "epsilon": 1,
    }
    me_test(x[:100], y[:100], delta=1e-6, **shared)  # imports
    base = best_time(lambda: one_pass(x, y, locations, width), 3)
    calls = {
        "moments": lambda: me_test(x, y, delta=1e-6, **shared),
        "statistic": lambda: me_test(x, y, release="statistic", **shared),
        "permutation": lambda: me_permutation_test(x, y, **shared),
    }
    rows: list[list[object]] = [["one pass for the features", base, 1.0, None]]
    for name, call in calls.items():
        seconds = best_time(call, 2)
        rows.append([name, seconds, seconds / base, peak_memory(call) / 1e6])
    names = ("case", "seconds", "times one pass", "MB above the data")
    print_table("n = m = 2,000,000, d = 10, J = 10", list(names), rows)
    save("speed-embedding", [dict(zip(names, row, strict=True)) for row in rows])


if __name__ == "__main__":
    start(main, __doc__)
