"""Means of functions of one or two columns, from noisy tables: the law of the noise is exact.

The mean of a function that is constant on the cells of a measured table is a combination of its
counts. Within a cell that holds several values the function's range bounds what is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

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
from privatest.synthetic.tables.cells import schema_cells
from privatest.synthetic.tables.grid import Grid, Watched, folded
from privatest.synthetic.tables.leaning import Part, bilinear, cell_slopes, slopes
from privatest.synthetic.tables.measured import Measured

if TYPE_CHECKING:
    from privatest.synthetic.answering.functionals import Engine

_SURELY = 2.576  # a bound fails with probability .005
_EXACT = 0.1  # of the noise: tables that leave no more open are averaged


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
            exact = (unseen <= _EXACT * noise) & (noise > 0)
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
        parts = counted.combined(lambda one, other: np.where(better, one, other), [smooth])
        if better.any():  # few rows may be at atoms, or none: their spread is not that of people
            squares = self._tables.means(_squared(function), jumps).values
            spreads = np.sqrt(np.maximum(squares - counted.values**2, 0.0))
            parts["spreads"] = np.where(better, spreads, smooth.spreads)
        directions = [smooth.directions * ~better, counted.directions * better]
        return MeanEstimates(**parts, directions=np.vstack(directions))

    def edges(self, column: str, where: Function | None = None) -> Floats:
        """Return the numbers up to which shares of a column were counted."""
        return self._tables.edges(column, where)
