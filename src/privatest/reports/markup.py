"""HTML that cannot be written wrongly: text is escaped unless it was made here; and the page."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["Markup", "code", "listed", "page", "section", "table", "tag"]

_EMPTY = {"img", "meta", "source"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str) -> Markup:
    """Return an element; children that are no markup, and all attributes, are escaped.

    A name that is a word of Python ends in an underscore (``class_``); another underscore is a
    hyphen.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
    )
    if name in _EMPTY:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Return parts one after the other; those that are no markup are escaped."""
    return Markup("".join(p if isinstance(p, Markup) else html.escape(p) for p in parts))


def section(identity: str, title: str, *children: str) -> Markup:
    """Return a part of the page with its heading."""
    heading = tag("h2", title, id=identity)
    return tag("section", heading, *children, aria_labelledby=identity)


def table(caption: str, rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> Markup:
    """Return a table; the first cell of each row is its heading."""
    top = (
        [tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))] if head else []
    )
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest))
        for first, *rest in rows
    ]
    inside = tag("table", tag("caption", caption), *top, tag("tbody", *body))
    # wide tables scroll by themselves; a keyboard can reach them
    return tag("div", inside, class_="wide", tabindex="0", role="region", aria_label=caption)


def code(text: str, name: str) -> Markup:
    """Return lines to be copied."""
    return tag("pre", tag("code", text), tabindex="0", role="region", aria_label=name)


def listed(items: Iterable[str]) -> Markup:
    """Return a list."""
    return tag("ol", *(tag("li", item) for item in items))


def page(title: str, *children: str) -> str:
    """Return a whole page that needs nothing else: no script may run, nothing is fetched."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # a page that is opened from a disk has no header to say this
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        Markup(f"<style>{_STYLE}</style>"),
    )
    body = tag("body", tag("main", *children))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root{--ink:#1c2024;--soft:#565c63;--paper:#fff;--line:#d6d9dd;--quiet:#f3f5f7;--mark:#0062a0}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#e8eaed;--soft:#aab0b7;--paper:#15181c;--line:#3a4048;--quiet:#1e2328;--mark:#7cc4f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
main{max-width:46rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.5rem 0;overflow-wrap:anywhere}
.soft{color:var(--soft)}
.answer{font-size:1.2rem;border-left:4px solid var(--mark);
padding:.2rem 0 .2rem .8rem;margin:1rem 0}
.warning{border:2px solid #D55E00;padding:.5rem .8rem;font-weight:bold}
.formula{text-align:center;font-size:1.1rem;font-family:Georgia,serif;margin:1rem 0}
table{border-collapse:collapse;width:100%}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;
border-bottom:1px solid var(--line)}
th[scope=row]{font-weight:500;color:var(--soft);max-width:14rem;overflow-wrap:anywhere}
td{font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.wide{overflow-x:auto;margin:.8rem 0}
pre{background:var(--quiet);border:1px solid var(--line);border-radius:4px;padding:.7rem;
white-space:pre-wrap;overflow-wrap:anywhere;font:.85rem/1.45 ui-monospace,monospace}
figure{margin:1rem 0}
img{width:100%;height:auto;max-height:27rem;object-fit:contain;object-position:left;display:block}
figcaption{color:var(--soft);font-size:.9rem}
a{color:var(--mark)}
ol{padding-left:1.4rem;overflow-wrap:anywhere}
details summary{cursor:pointer}
@media print{
@page{margin:18mm}
main{max-width:none;padding:0}
body{font-size:11pt}
h2,h3,caption{break-after:avoid}
figure,tr,.answer,.formula{break-inside:avoid}
.wide{overflow:visible}
details{display:none}
}
"""
