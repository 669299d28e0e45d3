"""The page about curators names what is not offered by default."""

from __future__ import annotations

from pathlib import Path

from privatest.curator.config import ALL_TESTS, USUAL_TESTS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "curator.md"


def test_the_page_names_what_is_not_offered_by_default():
    page = PAGE.read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("| `tests` |"))
    default = line.split("|")[3]
    assert {f"{question}/{method}" for question, method in ALL_TESTS - USUAL_TESTS} == {
        name.strip('"') for name in default.split("`")[1::2]
    }
