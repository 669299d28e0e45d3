"""Released estimates of a test with their intervals, whatever they are estimates of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.estimate_table import ESTIMATES
from privatest.core.results import Outcome
from privatest.core.validation import printable
from privatest.methods.quantiles import QuantileEstimate
from privatest.plots.style import colours, figure, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_intervals", "estimate_columns", "plot_intervals", "plot_quantile"]


def plot_intervals(outcome: Outcome, *, axes: Axes | None = None) -> Axes:
    """Draw each private estimate of a test with its interval.

    Parameters
    ----------
    outcome : Outcome
        Of a test that estimates something: a correlation, shares, means of groups, a shift.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    rows = outcome.estimate_rows
    if not rows:
        raise ParameterError("outcome must have estimates with intervals.")
    kind = ESTIMATES[outcome.estimated]
    names = [row.name or outcome.estimated.replace("_", " ") for row in rows]
    axes = figure(6.4, 1.5 + 0.36 * len(rows)).subplots() if axes is None else axes
    null = outcome.parameters["p"] if outcome.estimated == "proportion" else kind.null
    draw_intervals(axes, names, *estimate_columns(outcome), zero=null)
    several, plural = ("simultaneous ", "s") if len(rows) > 1 else ("", "")
    level = f"{100 * outcome.interval_level:.4g}%"
    axes.set_xlabel(f"private {kind.what} ({several}{level} interval{plural})")
    axes.set_title(f"p-value {outcome.pvalue:.4g}")
    return finish(axes, grid="x")


def estimate_columns(outcome: Outcome) -> tuple[Any, Any, Any]:
    """Return the values and both ends of all estimates."""
    rows = outcome.estimate_rows
    columns = zip(*((row.value, *row.interval) for row in rows), strict=True)
    middle, lower, upper = map(np.array, columns)
    return middle, lower, upper


def plot_quantile(estimate: QuantileEstimate, *, axes: Axes | None = None) -> Axes:
    """Draw a private quantile with its interval."""
    axes = figure(6.4, 1.7).subplots() if axes is None else axes
    name = estimate.column or "quantile"
    values = (np.array([each]) for each in (estimate.quantile, estimate.lower, estimate.upper))
    draw_intervals(axes, [name], *values)
    which = "median" if estimate.q == 0.5 else f"{estimate.q:g}-quantile"
    axes.set_xlabel(f"private {which} ({100 * estimate.confidence:.4g}% interval)")
    return finish(axes, grid="x")


def draw_intervals(
    axes: Axes, names: Any, middle: Any, lower: Any, upper: Any, *, zero: float | None = None
) -> None:
    """Draw a row for each estimate: a point and a bar, an arrow where the bar does not end."""
    theme = colours()
    places = np.arange(len(middle))
    finite = np.concatenate([middle, lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    span = float(np.ptp(finite)) or max(abs(float(finite[0])), 1.0)
    left, right = float(finite.min()) - 0.15 * span, float(finite.max()) + 0.15 * span
    if zero is not None:
        clear = (lower > zero) | (upper < zero)
        axes.axvline(zero, color=theme.soft, linewidth=1, linestyle=":")
        left, right = min(left, zero - 0.05 * span), max(right, zero + 0.05 * span)
    else:
        clear = np.zeros(len(middle), dtype=bool)
    for place, value, low, high, away in zip(places, middle, lower, upper, clear, strict=True):
        colour, marker = (theme.answer, "D") if away else (theme.main, "o")
        ends = max(low, left), min(high, right)
        axes.plot(ends, [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        for end, known, arrow in ((ends[0], low, "<"), (ends[1], high, ">")):
            axes.plot([end], [place], "|" if np.isfinite(known) else arrow, color=colour, ms=9)
        axes.plot([value], [place], marker, color=colour, ms=7)
    axes.set_yticks(places, [printable(str(name)) for name in names])
    axes.set_ylim(len(middle) - 0.4, -0.6)
    axes.set_xlim(left, right)
