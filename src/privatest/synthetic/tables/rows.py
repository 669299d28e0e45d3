"""From a fitted mixture to rows: post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.tables.cells import Cells
from privatest.synthetic.tables.mixture import Mixture
from privatest.synthetic.tables.shapes import Column, cell_shares

__all__ = ["cell_codes", "group_codes", "row_values"]


def group_codes(mixture: Mixture, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return ``count`` rows of the mixture, as groups of cells in each column.

    Components have equal numbers of rows, up to one. Within a component each column's groups
    have their expected numbers, up to one, in random order.
    """
    shares, starts = mixture.shares.astype(np.float64), mixture.starts
    components = rng.permutation(len(shares))
    sizes = np.diff(np.floor(np.linspace(0, count, len(shares) + 1) + 1e-9)).astype(np.intp)
    owner = np.repeat(np.arange(len(shares)), sizes)
    rows = np.empty((count, len(starts) - 1), dtype=np.intp)
    for column, (first, last) in enumerate(pairwise(starts)):
        block = shares[components, first:last]
        block *= (sizes / block.sum(axis=1))[:, None]
        # systematic rounding, from starts that are spread evenly: errors do not add up
        begin = (rng.permutation(len(shares)) + rng.random(len(shares))) / len(shares)
        ends = np.floor(np.cumsum(block, axis=1) + begin[:, None])
        ends[:, -1] = sizes
        numbers = np.diff(np.minimum(ends, ends[:, -1:]), prepend=0).astype(np.intp)
        groups = np.repeat(np.tile(np.arange(last - first), len(shares)), numbers.ravel())
        # a random order within each component
        rows[:, column] = groups[np.lexsort((rng.random(count), owner))]
    order: NDArray[np.intp] = rng.permutation(count)
    return rows[order]


def cell_codes(
    rows: NDArray[np.intp], columns: Sequence[Column], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return a cell for each row's group, by what was measured of each column."""
    found = np.empty_like(rows)
    for place, column in enumerate(columns):
        groups = rows[:, place]
        held = np.bincount(groups, minlength=int(column.groups.max()) + 1)
        shares = cell_shares(column, held / len(rows))
        for group in np.flatnonzero(held):
            members = np.flatnonzero(column.groups == group)
            ends = np.cumsum(shares[members])
            even = (rng.permutation(held[group]) + rng.random()) / held[group]
            chosen = np.searchsorted(ends[:-1], even * ends[-1], side="right")
            found[groups == group, place] = members[chosen]
    return found


def row_values(
    codes: NDArray[np.intp], cells: Sequence[Cells], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return values for the cells, in the columns' own units; categories as 0, 1, ..."""
    values = np.empty(codes.shape)
    for column, own in enumerate(cells):
        shares = np.bincount(codes[:, column], minlength=len(own)) / len(codes)
        values[:, column] = own.values(codes[:, column], shares, rng)
    return values
