"""Level of the tests of proportions, and coverage and width of their intervals.

Beside them the same noisy counts in the classical formulas, which ignore the noise (as DPrivStats
does, and as anyone would who has a noisy count from OpenDP), and the classical formulas without
noise.

Run: python -m benchmarks.level.proportions [--runs 1000] [--few].
Writes results/level-proportions.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy.special import ndtr

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.laws.proportions import NO_NOISE, open_interval, share_interval
from privatest.laws.tulap import LatticeTulap, lattice_tulap
from privatest.mechanisms.counts import count_noise
from privatest.tables.contrasts import difference_ends, ratio_ends
from privatest.tables.private_shares import PrivateShares
from privatest.tables.public_shares import PublicShares

ALPHA, SIMULATIONS = 0.05, 499
SIZES = ((5, 5), (2, 50), (20, 20), (100, 100), (20, 1000), (10_000, 10_000))
LEVEL = [(0.005, 1.0), (0.005, 10.0), (0.1, 0.05), (0.1, 1.0), (0.5, 1.0), (0.5, 10.0)]
HARD_SIZES, HARD = ((5, 5), (2, 50), (20, 20), (20, 1000)), ((0.005, 10.0), (0.1, 1.0), (0.5, 10.0))
SHARES, EPSILONS = (0.01, 0.1, 0.5), (0.05, 0.1, 1.0, 10.0)

Floats = NDArray[np.float64]


def noisy(n: int, p: float, law: LatticeTulap, runs: int, rng: np.random.Generator) -> Floats:
    """Draw noisy numbers of successes."""
    return rng.binomial(n, p, size=runs) + law.quantile(rng.uniform(size=runs))


def classical(z: Floats, w: Floats, n: int, m: int) -> Floats:
    """Return two-sided p-values of the pooled z-test; counts are cut at 0 and n."""
    z, w = np.clip(z, 0, n), np.clip(w, 0, m)
    pooled = (z + w) / (n + m)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(error > 0, (z / n - w / m) / error, 0)
    return np.asarray(2 * ndtr(-np.abs(score)))


def public_level(
    sizes: tuple[int, int], p: float, budget: Budget, runs: int, side: Any = "two-sided"
) -> dict[str, float]:
    """Measure how often a true hypothesis about public groups is rejected."""
    rng = np.random.default_rng([sizes[0], sizes[1], int(1000 * p)])
    law = lattice_tulap(1, budget)
    z, w = (noisy(n, p, law, runs, rng) for n in sizes)
    x, y = (rng.binomial(n, p, size=runs).astype(float) for n in sizes)
    ours = [
        PublicShares((a, b), sizes, law).pvalue(side, SIMULATIONS, rng) <= ALPHA
        for a, b in zip(z.tolist(), w.tolist(), strict=True)
    ]
    return {
        "privatest": float(np.mean(ours)),
        "noise ignored": float(np.mean(classical(z, w, *sizes) <= ALPHA)),
        "no noise": float(np.mean(classical(x, y, *sizes) <= ALPHA)),
    }


def several_level(sizes: tuple[int, ...], p: float, budget: Budget, runs: int) -> dict[str, float]:
    """Measure the level for more than two public groups."""
    rng, law = np.random.default_rng([*sizes]), lattice_tulap(1, budget)
    counts = np.stack([noisy(n, p, law, runs, rng) for n in sizes], axis=1)
    ours = [
        PublicShares(tuple(row), sizes, law).pvalue("two-sided", SIMULATIONS, rng) <= ALPHA
        for row in counts.tolist()
    ]
    return {"privatest": float(np.mean(ours))}


def private_level(
    total: int, first: float, p: float, budget: Budget, runs: int, side: Any = "two-sided"
) -> dict[str, float]:
    """Measure the level for private groups, of which the first has a share of the rows."""
    rng, law = np.random.default_rng([total, int(1000 * p)]), count_noise(4, budget)
    n = rng.binomial(total, first, size=runs)
    won = np.stack([rng.binomial(n, p), rng.binomial(total - n, p)])
    sizes = np.stack([n, total - n])
    cells = np.stack([won[0], sizes[0] - won[0], won[1], sizes[1] - won[1]], axis=1)
    released = cells + law.draws((runs, 4), rng)
    ours, ignored = [], []
    for row in released.tolist():
        ours.append(PrivateShares(tuple(row), total, law).pvalue(side, SIMULATIONS, rng) <= ALPHA)
        a, b, c, d = np.maximum(row, 0).tolist()
        pair = np.array(a), np.array(c), int(max(a + b, 1)), int(max(c + d, 1))
        ignored.append(float(classical(*pair)) <= ALPHA)
    return {"privatest": float(np.mean(ours)), "noise ignored": float(np.mean(ignored))}


def ends_of(n: int, law: LatticeTulap, close: bool = False) -> Callable[[Floats], Floats]:
    """Return ends of intervals as functions of a noisy count, from a fine table of them."""
    reach = 8 * float(law.quantile(0.8)) + 2
    points = np.unique(
        np.concatenate([
            np.linspace(-reach, reach, 60),
            n + np.linspace(-reach, reach, 60),
            np.linspace(0, n, 50),
            np.linspace(0, 0.03 * n + 5, 50),
        ])
    )  # fmt: skip
    if close:
        points = points[(points >= 0) & (points <= n)]
        table = [share_interval(n, z, law, ALPHA / 2, ALPHA / 2) for z in points.tolist()]
    else:
        table = [open_interval(n, z, law, ALPHA / 2) for z in points.tolist()]
    low, high = np.transpose(table)
    return lambda z: np.stack([np.interp(z, points, low), np.interp(z, points, high)])


def coverage(
    sizes: tuple[int, int],
    tables: list[Any],
    law: LatticeTulap,
    pair: tuple[float, float],
    runs: int,
) -> dict[str, float]:
    """Measure coverage of the intervals of the difference, the ratio and the first share."""
    rng = np.random.default_rng([*sizes, int(1000 * pair[0]), int(1000 * pair[1])])
    z = [noisy(n, p, law, runs, rng) for n, p in zip(sizes, pair, strict=True)]
    cut = [np.clip(own, 0, n) for own, n in zip(z, sizes, strict=True)]
    open_ = [table[0](own) for table, own in zip(tables, z, strict=True)]
    closed = [table[1](own) for table, own in zip(tables, cut, strict=True)]
    plain = [table[2](own) for table, own in zip(tables, cut, strict=True)]
    true, ratio = pair[0] - pair[1], pair[0] / pair[1]
    hits = {"difference": 0, "ratio": 0, "share": 0, "noise ignored": 0}
    width = [0.0, 0.0]
    for i in range(runs):
        share = np.array([z[g][i] / sizes[g] for g in (0, 1)])
        low, high = difference_ends((share, *np.stack([e[:, i] for e in open_], axis=1)))
        held = np.clip(share, 0, 1)
        first, last = ratio_ends((held, *np.stack([e[:, i] for e in closed], axis=1)))
        exact = difference_ends((held, *np.stack([e[:, i] for e in plain], axis=1)))
        wald = 1.96 * np.sqrt(np.sum(held * (1 - held) / np.array(sizes)))
        hits["difference"] += low <= true <= high
        hits["ratio"] += first <= ratio and (last is None or ratio <= last)
        own = np.clip(open_[0][:, i], 0, 1)
        hits["share"] += own[0] <= pair[0] <= own[1]
        hits["noise ignored"] += abs(held[0] - held[1] - true) <= wald
        width[0] += high - low
        width[1] += exact[1] - exact[0]
    return {name: count / runs for name, count in hits.items()} | {"width": width[0] / width[1]}


def levels(runs: int, *, few: bool) -> list[dict[str, Any]]:
    """Measure all cells of the level."""
    rows: list[dict[str, Any]] = []
    for sizes in track(HARD_SIZES if few else SIZES, description="level"):
        for p, eps in HARD if few else LEVEL:
            cell = {"test": "two groups", "sizes": sizes, "p": p, "epsilon": eps, "delta": 0.0}
            rows.append(cell | public_level(sizes, p, Budget(eps), runs))
    for sizes in HARD_SIZES[:1] if few else ((5, 5), (100, 100), (20, 1000)):
        cell = {"test": "two groups, greater", "sizes": sizes, "p": 0.1, "epsilon": 1.0}
        rows.append(cell | public_level(sizes, 0.1, Budget(1.0), runs, "greater"))
        cell = {"test": "two groups", "sizes": sizes, "p": 0.1, "epsilon": 1.0, "delta": 1e-6}
        rows.append(cell | public_level(sizes, 0.1, Budget(1.0, "1e-6"), runs))
        cell = {"test": "four groups", "sizes": (*sizes, *sizes), "p": 0.1, "epsilon": 1.0}
        rows.append(cell | several_level((*sizes, *sizes), 0.1, Budget(1.0), runs))
    half = max(runs // 2, 1)
    for total in (10, 200) if few else (10, 200, 2000):
        for first, p in ((0.5, 0.1), (0.05, 0.5)):
            for eps in (1.0,) if few else (0.1, 1.0, 10.0):
                cell = {"test": "private groups", "sizes": total, "first": first, "p": p}
                rows.append(
                    cell | {"epsilon": eps} | private_level(total, first, p, Budget(eps), half)
                )
    return rows


def coverages(runs: int) -> list[dict[str, Any]]:
    """Measure all cells of the coverage."""
    rows = []
    plain = {n: ends_of(n, NO_NOISE, close=True) for n in (5, 20, 100, 1000, 10_000)}
    for eps in track(EPSILONS, description="coverage"):
        law = lattice_tulap(1, Budget(eps))
        tables = {
            n: (ends_of(n, law), ends_of(n, law, close=True), own) for n, own in plain.items()
        }
        for sizes in ((5, 5), (20, 20), (100, 100), (1000, 1000), (10_000, 10_000), (5, 100)):
            for pair in ((p, q) for p in SHARES for q in SHARES):
                cell = {"sizes": sizes, "p": pair, "epsilon": eps}
                found = coverage(sizes, [tables[n] for n in sizes], law, pair, runs)
                rows.append(cell | found)
    return rows


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--few", action="store_true", help="the hardest cells of the level only")
    parser.add_argument("--coverage-runs", type=int, default=2000)
    arguments = parser.parse_args()
    runs = arguments.runs
    rows = levels(runs, few=arguments.few)
    found: dict[str, Any] = {"runs": runs, "level": rows}
    save("level-proportions", found)
    covered = coverages(arguments.coverage_runs)
    print_table("coverage", list(covered[0]), [list(row.values()) for row in covered])
    save(
        "level-proportions", found | {"coverage runs": arguments.coverage_runs, "coverage": covered}
    )
    names = ["test", "sizes", "p", "epsilon", "privatest", "noise ignored", "no noise"]
    print_table(f"level ({runs} runs)", names, [[row.get(n, "") for n in names] for row in rows])


if __name__ == "__main__":
    main()
