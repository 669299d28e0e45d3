"""Distances on a line for many rows: cells in place of sorted values.

A permutation then costs a sum over cells and not over rows. Which of the two is used follows from
public numbers. Proofs: docs/proofs/line-cells.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.data.cuts import equal_cuts
from privatest.statistics.cells import (
    FINE_STEPS,
    LineKind,
    PlacedLine,
    area_cells,
    cut_cells,
)
from privatest.statistics.ipm import LineMetric

__all__ = [
    "EXACT_ROWS",
    "MOST_CELLS_CHOSEN",
    "RANK_CELLS",
    "CellMetric",
    "cell_metric",
    "rank_cells_sensitivity",
]

EXACT_ROWS = 1 << 14  # up to so many rows sorted values are summed for each permutation
RANK_CELLS = 1024
MOST_CELLS_CHOSEN = 4096
_CELLS = {"kolmogorov": MOST_CELLS_CHOSEN, "wasserstein": 1024}
_SLICED_CELLS = 256  # for each direction

Floats = NDArray[np.float64]


def rank_cells_sensitivity(kind: LineKind, total: int) -> PermutationSensitivity:
    """How far T of private groups moves if it is measured at ranks; labels are permuted.

    Notes
    -----
    **Sensitivity** A replaced value exchanges at most one row of those below a cut point for
    another, and moves the sum of centred labels there by at most 1; a replaced label by less than
    1. Observed together still 1, but 2 between two cut points ("kuiper"). Permuted 2.
    Proof: docs/proofs/line-cells.md.
    """
    return PermutationSensitivity((2 if kind == "kuiper" else 1) / total, 2 / total)


@dataclass(frozen=True, slots=True, eq=False)
class CellMetric:
    """A distance on lines, from public cells.

    Attributes
    ----------
    metric : LineMetric
        The distance from sorted values that it stands for; not above it.
    cuts : ndarray or None
        Cut points of the unit interval; for "wasserstein" None.
    cells : int
        Number of cells of each line.
    """

    metric: LineMetric
    cuts: Floats | None
    cells: int

    @property
    def diameter(self) -> float:
        """That of the distance, and two of the steps in which several columns are rounded."""
        if self.metric.directions.shape[0] == 1:
            return self.metric.diameter
        reach = float(np.abs(self.metric.directions).sum(axis=0).mean())
        return self.metric.diameter + 2 * reach / (self.cells * FINE_STEPS)

    @property
    def is_line(self) -> bool:
        """Whether there is one line."""
        return len(self.metric.directions.T) == 1

    def line(self, rows: Floats) -> PlacedLine:
        """Place rows on the first line."""
        return next(self.lines(rows))

    def lines(self, rows: Floats) -> Iterator[PlacedLine]:
        """Place rows of the unit box on each line, one line at a time."""
        for direction in self.metric.directions.T:
            line = rows[:, 0] * direction[0]
            for column, weight in enumerate(direction[1:], 1):
                line += rows[:, column] * weight  # not a matrix product: each row on its own
            if self.cuts is not None:
                yield cut_cells(line, self.cuts, self.metric.kind)
            else:
                lower, upper = direction[direction < 0].sum(), direction[direction > 0].sum()
                yield area_cells(line, float(lower), float(upper), self.cells)


def cell_metric(metric: LineMetric, cuts: Floats | None, cells: int | None) -> CellMetric:
    """Choose cells for a distance on the unit box: the given ones, or a public number of them."""
    if metric.kind == "wasserstein":
        usual = _CELLS["wasserstein"] if metric.directions.shape[0] == 1 else _SLICED_CELLS
        return CellMetric(metric, None, cells or usual)
    if cuts is None:
        cuts = equal_cuts(0.0, 1.0, cells or _CELLS["kolmogorov"])
    return CellMetric(metric, cuts, len(cuts) + 1)
