"""Power by how much the noise counts in the weights of kernels: v_k² = sd_k² + w s_k².

Run: python -m benchmarks.power.weights [--runs 200]. Writes results/power-weights.json.

Each data set is tested once; its statistics then serve every weight and every epsilon. "best
single" is the kernel with the highest power in hindsight, in a cell as a whole.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from benchmarks.scenarios import perturbed_uniform
from privatest.core.privacy import Budget
from privatest.mechanisms.permutation import smoothed_decision, strongest
from privatest.noise import SimulatedNoise

WEIGHTS = (2.0, 8.0, 16.0, 32.0, 128.0)
Rows = NDArray[np.float64]
Draw = Callable[[np.random.Generator], tuple[Rows, Rows]]


class Captured(Exception):
    """Carries what a test hands to ``strongest``."""


def bumps(n: int, d: int, count: int, amplitude: float, rng: np.random.Generator) -> Any:
    """Return uniform rows, and rows with bumps in their density."""
    return rng.uniform(size=(n, d)), perturbed_uniform(n, d, amplitude, rng, count)


def bump_each(n: int, d: int, amplitude: float, rng: np.random.Generator) -> Any:
    """Return uniform rows, and rows with a bump in the density of each column."""
    columns = [perturbed_uniform(n, 1, amplitude, rng) for _ in range(d)]
    return rng.uniform(size=(n, d)), np.hstack(columns)


def tilted(n: int, d: int, power: float, rng: np.random.Generator) -> Any:
    """Return uniform rows, and rows whose columns are Beta(power, 1)."""
    return rng.uniform(size=(n, d)), rng.beta(power, 1, size=(n, d))


def crowded(n: int, d: int, rng: np.random.Generator) -> Any:
    """Return rows in a tenth of the box, two columns shifted in the second sample."""
    x, y = rng.normal(0.5, 0.03, size=(2, n, d))
    y[:, :2] += 0.012
    return x, y


def shifted(n: int, rng: np.random.Generator) -> Any:
    """Return N(0, 1) against N(.3, 1), with bounds of ±4 mapped to [0, 1]."""
    x, y = rng.normal(size=(2, n, 1))
    return 0.5 + x / 8, 0.5 + (y + 0.3) / 8


def dependent(n: int, amplitude: float, rng: np.random.Generator) -> Any:
    """Return two columns of the paper's joint perturbed uniform (appendix C.1)."""
    rows = perturbed_uniform(n, 2, amplitude, rng)
    return rows[:, :1], rows[:, 1:]


# name: (how to draw, which test, epsilons)
SCENARIOS: dict[str, tuple[Draw, Any, tuple[float, ...]]] = {
    "1 bump, d = 1": (partial(bumps, 3000, 1, 1, 0.2), "one", (0.05, 0.1, 0.3, 1)),
    "3 bumps, d = 1": (partial(bumps, 3000, 1, 3, 0.5), "one", (0.05, 0.1, 0.3, 1)),
    "6 bumps, d = 1": (partial(bumps, 3000, 1, 6, 0.5), "one", (0.05, 0.1, 0.3, 1)),
    "10 bumps, d = 1": (partial(bumps, 3000, 1, 10, 0.5), "one", (0.3, 1, 5)),
    "Beta(1.12, 1), d = 1": (partial(tilted, 3000, 1, 1.12), "one", (0.05, 0.1, 0.3, 1)),
    "a bump of three columns": (partial(bumps, 3000, 3, 1, 0.6), "one", (0.18, 1, 5.5)),
    "bumps in 3 columns": (partial(bump_each, 3000, 3, 0.11), "one", (0.18, 1, 5.5)),
    "bumps in 9 columns": (partial(bump_each, 3000, 9, 0.08), "one", (0.18, 1, 5.5)),
    "Beta(1.08, 1), d = 10": (partial(tilted, 1000, 10, 1.08), "one", (0.3, 1, 5)),
    "crowded, d = 10": (partial(crowded, 1000, 10), "one", (0.3, 1, 5)),
    "shift, private groups": (partial(shifted, 180), "row", (0.3, 1, 5)),
    "1 bump, private groups": (partial(bumps, 1000, 1, 1, 0.3), "row", (0.1, 0.3, 1)),
    "dependence": (partial(dependent, 3000, 0.2), "hsic", (0.18, 0.35, 0.51, 0.67, 0.84, 1.0)),
}


def statistics(name: str, seed: int) -> dict[str, Any]:
    """Run a test up to where its kernels are weighed; return what it hands over."""
    draw, test, _ = SCENARIOS[name]
    x, y = draw(np.random.default_rng(seed))
    shared: dict[str, Any] = {"epsilon": 1, "release": "decision", "rng": seed}
    shared["noise"] = SimulatedNoise(seed)

    def capture(values: Any, sensitivities: Any, null: Any, **rest: Any) -> None:
        raise Captured(
            {"values": values, "sensitivities": sensitivities, "null": null, "rows": rest["rows"]}
        )

    module = "independence.hsic" if test == "hsic" else "two_sample.mmd"
    try:
        with patch(f"privatest.{module}.strongest", capture):
            if test == "hsic":
                pt.hsic_test(x, y, bounds_x=(0, 1), bounds_y=(0, 1), **shared)
            else:
                pt.mmd_test(x, y, bounds=(0, 1), adjacency=test, method="exact", **shared)
    except Captured as found:
        return dict(found.args[0])
    raise AssertionError("the test did not weigh its kernels")


def rejections(job: tuple[str, int]) -> dict[float, tuple[list[bool], list[bool]]]:
    """Return, for each epsilon, which weights and which single kernels reject."""
    name, seed = job
    found = statistics(name, seed)
    result = {}
    for epsilon in SCENARIOS[name][2]:
        budget, noise = Budget(epsilon), SimulatedNoise(seed)
        weighed = [
            strongest(**found, epsilon=epsilon, release="decision", noise_weight=weight)
            for weight in WEIGHTS
        ]
        single = list(zip(found["values"], found["sensitivities"], strict=True))
        decided = [
            smoothed_decision(values, 0.05, sensitivity=bound, budget=budget, noise=noise)
            for values, bound in [*weighed, *single]
        ]
        result[epsilon] = (decided[: len(WEIGHTS)], decided[len(WEIGHTS) :])
    return result


def main() -> None:
    """Measure all cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    options = parser.parse_args()
    names = [name for name in SCENARIOS if options.only in name]
    rows = []
    with ProcessPoolExecutor() as pool:
        for name in track(names, description="weights"):
            jobs = [(name, seed) for seed in range(options.runs)]
            runs = list(pool.map(rejections, jobs, chunksize=2))
            for epsilon in SCENARIOS[name][2]:
                powers = np.mean([run[epsilon][0] for run in runs], axis=0)
                best = float(np.mean([run[epsilon][1] for run in runs], axis=0).max())
                row: dict[str, Any] = {"scenario": name, "epsilon": epsilon, "best single": best}
                named = zip(WEIGHTS, powers, strict=True)
                rows.append(row | {f"w = {weight:g}": float(power) for weight, power in named})
    print_table("Power by the weight of the noise", [*rows[0]], [[*row.values()] for row in rows])
    if not options.only:
        save("power-weights", {"runs": options.runs, "cells": rows})


if __name__ == "__main__":
    main()
