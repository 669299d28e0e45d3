"""Cells of values between cut points, many values at a time.

Threads that place values take turns at the interpreter between any two steps, which takes longer
than a step of few values. So blocks are larger than the processor's cache, and memory is used
again: with two threads that is twice as fast as blocks which fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import Sensitivity
from privatest.data.encoding import Sample
from privatest.data.sources import Stream
from privatest.data.summaries import summarise
from privatest.numerics.kernels import UNIT_ROUNDOFF

BLOCK = 1 << 17  # values that are placed at a time

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Placing:
    """Finds how many cut points are below each value of a block; for one thread.

    Evenly spaced cut points are guessed by arithmetic, which rounding may make one too small for
    values just above a cut point; comparing with the next one makes it right.

    Parameters
    ----------
    cuts : ndarray
        Cut points, increasing.
    """

    __slots__ = ("_cuts", "_ends", "_held", "_scale", "_shift")

    def __init__(self, cuts: Floats) -> None:
        self._cuts, self._ends = cuts, np.append(cuts, np.inf)
        self._scale, self._shift = _guess(cuts)
        self._held: tuple[NDArray[Any], ...] | None = None

    def __call__(self, block: Floats) -> Places:
        """Return the cells; they may be overwritten by the next call."""
        if not self._scale:
            return np.asarray(np.searchsorted(self._cuts, block))
        near, codes, above = self._room(len(block))
        with np.errstate(over="ignore"):  # a warning would tell of a value
            np.multiply(block, self._scale, out=near)
        near += self._shift
        np.clip(near, 0, len(self._cuts), out=near)
        np.copyto(codes, near, casting="unsafe")
        np.take(self._ends, codes, out=near, mode="clip")
        codes[np.flatnonzero(np.greater(block, near, out=above))] += 1
        return codes

    def counts(self, block: Floats) -> NDArray[np.int64]:
        """Return how many values are in each cell."""
        return np.bincount(self(block), minlength=len(self._ends))

    def _room(self, count: int) -> tuple[Floats, Places, NDArray[np.bool_]]:
        """Return memory for the steps: fresh memory would cost as much as they do."""
        if self._held is None or len(self._held[0]) < count:
            kinds = (np.float64, np.intp, np.bool_)
            self._held = tuple(np.empty(count, dtype=kind) for kind in kinds)
        near, codes, above = self._held
        return near[:count], codes[:count], above[:count]


def _guess(cuts: Floats) -> tuple[float, float]:
    """Return scale and shift of a guess that is right, or one too small; 0 if there is none."""
    with np.errstate(over="ignore", divide="ignore"):
        gaps, step = np.diff(cuts), (cuts[-1] - cuts[0]) / max(1, len(cuts) - 1)
        usable = len(cuts) > 2 and np.isfinite(step) and np.isfinite((1 + abs(cuts[0])) / step)
    if not usable or np.abs(gaps - step).max() > 1e-9 * step:
        return 0.0, 0.0
    scale = 1 / step
    return float(scale), float(1 - 1e-4 - cuts[0] * scale)


# Values as cells between cut points, and distances of distribution functions from cell counts.
#
# Counts of cells are all that is needed of the data: integers, found in one pass, that add up in
# any order. Cut points are public, or at public ranks (then the order of rows decides, see
# ``rank_cells``). Proofs: docs/proofs/line-cells.md.


LineKind = Literal["wasserstein", "kolmogorov", "kuiper", "above", "below"]
"""A distance of distribution functions on a line; the last two are of one side."""

FINE_STEPS = 1 << 20  # of a cell, in which places within it are counted

Codes = NDArray[np.int32]
Sums = NDArray[np.float64]


def cell_codes(values: Floats, cuts: Floats) -> Codes:
    """Return how many cut points are below each value: cell c has values up to cuts[c].

    Examples
    --------
    >>> cell_codes(np.array([0.2, 0.5, 0.7, 9.0]), np.array([0.5, 1.0])).tolist()
    [0, 0, 1, 2]
    """
    codes = np.empty(len(values), dtype=np.int32)
    place = Placing(cuts)
    for start in range(0, len(values), BLOCK):
        codes[start : start + BLOCK] = place(values[start : start + BLOCK])
    return codes


def cell_counts(values: Floats, cuts: Floats) -> NDArray[np.int64]:
    """Count values by cell: a summary that adds up over parts of the data.

    Examples
    --------
    >>> cell_counts(np.array([0.2, 0.5, 0.7, 9.0]), np.array([0.5, 1.0])).tolist()
    [2, 1, 1]
    """
    counts = np.zeros(len(cuts) + 1, dtype=np.int64)
    place = Placing(cuts)
    for start in range(0, len(values), BLOCK):
        counts += place.counts(values[start : start + BLOCK])
    return counts


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacedLine:
    """A row's cell on a line, and how weighted sums over cells become a distance.

    Attributes
    ----------
    codes : ndarray
        The cell of each row, 0 to ``count`` - 1.
    count : int
        Number of cells.
    kind : str
        The distance.
    inside : ndarray or None
        For "wasserstein": how much of its cell lies above each row, in fine steps.
    cut_points, shares : ndarray or None
        For cut points at ranks: the cell before each one, and how much of the next one, which
        holds the value at the cut point and its ties, counts as below it.
    length : float
        Of the line, in units of the data.
    """

    codes: Codes
    count: int
    kind: LineKind
    inside: NDArray[np.int64] | None = None
    cut_points: NDArray[np.intp] | None = None
    shares: Floats | None = None
    length: float = 1.0

    @property
    def width(self) -> int:
        """Numbers in a summary: a count for each cell, and a sum of ``inside`` if there is one."""
        return self.count if self.inside is None else 2 * self.count

    def heights(self, sums: Sums) -> Sums:
        """Turn sums over cells (last axis) into those of the function that is measured.

        Its value at each cut point, or its mean over each cell. Sums are whole numbers.
        """
        below = np.cumsum(sums[..., : self.count], axis=-1)
        if self.inside is not None:
            below -= sums[..., : self.count]
            return np.asarray(below + sums[..., self.count :] / FINE_STEPS)
        if self.cut_points is None or self.shares is None:
            return np.asarray(below[..., :-1])
        before, through = below[..., self.cut_points], below[..., self.cut_points + 1]
        return np.asarray(before + self.shares * (through - before))

    def distance(self, heights: Sums) -> Sums:
        """Return the distance for each row of ``heights``, the last axis being the line."""
        if self.kind == "wasserstein":
            return np.asarray(np.abs(heights).mean(axis=-1) * self.length)
        top, bottom = heights.max(axis=-1, initial=0.0), -heights.min(axis=-1, initial=0.0)
        return from_extremes(self.kind, top, bottom)

    @property
    def rounding(self) -> float:
        """Bound the rounding error of a distance, for weights that sum to at most 1 on each side.

        Sums of whole numbers are exact; what is rounded is their weighting, and a mean over
        cells.
        """
        additions = 32.0 + (self.count if self.kind == "wasserstein" else 0)
        return additions * self.length * UNIT_ROUNDOFF


def from_extremes(kind: LineKind, top: Floats, bottom: Floats) -> Floats:
    """Return a distance, not Wasserstein's, from how far a function gets above and below 0."""
    if kind == "kuiper":  # over an interval it grows by the difference of two of its values
        return np.asarray(top + bottom)
    if kind in ("above", "below"):
        return top if kind == "above" else bottom
    return np.maximum(top, bottom)


def cut_cells(line: Floats, cuts: Floats, kind: LineKind) -> PlacedLine:
    """Place values between public cut points; a distance is the largest at a cut point."""
    return PlacedLine(cell_codes(line, cuts), len(cuts) + 1, kind)


def area_cells(line: Floats, lower: float, upper: float, cells: int) -> PlacedLine:
    """Place values in equal cells of a public interval, for Wasserstein's distance.

    The difference of distribution functions is averaged over each cell before its absolute value
    is taken: the supremum over functions of slope 1 or -1 on each cell. Values are rounded down
    to a step of 2^-20 of a cell, so that sums are whole numbers.
    """
    codes, inside = np.empty(len(line), dtype=np.int32), np.empty(len(line), dtype=np.int64)
    scale, last = cells * FINE_STEPS / (upper - lower), cells * FINE_STEPS - 1
    for start in range(0, len(line), BLOCK):
        part = slice(start, start + BLOCK)
        place = np.clip((line[part] - lower) * scale, 0, last).astype(np.int64)
        codes[part] = place // FINE_STEPS
        inside[part] = FINE_STEPS - place % FINE_STEPS
    return PlacedLine(codes, cells, "wasserstein", inside, length=upper - lower)


def rank_cells(line: Floats, cells: int, kind: LineKind) -> PlacedLine:
    """Place values between cut points at public ranks: N/cells, 2N/cells, ...

    A cut point may fall among ties; then a share of them counts as below it, as in the mean over
    all orders of ties.
    """
    ordered = np.sort(line)
    ranks = np.arange(1, cells) * len(line) // cells
    values = ordered[ranks - 1]
    before = np.searchsorted(ordered, values)
    shares = (ranks - before) / (np.searchsorted(ordered, values, side="right") - before)
    first = np.searchsorted(values, values)  # several cut points may be at one value
    places = np.searchsorted(values, line)
    at_cut = line == np.append(values, np.nan)[places]
    codes = (2 * places + at_cut).astype(np.int32)
    return PlacedLine(codes, 2 * cells - 1, kind, cut_points=2 * first, shares=shares)


def bin_sums(line: PlacedLine, edges: NDArray[np.intp], weights: Floats | None = None) -> Sums:
    """Sum cells (and ``inside``) over the rows between edges: bins × ``line.width``."""
    sums = np.zeros((len(edges) - 1, line.width))
    for index, (start, stop) in enumerate(pairwise(edges.tolist())):
        codes = line.codes[start:stop]
        own = None if weights is None else weights[start:stop]
        sums[index, : line.count] = np.bincount(codes, own, minlength=line.count)
        if line.inside is not None:
            inside = line.inside[start:stop] if own is None else line.inside[start:stop] * own
            sums[index, line.count :] = np.bincount(codes, inside, minlength=line.count)
    return sums


# Counts of cells as a summary of one pass: of rows in memory, of a file, of a cluster.


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


# Sums of two columns in cells of others, as integers, and how far they move.
#
# Proof: docs/proofs/conditional.md.


Cells = NDArray[np.intp]
Corners = list[tuple[Cells, Floats]]

UNIT = 1 << 16  # 1 in the integers of sums; a count of rows has half of it


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of some columns: equal parts of numeric ones' bounds, and every category.

    Attributes
    ----------
    levels : tuple of int
        Categories of each column, 0 for a numeric one.
    sizes : tuple of int
        Cells of each column; at least 2 for a numeric one.
    """

    levels: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of cells."""
        return math.prod(self.sizes)

    def cells(self, rows: Floats) -> Cells:
        """Return the cell of each row; numeric columns are in [0, 1], categories are codes."""
        found = np.zeros(len(rows), dtype=np.intp)
        for values, levels, size in zip(rows.T, self.levels, self.sizes, strict=True):
            place = values if levels else np.minimum(values * size, size - 1)
            found = found * size + place.astype(np.intp)
        return found

    def corners(self, rows: Floats) -> Corners:
        """Return the cells whose centres surround each row, with weights that sum to 1.

        Numeric columns are interpolated (and extrapolated by half a cell at the bounds).
        """
        found: Corners = [(np.zeros(len(rows), dtype=np.intp), np.ones(len(rows)))]
        for values, levels, size in zip(rows.T, self.levels, self.sizes, strict=True):
            steps: Corners
            if levels:
                steps = [(values.astype(np.intp), np.ones(len(rows)))]
            else:
                place = values * size - 0.5
                low = np.clip(np.floor(place), 0, size - 2)
                steps = [
                    (low.astype(np.intp) + up, 1 - up + (2 * up - 1) * (place - low))
                    for up in (0, 1)
                ]
            found = [
                (cell * size + step, weight * share)
                for cell, weight in found
                for step, share in steps
            ]
        return found

    def points(self) -> Floats:
        """Return rows spread evenly over all cells, some for each cell."""
        numeric = sum(levels == 0 for levels in self.levels)
        each = 3 if numeric == 1 else 2
        axes = [
            np.arange(size, dtype=np.float64)
            if levels
            else (np.arange(each * size) + 0.5) / (each * size)
            for levels, size in zip(self.levels, self.sizes, strict=True)
        ]
        grids = np.meshgrid(*axes, indexing="ij")
        return np.column_stack([grid.ravel() for grid in grids])


def interpolate(values: Floats, corners: Corners) -> Floats:
    """Return values of cells (along the last axis) between the centres of cells."""
    # no matrix product: its last bits may depend on where a row is
    result = values[..., corners[0][0]] * corners[0][1]
    for cells, weights in corners[1:]:
        result += values[..., cells] * weights
    return np.asarray(result)


class CellSums:
    """Counts of rows by cell, sums of x and of y by cell, and their sums of squares.

    Rows are the columns of the grid, then x and y, all encoded in [0, 1]. x and y are mapped to
    [-1, 1] and rounded to multiples of 1/UNIT, so that sums are integers.
    """

    __slots__ = ("counts", "grid", "squares", "sums")

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.counts = np.zeros(grid.count, dtype=np.int64)
        self.sums = np.zeros((2, grid.count), dtype=np.int64)
        self.squares = np.zeros(2, dtype=np.int64)

    def update(self, rows: Floats, start: int) -> None:  # noqa: ARG002 -- any order
        """Add a block of rows."""
        cells = self.grid.cells(rows[:, :-2])
        both = np.clip(np.rint((2 * rows[:, -2:].T - 1) * UNIT), -UNIT, UNIT)
        self.counts += np.bincount(cells, minlength=self.grid.count)
        for side, values in enumerate(both):
            # sums of integers, exact below 2^53
            sums = np.bincount(cells, values, self.grid.count)
            self.sums[side] += sums.astype(np.int64)
            self.squares[side] += np.sum(values.astype(np.int64) ** 2 // (2 * UNIT))

    def merge(self, other: Self) -> None:
        """Add other rows."""
        self.counts += other.counts
        self.sums += other.sums
        self.squares += other.squares

    @property
    def integers(self) -> NDArray[np.int64]:
        """Counts for x, counts for y, sums of x, sums of y, squares: what meets noise.

        Counts come twice, so that the errors of two regressions are independent.
        """
        counts = self.counts * (UNIT // 2)
        return np.concatenate([counts, counts, *self.sums, self.squares])


def cell_sums(rows: Sample, grid: Grid) -> CellSums:
    """Return the sums, in one pass."""
    (found,) = summarise((rows, partial(CellSums, grid)))
    return found


def cell_sums_sensitivity(rows_per_person: int) -> Sensitivity:
    """Return how far the integers move.

    Notes
    -----
    **Sensitivity** A row adds UNIT/2 to two counts, X and Y (at most UNIT) to two sums, and
    floor(X²/(2 UNIT)), floor(Y²/(2 UNIT)) to the squares. A replaced row moves counts by at most
    2 UNIT in the l1 norm, and the sum and the square of x by |X| + |X'| + |X² - X'²|/(2 UNIT) + 1
    <= 2 UNIT + 1: together 6 UNIT + 2, times the rows of a person.
    """
    return Sensitivity(float(rows_per_person * (6 * UNIT + 2)), "l1")
