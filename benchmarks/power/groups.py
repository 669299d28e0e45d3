"""Private groups: power of permuting all labels and of swapping them within pairs.

Run: python -m benchmarks.power.groups [--runs 200]. Writes results/power-groups.json.

Each data set is tested once in each way; its statistics then serve every epsilon. Alternatives
come in two sizes, so that power is neither the level nor 1 for small epsilon and for large.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.mechanisms.permutation import RELEASES, smoothed_decision, smoothed_pvalue, strongest
from privatest.noise import SimulatedNoise
from privatest_papers.samplers import perturbed_uniform

Rows = NDArray[np.float64]
Draw = Callable[[int, float, np.random.Generator], tuple[Rows, Rows]]
SIZES = (300, 1_000, 5_000, 50_000)
NOISES = (5, 40, 120, 250, 400, 800, 3_000, 20_000)  # N epsilon²
RELABELS = ("permute", "swap")
ALPHA = 0.05


def shift(total: int, size: float, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return N(0, 1) against N(size, 1), with bounds of ±4 mapped to [0, 1]."""
    first = rng.binomial(total, 0.5)
    x, y = rng.normal(size=(first, 1)), rng.normal(size, 1, size=(total - first, 1))
    return np.clip(0.5 + x / 8, 0, 1), np.clip(0.5 + y / 8, 0, 1)


def bump(total: int, size: float, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return uniform rows against rows with a bump of amplitude ``size``."""
    first = rng.binomial(total, 0.5)
    return rng.uniform(size=(first, 1)), perturbed_uniform(total - first, 1, min(size, 1), rng)


# how to draw, and the alternative times sqrt N: one for little noise, one for much
SCENARIOS: dict[str, tuple[Draw, tuple[float, float]]] = {
    "shift": (shift, (7.0, 25.0)),
    "bump": (bump, (6.0, 14.0)),
}


BOUNDS = {"bounds": (-4, 4)}
ONE_COLUMN: dict[str, tuple[Any, dict[str, Any]]] = {
    "mann-whitney": (pt.mannwhitneyu, {}),
    "mann-whitney, one-sided": (pt.mannwhitneyu, {"alternative": "less"}),
    "mann-whitney, decision": (pt.mannwhitneyu, {"release": "decision"}),
    "ks": (pt.ks_2samp, {}),
    "mean": (pt.ipm_test, BOUNDS | {"distance": "mean"}),
    "mmd": (pt.mmd_test, BOUNDS),
}


class Captured(Exception):
    """Carries what a test hands to ``strongest``."""


def handed(x: Rows, y: Rows, relabel: str, seed: int) -> dict[str, Any]:
    """Run a test up to where its kernels are weighed; return what it hands over."""

    def capture(*found: Any, **named: Any) -> None:
        raise Captured(found, named["rows"])

    options: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1, "n_permutations": 299}
    options |= {"adjacency": "row", "relabel": relabel, "rng": seed, "noise": SimulatedNoise(seed)}
    try:
        with patch("privatest.methods.mmd.strongest", capture):
            pt.mmd_test(x, y, **options)
    except Captured as found:
        names = ("values", "pooled", "sensitivities", "null")
        return dict(zip(names, found.args[0], strict=True)) | {"rows": found.args[1]}
    raise AssertionError("the test did not weigh its kernels")


def rejections(job: tuple[str, int, float, int]) -> list[list[bool]]:
    """Return, for each release and noise, which ways of relabelling reject."""
    name, total, size, seed = job
    draw, _ = SCENARIOS[name]
    x, y = draw(total, size / math.sqrt(total), np.random.default_rng(seed))
    found = [handed(x, y, relabel, seed) for relabel in RELABELS]
    return [
        [decided(each, math.sqrt(noise / total), release, seed) for each in found]
        for release in RELEASES
        for noise in NOISES
    ]


def decided(found: dict[str, Any], epsilon: float, release: Any, seed: int) -> bool:
    """Weigh the kernels, draw the noise, and decide."""
    statistics, sensitivity = strongest(**found, epsilon=epsilon, release=release)
    drawn: dict[str, Any] = {"budget": Budget(epsilon), "noise": SimulatedNoise(seed)}
    drawn["sensitivity"] = sensitivity
    if release == "decision":
        return smoothed_decision(statistics, ALPHA, **drawn)
    return smoothed_pvalue(statistics, **drawn) <= ALPHA


def cells(runs: int) -> Iterator[dict[str, Any]]:
    """Measure all cells."""
    keys = [
        (name, total, size)
        for name, (_, sizes) in SCENARIOS.items()
        for total in SIZES
        for size in sizes
    ]
    with ProcessPoolExecutor() as pool:
        for name, total, size in track(keys, description="groups"):
            jobs = [(name, total, size, seed) for seed in range(runs)]
            powers = np.mean(list(pool.map(rejections, jobs, chunksize=4)), axis=0)
            settings = [(release, noise) for release in RELEASES for noise in NOISES]
            for (release, noise), power in zip(settings, powers, strict=True):
                row = {"scenario": name, "N": total, "alternative": size, "release": release}
                row |= {"epsilon": round(math.sqrt(noise / total), 4), "N epsilon²": noise}
                yield row | dict(zip(RELABELS, map(float, power), strict=True))


def one_column(job: tuple[int, int]) -> list[bool]:
    """Return which tests of one column reject N(0, 1) against N(.3, 1), bounds ±4, epsilon 1."""
    size, seed = job
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=size), rng.normal(0.3, 1, size=size)
    common: dict[str, Any] = {"epsilon": 1, "adjacency": "row", "n_permutations": 299, "rng": seed}
    return [
        test(x, y, **options, **common, noise=SimulatedNoise(seed)).reject
        for test, options in ONE_COLUMN.values()
    ]


def tests(runs: int) -> Iterator[dict[str, Any]]:
    """Measure the tests of one column."""
    with ProcessPoolExecutor() as pool:
        for size in (180, 500):
            jobs = [(size, seed) for seed in range(runs)]
            powers = np.mean(list(pool.map(one_column, jobs, chunksize=4)), axis=0)
            yield {"rows a group": size} | dict(zip(ONE_COLUMN, map(float, powers), strict=True))


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    columns = list(tests(options.runs))
    print_table("One column, a shift", [*columns[0]], [[*row.values()] for row in columns])
    rows = list(cells(options.runs))
    print_table("Power with private groups", [*rows[0]], [[*row.values()] for row in rows])
    save("power-groups", {"runs": options.runs, "one column": columns, "cells": rows})


if __name__ == "__main__":
    main()
