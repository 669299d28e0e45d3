"""Summarize level and coverage of the everyday tests: the table of docs/figures.md.

Run: python -m benchmarks.level.everyday. Reads what the scripts beside it wrote to results, and
prints a row for each test: cells, runs, the largest rejection rate, the range of coverage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import RESULTS, start
from benchmarks.report import print_table

Row = dict[str, Any]


def read(name: str) -> Row:
    """Return a stored result, empty if there is none."""
    path = RESULTS / f"{name}.json"
    found: Row = json.loads(path.read_text()) if path.exists() else {}
    return found


def levels() -> Iterator[tuple[str, int, float]]:
    """Return test, runs and rejection rate of every cell."""
    for row in read("level-groups").get("rows", []):
        yield row["test"], row["runs"], row["rejected"]
    found = read("level-correlation")
    for row in found.get("level", []):
        yield row["test"], found["level_runs"], row["rejected"]
    found = read("level-tables")
    for row in found.get("rows", []):
        for test in ("chi2_contingency", "chisquare"):
            yield test, found["runs"], row[test]
    for row in read("level-proportions").get("level", []):
        yield f"proportions: {row['test']}", row["runs"], row["privatest"]
    found = read("level-conditional")
    for row in found.get("level", []):
        wrong = row["case"] in ("step", "fast sine")
        yield f"conditional{', wrong fit' * wrong}", found["runs"], row["level"]
    found = read("level-quantiles")
    for row in found.get("shifts", []):
        yield "hodges_lehmann", found["shift_runs"], row["level"]


def coverages() -> Iterator[tuple[str, int, float]]:
    """Return test, runs and coverage of every cell."""
    for row in read("level-groups").get("rows", []):
        if row["covered"] is not None:
            yield row["test"], row["runs"], row["covered"]
    found = read("level-correlation")
    for row in found.get("coverage", []):
        yield row["test"], found["coverage_runs"], row["coverage"]
    found = read("coverage-tables")
    for row in found.get("rows", []):
        yield "chi2_contingency", found["runs"], row["V"]
        yield "chi2_contingency, cells", found["runs"], row["all cells"]
    found = read("level-proportions")
    for name in ("difference", "ratio"):
        for row in found.get("coverage", []):
            yield f"proportions: {name}", found["coverage runs"], row[name]
        for row in found.get("private coverage", []):
            yield f"proportions: private {name}", row["runs"], row[name]
    found = read("level-quantiles")
    for row in found.get("quantiles", []):
        yield "private_quantile", found["runs"], row["coverage"]
    for row in found.get("shifts", []):
        yield "hodges_lehmann", found["shift_runs"], row["coverage"]


def main() -> None:
    """Print both tables."""
    for title, cells in (("level", list(levels())), ("coverage", list(coverages()))):
        rows = []
        for test in dict.fromkeys(each[0] for each in cells):
            own = [(rate, runs) for name, runs, rate in cells if name == test]
            runs = sorted({each[1] for each in own})
            errors = [(rate - 0.05) / (0.05 * 0.95 / count) ** 0.5 for rate, count in own]
            low, high = min(own)[0], max(own)[0]
            spread = [max(errors)] if title == "level" else []
            rows.append([test, len(own), "/".join(map(str, runs)), low, high, *spread])
        last = ["standard errors above .05"] if title == "level" else []
        print_table(title, ["test", "cells", "runs", "lowest", "highest", *last], rows)


if __name__ == "__main__":
    start(main, __doc__)
