"""Level of the correlation tests, and coverage and width of their intervals.

Run: python -m benchmarks.level.correlation [--runs 200]. Writes results/level-correlation.json.
Intervals for the slope and for Pearson's correlation cover a value if the value is accepted: their
ends are looked for in the first runs only, for the width.
"""

from __future__ import annotations

import argparse
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.independence import line, rank_intervals
from privatest.noise import SimulatedNoise
from privatest.statistics.rank_correlation import kendall_score, spearman_score

BOX: dict[str, Any] = {"bounds_x": (-4, 4), "bounds_y": (-4, 4)}
TESTS: dict[str, Any] = {
    "kendall": pt.kendalltau,
    "spearman": pt.spearmanr,
    "pearson": pt.pearsonr,
    "regression": pt.linregress,
}
LAWS, CORRELATIONS = ("normal", "heavy", "skew", "ties"), (0.0, 0.3, 0.8)
SIZES, EPSILONS = (20, 200, 2000), (0.1, 1.0, 10.0)
NULLS, NULL_SIZES = ("normal", "skew", "ties", "rare"), (5, 20, 200, 10_000)
NULL_BUDGETS = ((0.05, 0.0), (1.0, 0.0), (1.0, 1e-6), (10.0, 0.0))
WIDTHS = 3  # runs in which the ends of slow intervals are found
FINE = {"_ANGLES": line._ANGLES, "_CORRELATIONS": line._CORRELATIONS, "_STEPS": line._STEPS}
ROUGH = {"_ANGLES": 3, "_CORRELATIONS": 3, "_STEPS": 0}

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def draw(law: str, correlation: float, n: int, rng: np.random.Generator) -> Pair:
    """Draw rows and clip them to the bounds; "heavy" is a joint t with 3 degrees of freedom."""
    rest = math.sqrt(1 - correlation**2)
    x, e = rng.exponential(size=(2, n)) - 1 if law == "skew" else rng.normal(size=(2, n))
    if law == "rare":
        x, e = (rng.random((2, n)) < 0.03) * 1.0
    y = correlation * x + rest * e
    if law == "heavy":
        spread = np.sqrt(3 / rng.chisquare(3, size=n)) / 1.7
        x, y = x * spread, y * spread
    if law == "ties":
        x, y = np.round(x), np.round(y)
    return np.clip(x, -4, 4), np.clip(y, -4, 4)


def truth(law: str, correlation: float) -> dict[str, float]:
    """Return what is estimated, from a million rows."""
    n, rng = 1_000_000, np.random.default_rng(1)
    x, y = draw(law, correlation, n, rng)
    labels = rng.permutation(n), rng.permutation(n)
    return {
        "kendall": kendall_score(x, y, *labels) / (n * (n - 1) / 2),
        "spearman": spearman_score(x, y, *labels) * 6 / (n * (n * n - 1)),
        "pearson": float(np.corrcoef(x, y)[0, 1]),
        "regression": float(np.cov(x, y)[0, 1] / np.var(x)),
    }


def ask(name: str, data: Pair, epsilon: float, delta: float, seed: int) -> pt.Outcome:
    """Run one test with simulated noise."""
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise": SimulatedNoise(seed)}
    if name in ("pearson", "regression"):
        given |= BOX | {"n_simulations": 999, "rng": seed}
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
    return bool(min(interval._tails(value, drawn, pairs)) > 0.025)


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


def coverage(runs: int) -> list[dict[str, Any]]:
    """Measure how often intervals cover, and how wide they are."""
    rows = []
    for law in LAWS:
        for correlation in CORRELATIONS:
            values = truth(law, correlation)
            cases = [(t, n, e) for t in TESTS for n in SIZES for e in EPSILONS]
            for name, n, epsilon in track(cases, description=f"{law} {correlation}"):
                rng, covered, widths, plain = np.random.default_rng(n), 0, [], []
                for seed in range(runs):
                    data = draw(law, correlation, n, rng)
                    fine(FINE if seed < WIDTHS else ROUGH)
                    found = ask(name, data, epsilon, 0.0, seed)
                    covered += covers(name, found, values[name])
                    if seed < WIDTHS or name in ("kendall", "spearman"):
                        widths.append(found.estimates["upper"] - found.estimates["lower"])
                    if seed < WIDTHS:
                        plain.append(classical_width(name, data))
                width = float(np.median(widths))
                rows.append(
                    {"test": name, "law": law, "correlation": correlation, "n": n}
                    | {"epsilon": epsilon, "coverage": covered / runs}
                    | {"width": width if math.isfinite(width) else None}
                    | {"without_privacy": float(np.median(plain))}
                )
    return rows


def level(runs: int) -> list[dict[str, Any]]:
    """Measure how often independent columns are found dependent at .05."""
    rows = []
    fine(ROUGH)
    halvings, rank_intervals._STEPS = rank_intervals._STEPS, 0
    cases = [(t, w, n, b) for t in TESTS for w in NULLS for n in NULL_SIZES for b in NULL_BUDGETS]
    for name, law, n, (epsilon, delta) in track(cases, description="level"):
        if name == "regression":  # its p-value is that of pearson
            continue
        rng, rejected = np.random.default_rng(n), 0
        for seed in range(runs):
            rejected += ask(name, draw(law, 0.0, n, rng), epsilon, delta, seed).reject
        share = rejected / runs
        rows.append(
            {"test": name, "law": law, "n": n, "epsilon": epsilon, "delta": delta}
            | {"rejected": share, "standard_errors": (share - 0.05) / (0.05 * 0.95 / runs) ** 0.5}
        )
    rank_intervals._STEPS = halvings
    return rows


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    found = {"runs": runs, "level": level(2 * runs), "coverage": coverage(runs)}
    found["level_runs"] = 2 * runs
    save("level-correlation", found)
    for name in ("level", "coverage"):
        rows: Any = found[name]
        print_table(f"{name} ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
