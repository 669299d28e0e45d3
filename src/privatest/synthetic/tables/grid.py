"""Values at which a function of one or two columns is looked at, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.data.schema import CategoricalColumn, Schema
from privatest.synthetic.answers import Columns, Floats, Jumps
from privatest.synthetic.tables.cells import Cells
from privatest.synthetic.tables.measured import Measured

__all__ = ["MOST_PLACES", "Grid", "Watched", "folded"]

_WITHIN = 7  # values that are looked at in a cell with many
_WITHIN_RUN = 3  # in a run of cells, where it is known at which numbers the function may jump
_FEW_CELLS = 16  # of a column that is not merged in runs
MOST_PLACES = 1 << 20

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Values of one or two columns to look at, and the class of cells that each is in.

    A class is a cell or, of two columns that are asked in words, a run of cells that no table
    tells apart: ends and known jumps then show how far a function goes.

    Attributes
    ----------
    columns : mapping
        All combinations of places, one column each.
    places : tuple of ndarray
        For each column, the class of each of its places.
    classes : tuple of ndarray
        For each column, the class of each of its cells.
    """

    columns: Columns
    places: tuple[Places, ...]
    classes: tuple[Places, ...]

    @classmethod
    def of(
        cls,
        used: Sequence[str],
        cells: Mapping[str, Cells],
        schema: Schema,
        jumps: Jumps | None,
        tables: Sequence[Measured],
    ) -> Grid | None:
        """Look at every class, and at every combination of two columns' classes.

        None if there are too many.
        """
        runs = jumps is not None and len(used) > 1
        classes = tuple(
            _runs(cells[name], name, tables) if runs else np.arange(len(cells[name]))
            for name in used
        )
        if math.prod(int(own[-1]) + 1 for own in classes) > MOST_PLACES:
            return None
        within = _WITHIN_RUN if runs else _WITHIN
        while True:
            looked = [
                _looked(cells[name], own, (jumps or {}).get(name, ()), within)
                for name, own in zip(used, classes, strict=True)
            ]
            if math.prod(map(len, looked)) <= MOST_PLACES or within <= 2:
                break
            within -= 1
        meshes = np.meshgrid(*looked, indexing="ij")
        columns = {
            name: _in_words(mesh.ravel(), name, schema)
            for name, mesh in zip(used, meshes, strict=True)
        }
        places = tuple(
            own[cells[name].codes(values)]
            for name, own, values in zip(used, classes, looked, strict=True)
        )
        return cls(columns, places, classes)

    def ends(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest value in each class: classes × functions."""
        cube = values.reshape(*map(len, self.places), -1)
        return folded(cube, self.places, np.minimum), folded(cube, self.places, np.maximum)

    def groups(self, table: Measured, used: Sequence[str]) -> list[Places]:
        """Return for each column the table's group of each class."""
        found = []
        for name, classes in zip(used, self.classes, strict=True):
            first = np.searchsorted(classes, np.arange(int(classes[-1]) + 1))
            found.append(table.groups[table.columns.index(name)][first])
        return found


def folded(values: Floats, groups: Sequence[Places], how: Any) -> Floats:
    """Reduce each of the first axes to its groups, by np.minimum, np.maximum or np.add."""
    for axis, group in enumerate(groups):
        size = int(group.max()) + 1
        if size == len(group) and (group == np.arange(size)).all():
            continue
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(size))
        ordered = values if (np.diff(group) >= 0).all() else np.take(values, order, axis=axis)
        values = how.reduceat(ordered, starts, axis=axis)
    return values


def _runs(cells: Cells, name: str, tables: Sequence[Measured]) -> Places:
    """Return a class for each cell: neighbours that no table tells apart are alike."""
    if not cells.ordered or len(cells) <= _FEW_CELLS:
        return np.arange(len(cells))
    groups = [table.groups[table.columns.index(name)] for table in tables]
    new = np.any([np.diff(group) != 0 for group in groups], axis=0)
    found: Places = np.concatenate([[0], np.cumsum(new)]).astype(np.intp)
    return found


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


def _looked(cells: Cells, classes: Places, jumps: Any, within: int) -> Floats:
    """Return values in every class: all of a few, else its ends, some between, and jumps."""
    first = np.flatnonzero(np.diff(classes, prepend=-1))
    low = cells.lowest[first]
    high = cells.highest[np.append(first[1:] - 1, len(cells) - 1)]
    if not cells.whole:  # the upper end of a bin belongs to the next
        open_end = (high > low) & (np.arange(len(high)) < len(high) - 1)
        high = np.where(open_end, np.nextafter(high, low), high)
    found = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, within)
    found[:, -1] = high
    found = np.clip(np.rint(found) if cells.whole else found, low[:, None], high[:, None])
    extra = np.empty(0)
    if cells.ordered:
        around = {*jumps} | ({0.0} if len(first) < len(cells) else set())  # squares turn at 0
        sides = [(mark - 1, mark, mark + 1) if cells.whole else _sides(mark) for mark in around]
        extra = np.array([side for mark in sides for side in mark], dtype=np.float64)
        extra = extra[(extra >= cells.lowest[0]) & (extra <= cells.highest[-1])]
    return np.unique(np.concatenate([found.ravel(), extra]))


def _sides(mark: float) -> tuple[float, float, float]:
    return float(np.nextafter(mark, -np.inf)), mark, float(np.nextafter(mark, np.inf))


def _in_words(places: Floats, name: str, schema: Schema) -> NDArray[Any]:
    column = schema.columns[name]
    if isinstance(column, CategoricalColumn):
        kinds = {type(category) for category in column.categories}
        dtype = None if len(kinds) == 1 and str not in kinds else object
        return np.array(column.categories, dtype=dtype)[places.astype(np.intp)]
    return places.astype(np.int64) if column.integer else places
