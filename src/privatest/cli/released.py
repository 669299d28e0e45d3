"""What ``privatest release`` and ``privatest query`` share: facts, progress and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from privatest.cli.output import watched, working
from privatest.cli.pictures import save_picture
from privatest.core.errors import ParameterError

if TYPE_CHECKING:
    from privatest.synthetic import SyntheticData

__all__ = ["check_new", "draw", "facts", "misplaced", "progress", "save_paid"]


def facts(made: SyntheticData) -> dict[str, Any]:
    """Return what is public about a release, for JSON documents and the ledger."""
    public = made.facts
    kernel = public.kernel
    return {
        "rows": len(made),
        "columns": list(made.columns),
        "n": public.n,
        "epsilon": float(public.spent.epsilon),
        "delta": float(public.spent.delta),
        "adjacency": "one",
        "unit": public.unit,
        "method": public.method,
        "bandwidth": None if kernel is None else kernel.bandwidth,
        "parameters": dict(public.parameters),
        "simulated": public.simulated,
    }


@contextmanager
def progress(what: str, counted: bool) -> Iterator[Callable[[float], None] | None]:
    """Show work: a bar where its share can be told, else that something is going on.

    Gives what the finished share, from 0 to 1, is told to; None where nobody wants to know.
    """
    if not counted or not watched():
        with working(f"{what} ..."):
            yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def draw(made: SyntheticData, path: Path) -> None:
    """Write the picture of a release."""
    from privatest.plots.marginals import plot_marginals  # noqa: PLC0415

    with working("Drawing ..."):
        save_picture(plot_marginals(made), path)


def check_new(path: Path, option: str, force: bool) -> None:
    """Refuse to overwrite: a release that is lost has been paid for."""
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
