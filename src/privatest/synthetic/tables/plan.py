"""What a release by tables measures, and with how much noise: from public sizes only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import integer_at_least, one_of, reject
from privatest.data.bounds import Bounds, schema_of
from privatest.data.samples import Sample, encode_sample
from privatest.data.schema import NumericColumn, Schema
from privatest.data.tables import read_data
from privatest.synthetic.tables.cells import Cells, column_cells, schema_cells
from privatest.synthetic.tables.measured import Measured, table_scale
from privatest.synthetic.tables.moments import Moments, moment_scale
from privatest.synthetic.tables.refining import LOOK, LOOKS, are_seen, look_scale, with_bins

__all__ = [
    "Bins",
    "Round",
    "TablesPlan",
    "count_steps",
    "foretell",
    "plan_tables",
    "suits_tables",
    "tables_of",
    "wanted_moments",
]

Bins = Literal["adaptive", "even"]

_FEW_PAIRS = 6  # all of them are measured in fine groups at once
# shares of the budget; what they leave is for fine tables of pairs, or of one column
_ONE_WAY, _MEANS, _COARSE = Fraction(3, 10), Fraction(1, 20), Fraction(1, 5)
_MORE_MEANS = Fraction(1, 10)  # where sums by cells and products are measured as well
_MEANS_ALONE = Fraction(1, 5)  # where pairs would not be seen
_FEW_CELLS = 16  # of a column that others are added up by
_AFFORDED = 0.02  # noise of sums and products, in parts of the bounds; with more they say little
_SEEN = 8  # pairs are seen if n is so many times the noise of a count: one in a quarter is then two
_MEAN_CELLS = 8  # with more of them a mean is known better by itself than from counts
COARSE_GROUPS = 8  # a group of a coarse table holds about an eighth of the rows, or more
_FEWEST, _MOST = 8, 64  # fine groups
_CHOSEN_PER_COLUMN = 3
_MOST_COLUMNS = 100
_PLANE = 2  # more columns than these are too many for points in space
_MOST_ROWS, _MOST_RELEASED = 50_000, 1_000_000
_WORK = 300_000  # steps of a fit times its components


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of a release measures, known before any data is read.

    Attributes
    ----------
    what : str
        In words.
    tables : int
        How many tables, or the most; or how many means, or looks.
    groups : int
        The most groups of cells of a column.
    share : float
        Its share of the budget.
    sigma : float
        Standard deviation of the noise: of a count in rows, of a mean in parts of its bounds.
    """

    what: str
    tables: int
    groups: int
    share: float
    sigma: float


@dataclass(frozen=True, slots=True, eq=False)
class TablesPlan:
    """Rounds of a release, before any data is seen.

    Attributes
    ----------
    schema : Schema
        The columns.
    cells : tuple of Cells
        Their public cells.
    n : int
        The number of private rows.
    budget : Budget
        What all rounds cost together.
    more : bool
        Whether sums by cells and products are measured with the means.
    bins, means, one_way, coarse, fine : Fraction
        Shares of the budget for looks at bins, means of numeric columns, tables of single
        columns, coarse tables of all pairs, and fine tables of pairs (those chosen by the coarse
        ones, or all if ``coarse`` is 0).
    """

    schema: Schema
    cells: tuple[Cells, ...]
    n: int
    budget: Budget
    more: bool
    bins: Fraction
    means: Fraction
    one_way: Fraction
    coarse: Fraction
    fine: Fraction

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.schema.columns)

    @property
    def rows_per_person(self) -> int:
        """The most rows of a person."""
        return min(self.schema.rows_per_person, self.n)

    @property
    def shares(self) -> dict[str, float]:
        """How the budget is split, for readers."""
        parts = {
            "bins": self.bins,
            "means": self.means,
            "one_way": self.one_way,
            "coarse": self.coarse,
            "fine": self.fine,
        }
        return {name: float(part) for name, part in parts.items() if part}

    def after_looks(self, cells: tuple[Cells, ...], spent: Fraction) -> TablesPlan:
        """Return the plan with cells that were bought; what is left goes to the last round."""
        left = self.bins - spent
        one_way, fine = (self.one_way, self.fine + left) if self.fine else (self.one_way + left, 0)
        return replace(self, cells=cells, bins=spent, one_way=one_way, fine=Fraction(fine))

    @property
    def starts(self) -> dict[str, tuple[float, ...]]:
        """Where cells begin, of columns whose bins were split."""
        usual = zip(self.schema.columns.values(), self.names, self.cells, strict=True)
        return {
            name: tuple(own.lowest.tolist())
            for column, name, own in usual
            if not np.array_equal(own.lowest, column_cells(column).lowest)
        }

    @property
    def moments(self) -> Moments:
        """The means that are measured."""
        return wanted_moments(self.cells, more=self.more)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of columns."""
        return list(itertools.combinations(range(len(self.names)), 2))

    @property
    def most_chosen(self) -> int:
        """The most pairs that the last round measures."""
        if not self.coarse:
            return len(self.pairs)
        return min(len(self.pairs), _CHOSEN_PER_COLUMN * len(self.names))

    @property
    def rounds(self) -> list[Round]:
        """What would be measured, and with how much noise."""
        columns, found = len(self.names), []
        if self.bins:
            wide = with_bins(self.cells)
            noise = look_scale(len(wide), self.rows_per_person, self.budget)
            cells = max(len(self.cells[place]) for place in wide)
            what = "looks at columns with bins, to split those with many rows"
            found.append(Round(what, LOOKS, cells, float(self.bins), noise))
        if self.means:
            wanted = self.moments
            noise = moment_scale(wanted, self.rows_per_person, self.budget, self.means) / self.n
            what = "means, also of groups and products" if self.more else "means"
            found.append(Round(what, len(wanted), 0, float(self.means), noise))
        cells = max(map(len, self.cells))
        rounds = [("tables of one column", columns, cells, self.one_way)]
        if self.coarse:
            rounds.append(
                ("coarse tables of all pairs", len(self.pairs), 2 * COARSE_GROUPS, self.coarse)
            )
        if self.fine:
            which = "useful" if self.coarse else "all"
            groups = 2 * self.fine_groups
            rounds.append((f"tables of {which} pairs", self.most_chosen, groups, self.fine))
        for what, tables, groups, share in rounds:
            noise = self.sigma(tables, share)
            found.append(Round(what, tables, min(groups, cells), float(share), noise))
        return found

    def columns(self, values: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return rows, in their own units, as columns of numbers and categories."""
        columns = self.schema.decode(np.where(self.schema.domain.levels, values, 0.0))
        for place, (name, column) in enumerate(self.schema.columns.items()):
            if isinstance(column, NumericColumn):  # not scaled and back: atoms stay what they are
                own = values[:, place]
                columns[name] = own.astype(np.int64) if column.integer else own.copy()
        for array in columns.values():
            array.flags.writeable = False
        return columns

    def places(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rows, in their own units, where bounds are 0 and 1."""
        box = self.schema.box
        places: NDArray[np.float64] = ((values - box.lower) / box.width).clip(0, 1)
        return places

    def own_means(self, moments: Sequence[NDArray[np.float64]], sigma: float) -> list[Measured]:
        """Return noisy means in the columns' own units: as measured where bounds are 0 and 1."""
        box, names, wanted = self.schema.box, self.names, self.moments
        means, *sums, products = moments
        found = [
            Measured(
                (names[place],),
                (),
                np.array(box.lower[place] + mean * box.width[place]),
                float(sigma * box.width[place]),
            )
            for place, mean in zip(wanted.means, means, strict=True)
        ]
        for (place, other), values in zip(wanted.sums, sums, strict=True):
            width, groups = float(box.width[place]), np.arange(len(self.cells[other]))
            pair = names[place], names[other]
            found.append(Measured(pair, (groups,), values * width, sigma * width))
        for (one, other), value in zip(wanted.products, products, strict=True):
            width = float(box.width[one] * box.width[other])
            found.append(
                Measured((names[one], names[other]), (), np.array(value * width), sigma * width)
            )
        return found

    def sigma(self, tables: int, share: Fraction) -> float:
        """Return the noise of a count if ``tables`` share a round."""
        return table_scale(tables, 1, self.rows_per_person, self.budget, share)

    @property
    def fine_groups(self) -> int:
        """About the number of fine groups of a column: so that a count exceeds its noise."""
        if not self.fine:
            return _MOST
        groups = math.sqrt(self.n / self.sigma(self.most_chosen, self.fine))
        return min(max(round(groups), _FEWEST), _MOST)


def _has_mean(cells: Cells) -> bool:
    return cells.ordered and len(cells) > _MEAN_CELLS


def wanted_moments(cells: Sequence[Cells], *, more: bool) -> Moments:
    """Return the means of columns with many cells; sums by columns with few, and products."""
    means = tuple(place for place, own in enumerate(cells) if _has_mean(own))
    if not more:
        return Moments(means)
    few = [place for place, own in enumerate(cells) if _has_few(own)]
    sums = tuple((place, other) for place in means for other in few if place != other)
    return Moments(means, sums, tuple(itertools.combinations(means, 2)))


def _has_few(cells: Cells) -> bool:
    return len(cells) <= _FEW_CELLS and bool((cells.lowest == cells.highest).all())


def plan_tables(schema: Schema, n: int, budget: Budget, *, bins: Bins = "adaptive") -> TablesPlan:
    """Return the rounds for a schema; refuse one that is too large."""
    columns = len(schema.columns)
    if columns > _MOST_COLUMNS:
        raise ParameterError(
            f"method='tables' takes at most {_MOST_COLUMNS} columns; there are {columns}. Every "
            "pair of them takes noise: release fewer."
        )
    cells = schema_cells(schema)
    pairs, person = columns * (columns - 1) // 2, min(schema.rows_per_person, n)
    looks = bins == "adaptive" and are_seen(len(with_bins(cells)), n, person, budget)
    looked = LOOKS * LOOK if looks else Fraction(0)
    few = pairs <= _FEW_PAIRS
    coarse = Fraction(0) if few else _COARSE
    share = 1 - _ONE_WAY - _MEANS - looked if few else coarse
    seen = pairs > 0 and n >= _SEEN * table_scale(pairs, 1, person, budget, share)
    wanted = wanted_moments(cells, more=True)
    noise = moment_scale(wanted, person, budget, _MORE_MEANS) / n if len(wanted) else math.inf
    more = seen and few and noise <= _AFFORDED and len(wanted) > len(wanted.means)
    if not wanted.means:
        means = Fraction(0)
    elif pairs and not seen:
        means = _MEANS_ALONE
    else:
        means = _MORE_MEANS if more else _MEANS
    rest = 1 - looked - means
    shares = (_ONE_WAY, coarse, rest - _ONE_WAY - coarse)
    shares = shares if seen else (rest, Fraction(0), Fraction(0))
    return TablesPlan(schema, cells, n, budget, more, looked, means, *shares)


def suits_tables(bounds: Bounds, x: object) -> bool:
    """Whether public descriptions call for tables: categories, atoms or many columns."""
    schema = schema_of(bounds, read_data(x, "x"))
    return schema is not None and _suited(schema)


def _suited(schema: Schema) -> bool:
    columns = schema.columns.values()
    return len(columns) > _PLANE or any(getattr(c, "atoms", c) for c in columns)


def tables_of(
    x: object, bounds: Bounds, n_points: int | None, budget: Budget, bins: Bins = "adaptive"
) -> tuple[Sample, TablesPlan, int]:
    """Return the private rows, the rounds, and how many rows to release."""
    sample = encode_sample(x, bounds, units="own")
    if sample.schema is None:
        raise ParameterError("bounds must be given for method='tables': bins are public.")
    n = len(sample)
    if n < 1:
        raise DataError("x must have at least one row.")
    rows = min(n, _MOST_ROWS) if n_points is None else integer_at_least("n_points", n_points, 1)
    if rows > _MOST_RELEASED:
        reject("n_points", f"at most {_MOST_RELEASED:,}", rows)
    return sample, plan_tables(sample.schema, n, budget, bins=bins), rows


def foretell(
    schema: Schema, rows: int, budget: Budget, method: str, given: Mapping[str, Any] | None = None
) -> list[Round]:
    """Return the rounds of a release, before anything is spent; none if it is not by tables.

    Parameters
    ----------
    schema, rows, budget
        What is public.
    method : str
        As in :func:`privatest.synthetic.release`.
    given : mapping, optional
        The options that are given.
    """
    given = given or {}
    other = {"kernel", "bandwidth", "public_points"} & {*given}
    if method == "auto" and (other or not _suited(schema)):
        return []
    bins: Any = given.get("bins", "adaptive")
    one_of("bins", bins, get_args(Bins))
    return plan_tables(schema, rows, budget, bins=bins).rounds


def count_steps(schema: Schema, rows: int) -> int:
    """Return about how many numbers a release looks at: for all tables, rows and groups."""
    cells, columns = schema_cells(schema), len(schema.columns)
    groups = sum(min(len(own), 2 * _MOST) for own in cells)
    tables = columns * (columns + 1) // 2
    return _WORK * groups**2 + tables * min(rows, _MOST_ROWS)
