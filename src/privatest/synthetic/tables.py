"""What a release by tables measures: noisy counts, means and products, in rounds.

A plan follows from public sizes alone. Each round takes a share of the budget; later ones may be
chosen by the noisy numbers of earlier ones. Proof: docs/proofs/tables.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, Sensitivity
from privatest.core.results import read_only
from privatest.core.validation import integer_at_least, one_of, reject
from privatest.data.encoding import Sample, beside, encode_sample
from privatest.data.reading import read_data, schema_of
from privatest.data.schema import Bounds, CategoricalColumn, Column, NumericColumn, Schema
from privatest.data.sources import Joined, source_of
from privatest.data.summaries import summarise
from privatest.mechanisms.additive import gaussian_part, gaussian_part_scale
from privatest.synthetic.answers import Floats
from privatest.synthetic.embedding import to_simplex

Codes = NDArray[np.intp]
Groups = tuple[Codes, ...]
Integers = list[NDArray[np.int64]]
Bins = Literal["adaptive", "even"]

# cells
MOST_CELLS = 20_000  # of a column: each takes noise, and one row says nothing about so many
_FEW_VALUES = 1024  # integers that are counted one by one
_BINS = 128  # of other numbers
_LARGEST_INTEGER, _LARGEST_NUMBER = 1 << 53, 1e150  # floats hold no larger ones exactly
# counts and means
_DECIMALS = 3  # of noisy counts: finer digits hold noise only
_BITS = 20
_UNITS = 1 << _BITS  # places between the bounds are rounded to so many, so that sums are exact
ATOM_SHARE = Fraction(1, 10)  # of the budget; the noise of what else is measured grows by 5%
# looks at bins
LOOKS, LOOK = 3, Fraction(1, 30)  # the most of them, and the share of the budget that each takes
_PARTS = 16  # of a heavy cell, for the next look, or after the last
_HEAVY = 8  # a cell is heavy if it holds an eighth of the rows, and
_HEAVY_NOISE = 4.0  # so many standard deviations; cells are merged up to half of both
_MERGED, _MERGED_NOISE = 64, 2.0  # parts are merged to a 64th of the rows, and two deviations
_LOOKS_PAY = 16  # looks are bought if n is so many times the noise of their counts
_PUBLIC = -1  # the parent of a cell that follows from the schema
# shares of the budget; what they leave is for fine tables of pairs, or of one column
_ONE_WAY, _MEANS, _COARSE = Fraction(3, 10), Fraction(1, 20), Fraction(1, 5)
_MORE_MEANS = Fraction(1, 10)  # where sums by cells and products are measured as well
_MEANS_ALONE = Fraction(1, 5)  # where pairs would be hidden by noise
# the plan
_FEW_PAIRS = 6  # all of them are measured in fine groups at once
_FEW_CELLS = 16  # of a column that others are added up by
_AFFORDED = 0.02  # noise of sums and products, in parts of the bounds; with more they say little
_PAIRS_PAY = 8  # pairs are measured if n is so many times the noise of a count
_MEAN_CELLS = 8  # with more of them a mean is known better by itself than from counts
_COARSE_GROUPS = 8  # a group of a coarse table holds about an eighth of the rows, or more
_FEWEST, _MOST = 8, 64  # fine groups
_GROUP_NOISE = 3.0  # a fine group holds so many standard deviations of its own count's noise
_USEFUL = 2.0  # a dependence counts if it is so many times the error that measuring it makes
_PAIRS_PER_COLUMN = 3
_MOST_COLUMNS = 100
_PLANE = 2  # more columns than these are too many for points in space
_MOST_ROWS, _MOST_RELEASED = 50_000, 1_000_000
_WORK = 300_000  # steps of a fit times its components


# --- cells ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCells:
    """How one column is counted. Everything here follows from the schema.

    Attributes
    ----------
    lowest, highest : ndarray
        The ends of each cell, in the column's own units (categories are 0, 1, ...). They are
        equal for a single value: a category, an integer, an atom. Between real numbers the
        highest belongs to the next cell, but for the last.
    ordered : bool
        Whether neighbours are alike: numbers are, categories are not.
    whole : bool
        Whether values between the ends are integers.
    """

    lowest: Floats
    highest: Floats
    ordered: bool = True
    whole: bool = True

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.lowest)

    @property
    def wide(self) -> NDArray[np.bool_]:
        """Which cells hold several values."""
        return self.highest > self.lowest

    @property
    def largest(self) -> Floats:
        """The largest value of each cell."""
        if self.whole:
            return self.highest
        shared = self.wide & (np.arange(len(self)) < len(self) - 1)
        return np.where(shared, np.nextafter(self.highest, -np.inf), self.highest)

    @property
    def places(self) -> Floats:
        """The middles of the cells, where the lowest value is 0 and the highest 1."""
        middles = (self.lowest + self.highest) / 2
        places: Floats = (middles - self.lowest[0]) / (self.highest[-1] - self.lowest[0])
        return places

    def codes(self, values: Floats) -> Codes:
        """Return the cell of each value; values lie within the column's bounds."""
        codes = np.searchsorted(self.lowest, values, side="right") - 1
        return codes.clip(0, len(self) - 1).astype(np.intp)

    def parts(self, cell: int, count: int) -> Floats:
        """Return where ``count`` parts of equal length of a cell begin; fewer if it has no more."""
        low, high = float(self.lowest[cell]), float(self.highest[cell])
        if self.whole:
            even = np.floor(low + (high + 1 - low) * (np.arange(count) / count))
            return np.unique(np.minimum(even, high))
        edges = low + (high - low) * (np.arange(count) / count)
        return np.unique(edges[(edges < high) | (edges == low)])


def schema_cells(
    schema: Schema, starts: Mapping[str, Sequence[float]] | None = None
) -> tuple[ColumnCells, ...]:
    """Return the cells of all columns; refuse a column that has too many.

    ``starts`` say where those of some columns begin, if that was bought (:func:`refine_cells`).
    """
    cells = []
    for name, column in schema.columns.items():
        if isinstance(column, CategoricalColumn):
            if len(column.categories) > MOST_CELLS:
                raise ParameterError(
                    f"column {name!r} must have at most {MOST_CELLS:,} categories for "
                    f"method='tables'; it has {len(column.categories):,}. Merge categories, or "
                    "leave the column out."
                )
        else:
            largest = max(abs(column.lower), abs(column.upper))
            if largest > (_LARGEST_INTEGER if column.integer else _LARGEST_NUMBER):
                raise ParameterError(
                    f"bounds of column {name!r} are too large for method='tables': at most "
                    f"{_LARGEST_INTEGER:,} for integers and {_LARGEST_NUMBER:g} for others."
                )
            if starts and name in starts:
                cells.append(cells_from(column, np.array(starts[name])))
                continue
        cells.append(column_cells(column))
    return tuple(cells)


def column_cells(column: Column) -> ColumnCells:
    """Return the cells of one column: public, from its description alone."""
    if isinstance(column, CategoricalColumn):
        codes = read_only(np.arange(len(column.categories), dtype=np.float64))
        return ColumnCells(codes, codes, ordered=False)
    lower, upper, atoms = column.lower, column.upper, np.array(column.atoms)
    if column.integer and upper - lower < _FEW_VALUES:
        values = read_only(np.arange(lower, upper + 1))
        return ColumnCells(values, values)
    edges = lower + (upper - lower) * (np.arange(_BINS) / _BINS)
    edges = np.ceil(edges) if column.integer else edges
    after = atoms + 1 if column.integer else np.nextafter(atoms, np.inf)
    starts = np.unique(np.concatenate([edges, atoms, after]))
    return cells_from(column, starts[starts <= upper])


def cells_from(column: NumericColumn, starts: Floats) -> ColumnCells:
    """Return the cells of numbers that begin at ``starts``, which rise from the lower bound.

    Every atom begins a cell, and so does the number after it.
    """
    lowest = read_only(np.asarray(starts, dtype=np.float64))
    rising = lowest[0] == column.lower and (np.diff(lowest) > 0).all()
    if not rising or lowest[-1] > column.upper or not np.isin(column.atoms, lowest).all():
        raise ValueError("starts must rise from the lower bound, and have all atoms.")
    if column.integer:
        return ColumnCells(lowest, read_only(np.append(lowest[1:] - 1, column.upper)))
    highest = np.append(lowest[1:], column.upper)
    single = np.isin(lowest, column.atoms)
    highest[single] = lowest[single]
    return ColumnCells(lowest, read_only(highest), whole=False)


def decode_column(column: Column, values: Floats) -> NDArray[Any]:
    """Return values of a column in its own units, with categories in place of their codes."""
    if isinstance(column, CategoricalColumn):
        kinds = {type(category) for category in column.categories}
        dtype = None if len(kinds) == 1 and str not in kinds else object
        return np.array(column.categories, dtype=dtype)[values.astype(np.intp)]
    return values.astype(np.int64) if column.integer else values


# --- exact sums, and noise -----------------------------------------------------------------------


def _derived(sample: Sample, make: Callable[[Floats], Floats], width: int) -> Sample:
    """Return public functions of single rows: held if the rows are, else computed as they pass."""
    joined = Joined((sample.held,), make, width)
    return Sample(joined if source_of(sample.held) else joined.load(), None)


def cell_codes(sample: Sample, cells: Sequence[ColumnCells | None]) -> Sample:
    """Return the cell of each row in each column, of rows in their own units; 0 without cells."""
    return _derived(sample, partial(_codes, tuple(cells)), len(cells))


def _codes(cells: tuple[ColumnCells | None, ...], rows: Floats) -> Floats:
    codes = np.zeros((len(rows), len(cells)))
    for place, own in enumerate(cells):
        if own is not None:
            codes[:, place] = own.codes(rows[:, place])
    return codes


class _IntegerSums:
    """Integers of single rows, added up: exact in any order."""

    __slots__ = ("integers", "sums")

    def __init__(self, integers: Callable[[Floats], Integers]) -> None:
        self.integers = integers
        self.sums: Integers = []

    def update(self, rows: Floats, start: int) -> None:
        del start
        self._add(self.integers(rows))

    def merge(self, other: _IntegerSums) -> None:
        if other.sums:
            self._add(other.sums)

    def _add(self, more: Integers) -> None:
        pairs = zip(self.sums, more, strict=True)
        self.sums = [own + new for own, new in pairs] if self.sums else more


def _noisy_sums(
    sample: Sample, integers: Callable[[Floats], Integers], sensitivity: Sensitivity, **spend: Any
) -> tuple[list[Floats], float]:
    """Add up integers of single rows in one pass, and add noise of equal size to all sums.

    ``spend`` are the budget, the share of it, and the noise. Returns the noise's standard
    deviation too.
    """
    (added,) = summarise((sample, partial(_IntegerSums, integers)))
    exact = added.sums or integers(np.empty((0, sample.width)))
    together = np.concatenate([sums.ravel() for sums in exact]).astype(np.float64)
    noisy = gaussian_part(together, sensitivity=sensitivity, **spend)
    sigma = gaussian_part_scale(together.size, sensitivity, spend["budget"], spend["share"])
    return np.split(noisy, np.cumsum([sums.size for sums in exact])[:-1]), sigma


# --- tables of counts ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TableRequest:
    """A table to be counted: its columns by position, and for each the group of each cell."""

    columns: tuple[int, ...]
    groups: Groups

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each column."""
        return tuple(int(group.max()) + 1 for group in self.groups)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A noisy table, or a noisy mean, as it was released.

    Attributes
    ----------
    columns : tuple of str
        One or two columns.
    groups : tuple of ndarray
        For each column the group (0, 1, ...) of each of its public cells
        (:func:`schema_cells`): a count is of a group of cells. None for a mean, and for the mean
        of a product of two columns; of a column and another that it is added up by, that of the
        other.
    counts : ndarray
        Noisy numbers of private rows, one axis for each column; they may be negative. For a
        mean one number, in the column's own units; it may lie outside the bounds. A product is
        of both columns less the middles of their bounds. Where a column is added up by another,
        one number for each group: the mean over all rows of the column less the middle of its
        bounds, counted as 0 outside of the group.
    sigma : float
        Standard deviation of the Gaussian noise of each count, which are independent, or of
        the mean.
    """

    columns: tuple[str, ...]
    groups: Groups
    counts: Floats
    sigma: float

    def __post_init__(self) -> None:
        """Refuse parts that do not fit, and freeze them."""
        groups = tuple(read_only(np.asarray(group, dtype=np.intp)) for group in self.groups)
        counts = read_only(np.asarray(self.counts, dtype=np.float64))
        shape = tuple(int(group.max(initial=-1)) + 1 for group in groups)
        more = len(self.columns) - len(groups)
        if counts.shape != shape or (more not in (0, 1) and (len(self.columns), more) != (2, 2)):
            raise ValueError("counts and groups must fit the columns.")
        if any(len(np.unique(group)) < size for group, size in zip(groups, shape, strict=True)):
            raise ValueError("every group must have a cell.")
        if not (math.isfinite(self.sigma) and self.sigma > 0 and np.isfinite(counts).all()):
            raise ValueError("counts and sigma must be finite.")
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "counts", counts)

    @property
    def is_table(self) -> bool:
        """Whether these are counts."""
        return len(self.groups) == len(self.columns)

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of a column."""
        return len(self.columns) == 1 and not self.groups

    @property
    def is_sums(self) -> bool:
        """Whether a column was added up by the groups of another."""
        return len(self.columns) == 2 and len(self.groups) == 1

    @property
    def is_product(self) -> bool:
        """Whether it is the mean of a product."""
        return len(self.columns) == 2 and not self.groups

    def groups_of(self, column: str) -> Codes:
        """Return the group of each cell of a column."""
        return self.groups[self.columns.index(column)]

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON has."""
        return {
            "columns": list(self.columns),
            "groups": [group.tolist() for group in self.groups],
            "counts": self.counts.tolist(),
            "sigma": self.sigma,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Measurement:
        """Read what :meth:`to_dict` wrote."""
        groups = tuple(np.array(group, dtype=np.intp) for group in values["groups"])
        counts = np.array(values["counts"], dtype=np.float64)
        return cls(tuple(map(str, values["columns"])), groups, counts, float(values["sigma"]))


def count_table(codes: Codes, request: TableRequest) -> NDArray[np.int64]:
    """Count the rows in each group of cells, exactly, from the cell of each row in each column."""
    place = np.zeros(len(codes), dtype=np.intp)
    for column, group, size in zip(request.columns, request.groups, request.shape, strict=True):
        place = place * size + group[codes[:, column]]
    return np.bincount(place, minlength=math.prod(request.shape)).reshape(request.shape)


def count_tables(requests: tuple[TableRequest, ...], codes: Floats) -> Integers:
    """Count some tables."""
    whole = codes.astype(np.intp)
    return [count_table(whole, table) for table in requests]


def table_sensitivity(tables: int, rows_per_person: int = 1) -> Sensitivity:
    """Return how far the counts of some tables move together between neighbours, in l2.

    Notes
    -----
    **Sensitivity** A replaced row leaves one cell of each table and enters another: two counts
    move by 1. For t tables sqrt(2 t), times the rows per person; rounded up.
    """
    return Sensitivity(math.sqrt(2 * tables) * rows_per_person * (1 + 1e-15), "l2")


def table_scale(tables: int, rows_per_person: int, budget: Budget, share: Fraction) -> float:
    """Return the standard deviation of the noise of each count; public."""
    return gaussian_part_scale(1, table_sensitivity(tables, rows_per_person), budget, share)


def measure(
    codes: Sample,
    requests: Sequence[TableRequest],
    names: Sequence[str],
    *,
    rows_per_person: int,
    budget: Budget,
    share: Fraction,
    noise: NoiseSource,
) -> list[Measurement]:
    """Count some tables in one pass, with equal noise, for a share of the budget.

    ``codes`` are the cell of each row in each column.

    Notes
    -----
    **Sensitivity** :func:`table_sensitivity`. Counts are integers: nothing is rounded.

    **Privacy** Gaussian noise. Rounds whose shares add up to 1 are together
    (epsilon, delta)-private, even if each is chosen after the noisy counts of those before.
    """
    sensitivity = table_sensitivity(len(requests), rows_per_person)
    count = partial(count_tables, tuple(requests))
    parts, sigma = _noisy_sums(codes, count, sensitivity, budget=budget, share=share, noise=noise)
    return [
        Measurement(
            tuple(names[column] for column in table.columns),
            table.groups,
            np.round(part, _DECIMALS).reshape(table.shape),
            sigma,
        )
        for table, part in zip(requests, parts, strict=True)
    ]


# --- means, sums by the cells of another column, and products ------------------------------------


@dataclass(frozen=True, slots=True)
class MomentRequest:
    """Which means are measured together; columns are given by position.

    Attributes
    ----------
    means : tuple of int
        Columns whose places between the bounds are averaged.
    sums : tuple of (int, int)
        A column, and another in each of whose cells its centred places are added up.
    products : tuple of (int, int)
        Two columns whose centred places are multiplied.
    """

    means: tuple[int, ...] = ()
    sums: tuple[tuple[int, int], ...] = ()
    products: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        """Return how many kinds of means there are."""
        return len(self.means) + len(self.sums) + len(self.products)

    def sensitivity(self, rows_per_person: int = 1) -> Sensitivity:
        """Return how far all sums move together between neighbours, in l2 and in units.

        Notes
        -----
        **Sensitivity** A place moves by at most 1. Centred places in the cells of another column
        move by 1 in one cell, or by 1/2 in each of two: at most 1. A product of centred places
        is within 1/4 of 0, and moves by at most 1/2. Times the rows per person; rounded up.
        """
        squares = len(self.means) + len(self.sums) + len(self.products) / 4
        return Sensitivity(_UNITS * math.sqrt(squares) * rows_per_person * (1 + 1e-15), "l2")

    def scale(self, rows_per_person: int, budget: Budget, share: Fraction) -> float:
        """Return the noise of each sum over all rows, where bounds are 0 and 1; public."""
        sensitivity = self.sensitivity(rows_per_person)
        return gaussian_part_scale(len(self), sensitivity, budget, share) / _UNITS


def exact_sums(
    places: Floats, codes: Codes, sizes: Sequence[int], wanted: MomentRequest
) -> Integers:
    """Return sums over all rows in units of 2^-20, as integers: no rounding but of each row.

    Parameters
    ----------
    places : ndarray
        Rows where bounds are 0 and 1.
    codes : ndarray
        The cell of each row in each column.
    sizes : sequence of int
        The number of cells of each column.
    wanted : MomentRequest
        What to add up.

    Returns
    -------
    list of ndarray
        The sums of all columns; for each of ``sums`` one number a cell; all products.
    """
    whole = np.rint(places.clip(0, 1) * _UNITS).astype(np.int64)
    centred = whole - _UNITS // 2
    result = [whole[:, list(wanted.means)].sum(axis=0)]
    for column, other in wanted.sums:
        sums = np.zeros(sizes[other], dtype=np.int64)
        np.add.at(sums, codes[:, other], centred[:, column])
        result.append(sums)
    half = 1 << (_BITS - 1)  # rounds to the nearest: floor((a + 1/2)/1)
    each = [(centred[:, a] * centred[:, b] + half) >> _BITS for a, b in wanted.products]
    return [*result, np.array([product.sum() for product in each], dtype=np.int64)]


def _exact_sums(sizes: tuple[int, ...], wanted: MomentRequest, rows: Floats) -> Integers:
    places, codes = np.split(rows, 2, axis=1)
    return exact_sums(places, codes.astype(np.intp), sizes, wanted)


def measure_moments(
    places: Sample,
    codes: Sample,
    sizes: Sequence[int],
    wanted: MomentRequest,
    *,
    rows_per_person: int,
    budget: Budget,
    share: Fraction,
    noise: NoiseSource,
) -> tuple[list[Floats], float]:
    """Return noisy means over all rows, as :func:`exact_sums` has them, and their noise.

    Notes
    -----
    **Sensitivity** :meth:`MomentRequest.sensitivity`. Every row adds integers that depend on it
    alone: sums have no rounding errors.

    **Privacy** As :func:`measure`; the number of rows is public.
    """
    sums, sigma = _noisy_sums(
        beside(places, codes),
        partial(_exact_sums, tuple(sizes), wanted),
        wanted.sensitivity(rows_per_person),
        budget=budget,
        share=share,
        noise=noise,
    )
    rows = float(_UNITS) * len(places)
    return [part / rows for part in sums], sigma / rows


# --- atoms of a release by a kernel --------------------------------------------------------------


def has_atoms(schema: Schema | None) -> bool:
    """Whether a column has values that are to be counted on their own."""
    columns = () if schema is None else schema.columns.values()
    return any(isinstance(column, NumericColumn) and column.atoms for column in columns)


def measure_atoms(
    sample: Sample, schema: Schema, budget: Budget, noise: NoiseSource
) -> tuple[Measurement, ...]:
    """Count the rows at atoms and between them, for :data:`ATOM_SHARE` of the budget.

    Atoms have mass, which no smooth kernel tells from that of numbers near them.

    Parameters
    ----------
    sample : Sample
        Private rows in the columns' own units.
    schema : Schema
        Their public description.
    budget : Budget
        That of the whole release.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** One table for each column with atoms: a row is in one group of each
    (:func:`table_sensitivity`).

    **Privacy** Gaussian noise for a share of the budget; the coefficients take the rest
    (docs/proofs/synthetic.md).
    """
    cells = schema_cells(schema)
    requests = [
        TableRequest((place,), (atom_groups(own, column.atoms),))
        for place, (own, column) in enumerate(zip(cells, schema.columns.values(), strict=True))
        if isinstance(column, NumericColumn) and column.atoms
    ]
    counted = measure(
        cell_codes(sample, cells),
        requests,
        [*schema.columns],
        rows_per_person=min(schema.rows_per_person, len(sample)),
        budget=budget,
        share=ATOM_SHARE,
        noise=noise,
    )
    return tuple(counted)


def atom_groups(cells: ColumnCells, atoms: Sequence[float]) -> Codes:
    """Return a group for each cell: atoms stand alone, all cells between two of them together."""
    alone = np.isin(cells.lowest, atoms) & (cells.lowest == cells.highest)
    after = np.concatenate([[False], alone[:-1]])
    return (np.cumsum(alone | after) - int(alone[0])).astype(np.intp)


# --- bins where the rows are ---------------------------------------------------------------------


def binned_columns(cells: Sequence[ColumnCells]) -> tuple[int, ...]:
    """Return the columns that have cells with many values."""
    return tuple(place for place, own in enumerate(cells) if own.wide.any())


def _looks_pay(columns: int, n: int, rows_per_person: int, budget: Budget) -> bool:
    """Whether heavy cells of so many columns would stand out from the noise; public."""
    return columns > 0 and n >= _LOOKS_PAY * table_scale(columns, rows_per_person, budget, LOOK)


def refine_cells(
    sample: Sample,
    schema: Schema,
    cells: Sequence[ColumnCells],
    *,
    budget: Budget,
    noise: NoiseSource,
) -> tuple[tuple[ColumnCells, ...], Fraction]:
    """Split cells that hold many rows; return all cells, and the share of the budget it took.

    Each look counts the rows in all cells of some columns; cells that hold many are split for the
    next. The cut points that result are released.

    Parameters
    ----------
    sample : Sample
        Private rows in the columns' own units; each look goes through them once.
    schema : Schema
        Their public description.
    cells : sequence of ColumnCells
        The public cells of each column.
    budget : Budget
        That of the whole release.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** A look at t columns is t tables (:func:`table_sensitivity`).

    **Privacy** Every look takes :data:`LOOK` of the budget. Which cells are split, which columns
    are looked at again and whether there is another look follow from noisy counts of looks
    before; so does what is left for later rounds: docs/proofs/tables.md.
    """
    refined, names, n = [*cells], [*schema.columns], len(sample)
    # of parts of a cell but the first, the cell that they are parts of
    parents = {place: np.full(len(cells[place]), _PUBLIC) for place in binned_columns(cells)}
    columns, looks = [*parents], 0
    while columns and looks < LOOKS:
        looks += 1
        tables = measure(
            cell_codes(sample, [own if i in columns else None for i, own in enumerate(refined)]),
            [TableRequest((place,), (np.arange(len(refined[place])),)) for place in columns],
            names,
            rows_per_person=min(schema.rows_per_person, n),
            budget=budget,
            share=LOOK,
            noise=noise,
        )
        heavy = []
        for place, table in zip(columns, tables, strict=True):
            column, own = schema.columns[names[place]], refined[place]
            assert isinstance(column, NumericColumn)
            most = max(n / _HEAVY, _HEAVY_NOISE * table.sigma)
            split = (table.counts >= most) & own.wide
            starts, parents[place] = _split(own, parents[place], table, split, n)
            refined[place] = cells_from(column, starts)
            if split.any():
                heavy.append(place)
        columns = heavy
    return tuple(refined), looks * LOOK


def _split(
    cells: ColumnCells, parents: Codes, table: Measurement, split: NDArray[np.bool_], n: int
) -> tuple[Floats, Codes]:
    """Split some cells, and merge parts of those split before that turned out to hold few."""
    first = _first_parts(parents, table.counts, split, n / _MERGED, _MERGED_NOISE * table.sigma)
    starts, owners = [cells.lowest[first]], [np.full(np.count_nonzero(first), _PUBLIC)]
    for cell in np.flatnonzero(split):
        edges = cells.parts(int(cell), _PARTS)[1:]  # it begins where the cell does
        starts.append(edges)
        owners.append(np.full(len(edges), cell))
    lowest = np.concatenate(starts)
    order = np.argsort(lowest)
    return lowest[order], np.concatenate(owners)[order]


def _first_parts(
    parents: Codes, counts: Floats, heavy: NDArray[np.bool_], least: float, noise: float
) -> NDArray[np.bool_]:
    """Return which cells remain, as the first of those that are merged.

    Parts of one cell are put together up to ``least`` rows that stand out from the noise, and to
    as many parts as lie between them and a heavy one: so tails keep their shape. The first part
    of a cell, and cells that were not split, stay.
    """
    distance = _distances(heavy).tolist()
    first: NDArray[np.bool_] = (parents == _PUBLIC) | (counts >= max(least, noise))
    total, length, start = 0.0, 0, 0
    for cell in np.flatnonzero(parents != _PUBLIC).tolist():
        if first[cell - 1]:
            total, length, start = float(counts[cell - 1]), 1, cell - 1
        full = total >= max(least, noise * math.sqrt(length))
        first[cell] |= full or length + 1 > min(distance[cell], distance[start])
        total, length = total + float(counts[cell]), length + 1
    return first


def _distances(heavy: NDArray[np.bool_]) -> Codes:
    """Return how many cells away the nearest heavy one is."""
    places, at = np.arange(len(heavy)), np.flatnonzero(heavy)
    if not len(at):
        return np.full(len(heavy), len(heavy), dtype=np.intp)
    after = np.searchsorted(at, places)
    left, right = at[(after - 1).clip(0)], at[after.clip(0, len(at) - 1)]
    distances: Codes = np.minimum(np.abs(places - left), np.abs(places - right)).astype(np.intp)
    return distances


# --- groups of cells and useful pairs, from noisy tables: post-processing ------------------------


def grouped(values: Floats, groups: Codes) -> Floats:
    """Return the sums over groups of cells."""
    return np.bincount(groups, weights=values).astype(np.float64)


def merged(counts: Floats, least: float, *, ordered: bool) -> Codes:
    """Return a group for each cell, such that groups hold at least about ``least`` rows.

    Cells that hold as many stand alone. Numbers are merged with their neighbours; categories
    are merged in the order of their counts.
    """
    if ordered:
        return _merged_neighbours(counts, least)
    order = np.argsort(-counts, kind="stable")
    groups = np.empty(len(counts), dtype=np.intp)
    groups[order] = _merged_neighbours(counts[order], least)
    return groups


def _merged_neighbours(counts: Floats, least: float) -> Codes:
    groups = np.empty(len(counts), dtype=np.intp)
    group, total = -1, math.inf
    for cell, count in enumerate(counts):
        if count >= least or total >= least:
            group, total = group + 1, 0.0
        groups[cell] = group
        total = math.inf if count >= least else total + count
    while True:
        sizes = grouped(counts, groups)
        smallest = int(np.argmin(sizes))
        if len(sizes) < 3 or sizes[smallest] >= least / 2:
            return groups
        around = [other for other in (smallest - 1, smallest + 1) if 0 <= other < len(sizes)]
        into = min(around, key=lambda other: sizes[other])
        groups = np.where(groups > min(smallest, into), groups - 1, groups)


def useful_pairs(
    coarse: Sequence[Measurement],
    shares: Sequence[Floats],
    places: Sequence[tuple[int, int]],
    sizes: Sequence[int],
    sigma_alone: float,
    n: int,
) -> list[int]:
    """Return which pairs to measure again, most useful first.

    Parameters
    ----------
    coarse : sequence of Measurement
        Noisy coarse tables of all pairs.
    shares : sequence of ndarray
        Shares of each column's coarse groups.
    places : sequence of pairs of int
        The two columns of each table, by position.
    sizes : sequence of int
        Fine groups of each column.
    sigma_alone : float
        Noise of a fine table if it were the only one; with k of them it is sqrt(k) as much.
    n : int
        The number of rows.
    """
    dependence = []
    for table, (first, second) in zip(coarse, places, strict=True):
        independent = np.outer(shares[first], shares[second])
        distance = float(np.abs(table.counts / n - independent).sum())
        dependence.append(distance - math.sqrt(2 / math.pi) * table.sigma / n * independent.size)
    order = sorted(range(len(dependence)), key=lambda pair: -dependence[pair])
    chosen = 1
    for count, pair in enumerate(order[: _PAIRS_PER_COLUMN * len(sizes)], start=1):
        first, second = places[pair]
        noise = math.sqrt(2 / math.pi * count) * sigma_alone / n
        if dependence[pair] > _USEFUL * noise * min(sizes[first] * sizes[second], 200):
            chosen = count
    return order[:chosen]


# --- the plan: what is measured, and with how much noise -----------------------------------------


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
    cells : tuple of ColumnCells
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
    cells: tuple[ColumnCells, ...]
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
        names = ("bins", "means", "one_way", "coarse", "fine")
        return {name: float(getattr(self, name)) for name in names if getattr(self, name)}

    def after_looks(self, cells: tuple[ColumnCells, ...], spent: Fraction) -> TablesPlan:
        """Return the plan with cells that were bought; what is left goes to the last round."""
        left = self.bins - spent
        one_way, fine = (self.one_way, self.fine + left) if self.fine else (self.one_way + left, 0)
        return replace(self, cells=cells, bins=spent, one_way=one_way, fine=Fraction(fine))

    @property
    def starts(self) -> dict[str, tuple[float, ...]]:
        """Where cells begin, of columns whose bins were split."""
        return {
            name: tuple(own.lowest.tolist())
            for (name, column), own in zip(self.schema.columns.items(), self.cells, strict=True)
            if not np.array_equal(own.lowest, column_cells(column).lowest)
        }

    @property
    def moments(self) -> MomentRequest:
        """The means that are measured."""
        return wanted_moments(self.cells, more=self.more)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of columns."""
        return list(itertools.combinations(range(len(self.names)), 2))

    @property
    def most_chosen(self) -> int:
        """The most pairs that the last round measures."""
        pairs = len(self.pairs)
        return min(pairs, _PAIRS_PER_COLUMN * len(self.names)) if self.coarse else pairs

    @property
    def fine_groups(self) -> int:
        """About the number of fine groups of a column: so that a count exceeds its noise."""
        if not self.fine:
            return _MOST
        groups = math.sqrt(self.n / self.sigma(self.most_chosen, self.fine))
        return min(max(round(groups), _FEWEST), _MOST)

    def sigma(self, tables: int, share: Fraction) -> float:
        """Return the noise of a count if ``tables`` share a round."""
        return table_scale(tables, self.rows_per_person, self.budget, share)

    @property
    def rounds(self) -> list[Round]:
        """What would be measured, and with how much noise."""
        rounds, most = [], max(map(len, self.cells))
        if self.bins:
            wide = binned_columns(self.cells)
            cells = max(len(self.cells[place]) for place in wide)
            what = "looks at columns with bins, to split those with many rows"
            rounds.append(Round(what, LOOKS, cells, float(self.bins), self.sigma(len(wide), LOOK)))
        if self.means:
            wanted = self.moments
            noise = wanted.scale(self.rows_per_person, self.budget, self.means) / self.n
            what = "means, also of groups and products" if self.more else "means"
            rounds.append(Round(what, len(wanted), 0, float(self.means), noise))
        tables = [("tables of one column", len(self.names), most, self.one_way)]
        if self.coarse:
            what = "coarse tables of all pairs"
            tables.append((what, len(self.pairs), 2 * _COARSE_GROUPS, self.coarse))
        if self.fine:
            what = f"tables of {'useful' if self.coarse else 'all'} pairs"
            tables.append((what, self.most_chosen, 2 * self.fine_groups, self.fine))
        for what, count, groups, share in tables:
            noise = self.sigma(count, share)
            rounds.append(Round(what, count, min(groups, most), float(share), noise))
        return rounds

    def places(self, values: Floats) -> Floats:
        """Return rows, in their own units, where bounds are 0 and 1."""
        box = self.schema.box
        return ((values - box.lower) / box.width).clip(0, 1)

    def own_means(self, moments: Sequence[Floats], sigma: float) -> list[Measurement]:
        """Return noisy means in the columns' own units, from those where bounds are 0 and 1."""
        lower, width = self.schema.box.lower.tolist(), self.schema.box.width.tolist()
        names, wanted = self.names, self.moments
        means, *sums, products = moments
        result = [
            Measurement((names[i],), (), np.array(lower[i] + mean * width[i]), sigma * width[i])
            for i, mean in zip(wanted.means, means, strict=True)
        ]
        for (i, j), values in zip(wanted.sums, sums, strict=True):
            groups = (np.arange(len(self.cells[j])),)
            pair = names[i], names[j]
            result.append(Measurement(pair, groups, values * width[i], sigma * width[i]))
        for (i, j), value in zip(wanted.products, products, strict=True):
            pair, unit = (names[i], names[j]), width[i] * width[j]
            result.append(Measurement(pair, (), np.array(value * unit), sigma * unit))
        return result


def wanted_moments(cells: Sequence[ColumnCells], *, more: bool) -> MomentRequest:
    """Return the means of columns with many cells; sums by columns with few, and products."""
    means = tuple(i for i, own in enumerate(cells) if own.ordered and len(own) > _MEAN_CELLS)
    if not more:
        return MomentRequest(means)
    few = [i for i, own in enumerate(cells) if len(own) <= _FEW_CELLS and not own.wide.any()]
    sums = tuple((place, other) for place in means for other in few if place != other)
    return MomentRequest(means, sums, tuple(itertools.combinations(means, 2)))


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
    looks = bins == "adaptive" and _looks_pay(len(binned_columns(cells)), n, person, budget)
    looked = LOOKS * LOOK if looks else Fraction(0)
    few = pairs <= _FEW_PAIRS
    coarse = Fraction(0) if few else _COARSE
    share = 1 - _ONE_WAY - _MEANS - looked if few else coarse
    seen = pairs > 0 and n >= _PAIRS_PAY * table_scale(pairs, person, budget, share)
    wanted = wanted_moments(cells, more=True)
    noise = wanted.scale(person, budget, _MORE_MEANS) / n if len(wanted) else math.inf
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
    return schema is not None and _suits(schema)


def _suits(schema: Schema) -> bool:
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


def planned_rounds(
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
    if method == "auto" and (other or not _suits(schema)):
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


# --- measuring -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTables:
    """All that was measured, and the groups it was measured in.

    Attributes
    ----------
    measured : list of Measurement
        Single columns in their order, then pairs.
    fine : tuple of ndarray
        For each column the fine group of each cell.
    coarse : tuple of ndarray or None
        For each column the coarse group of each fine group, if coarse tables were measured.
    moments : list of ndarray
        Noisy means, where bounds are 0 and 1, as :func:`measure_moments` has them.
    mean_sigma : float
        Their noise.
    """

    measured: list[Measurement]
    fine: Groups
    coarse: Groups | None
    moments: list[Floats]
    mean_sigma: float

    @property
    def single(self) -> list[Measurement]:
        """The tables of single columns, in the order of columns."""
        return self.measured[: len(self.fine)]

    @property
    def sizes(self) -> list[int]:
        """Fine groups of each column."""
        return [int(group.max()) + 1 for group in self.fine]


def measure_tables(
    sample: Sample, plan: TablesPlan, noise: NoiseSource
) -> tuple[TablesPlan, NoisyTables]:
    """Refine bins, measure means and all single columns, then pairs, for all of the budget.

    Parameters
    ----------
    sample : Sample
        Private rows in the columns' own units; each round goes through them once.
    plan : TablesPlan
        The rounds.
    noise : NoiseSource
        The secret randomness.

    Returns
    -------
    TablesPlan, NoisyTables
        The rounds with the refined bins, and what was measured.

    Notes
    -----
    **Sensitivity** Each round: :func:`table_sensitivity` and :meth:`MomentRequest.sensitivity`.

    **Privacy** Shares of the rounds add up to 1. Bins, groups of cells and the pairs of the last
    round are chosen from noisy tables of earlier rounds: post-processing, and adaptive
    composition of Gaussian mechanisms. docs/proofs/tables.md.
    """
    if plan.bins:
        refined = refine_cells(sample, plan.schema, plan.cells, budget=plan.budget, noise=noise)
        plan = plan.after_looks(*refined)
    codes = cell_codes(sample, plan.cells)
    spend: dict[str, Any] = {
        "rows_per_person": plan.rows_per_person,
        "budget": plan.budget,
        "noise": noise,
    }
    means, mean_sigma = [np.empty(0)], 0.0
    if plan.means:
        places, sizes = _derived(sample, plan.places, sample.width), [*map(len, plan.cells)]
        means, mean_sigma = measure_moments(
            places, codes, sizes, plan.moments, share=plan.means, **spend
        )
    requests = [TableRequest((i,), (np.arange(len(c)),)) for i, c in enumerate(plan.cells)]
    single = measure(codes, requests, plan.names, share=plan.one_way, **spend)
    shares = [to_simplex(table.counts, plan.n) for table in single]
    least = max(plan.n / plan.fine_groups, _GROUP_NOISE * single[0].sigma)
    fine = _merged_columns(shares, plan, least)
    if not plan.fine:
        return plan, NoisyTables(single, fine, None, means, mean_sigma)
    sums = [grouped(counts, group) for counts, group in zip(shares, fine, strict=True)]
    pairs, measured, coarse = plan.pairs, [], None
    if plan.coarse:
        coarse = _merged_columns(sums, plan, plan.n / _COARSE_GROUPS)
        whole = tuple(group[own] for group, own in zip(coarse, fine, strict=True))
        requests = [TableRequest((i, j), (whole[i], whole[j])) for i, j in pairs]
        measured = measure(codes, requests, plan.names, share=plan.coarse, **spend)
        rough = [grouped(s, group) / plan.n for s, group in zip(sums, coarse, strict=True)]
        sizes = [len(own) for own in sums]
        chosen = useful_pairs(measured, rough, pairs, sizes, plan.sigma(1, plan.fine), plan.n)
        pairs = [pairs[place] for place in chosen]
    requests = [TableRequest((i, j), (fine[i], fine[j])) for i, j in pairs]
    measured = [*measured, *measure(codes, requests, plan.names, share=plan.fine, **spend)]
    return plan, NoisyTables([*single, *measured], fine, coarse, means, mean_sigma)


def _merged_columns(counts: Sequence[Floats], plan: TablesPlan, least: float) -> Groups:
    return tuple(
        merged(own, least, ordered=cells.ordered)
        for own, cells in zip(counts, plan.cells, strict=True)
    )
