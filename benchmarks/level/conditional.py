"""Level and power of the conditional independence test, for smooth, kinked and wiggly regressions.

Run: python -m benchmarks.level.conditional [--runs 1000]. Writes results/level-conditional.json.
The
peer adds Laplace noise to each product of residuals, as Kalemaj, Kasiviswanathan and Ramdas (2024)
do, and is given the true regressions for nothing: its power is an upper bound of theirs.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.methods.conditional import conditional_independence_test
from privatest.noise import SimulatedNoise

# What x and y are made of besides their own errors.
CASES = (
    "polynomial",
    "two columns",
    "skewed errors",
    "sine",
    "kink",
    "step",
    "fast sine",
    "crowded",
)
SIZES, BUDGETS = (200, 1000, 2000, 10_000), ((1.0, 0.0), (5.0, 0.0))
LEVEL_AT = ((20, 10.0, 0.0), (1000, 1.0, 0.0), (2000, 5.0, 0.0), (10_000, 5.0, 1e-6))
ALPHA, REACH, SCALE, EFFECT = 0.05, 3.0, 0.25, 0.3

Floats = NDArray[np.float64]


def draw(
    case: str, n: int, effect: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return x, y, z, and the products of their true residuals."""
    z = rng.uniform(-1, 1, size=(n, 2 if case == "two columns" else 1))
    if case == "crowded":  # in a third of the bounds
        z = np.clip(rng.normal(0.3, 0.15, size=(n, 1)), -1, 1)
    first = z[:, 0]
    waves = np.sin(3 * first)
    of_x, of_y = {
        "two columns": (waves + np.sin(3 * z[:, -1]),) * 2,
        "sine": (waves,) * 2,
        "kink": (2 * np.abs(first - 0.1),) * 2,
        "step": (np.sign(first - 0.137),) * 2,  # within a cell
        "fast sine": (np.sin(9 * first),) * 2,
        "crowded": (np.sin(9 * first),) * 2,
    }.get(case, (first, first**2 + first))
    errors = (
        rng.exponential(size=(2, n)) - 1 if case == "skewed errors" else rng.normal(size=(2, n))
    )
    own = errors[1] + effect * errors[0]
    return SCALE * (of_x + errors[0]), SCALE * (of_y + own), z, errors[0] * own


def peer(products: Floats, epsilon: float, rng: np.random.Generator) -> bool:
    """Test the mean of products with noise on each of them."""
    limit = REACH**2
    noisy = np.clip(products, -limit, limit) + rng.laplace(
        scale=2 * limit / epsilon, size=len(products)
    )
    return bool(stats.ttest_1samp(noisy, 0).pvalue <= ALPHA)


def rates(case: str, n: int, epsilon: float, delta: float, effect: float, runs: int) -> list[float]:
    """Return how often the test and the peer reject."""
    rejected = np.zeros(2)
    bounds: Any = {f"bounds_{name}": (-1, 1) for name in "xyz"}
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        x, y, z, products = draw(case, n, effect, rng)
        found = conditional_independence_test(
            x,
            y,
            z,
            **bounds,
            epsilon=epsilon,
            delta=delta,
            n_bootstrap=199,
            rng=seed,
            noise=SimulatedNoise(seed),
        )
        rejected += [found.reject, peer(products, epsilon, rng)]
    shares: list[float] = (rejected / runs).tolist()
    return shares


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    names = ("case", "n", "epsilon", "delta")
    found: dict[str, Any] = {"runs": runs, "level": [], "power": []}
    found["standard_error"] = (ALPHA * (1 - ALPHA) / runs) ** 0.5
    cases = [(case, *at) for case in CASES for at in LEVEL_AT]
    places = [(n, *budget) for n in SIZES for budget in BUDGETS]
    with ProcessPoolExecutor(2) as pool:
        levels = [pool.submit(rates, *case, 0.0, runs) for case in cases]
        powers = [pool.submit(rates, "polynomial", *place, EFFECT, runs) for place in places]
        for case, rate in track([*zip(cases, levels, strict=True)], description="level"):
            row: dict[str, Any] = dict(zip(names, case, strict=True)) | {"level": rate.result()[0]}
            found["level"].append(row)
            save("level-conditional", found)
        for place, rate in zip(places, powers, strict=True):
            ours, theirs = rate.result()
            row = dict(zip(names[1:], place, strict=True)) | {"power": ours, "peer": theirs}
            found["power"].append(row)
            save("level-conditional", found)
    for name in ("level", "power"):
        rows = found[name]
        print_table(f"{name} ({runs} runs)", list(rows[0]), [list(r.values()) for r in rows])


if __name__ == "__main__":
    main()
