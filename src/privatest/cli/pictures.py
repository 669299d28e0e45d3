"""``--plot``: pictures of what was released."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.core.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privatest.core.results import Decision

__all__ = ["PICTURES", "check_picture", "draw", "save_picture"]

PICTURES = (".png", ".svg", ".pdf")
_DRAWN = ("me", "scf", "hotelling", "ttest")


def check_picture(file: Path, method: str | None = None) -> None:
    """Refuse what cannot be drawn, before anything is spent."""
    if file.suffix not in PICTURES:
        raise ParameterError(f"--plot must end in {', '.join(PICTURES)}.")
    if method is not None and method not in _DRAWN:
        raise ParameterError(
            f"--plot goes with --method {', '.join(_DRAWN)}: others release no estimates."
        )
    if find_spec("matplotlib") is None:
        raise ParameterError('--plot needs matplotlib: pip install "privatest[plot]".')


def draw(result: Decision, file: Path) -> None:
    """Draw the released estimates of a test, if it has some."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    from privatest.core.results import Outcome  # noqa: PLC0415
    from privatest.plots.differences import plot_differences  # noqa: PLC0415
    from privatest.plots.features import plot_features  # noqa: PLC0415

    if not isinstance(result, Outcome):
        return  # check_picture lets no such method pass
    rows = int(np.size(result.estimates["difference"]))
    figure = Figure(figsize=(7, 1.6 + 0.3 * min(rows, 20)), layout="constrained")
    plot = plot_differences if "lower" in result.estimates else plot_features
    plot(result, axes=figure.subplots())
    save_picture(figure, file, dpi=150)


def save_picture(figure: Figure, file: Path, **settings: Any) -> None:
    """Write a picture; if that fails the answer has been printed all the same."""
    try:
        figure.savefig(file, **settings)
    except OSError as error:
        raise ParameterError(f"{file.name} cannot be written: {error.strerror}.") from None
