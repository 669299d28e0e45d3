"""Power of ks_2samp where the specification gives numbers: N(0, 1) against other laws, n = m.

Then ks_2samp and symmetry_test on data with ties and zeros, n = m = 100, epsilon 1: as they are,
with ties broken by secret labels, and with the statistic read at the ends of ties only.

Run: python -m benchmarks.power.ks [--runs 1000]. Writes results/power-ks.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.mechanisms.lattice import noise_law, noisy_integer
from privatest.methods.ks import ks_2samp, two_sample_law
from privatest.methods.signs import symmetry_test
from privatest.noise import SimulatedNoise
from privatest.numerics.ecdf import TwoSampleStatistic, two_sample_width
from privatest.numerics.laws import symmetry_law
from privatest.numerics.order import symmetry_width

Draw = Callable[[np.random.Generator], NDArray[np.float64]]

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


# --- ties ------------------------------------------------------------------------------------

SIZE, EPSILON = 100, 1.0


def bernoulli(share: float) -> Draw:
    """Return a sampler of ones and zeros."""
    return lambda rng: (rng.random(SIZE) < share).astype(np.float64)


def poisson(mean: float) -> Draw:
    """Return a sampler of counts."""
    return lambda rng: rng.poisson(mean, SIZE).astype(np.float64)


def changes(zeros: float, mean: float) -> Draw:
    """Return a sampler of whole changes, a share of which is 0."""
    return lambda rng: np.where(
        rng.random(SIZE) < zeros, 0.0, np.rint(rng.normal(mean, 2.0, SIZE))
    ).astype(np.float64)


# the null hypothesis, then an alternative
TIES: dict[str, tuple[Draw, ...]] = {
    "Bernoulli(.1), Bernoulli(.1)": (bernoulli(0.1), bernoulli(0.1)),
    "Bernoulli(.1), Bernoulli(.3)": (bernoulli(0.1), bernoulli(0.3)),
    "Poisson(1), Poisson(1)": (poisson(1.0), poisson(1.0)),
    "Poisson(1), Poisson(1.5)": (poisson(1.0), poisson(1.5)),
    "80% zeros, symmetric": (changes(0.8, 0.0),),
    "50% zeros, symmetric": (changes(0.5, 0.0),),
    "50% zeros, mean 1": (changes(0.5, 1.0),),
    "rounded, mean .6": (changes(0.0, 0.6),),
}


def rejects_ties(job: tuple[str, TwoSampleStatistic, int]) -> tuple[bool, bool]:
    """Run one test as it is, and with the statistic at the ends of ties."""
    name, statistic, seed = job
    rng = np.random.default_rng([seed, 14])
    samples = [draw(rng) for draw in TIES[name]]
    test = ks_2samp if len(samples) == 2 else symmetry_test
    now = test(*samples, epsilon=EPSILON, statistic=statistic, noise=SimulatedNoise(seed)).reject
    if len(samples) == 2:
        ends = np.unique(np.concatenate(samples))
        below = [np.searchsorted(np.sort(one), ends, side="right") for one in samples]
        walk = SIZE * (below[0] - below[1])
        width, law = two_sample_width(SIZE, SIZE, "one"), two_sample_law(statistic, SIZE, SIZE)
    else:
        (z,) = samples
        ends = np.unique(np.abs(z[z != 0]))
        walk = (z[:, None] >= ends).sum(axis=0) - (z[:, None] <= -ends).sum(axis=0)
        width, law = symmetry_width(), symmetry_law(SIZE, statistic)
    high, low = max(0, int(walk.max(initial=0))), min(0, int(walk.min(initial=0)))
    value = max(high, -low) if statistic == "ks" else high - low
    added = noise_law(width, Budget(EPSILON), "tulap")
    noisy = noisy_integer(value, law=added, noise=SimulatedNoise(seed))
    return now, law.pvalue(noisy, added, "greater") <= 0.05


def measure_ties(pool: ProcessPoolExecutor, runs: int) -> list[dict[str, object]]:
    """Return the share of rejections of every law and statistic, before and now."""
    rows: list[dict[str, object]] = []
    cells: list[tuple[str, TwoSampleStatistic]] = [(n, s) for n in TIES for s in ("ks", "kuiper")]
    for name, statistic in track(cells, description="ties"):
        jobs = [(name, statistic, seed) for seed in range(runs)]
        now, ends = np.mean(list(pool.map(rejects_ties, jobs, chunksize=50)), axis=0)
        test = "ks_2samp" if len(TIES[name]) == 2 else "symmetry_test"
        cell = {"test": test, "data": name, "statistic": statistic}
        rows.append(cell | {"at the ends of ties": float(ends), "ties broken": float(now)})
    return rows


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
        ties = measure_ties(pool, 2 * runs)
    save("power-ks", {"runs": runs, "rows": rows, "ties": {"runs": 2 * runs, "rows": ties}})
    print_table(f"power of ks_2samp ({runs} runs)", list(rows[0]), [[*r.values()] for r in rows])
    print_table(f"with ties ({2 * runs} runs)", list(ties[0]), [[*r.values()] for r in ties])


if __name__ == "__main__":
    main()
