"""Level of t-tests, equivalence tests and analysis of variance, and of the classical tests.

Every cell is a true null hypothesis, that of equivalence at its boundary. The private and the
classical test see the same rows. ``calibration="classical"`` promises a rate of at most the larger
of alpha and the classical rate, "any" a rate of at most alpha. Rare rows are 0 or 1 with a given
expected number of ones; of skewed laws the side is tested on which they reject too often.

Run: python -m benchmarks.level.groups [--runs 2000]. Writes results/level-groups.json after each
cell, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

from benchmarks.measure import missing, save, stored
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.data.encoding import encode_sample
from privatest.methods.anova import GroupMeans, infer_groups
from privatest.methods.ks import ks_2samp
from privatest.methods.mean_inference import (
    Contrast,
    contrast_pvalue,
    one_sample_contrast,
    release_rows,
    t_pvalue,
)
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import Alternative

Floats = NDArray[np.float64]
Rows = Callable[[int], Floats]
ALPHAS = (0.05, 0.01)
NAME, NAMES = "level-groups", ("rejected", "classical")
DRAWS = 1999  # of analysis of variance
SUMMARY = [
    "test",
    "calibration",
    "cells × runs",
    *(f"{a}: rates, classical, excess" for a in ALPHAS),
]

# rows in [-1, 1], and their mean
Law = tuple[Callable[[np.random.Generator, int], Floats], float]


def normal(reach: float) -> Law:
    """Normal rows whose bounds are this many standard deviations away."""
    return lambda rng, n: np.clip(rng.normal(size=n) / reach, -1, 1), 0.0


def rare(ones: float, n: int) -> Law:
    """Rows at the lower bound but for some at the upper one."""
    return lambda rng, size: np.where(rng.random(size) < ones / n, 1.0, -1.0), 2 * ones / n - 1


def skewed(kind: str) -> Law:
    """Exponential or lognormal rows, cut at the upper bound 30 means away."""
    if kind == "exponential":
        return lambda rng, n: np.minimum(rng.exponential(size=n) / 15, 2) - 1, 1 / 15 - 1
    mean = math.exp(0.5) * stats.norm.cdf(math.log(30) - 1) + 30 * stats.norm.sf(math.log(30))
    return lambda rng, n: np.minimum(rng.lognormal(size=n), 30) / 15 - 1, mean / 15 - 1


def law_of(name: str, n: int) -> Law:
    """Return a law by its name, such as "rare 20.5" or "normal 8"."""
    kind, _, number = name.partition(" ")
    if kind == "rare":
        return rare(float(number), n)
    return normal(float(number)) if kind == "normal" else skewed(kind)


def pvalue(contrast: Contrast, value: float, side: Alternative, calibration: str) -> float:
    """Return the p-value of a t-test."""
    deviation = float(contrast.value[0]) - value
    if calibration == "any":
        return contrast_pvalue(contrast, deviation, side, ALPHAS[0])
    return t_pvalue(contrast, deviation, side)


def samples(*groups: Floats) -> list[Any]:
    """Encode rows of [-1, 1]."""
    return [encode_sample(rows, (-1, 1)) for rows in groups]


def one_sample(
    rows: Rows, n: int, mean: float, budget: Budget, noise: SimulatedNoise, **o: Any
) -> Any:
    """t-test of one sample, or of pairs."""
    x = rows(n)
    contrast = one_sample_contrast(samples(x)[0], budget, noise)
    classical = stats.ttest_1samp(x, mean, alternative=o["side"])
    return pvalue(contrast, mean, **o), classical.pvalue


def equivalent(
    rows: Rows, n: int, mean: float, budget: Budget, noise: SimulatedNoise, **o: Any
) -> Any:
    """Two one-sided tests; the mean is at the upper limit, the lower one is far away."""
    x, side = rows(n), o.pop("side")
    del side
    contrast = one_sample_contrast(samples(x)[0], budget, noise)
    ends: tuple[tuple[Alternative, float], ...] = (("less", mean), ("greater", mean - 1.0))
    private = [pvalue(contrast, end, side, **o) for side, end in ends]
    classical = [stats.ttest_1samp(x, end, alternative=side).pvalue for side, end in ends]
    return max(private), max(classical)


def welch(rows: Rows, n: int, mean: float, budget: Budget, noise: SimulatedNoise, **o: Any) -> Any:
    """Welch's test of n rows against 20 n."""
    del mean
    x, y = rows(n), rows(20 * n)
    share = 1 / 21
    contrast = Contrast(
        release_rows(samples(x, y), budget, noise), (1 - share, share), n * 20 / 21, False
    )
    classical = stats.ttest_ind(x, y, equal_var=False, alternative=o["side"])
    return pvalue(contrast, 0.0, **o), classical.pvalue


def anova(
    rows: Rows, n: int, mean: float, budget: Budget, noise: SimulatedNoise, *, equal: bool, **o: Any
) -> Any:
    """Three groups, one of half the size."""
    del mean
    groups = [rows(n), rows(n // 2), rows(n)]
    sizes = [len(each) for each in groups]
    weights = tuple((size - 1) / (sum(sizes) - 3) for size in sizes)
    released = GroupMeans(release_rows(samples(*groups), budget, noise), weights, min(sizes), equal)
    found = infer_groups(
        released, alpha=ALPHAS[0], calibration=o["calibration"], n_bootstrap=DRAWS, seed=n
    )
    return found.pvalue, stats.f_oneway(*groups, equal_var=equal).pvalue


def pooled_anova(*arguments: Any, **o: Any) -> Any:
    """One variance."""
    return anova(*arguments, equal=True, **o)


def welch_anova(*arguments: Any, **o: Any) -> Any:
    """Each its own."""
    return anova(*arguments, equal=False, **o)


def one_sided_ks(
    rows: Rows, n: int, mean: float, budget: Budget, noise: SimulatedNoise, **o: Any
) -> Any:
    """Kolmogorov–Smirnov, greater, against half as many rows."""
    del mean, o
    x, y = rows(n), rows(n // 2)
    found = ks_2samp(x, y, alternative="greater", epsilon=budget.epsilon, noise=noise)
    return found.pvalue, stats.ks_2samp(x, y, alternative="greater").pvalue


TESTS = {
    "ttest_1samp": one_sample,
    "tost_rel": equivalent,
    "ttest_ind, Welch": welch,
    "f_oneway": pooled_anova,
    "f_oneway, Welch": welch_anova,
    "ks_2samp, greater": one_sided_ks,
}
RARE = (10, 14, 18, 20.1, 20.5, 24.9, 30, 40)
BUDGETS = ((0.5, 0.0), (1.0, 0.0), (5.0, 0.0), (20.0, 0.0), (1.0, 1e-6))


def cases() -> list[dict[str, Any]]:
    """Return every cell."""
    found: list[tuple[Any, ...]] = [
        ("ttest_1samp", f"rare {ones}", 1000, "less", budget, "classical")
        for ones in RARE
        for budget in BUDGETS
    ]
    found += [
        ("ttest_1samp", f"normal {reach}", n, side, budget, "classical")
        for reach in (4, 8, 16)
        for n, side in ((30, "two-sided"), (100, "greater"), (1000, "less"))
        for budget in ((1.0, 0.0), (20.0, 0.0), (1.0, 1e-6))
    ]
    for law in ("exponential", "lognormal"):
        found += [
            ("ttest_1samp", law, n, "less", budget, "classical")
            for n in (30, 300)
            for budget in ((1.0, 0.0), (20.0, 0.0))
        ]
    some = ((1.0, 0.0), (20.0, 0.0))
    for law in ("rare 10", "rare 20.5", "rare 40", "lognormal", "normal 8"):
        for test in ("tost_rel", "ttest_ind, Welch", "f_oneway", "f_oneway, Welch"):
            n = 1000 if law.startswith("rare") else 100
            found += [(test, law, n, "less", budget, "classical") for budget in some]
    found += [
        (test, f"rare {ones}", n, "less", budget, "any")
        for test, n in (("ttest_1samp", 1000), ("ttest_ind, Welch", 1000), ("f_oneway", 200))
        for ones in (1, 5, 20.5)
        for budget in ((1.0, 0.0), (20.0, 0.0), (1.0, 1e-6))
    ]
    found += [
        ("ks_2samp, greater", law, 100, "greater", budget, "classical")
        for law in ("rare 5", "exponential")
        for budget in ((1.0, 0.0), (10.0, 0.0))
    ]
    names = ("test", "law", "n", "side", "epsilon", "delta", "calibration")
    return [
        dict(zip(names, (t, law, n, side, *budget, calibration), strict=True))
        for t, law, n, side, budget, calibration in found
    ]


def cell(
    test: str,
    law: str,
    n: int,
    side: str,
    epsilon: float,
    delta: float,
    calibration: str,
    runs: int,
) -> dict[str, Any]:
    """Return the rates of one cell."""
    draw, mean = law_of(law, n)
    found = []
    for seed in range(runs):
        rng = np.random.default_rng([seed, n, list(TESTS).index(test), sum(map(ord, law))])
        noise = SimulatedNoise(int(rng.integers(2**60)))
        found.append(
            TESTS[test](
                partial(draw, rng),
                n,
                mean,
                Budget(epsilon, delta),
                noise,
                side=side,
                calibration=calibration,
            )
        )
    private, classical = np.array(found).T
    result: dict[str, Any] = {"runs": runs}
    for alpha in ALPHAS:
        rate, own = float(np.mean(private <= alpha)), float(np.mean(classical <= alpha))
        allowed = max(alpha, own) if calibration == "classical" else alpha
        error = math.sqrt(allowed * (1 - allowed) / runs)
        result[f"rejected {alpha}"] = rate
        result[f"classical {alpha}"] = own
        result[f"excess {alpha}"] = round((rate - allowed) / error, 2)  # in standard errors
    return result


def main() -> None:
    """Measure every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")  # SciPy's, on constant samples
    rows = stored(NAME, runs)
    for case in track(cases(), description="level"):
        if missing(rows, case):
            own = runs if not case["test"].startswith("f_oneway") else max(runs // 2, 1)
            rows.append(case | cell(**case, runs=own))
            save(NAME, {"runs": runs, "rows": rows})
    print_table(f"level ({runs} runs)", SUMMARY, summary(rows))


def summary(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return the lines of the table of docs/figures.md: ranges of rates, and the largest excess."""
    found = []
    for test, calibration in dict.fromkeys((row["test"], row["calibration"]) for row in rows):
        own = [row for row in rows if (row["test"], row["calibration"]) == (test, calibration)]
        parts = [f"`{test}`", f"`{calibration}`", f"{len(own)} × {own[0]['runs']:,}"]
        for alpha in ALPHAS:
            ends = [
                f"{min(values):.3f} to {max(values):.3f}".replace("0.", ".")
                for values in ([row[f"{name} {alpha}"] for row in own] for name in NAMES)
            ]
            worst = max(row[f"excess {alpha}"] for row in own)
            parts.append(f"{ends[0]} | {ends[1]} | {worst:+.1f}".replace("-", "−"))
        found.append(parts)
    return found


if __name__ == "__main__":
    main()
