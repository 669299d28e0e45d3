"""Releases by tables on Adult, beside MST and AIM: distances of tables, a model trained on rows.

Run: python -m benchmarks.release.adult [--data FILE] [--table adult|digits] [--epsilons .1 1 3]
    [--seeds 5] [--peers DIRECTORY] [--only ours mst aim]
Writes results/release-<table>.json and a plot; runs of earlier calls stay in it.

The data: Adult census (UCI, CC BY 4.0), 48,842 rows, coded as integers; a copy is in
benchmarks/published. The first 39,073 rows of default_rng(12345).permutation are private, the
rest are for testing. delta = 1e-5.

1-way, 2-way: mean total-variation distance of tables of one and two columns between released and
private rows. AUC: on the test rows, of HistGradientBoostingClassifier(random_state=0) trained on
the released rows, for the last column. Seconds are of the processor, on one thread.

--peers is the folder ``mechanisms`` of a copy of the private-pgm project (aim.py, mst.py; package
mbi). They protect rows that are added or removed, a little less than ours. AIM as in the issue:
28 rounds, 200 iterations, models of at most 10 MB.

"digits" is the second table: scikit-learn's bundled digits, 1797 rows, 64 pixels cut down to
15 columns of 4 × 4 blocks' sums and the digit (10 classes; AUC is of the digit being above 4).
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic import release

PUBLISHED = Path(__file__).parent.parent / "published"
NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
DELTA = "1e-5"
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


def adult(path: Path) -> Table:
    """Adult census, as coded."""
    sizes = json.loads((PUBLISHED / "adult-domain.json").read_text())
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = np.loadtxt(text.decode().splitlines(), delimiter=",", skiprows=1, dtype=np.int64)
    return Table(rows, sizes, 39_073, NUMBERS)


def digits() -> Table:
    """Digits: sums of 4 × 4 blocks of half-overlapping pixels in 33 steps, and the digit."""
    from sklearn.datasets import load_digits  # noqa: PLC0415

    found = load_digits()
    blocks = [
        found.images[:, top : top + 4, left : left + 4].sum(axis=(1, 2)) // 8
        for top in (0, 1, 2, 4)
        for left in (0, 1, 2, 4)
    ][1:]
    names = [f"block{place}" for place in range(len(blocks))]
    rows = np.column_stack([*blocks, found.target]).astype(np.int64)
    sizes = dict.fromkeys(names, 33) | {"digit": 10}
    return Table(rows, sizes, 1437, set(names))


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


def peer(name: str, table: Table, epsilon: float, seed: int) -> Rows:
    """MST or AIM of the private-pgm project."""
    mbi = import_module("mbi")
    names = list(table.sizes)
    domain = mbi.Domain(tuple(names), tuple(table.sizes.values()))
    try:
        data = mbi.Dataset(_frame(table.private, names), domain)
    except (AttributeError, TypeError, ValueError):
        data = mbi.Dataset(dict(zip(names, table.private.T, strict=True)), domain)
    np.random.seed(seed)  # noqa: NPY002 - theirs
    if name == "mst":
        found = import_module("mst").MST(data, epsilon, float(DELTA))
    else:
        source = np.random.RandomState(seed)
        limits = {"rounds": 28, "max_iters": 200, "max_model_size": 10}
        mechanism = import_module("aim").AIM(epsilon, float(DELTA), prng=source, **limits)
        pairs = [(pair, 1.0) for pair in itertools.combinations(names, 2)]
        _, found = mechanism.run(data, pairs)
    columns = found.df if hasattr(found, "df") else found.to_dict()
    return np.column_stack([np.asarray(columns[name]) for name in names]).astype(np.int64)


def _frame(rows: Rows, names: list[str]) -> Any:
    import pandas as pd  # noqa: PLC0415

    return pd.DataFrame(rows, columns=names)


def plot(name: str, runs: list[dict[str, Any]]) -> None:
    """Draw the measures against epsilon, a line for each method."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    for axis, measure in zip(axes, ("one_way", "two_way", "auc"), strict=True):
        for method in dict.fromkeys(run["method"] for run in runs):
            epsilons = sorted({run["epsilon"] for run in runs if run["method"] == method})
            means = [
                np.mean([r[measure] for r in runs if (r["method"], r["epsilon"]) == (method, e)])
                for e in epsilons
            ]
            axis.plot(epsilons, means, marker="o", label=method)
        axis.set(xscale="log", xlabel="epsilon", title=measure.replace("_", "-"))
    axes[0].legend()
    figure.savefig(RESULTS / f"release-{name}.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=PUBLISHED / "adult.csv.gz")
    parser.add_argument("--table", choices=("adult", "digits"), default="adult")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--only", nargs="+", choices=("ours", "mst", "aim"), default=["ours"])
    args = parser.parse_args()
    if args.peers is not None:
        sys.path.insert(0, str(args.peers))
    table = adult(args.data) if args.table == "adult" else digits()
    path = RESULTS / f"release-{args.table}.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
    for method, epsilon, seed in itertools.product(args.only, args.epsilons, range(args.seeds)):
        began = time.process_time()
        made = ours if method == "ours" else lambda *a, m=method: peer(m, *a)
        rows = made(table, epsilon, seed)
        seconds = time.process_time() - began
        case = {"method": method, "epsilon": epsilon, "seed": seed}
        one, two = table.distances(rows)
        runs = [run for run in runs if {k: run[k] for k in case} != case]
        runs.append(
            case | {"one_way": one, "two_way": two, "auc": table.auc(rows), "seconds": seconds}
        )
        print(runs[-1], flush=True)
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
