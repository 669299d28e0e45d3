"""Groups of cells and useful pairs of columns, chosen from noisy tables: post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.tables.measured import Measured

__all__ = ["grouped", "merged", "on_simplex", "useful_pairs"]

_CLEARLY = 2.0  # a dependence counts if it is so many times the error that measuring it makes
_PAIRS_PER_COLUMN = 3


def on_simplex(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the nearest non-negative numbers with a given sum."""
    falling = np.sort(values)[::-1]
    excess = np.cumsum(falling) - total
    counts = np.arange(1, len(values) + 1)
    last = np.flatnonzero(falling * counts > excess)[-1] if total > 0 else 0
    nearest: NDArray[np.float64] = np.maximum(values - excess[last] / (last + 1), 0.0)
    return nearest


def grouped(values: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the sums over groups of cells."""
    sums: NDArray[np.float64] = np.bincount(groups, weights=values).astype(np.float64)
    return sums


def merged(counts: NDArray[np.float64], least: float, *, ordered: bool) -> NDArray[np.intp]:
    """Return a group for each cell, such that groups hold at least about ``least`` rows.

    Cells that hold as many stand alone. Numbers are merged with their neighbours; categories
    are merged in the order of their counts.
    """
    if ordered:
        return _runs(counts, least)
    order = np.argsort(-counts, kind="stable")
    groups = np.empty(len(counts), dtype=np.intp)
    groups[order] = _runs(counts[order], least)
    return groups


def _runs(counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    groups = np.empty(len(counts), dtype=np.intp)
    group, held = -1, math.inf
    for cell, count in enumerate(counts):
        if count >= least or held >= least:
            group, held = group + 1, 0.0
        groups[cell] = group
        held = math.inf if count >= least else held + count
    while True:
        sizes = grouped(counts, groups)
        smallest = int(np.argmin(sizes))
        if len(sizes) < 3 or sizes[smallest] >= least / 2:
            return groups
        around = [other for other in (smallest - 1, smallest + 1) if 0 <= other < len(sizes)]
        into = min(around, key=lambda other: sizes[other])
        groups = np.where(groups > min(smallest, into), groups - 1, groups)


def useful_pairs(
    coarse: Sequence[Measured],
    shares: Sequence[NDArray[np.float64]],
    places: Sequence[tuple[int, int]],
    sizes: Sequence[int],
    sigma_alone: float,
    n: int,
) -> list[int]:
    """Return which pairs to measure again, most useful first.

    Parameters
    ----------
    coarse : sequence of Measured
        Noisy coarse tables of all pairs.
    shares : sequence of ndarray
        Shares of each column's coarse groups.
    places : sequence of pairs of int
        The two columns of each table, by position.
    sizes : sequence of int
        Fine groups of each column.
    sigma_alone : float
        Noise of a fine table if it were the only one; with k of them it is sqrt(k) as much.
    n : int
        The number of rows.
    """
    found = []
    for table, (first, second) in zip(coarse, places, strict=True):
        alone = np.outer(shares[first], shares[second])
        away = float(np.abs(table.counts / n - alone).sum())
        found.append(away - math.sqrt(2 / math.pi) * table.sigma / n * alone.size)
    order = sorted(range(len(found)), key=lambda pair: -found[pair])
    most = min(len(order), _PAIRS_PER_COLUMN * len(sizes))
    chosen = 1
    for count in range(1, most + 1):
        first, second = places[order[count - 1]]
        noise = math.sqrt(2 / math.pi * count) * sigma_alone / n
        if found[order[count - 1]] > _CLEARLY * noise * min(sizes[first] * sizes[second], 200):
            chosen = count
    return order[:chosen]
