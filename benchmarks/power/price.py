"""The price of privacy: how many more people 80% power takes at epsilon 1 than without noise.

Run: python -m benchmarks.power.price [--runs 150]. Writes results/power-price.json.

The same data sets, permutations and family of statistics serve both; "without noise" is epsilon
of a million. Power is fitted by a probit curve in log n, and the interval is a bootstrap over data
sets.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

import privatest as pt
from benchmarks.measure import RESULTS, save
from benchmarks.power.independence import captured, chance
from benchmarks.power.portfolio import Captured, capturing, rejection
from benchmarks.report import print_table
from benchmarks.scenarios import correlated, scaled, shifted
from privatest.mechanisms.permutation import noise_scale, strongest
from privatest.noise import SimulatedNoise

EPSILONS = (1.0, 1e6)
POWER = 0.8
Draw = Callable[[int, np.random.Generator], tuple[Any, Any]]


def dependent(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return two columns with correlation .07, bounds ±4 sd as [0, 1]."""
    rows = correlated(n, 2, 0.07, rng)[1]
    return rows[:, :1], rows[:, 1:]


# how to draw, which test, about how many people 80% power takes
QUESTIONS: dict[str, tuple[Draw, str, int]] = {
    "shift of .08 sd": (lambda n, rng: shifted(n, 1, 1, 0.08, rng), "two-sample", 3500),
    "scale of 1.1": (lambda n, rng: scaled(n, 1, 1.1, rng), "two-sample", 3500),
    "correlation of .07": (dependent, "independence", 3000),
    "shift of .05 sd in ten columns": (
        lambda n, rng: shifted(n, 10, 10, 0.05, rng),
        "two-sample",
        2500,
    ),
}
STEPS = (0.5, 0.75, 1.0, 1.5, 2.0)


def chances(job: tuple[str, int, int]) -> list[float]:
    """Return the chance to reject one data set, with and without noise."""
    name, n, seed = job
    draw, test, _ = QUESTIONS[name]
    x, y = draw(n, np.random.default_rng(seed))
    if test == "independence":
        return [chance(*captured(x, y, epsilon, seed), epsilon) for epsilon in EPSILONS]
    shared: dict[str, Any] = {"epsilon": 1, "release": "decision", "rng": seed}
    shared["noise"] = SimulatedNoise(seed)
    try:
        with capturing("methods.mmd"):
            pt.mmd_test(x, y, bounds=(0, 1), **shared)
    except Captured as caught:
        found = caught.args[0]
    result = []
    for epsilon in EPSILONS:
        largest, bound = strongest(**found, epsilon=epsilon, release="decision")
        result.append(rejection(largest, noise_scale(bound, epsilon, "decision")))
    return result


def people(sizes: NDArray[np.float64], powers: NDArray[np.float64]) -> float:
    """Return the n with 80% power on a probit curve in log n through ``powers``."""
    logs = np.log(sizes)

    def loss(curve: NDArray[np.float64]) -> float:
        fitted = np.clip(ndtr(curve[0] + curve[1] * (logs - logs.mean())), 1e-6, 1 - 1e-6)
        return -float((powers * np.log(fitted) + (1 - powers) * np.log(1 - fitted)).sum())

    level, slope = minimize(loss, np.array([0.5, 1.5]), method="Nelder-Mead").x
    return float(np.exp(logs.mean() + (ndtri(POWER) - level) / slope))


def main() -> None:
    """Measure all questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--only", default="", help="questions whose name contains this")
    options = parser.parse_args()
    runs = options.runs
    rows = []
    rng = np.random.default_rng(0)
    questions = {name: own for name, own in QUESTIONS.items() if options.only in name}
    with ProcessPoolExecutor(options.workers) as pool:
        for name, (_, _, about) in track(questions.items(), description="price of privacy"):
            sizes = np.array([round(about * step) for step in STEPS])
            jobs = [(name, int(n), seed) for n in sizes for seed in range(runs)]
            drew = np.array(list(pool.map(chances, jobs))).reshape(len(sizes), runs, 2)
            private, plain = (people(sizes, drew[:, :, k].mean(axis=1)) for k in (0, 1))
            ratios = []
            for _ in range(400):
                drawn = np.stack([own[rng.integers(runs, size=runs)] for own in drew])
                both = [people(sizes, drawn[:, :, k].mean(axis=1)) for k in (0, 1)]
                ratios.append(both[0] / both[1])
            low, high = np.quantile(ratios, (0.025, 0.975))
            rows.append([name, round(plain), round(private), private / plain, low, high])
    columns = ["question", "without noise", "epsilon = 1", "ratio", "95% from", "to"]
    print_table("People (in each group, or in all) for 80% power at level .05", columns, rows)
    cells = [dict(zip(columns, row, strict=True)) for row in rows]
    if options.only:  # the other questions keep their figures
        earlier = json.loads((RESULTS / "power-price.json").read_text())["questions"]
        found = {cell["question"]: cell for cell in cells}
        cells = [found.get(cell["question"], cell) for cell in earlier]
    save("power-price", {"runs": runs, "questions": cells})


if __name__ == "__main__":
    main()
