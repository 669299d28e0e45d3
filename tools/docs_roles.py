"""A hook of MkDocs: roles of docstrings, such as :func:, become links on the reference page.

Docstrings name other functions as Sphinx has it. MkDocs would print the role as it is written.
"""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(
    r":(?:attr|class|data|exc|func|meth|mod):<code>~?([\w.]+)</code>"  # what Markdown makes of it
)
_ANCHOR = re.compile(r'id="(privatest[\w.]*)"')


def linked(html: str) -> str:
    """Return a page whose roles are links to what the page documents, else only names."""
    anchors = set(_ANCHOR.findall(html))
    last: dict[str, list[str]] = {}
    for anchor in anchors:
        last.setdefault(anchor.rpartition(".")[2], []).append(anchor)

    def link(found: re.Match[str]) -> str:
        name = found[1]
        short = name.rpartition(".")[2]
        target = next((each for each in (name, f"privatest.{name}") if each in anchors), None)
        if target is None and name == short and len(last.get(short, ())) == 1:
            target = last[short][0]
        words = f"<code>{short if target else name}</code>"
        return f'<a href="#{target}">{words}</a>' if target else words

    return _ROLE.sub(link, html)


def on_page_content(html: str, **_: Any) -> str:
    """Do it; MkDocs calls this for every page."""
    return linked(html)
