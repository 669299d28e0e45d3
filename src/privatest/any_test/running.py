"""Split the rows and test each subset: common to the test of tests and SARRM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privatest.any_test.sides import TwoSides
from privatest.any_test.subtests import SubTest, probe
from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource
from privatest.core.validation import reject

__all__ = ["Plan", "check_rows", "facts", "most_subsets", "rejections"]

_INDEPENDENT = "the two sides are independent"
_SAME = "the two samples come from the same distribution"


@dataclass(frozen=True, slots=True)
class Plan:
    """How subsets are tested; all of it public."""

    test: SubTest
    n_subsets: int
    sub_alpha: float
    n_permutations: int


def most_subsets(sides: TwoSides, test: SubTest) -> int:
    """Return the largest number of subsets that each have the rows that the test needs."""
    needed = max(4, test.least_rows)
    if min(sides.sizes) < needed:
        which = "x and y" if sides.paired else "each sample"
        raise DataError(f"{which} must have at least {needed} rows.")
    return min(sides.sizes) // test.least_rows


def check_rows(sides: TwoSides, test: SubTest, n_subsets: int) -> None:
    """Refuse subsets that are too large for the test."""
    rows = max(sides.sizes)
    if test.most_rows is not None and rows > n_subsets * test.most_rows:
        least = -(-rows // test.most_rows)
        reject("n_subsets", f"at least {least} for pvalue={test.name!r}", n_subsets)


def rejections(
    sides: TwoSides, plan: Plan, rng: np.random.Generator, noise: NoiseSource
) -> list[bool]:
    """Return which subsets reject; private.

    Every subset has its own generator, so that draws for one do not depend on the rows of
    another.
    """
    probe(plan.test, sides, plan.n_subsets)
    seeds = rng.integers(2**63, size=plan.n_subsets)
    subsets = sides.subsets(plan.n_subsets, noise)
    return [
        plan.test.pvalue(x, y, plan.n_permutations, np.random.default_rng(seed)) <= plan.sub_alpha
        for (x, y), seed in zip(subsets, seeds, strict=True)
    ]


def facts(sides: TwoSides, plan: Plan, method: str) -> dict[str, Any]:
    """Return the public fields of a result."""
    n, m = sides.sizes
    parameters = {
        "pvalue": plan.test.name,
        "n_subsets": plan.n_subsets,
        "sub_alpha": plan.sub_alpha,
    }
    called = f"{method} of {plan.test.name}"
    if plan.test.by_rank:
        parameters["n_permutations"] = plan.n_permutations
    else:
        called += ", at a level that rests on its own p-values"
    return {
        "adjacency": sides.adjacency,
        "method": called,
        "null_hypothesis": _INDEPENDENT if sides.paired else _SAME,
        "sizes": {"n": n} if sides.paired else {"n": n, "m": m},
        "parameters": parameters,
        "rows_per_person": sides.samples.rows_per_person,
        "level": "valid" if plan.test.by_rank else "measured",
    }
