"""Means of functions of one or two columns, from noisy tables: the law of the noise is exact.

The mean of a function that is constant on the cells of a measured table is a combination of its
counts. Within a cell that holds several values the function's range bounds what is not known; a
measured mean takes out the part of the function that is linear there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.synthetic.answers import (
    Columns,
    Floats,
    Function,
    Jumps,
    MeanEstimates,
    MeanSource,
    honest_error,
)
from privatest.synthetic.tables import Codes, ColumnCells, Measurement, decode_column, schema_cells

if TYPE_CHECKING:
    from privatest.synthetic.embedding import EmbeddingMeans

_WITHIN = 7  # values at which a function is evaluated in a cell with many
_WITHIN_RUN = 3  # in a run of cells, where it is known at which numbers the function may jump
_FEW_CELLS = 16  # of a column that is not merged in runs
MOST_PLACES = 1 << 20
_SURELY = 2.576  # a bound fails with probability .005
_LITTLE = 0.1  # of the noise: tables that leave no more open are averaged
_EXACT = 1e-9  # of the size of a function: what a fit leaves by rounding alone


# --- where functions are evaluated ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationGrid:
    """Values of one or two columns at which functions are evaluated, and the class of each.

    A class is a cell or, of two columns and known jumps, a run of cells that no table tells
    apart: ends and jumps then show the range of a function.

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
    places: tuple[Codes, ...]
    classes: tuple[Codes, ...]

    @classmethod
    def of(
        cls,
        used: Sequence[str],
        cells: Mapping[str, ColumnCells],
        schema: Schema,
        jumps: Jumps | None,
        tables: Sequence[Measurement],
    ) -> EvaluationGrid | None:
        """Return a grid with every combination of classes; None if there are too many."""
        runs = jumps is not None and len(used) > 1
        classes = tuple(
            _runs(cells[name], [table.groups_of(name) for table in tables])
            if runs
            else np.arange(len(cells[name]))
            for name in used
        )
        if math.prod(int(own[-1]) + 1 for own in classes) > MOST_PLACES:
            return None
        within = _WITHIN_RUN if runs else _WITHIN
        while True:
            values = [
                _evaluation_values(cells[name], own, (jumps or {}).get(name, ()), within)
                for name, own in zip(used, classes, strict=True)
            ]
            if math.prod(map(len, values)) <= MOST_PLACES or within <= 2:
                break
            within -= 1
        columns = {
            name: decode_column(schema.columns[name], mesh.ravel())
            for name, mesh in zip(used, np.meshgrid(*values, indexing="ij"), strict=True)
        }
        places = tuple(
            own[cells[name].codes(each)]
            for name, own, each in zip(used, classes, values, strict=True)
        )
        return cls(columns, places, classes)

    def ends(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest value in each class: classes × functions."""
        cube = values.reshape(*map(len, self.places), -1)
        return _reduced(cube, self.places, np.minimum), _reduced(cube, self.places, np.maximum)

    def groups(self, table: Measurement) -> list[Codes]:
        """Return for each column the table's group of each class."""
        firsts = [np.searchsorted(own, np.arange(int(own[-1]) + 1)) for own in self.classes]
        pairs = zip(self.columns, firsts, strict=True)
        return [table.groups_of(name)[first] for name, first in pairs]


def _reduced(values: Floats, groups: Sequence[Codes], how: Any) -> Floats:
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


def _runs(cells: ColumnCells, groups: Sequence[Codes]) -> Codes:
    """Return a class for each cell: neighbours that no table tells apart are alike."""
    if not cells.ordered or len(cells) <= _FEW_CELLS:
        return np.arange(len(cells))
    new = np.any([np.diff(group) != 0 for group in groups], axis=0)
    return np.concatenate([[0], np.cumsum(new)]).astype(np.intp)


def _evaluation_values(
    cells: ColumnCells, classes: Codes, jumps: Iterable[float], within: int
) -> Floats:
    """Return values in every class: all of a few, else its ends, some between, and jumps."""
    first = np.flatnonzero(np.diff(classes, prepend=-1))
    low = cells.lowest[first]
    high = cells.largest[np.append(first[1:] - 1, len(cells) - 1)]
    values = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, within)
    values[:, -1] = high
    values = np.clip(np.rint(values) if cells.whole else values, low[:, None], high[:, None])
    around = np.empty(0)
    if cells.ordered:
        turns = np.array([*{*jumps} | ({0.0} if len(first) < len(cells) else set())])
        if cells.whole:  # the integers on both sides
            sides = [np.ceil(turns) - 1, np.rint(turns), np.floor(turns) + 1]
        else:
            sides = [np.nextafter(turns, -np.inf), turns, np.nextafter(turns, np.inf)]
        around = np.concatenate(sides)
        around = around[(around >= cells.lowest[0]) & (around <= cells.highest[-1])]
    return np.unique(np.concatenate([values.ravel(), around]))


class TrackedColumns(Mapping[str, NDArray[Any]]):
    """Columns that remember which of them were used."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column and remember it."""
        column = self._columns[name]
        self.used.add(name)
        return column

    def __iter__(self) -> Iterator[str]:
        """Return the names."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a column, without using it."""
        return name in self._columns

    @property
    def rows(self) -> int:
        """The number of rows, without using a column."""
        return len(next(iter(self._columns.values())))


# --- estimates from tables -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TableEstimate:
    """Estimates of several means from one table, perhaps with a measured mean.

    ``directions`` say where in all that was measured numbers were used, and how the estimates
    move with the noise of each.
    """

    values: Floats
    noise: Floats
    unseen: Floats
    directions: list[tuple[int, Floats]]


class TableMeans(MeanSource):
    """Estimates means from measured tables of the columns that a function uses."""

    finest = "this release says nothing about conditions finer than the bins of its tables"
    unmeasured = (
        "these columns were not measured together, or the question may change within their bins"
    )
    additive = True

    def __init__(
        self,
        columns: Columns,
        weights: Floats,
        measured: Sequence[Measurement],
        schema: Schema,
        n: int,
        starts: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self.columns, self.weights = columns, weights / weights.sum()
        self._schema, self._n = schema, n
        self._cells = dict(zip(schema.columns, schema_cells(schema, starts), strict=True))
        self._tables = [each for each in measured if each.is_table]
        self._means = [each for each in measured if not each.is_table]
        self._own = {each.columns[0]: i for i, each in enumerate(self._means) if each.is_mean}
        # where each begins among all numbers that were measured: tables first
        sizes = [each.counts.size for each in (*self._tables, *self._means)]
        ends = np.cumsum([0, *sizes]).tolist()
        self._table_starts, self._mean_starts = ends[: len(self._tables)], ends[len(self._tables) :]
        self._total = ends[-1]
        self._codes: dict[str, Codes] = {}

    def means(
        self, function: Function | Sequence[Function], jumps: Jumps | None = None
    ) -> MeanEstimates:
        """Estimate the means of functions, each with the tables of the columns that it uses."""
        if not callable(function):
            each = [self.means(one, jumps) for one in function]
            parts = each[0].combined(lambda *arrays: np.concatenate(arrays), each[1:])
            return MeanEstimates(**parts, directions=np.hstack([one.directions for one in each]))
        tracked = TrackedColumns(self.columns)
        values = np.asarray(function(tracked), dtype=np.float64)
        values = np.broadcast_to(values, (len(self.weights),)) if values.ndim < 2 else values
        values = values.reshape(len(self.weights), -1)
        used = [name for name in self._schema.columns if name in tracked.used]
        if not used and not np.ptp(values, axis=0).any():
            return self._plain(values, 0.0)
        places = [i for i, each in enumerate(self._tables) if {*used} <= {*each.columns}]
        # without known jumps a function may jump anywhere within a cell
        hidden = jumps is None and any(self._cells[name].wide.any() for name in used)
        if not used or not places or hidden:
            return self._plain(values, math.inf)
        tables = [self._tables[place] for place in places]
        grid = EvaluationGrid.of(used, self._cells, self._schema, jumps, tables)
        if grid is None:
            return self._plain(values, math.inf)
        at_grid = np.asarray(function(grid.columns), dtype=np.float64)
        at_grid = at_grid.reshape(-1, values.shape[1])
        rows = self._class_sums(values, grid)
        ends = grid.ends(at_grid)
        estimates = [self._from_table(place, rows, ends, grid) for place in places]
        if len(used) == 1 and used[0] in self._own:
            estimates += [self._with_mean(place, used[0], rows, at_grid, grid) for place in places]
        for index, mean in enumerate(self._means):
            if len(used) == 2 and {*mean.columns} == {*used}:
                if mean.is_product:
                    estimates += self._bilinear(index, at_grid, grid)
                elif mean.is_sums:
                    estimates += [
                        self._with_sums(index, place, rows, at_grid, grid) for place in places
                    ]
        return self._best(estimates, values)

    def edges(self, column: str, where: Function | None = None) -> Floats:
        """Return the numbers t such that rows with column <= t are whole groups of a table.

        Of the finest table of the column and of those that a condition uses.
        """
        tracked = TrackedColumns(self.columns)
        tracked.used.add(column)
        if where is not None:
            where(tracked)
        tables = [each for each in self._tables if tracked.used <= {*each.columns}]
        if not tables:
            return np.empty(0)
        groups = [table.groups_of(column) for table in tables]
        cells, group = self._cells[column], max(groups, key=lambda each: int(each.max()))
        return np.asarray(cells.largest[np.append(np.flatnonzero(np.diff(group)), len(cells) - 1)])

    def fitted(self, table: Measurement) -> Floats:
        """Return the shares of the synthetic rows in a table's groups."""
        own = np.zeros(len(self.weights), dtype=np.intp)
        for group, name, size in zip(table.groups, table.columns, table.counts.shape, strict=True):
            own = own * size + group[self._code(name)]
        shares = np.bincount(own, self.weights, minlength=table.counts.size)
        return shares.astype(np.float64).reshape(table.counts.shape)

    def _from_table(
        self,
        place: int,
        rows: tuple[Floats, Floats],
        ends: tuple[Floats, Floats],
        grid: EvaluationGrid,
    ) -> TableEstimate:
        """Estimate from one table: sums of counts times the function's value in each group."""
        table, used = self._tables[place], [*grid.columns]
        groups = grid.groups(table)
        low = _reduced(ends[0], groups, np.minimum)
        high = _reduced(ends[1], groups, np.maximum)
        shape, width = low.shape[:-1], low.shape[-1]
        mass, sums = (_reduced(each, groups, np.add) for each in rows)
        middle = np.where(mass > 0, sums / np.maximum(mass, 1e-300), (low + high) / 2)
        low, high, middle = (each.reshape(-1, width) for each in (low, high, middle))
        middle = np.clip(middle, low, high)
        other = tuple(i for i, name in enumerate(table.columns) if name not in used)
        counts = table.counts.sum(axis=other) if other else table.counts
        turned = len(used) == 2 and table.columns[0] != used[0]
        counts = counts.T if turned else counts
        each = table.counts.size // counts.size  # cells behind each count
        level = middle - middle.mean(axis=0)  # the number of rows is known
        shares = (counts.ravel() + (self._n - counts.sum()) / counts.size) / self._n
        scale = table.sigma * math.sqrt(each) / self._n
        noise = scale * np.sqrt((level**2).sum(axis=0))
        # shares are noisy: a bound on what is unseen has to allow for that
        ranges = np.maximum(high - middle, middle - low)
        unsure = scale * np.sqrt(((ranges - ranges.mean(axis=0)) ** 2).sum(axis=0))
        unseen = np.maximum(shares @ ranges + _SURELY * unsure, 0.0) * (ranges > 0).any(axis=0)
        # the weight of every count of the table, whose other columns are summed over
        cube = level.reshape(*shape, -1)
        cube = np.expand_dims(cube.swapaxes(0, 1) if turned else cube, other)
        spread = np.broadcast_to(cube, (*table.counts.shape, width)).reshape(-1, width)
        direction = spread * (table.sigma / self._n)
        start = self._table_starts[place]
        return TableEstimate(shares @ middle, noise, unseen, [(start, direction)])

    def _with_mean(
        self,
        place: int,
        name: str,
        rows: tuple[Floats, Floats],
        at_grid: Floats,
        grid: EvaluationGrid,
    ) -> TableEstimate:
        """Estimate with the column's own mean: f = c x + rest, c the slope within cells."""
        index = self._own[name]
        mean = self._means[index]
        at = grid.columns[name].astype(np.float64)
        slopes = _slopes_within(at, at_grid, grid.places[0])
        own = self._class_sums(self.columns[name].astype(np.float64)[:, None], grid)[1]
        rest = rows[0], rows[1] - own * slopes
        part = self._from_table(place, rest, grid.ends(at_grid - np.outer(at, slopes)), grid)
        return self._added(part, index, slopes * float(mean.counts), slopes[None, :])

    def _with_sums(
        self,
        index: int,
        place: int,
        rows: tuple[Floats, Floats],
        at_grid: Floats,
        grid: EvaluationGrid,
    ) -> TableEstimate:
        """Estimate with sums of x by the cells of g: f = c(g) (x - middle) + rest."""
        mean = self._means[index]
        name = mean.columns[0]
        axis = [*grid.columns].index(name)
        shape = tuple(map(len, grid.places))
        # the slopes by x in each place of g, by least squares: places × functions
        cube = np.moveaxis(at_grid.reshape(*shape, -1), axis, 0)
        at = grid.columns[name].astype(np.float64).reshape(shape)
        centred = np.moveaxis(at, axis, 0)[:, 0]
        centred = centred - centred.mean()
        slopes = np.tensordot(centred, cube, axes=(0, 0)) / max(float(centred @ centred), 1e-300)
        along = np.expand_dims(slopes, axis)
        linear = (at - self._middle(name))[..., None] * along
        values = self.columns[name].astype(np.float64) - self._middle(name)
        own = self._class_sums(values[:, None], grid)[1] * along
        ends = grid.ends(at_grid - linear.reshape(at_grid.shape))
        part = self._from_table(place, (rows[0], rows[1] - own), ends, grid)
        return self._added(part, index, mean.counts @ slopes, slopes)

    def _added(
        self, part: TableEstimate, index: int, values: Floats, slopes: Floats
    ) -> TableEstimate:
        """Add a measured mean times slopes to the estimate of the rest of a function."""
        direction = slopes * self._means[index].sigma
        noise = np.hypot(part.noise, np.sqrt((direction**2).sum(axis=0)))
        directions = [*part.directions, (self._mean_starts[index], direction)]
        return TableEstimate(part.values + values, noise, part.unseen, directions)

    def _bilinear(self, index: int, at_grid: Floats, grid: EvaluationGrid) -> list[TableEstimate]:
        """Estimate a + b x + c y + d xy from measured means alone."""
        names = self._means[index].columns
        if not {*names} <= {*self._own}:
            return []
        middles = [self._middle(name) for name in names]
        at = [grid.columns[n].astype(np.float64) - m for n, m in zip(names, middles, strict=True)]
        factors = _bilinear_factors(at, at_grid)
        if factors is None:
            return []
        measured = [*(self._own[name] for name in names), index]
        means = np.array([float(self._means[i].counts) for i in measured]) - [*middles, 0.0]
        sigmas = np.array([[self._means[i].sigma] for i in measured])
        moved = factors[1:] * sigmas
        noise = np.sqrt((moved**2).sum(axis=0))
        directions = [
            (self._mean_starts[i], own[None, :]) for i, own in zip(measured, moved, strict=True)
        ]
        values = factors[0] + means @ factors[1:]
        return [TableEstimate(values, noise, np.zeros_like(noise), directions)]

    def _middle(self, name: str) -> float:
        column = self._schema.columns[name]
        assert isinstance(column, NumericColumn)
        return (column.lower + column.upper) / 2

    def _class_sums(self, values: Floats, grid: EvaluationGrid) -> tuple[Floats, Floats]:
        """Return the synthetic rows' weight in each class, and the sums of functions there.

        Classes × 1 and classes × functions.
        """
        own, sizes = np.zeros(len(values), dtype=np.intp), []
        for name, classes in zip(grid.columns, grid.classes, strict=True):
            sizes.append(int(classes[-1]) + 1)
            own = own * sizes[-1] + classes[self._code(name)]
        size = math.prod(sizes)
        mass = np.bincount(own, self.weights, minlength=size)
        columns = [np.bincount(own, self.weights * each, minlength=size) for each in values.T]
        sums = np.column_stack(columns).astype(np.float64).reshape(*sizes, -1)
        return mass.astype(np.float64).reshape(*sizes, 1), sums

    def _code(self, name: str) -> Codes:
        if name not in self._codes:
            column, values = self._schema.columns[name], self.columns[name]
            if isinstance(column, CategoricalColumn):
                codes = {value: code for code, value in enumerate(column.categories)}
                values = np.array([codes[value] for value in values.tolist()])
            self._codes[name] = self._cells[name].codes(values.astype(np.float64))
        return self._codes[name]

    def _best(self, estimates: Sequence[TableEstimate], values: Floats) -> MeanEstimates:
        """Average tables that leave nothing open, or take the one with the shortest bar."""
        noise = np.array([each.noise for each in estimates])
        unseen = np.array([each.unseen for each in estimates])
        best = honest_error(noise, unseen).argmin(axis=0)
        exact = (unseen <= _LITTLE * noise) & (noise > 0)
        shares = np.zeros_like(noise)
        functions = range(noise.shape[1])
        for column in functions:
            if exact[best[column], column]:
                precision = 1 / np.maximum(noise[:, column], 1e-150) ** 2
                own = np.where(exact[:, column], precision, 0.0)
                shares[:, column] = own / own.sum()
            else:
                shares[best[column], column] = 1.0
        directions = np.zeros((self._total, noise.shape[1]))
        for each, own in zip(estimates, shares, strict=True):
            for start, direction in each.directions:
                used = own > 0
                part = directions[start : start + len(direction)]
                part[:, used] += own[used] * direction[:, used]
        each_value = np.array([each.values for each in estimates])
        means = np.array([shares[:, i] @ each_value[:, i] for i in functions])
        left = np.array([shares[:, i] @ unseen[:, i] for i in functions])
        total = np.sqrt(np.einsum("ij,ij->j", directions, directions))
        plain, spreads = self.weights @ values, self._spreads(values)
        errors = honest_error(total, left)
        return MeanEstimates(means, errors, total, left, directions, spreads, plain)

    def _spreads(self, values: Floats) -> Floats:
        centred = values - self.weights @ values
        return np.asarray(np.sqrt(self.weights @ centred**2), dtype=np.float64)

    def _plain(self, values: Floats, error: float) -> MeanEstimates:
        """Return the means of the rows: exact, or without anything measured to support them."""
        count = values.shape[1]
        nothing, unseen = np.zeros(count), np.full(count, error)
        directions, means = np.zeros((self._total, count)), self.weights @ values
        spreads = self._spreads(values) if error else nothing
        return MeanEstimates(means, unseen, nothing, unseen, directions, spreads, means)


def _slopes_within(at: Floats, values: Floats, cells: Codes) -> Floats:
    """Return the slopes of functions of a number within cells, by least squares."""
    counts = np.maximum(np.bincount(cells), 1)
    centred = at - (np.bincount(cells, at) / counts)[cells]
    within = centred.any()
    if not within:  # each cell holds a single value: the slope over all of them
        centred = at - at.mean()
    slopes = []
    for column in values.T:
        centre = (np.bincount(cells, column) / counts)[cells] if within else column.mean()
        slopes.append(float(centred @ (column - centre)))
    return np.array(slopes) / max(float(centred @ centred), 1e-300)


def _bilinear_factors(at: Sequence[Floats], values: Floats) -> Floats | None:
    """Return functions as combinations of 1, x, y and xy, if they are: 4 × functions."""
    sizes = [max(float(np.abs(each).max()), 1e-300) for each in at]
    x, y = (each / size for each, size in zip(at, sizes, strict=True))
    basis = np.column_stack([np.ones_like(x), x, y, x * y])
    square = basis.T @ basis
    if np.linalg.cond(square) > 1e10:
        return None
    factors = np.asarray(np.linalg.solve(square, basis.T @ values), dtype=np.float64)
    left = np.abs(values - basis @ factors).max(axis=0)
    if (left > _EXACT * np.maximum(np.abs(values).max(axis=0), 1e-300)).any():
        return None
    scales = np.array([1.0, sizes[0], sizes[1], sizes[0] * sizes[1]])[:, None]
    return np.asarray(factors / scales, dtype=np.float64)


class AtomMeans(MeanSource):
    """Estimates means from coefficients or, where they say more, from counts at atoms."""

    def __init__(self, points: EmbeddingMeans, tables: TableMeans) -> None:
        self._points, self._tables = points, tables
        self.columns, self.weights, self.finest = points.columns, points.weights, points.finest

    def means(
        self, function: Function | Sequence[Function], jumps: Jumps | None = None
    ) -> MeanEstimates:
        """Estimate the means of functions, each by what gives it the shorter bar."""
        smooth, counted = (each.means(function, jumps) for each in (self._points, self._tables))
        better = counted.errors < smooth.errors

        def choose(count: Floats, curve: Floats) -> Floats:
            return np.where(better, count, curve)

        parts = counted.combined(choose, [smooth])
        if better.any():  # few rows may be at atoms, or none: their spread is not that of people
            squares = self._tables.means(_squared(function), jumps).values
            spreads = np.sqrt(np.maximum(squares - counted.values**2, 0.0))
            parts["spreads"] = choose(spreads, smooth.spreads)
        directions = [smooth.directions * ~better, counted.directions * better]
        return MeanEstimates(**parts, directions=np.vstack(directions))

    def edges(self, column: str, where: Function | None = None) -> Floats:
        """Return the numbers up to which shares of a column were counted."""
        return self._tables.edges(column, where)


def _squared(function: Function | Sequence[Function]) -> Function | list[Function]:
    if callable(function):
        return lambda columns: np.square(np.asarray(function(columns), dtype=np.float64))
    return [lambda columns, each=each: np.square(each(columns)) for each in function]  # type: ignore[misc]
