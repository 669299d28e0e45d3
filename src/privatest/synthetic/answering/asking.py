"""Questions to a release, as means of functions: conditions, groups, quantiles.

A smooth function of means moves with the noise as the mean of its influence function does; so
every answer gets its bar from :meth:`Source.means`. Post-processing of what was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.answering.conditions import row_count
from privatest.synthetic.answering.estimates import Estimate
from privatest.synthetic.answering.functionals import Found, normal_maximum
from privatest.synthetic.answering.probes import Marks

__all__ = [
    "Question",
    "Source",
    "estimates_of",
    "flat",
    "grouped",
    "mean",
    "nothing",
    "quantile",
]

_Z = 1.959964
_SURE = 3.0  # standard errors, to say that a quantile is known exactly
_FEW = 4.0  # a share must be this many of its errors, or nothing is known of those in it
_EVEN, _CLOSE = 21, 41  # thresholds over the bounds, and around the quantile
_COUNTS = "the limits are where noisy counts allow it; the value follows all tables"
_HIDDEN = "too few rows satisfy the condition: the privacy noise hides them"

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]
Function = Callable[[Columns], Any]


class Source(Protocol):
    """What can estimate means of functions over the private rows."""

    @property
    def columns(self) -> Columns:
        """Synthetic rows."""

    @property
    def weights(self) -> Floats:
        """Their weights; they add up to 1."""

    @property
    def finest(self) -> str:
        """Why there is no bar where a function varies around rows."""

    @property
    def unmeasured(self) -> str:
        """Why there is not even a limit."""

    @property
    def additive(self) -> bool:
        """Whether functions of few columns are to be asked for one by one."""

    def means(self, function: Function | Sequence[Function], marks: Marks | None = None) -> Found:
        """Estimate the means of a function's columns, or of several functions."""

    def edges(self, column: str, where: Function | None = None) -> Floats:
        """Return numbers up to which rows were counted, together with those of a condition."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What does not depend on the source.

    Attributes
    ----------
    function : callable
        One number for each row.
    where : callable or None
        True for the rows asked about.
    marks : mapping
        Numbers at which these may jump, by column.
    n : float
        Number of independent people, for sampling errors.
    reach : (float, float) or None
        Smallest and largest possible answer.
    """

    function: Function
    where: Function | None = None
    marks: Marks | None = None
    n: float = math.inf
    reach: tuple[float, float] | None = None


def mean(source: Source, asked: Question) -> Estimate:
    """Estimate a mean, of all rows or of those where a condition holds."""
    if asked.where is None:
        found = source.means(asked.function, asked.marks)
        return estimates_of(source, found, found.values, found.plain, asked)[0]
    return _conditional(source, [asked.where], asked)[0][0]


def grouped(
    source: Source, groups: Sequence[tuple[str, Function]], asked: Question
) -> dict[str, Estimate]:
    """Estimate a mean in each group; 95% is for all groups together."""
    where = asked.where
    conditions = [
        both if where is None else (lambda columns, both=both: both(columns) & where(columns))
        for _, both in groups
    ]
    estimates, directions = _conditional(source, conditions, asked)
    factor = normal_maximum(directions) / _Z
    return {
        name: _longer(estimate, factor, asked.reach)
        for (name, _), estimate in zip(groups, estimates, strict=True)
    }


def _conditional(
    source: Source, conditions: Sequence[Function], asked: Question
) -> tuple[list[Estimate], Floats]:
    """Estimate means where conditions hold: 1(A)(f - v)/P(A) has mean 0 at the answer v."""

    def inside(columns: Columns) -> Floats:
        return np.column_stack([flat(where(columns), columns) for where in conditions])

    shares = source.means(inside, asked.marks)
    at_rows, values = inside(source.columns), flat(asked.function(source.columns), source.columns)
    weight = np.maximum(source.weights @ at_rows, 1e-12)
    plain = (source.weights * values) @ at_rows / weight
    enough = shares.values > _FEW * shares.errors
    size = np.where(enough, shares.values, np.maximum(weight, 1e-3))

    def influence(columns: Columns) -> Floats:
        f = flat(asked.function(columns), columns)[:, None]
        found: Floats = inside(columns) * (f - plain) / size
        return found

    found = source.means(influence, asked.marks)
    estimates = estimates_of(source, found, plain + found.values, plain, asked)
    return [
        estimate if known else nothing(estimate.value, _HIDDEN, asked.reach)
        for estimate, known in zip(estimates, enough, strict=True)
    ], found.directions


def quantile(
    source: Source, column: str, q: float, asked: Question, bounds: tuple[float, float] | None
) -> Estimate:
    """Estimate a quantile: the values x at which P(column <= x) may be ``q``."""
    values = source.columns[column].astype(np.float64)
    whole = source.columns[column].dtype.kind in "biu"
    where = asked.where
    kept = source.weights
    if where is not None:
        kept = kept * flat(where(source.columns), source.columns)
    if kept.sum() <= 0:
        return nothing(math.nan, _HIDDEN, bounds)
    value = float(_weighted_quantiles(values, kept, np.array([q]))[0])
    # a condition is about another column too: all pairs of their cells are looked at
    finer = 1 if where is None else 4
    edges = source.edges(column, where)
    thresholds = _thresholds(values, kept, q, bounds, whole=whole, finer=finer)
    if source.additive:
        thresholds = _at_edges(thresholds, edges)
    else:
        thresholds = np.unique(np.concatenate([thresholds, edges]))

    def below(columns: Columns) -> Floats:
        share: Floats = (columns[column][:, None] <= thresholds).astype(np.float64) - q
        if where is not None:
            share = share * flat(where(columns), columns)[:, None]
        return share

    found = source.means(below, asked.marks)
    ends = bounds or (float(values.min()), float(values.max()))
    low, high = _between(found, thresholds, _Z, ends, whole=whole)
    if low == high:  # a single value, which noise alone may make of several: not said lightly
        low, high = _between(found, thresholds, _SURE, ends, whole=whole)
    value = min(max(value, low), high)
    near = int(np.argmin(np.abs(thresholds - value)))
    sampling = _quantile_sampling(values, kept, q, asked.n)
    # the rows' quantile follows all tables, and is nearer than these counts can tell: as a bar
    # the interval covers .999 (benchmarks.release.coverage)
    longer = source.additive and high > low
    if found.held[max(near - 1, 0) : near + 2].all() and not longer:
        return Estimate(value, max(high - value, value - low) / _Z, sampling=sampling)
    reason = _COUNTS if longer else source.finest
    return Estimate(value, math.nan, math.nan, sampling, (low, high), reason)


def _between(
    found: Found, thresholds: Floats, z: float, ends: tuple[float, float], *, whole: bool
) -> tuple[float, float]:
    """Return where a quantile may be: from each end up to the first threshold not refused.

    Then a miss takes one error at the quantile itself, not one anywhere.
    """
    error = z * found.errors
    lowest = int(np.argmax(np.append(found.values + error >= 0, True)))
    highest = int(np.argmax(np.append(found.values[::-1] - error[::-1] < 0, True)))
    low, high = ends
    if lowest:
        low = max(low, float(thresholds[lowest - 1]) + whole)
    if highest:
        high = min(high, float(thresholds[len(thresholds) - highest]))
    return min(low, high), max(low, high)


def _thresholds(
    values: Floats,
    weights: Floats,
    q: float,
    bounds: tuple[float, float] | None,
    *,
    whole: bool,
    finer: int,
) -> Floats:
    """Return numbers at which to look: even ones, and quantiles around the one asked for."""
    low, high = bounds or (float(values.min()), float(values.max()))
    even = np.linspace(low, high, _EVEN // finer)
    levels = np.clip(q + np.linspace(-0.3, 0.3, _CLOSE // finer), 0, 1)
    close = _weighted_quantiles(values, weights, levels)
    found = np.concatenate([even, close])
    if whole:
        if high - low < (_EVEN + _CLOSE) // finer:
            found = np.arange(math.floor(low), math.ceil(high) + 1.0)
        found = np.floor(found)
    return np.unique(found)


def _at_edges(thresholds: Floats, edges: Floats) -> Floats:
    """Move numbers to the nearest up to which rows were counted, if there are any."""
    if not len(edges):
        return thresholds
    above = np.searchsorted(edges, thresholds).clip(0, len(edges) - 1)
    below = (above - 1).clip(0)
    lower = thresholds - edges[below] < edges[above] - thresholds
    return np.unique(np.concatenate([edges[np.where(lower, below, above)], edges[below]]))


def _weighted_quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(weights[order])
    place = np.searchsorted(shares, levels * shares[-1] - 1e-12)
    return np.asarray(values[order][np.minimum(place, len(values) - 1)], dtype=np.float64)


def _quantile_sampling(values: Floats, weights: Floats, q: float, n: float) -> float:
    share = math.sqrt(q * (1 - q) / max(n * float(weights.sum()), 1.0))
    ends = _weighted_quantiles(values, weights, np.clip([q - share, q + share], 0.0, 1.0))
    return float(ends[1] - ends[0]) / 2


def estimates_of(
    source: Source, found: Found, values: Floats, plain: Floats, asked: Question
) -> list[Estimate]:
    """Return values with the bars that were found for them, or limits where there is none.

    Then the value is the ``plain`` one, of the synthetic rows: limits are about any data, and
    that of rows is right for smooth data.
    """
    low, high = asked.reach or (-math.inf, math.inf)
    estimates = []
    for index, given in enumerate(values):
        value = float(min(max(given, low), high))
        error, unseen = float(found.errors[index]), float(found.unseen[index])
        sampling = float(found.spreads[index]) / math.sqrt(asked.n)
        if math.isinf(error):
            estimates.append(nothing(float(plain[index]), source.unmeasured, asked.reach))
        elif found.held[index]:
            estimates.append(Estimate(value, error, unseen, sampling))
        else:
            limits = max(float(given) - _Z * error, low), min(float(given) + _Z * error, high)
            limits = min(limits[0], high), max(limits[1], low)
            near = min(max(float(plain[index]), limits[0]), limits[1])
            estimates.append(Estimate(near, math.nan, unseen, sampling, limits, source.finest))
    return estimates


def _longer(estimate: Estimate, factor: float, reach: tuple[float, float] | None) -> Estimate:
    """Return an estimate that holds together with others."""
    low, high = reach or (-math.inf, math.inf)
    value, limits = estimate.value, estimate.limits
    if limits is not None and not math.isnan(value):
        limits = (
            max(value - factor * (value - limits[0]), low),
            min(value + factor * (limits[1] - value), high),
        )
    return Estimate(
        value,
        estimate.error * factor,
        estimate.misfit,
        estimate.sampling,
        limits,
        estimate.reason,
    )


def nothing(value: float, reason: str, reach: tuple[float, float] | None) -> Estimate:
    """Return a value of which nothing is known but its possible range."""
    return Estimate(value, math.nan, math.nan, math.nan, reach, reason)


def flat(values: Any, columns: Columns) -> Floats:
    """Return one number for each row."""
    length = row_count(columns)
    return np.broadcast_to(np.asarray(values, dtype=np.float64), (length,))
