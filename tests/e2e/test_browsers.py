"""The browser of the tests: a page that replaces its elements all the time is read and used."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from tests.e2e.browsers import Browser, Focus, browser_or_skip

ROOT = Path(__file__).resolve().parents[2]
RESTLESS = """\
<!doctype html><html lang="en"><title>Restless</title><main></main><script>
let clicks = 0;
// Not "click": the browser drops one whose element is replaced before the button is let go.
const main = document.querySelector("main");
const draw = () => {
  main.innerHTML = `<p>${clicks} clicks</p><button>Click</button>`;
};
main.addEventListener("mousedown", () => { clicks += 1; });
draw();
setInterval(draw, 400);
</script></html>
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from browser_or_skip()


def test_elements_that_the_page_replaces(browser, tmp_path):
    page = tmp_path / "restless.html"
    page.write_text(RESTLESS, encoding="utf-8")
    browser.visit(page.as_uri())
    for count in range(1, 21):
        browser.click("button")
        browser.expect("p", f"{count} clicks")
        assert browser.text("p") == f"{count} clicks"
        assert browser.is_displayed("button")


def test_a_link_is_followed_to_a_page_that_looks_the_same(browser, tmp_path):
    """What is asserted next is about the new page, although the old one has the same elements."""
    for number in (1, 2):
        text = f'<title>{number}</title><p>page {number}</p><a href="2.html">next</a>'
        (tmp_path / f"{number}.html").write_text(text, encoding="utf-8")
    for _ in range(5):
        browser.visit((tmp_path / "1.html").as_uri())
        browser.follow("a")
        assert browser.text("p") == "page 2"


def test_a_text_that_does_not_come_is_shown(browser, tmp_path):
    (tmp_path / "a.html").write_text("<title>a</title><p>one</p>", encoding="utf-8")
    browser.visit((tmp_path / "a.html").as_uri())
    with pytest.raises(AssertionError, match="p shows 'one'"):
        browser.expect("p", "two", seconds=0.2)


def test_nobody_holds_an_element():
    """Methods return words and numbers, and nobody else uses Selenium."""
    plain: set[Any] = {type(None), str, int, bool, list[str], Focus}
    for name, method in inspect.getmembers(Browser, inspect.isfunction):
        if not name.startswith("_"):
            assert get_type_hints(method)["return"] in plain, name
    own = ROOT / "tests" / "e2e" / "browsers.py"
    for folder in ("src", "papers", "tests", "tools", "scripts", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            if path not in (own, Path(__file__)):
                text = path.read_text(encoding="utf-8")
                assert not re.search(r"\bimport selenium|from selenium|browser\._", text), path
