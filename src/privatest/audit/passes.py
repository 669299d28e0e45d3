"""The way of rows that memory does not hold, taken with twelve of them.

Tests of order read so many rows in passes, and order ties by counts alone
(docs/proofs/value-cells.md): which record is where among equal ones is never known. So the coupling
gives labels to the first, second, third of a group at a value, whichever it is. A record that
leaves takes the last label of its group away, and all others keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from privatest.audit.cases import Case

__all__ = ["GivenBins", "OrderedTies", "in_passes", "patched"]

Ints = NDArray[np.intp]
Patch = tuple[Any, str, Any]  # an owner, a name and what takes its place
_AT_ONCE = 5  # rows that are put in order at a time: twelve equal ones take three stretches
_MOST_GROUPS = 8


class GivenBins:
    """Secret bins by given ranks of rows, in the place of those by secret keys."""

    def __init__(self, bins: Ints, count: int) -> None:
        self.bins, self.count = bins, count

    def of_rows(self, start: int, stop: int) -> Ints:
        """Return the bins of some rows."""
        return self.bins[start:stop]


@contextmanager
def patched(patches: list[Patch]) -> Iterator[None]:
    """Put things in the place of others for a block."""
    before = [getattr(owner, name) for owner, name, _ in patches]
    try:
        for owner, name, new in patches:
            setattr(owner, name, new)
        yield
    finally:
        for (owner, name, _), old in zip(patches, before, strict=True):
            setattr(owner, name, old)


def in_passes(case: Case) -> Case:
    """Return the case with rows read in passes."""
    from privatest.numerics import order as value_order  # noqa: PLC0415

    def call(*given: Any) -> Any:
        with patched([(value_order, "HELD_ROWS", 0), (value_order, "SLICE_ROWS", _AT_ONCE)]):
            return case.call(*given)

    return replace(case, name=f"{case.name}, in passes", call=call, plain=False)


class OrderedTies:
    """Orders of equal rows from their counts, the same for neighbours but for one row.

    Parameters
    ----------
    stored : ndarray of int
        Which record lies at which place.
    seed : int
        The same seed gives the same labels.
    """

    def __init__(self, stored: Ints, seed: int) -> None:
        rng = np.random.default_rng([seed, len(stored)])
        self._labels = rng.random((_MOST_GROUPS, len(stored)))
        self._coins = (rng.random(len(stored)) < 0.5)[stored]
        self._groups = self._order = np.empty(0, np.intp)  # of the rows of one value
        self._taken = 0  # of them

    def patches(self) -> list[Patch]:
        """Return what takes the place of draws."""
        from privatest.numerics import ecdf as far_statistics  # noqa: PLC0415
        from privatest.numerics import order as value_order  # noqa: PLC0415

        tied = self._tied(value_order.tied_groups)
        return [
            (value_order, "_shuffled", self._shuffled),
            (value_order, "_drawn", self._drawn),
            (value_order, "secret_bins", self._bins),
            (far_statistics, "tied_groups", tied),
            (far_statistics, "row_coins", lambda _, start, stop: self._coins[start:stop]),
        ]

    def _shuffled(self, keys: Any, groups: Any, noise: Any) -> Any:
        """Order the groups of each value by their labels; they come sorted."""
        del noise
        runs = np.cumsum(np.append(False, keys[1:] != keys[:-1]))
        begins = np.append(True, (np.diff(runs) != 0) | (np.diff(groups) != 0))
        first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
        labels = self._labels[groups, np.arange(len(groups)) - first]
        return groups[np.lexsort((labels, runs))]

    def _tied(self, usual: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def tied(counts: Any, noise: Any) -> Iterator[Any]:
            self._sort(counts)
            yield from usual(counts, noise)

        return tied

    def _sort(self, counts: Any) -> None:
        self._groups = np.repeat(np.arange(len(counts)), counts)
        places = np.concatenate([np.arange(own) for own in counts])
        self._order, self._taken = np.argsort(self._labels[self._groups, places]), 0

    def _bins(self, sizes: Any, noise: Any) -> GivenBins:
        del noise
        ranks = np.argsort(self._order)
        return GivenBins(np.searchsorted(np.cumsum(sizes)[:-1], ranks, side="right"), len(sizes))

    def _drawn(self, counts: Any, noise: Any) -> Any:
        """Return the next rows of a value; the bins have counted as many of each group."""
        del noise
        begin, self._taken = self._taken, self._taken + int(counts.sum())
        found = self._groups[self._order[begin : self._taken]].astype(np.int16)
        if np.bincount(found, minlength=len(counts)).tolist() != list(counts):
            raise AssertionError("stretches of a value hold other rows than their bins say")
        return found
