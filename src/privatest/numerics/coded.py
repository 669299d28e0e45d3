"""Rows of bins in slots of one length, so that many go through a call together.

Threads are worth it only where a call takes long, and where memory is used again: threads that
fetch it anew wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.data.schema import Domain
from privatest.numerics.features import FeatureMaps, MeanMap, ThresholdMap, Together, Unprojected
from privatest.numerics.kernels import TabulatedKernels, pieces, sum_rows

Floats = NDArray[np.float64]

MULTIPLE = 16  # slots have a multiple of so many rows, which are gone through at a time
_LONGEST = 1 << 10  # rows of a slot: so many multiples of 2^-14 add up exactly in 24 bits
_AT_ONCE = 1 << 14  # rows of slots that go through a call together
_SPARE = 9 / 8  # times as many slots may there be, so that each bin has as many


class Room:
    """Memory that is used again: fetching it anew would take as long as what is done with it."""

    def __init__(self) -> None:
        self.held: dict[str, NDArray[Any]] = {}

    def of(self, name: str, shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
        """Return an array of this shape; what it held is gone."""
        size = math.prod(shape)
        if name not in self.held or len(self.held[name]) < size:
            self.held[name] = np.empty(size, dtype=kind)
        return self.held[name][:size].reshape(shape)

    def taken(self, name: str, items: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
        """Return what is at these places."""
        found = self.of(name, places.shape, items.dtype)
        return np.take(items, places, out=found, mode="clip")  # the other modes are slower


@dataclass(frozen=True, slots=True)
class Slots:
    """Rows of bins, in slots of one length; a row of zeros fills what is left."""

    rows: NDArray[np.intp]  # slots × length
    bins: NDArray[np.intp]  # of each slot
    of_bin: int  # slots of each bin, if all have as many; else 0
    filled: NDArray[np.intp]  # how many rows of zeros each bin has

    @property
    def at_once(self) -> int:
        """How many slots go through a call together: those of whole bins, if all are alike."""
        few = max(1, _AT_ONCE // int(self.rows.shape[1]))
        return max(1, few // self.of_bin) * self.of_bin if self.of_bin else few

    def add(self, sums: NDArray[Any], chosen: slice, totals: Floats) -> None:
        """Add the sums of some slots to those of their bins."""
        if not self.of_bin:
            for place, own in zip(self.bins[chosen], sums, strict=True):
                totals[place] += own
            return
        whole = sums.reshape(-1, self.of_bin, *sums.shape[1:])
        first = chosen.start // self.of_bin
        totals[first : first + len(whole)] += whole.sum(axis=1, dtype=np.float64)


def slots_of(order: NDArray[np.intp], edges: NDArray[np.intp], room: Room) -> Slots:
    """Put rows, which are between edges in this order, into as few slots as are nearly full."""
    counts = np.diff(edges)
    longest = max(1, int(counts.max()))
    most = -(-longest // _LONGEST)  # slots of a bin
    length = -(-longest // (most * MULTIPLE)) * MULTIPLE
    each = np.maximum(-(-counts // length), 1)
    alike = most * len(each) <= _SPARE * each.sum()
    if alike:
        each[:] = most
    first = np.cumsum(each) - each
    rows = room.of("rows", (int(each.sum()), length), np.intp)
    rows.fill(len(order))
    places = room.of("ranks", order.shape, np.intp)
    np.add(np.arange(len(order)), np.repeat(first * length - edges[:-1], counts), out=places)
    rows.ravel()[places] = order
    bins = np.repeat(np.arange(len(each)), each)
    return Slots(rows, bins, most if alike else 0, each * length - counts)


def flat(values: NDArray[Any], length: int) -> NDArray[Any]:
    """Return the same in longer rows: short ones are gone through slowly."""
    return values.reshape(-1, length)


def as_items(rows: NDArray[Any]) -> NDArray[np.void]:
    """Return a table with a row as one item: items of 8, 16 or 32 bytes are quick to look up."""
    return rows.view(np.dtype((np.void, rows.strides[0])))[:, 0]


# Cosines and sines of single columns, from a table: features whose sums are exact.
#
# Proofs: docs/proofs/portfolio.md.


WIDTHS = (1.0, 0.25)  # of the one-column kernels, as shares of a column's bounds
CELLS = 1024  # a number counts as the centre of its cell: features are looked up, not computed
PADDED = 8  # features of a column in the fast form: 32 bytes
FINE = 256  # features are multiples of 1/256


@dataclass(frozen=True, slots=True)
class Energies:
    """Squared weights of a column's features that give them spread 1.

    Inner products of two rows' features are between ``least`` and ``most``, which is also the
    largest squared norm.
    """

    squares: Floats
    least: float
    most: float


@dataclass(frozen=True)
class Harmonics:
    """The first harmonics of each column: cosine and sine of pi k x, k = 1, ..., count <= 4.

    A number is rounded to the centre of one of ``most`` public cells, and its features to
    multiples of 1/fine: a table holds them, and products of two of them add up exactly. A category
    is an indicator of its code, modulo 2 count. Weighted by :meth:`energies` these are features of
    a kernel of each width: on a number periodic with period 2, on a category that of equality.

    With ``apart`` there are two harmonics, the first and the third, and in the place of the two
    widths each has a kernel of its own: of the whole box, and of a third of it.
    """

    domain: Domain
    count: int
    most: int = CELLS
    fine: int = FINE
    apart: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """Which harmonics there are."""
        return (1, 3) if self.apart else tuple(range(1, self.count + 1))

    @cached_property
    def sizes(self) -> list[int]:
        """Number of features of each column."""
        return [min(level, 2 * self.count) or 2 * self.count for level in self.domain.levels]

    @cached_property
    def starts(self) -> list[int]:
        """Where the features of each column start, and the end."""
        return [0, *np.cumsum(self.sizes).tolist()]

    @cached_property
    def cells(self) -> list[int]:
        """Number of cells of each column: those of numbers, or features of a category."""
        levels = self.domain.levels
        return [own if level else self.most for own, level in zip(self.sizes, levels, strict=True)]

    @cached_property
    def tables(self) -> list[Floats]:
        """For each column, cells × features."""
        return [
            np.eye(own) if level else _harmonics(self.numbers, self.most, self.fine)
            for own, level in zip(self.sizes, self.domain.levels, strict=True)
        ]

    def cell_tables(self, cells: int) -> list[Floats]:
        """Return the same with so many cells for each column: codes of categories."""
        return [
            table[np.arange(cells) % len(table)] if level else table
            for table, level in zip(self.tables, self.domain.levels, strict=True)
        ]

    def codes(self, rows: Floats, column: int) -> NDArray[np.intp]:
        """Return the cell of each row in one column."""
        values, cells = rows[:, column], self.cells[column]
        if self.domain.levels[column]:
            return values.astype(np.intp) % cells
        found = (values * cells).astype(np.intp)
        return np.minimum(found, cells - 1, out=found)

    def __call__(self, rows: Floats) -> Floats:
        """Map rows to rows × features."""
        columns = enumerate(self.tables)
        found: Floats = np.hstack([table[self.codes(rows, column)] for column, table in columns])
        return found

    def padded(self, rows: Floats) -> NDArray[np.float32]:
        """Map rows to rows × 8 features a column, of which the last may be 0: the fast form."""
        places = np.empty((len(rows), len(self.cells)), dtype=np.intp)
        start = 0
        for column, cells in enumerate(self.cells):
            np.add(self.codes(rows, column), start, out=places[:, column])
            start += cells
        found = np.empty(places.shape, dtype=self._lookup.dtype)
        np.take(self._lookup, places, out=found, mode="clip")  # the other modes are slower
        return found.view(np.float32)

    @cached_property
    def _lookup(self) -> NDArray[np.void]:
        """All tables one below the other, a row being one item: items of 32 bytes are quick."""
        rows = np.zeros((sum(self.cells), PADDED), dtype=np.float32)
        start = 0
        for table in self.tables:
            rows[start : start + len(table), : table.shape[1]] = table
            start += len(table)
        return rows.view(np.dtype((np.void, rows.strides[0])))[:, 0]

    def sums(self, rows: Floats, edges: NDArray[np.intp], weights: Floats | None) -> Floats:
        """Return the (weighted) sums of features over rows between edges.

        From counts of cells, unless these are many more than rows; exact either way.
        """
        bins = len(edges) - 1
        if bins * self.most > 8 * len(rows):
            return sum_rows(self(rows), edges, weights)
        bin_of_row = np.repeat(np.arange(bins), np.diff(edges))
        parts = []
        for column, (cells, table) in enumerate(zip(self.cells, self.tables, strict=True)):
            codes = bin_of_row * cells
            codes += self.codes(rows, column)
            counts = np.bincount(codes, weights, minlength=bins * cells).reshape(bins, cells)
            parts.append(counts @ table)
        return np.hstack(parts)

    def energies(self, column: int, width: float) -> Energies:
        """Return the weights of a column's features for a kernel of this width."""
        if self.domain.levels[column]:
            return Energies(np.full(self.sizes[column], 0.5), 0.0, 0.5)
        own = np.exp(-((math.pi * width / 2 * np.array(self.numbers)) ** 2))
        if self.apart:
            own = np.equal(WIDTHS, width).astype(np.float64)
        return _energies(self.numbers, tuple(own.tolist()), self.most, self.fine)

    def paired(self, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
        """One-column kernels of row i of ``a`` and of ``b``: pairs × columns × widths.

        With them the kernels of ``a`` and ``a``, and of ``b`` and ``b``.
        """
        shape = len(a), self.domain.dimension, len(WIDTHS)
        across, of_a, of_b = (np.empty(shape) for _ in range(3))
        for column, table in enumerate(self.tables):
            weights = np.stack([self.energies(column, each).squares for each in WIDTHS], axis=1)
            left, right = self.codes(a, column), self.codes(b, column)
            across[:, column] = (table[left] * table[right]) @ weights
            same = np.square(table) @ weights  # of a row with itself: all rows of a cell are alike
            of_a[:, column], of_b[:, column] = same[left], same[right]
        return across, of_a, of_b


@lru_cache(maxsize=8)
def _harmonics(numbers: tuple[int, ...], cells: int, fine: int) -> Floats:
    """Cells × features of a number: cosines, then sines, in multiples of 1/fine."""
    centres = (np.arange(cells) + 0.5) / cells
    angles = math.pi * np.outer(centres, numbers)
    table: Floats = np.rint(np.hstack([np.cos(angles), np.sin(angles)]) * fine) / fine
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _energies(
    numbers: tuple[int, ...], squared: tuple[float, ...], cells: int, fine: int
) -> Energies:
    """Weigh the features of a number.

    Notes
    -----
    **Sensitivity** The features of a row are a row of the table, so that all distances and inner
    products there are can be computed; 1e-12 covers the rounding of doing so.
    """
    squares = np.tile(squared, 2)
    points = _harmonics(numbers, cells, fine) * np.sqrt(squares)
    products = points @ points.T
    norms = np.diag(products)
    largest = float((norms[:, None] + norms - 2 * products).max()) * (1 + 1e-12) + 1e-12
    least, most = float(products.min()) / largest - 1e-12, float(norms.max()) / largest + 1e-12
    return Energies(squares / largest, least, most)


# Feature maps that look at single columns, or at pairs of columns, of a bounded domain.
#
# A kernel in all columns sees little where only a few differ, or where rows crowd in a part of
# wide bounds. These maps are cheap, all of them have spread 1, and each gives several statistics
# ("members") from one pass over the rows. Proofs: docs/proofs/portfolio.md.


_EXACT_ROWS = 256  # products of two are multiples of 2^-16, so this many add up exactly in 24 bits


@dataclass(frozen=True)
class ColumnMap(Unprojected):
    """One-column kernels: for each width their mean over columns (squared), and the largest."""

    harmonics: Harmonics

    name = "additive"
    exact = True
    blocks = 1
    varies = True

    @cached_property
    def _energies(self) -> list[Floats]:
        """For each column, features × widths."""
        columns = range(self.harmonics.domain.dimension)
        return [
            np.stack([self.harmonics.energies(column, width).squares for width in WIDTHS], axis=1)
            for column in columns
        ]

    @property
    def spreads(self) -> tuple[float, ...]:
        """One: so for each column, their mean and their maximum."""
        return (1.0,) * (len(WIDTHS) * (1 if len(self._energies) == 1 else 2))

    @property
    def roundings(self) -> tuple[float, ...]:
        """None: raw features are exact."""
        return (0.0,) * len(self.spreads)

    @property
    def amplifications(self) -> tuple[float, ...]:
        """An error in every feature of a column, in the largest of the norms."""
        largest = max(math.sqrt(float(own.sum(axis=0).max())) for own in self._energies)
        return (largest,) * len(self.spreads)

    @property
    def raw_width(self) -> int:
        """Number of features."""
        return self.harmonics.starts[-1]

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield the harmonics."""
        yield self.harmonics(x)

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield sums of harmonics over the rows between edges."""
        yield self.harmonics.sums(x, edges, weights)

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the members' statistics, members × rows of ``sums``."""
        del index
        starts = self.harmonics.starts
        squares = np.square(sums)
        columns = np.stack(
            [
                squares[:, start:stop] @ own
                for start, stop, own in zip(starts, starts[1:], self._energies, strict=False)
            ]
        )
        return np.sqrt(_mean_and_largest(columns))

    def variances(self, a: Floats, b: Floats) -> Floats:
        """Half the mean squared distance of features, for each member."""
        across, of_a, of_b = self.harmonics.paired(a, b)
        halves = ((of_a + of_b) / 2 - across).mean(axis=0)
        return _mean_and_largest(halves[:, None, :])[:, 0]


@dataclass(frozen=True)
class PairMap(Unprojected):
    """Products of one-column kernels: their mean over pairs of columns, and the largest pair's.

    The features of a pair are the products of the features of its columns. Sums over many rows
    are one matrix product.
    """

    harmonics: Harmonics

    name = "pairwise"
    exact = True
    blocks = 1
    varies = True

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.harmonics.domain.dimension), 2))

    @cached_property
    def _energies(self) -> list[Floats]:
        """For each pair, features × widths, weighted to spread 1."""
        return [
            np.stack([_product(*both) for both in zip(self._own[i], self._own[j], strict=True)], 1)
            for i, j in self._pairs
        ]

    @cached_property
    def _own(self) -> list[list[Energies]]:
        """Of each column, for each width."""
        columns = range(self.harmonics.domain.dimension)
        return [[self.harmonics.energies(column, width) for width in WIDTHS] for column in columns]

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        return self.product_places(PADDED)

    def product_places(self, padded: int) -> NDArray[np.intp]:
        """Return where the products of each pair are in the matrix of all, flattened.

        ``padded`` is the number of features that each column has there.
        """
        sizes, width = self.harmonics.sizes, padded * self.harmonics.domain.dimension
        return np.concatenate(
            [
                np.add.outer(
                    (padded * i + np.arange(sizes[i])) * width, padded * j + np.arange(sizes[j])
                ).ravel()
                for i, j in self._pairs
            ]
        )

    @property
    def spreads(self) -> tuple[float, ...]:
        """One: so for each pair, their mean and their maximum."""
        return (1.0,) * (len(WIDTHS) * (1 if len(self._pairs) == 1 else 2))

    @property
    def roundings(self) -> tuple[float, ...]:
        """None: products are exact."""
        return (0.0,) * len(self.spreads)

    @property
    def amplifications(self) -> tuple[float, ...]:
        """An error in every feature of a pair, in the largest of the norms."""
        largest = max(math.sqrt(float(own.sum(axis=0).max())) for own in self._energies)
        return (largest,) * len(self.spreads)

    @property
    def raw_width(self) -> int:
        """Number of features."""
        return sum(len(own) for own in self._energies)

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield the products, for each row."""
        features, starts = self.harmonics(x), self.harmonics.starts
        yield np.hstack(
            [
                np.einsum(
                    "ni,nj->nij",
                    features[:, starts[i] : starts[i + 1]],
                    features[:, starts[j] : starts[j + 1]],
                ).reshape(len(x), -1)
                for i, j in self._pairs
            ]
        )

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield sums of products over the rows between edges; weights are -1, 0 and 1.

        Pieces of 256 rows add up exactly in single precision, and then in double.
        """
        features = self.harmonics.padded(x)
        signed = features
        if weights is not None:
            signed = features * weights.astype(np.float32)[:, None]
        sums = np.zeros((len(edges) - 1, len(self._places)))
        for index, (start, stop) in enumerate(pairwise(edges)):
            for piece in pieces(start, stop, _EXACT_ROWS):
                products = features[piece].T @ signed[piece]
                sums[index] += np.take(products.ravel(), self._places)
        yield sums

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the members' statistics, members × rows of ``sums``."""
        del index
        squares = np.square(sums)
        pairs = np.empty((len(self._pairs), len(sums), len(WIDTHS)))
        start = 0
        for pair, own in zip(pairs, self._energies, strict=True):
            np.matmul(squares[:, start : start + len(own)], own, out=pair)
            start += len(own)
        return np.sqrt(_mean_and_largest(pairs))

    def variances(self, a: Floats, b: Floats) -> Floats:
        """Half the mean squared distance of features, for each member.

        Products of features have products of kernels as inner products.
        """
        across, of_a, of_b = self.harmonics.paired(a, b)
        halves = (_means(of_a) + _means(of_b)) / 2 - _means(across)  # columns × columns × widths
        found = [
            [
                halves[i, j, width] / _squared_spread(self._own[i][width], self._own[j][width])
                for width in range(len(WIDTHS))
            ]
            for i, j in self._pairs
        ]
        return _mean_and_largest(np.array(found)[:, None, :])[:, 0]


def _means(kernels: Floats) -> Floats:
    """Mean products of the kernels of two columns: columns × columns × widths."""
    means: Floats = np.einsum("piw,pjw->ijw", kernels, kernels, optimize=True) / len(kernels)
    return means


def _product(first: Energies, second: Energies) -> Floats:
    """Squared weights of the products of two columns' features that give them spread 1."""
    squares: Floats = np.outer(first.squares, second.squares).ravel()
    return squares / _squared_spread(first, second)


def _squared_spread(first: Energies, second: Energies) -> float:
    """Bound the squared distance of two rows' products of features.

    Products have inner products no less than the least corner of the two intervals' product, and
    squared norms no more than the product of the two largest.
    """
    ends = [(first.least, first.most), (second.least, second.most)]
    least = min(a * b for a in ends[0] for b in ends[1])
    return 2 * (first.most * second.most - least) * (1 + 1e-12)


def _mean_and_largest(squares: Floats) -> Floats:
    """Combine parts × rows × widths to the mean over parts, and the largest: members × rows."""
    if len(squares) == 1:
        only: Floats = squares[0].T
        return only
    return np.vstack([squares.mean(axis=0).T, squares.max(axis=0).T])


# What each map of a coded family keeps of rows in slots: sums over bins, all of them exact.
#
# Rows of zeros fill the slots; what they add is known, and is taken away again in the end. Proof:
# docs/proofs/exact-sums.md.


Codes = NDArray[np.uint16]

CODE_CELLS, CODE_BITS = 1 << 8, 16
CODE_FINE = 1 << 7  # harmonics are multiples of its inverse: products of two of 2^-14


def cell_starts(width: int) -> NDArray[np.uint16]:
    """Return where the cells of each column begin in a table of all, for some rows."""
    return np.tile((np.arange(width) * CODE_CELLS).astype(np.uint16), MULTIPLE)


class Adder(Protocol):
    """What one map keeps of the rows of each bin."""

    def add(self, tile: Tile, room: Room) -> None:
        """Add the rows of some slots."""

    def finish(self, counts: Floats, filled: Floats) -> Iterator[Floats]:
        """Yield bins × features of each block.

        ``counts`` are bins × columns × cells of rows; ``filled`` is how many rows of zeros were
        added to each bin besides.
        """


class Tile(NamedTuple):
    """Rows of some slots."""

    slots: Slots
    chosen: slice  # of the slots
    codes: Codes
    cells: NDArray[np.intp]  # places of the rows' cells in a table of all columns

    @property
    def size(self) -> int:
        """The number of slots."""
        return len(self.slots.bins[self.chosen])


class Cells:
    """Counts of cells."""

    def __init__(self, width: int, bins: int) -> None:
        self.counts = np.zeros((bins, width * CODE_CELLS), dtype=np.int64)

    def add(self, tile: Tile) -> None:
        """Count, the slots of a bin at a time."""
        step = max(1, tile.slots.of_bin)
        bins = tile.slots.bins[tile.chosen][::step]
        for place, cells in zip(bins, tile.cells.reshape(len(bins), -1), strict=True):
            self.counts[place] += np.bincount(cells, minlength=self.counts.shape[1])

    def finish(self, filled: Floats) -> Floats:
        """Return bins × columns × cells of the rows alone."""
        counts = self.counts.reshape(len(filled), -1, CODE_CELLS).astype(np.float64)
        counts[:, :, 0] -= filled[:, None]
        return counts


def _without(totals: Floats, filled: Floats, zero: NDArray[Any]) -> Floats:
    """Take away what rows of zeros have added."""
    return np.asarray(totals - np.multiply.outer(filled, zero.astype(np.float64)))


def adder_of(part: FeatureMaps, domain: Domain, bins: int) -> Adder:
    """Return what keeps the sums of a map."""
    if isinstance(part, ColumnMap):
        return _Columns(part)
    if isinstance(part, ThresholdMap):
        return _Thresholds(part)
    if isinstance(part, PairMap):
        return _Pairs(part, bins)
    if isinstance(part, MeanMap):
        return _Means(part, bins)
    assert isinstance(part, TabulatedKernels)
    return _Kernels(part, bins) if domain.dimension > 1 else _LineKernels(part)


class _FromCounts:
    """Features of single columns: counts of cells say all."""

    def add(self, tile: Tile, room: Room) -> None:
        """Add nothing: cells are counted for all maps together."""
        del tile, room


class _Columns(_FromCounts):
    def __init__(self, part: ColumnMap) -> None:
        self.tables = part.harmonics.cell_tables(CODE_CELLS)

    def finish(self, counts: Floats, filled: Floats) -> Iterator[Floats]:
        del filled
        yield np.hstack([counts[:, place] @ own for place, own in enumerate(self.tables)])


class _Thresholds(_FromCounts):
    def __init__(self, part: ThresholdMap) -> None:
        self.levels = part.domain.levels

    def finish(self, counts: Floats, filled: Floats) -> Iterator[Floats]:
        del filled
        yield np.hstack(
            [
                counts[:, place, :level] if level else np.cumsum(counts[:, place], axis=1)
                for place, level in enumerate(self.levels)
            ]
        )


class _Pairs:
    def __init__(self, part: PairMap, bins: int) -> None:
        tables = part.harmonics.cell_tables(CODE_CELLS)
        size = max(own.shape[1] for own in tables)
        rows = np.zeros((len(tables) * CODE_CELLS, size), dtype=np.float32)
        for place, own in enumerate(tables):
            rows[place * CODE_CELLS : (place + 1) * CODE_CELLS, : own.shape[1]] = own
        zero = rows[::CODE_CELLS].ravel()
        self.items, self.zero = as_items(rows), np.outer(zero, zero)
        self.totals = np.zeros((bins, *self.zero.shape))
        self.places = part.product_places(size)

    def add(self, tile: Tile, room: Room) -> None:
        sums = room.of("products", (tile.size, *self.zero.shape), np.float32)
        found = room.taken("features", self.items, tile.cells).view(np.float32)
        features = found.reshape(len(sums), -1, sums.shape[1])
        np.matmul(features.transpose(0, 2, 1), features, out=sums)
        tile.slots.add(sums, tile.chosen, self.totals)

    def finish(self, counts: Floats, filled: Floats) -> Iterator[Floats]:
        del counts
        sums = _without(self.totals, filled, self.zero)
        yield np.take(sums.reshape(len(sums), -1), self.places, axis=1)


class _Means:
    def __init__(self, part: MeanMap, bins: int) -> None:
        self.numeric = part.domain.numeric
        self.totals = np.zeros((bins, part.domain.dimension))

    def add(self, tile: Tile, room: Room) -> None:
        rows, width = tile.codes.shape
        numbers = room.of("numbers", (tile.size, rows // tile.size, width), np.float64)
        np.copyto(numbers.reshape(rows, width), tile.codes)
        sums = np.matmul(np.ones(numbers.shape[1]), numbers)
        tile.slots.add(sums, tile.chosen, self.totals)

    def finish(self, counts: Floats, filled: Floats) -> Iterator[Floats]:
        del filled  # their codes are 0
        rows = counts[:, 0].sum(axis=1, keepdims=True)
        yield self.totals[:, self.numeric] * 2.0**-CODE_BITS - rows / 2


class _Kernels:
    """Squared distances to the landmarks, by one matrix product of what is looked up."""

    def __init__(self, part: TabulatedKernels, bins: int) -> None:
        numeric, size = part.domain.numeric, part.domain.dimension
        self.part, self.landmarks = part, part.landmarks.astype(np.float32)
        centres = np.rint((np.arange(CODE_CELLS) + 0.5) / CODE_CELLS * part.steps)
        rows = np.zeros((size, CODE_CELLS, 2), dtype=np.float32)  # a and a², 0 for a category
        rows[numeric] = np.stack([centres, np.square(centres)], axis=1)
        points = part.landmarks[:, numeric]
        right = np.zeros((size, 2, len(points)))
        right[numeric, 0], right[numeric, 1] = -2 * points.T, 1.0
        strides = len(part.domain.categorical) + 1
        self.right = (right.reshape(2 * size, -1) * strides).astype(np.float32)
        squares = (np.square(points).sum(axis=1) * strides).astype(np.int32)
        self.squares = np.tile(squares, MULTIPLE)
        self.items, self.table = as_items(rows.reshape(-1, 2)), as_items(part.table)
        self.totals = np.zeros((bins, len(points) * part.table.shape[1]))

    def values(self, tile: Codes, cells: NDArray[np.intp], room: Room) -> NDArray[np.float32]:
        """Return rows × (landmarks, kernels)."""
        shape = len(cells), len(self.landmarks)
        distances = room.of("distances", shape, np.float32)
        numbers = room.taken("points", self.items, cells).view(np.float32)
        np.matmul(numbers, self.right, out=distances)  # integers below 2^24: exact in any order
        for column in self.part.domain.categorical:
            distances += np.not_equal.outer(tile[:, column] >> 8, self.landmarks[:, column])
        whole, places = room.of("whole", shape, np.int32), room.of("entries", shape, np.intp)
        np.copyto(whole, distances, casting="unsafe")
        length = len(self.squares)
        np.add(flat(whole, length), self.squares, out=flat(places, length))
        return room.taken("kernels", self.table, places).view(np.float32)

    def add(self, tile: Tile, room: Room) -> None:
        found = self.values(tile.codes, tile.cells, room)
        values = found.reshape(tile.size, -1, self.totals.shape[1])
        sums = np.matmul(np.ones(values.shape[1], dtype=np.float32), values)
        tile.slots.add(sums, tile.chosen, self.totals)

    def finish(self, counts: Floats, filled: Floats) -> Iterator[Floats]:
        del counts
        size = self.part.domain.dimension
        zeros = np.zeros((MULTIPLE, size), dtype=np.uint16)
        zero = self.values(zeros, zeros + np.arange(size) * CODE_CELLS, Room())[0]
        return self.blocks(_without(self.totals, filled, zero))

    def blocks(self, sums: Floats) -> Iterator[Floats]:
        """Yield the sums of each kernel."""
        by_kernel = sums.reshape(len(sums), len(self.landmarks), -1)
        return (np.ascontiguousarray(by_kernel[:, :, i]) for i in range(self.part.blocks))


class _LineKernels(_FromCounts):
    """Of one column a row is its cell: counts of cells say all of kernels too."""

    def __init__(self, part: TabulatedKernels) -> None:
        self.kernels = _Kernels(part, 0)

    def finish(self, counts: Floats, filled: Floats) -> Iterator[Floats]:
        del filled
        cells = np.arange(CODE_CELLS)[:, None]
        values = self.kernels.values((cells << 8).astype(np.uint16), cells, Room())
        return self.kernels.blocks(counts[:, 0] @ values.astype(np.float64))


# A family of feature maps for many rows: two bytes a column are all that is kept of a row.
#
# The first byte is the cell of a number among 256, or a category; both together say where a number
# lies to 2^-16 of its bounds. All features are looked up by cells, and all sums over bins come from
# one pass over the codes: counts of cells (single columns and thresholds), one product of matrices
# (pairs), distances to public points (kernels), and sums of codes (means). All of it is exact.
# Proofs: docs/proofs/exact-sums.md and docs/proofs/portfolio.md.


_MOST_COLUMNS = 31  # for more, counts of cells would take too much room


def has_codes(domain: Domain) -> bool:
    """Whether all columns are numbers with bounds or have at most 256 categories, and are few."""
    few = domain.dimension <= _MOST_COLUMNS and max(domain.levels) <= CODE_CELLS
    return domain.bounded and few


@dataclass(frozen=True, slots=True)
class CodedMaps(Together):
    """Maps that are sums of what is looked up by cells: made with ``CODE_CELLS`` and so on."""

    domain: Domain

    def codes(self, rows: Floats) -> Codes:
        """Return rows × columns: numbers rounded down to multiples of 2^-16, or categories."""
        codes = np.empty(rows.shape, dtype=np.uint16)
        self.write_codes(rows, codes, Room())
        return codes

    def write_codes(self, rows: Floats, codes: Codes, room: Room) -> None:
        """Write them where they belong."""
        whole = room.of("whole rows", rows.shape, np.int32)
        np.multiply(rows, 1 << CODE_BITS, out=whole, casting="unsafe")
        np.minimum(whole, (1 << CODE_BITS) - 1, out=codes, casting="unsafe")
        for column in self.domain.categorical:
            codes[:, column] = rows[:, column].astype(np.uint16) << 8

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield, for each block, the sums of raw features over the rows between edges."""
        if weights is not None:
            return Together.binned(self, x, edges, weights)
        sums = CodedSums(self, len(edges) - 1)
        sums.add(np.append(self.codes(x), sums.nothing, axis=0), np.arange(len(x)), edges)
        return sums.finish()


class CodedSums:
    """Sums over bins of the features of coded rows, for one thread.

    Parameters
    ----------
    maps : CodedMaps
        The features.
    bins : int
        How many bins there are.
    """

    def __init__(self, maps: CodedMaps, bins: int) -> None:
        width = maps.domain.dimension
        self.nothing, self.starts = np.zeros((1, width), dtype=np.uint16), cell_starts(width)
        self.cells, self.filled = Cells(width, bins), np.zeros(bins)
        self.adders = [adder_of(part, maps.domain, bins) for part in maps.parts]
        self.room = Room()

    def add(self, codes: Codes, order: NDArray[np.intp], edges: NDArray[np.intp]) -> None:
        """Add rows that are between edges in this order; after the last code is one of zeros."""
        room, width = self.room, codes.shape[1]
        slots, items = slots_of(order, edges, room), as_items(codes)
        self.filled += slots.filled
        for first in range(0, len(slots.rows), slots.at_once):
            chosen = slice(first, first + slots.at_once)
            rows = slots.rows[chosen].ravel()
            own = room.taken("tile", items, rows).view(np.uint16).reshape(len(rows), width)
            cells = room.of("cells", own.shape, np.uint16)
            np.right_shift(own, 8, out=cells)
            long_rows = flat(cells, len(self.starts))
            long_rows += self.starts
            places = room.of("places", own.shape, np.intp)
            np.copyto(places, cells)
            tile = Tile(slots, chosen, own, places)
            self.cells.add(tile)
            for adder in self.adders:
                adder.add(tile, room)

    def finish(self) -> Iterator[Floats]:
        """Yield bins × features of each block, of all rows that were added."""
        counts = self.cells.finish(self.filled)
        for adder in self.adders:
            yield from adder.finish(counts, self.filled)
