"""How the rows of a group lie in its cells, from noisy counts and a noisy mean: post-processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.tables.cells import Cells
from privatest.synthetic.tables.grouping import on_simplex
from privatest.synthetic.tables.measuring import Tables
from privatest.synthetic.tables.plan import TablesPlan

__all__ = ["Column", "cell_shares", "denoised"]

_STEEPEST = 0.9  # share of a tail in its first cell
_LEAST_TILT, _STEPS, _TILTS = 0.05, 1.25, 48  # tried, for places between 0 and 1


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """What was measured of one column.

    Attributes
    ----------
    cells : Cells
        Its public cells.
    groups : ndarray
        The group of each cell.
    counts : ndarray
        Noisy counts of the cells.
    sigma : float
        Their noise.
    n : int
        The number of private rows.
    mean : float or None
        The noisy mean, where the lower bound is 0 and the upper 1.
    mean_sigma : float
        Its noise.
    """

    cells: Cells
    groups: NDArray[np.intp]
    counts: NDArray[np.float64]
    sigma: float
    n: int
    mean: float | None = None
    mean_sigma: float = 0.0


def columns_of(tables: Tables, plan: TablesPlan) -> list[Column]:
    """Return what was measured of each column alone."""
    means = dict(zip(plan.moments.means, tables.moments[0].tolist(), strict=True))
    return [
        Column(
            cells,
            group,
            table.counts,
            table.sigma,
            plan.n,
            means.get(place),
            tables.mean_sigma,
        )
        for place, (cells, group, table) in enumerate(
            zip(plan.cells, tables.fine, tables.single, strict=True)
        )
    ]


def cell_shares(column: Column, masses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return shares of the cells, given those of the groups."""
    shares = np.empty(len(column.groups))
    for group, mass in enumerate(masses):
        members = np.flatnonzero(column.groups == group)
        bases = [np.full(len(members), 1 / len(members))]
        if column.cells.ordered and len(members) > 1:
            bases += _tails(column.groups, masses, group, len(members))
        shares[members] = mass * denoised(column.counts[members], column.sigma, bases)
    return shares if column.mean is None else _tilted(shares, masses, column, column.mean)


def denoised(
    counts: NDArray[np.float64], sigma: float, bases: list[NDArray[np.float64]] | None = None
) -> NDArray[np.float64]:
    """Return the shares of the cells within a group, from their noisy counts.

    Of some rules the one with the smallest unbiased estimate of its risk (Stein): counts shrunk
    towards a base, by default equal shares (James and Stein), or cut off at a level that keeps
    their sum.
    """
    size, total = len(counts), float(counts.sum())
    equal = np.full(size, 1 / size)
    bases = bases or [equal]
    if size == 1 or total <= 0:
        return bases[-1]
    rules = [_shrunk(counts, total * base, sigma) for base in bases]
    cut = on_simplex(counts, total)
    risk = float(((cut - counts) ** 2).sum()) + (2 * np.count_nonzero(cut) - size) * sigma**2
    _, best = min([*rules, (risk, cut)], key=lambda rule: rule[0])
    best = np.maximum(best, 0.0)
    found = float(best.sum())
    return best / found if found > 0 else equal


def _shrunk(
    counts: NDArray[np.float64], base: NDArray[np.float64], sigma: float
) -> tuple[float, NDArray[np.float64]]:
    """Return the estimated risk of shrinking towards a base, and the result."""
    away, size = counts - base, len(counts)
    square = max(float(away @ away), 1e-300)
    freedom = max(size - 3, 1)
    kept = max(0.0, 1 - freedom * sigma**2 / square)
    if kept == 0:
        return square - (size - 2) * sigma**2, base
    return size * sigma**2 - (freedom * sigma**2) ** 2 / square, base + kept * away


def _tails(
    groups: NDArray[np.intp], masses: NDArray[np.float64], group: int, size: int
) -> list[NDArray[np.float64]]:
    """Return a base for the outermost groups: a density that falls from that next to it."""
    last = len(masses) - 1
    if last < 1 or group not in (0, last):
        return []
    beside = 1 if group == 0 else last - 1
    first = masses[beside] / np.count_nonzero(groups == beside) / max(masses[group], 1e-300)
    if first <= 1 / size:
        return []
    falling = _falling(min(first, _STEEPEST), size)
    return [falling[::-1] if group == 0 else falling]


def _falling(first: float, size: int) -> NDArray[np.float64]:
    """Return geometric shares whose first is given."""
    low, high = 0.0, 1.0  # of the ratio of neighbours
    for _ in range(60):
        ratio = (low + high) / 2
        if (1 - ratio) / (1 - ratio**size) > first:
            low = ratio
        else:
            high = ratio
    falling = np.power((low + high) / 2, np.arange(size, dtype=np.float64))
    shares: NDArray[np.float64] = falling / falling.sum()
    return shares


def _tilted(
    shares: NDArray[np.float64], masses: NDArray[np.float64], column: Column, mean: float
) -> NDArray[np.float64]:
    """Tilt shares within their groups towards a mean, as far as the counts let them.

    The tilt makes the squares of both misfits, over their noise, least in sum.
    """
    groups, places = column.groups, column.cells.places
    middles = np.bincount(groups, weights=places) / np.bincount(groups)
    off = places - middles[groups]

    def tilted(by: float) -> NDArray[np.float64]:
        powers = by * off
        found = shares * np.exp(powers - _largest(powers, groups, len(masses)))
        sums = np.bincount(groups, weights=found, minlength=len(masses))
        factor = np.where(sums > 0, masses / np.maximum(sums, 1e-300), 0.0)
        moved: NDArray[np.float64] = found * factor[groups]
        return moved

    def misfit(by: float) -> float:
        moved = tilted(by)
        away = (float(moved @ places) - mean) / column.mean_sigma
        changed = (moved - shares) * (column.n / column.sigma)
        return away**2 + float(changed @ changed)

    ahead = float(shares @ places) < mean
    tilts = [0.0, *((1 if ahead else -1) * _LEAST_TILT * _STEPS ** np.arange(_TILTS))]
    return tilted(min(tilts, key=misfit))


def _largest(
    powers: NDArray[np.float64], groups: NDArray[np.intp], count: int
) -> NDArray[np.float64]:
    """Return the largest power of each cell's group, so that none overflows."""
    found = np.full(count, -np.inf)
    np.maximum.at(found, groups, powers)
    return found[groups]
