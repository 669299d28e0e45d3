"""Level and coverage of tests of several groups, of pairs, of equivalence, and of one side.

Every cell is a true null hypothesis, that of equivalence at its boundary. Intervals are those of
the means or of their difference.

Run: python -m benchmarks.level.groups [--runs 300]. Writes results/level-groups.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.core.results import Outcome
from privatest.noise import SimulatedNoise

Floats = NDArray[np.float64]
SIZES, EPSILONS, DELTAS = (5, 50, 1000, 10_000), (0.05, 1.0, 10.0), (0.0, 1e-6)
# of values in [0, 1]: how they are drawn, and their mean
LAWS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(0.5, 0.1, n),
    "skewed": lambda rng, n: np.minimum(rng.exponential(0.1, n), 1.0),
    "rare": lambda rng, n: (rng.random(n) < 0.02).astype(np.float64),
}
MEANS = {"normal": 0.5, "skewed": 0.1 * (1 - np.exp(-10)), "rare": 0.02}
OPTIONS: dict[str, Any] = {"bounds": (0, 1), "n_bootstrap": 199}


def anova(draw: Callable[[int], Floats], n: int, mean: float, **o: Any) -> tuple[Outcome, Any]:
    """Three groups, one of half the size."""
    return pt.f_oneway(draw(n), draw(max(n // 2, 2)), draw(n), **OPTIONS, **o), mean


def unequal(draw: Callable[[int], Floats], n: int, mean: float, **o: Any) -> tuple[Outcome, Any]:
    """Five groups, variances not pooled."""
    samples = [draw(max(n // k, 2)) for k in (1, 1, 2, 3, 4)]
    return pt.f_oneway(*samples, equal_var=False, **OPTIONS, **o), mean


def paired(draw: Callable[[int], Floats], n: int, mean: float, **o: Any) -> tuple[Outcome, Any]:
    """Two columns with the same mean."""
    del mean
    return pt.ttest_rel(draw(n), draw(n), **OPTIONS, **o), 0.0


def equivalent(draw: Callable[[int], Floats], n: int, mean: float, **o: Any) -> tuple[Outcome, Any]:
    """The difference is 0, the upper limit of what does not matter."""
    del mean
    return pt.tost_ind(draw(n), draw(max(n // 2, 2)), -0.3, 0.0, **OPTIONS, **o), 0.0


def one_side(draw: Callable[[int], Floats], n: int, mean: float, **o: Any) -> tuple[Outcome, Any]:
    """Kolmogorov–Smirnov, greater."""
    del mean, o["rng"]
    return pt.ks_2samp(draw(n), draw(max(n // 2, 2)), alternative="greater", **o), None


TESTS = {
    "f_oneway": anova,
    "f_oneway, unequal": unequal,
    "ttest_rel": paired,
    "tost_ind": equivalent,
    "ks_2samp, greater": one_side,
}


def cell(test: str, law: str, n: int, epsilon: float, delta: float, runs: int) -> dict[str, Any]:
    """Return rejections and coverage of one cell."""
    rejected, covered, intervals = 0, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        options = {"epsilon": epsilon, "delta": delta, "rng": seed, "noise": SimulatedNoise(seed)}
        result, truth = TESTS[test](partial(LAWS[law], rng), n, MEANS[law], **options)
        rejected += result.reject
        if truth is not None:
            intervals += 1
            inside = (result.estimates["lower"] <= truth) & (truth <= result.estimates["upper"])
            covered += bool(np.all(inside))
    rate = rejected / runs
    return {
        "test": test,
        "law": law,
        "n": n,
        "epsilon": epsilon,
        "delta": delta,
        "rejected": rate,
        "standard_errors": (rate - 0.05) / (0.05 * 0.95 / runs) ** 0.5,
        "covered": covered / intervals if intervals else None,
        "nominal": 0.9 if test == "tost_ind" else 0.95 if intervals else None,
    }


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    cases = [
        (test, law, n, epsilon, delta)
        for test in TESTS
        for law in LAWS
        for n in SIZES
        for epsilon in EPSILONS
        for delta in (DELTAS if epsilon == 1.0 else (0.0,))
    ]
    rows = [cell(*case, runs) for case in track(cases, description="level")]
    save("level-groups", {"runs": runs, "rows": rows})
    print_table(f"level ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])
    print("highest:", max(row["standard_errors"] for row in rows), "standard errors above .05")


if __name__ == "__main__":
    main()
