"""Level of the tests of proportions, and coverage and width of their intervals.

Beside them the same noisy counts in the classical formulas, which ignore the noise (as DPrivStats
does, and as anyone would who has a noisy count from OpenDP), and the classical formulas without
noise.

Equivalence is measured at its boundary: the first share is larger by .2, the limit.

Run: python -m benchmarks.level.proportions [--runs 1000] [--private-runs 300].
Writes results/level-proportions.json after each cell.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy.special import ndtr

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.mechanisms.additive import count_noise
from privatest.methods import proportions as private_shares
from privatest.methods import proportions as public_shares
from privatest.methods.proportions import (
    NO_NOISE,
    PrivateShares,
    PublicShares,
    difference_ends,
    open_interval,
    ratio_ends,
    share_interval,
)
from privatest.numerics.laws import LatticeTulap, lattice_tulap

ALPHA, SIMULATIONS = 0.05, 499
# sizes, share and epsilon of two public groups
LEVEL = [
    ((5, 5), 0.005, 10.0), ((5, 5), 0.1, 1.0), ((5, 5), 0.5, 10.0), ((2, 50), 0.005, 10.0),
    ((2, 50), 0.1, 1.0), ((2, 50), 0.5, 10.0), ((20, 20), 0.005, 1.0), ((20, 20), 0.1, 10.0),
    ((100, 100), 0.1, 0.05), ((100, 100), 0.005, 1.0), ((20, 1000), 0.005, 10.0),
    ((20, 1000), 0.1, 1.0), ((1000, 1000), 0.5, 0.3), ((10_000, 10_000), 0.005, 1.0),
]  # fmt: skip
OTHERS = ((5, 5), (100, 100), (20, 1000))
# rows in all, share of the first group, common share, epsilon
PRIVATE = [
    (10, 0.5, 0.1, 10.0), (10, 0.05, 0.5, 1.0), (200, 0.5, 0.1, 1.0), (200, 0.05, 0.5, 10.0),
    (200, 0.5, 0.02, 10.0), (2000, 0.5, 0.1, 0.1), (2000, 0.05, 0.5, 1.0),
    (10_000, 0.02, 0.02, 1.0),
]  # fmt: skip
# the same with both shares
PRIVATE_COVERED = [
    (100, 0.5, (0.5, 0.5), 10.0), (200, 0.5, (0.5, 0.2), 1.0), (1000, 0.1, (0.1, 0.05), 1.0),
    (1000, 0.5, (0.5, 0.4), 0.3), (1000, 0.5, (0.02, 0.02), 10.0), (10_000, 0.5, (0.3, 0.1), 0.05),
    (10_000, 0.05, (0.02, 0.1), 1.0), (10_000, 0.5, (0.5, 0.5), 10.0),
]  # fmt: skip
LIMITS = 0.2  # of equivalence; the first share is larger by this much
EQUIVALENT = [
    (sizes, p, epsilon)
    for sizes in ((20, 20), (20, 1000), (1000, 20), (200, 200))
    for p in (0.01, 0.4, 0.79)
    for epsilon in (0.3, 10.0)
]
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


def rejects(released: PublicShares | PrivateShares, side: Any, seed: int) -> bool:
    """Return the decision; three shares of the grid settle most that do not reject."""
    module: Any = public_shares if isinstance(released, PublicShares) else private_shares
    all_points: int = module._POINTS
    try:
        module._POINTS = 3
        if released.pvalue(side, SIMULATIONS, np.random.default_rng([seed, 1])) > ALPHA:
            return False
    finally:
        module._POINTS = all_points
    return bool(released.pvalue(side, SIMULATIONS, np.random.default_rng([seed, 1])) <= ALPHA)


def public_level(
    sizes: tuple[int, int], p: float, budget: Budget, runs: int, side: Any = "two-sided"
) -> dict[str, float]:
    """Measure how often a true hypothesis about public groups is rejected."""
    rng = np.random.default_rng([sizes[0], sizes[1], int(1000 * p)])
    law = lattice_tulap(1, budget)
    z, w = (noisy(n, p, law, runs, rng) for n in sizes)
    first, second = (np.rint(rng.binomial(n, p, size=runs)).astype(float) for n in sizes)
    ours = [
        rejects(PublicShares((a, b), sizes, law), side, seed)
        for seed, (a, b) in enumerate(zip(z.tolist(), w.tolist(), strict=True))
    ]
    return {
        "privatest": float(np.mean(ours)),
        "noise ignored": float(np.mean(classical(z, w, *sizes) <= ALPHA)),
        "no noise": float(np.mean(classical(first, second, *sizes) <= ALPHA)),
    }


def several_level(sizes: tuple[int, ...], p: float, budget: Budget, runs: int) -> dict[str, float]:
    """Measure the level for more than two public groups."""
    rng, law = np.random.default_rng([*sizes]), lattice_tulap(1, budget)
    counts = np.stack([noisy(n, p, law, runs, rng) for n in sizes], axis=1)
    ours = [
        rejects(PublicShares(tuple(row), sizes, law), "two-sided", seed)
        for seed, row in enumerate(counts.tolist())
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
    for seed, row in enumerate(released.tolist()):
        ours.append(rejects(PrivateShares(tuple(row), total, law), side, seed))
        a, b, c, d = np.maximum(row, 0).tolist()
        pair = np.array(a), np.array(c), int(max(a + b, 1)), int(max(c + d, 1))
        ignored.append(float(classical(*pair)) <= ALPHA)
    return {"privatest": float(np.mean(ours)), "noise ignored": float(np.mean(ignored))}


def ends_of(
    n: int, law: LatticeTulap, close: bool = False, side: float = ALPHA / 2
) -> Callable[[Floats], Floats]:
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
        table = [share_interval(n, z, law, side, side) for z in points.tolist()]
    else:
        table = [open_interval(n, z, law, side) for z in points.tolist()]
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


def equivalent(sizes: tuple[int, int], p: float, epsilon: float, runs: int) -> dict[str, float]:
    """Measure how often tost_proportions rejects at the boundary of its hypothesis."""
    rng, law = np.random.default_rng([*sizes, int(1000 * p)]), lattice_tulap(1, Budget(epsilon))
    pair = p + LIMITS, p
    z = [noisy(n, share, law, runs, rng) for n, share in zip(sizes, pair, strict=True)]
    ends, careful = (
        [ends_of(n, law, side=side)(own) for n, own in zip(sizes, z, strict=True)]
        for side in (ALPHA, ALPHA / 2)
    )
    rejected = 0
    for i in range(runs):
        released = PublicShares((float(z[0][i]), float(z[1][i])), sizes, law)
        if released.scarce:  # the rule of tost_proportions where successes or failures are few
            (low1, high1), (low2, high2) = (e[:, i] for e in careful)
            low, high = low1 - high2, high1 - low2
        else:
            share = np.array([own[i] / n for n, own in zip(sizes, z, strict=True)])
            low, high = difference_ends((share, *np.stack([e[:, i] for e in ends], axis=1)))
        rejected += bool(low > -LIMITS and high < LIMITS)
    return {"privatest": rejected / runs}


def private_coverage(
    total: int, first: float, pair: tuple[float, float], epsilon: float, runs: int
) -> dict[str, float]:
    """Measure coverage of the intervals of the difference and the ratio of private groups."""
    rng, law = np.random.default_rng([total, int(1000 * pair[0])]), count_noise(4, Budget(epsilon))
    shares = [first * pair[0], first * (1 - pair[0])]
    shares += [(1 - first) * pair[1], (1 - first) * (1 - pair[1])]
    released = rng.multinomial(total, shares, size=runs) + law.draws((runs, 4), rng)
    hits, width, wide = {"difference": 0, "ratio": 0}, 0.0, 0
    for row in released.tolist():
        own = PrivateShares(tuple(row), total, law)
        middle, low, high = own.ends(ALPHA / 2)
        start, end = difference_ends((middle, low, high))
        cut = own.estimates, np.clip(low, 0, 1), np.clip(high, 0, 1)
        least, most = ratio_ends(cut)
        hits["difference"] += start <= pair[0] - pair[1] <= end
        hits["ratio"] += least <= pair[0] / pair[1] and (most is None or pair[0] / pair[1] <= most)
        width += end - start
        wide += end - start > 1.99
    found = {name: count / runs for name, count in hits.items()}
    return found | {"width": width / runs, "all of [-1, 1]": wide / runs}


def levels(runs: int, found: dict[str, Any]) -> None:
    """Measure all cells of the level, and save after each."""

    def add(row: dict[str, Any]) -> None:
        rate, own = row["privatest"], row["runs"]
        row["standard_errors"] = (rate - ALPHA) / (ALPHA * (1 - ALPHA) / own) ** 0.5
        found["level"].append(row)
        save("level-proportions", found)

    for sizes, p, eps in track(LEVEL, description="two groups"):
        cell = {"test": "two groups", "sizes": sizes, "p": p, "epsilon": eps, "delta": 0.0}
        add(cell | {"runs": runs} | public_level(sizes, p, Budget(eps), runs))
    for sizes in track(OTHERS, description="others"):
        cell = {"sizes": sizes, "p": 0.1, "epsilon": 1.0, "runs": runs}
        for side in ("greater", "less"):
            own = public_level(sizes, 0.1, Budget(1.0), runs, side)
            add({"test": f"two groups, {side}"} | cell | own)
        own = public_level(sizes, 0.1, Budget(1.0, "1e-6"), runs)
        add({"test": "two groups"} | cell | {"delta": 1e-6} | own)
        own = several_level((*sizes, *sizes), 0.1, Budget(1.0), runs)
        add({"test": "four groups"} | cell | {"sizes": (*sizes, *sizes)} | own)
    half = max(runs // 2, 1)
    for total, first, p, eps in track(PRIVATE, description="private groups"):
        cell = {"test": "private groups", "sizes": total, "first": first, "p": p, "epsilon": eps}
        add(cell | {"runs": half} | private_level(total, first, p, Budget(eps), half))
    for sizes, p, eps in track(EQUIVALENT, description="equivalence"):
        cell = {"test": "equivalence", "sizes": sizes, "p": p, "epsilon": eps, "runs": runs}
        add(cell | equivalent(sizes, p, eps, runs))


def private_coverages(runs: int, found: dict[str, Any]) -> None:
    """Measure intervals of private groups."""
    found["private coverage"] = []
    for total, first, pair, eps in track(PRIVATE_COVERED, description="private coverage"):
        row = {"sizes": total, "first": first, "p": pair, "epsilon": eps, "runs": runs}
        found["private coverage"].append(row | private_coverage(total, first, pair, eps, runs))
        save("level-proportions", found)


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
    parser.add_argument("--coverage-runs", type=int, default=2000, help="0: keep what was measured")
    parser.add_argument("--private-runs", type=int, default=300)
    arguments = parser.parse_args()
    found: dict[str, Any] = {"level": [], "coverage": [], "private coverage": []}
    path = RESULTS / "level-proportions.json"
    if path.exists() and not arguments.coverage_runs:
        found |= json.loads(path.read_text()) | {"level": []}
    levels(arguments.runs, found)
    private_coverages(arguments.private_runs, found)
    if arguments.coverage_runs:
        found["coverage runs"] = arguments.coverage_runs
        found["coverage"] = coverages(arguments.coverage_runs)
    found["runs"] = arguments.runs
    save("level-proportions", found)
    names = ["test", "sizes", "p", "epsilon", "runs", "privatest", "noise ignored", "no noise"]
    print_table("level", names, [[row.get(n, "") for n in names] for row in found["level"]])
    for name in ("coverage", "private coverage"):
        rows = found[name]
        print_table(name, list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
