"""Values as cells between cut points, and distances of distribution functions from cell counts.

Counts of cells are all that is needed of the data: integers, found in one pass, that add up in any
order. Cut points are public, or at public ranks (then the order of rows decides, see
``rank_cells``). Proofs: docs/proofs/line-cells.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privatest.kernels.kernels import UNIT_ROUNDOFF
from privatest.statistics.placing import BLOCK, Placing

__all__ = [
    "LineKind",
    "PlacedLine",
    "area_cells",
    "bin_sums",
    "cell_codes",
    "cell_counts",
    "cut_cells",
    "from_extremes",
    "permuted_bins_cells",
    "permuted_tables",
    "rank_cells",
]

LineKind = Literal["wasserstein", "kolmogorov", "kuiper", "above", "below"]
"""A distance of distribution functions on a line; the last two are of one side."""

FINE_STEPS = 1 << 20  # of a cell, in which places within it are counted

Floats = NDArray[np.float64]
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


def permuted_bins_cells(
    lines: Iterable[PlacedLine],
    edges: NDArray[np.intp],
    membership: NDArray[np.bool_],
    n: int,
    m: int,
) -> tuple[Sums, Floats]:
    """Return the mean over lines of the distance (1 × weightings), and a bound on its error.

    Bins lie between edges, then what is left of x and of y; ``membership`` says which bins count
    as x. One pass counts rows by bin and cell; the rest does not grow with the rows.
    """
    found, errors = [], []
    for line in lines:
        found.append(permuted_tables(line, bin_sums(line, edges), membership, n, m))
        errors.append(line.rounding)
    return np.mean(found, axis=0)[None, :], np.array([max(errors)])


def permuted_tables(
    line: PlacedLine, table: Sums, membership: NDArray[np.bool_], n: int, m: int
) -> Floats:
    """Return the distance for each weighting, from counts by bin and cell."""
    of_x = line.heights(membership.astype(np.float64) @ table[:-2] + table[-2])
    of_y = line.heights(table.sum(axis=0)) - of_x
    return line.distance(of_x / n - of_y / m)
