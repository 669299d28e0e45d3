"""Power of test_of_tests and sarrm_test against the curves published by Kim and Schrab (2023).

Subsets are independent, so that the number that rejects is binomial. The share of subsets that
reject is measured over all runs; the power then follows exactly, for any epsilon.

Run: python -m benchmarks.power.subsample [--runs 300] [--figure privacy_mid]
Writes results/power-subsample.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from scipy import stats

from benchmarks.measure import save
from benchmarks.report import print_table
from benchmarks.scenarios import perturbed_uniform
from privatest.any_test.running import Plan, rejections
from privatest.any_test.sarrm import on_grid
from privatest.any_test.sides import read_sides
from privatest.any_test.subtests import sub_test
from privatest.noise import SimulatedNoise
from privatest.nulls import LatticeTulap
from privatest.subsample import SarrmParameters, sarrm_parameters, tot_pvalue

CURVES = Path(__file__).with_name("kim-schrab-power-mmd.json")
FIGURES = ("privacy_mid", "privacy_low")
TOLERANCE, PUBLISHED_RUNS, ALPHA = 0.08, 200, 0.05


@dataclass(frozen=True)
class Subsets:
    """What decides how often a subset rejects."""

    n: int
    amplitude: float
    count: int
    sub_alpha: float
    n_permutations: int


@dataclass(frozen=True)
class Case:
    """One point of a published curve, and its power as a function of the share that rejects."""

    figure: str
    method: str
    epsilon: float
    published: float
    subsets: Subsets
    power: Callable[[float], float]


def tot_power(epsilon: float, subsets: Subsets, share: float) -> float:
    """Probability that the noisy count passes the point where its p-value is alpha."""
    law, low, high = LatticeTulap(1, epsilon), -1000.0, 1000.0
    for _ in range(100):
        middle = (low + high) / 2
        above = tot_pvalue(middle, subsets.count, subsets.sub_alpha, law) > ALPHA
        low, high = (middle, high) if above else (low, middle)
    counts = np.arange(subsets.count + 1)
    masses = stats.binom.pmf(counts, subsets.count, share)
    return float(masses @ law.survival(high - counts))


def sarrm_power(found: SarrmParameters, share: float) -> float:
    """Probability of a majority after the coins."""
    turned = 1 - found.truth + (2 * found.truth - 1) * share
    return float(stats.binom.sf(found.k, found.n_subsets, turned))


def cases(names: list[str]) -> list[Case]:
    """Every point, with our defaults; SARRM with the authors' number of subsets where it differs.

    Their search for k starts at 2, so that they use 5 subsets where 3 serve.
    """
    listed = []
    for name in names:
        figure = json.loads(CURVES.read_text())["figures"][name]
        where = figure["n"], figure["amplitude"]
        subsets = Subsets(*where, int(figure["n"] ** 0.5), 0.25, 199)
        for epsilon, power in zip(figure["values"], figure["power"]["TOT"], strict=True):
            law = partial(tot_power, epsilon, subsets)
            listed.append(Case(name, "TOT", epsilon, power, subsets, law))
        for epsilon, power in zip(figure["values"], figure["power"]["SARRM"], strict=True):
            default = sarrm_parameters(epsilon, ALPHA)
            for k in sorted({default.k, max(default.k, 2)}):
                found, permutations = on_grid(sarrm_parameters(epsilon, ALPHA, k=k), 399)
                subsets = Subsets(*where, found.n_subsets, found.sub_alpha, permutations)
                law = partial(sarrm_power, found)
                listed.append(Case(name, "SARRM", epsilon, power, subsets, law))
    return listed


def rejecting(subsets: Subsets, seed: int) -> int:
    """Count the subsets of one run that reject."""
    rng = np.random.default_rng([seed, subsets.count, 1])
    x = perturbed_uniform(subsets.n, 1, subsets.amplitude, rng)
    y = rng.uniform(size=(subsets.n, 1))
    bounds: dict[str, Any] = {"bounds": (0, 1), "bounds_x": None, "bounds_y": None}
    sides = read_sides(x, y, "two-sample", "one", **bounds)
    test = sub_test("mmd", sides, None)
    plan = Plan(test, subsets.count, subsets.sub_alpha, subsets.n_permutations)
    return sum(rejections(sides, plan, rng, SimulatedNoise(seed)))


def row(case: Case, share: float, runs: int) -> dict[str, Any]:
    """Compare the power with the published one."""
    error = (share * (1 - share) / (runs * case.subsets.count)) ** 0.5
    power = case.power(share)
    return {
        "figure": case.figure,
        "method": case.method,
        "epsilon": case.epsilon,
        "subsets": case.subsets.count,
        "share": share,
        "power": power,
        "error": (case.power(share + error) - case.power(share - error)) / 2,
        "published": case.published,
        "its error": (case.published * (1 - case.published) / PUBLISHED_RUNS) ** 0.5,
        "close": abs(power - case.published) <= TOLERANCE,
    }


def main() -> None:
    """Measure, save and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--figure", choices=FIGURES, action="append")
    arguments = parser.parse_args()
    listed = cases(arguments.figure or list(FIGURES))
    shares: dict[Subsets, float] = {}
    with ProcessPoolExecutor() as pool:
        for subsets in track(list(dict.fromkeys(case.subsets for case in listed))):
            jobs = pool.map(partial(rejecting, subsets), range(arguments.runs), chunksize=8)
            shares[subsets] = float(np.mean(list(jobs))) / subsets.count
    rows = [row(case, shares[case.subsets], arguments.runs) for case in listed]
    save("power-subsample", {"runs": arguments.runs, "tolerance": TOLERANCE, "rows": rows})
    title = f"power of TOT and SARRM ({arguments.runs} runs; published: {PUBLISHED_RUNS})"
    print_table(title, list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
