"""Level and coverage of tests of several groups, of pairs, of equivalence, and of one side.

Every cell is a true null hypothesis, that of equivalence at its boundary. Intervals are those of
the means or of their difference. The release is that of the public function; its bootstrap stops
at the first scenario that settles both the decision and whether the interval covers, with 199
draws. The decision is that of the test with n_bootstrap=199.

Run: python -m benchmarks.level.groups [--runs 1000]. Half as many runs for the slower tests. Writes
results/level-groups.json after each cell, and goes on from there when it is started again.
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

import privatest as pt
from benchmarks.measure import missing, save, stored
from benchmarks.report import print_table
from privatest.core.validation import public_generator
from privatest.laws.law import Alternative
from privatest.means.bootstrap import Contrast, replicate, scenarios
from privatest.means.inference import upper_point
from privatest.noise import SimulatedNoise
from privatest.several_groups.group_means import GroupMeans, _replicate, f_value

Floats = NDArray[np.float64]
Draw = Callable[[int], Floats]
Found = tuple[bool, bool | None]  # whether it rejects, and whether the interval covers
ALPHA, DRAWS = 0.05, 199

# of values in [0, 1]: how they are drawn, and their mean
LAWS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(0.5, 0.1, n),
    "off-centre": lambda rng, n: rng.normal(0.9, 0.02, n),
    "skewed": lambda rng, n: np.minimum(rng.exponential(0.1, n), 1.0),
    "rare": lambda rng, n: (rng.random(n) < 0.02).astype(np.float64),
}
MEANS = {"normal": 0.5, "off-centre": 0.9, "skewed": 0.1 * (1 - np.exp(-10)), "rare": 0.02}
OPTIONS: dict[str, Any] = {"bounds": (0, 1), "calibration": "asymptotic"}
HALF = 0.5  # of the bounds
BUDGETS = {  # by size: epsilon and delta
    5: ((1.0, 0.0), (10.0, 0.0)),
    10: ((0.3, 0.0), (10.0, 0.0)),
    20: ((1.0, 0.0), (10.0, 0.0)),
    100: ((0.3, 0.0), (1.0, 0.0), (1.0, 1e-6), (10.0, 0.0)),
    1000: ((0.05, 0.0), (0.3, 0.0), (10.0, 0.0)),
    10_000: ((0.05, 0.0), (1.0, 0.0), (1.0, 1e-6)),
}
SOME = {
    5: ((10.0, 0.0),),
    10: ((10.0, 0.0),),
    20: ((1.0, 0.0),),
    100: ((1.0, 0.0), (1.0, 1e-6), (10.0, 0.0)),
    1000: ((0.3, 0.0),),
    10_000: ((0.05, 0.0),),
}
FEW = {5: ((10.0, 0.0),), 20: ((10.0, 0.0),), 100: ((1.0, 0.0),), 1000: ((0.3, 0.0),)}
TWO = {5: ((10.0, 0.0),), 100: ((1.0, 0.0),)}


def settle_groups(groups: GroupMeans, mean: float, seed: int) -> Found:
    """Return the decision of f_oneway, and whether the intervals of all means cover."""
    variances = groups.variances(groups.own)
    observed, errors = float(f_value(groups.means, variances)), np.sqrt(variances)
    furthest = float(np.max(np.abs(groups.means - (2 * mean - 1)) / errors))
    rejects, covers = True, False
    for scenario in scenarios(groups):
        deviations, drawn = _replicate(groups, scenario, DRAWS, seed)
        above = np.sum(f_value(deviations, drawn) >= observed)
        rejects = rejects and bool((1 + above) / (DRAWS + 1) <= ALPHA)
        largest = np.max(np.abs(deviations) / np.sqrt(drawn), axis=1)
        covers = covers or furthest <= upper_point(largest, ALPHA)
        if covers and not rejects:
            break
    return bool(rejects), bool(covers)


def rejects(contrast: Contrast, value: float, side: Alternative, seed: int) -> bool:
    """Return the decision of a t-test; an interval covers a value that it does not reject."""
    error = np.sqrt(contrast.released_scale[0, 0] / contrast.size)
    observed = float((contrast.value[0] - value) / error)
    for scenario in scenarios(contrast):
        draws = replicate(contrast, scenario, DRAWS, public_generator(seed))
        t = draws.deviations[:, 0] / np.sqrt(draws.diagonals[:, 0] / contrast.size)
        if side == "two-sided":
            t, observed = np.abs(t), abs(observed)
        above = np.sum(t <= observed if side == "less" else t >= observed)
        if (1 + above) / (DRAWS + 1) > ALPHA:
            return False
    return True


def anova(draw: Draw, n: int, mean: float, seed: int, **o: Any) -> Found:
    """Three groups, one of half the size."""
    found: Any = pt.f_oneway(draw(n), draw(max(n // 2, 2)), draw(n), **OPTIONS, **o).intervals
    return settle_groups(found.groups, mean, seed)


def unequal(draw: Draw, n: int, mean: float, seed: int, **o: Any) -> Found:
    """Five groups, variances not pooled: the two largest have a tenth of the variance."""
    samples = [draw(max(n // k, 2)) for k in (2, 3, 4)]
    samples += [mean + np.sqrt(0.1) * (draw(n) - mean) for _ in range(2)]
    found: Any = pt.f_oneway(*samples, equal_var=False, **OPTIONS, **o).intervals
    return settle_groups(found.groups, mean, seed)


def pairs(draw: Draw, n: int, mean: float, **o: Any) -> Contrast:
    """Differences as skewed as the law: the other column hardly varies."""
    other = np.full(n, mean)
    found: Any = pt.ttest_rel(draw(n), other, **OPTIONS, **o).intervals
    contrast: Contrast = found.contrast
    return contrast


def paired(draw: Draw, n: int, mean: float, seed: int, **o: Any) -> Found:
    """Two columns with the same mean."""
    found = rejects(pairs(draw, n, mean, **o), 0.0, "two-sided", seed)
    return found, not found


def paired_less(draw: Draw, n: int, mean: float, seed: int, **o: Any) -> Found:
    """The side to which a skewed law errs."""
    found = rejects(pairs(draw, n, mean, **o), 0.0, "less", seed)
    return found, not found


def equivalent(draw: Draw, n: int, mean: float, seed: int, **o: Any) -> Found:
    """The difference is 0, the upper limit of what does not matter."""
    del mean
    found: Any = pt.tost_ind(draw(n), draw(max(n // 2, 2)), -0.3, 0.0, **OPTIONS, **o).intervals
    below, above = (rejects(found.contrast, 0.0, side, seed) for side in ("less", "greater"))
    far = below and rejects(found.contrast, -0.3 / HALF, "greater", seed)
    return far, not (below or above)


def equivalent_pairs(draw: Draw, n: int, mean: float, seed: int, **o: Any) -> Found:
    """The same for pairs, whose bounds are [-1, 1]."""
    contrast = pairs(draw, n, mean, **o)
    below, above = (rejects(contrast, 0.0, side, seed) for side in ("less", "greater"))
    return below and rejects(contrast, -0.3, "greater", seed), not (below or above)


def one_side(draw: Draw, n: int, mean: float, seed: int, **o: Any) -> Found:
    """Kolmogorov–Smirnov, greater; it has no interval."""
    del mean, seed
    return pt.ks_2samp(draw(n), draw(max(n // 2, 2)), alternative="greater", **o).reject, None


# how, and where for each law
TESTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "f_oneway": (anova, {"rare": BUDGETS, "skewed": SOME, "off-centre": TWO, "normal": TWO}),
    "ttest_rel": (paired, {"rare": SOME, "skewed": SOME, "off-centre": TWO, "normal": TWO}),
    "ttest_rel, less": (paired_less, {"rare": FEW, "skewed": FEW}),
    "f_oneway, unequal": (unequal, {"rare": FEW, "skewed": FEW}),
    "tost_ind": (equivalent, {"rare": FEW, "skewed": FEW}),
    "tost_rel": (equivalent_pairs, {"rare": FEW, "skewed": FEW}),
    "ks_2samp, greater": (one_side, {"rare": TWO, "skewed": TWO}),
}


def cell(test: str, law: str, n: int, epsilon: float, delta: float, runs: int) -> dict[str, Any]:
    """Return rejections and coverage of one cell."""
    rejected, covered, place = 0, 0, list(TESTS).index(test)
    for seed in range(runs):
        rng = np.random.default_rng([seed, n, place])
        noise = SimulatedNoise(int(rng.integers(2**60)))
        found, covers = TESTS[test][0](
            lambda size, rng=rng: LAWS[law](rng, size),
            n,
            MEANS[law],
            seed,
            epsilon=epsilon,
            delta=delta,
            noise=noise,
        )
        rejected += found
        covered += bool(covers)
    rate = rejected / runs
    return {
        "runs": runs,
        "rejected": rate,
        "standard_errors": (rate - 0.05) / (0.05 * 0.95 / runs) ** 0.5,
        "covered": None if covers is None else covered / runs,
        "nominal": None if covers is None else 0.9 if test.startswith("tost") else 0.95,
    }


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    cases: list[Any] = [
        (test, law, n, *budget)
        for test, (_, laws) in TESTS.items()
        for law, sizes in laws.items()
        for n, budgets in sizes.items()
        for budget in budgets
    ]
    rows = stored("level-groups", runs)
    for values in track(cases, description="level"):
        case = dict(zip(("test", "law", "n", "epsilon", "delta"), values, strict=True))
        if missing(rows, case):
            own = runs if values[0].startswith("ttest") else max(runs // 2, 1)
            rows.append(case | cell(**case, runs=own))
            save("level-groups", {"runs": runs, "rows": rows})
    print_table(f"level ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])
    print("highest:", max(row["standard_errors"] for row in rows), "standard errors above .05")


if __name__ == "__main__":
    main()
