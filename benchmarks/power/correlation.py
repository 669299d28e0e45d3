"""Power of the correlation tests beside hsic_test, the test of tests and what people do.

Run: python -m benchmarks.power.correlation [--runs 200]. Writes results/power-correlation.json.
"naive" releases Pearson's correlation with the noise of private moments and compares it with the
classical critical value, as if there were no noise: its level is in the table too.
"""

from __future__ import annotations

import argparse
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.progress import track
from scipy import stats

import privatest as pt
from benchmarks.level.correlation import BOX, Pair, draw, fine
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise

CASES = ((100, 0.3), (500, 0.15), (500, 0.3), (2000, 0.15), (500, 0.0))
EPSILONS, LAWS = (0.1, 1.0), ("normal",)


def naive(x: Any, y: Any, *, epsilon: float, noise: SimulatedNoise) -> bool:
    """Compare a noisy correlation with the critical value of one without noise."""
    found = pt.pearsonr(x, y, **BOX, epsilon=epsilon, noise=noise, n_simulations=19)
    r, n = found.estimates["correlation"], len(x)
    if abs(r) >= 1:
        return True
    return bool(stats.t.sf(abs(r) * math.sqrt((n - 2) / (1 - r**2)), n - 2) <= 0.025)


def _hsic(**options: Any) -> Callable[..., bool]:
    def run(x: Any, y: Any, *, epsilon: float, noise: SimulatedNoise) -> bool:
        given = BOX | {"n_permutations": 199} | options
        return bool(pt.hsic_test(x, y, **given, epsilon=epsilon, noise=noise, rng=0).reject)

    return run


def _ranked(test: Callable[..., pt.Outcome], **options: Any) -> Callable[..., bool]:
    return lambda x, y, **given: test(x, y, **options, **given).reject


def tests_of_tests(x: Any, y: Any, *, epsilon: float, noise: SimulatedNoise) -> bool:
    """Run SciPy's pearsonr on parts of the data."""
    found = pt.test_of_tests(x, y, pvalue="pearsonr", epsilon=epsilon, noise=noise, rng=0)
    return found.reject


TESTS: dict[str, Callable[..., bool]] = {
    "kendall": _ranked(pt.kendalltau),
    "kendall, greater": _ranked(pt.kendalltau, alternative="greater"),
    "spearman": _ranked(pt.spearmanr),
    "pearson": _ranked(pt.pearsonr, **BOX, n_simulations=999),
    "hsic trend, decision": _hsic(statistics="trend", release="decision"),
    "hsic trend, p-value": _hsic(statistics="trend"),
    "hsic, decision": _hsic(release="decision"),
    "test of tests": tests_of_tests,
    "naive": naive,
    "without privacy": lambda x, y, **_: bool(stats.pearsonr(x, y).pvalue <= 0.05),
}


def measure(law: str, n: int, correlation: float, epsilon: float, runs: int) -> dict[str, float]:
    """Return how often each test rejects; all see the same data."""
    rng, found = np.random.default_rng(n), dict.fromkeys(TESTS, 0)
    for seed in range(runs):
        data: Pair = draw(law, correlation, n, rng)
        for name, test in TESTS.items():
            found[name] += test(*data, epsilon=epsilon, noise=SimulatedNoise(seed))
    return {name: count / runs for name, count in found.items()}


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    fine({"_ANGLES": 3, "_CORRELATIONS": 3, "_STEPS": 0})  # intervals are not looked at
    cases = [(w, n, r, e) for w in LAWS for n, r in CASES for e in EPSILONS]
    rows: list[dict[str, Any]] = []
    for law, n, r, epsilon in track(cases, description="power"):
        case = {"law": law, "n": n, "correlation": r, "epsilon": epsilon}
        rows.append(case | measure(law, n, r, epsilon, runs))
        save("power-correlation", {"runs": runs, "rows": rows})
    print_table(f"power ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
