"""Write the Python reference: public names on the page of their family, and the table of all pages.

Run ``python -m tools.api_reference``. A page of docs/reference/api that begins with ``modules:``
lists every public function and class that those modules define, in their order; what follows its
list is written by hand. A test fails when a page is out of date.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import yaml

import privatest

DOCS = Path(__file__).resolve().parent.parent / "docs" / "reference"
INDEX = DOCS / "api.md"
PAGES = [*(DOCS / "api").glob("*.md")]
BEGIN, END = "<!-- written by `python -m tools.api_reference` -->\n", "<!-- end -->\n"
ENTRY = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def render(page: Path) -> str:
    """Return a page of a family with the list of its names replaced."""
    text = page.read_text(encoding="utf-8")
    if not text.startswith("---\nmodules:"):
        return text
    modules = yaml.safe_load(text.split("---\n")[1])["modules"]
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    entries = "".join(f"\n::: privatest.{name}\n" for module in modules for name in names(module))
    return f"{before}{BEGIN}{entries}\n{END}{after}"


def names(module: str) -> list[str]:
    """Return the public names that a module defines, in the order of their definitions."""
    defined = import_module(f"privatest.{module}")
    found = [
        (inspect.getsourcelines(inspect.unwrap(own))[1], name)
        for name in privatest.__all__
        if (own := getattr(defined, name, None)) is not None
        and inspect.unwrap(own).__module__ == f"privatest.{module}"
    ]
    return [name for _, name in sorted(found)]


def index() -> str:
    """Return the table of pages, in the order of the navigation."""
    text = INDEX.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    settings = (DOCS.parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [DOCS / name for name in re.findall(r"reference/(api/[\w-]+\.md)", settings)]
    lines = ["| page | names |\n|---|---|\n"]
    for page in pages:
        body = page.read_text(encoding="utf-8")
        title = re.search(r"^# (.*)$", body, re.MULTILINE)[1]  # type: ignore[index]
        found = ", ".join(f"[`{_short(name)}`][{name}]" for name in ENTRY.findall(body))
        lines.append(f"| [{title}](api/{page.name}) | {found} |\n")
    return f"{before}{BEGIN}{''.join(lines)}{END}{after}"


def _short(name: str) -> str:
    """Return a name without its package; of a module that is documented whole, its last two."""
    *_, parent, last = name.split(".")
    return (
        last
        if last[0].isupper() or parent not in ("core", "ledger", "mechanisms")
        else f"{parent}.{last}"
    )


def main() -> None:
    """Write all pages, or with ``--check`` name those that are out of date."""
    written = {page: render(page) for page in PAGES}
    stale = [page for page, text in written.items() if page.read_text(encoding="utf-8") != text]
    if "--check" not in sys.argv:
        for page in stale:
            page.write_text(written[page], encoding="utf-8")
    text = index()
    if INDEX.read_text(encoding="utf-8") != text:
        stale.append(INDEX)
        if "--check" not in sys.argv:
            INDEX.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"out of date: {', '.join(page.name for page in stale)}; run make fix")


if __name__ == "__main__":
    main()
