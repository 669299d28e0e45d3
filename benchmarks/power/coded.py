"""What looking at codes of rows costs ``mmd_test``: power beside that without codes, and level.

Run: python -m benchmarks.power.coded [--runs 60]. Writes results/power-coded.json.

From a million rows on a test looks at two bytes of each number. Here samples have 20,000 rows, and
codes are forced; effects are near what can be found there. Both ways see the same data sets, in the
same secret order. Power, and the rate of rejections where both samples have one law, is the mean
over data sets of the probability, over the noise, that the decision is to reject. Seeds begin at
700,000: no setting of codes was chosen on them.
"""

from __future__ import annotations

import argparse
import json
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
from benchmarks.measure import RESULTS, save
from benchmarks.power.portfolio import Captured, capturing, rejection
from benchmarks.report import print_table
from benchmarks.scenarios import Pair, correlated, scaled, shifted
from privatest.mechanisms.permutation import noise_scale, strongest
from privatest.noise import SimulatedNoise

ROWS = 20_000
EPSILONS = (0.1, 1.0)
FIRST_SEED = 700_000
WAYS = {"without codes": 1 << 62, "codes": 0}  # rows from which codes are looked at
Draw = Callable[[np.random.Generator], Pair]


def counted(d: int, rate: float, rng: np.random.Generator) -> Pair:
    """Return Poisson numbers up to 20 as [0, 1], of rate 3 and ``rate``: nearly all are tied."""
    draws = rng.poisson(3, size=(ROWS, d)), rng.poisson(rate, size=(ROWS, d))
    return np.minimum(draws[0], 20) / 20, np.minimum(draws[1], 20) / 20


def skewed(d: int, factor: float, rng: np.random.Generator) -> Pair:
    """Return lognormal numbers in bounds that are far too wide; one column is scaled."""
    x, y = np.exp(rng.normal(size=(2, ROWS, d)))
    y[:, 0] *= factor
    return np.minimum(x / 100, 1), np.minimum(y / 100, 1)


def with_atoms(d: int, share: float, rng: np.random.Generator) -> Pair:
    """Return uniform numbers, of which half of the first sample and ``share`` are 0."""
    x, y = rng.uniform(size=(2, ROWS, d))
    x[rng.uniform(size=x.shape) < 0.5] = 0
    y[rng.uniform(size=y.shape) < share] = 0
    return x, y


def repeated(d: int, rng: np.random.Generator) -> Pair:
    """Return rows that are copies of 50."""
    pool = rng.uniform(size=(50, d))
    return pool[rng.integers(50, size=ROWS)], pool[rng.integers(50, size=ROWS)]


def crowded_corner(d: int, rng: np.random.Generator) -> Pair:
    """Return rows nearly all of which are in one of 256 cells of every column."""
    x, y = rng.beta(0.05, 20, size=(2, ROWS, d))
    return x, y


ALTERNATIVES: dict[str, Draw] = {
    "all of 10 columns shifted by .012 sd": partial(shifted, ROWS, 10, 10, 0.012),
    "one of 5 columns shifted by .03 sd": partial(shifted, ROWS, 5, 1, 0.03),
    "3 columns wider by 2%": partial(scaled, ROWS, 3, 1.02),
    "two of 10 columns correlated by .06": partial(correlated, ROWS, 10, 0.06),
    "counts in 4 columns, rates 3 and 3.04": partial(counted, 4, 3.04),
    "one of 6 skewed columns larger by 5%": partial(skewed, 6, 1.05),
    "half zeros in 4 columns, and 51%": partial(with_atoms, 4, 0.51),
}
NULLS: dict[str, Draw] = {
    "normal, 10 columns": partial(shifted, ROWS, 10, 0, 0.0),
    "counts, 4 columns": partial(counted, 4, 3.0),
    "skewed, 6 columns": partial(skewed, 6, 1.0),
    "half zeros, 4 columns": partial(with_atoms, 4, 0.5),
    "copies of 50 rows, 10 columns": partial(repeated, 10),
    "one cell in a corner, 3 columns": partial(crowded_corner, 3),
}
LAWS = ALTERNATIVES | NULLS


def statistics(x: NDArray[Any], y: NDArray[Any], seed: int, many: int) -> dict[str, Any]:
    """Return what a test hands to where statistics are weighed."""
    noise = SimulatedNoise(seed)
    with patch("privatest.methods.mmd._MANY_ROWS", many), capturing("methods.mmd"):
        try:
            pt.mmd_test(x, y, bounds=(0, 1), epsilon=1, release="decision", rng=seed, noise=noise)
        except Captured as found:
            return dict(found.args[0])
    raise AssertionError("the test did not weigh its statistics")


def chances(job: tuple[str, int]) -> list[list[float]]:
    """Return the chance to reject of each way, for each epsilon."""
    name, seed = job
    x, y = LAWS[name](np.random.default_rng(seed))
    found = []
    for many in WAYS.values():
        captured = statistics(x, y, seed, many)
        own = []
        for epsilon in EPSILONS:
            largest, bound = strongest(**captured, epsilon=epsilon, release="decision")
            own.append(rejection(largest, noise_scale(bound, epsilon, "decision")))
        found.append(own)
    return found


def cells_of(chances_by_law: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return means over data sets, with standard errors."""
    cells = []
    for name, found in chances_by_law.items():
        runs = np.array(found)  # runs × ways × epsilons
        gaps = runs[:, 1] - runs[:, 0]
        errors = np.std([runs[:, 1], gaps], axis=1, ddof=1) / np.sqrt(len(runs))
        for place, epsilon in enumerate(EPSILONS):
            plain, coded = runs[:, :, place].mean(axis=0)
            cells.append(
                {
                    "law": name,
                    "null": name in NULLS,
                    "epsilon": epsilon,
                    "without codes": round(float(plain), 4),
                    "codes": round(float(coded), 4),
                    "standard error": round(float(errors[0, place]), 4),
                    "difference": round(float(gaps[:, place].mean()), 4),
                    "its standard error": round(float(errors[1, place]), 4),
                }
            )
    return cells


def main() -> None:
    """Measure all cells; runs are added to those that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60, help="to be added; 0 only prints")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    path = RESULTS / "power-coded.json"
    known = json.loads(path.read_text(encoding="utf-8"))["chances"] if path.exists() else {}
    begin = FIRST_SEED + min((len(known.get(name, ())) for name in LAWS), default=0)
    jobs = [(name, seed) for seed in range(begin, begin + options.runs) for name in LAWS]
    with ProcessPoolExecutor(options.processes) as pool:
        found = pool.map(chances, jobs)
        for (name, _), own in zip(jobs, track(found, "codes", len(jobs)), strict=True):
            known.setdefault(name, []).append(np.round(own, 6).tolist())
    cells = cells_of(known)
    print_table("Rate of rejections at level .05", [*cells[0]], [[*c.values()] for c in cells])
    if options.runs:
        runs = min(map(len, known.values()))
        save("power-coded", {"rows": ROWS, "runs": runs, "cells": cells, "chances": known})


if __name__ == "__main__":
    main()
