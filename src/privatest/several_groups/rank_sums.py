"""Rank sums of several groups under the null hypothesis, drawn fast for many rows.

Every division of the ranks 1 ... N among groups is equally likely. Few ranks are permuted. Many
are cut into blocks: how many ranks of a block each group has is drawn exactly, and what the places
within blocks add, 1/4096 of the variance, is drawn from the normal law with the same covariance.
How near that is: docs/proofs/rank-tests.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError

__all__ = ["by_blocks", "check_drawable", "null_rank_sums"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LEVELS = 6  # halvings: 64 blocks
_FEW_RANKS = 2000  # up to here, and for a group below 64 ranks, permutations are exact
_AT_ONCE = 4_000_000  # numbers in memory
_DRAWABLE = 10**9  # NumPy draws hypergeometric numbers of fewer rows of one kind


def by_blocks(sizes: Sequence[int]) -> bool:
    """Whether rank sums of groups of these sizes are drawn by blocks."""
    return sum(sizes) > _FEW_RANKS and min(sizes) >= 1 << _LEVELS


def check_drawable(sizes: Sequence[int]) -> None:
    """Refuse public sizes of three groups or more whose law cannot be drawn."""
    if len(sizes) > 2 and max(*sizes[:-1], sum(sizes[1:])) >= _DRAWABLE:
        raise DataError(
            f"kruskal of three samples or more must have fewer than {_DRAWABLE:,} rows in the "
            "first sample, and in all others together: no law of more can be drawn. Compare two "
            "samples at a time, with kruskal or mannwhitneyu, at a share of epsilon each."
        )


def null_rank_sums(sizes: Sequence[int], count: int, rng: np.random.Generator) -> Floats:
    """Draw 2 R - n (N + 1), R the rank sum of a group of n among N: a row for each draw."""
    blocks = by_blocks(sizes)
    kept = (len(sizes) << _LEVELS) if blocks else sum(sizes)
    rows = max(1, _AT_ONCE // kept)
    draw = _by_blocks if blocks else _by_permutation
    parts = [
        draw(np.array(sizes), min(rows, count - start), rng) for start in range(0, count, rows)
    ]
    return np.concatenate(parts)


def _by_permutation(sizes: Integers, count: int, rng: np.random.Generator) -> Floats:
    total = int(sizes.sum())
    ranks = np.arange(2, 2 * total + 1, 2, dtype=np.int64)
    shuffled = rng.permuted(np.tile(ranks, (count, 1)), axis=1)
    sums = np.add.reduceat(shuffled, np.cumsum(sizes) - sizes, axis=1)
    return np.asarray(sums - sizes * (total + 1), dtype=np.float64)


def _by_blocks(sizes: Integers, count: int, rng: np.random.Generator) -> Floats:
    total = int(sizes.sum())
    counts = np.tile(sizes, (count, 1, 1))  # draws, blocks, groups
    lengths = np.array([total])
    for _ in range(_LEVELS):
        lower = lengths // 2
        first = _halves(counts, lengths, lower, rng)
        counts = np.stack([first, counts - first], axis=2).reshape(count, -1, len(sizes))
        lengths = np.stack([lower, lengths - lower], axis=1).ravel()
    starts = np.cumsum(lengths) - lengths
    between = np.einsum("dbg,b->dg", counts, 2 * starts + lengths + 1) - sizes * (total + 1)
    within: Floats = between + 2 * _places(counts.astype(np.float64), lengths, rng)
    return within


def _halves(
    counts: Integers, lengths: Integers, lower: Integers, rng: np.random.Generator
) -> Integers:
    """Draw how many of each group are in the lower part of each block: hypergeometric."""
    others = np.broadcast_to(lengths, counts.shape[:2]).copy()
    left = np.broadcast_to(lower, counts.shape[:2]).copy()
    found = np.empty_like(counts)
    for group in range(counts.shape[2] - 1):
        own = counts[:, :, group]
        others -= own
        found[:, :, group] = rng.hypergeometric(own, others, left)
        left -= found[:, :, group]
    found[:, :, -1] = left
    return found


def _places(counts: Floats, lengths: Integers, rng: np.random.Generator) -> Floats:
    """Draw sums of places within blocks, centred; given the counts blocks are independent."""
    spread = (lengths + 1) / 12
    covariance = -np.einsum("b,dbg,dbh->dgh", spread, counts, counts)
    own = np.arange(counts.shape[2])
    covariance[:, own, own] += np.einsum("b,dbg->dg", spread * lengths, counts)
    # sums of all groups are 0: the last follows from the others
    kept = covariance[:, :-1, :-1]
    root = np.linalg.cholesky(
        kept + 1e-9 * np.einsum("dgg->d", kept)[:, None, None] * np.eye(len(own) - 1)
    )
    drawn = (root @ rng.standard_normal((*kept.shape[:2], 1)))[..., 0]
    return np.concatenate([drawn, -drawn.sum(axis=1, keepdims=True)], axis=1)
