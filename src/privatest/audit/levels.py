"""How often a true null hypothesis is rejected: few rows, ties, atoms, skew, unequal groups.

Limits are exact: the binomial probability of as many rejections, for each cell and for all of
them, shares one error of 2.5e-7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.audit.cases import Case
from privatest.audit.distinguishing import FALSE_ALARM
from privatest.audit.findings import Finding
from privatest.audit.neighbours import arm_of
from privatest.audit.running import attempt
from privatest.core.noise import SimulatedNoise

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ALLOWED", "attack_level", "hypothesis"]

ALPHA = 0.05
# Rates that the proof pages of tests with a measured level allow at level .05; for others .05.
ALLOWED: Mapping[str, float] = {
    "chi2_contingency": 0.06,
    "conditional_independence_test": 0.08,
    "f_oneway": 0.06,
    "hotelling_1samp": 0.06,
    "hotelling_test": 0.06,
    "kendalltau": 0.06,  # with ties, as the next ones; without them the level is proved
    "linregress": 0.07,
    "me_test": 0.06,
    "pearsonr": 0.07,
    "scf_test": 0.06,
    "spearmanr": 0.06,
    "tost_ind": 0.06,
    "tost_rel": 0.06,
    "ttest_1samp": 0.06,
    "ttest_ind": 0.06,
    "ttest_rel": 0.06,
    "wilcoxon": 0.06,
}
_LAWS = ("uniform", "ties", "atoms", "skew", "off centre")
_SYMMETRIC = ("uniform", "ties", "atoms")
_MARGIN = 0.5  # of the made-up requests for equivalence, in units of the bounds
_SPREAD = 0.12  # of a normal law about the middle: one value in 30,000 is beyond the bounds


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of the grid."""

    rows: int
    law: str
    epsilon: float
    first: float  # share of the first group


def hypothesis(case: Case) -> str:
    """Return which null hypothesis a case has, "" for one that tests nothing."""
    question, _, method = case.name.partition(",")[0].partition("/")
    if question in ("mean", "release", "mechanism"):
        return ""
    if method.startswith("tost"):
        return "margin"
    if question != "python":
        fits = "family" if method == "family" else "uniform"
        return fits if question == "fit" else "exchangeable"
    centred = {"binom_test": "coin", "hotelling_1samp": "centred", "ttest_1samp": "centred"}
    made = {
        "permutation_test": "exchangeable",
        "mmd_test": "exchangeable",
        "conditional_randomisation_test": "given",
    }
    return (centred | made).get(method, "")


def attack_level(case: Case, nulls: int, seed: int) -> Finding:
    """Count rejections under the null hypothesis over a grid."""
    null = hypothesis(case)
    if not null or not nulls:
        return Finding("level", True, "tests no hypothesis", {"cells": []})
    allowed, cells = ALLOWED.get(case.function, ALPHA), list(_cells(case, null))
    counted: list[dict[str, Any]] = []
    worst, alarm = "", FALSE_ALARM / (len(cells) + 1)
    for number, cell in enumerate(cells):
        rejected, answered = _rejections(case, cell, nulls, seed + number)
        rate = {"n": cell.rows, "law": cell.law, "epsilon": cell.epsilon, "first": cell.first}
        counted.append({**rate, "rejected": rejected, "runs": answered})
        if _too_many(rejected, answered, allowed, alarm):
            worst = worst or f"{rejected} of {answered} at {cell}"
    rejected, runs = (sum(int(c[name]) for c in counted) for name in ("rejected", "runs"))
    if _too_many(rejected, runs, allowed, alarm):
        worst = worst or "all cells together"
    told = worst or f"{rejected} of {runs} rejected at level {ALPHA}, {allowed} allowed"
    numbers = {"rejected": rejected, "runs": runs, "allowed": allowed, "cells": counted}
    return Finding("level", not worst, told, numbers)


def _too_many(rejected: int, runs: int, allowed: float, alarm: float) -> bool:
    from scipy.stats import binom  # noqa: PLC0415

    return bool(binom.sf(rejected - 1, runs, allowed) < alarm)


def _cells(case: Case, null: str) -> Iterator[Cell]:
    """Return the grid: each law with sizes and budgets that take turns."""
    sizes = (case.rows, case.rows + 41) if case.rows > 40 else (2, 4, 10, 40)
    budgets = (0.01, 0.3, 1.0, 20.0)
    laws: tuple[str, ...] = _SYMMETRIC if null in ("centred", "margin") else _LAWS
    if null in ("uniform", "coin", "given", "family"):
        laws = ("uniform",)
    for number in range(8):  # the fewest rows have the least budget once, and once the largest
        epsilon = budgets[number % len(budgets)]
        rows = sizes[(number + number // len(budgets)) % len(sizes)]
        yield Cell(rows, laws[number % len(laws)], epsilon, (0.5, 0.2)[number % 2])


def _rejections(case: Case, cell: Cell, nulls: int, seed: int) -> tuple[int, int]:
    asked = case.other(epsilon=cell.epsilon)
    rejected = answered = 0
    for run in range(nulls):
        rng = np.random.default_rng([seed, run])
        noise = SimulatedNoise(np.random.SeedSequence([seed, run]))
        found = attempt(asked, _null_rows(case, cell, rng), noise, int(rng.integers(2**31)))
        if not found.failed:
            answered += 1
            rejected += bool(found.result.reject)
    return rejected, answered


def _null_rows(case: Case, cell: Cell, rng: np.random.Generator) -> pa.Table:
    """Return independent columns: independence and equality hold, or a difference of a margin."""
    import pyarrow as pa  # noqa: PLC0415

    null, n = hypothesis(case), cell.rows
    first = max(min(2, cell.rows // 2), round(cell.first * cell.rows))
    colours = rng.integers(3, size=n)
    x, y = _law(cell.law, n, rng), _law(cell.law, n, rng)
    count = len(case.schema.columns["arm"].categories)  # type: ignore[union-attr]
    labels = np.array(["a", "b", "c"][:count])
    groups = np.where(rng.random(n) < cell.first, "a", rng.choice(labels[1:], size=n))
    arms = labels[[arm_of(place, n, count, first) for place in range(n)]]
    chances: Any = 0.5 if null == "coin" or cell.law != "skew" else 0.1
    if null == "given":
        x = rng.random(n) * (1 + colours) / 3
    elif null == "family":
        x = rng.normal(0.5, _SPREAD, size=n)
    elif null == "margin":  # what is paired differs by the margin, and so do groups
        own = groups if case.private_groups else arms
        apart = _MARGIN * (own == "a") if case.function != "tost_rel" else _MARGIN
        x, y = apart + (1 - _MARGIN) * x, (1 - _MARGIN) * y
        chances = _MARGIN / 2 + apart
    shares = rng.random(n) < chances
    return pa.table(
        {
            "x": x,
            "y": y,
            "count": np.where(shares, 4, 0),
            "colour": [("red", "green", "blue")[i] for i in colours],
            "yes": np.where(rng.random(n) < (0.5 if cell.law != "skew" else 0.1), "yes", "no"),
            "group": groups,
            "arm": arms,
        }
    )


def _law(law: str, n: int, rng: np.random.Generator) -> Any:
    if law == "ties":
        return rng.integers(3, size=n) / 2
    if law == "atoms":
        return rng.integers(2, size=n) * 1.0
    if law == "skew":
        return rng.beta(0.4, 4.0, size=n)
    return rng.random(n) if law == "uniform" else 0.9 + 0.1 * rng.random(n)
