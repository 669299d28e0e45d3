"""Which edges of a fine grid are counted, and the release of counts below them.

The fine grid has up to 65,536 cells, whose exact counts nobody sees. Of its edges few are counted
with noise, since noise grows with their number: those of a coarse grid over all of it where n
epsilon is small; else those of a window that a share of the budget has placed around the quantile.
Everything here that is not a count is public. Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import MINIMUM_EPSILON, Budget
from privatest.laws.cumulative import paths
from privatest.mechanisms.additive import select_candidate
from privatest.mechanisms.lattice import cumulative_scale, noisy_cumulative
from privatest.statistics.cumulative import Tree, even_tree, tree_of
from privatest.statistics.windows import window_scores, windows

__all__ = ["Below", "Target", "count_below", "count_below_all"]

# Chosen on half of the cases of benchmarks/level/quantiles.py, in units of moved/epsilon:
_ONE_STAGE = 150.0  # below so many things, no part of the budget is spent on a window
_COARSE = 3.0  # and a cell of the coarse grid is expected to hold so many
_MOST_COARSE = 32
_PARTS = 4  # one of four parts of the budget chooses the window
_REACH = 2.6 * 1.96  # standard deviations between the target and the ends of the window
_MOST_REACH = 0.75  # of all things on that side
_LEAST_CELLS, _MOST_CELLS = 12, 4096  # within the window
_CELLS_BY_ROOT = 4.5  # cells for each square root of a standard deviation
_OUTSIDE = (0.3, 1.0, 3.0)  # edges outside of the window, in lengths of it
_MANY = 64  # cells from which on a fourth as many are spread over the whole grid
_RANGE = 72.0  # a window that is off by its whole reach is never less likely than by e^-36
_CAP = 30.0  # a window is never less likely than by e^-15 for counts that are not near its ranks

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Target:
    """What is looked for; public.

    Attributes
    ----------
    total : int
        How many things are counted, rows or pairs.
    rank : float
        How many of them are expected below the place that is looked for.
    deviation : float
        Standard deviation of that number.
    moved : int
        How many of the things one person has.
    """

    total: int
    rank: float
    deviation: float
    moved: int


@dataclass(frozen=True, slots=True, eq=False)
class Below:
    """Noisy counts below some edges of a fine grid: what is released.

    Attributes
    ----------
    edges : ndarray of int
        Which edges of the fine grid; the first and the last are its ends.
    counts : ndarray
        The noisy counts; those of the ends are exact and public.
    ones, halves : ndarray of int
        How many discrete Laplace numbers are in each count, with weight ±1 and ±1/2.
    scale : float
        Of each of them.
    """

    edges: Integers
    counts: Floats
    ones: Integers
    halves: Integers
    scale: float


def count_below_all(fine: Integers, moved: int, budget: Budget, noise: NoiseSource) -> Below:
    """Release the counts below all edges of a grid, by a tree over its cells."""
    edges = np.arange(len(fine) + 1)
    return _released(fine, edges, tree_of(len(fine)), moved, budget, noise)


def count_below(fine: Integers, target: Target, budget: Budget, noise: NoiseSource) -> Below:
    """Release counts below edges near the target.

    Parameters
    ----------
    fine : ndarray of int
        The private counts of the fine grid's cells.
    target : Target
        What is looked for.
    budget : Budget
        What it costs.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** A person moves ``target.moved`` things from a cell to another one: each count
    below an edge moves by at most that, the counts of disjoint cells by twice that in total.

    **Privacy** (epsilon, delta): all of the budget for one tree of counts, or a fourth of it for
    the exponential mechanism that chooses a window, and three fourths for counts of cells that
    depend on nothing but the window.
    """
    size, units = len(fine), budget.pure_epsilon / target.moved
    things, deviation = target.total * units, target.deviation * units
    inner = max(_LEAST_CELLS, math.ceil(_CELLS_BY_ROOT * math.sqrt(deviation)))
    inner = min(inner, _MOST_CELLS)
    spread = inner // 4 if inner >= _MANY else 0
    cells = inner + 2 * len(_OUTSIDE) + 2 + spread
    if things < _ONE_STAGE or budget.epsilon < _PARTS * MINIMUM_EPSILON:
        cells = min(max(4, int(things / _COARSE)), _MOST_COARSE)
    elif size > cells:
        part = budget.divided(_PARTS)
        wide = math.sqrt(deviation**2 + 2 * cells / (1 - 1 / _PARTS) ** 2)
        first, last = _window(fine, target, _REACH * wide / units, part, noise)
        rest = sum((part for _ in range(_PARTS - 2)), part)  # all parts but one
        edges = _window_edges(first, last, size, inner, spread)
        return _released(fine, edges, even_tree(cells), target.moved, rest, noise)
    edges = np.unique(np.rint(np.linspace(0, size, min(cells, size) + 1)).astype(np.int64))
    return _released(fine, edges, tree_of(len(edges) - 1), target.moved, budget, noise)


def _window(
    fine: Integers, target: Target, reach: float, budget: Budget, noise: NoiseSource
) -> tuple[int, int]:
    """Choose a window whose ends are expected so many things before and after the target."""
    below = np.concatenate([[0], np.cumsum(fine)])
    low = math.floor(target.rank - min(reach, _MOST_REACH * target.rank))
    high = math.ceil(target.rank + min(reach, _MOST_REACH * (target.total - target.rank)))
    candidates = windows(len(fine))
    # with much epsilon a window that is off by one thing would count as little as any other
    sensitivity = max(target.moved, math.ceil(reach * budget.pure_epsilon / _RANGE))
    cap = math.ceil(_CAP * sensitivity / budget.pure_epsilon)
    chosen = select_candidate(
        window_scores(below, candidates, low, high, cap=cap),
        candidates.multiplicities,
        sensitivity=sensitivity,
        budget=budget,
        noise=noise,
    )
    return int(candidates.first[chosen]), int(candidates.last[chosen])


def _window_edges(first: int, last: int, size: int, inner: int, spread: int) -> Integers:
    """Return the edges that are counted; their number is public, and some may be equal."""
    outside = np.array(_OUTSIDE)
    within = np.concatenate([-outside, np.linspace(0, 1, inner + 1), 1 + outside])
    near = first + (last - first) * within
    # spread over the whole grid, for other quantiles of the same release
    far = np.linspace(0, size, spread + 2)
    edges = np.rint(np.concatenate([near, far])).astype(np.int64)
    return np.sort(np.clip(edges, 0, size))


def _released(
    fine: Integers, edges: Integers, tree: Tree, moved: int, budget: Budget, noise: NoiseSource
) -> Below:
    counts = np.diff(np.concatenate([[0], np.cumsum(fine)])[edges])
    noisy = noisy_cumulative(counts, tree, moved=moved, budget=budget, noise=noise)
    made, scale = paths(tree), cumulative_scale(tree, moved, budget)
    return Below(edges, noisy, made.ones, made.halves, scale)
