"""Rank and sign statistics as integers, each beside its width: the most that it moves.

They depend on the order of values only, so they need no bounds. Ties are broken by ``labels``, a
permutation, and zeros get a sign from ``coins``: if both are drawn in secret, independently of the
data, the laws of :mod:`privatest.numerics.laws` hold exactly. Where they may be left out
midranks are used, and the widths hold both ways. Proofs: docs/proofs/rank-tests.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency
from privatest.core.secret_order import (
    KEYS_AT_ONCE,
    SecretBins,
    row_coins,
    secret_bins,
    secret_shares,
)
from privatest.data.encoding import Sample
from privatest.data.summaries import counts_of, summarise

Symmetry = Literal["ks", "kuiper"]
Values = NDArray[np.float64]
Labels = NDArray[np.integer[Any]]

_COINS = 1 << 20  # that are drawn at a time


def doubled_ranks(values: Values, labels: Labels | None = None) -> NDArray[np.int64]:
    """Return twice the ranks 1, 2, ...: integers, also for midranks.

    Parameters
    ----------
    values : ndarray
        One number for each record.
    labels : ndarray of int, optional
        A permutation of 0, 1, ...: the order of records of equal value; midranks without it.

    Examples
    --------
    >>> doubled_ranks(np.array([3.0, 1.0, 3.0]))
    array([5, 2, 5])
    >>> doubled_ranks(np.array([3.0, 1.0, 3.0]), np.array([2, 1, 0]))
    array([6, 2, 4])
    """
    if labels is None:
        _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
        last = np.cumsum(counts)
        middle: NDArray[np.int64] = (2 * last - counts + 1)[which]
        return middle
    by_label = np.empty(len(values), dtype=np.intp)
    by_label[labels] = np.arange(len(values))
    order = by_label[np.argsort(values[by_label], kind="stable")]  # twice as fast as lexsort
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = 2 * np.arange(1, len(values) + 1)
    return ranks


def in_order(flags: NDArray[np.bool_], values: Values, labels: Labels) -> NDArray[np.bool_]:
    """Return one flag for each record in the order of the values, and of equal ones by label.

    Values may come in any order, and are found faster where they come sorted.

    Examples
    --------
    >>> flags = np.array([True, False, False])
    >>> in_order(flags, np.array([3.0, 1.0, 3.0]), np.array([2, 1, 0]))
    array([False, False,  True])
    """
    block = np.searchsorted(np.sort(values), values)  # how many are smaller
    # block, label and flag in one number: numbers are sorted five times as fast as places
    keys = 2 * (block.astype(np.int64) * len(values) + labels) + flags
    keys.sort()
    return (keys & 1).astype(np.bool_)


# --- two samples and more --------------------------------------------------------------------


def mann_whitney(x: Values, y: Values, labels: Labels | None = None) -> int:
    """Return 2U - nm, where U counts the pairs with x above y; ``labels`` are of x, then y.

    Examples
    --------
    >>> mann_whitney(np.array([1.0, 5.0, 6.0]), np.array([2.0, 3.0]))
    2
    """
    n, m = len(x), len(y)
    if labels is None:
        sums = int(doubled_ranks(np.concatenate([x, y]))[:n].sum())
    else:
        sums = 2 * int(_places(x, y, labels).sum()) + 2 * n
    return sums - n * (n + 1) - n * m


def mann_whitney_width(n: int, m: int, adjacency: Adjacency) -> int:
    """Return how far 2U - nm moves: 2 max(n, m), or 2 (N - 1) for a record in each sample."""
    require_public_groups(adjacency)
    return 2 * max(n, m) if adjacency == "one" else 2 * (n + m - 1)


def kruskal_wallis(samples: Sequence[Values], labels: Labels | None = None) -> int:
    """Return the sum over groups of |2 R_i - n_i (N + 1)|, R_i the group's sum of ranks.

    Examples
    --------
    >>> kruskal_wallis([np.array([1.0, 2.0]), np.array([3.0]), np.array([4.0, 5.0])])
    12
    """
    sizes = np.array([len(sample) for sample in samples])
    ranks = doubled_ranks(np.concatenate(samples), labels)
    sums = np.add.reduceat(ranks, np.cumsum(sizes) - sizes)
    return int(np.abs(sums - sizes * (len(ranks) + 1)).sum())


def kruskal_wallis_width(sizes: Sequence[int], adjacency: Adjacency) -> int:
    """Return how far :func:`kruskal_wallis` moves: 4 (N - n_min) for one record.

    For a record in each of k groups 4 ((k - 1) N - k (k - 1)/2).
    """
    require_public_groups(adjacency)
    total, groups = sum(sizes), len(sizes)
    if adjacency == "one":
        return 4 * (total - min(sizes))
    return 4 * (groups - 1) * total - 2 * groups * (groups - 1)


def median_balance(x: Values, y: Values, labels: Labels) -> int:
    """Return N S - n h, where S counts records of x among the h = N - floor(N/2) largest.

    Ranks must be unique: with midranks a whole block of ties changes sides at once.

    Examples
    --------
    >>> median_balance(np.array([1.0, 5.0, 6.0]), np.array([2.0, 3.0]), np.arange(5))
    1
    """
    n, total = len(x), len(x) + len(y)
    top = total - total // 2
    above = int((_places(x, y, labels) >= total - top).sum())
    return total * above - n * top


def _places(x: Values, y: Values, labels: Labels) -> NDArray[np.intp]:
    """Return the places of x among all records in order, 0 being the lowest, in rising order."""
    of_x = in_order(np.arange(len(x) + len(y)) < len(x), np.concatenate([x, y]), labels)
    return np.flatnonzero(of_x)


def median_width(n: int, m: int, adjacency: Adjacency) -> int:
    """Return how far :func:`median_balance` moves: N, as the count S moves by at most 1."""
    require_public_groups(adjacency)
    return n + m


def require_public_groups(adjacency: Adjacency) -> None:
    """Refuse "row", where group sizes are private."""
    if adjacency == "row":
        raise ParameterError(
            "adjacency must be 'one' or 'both' here: the law of a rank statistic needs the group "
            "sizes, which 'row' keeps private. Use mannwhitneyu or mmd_test for private groups."
        )


# --- pairs -----------------------------------------------------------------------------------


def symmetry(z: Values, statistic: Symmetry, labels: Labels, coins: NDArray[np.bool_]) -> int:
    """Return n times the distance between the distributions of z and -z.

    The walk of signs in falling order of |z|, ties by label, zeros with the signs of their coins:
    its largest absolute value ("ks"), or its range together with 0 ("kuiper"). Without ties and
    zeros the walk at t is #{z >= t} - #{z <= -t}.

    Examples
    --------
    >>> z, coins = np.array([3.0, -2.0, 1.0, 0.5, 0.0]), np.array([True] * 5)
    >>> symmetry(z, "ks", np.arange(5), coins)
    3
    """
    positive = in_order(_positive(z, coins), -np.abs(z), labels)
    walk = np.cumsum(np.where(positive, 1, -1))
    high, low = max(0, int(walk.max())), min(0, int(walk.min()))
    return high - low if statistic == "kuiper" else max(high, -low)


def _positive(d: Values, coins: NDArray[np.bool_]) -> NDArray[np.bool_]:
    positive: NDArray[np.bool_] = (d > 0) | ((d == 0) & coins)
    return positive


def symmetry_width() -> int:
    """Return how far :func:`symmetry` moves: 2, as a sign may change."""
    return 2


def sign_counts(differences: Sample) -> tuple[int, int]:
    """Return how many differences are positive, and how many negative.

    Examples
    --------
    >>> sign_counts(Sample(np.array([[3.0], [-2.0], [5.0], [0.0]]), None))
    (2, 1)
    """
    (signs,) = summarise((differences, _Signs))
    return signs.positive, signs.negative


class _Signs:
    """The numbers of positive and of negative differences."""

    __slots__ = ("negative", "positive")

    def __init__(self) -> None:
        self.positive = self.negative = 0

    def update(self, rows: Values, start: int) -> None:
        del start
        self.positive += int((rows[:, 0] > 0).sum())
        self.negative += int((rows[:, 0] < 0).sum())

    def merge(self, other: _Signs) -> None:
        self.positive += other.positive
        self.negative += other.negative


def sign_balance(counts: tuple[int, int], rows: int, counted: int, noise: NoiseSource) -> int:
    """Return 2S - counted, S the number of positive ones among ``counted`` of the differences.

    If there are fewer differences other than 0, zeros are counted too, each with a secret coin;
    if there are more, a random choice of them is left out.

    Parameters
    ----------
    counts : pair of int
        From :func:`sign_counts`.
    rows : int
        Number of differences, zeros included.
    counted : int
        How many count, at most ``rows``.
    noise : NoiseSource
        Of the coins and the choice.

    Examples
    --------
    >>> from privatest.core.noise import SimulatedNoise
    >>> sign_balance((2, 1), 4, 3, SimulatedNoise(0))
    1
    """
    positive, negative = counts
    key = noise.key()
    zeros = max(0, counted - positive - negative)
    for start in range(0, rows, _COINS):  # all of them: time would tell the number of zeros
        coins = row_coins(key, start, min(start + _COINS, rows))
        positive += int(coins[: max(0, zeros - start)].sum())
    negative += zeros - (positive - counts[0])
    for draw in secret_shares(key, max(0, positive + negative - counted)):
        if draw * (positive + negative) < positive:
            positive -= 1
        else:
            negative -= 1
    return positive - negative


def sign_width() -> int:
    """Return how far :func:`sign_balance` moves for one ``counted``: 2, as S moves by at most 1."""
    return 2


def signed_rank(
    d: Values, labels: Labels | None = None, coins: NDArray[np.bool_] | None = None
) -> int:
    """Return 2W, W the sum of sign(d) rank(|d|), zeros ranked too (Pratt).

    A zero counts with the sign of its coin, or not at all without coins.

    Examples
    --------
    >>> signed_rank(np.array([3.0, -2.0, 0.0]))
    2
    """
    signs = np.sign(d) if coins is None else np.where(_positive(d, coins), 1, -1)
    return int((signs.astype(np.int64) * doubled_ranks(np.abs(d), labels)).sum())


def signed_midrank(d: Values, coins: NDArray[np.bool_]) -> int:
    """Return 2W with midranks for ties of |d|; zeros have the lowest ranks, one each, and coins.

    Examples
    --------
    >>> signed_midrank(np.array([3.0, -3.0, 0.0]), np.array([True, True, True]))
    2
    """
    sizes = np.abs(d)
    zeros = np.flatnonzero(d == 0)
    sizes[zeros] = -1.0 - np.arange(len(zeros))
    signs = np.where(_positive(d, coins), 1, -1)
    return int((signs * doubled_ranks(sizes)).sum())


def signed_rank_width(n: int) -> int:
    """Return how far :func:`signed_rank` moves: 4n, as the largest difference may change sign."""
    return 4 * n


def counted_first(d: Values, labels: Labels, counted: int) -> NDArray[np.intp]:
    """Return the places of ``counted`` differences: those other than 0 first, then by label.

    Examples
    --------
    >>> counted_first(np.array([0.0, -2.0, 0.0, 5.0]), np.arange(4), 3)
    array([1, 3, 0])
    """
    by_label = np.empty(len(d), dtype=np.intp)
    by_label[labels] = np.arange(len(d))
    order = np.argsort(d[by_label] == 0, kind="stable")
    return by_label[order][:counted]


def tie_cubes(values: Values) -> int:
    """Return the sum of t³ - t over sets of t equal values.

    Examples
    --------
    >>> tie_cubes(np.array([1.0, 2.0, 1.0, 1.0]))
    24
    """
    _, counts = np.unique(values, return_counts=True)
    # as many steps whatever the ties: squares in two parts, so that no sum leaves 64 bits
    high, low = np.divmod(counts * counts, 1 << 31)
    return (int(counts @ high) << 31) + int(counts @ low) - int(counts.sum())


def tied_pairs(values: Values | NDArray[np.signedinteger[Any]]) -> int:
    """Return the number of pairs of equal values.

    Examples
    --------
    >>> tied_pairs(np.array([1.0, 2.0, 1.0, 1.0]))
    3
    """
    _, counts = np.unique(values, return_counts=True)
    return int(counts @ (counts - 1)) // 2


def tie_cubes_width(n: int) -> int:
    """Return how far :func:`tie_cubes` of n values moves: 3n (n - 1), as t³ - t does."""
    return 3 * n * (n - 1)


# --- counts below the edges of a public grid, by a tree -----------------------------------------
#
# Cells are the leaves of a tree with ``base`` children at each node. A row is in one node of each
# level, so it moves as many counts as there are levels, not as there are edges.
# Proof: docs/proofs/quantiles.md.


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
    return counts_of(*samples, cells_of=partial(_cumulative_places, edges), size=len(edges) - 1)


def _cumulative_places(edges: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.intp]:
    # whatever the rounding, a value is in one cell: that is all that privacy needs
    values, last = rows[:, 0], len(edges) - 2
    half = edges[-1] / 2 - edges[0] / 2  # finite, unlike the whole
    near = (values / 2 - edges[0] / 2) * ((last + 1) / half)
    places = np.clip(near.astype(np.intp), 0, last)
    # next to an edge the result of the division may be one off
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


# --- sorting more rows than memory holds, in passes ---------------------------------------------
#
# A value has a key, a whole number of the same order. A pass counts the keys of each group by cells
# and finds the lowest and the highest key of each cell. The next pass takes some of the cells and
# cuts these finer; a last one collects the keys of those in which the order itself matters. Results
# do not depend on who reads which block. Proof: docs/proofs/value-cells.md.


CELLS = 1 << 20  # counted in a pass
_LAST = np.uint64(2**64 - 1)
_LOWEST = np.int64(-(2**63))

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]
Split = Callable[[Floats, int], tuple[Floats, ...]]
"""A block of rows and the number of its first to the values of each group; it travels."""


def keys_of(values: Floats) -> Keys:
    """Return whole numbers in the order of the values, equal where values are.

    Examples
    --------
    >>> keys = keys_of(np.array([-np.inf, -1.5, -0.0, 0.0, 5e-324, 2.0]))
    >>> np.diff(keys.astype(object)).tolist()[2:4]
    [0, 1]
    """
    bits = (values + 0.0).view(np.int64)  # -0.0 is 0.0
    turned: Keys = (bits ^ ((bits >> 63) | _LOWEST)).view(np.uint64)
    return turned


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class KeyCells:
    """Stretches of keys in their order, none of which is empty.

    Attributes
    ----------
    low, high : ndarray
        The lowest and the highest key of each.
    counts, before : ndarray
        Groups × cells: how many rows there are in each, and before it.
    """

    low: Keys
    high: Keys
    counts: Counts
    before: Counts

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.low)

    @property
    def rows(self) -> Counts:
        """Return how many rows of all groups each has."""
        total: Counts = self.counts.sum(axis=0)
        return total

    @property
    def tied(self) -> NDArray[np.bool_]:
        """Return whether all rows of a cell have one value."""
        return np.asarray(self.low == self.high)

    def take(self, which: Any) -> KeyCells:
        """Return some of them."""
        return KeyCells(
            self.low[which], self.high[which], self.counts[:, which], self.before[:, which]
        )

    def joined(self, other: KeyCells) -> KeyCells:
        """Return these and others, in their order."""
        both = KeyCells(
            np.append(self.low, other.low),
            np.append(self.high, other.high),
            np.hstack([self.counts, other.counts]),
            np.hstack([self.before, other.before]),
        )
        return both.take(np.argsort(both.low))


def whole(groups: int) -> KeyCells:
    """Return one cell with all keys, before anything is counted."""
    none = np.zeros((groups, 1), dtype=np.int64)
    return KeyCells(np.zeros(1, np.uint64), np.full(1, _LAST), none, none)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupedRows:
    """Values in groups: a sample for each, or one sample whose blocks are split.

    Parameters
    ----------
    samples : tuple of Sample
        The rows.
    groups : int
        Number of groups: of samples, unless there is one that is split.
    split : function, optional
        What makes groups of the rows of one sample.
    """

    samples: tuple[Sample, ...]
    groups: int
    split: Split | None = None

    def summaries(self, empty: Callable[..., Any]) -> list[Any]:
        """Go once through the rows; return a summary of each sample."""
        groups = self.groups // len(self.samples)
        made = partial(empty, self.split or _first_column, groups)
        return summarise(*((sample, made) for sample in self.samples))


def _first_column(rows: Floats, start: int) -> tuple[Floats, ...]:
    del start
    return (rows[:, 0],)


class GroupedCellCounter:
    """How many keys of each group are in each cell of some stretches; the extremes of a cell.

    Parameters
    ----------
    low, high : ndarray
        Stretches of keys, in order.
    each : int
        KeyCells that a stretch is cut in, of one length.
    split, groups
        What makes groups of a block, and their number.
    """

    __slots__ = ("counts", "each", "high", "highest", "low", "lowest", "split", "steps")

    def __init__(self, low: Keys, high: Keys, each: int, split: Split, groups: int) -> None:
        self.low, self.high, self.each, self.split = low, high, each, split
        self.steps = (high - low) // np.uint64(each) + np.uint64(1)
        cells = each * len(low)
        self.counts = np.zeros((groups, cells), dtype=np.int64)
        self.lowest, self.highest = np.full(cells, _LAST), np.zeros(cells, dtype=np.uint64)

    def update(self, rows: Floats, start: int) -> None:
        """Count the keys of a block."""
        for counts, values in zip(self.counts, self.split(rows, start), strict=True):
            keys, place = _inside(keys_of(np.sort(values)), self.low, self.high)
            if not len(keys):
                continue
            cells = place * self.each
            cells += ((keys - self.low[place]) // self.steps[place]).astype(np.intp)
            first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
            after = np.append(first[1:], len(cells))
            own = cells[first]
            counts[own] += after - first
            self.lowest[own] = np.minimum(self.lowest[own], keys[first])
            self.highest[own] = np.maximum(self.highest[own], keys[after - 1])

    def merge(self, other: GroupedCellCounter) -> None:
        """Add other blocks."""
        self.counts += other.counts
        np.minimum(self.lowest, other.lowest, out=self.lowest)
        np.maximum(self.highest, other.highest, out=self.highest)


class KeysInCells:
    """The keys of each group that are in some stretches, in no order."""

    __slots__ = ("high", "keys", "low", "split")

    def __init__(self, low: Keys, high: Keys, split: Split, groups: int) -> None:
        self.low, self.high, self.split = low, high, split
        self.keys: list[list[Keys]] = [[] for _ in range(groups)]

    def update(self, rows: Floats, start: int) -> None:
        """Keep those of a block."""
        for held, values in zip(self.keys, self.split(rows, start), strict=True):
            keys = keys_of(values)
            near = keys[(keys >= self.low[0]) & (keys <= self.high[-1])]
            held.append(_inside(near, self.low, self.high)[0])

    def merge(self, other: KeysInCells) -> None:
        """Add other blocks."""
        for held, more in zip(self.keys, other.keys, strict=True):
            held.extend(more)


def _inside(keys: Keys, low: Keys, high: Keys) -> tuple[Keys, NDArray[np.intp]]:
    """Return the keys that are in a stretch, and in which."""
    if len(low) == 1 and low[0] == 0 and high[0] == _LAST:  # all are, before anything is known
        return keys, np.zeros(len(keys), dtype=np.intp)
    place = np.searchsorted(low, keys, side="right") - 1
    inside = np.flatnonzero((place >= 0) & (keys <= high[place]))
    return keys[inside], place[inside]


def split_cells(rows: GroupedRows, cells: KeyCells) -> KeyCells:
    """Cut cells into finer ones, in one pass; those without rows are left out."""
    each = CELLS // len(cells)
    found = rows.summaries(partial(GroupedCellCounter, cells.low, cells.high, each))
    counts = np.concatenate([each.counts for each in found])
    low = np.minimum.reduce([each.lowest for each in found])
    high = np.maximum.reduce([each.highest for each in found])
    parent = np.arange(counts.shape[1]) // each
    until = np.cumsum(counts, axis=1) - counts
    before = until - until[:, parent * each] + cells.before[:, parent]
    used = counts.any(axis=0)
    return KeyCells(low[used], high[used], counts[:, used], before[:, used])


# --- the groups of rows in the order of their values, a slice at a time -------------------------
#
# Statistics of ranks and of distribution functions need only the group of each row. Equal rows need
# not be read again: a uniform order of so many of each group is drawn from counts.
# Proof: docs/proofs/value-cells.md.


HELD_ROWS = 1 << 26  # up to so many rows tests sort them in memory, which is quicker
SLICE_ROWS = 1 << 24  # that are put in order at a time

Groups = NDArray[np.int16]


def slices(cells: KeyCells) -> Iterator[KeyCells]:
    """Yield neighbouring cells with at most ``SLICE_ROWS`` rows together, or one with more."""
    ends = np.cumsum(cells.rows)
    first = 0
    while first < len(cells):
        past = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, past + SLICE_ROWS, side="right")))
        yield cells.take(slice(first, last))
        first = last


def groups_in_order(rows: GroupedRows, cells: KeyCells, noise: NoiseSource) -> Groups:
    """Return the group of each row of a slice, in the order of values, ties in a secret order."""
    tied, shared = cells.tied, (cells.counts > 0).sum(axis=0) > 1
    known = cells.take(tied | ~shared)  # all that matters of them is how many there are
    keys = [[np.repeat(known.low, counts)] for counts in known.counts]
    wanted = cells.take(~tied & shared)
    if len(wanted):
        found = rows.summaries(partial(KeysInCells, wanted.low, wanted.high))
        own = [part for each in found for part in each.keys]
        keys = [[*first, *more] for first, more in zip(keys, own, strict=True)]
    return _merged([np.sort(np.concatenate(parts)) for parts in keys], noise)


def _merged(keys: list[Keys], noise: NoiseSource) -> Groups:
    """Return the group of each of the keys in their order; those of a group come sorted."""
    total = sum(map(len, keys))
    groups, tied = np.empty(total, dtype=np.int16), np.zeros(total, dtype=np.bool_)
    values = []  # of rows that are equal to one of another group
    for own, mine in enumerate(keys):
        place, shared = np.arange(len(mine)), np.zeros(len(mine), dtype=np.bool_)
        for other, theirs in enumerate(keys):
            if other == own or not len(theirs):
                continue
            # equal keys in the order of their groups, before they are shuffled
            found = np.searchsorted(theirs, mine, side="right" if other < own else "left")
            place += found
            near = found - 1 if other < own else np.minimum(found, len(theirs) - 1)
            shared |= theirs[near] == mine
        groups[place], tied[place] = own, shared
        values.append(mine[shared])
    if tied.any():
        ordered = np.sort(np.concatenate(values))
        groups[tied] = _shuffled(ordered, groups[tied].astype(np.int64), noise)
    return groups


def _shuffled(keys: Keys, groups: Counts, noise: NoiseSource) -> Counts:
    """Put the groups of equal keys in a uniform order; equal keys are next to each other."""
    runs = np.cumsum(np.append(False, keys[1:] != keys[:-1]))
    count = int(groups.max()) + 1
    # run, label and group in one number: sorted five times as fast as places
    drawn = (runs * len(keys) + noise.permutation(len(keys))) * count + groups
    drawn.sort()
    shuffled: Counts = drawn % count
    return shuffled


def tied_groups(counts: Counts, noise: NoiseSource) -> Iterator[Groups]:
    """Yield the groups of rows of one value in a uniform order, some at a time.

    Those of many rows are cut into stretches first: how many of each group are in each follows
    from secret keys of as many rows.
    """
    total = int(counts.sum())
    if total <= SLICE_ROWS:
        yield _drawn(counts, noise)
        return
    sizes = [SLICE_ROWS] * (total // SLICE_ROWS)
    sizes += [total % SLICE_ROWS] if total % SLICE_ROWS else []
    bins = secret_bins(sizes, noise)
    ends = [0, *np.cumsum(counts).tolist()]
    of_bins = np.array([_by_bin(bins, start, stop) for start, stop in pairwise(ends)])
    for own in of_bins.T:
        yield _drawn(own, noise)


def _drawn(counts: Counts, noise: NoiseSource) -> Groups:
    groups = np.repeat(np.arange(len(counts), dtype=np.int16), counts)
    return groups[noise.permutation(len(groups))]


def _by_bin(bins: SecretBins, start: int, stop: int) -> Counts:
    """Count rows ``start`` to ``stop`` by bin."""
    counts = np.zeros(bins.count, dtype=np.int64)
    for first in range(start - start % KEYS_AT_ONCE, stop, KEYS_AT_ONCE):
        found = bins.of_rows(max(first, start), min(first + KEYS_AT_ONCE, stop))
        counts += np.bincount(found, minlength=bins.count)
    return counts


def kendall_score(x: Values, y: Values, labels_x: Labels, labels_y: Labels) -> int:
    """Return concordant minus discordant pairs, ties broken by the labels.

    Examples
    --------
    >>> x, y, labels = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), np.arange(3)
    >>> kendall_score(x, y, labels, labels)
    1
    """
    n = len(x)
    in_order = np.empty(n, dtype=np.int64)
    in_order[doubled_ranks(x, labels_x) // 2 - 1] = doubled_ranks(y, labels_y) // 2 - 1
    return 2 * earlier_and_smaller(in_order) - n * (n - 1) // 2


def earlier_and_smaller(permutation: NDArray[np.int64]) -> int:
    """Return the number of pairs of a permutation of 0, 1, ... that stand in order.

    The places are listed by value; then, one bit of the place after the other, each list is cut
    into its lower and its upper half of places. A place of the upper half is after all of the
    lower half, and after each cut the lists are in order of value again: n log2(n) steps.
    """
    n = len(permutation)
    bits = max(n - 1, 1).bit_length()
    size = 1 << bits
    places: NDArray[np.signedinteger[Any]]
    places = np.arange(size, dtype=np.int32 if bits < 31 else np.int64)  # filled up: see below
    places[permutation] = np.arange(n)
    found = 0
    for bit in reversed(range(bits)):
        upper = (places & (1 << bit)) != 0
        # before the k-th upper place in all lists are as many lower ones as its index minus k;
        # lists have half of each kind, so those of earlier lists are known
        lists, half = size >> (bit + 1), 1 << bit
        found += int(np.flatnonzero(upper).sum()) - _sum_to(size // 2 - 1)
        found -= half * half * _sum_to(lists - 1)
        halves = places[~upper].reshape(lists, half), places[upper].reshape(lists, half)
        places = np.concatenate(halves, axis=1).reshape(-1)
    added = size - n  # each of these is after all others, and larger
    return found - added * n - _sum_to(added - 1)


def _sum_to(last: int) -> int:
    return last * (last + 1) // 2


def kendall_width(n: int) -> int:
    """Return how far :func:`kendall_score` moves: 2 (n - 1), all pairs of one row."""
    return 2 * (n - 1)
