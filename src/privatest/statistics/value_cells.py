"""Rows between values, counted in passes: what a sort would find, where rows are too many to hold.

A value is known by a key, a whole number of the same order. A pass counts the keys of each group
by cells, and finds the lowest and the highest key of each cell. The next pass takes some of the
cells and cuts these finer; a last one keeps the keys of those in which the order itself matters.
Counts, extremes and kept keys do not depend on who reads what. Proof: docs/proofs/value-cells.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.engines.summaries import summarise

__all__ = ["CELLS", "Cells", "Grouped", "Kept", "Keys", "Tally", "keys_of", "split_cells", "whole"]

CELLS = 1 << 20  # counted in a pass
_LAST = np.uint64(2**64 - 1)
_LOWEST = np.int64(-(2**63))

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]
Counts = NDArray[np.int64]
Split = Callable[[Floats, int], tuple[Floats, ...]]
"""A block of rows and the number of its first to the values of each group; it travels."""


def keys_of(values: Floats) -> Keys:
    """Return whole numbers in the order of the values, equal where values are.

    Examples
    --------
    >>> keys = keys_of(np.array([-np.inf, -1.5, -0.0, 0.0, 5e-324, 2.0]))
    >>> np.diff(keys.astype(object)).tolist()[2:4]
    [0, 1]
    """
    bits = (values + 0.0).view(np.int64)  # -0.0 is 0.0
    turned: Keys = (bits ^ ((bits >> 63) | _LOWEST)).view(np.uint64)
    return turned


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Cells:
    """Stretches of keys in their order, none of which is empty.

    Attributes
    ----------
    low, high : ndarray
        The lowest and the highest key of each.
    counts, before : ndarray
        Groups × cells: how many rows there are in each, and before it.
    """

    low: Keys
    high: Keys
    counts: Counts
    before: Counts

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.low)

    @property
    def rows(self) -> Counts:
        """How many rows of all groups each has."""
        total: Counts = self.counts.sum(axis=0)
        return total

    @property
    def tied(self) -> NDArray[np.bool_]:
        """Whether all rows of a cell have one value."""
        return np.asarray(self.low == self.high)

    def take(self, which: Any) -> Cells:
        """Return some of them."""
        return Cells(
            self.low[which], self.high[which], self.counts[:, which], self.before[:, which]
        )

    def joined(self, other: Cells) -> Cells:
        """Return these and others, in their order."""
        both = Cells(
            np.append(self.low, other.low),
            np.append(self.high, other.high),
            np.hstack([self.counts, other.counts]),
            np.hstack([self.before, other.before]),
        )
        return both.take(np.argsort(both.low))


def whole(groups: int) -> Cells:
    """Return one cell with all keys, before anything is counted."""
    none = np.zeros((groups, 1), dtype=np.int64)
    return Cells(np.zeros(1, np.uint64), np.full(1, _LAST), none, none)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grouped:
    """Values in groups: a sample for each, or one sample whose blocks are split.

    Parameters
    ----------
    samples : tuple of Sample
        The rows.
    groups : int
        Number of groups: of samples, unless there is one that is split.
    split : function, optional
        What makes groups of the rows of one sample.
    """

    samples: tuple[Sample, ...]
    groups: int
    split: Split | None = None

    def summaries(self, empty: Callable[..., Any]) -> list[Any]:
        """Go once through the rows; return what was found of each sample."""
        groups = self.groups // len(self.samples)
        made = partial(empty, self.split or _first_column, groups)
        return summarise(*((sample, made) for sample in self.samples))


def _first_column(rows: Floats, start: int) -> tuple[Floats, ...]:
    del start
    return (rows[:, 0],)


class Tally:
    """How many keys of each group are in each cell of some stretches; the extremes of a cell.

    Parameters
    ----------
    low, high : ndarray
        Stretches of keys, in order.
    each : int
        Cells that a stretch is cut in, of one length.
    split, groups
        What makes groups of a block, and their number.
    """

    __slots__ = ("counts", "each", "high", "highest", "low", "lowest", "split", "steps")

    def __init__(self, low: Keys, high: Keys, each: int, split: Split, groups: int) -> None:
        self.low, self.high, self.each, self.split = low, high, each, split
        self.steps = (high - low) // np.uint64(each) + np.uint64(1)
        cells = each * len(low)
        self.counts = np.zeros((groups, cells), dtype=np.int64)
        self.lowest, self.highest = np.full(cells, _LAST), np.zeros(cells, dtype=np.uint64)

    def update(self, rows: Floats, start: int) -> None:
        """Count the keys of a block."""
        for counts, values in zip(self.counts, self.split(rows, start), strict=True):
            keys, place = _inside(keys_of(np.sort(values)), self.low, self.high)
            if not len(keys):
                continue
            cells = place * self.each
            cells += ((keys - self.low[place]) // self.steps[place]).astype(np.intp)
            first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
            after = np.append(first[1:], len(cells))
            own = cells[first]
            counts[own] += after - first
            self.lowest[own] = np.minimum(self.lowest[own], keys[first])
            self.highest[own] = np.maximum(self.highest[own], keys[after - 1])

    def merge(self, other: Tally) -> None:
        """Add other blocks."""
        self.counts += other.counts
        np.minimum(self.lowest, other.lowest, out=self.lowest)
        np.maximum(self.highest, other.highest, out=self.highest)


class Kept:
    """The keys of each group that are in some stretches, in no order."""

    __slots__ = ("high", "keys", "low", "split")

    def __init__(self, low: Keys, high: Keys, split: Split, groups: int) -> None:
        self.low, self.high, self.split = low, high, split
        self.keys: list[list[Keys]] = [[] for _ in range(groups)]

    def update(self, rows: Floats, start: int) -> None:
        """Keep those of a block."""
        for held, values in zip(self.keys, self.split(rows, start), strict=True):
            keys = keys_of(values)
            near = keys[(keys >= self.low[0]) & (keys <= self.high[-1])]
            held.append(_inside(near, self.low, self.high)[0])

    def merge(self, other: Kept) -> None:
        """Add other blocks."""
        for held, more in zip(self.keys, other.keys, strict=True):
            held.extend(more)


def _inside(keys: Keys, low: Keys, high: Keys) -> tuple[Keys, NDArray[np.intp]]:
    """Return the keys that are in a stretch, and in which."""
    if len(low) == 1 and low[0] == 0 and high[0] == _LAST:  # all are, before anything is known
        return keys, np.zeros(len(keys), dtype=np.intp)
    place = np.searchsorted(low, keys, side="right") - 1
    inside = np.flatnonzero((place >= 0) & (keys <= high[place]))
    return keys[inside], place[inside]


def split_cells(rows: Grouped, cells: Cells) -> Cells:
    """Cut cells into finer ones, in one pass; those without rows are left out."""
    each = CELLS // len(cells)
    found = rows.summaries(partial(Tally, cells.low, cells.high, each))
    counts = np.concatenate([each.counts for each in found])
    low = np.minimum.reduce([each.lowest for each in found])
    high = np.maximum.reduce([each.highest for each in found])
    parent = np.arange(counts.shape[1]) // each
    until = np.cumsum(counts, axis=1) - counts
    before = until - until[:, parent * each] + cells.before[:, parent]
    used = counts.any(axis=0)
    return Cells(low[used], high[used], counts[:, used], before[:, used])
