"""Coverage of the bars of releases: how often value ± 1.96 error holds what it is about.

Run: python -m benchmarks.release.coverage [--runs 100] [--methods subspace features tables]
Writes results/release-coverage.json; methods and data that are not run again stay in it.

Each run draws a data set of n rows, releases it and asks. "rows": the bar covers the private
data set's own value. "population": with the sampling error added in quadrature it covers the
value of the law that the rows were drawn from. "shown": how often there was a bar; "limits": how
often the limits that replace a bar hold (at least .95 by construction). Rows of Adult (five
columns) and of the RAND data (five columns; a bundled example) are drawn with replacement: the
population is the file. A quantile of integers is often known exactly: its bar of 0 then covers
always.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.datasets import randhie
from privatest.noise import SimulatedNoise
from privatest.synthetic import Estimate, SyntheticData, release
from privatest.synthetic.queries import selected

SIZES, EPSILONS, DELTA = (2_000, 20_000), (0.1, 1.0), "1e-6"
POPULATION = 2_000_000
METHODS: dict[str, dict[str, Any]] = {
    "subspace": {"method": "subspace", "n_points": 200},
    "features": {"method": "features", "n_points": 60, "n_frequencies": 500},
    "tables": {"method": "tables", "n_points": 500},
}
Rows = Mapping[str, NDArray[Any]]


def mixture(n: int, rng: np.random.Generator) -> Rows:
    """Five clusters in the plane."""
    centres = np.array([[2, 2], [7, 3], [5, 8], [8, 8], [3, 6]])
    cluster = rng.choice(5, size=n, p=[0.35, 0.25, 0.2, 0.1, 0.1])
    rows = centres[cluster] + rng.normal(scale=0.6, size=(n, 2))
    return dict(zip("xy", np.clip(rows, 0, 10).T, strict=True))


def skewed(n: int, rng: np.random.Generator) -> Rows:
    """Most rows near 0, in bounds that are wide, with three groups."""
    group = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    return {"x": np.minimum(rng.gamma(1, 1 + group), 20), "g": np.array([*"abc"])[group]}


def counts(n: int, rng: np.random.Generator) -> Rows:
    """Integers with many zeros, and two groups."""
    group = rng.random(n) < 0.3
    visits = np.minimum(rng.negative_binomial(1, 1 / (3 + 3 * group)), 40)
    return {"x": visits, "g": np.where(group, "a", "b")}


def atoms(n: int, rng: np.random.Generator) -> Rows:
    """Numbers that take few values, though the schema does not say so."""
    x = rng.choice([0, 1, 2, 3, 7, 12.0], size=n, p=[0.68, 0.06, 0.04, 0.05, 0.08, 0.09])
    ages = [17.5, 22, 27, 32, 37, 42, 47, 52, 57]
    y = rng.choice(ages, size=n, p=[0.01, 0.2, 0.25, 0.19, 0.13, 0.1, 0.05, 0.04, 0.03])
    return {"x": x, "y": y + (x == 0) * 3 * (y < 50)}


def wide(n: int, rng: np.random.Generator) -> Rows:
    """Lognormal numbers, nearly all in the first of 128 even bins, and two groups."""
    group = rng.random(n) < 0.4
    return {
        "x": np.minimum(rng.lognormal(0.5 * group, 1), 1000),
        "g": np.where(group, "a", "b"),
    }


@cache
def _file(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in names}


def _drawn(rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    """Draw rows with replacement; all of them if there are as many as in a population."""
    size = len(next(iter(rows.values())))
    place = np.arange(size) if n == POPULATION else rng.integers(size, size=n)
    return {name: values[place] for name, values in rows.items()}


def adult(n: int, rng: np.random.Generator) -> Rows:
    """Five columns of the census, as it is coded."""
    path = Path(__file__).parents[1] / "published" / "adult.csv.gz"
    names = ("age", "hours-per-week", "education-num", "sex", "income>50K")
    age, hours, education, sex, income = _file(path, names).values()
    rows = {"x": age, "hours": hours, "education": education, "sex": sex, "rich": income}
    return _drawn({name: values.astype(int) for name, values in rows.items()}, n, rng)


def rand(n: int, rng: np.random.Generator) -> Rows:
    """Five columns of the RAND health insurance experiment; x are the visits to a physician."""
    names = ("mdvis", "idp", "disea", "physlm", "hlthg")
    visits, plan, disease, limited, good = _file(randhie().data, names).values()
    rows = {
        "x": visits.astype(int),
        "idp": plan.astype(int),
        "disea": disease,
        "physlm": limited,
        "good": good.astype(int),
    }
    return _drawn(rows, n, rng)


@dataclass(frozen=True)
class Case:
    """Data, its public description, and what is asked."""

    make: Callable[[int, np.random.Generator], Rows]
    schema: Schema
    questions: tuple[tuple[str, ...], ...]


NUMBER, LABELS = NumericColumn, CategoricalColumn
COMMON = (("mean", "x"), ("quantile", "x", "0.5"), ("quantile", "x", "0.9"))
CASES = {
    "mixture": Case(
        mixture,
        Schema({"x": NUMBER(0, 10), "y": NUMBER(0, 10)}),
        (*COMMON, ("share", "x > 5"), ("share where", "x > 5", "y > 5"), ("correlation", "x", "y")),
    ),
    "skewed": Case(
        skewed,
        Schema({"x": NUMBER(0, 20), "g": LABELS(("a", "b", "c"))}),
        (
            *COMMON,
            ("share", "x > 1"),
            ("share", "g == 'b'"),
            ("mean where", "x", "g == 'b'"),
            ("share where", "x > 1", "g == 'b'"),
        ),
    ),
    "counts": Case(
        counts,
        Schema({"x": NUMBER(0, 40, integer=True), "g": LABELS(("a", "b"))}),
        (
            *COMMON,
            ("share", "x > 5"),
            ("share", "x == 0"),
            ("mean where", "x", "g == 'a'"),
            ("share where", "g == 'a'", "x > 5"),
        ),
    ),
    "atoms": Case(
        atoms,
        Schema({"x": NUMBER(0, 12), "y": NUMBER(15, 60)}),
        (
            *COMMON,
            ("share", "x > 0"),
            ("share", "y <= 27"),
            ("share where", "x > 0", "y <= 27"),
            ("correlation", "x", "y"),
        ),
    ),
    "atoms, told": Case(
        atoms,
        Schema({"x": NUMBER(0, 12, atoms=(0,)), "y": NUMBER(15, 60)}),
        (*COMMON, ("share", "x > 0"), ("share", "x == 0"), ("share where", "x > 0", "y <= 27")),
    ),
    "adult": Case(
        adult,
        Schema(
            {
                "x": NUMBER(0, 84, integer=True),
                "hours": NUMBER(0, 98, integer=True),
                "education": NUMBER(0, 15, integer=True),
                "sex": LABELS((0, 1)),
                "rich": LABELS((0, 1)),
            }
        ),
        (
            *COMMON,
            ("share", "hours > 39"),
            ("share", "rich == 1"),
            ("share where", "rich == 1", "sex == 0"),
            ("mean where", "hours", "sex == 0"),
            ("mean where", "x", "rich == 1"),
            ("correlation", "x", "hours"),
        ),
    ),
    "rand": Case(
        rand,
        Schema(
            {
                "x": NUMBER(0, 77, integer=True, atoms=(0,)),
                "idp": LABELS((0, 1)),
                "disea": NUMBER(0, 60),
                "physlm": NUMBER(0, 1, atoms=(0, 1)),
                "good": LABELS((0, 1)),
            }
        ),
        (
            *COMMON,
            ("share", "x == 0"),
            ("share", "physlm == 0"),
            ("share where", "x > 0", "idp == 1"),
            ("mean where", "x", "idp == 1"),
            ("mean", "disea"),
            ("correlation", "x", "disea"),
        ),
    ),
    "wide": Case(
        wide,
        Schema({"x": NUMBER(0, 1000), "g": LABELS(("a", "b"))}),
        (
            *COMMON,
            ("share", "x > 2"),
            ("mean where", "x", "g == 'a'"),
            ("share where", "x > 2", "g == 'a'"),
        ),
    ),
}


def truth(question: tuple[str, ...], rows: Rows) -> float:
    """Return the value over given rows."""
    kind, *words = question
    if kind == "correlation":
        return float(np.corrcoef(rows[words[0]], rows[words[1]])[0, 1])
    if kind == "quantile":
        return float(np.quantile(rows[words[0]], float(words[1]), method="inverted_cdf"))
    values = rows[words[0]] if kind.startswith("mean") else selected(words[0], rows)
    kept = selected(words[1], rows) if len(words) > 1 else slice(None)
    return float(np.mean(values[kept]))


def answer(question: tuple[str, ...], made: SyntheticData) -> Estimate:
    """Ask a release."""
    kind, *words = question
    if kind == "correlation":
        return made.correlation(*words)
    if kind == "quantile":
        return made.quantile(words[0], float(words[1]))
    where = words[1] if len(words) > 1 else None
    ask = made.mean if kind.startswith("mean") else made.probability
    return ask(words[0], where=where)


@cache
def population(name: str) -> Mapping[tuple[str, ...], float]:
    """Return the values of the law, from very many rows."""
    case = CASES[name]
    rows = case.make(POPULATION, np.random.default_rng(99))
    return {question: truth(question, rows) for question in case.questions}


def run(name: str, n: int, epsilon: float, method: str, seed: int) -> list[dict[str, Any]]:
    """Release once and ask everything."""
    case = CASES[name]
    place = [seed, n, int(10 * epsilon), [*CASES].index(name), [*METHODS].index(method)]
    rng = np.random.default_rng(place)
    rows = case.make(n, rng)
    noise = SimulatedNoise(int(rng.integers(1 << 60)))
    made = release(
        rows,
        bounds=case.schema,
        epsilon=epsilon,
        delta=DELTA,
        noise=noise,
        rng=rng,
        **METHODS[method],
    )
    found = []
    for question in case.questions:
        estimate, own = answer(question, made), truth(question, rows)
        away = estimate.value - own
        shown = math.isfinite(estimate.error)
        limits = estimate.limits
        found.append(
            {
                "question": " ".join(question),
                "away": away,
                "bar": estimate.error,
                "rows": abs(away) <= 1.96 * estimate.error + 1e-9 if shown else None,
                "population": abs(estimate.value - population(name)[question])
                <= 1.96 * estimate.total + 1e-9
                if shown
                else None,
                "limits": limits[0] - 1e-9 <= own <= limits[1] + 1e-9 if limits else None,
                "width": limits[1] - limits[0] if limits else None,
            }
        )
    return found


def cell(name: str, n: int, epsilon: float, method: str, runs: int) -> list[dict[str, Any]]:
    """Return coverage and lengths, for each question."""
    answers = [run(name, n, epsilon, method, seed) for seed in range(runs)]
    rows = []
    for index, question in enumerate(CASES[name].questions):
        each = [answer[index] for answer in answers]
        rows.append(
            {
                "data": name,
                "n": n,
                "epsilon": epsilon,
                "method": method,
                "question": " ".join(question),
                "shown": _mean([item["rows"] is not None for item in each]),
                "rows": _mean([item["rows"] for item in each]),
                "population": _mean([item["population"] for item in each]),
                "limits": _mean([item["limits"] for item in each]),
                "error": _root([item["away"] for item in each]),
                "bar": _median([item["bar"] for item in each]),
                "width": _median([item["width"] for item in each]),
            }
        )
    return rows


def _known(values: list[Any]) -> list[float]:
    return [float(value) for value in values if value is not None and math.isfinite(value)]


def _mean(values: list[Any]) -> float | None:
    known = _known(values)
    return float(np.mean(known)) if known else None


def _root(values: list[Any]) -> float | None:
    known = _known(values)
    return float(np.sqrt(np.mean(np.square(known)))) if known else None


def _median(values: list[Any]) -> float | None:
    known = _known(values)
    return float(np.median(known)) if known else None


def _store(rows: list[dict[str, Any]], runs: int) -> None:
    """Put the answers of one cell in the file, in place of older ones."""
    path = RESULTS / "release-coverage.json"
    result = json.loads(path.read_text()) if path.exists() else {}
    names = ("data", "n", "epsilon")
    method = rows[0]["method"]
    kept = [
        row
        for row in result.get(method, {}).get("cells", [])
        if any(row[name] != rows[0][name] for name in names)
    ]
    result[method] = {"cells": kept + [{"runs": runs, **row} for row in rows]}
    save("release-coverage", result)


def main() -> None:
    """Run all cells, print and save them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--methods", nargs="+", choices=[*METHODS], default=[*METHODS])
    parser.add_argument("--data", nargs="+", choices=[*CASES], default=[*CASES])
    parser.add_argument("--dry", action="store_true", help="do not write the file")
    options = parser.parse_args()
    jobs = [
        (name, n, epsilon, method)
        for method in options.methods
        for name in options.data
        for n in SIZES
        for epsilon in EPSILONS
    ]
    start, rows = time.process_time(), []
    for job in track(jobs):
        own = cell(*job, options.runs)
        rows += own
        if not options.dry:
            _store(own, options.runs)
    columns = [*rows[0]]
    print_table("Coverage", columns, [[row[column] for column in columns] for row in rows])
    seconds = time.process_time() - start
    print(f"{seconds:.0f} processor seconds")


if __name__ == "__main__":
    main()
