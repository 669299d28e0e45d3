"""A page about a release: its columns and pairs of columns, measured against fitted."""

from __future__ import annotations

import base64
import html
import io
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.plots.marginals import Marginal, marginals, plot_marginals, shown_places
from privatest.synthetic import SyntheticData
from privatest.synthetic.tables.means import TableMeans

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_pairs", "release_report"]

_MOST_PAIRS = 12  # pictures of more are too small to read
_TICKS = 6
_COLOURS = "Blues"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem;text-align:left;"
    "border-bottom:1px solid #ddd}img{max-width:100%}caption{text-align:left;font-weight:bold}"
)


def release_report(release: SyntheticData) -> str:
    """Return an HTML page without other files: facts, columns, pairs, and estimates.

    Post-processing of a release: everything on the page may be published with it.
    """
    fitted = release if release.facts.kernel is None else release.nonnegative()
    parts = [
        f"<h1>{html.escape(_title(release))}</h1>",
        f"<p>{html.escape(release.guarantee)}</p>",
        "<h2>Columns</h2>",
        _picture(plot_marginals(release), "Shares of each column"),
        _table(release),
    ]
    if len(release.columns) > 1:
        parts += [
            "<h2>Pairs of columns</h2>",
            "<p>Shares of the synthetic rows: the darker, the more.</p>",
            _picture(plot_pairs(fitted), "Shares of each pair of columns"),
        ]
    if isinstance(release.source, TableMeans):
        parts += ["<h2>Measured against fitted</h2>", _fit(release, release.source)]
    body = "\n".join(parts)
    head = f"<meta charset='utf-8'><title>{html.escape(_title(release))}</title>"
    head = f"<head>{head}<style>{_STYLE}</style></head>"
    return f"<!doctype html>\n<html lang='en'>\n{head}\n<body>\n{body}\n</body>\n</html>\n"


def plot_pairs(release: SyntheticData) -> Figure:
    """Draw the joint shares of pairs of columns, at most the first twelve pairs."""
    from matplotlib.figure import Figure  # noqa: PLC0415 -- slow to import

    every = {each.name: each for each in marginals(release)}
    pairs = [*combinations(every, 2)][:_MOST_PAIRS]
    wide = min(len(pairs), 3)
    high = -(-len(pairs) // wide)
    figure = Figure(figsize=(max(3.6 * wide, 4.6), 3.1 * high), layout="constrained")
    axes: Any = np.atleast_1d(figure.subplots(high, wide, squeeze=False)).ravel()
    for place, (first, second) in zip(axes, pairs, strict=False):
        shares = _joint(release, every[first], every[second])
        place.imshow(100 * shares.T, origin="lower", aspect="auto", cmap=_COLOURS, vmin=0)
        _label(place.xaxis, every[first])
        _label(place.yaxis, every[second])
        place.set_xlabel(first)
        place.set_ylabel(second)
    for place in axes[len(pairs) :]:
        place.set_visible(False)
    return figure


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
        axis.set_ticks(chosen, [marginal.labels[index][:12] for index in chosen], fontsize=8)
        return
    middles = (marginal.edges[:-1] + marginal.edges[1:]) / 2
    axis.set_ticks(chosen, [f"{middles[index]:.3g}" for index in chosen], fontsize=8)


def _table(release: SyntheticData) -> str:
    """Return the means of numbers, with bars or limits."""
    rows = [
        (name, str(release.mean(name)))
        for name, values in release.columns.items()
        if values.dtype.kind in "iuf"
    ]
    if not rows:
        return ""
    lines = [
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows
    ]
    return f"<table><caption>Means</caption>{''.join(lines)}</table>"


def _fit(release: SyntheticData, source: TableMeans) -> str:
    """Return how far the rows are from every table that was measured."""
    lines = []
    for table in release.measured:
        if not table.is_table:
            continue
        shares, fitted = table.counts / release.facts.n, source.fitted(table)
        noise = table.sigma / release.facts.n
        away = np.abs(shares - fitted)
        cells = [
            " × ".join(table.columns),
            " × ".join(map(str, table.counts.shape)),
            f"{100 * noise:.2g}%",
            f"{100 * float(np.sqrt(np.mean(away**2))):.2g}%",
            f"{float(away.max()) / noise:.1f}",
        ]
        lines.append("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in cells) + "</tr>")
    heads = ("table", "cells", "noise of a cell", "typical difference", "largest, in noise")
    head = "".join(f"<th>{text}</th>" for text in heads)
    words = (
        "Differences between noisy measured shares and those of the synthetic rows. If the rows "
        "fit, they are about as large as the noise."
    )
    return f"<p>{words}</p><table><tr>{head}</tr>{''.join(lines)}</table>"


def _title(release: SyntheticData) -> str:
    return f"{len(release):,} synthetic rows for {release.facts.n:,} private ones"


def _picture(figure: Figure, words: str) -> str:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110)
    data = base64.b64encode(stream.getvalue()).decode()
    return f"<img alt='{html.escape(words)}' src='data:image/png;base64,{data}'>"
