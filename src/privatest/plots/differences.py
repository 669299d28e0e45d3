"""Private means and differences of means, with their intervals, a row for each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.estimate_table import interval_level
from privatest.core.results import Outcome
from privatest.means.estimates import MeanEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_differences", "plot_means"]


def plot_differences(outcome: Outcome, *, axes: Axes | None = None) -> Axes:
    """Draw the private difference of each column with its simultaneous interval.

    Parameters
    ----------
    outcome : Outcome
        Of :func:`privatest.hotelling_test` or :func:`privatest.ttest_ind`.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Differences are in private standard deviations, so that columns of all units fit; the
        numbers beside the names are in the units of the data.
    """
    released = outcome.estimates
    if "difference" not in released:
        raise ParameterError("outcome must come from hotelling_test or ttest_ind.")
    middle, lower, upper = (
        np.atleast_1d(np.asarray(released[name], dtype=np.float64))
        for name in ("difference", "lower", "upper")
    )
    matrix = np.atleast_2d(
        released["covariance"] if "covariance" in released else released["variance"]
    )
    variances = np.diagonal(matrix)
    # a column whose private variance is 0 is drawn in its own units
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    names = outcome.parameters.get("columns") or _numbered(len(middle))
    if axes is None:
        axes = _figure(len(middle)).subplots()
    places = np.arange(len(middle))
    clear = (lower > 0) | (upper < 0)
    colours = np.where(clear, "C3", "0.45").tolist()
    # not as error bars: of a record from before estimates were cut they may be negative
    axes.hlines(places, lower / units, upper / units, colors=colours, linewidth=2)
    axes.scatter(middle / units, places, color=colours, zorder=2)
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    labels = [f"{name}: {value:.3g}" for name, value in zip(names, middle, strict=True)]
    axes.set_yticks(places, labels)
    axes.set_ylim(len(middle) - 0.5, -0.5)
    confidence = f"{100 * interval_level(outcome.parameters, outcome.alpha):.4g}%"
    axes.set_xlabel(f"private difference of means, x - y, in standard deviations ({confidence})")
    axes.set_title(f"p-value {outcome.pvalue:.4g}")
    return axes


def plot_means(estimate: MeanEstimate) -> Figure:
    """Draw each private mean with its simultaneous interval, every column in its own units."""
    count = len(estimate.mean)
    figure = _figure(2 * count)
    all_axes: Any = np.atleast_1d(figure.subplots(count))
    names = estimate.columns or _numbered(count)
    for index, (axes, name) in enumerate(zip(all_axes, names, strict=True)):
        ends = [estimate.lower[index], estimate.upper[index]]
        axes.plot(ends, [0, 0], "|-", color="C0", linewidth=2, markersize=10)
        axes.plot([estimate.mean[index]], [0], "o", color="C0")
        axes.set_yticks([0], [name])
    several, plural = ("simultaneous ", "s") if count > 1 else ("", "")
    all_axes[-1].set_xlabel(
        f"private {estimate.estimated} ({several}{100 * estimate.confidence:.4g}% interval{plural})"
    )
    return figure


def _numbered(count: int) -> list[str]:
    return [f"column {index}" for index in range(1, count + 1)]


def _figure(rows: int) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415 -- slow to import

    return Figure(figsize=(7, 1.4 + 0.35 * rows), layout="constrained")
