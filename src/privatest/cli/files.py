"""Files that commands write: never over another one, never lost once paid for; and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from privatest.cli.output import working
from privatest.core.documents import check_writable
from privatest.core.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privatest.data.place import Place
    from privatest.requests.request import Request

__all__ = [
    "PICTURES",
    "check_new",
    "check_picture",
    "check_report",
    "draw",
    "misplaced",
    "save_paid",
    "save_picture",
    "write_report",
]


def check_new(path: Path, option: str, force: bool) -> None:
    """Refuse to overwrite: a file that is lost has been paid for."""
    try:
        exists = path.exists()
    except OSError as error:  # a name that is too long for the file system
        raise ParameterError(f"{option} cannot be written: {error.strerror}.") from None
    if exists and not force:
        raise ParameterError(f"{option} must be a new file: {str(path)!r} exists; pass --force.")


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


PICTURES = (".png", ".svg", ".pdf")
REPORTS = (".html", ".htm")


def check_picture(file: Path, request: Request | None = None) -> None:
    """Refuse what cannot be drawn, before anything is spent."""
    if file.suffix not in PICTURES:
        raise ParameterError(f"--plot must end in {', '.join(PICTURES)}.")
    if request is not None:
        _check_method(request)
    if find_spec("matplotlib") is None:
        raise ParameterError('--plot needs matplotlib: pip install "privatest[plot]".')


def _check_method(request: Request) -> None:
    if not request.entry.drawn or request.options.get("release") == "decision":
        raise ParameterError(
            "--plot needs more than a decision: there is nothing to draw. Choose another method, "
            "or leave out --release decision."
        )


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
