"""Power of the embedding tests: the specification's table, and the paper's four problems.

Locations and frequencies are optimised on public samples of the same kind. Writes
results/power-embedding-*.json and power-embedding.png.

Run: python -m benchmarks.power.embedding [--runs 200] [--part table|problems]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.data.encoding import encode_samples
from privatest.mechanisms.moments import release_moments
from privatest.methods.embedding import (
    MomentsRelease,
    me_permutation_test,
    me_test,
    scf_permutation_test,
    scf_test,
)
from privatest.methods.locations import characteristic_features, location_features
from privatest.noise import SimulatedNoise
from privatest.numerics.features import Embedding
from privatest.numerics.moments import moment_pvalue, moments, pool_releases
from privatest_papers.experiments.raj import box, public_choice
from privatest_papers.samplers import PROBLEMS
from privatest_papers.samplers import problem as samples_of

DELTA, ALPHA = 1e-5, 0.05
TESTS = ("statistic", "permutation", "moments", "shares")
# problem, columns, shift, rows a group, epsilon, locations: power of the specification's tests
TABLE = {
    ("GMD", 100, 1.0, 1000, 0.3, 5): (0.87, 0.72, 0.37, 0.25),
    ("GMD", 2, 0.2, 2000, 0.2, 5): (0.40, 0.48, 0.60, 0.37),
    ("GMD", 2, 0.2, 2000, 0.5, 5): (0.85, 0.97, 0.96, 0.91),
    ("GMD", 5, 0.3, 1000, 1.0, 10): (0.37, 0.83, 0.76, 0.55),
    ("GMD", 5, 0.3, 2000, 0.5, 10): (0.88, 0.98, 0.91, 0.69),
}
EPSILONS, ROWS = (0.1, 0.3, 1.0, 2.5, 5.0), 10_000

Job = tuple[str, int, float, int, float, int, int]


def rejections(job: Job) -> list[bool]:
    """Run every test once."""
    problem, columns, shift, n, epsilon, count, seed = job
    # a curve over epsilon has one choice of locations, made for epsilon = 1
    public = public_choice(problem, n, 1.0 if n == ROWS else epsilon, count, shift, columns)
    shared = public | {"bounds": box(problem), "epsilon": epsilon, "rng": seed}
    x, y = samples_of(problem, n, np.random.default_rng([seed, n]), shift, columns)
    waves = "frequencies" in public
    test: Any = scf_test if waves else me_test
    permute: Any = scf_permutation_test if waves else me_permutation_test
    # seeds apart from those of rng: one generator must not feed both
    noise = [SimulatedNoise(1_000_000 + seed) for _ in range(4)]
    return [
        test(x, y, release="statistic", noise=noise[0], **shared).reject,
        permute(x, y, release="decision", n_permutations=299, noise=noise[1], **shared).reject,
        test(x, y, delta=DELTA, release=MomentsRelease(299), noise=noise[2], **shared).reject,
        _shares(x, y, public, problem, epsilon, noise[3]) <= ALPHA,
    ]


def _shares(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    public: dict[str, Any],
    problem: str,
    epsilon: float,
    noise: SimulatedNoise,
) -> float:
    """Return the p-value of two owners' releases."""
    bounds = box(problem)
    samples = encode_samples(x, y, bounds)
    embedding: Embedding
    if "frequencies" in public:
        embedding = characteristic_features(public["frequencies"], samples.x, None)
    else:
        embedding = location_features(
            public["locations"], samples.x, "gaussian", public["bandwidth"]
        )
    released = [
        release_moments(
            own,
            radius=embedding.radius,
            spread=embedding.spread,
            budget=Budget(epsilon, DELTA),
            noise=noise,
            feature_error=embedding.rounding,
        )
        for own in moments(
            *samples, psi=embedding, dimension=embedding.dimension, radius=embedding.radius
        )
    ]
    rng = np.random.default_rng(0)
    return moment_pvalue(pool_releases(*released), n_bootstrap=299, rng=rng)[1]


def table(runs: int, pool: ProcessPoolExecutor) -> None:
    """Rebuild the specification's rows."""
    rows = []
    for case, expected in track(TABLE.items(), description="table"):
        found = list(pool.map(rejections, [(*case, seed) for seed in range(runs)], chunksize=20))
        row: dict[str, Any] = dict(
            zip(("problem", "columns", "shift", "n", "epsilon", "locations"), case, strict=True)
        )
        for name, power, spec in zip(TESTS, np.mean(found, axis=0), expected, strict=True):
            row |= {name: float(power), f"{name}, spec": spec}
        rows.append(row)
        print(row, flush=True)
    save("power-embedding-table", {"runs": runs, "rows": rows})
    print_table(f"power ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


def problems(runs: int, pool: ProcessPoolExecutor) -> None:
    """Draw power against epsilon for the paper's problems."""
    rows = []
    for problem, columns in track(PROBLEMS.items(), description="problems"):
        for epsilon in EPSILONS:
            jobs = [(problem, columns, 1.0, ROWS, epsilon, 5, seed) for seed in range(runs)]
            found = np.mean(list(pool.map(rejections, jobs, chunksize=5)), axis=0).tolist()
            rows.append(
                {"problem": problem, "epsilon": epsilon} | dict(zip(TESTS, found, strict=True))
            )
            print(rows[-1], flush=True)
    save("power-embedding-problems", {"runs": runs, "n": ROWS, "rows": rows})
    print_table(f"power ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])
    _plot(rows, runs)


def _plot(rows: list[dict[str, Any]], runs: int) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(11, 3), layout="constrained")
    for axes, problem in zip(figure.subplots(1, 4, sharey=True), PROBLEMS, strict=True):
        chosen = [row for row in rows if row["problem"] == problem]
        for test in TESTS:
            axes.plot([r["epsilon"] for r in chosen], [r[test] for r in chosen], "o-", label=test)
        axes.axhline(ALPHA, color="0.6", linewidth=0.8)
        axes.set(title=problem, xlabel="epsilon", xscale="log", ylim=(-0.03, 1.03))
    figure.axes[0].set_ylabel(f"rejections ({runs} runs)")
    figure.axes[0].legend(fontsize="small")
    figure.savefig(RESULTS / "power-embedding.png", dpi=120)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--part", choices=["table", "problems"])
    options = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        if options.part != "problems":
            table(options.runs, pool)
        if options.part != "table":
            problems(options.runs, pool)


if __name__ == "__main__":
    main()
