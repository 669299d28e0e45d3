"""Write docs/limits.md: classical and private p-values at epsilon 10,000, for every public test.

Run ``python -m tools.limits``. The numbers are those of benchmarks/results/level-limits.json, which
``python -m benchmarks.level.limits`` writes. A test fails when the page is out of date.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.level.limits import NAME, TOLERANCE, WITHOUT, agrees, cases, reason, worst
from benchmarks.measure import RESULTS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "limits.md"
BEGIN, END = (
    "<!-- tables: written by `python -m tools.limits` -->\n",
    "<!-- end of the tables -->\n",
)


def stored() -> list[dict[str, Any]]:
    """Return what was measured."""
    rows: list[dict[str, Any]] = json.loads((RESULTS / f"{NAME}.json").read_text("utf-8"))["rows"]
    return rows


def by_case(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the cells of each case."""
    found: dict[str, list[dict[str, Any]]] = {case.name: [] for case in cases()}
    for cell in rows:
        found[f"{cell['test']}: {cell['variant']}"].append(cell)
    return found


def deviating(rows: Iterable[dict[str, Any]]) -> set[str]:
    """Return the cases with a p-value that is further off than allowed."""
    return {name for name, own in by_case(rows).items() if not all(map(agrees, own))}


def render(page: str) -> str:
    """Return the page with its tables."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    cells, off = by_case(stored()), deviating(stored())
    tables = [
        f"## Within {TOLERANCE:.0%}\n\n",
        _table({name: own for name, own in cells.items() if name not in off}),
        "\n## Further off\n\n",
        _table({name: own for name, own in cells.items() if name in off}, why=True),
        "\n## Without a classical counterpart\n\n| tests | why |\n|---|---|\n",
        *(f"| {tests} | {why} |\n" for why, tests in _grouped(WITHOUT).items()),
    ]
    return before + BEGIN + "\n" + "".join(tables) + "\n" + END + after


def _table(cells: Mapping[str, list[dict[str, Any]]], *, why: bool = False) -> str:
    sizes = ("n = 30", "n = 100", "n = 400")
    last = " why |" * why
    head = f"| test | case | counterpart | {' | '.join(sizes)} |{last}\n"
    rule = "|---" * (6 + why) + "|\n"
    return head + rule + "".join(_line(name, own, why) for name, own in cells.items())


def _line(name: str, own: list[dict[str, Any]], why: bool) -> str:
    sizes = sorted({cell["n"] for cell in own})
    ratios = [" / ".join(f"{worst(c):.3g}" for c in own if c["n"] == n) for n in sizes]
    first = [f"`{own[0]['test']}`", own[0]["variant"], own[0]["counterpart"]]
    return "| " + " | ".join([*first, *ratios, *([reason(name)] if why else [])]) + " |\n"


def _grouped(reasons: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name, why in reasons.items():
        found.setdefault(why, []).append(f"`{name}`")
    return {why: ", ".join(names) for why, names in found.items()}


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
