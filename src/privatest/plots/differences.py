"""Private means and differences of means, with their intervals and regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.estimate_table import numbered
from privatest.core.results import Outcome
from privatest.methods.means import MeanEstimate
from privatest.plots.intervals import draw_intervals, estimate_columns
from privatest.plots.style import colours, figure, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_differences", "plot_means", "plot_region"]


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
    if outcome.estimated != "difference":
        raise ParameterError("outcome must come from hotelling_test or ttest_ind.")
    middle, lower, upper = estimate_columns(outcome)
    matrix = np.atleast_2d(released.get("covariance", released.get("variance")))
    variances = np.diagonal(matrix)
    # a column whose private variance is 0 is drawn in its own units
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    names = [row.name or "difference" for row in outcome.estimate_rows]
    if axes is None:
        axes = figure(6.8, 1.5 + 0.36 * len(middle)).subplots()
    labels = [f"{name}: {value:.3g}" for name, value in zip(names, middle, strict=True)]
    draw_intervals(axes, labels, middle / units, lower / units, upper / units, zero=0.0)
    confidence = f"{100 * outcome.interval_level:.4g}%"
    axes.set_xlabel(f"private difference of means, x - y, in standard deviations ({confidence})")
    axes.set_title(f"p-value {outcome.pvalue:.4g}")
    return finish(axes, grid="x")


def plot_region(result: Outcome | MeanEstimate, *, axes: Axes | None = None) -> Axes:
    """Draw the confidence region of two means, or of two differences of means: an ellipse.

    Parameters
    ----------
    result : Outcome or MeanEstimate
        Of :func:`privatest.hotelling_test` or :func:`privatest.private_mean`, of two columns.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The ellipse has the stated level; the box has the simultaneous intervals. Differences
        are tested against the point 0.
    """
    means = isinstance(result, MeanEstimate)
    if isinstance(result, MeanEstimate):
        middle, lower, upper = result.mean, result.lower, result.upper
        shape, radius, centre = result.region_shape, result.region_radius, result.region_centre
        level, names = result.confidence, result.columns
    else:
        released, level = result.estimates, result.interval_level
        shape = np.atleast_2d(released.get("region_shape", np.empty((0, 0))))
        radius, centre = released.get("region_radius", 0.0), released.get("region_centre")
        names = result.parameters.get("columns")
    if shape.shape != (2, 2):
        raise ParameterError("result must be about two columns: only their region is a picture.")
    if isinstance(result, Outcome):
        middle, lower, upper = estimate_columns(result)
    axes = figure(5.2, 4.4).subplots() if axes is None else axes
    _ellipse(
        axes, middle if centre is None else centre, shape, radius, f"{100 * level:.4g}% region"
    )
    _box(axes, lower, upper)
    theme = colours()
    axes.plot(*middle, "D", color=theme.answer, ms=7, label="released")
    if not means:
        axes.plot(0, 0, "+", color=theme.ink, ms=12, mew=2, label="no difference")
    what = "private mean" if means else "private difference"
    first, second = names or numbered(2)
    axes.set(xlabel=f"{what} of {first}", ylabel=f"{what} of {second}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    return finish(axes, grid="both")


def _ellipse(axes: Axes, centre: Any, shape: Any, radius: float, words: str) -> None:
    values, vectors = np.linalg.eigh(np.asarray(shape, dtype=np.float64))
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = np.vstack([np.cos(turn), np.sin(turn)])
    axis = np.sqrt(np.clip(values, 0, None) * max(radius, 0.0))
    edge = np.asarray(centre)[:, None] + vectors @ (axis[:, None] * circle)
    theme = colours()
    axes.fill(edge[0], edge[1], facecolor=theme.fill, edgecolor=theme.main, lw=2, label=words)


def _box(axes: Axes, lower: Any, upper: Any) -> None:
    corners = [(lower[0], lower[1]), (upper[0], lower[1]), (upper[0], upper[1])]
    corners += [(lower[0], upper[1]), (lower[0], lower[1])]
    x, y = zip(*corners, strict=True)
    axes.plot(x, y, linestyle=":", color=colours().soft, label="simultaneous intervals")


def plot_means(estimate: MeanEstimate) -> Figure:
    """Draw each private mean with its simultaneous interval, every column in its own units."""
    count = len(estimate.mean)
    drawn = figure(6.8, 1.2 + 0.72 * count)
    all_axes: Any = np.atleast_1d(drawn.subplots(count))
    names: Sequence[str] = estimate.columns or numbered(count)
    for index, (axes, name) in enumerate(zip(all_axes, names, strict=True)):
        one = slice(index, index + 1)
        own = (np.asarray(each)[one] for each in (estimate.mean, estimate.lower, estimate.upper))
        draw_intervals(axes, [name], *own)
        finish(axes)
    several, plural = ("simultaneous ", "s") if count > 1 else ("", "")
    all_axes[-1].set_xlabel(
        f"private {estimate.estimated} ({several}{100 * estimate.confidence:.4g}% interval{plural})"
    )
    return drawn
