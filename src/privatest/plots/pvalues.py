"""A p-value beside its level, where a test releases nothing else that could be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from privatest.core.results import Outcome
from privatest.core.validation import printable
from privatest.plots.style import colours, figure, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_pvalues"]

_LEAST = 1e-4  # smaller ones are drawn at the end of the scale


def plot_pvalues(outcomes: Mapping[str, Outcome], *, axes: Axes | None = None) -> Axes:
    """Draw private p-values on a logarithmic scale, a row for each test.

    Parameters
    ----------
    outcomes : mapping of str to Outcome
        Results by their names; at the same level.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Left of the level the hypothesis is rejected.
    """
    alpha = next(iter(outcomes.values())).alpha
    least = min(_LEAST, alpha / 10)
    if axes is None:
        axes = figure(6.4, 1.1 + 0.36 * len(outcomes)).subplots()
    theme = colours()
    places = np.arange(len(outcomes))
    values = np.array([max(each.pvalue, least) for each in outcomes.values()])
    rejected = np.array([each.reject for each in outcomes.values()])
    axes.axvspan(least / 2, alpha, color=theme.fill, alpha=0.6, linewidth=0)
    axes.axvline(alpha, color=theme.ink, linewidth=1, linestyle="--", label=f"level {alpha:g}")
    for chosen, colour, marker, words in (
        (rejected, theme.answer, "D", "rejected"),
        (~rejected, theme.main, "o", "not rejected"),
    ):
        if chosen.any():
            axes.plot(values[chosen], places[chosen], marker, color=colour, ms=8, label=words)
    axes.set_xscale("log")
    axes.set_xlim(least / 2, 1.4)
    axes.set_ylim(len(outcomes) - 0.4, -0.6)
    axes.set_yticks(places, [printable(name) for name in outcomes])
    axes.set_xlabel("private p-value")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    return finish(axes)
