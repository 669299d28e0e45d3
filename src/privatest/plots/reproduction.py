"""Pictures of the papers' experiments: published, run again, and ours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from privatest.core.errors import ParameterError
from privatest.reproduce.experiment import Experiment
from privatest.reproduce.results import Rows

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_experiment"]

# Okabe and Ito's colours: told apart by the colour-blind, on white and on black, and in print.
_OURS = ("#0072B2", "#56B4E9")
_PAPER = ("#D55E00", "#E69F00", "#CC79A7", "#009E73", "#999999", "#B8A000", "#7A4B2A", "#555555")
_LABELS = {"power": "power", "level": "rejections", "distance": "distance"}


def plot_experiment(experiment: Experiment, rows: Rows) -> Figure:
    """Draw a figure of a paper: dashed as published, thin as run again, thick what is ours.

    Parameters
    ----------
    experiment : Experiment
        What is drawn.
    rows : Rows
        What was found; bands are intervals of level .95.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    if not rows.rows:
        raise ParameterError(f"{experiment.name} was not run yet: use `privatest reproduce run`.")
    panels = experiment.panels
    columns = min(experiment.columns, len(panels))
    lines = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(3.4 * columns, 2.8 * lines + 0.9), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False, sharey=experiment.measure != "distance")
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw(axes, experiment, rows, panel)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    for line in grid:
        line[0].set_ylabel(_LABELS[experiment.measure])
    handles, labels = _legend(grid.flat)
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.suptitle(f"{experiment.paper}, {experiment.figure}: {experiment.title}", fontsize=10)
    return figure


def _colours(experiment: Experiment) -> dict[str, str]:
    found: dict[str, str] = {}
    for by, palette in (("ours", _OURS), ("paper", _PAPER)):
        names = [name for name, whose in experiment.methods.items() if whose == by]
        found |= {name: palette[place % len(palette)] for place, name in enumerate(names)}
    return found


def _draw(axes: Axes, experiment: Experiment, rows: Rows, panel: str) -> None:
    colours = _colours(experiment)
    for name, by in experiment.methods.items():
        published = [
            (point.x, point.published[name])
            for point in experiment.points
            if point.panel == panel and name in point.published
        ]
        if published:
            axes.plot(
                *zip(*sorted(published), strict=True),
                color=colours[name],
                linestyle="--",
                linewidth=1,
                marker="o",
                markerfacecolor="none",
                markersize=4,
                label="published (dashed)",
            )
        own = rows.at(panel, name)
        if not own:
            continue
        places, means = [row.x for row in own], [row.mean for row in own]
        low, high = zip(*(row.band for row in own), strict=True)
        width, order = (2.4, 3) if by == "ours" else (1.2, 2)
        label = name if by == "ours" else f"{name}, run again"
        axes.plot(
            places,
            means,
            color=colours[name],
            linewidth=width,
            marker=".",
            label=label,
            zorder=order,
        )
        axes.fill_between(places, low, high, color=colours[name], alpha=0.13, linewidth=0)
    _finish(axes, experiment, panel)


def _finish(axes: Axes, experiment: Experiment, panel: str) -> None:
    axes.set_title(panel, fontsize=9)
    axes.set_xlabel(experiment.axis, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    if experiment.log:
        axes.set_xscale("log")
    if experiment.measure == "distance":
        axes.set_yscale("log")
        return
    axes.axhline(experiment.alpha, color="0.5", linewidth=0.8, linestyle=":")
    if experiment.measure == "power":
        axes.set_ylim(-0.03, 1.03)


def _legend(panels: Iterable[Axes]) -> tuple[list[Artist], list[str]]:
    """Gather one handle for each label over all panels."""
    found: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    last = found.pop("published (dashed)", None)
    if last is not None:
        found["published (dashed)"] = last
    return list(found.values()), list(found)
