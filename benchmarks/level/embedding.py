"""Level of the embedding tests on the paper's SG problem: one Gaussian in 50 dimensions.

Rows are drawn from a population of 200,000, so that a run costs no new normal numbers.
Run: python -m benchmarks.level.embedding [--runs 1000]. Writes results/level-embedding.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.mechanisms.moments import release_moments
from privatest.methods.embedding import (
    MomentsRelease,
    me_permutation_test,
    me_test,
    read_inputs,
    sample_moments,
    scf_test,
)
from privatest.methods.locations import location_features
from privatest.noise import SimulatedNoise
from privatest.numerics.moments import moment_pvalue, pool_releases

DIMENSION, DELTA, BOX = 50, 1e-5, (-4.0, 4.0)
CELLS = [(10_000, epsilon) for epsilon in (0.1, 0.5, 1.0, 2.5, 5.0)] + [
    (n, 2.5) for n in (1000, 5000, 15_000)
]
TESTS = ("moments", "moments scf", "statistic", "permutation", "shares", "asymptotic")
WIDTH = 10 / 8  # exp(-|x - y|²/100) in the data's own units
BOOTSTRAP = 199
MOMENTS = MomentsRelease(BOOTSTRAP)


@lru_cache(maxsize=1)
def population() -> NDArray[np.float64]:
    """Rows that samples are drawn from."""
    return np.random.default_rng(0).standard_normal((200_000, DIMENSION))


def rejections(job: tuple[int, float, int, int]) -> list[bool]:
    """Run every test once, with locations of its own."""
    n, epsilon, seed, count = job
    rng = np.random.default_rng([seed, n, int(10 * epsilon)])
    people = population()
    x, y = (people[rng.integers(len(people), size=n)] for _ in range(2))
    places, waves = (
        rng.standard_normal((count, DIMENSION)),
        rng.standard_normal((count // 2 + 1, DIMENSION)) / 7,
    )
    me: dict[str, Any] = {"locations": places, "bounds": BOX, "bandwidth": WIDTH, "rng": seed}
    scf: dict[str, Any] = {"frequencies": waves, "bounds": BOX, "rng": seed}
    spend: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}
    asymptotic = MomentsRelease(BOOTSTRAP, null="asymptotic")
    return [
        me_test(
            x, y, release=MOMENTS, noise=SimulatedNoise(1_000_000 + seed), **me, **spend
        ).reject,
        scf_test(
            x, y, release=MOMENTS, noise=SimulatedNoise(1_000_000 + seed), **scf, **spend
        ).reject,
        me_test(
            x, y, release="statistic", epsilon=epsilon, noise=SimulatedNoise(1_000_000 + seed), **me
        ).reject,
        me_permutation_test(
            x,
            y,
            release="decision",
            n_permutations=199,
            epsilon=epsilon,
            noise=SimulatedNoise(1_000_000 + seed),
            **me,
        ).reject,
        shares(x, y, me, epsilon, seed) <= 0.05,
        me_test(
            x, y, release=asymptotic, noise=SimulatedNoise(1_000_000 + seed), **me, **spend
        ).reject,
    ]


def shares(
    x: NDArray[np.float64], y: NDArray[np.float64], me: dict[str, Any], epsilon: float, seed: int
) -> float:
    """Return the p-value of two owners' releases."""
    noise = SimulatedNoise(1_000_000 + seed)
    inputs = read_inputs(
        x,
        y,
        bounds=BOX,
        budget=Budget(epsilon, DELTA),
        alpha=0.05,
        adjacency="one",
        paired=False,
        noise=noise,
    )
    embedding = location_features(me["locations"], inputs.samples.x, "gaussian", WIDTH)
    released = [
        release_moments(
            own,
            radius=embedding.radius,
            spread=embedding.spread,
            budget=Budget(epsilon, DELTA),
            noise=noise,
            feature_error=embedding.rounding,
        )
        for own in sample_moments(inputs, embedding)
    ]
    pooled = pool_releases(*released)
    return moment_pvalue(pooled, n_bootstrap=BOOTSTRAP, rng=np.random.default_rng(seed))[1]


def main() -> None:
    """Measure every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--locations", type=int, default=5)
    options = parser.parse_args()
    runs, rows = options.runs, []
    error = (0.05 * 0.95 / runs) ** 0.5
    with ProcessPoolExecutor() as pool:
        for n, epsilon in track(CELLS, description="level"):
            jobs = [(n, epsilon, seed, options.locations) for seed in range(runs)]
            found = np.array(list(pool.map(rejections, jobs, chunksize=10)))
            shares_of = dict(zip(TESTS, found.mean(axis=0).tolist(), strict=True))
            worst = max(value for name, value in shares_of.items() if name != "asymptotic")
            rows.append(
                {"n": n, "epsilon": epsilon} | shares_of | {"worst, s.e.": (worst - 0.05) / error}
            )
            print(rows[-1], flush=True)
    result = {"runs": runs, "locations": options.locations, "alpha": 0.05, "rows": rows}
    save("level-embedding", result)
    print_table(f"level ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
