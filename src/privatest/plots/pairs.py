"""Pairs of columns of a private release: the joint shares of its rows."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.plots.marginals import Marginal, marginals, shown_places
from privatest.plots.style import colours, figure, finish
from privatest.synthetic import SyntheticData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_pairs"]

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
