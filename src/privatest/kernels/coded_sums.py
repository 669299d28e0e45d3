"""What each map of a coded family keeps of rows in slots: sums over bins, all of them exact.

Threads are worth it only where a call takes long: rows are put into slots of one length, each of
rows of one bin, and many slots go through a call together. Rows of zeros fill the slots; what
they add is known, and is taken away again. Proof: docs/proofs/exact-sums.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.columns import ColumnMap, PairMap
from privatest.kernels.features import FeatureMaps
from privatest.kernels.largest import MeanMap, ThresholdMap
from privatest.kernels.tabulated import TabulatedKernels

__all__ = [
    "CODE_BITS",
    "CODE_CELLS",
    "CODE_FINE",
    "Adder",
    "Cells",
    "Codes",
    "Room",
    "adder_of",
    "as_items",
    "cell_starts",
    "flat",
    "slots_of",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.uint16]

CODE_CELLS, CODE_BITS = 1 << 8, 16
CODE_FINE = 1 << 7  # harmonics are multiples of its inverse: products of two of 2^-14
_LONGEST = 1 << 10  # rows of a slot: so many multiples of 2^-14 add up exactly in 24 bits
_MULTIPLE = 16  # slots have a multiple of so many rows, which are gone through at a time
_AT_ONCE = 1 << 14  # rows of slots that go through a call together


@dataclass(frozen=True, slots=True)
class Slots:
    """Rows of bins, in slots of one length; a row of zeros fills what is left."""

    rows: NDArray[np.intp]  # slots × length
    first: NDArray[np.intp]  # slot of each bin
    filled: Floats  # how many rows of zeros each bin has

    @property
    def at_once(self) -> int:
        """How many slots go through a call together."""
        return max(1, _AT_ONCE // int(self.rows.shape[1]))

    def by_bin(self, sums: NDArray[Any], zero: NDArray[Any]) -> Floats:
        """Add up the slots of each bin, without what the rows of zeros added."""
        found: Floats = np.add.reduceat(sums.astype(np.float64), self.first, axis=0)
        return found - np.multiply.outer(self.filled, zero.astype(np.float64))


def slots_of(order: NDArray[np.intp], edges: NDArray[np.intp]) -> Slots:
    """Put rows, which are between edges in this order, into as few slots as are nearly full."""
    counts = np.diff(edges)
    longest = max(1, int(counts.max()))
    most = -(-longest // _LONGEST)  # slots of a bin
    length = -(-longest // (most * _MULTIPLE)) * _MULTIPLE
    each = np.maximum(-(-counts // length), 1)
    first = np.cumsum(each) - each
    within = np.arange(each.sum()) - np.repeat(first, each)  # of the slots of its bin
    starts = np.repeat(edges[:-1], each) + within * length
    places = starts[:, None] + np.arange(length)
    behind = places >= np.repeat(edges[1:], each)[:, None]
    rows = np.append(order, len(order))[np.minimum(places, len(order))]
    rows[behind] = len(order)
    return Slots(rows, first, (each * length - counts).astype(np.float64))


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


def cell_starts(width: int) -> NDArray[np.uint16]:
    """Return where the cells of each column begin in a table of all, for some rows."""
    return np.tile((np.arange(width) * CODE_CELLS).astype(np.uint16), _MULTIPLE)


def flat(values: NDArray[Any], length: int) -> NDArray[Any]:
    """Return the same in longer rows: short ones are gone through slowly."""
    return values.reshape(-1, length)


class Adder(Protocol):
    """What one map keeps of the slots."""

    def add(self, slots: slice, tile: Codes, cells: NDArray[np.intp], room: Room) -> None:
        """Add the rows of slots: their codes, and the places of their cells in a table of all."""

    def finish(self, counts: Floats) -> Iterator[Floats]:
        """Yield bins × features of each block; ``counts`` are bins × columns × cells."""


class Cells:
    """Counts of cells."""

    def __init__(self, width: int, slots: Slots) -> None:
        self.slots, self.zero = slots, np.zeros(width * CODE_CELLS)
        self.zero[::CODE_CELLS] = 1.0
        self.counts = np.zeros((len(slots.rows), width * CODE_CELLS), dtype=np.int64)

    def add(self, slots: slice, tile: Codes, cells: NDArray[np.intp], room: Room) -> None:
        """Count, a slot at a time."""
        del tile, room
        counts = self.counts[slots]
        for own, places in zip(counts, cells.reshape(len(counts), -1), strict=True):
            own[:] = np.bincount(places, minlength=len(own))

    def finish(self, counts: Floats) -> Iterator[Floats]:
        """Yield bins × cells of all columns."""
        del counts
        yield self.slots.by_bin(self.counts, self.zero)


def adder_of(part: FeatureMaps, domain: Domain, slots: Slots) -> Adder:
    """Return what keeps the sums of a map."""
    if isinstance(part, ColumnMap):
        return _Columns(part)
    if isinstance(part, ThresholdMap):
        return _Thresholds(part)
    if isinstance(part, PairMap):
        return _Pairs(part, slots)
    if isinstance(part, MeanMap):
        return _Means(part, slots)
    assert isinstance(part, TabulatedKernels)
    return _Kernels(part, slots) if domain.dimension > 1 else _LineKernels(part)


class _FromCounts:
    """Features of single columns: counts of cells say all."""

    def add(self, slots: slice, tile: Codes, cells: NDArray[np.intp], room: Room) -> None:
        """Add nothing: cells are counted for all maps together."""
        del slots, tile, cells, room


class _Columns(_FromCounts):
    def __init__(self, part: ColumnMap) -> None:
        self.tables = part.harmonics.cell_tables(CODE_CELLS)

    def finish(self, counts: Floats) -> Iterator[Floats]:
        yield np.hstack([counts[:, place] @ own for place, own in enumerate(self.tables)])


class _Thresholds(_FromCounts):
    def __init__(self, part: ThresholdMap) -> None:
        self.levels = part.domain.levels

    def finish(self, counts: Floats) -> Iterator[Floats]:
        yield np.hstack(
            [
                counts[:, place, :level] if level else np.cumsum(counts[:, place], axis=1)
                for place, level in enumerate(self.levels)
            ]
        )


class _Pairs:
    def __init__(self, part: PairMap, slots: Slots) -> None:
        tables = part.harmonics.cell_tables(CODE_CELLS)
        size = max(own.shape[1] for own in tables)
        rows = np.zeros((len(tables) * CODE_CELLS, size), dtype=np.float32)
        for place, own in enumerate(tables):
            rows[place * CODE_CELLS : (place + 1) * CODE_CELLS, : own.shape[1]] = own
        zero = rows[::CODE_CELLS].ravel()
        self.items, self.slots, self.zero = as_items(rows), slots, np.outer(zero, zero)
        self.sums = np.empty((len(slots.rows), *self.zero.shape), dtype=np.float32)
        self.places = part.product_places(size)

    def add(self, slots: slice, tile: Codes, cells: NDArray[np.intp], room: Room) -> None:
        del tile
        sums = self.sums[slots]
        found = room.taken("features", self.items, cells).view(np.float32)
        features = found.reshape(len(sums), -1, sums.shape[1])
        np.matmul(features.transpose(0, 2, 1), features, out=sums)

    def finish(self, counts: Floats) -> Iterator[Floats]:
        del counts
        sums = self.slots.by_bin(self.sums, self.zero)
        yield np.take(sums.reshape(len(sums), -1), self.places, axis=1)


class _Means:
    def __init__(self, part: MeanMap, slots: Slots) -> None:
        self.numeric, self.slots = part.domain.numeric, slots
        self.sums = np.empty((len(slots.rows), part.domain.dimension))

    def add(self, slots: slice, tile: Codes, cells: NDArray[np.intp], room: Room) -> None:
        del cells
        sums = self.sums[slots]
        numbers = room.of("numbers", (len(sums), len(tile) // len(sums), tile.shape[1]), np.float64)
        np.copyto(numbers.reshape(tile.shape), tile)
        np.matmul(np.ones(numbers.shape[1]), numbers, out=sums)

    def finish(self, counts: Floats) -> Iterator[Floats]:
        rows = counts[:, 0].sum(axis=1, keepdims=True)
        sums = self.slots.by_bin(self.sums, np.zeros(self.sums.shape[1]))
        yield sums[:, self.numeric] * 2.0**-CODE_BITS - rows / 2


class _Kernels:
    """Squared distances to the landmarks, by one matrix product of what is looked up."""

    def __init__(self, part: TabulatedKernels, slots: Slots | None) -> None:
        numeric, size = part.domain.numeric, part.domain.dimension
        self.part, self.landmarks, self.slots = part, part.landmarks.astype(np.float32), slots
        centres = np.rint((np.arange(CODE_CELLS) + 0.5) / CODE_CELLS * part.steps)
        rows = np.zeros((size, CODE_CELLS, 2), dtype=np.float32)  # a and a², 0 for a category
        rows[numeric] = np.stack([centres, np.square(centres)], axis=1)
        points = part.landmarks[:, numeric]
        right = np.zeros((size, 2, len(points)))
        right[numeric, 0], right[numeric, 1] = -2 * points.T, 1.0
        strides = len(part.domain.categorical) + 1
        self.right = (right.reshape(2 * size, -1) * strides).astype(np.float32)
        squares = (np.square(points).sum(axis=1) * strides).astype(np.int32)
        self.squares = np.tile(squares, _MULTIPLE)
        self.items, self.table = as_items(rows.reshape(-1, 2)), as_items(part.table)
        if slots is not None:
            shape = len(slots.rows), len(points) * part.table.shape[1]
            self.sums = np.empty(shape, dtype=np.float32)

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

    def add(self, slots: slice, tile: Codes, cells: NDArray[np.intp], room: Room) -> None:
        sums = self.sums[slots]
        values = self.values(tile, cells, room).reshape(len(sums), -1, sums.shape[1])
        np.matmul(np.ones(values.shape[1], dtype=np.float32), values, out=sums)

    def finish(self, counts: Floats) -> Iterator[Floats]:
        del counts
        assert self.slots is not None
        size = self.part.domain.dimension
        zeros = np.zeros((_MULTIPLE, size), dtype=np.uint16)
        zero = self.values(zeros, zeros + np.arange(size) * CODE_CELLS, Room())[0]
        return self.blocks(self.slots.by_bin(self.sums, zero))

    def blocks(self, sums: Floats) -> Iterator[Floats]:
        """Yield the sums of each kernel."""
        by_kernel = sums.reshape(len(sums), len(self.landmarks), -1)
        return (np.ascontiguousarray(by_kernel[:, :, i]) for i in range(self.part.blocks))


class _LineKernels(_FromCounts):
    """Of one column a row is its cell: counts of cells say all of kernels too."""

    def __init__(self, part: TabulatedKernels) -> None:
        self.kernels = _Kernels(part, None)

    def finish(self, counts: Floats) -> Iterator[Floats]:
        cells = np.arange(CODE_CELLS)[:, None]
        values = self.kernels.values((cells << 8).astype(np.uint16), cells, Room())
        return self.kernels.blocks(counts[:, 0] @ values.astype(np.float64))


def as_items(rows: NDArray[Any]) -> NDArray[np.void]:
    """Return a table with a row as one item: items of 8, 16 or 32 bytes are quick to look up."""
    return rows.view(np.dtype((np.void, rows.strides[0])))[:, 0]
