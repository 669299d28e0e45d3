"""Even and adaptive bins of releases by tables: how far quantiles and distributions are off.

Run: python -m benchmarks.release.bins [--runs 20]
Writes results/release-bins.json.

A number x within public bounds, and whether it is above its median. Errors are of the 5,000
released rows against the private ones: relative, of quantiles and of the mean; "ks" is the largest
distance of the two distribution functions. Means over runs; "cells" are those of x.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic import release

SIZES, DELTA, LEVELS = ((2_000, 1.0), (20_000, 0.1), (20_000, 1.0)), "1e-6", (0.1, 0.5, 0.9)
Draw = Callable[[int, np.random.Generator], NDArray[np.float64]]


def _lognormal(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.lognormal(np.log(10), 1, n)


def _cents(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.rint(100 * _lognormal(n, rng))


CASES: dict[str, tuple[NumericColumn, Draw]] = {
    "lognormal, median 10, to 1,000": (NumericColumn(0, 1000), _lognormal),
    "lognormal, median 10, to 3,140": (NumericColumn(0, 3140), _lognormal),
    "lognormal, median 10, to 1,000,000": (NumericColumn(0, 10**6), _lognormal),
    "integers, median 1,000, to 1,000,000": (NumericColumn(0, 10**6, integer=True), _cents),
    "exponential, mean 1.7, to 20": (NumericColumn(0, 20), lambda n, rng: rng.gamma(1, 1.7, n)),
    "normal, 5 ± 1.5, 0 to 10": (NumericColumn(0, 10), lambda n, rng: rng.normal(5, 1.5, n)),
    "uniform": (NumericColumn(0, 1), lambda n, rng: rng.random(n)),
}


def run(name: str, n: int, epsilon: float, bins: Any, seed: int) -> dict[str, float]:
    """Release once, and compare rows."""
    column, draw = CASES[name]
    x = np.clip(draw(n, np.random.default_rng([seed, n])), column.lower, column.upper)
    made = release(
        {"x": x, "high": (x > np.median(x)).astype(int)},
        bounds=Schema({"x": column, "high": CategoricalColumn((0, 1))}),
        epsilon=epsilon,
        delta=DELTA,
        method="tables",
        bins=bins,
        n_points=5000,
        noise=SimulatedNoise(seed),
        rng=seed,
    )
    own, theirs = np.sort(x), np.sort(made.columns["x"])
    at = np.concatenate([own, theirs])
    shares = [np.searchsorted(each, at, side="right") / len(each) for each in (own, theirs)]
    found = {
        f"q{level:g}": abs(np.quantile(theirs, level) / np.quantile(own, level) - 1)
        for level in LEVELS
    }
    found |= {"mean": abs(theirs.mean() / own.mean() - 1)}
    found |= {"ks": np.abs(shares[0] - shares[1]).max(), "cells": len(made.measured[0].groups[0])}
    return {key: float(value) for key, value in found.items()}


def main() -> None:
    """Run all cases, print and save them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs, rows = parser.parse_args().runs, []
    for name in CASES:
        for n, epsilon in SIZES:
            for bins in ("even", "adaptive"):
                each = [run(name, n, epsilon, bins, seed) for seed in range(runs)]
                means = {key: float(np.mean([one[key] for one in each])) for key in each[0]}
                case = {"data": name, "n": n, "epsilon": epsilon, "bins": bins, "runs": runs}
                rows.append(case | means)
    save("release-bins", {"cells": rows})
    print_table("Bins", [*rows[0]], [[*row.values()] for row in rows])


if __name__ == "__main__":
    main()
