"""Algorithm 1 against the distances published with Balog et al. (2018), D = 2, N = 100,000.

Run: python -m benchmarks.release.balog [--points leak random pool] [--smallest 1]
    [--largest 1072]
Writes results/release-<points>.json; sizes of earlier runs that are not run again stay in it.
Distances are exact RKHS distances between the released weighted points and the empirical
embedding of all rows.

"leak": the first M rows are public. "random": M points from N(0, 500²). "pool": the same draws,
but the first 1072 points are candidates, of which the M best are released.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress, track

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.core.privacy import Budget, gaussian_scale
from privatest.data.domain import Domain
from privatest.kernels.kernels import Kernel
from privatest.mechanisms.additive import gaussian
from privatest.noise import SimulatedNoise
from privatest.synthetic.embedding.distances import embedding_distance, mean_kernel, point_means
from privatest.synthetic.embedding.shrinkage import denoise, nested_moments, signed_weights
from privatest.synthetic.embedding.subspace import (
    coefficient_sensitivity,
    coefficients,
    kernel_sums,
    span,
)
from privatest.synthetic.embedding.weights import best_points

PUBLISHED = Path(str(files("privatest.reproduce"))) / "published"
DOMAIN = Domain((0, 0), bounded=False)
KERNEL = Kernel("gaussian", (1e-4 / 2) ** -0.5)  # exp(-gamma |x-y|²), gamma = 1e-4/D
DELTA = "1e-6"
POOL = 1072
Floats = NDArray[np.float64]


def exact_mean_kernel(rows: Floats) -> float:
    """Mean of k over all pairs of rows, with a progress bar."""
    with Progress() as bar:
        task = bar.add_task("mean k(x, x')", total=1.0)
        return mean_kernel(rows, KERNEL, DOMAIN, lambda share: bar.update(task, completed=share))


class Releases:
    """Releases with one set of public points: everything but the noise is computed once."""

    def __init__(self, rows: Floats, points: Floats, means: Floats, own: float) -> None:
        self.points, self.means, self.own, self.n = points, means, own, len(rows)
        self.space = span(points, KERNEL, DOMAIN)
        self.exact = coefficients(self.space, kernel_sums(self.space, rows), self.n)
        self.sensitivity = coefficient_sensitivity(self.space, self.n)
        self.moments, *self.fewer = nested_moments(self.space.coordinates)

    def distances(self, epsilon: float, seed: int, sizes: list[int]) -> list[float]:
        """Distances of one release, for each number of released points."""
        budget = Budget(epsilon, DELTA)
        noisy = gaussian(
            self.exact, sensitivity=self.sensitivity, budget=budget, noise=SimulatedNoise(seed)
        )
        sigma = gaussian_scale(self.sensitivity.value, budget)
        found: list[float] = []
        if max(sizes) < len(self.points):
            best = best_points(self.space.coordinates, noisy, max(sizes), sigma)
            target = noisy[:, None]
        else:
            best = np.arange(len(self.points))
            target = denoise(noisy, self.moments, sigma, self.fewer).values[:, None]
        for size in sizes:
            kept = best[:size]
            known = self.moments if len(kept) == len(self.points) else None
            weights = signed_weights(self.space.coordinates[kept], target, known)[:, 0]
            found.append(
                embedding_distance(
                    weights, self.points[kept], self.means[kept], self.own, KERNEL, DOMAIN
                )
            )
        return found


def table(rows: Floats, points: Floats, own: float, args: Any, *, pool: bool) -> Floats:
    """Mean distance, epsilons × sizes, for one set of public points."""
    sizes, epsilons, runs = args.sizes, args.epsilons, args.releases
    result = np.zeros((len(epsilons), len(sizes)))
    means = point_means(points[: POOL if pool else max(sizes)], rows, KERNEL, DOMAIN)
    if pool:
        releases = Releases(rows, points[:POOL], means, own)
        for row, epsilon in enumerate(track(epsilons, description="epsilons")):
            found = [releases.distances(epsilon, seed, sizes) for seed in range(runs)]
            result[row] = np.mean(found, axis=0)
        return result
    for place, size in enumerate(track(sizes, description="sizes")):
        releases = Releases(rows, points[:size], means[:size], own)
        for row, epsilon in enumerate(epsilons):
            found = [releases.distances(epsilon, seed, [size]) for seed in range(runs)]
            result[row, place] = np.mean(found)
    return result


def earlier(kind: str) -> dict[tuple[float, int], dict[str, Any]]:
    """Return the cases that were measured before."""
    path = RESULTS / f"release-{kind}.json"
    known = json.loads(path.read_text()) if path.exists() else {"rows": []}
    same = {name: known.get(name) for name in ("releases", "draws")}
    return {(row["epsilon"], row["M"]): same | row for row in known["rows"]}


def report(kind: str, tables: list[Floats], published: dict[str, Any], args: Any) -> None:
    """Print ours against the paper's, with the largest rise as M grows; write the JSON."""
    cases, ours = earlier(kind), np.mean(tables, axis=0)
    for row, epsilon in enumerate(args.epsilons):
        for place, size in enumerate(args.sizes):
            paper = published["dists_alg1"][published["epsilons"].index(epsilon)][
                published["M"].index(size)
            ]
            value = float(ours[row, place])
            cases[epsilon, size] = {
                "epsilon": epsilon,
                "M": size,
                "ours": value,
                "paper": paper,
                "ours/paper": value / paper,
                "releases": args.releases,
                "draws": len(tables),
            }
    for (epsilon, size), case in cases.items():
        least = min(c["ours"] for (e, m), c in cases.items() if e == epsilon and m <= size)
        case["over the best of smaller M"] = case["ours"] / least
    rows = [cases[case] for case in sorted(cases)]
    names = ["epsilon", "M", "ours", "paper", "ours/paper", "over the best of smaller M", "draws"]
    print_table(f"Algorithm 1, {kind}", names, [[row[name] for name in names] for row in rows])
    save(f"release-{kind}", {"rows": rows})


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=PUBLISHED / "balog-mixture-d2.npz")
    parser.add_argument("--points", nargs="+", default=["leak", "random", "pool"])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--draws", type=int, default=5, help="draws of random points")
    parser.add_argument("--smallest", type=int, default=1, help="smallest M")
    parser.add_argument("--largest", type=int, default=10_000, help="largest M")
    parser.add_argument("--own", type=float, help="mean k(x, x') from an earlier run")
    args = parser.parse_args()
    rows = np.load(args.data)["X_private"]
    published = json.loads((PUBLISHED / "balog-d2.json").read_text())
    args.epsilons = published["alg1_leak"]["epsilons"]
    sizes = published["alg1_leak"]["M"]
    args.sizes = [size for size in sizes if args.smallest <= size <= args.largest]
    own = exact_mean_kernel(rows) if args.own is None else args.own
    print(f"mean k(x, x') = {own:.12f}")
    for kind in args.points:
        if kind == "leak":
            report(kind, [table(rows, rows, own, args, pool=False)], published["alg1_leak"], args)
            continue
        tables = []
        for seed in range(args.draws):
            points = np.random.default_rng(seed).normal(scale=500, size=(10_000, 2))
            if kind == "pool":
                args.sizes = [size for size in args.sizes if size < POOL]
            tables.append(table(rows, points, own, args, pool=kind == "pool"))
            report(kind, tables, published["alg1_random"], args)


if __name__ == "__main__":
    main()
