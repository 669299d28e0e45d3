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

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress, track

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.data.schema import Domain
from privatest.synthetic.embedding import (
    best_points,
    embedding_distance,
    mean_kernel,
    point_means,
    signed_weights,
)
from privatest_papers.experiments.balog import KERNEL, Releases, data
from privatest_papers.results import published

DOMAIN = Domain((0, 0), bounded=False)
POOL = 1072
Floats = NDArray[np.float64]


def exact_mean_kernel(rows: Floats) -> float:
    """Mean of k over all pairs of rows, with a progress bar."""
    with Progress() as bar:
        task = bar.add_task("mean k(x, x')", total=1.0)
        return mean_kernel(rows, KERNEL, DOMAIN, lambda share: bar.update(task, completed=share))


def distances(releases: Releases, epsilon: float, seed: int, sizes: list[int]) -> list[float]:
    """Distances of one release, for each number of released points, the best of a pool first."""
    if max(sizes) == len(releases.points):
        return [releases.distance(epsilon, seed)]
    noisy, sigma = releases.noisy(epsilon, seed)
    best = best_points(releases.space.coordinates, noisy, max(sizes), sigma)
    found: list[float] = []
    for size in sizes:
        kept = best[:size]
        weights = signed_weights(releases.space.coordinates[kept], noisy[:, None], None)[:, 0]
        points, means = releases.points[kept], releases.means[kept]
        found.append(embedding_distance(weights, points, means, releases.own, KERNEL, DOMAIN))
    return found


def table(rows: Floats, points: Floats, own: float, args: Any, *, pool: bool) -> Floats:
    """Mean distance, epsilons × sizes, for one set of public points."""
    sizes, epsilons, runs = args.sizes, args.epsilons, args.releases
    result = np.zeros((len(epsilons), len(sizes)))
    means = point_means(points[: POOL if pool else max(sizes)], rows, KERNEL, DOMAIN)
    if pool:
        releases = Releases(rows, points[:POOL], means, own)
        for row, epsilon in enumerate(track(epsilons, description="epsilons")):
            found = [distances(releases, epsilon, seed, sizes) for seed in range(runs)]
            result[row] = np.mean(found, axis=0)
        return result
    for place, size in enumerate(track(sizes, description="sizes")):
        releases = Releases(rows, points[:size], means[:size], own)
        for row, epsilon in enumerate(epsilons):
            found = [distances(releases, epsilon, seed, [size]) for seed in range(runs)]
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
    parser.add_argument("--points", nargs="+", default=["leak", "random", "pool"])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--draws", type=int, default=5, help="draws of random points")
    parser.add_argument("--smallest", type=int, default=1, help="smallest M")
    parser.add_argument("--largest", type=int, default=10_000, help="largest M")
    parser.add_argument("--own", type=float, help="mean k(x, x') from an earlier run")
    args = parser.parse_args()
    rows, paper = data(), published("balog-d2.json")
    args.epsilons = paper["alg1_leak"]["epsilons"]
    sizes = paper["alg1_leak"]["M"]
    args.sizes = [size for size in sizes if args.smallest <= size <= args.largest]
    own = exact_mean_kernel(rows) if args.own is None else args.own
    print(f"mean k(x, x') = {own:.12f}")
    for kind in args.points:
        if kind == "leak":
            report(kind, [table(rows, rows, own, args, pool=False)], paper["alg1_leak"], args)
            continue
        tables = []
        for seed in range(args.draws):
            points = np.random.default_rng(seed).normal(scale=500, size=(10_000, 2))
            if kind == "pool":
                args.sizes = [size for size in args.sizes if size < POOL]
            tables.append(table(rows, points, own, args, pool=kind == "pool"))
            report(kind, tables, paper["alg1_random"], args)


if __name__ == "__main__":
    main()
