"""Can time or outcome of an answer tell two neighbours apart?

Each method that a curator offers is asked with parameters that a hostile analyst would choose,
200 times on each of two neighbours, in turns and in random order. Nearly all rows are equal, and
one row is replaced: the largest contrast that one row can make. Timed is the processor time of
what the curator does with the rows, without reading, ledger and rehearsal, which would only
drown a difference.

A classifier that sees the time of an answer is a threshold; the best one has the accuracy
(1 + KS distance)/2. Under the null hypothesis the two times of a turn may be swapped, so the KS
distance and the area under the ROC curve are compared with those after 9999 random swaps within
turns: exact whatever drifts. Outcomes (answered, or which error) are compared by Fisher's test.
P-values of all cases are adjusted by Holm's method: at level .05 the chance of any false alarm is
at most 5%. The last cases are controls, which a curator refuses: there the test must see something.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # idle threads burn processor time at random

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from benchmarks.measure import save, start
from benchmarks.report import print_table
from privatest import ks_1samp, ks_family, test_of_tests
from privatest.curator import Curator
from privatest.curator import curator as answering
from privatest.curator.admission import admit
from privatest.curator.config import DatasetConfig
from privatest.requests.request import Request

RUNS = 200
SWAPS = 9999
ROWS = 400
LEVEL = 0.05
WARM_UP = 5

SCHEMA = """
[columns.visits]
type = "numeric"
bounds = [0, 80]
[columns.age]
type = "numeric"
bounds = [0, 120]
[columns.plan]
type = "categorical"
categories = ["basic", "plus"]
[columns.region]
type = "categorical"
categories = ["north", "south"]
membership = "public"
"""
CONFIG = """
[datasets.people]
source = "people.csv"
schema = "people.toml"
epsilon = 3
[analysts.ada]
datasets = ["people"]
"""

Run = Callable[[pa.Table], object]


def neighbours(visits: float = 80.0) -> tuple[pa.Table, pa.Table]:
    """Everybody is the same; one person is not, or is."""
    tables = []
    for value, age, plan in ((visits, 120.0, "plus"), (0.0, 0.0, "basic")):
        columns = {
            "visits": [value] + [0.0] * (ROWS - 1),
            "age": [age] + [0.0] * (ROWS - 1),
            "plan": [plan] + ["basic"] * (ROWS - 1),
            "region": ["north", "south"] * (ROWS // 2),
        }
        tables.append(pa.table(columns))
    return tables[0], tables[1]


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name hostile requests."""
    private = {"question": "two-sample", "group": "plan", "columns": ["visits"]}
    public = {**private, "group": "region"}
    few = {"permutations": 99}
    for method in ("mean", "wasserstein", "kolmogorov", "ks", "kuiper"):
        yield method, {**private, **few, "method": method}
    yield "tv", {**private, **few, "method": "tv", "columns": ["plan"], "group": "region"}
    for kernel in ("gaussian", "laplace", "imq"):
        yield f"mmd, {kernel}", {**private, **few, "method": "mmd", "kernel": kernel}
    for width in (0.0367, 1e-99, 1e99):  # the first would give a subnormal kernel
        yield f"mmd, width {width:g}", {**private, **few, "method": "mmd", "bandwidths": [width]}
    for method in ("mann-whitney", "kruskal", "median", "ttest", "tot"):
        yield method, {**public, "method": method}
    at = {"locations": [80.0, 79.9, 0.0], "bandwidths": [1e-3]}
    for method in ("me", "scf", "me-permutation", "scf-permutation"):
        extra = few if method.endswith("permutation") else {}
        yield method, {**public, **extra, **at, "method": method}
    yield "scf, quick waves", {**public, "method": "scf", "locations": [1e4] * 100}
    sides = {"question": "independence", "x": ["age"], "y": ["visits"]}
    yield "hsic", {**sides, **few, "method": "hsic"}
    yield "hsic, narrow", {**sides, **few, "method": "hsic", "bandwidths": [0.0367]}
    yield "tot of hsic", {**sides, **few, "method": "tot"}
    for method in ("ks", "kuiper", "sign", "wilcoxon"):
        pair = {"question": "paired", "before": "visits", "after": "age"}
        yield f"paired {method}", {**pair, "method": method}
    fit = {"question": "fit", "method": "distribution", "column": "visits"}
    for dist in ("norm(80, 1e-300)", "norm(0, 1e300)", "cauchy(79.9995, 1e-9)", "lognorm(0.01)"):
        yield f"fit {dist}", {**fit, "dist": dist}
    for dist in ("weibull_min(1e6, 79)", "gumbel_r(80, 0.1)", "uniform(80, 1e-9)"):
        yield f"fit {dist}", {**fit, "dist": dist}


def offered(dataset: DatasetConfig, document: dict[str, Any]) -> Run:
    """Return how a curator answers a request."""
    request = Request.from_dict({"dataset": "people", "epsilon": 0.001, **document})
    admitted = admit(request, dataset)
    return lambda table: answering.run_privately(admitted, table)


def controls() -> Iterator[tuple[str, Run]]:
    """Name what a curator refuses, because it takes its time or its luck from values."""

    def column(table: pa.Table, name: str = "visits") -> NDArray[np.float64]:
        values: NDArray[np.float64] = table.column(name).to_numpy()
        return values

    bounds = (0, 80)
    yield (
        "control: fit ksone",
        lambda t: ks_1samp(
            column(t), "ksone(100000, loc=79.9995, scale=1)", epsilon=1, bounds=bounds
        ),
    )
    yield (
        "control: tot of spearmanr",
        lambda t: test_of_tests(
            column(t, "age"),
            column(t),
            pvalue=stats.spearmanr,
            scheme="independence",
            epsilon=1,
            bounds_x=(0, 120),
            bounds_y=bounds,
        ),
    )
    yield "control: fit family", lambda t: ks_family(column(t), "norm", bounds=bounds, epsilon=1)


def measure(run: Run, tables: tuple[pa.Table, pa.Table], rng: np.random.Generator) -> Any:
    """Return times (turns × 2) and outcomes of both neighbours."""
    times, outcomes = np.empty((RUNS, 2)), [[""] * 2 for _ in range(RUNS)]
    for turn in range(-WARM_UP, RUNS):
        for side in rng.permutation(2):
            begin = time.process_time()
            try:
                run(tables[side])
                outcome = "answered"
            except Exception as error:
                outcome = type(error).__name__
            took = time.process_time() - begin
            if turn >= 0:
                times[turn, side], outcomes[turn][side] = took, outcome
    return times, outcomes


def distance(times: NDArray[np.float64]) -> tuple[float, float]:
    """Return KS distance of the two columns, and the area under the ROC curve."""
    first, second = np.sort(times[:, 0]), np.sort(times[:, 1])
    pooled = np.concatenate([first, second])
    below = np.searchsorted(first, pooled, side="right") - np.searchsorted(
        second, pooled, side="right"
    )
    wins = np.searchsorted(second, first, side="left") + np.searchsorted(
        second, first, side="right"
    )
    return float(np.abs(below).max()) / len(first), float(wins.mean()) / (2 * len(second))


def time_pvalue(times: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Swap times within turns: by the KS distance or by the area, whichever is smaller, twice."""
    ks, area = distance(times)
    found = np.ones(2)
    for _ in range(SWAPS):
        swapped = np.where(rng.random(len(times))[:, None] < 0.5, times, times[:, ::-1])
        other_ks, other_area = distance(swapped)
        found += (other_ks >= ks, abs(other_area - 0.5) >= abs(area - 0.5))
    return float(min(1.0, 2 * found.min() / (SWAPS + 1)))


def outcome_pvalue(outcomes: list[list[str]]) -> float:
    """Compare how often each neighbour is answered."""
    from scipy.stats import fisher_exact  # noqa: PLC0415

    answered = [sum(turn[side] == "answered" for turn in outcomes) for side in (0, 1)]
    counts = [[count, RUNS - count] for count in answered]
    return float(fisher_exact(counts).pvalue)


def holm(pvalues: list[float]) -> list[float]:
    """Adjust p-values for looking at several."""
    adjusted, largest = [0.0] * len(pvalues), 0.0
    for rank, index in enumerate(np.argsort(pvalues)):
        largest = max(largest, min(1.0, (len(pvalues) - rank) * pvalues[index]))
        adjusted[index] = largest
    return adjusted


def cases() -> Iterator[tuple[str, Run]]:
    """All requests, then the controls."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "people.csv").write_text("visits,age,plan,region\n0,0,basic,north\n")
        (folder / "people.toml").write_text(SCHEMA)
        (folder / "curator.toml").write_text(CONFIG)
        with Curator.open(folder / "curator.toml", create=True) as curator:
            dataset = curator.config.datasets["people"]
    for label, document in requests():
        yield label, offered(dataset, document)
    yield from controls()


def main() -> None:
    """Attack, print and save."""
    rng = np.random.default_rng(12)
    found: list[dict[str, Any]] = []
    for label, run in cases():
        times, outcomes = measure(run, neighbours(), rng)
        ks, area = distance(times)
        found.append(
            {
                "case": label,
                "median_ms": [float(value) for value in 1e3 * np.median(times, axis=0).round(7)],
                "accuracy": (1 + ks) / 2,
                "area": area,
                "p_time": time_pvalue(times, rng),
                "p_outcome": outcome_pvalue(outcomes),
                "outcomes": sorted({o for turn in outcomes for o in turn}),
            }
        )
    tested = [row for row in found if not row["case"].startswith("control")]
    pairs = holm([row[key] for row in tested for key in ("p_time", "p_outcome")])
    for row, *adjusted in zip(tested, pairs[::2], pairs[1::2], strict=True):
        row["p_adjusted"] = min(adjusted)
    columns = ("case", "median ms", "accuracy", "area", "p time", "p outcome", "p adjusted")
    print_table(
        f"{RUNS} runs on each of two neighbours of {ROWS} rows",
        columns,
        [
            [
                row["case"],
                " / ".join(f"{value:.3f}" for value in row["median_ms"]),
                *(
                    row.get(key)
                    for key in ("accuracy", "area", "p_time", "p_outcome", "p_adjusted")
                ),
            ]
            for row in found
        ],
    )
    seen = [row["case"] for row in tested if row["p_adjusted"] <= LEVEL]
    print(f"told apart at level {LEVEL}, Holm: {', '.join(seen) or 'none'}")
    save("privacy-oracles", {"runs": RUNS, "rows": ROWS, "level": LEVEL, "cases": found})


if __name__ == "__main__":
    start(main, __doc__)
