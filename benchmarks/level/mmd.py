"""Level of mmd_test: p-values are uniform and decisions reject at alpha under the null.

Run: python -m benchmarks.level.mmd [--runs 2000]. Writes results/level-mmd.json after every
case, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import missing, save, stored
from benchmarks.report import print_table
from privatest.methods import mmd
from privatest.noise import SimulatedNoise

LAWS = ("uniform", "skewed", "ties")
SIZES = ((500, 500, None), (300, 900, None), (203, 330, 7))  # the last leaves rows over
EPSILONS = (0.05, 1.0, 10.0)

Group = tuple[str, int, int, int | None, str]


def draw(law: str, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw one sample."""
    if law == "uniform":
        return rng.uniform(size=(size, 1))
    if law == "skewed":
        return rng.beta(0.4, 4, size=(size, 1))
    return rng.integers(0, 4, size=(size, 1)) / 3


def run(group: Group, seed: int) -> list[tuple[float, bool]]:
    """Return the p-value and the decision at each epsilon, for one data set."""
    law, n, m, bin_size, adjacency = group
    rng = np.random.default_rng([seed, n, m])
    x, y = draw(law, n, rng), draw(law, m, rng)
    options: dict[str, Any] = {"adjacency": adjacency, "bin_size": bin_size, "bounds": (0, 1)}
    found = []
    with _permuted_once():
        for epsilon in EPSILONS:
            pvalue, decision = (
                pt.mmd_test(
                    x,
                    y,
                    epsilon=epsilon,
                    n_permutations=199,
                    rng=seed,
                    noise=SimulatedNoise(seed),
                    release=release,
                    **options,
                )
                for release in ("pvalue", "decision")
            )
            assert isinstance(pvalue, pt.Outcome)
            found.append((pvalue.pvalue, decision.reject))
    return found


@contextmanager
def _permuted_once() -> Iterator[None]:
    """Permute a data set once for all epsilons: the same numbers, as its seeds are the same."""
    kept: dict[bool, tuple[Any, Any]] = {}
    permute = mmd._statistics

    def once(plan: Any, count: int, rng: np.random.Generator, noise: Any) -> Any:
        if plan.swap not in kept:
            found = permute(plan, count, rng, noise)
            kept[plan.swap] = found, noise._rng.bit_generator.state
        found, noise._rng.bit_generator.state = kept[plan.swap]  # what comes next is drawn afresh
        return found

    mmd._statistics = once  # type: ignore[assignment]
    try:
        yield
    finally:
        mmd._statistics = permute


def main() -> None:
    """Measure every case."""
    from scipy.stats import kstest  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    groups: list[Group] = [
        (law, n, m, bin_size, adjacency)
        for law in LAWS
        for n, m, bin_size in SIZES
        for adjacency in (("one", "row") if bin_size is None else ("one",))
    ]
    rows = stored("level-mmd", runs)
    with ProcessPoolExecutor() as pool:
        for group in track(groups, description="level"):
            words = dict(zip(("law", "n", "m", "bin_size", "adjacency"), group, strict=True))
            if not missing(rows, words):
                continue
            found = list(pool.map(partial(run, group), range(runs), chunksize=25))
            for place, epsilon in enumerate(EPSILONS):
                pvalues, rejected = np.array([each[place] for each in found]).T
                rows.append(
                    words
                    | {
                        "epsilon": epsilon,
                        "uniformity": float(kstest(pvalues, "uniform").pvalue),
                        "p <= .05": float(np.mean(pvalues <= 0.05)),
                        "decision at .05": float(rejected.mean()),
                    }
                )
            error = (0.05 * 0.95 / runs) ** 0.5
            save("level-mmd", {"runs": runs, "standard_error": error, "rows": rows})
    print_table(f"level ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
