"""Level of compare: rejection rates where both owners draw from the same Gaussian (SG).

Run: python -m benchmarks.level.shares [--runs 400]. Writes results/level-shares.json.
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
from privatest.data.samples import Sample
from privatest.mechanisms.moments import release_moments
from privatest.noise import SimulatedNoise
from privatest.shares import Share, compare, plan_share
from privatest.statistics.moments import moments

# dimension, n and the epsilons that see the same data: Raj et al. (2019), table 1, figures 1 and 2
CASES: list[tuple[int, int, tuple[float, ...]]] = [
    (50, 10_000, (0.1, 0.5, 1.0, 2.5, 5.0)),
    (50, 1_000, (2.5,)),
    (50, 5_000, (2.5,)),
    (50, 15_000, (2.5,)),
    (2, 1_000, (0.1, 1.0, 5.0)),
]
LEVELS = (0.01, 0.05, 0.1)
DRAWS = 199  # (1 + k)/200 hits each level exactly

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


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs: int = parser.parse_args().runs
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor() as pool:
        for dimension, n, epsilons in track(CASES, description="level"):
            jobs = [(dimension, n, epsilons, seed) for seed in range(runs)]
            found = np.array(list(pool.map(pvalues, jobs, chunksize=5)))
            for epsilon, values in zip(epsilons, found.T, strict=True):
                shares = {level: float(np.mean(values <= level)) for level in LEVELS}
                row = {"dimension": dimension, "n": n, "epsilon": epsilon}
                rates = {f"p <= {level:g}": share for level, share in shares.items()}
                excess = max((s - a) / (a * (1 - a) / runs) ** 0.5 for a, s in shares.items())
                rows.append(row | rates | {"excess": excess})
            save("level-shares", {"runs": runs, "draws": DRAWS, "rows": rows})
    print_table(f"level of compare ({runs} runs)", list(rows[0]), [[*r.values()] for r in rows])
    print(f"worst excess: {max(row['excess'] for row in rows):.2f} standard errors")


if __name__ == "__main__":
    main()
