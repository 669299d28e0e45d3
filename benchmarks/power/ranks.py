"""Power of the rank tests and of the tests of paired data, against the table of the specification.

Run: python -m benchmarks.power.ranks [--runs 1000]. Writes results/power-ranks.json.
"""

from __future__ import annotations

import argparse
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.core.results import Outcome
from privatest.mechanisms.lattice import noisy_integer
from privatest.methods.ranks import mannwhitneyu, median_test
from privatest.methods.signs import sign_test, symmetry_test, wilcoxon
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import lattice_tulap, mann_whitney_law
from privatest.numerics.order import mann_whitney

# n, second law, epsilon: power measured with 2000 runs
TWO_SAMPLES = {
    (100, "shifted", 0.1): {"mann-whitney": 0.482, "kruskal(8)": 0.168, "median": 0.293},
    (200, "shifted", 0.1): {"mann-whitney": 0.948, "kruskal(8)": 0.516, "median": 0.808},
    (200, "cauchy", 0.1): {"mann-whitney": 0.048, "kruskal(8)": 0.046, "median": 0.059},
    (400, "cauchy", 0.1): {"mann-whitney": 0.054, "kruskal(8)": 0.049, "median": 0.043},
    (100, "cauchy", 1.0): {"mann-whitney": 0.044, "kruskal(8)": 0.050, "median": 0.043},
    (200, "cauchy", 1.0): {"mann-whitney": 0.060, "kruskal(8)": 0.049, "median": 0.052},
}
PAIRED = {
    (400, "normal(.2)", 0.1): {"ks": 0.454, "kuiper": 0.401, "sign": 0.455, "wilcoxon": 0.304},
    (400, "normal(.2)", 1.0): {"ks": 0.924, "kuiper": 0.895, "sign": 0.883, "wilcoxon": 0.959},
    (400, "exp - ln 2", 0.1): {"ks": 0.859, "kuiper": 0.877, "sign": 0.050, "wilcoxon": 0.243},
    (400, "exp - ln 2", 1.0): {"ks": 1.0, "kuiper": 1.0, "sign": 0.056, "wilcoxon": 0.892},
}
SPEC_RUNS = 2000
TESTS_OF_PAIRS: dict[str, Callable[..., Outcome]] = {
    "ks": partial(symmetry_test, statistic="ks"),
    "kuiper": partial(symmetry_test, statistic="kuiper"),
    "sign": sign_test,
    "wilcoxon": wilcoxon,
}
TESTS_OF_SAMPLES: dict[str, Callable[..., Outcome]] = {
    "mann-whitney": mannwhitneyu,
    "median": median_test,
}

Job = tuple[str, int, str, float, int]


def draw(law: str, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the second sample, or the differences."""
    if law == "shifted":
        return rng.normal(1, 1, size=size)
    if law == "cauchy":
        return rng.standard_cauchy(size=size)
    if law == "normal(.2)":
        return rng.normal(0.2, 1, size=size)
    return rng.exponential(size=size) - math.log(2)


def rejects(job: Job) -> bool:
    """Run one test with simulated noise."""
    test, n, law, epsilon, seed = job
    rng, noise = np.random.default_rng([seed, n]), SimulatedNoise(seed)
    if test in TESTS_OF_PAIRS:
        return TESTS_OF_PAIRS[test](draw(law, n, rng), epsilon=epsilon, noise=noise).reject
    x, y = rng.normal(size=n), draw(law, n, rng)
    if test == "kruskal(8)":
        return _published_kruskal(x, y, epsilon, noise)
    return TESTS_OF_SAMPLES[test](x, y, epsilon=epsilon, noise=noise).reject


def _published_kruskal(
    x: NDArray[np.float64], y: NDArray[np.float64], epsilon: float, noise: SimulatedNoise
) -> bool:
    """Kruskal–Wallis with the published sensitivity 8: Mann–Whitney with twice the noise."""
    n, m = len(x), len(y)
    total = n + m
    factor = 4 * (total - 1) / total**2
    width = round(8 / (factor / 2) / 2)
    law = lattice_tulap(width, Budget(epsilon))
    noisy = noisy_integer(abs(mann_whitney(x, y)), law=law, noise=noise)
    return mann_whitney_law(n, m).pvalue(noisy, law, "two-sided") <= 0.05


def main() -> None:
    """Measure every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    cells = [
        (test, *case, expected)
        for case, tests in (TWO_SAMPLES | PAIRED).items()
        for test, expected in tests.items()
    ]
    rows = []
    with ProcessPoolExecutor() as pool:
        for test, n, law, epsilon, expected in track(cells, description="ranks"):
            jobs = [(test, n, law, epsilon, seed) for seed in range(runs)]
            power = float(np.mean(list(pool.map(rejects, jobs, chunksize=50))))
            pooled = (runs * power + SPEC_RUNS * expected) / (runs + SPEC_RUNS)
            error = (pooled * (1 - pooled) * (1 / runs + 1 / SPEC_RUNS)) ** 0.5
            rows.append(
                {
                    "test": test,
                    "n": n,
                    "law": law,
                    "epsilon": epsilon,
                    "power": power,
                    "expected": expected,
                    "standard_errors": (power - expected) / max(error, 1e-9),
                }
            )
    save("power-ranks", {"runs": runs, "rows": rows})
    print_table(f"power of rank tests ({runs} runs)", list(rows[0]), [[*r.values()] for r in rows])


if __name__ == "__main__":
    main()
