"""Formulas of the documentation: LaTeX in, MathML out, and no mistake passes."""

from __future__ import annotations

import re
from pathlib import Path

import markdown
import pytest
import yaml
from mkdocs.exceptions import PluginError

from tools.docs_math import converted

ROOT = Path(__file__).resolve().parents[2]
ARITHMATEX = "pymdownx.arithmatex"


def settings() -> dict[str, bool]:
    """What mkdocs.yml says of the extension that finds formulas."""
    extensions = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    (found,) = [e for e in extensions["markdown_extensions"] if ARITHMATEX in e]
    return dict(found[ARITHMATEX])


def shown(text: str) -> str:
    html = markdown.markdown(
        text, extensions=["tables", ARITHMATEX], extension_configs={ARITHMATEX: settings()}
    )
    return converted(html, "page.md")


def test_a_formula_in_a_sentence_becomes_mathml():
    html = shown("So $a < b_1$ holds.")
    assert re.fullmatch(r"<p>So <math>.*<msub>.*</math> holds\.</p>", html)
    assert "<mo>&lt;</mo>" in html
    assert "$" not in html


def test_a_formula_on_lines_of_its_own_is_a_block():
    html = shown("Then\n\n$$\n\\frac{a}{b} \\le 1\n$$\n\nholds.")
    assert '<div class="formula"><math display="block"><mfrac>' in html


def test_a_formula_fits_into_a_cell():
    html = shown("| a | b |\n|---|---|\n| $\\lvert x\\rvert$ | 1 |")
    assert html.count("<td>") == 2
    assert "<math>" in html


def test_code_is_left_as_it_is():
    assert shown("`$x$`") == "<p><code>$x$</code></p>"


@pytest.mark.parametrize("wrong", [r"\unknown x", r"x^{2", r"\frac{1}"])
def test_a_mistake_stops_the_build(wrong):
    with pytest.raises(PluginError, match=r"page\.md"):
        shown(f"${wrong}$")
