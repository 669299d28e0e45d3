"""Public cells of a column: categories, integers, bins between public bounds, and atoms."""

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
from privatest.data.bounds import Bounds, schema_of
from privatest.data.samples import Sample, beside, encode_sample
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema
from privatest.data.stream import Joined, source_of
from privatest.data.tables import read_data
from privatest.engines.summaries import summarise
from privatest.mechanisms.additive import gaussian_part, gaussian_part_scale

MOST_CELLS = 20_000  # of a column: each takes noise, and one row says nothing about so many
_FEW_VALUES = 1024  # integers that are counted one by one
_BINS = 128  # of other numbers
_LARGEST_INTEGER, _LARGEST_NUMBER = 1 << 53, 1e150  # floats hold no larger ones exactly


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
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

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    ordered: bool = True
    whole: bool = True

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.lowest)

    @property
    def places(self) -> NDArray[np.float64]:
        """The middles of the cells, where the lowest value is 0 and the highest 1."""
        middles = (self.lowest + self.highest) / 2
        span = self.highest[-1] - self.lowest[0]
        places: NDArray[np.float64] = (middles - self.lowest[0]) / span
        return places

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the cell of each value; values lie within the column's bounds."""
        found = np.searchsorted(self.lowest, values, side="right") - 1
        return found.clip(0, len(self) - 1).astype(np.intp)

    def parts(self, cell: int, count: int) -> NDArray[np.float64]:
        """Return where ``count`` parts of equal length of a cell begin; fewer if it has no more."""
        low, high = float(self.lowest[cell]), float(self.highest[cell])
        if self.whole:
            even = np.floor(low + (high + 1 - low) * (np.arange(count) / count))
            return np.unique(np.minimum(even, high))
        edges = low + (high - low) * (np.arange(count) / count)
        return np.unique(edges[(edges < high) | (edges == low)])

    def values(
        self, codes: NDArray[np.intp], shares: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw a value for each code: within a cell by a density that leans to its neighbours.

        ``shares`` are the cells' shares of all rows. Values of a cell are spread evenly over the
        law, so that their mean is that of the law, and handed out in random order.
        """
        values = self.lowest[codes]
        leaning = self._leanings(shares)
        for cell in np.unique(codes[self.highest[codes] > values]):
            rows = np.flatnonzero(codes == cell)
            even = (rng.permutation(len(rows)) + rng.random()) / len(rows)
            values[rows] = self._within(int(cell), _leaned(even, leaning[cell]))
        return values

    def _within(self, cell: int, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values at places from 0 to 1 of a cell."""
        low, high = float(self.lowest[cell]), float(self.highest[cell])
        found: NDArray[np.float64]
        if self.whole:
            found = np.minimum(low + np.floor(places * (high - low + 1)), high)
        else:
            last = high if cell == len(self) - 1 else np.nextafter(high, low)
            found = np.clip(low * (1 - places) + high * places, low, last)
        return found

    def _leanings(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much more likely the upper end of a cell is than its middle, in [-1, 1]."""
        widths = self.highest - self.lowest + (1.0 if self.whole else 0.0)
        wide = np.flatnonzero(self.highest > self.lowest)
        leanings = np.zeros(len(self))
        if len(wide) < 2:
            return leanings
        # in a public unit, a power of two: shares over widths of any size stay within the floats
        heights = shares[wide] / np.ldexp(widths[wide], -int(np.frexp(widths[wide].max())[1]))
        around = np.concatenate([[heights[0]], heights, [heights[-1]]])
        # from the middle of the cell below to that of the cell above; at the ends from its own
        steps = np.full(len(wide), 4.0)
        steps[[0, -1]] = 2.0
        slopes = (around[2:] - around[:-2]) / (steps * np.maximum(heights, 1e-300))
        leanings[wide] = slopes.clip(-1, 1)
        return leanings


def _leaned(even: NDArray[np.float64], leaning: float) -> NDArray[np.float64]:
    """Return quantiles of the density 1 + leaning (2x - 1) on [0, 1]."""
    if abs(leaning) < 1e-9:
        return even
    root = np.sqrt((1 - leaning) ** 2 + 4 * leaning * even)
    places: NDArray[np.float64] = ((root - (1 - leaning)) / (2 * leaning)).clip(0, 1)
    return places


def schema_cells(
    schema: Schema, starts: Mapping[str, Sequence[float]] | None = None
) -> tuple[Cells, ...]:
    """Return the cells of all columns; refuse a column that has too many.

    ``starts`` say where those of some columns begin, if that was bought (:mod:`refining`).
    """
    cells = []
    for name, column in schema.columns.items():
        if isinstance(column, NumericColumn):
            largest = max(abs(column.lower), abs(column.upper))
            if largest > (_LARGEST_INTEGER if column.integer else _LARGEST_NUMBER):
                raise ParameterError(
                    f"bounds of column {name!r} are too large for method='tables': at most "
                    f"{_LARGEST_INTEGER:,} for integers and {_LARGEST_NUMBER:g} for others."
                )
        count = len(column.categories) if isinstance(column, CategoricalColumn) else 0
        if count > MOST_CELLS:
            raise ParameterError(
                f"column {name!r} must have at most {MOST_CELLS:,} categories for "
                f"method='tables'; it has {count:,}. Merge categories, or leave the column out."
            )
        own = (starts or {}).get(name)
        if own is None or isinstance(column, CategoricalColumn):
            cells.append(column_cells(column))
        else:
            cells.append(cells_from(column, np.array(own)))
    return tuple(cells)


def column_cells(column: Column) -> Cells:
    """Return the cells of one column: public, from its description alone."""
    if isinstance(column, CategoricalColumn):
        codes = read_only(np.arange(len(column.categories), dtype=np.float64))
        return Cells(codes, codes, ordered=False)
    lower, upper, atoms = column.lower, column.upper, np.array(column.atoms)
    edges = lower + (upper - lower) * (np.arange(_BINS) / _BINS)
    if column.integer and upper - lower < _FEW_VALUES:
        values = read_only(np.arange(lower, upper + 1))
        return Cells(values, values)
    edges = np.ceil(edges) if column.integer else edges
    after = atoms + 1 if column.integer else np.nextafter(atoms, np.inf)
    starts = np.unique(np.concatenate([edges, atoms, after]))
    return cells_from(column, starts[starts <= upper])


def cells_from(column: NumericColumn, starts: NDArray[np.float64]) -> Cells:
    """Return the cells of numbers that begin at ``starts``, which rise from the lower bound.

    Every atom begins a cell, and so does the number after it.
    """
    lowest = read_only(np.asarray(starts, dtype=np.float64))
    rising = lowest[0] == column.lower and (np.diff(lowest) > 0).all()
    if not rising or lowest[-1] > column.upper or not np.isin(column.atoms, lowest).all():
        raise ValueError("starts must rise from the lower bound, and have all atoms.")
    if column.integer:
        return Cells(lowest, read_only(np.append(lowest[1:] - 1, column.upper)))
    highest = np.append(lowest[1:], column.upper)
    single = np.isin(lowest, column.atoms)
    highest[single] = lowest[single]
    return Cells(lowest, read_only(highest), whole=False)


# Cells of private rows, wherever the rows are, and integers that are added up over them.


Floats = NDArray[np.float64]
Integers = list[NDArray[np.int64]]


def derived(sample: Sample, make: Callable[[Floats], Floats], width: int) -> Sample:
    """Return public functions of single rows: held if the rows are, else found as they pass."""
    joined = Joined((sample.held,), make, width)
    return Sample(joined if source_of(sample.held) else joined.load(), None)


def coded(sample: Sample, cells: Sequence[Cells | None]) -> Sample:
    """Return the cell of each row in each column, of rows in their own units; 0 without cells."""
    return derived(sample, partial(_codes, tuple(cells)), len(cells))


def _codes(cells: tuple[Cells | None, ...], rows: Floats) -> Floats:
    codes = np.zeros((len(rows), len(cells)))
    for place, own in enumerate(cells):
        if own is not None:
            codes[:, place] = own.codes(rows[:, place])
    return codes


def added_up(sample: Sample, integers: Callable[[Floats], Integers]) -> Integers:
    """Add up integers of single rows over all: exact in any order, in one pass."""
    (found,) = summarise((sample, partial(_Added, integers)))
    return found.sums or integers(np.empty((0, sample.width)))


class _Added:
    __slots__ = ("integers", "sums")

    def __init__(self, integers: Callable[[Floats], Integers]) -> None:
        self.integers = integers
        self.sums: Integers = []

    def update(self, rows: Floats, start: int) -> None:
        del start
        self._add(self.integers(rows))

    def merge(self, other: _Added) -> None:
        if other.sums:
            self._add(other.sums)

    def _add(self, more: Integers) -> None:
        if not self.sums:
            self.sums = more
            return
        self.sums = [own + new for own, new in zip(self.sums, more, strict=True)]


# Noisy tables of counts: what a release by tables measures, and nothing else of the data.
#
# Proof: docs/proofs/tables.md.


_DECIMALS = 3  # of noisy counts: finer digits hold noise only


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """A table to be counted: its columns by position, and for each the group of each cell."""

    columns: tuple[int, ...]
    groups: tuple[NDArray[np.intp], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each column."""
        return tuple(int(group.max()) + 1 for group in self.groups)

    @property
    def size(self) -> int:
        """The number of counts."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A noisy table, or a noisy mean, as it was released.

    Attributes
    ----------
    columns : tuple of str
        One or two columns.
    groups : tuple of ndarray
        For each column the group (0, 1, ...) of each of its public cells
        (:func:`privatest.synthetic.tables.schema_cells`): a count is of a group of cells.
        None for a mean, and for the mean of a product of two columns; of a column and another that
        it is added up by, that of the other.
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
    groups: tuple[NDArray[np.intp], ...]
    counts: NDArray[np.float64]
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

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON has."""
        return {
            "columns": list(self.columns),
            "groups": [group.tolist() for group in self.groups],
            "counts": self.counts.tolist(),
            "sigma": self.sigma,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Measured:
        """Read what :meth:`to_dict` wrote."""
        groups = tuple(np.array(group, dtype=np.intp) for group in values["groups"])
        counts = np.array(values["counts"], dtype=np.float64)
        return cls(tuple(map(str, values["columns"])), groups, counts, float(values["sigma"]))


def count_table(codes: NDArray[np.intp], wanted: Wanted) -> NDArray[np.int64]:
    """Count the rows in each group of cells, exactly.

    Parameters
    ----------
    codes : ndarray
        The cell of each row in each column.
    wanted : Wanted
        The columns, and groups of their cells.
    """
    place = np.zeros(len(codes), dtype=np.intp)
    for column, group, size in zip(wanted.columns, wanted.groups, wanted.shape, strict=True):
        place = place * size + group[codes[:, column]]
    return np.bincount(place, minlength=wanted.size).reshape(wanted.shape)


def table_sensitivity(tables: int, rows_per_person: int = 1) -> Sensitivity:
    """Return how far the counts of some tables move together between neighbours, in l2.

    Notes
    -----
    **Sensitivity** A replaced row leaves one cell of each table and enters another: two counts
    move by 1. For t tables sqrt(2 t), times the rows per person; rounded up.
    """
    return Sensitivity(math.sqrt(2 * tables) * rows_per_person * (1 + 1e-15), "l2")


def table_scale(
    tables: int, cells: int, rows_per_person: int, budget: Budget, share: Fraction
) -> float:
    """Return the standard deviation of the noise of each count; public."""
    return gaussian_part_scale(cells, table_sensitivity(tables, rows_per_person), budget, share)


def count_tables(wanted: tuple[Wanted, ...], codes: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Count some tables."""
    whole = codes.astype(np.intp)
    return [count_table(whole, table) for table in wanted]


def measure(
    codes: Sample,
    wanted: Sequence[Wanted],
    names: Sequence[str],
    *,
    rows_per_person: int,
    budget: Budget,
    share: Fraction,
    noise: NoiseSource,
) -> list[Measured]:
    """Count some tables at once, with equal noise, for a share of the budget.

    ``codes`` are the cell of each row in each column; they are gone through once.

    Notes
    -----
    **Sensitivity** :func:`table_sensitivity`. Counts are integers: nothing is rounded.

    **Privacy** Gaussian noise. Rounds whose shares add up to 1 are together
    (epsilon, delta)-private, even if each is chosen after the noisy counts of those before.
    """
    exact = added_up(codes, partial(count_tables, tuple(wanted)))
    together = np.concatenate([counts.ravel() for counts in exact]).astype(np.float64)
    sensitivity = table_sensitivity(len(wanted), rows_per_person)
    noisy = gaussian_part(
        together, sensitivity=sensitivity, budget=budget, share=share, noise=noise
    )
    sigma = gaussian_part_scale(together.size, sensitivity, budget, share)
    ends = np.cumsum([counts.size for counts in exact])[:-1]
    parts = np.split(np.round(noisy, _DECIMALS), ends)
    return [
        Measured(
            tuple(names[column] for column in table.columns),
            table.groups,
            part.reshape(table.shape),
            sigma,
        )
        for table, part in zip(wanted, parts, strict=True)
    ]


# Noisy means of columns, of columns in the cells of another, and of products of two columns.
#
# Tables say nothing of what is within their groups; these do. Proof: docs/proofs/tables.md.


_BITS = 20
_UNITS = 1 << _BITS  # places between the bounds are rounded to so many, so that sums are exact


@dataclass(frozen=True, slots=True)
class Moments:
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


def moment_scale(wanted: Moments, rows_per_person: int, budget: Budget, share: Fraction) -> float:
    """Return the noise of each sum over all rows, where bounds are 0 and 1; public."""
    sensitivity = wanted.sensitivity(rows_per_person)
    return gaussian_part_scale(len(wanted), sensitivity, budget, share) / _UNITS


def exact_sums(
    places: Floats, codes: NDArray[np.intp], sizes: Sequence[int], wanted: Moments
) -> list[NDArray[np.int64]]:
    """Return sums over all rows in units of 2^-20, as integers: no rounding but of each row.

    Parameters
    ----------
    places : ndarray
        Rows where bounds are 0 and 1.
    codes : ndarray
        The cell of each row in each column.
    sizes : sequence of int
        The number of cells of each column.
    wanted : Moments
        What to add up.

    Returns
    -------
    list of ndarray
        The sums of all columns; for each of ``sums`` one number a cell; all products.
    """
    whole = np.rint(places.clip(0, 1) * _UNITS).astype(np.int64)
    centred = whole - _UNITS // 2
    found = [whole[:, list(wanted.means)].sum(axis=0)]
    for column, other in wanted.sums:
        sums = np.zeros(sizes[other], dtype=np.int64)
        np.add.at(sums, codes[:, other], centred[:, column])
        found.append(sums)
    half = 1 << (_BITS - 1)  # rounds to the nearest: floor((a + 1/2)/1)
    each = [(centred[:, a] * centred[:, b] + half) >> _BITS for a, b in wanted.products]
    found.append(np.array([product.sum() for product in each], dtype=np.int64))
    return found


def _exact_sums(sizes: tuple[int, ...], wanted: Moments, rows: Floats) -> list[NDArray[np.int64]]:
    places, codes = np.split(rows, 2, axis=1)
    return exact_sums(places, codes.astype(np.intp), sizes, wanted)


def measure_moments(
    places: Sample,
    codes: Sample,
    sizes: Sequence[int],
    wanted: Moments,
    *,
    rows_per_person: int,
    budget: Budget,
    share: Fraction,
    noise: NoiseSource,
) -> tuple[list[Floats], float]:
    """Return noisy means over all rows, as :func:`exact_sums` has them, and their noise.

    Notes
    -----
    **Sensitivity** :meth:`Moments.sensitivity`. Every row adds integers that depend on it alone:
    sums have no rounding errors.

    **Privacy** As :func:`privatest.synthetic.tables.measure`; the number of rows is
    public.
    """
    exact = added_up(beside(places, codes), partial(_exact_sums, tuple(sizes), wanted))
    together = np.concatenate(exact).astype(np.float64)
    sensitivity = wanted.sensitivity(rows_per_person)
    noisy = gaussian_part(
        together, sensitivity=sensitivity, budget=budget, share=share, noise=noise
    )
    sigma = gaussian_part_scale(together.size, sensitivity, budget, share)
    rows = float(_UNITS) * len(places)
    parts = np.split(noisy / rows, np.cumsum([len(part) for part in exact])[:-1])
    return parts, sigma / rows


# Bins where the rows are: heavy bins are looked at again, in parts, before tables are counted.
#
# Each look counts the rows in all cells, with Gaussian noise for a share of the budget; cells that
# hold many are split for the next. The cut points that result are released. Proof:
# docs/proofs/tables.md.


LOOKS, LOOK = 3, Fraction(1, 30)  # the most of them, and the share of the budget that each takes
_PARTS = 16  # of a heavy cell, for the next look
_BLIND = 16  # of one that is heavy in the last: nobody looks at these before all cells are counted
_HEAVY = 8  # a cell is heavy if it holds an eighth of the rows, and
_CLEARLY = 4.0  # so many standard deviations of the noise; cells are merged up to half of both
_MERGED, _TOLD = 64, 2.0  # parts are merged until they hold a 64th, and two deviations of noise
_SEEN = 16  # looks are bought if n is so many: a heavy cell may then hold a quarter of the rows
_PUBLIC = -1  # the parent of a cell that follows from the schema

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """A column between two looks: its cells, and of parts but the first whose parts they are."""

    cells: Cells
    parents: Places
    is_open: bool = True


def with_bins(cells: Sequence[Cells]) -> tuple[int, ...]:
    """Return the columns that have cells with many values."""
    wide = [bool((own.highest > own.lowest).any()) for own in cells]
    return tuple(place for place, found in enumerate(wide) if found)


def look_scale(columns: int, rows_per_person: int, budget: Budget) -> float:
    """Return the noise of a count in a look at so many columns; public."""
    return table_scale(columns, 1, rows_per_person, budget, LOOK)


def are_seen(columns: int, n: int, rows_per_person: int, budget: Budget) -> bool:
    """Whether heavy cells of so many columns would stand out from the noise; public."""
    return columns > 0 and n >= _SEEN * look_scale(columns, rows_per_person, budget)


def refined(
    sample: Sample,
    schema: Schema,
    cells: Sequence[Cells],
    *,
    budget: Budget,
    noise: NoiseSource,
) -> tuple[tuple[Cells, ...], Fraction]:
    """Split cells that hold many rows; return all cells, and the share of the budget it took.

    Parameters
    ----------
    sample : Sample
        Private rows in the columns' own units; each look goes through them once.
    schema : Schema
        Their public description.
    cells : sequence of Cells
        The public cells of each column.
    budget : Budget
        That of the whole release.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** A look at t columns is t tables
    (:func:`privatest.synthetic.tables.table_sensitivity`).

    **Privacy** Every look takes :data:`LOOK` of the budget. Which cells are split, which columns
    are looked at again and whether there is another look follow from noisy counts of looks
    before; so does what is left for later rounds: docs/proofs/tables.md.
    """
    found = {
        place: _Split(cells[place], np.full(len(cells[place]), _PUBLIC, dtype=np.intp))
        for place in with_bins(cells)
    }
    spent = Fraction(0)
    for look in range(LOOKS):
        places = [place for place, own in found.items() if own.is_open]
        if not places:
            break
        looked = {place: found[place].cells for place in places}
        tables = _look(sample, schema, looked, budget, noise)
        spent += LOOK
        parts = _BLIND if look == LOOKS - 1 else _PARTS
        for place, table in zip(places, tables, strict=True):
            column = [*schema.columns.values()][place]
            assert isinstance(column, NumericColumn)
            found[place] = _next(found[place], table, len(sample), column, parts)
    kept = tuple(found[place].cells if place in found else own for place, own in enumerate(cells))
    return kept, spent


def _look(
    sample: Sample, schema: Schema, cells: Mapping[int, Cells], budget: Budget, noise: NoiseSource
) -> list[Measured]:
    """Count the rows in the cells of some columns, for the share of one look."""
    return measure(
        coded(sample, [cells.get(place) for place in range(len(schema.columns))]),
        [Wanted((place,), (np.arange(len(own)),)) for place, own in cells.items()],
        [*schema.columns],
        rows_per_person=min(schema.rows_per_person, len(sample)),
        budget=budget,
        share=LOOK,
        noise=noise,
    )


def _next(own: _Split, seen: Measured, n: int, column: NumericColumn, parts: int) -> _Split:
    """Split heavy cells, and merge parts of those split before that turned out to hold few."""
    cells, counts = own.cells, seen.counts
    most = max(n / _HEAVY, _CLEARLY * seen.sigma)
    heavy = (counts >= most) & (cells.highest > cells.lowest)
    kept = _kept(own.parents, counts, heavy, n / _MERGED, _TOLD * seen.sigma)
    starts, parents = [cells.lowest[kept]], [np.full(np.count_nonzero(kept), _PUBLIC)]
    for cell in np.flatnonzero(heavy):
        edges = cells.parts(int(cell), parts)[1:]  # it begins where the cell does
        starts.append(edges)
        parents.append(np.full(len(edges), cell))
    lowest, owners = np.concatenate(starts), np.concatenate(parents)
    order = np.argsort(lowest)
    return _Split(cells_from(column, lowest[order]), owners[order], bool(heavy.any()))


def _kept(
    parents: Places, counts: Floats, heavy: NDArray[np.bool_], least: float, noise: float
) -> NDArray[np.bool_]:
    """Return which cells stay the first of theirs.

    Parts of one cell are put together up to ``least`` rows that stand out from the noise, and to
    as many parts as lie between them and a heavy one: so tails keep their shape. The first part
    of a cell, and cells that were not split, stay.
    """
    away = _distances(heavy).tolist()
    kept: NDArray[np.bool_] = (parents == _PUBLIC) | (counts >= max(least, noise))
    held, length, first = 0.0, 0, 0
    for cell in np.flatnonzero(parents != _PUBLIC).tolist():
        if kept[cell - 1]:
            held, length, first = float(counts[cell - 1]), 1, cell - 1
        full = held >= max(least, noise * math.sqrt(length))
        kept[cell] |= full or length + 1 > min(away[cell], away[first])
        held, length = held + float(counts[cell]), length + 1
    return kept


def _distances(heavy: NDArray[np.bool_]) -> Places:
    """Return how many cells away the nearest heavy one is."""
    places = np.arange(len(heavy))
    at = np.flatnonzero(heavy)
    if not len(at):
        return np.full(len(heavy), len(heavy), dtype=np.intp)
    after = np.searchsorted(at, places)
    left, right = at[(after - 1).clip(0)], at[after.clip(0, len(at) - 1)]
    found: Places = np.minimum(np.abs(places - left), np.abs(places - right)).astype(np.intp)
    return found


# Atoms of a release by a kernel: values with mass, which no smooth one tells from numbers near.
#
# The rows at each atom, and between atoms, are counted in tables of their own, with Gaussian noise
# for a share of the budget. Proof: docs/proofs/synthetic.md.


ATOM_SHARE = Fraction(1, 10)  # of the budget; the noise of what else is measured grows by 5%


def has_atoms(schema: Schema | None) -> bool:
    """Whether a column has values that are to be counted on their own."""
    columns = () if schema is None else schema.columns.values()
    return any(isinstance(column, NumericColumn) and column.atoms for column in columns)


def measure_atoms(
    sample: Sample, schema: Schema, budget: Budget, noise: NoiseSource
) -> tuple[Measured, ...]:
    """Count the rows at atoms and between them, for :data:`ATOM_SHARE` of the budget.

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
    (:func:`privatest.synthetic.tables.table_sensitivity`).

    **Privacy** Gaussian noise for a share of the budget; the coefficients take the rest.
    """
    cells = schema_cells(schema)
    wanted = [
        Wanted((place,), (_groups(own, column.atoms),))
        for place, (own, column) in enumerate(zip(cells, schema.columns.values(), strict=True))
        if isinstance(column, NumericColumn) and column.atoms
    ]
    return tuple(
        measure(
            coded(sample, cells),
            wanted,
            [*schema.columns],
            rows_per_person=min(schema.rows_per_person, len(sample)),
            budget=budget,
            share=ATOM_SHARE,
            noise=noise,
        )
    )


def _groups(cells: Cells, atoms: Sequence[float]) -> NDArray[np.intp]:
    """Return a group for each cell: atoms stand alone, all cells between two of them together."""
    alone = np.isin(cells.lowest, atoms) & (cells.lowest == cells.highest)
    after = np.concatenate([[False], alone[:-1]])
    return (np.cumsum(alone | after) - int(alone[0])).astype(np.intp)


# Groups of cells and useful pairs of columns, chosen from noisy tables: post-processing.


_grouping_CLEARLY = (
    2.0  # a dependence counts if it is so many times the error that measuring it makes
)
_PAIRS_PER_COLUMN = 3


def on_simplex(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the nearest non-negative numbers with a given sum."""
    falling = np.sort(values)[::-1]
    excess = np.cumsum(falling) - total
    counts = np.arange(1, len(values) + 1)
    last = np.flatnonzero(falling * counts > excess)[-1] if total > 0 else 0
    nearest: NDArray[np.float64] = np.maximum(values - excess[last] / (last + 1), 0.0)
    return nearest


def grouped(values: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the sums over groups of cells."""
    sums: NDArray[np.float64] = np.bincount(groups, weights=values).astype(np.float64)
    return sums


def merged(counts: NDArray[np.float64], least: float, *, ordered: bool) -> NDArray[np.intp]:
    """Return a group for each cell, such that groups hold at least about ``least`` rows.

    Cells that hold as many stand alone. Numbers are merged with their neighbours; categories
    are merged in the order of their counts.
    """
    if ordered:
        return _runs(counts, least)
    order = np.argsort(-counts, kind="stable")
    groups = np.empty(len(counts), dtype=np.intp)
    groups[order] = _runs(counts[order], least)
    return groups


def _runs(counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    groups = np.empty(len(counts), dtype=np.intp)
    group, held = -1, math.inf
    for cell, count in enumerate(counts):
        if count >= least or held >= least:
            group, held = group + 1, 0.0
        groups[cell] = group
        held = math.inf if count >= least else held + count
    while True:
        sizes = grouped(counts, groups)
        smallest = int(np.argmin(sizes))
        if len(sizes) < 3 or sizes[smallest] >= least / 2:
            return groups
        around = [other for other in (smallest - 1, smallest + 1) if 0 <= other < len(sizes)]
        into = min(around, key=lambda other: sizes[other])
        groups = np.where(groups > min(smallest, into), groups - 1, groups)


def useful_pairs(
    coarse: Sequence[Measured],
    shares: Sequence[NDArray[np.float64]],
    places: Sequence[tuple[int, int]],
    sizes: Sequence[int],
    sigma_alone: float,
    n: int,
) -> list[int]:
    """Return which pairs to measure again, most useful first.

    Parameters
    ----------
    coarse : sequence of Measured
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
    found = []
    for table, (first, second) in zip(coarse, places, strict=True):
        alone = np.outer(shares[first], shares[second])
        away = float(np.abs(table.counts / n - alone).sum())
        found.append(away - math.sqrt(2 / math.pi) * table.sigma / n * alone.size)
    order = sorted(range(len(found)), key=lambda pair: -found[pair])
    most = min(len(order), _PAIRS_PER_COLUMN * len(sizes))
    chosen = 1
    for count in range(1, most + 1):
        first, second = places[order[count - 1]]
        noise = math.sqrt(2 / math.pi * count) * sigma_alone / n
        if found[order[count - 1]] > _grouping_CLEARLY * noise * min(
            sizes[first] * sizes[second], 200
        ):
            chosen = count
    return order[:chosen]


# What a release by tables measures, and with how much noise: from public sizes only.


Bins = Literal["adaptive", "even"]

_FEW_PAIRS = 6  # all of them are measured in fine groups at once
# shares of the budget; what they leave is for fine tables of pairs, or of one column
_ONE_WAY, _MEANS, _COARSE = Fraction(3, 10), Fraction(1, 20), Fraction(1, 5)
_MORE_MEANS = Fraction(1, 10)  # where sums by cells and products are measured as well
_MEANS_ALONE = Fraction(1, 5)  # where pairs would not be seen
_FEW_CELLS = 16  # of a column that others are added up by
_AFFORDED = 0.02  # noise of sums and products, in parts of the bounds; with more they say little
_plan_SEEN = (
    8  # pairs are seen if n is so many times the noise of a count: one in a quarter is then two
)
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
    seen = pairs > 0 and n >= _plan_SEEN * table_scale(pairs, 1, person, budget, share)
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


# Tables of one and two columns as a release: measure, fit, round to rows.
#
# Proof: docs/proofs/tables.md.


_CELL = 3.0  # a fine group holds at least so many standard deviations of its own count's noise

Groups = tuple[NDArray[np.intp], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """All that was measured, and the groups it was measured in.

    Attributes
    ----------
    measured : list of Measured
        Single columns in their order, then pairs.
    fine : tuple of ndarray
        For each column the fine group of each cell.
    coarse : tuple of ndarray or None
        For each column the coarse group of each fine group, if coarse tables were measured.
    moments : list of ndarray
        Noisy means, where bounds are 0 and 1, as :func:`moments.measure_moments` has them.
    mean_sigma : float
        Their noise.
    """

    measured: list[Measured]
    fine: Groups
    coarse: Groups | None
    moments: list[NDArray[np.float64]]
    mean_sigma: float

    @property
    def single(self) -> list[Measured]:
        """The tables of single columns, in the order of columns."""
        return self.measured[: len(self.fine)]

    @property
    def sizes(self) -> list[int]:
        """Fine groups of each column."""
        return [int(group.max()) + 1 for group in self.fine]


def measure_tables(
    sample: Sample, plan: TablesPlan, noise: NoiseSource
) -> tuple[TablesPlan, Tables]:
    """Find bins, measure means and all single columns, then pairs, for all of the budget.

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
    TablesPlan, Tables
        The rounds with the bins that were found, and what was measured.

    Notes
    -----
    **Sensitivity** Each round: :func:`privatest.synthetic.tables.table_sensitivity`, and
    :meth:`privatest.synthetic.tables.Moments.sensitivity`.

    **Privacy** Shares of the rounds add up to 1. Bins, groups of cells and the pairs of the last
    round are chosen from noisy tables of earlier rounds: post-processing, and adaptive
    composition of Gaussian mechanisms. docs/proofs/tables.md.
    """
    if plan.bins:
        split = refined(sample, plan.schema, plan.cells, budget=plan.budget, noise=noise)
        plan = plan.after_looks(*split)
    codes = coded(sample, plan.cells)

    def buy(wanted: Sequence[Wanted], share: Fraction) -> list[Measured]:
        return measure(
            codes,
            wanted,
            plan.names,
            rows_per_person=plan.rows_per_person,
            budget=plan.budget,
            share=share,
            noise=noise,
        )

    means, mean_sigma = [np.empty(0)], 0.0
    if plan.means:
        means, mean_sigma = measure_moments(
            derived(sample, plan.places, sample.width),
            codes,
            [len(cells) for cells in plan.cells],
            plan.moments,
            rows_per_person=plan.rows_per_person,
            budget=plan.budget,
            share=plan.means,
            noise=noise,
        )
    alone = [Wanted((i,), (np.arange(len(c)),)) for i, c in enumerate(plan.cells)]
    single = buy(alone, plan.one_way)
    shares = [on_simplex(table.counts, plan.n) for table in single]
    fine = _merged(shares, plan, max(plan.n / plan.fine_groups, _CELL * single[0].sigma))
    if not plan.fine:
        return plan, Tables(single, fine, None, means, mean_sigma)
    sums = [grouped(counts, group) for counts, group in zip(shares, fine, strict=True)]
    pairs, bought, coarse = plan.pairs, [], None
    if plan.coarse:
        coarse = _merged(sums, plan, plan.n / COARSE_GROUPS)
        whole = tuple(group[own] for group, own in zip(coarse, fine, strict=True))
        bought = buy(
            [Wanted(pair, (whole[pair[0]], whole[pair[1]])) for pair in pairs], plan.coarse
        )
        rough = [grouped(s, group) / plan.n for s, group in zip(sums, coarse, strict=True)]
        sizes = [len(own) for own in sums]
        chosen = useful_pairs(bought, rough, pairs, sizes, plan.sigma(1, plan.fine), plan.n)
        pairs = [pairs[place] for place in chosen]
    bought += buy([Wanted(pair, (fine[pair[0]], fine[pair[1]])) for pair in pairs], plan.fine)
    return plan, Tables([*single, *bought], fine, coarse, means, mean_sigma)


def _merged(counts: Sequence[NDArray[np.float64]], plan: TablesPlan, least: float) -> Groups:
    return tuple(
        merged(own, least, ordered=cells.ordered)
        for own, cells in zip(counts, plan.cells, strict=True)
    )
