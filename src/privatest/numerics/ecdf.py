"""Distances between distribution functions: one sample and a known law, or two samples.

Awan and Wang (2022). Each is a norm of a difference of distribution functions, so a replaced
record moves it by at most 1/n, whatever the data. Proofs: docs/proofs/ks-type.md. Rank statistics
of more rows than memory holds are here too: they share the passes over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency
from privatest.core.secret_order import row_coins
from privatest.data.encoding import Sample
from privatest.numerics import order as value_order
from privatest.numerics.order import (
    Counts,
    Floats,
    GroupedRows,
    Groups,
    KeyCells,
    Labels,
    groups_in_order,
    in_order,
    slices,
    split_cells,
    tied_groups,
    whole,
)
from privatest.numerics.permutation import parallel

OneSampleStatistic = Literal["ks", "kuiper", "cvm", "wasserstein"]
ONE_SAMPLE_STATISTICS: tuple[str, ...] = get_args(OneSampleStatistic)
TwoSampleStatistic = Literal["ks", "kuiper"]
TWO_SAMPLE_STATISTICS: tuple[str, ...] = get_args(TwoSampleStatistic)
Side = Literal["two-sided", "greater", "less"]

LATTICE = 1 << 20  # steps of the integer lattice in which 1/n, the sensitivity, is counted
LABELLED_ROWS = 1 << 22  # up to so many rows those of a cell are put in a random order
_ROUNDING = 1 << 26  # rows up to which nT · LATTICE has an error below 1/2


def one_sample(u: Floats, statistic: OneSampleStatistic, alternative: Side = "two-sided") -> float:
    """Return n · T, T a distance of the values u = F(x) in [0, 1] from the uniform law.

    T is sup |F_n - F| ("ks"; sup (F_n - F) if "greater", sup (F - F_n) if "less"),
    sup (F_n - F) + sup (F - F_n) ("kuiper"), the root of the integral of (F_n - F)² ("cvm"), or the
    integral of |F_n - F| ("wasserstein").

    **Sensitivity** 1, replace-one, ties or not; see :func:`one_sample_width`.
    """
    n = len(u)
    # in units of 1/n, so that all rounding errors are those of n · u
    above = n * np.sort(u) - np.arange(n)  # n (u - F_n just before u)
    below = above - 1.0
    if alternative != "two-sided":
        return float(-below.min() if alternative == "greater" else above.max())
    if statistic == "ks":
        return float(max(above.max(), -below.min()))
    if statistic == "kuiper":
        return float(above.max() - below.min())
    middle = above - 0.5
    if statistic == "cvm":
        return float(np.sqrt(1 / 12 + np.square(middle).mean()))
    inside = (above > 0) & (below < 0)
    parts = np.where(inside, np.square(above) + np.square(below), 2 * np.abs(middle))
    return float(0.5 * parts.mean())


def one_sample_counts(
    counts: Counts,
    cdf: Floats,
    statistic: OneSampleStatistic,
    labels: Floats | None,
    alternative: Side = "two-sided",
) -> float:
    """Return n · T from the counts of cells; ``cdf`` is F at the cut points between them.

    With ``labels``, numbers in [0, 1] for the records, a record is spread over its cell: u lies
    between the values of F at its two ends. Without, for "ks" and "kuiper", distances are measured
    at the ends of cells: never more than with labels.

    **Sensitivity** 1, as for :func:`one_sample`: a record has one cell, and one label.
    """
    if labels is not None:
        left, right = np.append(0.0, cdf), np.append(cdf, 1.0)
        u = np.repeat(left, counts) + np.repeat(right - left, counts) * labels
        return one_sample(u, statistic, alternative)
    above = np.cumsum(counts)[:-1] - counts.sum() * cdf
    up, down = float(above.max(initial=0.0)), -float(above.min(initial=0.0))
    return reach(up, down, statistic, alternative)


def on_lattice(scaled: float) -> int:
    """Return n · T as an integer number of lattice steps."""
    return round(scaled * LATTICE)


def one_sample_width(n: int) -> int:
    """Return the sensitivity of :func:`on_lattice` of :func:`one_sample`.

    n · T moves by at most 1: LATTICE steps, and one more step that covers the rounding errors of
    both neighbours (two or more beyond 2^26 rows).
    """
    return LATTICE + 1 + n // _ROUNDING


def two_sample(
    x: Floats,
    y: Floats,
    statistic: TwoSampleStatistic,
    labels: Labels,
    alternative: Side = "two-sided",
) -> int:
    """Return J = n m T as an exact integer, T the distance of the two samples.

    With i and j the numbers of x and y up to a record, J is max |i m - j n| over all records for
    "ks" (max of i m - j n if "greater", of j n - i m if "less"), and max - min for "kuiper".
    ``labels``, a permutation for the records of x, then y, breaks ties: if it is drawn in secret,
    independently of the data, the laws of :mod:`privatest.methods.ks` hold exactly.

    **Sensitivity** See :func:`two_sample_width`.
    """
    n, m = len(x), len(y)
    of_x = in_order(np.arange(n + m) < n, np.concatenate([x, y]), labels)
    walk = np.cumsum(np.where(of_x, m, -n), dtype=np.int64)
    return int(reach(int(walk.max()), -int(walk.min()), statistic, alternative))


def two_sample_counts(
    counts_x: Counts,
    counts_y: Counts,
    statistic: TwoSampleStatistic,
    labels: Labels | None,
    alternative: Side = "two-sided",
) -> int:
    """Return J from the counts of cells: :func:`two_sample` with cells for values.

    Without ``labels`` it is the maximum at the ends of cells only: never more than with them.

    **Sensitivity** That of :func:`two_sample`, with labels and without.
    """
    if labels is not None:
        cells = np.arange(float(len(counts_x)))
        x, y = np.repeat(cells, counts_x), np.repeat(cells, counts_y)
        return two_sample(x, y, statistic, labels, alternative)
    n, m = int(counts_x.sum()), int(counts_y.sum())
    walk = np.cumsum(counts_x * m - counts_y * n)
    return int(reach(int(walk.max()), -int(walk.min()), statistic, alternative))


def reach(up: float, down: float, statistic: str, alternative: Side) -> float:
    """Return the distance "ks" or "kuiper" from how far a difference gets above and below 0."""
    if alternative != "two-sided":
        return up if alternative == "greater" else down
    return max(up, down) if statistic == "ks" else up + down


def two_sample_width(n: int, m: int, adjacency: Adjacency) -> int:
    """Return the sensitivity of :func:`two_sample`: m for a record of x, n for one of y; attained.

    Labels stay when a value is replaced.
    """
    return n + m if adjacency == "both" else max(n, m)


# J of two sorted samples of many records: most of the walk is not looked at.
#
# The walk i m - j n is found at every 128th record of x. Between two of these it cannot get further
# than if all of x came first, or all of y; only where that is beyond what is reached elsewhere are
# records looked at. Labels, which break ties, are drawn for those that are tied there.


_STEP = 128

Places = NDArray[np.intp]


def two_sample_sorted(
    x: Floats,
    y: Floats,
    statistic: TwoSampleStatistic,
    shuffle: Callable[[int], Labels],
    alternative: Side = "two-sided",
) -> int:
    """Return J of two sorted samples: the law of :func:`two_sample` with secret labels.

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
    up, down = _walk_extremes(_places_before(x[place], y, shuffle), place, (n, m), (up, down))
    return int(reach(up, down, statistic, alternative))


def _walk_extremes(
    before: Places, place: Places, sizes: tuple[int, int], reached: tuple[int, int]
) -> tuple[int, int]:
    """Return how far up and down the walk gets, at some records of x or elsewhere (``reached``).

    ``place`` is how many of x come before each of these records, and ``before`` how many of y.
    """
    (n, m), (up, down) = sizes, reached
    lowest = before * n - place * m  # how far down the walk is just before a record of x
    return max(up, m - int(lowest.min(initial=m))), max(down, int(lowest.max(initial=0)))


def _places_before(x: Floats, y: Floats, shuffle: Callable[[int], Labels]) -> Places:
    """Return how many of sorted y come before each of sorted x, which has all ties that it has."""
    before = np.searchsorted(y, x)
    tied = y[np.minimum(before, len(y) - 1)] == x if len(y) else np.zeros(len(x), dtype=np.bool_)
    before[tied] += _among_ties(x[tied], y, shuffle)
    return before


def _with_ties(place: Places, x: Floats, y: Floats) -> Places:
    """Add all records of x that are equal to one of these and to one of y: they share an order."""
    values = x[place]
    nearest = np.minimum(np.searchsorted(y, values), len(y) - 1)
    values = np.unique(values[y[nearest] == values])
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


# J of two samples of many records in no order: only cells that matter are sorted.
#
# Records are counted by cells, which is much quicker than to sort them. Equal records share a cell,
# so the walk i m - j n is known between cells. Within a cell it cannot get further than if all of x
# came first, or all of y; only the records of cells where that is beyond what is reached elsewhere
# are put in order. Where that would be most of them, all are sorted. Cells are chosen by a few
# records, for speed alone: any choice gives the same J. Proof: docs/proofs/ks-type.md.


_CELLS = 1 << 15  # their numbers have 16 bits
_FEW = 1 / 4  # of all records: if more are in cells that matter, all are sorted
_SEEN = 1 << 12  # records of each sample by which cells are chosen
_TAIL = 1 / 64  # of these: they share the first and the last cell if they are far out
_FAR = 4.0  # times the range of the others
_CROWD = 1 / 256  # of these: so many in one cell matter, in all likelihood
_BLOCK = 1 << 18  # records that are placed, or counted, at a time

Codes = NDArray[np.uint16]


class _EqualCells(NamedTuple):
    """Equal cells: that of a value is found by rounded steps that each keep order and ties."""

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

    def codes_and_counts(self, values: Floats) -> tuple[Codes, Counts]:
        """Return the cell of each value, and how many values each cell has."""
        codes, counts = self.codes(values), np.zeros(_CELLS, dtype=np.int64)
        for start in range(0, len(codes), _BLOCK):
            counts += np.bincount(codes[start : start + _BLOCK], minlength=_CELLS)
        return codes, counts


def two_sample_cells(
    x: Floats,
    y: Floats,
    statistic: TwoSampleStatistic,
    shuffle: Callable[[int], Labels],
    alternative: Side = "two-sided",
) -> int:
    """Return J of two samples in any order: as :func:`two_sample_sorted`."""
    n, m = len(x), len(y)
    seen = np.sort(np.concatenate([each[:: len(each) // _SEEN + 1] for each in (x, y)]))
    line = _choose_cells(seen)
    if line is None:
        tied = n + m <= LABELLED_ROWS and 2 * len(np.unique(seen)) < len(seen)
        return _two_sample_by_sorting(x, y, statistic, shuffle, alternative, tied=tied)
    (codes_x, of_x), (codes_y, of_y) = parallel(line.codes_and_counts, (x, y), n + m)
    rise, fall = of_x * m, of_y * n
    ends = np.cumsum(rise) - np.cumsum(fall)
    up, down = max(0, int(ends.max())), max(0, -int(ends.min()))
    matters = _may_get_further(ends - rise + fall, rise, fall, (up, down), statistic, alternative)
    if (of_x + of_y)[matters].sum() > _FEW * (n + m):
        return _two_sample_by_sorting(x, y, statistic, shuffle, alternative)

    def sorted_where_it_matters(sample: tuple[Floats, Codes]) -> Floats:
        values, codes = sample
        return np.sort(values[np.flatnonzero(matters.take(codes))])

    x, y = parallel(sorted_where_it_matters, ((x, codes_x), (y, codes_y)), n + m)
    before = _places_before(x, y, shuffle) + _left_out(of_y, of_x, matters)
    place = np.arange(len(x)) + _left_out(of_x, of_x, matters)
    up, down = _walk_extremes(before, place, (n, m), (up, down))
    return int(reach(up, down, statistic, alternative))


def _choose_cells(seen: Floats) -> _EqualCells | None:
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
    line = _EqualCells(float(scale), float(shift))
    of_seen = np.bincount(line.codes(seen[tail : len(seen) - tail]))
    crowded = of_seen[of_seen > _CROWD * len(seen)].sum()
    return None if crowded > _FEW * len(seen) else line


def _two_sample_by_sorting(
    x: Floats,
    y: Floats,
    statistic: TwoSampleStatistic,
    shuffle: Callable[[int], Labels],
    alternative: Side,
    *,
    tied: bool = False,
) -> int:
    """Return J by sorting all records; if most are tied, all get a label."""
    x, y = parallel(np.sort, (x, y), len(x) + len(y))
    if tied:
        return two_sample(x, y, statistic, shuffle(len(x) + len(y)), alternative)
    return two_sample_sorted(x, y, statistic, shuffle, alternative)


def _may_get_further(
    start: Counts,
    rise: Counts,
    fall: Counts,
    reached: tuple[int, int],
    statistic: TwoSampleStatistic,
    alternative: Side,
) -> NDArray[np.bool_]:
    """Return in which cells a walk may get further than it gets between cells.

    It is at ``start`` before a cell, and goes up by ``rise`` and down by ``fall`` within it.
    """
    up, down = reached
    if statistic == "ks" and alternative == "two-sided":
        up = down = max(up, down)
    above, below = start + rise > up, fall - start > down
    further = {"two-sided": above | below, "greater": above, "less": below}[alternative]
    return np.asarray(further & (rise > 0) & (fall > 0))


def _left_out(counts: Counts, of_x: Counts, matters: NDArray[np.bool_]) -> Counts:
    """Return how many are in cells that do not matter, before each record of x in one that does."""
    before: Counts = np.cumsum(np.where(matters, 0, counts))[matters]
    return np.repeat(before, of_x[matters])


# Statistics of the order of more rows than memory holds: the same laws as those of sorted rows.
#
# Walks (Kolmogorov-Smirnov, Kuiper, symmetry) are looked at only where they may get further than
# they got elsewhere; sums of ranks need all slices, the median the cell that it lies in.
# Proof: docs/proofs/value-cells.md.


_OPEN = 1 << 14  # cells that a pass cuts finer at most
_SMALL = 1 << 10  # rows of a cell that are not worth another pass
_MOST = 1 << 62  # of a statistic: it is an integer of 64 bits


def are_far(rows: int, noise: NoiseSource) -> bool:
    """Return whether so many rows are read in passes; not in constant time."""
    return rows > value_order.HELD_ROWS and not noise.constant_time


def far_two_sample(
    x: Sample, y: Sample, statistic: TwoSampleStatistic, noise: NoiseSource, alternative: Side
) -> int:
    """Return J of :func:`two_sample`, with secret labels."""
    return _Walk((len(y), len(x)), statistic, alternative).reach(GroupedRows((x, y), 2), noise)


def far_symmetry(differences: Sample, statistic: TwoSampleStatistic, noise: NoiseSource) -> int:
    """Return :func:`privatest.numerics.order.symmetry`, with secret labels and coins."""
    split = _BySign(noise.key(), -1.0)
    return _Walk((1, 1), statistic, "two-sided").reach(GroupedRows((differences,), 2, split), noise)


def far_mann_whitney(x: Sample, y: Sample, noise: NoiseSource) -> int:
    """Return 2U - nm, with secret labels."""
    n, m = len(x), len(y)
    return 2 * _rank_sums(GroupedRows((x, y), 2), noise)[0] - n * (n + 1) - n * m


def far_kruskal_wallis(samples: Sequence[Sample], noise: NoiseSource) -> int:
    """Return :func:`privatest.numerics.order.kruskal_wallis`, with secret labels."""
    sizes = [len(sample) for sample in samples]
    sums = _rank_sums(GroupedRows(tuple(samples), len(samples)), noise)
    return sum(
        abs(2 * own - size * (sum(sizes) + 1)) for own, size in zip(sums, sizes, strict=True)
    )


def far_signed_rank(differences: Sample, noise: NoiseSource) -> int:
    """Return :func:`privatest.numerics.order.signed_rank`, with secret labels and coins."""
    split = _BySign(noise.key(), 1.0)
    positive, negative = _rank_sums(GroupedRows((differences,), 2, split), noise)
    return 2 * (positive - negative)


def far_median_balance(x: Sample, y: Sample, noise: NoiseSource) -> int:
    """Return :func:`privatest.numerics.order.median_balance`, with secret labels."""
    n, total = len(x), len(x) + len(y)
    top, rows, cell = total - total // 2, GroupedRows((x, y), 2), whole(2)
    while True:
        finer = split_cells(rows, cell)
        here = int(np.searchsorted(finer.before.sum(axis=0), total - top, side="right")) - 1
        cell = finer.take([here])
        if cell.tied[0] or cell.rows[0] <= value_order.SLICE_ROWS:
            break
    below, place = int(cell.before[0, 0]), int(cell.before.sum())
    for groups in _ordered(rows, cell, noise):
        below += int((groups[: total - top - place] == 0).sum()) if place < total - top else 0
        place += len(groups)
    return total * (n - below) - n * top


@dataclass(frozen=True, slots=True, repr=False)  # a repr would show the secret key
class _BySign:
    """Splits differences by their signs, zeros by coins; what is kept is turn · |difference|."""

    key: bytes
    turn: float

    def __call__(self, rows: Floats, start: int) -> tuple[Floats, ...]:
        values = rows[:, 0]
        positive = values > 0
        zero = values == 0
        if zero.any():
            positive |= zero & row_coins(self.key, start, start + len(rows))
        sizes = self.turn * np.abs(values)
        return sizes[positive], sizes[~positive]


def _ordered(rows: GroupedRows, cells: KeyCells, noise: NoiseSource) -> Iterator[Groups]:
    """Yield the groups of the rows of a slice in order, at once or some at a time."""
    if len(cells) == 1 and cells.rows[0] > value_order.SLICE_ROWS:  # one value
        yield from tied_groups(cells.counts[:, 0], noise)
    else:
        yield groups_in_order(rows, cells, noise)


def _rank_sums(rows: GroupedRows, noise: NoiseSource) -> list[int]:
    """Return the sum of ranks 1, 2, ... of each group, ties in a secret order."""
    cells = split_cells(rows, whole(rows.groups))
    while True:
        large = (cells.rows > value_order.SLICE_ROWS) & ~cells.tied
        if not large.any():
            break
        cells = cells.take(~large).joined(split_cells(rows, cells.take(large)))
    sums = [0] * rows.groups
    for part in slices(cells):
        place = int(part.before[:, 0].sum())  # all cells are here: slices have no gaps
        for groups in _ordered(rows, part, noise):
            for group in range(rows.groups):
                own = np.flatnonzero(groups == group)
                sums[group] += int(own.sum()) + len(own) * (place + 1)
            place += len(groups)
    return sums


class _Walk:
    """How far i · up - j · down gets, i and j the rows of two groups up to a row.

    ``steps`` are (up, down).
    """

    __slots__ = ("_down", "_side", "_statistic", "_steps", "_up")

    def __init__(self, steps: tuple[int, int], statistic: TwoSampleStatistic, side: Side) -> None:
        if steps[0] * steps[1] >= _MOST:
            raise DataError("the two samples have too many rows for an exact distance; use grid.")
        self._steps, self._statistic, self._side = steps, statistic, side
        self._up = self._down = 0

    def reach(self, rows: GroupedRows, noise: NoiseSource) -> int:
        """Return the distance."""
        cells = self._open(split_cells(rows, whole(2)))
        while cells.rows[~cells.tied].sum() > value_order.SLICE_ROWS:
            finer = self._worth_cutting(cells)
            if not finer.any():
                break
            cells = self._open(cells.take(~finer).joined(split_cells(rows, cells.take(finer))))
        for part in slices(cells):
            self._look(rows, self._open(part), noise)
        return int(reach(self._up, self._down, self._statistic, self._side))

    def _worth_cutting(self, cells: KeyCells) -> NDArray[np.bool_]:
        """Choose the largest cells that are not of one value."""
        sizes = np.where(cells.tied, 0, cells.rows)
        chosen: NDArray[np.bool_] = sizes > min(_SMALL, value_order.SLICE_ROWS)
        if chosen.sum() > _OPEN:
            least = np.partition(sizes, -_OPEN)[-_OPEN]
            chosen &= sizes >= least
            chosen[np.flatnonzero(chosen)[_OPEN:]] = False
        return chosen

    def _open(self, cells: KeyCells) -> KeyCells:
        """See how far the walk is between cells, and keep those in which it may get further."""
        if not len(cells):
            return cells
        start = self._height(cells.before)
        end = self._height(cells.before + cells.counts)  # between two values: no ties
        self._see(start)
        self._see(end)
        rise, fall = cells.counts[0] * self._steps[0], cells.counts[1] * self._steps[1]
        reached = self._up, self._down
        return cells.take(_may_get_further(start, rise, fall, reached, self._statistic, self._side))

    def _look(self, rows: GroupedRows, cells: KeyCells, noise: NoiseSource) -> None:
        """Walk through the rows of some cells."""
        if not len(cells):
            return
        sizes, start = cells.rows, self._height(cells.before)
        if len(cells) > 1 or sizes[0] <= value_order.SLICE_ROWS:
            walk = self._walk_through(groups_in_order(rows, cells, noise))
            first = np.cumsum(sizes) - sizes
            start -= np.append(0, walk)[first]  # the cells before it, which may not be all
            self._see(walk + np.repeat(start, sizes))
            return
        at = int(start[0])
        for groups in tied_groups(cells.counts[:, 0], noise):
            walk = self._walk_through(groups) + at
            self._see(walk)
            at = int(walk[-1])

    def _walk_through(self, groups: Groups) -> Counts:
        steps = np.where(groups == 0, self._steps[0], -self._steps[1])
        walk: Counts = np.cumsum(steps, dtype=np.int64)
        return walk

    def _height(self, counts: Counts) -> Counts:
        height: Counts = counts[0] * self._steps[0] - counts[1] * self._steps[1]
        return height

    def _see(self, walk: Counts) -> None:
        self._up = max(self._up, int(walk.max()))
        self._down = max(self._down, -int(walk.min()))
