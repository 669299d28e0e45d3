"""What each map of a coded family keeps of rows in slots: sums over bins, all of them exact.

Rows of zeros fill the slots; what they add is known, and is taken away again in the end. Proof:
docs/proofs/exact-sums.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.columns import ColumnMap, PairMap
from privatest.kernels.features import FeatureMaps
from privatest.kernels.largest import MeanMap, ThresholdMap
from privatest.kernels.slots import MULTIPLE, Room, Slots, as_items, flat
from privatest.kernels.tabulated import TabulatedKernels

__all__ = [
    "CODE_BITS",
    "CODE_CELLS",
    "CODE_FINE",
    "Adder",
    "Cells",
    "Codes",
    "adder_of",
    "cell_starts",
]

Floats = NDArray[np.float64]
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
