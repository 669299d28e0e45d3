"""Coverage and width of intervals for quantiles and shifts, and of the exponential mechanism's.

Run: python -m benchmarks.level.quantiles [--runs 400] [--only tuning]. Writes
results/level-quantiles.json after each cell.

Three intervals are compared with ours. "before" counts below all edges of 1,024 cells. "proved"
draws both ends by the exponential mechanism with half of epsilon each (Smith 2011; Drechsler et al.
2021), at the tightest ranks for which coverage can be proved for every population, on the best of
three grids on which it covers. "oracle" is the same with ranks that were fitted to the very law
that is measured, so that it covers just as often as is asked for: no analyst can have it, and it
fails where values are tied. The constants of privatest/quantiles/counting.py were chosen on the
laws called "tuning".
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.data.schema import NumericColumn, Schema
from privatest.methods.quantiles import hodges_lehmann, private_quantile
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import Law, binomial_law, mann_whitney_law
from privatest.numerics.order import pair_counts

ALPHA, FINE = 0.05, 8192
GRIDS = (128, 1024, FINE)  # of the exponential mechanism with proved ranks
LEAST = 0.94  # on a grid so coarse that no count is near the rank its proof does not hold
SIZES, EPSILONS = (200, 1000, 10_000), (0.1, 0.5, 1.0)
MOST = 0.99  # an oracle that covers more often than this would need more runs

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Draw = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True, slots=True)
class Population:
    """A law with public bounds."""

    half: str
    lower: float
    upper: float
    draw: Draw
    median: float
    ninth: float  # its 9th decile
    integer: bool = False

    @property
    def bounds(self) -> Any:
        """What is public about it."""
        if not self.integer:
            return self.lower, self.upper
        return Schema({"x": NumericColumn(int(self.lower), int(self.upper), integer=True)})


def _of(half: str, lower: float, upper: float, law: Any, *, integer: bool = False) -> Population:
    def draw(rng: np.random.Generator, size: int) -> Floats:
        x = np.asarray(law.rvs(size, random_state=rng), dtype=np.float64)
        return np.clip(np.rint(x) if integer else x, lower, upper)

    middle, ninth = (float(np.clip(law.ppf(q), lower, upper)) for q in (0.5, 0.9))
    if integer:
        middle, ninth = float(np.rint(middle)), float(np.rint(ninth))
    return Population(half, lower, upper, draw, middle, ninth, integer)


def _bimodal() -> Population:
    parts = stats.norm(3, 0.7), stats.norm(7, 0.7)

    def draw(rng: np.random.Generator, size: int) -> Floats:
        x = np.where(rng.random(size) < 0.6, rng.normal(3, 0.7, size), rng.normal(7, 0.7, size))
        return np.clip(x, 0, 10)

    places = np.linspace(0, 10, 1_000_001)
    shares = 0.6 * parts[0].cdf(places) + 0.4 * parts[1].cdf(places)
    middle, ninth = (float(places[np.searchsorted(shares, q)]) for q in (0.5, 0.9))
    return Population("tuning", 0, 10, draw, middle, ninth)


POPULATIONS = {
    "uniform": _of("tuning", 0, 110, stats.uniform(0, 100)),
    "ages": _of("tuning", 0, 120, stats.norm(45, 18)),
    "lognormal": _of("tuning", 0, 100, stats.lognorm(1)),
    "bimodal": _bimodal(),
    "exponential": _of("held out", 0, 20, stats.expon()),
    "heavy tails": _of("held out", -200, 230, stats.t(2)),
    "normal": _of("held out", -10, 10, stats.norm(3, 1)),
    "concentrated": _of("held out", 0, 1, stats.norm(0.2, 0.02)),
    "integer ages": _of("held out", 0, 120, stats.norm(38, 22), integer=True),
    "atoms": _of("held out", 0, 20, stats.poisson(4)),
}
SHIFT = 0.25  # of the standard deviation of "normal"
# rows of both samples, epsilon; population
SHIFTS = (
    (200, 200, 0.5, "normal"), (200, 100, 1.0, "normal"), (1000, 1000, 0.1, "normal"),
    (1000, 1000, 0.5, "normal"), (2000, 1000, 1.0, "normal"), (1000, 500, 0.5, "integer ages"),
    (20, 30, 10.0, "normal"), (200, 100, 10.0, "atoms"),
)  # fmt: skip
# rows, epsilon, population, quantile: far from the median, few rows, much epsilon
CORNERS = (
    (5, 10.0, "exponential", 0.5), (20, 10.0, "normal", 0.5), (20, 10.0, "exponential", 0.9),
    (100, 10.0, "atoms", 0.5), (100, 10.0, "exponential", 0.9), (1000, 10.0, "atoms", 0.9),
    (1000, 10.0, "exponential", 0.5), (1000, 1.0, "exponential", 0.9),
    (10_000, 0.05, "normal", 0.9), (10_000, 1.0, "heavy tails", 0.9),
    (10_000, 10.0, "normal", 0.5), (10_000, 0.5, "lognormal", 0.9),
)  # fmt: skip


def covers_and_width(ends: Floats, truth: float) -> tuple[float, float]:
    """Return how often intervals cover, and their mean width."""
    covers = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return float(covers.mean()), float(np.diff(ends).mean())


class Exponential:
    """Both ends of an interval drawn by the exponential mechanism, from counts below edges.

    ``below`` has a row for each run; ``epsilon`` is that for one of the things that are counted.
    """

    def __init__(self, below: Integers, places: Floats, epsilon: float, seed: int) -> None:
        self.below, self.places, self.epsilon = below, places, epsilon
        self.total = int(below[0, -1])
        self.gumbels = np.random.default_rng(seed).gumbel(size=(2, *below.shape))

    def ends(self, ranks: tuple[float, float]) -> Floats:
        """Return the intervals; a rank that no count can have gives the bound."""
        found = []
        for side, rank in enumerate(ranks):
            if rank < 0 or rank > self.total:
                drawn = np.full(len(self.below), (0, -1)[side])
            else:
                scores = -self.epsilon / 4 * np.abs(self.below - rank)
                drawn = np.argmax(scores + self.gumbels[side], axis=1)
            found.append(self.places[drawn])
        return np.stack(found, axis=1)

    def proved(self, law: Law) -> Floats:
        """Return intervals whose coverage is proved.

        A draw passes a rank with probability at most cells · exp(-epsilon d/4) if its target is d
        before it, and the rank of the place that is looked for has a known law.
        """
        cells = len(self.places) - 1

        def missed(rank: float, values: Floats) -> float:
            tail = np.exp(-self.epsilon / 4 * np.maximum(values - rank, 0)) * cells
            return float(law.masses @ np.minimum(tail, 1.0))

        ranks = []
        for values in (law.values, self.total - law.values):
            low, high = -10.0 * self.total - 200 / self.epsilon, float(self.total)
            for _ in range(60):
                middle = (low + high) / 2
                below = missed(middle, values) <= ALPHA / 2
                low, high = (middle, high) if below else (low, middle)
            ranks.append(low)
        return self.ends((ranks[0], self.total - ranks[1]))

    def oracle(self, middle: float, truth: float, coverage: float) -> Floats:
        """Return intervals at ranks fitted so that they cover just so often."""
        low, high = 0.0, float(self.total)
        for _ in range(14):
            offset = (low + high) / 2
            ends = self.ends((middle - offset, middle + offset))
            enough = covers_and_width(ends, truth)[0] >= coverage
            low, high = (low, offset) if enough else (offset, high)
        return self.ends((middle - high, middle + high))


def below_edges(x: Floats, lower: float, upper: float, cells: int) -> Integers:
    """Return counts below edges, for each row of samples."""
    places = np.clip(((x - lower) / (upper - lower) * cells).astype(np.int64), 0, cells - 1)
    counts = np.stack([np.bincount(row, minlength=cells) for row in places])
    return np.concatenate([np.zeros((len(x), 1), dtype=np.int64), np.cumsum(counts, 1)], axis=1)


def compared(
    ours: Floats, before: Floats, below: Integers, places: Floats, epsilon: float,
    law: Law, middle: float, truth: float,
) -> dict[str, float]:  # fmt: skip
    """Return coverages and widths of all intervals; ``epsilon`` is that of one thing."""
    coverage, width = covers_and_width(ours, truth)
    found = {"coverage": coverage, "width": width}
    found["coverage before"], found["width before"] = covers_and_width(before, truth)
    found |= proved_row(below, places, epsilon, law, truth)
    fine = Exponential(below, places, epsilon, 1)
    same = max(1 - ALPHA, min(coverage, MOST))
    for name, wanted in (("nominal", 1 - ALPHA), ("same", same)):
        ends = fine.oracle(middle, truth, wanted)
        found[f"width oracle {name}"] = covers_and_width(ends, truth)[1]
    return found


def proved_row(
    below: Integers, places: Floats, epsilon: float, law: Law, truth: float
) -> dict[str, float]:
    """Return coverage and width of the exponential mechanism's interval with proved ranks."""
    rows = []
    for cells in GRIDS:
        every = slice(None, None, FINE // cells)
        grid = Exponential(below[:, every], places[every], epsilon, cells)
        rows.append(covers_and_width(grid.proved(law), truth))
    covering = [row for row in rows if row[0] >= LEAST]
    coverage, width = min(covering, key=lambda row: row[1]) if covering else max(rows)
    return {"coverage proved": coverage, "width proved": width}


def quantile_row(n: int, epsilon: float, name: str, q: float, runs: int) -> dict[str, float]:
    """Measure one cell of quantiles."""
    population = POPULATIONS[name]
    truth = population.median if q == 0.5 else population.ninth
    rng = np.random.default_rng([n, round(1000 * epsilon), round(100 * q)])
    x = np.stack([population.draw(rng, n) for _ in range(runs)])
    ends: dict[int | None, list[tuple[float, float]]] = {None: [], 1024: []}
    for cells, found in ends.items():
        for seed, row in enumerate(x):
            options: Any = {"bounds": population.bounds, "epsilon": epsilon, "cells": cells}
            values = {"x": row} if population.integer else row
            each = private_quantile(values, q, **options, noise=SimulatedNoise(seed))
            found.append((each.lower, each.upper))
    below = below_edges(x, population.lower, population.upper, FINE)
    places = np.linspace(population.lower, population.upper, FINE + 1)
    law, (ours, before) = binomial_law(n, q), (np.array(found) for found in ends.values())
    row = compared(ours, before, below, places, epsilon, law, n * q, truth)
    ranks = stats.binom.ppf([ALPHA / 2, 1 - ALPHA / 2], n, q).astype(int)
    order = np.sort(x, axis=1)[:, np.clip(ranks, 0, n - 1)]
    return row | {"width without noise": float(np.diff(order).mean())}


def shift_row(n: int, m: int, epsilon: float, name: str, runs: int) -> dict[str, float]:
    """Measure one cell of shifts, and how often no shift is rejected where there is none."""
    population, rejected = POPULATIONS[name], 0
    shift = SHIFT if population.half == "held out" and name == "normal" else 1.0
    rng = np.random.default_rng([n, m, round(1000 * epsilon)])
    width = population.upper - population.lower
    ends: dict[int | None, list[tuple[float, float]]] = {None: [], 1024: []}
    below = []
    for seed in range(runs):
        x, y = population.draw(rng, n), population.draw(rng, m)
        moved = np.clip(x + shift, population.lower, population.upper)
        for cells, found in ends.items():
            options: Any = {"bounds": population.bounds, "epsilon": epsilon, "cells": cells}
            named = ({"x": moved}, {"x": y}) if population.integer else (moved, y)
            each = hodges_lehmann(*named, **options, noise=SimulatedNoise(seed))
            found.append((each.estimates["lower"], each.estimates["upper"]))
        named = ({"x": x}, {"x": y}) if population.integer else (x, y)
        options = {"bounds": population.bounds, "epsilon": epsilon}
        rejected += hodges_lehmann(*named, **options, noise=SimulatedNoise(runs + seed)).reject
        cells_of = [
            np.diff(below_edges(each[None], population.lower, population.upper, FINE // 2)[0])
            for each in (moved, y)
        ]
        below.append(np.concatenate([[0], np.cumsum(pair_counts(*cells_of)), [n * m]]))
    ours, before = (np.array(found) for found in ends.values())
    law = mann_whitney_law(n, m).scaled(0.5, n * m / 2)
    places: Floats = np.arange(FINE + 1, dtype=np.float64)
    places = np.multiply(places - FINE / 2 + 0.5, 2 * width / FINE, dtype=np.float64)
    places[0], places[-1] = -width, width
    row = compared(
        ours, before, np.array(below), places, epsilon / max(n, m), law, n * m / 2, shift
    )
    return row | {"level": rejected / runs}


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--shift-runs", type=int, default=200, help="they are slower")
    parser.add_argument("--only", choices=("tuning", "held out"), help="print, and store nothing")
    options = parser.parse_args()
    found: dict[str, Any] = {"runs": options.runs, "shift_runs": options.shift_runs}
    found |= {"quantiles": [], "shifts": []}
    grid = [(n, e, law, 0.5) for law in POPULATIONS for n in SIZES for e in EPSILONS]
    cases = [*grid, *CORNERS]
    if options.only:
        cases = [case for case in grid if POPULATIONS[case[2]].half == options.only]
    for case in track(cases, description="quantiles"):
        row = dict(zip(("n", "epsilon", "law", "q"), case, strict=True))
        row["half"] = POPULATIONS[case[2]].half
        found["quantiles"].append(row | quantile_row(*case, options.runs))
        if not options.only:
            save("level-quantiles", found)
    for moved in track(() if options.only else SHIFTS, description="shifts"):
        row = dict(zip(("n", "m", "epsilon", "law"), moved, strict=True))
        found["shifts"].append(row | shift_row(*moved, options.shift_runs))
        save("level-quantiles", found)
    for name in ("quantiles", "shifts"):
        if rows := found[name]:
            print_table(name, list(rows[0]), [list(each.values()) for each in rows])


if __name__ == "__main__":
    main()
