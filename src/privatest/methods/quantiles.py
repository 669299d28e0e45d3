"""Quantiles of one column, and the Hodges–Lehmann shift between two samples, with intervals.

Rows, or pairs of rows by their difference, are counted in the cells of a public grid. Counts below
edges near the quantile are released with noise; estimates and intervals are post-processing.
Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, MINIMUM_EPSILON, Adjacency, Amount, Budget
from privatest.core.results import (
    Interval,
    Outcome,
    PrivateEstimate,
    confidence,
    declare_level,
    known_values,
)
from privatest.core.text import EstimateTable
from privatest.core.validation import integer_at_least, number, one_of, printable, reject
from privatest.data.encoding import (
    Sample,
    encode_sample,
    encode_samples,
    refuse_wide_bounds,
    rows_of_a_person,
)
from privatest.data.schema import Bounds, NumericColumn
from privatest.mechanisms.additive import select_candidate
from privatest.mechanisms.lattice import cumulative_scale, noisy_cumulative
from privatest.methods.descriptor import Method, Offered
from privatest.numerics.laws import Law, binomial_law, mann_whitney_law, noisy_tails, paths
from privatest.numerics.order import (
    Tree,
    cell_counts,
    even_tree,
    pair_counts,
    pairs_of_a_person,
    require_public_groups,
    tree_of,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


# --- The public grid of a column ----------------------------------------------------------------


FINE_CELLS = 1 << 16
_MOST_CELLS = 1 << 13


@dataclass(frozen=True, slots=True, eq=False)
class ColumnGrid:
    """Cells between public bounds.

    ``values`` are what each holds, if it holds a single value. The last cell has its upper end too.
    """

    edges: Floats
    values: Floats | None = None

    @property
    def cells(self) -> int:
        """Return how many cells there are."""
        return len(self.edges) - 1


def _check_cells(cells: object) -> None:
    if cells is not None and integer_at_least("cells", cells, 2) > _MOST_CELLS:
        reject("cells", f"at most {_MOST_CELLS:,}", cells)


def _column_grid(sample: Sample, cells: int) -> ColumnGrid:
    """Return the grid of a column, from its description alone."""
    lower, upper = float(sample.box.lower[0]), float(sample.box.upper[0])
    column = None if sample.schema is None else next(iter(sample.schema.columns.values()))
    whole = isinstance(column, NumericColumn) and column.integer
    if whole and upper - lower < cells:
        values = np.arange(lower, upper + 1)
        return ColumnGrid(np.append(values, upper + 1), values)
    return ColumnGrid(np.linspace(lower, upper, cells + 1))


def _require_bounds(bounds: Bounds) -> None:
    if bounds is None:
        raise ParameterError(
            "bounds must be given: a pair (lower, upper) or a Schema. The public grid lies "
            "between them, and bounds found from the data would leak it."
        )


def _require_one_numeric_column(sample: Sample) -> None:
    if sample.domain.levels != (0,):
        raise DataError("x must be one numeric column.")


# --- Windows of the grid, and how well each fits between two ranks ------------------------------
#
# Windows have lengths from the whole grid down to 1/4096 of it, so that a good one exists wherever
# the rows are and however close they lie together.


_RATIO = 2**0.5  # of lengths
_STARTS = 8  # windows of one length begin at each eighth of it
_POWER = 1.25  # of the length, in the weight of a window: 1 would make all lengths as likely
_SHORTEST = 4096  # windows of the shortest length, end to end


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Public windows between the edges ``first`` and ``last`` of a grid.

    Attributes
    ----------
    after_first, before_last : ndarray of int
        Edges a third of the length further in; for the shortest windows, the opposite ends.
    shortest : ndarray of bool
        Whether there is no shorter one.
    multiplicities : ndarray of int
        As how many candidates each counts. Of two lengths, the windows of the longer one together
        count more, by the fourth root of the ratio: a window that is too long costs less than one
        that misses the quantile.
    """

    first: Integers
    last: Integers
    after_first: Integers
    before_last: Integers
    shortest: NDArray[np.bool_]
    multiplicities: Integers


@lru_cache(maxsize=8)
def windows(cells: int) -> Windows:
    """Return the windows of a grid of so many cells."""
    shortest = max(1, cells // _SHORTEST)
    lengths = [cells]
    while lengths[-1] > shortest:
        lengths.append(max(shortest, min(lengths[-1] - 1, round(lengths[-1] / _RATIO))))
    parts = []
    for length in lengths:
        starts = np.unique(
            np.append(np.arange(0, cells - length, max(1, length // _STARTS)), cells - length)
        )
        inner = length if length == shortest else -(-length // 3)
        same = np.full(len(starts), length == shortest)
        weight = np.full(len(starts), max(1, round((length / shortest) ** _POWER)))
        ends = starts, starts + length, starts + inner, starts + length - inner
        parts.append((*ends, same, weight))
    return Windows(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def window_scores(
    below: Integers, candidates: Windows, low: int, high: int, *, cap: int
) -> Integers:
    """Return how badly each window fits between the ranks ``low`` and ``high``; 0 is best.

    ``below`` are private counts below all edges. Beyond ``cap`` the distance of counts from ranks
    does not matter, as long as the ranks are passed within the outer thirds: where many rows are
    equal, no count need be near. For the shortest windows it does not matter at all.

    **Sensitivity** A count that moves by k moves each difference by k at most, that of two counts
    too, since a row is between them or not; so the largest moves by k, and so does a minimum.
    """
    first, last = below[candidates.first] - low, below[candidates.last] - high
    near = np.maximum(np.maximum(np.abs(first), np.abs(last)), np.abs(last - first))
    passed = np.maximum(first, low - below[candidates.after_first])
    passed = np.maximum(passed, np.maximum(-last, below[candidates.before_last] - high))
    scores: Integers = np.maximum(np.where(candidates.shortest, 0, np.minimum(near, cap)), passed)
    return scores


# --- Release of counts below edges --------------------------------------------------------------
#
# The fine grid has up to 65,536 cells. Few of its edges are counted with noise, since noise grows
# with their number: those of a coarse grid where n epsilon is small; else those of a window that a
# part of the budget has placed around the quantile.


# Chosen on half of the cases of benchmarks/level/quantiles.py, in units of moved/epsilon:
_ONE_STAGE = 150.0  # below so many things, no part of the budget is spent on a window
_COARSE = 3.0  # and a cell of the coarse grid is expected to hold so many
_MOST_COARSE = 32
_PARTS = 4  # one of four parts of the budget chooses the window
_REACH = 2.6 * 1.96  # standard deviations between the target and the ends of the window
_MOST_REACH = 0.75  # of all things on that side
_LEAST_CELLS, _MOST_INNER_CELLS = 12, 4096  # within the window
_CELLS_BY_ROOT = 4.5  # cells for each square root of a standard deviation
_OUTSIDE = (0.3, 1.0, 3.0)  # edges outside of the window, in lengths of it
_MANY = 64  # cells from which on a fourth as many are spread over the whole grid
_RANGE = 72.0  # a window that is off by its whole reach is never less likely than by e^-36
_CAP = 30.0  # a window is never less likely than by e^-15 for counts that are not near its ranks


@dataclass(frozen=True, slots=True)
class Target:
    """The public place of a quantile or a shift among the things that are counted.

    Attributes
    ----------
    total : int
        How many things are counted, rows or pairs.
    rank : float
        How many of them are expected below that place.
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
    """Release counts below edges near the target, from the private counts of a fine grid's cells.

    **Sensitivity** A person moves ``target.moved`` things from a cell to another one: each count
    below an edge moves by at most that, the counts of disjoint cells by twice that in total.

    **Privacy** (epsilon, delta): all of the budget for one tree of counts, or a fourth of it for
    the exponential mechanism that chooses a window, and three fourths for counts of cells that
    depend on nothing but the window.
    """
    size, units = len(fine), budget.pure_epsilon / target.moved
    things, deviation = target.total * units, target.deviation * units
    inner = max(_LEAST_CELLS, math.ceil(_CELLS_BY_ROOT * math.sqrt(deviation)))
    inner = min(inner, _MOST_INNER_CELLS)
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
    """Choose a window whose ends are about ``reach`` things before and after the target."""
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


# --- Estimates and intervals from noisy counts: post-processing ---------------------------------
#
# The number of things below the true place has a known law: binomial for a quantile, Mann–Whitney's
# for a shift. An interval runs from the first cell whose noisy counts go with that law to the last.


_TINY = 1e-9  # by which counts that are equal are made to rise
_FLAT = 1e-4  # more than all of them together


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Released counts below edges, and the cells between which something is looked for.

    Attributes
    ----------
    counts : ndarray
        Noisy counts below edges; those of the first and last are exact.
    ones, halves : ndarray of int
        How many discrete Laplace numbers are in each count, with weight ±1 and ±1/2.
    scale : float
        Of each of them.
    places : ndarray
        Where the edges are.
    left, right : ndarray
        The ends of each cell that may hold what is looked for.
    under, over : ndarray of int
        For each of these cells an edge whose count is not above that at any place in the cell, and
        one whose count is not below it.
    whole : bool
        Whether what is looked for is one of the integers.
    """

    counts: Floats
    ones: Integers
    halves: Integers
    scale: float
    places: Floats
    left: Floats
    right: Floats
    under: Integers
    over: Integers
    whole: bool = False

    def pvalues(self, law: Law) -> Floats:
        """Return, for each cell, the least alpha at which the interval leaves it out."""
        low, high = self._tails(law)
        each = np.minimum(1.0, 2 * np.minimum(low[self.over], high[self.under]))
        # an interval has no holes: a cell between two that are kept is kept
        before = np.maximum.accumulate(each)
        after = np.maximum.accumulate(each[::-1])[::-1]
        return np.minimum(before, after)

    def _tails(self, law: Law) -> tuple[Floats, Floats]:
        """Return P(count <= released count) and P(count >= it), at each edge."""
        kinds, which = np.unique(np.stack([self.ones, self.halves]), axis=1, return_inverse=True)
        low, high = np.empty(len(self.counts)), np.empty(len(self.counts))
        for kind, (ones, halves) in enumerate(kinds.T.tolist()):
            edges = np.flatnonzero(which.ravel() == kind)
            low[edges], high[edges] = noisy_tails(law, self.scale, ones, halves, self.counts[edges])
        return low, high

    def interval(self, level: float, law: Law, pvalues: Floats | None = None) -> Interval:
        """Return the interval at a level, with the part of its width that is not noise.

        ``pvalues`` are those of the law if they are known already.
        """
        pvalues = self.pvalues(law) if pvalues is None else pvalues
        kept = np.flatnonzero(pvalues > min(1 - level, pvalues.max() * (1 - 1e-12)))
        low, high = float(self.left[kept[0]]), float(self.right[kept[-1]])
        return Interval.around(low, high, level, self._without_noise(level, law))

    def _without_noise(self, level: float, law: Law) -> float:
        """Return the width that the released curve would have if it were exact."""
        sums = np.cumsum(law.masses)
        tail = (1 - level) / 2
        ends = np.searchsorted(sums, [tail, 1 - tail])
        ranks = law.values[np.minimum(ends, len(sums) - 1)]
        first, last = np.interp(ranks, self._rising(), self.places)
        return float(last - first)

    def _rising(self) -> Floats:
        """Return the noisy counts made to rise: halfway between the two nearest bounds."""
        above = np.maximum.accumulate(self.counts)
        below = np.minimum.accumulate(self.counts[::-1])[::-1]
        tiny = np.arange(len(above)) * _TINY  # no two are equal, so that it can be inverted
        return np.clip((above + below) / 2, 0.0, self.counts[-1]) + tiny

    def place_of(self, rank: float) -> float:
        """Return where the count reaches ``rank``."""
        rising = self._rising()
        place = float(np.interp(rank, rising, self.places))
        if self.whole:  # the smallest integer with so many not above it: they are below the next
            return float(max(math.ceil(place) - 1, self.left[0]))
        # between the first place with so many below it and the last one
        return (place + float(np.interp(rank + _FLAT, rising, self.places))) / 2


@dataclass(frozen=True, slots=True, eq=False)
class QuantileEstimate(PrivateEstimate):
    """A private quantile, with a confidence interval for that of the population.

    Attributes
    ----------
    quantile : float
        The private quantile.
    lower, upper : float
        The interval at level ``confidence``.
    q : float
        Which quantile: the share of the population below it.
    confidence : float
        Level of the interval from ``lower`` to ``upper``.
    spent : Budget
        What releasing this cost.
    n : int
        Public number of rows.
    column : str or None
        Name of the column.
    rows_per_person : int
        The most rows that one person has; the guarantee hides all of them.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    curve : Curve or None
        The released counts below the edges of a public grid, from which all quantiles and
        intervals follow. It is not part of the JSON document.
    """

    quantile: float
    lower: float
    upper: float
    q: float
    confidence: float
    spent: Budget
    n: int
    column: str | None = None
    rows_per_person: int = 1
    simulated: bool = False
    curve: Curve | None = field(default=None, repr=False, compare=False)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return an interval for the population's quantile at any level; it costs nothing more.

        Notes
        -----
        **Privacy** Post-processing: computed from what was released and public numbers.
        """
        level = confidence(confidence_level)
        if self.curve is not None:
            return self.curve.interval(level, binomial_law(self.n, self.q))
        if abs(level - self.confidence) > 1e-12:
            raise ParameterError(
                f"confidence_level must be {self.confidence:g}: a result that was read from a "
                f"record has the interval of that level only."
            )
        return Interval(self.lower, self.upper, level)

    def at(self, q: float) -> QuantileEstimate:
        """Return another quantile from the same release; it costs nothing more.

        Each interval has its own level: several of them together cover less often.
        """
        share = number("q", q, above=0, below=1)
        if self.curve is None:
            raise ParameterError("a result that was read from a record has one quantile only.")
        interval = self.curve.interval(self.confidence, binomial_law(self.n, share))
        low, high = float(interval.low), float(interval.high)
        place = min(max(self.curve.place_of(share * self.n), low), high)
        return replace(self, quantile=place, lower=low, upper=high, q=share)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], spent: Budget) -> QuantileEstimate:
        """Read what :meth:`to_dict` wrote; of the cost it has only rounded numbers."""
        return cls(**known_values(cls, values), spent=spent)

    @property
    def method_id(self) -> str:
        """The function that made the result."""
        return "private_quantile"

    @property
    def heading(self) -> str:
        """What was estimated, from how many rows."""
        what = "median" if self.q == 0.5 else f"{self.q:g} quantile"
        level = f"{100 * self.confidence:.4g}%"
        return f"Private {what} of {self.n:,} rows, with its {level} interval"

    def estimate_table(self) -> EstimateTable:
        """Return the name, the quantile and its interval, as text."""
        name = "column 1" if self.column is None else printable(self.column)
        row = (name, f"{self.quantile:.6g}", f"({self.lower:.6g} to {self.upper:.6g})")
        return EstimateTable(self.heading, (row,))


# --- Public functions ---------------------------------------------------------------------------


def private_quantile(
    x: Any,
    q: Offered[float] = 0.5,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    cells: Offered[int | None] = None,
    noise: NoiseSource | None = None,
) -> QuantileEstimate:
    """Estimate a quantile of one column privately, with a confidence interval.

    Parameters
    ----------
    x : array, series or table of one column
        The sample.
    q : float
        Which quantile, above 0 and below 1; 0.5 is the median.
    bounds : pair, mapping of the name to a pair, or Schema
        Public bounds; values outside are clipped. The grid spans them. If a schema says that the
        column holds integers, and there are at most 65,536 of them, the grid is those.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        One minus the confidence of ``lower`` and ``upper``; other levels are free afterwards.
    cells : int, optional
        By default the rows are counted below few edges near the quantile, chosen privately. With a
        number, 2 to 8,192, they are counted below all edges of so many equal cells: more noise,
        and the same for ``at`` any other quantile.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    QuantileEstimate
        The quantile and its interval; ``confidence_interval(level)`` gives other levels, and
        ``at(q)`` other quantiles of the same release.

    Notes
    -----
    The interval covers with probability at least 1 - alpha for every population, atoms and ties
    included: the number of rows below the population's quantile is binomial, and the law of the
    noise is known. Where noise drowns the data the interval is that of the bounds.

    Where n epsilon is at least 150, a fourth of the budget chooses a window around the quantile by
    the exponential mechanism, and the rest counts rows in 20 or more cells, most of them within the
    window. Below that the rows are counted in up to 32 equal cells between the bounds.

    **Sensitivity** A replaced row moves the count below an edge by 1, and two counts of cells by 1
    on each level of a tree over them, times the rows of a person. Proof: docs/proofs/quantiles.md.

    **Privacy** The window and the counts together are (epsilon, delta)-private: an exponential
    mechanism on integers, and discrete Laplace noise. Everything else is computed from them.

    References
    ----------
    Drechsler, Globus-Harris, McMillan, Sarathy and Smith (2021), Nonparametric differentially
    private confidence intervals for the median.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=5000)
    >>> low, high = private_quantile(x, bounds=(0, 10), epsilon=1).confidence_interval(0.95)
    >>> bool(3 < low < high < 5)
    True
    """
    budget, level = Budget(epsilon, delta), 1 - number("alpha", alpha, above=0, below=1)
    share = number("q", q, above=0, below=1)
    _check_cells(cells)
    source = noise_source(noise)
    _require_bounds(bounds)
    sample = encode_sample(x, bounds, units="own")
    _require_one_numeric_column(sample)
    if len(sample) < 2:
        raise DataError("x must have at least 2 rows.")
    n, moved = len(sample), rows_of_a_person(sample)
    grid = _column_grid(sample, FINE_CELLS if cells is None else cells)
    (fine,) = cell_counts(sample, edges=grid.edges)
    if cells is None:
        target = Target(n, n * share, math.sqrt(n * share * (1 - share)), moved)
        below = count_below(fine, target, budget, source)
    else:
        below = count_below_all(fine, moved, budget, source)
    whole = QuantileEstimate(
        quantile=0.0,
        lower=0.0,
        upper=0.0,
        q=share,
        confidence=level,
        spent=budget,
        n=n,
        column=None if sample.names is None else sample.names[0],
        rows_per_person=sample.rows_per_person,
        simulated=source.simulated,
        curve=_quantile_curve(below, grid),
    )
    return whole.at(share)


def _quantile_curve(below: Below, grid: ColumnGrid) -> Curve:
    """Return the released counts, with the cells between edges: those that are not empty."""
    under = np.flatnonzero(np.diff(below.edges))
    first, last = below.edges[under], below.edges[under + 1]
    if grid.values is None:
        ends = grid.edges[first], grid.edges[last]
    else:
        ends = grid.values[first], grid.values[last - 1]
    noisy = below.counts, below.ones, below.halves, below.scale
    places, whole = grid.edges[below.edges], grid.values is not None
    return Curve(*noisy, places, *ends, under, under + 1, whole)


def private_median(
    x: Any,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    cells: int | None = None,
    noise: NoiseSource | None = None,
) -> QuantileEstimate:
    """Estimate the median of one column privately, with a confidence interval.

    Parameters
    ----------
    x, bounds, epsilon, delta, alpha, cells, noise
        As in :func:`privatest.private_quantile`.

    Returns
    -------
    QuantileEstimate
        As there, with q = 0.5.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.private_quantile`.

    **Privacy** As there.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).exponential(2.0, size=5000)
    >>> estimate = private_median(x, bounds=(0, 20), epsilon=1)
    >>> bool(abs(estimate.quantile - 2 * np.log(2)) < 0.5)
    True
    """
    return private_quantile(
        x,
        0.5,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        cells=cells,
        noise=noise,
    )


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
    cells: Offered[int | None] = None,
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
    require_public_groups(adjacency)
    _check_cells(cells)
    source = noise_source(noise)
    _require_bounds(bounds)
    samples = encode_samples(x, y, bounds, units="own", adjacency=adjacency)
    _require_one_numeric_column(samples.x)
    refuse_wide_bounds(samples.x)
    n, m = map(len, samples)
    if min(n, m) < 2:
        raise DataError("each sample must have at least 2 rows.")
    grid = _column_grid(samples.x, max(2, int(cells or FINE_CELLS) // 2))
    fine = pair_counts(*cell_counts(*samples, edges=grid.edges))
    moved = pairs_of_a_person(n, m, adjacency) * samples.rows_per_person
    if cells is None:
        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        below = count_below(fine, Target(n * m, n * m / 2, deviation, moved), budget, source)
    else:
        below = count_below_all(fine, moved, budget, source)
    curve, law = _shift_curve(below, grid), _shift_law(n, m)
    pvalues = curve.pvalues(law)
    interval = curve.interval(1 - alpha, law, pvalues)
    low, high = float(interval.low), float(interval.high)
    # a cell has its left end
    pvalue = float(pvalues[np.searchsorted(curve.left, 0.0, side="right") - 1])
    shift = min(max(curve.place_of(n * m / 2), low), high)
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        simulated=source.simulated,
        pvalue=pvalue,
        statistic=shift,
        adjacency=adjacency,
        method="Hodges–Lehmann shift",
        null_hypothesis="the two samples are not shifted against each other",
        sizes={"n": n, "m": m},
        parameters={"cells": len(below.edges) - 1},
        rows_per_person=samples.rows_per_person,
        estimated="shift",
        estimates={"shift": shift, "lower": low, "upper": high},
        intervals=partial(_shift_interval, curve, n, m),
    )


def _shift_curve(below: Below, grid: ColumnGrid) -> Curve:
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


def _shift_law(n: int, m: int) -> Law:
    """Return the law of the number of pairs with x - shift below y."""
    return mann_whitney_law(n, m).scaled(0.5, n * m / 2)


def _shift_interval(curve: Curve, n: int, m: int, level: float) -> Interval:
    return curve.interval(level, _shift_law(n, m))


# --- Descriptors --------------------------------------------------------------------------------


DESCRIPTORS = (
    Method(
        name="hodges-lehmann",
        question="two-sample",
        function=hodges_lehmann,
        about="the shift of one column, with an interval",
        public_groups="its p-value needs the group sizes",
        columns="one numeric",
        sentence=(
            "We estimated the Hodges–Lehmann shift from noisy counts of pairs by their difference"
        ),
        papers=("hodges1963", "drechsler2021"),
    ),
    Method(
        name="quantiles",
        question="mean",
        function=private_quantile,
        about="a quantile of one column, the median by default",
        part="q",
        columns="one numeric",
        sentence=(
            "We estimated a quantile from noisy counts below the edges of a public grid, with "
            "an interval that holds for every distribution"
        ),
        papers=("drechsler2021",),
    ),
)
