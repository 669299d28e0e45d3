"""Write the table of docs/guarantees.md from what is declared and what the audit found.

Run ``python -m tools.guarantees``. What a function releases and where that is proved is in
tools/guarantees.toml; ratios and bounds are those of docs/audit.json. A test fails when the
committed page is out of date, or when a public test has no proof, no attack or no audit.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from privatest.audit.levels import MEASURED
from tools.audit import stored

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guarantees.md"
ROWS = Path(__file__).with_suffix(".toml")
BEGIN = "<!-- table: written by `python -m tools.guarantees` -->\n"
END = "<!-- end of the table -->\n"
HEAD = (
    "| function | what is released | cost | neighbours | proof | level | worst ratio | exact loss "
    "| ε at least | audited |\n|---|---|---|---|---|---|---|---|---|---|\n"
)
_NO_TEST = ("private_", "release", "share", "compare", "Synthetic", "hodges")


def rows() -> list[dict[str, Any]]:
    """Return what is declared."""
    found: list[dict[str, Any]] = tomllib.loads(ROWS.read_text(encoding="utf-8"))["row"]
    return found


def render(page: str) -> str:
    """Return the page with its table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + HEAD + "".join(map(_line, rows())) + END + after


def audited(functions: list[str]) -> list[dict[str, Any]]:
    """Return what the audit found of some functions."""
    return [case for case in stored().values() if case["function"] in functions]


def _line(row: dict[str, Any]) -> str:
    found = audited(row["functions"])
    measured = [_largest(found, name) for name in ("worst_ratio", "exact_loss", "epsilon_at_least")]
    when = max((f"{case['date']}, {case['version']}" for case in found), default="—")
    cells = [row["call"], row["leaves"], row["cost"], row["neighbours"], row["proof"]]
    return "| " + " | ".join([*cells, _level(row["functions"]), *measured, when]) + " |\n"


def _largest(found: list[dict[str, Any]], name: str) -> str:
    numbers = [case[name] for case in found if name in case]
    return f"{max(numbers):.3f}" if numbers else "—"


def _level(functions: list[str]) -> str:
    if all(name.startswith(_NO_TEST) for name in functions):
        return "—"
    return "measured" if {*functions} & {*MEASURED} else "valid"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
