"""The law of noisy counts below the edges of a grid, each a sum of noisy counts of nodes.

A count below an edge is a sum over levels: nodes to the left of the path to the edge, or the
parent less those to the right, or half of each. So its noise is a sum of discrete Laplace numbers
with weights 1 and 1/2, and its law is known exactly. Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.laws.law import Law
from privatest.statistics.cumulative import Tree

__all__ = ["Paths", "cumulated", "noisy_tails", "paths"]

_SIZE = 1 << 14  # points at which a wide law is computed
_ROUNDING = 1e-9  # added to tails, which are never too small
_COARSE = 1e-4  # the same where the lattice is not followed: docs/proofs/quantiles.md

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """How the count below each edge is put together, edges 0 ... cells; public.

    Attributes
    ----------
    shares : ndarray of shape (levels, cells + 1)
        The weight of nodes to the left of the path; those to the right have 1 minus it.
    ones, halves : ndarray of int
        How many noisy counts enter with weight ±1 and ±1/2.
    """

    shares: Floats
    ones: Integers
    halves: Integers


@lru_cache(maxsize=32)
def paths(tree: Tree) -> Paths:
    """Choose, for each edge, the sum with the least noise; by public numbers only.

    Nodes left of the path weigh a, those right of it -(1 - a), and the path's own node at a level
    a - a', with a' the share of the next level, or 1 below the last. An even tree has a = 1/2 at
    every edge: then all nodes weigh 1/2, whichever edge it is.
    """
    digits = _digits(tree)
    best = np.full(digits.shape[1], np.inf)
    shares = np.ones(digits.shape)
    ones, halves = (np.zeros(digits.shape[1], dtype=np.int64) for _ in range(2))
    for choice in itertools.product((0.5,) if tree.even else (1.0, 0.5, 0.0), repeat=tree.levels):
        weights = _weights(digits, choice, tree.base)
        trial = {size: sum(number for w, number in weights if w == size) for size in (1.0, 0.5)}
        variance = trial[1.0] + trial[0.5] / 4
        better = np.broadcast_to(variance < best, best.shape)
        best = np.where(better, variance, best)
        shares[:, better] = np.array(choice)[:, None]
        ones = np.where(better, trial[1.0], ones)
        halves = np.where(better, trial[0.5], halves)
    for edge in (0, -1):  # none, and all there are: public numbers
        ones[edge] = halves[edge] = 0
    return Paths(shares, ones.astype(np.int64), halves.astype(np.int64))


def _digits(tree: Tree) -> Integers:
    """Return which child the path to each edge takes at each level."""
    edges = np.arange(tree.cells + 1) % tree.base**tree.levels  # the last is taken from the total
    powers = tree.base ** np.arange(tree.levels - 1, -1, -1)
    digits: Integers = (edges // powers[:, None]) % tree.base
    return digits


def _weights(
    digits: Integers, choice: tuple[float, ...], base: int
) -> list[tuple[float, Integers]]:
    """Return the sizes of weights, and how many noisy counts have each, for every edge."""
    found = []
    for level, share in enumerate(choice):
        following = choice[level + 1] if level + 1 < len(choice) else 1.0
        left = digits[level]
        found += [(share, left), (1 - share, base - 1 - left)]
        found.append((abs(share - following), np.ones_like(left)))
    return found


def cumulated(nodes: Floats, tree: Tree, total: float) -> Floats:
    """Return the counts below edges 0 ... cells from those of all nodes, noisy or not."""
    digits, chosen = _digits(tree), paths(tree).shares
    below = np.zeros(tree.cells + 1)
    start, parent = 0, np.zeros(tree.cells + 1, dtype=np.int64)
    whole = np.full(tree.cells + 1, float(total))
    for level in range(tree.levels):
        size = tree.base ** (level + 1)
        table = nodes[start : start + size].reshape(-1, tree.base)
        sums = np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1)], axis=1)
        left = sums[parent, digits[level]]
        right = sums[parent, -1] - left
        share = chosen[level]
        below += share * left + (1 - share) * (whole - right)
        whole = table[parent, digits[level]]
        parent = parent * tree.base + digits[level]
        start += size
    below[0], below[-1] = 0.0, total
    return below


def noisy_tails(
    law: Law, scale: float, ones: int, halves: int, points: Floats
) -> tuple[Floats, Floats]:
    """Return P(S + noise <= z) and P(S + noise >= z) at points z, rounded up.

    Parameters
    ----------
    law : Law
        Of S, on integers.
    scale : float
        Of each discrete Laplace number.
    ones, halves : int
        How many of them are added, with weight 1 and 1/2.
    points : ndarray
        Multiples of 1/2.
    """
    units = ones + halves / 4
    reach = 25 * scale + 9 * scale * math.sqrt(units) if units else 0.0
    first, last = float(law.low[0]) - reach, float(law.values[-1]) + reach
    step = max(0.5, (last - first) / _SIZE)
    if step < 2:  # so many points can be afforded, and none is rounded
        step = 0.5
    first = math.floor(first / step) * step
    size = 1 << math.ceil(math.log2((last - first) / step + 2))
    noise = _noise_transform(size, step, scale, ones, halves)
    slack, error = (1e-6, _ROUNDING) if step == 0.5 else (step, _COARSE)

    def drawn(places: Integers) -> Floats:
        masses = np.bincount(places, weights=law.masses, minlength=size)
        return np.fft.irfft(np.fft.rfft(masses) * noise, n=size)

    low, high = (np.rint((ends - first) / step).astype(np.int64) for ends in (law.low, law.values))
    below = drawn(low)
    above = below if np.array_equal(low, high) else drawn(high)
    where = (points - first) / step
    tails = []
    for law_drawn, at in ((below, where), (above[::-1], size - 1 - where)):
        sums = np.concatenate([[0.0], np.cumsum(law_drawn)])
        index = np.floor(at + slack / step).astype(np.int64) + 1
        tail = sums[np.clip(index, 0, size)]
        tails.append(np.clip(tail + error + law.error, 0.0, 1.0))
    return tails[0], tails[1]


def _noise_transform(size: int, step: float, scale: float, ones: int, halves: int) -> Floats:
    """Return the characteristic function of all of the noise, at the waves of a lattice."""
    waves = np.fft.rfftfreq(size) * 2 * math.pi
    noise: Floats = np.ones_like(waves)
    for count, weight in ((ones, 1.0), (halves, 0.5)):
        if count:
            noise *= np.power(_transform(waves * weight / step, scale), count)
    return noise


def _transform(angles: NDArray[np.floating[Any]], scale: float) -> Floats:
    """Return the characteristic function of a discrete Laplace number."""
    # (1 - p)²/(1 - 2p cos t + p²), written without differences of nearly equal numbers
    shrunk = math.sinh(0.5 / scale) if scale > 1e-3 else math.inf
    if math.isinf(shrunk):
        return np.ones_like(angles)
    result: Floats = 1 / (1 + (np.sin(angles / 2) / shrunk) ** 2)
    return result
