"""Files that commands write: never over another one, and never lost once they are paid for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

from privatest.core.errors import ParameterError

__all__ = ["check_new", "misplaced", "save_paid"]


def check_new(path: Path, option: str, force: bool) -> None:
    """Refuse to overwrite: a file that is lost has been paid for."""
    if path.exists() and not force:
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
