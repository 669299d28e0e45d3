"""The locations of an embedding test with the private difference and its noise bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privatest.core.results import Outcome
from privatest.core.validation import integer_at_least
from privatest.methods.embedding import distinguishing_features
from privatest.plots.style import colours, figure, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_features"]

_LONGEST_LABEL = 3  # coordinates that are written out


def plot_features(outcome: Outcome, *, most: int = 20, axes: Axes | None = None) -> Axes:
    """Draw the clearest differences of an embedding test, one row for each location.

    Parameters
    ----------
    outcome : Outcome
        Of :func:`me_test` or :func:`scf_test` with ``release="moments"``.
    most : int
        Locations to draw.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Points are private differences. The thick bar is two standard deviations of the privacy
        noise each way, the thin one of noise and sampling.
    """
    features = distinguishing_features(outcome)[: integer_at_least("most", most, 1)]
    if axes is None:
        axes = figure(6.8, 1.2 + 0.3 * len(features)).subplots()
    theme = colours()
    bar: dict[str, Any] = {"ecolor": theme.soft}
    places = range(len(features))
    differences = [feature.difference for feature in features]
    for width, bars in (
        (4.0, [2 * feature.noise for feature in features]),
        (1.0, [2 * feature.error for feature in features]),
    ):
        axes.errorbar(differences, places, xerr=bars, fmt="none", elinewidth=width, **bar)
    axes.plot(differences, places, "o", color=theme.main, ms=7)
    axes.axvline(0.0, color=theme.soft, linewidth=1, linestyle=":")
    axes.set_yticks(list(places), [_label(feature.place) for feature in features])
    axes.set_ylim(len(features) - 0.5, -0.5)
    axes.set_xlabel("private difference of means, x - y (thick: noise, thin: with sampling)")
    axes.set_title(f"p-value {outcome.pvalue:.4g}")
    return finish(axes, grid="x")


def _label(place: tuple[Any, ...]) -> str:
    shown = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in place]
    more = ", …" if len(shown) > _LONGEST_LABEL else ""
    return f"({', '.join(shown[:_LONGEST_LABEL])}{more})"
