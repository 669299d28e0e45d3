"""Summarize level and coverage of the everyday tests: the table of docs/figures.md.

Run: python -m benchmarks.level.everyday. Reads what the scripts beside it wrote to results, and
prints a row for each test: cells, runs, the largest rejection rate, the range of coverage. And a
row for each peer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import RESULTS, start

Row = dict[str, Any]


def read(name: str) -> Row:
    """Return a stored result, empty if there is none."""
    path = RESULTS / f"{name}.json"
    found: Row = json.loads(path.read_text()) if path.exists() else {}
    return found


def levels() -> Iterator[tuple[str, int, float]]:
    """Return test, runs and rejection rate of every cell."""
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
        yield "conditional", found["runs"], row["level"]
    found = read("level-quantiles")
    for row in found.get("shifts", []):
        yield "hodges_lehmann", found["shift_runs"], row["level"]


def coverages() -> Iterator[tuple[str, int, float]]:
    """Return test, runs and coverage of every cell."""
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


# how docs/figures.md calls them; others are called by their own name
LABELS = {
    "pearson": "`pearsonr`",
    "pearson, greater": "`pearsonr`, one-sided",
    "kendall": "`kendalltau`",
    "spearman": "`spearmanr`",
    "regression": "`linregress`",
    "chi2_contingency": "`chi2_contingency`, Cramér's V",
    "chi2_contingency, cells": "`chi2_contingency`, all cells at once",
    "proportions: equivalence": "`tost_proportions`",
    "conditional": "`conditional_independence_test`",
}


def label(test: str) -> str:
    """Return the name of a row."""
    if test.startswith("proportions: ") and test not in LABELS:
        return "`proportions_test`, " + test.removeprefix("proportions: ")
    return LABELS.get(test, f"`{test}`")


def number(value: float) -> str:
    """Return a rate as the page writes it: .05, 1."""
    return f"{value:.3f}".replace("0.", ".", 1) if value < 0.9995 else "1"


def cells_and_runs(own: list[tuple[float, int]]) -> str:
    """Return how many cells there are, with how many runs each."""
    runs = sorted({each[1] for each in own})
    return f"{len(own)} × {' or '.join(f'{count:,}' for count in runs)}" if own else "–"


def row(test: str, level: list[tuple[float, int]], coverage: list[tuple[float, int]]) -> str:
    """Return a row of the table."""
    worst, spread = "–", "–"
    if level:
        error = max((rate - 0.05) / (0.05 * 0.95 / count) ** 0.5 for rate, count in level)
        worst = f"{number(max(level)[0])} ({error:+.1f})".replace("-", "−")
    if coverage:
        spread = f"{number(min(coverage)[0])} to {number(max(coverage)[0])}"
    parts = label(test), cells_and_runs(level), worst, cells_and_runs(coverage), spread
    return f"| {' | '.join(parts)} |"


def peers() -> Iterator[str]:
    """Return rows of the table of peers: for each test how often ours and theirs reject."""
    rows = read("level-peers").get("rows", [])
    for test in dict.fromkeys(row["test"] for row in rows):
        own = [row for row in rows if row["test"] == test]
        sides = []
        for rate, runs in (("ours", "own runs"), ("peer rate", "peer runs")):
            found = [(row[rate], row[runs]) for row in own]
            worst = max((value - 0.05) / (0.0475 / count) ** 0.5 for value, count in found)
            ends = f"{number(min(found)[0])} to {number(max(found)[0])}"
            sides.append(f"{cells_and_runs(found)} | {ends} ({worst:+.1f})".replace("-", "−"))
        yield f"| `{test}` | {sides[0]} | {own[0]['peer']} | {sides[1]} |"


def main() -> None:
    """Print both tables as docs/figures.md has them."""
    cells = [list(levels()), list(coverages())]
    names = dict.fromkeys(each[0] for part in cells for each in part)
    print("| test | cells × runs | largest rate (s.e. above .05) | cells × runs | coverage |")
    print("|---|---|---|---|---|")
    for test in names:
        own = [[(rate, runs) for name, runs, rate in part if name == test] for part in cells]
        print(row(test, *own))
    print("\n| ours | cells × runs | rejects (s.e.) | peer | cells × runs | rejects (s.e.) |")
    print("|---|---|---|---|---|---|")
    print("\n".join(peers()))


if __name__ == "__main__":
    start(main, __doc__)
