"""Counts of cells as a summary of one pass: of rows in memory, of a file, of a cluster."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.data.stream import Stream
from privatest.engines.summaries import summarise
from privatest.statistics.cells import cell_counts
from privatest.statistics.placing import BLOCK, Placing

__all__ = ["CellCounts", "counts_of"]


class CellCounts:
    """How many values of the first column are in each cell between public cut points."""

    __slots__ = ("_filled", "_place", "_values", "counts", "cuts")

    def __init__(self, cuts: NDArray[np.float64]) -> None:
        self.cuts, self.counts = cuts, np.zeros(len(cuts) + 1, dtype=np.int64)
        self._place: Placing | None = None  # for the thread that updates it
        self._values, self._filled = np.empty(0), 0

    def update(self, rows: NDArray[np.float64], start: int) -> None:
        """Keep the values of a block, until there are enough to be counted together."""
        del start
        if self._place is None:
            self._place, self._values = Placing(self.cuts), np.empty(BLOCK)
        if self._filled + len(rows) > BLOCK:
            self._count()
        self._values[self._filled : self._filled + len(rows)] = rows[:, 0]
        self._filled += len(rows)

    def close(self) -> None:
        """Count what is left, and give memory back."""
        self._count()
        self._place, self._values = None, np.empty(0)

    def merge(self, other: CellCounts) -> None:
        """Add other counts."""
        self.counts += other.counts

    def _count(self) -> None:
        if self._place is not None and self._filled:
            self.counts += self._place.counts(self._values[: self._filled])
        self._filled = 0


def counts_of(samples: tuple[Sample, ...], cuts: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Count each sample's values by cell: the same numbers however rows are stored and read."""
    if not any(isinstance(sample.held, Stream) for sample in samples):
        return [cell_counts(sample.values, cuts) for sample in samples]
    empty = partial(CellCounts, cuts)
    return [found.counts for found in summarise(*((sample, empty) for sample in samples))]
