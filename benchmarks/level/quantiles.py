"""Coverage and width of intervals for quantiles and for a shift, beside the exponential mechanism.

Run: python -m benchmarks.level.quantiles [--runs 400] [--shift-runs 100]. Writes
results/level-quantiles.json after each cell. The peer draws both ends of the interval by the
exponential mechanism, as Drechsler et al. (2021) do, on the same grid; its targets are the tightest
that can be proved for every population.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.data.samples import Sample
from privatest.noise import SimulatedNoise
from privatest.quantiles import hodges_lehmann, private_quantile
from privatest.statistics.cumulative import cell_counts

BOUNDS, CELLS, ALPHA = (-10.0, 10.0), 1024, 0.05
# rows, epsilon, law, quantile; and rows of both samples, epsilon, law
CASES = (
    (5, 10.0, "skewed", 0.5), (20, 10.0, "normal", 0.5), (20, 10.0, "skewed", 0.9),
    (100, 1.0, "normal", 0.5), (100, 10.0, "ties", 0.5), (100, 10.0, "skewed", 0.9),
    (1000, 0.3, "normal", 0.5), (1000, 10.0, "ties", 0.9), (1000, 10.0, "skewed", 0.5),
    (10_000, 0.05, "normal", 0.9), (10_000, 1.0, "skewed", 0.9), (10_000, 10.0, "normal", 0.5),
)  # fmt: skip
SHIFT, SHIFTS = 0.5, (
    (20, 30, 10.0, "normal"), (200, 100, 10.0, "ties"),
    (200, 100, 10.0, "normal"), (2000, 2000, 1.0, "ties"),
)  # fmt: skip
LAWS = {"normal": stats.norm(3, 1), "skewed": stats.expon(0, 1), "ties": stats.poisson(4)}

Floats = NDArray[np.float64]


@lru_cache(maxsize=256)
def exponential_target(n: int, q: float, epsilon: float) -> float:
    """Return the largest rank whose draw is above the quantile with probability ALPHA/2 at most.

    A draw at a rank r above its target has probability at most exp(-epsilon r/4) for each cell,
    half of epsilon for each end, and the rank of the quantile is binomial.
    """
    ranks = np.arange(n + 1)
    masses = stats.binom.pmf(ranks, n, q)

    def missed(target: float) -> float:
        tail = np.exp(-epsilon / 4 * np.maximum(ranks - target, 0)) * CELLS
        return float(masses @ np.minimum(tail, 1.0))

    low, high = -10 * n - 200 / epsilon, float(n)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) <= ALPHA / 2 else (low, middle)
    return low


def exponential(
    x: Floats, q: float, epsilon: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Return an interval whose ends are drawn by the exponential mechanism."""
    edges = np.linspace(*BOUNDS, CELLS + 1)
    (counts,) = cell_counts(Sample(np.clip(x, *BOUNDS)[:, None], None), edges=edges)
    below = np.concatenate([[0], np.cumsum(counts)])
    ends = []
    for target in (
        exponential_target(len(x), q, epsilon),
        len(x) - exponential_target(len(x), 1 - q, epsilon),
    ):
        scores = -epsilon / 4 * np.abs(below - target)
        ends.append(float(edges[np.argmax(scores + rng.gumbel(size=scores.size))]))
    if exponential_target(len(x), q, epsilon) < 0:
        ends[0] = BOUNDS[0]
    if exponential_target(len(x), 1 - q, epsilon) < 0:
        ends[1] = BOUNDS[1]
    return ends[0], ends[1]


def quantiles(n: int, epsilon: float, law: str, q: float, runs: int) -> dict[str, float]:
    """Return how often intervals cover, and how wide they are."""
    truth, found, peers, plain = float(LAWS[law].ppf(q)), [], [], []
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        x = np.asarray(LAWS[law].rvs(n, random_state=rng), dtype=np.float64)
        each = private_quantile(
            x, q, bounds=BOUNDS, epsilon=epsilon, cells=CELLS, noise=SimulatedNoise(seed)
        )
        found.append((each.lower, each.upper))
        peers.append(exponential(x, q, epsilon, rng))
        ranks = stats.binom.ppf([ALPHA / 2, 1 - ALPHA / 2], n, q).astype(int)
        plain.append(np.diff(np.sort(x)[np.clip(ranks, 0, n - 1)])[0])
    return _row(found, truth) | {
        "peer coverage": _row(peers, truth)["coverage"],
        "peer width": _row(peers, truth)["width"],
        "width without noise": float(np.mean(plain)),
    }


def shifts(n: int, m: int, epsilon: float, law: str, runs: int) -> dict[str, float]:
    """Return the same for the shift between two samples."""
    found, rejected, shift = [], 0, 1.0 if law == "ties" else SHIFT
    for seed in range(runs):
        rng = np.random.default_rng([seed, n, m])
        x, y = (np.asarray(LAWS[law].rvs(k, random_state=rng), dtype=np.float64) for k in (n, m))
        options: Any = {"bounds": BOUNDS, "epsilon": epsilon, "noise": SimulatedNoise(seed)}
        each = hodges_lehmann(x + shift, y, **options)
        found.append((each.estimates["lower"], each.estimates["upper"]))
        rejected += hodges_lehmann(x, y, **options).reject
    return _row(found, shift) | {"level": rejected / runs}


def _row(found: list[tuple[float, float]], truth: float) -> dict[str, float]:
    ends = np.array(found)
    covers = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return {"coverage": float(covers.mean()), "width": float(np.diff(ends).mean())}


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--shift-runs", type=int, default=100, help="they are slower")
    options = parser.parse_args()
    found: dict[str, Any] = {"runs": options.runs, "shift_runs": options.shift_runs}
    found |= {"quantiles": [], "shifts": []}
    for case in track(CASES, description="quantiles"):
        row = dict(zip(("n", "epsilon", "law", "q"), case, strict=True))
        found["quantiles"].append(row | quantiles(*case, options.runs))
        save("level-quantiles", found)
    for moved in track(SHIFTS, description="shifts"):
        row = dict(zip(("n", "m", "epsilon", "law"), moved, strict=True))
        found["shifts"].append(row | shifts(*moved, options.shift_runs))
        save("level-quantiles", found)
    for name in ("quantiles", "shifts"):
        rows = found[name]
        print_table(name, list(rows[0]), [list(each.values()) for each in rows])


if __name__ == "__main__":
    main()
