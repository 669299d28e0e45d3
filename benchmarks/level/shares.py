"""Level of compare: rejection rates where both owners draw from the same Gaussian (SG).

Run: python -m benchmarks.level.shares [--runs 400]. Writes results/level-shares.json.
One cell again, from other seeds: --cell 50 10000 2.5 --first 100000 --runs 700. Writes
results/level-shares-again.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from rich.progress import track

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.data.encoding import Sample
from privatest.mechanisms.moments import release_moments
from privatest.methods.shares import Share, compare, plan_share
from privatest.noise import SimulatedNoise
from privatest.numerics.moments import moments

# dimension, n and the epsilons that see the same data: Raj et al. (2019), table 1, figures 1 and 2
Case = tuple[int, int, tuple[float, ...]]
CASES: list[Case] = [
    (50, 10_000, (0.1, 0.5, 1.0, 2.5, 5.0)),
    (50, 1_000, (2.5,)),
    (50, 5_000, (2.5,)),
    (50, 15_000, (2.5,)),
    (2, 1_000, (0.1, 1.0, 5.0)),
]
LEVELS = (0.01, 0.05, 0.1)
DRAWS = 999  # (1 + k)/1000 hits each level exactly

Job = tuple[int, int, tuple[float, ...], int]


def pvalues(job: Job) -> list[float]:
    """Compare two shares of one distribution, at each epsilon."""
    dimension, n, epsilons, seed = job
    rng = np.random.default_rng([seed, n, dimension])
    plans = [plan_share([(-5, 5)] * dimension, epsilon=e, delta=1e-5) for e in epsilons]
    embedding = plans[0].embedding()  # the same at each epsilon: features are computed once
    private = []
    for _ in range(2):
        rows = np.clip(rng.normal(size=(n, dimension)) / 10 + 0.5, 0, 1)
        held = Sample(rows, None)
        private += moments(
            held, psi=embedding, dimension=embedding.dimension, radius=embedding.radius
        )
    noise, found = SimulatedNoise(seed), []
    for plan in plans:
        shares = [
            Share(plan, release_moments(own, noise=noise, **plan.release(embedding)), True)
            for own in private
        ]
        found.append(compare(*shares, n_bootstrap=DRAWS, rng=rng).pvalue)
    return found


def measure(pool: ProcessPoolExecutor, case: Case, seeds: range) -> list[dict[str, Any]]:
    """Return a row for each epsilon of a case."""
    dimension, n, epsilons = case
    jobs = [(dimension, n, epsilons, seed) for seed in seeds]
    found = np.array(list(pool.map(pvalues, jobs, chunksize=5)))
    rows = []
    for epsilon, values in zip(epsilons, found.T, strict=True):
        shares = {level: float(np.mean(values <= level)) for level in LEVELS}
        row = {"dimension": dimension, "n": n, "epsilon": epsilon}
        rates = {f"p <= {level:g}": share for level, share in shares.items()}
        excess = max((s - a) / (a * (1 - a) / len(seeds)) ** 0.5 for a, s in shares.items())
        rows.append(row | rates | {"excess": excess})
    return rows


def main() -> None:
    """Measure every case, or one cell again from other seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--cell", nargs=3, metavar=("COLUMNS", "N", "EPSILON"))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.runs)
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor() as pool:
        if options.cell:
            dimension, n, epsilon = options.cell
            rows = measure(pool, (int(dimension), int(n), (float(epsilon),)), seeds)
            again = {"runs": len(seeds), "first": options.first, "rows": rows}
            save("level-shares-again", again | {"draws": DRAWS})
        else:
            for case in track(CASES, description="level"):
                rows += measure(pool, case, seeds)
                save("level-shares", {"runs": len(seeds), "draws": DRAWS, "rows": rows})
    print_table(f"level of compare ({len(seeds)} runs)", [*rows[0]], [[*r.values()] for r in rows])
    print(f"worst excess: {max(row['excess'] for row in rows):.2f} standard errors")


if __name__ == "__main__":
    main()
