"""What a family of statistics loses against its best member, known in hindsight.

Run: python -m benchmarks.power.portfolio [--runs 100]. Writes results/power-portfolio.json and
results/power-portfolio.png.

Each data set is tested once; its statistics then serve every epsilon, every member alone, and
the family of kernels as it was weighed before ("kernels, as before"). Power is the mean over data
sets of the probability, over the noise, that the decision is to reject: exact, not simulated.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from benchmarks.scenarios import (
    beta_columns,
    bump_columns,
    bumps,
    correlated,
    crowded,
    diagonal,
    mixed_table,
    mixture,
    poisson,
    scaled,
    shifted,
)
from privatest.data.schema import CategoricalColumn, NumericColumn
from privatest.mechanisms.permutation import noise_scale, strongest
from privatest.noise import SimulatedNoise

EPSILONS = (0.1, 0.3, 1.0, 5.0)
ALPHA = 0.05
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scenario:
    """How to draw two samples, and how they are tested."""

    draw: Callable[[np.random.Generator], tuple[Any, Any]]
    private: bool = False  # private groups
    bounds: Any = (0, 1)


SCENARIOS = {
    "1 bump, d = 1, n = 3000": Scenario(partial(bumps, 3000, 1, 1, 0.2)),
    "6 bumps, d = 1, n = 3000": Scenario(partial(bumps, 3000, 1, 6, 0.5)),
    "shift, d = 1, n = 500": Scenario(partial(shifted, 500, 1, 1, 0.2)),
    "shift, d = 1, private groups of 500": Scenario(partial(shifted, 500, 1, 1, 0.25), True),
    "scale, d = 1, n = 2000": Scenario(partial(scaled, 2000, 1, 1.15)),
    "mixture, d = 1, n = 1000": Scenario(partial(mixture, 1000, 1, 0.12)),
    "counts, d = 1, n = 500": Scenario(partial(poisson, 500, 3.0, 3.4), bounds=(0, 20)),
    "correlation, d = 2, n = 1000": Scenario(partial(correlated, 1000, 2, 0.2)),
    "bumps, d = 3, n = 3000": Scenario(partial(bump_columns, 3000, 3, 0.12)),
    "scale, d = 3, n = 2000": Scenario(partial(scaled, 2000, 3, 1.1)),
    "numbers and categories, n = 1000": Scenario(partial(mixed_table, 1000), bounds="mixed"),
    "shift of one column, d = 5, n = 1000": Scenario(partial(shifted, 1000, 5, 1, 0.17)),
    "shift, d = 5, private groups of 1000": Scenario(partial(shifted, 1000, 5, 5, 0.12), True),
    "all columns, d = 10, n = 1000": Scenario(partial(beta_columns, 1000, 10, 10, 1.08)),
    "one column, d = 10, n = 1000": Scenario(partial(beta_columns, 1000, 10, 1, 1.22)),
    "correlation of two, d = 10, n = 1000": Scenario(partial(correlated, 1000, 10, 0.25)),
    "crowded bounds, d = 10, n = 1000": Scenario(partial(crowded, 1000, 10, 0.006)),
    "diagonal, d = 10, n = 1000": Scenario(partial(diagonal, 1000, 10, 1.2)),
    "shift, d = 10, n = 100,000": Scenario(partial(shifted, 100_000, 10, 10, 0.008)),
    "shift of three columns, d = 30, n = 1000": Scenario(partial(shifted, 1000, 30, 3, 0.15)),
}


MIXED = pt.Schema(
    {
        "age": NumericColumn(0, 100),
        "sex": CategoricalColumn(("f", "m")),
        "region": CategoricalColumn(("n", "e", "s", "w")),
    }
)


class Captured(Exception):
    """Carries what a test hands to ``strongest``."""


def capturing(module: str) -> Any:
    """Stop a test of this module where its statistics are weighed: raises :class:`Captured`."""

    def capture(values: Any, pooled: Any, sensitivities: Any, null: Any, **rest: Any) -> None:
        raise Captured(
            {
                "values": values,
                "pooled": pooled,
                "sensitivities": sensitivities,
                "null": null,
                "rows": rest["rows"],
            }
        )

    return patch(f"privatest.{module}.strongest", capture)


def statistics(name: str, seed: int, epsilon: float, **options: Any) -> dict[str, Any]:
    """Run a test up to where its statistics are weighed; return what it hands over."""
    scenario = SCENARIOS[name]
    x, y = scenario.draw(np.random.default_rng(seed))
    bounds = MIXED if scenario.bounds == "mixed" else scenario.bounds

    try:
        with capturing("methods.mmd"):
            pt.mmd_test(
                x,
                y,
                bounds=bounds,
                adjacency="row" if scenario.private else "one",
                epsilon=epsilon,
                release="decision",
                rng=seed,
                noise=SimulatedNoise(seed),
                **options,
            )
    except Captured as found:
        return dict(found.args[0])
    raise AssertionError("the test did not weigh its statistics")


def rejection(values: Floats, scale: float) -> float:
    """Probability over Laplace noise that the smoothed decision rejects."""

    def survival(x: Floats) -> Floats:
        tail = 0.5 * np.exp(-np.abs(x))
        return np.where(x > 0, tail, 1 - tail)

    low, high = values.min() - 60 * scale, values.max() + 60 * scale
    for _ in range(60):
        middle = (low + high) / 2
        if survival((middle - values) / scale).mean() <= ALPHA:
            high = middle
        else:
            low = middle
    return float(survival(np.array([(high - values[0]) / scale]))[0])


def before(found: dict[str, Any], epsilon: float, kernels: int) -> float:
    """Kernels only, as they were weighed: (T - mean)/sqrt(sd² + 2 s²)."""
    bounds = found["sensitivities"][:kernels]
    scales = np.array([noise_scale(bound, epsilon, "decision") for bound in bounds])
    null = found["null"]
    means, deviations = null.means[:kernels], null.deviations[:kernels]
    weights = np.sqrt(deviations**2 + 2 * scales**2)
    largest = ((found["values"][:kernels] - means[:, None]) / weights[:, None]).max(axis=0)
    return rejection(largest, float((scales / weights).max()))


def powers(job: tuple[str, int]) -> dict[float, tuple[float, float, list[float]]]:
    """Return, for each epsilon, the chance to reject of the family, as before, and of members."""
    name, seed = job
    result = {}
    found: dict[str, Any] = {}
    for epsilon in EPSILONS:
        if not found or SCENARIOS[name].private:  # how labels are permuted depends on epsilon
            found = statistics(name, seed, epsilon)
            kernels = len(statistics(name, seed, epsilon, statistics="kernel")["values"])
        largest, bound = strongest(**found, epsilon=epsilon, release="decision")
        family = rejection(largest, noise_scale(bound, epsilon, "decision"))
        members = [
            rejection(values, noise_scale(own, epsilon, "decision"))
            for values, own in zip(found["values"], found["sensitivities"], strict=True)
        ]
        result[epsilon] = family, before(found, epsilon, kernels), members
    return result


def main() -> None:
    """Measure all cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    options = parser.parse_args()
    names = [name for name in SCENARIOS if options.only in name]
    cells: list[dict[str, Any]] = []
    with ProcessPoolExecutor() as pool:
        for name in track(names, description="power of families"):
            runs = list(pool.map(powers, [(name, seed) for seed in range(options.runs)]))
            for epsilon in EPSILONS:
                family, earlier = np.mean([run[epsilon][:2] for run in runs], axis=0)
                members = np.mean([run[epsilon][2] for run in runs], axis=0)
                cells.append(
                    {
                        "scenario": name,
                        "epsilon": epsilon,
                        "default": float(family),
                        "kernels, as before": float(earlier),
                        "best in hindsight": float(members.max()),
                    }
                )
    print_table("Power at level .05", [*cells[0]], [[*cell.values()] for cell in cells])
    gaps = np.array([cell["best in hindsight"] - cell["default"] for cell in cells])
    gains = np.array([cell["default"] - cell["kernels, as before"] for cell in cells])
    print(f"{len(cells)} cells, {options.runs} data sets each")
    print(f"below the best in hindsight: mean {gaps.mean():.3f}, most {gaps.max():.3f}")
    print(f"above kernels as before: mean {gains.mean():.3f}, least {gains.min():.3f}")
    if not options.only:
        save("power-portfolio", {"runs": options.runs, "cells": cells})
        plot(cells, RESULTS / "power-portfolio.png")


def plot(cells: list[dict[str, Any]], path: Path) -> None:
    """Draw the default, and kernels as before, against the best in hindsight."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis, kind in zip(axes, ("default", "kernels, as before"), strict=True):
        for epsilon, marker in zip(EPSILONS, "ovs^", strict=True):
            own = [cell for cell in cells if cell["epsilon"] == epsilon]
            axis.plot(
                [cell["best in hindsight"] for cell in own],
                [cell[kind] for cell in own],
                marker,
                label=f"epsilon = {epsilon:g}",
                alpha=0.8,
            )
        axis.plot([0, 1], [0, 1], color="grey", linewidth=1)
        axis.set_title(f"mmd_test: {kind}")
        axis.set_xlabel("power of the best single statistic, in hindsight")
    axes[0].set_ylabel("power")
    axes[0].legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
