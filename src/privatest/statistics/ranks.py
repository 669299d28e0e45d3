"""Rank and sign statistics as integers, each beside its width: the most that it moves.

They depend on the order of values only, so they need no bounds. Ties are broken by ``labels``, a
permutation, and zeros get a sign from ``coins``: if both are drawn in secret, independently of the
data, the laws of :mod:`privatest.laws` hold exactly. Where they may be left out midranks are used,
and the widths hold both ways. Proofs: docs/proofs/rank-tests.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency
from privatest.core.secret_order import row_coins, secret_shares
from privatest.data.samples import Sample
from privatest.engines.summaries import summarise

__all__ = [
    "Symmetry",
    "counted_first",
    "doubled_ranks",
    "in_order",
    "kruskal_wallis",
    "kruskal_wallis_width",
    "mann_whitney",
    "mann_whitney_width",
    "median_balance",
    "median_width",
    "sign_balance",
    "sign_counts",
    "sign_width",
    "signed_midrank",
    "signed_rank",
    "signed_rank_width",
    "symmetry",
    "symmetry_width",
    "tie_cubes",
    "tie_cubes_width",
    "tied_pairs",
]

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
    _refuse_private_groups(adjacency)
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
    _refuse_private_groups(adjacency)
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
    _refuse_private_groups(adjacency)
    return n + m


def _refuse_private_groups(adjacency: Adjacency) -> None:
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
    (found,) = summarise((differences, _Signs))
    return found.positive, found.negative


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
