"""A family of feature maps for many rows: two bytes a column are all that is kept of a row.

The first byte is the cell of a number among 256, or a category; both together say where a number
lies to 2^-16 of its bounds. All features are looked up by cells, and all sums over bins come from
one pass over the codes: counts of cells (single columns and thresholds), one product of matrices
(pairs), distances to public points (kernels), and sums of codes (means). All of it is exact.
Proofs: docs/proofs/exact-sums.md and docs/proofs/portfolio.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.coded_sums import (
    CODE_BITS,
    CODE_CELLS,
    CODE_FINE,
    Cells,
    Codes,
    Tile,
    adder_of,
    cell_starts,
)
from privatest.kernels.features import Together
from privatest.kernels.slots import Room, as_items, flat, slots_of

__all__ = ["CODE_BITS", "CODE_CELLS", "CODE_FINE", "CodedMaps", "CodedSums", "has_codes"]

Floats = NDArray[np.float64]

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
