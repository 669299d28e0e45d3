"""Level of everything that tests by released moments, in the corners.

t- and Hotelling tests of one and two samples, comparisons of shares and embedding tests, where the
hypothesis is true: sizes from 5 to 100,000 and very unequal ones, centres up to .95 of the box,
spreads from the noise upwards, skewed laws and atoms, epsilon .1 to 20, delta 0 and 1e-6. The
cells are drawn at random, with a fixed seed, from all combinations.

Run: python -m benchmarks.level.moments [--only 2]. Writes results/level-moments.json after every
cell and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import json
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest
from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise

ALPHA, REPLICATES, NAME = 0.05, 199, "level-moments"
ONE = ((5, 0), (10, 0), (30, 0), (100, 0), (1000, 0), (10_000, 0), (100_000, 0))
TWO = ((5, 5), (10, 10), (10, 1000), (30, 1000), (30, 3000), (100, 100), (1000, 1000), (1000, 100))
EPSILONS, DELTAS, CENTRES, SPREADS = (
    (0.1, 1.0, 5.0, 20.0),
    (0.0, 1e-6),
    (0, 0.3, 0.7, 0.95),
    (1, 3, 10),
)
LAWS = ("normal", "lognormal", "rare", "half")
CELLS = {1: 200, 2: 60, 3: 30, 5: 20, 10: 12}  # cells drawn of each dimension
RUNS = {1: 1000, 2: 600, 3: 500, 5: 300, 10: 200}
FEATURES, FEATURE_RUNS = 40, 1000

library: Any = privatest  # tests are called by data of one or two samples


@dataclass(frozen=True, slots=True)
class Cell:
    """One case; ``m`` = 0 is one sample, ``spread`` is in units of the noise on a deviation."""

    test: str
    law: str
    dimension: int
    n: int
    m: int
    centre: float
    spread: float
    epsilon: float
    delta: float

    @property
    def key(self) -> str:
        """Name in the JSON file."""
        return " ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)


def draw(cell: Cell, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw rows inside the box with their mean exactly at the centre; tails lean inwards."""
    noise = math.sqrt(5 * cell.dimension / (cell.n * cell.epsilon))
    shape, room = (n, cell.dimension), 1 + cell.centre
    rows: NDArray[np.float64]
    if cell.law == "normal":  # cut at three deviations
        rows = rng.standard_normal(shape)
        while (far := np.abs(rows) > 3).any():
            rows[far] = rng.standard_normal(int(far.sum()))
        return cell.centre + min(cell.spread * noise, (1 - cell.centre) / 3) * rows
    if cell.law == "lognormal":  # cut at 30
        rows = np.minimum(np.exp(rng.standard_normal(shape)), 30) - 1.6453137
        return cell.centre - min(cell.spread * noise / 2, room / 29, (1 - cell.centre) / 1.7) * rows
    if cell.law == "rare":  # one of fifty is far away
        rows = (rng.random(shape) < 0.02).astype(float) - 0.02
        return cell.centre - min(cell.spread * noise * 7, room, (1 - cell.centre) / 0.02) * rows
    rows = np.where(rng.random(shape) < 0.5, 0.0, rng.random(shape)) - 0.25  # half are equal
    return cell.centre - min(cell.spread * noise * 3, room, (1 - cell.centre) * 4) * rows


def outcome(cell: Cell, seed: int) -> Any:
    """Run one test where the hypothesis holds."""
    rng = np.random.default_rng([seed, cell.n, cell.dimension])
    samples = [draw(cell, size, rng) for size in (cell.n, cell.m) if size]
    budget: dict[str, Any] = {"epsilon": cell.epsilon, "delta": cell.delta}
    common: dict[str, Any] = {"bounds": (-1, 1), "noise": SimulatedNoise(seed), **budget}
    draws: dict[str, Any] = {"n_bootstrap": REPLICATES, "rng": seed + 1_000_000}
    if cell.test == "means":
        if cell.dimension == 1:
            columns = [rows[:, 0] for rows in samples]
            if len(columns) == 2:
                return library.ttest_ind(*columns, **common)
            return library.ttest_1samp(*columns, cell.centre, **common)
        if len(samples) == 2:
            return library.hotelling_test(*samples, **common, **draws)
        return library.hotelling_1samp(*samples, [cell.centre] * cell.dimension, **common, **draws)
    places = np.linspace(-0.9, 0.9, 8 if cell.test == "me 8" else 3)
    features: dict[str, Any] = {
        "locations": np.repeat(places[:, None], cell.dimension, axis=1),
        "bandwidth": 0.4,
    }
    if cell.test == "compare":
        shares = [library.share(rows, **features, **common) for rows in samples]
        return library.compare(*shares, **draws)
    moments = library.MomentsRelease(REPLICATES)
    return library.me_test(*samples, release=moments, rng=draws["rng"], **features, **common)


def rejections(job: tuple[Cell, range]) -> int:
    """Count rejections over some seeds."""
    cell, seeds = job
    return sum(outcome(cell, seed).pvalue <= ALPHA for seed in seeds)


def cells() -> list[tuple[Cell, int]]:
    """Draw the cells, and say how often each is run."""
    rng, chosen = np.random.default_rng(0), []
    tails = list(product(ONE + TWO, CENTRES, SPREADS, EPSILONS, DELTAS))
    for dimension, count in CELLS.items():
        for index in range(count):
            (n, m), *rest = tails[rng.integers(len(tails))]
            cell = Cell("means", LAWS[index % len(LAWS)], dimension, n, m, *rest)
            chosen.append((cell, RUNS[dimension] if n + m <= 20_000 else RUNS[dimension] // 4))
    pairs = [pair for pair in tails if pair[0] in TWO and pair[-1] > 0]
    for index in range(FEATURES):
        (n, m), *rest = pairs[rng.integers(len(pairs))]
        test = ("compare", "me 3", "me 8")[index % 3]
        chosen.append((Cell(test, LAWS[index % len(LAWS)], 1, n, m, *rest), FEATURE_RUNS))
    cheap_first = sorted(chosen, key=lambda pair: pair[0].dimension)
    return list({cell.key: (cell, runs) for cell, runs in cheap_first}.values())


def main() -> None:
    """Measure every cell; a cell is bad if its rate passes the level by 3 standard errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, help="one dimension")
    parser.add_argument("--seed", type=int, default=0, help="first seed, to run cells again")
    given = parser.parse_args()
    path = RESULTS / f"{NAME}.json"
    done: dict[str, Any] = json.loads(path.read_text())["cells"] if path.exists() else {}
    chosen = [(c, runs) for c, runs in cells() if given.only in (None, c.dimension)]
    with ProcessPoolExecutor(2) as pool:
        for cell, runs in track(chosen, description="level"):
            if cell.key in done:
                continue
            first, step = given.seed, runs // 10
            jobs = [(cell, range(at, at + step)) for at in range(first, first + runs, step)]
            count = sum(pool.map(rejections, jobs))
            excess = (count / runs - ALPHA) / math.sqrt(ALPHA * (1 - ALPHA) / runs)
            done[cell.key] = {"runs": runs, "rejections": count, "excess": round(excess, 2)}
            save(NAME, {"alpha": ALPHA, "replicates": REPLICATES, "cells": done})
    worst = sorted(done.items(), key=lambda item: -item[1]["excess"])[:20]
    rows = [[key, e["runs"], e["rejections"] / e["runs"], e["excess"]] for key, e in worst]
    print_table("worst cells", ["cell", "runs", "rate", "standard errors above"], rows)


if __name__ == "__main__":
    main()
