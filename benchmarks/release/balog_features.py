"""Algorithm 2 on the data of Balog et al. (D = 2): RKHS distances against the published ones.

Run: python -m benchmarks.release.balog_features [--runs 3]
    [--points 100 1000] [--epsilons 0.1 1] [--frequencies lattice random].
Writes results/release-features.json; cases of earlier runs that are not run again stay in it.

The public box is [-1500, 1500]², three standard deviations of the law that the paper draws its
starting points from. Distances are exact, over all rows, in blocks.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.core.privacy import Budget, gaussian_scale
from privatest.data.schema import Domain
from privatest.mechanisms.additive import gaussian
from privatest.noise import SimulatedNoise
from privatest.numerics.features import FourierMap, kernel_map
from privatest.numerics.kernels import Kernel, gram
from privatest.synthetic.fourier import (
    NoisyFeatures,
    mean_features,
    mean_features_sensitivity,
    reduced_set,
)
from privatest_papers.experiments.balog import BOX, DELTA, OWN, data
from privatest_papers.results import published

KERNEL = Kernel("gaussian", 1 / math.sqrt(1e-4 / 2) / (2 * BOX))
DOMAIN = Domain((0, 0))
BLOCK = 2_000_000  # kernel values at a time

Floats = NDArray[np.float64]


def distance(points: Floats, weights: Floats, rows: Floats) -> float:
    """Exact RKHS distance between weighted points and the rows."""
    size = max(BLOCK // len(points), 1)
    across = sum(
        float(weights @ gram(KERNEL, points, rows[start : start + size], DOMAIN).sum(axis=1))
        for start in range(0, len(rows), size)
    )
    within = sum(
        float(
            weights[start : start + size]
            @ gram(KERNEL, points[start : start + size], points, DOMAIN)
            @ weights
        )
        for start in range(0, len(points), size)
    )
    return math.sqrt(max(within - 2 * across / len(rows) + OWN, 0.0))


def noisy(
    public: FourierMap, mean: Floats, n_rows: int, epsilon: float, seed: int
) -> NoisyFeatures:
    """Add noise to the mean, which is computed once for all releases."""
    sensitivity, budget = mean_features_sensitivity(public, n_rows), Budget(epsilon, DELTA)
    # another seed than the frequencies have: the same would give them the same draws
    noise = SimulatedNoise(1_000 + seed)
    released = gaussian(mean, sensitivity=sensitivity, budget=budget, noise=noise)
    scale = gaussian_scale(sensitivity.value, budget)
    return NoisyFeatures(
        KERNEL, public.frequencies, public.amplitudes, released, scale, simulated=True
    )


def earlier(name: str) -> dict[tuple[str, float, int], dict[str, Any]]:
    """Return the cases that were measured before."""
    path = RESULTS / f"{name}.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    return {(row["frequencies"], row["epsilon"], row["M"]): row for row in rows}


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--points", type=int, nargs="*")
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.01, 0.1, 1.0])
    parser.add_argument("--frequencies", nargs="*", default=["lattice", "random"])
    parser.add_argument("--count", type=int, default=10_000, help="of frequencies, at most")
    parser.add_argument("--name", default="release-features")
    given = parser.parse_args()
    paper = published("balog-d2.json")["alg2_random"]
    rows = np.clip((data() + BOX) / (2 * BOX), 0, 1)
    sizes = given.points or [size for size in paper["M"] if size >= 100]
    results = earlier(given.name)
    for kind in given.frequencies:
        public = kernel_map(KERNEL, DOMAIN, given.count, np.random.default_rng(0), kind)
        mean = mean_features(rows, public)
        cases = [(epsilon, size) for size in sizes for epsilon in given.epsilons]
        for epsilon, size in track(cases, description=kind):
            index, found = paper["epsilons"].index(epsilon), []
            start = time.process_time()
            for seed in range(given.runs):
                release = noisy(public, mean, len(rows), epsilon, seed)
                found.append(reduced_set(release, domain=DOMAIN, n_points=size, rng=seed))
            seconds = (time.process_time() - start) / given.runs
            ours = float(np.mean([distance(*release, rows) for release in found]))
            value = paper["dists_alg2"][index][paper["M"].index(size)]
            results[kind, epsilon, size] = {
                "frequencies": kind,
                "J": len(public.amplitudes),
                "epsilon": epsilon,
                "M": size,
                "ours": ours,
                "paper": value,
                "runs": given.runs,
                "ratio": ours / value,
                "search_cpu_seconds": seconds,
            }
            save(given.name, [results[case] for case in sorted(results)])
    names = ["frequencies", "epsilon", "M", "ours", "paper", "ratio", "runs"]
    rows_of = [[results[case][name] for name in names] for case in sorted(results)]
    print_table("Algorithm 2", names, rows_of)


if __name__ == "__main__":
    main()
