"""Tables on the pages "Coming from ...": the names of our side exist, and those of OpenDP."""

from __future__ import annotations

import inspect
import re
from functools import reduce
from pathlib import Path
from types import ModuleType

import opendp.prelude as dp
import pytest

import privatest as pt
import privatest.planning

PAGES = Path(__file__).resolve().parents[2] / "docs" / "how-to"
PEERS = ["dpkernel", "diffprivlib", "opendp"]
CODE = re.compile(r"`([^`]+)`")
# words of tables that are no names: parameters of functions and of files
KEYS = {"rows_per_person", "bounds", "success"}


def rows(peer: str) -> list[list[str]]:
    """The cells of a page's table, without its head."""
    text = (PAGES / f"coming-from-{peer}.md").read_text(encoding="utf-8")
    found = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return found[1:]


def parameters() -> set[str]:
    public = [getattr(pt, name) for name in pt.__all__]
    functions = [each for each in public if inspect.isfunction(each)]
    return {word for each in functions for word in inspect.signature(each).parameters}


def reached(name: str, *places: object) -> bool:
    for place in places:
        try:
            reduce(getattr, name.split("."), place)
        except AttributeError:
            continue
        return True
    return False


@pytest.mark.parametrize("peer", PEERS)
def test_our_side_exists(peer):
    known, found = parameters() | KEYS, 0
    for _, ours, *_ in rows(peer):
        for code in CODE.findall(ours):
            if code.startswith('"'):
                continue
            name = code.partition("(")[0].partition("=")[0]
            assert name in known or reached(name, pt), code
            found += 1
            for argument in re.findall(r"(\w+)=", code):
                assert argument in known, code
    assert found > 8


def test_the_check_can_fail():
    assert not reached("no_such_test", pt)
    assert "no_such_argument" not in parameters()


def test_opendp_has_the_names_of_its_page():
    names = {
        code.partition("(")[0].removeprefix("dp.")
        for theirs, *_ in rows("opendp")
        for code in CODE.findall(theirs)
        if code.startswith("dp.")
    }
    assert len(names) > 10
    assert isinstance(dp, ModuleType)
    assert [name for name in sorted(names) if not reached(name, dp)] == []
