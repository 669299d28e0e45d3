"""Level of tests on releases by tables, beside that of ordinary tests on their synthetic rows.

Run: python -m benchmarks.level.releases [--runs 400] [--draws 199]
Writes results/level-releases.json.

All hypotheses are true. "rows" treats as many synthetic rows as there are people as data:
a z-test, a chi-squared test of independence, a chi-squared test of two samples. The fit of rows
is left out (it is slow): they are drawn from the noisy tables' nearest probabilities, which are
closer to what was measured than those of any fit.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.core.privacy import Budget, gaussian_scale
from privatest.synthetic.embedding import to_simplex
from privatest.synthetic.testing import (
    NoisyCounts,
    independence_pvalue,
    normal_pvalue,
    same_law_pvalue,
    share_pvalue,
)

SIZES, EPSILONS, DELTA = (50, 200, 2_000, 20_000), (0.1, 1.0, 5.0), "1e-6"
LEVEL = 0.05
SHARES = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
OTHER = np.array([0.6, 0.25, 0.1, 0.05])
Floats = NDArray[np.float64]


def fitted(counts: Floats) -> Floats:
    """Return the nearest probabilities to noisy counts."""
    flat = counts.ravel() / max(float(counts.sum()), 1.0)
    return to_simplex(flat[:, None])[:, 0]


def one(n: int, epsilon: float, seed: int, draws: int) -> dict[str, float]:
    """Return p-values of one run."""
    rng = np.random.default_rng([seed, n, int(10 * epsilon)])
    # half of the budget's squared ratio for single columns, half for the pair
    sigma = gaussian_scale(np.sqrt(2) * np.sqrt(2), Budget(epsilon, DELTA))

    def noisy(exact: Any) -> Floats:
        return np.asarray(exact + rng.normal(scale=sigma, size=np.shape(exact)), dtype=np.float64)

    first, second = (noisy(rng.multinomial(n, SHARES)) for _ in range(2))
    pair = noisy(rng.multinomial(n, np.outer(SHARES, OTHER).ravel()).reshape(5, 4))
    level = np.eye(5)[0] - 0.2
    value = float((first + (n - first.sum()) / 5)[0]) / n
    noise = float(sigma * np.sqrt(level @ level) / n)
    codes = np.arange(5.0)
    mean = float(codes @ (first + (n - first.sum()) / 5)) / n
    around = fitted(first)
    spread = float(np.sqrt(around @ (codes - around @ codes) ** 2 / n))
    deviation = float(np.hypot(sigma * np.linalg.norm(codes - 2) / n, spread))
    rows = [rng.multinomial(n, fitted(table)) for table in (first, second)]
    cells = rng.multinomial(n, fitted(pair)).reshape(5, 4)
    counted = [NoisyCounts(table, sigma, n) for table in (first, second)]
    return {
        "share": share_pvalue(value, SHARES[0], n, noise, 0.0),
        "mean": normal_pvalue(mean, float(SHARES @ codes), deviation, 0.0),
        "independence": independence_pvalue(NoisyCounts(pair, sigma, n), draws, rng)[1],
        "two releases": same_law_pvalue(counted[0], counted[1], draws, rng)[1],
        "rows: share": float(stats.binomtest(int(rows[0][0]), n, SHARES[0]).pvalue),
        "rows: independence": _chi2(cells),
        "rows: two releases": _chi2(np.array(rows)),
    }


def _chi2(table: NDArray[Any]) -> float:
    kept = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(kept).pvalue) if min(kept.shape) > 1 else 1.0


def main() -> None:
    """Run all cells, print and save them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--draws", type=int, default=199)
    options = parser.parse_args()
    start, rows = time.process_time(), []
    for n, epsilon in track([(n, e) for n in SIZES for e in EPSILONS]):
        found = [one(n, epsilon, seed, options.draws) for seed in range(options.runs)]
        rates = {name: float(np.mean([p[name] <= LEVEL for p in found])) for name in found[0]}
        rows.append({"n": n, "epsilon": epsilon, **rates})
    columns = [*rows[0]]
    print_table("Level at .05", columns, [[row[c] for c in columns] for row in rows])
    seconds = round(time.process_time() - start)
    result = {"runs": options.runs, "draws": options.draws, "processor_seconds": seconds}
    save("level-releases", result | {"cells": rows})
    print(f"{seconds} processor seconds")


if __name__ == "__main__":
    main()
