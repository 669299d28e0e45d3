"""Processor time of every everyday test at 1,000 rows a sample: the first call, and the next ones.

The first call of each test is that of a process of its own: it loads what it needs (SciPy, OpenDP)
and computes the laws of its public sizes. The next calls have other noise.

Run: python -m benchmarks.speed.small [--only kruskal]. Writes results/speed-small.json.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import privatest as pt
from benchmarks.measure import processor_time, save
from benchmarks.report import print_table

ROWS, CALLS = 1000, 7

Call = Callable[[], object]


def small_tests(rows: int = ROWS, seed: int = 7, **options: Any) -> dict[str, Call]:
    """Return a call of each test on made-up samples; ``options`` go to all of them."""
    rng = np.random.default_rng(seed)
    x, y, z = rng.normal([[50], [51], [51]], 10, size=(3, rows))
    line = x + rng.normal(0, 10, size=rows)
    won, other, third = rng.uniform(size=(3, rows)) < 0.4
    few, more = rng.integers(3, size=rows), rng.integers(4, size=rows)
    given = {"epsilon": 1} | options
    one = given | {"bounds": (0, 100)}
    two = given | {"bounds_x": (0, 100), "bounds_y": (0, 100)}
    table = given | {"categories_x": [0, 1, 2], "categories_y": [0, 1, 2, 3]}
    return {
        "binom_test": lambda: pt.binom_test(won, **given),
        "chi2_contingency, 2 x 2": lambda: pt.chi2_contingency(
            won, other, **given | {"categories_x": [False, True], "categories_y": [False, True]}
        ),
        "chi2_contingency, 3 x 4": lambda: pt.chi2_contingency(few, more, **table),
        "chisquare": lambda: pt.chisquare(few, categories=[0, 1, 2], **given),
        "f_oneway": lambda: pt.f_oneway(x, y, z, **one),
        "hodges_lehmann": lambda: pt.hodges_lehmann(x, y, **one),
        "kendalltau": lambda: pt.kendalltau(x, line, **two),
        "kruskal": lambda: pt.kruskal(x, y, z, **one),
        "ks_1samp": lambda: pt.ks_1samp(x, "norm(50, 10)", **one),
        "ks_2samp": lambda: pt.ks_2samp(x, y, **one),
        "linregress": lambda: pt.linregress(x, line, **two),
        "mannwhitneyu": lambda: pt.mannwhitneyu(x, y, **one),
        "median_test": lambda: pt.median_test(x, y, **one),
        "pearsonr": lambda: pt.pearsonr(x, line, **two),
        "private_mean": lambda: pt.private_mean(x, **one),
        "private_quantile": lambda: pt.private_quantile(x, **one),
        "proportions_test": lambda: pt.proportions_test(won, other, **given),
        "proportions_test, 3 groups": lambda: pt.proportions_test(won, other, third, **given),
        "proportions_test, private groups": lambda: pt.proportions_test(
            won, other, adjacency="row", **given
        ),
        "sign_test": lambda: pt.sign_test(x, y, **one),
        "spearmanr": lambda: pt.spearmanr(x, line, **two),
        "symmetry_test": lambda: pt.symmetry_test(x, y, **one),
        "tost_ind": lambda: pt.tost_ind(x, y, low=-5, high=5, **one),
        "tost_proportions": lambda: pt.tost_proportions(won, other, low=-0.1, high=0.1, **given),
        "ttest_1samp": lambda: pt.ttest_1samp(x, 50, **one),
        "ttest_ind": lambda: pt.ttest_ind(x, y, **one),
        "ttest_rel": lambda: pt.ttest_rel(x, y, **one),
        "wilcoxon": lambda: pt.wilcoxon(x, y, **one),
    }


def measured(name: str) -> dict[str, Any]:
    """Return milliseconds of the first call, and the least of the next ones."""
    call = small_tests()[name]
    begin = time.process_time()
    call()
    first = time.process_time() - begin
    warm = processor_time(call, CALLS)
    return {"test": name, "first, ms": round(1e3 * first, 1), "next, ms": round(1e3 * warm, 1)}


def main() -> None:
    """Measure each test in a process of its own, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="measure one test here, and print its JSON")
    given = parser.parse_args()
    if given.only:
        print(json.dumps(measured(given.only)))
        return
    found = []
    for name in small_tests():
        command = [sys.executable, "-m", "benchmarks.speed.small", "--only", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout))
    columns = list(found[0])
    title = f"{ROWS:,} rows a sample, epsilon 1"
    print_table(title, columns, [[row[column] for column in columns] for row in found])
    save("speed-small", {"rows": ROWS, "calls": CALLS, "tests": found})


if __name__ == "__main__":
    main()
