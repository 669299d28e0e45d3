"""Level of ks_family: rejection rates where data come from the family.

Run: python -m benchmarks.level.family [--runs 300]. Writes results/level-family.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise

FAMILIES = ("norm", "laplace", "cauchy", "logistic", "gumbel_r", "expon", "uniform")
LEVELS = (0.01, 0.05, 0.1)

Job = tuple[str, str, int, float, int]


def pvalue(job: Job) -> float:
    """Run one test on a sample of the family."""
    from scipy import stats  # noqa: PLC0415

    family, statistic, n, epsilon, seed = job
    x = getattr(stats, family).rvs(loc=3, scale=2, size=n, random_state=seed)
    return pt.ks_family(
        x,
        family,
        bounds=(-1000, 1000),
        epsilon=epsilon,
        statistic=statistic,  # type: ignore[arg-type]
        noise=SimulatedNoise(seed),
    ).pvalue


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    cases = [
        (family, statistic, n, epsilon)
        for statistic, families in (("ks", FAMILIES), ("kuiper", ("norm",)))
        for family in families
        for n in (20, 200)
        for epsilon in (0.1, 1.0, 5.0)
    ]
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor() as pool:
        for case in track(cases, description="level"):
            jobs = [(*case, seed) for seed in range(runs)]
            pvalues = np.array(list(pool.map(pvalue, jobs, chunksize=10)))
            rates = {f"p <= {level:g}": float(np.mean(pvalues <= level)) for level in LEVELS}
            excess = max(
                (float(np.mean(pvalues <= level)) - level) / (level * (1 - level) / runs) ** 0.5
                for level in LEVELS
            )
            names = ("family", "statistic", "n", "epsilon")
            rows.append(dict(zip(names, case, strict=True)) | rates | {"excess": excess})
    save("level-family", {"runs": runs, "rows": rows})
    print_table(f"level of ks_family ({runs} runs)", list(rows[0]), [[*r.values()] for r in rows])
    print(f"worst excess: {max(row['excess'] for row in rows):.2f} standard errors")


if __name__ == "__main__":
    main()
