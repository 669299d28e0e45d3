"""Values at which a function of one or two columns is looked at, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
from privatest.synthetic.tables import Cells, Measured, schema_cells

if TYPE_CHECKING:
    from privatest.synthetic.embedding import Engine

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


# What measured means add to tables: the part of a function that is linear within groups.


_EXACT = 1e-9  # of the size of a function: what a fit leaves by rounding alone

leaning_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Estimates of several means from one source.

    ``pieces`` say where in all that was measured numbers were used, and how the estimates move
    with the noise of each.
    """

    values: leaning_Floats
    noise: leaning_Floats
    unseen: leaning_Floats
    pieces: list[tuple[int, leaning_Floats]]


def slopes(at: leaning_Floats, values: leaning_Floats, cells: NDArray[np.intp]) -> leaning_Floats:
    """Return the slopes of functions of a number within cells, by least squares."""
    counts = np.bincount(cells)

    def within(each: leaning_Floats) -> leaning_Floats:
        centres = np.bincount(cells, each) / np.maximum(counts, 1)
        return np.asarray(each - centres[cells], dtype=np.float64)

    own, less = within(at), within
    if not own.any():  # each cell holds a single value: the slope over all of them
        less = _centred
        own = less(at)
    size = max(float(own @ own), 1e-300)
    return np.array([float(own @ less(column)) / size for column in values.T])


def _centred(each: leaning_Floats) -> leaning_Floats:
    return np.asarray(each - each.mean(), dtype=np.float64)


def cell_slopes(
    grid: Grid, used: Sequence[str], name: str, looked: leaning_Floats
) -> leaning_Floats:
    """Return the slopes by one column in each place of the other: places × functions."""
    axis = list(used).index(name)
    shape = tuple(map(len, grid.places))
    cube = np.moveaxis(looked.reshape(*shape, -1), axis, 0)
    at = np.moveaxis(grid.columns[name].astype(np.float64).reshape(shape), axis, 0)[:, 0]
    own = at - at.mean()
    found: leaning_Floats = np.tensordot(own, cube, axes=(0, 0)) / max(float(own @ own), 1e-300)
    return found


def bilinear(at: Sequence[leaning_Floats], looked: leaning_Floats) -> leaning_Floats | None:
    """Return functions as combinations of 1, x, y and xy, if they are: 4 × functions."""
    x, y = (each / max(float(np.abs(each).max()), 1e-300) for each in at)
    basis = np.column_stack([np.ones_like(x), x, y, x * y])
    square = basis.T @ basis
    if np.linalg.cond(square) > 1e10:
        return None
    found: leaning_Floats = np.asarray(np.linalg.solve(square, basis.T @ looked), dtype=np.float64)
    left = np.abs(looked - basis @ found).max(axis=0)
    if (left > _EXACT * np.maximum(np.abs(looked).max(axis=0), 1e-300)).any():
        return None
    sizes = [max(float(np.abs(each).max()), 1e-300) for each in at]
    scales = np.array([1.0, sizes[0], sizes[1], sizes[0] * sizes[1]])[:, None]
    return np.asarray(found / scales, dtype=np.float64)


# Means of functions of one or two columns, from noisy tables: the law of the noise is exact.
#
# The mean of a function that is constant on the cells of a measured table is a combination of its
# counts. Within a cell that holds several values the function's range bounds what is not known.


_SURELY = 2.576  # a bound fails with probability .005
_means_EXACT = 0.1  # of the noise: tables that leave no more open are averaged


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
        measured: Sequence[Measured],
        schema: Schema,
        n: int,
        starts: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self.columns, self.weights = columns, weights / weights.sum()
        self._measured = tuple(table for table in measured if table.is_table)
        self._schema, self._n = schema, n
        self._cells = dict(zip(schema.columns, schema_cells(schema, starts), strict=True))
        ends = np.cumsum([0, *(table.counts.size for table in self._measured)])
        self._starts, self._size = ends[:-1], int(ends[-1])
        # noisy means, and where they come after the counts
        self._means = tuple(mean for mean in measured if not mean.is_table)
        self._after = self._size + np.cumsum([0, *(mean.counts.size for mean in self._means)])
        self._total = int(self._after[-1])
        self._known = {
            mean.columns[0]: place for place, mean in enumerate(self._means) if mean.is_mean
        }
        self._codes: dict[str, NDArray[np.intp]] = {}

    def means(
        self, function: Function | Sequence[Function], jumps: Jumps | None = None
    ) -> MeanEstimates:
        """Estimate the means of functions, each with the tables of the columns that it uses."""
        if not callable(function):
            return _joined([self.means(each, jumps) for each in function])
        watched = Watched(self.columns)
        values = np.asarray(function(watched), dtype=np.float64)
        values = np.broadcast_to(values, (len(self.weights),)) if values.ndim < 2 else values
        values = values.reshape(len(self.weights), -1)
        used = [name for name in self._schema.columns if name in watched.used]
        if not used and not np.ptp(values, axis=0).any():
            return self._constant(values)
        tables = [place for place, each in enumerate(self._measured) if {*used} <= {*each.columns}]
        if not used or not tables or self._hidden(used, jumps):
            return self._unknown(values)
        counted = [self._measured[place] for place in tables]
        grid = Grid.of(used, self._cells, self._schema, jumps, counted)
        if grid is None:
            return self._unknown(values)
        looked = np.asarray(function(grid.columns), dtype=np.float64)
        looked = looked.reshape(-1, values.shape[1])
        sums, ends = self._sums(used, values, grid), grid.ends(looked)
        parts = [self._part(place, used, sums, ends, grid) for place in tables]
        if len(used) == 1 and used[0] in self._known:
            parts += [self._leaning(place, used[0], sums, looked, grid) for place in tables]
        if len(used) == 2:
            parts += self._with_moments(tables, used, sums, looked, grid)
        return self._best(parts, values)

    def edges(self, column: str, where: Function | None = None) -> Floats:
        """Return the numbers t such that rows with column <= t are whole groups of a table.

        Of the finest table of the column and of those that a condition uses.
        """
        watched = Watched(self.columns)
        watched.used.add(column)
        if where is not None:
            where(watched)
        tables = [each for each in self._measured if watched.used <= {*each.columns}]
        if not tables:
            return np.empty(0)
        groups = [table.groups[table.columns.index(column)] for table in tables]
        cells, group = self._cells[column], max(groups, key=lambda each: int(each.max()))
        last = np.append(np.flatnonzero(np.diff(group)), len(cells) - 1)
        highest = cells.highest[last]
        if not cells.whole:  # the upper end of a bin belongs to the next, but for the last
            open_end = (cells.lowest[last] < highest) & (last < len(cells) - 1)
            highest = np.where(open_end, np.nextafter(highest, -np.inf), highest)
        return np.asarray(highest, dtype=np.float64)

    def _hidden(self, used: Sequence[str], jumps: Jumps | None) -> bool:
        """Whether a function may do more within cells than looking at some values shows.

        Without ``jumps`` it may jump anywhere.
        """
        own = [self._cells[name] for name in used]
        return jumps is None and any((cells.highest > cells.lowest).any() for cells in own)

    def fitted(self, table: Measured) -> Floats:
        """Return the shares of the synthetic rows in a table's groups."""
        own = np.zeros(len(self.weights), dtype=np.intp)
        for group, name, size in zip(table.groups, table.columns, table.counts.shape, strict=True):
            own = own * size + group[self._code(name)]
        shares = np.bincount(own, self.weights, minlength=table.counts.size)
        return shares.astype(np.float64).reshape(table.counts.shape)

    # --- one table -------------------------------------------------------------------------------

    def _part(
        self,
        place: int,
        used: Sequence[str],
        rows: tuple[Floats, Floats],
        ends: tuple[Floats, Floats],
        grid: Grid,
    ) -> Part:
        """Estimate from one table: sums of counts times the function's value in each group."""
        table = self._measured[place]
        groups = grid.groups(table, used)
        low, high = (
            folded(end, groups, how)
            for end, how in zip(ends, (np.minimum, np.maximum), strict=True)
        )
        shape = low.shape[:-1]
        held, sums = (folded(each, groups, np.add) for each in rows)
        middle = np.where(held > 0, sums / np.maximum(held, 1e-300), (low + high) / 2)
        low, high = low.reshape(-1, low.shape[-1]), high.reshape(-1, low.shape[-1])
        middle = np.clip(middle.reshape(low.shape), low, high)
        other = tuple(i for i, name in enumerate(table.columns) if name not in used)
        counts = table.counts.sum(axis=other) if other else table.counts
        if len(used) == 2 and table.columns[0] != used[0]:
            counts = counts.T
        each = table.counts.size // counts.size  # cells behind each count
        level = middle - middle.mean(axis=0)  # the number of rows is known
        shares = (counts.ravel() + (self._n - counts.sum()) / counts.size) / self._n
        scale = table.sigma * math.sqrt(each) / self._n
        noise = scale * np.sqrt((level**2).sum(axis=0))
        # shares are noisy: a bound on what is unseen has to allow for that
        ranges = np.maximum(high - middle, middle - low)
        unsure = scale * np.sqrt(((ranges - ranges.mean(axis=0)) ** 2).sum(axis=0))
        unseen = np.maximum(shares @ ranges + _SURELY * unsure, 0.0) * (ranges > 0).any(axis=0)
        spread = _spread_out(level, table, used, shape) * (table.sigma / self._n)
        return Part(shares @ middle, noise, unseen, [(int(self._starts[place]), spread)])

    def _leaning(
        self,
        place: int,
        name: str,
        rows: tuple[Floats, Floats],
        looked: Floats,
        grid: Grid,
    ) -> Part:
        """Estimate with the column's own mean: f = c x + rest, c as f leans within cells."""
        known = self._means[self._known[name]]
        mean, sigma = float(known.counts), known.sigma
        at = grid.columns[name].astype(np.float64)
        steep = slopes(at, looked, grid.places[0])
        own = self._sums([name], self.columns[name].astype(np.float64)[:, None], grid)[1]
        rest = rows[0], rows[1] - own * steep
        part = self._part(place, [name], rest, grid.ends(looked - np.outer(at, steep)), grid)
        start = int(self._after[self._known[name]])
        noise = np.hypot(part.noise, np.abs(steep) * sigma)
        pieces = [*part.pieces, (start, (steep * sigma)[None, :])]
        return Part(part.values + steep * mean, noise, part.unseen, pieces)

    def _with_moments(
        self,
        tables: Sequence[int],
        used: Sequence[str],
        rows: tuple[Floats, Floats],
        looked: Floats,
        grid: Grid,
    ) -> list[Part]:
        """Estimate functions of two columns with what was measured of both beside tables."""
        found: list[Part] = []
        for index, mean in enumerate(self._means):
            if {*mean.columns} != {*used}:
                continue
            if mean.is_product:
                found += self._bilinear(index, looked, grid)
            elif mean.is_sums:
                found += [self._summed(index, place, used, rows, looked, grid) for place in tables]
        return found

    def _summed(
        self,
        index: int,
        place: int,
        used: Sequence[str],
        rows: tuple[Floats, Floats],
        looked: Floats,
        grid: Grid,
    ) -> Part:
        """Estimate with sums of x by the cells of g: f = c(g) (x - middle) + rest."""
        mean = self._means[index]
        name = mean.columns[0]
        steep = cell_slopes(grid, used, name, looked)
        axis = list(used).index(name)
        at = grid.columns[name].astype(np.float64) - self._middle(name)
        leaning = at.reshape(*map(len, grid.places), 1) * np.expand_dims(steep, axis)
        values = self.columns[name].astype(np.float64) - self._middle(name)
        own = self._sums(used, values[:, None], grid)[1] * np.expand_dims(steep, axis)
        ends = grid.ends(looked - leaning.reshape(looked.shape))
        part = self._part(place, used, (rows[0], rows[1] - own), ends, grid)
        noise = np.hypot(part.noise, mean.sigma * np.sqrt((steep**2).sum(axis=0)))
        pieces = [*part.pieces, (int(self._after[index]), steep * mean.sigma)]
        return Part(part.values + mean.counts @ steep, noise, part.unseen, pieces)

    def _bilinear(self, index: int, looked: Floats, grid: Grid) -> list[Part]:
        """Estimate a + b x + c y + d xy from measured means alone."""
        product = self._means[index]
        if not {*product.columns} <= {*self._known}:
            return []
        at = [
            grid.columns[name].astype(np.float64) - self._middle(name) for name in product.columns
        ]
        found = bilinear(at, looked)
        if found is None:
            return []
        places = [*(self._known[name] for name in product.columns), index]
        means = [float(self._means[place].counts) for place in places]
        for which, name in enumerate(product.columns):
            means[which] -= self._middle(name)
        sigmas = np.array([self._means[place].sigma for place in places])
        noise = np.sqrt(((found[1:] * sigmas[:, None]) ** 2).sum(axis=0))
        pieces = [
            (int(self._after[place]), (slope * sigma)[None, :])
            for place, slope, sigma in zip(places, found[1:], sigmas, strict=True)
        ]
        return [Part(found[0] + np.array(means) @ found[1:], noise, np.zeros_like(noise), pieces)]

    def _middle(self, name: str) -> float:
        column = self._schema.columns[name]
        assert isinstance(column, NumericColumn)
        return (column.lower + column.upper) / 2

    def _sums(self, used: Sequence[str], values: Floats, grid: Grid) -> tuple[Floats, Floats]:
        """Return the synthetic rows' weight in each class, and the sums of the functions there.

        Classes × 1 and classes × functions.
        """
        own, sizes = np.zeros(len(values), dtype=np.intp), []
        for name, classes in zip(used, grid.classes, strict=True):
            sizes.append(int(classes[-1]) + 1)
            own = own * sizes[-1] + classes[self._code(name)]
        size = math.prod(sizes)
        held = np.bincount(own, self.weights, minlength=size)
        columns = [np.bincount(own, self.weights * each, minlength=size) for each in values.T]
        sums = np.column_stack(columns).astype(np.float64).reshape(*sizes, -1)
        return held.astype(np.float64).reshape(*sizes, 1), sums

    def _code(self, name: str) -> NDArray[np.intp]:
        if name not in self._codes:
            column, values = self._schema.columns[name], self.columns[name]
            if isinstance(column, CategoricalColumn):
                codes = {value: code for code, value in enumerate(column.categories)}
                values = np.array([codes[value] for value in values.tolist()])
            self._codes[name] = self._cells[name].codes(values.astype(np.float64))
        return self._codes[name]

    # --- several tables --------------------------------------------------------------------------

    def _best(self, parts: Sequence[Part], values: Floats) -> MeanEstimates:
        """Average tables that leave nothing open, or take the one with the shortest bar."""
        count = values.shape[1]
        found = [np.empty(count) for _ in range(3)]
        directions = np.zeros((self._total, count))
        for column in range(count):
            noise = np.array([part.noise[column] for part in parts])
            unseen = np.array([part.unseen[column] for part in parts])
            best = int(np.argmin(honest_error(noise, unseen)))
            share = np.zeros(len(parts))
            share[best] = 1.0
            exact = (unseen <= _means_EXACT * noise) & (noise > 0)
            if exact[best]:
                share = np.where(exact, 1 / np.maximum(noise, 1e-150) ** 2, 0.0)
                share /= share.sum()
            found[0][column] = share @ np.array([part.values[column] for part in parts])
            found[2][column] = share @ unseen
            for part, weight in zip(parts, share, strict=True):
                for start, spread in part.pieces if weight > 0 else []:
                    directions[start : start + len(spread), column] += weight * spread[:, column]
        found[1] = np.sqrt(np.einsum("ij,ij->j", directions, directions))
        errors = honest_error(found[1], found[2])
        plain, spreads = self.weights @ values, self._spreads(values)
        return MeanEstimates(found[0], errors, found[1], found[2], directions, spreads, plain)

    def _spreads(self, values: Floats) -> Floats:
        centred = values - self.weights @ values
        return np.asarray(np.sqrt(self.weights @ centred**2), dtype=np.float64)

    def _constant(self, values: Floats) -> MeanEstimates:
        nothing = np.zeros(values.shape[1])
        zero = np.zeros((self._total, values.shape[1]))
        middle = self.weights @ values
        return MeanEstimates(middle, nothing, nothing, nothing, zero, nothing, middle)

    def _unknown(self, values: Floats) -> MeanEstimates:
        """Return what the rows say, which nothing measured supports."""
        count = values.shape[1]
        unseen = np.full(count, np.inf)
        zero = np.zeros((self._total, count))
        middle = self.weights @ values
        spreads = self._spreads(values)
        return MeanEstimates(middle, unseen, np.zeros(count), unseen, zero, spreads, middle)


def _spread_out(
    level: Floats, table: Measured, used: Sequence[str], shape: tuple[int, ...]
) -> Floats:
    """Return the weight of every count of a table, whose other columns are summed over."""
    cube = level.reshape(*shape, -1)
    if len(used) == 2 and table.columns[0] != used[0]:
        cube = cube.swapaxes(0, 1)
    for axis, name in enumerate(table.columns):
        if name not in used:
            cube = np.expand_dims(cube, axis)
    whole = np.broadcast_to(cube, (*table.counts.shape, level.shape[1]))
    return whole.reshape(-1, level.shape[1])


def _joined(estimates: Sequence[MeanEstimates]) -> MeanEstimates:
    parts = estimates[0].combined(lambda *each: np.concatenate(each), estimates[1:])
    return MeanEstimates(**parts, directions=np.hstack([each.directions for each in estimates]))


def _squared(function: Function | Sequence[Function]) -> Function | list[Function]:
    if callable(function):
        return lambda columns: np.square(np.asarray(function(columns), dtype=np.float64))
    return [lambda columns, each=each: np.square(each(columns)) for each in function]  # type: ignore[misc]


class AtomMeans(MeanSource):
    """Estimates means from coefficients or, where they say more, from counts at atoms."""

    def __init__(self, points: Engine, tables: TableMeans) -> None:
        self._points, self._tables = points, tables
        self.finest = points.finest
        self.columns, self.weights = points.columns, points.weights

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
            parts["spreads"] = np.where(better, spreads, smooth.spreads)
        directions = [smooth.directions * ~better, counted.directions * better]
        return MeanEstimates(**parts, directions=np.vstack(directions))

    def edges(self, column: str, where: Function | None = None) -> Floats:
        """Return the numbers up to which shares of a column were counted."""
        return self._tables.edges(column, where)
