"""Power of the tests of two proportions against other private tests at the same n and epsilon.

The others: the test of tests (TOT) with the classical z-test on each subset, and the private
permutation test of the difference of means. "no noise" is the classical z-test of the data itself.

Run: python -m benchmarks.power.proportions [--runs 200]. Writes results/power-proportions.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np
from rich.progress import track

import privatest as pt
from benchmarks.level.proportions import classical
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise

ALPHA = 0.05
CASES = (
    (100, 0.1, 0.3, 1.0),
    (100, 0.5, 0.8, 0.3),
    (400, 0.1, 0.17, 1.0),
    (400, 0.02, 0.06, 1.0),
    (1000, 0.1, 0.18, 0.1),
    (2000, 0.5, 0.54, 1.0),
)


def z_test(x: Any, y: Any) -> float:
    """Return the classical p-value."""
    return float(classical(np.array(float(x.sum())), np.array(float(y.sum())), len(x), len(y)))


def run(n: int, p: float, q: float, epsilon: float, seed: int) -> dict[str, bool]:
    """Return what each test decides on one pair of samples."""
    rng = np.random.default_rng([seed, n])
    x, y = (rng.uniform(size=n) < p).astype(float), (rng.uniform(size=n) < q).astype(float)
    options: dict[str, Any] = {"epsilon": epsilon, "rng": seed, "noise": SimulatedNoise(seed)}
    private = pt.proportions_test(x, y, adjacency="row", n_simulations=499, **options)
    tv: dict[str, Any] = options | {"distance": "mean", "bounds": (0, 1)}
    return {
        "proportions": pt.proportions_test(x, y, n_simulations=999, **options).reject,
        "TOT, z-test": pt.test_of_tests(x, y, pvalue=z_test, bounds=(0, 1), **options).reject,
        "mean, permuted": pt.ipm_test(x, y, release="decision", **tv).reject,
        "no noise": z_test(x, y) <= ALPHA,
        "proportions, private groups": private.reject,
        "mean, permuted, private groups": pt.ipm_test(
            x, y, release="decision", adjacency="row", **tv
        ).reject,
    }


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    rows = []
    for case in track(CASES, description="power"):
        found = [run(*case, seed) for seed in range(runs)]
        shares = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
        rows.append(dict(zip(("n", "p", "q", "epsilon"), case, strict=True)) | shares)
        save("power-proportions", {"runs": runs, "rows": rows})
    print_table(f"power ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
