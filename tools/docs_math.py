"""A hook of MkDocs: LaTeX formulas become MathML when the site is built.

The arithmatex extension finds formulas (``$...$`` within a line, ``$$`` around a block) and wraps
them; this converts them. Browsers show MathML without a script. A formula with a mistake, such as
an unknown command, stops the build: a proof must not be shown with a hole.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from math_core import LatexError, LatexToMathML
from mkdocs.exceptions import PluginError

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<kind>[(\[])(?P<latex>.*?)\\[)\]]</(?P=tag)>', re.S
)
_converter = LatexToMathML(fancy_error=False)


def converted(html: str, page: str) -> str:
    """Return HTML whose wrapped formulas are MathML."""

    def convert(found: re.Match[str]) -> str:
        latex = unescape(found["latex"]).strip()
        block = found["kind"] == "["
        try:
            mathml = _converter.convert_with_local_state(latex, displaystyle=block)
        except LatexError as error:
            raise PluginError(f"{page}: {error}, in the formula {latex}") from error
        return f'<div class="formula">{mathml}</div>' if block else mathml

    return _FORMULA.sub(convert, html)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Convert a page; MkDocs calls this for each."""
    return converted(html, page.file.src_path)
