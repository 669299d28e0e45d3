"""As epsilon grows every test becomes the one that people know: docs/limits.md, and its numbers.

All cells are stored by ``python -m benchmarks.level.limits``. What is stored is compared with the
list of known deviations, in both directions, and some cells of every case are run again.
"""

from __future__ import annotations

import inspect
import re
from fnmatch import fnmatchcase

import pytest

import privatest
from benchmarks.level.limits import (
    DEVIATIONS,
    SEEDS,
    SIZES,
    TARGETS,
    WITHOUT,
    Case,
    agrees,
    cases,
    reason,
)
from tools import limits

CASES = cases()
RERUN = "run: python -m benchmarks.level.limits && python -m tools.limits"


def test_every_public_test_is_compared_or_says_why_not():
    public = {name: getattr(privatest, name) for name in privatest.__all__}
    tests = {
        name
        for name, function in public.items()
        if inspect.isfunction(function)
        and re.search(r"Outcome|Decision", str(inspect.signature(function).return_annotation))
    }
    compared = {case.test for case in CASES}
    assert compared | {*WITHOUT} == tests - {"adjust"}
    assert not compared & {*WITHOUT}


def test_all_cells_are_stored():
    assert len({case.name for case in CASES}) == len(CASES)
    for name, own in limits.by_case(limits.stored()).items():
        found = [(cell["n"], cell["target"]) for cell in own]
        assert found == [(n, target) for n in SIZES for target in TARGETS], (name, RERUN)


def test_deviations_are_exactly_those_that_are_known():
    """A new deviation is a mistake; one that is gone has to leave the list."""
    found = limits.deviating(limits.stored())
    unknown = sorted(name for name in found if not reason(name))
    assert not unknown
    mended = sorted(case.name for case in CASES if reason(case.name) and case.name not in found)
    assert not mended, "take these off DEVIATIONS"
    idle = [each for each in DEVIATIONS if not any(fnmatchcase(c.name, each) for c in CASES)]
    assert not idle


def test_classical_pvalues_are_near_their_targets():
    """Where p-values are discrete no effect gives the target itself."""
    for cell in limits.stored():
        assert 0.4 < cell["classical"] / cell["target"] < 2.5, cell


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cells_are_what_the_code_gives(case: Case):
    """One cell of every case: as it is stored, and near the classical p-value if promised."""
    n, target = SIZES[0], TARGETS[1]
    (cell,) = case.cells((n,), (target,))
    own = limits.by_case(limits.stored())[case.name]
    (before,) = (each for each in own if (each["n"], each["target"]) == (n, target))
    # a draw more or less, by rounding, is 1/500 of a simulated p-value
    assert cell["classical"] == pytest.approx(before["classical"], rel=0.01), RERUN
    assert cell["private"] == pytest.approx(before["private"], rel=0.01), RERUN
    assert len(cell["private"]) == len(SEEDS)
    assert agrees(cell) or reason(case.name), cell


def test_the_page_is_up_to_date():
    page = limits.PAGE.read_text(encoding="utf-8")
    assert limits.render(page) == page, RERUN
