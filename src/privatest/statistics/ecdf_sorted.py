"""J of two sorted samples of many records: most of the walk is not looked at.

The walk i m - j n is found at every 128th record of x. Between two of these it cannot get further
than if all of x came first, or all of y; only where that is beyond what is reached elsewhere are
records looked at. Labels, which break ties, are drawn for those that are tied there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.ecdf import Side, TwoSampleStatistic, reach
from privatest.statistics.ranks import Labels, in_order

__all__ = ["places_before", "two_sample_sorted", "walked"]

_STEP = 128

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


def two_sample_sorted(
    x: Floats,
    y: Floats,
    statistic: TwoSampleStatistic,
    shuffle: Callable[[int], Labels],
    alternative: Side = "two-sided",
) -> int:
    """Return J of two sorted samples: the law of :func:`two_sample` with secret labels.

    Notes
    -----
    **Sensitivity** That of :func:`two_sample`: for labels of all records, of which ``shuffle``
    gives the order of those that matter, it is the same number.
    """
    n, m = len(x), len(y)
    starts = np.arange(0, n, _STEP)
    ends = np.minimum(starts + _STEP, n)
    low, high = np.searchsorted(y, x[starts]), np.searchsorted(y, x[ends - 1], side="right")
    reached = np.searchsorted(x, x[starts]) * m - low * n  # between two values: no ties
    up, down = max(0, int(reached.max())), max(0, -int(reached.min()))
    further = (ends * m - low * n > up) | (high * n - starts * m > down)
    place = (starts[further, None] + np.arange(_STEP)).ravel()
    place = _with_ties(place[place < n], x, y)
    up, down = walked(places_before(x[place], y, shuffle), place, (n, m), (up, down))
    return int(reach(up, down, statistic, alternative))


def walked(
    before: Places, place: Places, sizes: tuple[int, int], reached: tuple[int, int]
) -> tuple[int, int]:
    """Return how far up and down the walk gets, at some records of x or elsewhere.

    ``place`` is how many of x come before each of these records, and ``before`` how many of y.
    """
    (n, m), (up, down) = sizes, reached
    lowest = before * n - place * m  # how far down the walk is just before a record of x
    return max(up, m - int(lowest.min(initial=m))), max(down, int(lowest.max(initial=0)))


def places_before(x: Floats, y: Floats, shuffle: Callable[[int], Labels]) -> Places:
    """Return how many of sorted y come before each of sorted x, which has all ties that it has."""
    before = np.searchsorted(y, x)
    tied = y[np.minimum(before, len(y) - 1)] == x if len(y) else np.zeros(len(x), dtype=np.bool_)
    before[tied] += _among_ties(x[tied], y, shuffle)
    return before


def _with_ties(place: Places, x: Floats, y: Floats) -> Places:
    """Add all records of x that are equal to one of these and to one of y: they share an order."""
    values = x[place]
    found = np.minimum(np.searchsorted(y, values), len(y) - 1)
    values = np.unique(values[y[found] == values])
    first, last = np.searchsorted(x, values), np.searchsorted(x, values, side="right")
    counts = last - first
    more = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    chosen = np.zeros(len(x), dtype=np.bool_)
    chosen[place] = chosen[more] = True
    return np.flatnonzero(chosen)


def _among_ties(x: Floats, y: Floats, shuffle: Callable[[int], Labels]) -> Places:
    """Return how many of the equal records of y come before each of x, in a random order."""
    y = y[x[np.minimum(np.searchsorted(x, y), len(x) - 1)] == y] if len(x) > 0 else y[:0]
    flags = np.arange(len(x) + len(y)) < len(x)
    of_x = in_order(flags, np.concatenate([x, y]), shuffle(len(flags)))
    before = np.cumsum(~of_x)[of_x]  # records of y before each of x, of all these values
    return np.asarray(before - np.searchsorted(y, x))
