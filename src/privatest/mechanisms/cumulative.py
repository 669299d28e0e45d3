"""Counts of a tree + Budget -> noisy counts below every edge of a grid.

Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Budget
from privatest.laws.cumulative import cumulated
from privatest.mechanisms.counts import with_noise
from privatest.statistics.cumulative import Tree, tree_counts, tree_width

__all__ = ["cumulative_scale", "noisy_cumulative"]


def cumulative_scale(tree: Tree, moved: int, budget: Budget) -> float:
    """Return the scale of the noise on each node; public."""
    return math.nextafter(tree_width(tree, moved) / budget.pure_epsilon, math.inf)


def noisy_cumulative(
    counts: NDArray[np.int64], tree: Tree, *, moved: int, budget: Budget, noise: NoiseSource
) -> NDArray[np.float64]:
    """Release how many are below each edge.

    Parameters
    ----------
    counts : ndarray of int
        The private counts of the cells, whose total is public.
    tree : Tree
        Which sums of them get noise.
    moved : int
        How many of the things that are counted one person has.
    budget : Budget
        With delta > 0 the noise is a little smaller.
    noise : NoiseSource
        The secret randomness.

    Returns
    -------
    ndarray
        Noisy counts below edges 0 ... cells; those of the first and last are exact and public.

    Notes
    -----
    **Sensitivity** :func:`privatest.statistics.cumulative.tree_width`, in the l1 norm.

    **Privacy** All nodes together are (epsilon, delta)-private: exact discrete Laplace noise on
    integers. The counts below edges are sums of them: post-processing.
    """
    nodes = tree_counts(counts, tree)
    scale = cumulative_scale(tree, moved, budget)
    repeat = partial(noisy_cumulative, counts=counts, tree=tree, moved=moved, budget=budget)
    record(noise, "discrete Laplace", nodes, "l1", (float(tree_width(tree, moved)),), scale, repeat)
    drawn = noise.discrete_laplaces(scale, len(nodes))
    return cumulated(released(noise, with_noise(nodes, drawn)), tree, float(counts.sum()))
