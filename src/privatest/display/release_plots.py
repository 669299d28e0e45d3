"""Each column of a private release, with bands for the privacy noise."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.data.schema import CategoricalColumn, NumericColumn
from privatest.display.style import colours, figure, finish
from privatest.synthetic import SyntheticData
from privatest.synthetic.answers import Estimate, Weighting, mean_estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BINS = 20
_TAIL = 0.01  # share at either end that may be left out of a narrow column's bins
_NARROW = 0.5  # of the bounds: below this the rest would be empty
_CATEGORIES = 12  # more are too many to label
_NOTICED = 0.01  # of a column's range; a smaller misfit does not matter
_Z = 1.96
_TALLEST = 2.5  # times the largest share: bands are cut off above
_EXPLAINED = (
    "Blue: the synthetic rows. Orange: where the private rows' own share is, with probability .95 "
    "or more: privacy noise, and what the release cannot tell apart."
)
_POOR = " Columns with * are poorly represented."


@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """Shares of one column among the synthetic rows, and what the release knows of each.

    Attributes
    ----------
    name : str
        The column.
    labels : tuple of str or None
        The categories; None for numbers.
    integer : bool
        Whether the numbers are integers.
    edges : ndarray
        Edges of the bins; those of categories are -0.5, 0.5, ...
    shares : ndarray
        The weight of the synthetic rows in each bin; non-negative.
    low, high : ndarray
        The private rows' own share is between these with probability .95, or more.
    """

    name: str
    labels: tuple[str, ...] | None
    integer: bool
    edges: NDArray[np.float64]
    shares: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def marginals(release: SyntheticData) -> list[Marginal]:
    """Return the shares of every column of a release: post-processing.

    Numbers are put in at most 20 bins of the public bounds; where all but 2% of the released
    weight lies in less than half of them, of that part. The weights are the nearest
    non-negative ones, since shares are not negative.
    """
    if release.facts.kernel is not None:
        release = release.nonnegative()
    return [_marginal(release, name) for name in release.columns]


def strained(release: SyntheticData) -> list[str]:
    """Name the columns that non-negative weights of these rows cannot represent.

    A mean, or a category's share, is then much further from what was released than noise
    explains: there are too few synthetic rows where the data lies.
    """
    if release.facts.kernel is not None:
        release = release.nonnegative()
    return [name for name in release.columns if _misses(release, name)]


def _misses(release: SyntheticData, name: str) -> bool:
    labels, values = _categories(release, name), release.columns[name]
    spelled = values.astype(str)
    asked = [values] if labels is None else [spelled == label for label in labels]
    for feature in asked:
        found = _mean(release, feature)
        if found.poor and found.misfit > _NOTICED * float(np.ptp(feature.astype(np.float64))):
            return True
    return False


def _mean(release: SyntheticData, feature: NDArray[Any]) -> Estimate:
    used = Weighting(release.weights, release.draws)
    reach = 1.0 if feature.dtype == bool else None
    return mean_estimate(feature.astype(np.float64), used, release.before, reach)


def plot_marginals(release: SyntheticData) -> Figure:
    """Draw every column of a release, with bands for the privacy noise.

    Parameters
    ----------
    release : SyntheticData
        Of :func:`privatest.release`.

    Returns
    -------
    matplotlib Figure
        Heights are shares of rows in percent. The private rows' own share is in the band with
        probability .95 or more (see :class:`privatest.synthetic.Estimate`).
    """
    fitted = release if release.facts.kernel is None else release.nonnegative()
    found = marginals(fitted)
    wide = len(found) if len(found) <= 3 else 2 if len(found) == 4 else 3
    high = math.ceil(len(found) / wide)
    drawn = figure(max(3.4 * wide, 5.6), 2.5 * high + 0.9)
    every: Any = np.atleast_1d(drawn.subplots(high, wide, squeeze=False)).ravel()
    poor = strained(fitted)
    for axes, marginal in zip(every, found, strict=False):
        _draw(axes, marginal)
        axes.set_title(marginal.name + " *" * (marginal.name in poor), fontsize=10)
    for axes in every[len(found) :]:
        axes.set_visible(False)
    for axes in every[::wide]:
        axes.set_ylabel("share, %")
    facts, ink = release.facts, colours().ink
    title = f"{len(release):,} synthetic rows for {facts.n:,} private ones: {facts.spent}"
    drawn.suptitle(title, fontsize=11, color=ink)
    note = facts.guarantee if facts.simulated else _EXPLAINED + _POOR * bool(poor)
    letters = int(15 * drawn.get_figwidth())  # that fit in a line at this size
    drawn.supxlabel(textwrap.fill(note, letters), fontsize=8, color=ink)
    return drawn


def _marginal(release: SyntheticData, name: str) -> Marginal:
    labels = _categories(release, name)
    edges = _edges(release, name) if labels is None else np.arange(len(labels) + 1.0) - 0.5

    def inside(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        found = _places(columns[name], edges, labels)[:, None] == np.arange(len(edges) - 1)
        return np.asarray(found, dtype=np.float64)

    shares = inside(release.columns).T @ (release.weights / release.weights.sum())
    if release.source is None:
        bins = inside(release.columns).T
        found = [_mean(release, each.astype(np.bool_)) for each in bins]
        middle = np.array([each.value for each in found])
        errors = np.nan_to_num([each.error for each in found])  # without draws there is no bar
    else:
        means = release.source.means(inside, {} if labels else {name: edges.tolist()})
        middle, errors = means.values, means.errors
    integer = getattr(_described(release, name), "integer", False)
    low, high = middle - _Z * errors, middle + _Z * errors
    return Marginal(name, labels, integer, edges, shares, low.clip(0, 1), high.clip(0, 1))


def shown_places(values: NDArray[Any], marginal: Marginal) -> NDArray[np.intp]:
    """Return the bins of values; those outside of all bins are below 0 or beyond the last."""
    return _places(values, marginal.edges, marginal.labels)


def _places(
    values: NDArray[Any], edges: NDArray[np.float64], labels: tuple[str, ...] | None
) -> NDArray[np.intp]:
    """Return the bins of values."""
    if labels is None:
        places: NDArray[np.intp] = np.searchsorted(edges, values, side="right") - 1
        places[values == edges[-1]] = len(edges) - 2  # the last bin has both its ends
        return places
    codes = {label: code for code, label in enumerate(labels)}
    return np.array([codes[str(value)] for value in values], dtype=np.intp)


def _categories(release: SyntheticData, name: str) -> tuple[str, ...] | None:
    """Return the categories of a column: the schema's, else those that were released."""
    values = release.columns[name]
    column = _described(release, name)
    if isinstance(column, CategoricalColumn):
        return tuple(map(str, column.categories))
    if values.dtype.kind in "iuf":
        return None
    return tuple(sorted({str(value) for value in values}))


def _edges(release: SyntheticData, name: str) -> NDArray[np.float64]:
    """Return edges of bins over the public bounds, or over the part that holds nearly all."""
    values = release.columns[name].astype(np.float64)
    column = _described(release, name)
    bounded = isinstance(column, NumericColumn)
    low, high = (column.lower, column.upper) if bounded else (values.min(), values.max())
    inner = release.quantile(name, _TAIL).value, release.quantile(name, 1 - _TAIL).value
    if inner[1] - inner[0] < _NARROW * (high - low):
        low, high = inner
    if bounded and column.integer:
        step = math.ceil((high - low + 1) / _BINS)  # every bin holds as many integers
        count = math.ceil((high - low + 1) / step)
        return np.asarray(low - 0.5 + step * np.arange(count + 1), dtype=np.float64)
    return np.linspace(low, high if high > low else low + 1, _BINS + 1, dtype=np.float64)


def _described(release: SyntheticData, name: str) -> Any:
    schema = release.facts.schema
    return None if schema is None else schema.columns[name]


def _draw(axes: Axes, marginal: Marginal) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    theme = colours()
    small: dict[str, Any] = {"fontsize": 8, "color": theme.ink}
    shares, low, high = 100 * marginal.shares, 100 * marginal.low, 100 * marginal.high
    if marginal.labels is None:
        axes.stairs(shares, marginal.edges, fill=True, color=theme.fill)
        axes.stairs(high, marginal.edges, baseline=low, fill=True, color=theme.answer, alpha=0.45)
        axes.stairs(shares, marginal.edges, color=theme.main, linewidth=1.2)
        axes.set_xlim(marginal.edges[0], marginal.edges[-1])
        if marginal.integer:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        beyond = 100 - shares.sum()
        if beyond > 0.05:
            text = f"{beyond:.1f}% beyond"
            axes.text(0.98, 0.95, text, transform=axes.transAxes, ha="right", va="top", **small)
    else:
        places = np.arange(len(shares))
        axes.bar(places, shares, width=0.7, color=theme.fill, edgecolor=theme.main, lw=1.2)
        axes.bar(places, high - low, bottom=low, width=0.7, color=theme.answer, alpha=0.45)
        if len(places) <= _CATEGORIES:
            axes.set_xticks(places, [_short(label) for label in marginal.labels])
        axes.set_xlim(-0.6, len(shares) - 0.4)
    # a band that says nothing must not hide the rest
    axes.set_ylim(0.0, 1.05 * min(float(high.max()), _TALLEST * float(shares.max())))
    finish(axes)


def _short(label: str) -> str:
    return label if len(label) <= 12 else f"{label[:11]}…"


# Pairs of columns of a private release: the joint shares of its rows.


_MOST_PAIRS = 12  # pictures of more are too small to read
_TICKS = 6


def plot_pairs(release: SyntheticData) -> Figure:
    """Draw the joint shares of pairs of columns, at most the first twelve pairs."""
    every = {each.name: each for each in marginals(release)}
    pairs = [*combinations(every, 2)][:_MOST_PAIRS]
    wide = min(len(pairs), 3)
    high = -(-len(pairs) // wide)
    drawn = figure(max(3.6 * wide, 4.6), 3.1 * high)
    axes: Any = np.atleast_1d(drawn.subplots(high, wide, squeeze=False)).ravel()
    for place, (first, second) in zip(axes, pairs, strict=False):
        shares = _joint(release, every[first], every[second])
        place.imshow(100 * shares.T, origin="lower", aspect="auto", cmap=colours().shades, vmin=0)
        _label(place.xaxis, every[first])
        _label(place.yaxis, every[second])
        place.set_xlabel(first)
        place.set_ylabel(second)
        finish(place)
    for place in axes[len(pairs) :]:
        place.set_visible(False)
    return drawn


def _joint(release: SyntheticData, first: Marginal, second: Marginal) -> NDArray[np.float64]:
    sizes = len(first.shares), len(second.shares)
    places = [shown_places(release.columns[each.name], each) for each in (first, second)]
    inside = (places[0] >= 0) & (places[0] < sizes[0]) & (places[1] >= 0) & (places[1] < sizes[1])
    flat = places[0][inside] * sizes[1] + places[1][inside]
    weights = release.weights[inside] / release.weights.sum()
    found = np.bincount(flat, weights, minlength=sizes[0] * sizes[1])
    return found.astype(np.float64).reshape(sizes)


def _label(axis: Any, marginal: Marginal) -> None:
    count = len(marginal.shares)
    chosen = np.unique(np.linspace(0, count - 1, min(count, _TICKS)).astype(int))
    if marginal.labels is not None:
        axis.set_ticks(chosen, [marginal.labels[index][:12] for index in chosen])
        return
    middles = (marginal.edges[:-1] + marginal.edges[1:]) / 2
    axis.set_ticks(chosen, [f"{middles[index]:.3g}" for index in chosen])
