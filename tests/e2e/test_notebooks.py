"""The notebooks of the tutorials are those of the pages, and run from top to bottom in Jupyter."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tools.notebooks import notebook, pages, rendered
from tools.pages import ROOT, blocks

PAGES = {page.stem: page for page in pages()}
LONG = ["synthetic-data", "your-own-statistic"]


def run(*names: str) -> list[str]:
    """Run notebooks, and return what was said of them."""
    command = [sys.executable, "-m", "tools.notebooks", "--run", *names]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    # not those of whoever runs the tests
    environment = os.environ | {"PYTHONPATH": path, "JUPYTER_PLATFORM_DIRS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", PAGES)
def test_notebooks_are_up_to_date(name):
    written = PAGES[name].with_suffix(".ipynb").read_text(encoding="utf-8")
    assert written == rendered(PAGES[name]), "run: python -m tools.notebooks"


@pytest.mark.parametrize("name", PAGES)
def test_cells_are_the_python_of_the_page(name):
    text = PAGES[name].read_text(encoding="utf-8")
    cells = [each.source for each in notebook(PAGES[name]).cells if each.cell_type == "code"]
    python = [each.text for each in blocks(text) if each.language == "python"]
    assert cells == [each.rstrip("\n") for each in python]
    assert f"({name}.ipynb)" in text


@pytest.mark.slow
def test_notebooks_run():
    names = sorted({*PAGES} - {*LONG})
    said = run(*names)
    assert [line.partition(":")[0] for line in said] == names
    assert all("0 cells" not in line for line in said)


@pytest.mark.nightly
@pytest.mark.slow
def test_long_notebooks_run():
    assert len(run(*LONG)) == len(LONG)
