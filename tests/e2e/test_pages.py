"""The documentation works as printed: every block of every page runs, and prints what it says.

Noise is secret, so numbers differ from run to run; words may not. Verdicts are words, so noise is
seeded here.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.e2e.page_files import fill
from tests.seeding import seed_everything
from tools.pages import ROOT, RUN, Block, Printed, agrees, blocks, run, working_folder, written

LANGUAGES = {*RUN, "text", "toml", "json", "sql", "nginx", "r", ""}
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
# these are run by tests that look at what they compute, too
OWN = {
    "docs/how-to/client.md": "tests/unit/test_client.py",
    "docs/tutorials/synthetic-data.md": "tests/e2e/test_tutorial_synthetic.py",
    "docs/tutorials/your-own-statistic.md": "tests/e2e/test_tutorials.py",
}
# its commands take minutes to hours; tests of the experiments run short ones
LONG = ("docs/gallery/",)


def runs(block: Block) -> bool:
    return block.language in RUN and not block.not_run


@pytest.mark.parametrize(
    "page",
    [
        name
        for name, text in PAGES.items()
        if name not in OWN and not name.startswith(LONG) and any(map(runs, blocks(text)))
    ],
)
def test_every_block_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    seed_everything(monkeypatch, 1)
    with working_folder(tmp_path, fill):
        found = run(PAGES[page], page)
    for printed in found.printed:
        assert agrees(printed), f"{page} says\n{printed.expected}\nbut it is\n{printed.real}"


def test_a_frame_hides_the_group_and_a_t_test_says_that_it_does_not(tmp_path, monkeypatch):
    seed_everything(monkeypatch, 1)
    page = PAGES["docs/how-to/your-own-file.md"]
    with working_folder(tmp_path, fill):
        names = run(page[page.index("## The same in Python") :]).names
    assert "only the total is public" in names["result"].guarantee
    assert "group sizes are public" in names["shift"].guarantee


def test_pages_with_tests_of_their_own_have_them():
    for page, test in OWN.items():
        name = page.removeprefix("docs/")
        assert name in (ROOT / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_blocks_have_a_language_that_is_known(page):
    """So that none is forgotten, and descriptions of data can be read."""
    for block in blocks(PAGES[page]):
        assert block.language in LANGUAGES
        if block.language == "toml":
            tomllib.loads(block.text)
        if block.language == "json":
            json.loads(block.text)


@pytest.mark.parametrize("page", PAGES)
def test_a_block_that_is_not_run_says_why(page):
    for block in blocks(PAGES[page]):
        assert not block.not_run or len(block.not_run.split()) >= 2


# --- the runner itself ------------------------------------------------------------------------

SMALL = """
```python
print("one of", 3)
```

```text
one of 3
```

<!-- not run: it fails -->
```python
raise ValueError
```

<!-- file: note.toml -->
```toml
a = 1
```

```console
$ cat note.toml
a = 1
```
"""


def test_a_page_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run(SMALL)
    assert [agrees(printed) for printed in found.printed] == [True, True]
    assert Path("note.toml").read_text() == "a = 1\n"


def test_what_was_printed_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changed = SMALL.replace("\none of 3", "\nnothing").replace("\na = 1\n```\n", "\na = 12\n```\n")
    assert written(changed, run(changed)) == changed.replace("\nnothing", "\none of 3")


@pytest.mark.parametrize(
    ("expected", "real", "same"),
    [
        ("p = 0.5", "p = 0.0001", True),
        ("p = 0.5", "q = 0.5", False),
        ("first…", "first, and more", True),
        ("first", "first, and more", False),
        ("a\n…\nz 1", "a\nb\nc\nz 2", True),
    ],
)
def test_words_are_compared(expected, real, same):
    assert agrees(Printed(expected, real, (0, 0))) is same


def test_another_program_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="mark its block"):
        run("```sh\nrm -r nothing\n```\n")
