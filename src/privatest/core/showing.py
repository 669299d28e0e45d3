"""Pictures and reports of a result: what draws and writes them is found when somebody asks.

Both are rows below this one, which imports neither: they are named here as the catalogue names the
functions of tests, and loaded at the first use.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Shown"]

_PLOT = "plots.drawing"
_REPORT = "reports.writing"


class Shown:
    """Base of what can be drawn and reported: results, plans and releases."""

    __slots__ = ()

    def plot(self, *, axes: Axes | None = None) -> Axes | Figure:
        """Draw it with matplotlib; it costs nothing more.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw; a new figure by default. A picture with several parts takes none.

        Returns
        -------
        matplotlib Axes or Figure
            A figure where there are several parts.

        Notes
        -----
        **Privacy** Post-processing: only released and public numbers are drawn.
        """
        drawn: Axes | Figure = _found(_PLOT).draw(self, axes=axes)
        return drawn

    def report(self, path: str | PathLike[str], **about: Any) -> None:
        """Write it as one page of HTML, to be read, printed and passed on.

        Parameters
        ----------
        path : str or path
            Where to write.
        **about
            As for :func:`privatest.report`.

        Notes
        -----
        **Privacy** Post-processing: the page holds what was released, and public words.
        """
        _found(_REPORT).report(self, path, **about)


def _found(place: str) -> Any:
    return import_module(f"privatest.{place}")
