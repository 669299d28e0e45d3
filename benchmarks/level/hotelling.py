"""Level of hotelling_test over the grid of Dunsche, Kutta and Dette (2022), tables 1 and 2.

Run: python -m benchmarks.level.hotelling [--only 10] [--most 100]. Writes
results/level-hotelling.json after every few runs and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import json
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.methods.means import hotelling_test
from privatest.noise import SimulatedNoise
from privatest_papers.samplers import cubes

ALPHA, REPLICATES, STEP = 0.05, 999, 25
EPSILONS, SIZES = (0.1, 0.5, 1.0, 5.0), (100, 1000, 10_000, 100_000)
RUNS = {1: 1000, 10: 300, 30: 100}
FEW = ((100, 1.0), (1000, 0.1), (1000, 1.0), (10_000, 1.0))  # cells of d = 30 and of delta > 0
NAME = "level-hotelling"
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of the table."""

    law: str
    dimension: int
    n: int
    epsilon: float
    delta: float = 0.0

    @property
    def key(self) -> str:
        """Name in the JSON file."""
        text = f"{self.law} d={self.dimension} n={self.n} epsilon={self.epsilon:g}"
        return f"{text} delta={self.delta:g}" if self.delta else text


def samples(cell: Cell, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """Draw two samples and their bound: section 4 of the paper, off its centre, or appendix C."""
    if cell.law == "off-centre":
        root = math.sqrt(3)
        x, y = rng.uniform(0.5, root, size=(2, cell.n, cell.dimension))
        return x, y, root
    return cubes(cell.dimension, cell.n, rng, mixed=cell.law == "tridiagonal")


def cells() -> list[Cell]:
    """The grid, cheap cells first."""
    laws = ("centred", "off-centre", "tridiagonal")
    grid = [Cell(law, 1, n, e) for law in laws[:2] for n in SIZES for e in EPSILONS]
    few = [Cell(law, 30, n, e) for n, e in FEW for law in laws]
    joint = [Cell(law, d, n, e, 1e-6) for d in (1, 10) for n, e in FEW for law in laws[: d + 1]]
    ten = [Cell(law, 10, n, e) for n in SIZES for e in EPSILONS for law in laws]
    return [*grid, *ten, *few, *joint]


def rejects(cell: Cell, seed: int) -> bool:
    """Run one test where the hypothesis holds."""
    rng = np.random.default_rng([seed, cell.dimension, cell.n])
    x, y, reach = samples(cell, rng)
    return hotelling_test(
        x,
        y,
        bounds=(-reach, reach),
        epsilon=cell.epsilon,
        delta=cell.delta,
        alpha=ALPHA,
        n_bootstrap=REPLICATES,
        rng=seed,
        noise=SimulatedNoise(seed),
    ).reject


def stored() -> dict[str, Any]:
    """Return what earlier runs have found."""
    path = RESULTS / f"{NAME}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    cells: dict[str, Any] = found["cells"] if found.get("replicates") == REPLICATES else {}
    return cells


def main() -> None:
    """Measure every cell; a cell is bad if its rate passes the level by 3 standard errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, help="one dimension")
    parser.add_argument("--most", type=int, default=max(RUNS.values()), help="runs of a cell")
    only, most = (found := parser.parse_args()).only, found.most
    done = stored()
    chosen = [cell for cell in cells() if only in (None, cell.dimension)]
    for cell in track(chosen, description="level"):
        entry = done.setdefault(cell.key, {"runs": 0, "rejections": 0})
        while entry["runs"] < min(RUNS[cell.dimension], most):
            seeds = range(entry["runs"], entry["runs"] + STEP)
            entry["rejections"] += sum(rejects(cell, seed) for seed in seeds)
            entry["runs"] += STEP
            save(NAME, {"alpha": ALPHA, "replicates": REPLICATES, "cells": done})
    rows = []
    for key, entry in done.items():
        runs = max(entry["runs"], 1)
        rate = entry["rejections"] / runs
        excess = (rate - ALPHA) / math.sqrt(ALPHA * (1 - ALPHA) / runs)
        rows.append([key, entry["runs"], rate, excess])
    print_table("level", ["cell", "runs", "rate", "standard errors above"], rows)


if __name__ == "__main__":
    main()
