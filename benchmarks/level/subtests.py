"""How often a subset of 8 and 8 rows rejects a true hypothesis, by SciPy's p-value and by ours.

Run: python -m benchmarks.level.subtests [--runs 4000]. Writes results/level-subtests.json. SciPy's
p-values are approximate on few rows; test_of_tests and sarrm_test permute rows instead.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import warnings
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.methods.subsample import DEPENDENCE, TWO_SAMPLE, dependence_pvalue, two_sample_pvalue

ROWS, LEVELS, PERMUTATIONS, NAME = 8, (0.25, 0.05), 199, "level-subtests"
Floats = NDArray[np.float64]
LAWS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "normal": lambda rng: rng.normal(size=ROWS),
    "lognormal": lambda rng: rng.lognormal(sigma=1.5, size=ROWS),
    "three values": lambda rng: rng.integers(3, size=ROWS).astype(np.float64),
}


def scipy_pvalue(name: str, x: Floats, y: Floats) -> float:
    """Return SciPy's p-value, and 1 where it has none."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if name == "anderson_ksamp":
            found = float(stats.anderson_ksamp([x, y]).pvalue)
            return 1.0 if found >= 0.25 else found  # it gives .25 for every p-value above
        try:
            found = float(getattr(stats, name)(x, y).pvalue)
        except np.linalg.LinAlgError:  # epps_singleton_2samp of too many ties
            return 1.0
    return found if found >= 0 else 1.0


def rates(name: str, law: str, runs: int) -> dict[str, list[float]]:
    """Return the shares of p-values that are at most each level."""
    own = (
        partial(two_sample_pvalue, TWO_SAMPLE[name])
        if name in TWO_SAMPLE
        else partial(dependence_pvalue, DEPENDENCE[name])
    )
    found = np.empty((runs, 2))
    for run in range(runs):
        rng = np.random.default_rng([run, ROWS])
        x, y = LAWS[law](rng), LAWS[law](rng)
        found[run] = scipy_pvalue(name, x, y), own(x, y, PERMUTATIONS, rng)
    shares = [np.mean(found <= level, axis=0).tolist() for level in LEVELS]
    return {side: [share[at] for share in shares] for at, side in enumerate(("scipy", "ours"))}


def exact_kruskal() -> float:
    """Return P(p <= .25) of SciPy's kruskal on 8 and 8 rows without ties, by enumeration."""
    rows = np.arange(2.0 * ROWS)
    sums = {}
    rejected = 0
    for chosen in combinations(range(2 * ROWS), ROWS):
        total = sum(chosen)
        if total not in sums:
            inside = np.isin(rows, chosen)
            sums[total] = scipy_pvalue("kruskal", rows[inside], rows[~inside]) <= LEVELS[0]
        rejected += sums[total]
    return rejected / len(list(combinations(range(2 * ROWS), ROWS)))


def main() -> None:
    """Measure every named test of SciPy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    runs = parser.parse_args().runs
    found: dict[str, Any] = {"runs": runs, "rows": ROWS, "levels": LEVELS}
    found |= {"exact_kruskal": exact_kruskal(), "rates": []}
    cells = [(name, law) for name in (*TWO_SAMPLE, *DEPENDENCE) for law in LAWS]
    for name, law in track(cells):
        found["rates"].append({"test": name, "law": law, **rates(name, law, runs)})
        save(NAME, found)
    rows = [[*row.values()] for row in found["rates"]]
    print_table(f"at most {LEVELS} ({runs} runs)", list(found["rates"][0]), rows)


if __name__ == "__main__":
    main()
