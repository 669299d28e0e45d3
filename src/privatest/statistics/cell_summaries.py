"""Counts of cells as a summary of one pass: of rows in memory, of a file, of a cluster."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.data.stream import Stream
from privatest.engines.summaries import summarise
from privatest.statistics.cells import cell_counts

__all__ = ["CellCounts", "counts_of"]


class CellCounts:
    """How many values of the first column are in each cell between public cut points."""

    __slots__ = ("counts", "cuts")

    def __init__(self, cuts: NDArray[np.float64]) -> None:
        self.cuts, self.counts = cuts, np.zeros(len(cuts) + 1, dtype=np.int64)

    def update(self, rows: NDArray[np.float64], start: int) -> None:
        """Count the values of a block."""
        del start
        self.counts += cell_counts(rows[:, 0], self.cuts)

    def merge(self, other: CellCounts) -> None:
        """Add other counts."""
        self.counts += other.counts


def counts_of(samples: tuple[Sample, ...], cuts: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Count each sample's values by cell: the same numbers however rows are stored and read."""
    if not any(isinstance(sample.held, Stream) for sample in samples):
        return [cell_counts(sample.values, cuts) for sample in samples]
    empty = partial(CellCounts, cuts)
    return [found.counts for found in summarise(*((sample, empty) for sample in samples))]
