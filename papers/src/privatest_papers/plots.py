"""Pictures of the papers' experiments: published, run again, and ours; and all in one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from privatest.core.errors import ParameterError
from privatest.display.style import MARKERS, colours, finish, plain_logarithms
from privatest.display.style import figure as new_figure
from privatest_papers.comparing import Against
from privatest_papers.experiment import Experiment
from privatest_papers.results import Rows

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_experiment", "plot_summary"]

# Okabe and Ito's colours for the papers' methods; ours has those of the style.
_PAPER = ("#D55E00", "#E69F00", "#CC79A7", "#009E73", "#999999", "#B8A000")
_LABELS = {"power": "power", "level": "rejections", "distance": "distance"}
_PUBLISHED = "published (dashed)"
_BEHIND, _LEVEL = "behind by more than 2 standard errors", "ahead, or level within error"


def plot_experiment(experiment: Experiment, rows: Rows) -> Figure:
    """Draw a figure of a paper: dashed as published, thin as run again, thick what is ours.

    Parameters
    ----------
    experiment : Experiment
        What is drawn.
    rows : Rows
        What was found; bands are intervals of level .95.
    """
    if not rows.rows:
        raise ParameterError(f"{experiment.name} was not run yet: use `privatest reproduce run`.")
    panels = experiment.panels
    columns = min(experiment.columns, len(panels))
    lines = math.ceil(len(panels) / columns)
    # no wider than three panels: pages shrink what is wider, words and all
    drawn = new_figure(min(3.4 * columns, 10.2), 2.7 * lines + 0.9)
    grid = drawn.subplots(lines, columns, squeeze=False, sharey=experiment.measure != "distance")
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw(axes, experiment, rows, panel)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    for line in grid:
        line[0].set_ylabel(_LABELS[experiment.measure])
    handles, labels = _legend(grid.flat)
    drawn.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=max(1, min(5, 1 + columns)),
        frameon=False,
        fontsize=8,
        labelcolor=colours().ink,
    )
    title = f"{experiment.paper}, {experiment.figure}: {experiment.title}"
    drawn.suptitle(title, fontsize=10, color=colours().ink, wrap=True)
    return drawn


def _looks(experiment: Experiment) -> dict[str, tuple[str, str]]:
    """Give each method a colour and a marker."""
    theme = colours()
    palettes = {"ours": (theme.main, "#56B4E9", "#004466", "#7FA8C9", "#3B7EA1"), "paper": _PAPER}
    found: dict[str, tuple[str, str]] = {}
    for by, palette in palettes.items():
        names = [name for name, whose in experiment.methods.items() if whose == by]
        for place, name in enumerate(names):
            marker = MARKERS[place % len(MARKERS)]
            found[name] = palette[place % len(palette)], marker
    return found


def _draw(axes: Axes, experiment: Experiment, rows: Rows, panel: str) -> None:
    looks = _looks(experiment)
    for name, by in experiment.methods.items():
        colour, marker = looks[name]
        published = [
            (point.x, point.published[name])
            for point in experiment.points
            if point.panel == panel and name in point.published
        ]
        own = rows.at(panel, name)
        if published:
            axes.plot(
                *zip(*sorted(published), strict=True),
                color=colour,
                linestyle="--",
                linewidth=1,
                marker=marker,
                markerfacecolor="none",
                markersize=4,
                label=_PUBLISHED if own else f"{name}, published only",
            )
        if not own:
            continue
        places, means = [row.x for row in own], [row.mean for row in own]
        low, high = zip(*(row.band for row in own), strict=True)
        axes.plot(
            places,
            means,
            color=colour,
            linewidth=2.4 if by == "ours" else 1.2,
            marker=marker,
            markersize=3,
            label=name if by == "ours" else f"{name}, run again",
            zorder=3 if by == "ours" else 2,
        )
        axes.fill_between(places, low, high, color=colour, alpha=0.13, linewidth=0)
    _finish(axes, experiment, panel)


def _finish(axes: Axes, experiment: Experiment, panel: str) -> None:
    axes.set(title=panel, xlabel=experiment.axis)
    if experiment.log:
        plain_logarithms(axes)
        _thin(axes)
    if experiment.measure == "distance":
        axes.set_yscale("log")
        axes.tick_params(axis="y", which="minor", labelleft=False)
    else:
        axes.axhline(experiment.alpha, color=colours().soft, linewidth=0.8, linestyle=":")
    if experiment.measure == "power":
        axes.set_ylim(-0.03, 1.03)
    finish(axes, grid="both")
    axes.title.set_fontsize(9)
    axes.xaxis.label.set_fontsize(8)
    axes.tick_params(labelsize=7)


def _thin(axes: Axes) -> None:
    """Leave only powers of ten on an axis of more than two decades."""
    from matplotlib.ticker import LogLocator  # noqa: PLC0415

    low, high = axes.get_xlim()
    if low > 0 and high / low > 150:
        axes.xaxis.set_major_locator(LogLocator())


def _legend(panels: Iterable[Axes]) -> tuple[list[Artist], list[str]]:
    """Gather one handle for each label over all panels, the dashed line last."""
    found: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    last = found.pop(_PUBLISHED, None)
    if last is not None:
        found[_PUBLISHED] = last
    return list(found.values()), list(found)


def plot_summary(found: Mapping[str, Sequence[Against]]) -> Figure:
    """Draw ours against each paper's best, a line an experiment and a dot a point of it.

    Parameters
    ----------
    found : mapping
        Comparisons by the name of an experiment. Dots left of 0 by more than two standard errors
        stand out.
    """
    theme, names = colours(), [name for name, points in found.items() if points]
    drawn = new_figure(7.2, 0.34 * len(names) + 1.6)
    axes = drawn.subplots()
    for place, name in enumerate(names):
        for worse, colour, marker in ((False, theme.main, "o"), (True, theme.answer, "D")):
            gains = [each.gain for each in found[name] if each.worse == worse]
            axes.plot(
                gains,
                [place] * len(gains),
                color=colour,
                marker=marker,
                markersize=5,
                linestyle="none",
                alpha=0.45 if not worse else 0.9,
                label=_BEHIND if worse else _LEVEL,
            )
    axes.axvline(0, color=theme.soft, linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("our best - the paper's best (power, or share of the distance)")
    axes.set_title("Equal epsilon and n: ours beside the papers' best, run again")
    handles, labels = _legend([axes])
    finish(axes, grid="x")
    ink = theme.ink
    drawn.legend(
        handles, labels, loc="outside lower center", ncols=2, frameon=False, labelcolor=ink
    )
    return drawn
