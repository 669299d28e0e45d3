"""The public grid of a column: equal cells between its bounds, or its integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.validation import integer_at_least, reject
from privatest.data.bounds import Bounds
from privatest.data.samples import Sample, encode_sample
from privatest.data.schema import NumericColumn

__all__ = [
    "FINE_CELLS",
    "Grid",
    "checked_cells",
    "grid_of",
    "one_numeric_column",
    "refuse_other_columns",
    "require_bounds",
]

FINE_CELLS = 1 << 16
_MOST_CELLS = 1 << 13

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Cells between public bounds.

    Attributes
    ----------
    edges : ndarray
        Their ends; the last cell has its upper one too.
    values : ndarray or None
        What each cell holds, if it holds a single value.
    """

    edges: Floats
    values: Floats | None = None

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.edges) - 1


def checked_cells(cells: object) -> int | None:
    """Return a number of cells, checked; None if the edges are chosen."""
    if cells is None:
        return None
    count = integer_at_least("cells", cells, 2)
    if count > _MOST_CELLS:
        reject("cells", f"at most {_MOST_CELLS:,}", cells)
    return count


def grid_of(sample: Sample, cells: int) -> Grid:
    """Return the grid of a column; from its description alone."""
    lower, upper = float(sample.box.lower[0]), float(sample.box.upper[0])
    column = None if sample.schema is None else next(iter(sample.schema.columns.values()))
    whole = isinstance(column, NumericColumn) and column.integer
    if whole and upper - lower < cells:
        values = np.arange(lower, upper + 1)
        return Grid(np.append(values, upper + 1), values)
    return Grid(np.linspace(lower, upper, cells + 1))


def require_bounds(bounds: Bounds) -> None:
    """Refuse to go on without public bounds: a grid has to begin and to end somewhere."""
    if bounds is None:
        raise ParameterError(
            "bounds must be given: a pair (lower, upper) or a Schema. The public grid lies "
            "between them, and bounds found from the data would leak it."
        )


def refuse_other_columns(sample: Sample, name: str) -> None:
    """Refuse what is not one numeric column."""
    if sample.domain.levels != (0,):
        raise DataError(f"{name} must be one numeric column.")


def one_numeric_column(x: Any, bounds: Bounds) -> Sample:
    """Read one numeric column in its own units, with public bounds."""
    require_bounds(bounds)
    sample = encode_sample(x, bounds, units="own")
    refuse_other_columns(sample, "x")
    return sample
