"""Level of the correlation tests, and coverage and width of their intervals.

Run: python -m benchmarks.level.correlation [--runs 1000] [--coverage-runs 300]. Writes
results/level-correlation.json after each cell, and goes on from there when it is started again
with as many runs. The p-value of linregress is that of pearsonr.
Intervals for the slope and for Pearson's correlation cover a value if the value is accepted: their
ends are looked for in the first runs only, for the width.
"""

from __future__ import annotations

import argparse
import json
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

import privatest as pt
from benchmarks.measure import RESULTS, missing, save
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.data.encoding import encode_numeric_pairs
from privatest.methods import correlation as rank_intervals
from privatest.methods import regression as line
from privatest.methods.regression import release_line
from privatest.noise import SimulatedNoise

BOX: dict[str, Any] = {"bounds_x": (-4, 4), "bounds_y": (-4, 4)}
TESTS: dict[str, Any] = {
    "kendall": pt.kendalltau,
    "spearman": pt.spearmanr,
    "pearson": pt.pearsonr,
    "regression": pt.linregress,
}
COVERED = {  # by law: correlations
    "normal": (0.0, 0.8, 0.95),
    "skew": (0.3, 0.95),
    "heavy": (0.8,),
    "ties": (0.3,),
}
COVERED_AT = ((5, 10.0), (20, 10.0), (100, 10.0), (1000, 0.3), (1000, 10.0))
ALL_NULLS = ("rare", "skew", "narrow", "ties", "normal")
NULLS = {"pearson": ALL_NULLS, "pearson, greater": ("rare", "skew"), "kendall": ("rare", "ties")}
NULLS["spearman"] = NULLS["kendall"]
NULL_BUDGETS = {  # by size: epsilon and delta
    4: ((1.0, 0.0), (10.0, 0.0)),
    5: ((0.3, 0.0), (10.0, 0.0)),
    10: ((1.0, 0.0), (10.0, 0.0)),
    20: ((10.0, 0.0),),
    100: ((0.3, 0.0), (1.0, 1e-6), (10.0, 0.0)),
    1000: ((0.05, 0.0), (1.0, 0.0), (10.0, 0.0)),
    10_000: ((0.05, 0.0), (1.0, 1e-6), (10.0, 0.0)),
}
FEW_SIZES, HARD = (5, 20, 100), ("rare", "skew")
WIDTHS = 3  # runs in which the ends of slow intervals are found
FINE = {"_ANGLES": line._ANGLES, "_CORRELATIONS": line._CORRELATIONS, "_STEPS": line._STEPS}
ROUGH = {"_ANGLES": 3, "_CORRELATIONS": 3, "_STEPS": 0}

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def draw(law: str, correlation: float, n: int, rng: np.random.Generator) -> Pair:
    """Draw rows and clip them to the bounds; "heavy" is a joint t with 3 degrees of freedom."""
    rest = math.sqrt(1 - correlation**2)
    x, e = rng.exponential(size=(2, n)) - 1 if law == "skew" else rng.normal(size=(2, n))
    if law == "rare":
        x, e = (rng.random((2, n)) < 0.01) * 8.0 - 4.0
    if law == "narrow":
        x, e = 3.5 + 0.05 * x, 3.5 + 0.05 * e
    y = correlation * x + rest * e
    if law == "heavy":
        spread = np.sqrt(3 / rng.chisquare(3, size=n)) / 1.7
        x, y = x * spread, y * spread
    if law == "ties":
        x, y = np.round(x), np.round(y)
    return np.clip(x, -4, 4), np.clip(y, -4, 4)


@lru_cache(maxsize=16)
def truth(law: str, correlation: float) -> dict[str, float]:
    """Return what is estimated, from a million rows."""
    n, rng = 1_000_000, np.random.default_rng(1)
    x, y = draw(law, correlation, n, rng)
    return {
        "kendall": float(stats.kendalltau(x, y).statistic),
        "spearman": float(stats.spearmanr(x, y).statistic),
        "pearson": float(np.corrcoef(x, y)[0, 1]),
        "regression": float(np.cov(x, y)[0, 1] / np.var(x)),
    }


def ask(name: str, data: Pair, epsilon: float, delta: float, seeds: list[int]) -> pt.Outcome:
    """Run one test with simulated noise; each cell has seeds of its own."""
    name, _, side = name.partition(", ")
    noise = SimulatedNoise(np.random.SeedSequence(seeds))
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise": noise}
    given["alternative"] = side or "two-sided"
    if name in ("pearson", "regression"):
        given |= BOX | {"n_simulations": 999, "rng": np.random.default_rng([*seeds, 1])}
    found: pt.Outcome = TESTS[name](*data, **given)
    return found


def covers(name: str, found: pt.Outcome, value: float) -> bool:
    """Whether the interval at .95 holds the value."""
    interval: Any = found.intervals
    if name in ("kendall", "spearman"):
        return bool(found.estimates["lower"] <= value <= found.estimates["upper"])
    drawn = line._draw(interval.line, line._DRAWS, np.random.default_rng(line._SEED))
    if name == "regression":
        return bool(min(interval._tails(value, drawn)) > 0.025)
    steps = (-line._SAFETY, 0.0, line._SAFETY)
    moved = [interval.line.shifted(step) for step in steps]
    pairs = [(a[0], b[1]) for a in moved for b in moved]
    redrawn = line._redrawn(drawn, pairs)
    return all(interval._within(value, drawn, redrawn, 0.025, sign) for sign in (1, -1))


def classical_width(name: str, data: Pair) -> float:
    """Return the width of the interval without privacy."""
    x, y = data
    if name == "regression":
        return float(3.92 * stats.linregress(x, y).stderr)
    n, r = len(x), stats.pearsonr(x, y).statistic
    factor = {"kendall": 0.437 / (n - 4), "spearman": (1 + r**2 / 2) / (n - 3)}
    if name == "kendall":
        r = stats.kendalltau(x, y).statistic
    reach = 1.96 * math.sqrt(factor.get(name, 1 / (n - 3)))
    return float(np.tanh(np.arctanh(r) + reach) - np.tanh(np.arctanh(r) - reach))


def fine(names: dict[str, int]) -> None:
    """Set how finely ends are looked for."""
    for name, value in names.items():
        setattr(line, name, value)


def cover(
    name: str, law: str, correlation: float, n: int, epsilon: float, value: float, runs: int
) -> dict[str, Any]:
    """Measure how often an interval covers, and how wide it is."""
    place = [n, int(100 * correlation), int(100 * epsilon), list(TESTS).index(name), len(law)]
    rng, covered, widths, plain = np.random.default_rng(place), 0, [], []
    for seed in range(runs):
        data = draw(law, correlation, n, rng)
        fine(FINE if seed < WIDTHS else ROUGH)
        found = ask(name, data, epsilon, 0.0, [*place, seed])
        covered += covers(name, found, value)
        if seed < WIDTHS or name in ("kendall", "spearman"):
            widths.append(found.estimates["upper"] - found.estimates["lower"])
        if seed < WIDTHS:
            plain.append(classical_width(name, data))
    width = float(np.median(widths))
    return {
        "coverage": covered / runs,
        "width": width if math.isfinite(width) else None,
        "without_privacy": float(np.median(plain)),
    }


def coverage(runs: int, found: dict[str, Any]) -> None:
    """Measure the intervals."""
    cases = [
        (w, c, t, *at) for w in COVERED for c in COVERED[w] for t in TESTS for at in COVERED_AT
    ]
    for law, correlation, name, n, epsilon in track(cases, description="coverage"):
        value = truth(law, correlation)[name]
        row = {"test": name, "law": law, "correlation": correlation, "n": n, "epsilon": epsilon}
        if not missing(found["coverage"], row):
            continue
        found["coverage"].append(row | cover(name, law, correlation, n, epsilon, value, runs))
        save("level-correlation", found)


def rejects(name: str, data: Pair, budget: Budget, seeds: list[int]) -> bool:
    """Return the decision; that of pearsonr without its interval, with 499 simulations."""
    test, _, side = name.partition(", ")
    if test != "pearson":
        return ask(name, data, float(budget.epsilon), float(budget.delta), seeds).reject
    sides = encode_numeric_pairs(*data, BOX["bounds_x"], BOX["bounds_y"], rows=4)
    noise, alternative = SimulatedNoise(np.random.SeedSequence(seeds)), side or "two-sided"
    options: Any = (alternative, line.correlation_products, noise)
    found = release_line(sides, budget.pure_epsilon, *options)
    return found.pvalue(options[0], 499, np.random.default_rng([*seeds, 1])) <= 0.05


def level(runs: int, found: dict[str, Any]) -> None:
    """Measure how often independent columns are found dependent at .05."""
    halvings, rank_intervals._STEPS = rank_intervals._STEPS, 0
    cases = [
        (test, law, n, *budget)
        for test, laws in NULLS.items()
        for law in laws
        for n, budgets in NULL_BUDGETS.items()
        if n in FEW_SIZES or ("pearson" in test and law in HARD)
        for budget in budgets
    ]
    for place, (name, law, n, epsilon, delta) in enumerate(track(cases, description="level")):
        row = {"test": name, "law": law, "n": n, "epsilon": epsilon, "delta": delta}
        if not missing(found["level"], row):
            continue
        rng, rejected = np.random.default_rng([place, 2]), 0
        for seed in range(runs):
            data = draw(law, 0.0, n, rng)
            rejected += rejects(name, data, Budget(epsilon, delta), [place, seed, 3])
        share = rejected / runs
        found["level"].append(
            row
            | {"rejected": share, "standard_errors": (share - 0.05) / (0.05 * 0.95 / runs) ** 0.5}
        )
        save("level-correlation", found)
    rank_intervals._STEPS = halvings


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--coverage-runs", type=int, default=300)
    options = parser.parse_args()
    found: dict[str, Any] = {"level": [], "coverage": []}
    runs = {"level_runs": options.runs, "coverage_runs": options.coverage_runs}
    path = RESULTS / "level-correlation.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    found |= before if runs.items() <= before.items() else runs
    level(options.runs, found)
    coverage(options.coverage_runs, found)
    for name in ("level", "coverage"):
        rows: Any = found[name]
        print_table(name, list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
