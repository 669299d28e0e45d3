"""The order of rows by value, ties in a secret order, a slice of the line at a time.

What is kept of a row is its group: statistics of ranks and of distribution functions need no more.
Ties need not be read again. The order of equal rows is a uniform order of so many of each
group, which is drawn here, from counts. Proof: docs/proofs/value-cells.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.secret_order import KEYS_AT_ONCE, SecretBins, secret_bins
from privatest.statistics.value_cells import Cells, Counts, Grouped, Kept, Keys

__all__ = ["HELD_ROWS", "SLICE_ROWS", "groups_in_order", "slices", "tied_groups"]

HELD_ROWS = 1 << 26  # up to so many rows tests sort them in memory, which is quicker
SLICE_ROWS = 1 << 24  # that are put in order at a time

Groups = NDArray[np.int16]


def slices(cells: Cells) -> Iterator[Cells]:
    """Yield neighbouring cells with at most ``SLICE_ROWS`` rows together, or one with more."""
    ends = np.cumsum(cells.rows)
    first = 0
    while first < len(cells):
        past = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, past + SLICE_ROWS, side="right")))
        yield cells.take(slice(first, last))
        first = last


def groups_in_order(rows: Grouped, cells: Cells, noise: NoiseSource) -> Groups:
    """Return the group of each row of a slice, in the order of values, ties in a secret order."""
    tied, shared = cells.tied, (cells.counts > 0).sum(axis=0) > 1
    known = cells.take(tied | ~shared)  # all that matters of them is how many there are
    keys = [[np.repeat(known.low, counts)] for counts in known.counts]
    wanted = cells.take(~tied & shared)
    if len(wanted):
        found = rows.summaries(partial(Kept, wanted.low, wanted.high))
        own = [part for each in found for part in each.keys]
        keys = [[*first, *more] for first, more in zip(keys, own, strict=True)]
    return _merged([np.sort(np.concatenate(parts)) for parts in keys], noise)


def _merged(keys: list[Keys], noise: NoiseSource) -> Groups:
    """Return the group of each of the keys in their order; those of a group come sorted."""
    total = sum(map(len, keys))
    groups, tied = np.empty(total, dtype=np.int16), np.zeros(total, dtype=np.bool_)
    values = []  # of rows that are equal to one of another group
    for own, mine in enumerate(keys):
        place, shared = np.arange(len(mine)), np.zeros(len(mine), dtype=np.bool_)
        for other, theirs in enumerate(keys):
            if other == own or not len(theirs):
                continue
            # equal keys in the order of their groups, before they are shuffled
            found = np.searchsorted(theirs, mine, side="right" if other < own else "left")
            place += found
            near = found - 1 if other < own else np.minimum(found, len(theirs) - 1)
            shared |= theirs[near] == mine
        groups[place], tied[place] = own, shared
        values.append(mine[shared])
    if tied.any():
        ordered = np.sort(np.concatenate(values))
        groups[tied] = _shuffled(ordered, groups[tied].astype(np.int64), noise)
    return groups


def _shuffled(keys: Keys, groups: Counts, noise: NoiseSource) -> Counts:
    """Put the groups of equal keys in a uniform order; equal keys are next to each other."""
    runs = np.cumsum(np.append(False, keys[1:] != keys[:-1]))
    count = int(groups.max()) + 1
    # run, label and group in one number: sorted five times as fast as places
    drawn = (runs * len(keys) + noise.permutation(len(keys))) * count + groups
    drawn.sort()
    shuffled: Counts = drawn % count
    return shuffled


def tied_groups(counts: Counts, noise: NoiseSource) -> Iterator[Groups]:
    """Yield the groups of rows of one value in a uniform order, some at a time.

    Those of many rows are cut into stretches first: how many of each group are in each follows
    from secret keys of as many rows.
    """
    total = int(counts.sum())
    if total <= SLICE_ROWS:
        yield _drawn(counts, noise)
        return
    sizes = [SLICE_ROWS] * (total // SLICE_ROWS)
    sizes += [total % SLICE_ROWS] if total % SLICE_ROWS else []
    bins = secret_bins(sizes, noise)
    ends = [0, *np.cumsum(counts).tolist()]
    of_bins = np.array([_by_bin(bins, start, stop) for start, stop in pairwise(ends)])
    for own in of_bins.T:
        yield _drawn(own, noise)


def _drawn(counts: Counts, noise: NoiseSource) -> Groups:
    groups = np.repeat(np.arange(len(counts), dtype=np.int16), counts)
    return groups[noise.permutation(len(groups))]


def _by_bin(bins: SecretBins, start: int, stop: int) -> Counts:
    """Count rows ``start`` to ``stop`` by bin."""
    counts = np.zeros(bins.count, dtype=np.int64)
    for first in range(start - start % KEYS_AT_ONCE, stop, KEYS_AT_ONCE):
        found = bins.of_rows(max(first, start), min(first + KEYS_AT_ONCE, stop))
        counts += np.bincount(found, minlength=bins.count)
    return counts
