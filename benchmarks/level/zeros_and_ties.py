"""Level with zeros and ties: P(p <= a) under the null, and SciPy's own on the same rows.

Run: python -m benchmarks.level.zeros_and_ties [--runs 1000]. Writes results/level-zeros-ties.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import numpy as np
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from benchmarks.zeros_and_ties import ALTERNATIVES, classical, columns, differences
from privatest.noise import SimulatedNoise

PAIRED = {"sign": pt.sign_test, "wilcoxon": pt.wilcoxon}
TIED = {"kendall": pt.kendalltau, "spearman": pt.spearmanr}
SIZES, EPSILONS, LEVELS = (20, 200), (1.0, 5.0, 1e4), (0.01, 0.05, 0.1)
CASES = [*product(PAIRED, ALTERNATIVES, SIZES, EPSILONS, ("sizes", "steps"))]
CASES += [*product(TIED, ALTERNATIVES, SIZES, EPSILONS, ("binary", "rare", "five"))]

Job = tuple[str, str, int, float, str, int]


def run(job: Job) -> tuple[float, float]:
    """Return our p-value and SciPy's."""
    test, alternative, n, epsilon, law, seed = job
    rng, noise = np.random.default_rng([seed, n]), SimulatedNoise(seed)
    options: dict[str, Any] = {"epsilon": epsilon, "alternative": alternative, "noise": noise}
    if test in PAIRED:
        d = differences(law, 0.6, 0.5, n, rng)
        return PAIRED[test](d, **options).pvalue, float(classical(test, (d,), alternative).pvalue)
    pair = columns(law, 0.0, n, rng)
    plain = float(np.nan_to_num(classical(test, pair, alternative).pvalue, nan=1.0))
    return TIED[test](*pair, **options).pvalue, plain


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    rows = []
    with ProcessPoolExecutor(2) as pool:
        for case in track(CASES, description="level"):
            jobs = [(*case, seed) for seed in range(runs)]
            found = np.array(list(pool.map(run, jobs, chunksize=50)))
            shares = {a: (found <= a).mean(axis=0) for a in LEVELS}
            # above the level and above SciPy's own rate, in standard errors
            worst = max(
                (ours - max(a, plain)) / (max(a, plain) * (1 - max(a, plain)) / runs) ** 0.5
                for a, (ours, plain) in shares.items()
            )
            names = ("test", "alternative", "n", "epsilon", "law")
            rows.append(
                dict(zip(names, case, strict=True))
                | {f"p <= {a}": float(ours) for a, (ours, _) in shares.items()}
                | {f"SciPy's <= {a}": float(plain) for a, (_, plain) in shares.items()}
                | {"standard_errors": float(worst)}
            )
    save("level-zeros-ties", {"runs": runs, "rows": rows})
    print_table(f"level ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
