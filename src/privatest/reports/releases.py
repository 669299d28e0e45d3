"""The parts of a release's report: its columns and pairs of columns, measured against fitted."""

from __future__ import annotations

from functools import partial

import numpy as np

from privatest.plots.marginals import plot_marginals
from privatest.plots.pairs import plot_pairs
from privatest.reports.markup import Markup, table, tag
from privatest.reports.pictures import picture
from privatest.synthetic import SyntheticData
from privatest.synthetic.table_means import TableMeans

__all__ = ["release_parts"]

_FITTED = (
    "Differences between noisy measured shares and those of the synthetic rows. If the rows fit, "
    "they are about as large as the noise."
)
_HEAD = ("table", "cells", "noise of a cell", "typical difference", "largest, in noise")


def release_parts(release: SyntheticData) -> list[Markup]:
    """Return pictures and tables of a release."""
    fitted = release if release.facts.kernel is None else release.nonnegative()
    parts = [
        tag("h3", "Columns"),
        picture(partial(plot_marginals, release), "Shares of each column, with bands of the noise"),
        *_means(release),
    ]
    if len(release.columns) > 1:
        words = "Shares of each pair of columns among the synthetic rows"
        parts += [tag("h3", "Pairs of columns"), picture(partial(plot_pairs, fitted), words)]
    if isinstance(release.source, TableMeans):
        parts += [tag("h3", "Measured against fitted"), tag("p", _FITTED)]
        parts.append(table("Tables that were measured", _fit(release, release.source), _HEAD))
    return parts


def _means(release: SyntheticData) -> list[Markup]:
    """Return the means of numbers, with bars or limits."""
    rows = [
        (name, str(release.mean(name)))
        for name, values in release.columns.items()
        if values.dtype.kind in "iuf"
    ]
    return [table("Means", rows)] if rows else []


def _fit(release: SyntheticData, source: TableMeans) -> list[tuple[str, ...]]:
    """Return how far the rows are from every table that was measured."""
    rows: list[tuple[str, ...]] = []
    for each in release.measured:
        if not each.is_table:
            continue
        shares, fitted = each.counts / release.facts.n, source.fitted(each)
        noise = each.sigma / release.facts.n
        away = np.abs(shares - fitted)
        rows.append(
            (
                " × ".join(each.columns),
                " × ".join(map(str, each.counts.shape)),
                f"{100 * noise:.2g}%",
                f"{100 * float(np.sqrt(np.mean(away**2))):.2g}%",
                f"{float(away.max()) / noise:.1f}",
            )
        )
    return rows
