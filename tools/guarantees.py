"""Write the two tables of docs/guarantees.md from what is declared and what the audit found.

Run ``python -m tools.guarantees``. What a function releases, and for which neighbours, stands at
the top of the page that proves it (docs/proofs); ratios and bounds are those of the cases of
docs/audit.json; levels are those that functions declare (privatest.core.results). A test fails
when the committed page is out of date, or when a public test has no proof, no attack, no audit or
no level.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

import privatest
from privatest.core.results import DeclaredLevel, declared_level
from tools.audit import stored

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guarantees.md"
BEGIN = "<!-- {name}: written by `python -m tools.guarantees` -->\n"
END = "<!-- end of {name} -->\n"
AS_GIVEN = "(ε, δ) as given"
PROMISE = "| method | what is released | adjacency | level | proof |\n|---|---|---|---|---|\n"
AUDIT_COLUMNS = ("case", "method", "worst ratio", "exact loss", "ε at least", "audited")
AUDIT = f"| {' | '.join(AUDIT_COLUMNS)} |\n{'|---' * len(AUDIT_COLUMNS)}|\n"


def rows() -> list[dict[str, Any]]:
    """Return what the proof pages promise, in the order of their names."""
    found = []
    for page in sorted((ROOT / "docs" / "proofs").glob("*.md")):
        _, matter, _ = ["", "", "", *page.read_text(encoding="utf-8").split("---\n", 2)][-3:]
        if matter.startswith("guarantees:"):
            found += yaml.safe_load(matter)["guarantees"]
    return [{"cost": AS_GIVEN, **row} for row in found]


def render(page: str) -> str:
    """Return the page with both of its tables."""
    for name, text in {"promise": promise(), "audit": audit()}.items():
        begin, end = BEGIN.format(name=name), END.format(name=name)
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = before + begin + text + end + after
    return page


def promise() -> str:
    """Return the table of what is released, for which neighbours, at which level, and the proof."""
    lines = []
    for row in rows():
        cost = row["cost"]
        released = row["leaves"] + ("" if cost == AS_GIVEN else f". Cost: {cost}")
        cells = [row["call"], released, row["neighbours"], _level(row), row["proof"]]
        lines.append("| " + " | ".join(cells) + " |\n")
    return PROMISE + "".join(lines)


def audit() -> str:
    """Return the table of what the audit found in each case, and which rows have no case."""
    lines = []
    for name, case in stored().items():
        numbers = [_number(case, key) for key in ("worst_ratio", "exact_loss", "epsilon_at_least")]
        method = "—" if name.startswith("mechanism/") else f"`{case['function']}`"
        cells = [name, method, *numbers, f"{case['date']}, {case['version']}"]
        lines.append("| " + " | ".join(cells) + " |\n")
    without = "; ".join(row["call"] for row in rows() if not audited(row))
    return AUDIT + "".join(lines) + f"\nMethods without a case of their own: {without}.\n\n"


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


def _number(case: dict[str, Any], key: str) -> str:
    return f"{case[key]:.3f}" if key in case else "—"


def _level(row: dict[str, Any]) -> str:
    """Return the level of an option, or what the functions declare; a dash if they test nothing."""
    if "level" in row:
        return str(row["level"])
    names: dict[str, list[str]] = {}
    for name, level in levels(row).items():
        names.setdefault(str(level), []).append(f"`{name}`")
    if len(names) <= 1:
        return next(iter(names), "—")
    return ". ".join(f"{', '.join(functions)}: {level}" for level, functions in names.items())


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
