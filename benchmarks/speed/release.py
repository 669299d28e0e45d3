"""Speed and memory of release (Algorithm 1, secure noise and all), and of asking releases.

Run: python -m benchmarks.speed.release [--part release query] [--label now] [--no-commands]
Writes results/speed-release.json and results/speed-query.json; in the latter other labels stay.

A question is timed as on the command line: a new process that reads the file and answers,
imports and all ("command"); and in Python on a release just loaded ("python": load and answer).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import RESULTS, peak_memory, save
from benchmarks.report import print_table
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic import SyntheticData, release

ROWS = 50_000


def timed(call: Callable[[], object]) -> tuple[float, float, float]:
    """Seconds on the clock, seconds of all processors, and gigabytes above the start."""
    clock, used = time.perf_counter(), time.process_time()
    memory = peak_memory(call)
    return time.perf_counter() - clock, time.process_time() - used, memory / 1e9


def releasing() -> None:
    """Measure releases, print the table, write the JSON."""
    rng = np.random.default_rng(0)
    small, large = rng.normal(size=(100_000, 2)), rng.uniform(size=(5_000_000, 2))
    points = rng.normal(scale=3, size=(1000, 2))
    release(small[:1000], bounds=(-3, 3), epsilon=1, delta=1e-6, n_points=10)  # imports

    def paper() -> object:
        return release(small, public_points=points, bandwidth=0.85, epsilon=1, delta=1e-6)

    def scale() -> object:
        return release(large, bounds=(0, 1), epsilon=1, delta=1e-6, n_points=500)

    rows: list[list[object]] = [
        ["N = 100,000, D = 2, M = 1000", *timed(paper), "below 3 s"],
        ["N = 5,000,000, D = 2, M = 500", *timed(scale), "below 1 GB"],
    ]
    names = ["case", "seconds", "processor seconds", "GB above the data", "asked for"]
    print_table("release, Algorithm 1", names, rows)
    save("speed-release", [dict(zip(names, row, strict=True)) for row in rows])


def cases() -> Mapping[str, Callable[[], SyntheticData]]:
    """Return releases of different kinds: points in space, and tables with few or many cells."""
    rng = np.random.default_rng(0)
    x = rng.gamma(2, 1, size=(ROWS, 2)).clip(0, 10)
    integers = np.minimum(rng.gamma(2, 100, size=(ROWS, 2)).astype(int), 999)
    kind = np.array([f"k{i}" for i in range(1000)])[integers[:, 1]]
    group = np.array([*"abcde"])[rng.integers(5, size=ROWS)]
    number, labels = NumericColumn, CategoricalColumn
    letters = labels(tuple("abcde"))
    plane = Schema({"x": number(0, 10), "y": number(0, 10)})
    mixed = Schema({"x": number(0, 10), "y": number(0, 10), "g": letters})
    large: dict[str, Column] = {
        "x": number(0, 999, integer=True),
        "y": number(0, 999, integer=True),
        "g": letters,
    }
    many: dict[str, Column] = {
        "x": number(0, 10),
        "y": labels(tuple(f"k{i}" for i in range(1000))),
        "g": letters,
    }
    reals = dict(zip("xy", x.T, strict=True))
    common: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "noise": SimulatedNoise(1), "rng": 1}
    options: dict[str, dict[str, Any]] = {
        "subspace, 500 points": {"x": reals, "bounds": plane, "method": "subspace"},
        "features, 100 points": {
            "x": {name: values[:5000] for name, values in reals.items()},
            "bounds": plane,
            "method": "features",
            "n_points": 100,
            "n_frequencies": 500,
        },
        "tables, 128 x 128 bins": {"x": {**reals, "g": group}, "bounds": mixed},
        "tables, 1000 x 1000 integers": {
            "x": {"x": integers[:, 0], "y": integers[:, 1], "g": group},
            "bounds": Schema(large),
        },
        "tables, 128 bins x 1000 categories": {
            "x": {"x": x[:, 0], "y": kind, "g": group},
            "bounds": Schema(many),
        },
    }
    return {name: partial(release, **given, **common) for name, given in options.items()}


def questions(made: SyntheticData) -> list[list[str]]:
    """Return the words of questions on the command line, of all kinds."""
    numeric = made.columns["y"].dtype.kind in "biuf"
    middle = str(int(np.median(made.columns["x"].astype(float))))
    other = f"y > {middle}" if numeric else "y in ('k1', 'k2', 'k100')"
    found = [
        ["mean", "x"],
        ["mean", "x", "--where", other],
        ["probability", f"x > {middle}"],
        ["probability", f"x > {middle} and {other}"],
        ["probability", f"x > {middle}", "--where", other],
        ["quantile", "x", "0.9"],
        ["quantile", "x", "0.9", "--where", other],
    ]
    if numeric:
        found += [["correlation", "x", "y"], ["regression", "x", "y"]]
    if "g" in made.columns:
        found += [["mean", "x", "--by", "g"], ["probability", other, "--by", "g"]]
        found += [["regression", "x", "g"]]
    return found


def command(path: Path, words: list[str]) -> float:
    """Return the processor seconds of a question on the command line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, "-m", "privatest.cli", "query", str(path), *words, "--json"]
    subprocess.run(line, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def python(path: Path, words: list[str]) -> None:
    """Load and ask."""
    made = SyntheticData.load(path)
    kind, *rest = words
    options = {}
    for name in ("where", "by"):
        if f"--{name}" in rest:
            place = rest.index(f"--{name}")
            options[name] = rest[place + 1]
            del rest[place : place + 2]
    if "by" in options:
        made.by(options["by"], rest[0])
    elif kind == "quantile":
        made.quantile(rest[0], float(rest[1]), **options)
    elif kind == "regression":
        made.regression(rest[0], rest[1:], **options)
    else:
        getattr(made, kind)(*rest, **options)


def querying(label: str, commands: bool) -> None:
    """Ask every release everything."""
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in cases().items():
            path = Path(folder) / "release.parquet"
            made = make()
            made.save(path)
            for words in questions(made):
                whole = min(command(path, words) for _ in range(2)) if commands else None
                _, used, memory = timed(partial(python, path, words))
                rows.append([name, " ".join(words), whole, used, memory])
    names = ["release", "question", "command", "python", "GB"]
    print_table(f"query, processor seconds ({label})", names, rows)
    path = RESULTS / "speed-query.json"
    result = json.loads(path.read_text()) if path.exists() else {}
    result[label] = [dict(zip(names, row, strict=True)) for row in rows]
    save("speed-query", result)


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--part", nargs="+", choices=["release", "query"], default=["release", "query"]
    )
    parser.add_argument("--label", default="now", help="the name of these figures of query")
    parser.add_argument("--no-commands", action="store_true", help="time Python only")
    options = parser.parse_args()
    if "release" in options.part:
        releasing()
    if "query" in options.part:
        querying(options.label, not options.no_commands)


if __name__ == "__main__":
    main()
