"""What the commands print, and where: results to standard output, the rest to standard error."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from privatest.core.documents import JSON_FORMAT
from privatest.core.errors import PrivatestError
from privatest.core.validation import printable

if TYPE_CHECKING:
    from rich.console import Console

    from privatest.requests.results import Result

__all__ = [
    "OutputError",
    "Page",
    "flush",
    "make_forgiving",
    "paid",
    "passes",
    "print_error",
    "print_json",
    "print_note",
    "print_result",
    "print_text",
    "progress",
    "silence",
    "telling",
    "watched",
    "working",
]

_READABLE = 88  # columns; longer lines are hard to read


class OutputError(OSError):
    """Standard output cannot be written: a disk is full, for example."""


@contextmanager
def _writing() -> Iterator[None]:
    """Tell a failure to print from that of another file."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read this has seen enough
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from None


@contextmanager
def paid(again: str) -> Iterator[None]:
    """Print what was paid for in the block; a failure says how it is seen ``again``."""
    try:
        yield
        flush()
    except BrokenPipeError:
        raise
    except OutputError as error:
        reason = f"The answer could not be printed: {error.strerror}."
        raise PrivatestError(f"{reason} {again}") from None
    except Exception as error:
        error.add_note(again)
        raise


def print_error(*sentences: str) -> None:
    """Print one line on standard error."""
    print_note(printable(" ".join(["error:", *" ".join(sentences).split()])))


def print_note(message: str) -> None:
    """Print what is not part of the result, so that standard output holds the result alone."""
    with suppress(OSError):  # nobody listens; that must not hide what happened
        if sys.stderr is not None:
            print(message, file=sys.stderr, flush=True)


def print_json(document: Mapping[str, Any]) -> None:
    """Print the one JSON document of a command; docs/reference/json.md says what it holds."""
    versioned = {"format": JSON_FORMAT, **document}
    print_text(json.dumps(versioned, indent=2, allow_nan=False))


def print_text(text: str) -> None:
    """Print text as it is."""
    with _writing():
        print(text)


def working(what: str) -> AbstractContextManager[object]:
    """Show that something is going on, if somebody is watching."""
    return _console(stderr=True).status(what) if watched() else nullcontext()


@contextmanager
def telling(what: str) -> Iterator[Callable[[str], None] | None]:
    """Show in one line what is going on; gives what the next thing is told to, as ``working``."""
    if not watched():
        yield None
        return
    with _console(stderr=True).status(what) as line:
        yield line.update


def watched() -> bool:
    """Return whether somebody looks at standard error."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def progress(what: str, *, counted: bool) -> Iterator[Callable[[float], None] | None]:
    """Show work: a bar where its share can be told, else that something is going on.

    Gives what the finished share, from 0 to 1, is told to; None where nobody wants to know.
    """
    if not counted or not watched():
        with working(f"{what} ..."):
            yield None
        return
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def passes(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show how far passes over rows have come, how fast, and how long one will take yet.

    Gives the callback for the rows done and all rows; None if no terminal shows it.
    """
    if not watched():
        yield None
        return
    from rich import progress as bars  # noqa: PLC0415

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TextColumn("{task.fields[rate]}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, rate="")

        def told(done: int, total: int) -> None:
            if done < bar.tasks[0].completed:  # another pass
                bar.reset(task)
            speed = bar.tasks[0].speed
            rate = f"{speed / 1e6:.2g} million rows/s" if speed else ""
            bar.update(task, completed=done, total=total, rate=rate)

        yield told


def print_result(
    result: Result,
    *,
    compared: str,
    as_json: bool = False,
    label: str = "compared",
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print a result for people, or as the one JSON document on standard output.

    ``more`` is what the document has besides: what was asked, and the ledger's lines.
    """
    from privatest.core.results import Decision  # noqa: PLC0415

    if as_json:
        from privatest.requests.results import result_document  # noqa: PLC0415

        print_json(result_document(result, compared, label) | dict(more or {}))
        return
    page = Page()
    if not isinstance(result, Decision):
        for line in str(result).splitlines():
            page.line(line)
        return
    page.line(result.verdict, style="bold")
    for name, text in ({label: compared} | result.facts()).items():
        page.line(f"  {name:<9} {text}")
    for line in result.estimate_lines():
        page.line(f"  {line}")
    page.line(result.guarantee)
    if result.adjacency == "row":
        total = sum(result.sizes.values())
        page.line(f"Group sizes are private; only the total of {total:,} rows is shown.")
    if result.noise_note:
        page.line(result.noise_note)


class Page:
    """Standard output, for people."""

    def __init__(self) -> None:
        """Find out how wide the page is."""
        self._console = _console()
        self._console.width = min(self._console.width, _READABLE)

    def line(self, text: str, *, style: str = "") -> None:
        """Print one line; a terminal wraps it where it is too long, a file keeps it whole."""
        self._print(text, style=style, soft_wrap=not self._console.is_terminal)

    def _print(self, *text: str, **how: Any) -> None:
        with _writing():
            self._console.print(*text, **how)

    def section(self, title: str, *paragraphs: str) -> None:
        """Print a title and indented paragraphs, wrapped at words."""
        self._print(title, style="bold")
        for paragraph in paragraphs:
            wrapped = textwrap.fill(paragraph, self._console.width - 2)
            self._print(textwrap.indent(wrapped, "  "))
        self._print()

    def commands(self, title: str, *commands: str) -> None:
        """Print a title and lines that can be copied: they are never wrapped."""
        self._print(title, style="bold")
        for command in commands:
            self._print(f"  {command}", soft_wrap=True)
        self._print()


def _console(*, stderr: bool = False) -> Console:
    """Return a console that prints text as it is: names of columns are not markup."""
    from rich.console import Console  # noqa: PLC0415

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


_HANDLER = "privatest.plain"
_PLAIN = {
    "█": "#",
    "░": ".",
    "±": "+-",
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "×": "x",
    "ε": "epsilon",
    "δ": "delta",
}


def make_forgiving() -> None:
    """Let both streams write what they can show in place of what they cannot."""
    codecs.register_error(_HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def flush() -> None:
    """Write out what is buffered now, while a failure can still be told."""
    if sys.stdout is not None:
        with _writing():
            sys.stdout.flush()


def silence() -> None:
    """Turn standard output away: nobody reads it, and Python would complain at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Spell a character in ASCII: our own signs as people type them, others by their number."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c) or _escaped(c) for c in missing), error.end


def _escaped(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode("ascii")
