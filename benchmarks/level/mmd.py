"""Level of mmd_test: p-values are uniform and decisions reject at alpha under the null.

Run: python -m benchmarks.level.mmd [--runs 2000]. Writes results/level-mmd.json after every
case, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import missing, save, stored
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise

LAWS = ("uniform", "skewed", "ties")
SIZES = ((500, 500, None), (300, 900, None), (203, 330, 7))  # the last leaves rows over
EPSILONS = (0.05, 1.0, 10.0)

Job = tuple[str, int, int, int | None, float, str, str, int]


def draw(law: str, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw one sample."""
    if law == "uniform":
        return rng.uniform(size=(size, 1))
    if law == "skewed":
        return rng.beta(0.4, 4, size=(size, 1))
    return rng.integers(0, 4, size=(size, 1)) / 3


def run(job: Job) -> float:
    """Return the p-value, or the decision as 0 or 1."""
    law, n, m, bin_size, epsilon, adjacency, release, seed = job
    rng = np.random.default_rng([seed, n, m])
    options: dict[str, Any] = {"adjacency": adjacency, "release": release, "bin_size": bin_size}
    result = pt.mmd_test(
        draw(law, n, rng),
        draw(law, m, rng),
        epsilon=epsilon,
        bounds=(0, 1),
        n_permutations=199,
        rng=seed,
        noise=SimulatedNoise(seed),
        **options,
    )
    return result.pvalue if isinstance(result, pt.Outcome) else float(result.reject)


def main() -> None:
    """Measure every case."""
    from scipy.stats import kstest  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    cases = [
        (law, n, m, bin_size, epsilon, adjacency)
        for law in LAWS
        for n, m, bin_size in SIZES
        for epsilon in EPSILONS
        for adjacency in (("one", "row") if bin_size is None else ("one",))
    ]
    names = ("law", "n", "m", "bin_size", "epsilon", "adjacency")
    rows = stored("level-mmd", runs)
    with ProcessPoolExecutor() as pool:
        for case in track(cases, description="level"):
            words = dict(zip(names, case, strict=True))
            if not missing(rows, words):
                continue
            jobs = [(*case, "pvalue", seed) for seed in range(runs)]
            pvalues = np.array(list(pool.map(run, jobs, chunksize=25)))
            jobs = [(*case, "decision", seed) for seed in range(runs, 2 * runs)]
            rejected = float(np.mean(list(pool.map(run, jobs, chunksize=25))))
            found = {
                "uniformity": float(kstest(pvalues, "uniform").pvalue),
                "p <= .05": float(np.mean(pvalues <= 0.05)),
                "decision at .05": rejected,
            }
            rows.append(words | found)
            error = (0.05 * 0.95 / runs) ** 0.5
            save("level-mmd", {"runs": runs, "standard_error": error, "rows": rows})
    print_table(f"level ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
