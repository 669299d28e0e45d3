"""Run the code of the documentation: every block of a page, top to bottom, and what it prints.

``python -m tools.pages README.md docs/tutorials/first-test.md`` runs these pages and writes what
their commands and programs print into the blocks that follow them. tests/e2e/test_pages.py runs
all pages, and compares words.

What a block is follows from its language, and from a comment on the line before it:

- ``python`` is run in one namespace for the page; ``text`` after it is what it printed.
- ``console`` has commands after ``$``, each with what it printed. ``sh`` has commands only.
- ``<!-- not run: why -->`` leaves a block out, with what follows it. Nothing else is left out.
- ``<!-- file: NAME -->`` writes a block to a file that later blocks use.
- In what was printed, … stands for anything.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>not run|file): (?P<words>.*?) -->\n\n?)?"
    r"^```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^```$",
    re.M | re.S,
)
_ASKED = re.compile(r"^\$ (.*)$\n?((?:^(?!\$ ).*$\n?)*)", re.M)
_NUMBER = re.compile(r"-?\d(?:[\d,]*\d)?(\.\d+)?(e[+-]?\d+)?")
RUN = ("python", "console", "sh")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language and text, and where the text is on the page."""

    language: str
    text: str
    span: tuple[int, int]
    not_run: str = ""  # the reason
    file: str = ""


@dataclass(frozen=True, slots=True)
class Printed:
    """What a page says that something prints, what it printed, and where the page says so."""

    expected: str
    real: str
    span: tuple[int, int]


@dataclass(slots=True)
class Run:
    """What came of a page."""

    names: dict[str, Any] = field(default_factory=dict)
    printed: list[Printed] = field(default_factory=list)


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [
        Block(
            found["language"],
            found["text"],
            found.span("text"),
            found["words"] if found["mark"] == "not run" else "",
            found["words"] if found["mark"] == "file" else "",
        )
        for found in _BLOCK.finditer(text)
    ]


def run(text: str, name: str = "page") -> Run:
    """Run the blocks of a page in the folder that we are in."""
    result, printed = Run(), None
    for block in blocks(text):
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.not_run:
            printed = None
        elif block.language == "python":
            printed = _python(block.text, name, result.names)
        elif block.language == "sh":
            printed = "".join(_command(line) for line in _lines(block.text))
        elif block.language == "console":
            printed = None
            result.printed += _console(block)
        elif block.language == "text" and printed is not None:
            result.printed.append(Printed(block.text, printed, block.span))
            printed = None
    return result


def _python(text: str, name: str, names: dict[str, Any]) -> str:
    with _caught() as output:
        exec(compile(text, name, "exec"), names)
    return output.getvalue()


def _lines(text: str) -> list[str]:
    joined = text.replace("\\\n", "")
    return [line for line in joined.splitlines() if line and not line.startswith("#")]


def _console(block: Block) -> Iterator[Printed]:
    # a line that goes on is joined for the shell, and keeps its length for the spans
    text = re.sub(r"\\\n( *)", lambda found: " " * len(found[0]), block.text)
    for found in _ASKED.finditer(text):
        start, end = found.span(2)
        expected = block.text[start:end]
        real = _command(found[1], expected)
        yield Printed(expected, real, (block.span[0] + start, block.span[0] + end))


def _command(line: str, expected: str = "") -> str:
    """Run a command of privatest in this process, with < and > of a shell.

    It may fail only where the page shows its error.
    """
    from privatest.cli import main  # noqa: PLC0415 - the page is parsed without

    words = shlex.split(line, comments=True)
    if words[0] == "cat":
        return Path(words[1]).read_text(encoding="utf-8")
    if words[0] != "privatest":
        raise ValueError(f"{line!r} is no command of privatest: mark its block with the reason")
    arguments, given, to = _redirected(words[1:])
    with _caught() as output, contextlib.ExitStack() as stack:
        if given:
            stack.enter_context(_input(given))
        code = main(arguments)
    if code and not expected.startswith("error:"):
        raise AssertionError(f"{line!r} failed:\n{output.getvalue()}")
    if to:
        Path(to).write_text(output.getvalue(), encoding="utf-8")
        return ""
    return output.getvalue()


def _redirected(words: list[str]) -> tuple[list[str], str, str]:
    where = {"<": "", ">": ""}
    for sign in where:
        if sign in words:
            place = words.index(sign)
            where[sign] = words[place + 1]
            words = words[:place] + words[place + 2 :]
    return words, where["<"], where[">"]


@contextlib.contextmanager
def _input(path: str) -> Iterator[None]:
    kept, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(Path(path).read_bytes()))
    try:
        yield
    finally:
        sys.stdin = kept


@contextlib.contextmanager
def _caught() -> Iterator[io.StringIO]:
    """Catch both streams in one, as a terminal shows them."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        yield output


def agrees(printed: Printed) -> bool:
    """Return whether words are the same: numbers differ from run to run."""
    pattern = ".*".join(map(re.escape, shape_of(printed.expected).split("…")))
    return re.fullmatch(pattern, shape_of(printed.real), re.S) is not None


def shape_of(text: str) -> str:
    """Return words without numbers; a number of another length moves the spaces beside it."""
    return re.sub(r"\s+", " ", _NUMBER.sub("#", text)).strip()


def written(text: str, result: Run) -> str:
    """Return a page with what was printed; where it says …, it stays as it is."""
    for printed in sorted(result.printed, key=lambda each: each.span, reverse=True):
        if "…" not in printed.expected:
            text = text[: printed.span[0]] + printed.real + text[printed.span[1] :]
    return text


@contextlib.contextmanager
def working_folder(folder: Path, fill: Callable[[Path], None]) -> Iterator[None]:
    """Be in a folder with the files that pages take for granted, and a ledger of its own."""
    (folder / "src").symlink_to(ROOT / "src")
    fill(folder)
    kept, before = dict(os.environ), Path.cwd()
    os.environ |= {
        "PRIVATEST_LEDGER": str(folder / "ledger" / "ledger.db"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
        "COLUMNS": "100",
    }
    (folder / "ledger").mkdir()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ |= kept


def main() -> None:
    """Write what pages print into them."""
    from tests.e2e.page_files import fill  # noqa: PLC0415 - not needed to read pages

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("pages", nargs="+", type=Path, help="Markdown files.")
    for page in parser.parse_args().pages:
        path = page.resolve()
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, working_folder(Path(folder), fill):
            path.write_text(written(text, run(text, page.name)), encoding="utf-8")


if __name__ == "__main__":
    main()
