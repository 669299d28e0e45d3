"""Public windows of a grid, and how well each fits between two ranks.

A window fits if the counts below its ends are near the two ranks. Windows have lengths from the
whole grid down to 1/4096 of it, so that a good one exists wherever the rows are and however close
they lie together. Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Windows", "window_scores", "windows"]

_RATIO = 2**0.5  # of lengths
_STEPS = 8  # windows of one length begin at each eighth of it
_POWER = 1.25  # of the length, in the weight of a window: 1 would make all lengths as likely
_SHORTEST = 4096  # windows of the shortest length, end to end

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Windows between edges of a grid; public.

    Attributes
    ----------
    first, last : ndarray of int
        Their ends.
    after_first, before_last : ndarray of int
        Edges a third of the length further in; for the shortest windows, the opposite ends.
    shortest : ndarray of bool
        Whether there is no shorter one.
    multiplicities : ndarray of int
        As how many candidates each counts. Of two lengths, the windows of the longer one together
        count more, by the fourth root of the ratio: a window that is too long costs less than one
        that misses the quantile.
    """

    first: Integers
    last: Integers
    after_first: Integers
    before_last: Integers
    shortest: NDArray[np.bool_]
    multiplicities: Integers


@lru_cache(maxsize=8)
def windows(cells: int) -> Windows:
    """Return the windows of a grid of so many cells."""
    shortest = max(1, cells // _SHORTEST)
    lengths = [cells]
    while lengths[-1] > shortest:
        lengths.append(max(shortest, min(lengths[-1] - 1, round(lengths[-1] / _RATIO))))
    parts = []
    for length in lengths:
        starts = np.unique(
            np.append(np.arange(0, cells - length, max(1, length // _STEPS)), cells - length)
        )
        inner = length if length == shortest else -(-length // 3)
        same = np.full(len(starts), length == shortest)
        weight = np.full(len(starts), max(1, round((length / shortest) ** _POWER)))
        ends = starts, starts + length, starts + inner, starts + length - inner
        parts.append((*ends, same, weight))
    return Windows(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def window_scores(
    below: Integers, candidates: Windows, low: int, high: int, *, cap: int
) -> Integers:
    """Return how badly each window fits between the ranks ``low`` and ``high``; 0 is best.

    Parameters
    ----------
    below : ndarray of int
        Private counts below edges 0 ... cells.
    candidates : Windows
        The windows of the grid.
    low, high : int
        Public ranks.
    cap : int
        Beyond it the distance of counts from ranks does not matter, as long as the ranks are
        passed within the outer thirds: where many rows are equal, no count need be near. For the
        shortest windows it does not matter at all.

    Notes
    -----
    **Sensitivity** A count that moves by k moves each difference by k at most, that of two counts
    too, since a row is between them or not; so the largest moves by k, and so does a minimum.
    """
    first, last = below[candidates.first] - low, below[candidates.last] - high
    near = np.maximum(np.maximum(np.abs(first), np.abs(last)), np.abs(last - first))
    passed = np.maximum(first, low - below[candidates.after_first])
    passed = np.maximum(passed, np.maximum(-last, below[candidates.before_last] - high))
    scores: Integers = np.maximum(np.where(candidates.shortest, 0, np.minimum(near, cap)), passed)
    return scores
