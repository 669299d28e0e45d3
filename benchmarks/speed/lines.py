"""Processor time of tests on a line, at a million rows and more: sorted values, cells, ranks.

Run: python -m benchmarks.speed.lines [--label after] [--rows 1000000]. Writes
results/speed-lines.json; other labels and numbers of rows in it stay. Against an older version,
set PYTHONPATH to its sources and name a label; cases that it does not have are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np

import privatest as pt
from benchmarks.measure import RESULTS, processor_time, save
from benchmarks.report import print_table


def cases(rows: int) -> dict[str, Callable[[], object]]:
    """Return calls on ``rows`` rows, half in each of two groups."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, rows // 2))
    z, box = rng.normal(size=rows), {"bounds": (-5.0, 5.0)}
    wide_x, wide_y = rng.random((2, rows // 20, 3))
    ks: Any = pt.ks_2samp
    ipm: Any = pt.ipm_test
    fit: Any = pt.ks_1samp
    found: dict[str, Callable[[], object]] = {
        "np.sort of all rows": lambda: np.sort(z),
        "ks_2samp": lambda: ks(x, y, epsilon=1),
        "ks_2samp, grid=1024": lambda: ks(x, y, epsilon=1, grid=1024, **box),
        "ks_1samp": lambda: fit(z, "norm(0, 1)", epsilon=1),
        "ks_1samp, grid=1024": lambda: fit(z, "norm(0, 1)", epsilon=1, grid=1024, **box),
        "mannwhitneyu": lambda: pt.mannwhitneyu(x, y, epsilon=1),
        "mannwhitneyu, private groups": lambda: pt.mannwhitneyu(x, y, epsilon=1, adjacency="row"),
        "median_test": lambda: pt.median_test(x, y, epsilon=1),
        "wilcoxon": lambda: pt.wilcoxon(x, y, epsilon=1),
        "sign_test": lambda: pt.sign_test(x, y, epsilon=1),
        "symmetry_test": lambda: pt.symmetry_test(x, y, epsilon=1),
    }
    private: dict[str, Any] = {"adjacency": "row", "epsilon": 1}
    found |= {
        "ks_2samp, private groups": lambda: ks(x, y, **private),
        "ks_2samp, private groups, grid=1024": lambda: ks(x, y, grid=1024, **private, **box),
        "kuiper, private groups": lambda: ks(x, y, statistic="kuiper", **private),
        "ks_2samp, private groups, epsilon=.01": lambda: ks(x, y, **private | {"epsilon": 0.01}),
        "wasserstein": lambda: ipm(x, y, distance="wasserstein", epsilon=1, **box),
        "wasserstein, private groups": lambda: ipm(x, y, distance="wasserstein", **private, **box),
        "kolmogorov": lambda: ipm(x, y, distance="kolmogorov", epsilon=1, **box),
        "kolmogorov, private groups": lambda: ipm(x, y, distance="kolmogorov", **private, **box),
        "sliced wasserstein, a tenth of the rows": lambda: ipm(
            wide_x, wide_y, distance="wasserstein", epsilon=1, bounds=(0, 1)
        ),
    }
    return found


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--label", default="after")
    parser.add_argument("--rows", type=int, default=1_000_000)
    asked = parser.parse_args()
    for warm in cases(400).values():  # imports and caches
        try:
            warm()
        except TypeError:
            continue
    path = RESULTS / "speed-lines.json"
    stored: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    kept = [r for r in stored if (r["label"], r["rows"]) != (asked.label, asked.rows)]
    rows = []
    for name, call in cases(asked.rows).items():
        try:
            seconds = processor_time(call, 1 if asked.label == "before" else 2)
        except TypeError:  # no such argument in that version
            continue
        case = {"label": asked.label, "rows": asked.rows, "case": name}
        rows.append(case | {"processor seconds": seconds})
        save("speed-lines", [*kept, *rows])  # after each: an old version may take very long
    table = [[row["case"], row["processor seconds"]] for row in rows]
    print_table(f"{asked.rows:,} rows, {asked.label}", ["case", "processor seconds"], table)


if __name__ == "__main__":
    main()
