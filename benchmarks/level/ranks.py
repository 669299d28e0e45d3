"""Level of the rank tests and of the tests of paired data: P(p <= a) <= a under the null.

Run: python -m benchmarks.level.ranks [--runs 4000]. Writes results/level-ranks.json.
"""

from __future__ import annotations

import argparse
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
from privatest.core.results import Outcome
from privatest.methods.ranks import kruskal, mannwhitneyu, median_test
from privatest.methods.signs import sign_test, symmetry_test, wilcoxon
from privatest.noise import SimulatedNoise

PAIRED: dict[str, Callable[..., Outcome]] = {
    "symmetry ks": partial(symmetry_test, statistic="ks"),
    "symmetry kuiper": partial(symmetry_test, statistic="kuiper"),
    "sign": sign_test,
    "sign, one-sided": partial(sign_test, alternative="greater"),
    "wilcoxon": wilcoxon,
    "wilcoxon, one-sided": partial(wilcoxon, alternative="greater"),
}
TWO_SAMPLES: dict[str, Callable[..., Outcome]] = {
    "mann-whitney": mannwhitneyu,
    "mann-whitney, both": partial(mannwhitneyu, adjacency="both"),
    "mann-whitney, one-sided": partial(mannwhitneyu, alternative="less"),
    "median": median_test,
    "median, one-sided": partial(median_test, alternative="greater"),
    "kruskal": kruskal,
    "kruskal, three groups": partial(kruskal, n_resamples=199),
}
SIZES, EPSILONS, LAWS = (20, 200), (0.1, 1.0, 5.0), ("normal", "ties")
LEVELS = (0.01, 0.05, 0.1)

Job = tuple[str, int, float, str, int]


def draw(law: str, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw values that are symmetric about 0."""
    if law == "normal":
        return rng.normal(size=size)
    return rng.integers(-1, 2, size=size).astype(np.float64)


def run(job: Job) -> float:
    """Return one p-value."""
    name, n, epsilon, law, seed = job
    rng, noise = np.random.default_rng([seed, n]), SimulatedNoise(seed)
    if name in PAIRED:
        return PAIRED[name](draw(law, n, rng), epsilon=epsilon, noise=noise).pvalue
    sizes = (n, n // 2, n) if "three" in name else (n, n // 2)
    samples = [draw(law, size, rng) for size in sizes]
    extra = {"rng": seed} if "three" in name else {}
    return TWO_SAMPLES[name](*samples, epsilon=epsilon, noise=noise, **extra).pvalue


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    runs = parser.parse_args().runs
    cases = [
        (name, n, epsilon, law)
        for name in (*PAIRED, *TWO_SAMPLES)
        for n in SIZES
        for epsilon in EPSILONS
        for law in LAWS
    ]
    rows = []
    with ProcessPoolExecutor() as pool:
        for case in track(cases, description="level"):
            jobs = [(*case, seed) for seed in range(runs)]
            pvalues = np.array(list(pool.map(run, jobs, chunksize=100)))
            shares = {a: float(np.mean(pvalues <= a)) for a in LEVELS}
            worst = max((share - a) / (a * (1 - a) / runs) ** 0.5 for a, share in shares.items())
            rows.append(
                dict(zip(("test", "n", "epsilon", "law"), case, strict=True))
                | {f"p <= {a}": share for a, share in shares.items()}
                | {"standard_errors": worst}
            )
    save("level-ranks", {"runs": runs, "rows": rows})
    print_table(f"level ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
