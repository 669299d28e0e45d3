"""Secret orders that give every record the same place in both neighbours.

A test whose groups are private, or whose rows get a secret order, is compared under a coupling: the
order is uniform whatever the data is, so it may be chosen for each neighbour such that records lie
alike. Two ways to write an order are in use; the coupling that fits is the one under which the
numbers move least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import SimulatedNoise

__all__ = ["COUPLINGS", "Coupling", "bins_by_rank", "coupled"]

Coupling = Literal["places", "ranks"]
COUPLINGS: tuple[Coupling, ...] = ("places", "ranks")
Ints = NDArray[np.intp]


class GivenBins:
    """Secret bins by given ranks of rows, in the place of those by secret keys."""

    def __init__(self, ranks: Ints, bins: Ints, count: int) -> None:
        self.ranks, self.bins, self.count = ranks.astype(np.uint64), bins, count

    def of_rows(self, start: int, stop: int) -> Ints:
        """Return the bins of some rows."""
        return self.bins[start:stop]

    def lowest(self, start: int, stop: int) -> tuple[Ints, NDArray[np.uint64]]:
        """Return which of some rows are in the first bin, and their ranks."""
        mine = np.flatnonzero(self.bins[start:stop] == 0)
        return mine, self.ranks[start:stop][mine]


@contextmanager
def coupled(stored: Ints, seed: int, how: Coupling) -> Iterator[None]:
    """Let all secret orders of a block follow the records.

    Parameters
    ----------
    stored : ndarray of int
        Which record lies at which place: the first group's, then the second's.
    seed : int
        The same seed gives records the same order, wherever they lie.
    how : {"places", "ranks"}
        Whether an order lists places, or gives each place its rank.
    """
    from privatest.statistics import bin_sums, pair_swaps  # noqa: PLC0415

    rng, size, usual = np.random.default_rng(seed), len(stored), SimulatedNoise.permutation
    where = np.argsort(stored)

    def permutation(self: SimulatedNoise, asked: int) -> Ints:
        if asked != size:
            return usual(self, asked)
        records = rng.permutation(size)
        order: Ints = where[records] if how == "places" else records[stored]
        return order

    bins, pair_bins = bins_by_rank(where[np.random.default_rng(seed).permutation(size)])
    patches: list[tuple[Any, str, Any]] = [
        (SimulatedNoise, "permutation", permutation),
        (bin_sums, "secret_bins", bins),
        (pair_swaps, "secret_pair_bins", pair_bins),
    ]
    before = [getattr(owner, name) for owner, name, _ in patches]
    try:
        for owner, name, new in patches:
            setattr(owner, name, new)
        yield
    finally:
        for (owner, name, _), old in zip(patches, before, strict=True):
            setattr(owner, name, old)


def bins_by_rank(
    order: Ints,
) -> tuple[Callable[..., GivenBins], Callable[..., tuple[GivenBins, ...]]]:
    """Return what gives bins their rows, if the row at rank i lies at place order[i]."""
    ranks = np.argsort(order)

    def bins(sizes: Any, noise: Any) -> GivenBins:
        del noise
        if sum(sizes) != len(ranks):  # one group of several: its own records, in their order
            return _own(sizes)
        ends = np.cumsum(sizes)[:-1]
        return GivenBins(ranks, np.searchsorted(ends, ranks, side="right"), len(sizes))

    def pair_bins(n: int, m: int, sizes: Any, noise: Any) -> tuple[GivenBins, ...]:
        del noise
        of_x = np.append(order < n, False)  # by rank; a leftover row has no partner
        partner = np.minimum(np.arange(n + m) ^ 1, n + m)
        alone = np.arange(n + m) >= (n + m) // 2 * 2
        apart = ((of_x[:-1] == of_x[partner]) | alone).astype(int)
        found = 2 * np.searchsorted(np.cumsum(sizes)[:-1], np.arange(n + m), side="right") + apart
        sides = slice(0, n), slice(n, n + m)
        return tuple(GivenBins(ranks[own], found[ranks][own], 2 * len(sizes)) for own in sides)

    return bins, pair_bins


def _own(sizes: Any) -> GivenBins:
    ranks = np.arange(sum(sizes))
    ends = np.cumsum(sizes)[:-1]
    return GivenBins(ranks, np.searchsorted(ends, ranks, side="right"), len(sizes))
