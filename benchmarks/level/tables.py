"""Level of chi2_contingency and chisquare, and coverage of their intervals, at every size.

Run: python -m benchmarks.level.tables [--runs 2000] [--coverage-runs 200]. Writes
results/level-tables.json and results/coverage-tables.json after each cell, and goes on from there
when it is started again with as many runs; 0 runs leave one out. Rare categories come first.
Tables are drawn directly with their noise, and a run stops at the first scenario of the margins
that does not reject: the decision is that of the test, with 499 simulations. Intervals of V take
199. Beside ours DPrivStats' test of a table (benchmarks/level/peers.py).
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.measure import missing, save, stored
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.mechanisms.additive import CountNoise, count_noise
from privatest.methods import tables as association
from privatest.methods.tables import (
    association_ends,
    cell_intervals,
    cramers_v,
    fit_pvalue,
    independence_statistic,
    margin_scenarios,
    null_counts,
    simulate,
)

Floats = NDArray[np.float64]

ALPHA, SIMULATIONS = 0.05, 499
SHAPES = ((2, 2), (3, 4), (6, 5))
# by kind of margins: shape, n, and epsilon with delta 0
LEVEL = {
    "rare": (
        ((2, 2), 5, 10.0), ((2, 2), 10, 1.0), ((2, 2), 100, 10.0), ((2, 2), 1000, 0.3),
        ((2, 2), 10_000, 0.05), ((2, 2), 10_000, 10.0), ((3, 4), 5, 1.0), ((3, 4), 5, 10.0),
        ((3, 4), 20, 10.0), ((3, 4), 100, 1.0), ((3, 4), 1000, 0.05), ((3, 4), 1000, 10.0),
        ((3, 4), 10_000, 0.3), ((6, 5), 5, 10.0), ((6, 5), 100, 10.0), ((6, 5), 1000, 1.0),
    ),
    "balanced": (((2, 2), 5, 10.0), ((3, 4), 100, 0.3), ((6, 5), 20, 10.0), ((6, 5), 1000, 1.0)),
}  # fmt: skip
DELTA_SIZES = (20, 1000)
STRENGTHS = (0.0, 0.3, 0.6)
COVERED = ((200, 10.0), (1000, 0.5))
DELTAS = ((1.0, "laplace", 1e-6), (1.0, "gaussian", 1e-6))


def margin(size: int, kind: str) -> Floats:
    """Return equal shares; or one frequent category, and others of 2%."""
    if kind == "balanced":
        return np.full(size, 1 / size)
    shares = np.full(size, 0.02)
    shares[0] = 1 - shares[1:].sum()
    return shares


def tables(shares: Floats, n: int, law: CountNoise, runs: int, rng: np.random.Generator) -> Floats:
    """Draw noisy tables."""
    return simulate(shares, n, law.draws((runs, *shares.shape), rng), rng)


def rejects(table: Floats, own: float, n: int, law: CountNoise, rng: np.random.Generator) -> bool:
    """Return the decision of chi2_contingency on a released table."""
    noise = law.draws((SIMULATIONS, *table.shape), rng)
    scenarios = margin_scenarios(table, n, law.variance)
    for counts in null_counts(scenarios, n, SIMULATIONS, rng):
        drawn = independence_statistic(counts + noise, n, law.variance)
        if (1 + (drawn >= own * (1 - 1e-9)).sum()) / (SIMULATIONS + 1) > ALPHA:
            return False
    return True


def level(shares: Floats, n: int, law: CountNoise, runs: int, rng: np.random.Generator) -> float:
    """Share of rejections."""
    drawn = tables(shares, n, law, runs, rng)
    own = independence_statistic(drawn, n, law.variance)
    decisions = [rejects(t, s, n, law, rng) for t, s in zip(drawn, own, strict=True)]
    return float(np.mean(decisions))


def associated(p: Floats, q: Floats, strength: float) -> Floats | None:
    """Return a table with margins near p and q and Cramér's V, or None if there is none."""
    size = min(len(p), len(q))
    away = np.zeros((len(p), len(q)))
    away[np.arange(size), np.arange(size)] = np.sqrt(p[:size] * q[:size])
    away -= np.outer(p, away.sum(axis=0))
    away -= np.outer(away.sum(axis=1), q)
    steps = np.concatenate([[0.0], np.logspace(-3, 3, 4000)])
    found = np.maximum(np.outer(p, q) + steps[:, None, None] * away, 0)
    found /= found.sum(axis=(1, 2), keepdims=True)
    v = cramers_v(found)
    best = int(np.argmin(np.abs(v - strength)))
    return found[best] if abs(v[best] - strength) < 0.01 else None


def coverage(
    shares: Floats, n: int, law: CountNoise, runs: int, rng: np.random.Generator
) -> dict[str, float]:
    """How often the intervals of V, and those of all cells, cover."""
    v, covered, cells, width = float(cramers_v(shares)), 0, 0, 0.0
    for table in tables(shares, n, law, runs, rng):
        low, _, high = association_ends(table, n, law, 0.95)
        covered += low <= v + 1e-9 and v - 1e-9 <= high
        width += high - low
        each = cell_intervals(table, n, law, 0.95)
        cells += bool(((each.low <= shares) & (shares <= each.high)).all())
    return {"V": covered / runs, "width": width / runs, "all cells": cells / runs}


def measure_level(runs: int) -> list[dict[str, Any]]:
    """Measure every cell of the grid."""
    cases: list[Any] = [
        (shape, kind, n, epsilon, "laplace", 0.0)
        for kind, cells in LEVEL.items()
        for shape, n, epsilon in cells
    ]
    cases += [((3, 4), "rare", n, *law) for n in DELTA_SIZES for law in DELTAS]
    rows = stored("level-tables", runs)
    for place, ((r, c), kind, n, epsilon, mechanism, delta) in enumerate(track(cases)):
        case = {"table": f"{r} x {c}", "margins": kind, "n": n, "epsilon": epsilon}
        case |= {"noise": mechanism, "delta": delta}
        if not missing(rows, case):
            continue
        rng = np.random.default_rng([16, place])
        law = count_noise(r * c, Budget(epsilon, delta), mechanism)
        p, q = margin(r, kind), margin(c, kind)
        found = level(np.outer(p, q), n, law, runs, rng)
        fits = [
            fit_pvalue(t, n, p, law, SIMULATIONS, rng)[1] <= ALPHA
            for t in rng.multinomial(n, p, size=runs) + law.draws((runs, r), rng)
        ]
        case |= {"least expected": float(n * p[-1] * q[-1]), "chi2_contingency": found}
        rows.append(case | {"chisquare": float(np.mean(fits))})
        save("level-tables", {"runs": runs, "rows": rows})
    return rows


def measure_coverage(runs: int) -> list[dict[str, Any]]:
    """Measure intervals of V and of cells."""
    rows = stored("coverage-tables", runs)
    association._SIMULATIONS = 199  # half of the time
    cases = [
        (shape, kind, v, n, epsilon)
        for kind in ("rare", "balanced")
        for shape in SHAPES[:2]
        for v in STRENGTHS
        for n, epsilon in COVERED
    ]
    for place, ((r, c), kind, v, n, epsilon) in enumerate(track(cases)):
        case = {"table": f"{r} x {c}", "margins": kind, "true V": v, "n": n, "epsilon": epsilon}
        shares = associated(margin(r, kind), margin(c, kind), v)
        if shares is None or not missing(rows, case):
            continue
        law, rng = count_noise(r * c, Budget(epsilon)), np.random.default_rng([17, place])
        rows.append(case | coverage(shares, n, law, runs, rng))
        save("coverage-tables", {"runs": runs, "rows": rows})
    return rows


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--coverage-runs", type=int, default=200)
    options = parser.parse_args()
    for name, measure, runs in (
        ("level", measure_level, options.runs),
        ("coverage", measure_coverage, options.coverage_runs),
    ):
        if runs:
            rows = measure(runs)
            print_table(name, list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
