"""Kendall's and Spearman's rank correlation as integers, with their ties, each beside its width.

They depend on the order of values only, so they need no bounds. A tied pair counts as neither
concordant nor discordant, and tied values have midranks, as in SciPy. How many ties there are moves
the less the more the score moves, so that both are released with the noise of one.
Proofs: docs/proofs/correlation.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.ranks import Labels, Values, doubled_ranks, tie_cubes, tied_pairs

__all__ = [
    "TiedScore",
    "earlier_and_smaller",
    "kendall_score",
    "kendall_ties",
    "kendall_width",
    "spearman_ties",
    "spearman_width",
]

_LARGEST = 1 << 62  # sums of products in 64 bits stay below; blocks are added in Python's integers


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


@dataclass(frozen=True, slots=True)
class TiedScore:
    """A score and the numbers of its ties, and how far they move together.

    Attributes
    ----------
    values : tuple of int
        The score; for Kendall the tied pairs of x and of y; multiples of ``unit`` in the sums of
        t³ - t over sets of t equal values of x and of y.
    weights : tuple of float
        Public: the sum of weight · |movement| is at most ``sensitivity``.
    sensitivity : float
        For one replaced row.
    unit : int
        Public.
    """

    values: tuple[int, ...]
    weights: tuple[float, ...]
    sensitivity: float
    unit: int


def kendall_ties(x: Values, y: Values) -> TiedScore:
    """Return concordant minus discordant pairs, and ties.

    Notes
    -----
    **Sensitivity** 2 (n - 1), as without ties. A pair that is tied before or after moves the score
    by at most 1, which leaves 1 to its ties: tied pairs weigh 3/8 for each column, the sums of
    t³ - t, in multiples of n, 1/32.

    Examples
    --------
    >>> kendall_ties(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])).values
    (2, 1, 0, 2, 0)
    """
    n = len(x)
    first, second = (np.unique(side, return_inverse=True)[1] for side in (x, y))
    order = np.lexsort((second, first))
    place = np.empty(n, dtype=np.int64)
    place[np.argsort(second[order], kind="stable")] = np.arange(n)
    pairs = tied_pairs(x), tied_pairs(y)
    both = tied_pairs(first.astype(np.int64) * n + second)  # of whole rows
    # tied pairs of either column stand in order here
    concordant = earlier_and_smaller(place) - sum(pairs) + both
    untied = n * (n - 1) // 2 - sum(pairs) + both
    cubes = tie_cubes(x) // n, tie_cubes(y) // n
    weights = (1.0, 3 / 8, 3 / 8, 1 / 32, 1 / 32)
    return TiedScore((2 * concordant - untied, *pairs, *cubes), weights, 2.0 * (n - 1), n)


def spearman_ties(x: Values, y: Values) -> TiedScore:
    """Return the sum of products of twice the centred midranks, and ties.

    Spearman's correlation is that over the root of (n³ - n - Kx)(n³ - n - Ky)/9, K the sums of
    t³ - t over sets of t equal values.

    Notes
    -----
    **Sensitivity** 2n (n - 1) + 1/2 without ties, and less for a row that leaves or enters ties: a
    sum of t³ - t weighs 1/18, and its rounding to multiples of n/64 is added.

    Examples
    --------
    >>> spearman_ties(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])).values
    (6, 6, 0)
    """
    n = len(x)
    u, v = doubled_ranks(x) - (n + 1), doubled_ranks(y) - (n + 1)
    block = _block(n)
    parts = range(0, n, block)
    score = sum(int(u[start : start + block] @ v[start : start + block]) for start in parts)
    unit = max(1, n // 64)
    weight = unit / 18
    return TiedScore(
        (score, tie_cubes(x) // unit, tie_cubes(y) // unit),
        (1.0, weight, weight),
        2.0 * spearman_width(n) + 0.5 + (2 * weight if unit > 1 else 0.0),
        unit,
    )


def _block(n: int) -> int:
    """Return how many products of ranks, each below n², fit into 64 bits in any row order."""
    return max(1, _LARGEST // max(n, 1) ** 2)


def spearman_width(n: int) -> int:
    """Return how far half the score moves without ties: n (n - 1), from one corner to the next."""
    return n * (n - 1)
