"""A family of feature maps for many rows: two bytes a column are all that is kept of a row.

The first byte is the cell of a number among 256, or a category; both together say where a number
lies to 2^-16 of its bounds. All features are looked up by cells, and all sums over bins come from
one pass over the codes: counts of cells (single columns and thresholds), one product of matrices
(pairs), distances to public points (kernels), and sums of codes (means). All of it is exact.
Proofs: docs/proofs/exact-sums.md and docs/proofs/portfolio.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.coded_sums import (
    CODE_BITS,
    CODE_CELLS,
    CODE_FINE,
    Adder,
    Cells,
    Codes,
    Room,
    adder_of,
    as_items,
    cell_starts,
    flat,
    slots_of,
)
from privatest.kernels.features import Together

__all__ = ["CODE_BITS", "CODE_CELLS", "CODE_FINE", "CodedMaps", "has_codes"]

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
        numeric = self.domain.numeric
        codes = np.empty(rows.shape, dtype=np.uint16)
        whole = np.empty(rows.shape, dtype=np.int32)
        np.multiply(rows, 1 << CODE_BITS, out=whole, casting="unsafe")
        np.minimum(whole, (1 << CODE_BITS) - 1, out=codes, casting="unsafe")
        for column in self.domain.categorical if len(numeric) < rows.shape[1] else ():
            codes[:, column] = rows[:, column].astype(np.uint16) << 8
        return codes

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield, for each block, the sums of raw features over the rows between edges."""
        if weights is None:
            return self.binned_codes([self.codes(x)], np.arange(len(x)), edges)
        return Together.binned(self, x, edges, weights)

    def binned_codes(
        self, codes: Sequence[Codes], order: NDArray[np.intp], edges: NDArray[np.intp]
    ) -> Iterator[Floats]:
        """Yield the same from codes, whose rows are between edges in this order."""
        width = codes[0].shape[1]
        held = np.concatenate([*codes, np.zeros((1, width), dtype=np.uint16)])
        slots = slots_of(order, edges)
        whole_rows, starts = as_items(held), cell_starts(width)
        adders: list[Adder] = [Cells(width, slots)]
        adders += [adder_of(part, self.domain, slots) for part in self.parts]
        room = Room()
        for first in range(0, len(slots.rows), slots.at_once):
            chosen = slice(first, first + slots.at_once)
            rows = slots.rows[chosen].ravel()
            tile = room.taken("tile", whole_rows, rows).view(np.uint16).reshape(len(rows), width)
            cells = room.of("cells", tile.shape, np.uint16)
            np.right_shift(tile, 8, out=cells)
            long_rows = flat(cells, len(starts))
            long_rows += starts
            places = room.of("places", tile.shape, np.intp)
            np.copyto(places, cells)
            for adder in adders:
                adder.add(chosen, tile, places, room)
        (counts,) = adders[0].finish(np.empty(0))
        for adder in adders[1:]:
            yield from adder.finish(counts.reshape(-1, width, CODE_CELLS))
