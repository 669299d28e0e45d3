"""Power of hsic_test: the default, the maximum alone, and what it was before; swaps.

Run: python -m benchmarks.power.independence [--runs 100]. Writes results/power-independence.json.

Power is the mean over data sets of the probability, over the noise, that the decision is to
reject: exact, not simulated. "before": all rows permuted, columns only as they are, and no
trend. The second table compares permuting all rows with swaps in pairs, without a trend.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Any, get_args
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.mechanisms.permutation import NullLaw, Release, noise_scale, strongest
from privatest.noise import SimulatedNoise
from privatest.numerics.dependence import values
from privatest.numerics.independence import FUNCTIONS, DependencePlan, DependenceStatistics
from privatest_papers.samplers import perturbed_uniform

Rows = NDArray[np.float64]
Pair = tuple[Rows, Rows]
EPSILONS = (0.1, 0.3, 1.0, 5.0)
ALPHA = 0.05
FAMILY = ("kernel", "additive", "kolmogorov", "mean")


def normal(
    n: int, columns: int, rho: float, place: float, sd: float, rng: np.random.Generator
) -> Pair:
    """Return normal columns within [0, 1]; the first of x and of y have correlation ``rho``."""
    rows = rng.normal(size=(n, 2 * columns))
    rows[:, columns] = rho * rows[:, 0] + np.sqrt(1 - rho**2) * rows[:, columns]
    rows = np.clip(place + sd * rows, 0, 1)
    return rows[:, :columns], rows[:, columns:]


def uniform(n: int, rho: float, rng: np.random.Generator) -> Pair:
    """Return uniform columns whose normal scores have correlation ``rho``."""
    from scipy.special import ndtr  # noqa: PLC0415

    rows = rng.normal(size=(n, 2))
    rows[:, 1] = rho * rows[:, 0] + np.sqrt(1 - rho**2) * rows[:, 1]
    return ndtr(rows[:, :1]), ndtr(rows[:, 1:])


def bump(n: int, amplitude: float, rng: np.random.Generator) -> Pair:
    """Return the joint density of Kim and Schrab."""
    rows = perturbed_uniform(n, 2, amplitude, rng)
    return rows[:, :1], rows[:, 1:]


def circle(n: int, noise: float, rng: np.random.Generator) -> Pair:
    """Return rows around a circle: uncorrelated, but dependent."""
    angle = rng.uniform(0, 2 * np.pi, n)
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1) + noise * rng.normal(size=(n, 2))
    rows = np.clip(0.5 + rows / 4, 0, 1)
    return rows[:, :1], rows[:, 1:]


SCENARIOS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "correlation .07, ±4 sd, n = 3000": partial(normal, 3000, 1, 0.07, 0.5, 1 / 8),
    "correlation .15, ±4 sd, n = 1000": partial(normal, 1000, 1, 0.15, 0.5, 1 / 8),
    "correlation .3, ±4 sd, n = 300": partial(normal, 300, 1, 0.3, 0.5, 1 / 8),
    "correlation .1, ±2 sd, n = 2000": partial(normal, 2000, 1, 0.1, 0.5, 1 / 4),
    "correlation .1, crowded off the middle, n = 3000": partial(normal, 3000, 1, 0.1, 0.3, 0.06),
    "correlation .12, 5 + 5 columns, n = 2000": partial(normal, 2000, 5, 0.12, 0.5, 1 / 8),
    "uniform, correlation .07, n = 3000": partial(uniform, 3000, 0.07),
    "bump of .2, n = 3000": partial(bump, 3000, 0.2),
    "bump of .35, n = 1000": partial(bump, 1000, 0.35),
    "circle, n = 1000": partial(circle, 1000, 0.4),
}


NOISY = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
SWAPS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "correlation .2, ±4 sd, n = 1000": partial(normal, 1000, 1, 0.2, 0.5, 1 / 8),
    "correlation .3, 5 + 5 columns, n = 2000": partial(normal, 2000, 5, 0.3, 0.5, 1 / 8),
    "bump of .35, n = 1000": partial(bump, 1000, 0.35),
    "bump of .3, n = 3000": partial(bump, 3000, 0.3),
    "circle, n = 1000": partial(circle, 1000, 0.4),
}


class Captured(Exception):
    """Carries what a test found before it is weighed."""


def captured(
    x: Rows, y: Rows, epsilon: float, seed: int, **options: Any
) -> tuple[DependencePlan, DependenceStatistics]:
    """Run the test up to where its statistics are weighed."""

    def capture(plan: DependencePlan, found: DependenceStatistics, *_: Any, **__: Any) -> None:
        raise Captured(plan, found)

    shared: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (0, 1), "release": "decision"}
    shared |= {"epsilon": epsilon, "rng": seed, "noise": SimulatedNoise(seed)} | options
    try:
        with patch("privatest.methods.hsic.dependence_result", capture):
            pt.hsic_test(x, y, **shared)
    except Captured as caught:
        return caught.args[0], caught.args[1]
    raise AssertionError("the test did not weigh its statistics")


def survival(x: Rows) -> Rows:
    """P(Laplace > x)."""
    tail = 0.5 * np.exp(-np.abs(x))
    found: Rows = np.where(x > 0, tail, 1 - tail)
    return found


def threshold(statistics: Rows, scale: float, level: float) -> float:
    """Return above which noise, in its scales, a smoothed test rejects."""
    low, high = statistics.min() - 80 * scale, statistics.max() + 80 * scale
    for _ in range(60):
        middle = (low + high) / 2
        if survival((middle - statistics) / scale).mean() <= level:
            high = middle
        else:
            low = middle
    return float((high - statistics[0]) / scale)


def chance(
    plan: DependencePlan, found: DependenceStatistics, epsilon: float, release: Release = "decision"
) -> float:
    """Probability over the noise that the test rejects."""
    edges, share = [], plan.trend_share
    if found.family is not None:
        maxima, bound = strongest(
            found.family.values,
            None,
            found.family.sensitivities,
            None if found.family.null is None else NullLaw(*found.family.null),
            rows=len(plan.sides[0].rows),
            epsilon=epsilon,
            release=release,
        )
        scale = noise_scale(bound, epsilon, release)
        edges.append(threshold(maxima, scale, ALPHA * float(1 - share)))
    if found.trends is not None:
        covariances, bound = found.trends
        level = ALPHA * float(share / Fraction(2 * len(covariances)))
        scale = noise_scale(bound, epsilon, "decision")
        edges += [threshold(s * own, scale, level) for own in covariances for s in (1, -1)]
    return float(survival(np.array([min(edges)]))[0])


def powers(job: tuple[str, int]) -> list[list[float]]:
    """Return, for each epsilon, the chances of the default, the maximum alone, and before."""
    name, seed = job
    x, y = SCENARIOS[name](np.random.default_rng(seed))
    family = family_of(x)
    result = []
    with patch.dict(FUNCTIONS, {"mean": (values,)}):
        before = captured(x, y, 1.0, seed, statistics=family, shuffle="permute")
    for epsilon in EPSILONS:
        both = captured(x, y, epsilon, seed)
        alone = captured(x, y, epsilon, seed, statistics=family)
        result.append([chance(*each, epsilon) for each in (both, alone, before)])
    return result


def family_of(x: Rows) -> tuple[str, ...]:
    """All statistics that apply but a trend."""
    return FAMILY if x.shape[1] > 1 else tuple(name for name in FAMILY if name != "additive")


def swaps(job: tuple[str, int]) -> list[list[float]]:
    """Return, for each release and epsilon, the chances of permuting and of swapping."""
    name, seed = job
    x, y = SWAPS[name](np.random.default_rng(seed))
    found = [
        captured(x, y, 1.0, seed, statistics=family_of(x), shuffle=shuffle)
        for shuffle in ("permute", "swap")
    ]
    return [
        [chance(*each, epsilon, release) for each in found]
        for release in get_args(Release)
        for epsilon in NOISY
    ]


def main() -> None:
    """Measure all cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--only", default="", help="scenarios whose name contains this; no JSON")
    options = parser.parse_args()
    cells: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    settings = [(release, epsilon) for release in get_args(Release) for epsilon in NOISY]
    with ProcessPoolExecutor(options.workers) as pool:
        for name in track([n for n in SCENARIOS if options.only in n], description="default"):
            found = _mean(pool, powers, name, options.runs)
            for epsilon, power in zip(EPSILONS, found, strict=True):
                row = {"scenario": name, "epsilon": epsilon}
                kinds = ("default", "maximum alone", "before")
                cells.append(row | dict(zip(kinds, power, strict=True)))
        for name in track([n for n in SWAPS if options.only in n], description="swaps"):
            found = _mean(pool, swaps, name, options.runs)
            for (release, epsilon), power in zip(settings, found, strict=True):
                row = {"scenario": name, "release": release, "epsilon": epsilon}
                pairs.append(row | dict(zip(("permute", "swap"), power, strict=True)))
    for title, rows in (("Power of hsic_test", cells), ("Without a trend", pairs)):
        if rows:
            print_table(title, [*rows[0]], [[*row.values()] for row in rows])
    if not options.only:
        save("power-independence", {"runs": options.runs, "cells": cells, "swaps": pairs})


def _mean(pool: ProcessPoolExecutor, measure: Any, name: str, runs: int) -> list[list[float]]:
    jobs = [(name, seed) for seed in range(runs)]
    return np.mean(list(pool.map(measure, jobs)), axis=0).tolist()  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
