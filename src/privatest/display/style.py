"""One style for all pictures: told apart by the colour-blind, on white and on black, and in print.

Colours are those of Okabe and Ito. In print two of them may be the same grey: what they mean has a
line style or a marker of its own too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MISSING = 'Pictures need matplotlib: pip install "privatest[plot]".'
MARKERS = ("o", "s", "^", "D", "v")
_SMALL, _USUAL = 9, 10


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by what they are for.

    Attributes
    ----------
    ink, soft, paper : str
        Text and axes, what stands back (grids, references), and the background.
    main, answer, third, fill : str
        What was released, what it is compared with or answered, another, and areas.
    shades : str
        Name of matplotlib's scale for areas of many values.
    """

    ink: str
    soft: str
    paper: str
    main: str
    answer: str
    third: str
    fill: str
    shades: str


LIGHT = Theme("#1c2024", "#6b7076", "#ffffff", "#0072B2", "#D55E00", "#009E73", "#cfe0f1", "Blues")
DARK = Theme("#e8eaed", "#9aa0a6", "#15181c", "#56B4E9", "#E69F00", "#2fc29b", "#234a66", "cividis")
_THEMES = {"light": LIGHT, "dark": DARK}
_current = LIGHT  # of the process, as matplotlib's own style is


def colours() -> Theme:
    """Return the colours to draw with."""
    return _current


@contextmanager
def themed(name: str) -> Iterator[None]:
    """Draw in the block for light or dark pages: ``with themed("dark"): result.plot()``."""
    if name not in _THEMES:
        raise ParameterError(f"theme must be one of {', '.join(_THEMES)}; got {name!r}.")
    global _current  # noqa: PLW0603
    before, _current = _current, _THEMES[name]
    try:
        yield
    finally:
        _current = before


def need_matplotlib() -> None:
    """Say how pictures are had where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise ParameterError(MISSING)


def figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches; no window is opened, and no state is shared."""
    need_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 -- slow to import

    return Figure(figsize=(width, height), layout="constrained", facecolor=colours().paper)


def finish(axes: Axes, *, grid: str = "") -> Axes:
    """Give axes the style; ``grid`` names the direction of quiet lines: x, y or both."""
    from matplotlib import colors  # noqa: PLC0415

    theme = colours()
    axes.set_facecolor(theme.paper)
    axes.spines[["top", "right"]].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(theme.soft)
    axes.tick_params(colors=theme.ink, which="both", labelsize=_SMALL)
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set_color(theme.ink)
    axes.title.set_fontsize(_USUAL)
    if grid:
        axes.grid(axis=grid, color=colors.to_rgba(theme.soft, 0.25), linewidth=0.6)  # type: ignore[arg-type]
        axes.set_axisbelow(True)
    legend = axes.get_legend()
    if legend is not None:
        legend.get_frame().set_alpha(0)
        for text in legend.get_texts():
            text.set_color(theme.ink)
            text.set_fontsize(_SMALL)
    return axes


def plain_logarithms(axes: Axes, *, both: bool = False) -> None:
    """Draw on a logarithmic axis across (or on both), with numbers as people write them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415

    axes.set_xscale("log")
    if both:
        axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis) if both else (axes.xaxis,):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


@contextmanager
def plain_text() -> Iterator[None]:
    """Draw, and write, names in the block as they are: a $ in one begins no formula."""
    need_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context({"text.parse_math": False}):
        yield


def svg(drawn: Any) -> bytes:
    """Return a figure (or the one that axes are of) as SVG: the same bytes each time."""
    import matplotlib as mpl  # noqa: PLC0415

    stream = io.BytesIO()
    # letters as shapes: no font has to be there; without the date and with fixed names of parts
    with mpl.rc_context({"svg.hashsalt": "privatest", "svg.fonttype": "path"}):
        getattr(drawn, "figure", drawn).savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()
