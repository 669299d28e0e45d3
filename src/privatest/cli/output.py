"""What commands print and write: results to standard output, the rest to standard error; files."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from privatest.core.documents import JSON_FORMAT, check_writable, write_text
from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.validation import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from privatest.data.reading import Place
    from privatest.requests.request import Request
    from privatest.requests.results import Result

_READABLE = 88  # columns; longer lines are hard to read
PICTURES = (".png", ".svg", ".pdf")
REPORTS = (".html", ".htm")


class OutputError(OSError):
    """Standard output cannot be written: a disk is full, for example."""


@contextmanager
def _writing() -> Iterator[None]:
    """Raise a failure to print as OutputError."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader stopped reading
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from None


@contextmanager
def paid(again: str) -> Iterator[None]:
    """Print what was paid for in the block; a failure says how to see it ``again``."""
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
    """Print on standard error what is not part of the result."""
    with suppress(OSError):  # nobody listens; that must not hide what happened
        if sys.stderr is not None:
            print(message, file=sys.stderr, flush=True)


def print_json(document: Mapping[str, Any]) -> None:
    """Print the one JSON document of a command; docs/reference/json.md says what it holds."""
    versioned = {"format": JSON_FORMAT, **document}
    print_text(json.dumps(versioned, indent=2, allow_nan=False))


def print_either(as_json: bool, document: Mapping[str, Any], *lines: str) -> None:
    """Print a JSON document, or lines for people."""
    if as_json:
        print_json(document)
        return
    page = Page()
    for line in lines:
        page.line(line)


def print_text(text: str) -> None:
    """Print text as it is."""
    with _writing():
        print(text)


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show a message during work, on a terminal; gives a function that replaces it."""
    if not watched():
        yield lambda _: None
        return
    with _console(stderr=True).status(what) as status:
        yield status.update


def watched() -> bool:
    """Return whether standard error is a terminal."""
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
        page.text(result)
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
    """Standard output for people."""

    def __init__(self) -> None:
        """Limit the width."""
        self._console = _console()
        self._console.width = min(self._console.width, _READABLE)

    def line(self, text: str, *, style: str = "") -> None:
        """Print one line; a terminal wraps it where it is too long, a file keeps it whole."""
        self._print(text, style=style, soft_wrap=not self._console.is_terminal)

    def text(self, shown: object) -> None:
        """Print each line of a text."""
        for line in str(shown).splitlines():
            self.line(line)

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
    """Let both streams replace characters that they cannot show."""
    codecs.register_error(_HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def flush() -> None:
    """Flush standard output, while a failure can still be reported."""
    if sys.stdout is not None:
        with _writing():
            sys.stdout.flush()


def silence() -> None:
    """Send standard output nowhere, so that Python does not complain when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Write characters in ASCII: known signs as people type them, others escaped."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c) or _escaped(c) for c in missing), error.end


def _escaped(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode("ascii")


# --- files ---------------------------------------------------------------------------------------


def check_new(path: Path, option: str, force: bool) -> None:
    """Refuse to overwrite: a file that is lost has been paid for."""
    try:
        exists = path.exists()
    except OSError as error:  # a name that is too long for the file system
        raise ParameterError(f"{option} cannot be written: {error.strerror}.") from None
    if exists and not force:
        raise ParameterError(f"{option} must be a new file: {str(path)!r} exists; pass --force.")


def write_file(path: Path, text: str) -> None:
    """Write a text file in one step, or say why it cannot be written."""
    try:
        write_text(path, text)
    except OSError as error:
        raise ParameterError(f"{path} cannot be written: {error.strerror}.") from None


def read_json(path: Path, expected: str) -> dict[str, Any]:
    """Read a JSON object, or say that it is not what was ``expected``."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise ParameterError(f"{path} is not a JSON document.") from None
    if not isinstance(document, dict):
        raise ParameterError(f"{path} is not {expected}.")
    return document


def save_paid(save: Callable[[Path], None], output: Path) -> Path:
    """Write what was paid for, and return where: in a temporary folder if there is no other way."""
    try:
        save(output)
    except (ParameterError, OSError):  # a disk that is full now, though it could be written before
        place = Path(mkdtemp(prefix="privatest-")) / output.name
        save(place)
        return place
    return output


def misplaced(place: Path, output: Path) -> None:
    """Say where a file is, if not where it should be."""
    if place != output:
        raise ParameterError(
            f"{output} could not be written; what you paid for is in {place}: move it from there."
        )


def check_picture(file: Path, request: Request | None = None) -> None:
    """Refuse what cannot be drawn, before anything is spent."""
    if file.suffix not in PICTURES:
        raise ParameterError(f"--plot must end in {', '.join(PICTURES)}.")
    if request is not None and not (
        request.entry.drawn and request.options.get("release") != "decision"
    ):
        raise ParameterError(
            "--plot needs more than a decision: there is nothing to draw. Choose another method, "
            "or leave out --release decision."
        )
    if find_spec("matplotlib") is None:
        raise ParameterError('--plot needs matplotlib: pip install "privatest[plot]".')


def draw(result: Any, file: Path) -> None:
    """Draw what was released."""
    from privatest.display.style import plain_text  # noqa: PLC0415

    with working("Drawing ..."), plain_text():
        drawn = result.plot()
        save_picture(getattr(drawn, "figure", drawn), file, dpi=150)


def save_picture(figure: Figure, file: Path, **settings: Any) -> None:
    """Write a picture; if that fails the answer has been printed all the same."""
    try:
        figure.savefig(file, **settings)
    except OSError as error:
        raise ParameterError(f"{file.name} cannot be written: {error.strerror}.") from None


def check_report(file: Path, read: Sequence[Place] = (), *, option: str = "--report") -> None:
    """Refuse a page that cannot be written, before anything is spent."""
    if file.suffix.lower() not in REPORTS:
        raise ParameterError(f"{option} must end in .html.")
    if any(place.same(file) for place in read):
        raise ParameterError(f"{option} must not be the private data itself.")
    try:
        check_writable(file)
    except OSError as error:
        raise ParameterError(f"{option} {file} cannot be written: {error.strerror}.") from None


def write_report(result: Any, file: Path, about: Mapping[str, Any] | None = None) -> None:
    """Write a page about an answer, which has been printed: a failure loses nothing."""
    from privatest.display.reports import report  # noqa: PLC0415 - slow to import

    with working("Writing the report ..."):
        report(result, file, about=about)
