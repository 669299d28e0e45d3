"""Distances on a line from cells, in one pass: rows by secret bin and cell, wherever they are.

Bins of a sample, or of pairs with two labels, come from a secret order that nobody holds; counts
by bin and cell are whole numbers, and all that is kept.
Proofs: docs/proofs/line-cells.md and docs/proofs/secret-order.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.secret_order import SecretBins, secret_bins, secret_pair_bins
from privatest.data.samples import TwoSamples
from privatest.engines.summaries import summarise
from privatest.statistics.bins import BinLayout, rows_per_bin
from privatest.statistics.cells import PlacedLine, permuted_tables
from privatest.statistics.pair_swaps import pair_bin_sizes, swap_signs

__all__ = ["BinnedCells", "Place", "permuted_bins_pass", "permuted_swaps_pass"]

Floats = NDArray[np.float64]
Place = Callable[[Floats], PlacedLine]
"""Rows to their cells on a line, each row by itself; it travels to other processes."""


class BinnedCells:
    """How many rows of each bin are in each cell of a line, and the sums of areas if it has them.

    Parameters
    ----------
    place : function
        Rows to cells.
    bins : SecretBins
        The bin of each row.
    """

    __slots__ = ("bins", "place", "table")

    def __init__(self, place: Place, bins: SecretBins) -> None:
        self.place, self.bins = place, bins
        self.table = np.zeros((bins.count, place(np.empty((0, 1))).width), dtype=np.int64)

    def update(self, rows: Floats, start: int) -> None:
        """Count a block."""
        line, counts = self.place(rows), self.table.reshape(-1)
        first = self.bins.of_rows(start, start + len(rows)) * line.width + line.codes
        np.add.at(counts, first, 1)
        if line.inside is not None:
            np.add.at(counts, first + line.count, line.inside)

    def merge(self, other: BinnedCells) -> None:
        """Add other blocks."""
        self.table += other.table


def _tables(samples: TwoSamples, bins: tuple[SecretBins, SecretBins], place: Place) -> list[Floats]:
    """Go once through both samples; return bins × cells of each."""
    made = (partial(BinnedCells, place, own) for own in bins)
    found = summarise(*zip(samples, made, strict=True))
    return [each.table.astype(np.float64) for each in found]  # exact up to 2^53


def permuted_bins_pass(
    samples: TwoSamples,
    place: Place,
    max_bins: int,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> tuple[Floats, Floats]:
    """Return the distance of public groups (1 × permutations), and a bound on its error."""
    n, m = map(len, samples)
    layout = BinLayout(n, m, rows_per_bin(n, m, None, max_bins))
    bins = [
        secret_bins([layout.size] * count + [len(sample) - count * layout.size], noise)
        for sample, count in zip(samples, layout.counts, strict=True)
    ]
    x, y = _tables(samples, (bins[0], bins[1]), place)
    table = np.vstack([x[:-1], y[:-1], x[-1:], y[-1:]])
    line = place(np.empty((0, 1)))
    found = permuted_tables(line, table, layout.membership(n_permutations, rng), n, m)
    return found[None, :], np.array([line.rounding])


def permuted_swaps_pass(
    samples: TwoSamples,
    place: Place,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> tuple[Floats, Floats]:
    """Return T of private groups whose labels are swapped in pairs, and a bound on its error.

    All rows are counted: how many have weight is private, and time would tell.
    """
    total = len(samples.x) + len(samples.y)
    sizes = pair_bin_sizes(total)
    bins = secret_pair_bins(len(samples.x), len(samples.y), [*sizes, total % 2], noise)
    x, y = _tables(samples, bins, place)
    mixed = slice(0, 2 * len(sizes), 2)  # bins of rows whose partner has the other label
    line = place(np.empty((0, 1)))
    signs = swap_signs(len(sizes), n_permutations, rng)
    heights = line.heights(signs @ (x[mixed] - y[mixed]))
    return line.distance(heights / total)[None, :], np.array([line.rounding])
