"""Level and power of the conditional independence test, with good and with wrong regressions.

Run: python -m benchmarks.level.conditional [--runs 200]. Writes results/level-conditional.json. The
peer adds Laplace noise to each product of residuals, as Kalemaj, Kasiviswanathan and Ramdas (2023)
do, and is given the true regressions for nothing: its power is an upper bound of theirs.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.independence.conditional import conditional_independence_test
from privatest.noise import SimulatedNoise

# What x and y are made of besides their own errors; polynomials of degree 3 fit the first four.
CASES = ("polynomial", "two columns", "skewed errors", "sine", "step", "fast sine")
SIZES, BUDGETS = (200, 2000, 10_000), ((1.0, 1e-6), (5.0, 1e-6), (5.0, 0.0))
ALPHA, REACH, SCALE, EFFECT = 0.05, 3.0, 0.25, 0.3

Floats = NDArray[np.float64]


def draw(
    case: str, n: int, effect: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return x, y, z, and the products of their true residuals."""
    z = rng.uniform(-1, 1, size=(n, 2 if case == "two columns" else 1))
    first = z[:, 0]
    of_x, of_y = {
        "two columns": (first + z[:, -1], first - 0.5 * z[:, -1]),
        "sine": (np.sin(3 * first),) * 2,
        "step": (np.sign(first),) * 2,
        "fast sine": (np.sin(9 * first),) * 2,
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
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        x, y, z, products = draw(case, n, effect, rng)
        found = conditional_independence_test(
            x,
            y,
            z,
            bounds_x=(-1, 1),
            bounds_y=(-1, 1),
            bounds_z=(-1, 1),
            epsilon=epsilon,
            delta=delta,
            n_bootstrap=199,
            rng=seed,
            noise=SimulatedNoise(seed),
        )
        rejected += [found.reject, peer(products, epsilon, rng)]
    return list(rejected / runs)


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    names = ("case", "n", "epsilon", "delta")
    cases = [(case, n, *budget) for case in CASES for n in SIZES for budget in BUDGETS]
    level = [
        dict(zip(names, case, strict=True)) | {"level": rates(*case, 0.0, runs)[0]}
        for case in track(cases, description="level")
    ]
    power = []
    for n in SIZES:
        for budget in BUDGETS:
            ours, theirs = rates("polynomial", n, *budget, EFFECT, runs)
            power.append(
                {"n": n, "epsilon": budget[0], "delta": budget[1], "power": ours, "peer": theirs}
            )
    error = (ALPHA * (1 - ALPHA) / runs) ** 0.5
    save(
        "level-conditional", {"runs": runs, "standard_error": error, "level": level, "power": power}
    )
    for name, table in (("level", level), ("power", power)):
        print_table(f"{name} ({runs} runs)", list(table[0]), [list(row.values()) for row in table])


if __name__ == "__main__":
    main()
