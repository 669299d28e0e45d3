"""Statistics of the order of more rows than memory holds: the same laws as those of sorted rows.

Walks (Kolmogorov-Smirnov, Kuiper, symmetry) are looked at only where they may get further than
they got elsewhere; sums of ranks need all slices, the median the cell that it lies in.
Proof: docs/proofs/value-cells.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource
from privatest.core.secret_order import row_coins
from privatest.data.samples import Sample
from privatest.statistics import value_order
from privatest.statistics.ecdf import Side, TwoSampleStatistic, reach
from privatest.statistics.value_cells import Cells, Counts, Floats, Grouped, split_cells, whole
from privatest.statistics.value_order import Groups, groups_in_order, slices, tied_groups

__all__ = [
    "are_far",
    "far_kruskal_wallis",
    "far_mann_whitney",
    "far_median_balance",
    "far_signed_rank",
    "far_symmetry",
    "far_two_sample",
]

_OPEN = 1 << 14  # cells that a pass cuts finer at most
_SMALL = 1 << 10  # rows of a cell that are not worth another pass
_MOST = 1 << 62  # of a statistic: it is an integer of 64 bits


def are_far(rows: int, noise: NoiseSource) -> bool:
    """Return whether so many rows are read in passes; not in constant time."""
    return rows > value_order.HELD_ROWS and not noise.constant_time


def far_two_sample(
    x: Sample, y: Sample, statistic: TwoSampleStatistic, noise: NoiseSource, alternative: Side
) -> int:
    """Return J of :func:`privatest.statistics.ecdf.two_sample`, with secret labels.

    Notes
    -----
    **Sensitivity** That of :func:`two_sample`: it is the same number for some labels.
    """
    walk = _Walk((len(y), len(x)), statistic, alternative)
    return walk.reach(Grouped((x, y), 2), noise)


def far_symmetry(differences: Sample, statistic: TwoSampleStatistic, noise: NoiseSource) -> int:
    """Return :func:`privatest.statistics.ranks.symmetry`, with secret labels and coins."""
    split = _BySign(noise.key(), -1.0)
    return _Walk((1, 1), statistic, "two-sided").reach(Grouped((differences,), 2, split), noise)


def far_mann_whitney(x: Sample, y: Sample, noise: NoiseSource) -> int:
    """Return 2U - nm, with secret labels."""
    n, m = len(x), len(y)
    return 2 * _rank_sums(Grouped((x, y), 2), noise)[0] - n * (n + 1) - n * m


def far_kruskal_wallis(samples: Sequence[Sample], noise: NoiseSource) -> int:
    """Return :func:`privatest.statistics.ranks.kruskal_wallis`, with secret labels."""
    sizes = [len(sample) for sample in samples]
    sums = _rank_sums(Grouped(tuple(samples), len(samples)), noise)
    return sum(
        abs(2 * own - size * (sum(sizes) + 1)) for own, size in zip(sums, sizes, strict=True)
    )


def far_signed_rank(differences: Sample, noise: NoiseSource) -> int:
    """Return :func:`privatest.statistics.ranks.signed_rank`, with secret labels and coins."""
    split = _BySign(noise.key(), 1.0)
    positive, negative = _rank_sums(Grouped((differences,), 2, split), noise)
    return 2 * (positive - negative)


def far_median_balance(x: Sample, y: Sample, noise: NoiseSource) -> int:
    """Return :func:`privatest.statistics.ranks.median_balance`, with secret labels."""
    n, total = len(x), len(x) + len(y)
    top, rows, cell = total - total // 2, Grouped((x, y), 2), whole(2)
    while True:
        found = split_cells(rows, cell)
        here = int(np.searchsorted(found.before.sum(axis=0), total - top, side="right")) - 1
        cell = found.take([here])
        if cell.tied[0] or cell.rows[0] <= value_order.SLICE_ROWS:
            break
    below, place = int(cell.before[0, 0]), int(cell.before.sum())
    for groups in _ordered(rows, cell, noise):
        below += int((groups[: total - top - place] == 0).sum()) if place < total - top else 0
        place += len(groups)
    return total * (n - below) - n * top


@dataclass(frozen=True, slots=True, repr=False)  # a repr would show the secret key
class _BySign:
    """Splits differences by their signs, zeros by coins; what is kept is turn · |difference|."""

    key: bytes
    turn: float

    def __call__(self, rows: Floats, start: int) -> tuple[Floats, ...]:
        values = rows[:, 0]
        positive = values > 0
        zero = values == 0
        if zero.any():
            positive |= zero & row_coins(self.key, start, start + len(rows))
        sizes = self.turn * np.abs(values)
        return sizes[positive], sizes[~positive]


def _ordered(rows: Grouped, cells: Cells, noise: NoiseSource) -> Iterator[Groups]:
    """Yield the groups of the rows of a slice in order, at once or some at a time."""
    if len(cells) == 1 and cells.rows[0] > value_order.SLICE_ROWS:  # one value
        yield from tied_groups(cells.counts[:, 0], noise)
    else:
        yield groups_in_order(rows, cells, noise)


def _rank_sums(rows: Grouped, noise: NoiseSource) -> list[int]:
    """Return the sum of ranks 1, 2, ... of each group, ties in a secret order."""
    cells = split_cells(rows, whole(rows.groups))
    while True:
        large = (cells.rows > value_order.SLICE_ROWS) & ~cells.tied
        if not large.any():
            break
        cells = cells.take(~large).joined(split_cells(rows, cells.take(large)))
    sums = [0] * rows.groups
    for part in slices(cells):
        place = int(part.before[:, 0].sum())  # all cells are here: slices have no gaps
        for groups in _ordered(rows, part, noise):
            for group in range(rows.groups):
                own = np.flatnonzero(groups == group)
                sums[group] += int(own.sum()) + len(own) * (place + 1)
            place += len(groups)
    return sums


class _Walk:
    """How far i · up - j · down gets, i and j the rows of two groups up to a row.

    Parameters
    ----------
    steps : (int, int)
        Of a row of the first group up, and of the second down.
    statistic, alternative
        Which extremes count.
    """

    __slots__ = ("_down", "_side", "_statistic", "_steps", "_up")

    def __init__(self, steps: tuple[int, int], statistic: TwoSampleStatistic, side: Side) -> None:
        if steps[0] * steps[1] >= _MOST:
            raise DataError("the two samples have too many rows for an exact distance; use grid.")
        self._steps, self._statistic, self._side = steps, statistic, side
        self._up = self._down = 0

    def reach(self, rows: Grouped, noise: NoiseSource) -> int:
        """Return the distance."""
        cells = self._open(split_cells(rows, whole(2)))
        while True:
            few = cells.rows[~cells.tied].sum() <= value_order.SLICE_ROWS
            finer = self._worth_cutting(cells)
            if few or not finer.any():
                break
            found = split_cells(rows, cells.take(finer))
            cells = self._open(cells.take(~finer).joined(found))
        for part in slices(cells):
            self._look(rows, self._open(part), noise)
        return int(reach(self._up, self._down, self._statistic, self._side))

    def _worth_cutting(self, cells: Cells) -> NDArray[np.bool_]:
        """Choose the largest cells that are not of one value."""
        sizes = np.where(cells.tied, 0, cells.rows)
        chosen: NDArray[np.bool_] = sizes > min(_SMALL, value_order.SLICE_ROWS)
        if chosen.sum() > _OPEN:
            least = np.partition(sizes, -_OPEN)[-_OPEN]
            chosen &= sizes >= least
            chosen[np.flatnonzero(chosen)[_OPEN:]] = False
        return chosen

    def _open(self, cells: Cells) -> Cells:
        """See how far the walk is between cells, and keep those in which it may get further."""
        if not len(cells):
            return cells
        start = self._walk(cells.before)
        end = self._walk(cells.before + cells.counts)  # between two values: no ties
        self._see(start)
        self._see(end)
        up, down = self._up, self._down
        if self._statistic == "ks" and self._side == "two-sided":
            up = down = max(up, down)
        above = start + cells.counts[0] * self._steps[0] > up
        below = cells.counts[1] * self._steps[1] - start > down
        further = {"two-sided": above | below, "greater": above, "less": below}[self._side]
        return cells.take(further & (cells.counts > 0).all(axis=0))

    def _look(self, rows: Grouped, cells: Cells, noise: NoiseSource) -> None:
        """Walk through the rows of some cells."""
        if not len(cells):
            return
        sizes, start = cells.rows, self._walk(cells.before)
        if len(cells) > 1 or sizes[0] <= value_order.SLICE_ROWS:
            walk = self._walked(groups_in_order(rows, cells, noise))
            first = np.cumsum(sizes) - sizes
            start -= np.append(0, walk)[first]  # the cells before it, which may not be all
            self._see(walk + np.repeat(start, sizes))
            return
        at = int(start[0])
        for groups in tied_groups(cells.counts[:, 0], noise):
            walk = self._walked(groups) + at
            self._see(walk)
            at = int(walk[-1])

    def _walked(self, groups: Groups) -> Counts:
        steps = np.where(groups == 0, self._steps[0], -self._steps[1])
        walked: Counts = np.cumsum(steps, dtype=np.int64)
        return walked

    def _walk(self, counts: Counts) -> Counts:
        found: Counts = counts[0] * self._steps[0] - counts[1] * self._steps[1]
        return found

    def _see(self, walk: Counts) -> None:
        self._up = max(self._up, int(walk.max()))
        self._down = max(self._down, -int(walk.min()))
