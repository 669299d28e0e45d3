"""Tests from cells in place of sorted values: level, and power beside the exact form.

Run: python -m benchmarks.level.cells [--runs 300]. Writes results/level-cells.json.

The same data and the same noise are tested in each form: "exact", "cells" (at 1024 ranks, or
equal cells of the bounds), and for public groups "ends" (at the ends of cells only, which is what
more than 4,194,304 rows get).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise

Floats = NDArray[np.float64]
ALPHA = 0.05
PERMUTATIONS = 99


def normal(size: int, shift: float, rng: np.random.Generator) -> Floats:
    """Draw from N(shift, 1)."""
    return rng.normal(size=size) + shift


def skewed(size: int, shift: float, rng: np.random.Generator) -> Floats:
    """Draw from a log-normal law, nearly all of it in a tenth of the bounds."""
    return np.asarray(np.exp(rng.normal(size=size) + shift) - 1)


def tied(size: int, shift: float, rng: np.random.Generator) -> Floats:
    """Draw counts: a third are 0."""
    return rng.poisson(np.exp(shift), size=size).astype(np.float64)


LAWS: dict[str, tuple[Callable[[int, float, np.random.Generator], Floats], tuple[float, float]]] = {
    "normal": (normal, (-5.0, 5.0)),
    "skewed": (skewed, (-1.0, 100.0)),
    "tied": (tied, (0.0, 50.0)),
}
TWO: dict[str, dict[str, Any]] = {
    "ks, private groups": {"test": "ks", "adjacency": "row"},
    "kuiper, private groups": {"test": "ks", "adjacency": "row", "statistic": "kuiper"},
    "kolmogorov": {"test": "ipm", "distance": "kolmogorov"},
    "wasserstein": {"test": "ipm", "distance": "wasserstein"},
    "wasserstein, private groups": {"test": "ipm", "distance": "wasserstein", "adjacency": "row"},
}
PUBLIC = (("ks", 16), ("ks", 256), ("ks", 1024), ("kuiper", 256))


def permuted(asked: dict[str, Any], data: tuple[Floats, Floats], common: dict[str, Any]) -> Any:
    """Return the decisions of a permutation test, exact and from cells."""
    options = {name: value for name, value in asked.items() if name != "test"} | common
    test: Any = pt.ks_2samp if asked["test"] == "ks" else pt.ipm_test
    found = {}
    for form, grid in (("exact", "exact"), ("cells", None)):
        options["noise"] = SimulatedNoise(common["rng"])
        with (
            patch("privatest.methods.ks.EXACT_ROWS", 0),
            patch("privatest.methods.ipm.EXACT_ROWS", 0),
        ):
            result = test(*data, grid=grid, n_permutations=PERMUTATIONS, **options)
        found[form] = result.reject
    return found


def public(statistic: Any, data: tuple[Floats, Floats], grid: int, common: dict[str, Any]) -> Any:
    """Return the decisions of ks_2samp with public groups: exact, on a grid, at its ends."""
    found = {}
    for form, own, most in (("exact", None, 0), ("cells", grid, 1 << 22), ("ends", grid, 0)):
        noise = SimulatedNoise(common["rng"])
        with patch("privatest.methods.ks.LABELLED_ROWS", most):
            result = pt.ks_2samp(*data, statistic=statistic, grid=own, **common | {"noise": noise})
        found[form] = result.reject
    return found


def cases(runs: int) -> list[dict[str, Any]]:
    """Measure all cases: two sizes of samples each, a null hypothesis and an alternative."""
    rows = []
    for law, (draw, bounds) in LAWS.items():
        for n, m, epsilon in ((1_000, 1_000, 1.0), (600, 2_400, 5.0)):
            for scale in (0.0, 3.2):
                shift = scale / math.sqrt(n * m / (n + m))
                counts: dict[tuple[str, str], int] = {}
                for seed in range(runs):
                    rng = np.random.default_rng([seed, n])
                    data = draw(n, 0.0, rng), draw(m, shift, rng)
                    common = {"bounds": bounds, "epsilon": epsilon, "rng": seed, "alpha": ALPHA}
                    found = {name: permuted(asked, data, common) for name, asked in TWO.items()}
                    for statistic, grid in PUBLIC:
                        decided = public(statistic, data, grid, common)
                        found[f"{statistic}, grid {grid}"] = decided
                    for name, forms in found.items():
                        for form, rejected in forms.items():
                            counts[name, form] = counts.get((name, form), 0) + int(rejected)
                for name in dict.fromkeys(name for name, _ in counts):
                    shares = {
                        form: counts[name, form] / runs for own, form in counts if own == name
                    }
                    case = {"law": law, "n": n, "m": m, "epsilon": epsilon, "shift": scale}
                    rows.append(case | {"test": name} | shares)
                print(
                    f"{law}, n = {n}, m = {m}, epsilon = {epsilon:g}, shift {scale:g}", flush=True
                )
    return rows


def main() -> None:
    """Measure, print the table, write the JSON; a row is bad if a level is above .05 + 3 errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    rows = cases(runs)
    limit = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / runs)
    names = ["law", "n", "m", "epsilon", "shift", "test", "exact", "cells", "ends"]
    table = [[row.get(name) for name in names] for row in rows]
    print_table(f"rejections at .05, {runs} runs", names, table)
    forms = ("exact", "cells", "ends")
    bad = [r for r in rows if r["shift"] == 0 and max(r.get(form, 0) for form in forms) > limit]
    print(f"{len(bad)} of {len(rows)} rows have a level above {limit:.3f}")
    save("level-cells", {"runs": runs, "permutations": PERMUTATIONS, "bad": len(bad), "rows": rows})


if __name__ == "__main__":
    main()
