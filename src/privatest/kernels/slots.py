"""Rows of bins in slots of one length, so that many go through a call together.

Threads are worth it only where a call takes long, and where memory is used again: threads that
fetch it anew wait for each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MULTIPLE", "Room", "Slots", "as_items", "flat", "slots_of"]

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
