"""Kendall's and Spearman's rank correlation as integers, each beside its width.

They depend on the order of values only, so they need no bounds. Ties are broken by labels, a
permutation for each column: drawn in secret, independently of the data, they make the laws of
:mod:`privatest.laws.rank_correlation` exact. Proofs: docs/proofs/correlation.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.ranks import Labels, Values, doubled_ranks

__all__ = [
    "earlier_and_smaller",
    "kendall_score",
    "kendall_width",
    "spearman_score",
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


def spearman_score(x: Values, y: Values, labels_x: Labels, labels_y: Labels) -> int:
    """Return 2 ΣRQ - n (n + 1)²/2, R and Q the ranks, ties broken by the labels.

    Spearman's correlation is 6/(n (n² - 1)) times that.

    Examples
    --------
    >>> x, y, labels = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), np.arange(3)
    >>> spearman_score(x, y, labels, labels)
    2
    """
    centre = len(x) + 1
    u, v = doubled_ranks(x, labels_x) - centre, doubled_ranks(y, labels_y) - centre
    block = _block(len(u))
    parts = range(0, len(u), block)
    return sum(int(u[start : start + block] @ v[start : start + block]) for start in parts) // 2


def _block(n: int) -> int:
    """Return how many products of ranks, each below n², fit into 64 bits in any row order."""
    return max(1, _LARGEST // max(n, 1) ** 2)


def spearman_width(n: int) -> int:
    """Return how far :func:`spearman_score` moves: n (n - 1), from one corner to the next."""
    return n * (n - 1)
