"""J of two samples of many records in no order: only cells that matter are sorted.

Records are counted by cells, which is much quicker than to sort them. Equal records share a cell,
so the walk i m - j n is known between cells. Within a cell it cannot get further than if all of x
came first, or all of y; only the records of cells where that is beyond what is reached elsewhere
are put in order. Where that would be most of them, all are sorted. Cells are chosen by a few
records, for speed alone: any choice gives the same J. Proof: docs/proofs/ks-type.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.bins import parallel
from privatest.statistics.ecdf import (
    LABELLED_ROWS,
    Side,
    TwoSampleStatistic,
    reach,
    two_sample,
)
from privatest.statistics.ecdf_sorted import places_before, two_sample_sorted, walked
from privatest.statistics.ranks import Labels

__all__ = ["two_sample_cells"]

_CELLS = 1 << 15  # their numbers have 16 bits
_FEW = 1 / 4  # of all records: if more are in cells that matter, all are sorted
_SEEN = 1 << 12  # records of each sample by which cells are chosen
_TAIL = 1 / 64  # of these: they share the first and the last cell if they are far out
_FAR = 4.0  # times the range of the others
_CROWD = 1 / 256  # of these: so many in one cell matter, in all likelihood
_BLOCK = 1 << 18  # records that are placed, or counted, at a time

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Codes = NDArray[np.uint16]


class _Line(NamedTuple):
    """Equal cells: a value's is found by rounded steps each of which keeps order and ties."""

    scale: float
    shift: float

    def codes(self, values: Floats) -> Codes:
        """Return the cell of each value."""
        codes = np.empty(len(values), dtype=np.uint16)
        held = np.empty(min(_BLOCK, len(values)))
        for start in range(0, len(values), _BLOCK):
            block = values[start : start + _BLOCK]
            near = held[: len(block)]
            with np.errstate(over="ignore"):  # a warning would tell of a value
                np.multiply(block, self.scale, out=near)
            near += self.shift
            codes[start : start + _BLOCK] = np.clip(near, 0, _CELLS - 1, out=near)
        return codes


def two_sample_cells(
    x: Floats,
    y: Floats,
    statistic: TwoSampleStatistic,
    shuffle: Callable[[int], Labels],
    alternative: Side = "two-sided",
) -> int:
    """Return J of two samples: the law of :func:`two_sample` with secret labels.

    Notes
    -----
    **Sensitivity** That of :func:`two_sample`: for labels of all records, of which ``shuffle``
    gives the order of those that matter, it is the same number.
    """
    n, m = len(x), len(y)
    seen = np.sort(np.concatenate([each[:: len(each) // _SEEN + 1] for each in (x, y)]))
    line = _line(seen)
    if line is None:
        tied = n + m <= LABELLED_ROWS and 2 * len(np.unique(seen)) < len(seen)
        return _sorted(x, y, statistic, shuffle, alternative, tied=tied)
    placed = parallel(partial(_counted, line=line), (x, y), n + m)
    (codes_x, of_x), (codes_y, of_y) = placed
    ends = np.cumsum(of_x) * m - np.cumsum(of_y) * n
    up, down = max(0, int(ends.max())), max(0, -int(ends.min()))
    matters = _matters(of_x * m, of_y * n, ends, (up, down), statistic, alternative)
    if (of_x + of_y)[matters].sum() > _FEW * (n + m):
        return _sorted(x, y, statistic, shuffle, alternative)
    kept = partial(_kept, matters=matters)
    x, y = parallel(lambda each: kept(*each), ((x, codes_x), (y, codes_y)), n + m)
    before = places_before(x, y, shuffle) + _left_out(of_y, of_x, matters)
    place = np.arange(len(x)) + _left_out(of_x, of_x, matters)
    up, down = walked(before, place, (n, m), (up, down))
    return int(reach(up, down, statistic, alternative))


def _line(seen: Floats) -> _Line | None:
    """Choose cells by some sorted records; None if most of these are crowded in a few cells."""
    tail = int(_TAIL * len(seen))
    lower, upper = seen[0], seen[-1]
    inner = seen[tail], seen[-1 - tail]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if upper - lower > _FAR * (inner[1] - inner[0]):
            lower, upper = inner
        scale = _CELLS / (upper - lower)
        shift = -lower * scale
    if not (np.isfinite(scale) and np.isfinite(shift) and scale > 0):
        return None
    line = _Line(float(scale), float(shift))
    of_seen = np.bincount(line.codes(seen[tail : len(seen) - tail]))
    crowded = of_seen[of_seen > _CROWD * len(seen)].sum()
    return None if crowded > _FEW * len(seen) else line


def _sorted(
    x: Floats,
    y: Floats,
    statistic: TwoSampleStatistic,
    shuffle: Callable[[int], Labels],
    alternative: Side,
    *,
    tied: bool = False,
) -> int:
    """Return J by sorting all records; most need a label, or only a few."""
    x, y = parallel(np.sort, (x, y), len(x) + len(y))
    if tied:
        return two_sample(x, y, statistic, shuffle(len(x) + len(y)), alternative)
    return two_sample_sorted(x, y, statistic, shuffle, alternative)


def _counted(values: Floats, line: _Line) -> tuple[Codes, Counts]:
    """Return the cell of each value, and how many each cell has."""
    codes, counts = line.codes(values), np.zeros(_CELLS, dtype=np.int64)
    for start in range(0, len(codes), _BLOCK):
        counts += np.bincount(codes[start : start + _BLOCK], minlength=_CELLS)
    return codes, counts


def _kept(values: Floats, codes: Codes, matters: NDArray[np.bool_]) -> Floats:
    """Return the values in cells that matter, sorted."""
    return np.sort(values[np.flatnonzero(matters.take(codes))])


def _matters(
    rise: Counts,
    fall: Counts,
    ends: Counts,
    reached: tuple[int, int],
    statistic: TwoSampleStatistic,
    alternative: Side,
) -> NDArray[np.bool_]:
    """Return in which cells the walk may get further than it gets between cells."""
    up, down = reached
    if statistic == "ks" and alternative == "two-sided":
        up = down = max(up, down)
    above, below = ends + fall > up, rise - ends > down
    further = {"two-sided": above | below, "greater": above, "less": below}[alternative]
    return np.asarray(further & (rise > 0) & (fall > 0))


def _left_out(counts: Counts, of_x: Counts, matters: NDArray[np.bool_]) -> Counts:
    """Return how many are counted in left out cells before each record of x that is kept."""
    found: Counts = np.cumsum(np.where(matters, 0, counts))[matters]
    return np.repeat(found, of_x[matters])
