"""Power of ks_2samp where the specification gives numbers: N(0, 1) against other laws, n = m.

Run: python -m benchmarks.power.ks [--runs 1000]. Writes results/power-ks.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.progress import track

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise
from privatest.statistics.ecdf import TwoSampleStatistic
from privatest.two_sample.ks import ks_2samp

# n, second law, epsilon, statistic, power by 2000 runs of a prototype
EXPECTED: list[tuple[int, str, float, TwoSampleStatistic, float]] = [
    (100, "N(1,1)", 0.1, "ks", 0.710),
    (100, "N(1,1)", 0.1, "kuiper", 0.575),
    (200, "N(1,1)", 0.1, "ks", 0.988),
    (200, "N(1,1)", 0.1, "kuiper", 0.975),
    (200, "Cauchy", 0.1, "ks", 0.221),
    (200, "Cauchy", 0.1, "kuiper", 0.758),
    (400, "Cauchy", 0.1, "ks", 0.752),
    (400, "Cauchy", 0.1, "kuiper", 0.995),
    (100, "Cauchy", 1, "ks", 0.361),
    (100, "Cauchy", 1, "kuiper", 0.898),
    (200, "Cauchy", 1, "ks", 0.864),
    (200, "Cauchy", 1, "kuiper", 1.0),
]
PUBLISHED_RUNS = 2000


def rejects(job: tuple[int, str, float, TwoSampleStatistic, int]) -> bool:
    """Run one test with simulated noise."""
    n, law, epsilon, statistic, seed = job
    rng = np.random.default_rng([seed, n])
    x = rng.standard_normal(n)
    y = rng.standard_cauchy(n) if law == "Cauchy" else rng.standard_normal(n) + 1
    return ks_2samp(x, y, epsilon=epsilon, statistic=statistic, noise=SimulatedNoise(seed)).reject


def main() -> None:
    """Measure every row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    rows = []
    with ProcessPoolExecutor() as pool:
        for n, law, epsilon, statistic, published in track(EXPECTED, description="ks"):
            jobs = [(n, law, epsilon, statistic, seed) for seed in range(runs)]
            power = float(np.mean(list(pool.map(rejects, jobs, chunksize=50))))
            spread = max(published * (1 - published), 1 / runs)
            error = (spread / runs + spread / PUBLISHED_RUNS) ** 0.5
            rows.append(
                {
                    "n": n,
                    "against": law,
                    "epsilon": epsilon,
                    "statistic": statistic,
                    "power": power,
                    "expected": published,
                    "standard errors": (power - published) / error,
                }
            )
    save("power-ks", {"runs": runs, "rows": rows})
    print_table(f"power of ks_2samp ({runs} runs)", list(rows[0]), [[*r.values()] for r in rows])


if __name__ == "__main__":
    main()
