"""Released estimates of a test with their intervals, whatever they are estimates of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.estimate_table import interval_level, numbered
from privatest.core.results import Outcome
from privatest.core.validation import printable
from privatest.plots.style import colours, figure, finish
from privatest.quantiles import QuantileEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_intervals", "has_intervals", "plot_intervals", "plot_quantile"]

# What an interval from "lower" to "upper" is of, and where it is 0 by the null hypothesis.
_KINDS = {
    "difference": ("private difference, first minus second", 0.0),
    "shift": ("private shift, first minus second", 0.0),
    "tau": ("private Kendall's tau", 0.0),
    "rho": ("private Spearman's rho", 0.0),
    "correlation": ("private correlation", 0.0),
    "slope": ("private slope of y on x", 0.0),
    "partial_covariance": ("private covariance given the rest", 0.0),
    "cramers_v": ("private Cramér's V", None),
    "proportion": ("private proportion", None),
    "proportions": ("private proportion", None),
    "shares": ("private share", None),
    "mean": ("private mean", None),
}
_NAMED = ("group_names", "columns", "categories")


def has_intervals(outcome: Outcome) -> bool:
    """Whether there is an interval to draw."""
    return "lower" in outcome.estimates and any(kind in outcome.estimates for kind in _KINDS)


def plot_intervals(outcome: Outcome, *, axes: Axes | None = None) -> Axes:
    """Draw each private estimate of a test with its interval.

    Parameters
    ----------
    outcome : Outcome
        Of a test that estimates something: a correlation, shares, means of groups, a shift.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    if not has_intervals(outcome):
        raise ParameterError("outcome must have estimates with intervals.")
    released = outcome.estimates
    kind = next(kind for kind in _KINDS if kind in released)
    words, zero = _KINDS[kind]
    middle = np.atleast_1d(np.asarray(released[kind], dtype=np.float64))
    lower, upper = (_ends(released[name], sign) for name, sign in (("lower", -1), ("upper", 1)))
    names = next((outcome.parameters[k] for k in _NAMED if outcome.parameters.get(k)), None)
    if names is None or len(names) != len(middle):
        names = numbered(len(middle), kind.replace("_", " "))
    level = f"{100 * interval_level(outcome.parameters, outcome.alpha):.4g}%"
    axes = figure(6.4, 1.5 + 0.36 * len(middle)).subplots() if axes is None else axes
    draw_intervals(axes, names, middle, lower, upper, zero=_zero(outcome, kind, zero))
    several = "simultaneous " if len(middle) > 1 else ""
    axes.set_xlabel(f"{words} ({several}{level} interval{'s' * (len(middle) > 1)})")
    axes.set_title(f"p-value {outcome.pvalue:.4g}")
    return finish(axes, grid="x")


def plot_quantile(estimate: QuantileEstimate, *, axes: Axes | None = None) -> Axes:
    """Draw a private quantile with its interval."""
    axes = figure(6.4, 1.7).subplots() if axes is None else axes
    name = estimate.column or "quantile"
    ends = (_ends(estimate.lower, -1), _ends(estimate.upper, 1))
    draw_intervals(axes, [name], np.array([estimate.quantile]), *ends)
    which = "median" if estimate.q == 0.5 else f"{estimate.q:g}-quantile"
    axes.set_xlabel(f"private {which} ({100 * estimate.confidence:.4g}% interval)")
    return finish(axes, grid="x")


def _zero(outcome: Outcome, kind: str, zero: float | None) -> float | None:
    """Return what the null hypothesis says of the estimate, where it says a number."""
    if kind == "proportion" and "p" in outcome.parameters:
        return float(outcome.parameters["p"])
    return zero


def _ends(values: Any, sign: int) -> Any:
    """Return ends of intervals; a record has no number where one is infinite."""
    given = values if isinstance(values, (list, tuple, np.ndarray)) else [values]
    return np.array([sign * np.inf if end is None else float(end) for end in given])


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
