"""The ``grid`` of a test on a line: public cut points, or a number of equal cells."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import integer_at_least, reject

__all__ = ["MOST_CELLS", "CheckedGrid", "Grid", "cut_points", "equal_cuts", "read_grid"]

Grid = int | Sequence[float] | NDArray[Any] | Literal["exact"] | None
"""Public: None, a number of equal cells between the bounds, cut points, or "exact"."""

CheckedGrid = int | NDArray[np.float64] | Literal["exact"] | None

MOST_CELLS = 1 << 13
_EXPECTED = (
    f"None, 'exact', a number of cells from 2 to {MOST_CELLS:,}, or at most {MOST_CELLS - 1:,} "
    "increasing cut points"
)


def read_grid(grid: Grid) -> CheckedGrid:
    """Check a grid before any data is read."""
    if grid is None or (isinstance(grid, str) and grid == "exact"):
        return grid
    if isinstance(grid, Integral):
        if integer_at_least("grid", grid, 2) > MOST_CELLS:
            reject("grid", _EXPECTED, grid)
        return int(grid)
    try:
        cuts = np.array(grid, dtype=np.float64)
    except (TypeError, ValueError):
        reject("grid", _EXPECTED, grid)
    usable = cuts.ndim == 1 and 1 <= cuts.size < MOST_CELLS
    if not usable or not np.isfinite(cuts).all() or not (np.diff(cuts) > 0).all():
        reject("grid", _EXPECTED, grid)
    return cuts


def cut_points(grid: int | NDArray[np.float64], lower: float, upper: float) -> NDArray[np.float64]:
    """Return the cut points of a checked grid, between public bounds if it is a number."""
    if isinstance(grid, np.ndarray):
        return grid
    if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
        raise ParameterError(
            "grid, as a number of cells, needs bounds. Pass bounds=(lower, upper), or an array of "
            "cut points as grid."
        )
    return equal_cuts(lower, upper, grid)


def equal_cuts(lower: float, upper: float, cells: int) -> NDArray[np.float64]:
    """Return the cut points between equal cells; fewer if bounds are so close that floats run out.

    Examples
    --------
    >>> equal_cuts(0, 2, 4).tolist()
    [0.5, 1.0, 1.5]
    """
    shares = np.arange(1, cells) / cells
    return np.unique(lower * (1 - shares) + upper * shares)  # far bounds cannot overflow
