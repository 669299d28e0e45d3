"""Values at which a function of one or two columns is looked at, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.data.schema import CategoricalColumn, Schema
from privatest.synthetic.cells import Cells
from privatest.synthetic.probes import Marks

__all__ = ["MOST_PLACES", "Grid", "Watched", "reduced"]

_WITHIN = 7  # values that are looked at in a cell with many
MOST_PLACES = 1 << 20

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Values of one or two columns to look at, and the cell that each is in."""

    columns: Columns
    cells: NDArray[np.intp]
    size: int

    @classmethod
    def of(
        cls, used: Sequence[str], cells: Mapping[str, Cells], schema: Schema, marks: Marks
    ) -> Grid:
        """Look at every cell, and at every combination of two columns' cells."""
        within = _WITHIN
        while True:
            looked = [_looked(cells[name], marks.get(name, ()), within) for name in used]
            if math.prod(len(places) for places, _ in looked) <= MOST_PLACES or within <= 2:
                break
            within -= 1
        meshes = np.meshgrid(*(np.arange(len(places)) for places, _ in looked), indexing="ij")
        columns, joint, size = {}, np.zeros(meshes[0].size, dtype=np.intp), 1
        for name, mesh, (places, own) in zip(used, meshes, looked, strict=True):
            columns[name] = _in_words(places, name, schema)[mesh.ravel()]
            joint = joint * len(cells[name]) + own[mesh.ravel()]
            size *= len(cells[name])
        return cls(columns, joint, size)

    def ends(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest value in each cell (or pair of cells)."""
        low = reduced(values, self.cells, self.size, np.minimum)
        return low, reduced(values, self.cells, self.size, np.maximum)


class Watched(Mapping[str, NDArray[Any]]):
    """Columns that remember which of them were used."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column and remember it."""
        found = self._columns[name]
        self.used.add(name)
        return found

    def __iter__(self) -> Iterator[str]:
        """Return the names."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a column; that does not use it."""
        return name in self._columns

    @property
    def rows(self) -> int:
        """How many rows there are; that uses no column."""
        return len(next(iter(self._columns.values())))


def _looked(cells: Cells, marks: Any, within: int) -> tuple[Floats, NDArray[np.intp]]:
    """Return values in every cell: all of a few, else its ends, some between, and marks."""
    found = []
    for low, high in zip(cells.lowest, cells.highest, strict=True):
        if low == high:
            found.append(np.array([low]))
        elif cells.whole:
            found.append(np.unique(np.rint(np.linspace(low, high, within))))
        else:
            last = high if high == cells.highest[-1] else np.nextafter(high, low)
            found.append(np.linspace(low, last, within))
    if cells.ordered:
        sides = [(mark - 1, mark, mark + 1) if cells.whole else _sides(mark) for mark in marks]
        extra = np.array([side for mark in sides for side in mark], dtype=np.float64)
        found.append(extra[(extra >= cells.lowest[0]) & (extra <= cells.highest[-1])])
    places = np.unique(np.concatenate(found))
    return places, cells.codes(places)


def _sides(mark: float) -> tuple[float, float, float]:
    return float(np.nextafter(mark, -np.inf)), mark, float(np.nextafter(mark, np.inf))


def _in_words(places: Floats, name: str, schema: Schema) -> NDArray[Any]:
    column = schema.columns[name]
    if isinstance(column, CategoricalColumn):
        kinds = {type(category) for category in column.categories}
        dtype = None if len(kinds) == 1 and str not in kinds else object
        return np.array(column.categories, dtype=dtype)[places.astype(np.intp)]
    return places.astype(np.int64) if column.integer else places


def reduced(values: Floats, places: NDArray[np.intp], size: int, how: Callable[..., Any]) -> Floats:
    """Return the smallest or largest row of values at each place."""
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], np.arange(size))
    reduced: Floats = how.reduceat(values[order], starts, axis=0)  # type: ignore[attr-defined]
    return reduced
