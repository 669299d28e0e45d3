"""Level of ks_1samp and ks_2samp: P(p <= a) is at most a under the null hypothesis.

Run: python -m benchmarks.level.ks [--runs 2000]. Writes results/level-ks.json.
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

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.methods.ks import ks_1samp, ks_2samp
from privatest.noise import SimulatedNoise

LEVELS = (0.01, 0.05, 0.1)
EPSILONS = (0.1, 1.0, 5.0)

Job = tuple[str, str, str, tuple[int, ...], float, int]


def uniform_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distribution function of the uniform law."""
    return np.clip(x, 0.0, 1.0)


def draw(law: str, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw one sample: without ties, or with many."""
    return rng.random(size) if law == "uniform" else np.floor(4 * rng.beta(2, 1, size))


def run(job: Job) -> float:
    """Return one p-value."""
    statistic, adjacency, law, sizes, epsilon, seed = job
    rng = np.random.default_rng([seed, *sizes])
    common: dict[str, Any] = {"epsilon": epsilon, "rng": seed, "noise": SimulatedNoise(seed)}
    common["statistic"] = statistic
    if len(sizes) == 1:
        return ks_1samp(draw(law, *sizes, rng), uniform_cdf, **common).pvalue
    x, y = (draw(law, size, rng) for size in sizes)
    return ks_2samp(x, y, adjacency=adjacency, n_permutations=199, **common).pvalue  # type: ignore[arg-type]


def cases() -> list[tuple[str, str, str, tuple[int, ...], float]]:
    """Every statistic, adjacency, law, size and epsilon."""
    one = [
        (statistic, "one", "uniform", (n,), epsilon)
        for statistic in ("ks", "kuiper", "cvm", "wasserstein")
        for n in (20, 200)
        for epsilon in EPSILONS
    ]
    two: list[tuple[str, str, str, tuple[int, ...], float]] = [
        (statistic, adjacency, law, sizes, epsilon)
        for statistic in ("ks", "kuiper")
        for adjacency in ("one", "both", "row")
        for law in ("uniform", "ties")
        for sizes in ((20, 20), (20, 33), (200, 200))
        for epsilon in EPSILONS
    ]
    return [*one, *two]


def main() -> None:
    """Measure every case; a row is bad if a rate is above its level by 3 standard errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    rows = []
    with ProcessPoolExecutor() as pool:
        for case in track(cases(), description="level"):
            pvalues = np.array(
                list(pool.map(run, [(*case, seed) for seed in range(runs)], chunksize=50))
            )
            rates = {a: float(np.mean(pvalues <= a)) for a in LEVELS}
            excess = [(rates[a] - a) / (a * (1 - a) / runs) ** 0.5 for a in LEVELS]
            named = dict(
                zip(("statistic", "adjacency", "law", "sizes", "epsilon"), case, strict=True)
            )
            rows.append(
                named
                | {"sizes": ", ".join(map(str, case[3]))}
                | {f"p <= {a}": rates[a] for a in LEVELS}
                | {"most standard errors above": max(excess)}
            )
    save("level-ks", {"runs": runs, "rows": rows})
    print_table(f"level ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
