"""Write the table of docs/guarantees.md from what is declared and what the audit found.

Run ``python -m tools.guarantees``. What a function releases and where that is proved is in
tools/guarantees.toml; ratios and bounds are those of the cases of docs/audit.json that a row names;
levels are those that functions declare (privatest.core.levels). A test fails when the committed
page is out of date, or when a public test has no proof, no attack, no audit or no level.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import privatest
from privatest.core.levels import DeclaredLevel, declared_level
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


def rows() -> list[dict[str, Any]]:
    """Return what is declared."""
    found: list[dict[str, Any]] = tomllib.loads(ROWS.read_text(encoding="utf-8"))["row"]
    return found


def render(page: str) -> str:
    """Return the page with its table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + HEAD + "".join(map(_line, rows())) + END + after


def audited(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what the audit found of the cases that a row names."""
    patterns = row["cases"]
    return {
        name: case
        for name, case in stored().items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def levels(row: dict[str, Any]) -> dict[str, DeclaredLevel]:
    """Return what the functions of a row declare about their level."""
    public = {name: getattr(privatest, name, None) for name in row["functions"]}
    found = {name: declared_level(f) for name, f in public.items() if f is not None}
    return {name: level for name, level in found.items() if level is not None}


def _line(row: dict[str, Any]) -> str:
    found = [*audited(row).values()]
    measured = [_largest(found, name) for name in ("worst_ratio", "exact_loss", "epsilon_at_least")]
    when = max((f"{case['date']}, {case['version']}" for case in found), default="—")
    cells = [row["call"], row["leaves"], row["cost"], row["neighbours"], row["proof"]]
    return "| " + " | ".join([*cells, _level(row), *measured, when]) + " |\n"


def _largest(found: list[dict[str, Any]], name: str) -> str:
    numbers = [case[name] for case in found if name in case]
    return f"{max(numbers):.3f}" if numbers else "—"


def _level(row: dict[str, Any]) -> str:
    """Return the level of an option, or what the functions declare; a dash if they test nothing."""
    if "level" in row:
        return str(row["level"])
    words = {name: str(level) for name, level in levels(row).items()}
    if len(set(words.values())) <= 1:
        return next(iter(words.values()), "—")
    return ", ".join(f"`{name}` {level}" for name, level in words.items())


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
