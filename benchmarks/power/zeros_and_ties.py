"""Power with zeros, and power and estimates with ties, before and after, and SciPy's.

"Before" is a coin for each zero, and ties that are broken at random.
Run: python -m benchmarks.power.zeros_and_ties [--runs 200]. Writes results/power-zeros-ties.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import product

import numpy as np
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from benchmarks.zeros_and_ties import broken, classical, coins, columns, differences
from privatest.noise import SimulatedNoise

PAIRED = {"sign": pt.sign_test, "wilcoxon": pt.wilcoxon}
TIED = {"kendall": pt.kendalltau, "spearman": pt.spearmanr}
ZEROS = [*product(PAIRED, (200, 1000), ("sizes",), (0.0, 0.5, 0.8), (0.3, 1.0, 5.0))]
ZEROS += [*product(PAIRED, (1000,), ("steps",), (0.8,), (1.0, 5.0))]
TIES = [*product(TIED, (200, 1000), ("continuous", "binary", "rare", "five"), (1.0, 5.0, 1e4))]
UP = {0.0: 0.54, 0.5: 0.56, 0.8: 0.625}  # of differences other than 0, by the share of zeros
STRONG, WEAK = 0.5, 0.1  # correlations: for estimates, and for power


@lru_cache(maxsize=16)
def truth(test: str, law: str) -> float:
    """Return what is estimated, from 200,000 rows."""
    data = columns(law, STRONG, 200_000, np.random.default_rng(1))
    return float(classical(test, data, "two-sided").statistic)


def run_zeros(job: tuple[str, int, str, float, float, int]) -> tuple[bool, bool, bool]:
    """Return whether coins, the test and SciPy reject."""
    test, n, law, zeros, epsilon, seed = job
    d = differences(law, zeros, UP[zeros], n, np.random.default_rng([seed, n]))
    after = PAIRED[test](d, epsilon=epsilon, noise=SimulatedNoise(seed)).reject
    plain = classical(test, (d,), "two-sided").pvalue <= 0.05
    return coins(test, d, epsilon, seed) <= 0.05, after, bool(plain)


def run_ties(job: tuple[str, int, str, float, int]) -> tuple[float, ...]:
    """Return rejections, errors of estimates against SciPy's, and whether the interval covers."""
    test, n, law, epsilon, seed = job
    rng = np.random.default_rng([seed, n])
    weak, strong = (columns(law, each, n, rng) for each in (WEAK, STRONG))
    found = TIED[test](*weak, epsilon=epsilon, noise=SimulatedNoise(seed))
    plain = classical(test, weak, "two-sided").pvalue
    rejects = broken(test, *weak, epsilon, seed)[1], found.pvalue, float(plain)
    estimate = TIED[test](*strong, epsilon=epsilon, noise=SimulatedNoise(seed))
    own = float(classical(test, strong, "two-sided").statistic)
    errors = broken(test, *strong, epsilon, seed)[0] - own, float(estimate.statistic or 0.0) - own
    low, high = estimate.estimates["lower"], estimate.estimates["upper"]
    covers = low <= truth(test, law) <= high
    return (*(float(p <= 0.05) for p in rejects), *errors, float(covers), float(high - low))


def main() -> None:
    """Measure every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    zeros, ties = [], []
    for name in TIED:  # before processes are made
        for law in ("continuous", "binary", "rare", "five"):
            truth(name, law)
    with ProcessPoolExecutor(2) as pool:
        for cell in track(ZEROS, description="zeros"):
            jobs = [(*cell, seed) for seed in range(runs)]
            before, after, plain = np.mean(list(pool.map(run_zeros, jobs, chunksize=20)), axis=0)
            row = dict(zip(("test", "n", "law", "zeros", "epsilon"), cell, strict=True))
            zeros.append(row | {"before": before, "after": after, "classical": plain})
        for case in track(TIES, description="ties"):
            pairs = [(*case, seed) for seed in range(runs)]
            found = np.array(list(pool.map(run_ties, pairs, chunksize=20)))
            row = dict(zip(("test", "n", "law", "epsilon"), case, strict=True))
            shares = found.mean(axis=0)
            rms = np.sqrt((found[:, 3:5] ** 2).mean(axis=0))
            ties.append(
                row
                | {"before": shares[0], "after": shares[1], "classical": shares[2]}
                | {"error before": rms[0], "error after": rms[1]}
                | {"coverage": shares[5], "width": shares[6]}
            )
    save("power-zeros-ties", {"runs": runs, "zeros": zeros, "ties": ties})
    for title, rows in (("power with zeros", zeros), ("power and estimates with ties", ties)):
        print_table(f"{title} ({runs} runs)", list(rows[0]), [[*row.values()] for row in rows])


if __name__ == "__main__":
    main()
