"""Cells of private rows, wherever the rows are, and integers that are added up over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.data.stream import Joined, source_of
from privatest.engines.summaries import summarise
from privatest.synthetic.tables.cells import Cells

__all__ = ["added_up", "coded", "derived"]

Floats = NDArray[np.float64]
Integers = list[NDArray[np.int64]]


def derived(sample: Sample, make: Callable[[Floats], Floats], width: int) -> Sample:
    """Return public functions of single rows: held if the rows are, else found as they pass."""
    joined = Joined((sample.held,), make, width)
    return Sample(joined if source_of(sample.held) else joined.load(), None)


def coded(sample: Sample, cells: Sequence[Cells | None]) -> Sample:
    """Return the cell of each row in each column, of rows in their own units; 0 without cells."""
    return derived(sample, partial(_codes, tuple(cells)), len(cells))


def _codes(cells: tuple[Cells | None, ...], rows: Floats) -> Floats:
    codes = np.zeros((len(rows), len(cells)))
    for place, own in enumerate(cells):
        if own is not None:
            codes[:, place] = own.codes(rows[:, place])
    return codes


def added_up(sample: Sample, integers: Callable[[Floats], Integers]) -> Integers:
    """Add up integers of single rows over all: exact in any order, in one pass."""
    (found,) = summarise((sample, partial(_Added, integers)))
    return found.sums or integers(np.empty((0, sample.width)))


class _Added:
    __slots__ = ("integers", "sums")

    def __init__(self, integers: Callable[[Floats], Integers]) -> None:
        self.integers = integers
        self.sums: Integers = []

    def update(self, rows: Floats, start: int) -> None:
        del start
        self._add(self.integers(rows))

    def merge(self, other: _Added) -> None:
        if other.sums:
            self._add(other.sums)

    def _add(self, more: Integers) -> None:
        if not self.sums:
            self.sums = more
            return
        self.sums = [own + new for own, new in zip(self.sums, more, strict=True)]
