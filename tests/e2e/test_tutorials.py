"""Tutorials work as printed: their Python runs, top to bottom, and prints what they say.

Noise is secret, so numbers differ from run to run; words may not. Decisions are printed too, so
noise is seeded here. In a printed block … stands for anything.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.seeding import seed_everything

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?")


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page: language and text."""
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def run(page: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Run all Python of a page in one namespace; return it, and (expected, printed) pairs."""
    names: dict[str, Any] = {}
    printed, comparisons = "", []
    for language, text in blocks(page):
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(text, page, "exec"), names)
            printed = output.getvalue()
        elif language == "text":
            comparisons.append((text, printed))
    return names, comparisons


def shape_of(text: str) -> str:
    return NUMBER.sub("#", text.strip())


@pytest.fixture(scope="module")
def own_statistic() -> tuple[dict[str, Any], list[tuple[str, str]]]:
    with pytest.MonkeyPatch.context() as patch:
        seed_everything(patch, 1)
        return run("tutorials/your-own-statistic.md")


def test_the_page_has_code():
    languages = [language for language, _ in blocks("tutorials/your-own-statistic.md")]
    assert languages.count("python") >= 5
    assert languages.count("text") >= 4


def test_your_own_statistic_prints_what_it_says(own_statistic):
    _, comparisons = own_statistic
    for expected, printed in comparisons:
        start, wildcard, _ = shape_of(expected).partition("…")
        assert shape_of(printed).startswith(start), (expected, printed)
        assert wildcard or shape_of(printed) == start


def test_your_own_statistic_finds_the_difference(own_statistic):
    """Its noise has a scale of 0.004 beside a statistic of 0.2."""
    names, _ = own_statistic
    assert names["result"].reject
    assert names["fast"].reject


def test_the_statistic_is_ten_lines(own_statistic):
    text = next(code for _, code in blocks("tutorials/your-own-statistic.md") if "one_swap" in code)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("print")]
    assert len(lines) <= 10


def test_the_stacked_statistic_is_the_same(own_statistic):
    names, _ = own_statistic
    rng = np.random.default_rng(0)
    x, y = rng.integers(4, size=(50, 7)), rng.integers(4, size=(50, 5))
    plain = [names["upper_half_gap"](*pair) for pair in zip(x, y, strict=True)]
    np.testing.assert_allclose(names["upper_half_gaps"](x, y), plain, atol=1e-15)


@pytest.mark.parametrize(("n", "m"), [(3, 2), (2, 4), (3, 3)])
def test_the_proved_sensitivity_is_right_for_all_small_data(own_statistic, n, m):
    """Every data set of three values, every neighbour; permutations are data sets too."""
    names, _ = own_statistic
    statistic: Callable[..., float] = names["upper_half_gap"]
    rows = list(product((0.0, 1.0, 2.0), repeat=n + m))
    values = {row: statistic(np.array(row[:n]), np.array(row[n:])) for row in rows}
    largest = max(
        abs(values[row] - values[(*row[:index], new, *row[index + 1 :])])
        for row in rows
        for index in range(n + m)
        for new in (0.0, 1.0, 2.0)
    )
    assert largest == pytest.approx(names["one_swap"](n, m), abs=1e-12)
