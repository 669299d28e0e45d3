"""Power of hsic_test on the paper's joint perturbed uniform (appendix C.1), d = 1 + 1.

Run: python -m benchmarks.power.hsic [--runs 400]. Writes results/power-hsic.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise
from privatest_papers.samplers import perturbed_uniform

# the published curve for amplitude .2, n = 3000, whose bandwidth was tuned by hand
CURVE = {0.183: 0.19, 0.346: 0.405, 0.51: 0.655, 0.673: 0.80, 0.837: 0.875, 1.0: 0.935}


def rejects(job: tuple[float, int]) -> bool:
    """Run one test with simulated noise."""
    epsilon, seed = job
    rows = perturbed_uniform(3000, 2, 0.2, np.random.default_rng(seed))
    return pt.hsic_test(
        rows[:, :1],
        rows[:, 1:],
        epsilon=epsilon,
        bounds_x=(0, 1),
        bounds_y=(0, 1),
        release="decision",
        rng=seed,
        noise=SimulatedNoise(seed),
    ).reject


def main() -> None:
    """Measure every point of the curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args()
    runs = options.runs
    rows = []
    with ProcessPoolExecutor(options.workers) as pool:
        for epsilon, published in track(CURVE.items(), description="hsic"):
            jobs = [(epsilon, seed) for seed in range(runs)]
            power = float(np.mean(list(pool.map(rejects, jobs, chunksize=4))))
            rows.append(
                {
                    "epsilon": epsilon,
                    "power": power,
                    "standard_error": (power * (1 - power) / runs) ** 0.5,
                    "published": published,
                    "difference": power - published,
                }
            )
    save("power-hsic", {"runs": runs, "rows": rows})
    print_table(f"power of hsic_test ({runs} runs)", list(rows[0]), [[*r.values()] for r in rows])


if __name__ == "__main__":
    main()
