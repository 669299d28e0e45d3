"""A hook of MkDocs: roles of docstrings, such as :func:, become links on the reference pages.

Docstrings name other functions in Sphinx's syntax, which MkDocs would print literally. Names on
other pages are left to the autorefs plugin, which knows the anchors of all pages.
"""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(
    r":(?:attr|class|data|exc|func|meth|mod):<code>~?([\w.]+)</code>"  # what Markdown makes of it
)
_ANCHOR = re.compile(r'id="(privatest[\w.]*)"')


def linked(html: str) -> str:
    """Return a page whose roles are links to what the reference documents, else only names."""
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
        if target is not None:
            return f'<a href="#{target}"><code>{short}</code></a>'
        if short in last or found[0].startswith((":meth:", ":attr:", ":mod:")):
            return f"<code>{name}</code>"  # ambiguous, or not documented on its own
        full = name if name.startswith("privatest.") else f"privatest.{name}"
        return f'<autoref identifier="{full}" optional><code>{short}</code></autoref>'

    return _ROLE.sub(link, html)


def on_page_content(html: str, **_: Any) -> str:
    """Do it; MkDocs calls this for every page."""
    return linked(html)
