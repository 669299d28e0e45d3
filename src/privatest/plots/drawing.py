"""Which picture a result has: the one place that knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError
from privatest.core.results import Decision, Outcome
from privatest.methods.means import MeanEstimate
from privatest.methods.quantiles import QuantileEstimate
from privatest.planning.plans import Plan, Prices, Recommendation
from privatest.planning.simulation import Power
from privatest.plots.differences import plot_differences, plot_means, plot_region
from privatest.plots.features import plot_features
from privatest.plots.intervals import plot_intervals, plot_quantile
from privatest.plots.marginals import plot_marginals
from privatest.plots.null_laws import has_null_law, plot_null_law
from privatest.plots.planning import plot_plan, plot_power, plot_prices, plot_recommendation
from privatest.plots.pvalues import plot_pvalues
from privatest.plots.style import need_matplotlib
from privatest.requests.results import ColumnResults
from privatest.synthetic import SyntheticData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(result: Any, *, axes: Axes | None = None) -> Axes | Figure:
    """Draw a result as it is best seen, or say why it cannot be drawn.

    Parameters
    ----------
    result : object
        A result of a test, an estimate, a release, a plan or a ranking.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    need_matplotlib()
    one_part = _of_one_part(result)
    if one_part is not None:
        return one_part(result, axes=axes)
    several: Callable[..., Figure] | None = _SEVERAL_PARTS.get(type(result))
    if several is None:
        raise ParameterError(f"There is nothing to draw of {type(result).__name__}.")
    if axes is not None:
        raise ParameterError("axes must be left out: this picture has several parts.")
    return several(result)


def _of_one_part(result: Any) -> Callable[..., Axes] | None:
    if isinstance(result, Outcome):
        return _picture_of(result)
    if isinstance(result, Decision):
        raise ParameterError(
            'There is nothing to draw: only a decision was released. release="pvalue" gives a '
            "p-value too, for a little more noise."
        )
    return _ONE_PART.get(type(result))


def _picture_of(outcome: Outcome) -> Callable[..., Axes]:
    """Return what draws the outcome of a test: estimates, else its statistic, else its p-value."""
    if outcome.estimated == "feature_differences":
        return plot_features
    if outcome.estimated == "difference":
        two_columns = len(outcome.estimates.get("region_shape", ())) == 2
        return plot_region if two_columns else plot_differences
    if outcome.estimate_rows:
        return plot_intervals
    if has_null_law(outcome):
        return plot_null_law
    return lambda shown, axes: plot_pvalues({"this test": shown}, axes=axes)


_ONE_PART: dict[type, Callable[..., Axes]] = {
    Plan: plot_plan,
    Recommendation: plot_recommendation,
    Prices: plot_prices,
    QuantileEstimate: plot_quantile,
    Power: lambda shown, axes: plot_power([shown], axes=axes),
    ColumnResults: lambda shown, axes: plot_pvalues(shown.columns, axes=axes),
}
_SEVERAL_PARTS: dict[type, Callable[..., Figure]] = {
    MeanEstimate: plot_means,
    SyntheticData: plot_marginals,
}
