"""Write the tutorials as notebooks: python -m tools.notebooks [--run NAME ...]

A tutorial is a Markdown page (docs/tutorials). Jupytext makes its Python blocks into cells and
leaves the rest as text. Notebooks have no outputs: the page shows them, and
tests/e2e/test_notebooks.py runs every notebook.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import jupytext

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def notebook(page: Path) -> Any:
    """Return a page as a notebook; the same page gives the same notebook."""
    # commands for a terminal stay text: Jupytext would make cells of them
    text = page.read_text(encoding="utf-8").replace("```sh\n", "```console\n")
    made = jupytext.reads(text, fmt="md")
    made.metadata = {"kernelspec": KERNEL}
    for index, cell in enumerate(made.cells):
        cell.id, cell.metadata = f"cell-{index}", {}
    return made


def rendered(page: Path) -> str:
    """Return the file of a page's notebook."""
    return str(jupytext.writes(notebook(page), fmt="ipynb")).rstrip("\n") + "\n"


def pages() -> list[Path]:
    """Return the tutorials."""
    return sorted(FOLDER.glob("*.md"))


def execute(page: Path) -> int:
    """Run a notebook in Jupyter, in a folder of its own, and return how many cells printed."""
    from nbclient import NotebookClient  # noqa: PLC0415 - not needed to write

    made = notebook(page)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PRIVATEST_LEDGER"] = f"{folder}/ledger.db"
        NotebookClient(made, timeout=300, resources={"metadata": {"path": folder}}).execute()
    return sum(bool(cell.get("outputs")) for cell in made.cells)


def main() -> None:
    """Write all notebooks, or run some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", nargs="+", metavar="NAME", default=[], help="run these instead")
    names = parser.parse_args().run
    for name in names:
        print(f"{name}: {execute(FOLDER / f'{name}.md')} cells with output")
    for page in pages() if not names else ():
        page.with_suffix(".ipynb").write_text(rendered(page), encoding="utf-8")


if __name__ == "__main__":
    main()
