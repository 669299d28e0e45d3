"""The private shift between two samples (Hodges and Lehmann), by inverting Mann–Whitney's test."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.intervals import Interval
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import number, one_of
from privatest.data.bounds import Bounds
from privatest.data.limits import refuse_wide_bounds
from privatest.data.samples import encode_samples
from privatest.laws.law import Law
from privatest.laws.ranks import mann_whitney_law
from privatest.quantiles.counting import Below, Target, count_below, count_below_all
from privatest.quantiles.curve import Curve
from privatest.quantiles.grids import (
    FINE_CELLS,
    Grid,
    checked_cells,
    grid_of,
    refuse_other_columns,
    require_bounds,
)
from privatest.statistics.cumulative import cell_counts, pair_counts, pairs_of_a_person

__all__ = ["hodges_lehmann"]

Floats = NDArray[np.float64]


@declare_level("valid")
def hodges_lehmann(
    x: Any,
    y: Any,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    adjacency: Adjacency = "one",
    cells: int | None = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Estimate privately by how much x is shifted against y, with an interval and a test.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
    bounds : pair, mapping of the name to a pair, or Schema
        Public bounds; values outside are clipped.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision; the confidence interval has level 1 - alpha.
    adjacency : {"one", "both"}
        What is hidden: one record's values within its group, or one record in each group.
    cells : int, optional
        By default the pairs are counted below few edges near the shift, chosen privately. With a
        number, 4 to 8,192, they are counted below all edges of so many cells of differences: more
        noise.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        With ``shift`` in ``estimates``, the median of all differences of a value of x and one of
        y, and its interval ``lower`` to ``upper``. The p-value is that of no shift: it is at most
        alpha where the interval of level 1 - alpha does not hold 0.

    Notes
    -----
    The interval covers with probability at least 1 - alpha whenever x and y + shift have the same
    distribution, with ties too. To test for a shift and no more, :func:`privatest.mannwhitneyu`
    needs far less noise: it releases one number.

    Where the smaller sample has 150/epsilon rows or more, a fourth of the budget chooses a window
    around the shift by the exponential mechanism, and the rest counts pairs by their difference in
    20 or more cells, most of them within the window; else in up to 32 equal cells.

    **Sensitivity** A replaced record moves max(n, m) pairs ("one"), or n + m - 1 ("both"), times
    the rows of a person: the count below an edge moves by as many, and each pair moves two counts
    of cells on each level of a tree over them. Private groups ("row") are refused: the law needs
    their sizes. Proof: docs/proofs/quantiles.md.

    **Privacy** The window and the counts of pairs by their difference together are (epsilon,
    delta)-private: an exponential mechanism on integers, and discrete Laplace noise. Everything
    else is computed from them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(6, 1, size=3000), rng.normal(4, 1, size=2000)
    >>> low, high = hodges_lehmann(x, y, bounds=(0, 10), epsilon=1).confidence_interval()
    >>> bool(1 < low < high < 3)
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("adjacency", adjacency, ADJACENCIES)
    pairs_of_a_person(2, 2, adjacency)  # refuses private groups before data is read
    half = max(2, (checked_cells(cells) or FINE_CELLS) // 2)
    source = noise_source(noise)
    require_bounds(bounds)
    samples = encode_samples(x, y, bounds, units="own", adjacency=adjacency)
    refuse_other_columns(samples.x, "x")
    refuse_wide_bounds(samples.x)
    n, m = map(len, samples)
    if min(n, m) < 2:
        raise DataError("each sample must have at least 2 rows.")
    grid = grid_of(samples.x, half)
    fine = pair_counts(*cell_counts(*samples, edges=grid.edges))
    moved = pairs_of_a_person(n, m, adjacency) * samples.rows_per_person
    if cells is None:
        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        below = count_below(fine, Target(n * m, n * m / 2, deviation, moved), budget, source)
    else:
        below = count_below_all(fine, moved, budget, source)
    curve = _curve(below, grid)
    facts = {
        "spent": budget,
        "adjacency": adjacency,
        "sizes": {"n": n, "m": m},
        "rows_per_person": samples.rows_per_person,
        "simulated": source.simulated,
        "parameters": {"cells": len(below.edges) - 1},
    }
    return _outcome(curve, n, m, alpha, facts)


def _curve(below: Below, grid: Grid) -> Curve:
    """Return the released counts, and the cells of shifts that they bound.

    Cells i of x and j of y hold differences between i - j - 1 and i - j + 1 steps. With the pairs
    of i - j < k counted: a shift of k steps or more has all of them below it, and one of less than
    k - 1 steps has no other pair that is not above it.
    """
    size, step = grid.cells, float(grid.edges[1] - grid.edges[0])
    steps = below.edges - (size - 1)  # the k of each edge
    whole = grid.values is not None  # then a difference is i - j steps and no other: k for k - 1
    least, most = (1 - size, size) if whole else (-size, size)
    starts = steps if whole else np.union1d(steps, steps - 1)
    starts = np.unique(np.clip(starts, least, most - 1))
    ends = np.append(starts[1:], most)
    # the last edge with k <= shift; the first one with shift < k, or with shift < k - 1
    under = np.maximum(np.searchsorted(steps, starts, side="right") - 1, 0)
    over = np.searchsorted(steps, starts if whole else starts + 1, side="right")
    left = np.multiply(starts, step, dtype=np.float64)
    right = np.multiply(ends - 1 if whole else ends, step, dtype=np.float64)
    places = np.multiply(steps if whole else steps - 0.5, step, dtype=np.float64)
    noisy = below.counts, below.ones, below.halves, below.scale
    return Curve(*noisy, places, left, right, under, np.minimum(over, len(steps) - 1), whole)


def _outcome(curve: Curve, n: int, m: int, alpha: float, facts: dict[str, Any]) -> Outcome:
    law = _law(n, m)
    pvalues = curve.pvalues(law)
    interval = curve.interval(1 - alpha, law, pvalues)
    low, high = float(interval.low), float(interval.high)
    # a cell has its left end
    pvalue = float(pvalues[np.searchsorted(curve.left, 0.0, side="right") - 1])
    shift = min(max(curve.place_of(n * m / 2), low), high)
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        method="Hodges–Lehmann shift",
        null_hypothesis="the two samples are not shifted against each other",
        pvalue=pvalue,
        statistic=shift,
        estimated="shift",
        estimates={"shift": shift, "lower": low, "upper": high},
        intervals=partial(_interval, curve, n, m),
        **facts,
    )


def _law(n: int, m: int) -> Law:
    """Return the law of the number of pairs with x - shift below y."""
    return mann_whitney_law(n, m).scaled(0.5, n * m / 2)


def _interval(curve: Curve, n: int, m: int, level: float) -> Interval:
    return curve.interval(level, _law(n, m))
