"""How many lie below each edge of a public grid: counts in the nodes of a tree.

Cells are the leaves of a tree with ``base`` children at each node. A row is in one node of each
level, so it moves as many counts as there are levels, not as there are edges.
Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import Adjacency
from privatest.data.samples import Sample
from privatest.engines.sums import counts_of
from privatest.statistics.ranks import mann_whitney_width

__all__ = [
    "Tree",
    "cell_counts",
    "even_tree",
    "pair_counts",
    "pairs_of_a_person",
    "tree_counts",
    "tree_of",
    "tree_width",
]

_DEEPEST = 8

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tree:
    """A public tree over cells.

    Attributes
    ----------
    cells : int
        How many cells there are; the tree has base^levels leaves, and those beyond are empty.
    base, levels : int
        Children of each node, and levels below the root, whose count is public.
    even : bool
        Whether the noise below every inner edge shall have the same law, so that it tells nothing
        about which edge it is. Only where there is one level.
    """

    cells: int
    base: int
    levels: int
    even: bool = False


def tree_of(cells: int) -> Tree:
    """Return the tree whose noise below an edge is smallest: levels³ · base is least.

    Examples
    --------
    >>> tree_of(4096)
    Tree(cells=4096, base=16, levels=3, even=False)
    """

    def base(levels: int) -> int:
        least: int = max(2, round(cells ** (1 / levels)) - 1)
        while least**levels < cells:
            least += 1
        return least

    levels = min(range(1, _DEEPEST), key=lambda deep: deep**3 * base(deep))
    return Tree(cells, base(levels), levels)


def even_tree(cells: int) -> Tree:
    """Return one level of cells, with the same law of noise below every inner edge."""
    return Tree(cells, cells, 1, even=True)


def cell_counts(*samples: Sample, edges: NDArray[np.float64]) -> list[Counts]:
    """Count each sample's values in equal cells; the last has its upper edge too.

    ``edges`` are equally spaced, but for rounding; values lie between the first and the last.
    """
    return counts_of(*samples, cells_of=partial(_places, edges), size=len(edges) - 1)


def _places(edges: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.intp]:
    # whatever the rounding, a value is in one cell: that is all that privacy needs
    values, last = rows[:, 0], len(edges) - 2
    half = edges[-1] / 2 - edges[0] / 2  # finite, unlike the whole
    near = (values / 2 - edges[0] / 2) * ((last + 1) / half)
    places = np.clip(near.astype(np.intp), 0, last)
    # found by division: next to an edge it may be one off
    places += values >= edges[places + 1]
    places -= values < edges[places]
    return np.asarray(np.clip(places, 0, last))


def pair_counts(first: Counts, second: Counts) -> Counts:
    """Count pairs of a value of each sample by the difference of their cells.

    ``first`` and ``second`` count both samples in the same M cells. Entry d of 2M - 1 is the number
    of pairs whose cells differ by d - (M - 1): exact integers, by parts that floats can hold.
    """
    total = np.zeros(len(first) + len(second) - 1, dtype=np.int64)
    # parts below 2^11: sums of products of M of them stay far below what an FFT of doubles rounds
    for power, part in _parts(first):
        for other_power, other in _parts(second):
            total += _convolved(part, other[::-1]) << (power + other_power)
    return total


def _parts(counts: Counts) -> list[tuple[int, Counts]]:
    """Cut counts into 11 bits each; how often depends on their total, which is public."""
    powers = range(0, max(int(counts.sum()).bit_length(), 1), 11)
    return [(power, (counts >> power) & 0x7FF) for power in powers]


def _convolved(first: Counts, second: Counts) -> Counts:
    size = len(first) + len(second) - 1
    padded = 1 << (size - 1).bit_length()
    product = np.fft.rfft(first, padded) * np.fft.rfft(second, padded)
    return np.rint(np.fft.irfft(product, padded)[:size]).astype(np.int64)


def pairs_of_a_person(n: int, m: int, adjacency: Adjacency) -> int:
    """Return how many pairs a record is in: max(n, m), or n + m - 1 for one in each sample."""
    return mann_whitney_width(n, m, adjacency) // 2


def tree_counts(counts: Counts, tree: Tree) -> Counts:
    """Return the counts of all nodes, level by level from the top; the root is left out.

    Examples
    --------
    >>> tree_counts(np.array([3, 0, 1, 2]), Tree(4, 2, 2))
    array([3, 3, 3, 0, 1, 2])
    """
    leaves = np.zeros(tree.base**tree.levels, dtype=np.int64)
    leaves[: tree.cells] = counts
    parts = [leaves.reshape(tree.base**level, -1).sum(axis=1) for level in range(1, tree.levels)]
    return np.concatenate([*parts, leaves])


def tree_width(tree: Tree, moved: int) -> int:
    """Return how far :func:`tree_counts` moves in the l1 norm: 2 · levels for each moved count.

    ``moved`` is how many of the things that are counted one person has: rows, or pairs.
    """
    return 2 * tree.levels * moved
