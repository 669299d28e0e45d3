"""Can the time of an answer that comes through workers tell two data sets apart?

Every method of the catalogue is asked of two data sets with the same public facts, in turns and in
random order, through workers and with response times that were calibrated on made-up rows. The
data sets are neighbours: everybody is the same, and one person is extreme or is not. A second pair
has a larger contrast than any neighbours: all rows equal, and all rows spread.

Three attackers see the times. A threshold for each method, and a small tree for all of them (time,
number of response times, time since the last one), are trained on the first half of the turns and
judged on the second: their accuracy, with an exact interval of 95%. And the times of a turn are
swapped at random 1999 times, as in oracles.py: p-values of all methods, by Holm's correction. The
same without public times shows that the attackers can see.

200 requests each: --runs 200 --streams 2, about twelve hours on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.tree import DecisionTreeClassifier

from benchmarks.measure import RESULTS, save
from benchmarks.privacy import oracles
from benchmarks.report import print_table
from privatest.curator import Curator, WorkerPool
from privatest.curator.calibration import calibrate, example_requests, with_price
from privatest.curator.config import ALL_TESTS, CuratorConfig
from privatest.curator.timing import ResponseTimes, resource_limits

LEFT_OUT = {"release/features"}  # minutes each
TESTS = ", ".join(f'"{q}/{m}"' for q, m in sorted(ALL_TESTS) if f"{q}/{m}" not in LEFT_OUT)
CONFIG = f"""
[datasets.people]
source = "people.csv"
schema = "people.toml"
epsilon = 1000000
delta = 0.5
[datasets.people.policy]
tests = [{TESTS}]
[analysts.custodian]
datasets = ["people"]
"""
NAME = "privacy-response-times"
CALIBRATION = 3  # runs of each method


def spread() -> tuple[pa.Table, pa.Table]:
    """All rows equal, and all rows different."""
    rng, equal = np.random.default_rng(5), oracles.neighbours()[1]
    other = {
        "visits": rng.uniform(0, 80, oracles.ROWS),
        "age": rng.uniform(0, 120, oracles.ROWS),
        "plan": rng.choice(["basic", "plus"], oracles.ROWS),
        "region": equal.column("region"),
    }
    return equal, pa.table(other)


# pair, whether answers wait for public times, share of the runs
PARTS = [
    ("one row", True, 1.0),
    ("one row", False, 1.0),
    ("all rows", True, 0.5),
    ("all rows", False, 0.5),
]


@dataclass(frozen=True)
class Case:
    """A request, and its response time."""

    name: str
    document: dict[str, Any]
    period: float


def files(folder: Path, rows: pa.Table) -> CuratorConfig:
    """Write and register a data set."""
    folder.mkdir()
    pyarrow.csv.write_csv(rows, folder / "people.csv")
    (folder / "people.toml").write_text(oracles.SCHEMA)
    (folder / "curator.toml").write_text(CONFIG)
    with Curator.open(folder / "curator.toml", create=True) as curator:
        curator.register("people")
        return curator.config


def cases(config: CuratorConfig, only: list[str]) -> Iterator[Case]:
    """Find a request that suits for each method: for private groups, where it has them."""
    times = ResponseTimes.load(config.times)
    with (
        Curator.open(config.path) as curator,
        WorkerPool(config.path, count=1, public_times=False) as workers,
    ):
        for name, series in example_requests(config.datasets["people"], oracles.ROWS).items():
            if only and name not in only:
                continue
            for document in (each for alternatives in series[::-1] for each in alternatives):
                first = with_price(document, 1)
                if workers.run(first, analyst="custodian").kind == "answer":
                    prepared = curator.prepared(first, analyst="custodian")
                    known = curator._registrations["people"]
                    allowed = resource_limits(prepared, config.datasets["people"], known, times)
                    yield Case(name, document, allowed.period)
                    break


def measure(case: Case, workers: list[WorkerPool], runs: int, offset: int) -> Any:
    """Return times (turns × 2), and what came that was no answer."""
    rng, times = np.random.default_rng(offset), np.empty((runs, 2))
    failures = 0
    for turn in range(runs):
        for side in rng.permutation(2):
            document = with_price(case.document, 1) | {"epsilon": 1 + (offset + turn) * 1e-7}
            begin = time.monotonic()
            reply = workers[side].run(document, analyst="custodian")
            times[turn, side] = time.monotonic() - begin
            failures += reply.kind != "answer"
    return times, failures


def threshold_accuracy(times: NDArray[np.float64]) -> tuple[int, int]:
    """Choose the best threshold on the first half; count what it gets right on the second."""
    half = len(times) // 2
    train, test = times[:half], times[half:]
    cuts = np.sort(train.ravel())
    right = [(np.mean(train[:, 0] <= c) + np.mean(train[:, 1] > c)) / 2 for c in cuts]
    place = int(np.argmax(np.abs(np.array(right) - 0.5)))
    hits = (test[:, 0] <= cuts[place]).sum() + (test[:, 1] > cuts[place]).sum()
    return int(hits if right[place] >= 0.5 else test.size - hits), int(test.size)


def tree_accuracy(found: list[tuple[Case, NDArray[np.float64]]]) -> tuple[int, int]:
    """Train one small tree on all methods; a time is told by its response times and by the rest."""
    halves: list[list[Any]] = [[], []]
    for place, (case, times) in enumerate(found):
        multiples = np.round(times / case.period)
        rest = times - multiples * case.period
        facts = np.stack([np.full_like(times, place), times / case.period, multiples, rest], -1)
        half = len(times) // 2
        for part, rows in enumerate((facts[:half], facts[half:])):
            halves[part] += [(row, side) for turn in rows for side, row in enumerate(turn)]
    (x, y), (other, truth) = (tuple(map(np.array, zip(*half, strict=True))) for half in halves)
    tree = DecisionTreeClassifier(max_depth=4, min_samples_leaf=10, random_state=0).fit(x, y)
    return int((tree.predict(other) == truth).sum()), len(truth)


def told(hits: int, count: int) -> dict[str, Any]:
    """Return an accuracy with its interval."""
    found = binomtest(hits, count)
    low, high = found.proportion_ci(0.95)
    return {"accuracy": hits / count, "low": float(low), "high": float(high), "of": count}


def attack(
    known: list[Case], workers: list[WorkerPool], runs: int, streams: int, *, public: bool
) -> dict[str, Any]:
    """Measure all cases of one part and let the attackers look."""
    base = int(time.time() * 1000) % 10**6 * 1000  # a request on record takes no time
    with ThreadPoolExecutor(streams) as pool:
        jobs = [
            pool.submit(measure, case, workers, runs, base + place * runs)
            for place, case in enumerate(known)
        ]
        found = [job.result() for job in jobs]
    rng = np.random.default_rng(12)
    rows = []
    for case, (times, failures) in zip(known, found, strict=True):
        multiples = np.ceil(times / case.period - 0.05)
        ks, area = oracles.distance(times)
        hits, count = threshold_accuracy(times)
        rows.append(
            {
                "case": case.name,
                "response_time": case.period,
                "median_ms": [float(v) for v in 1e3 * np.median(times, axis=0).round(5)],
                "area": area,
                "best": (1 + ks) / 2,
                "threshold": hits / count,
                "late": [int(v) for v in (multiples > 1).sum(axis=0)] if public else None,
                "p_time": oracles.time_pvalue(times, rng),
                "failures": failures,
            }
        )
    for row, adjusted in zip(rows, oracles.holm([r["p_time"] for r in rows]), strict=True):
        row["p_adjusted"] = adjusted
    each = [threshold_accuracy(times) for times, _ in found]
    pairs = [(case, times) for case, (times, _) in zip(known, found, strict=True)]
    late = None if not public else sum(sum(row["late"]) for row in rows) / (2 * runs * len(rows))
    return {
        "runs": runs,
        "threshold": told(sum(h for h, _ in each), sum(c for _, c in each)),
        "tree": told(*tree_accuracy(pairs)),
        "late": late,
        "told_apart": [row["case"] for row in rows if row["p_adjusted"] <= oracles.LEVEL],
        "cases": rows,
    }


def main() -> None:
    """Attack, print and save after each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--streams", type=int, default=1, help="requests at the same time")
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2, 3, 4], help="of the four")
    parser.add_argument("--only", nargs="+", metavar="QUESTION/METHOD", default=[])
    parser.add_argument("--times", type=Path, help="a calibration that was made before")
    options = parser.parse_args()
    oracles.SWAPS = 1999
    result: dict[str, Any] = {"rows": oracles.ROWS, "left_out": sorted(LEFT_OUT), "parts": []}
    if (RESULTS / f"{NAME}.json").exists():
        result["parts"] = json.loads((RESULTS / f"{NAME}.json").read_text())["parts"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = {"one row": oracles.neighbours(), "all rows": spread()}
        configs = {
            pair: [files(folder / f"{pair}-{side}", rows) for side, rows in enumerate(tables)]
            for pair, tables in pairs.items()
        }
        first = configs["one row"][0]
        if options.times is None:
            calibrate(first, runs=CALIBRATION)
        else:
            first.times.write_text(options.times.read_text())
        for config in (config for both in configs.values() for config in both):
            if config != first:
                config.times.write_text(first.times.read_text())
        known = list(cases(first, options.only))
        for pair, public, share in (PARTS[part - 1] for part in options.parts):
            runs = max(4, math.ceil(options.runs * share))
            with ExitStack() as stack:
                workers = [
                    stack.enter_context(
                        WorkerPool(c.path, count=options.streams, public_times=public)
                    )
                    for c in configs[pair]
                ]
                found = attack(known, workers, runs, options.streams, public=public)
            which = {"pair": pair, "public_times": public}
            others = [part for part in result["parts"] if not which.items() <= part.items()]
            result["parts"] = [*others, {**which, **found}]
            show(result["parts"][-1])
            save(NAME, result)


def show(part: dict[str, Any]) -> None:
    """Print one part."""
    words = "at public times" if part["public_times"] else "at once"
    columns = ("case", "response_time", "median_ms", "best", "threshold", "late", "p_adjusted")
    print_table(
        f"{part['pair']} differ, answers {words}, {part['runs']} requests each",
        columns,
        [[row[column] for column in columns] for row in part["cases"]],
    )
    for name in ("threshold", "tree"):
        found = part[name]
        print(f"{name}: {found['accuracy']:.3f} ({found['low']:.3f} to {found['high']:.3f})")
    print(f"late: {part['late']}; told apart: {', '.join(part['told_apart']) or 'none'}")


if __name__ == "__main__":
    main()
