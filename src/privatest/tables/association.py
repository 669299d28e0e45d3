"""How strongly two categorical columns go together: Cramér's V from a noisy table.

An interval of V has the values that the released statistic does not contradict: tables between
independence and beyond what was released are simulated with their noise, with public randomness.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privatest.core.intervals import Interval
from privatest.mechanisms.additive import CountNoise
from privatest.tables.null_tables import (
    independence_statistic,
    likely_margins,
    simulate,
    with_total,
)

__all__ = ["association_ends", "association_interval", "cramers_v"]

Floats = NDArray[np.float64]

_SEED = 20160619  # public: the same released table has the same interval
_SIMULATIONS, _PLACES = 399, 16
_BELOW, _ABOVE = 7.0, 6.0  # how far tables are looked for, in standard errors
_SHORT = 0.1  # standard errors by which a table may be nearer to independence than it should be
_STEEPEST, _HALVINGS, _FITS = 30.0, 20, 20
_AHEAD = 3  # halvings that are done together
_TINY = 1e-12  # shares of categories that noise has emptied


def cramers_v(shares: Floats) -> Floats:
    """Return Cramér's V of tables of shares; rows and columns that are empty count for nothing."""
    p, q = shares.sum(axis=-1)[..., :, None], shares.sum(axis=-2)[..., None, :]
    expected = p * q
    away = np.where(expected > 0, (shares - expected) ** 2 / np.maximum(expected, 1e-300), 0.0)
    found: Floats = np.sqrt(away.sum(axis=(-2, -1)) / (min(shares.shape[-2:]) - 1))
    return found


def association_interval(table: Floats, n: int, law: CountNoise, level: float) -> Interval:
    """Return the interval of V that inverts the statistic; see :func:`association_ends`.

    Parameters
    ----------
    table : ndarray of shape (r, c)
        The released counts.
    n, law
        The public total and the law of the noise.
    level : float
        How often such intervals cover.
    """
    low, _, high = association_ends(table, n, law, level)
    still = CountNoise("laplace", 0.02)  # no noise: every draw is 0
    near = np.rint(np.maximum(with_total(table, n), 0.0))
    a, _, b = association_ends(near, max(int(near.sum()), 1), still, level)
    return Interval.around(low, high, level, b - a)


def association_ends(
    table: Floats, n: int, law: CountNoise, level: float
) -> tuple[float, float, float]:
    """Return the lower end, the estimate and the upper end of V.

    The estimate is the V at which the released statistic is the median: neither chance nor noise
    pushes it up. If even the most dependent table goes with the statistic, the upper end is 1.
    """
    own = float(independence_statistic(table, n, law.variance))
    error = (1 - level) / 2
    ends: list[list[float]] = []
    for turned in (1.0, -1.0):  # where a rare cell is empty, its sign is not known
        rng = np.random.default_rng(_SEED)
        tables = _more_and_more(table, n, law, own, turned)
        tables = tables[
            np.argsort(cramers_v(tables), kind="stable")
        ]  # empty cells may bend the way
        noise = law.draws((_SIMULATIONS, *table.shape), rng)
        drawn = independence_statistic(simulate(tables, n, noise, rng), n, law.variance)
        v = np.minimum(cramers_v(tables), 1.0)
        # shares of tables that are larger, and smaller, by V; monotone but for chance
        above = np.maximum.accumulate((drawn >= own * (1 - 1e-9)).mean(axis=-1))
        under = np.maximum.accumulate((drawn <= own * (1 + 1e-9)).mean(axis=-1)[::-1])[::-1]
        if ends and above[-1] < error:  # no table on this side goes with the statistic
            continue
        goals = ((above, error), (above, 0.5), (-under, -error))
        ends.append([_crossing(v, values, goal) for values, goal in goals])
    low, high = min(each[0] for each in ends), max(each[2] for each in ends)
    return low, min(max(ends[0][1], low), high), high


def _crossing(v: Floats, values: Floats, goal: float) -> float:
    """Return where rising values reach the goal: 0 if at once, 1 if never."""
    if values[0] >= goal:
        return 0.0
    reached = int(np.argmax(values >= goal))
    if reached == 0:
        return 1.0
    start, end = values[reached - 1], values[reached]
    part = (goal - start) / (end - start)
    return float(v[reached - 1] + part * (v[reached] - v[reached - 1]))


def _more_and_more(table: Floats, n: int, law: CountNoise, own: float, turned: float) -> Floats:
    """Return tables of shares from independence on, towards the released one or away from it."""
    z = with_total(table, n)
    rows, columns = z.shape
    p = likely_margins(z.sum(axis=1) / n, columns * law.variance / n**2)
    q = likely_margins(z.sum(axis=0) / n, rows * law.variance / n**2)
    expected = np.outer(p, q)
    # rare cells are believed less: noise there looks like a strong association
    trust = n * expected / (n * expected + max(law.variance, 1e-9))
    away = (z / n - expected) * trust
    away = away - np.outer(p, away.sum(axis=0))
    away = away - np.outer(away.sum(axis=1), q)
    if not np.abs(away).max() > 1e-12:  # no direction: any will do
        away = np.outer(np.eye(rows)[0] - p, np.eye(columns)[0] - q)
    varies = (n * expected + max(law.variance, 1e-9)) / n**2
    unit = math.sqrt(float((away**2 / varies).sum()))
    root = math.sqrt(own)
    near = np.linspace(max(0.1 * root, root - _BELOW), root + _ABOVE, _PLACES - 2)
    places = np.array([0.0, *near, 2 * root + 20])
    found = np.maximum(expected + (places / max(unit, 1e-12))[:, None, None] * turned * away, 0.0)
    shares: Floats = found / found.sum(axis=(1, 2), keepdims=True)
    short = _distances(shares, expected, varies) < places - _SHORT
    if short.any():
        shares[short] = _steeper(shares[short], expected, varies, places[short])
    return shares


def _distances(shares: Floats, expected: Floats, varies: Floats) -> Floats:
    """Return how far tables are from independence, in standard errors."""
    found: Floats = np.sqrt(((shares - expected) ** 2 / varies).sum(axis=(-2, -1)))
    return found


def _steeper(shares: Floats, expected: Floats, varies: Floats, places: Floats) -> Floats:
    """Return tables as far away as they should be, where empty cells stop a straight line.

    Ratios to independence are raised to a power, which is found by halving, and the margins are put
    right again: in the end each row has one column, if margins allow.
    """
    ratios = np.log(np.maximum(shares, _TINY) / np.maximum(expected, _TINY))
    ratios = np.where(expected > _TINY, ratios, -np.inf)
    ratios -= np.maximum(ratios.max(axis=-1, keepdims=True), -1e3)  # rows are scaled below
    low, high = np.ones(len(shares)), np.full(len(shares), _STEEPEST)
    for start in range(0, _HALVINGS, _AHEAD):
        # all powers that the next halvings may ask for, at once: tables are few and small
        halvings = min(_AHEAD, _HALVINGS - start)
        powers = _between(low, high, halvings)
        found = _with_margins(expected * np.exp(powers[1:-1, :, None, None] * ratios), expected)
        far = _distances(found, expected, varies) >= places
        first, last = np.zeros(len(low), dtype=np.intp), np.full(len(low), 1 << halvings)
        for _ in range(halvings):
            middle = (first + last) // 2
            beyond = np.take_along_axis(far, middle[None] - 1, axis=0)[0]
            first, last = np.where(beyond, first, middle), np.where(beyond, middle, last)
        low, high = (np.take_along_axis(powers, at[None], axis=0)[0] for at in (first, last))
    return _with_margins(expected * np.exp(high[:, None, None] * ratios), expected)


def _between(low: Floats, high: Floats, halvings: int) -> Floats:
    """Return both ends, and all points at which halving by the geometric mean can arrive."""
    ends = [low, high]
    for _ in range(halvings):
        middles = [np.sqrt(a * b) for a, b in pairwise(ends)]
        ends = [end for pair in zip(ends, middles) for end in pair] + ends[-1:]  # noqa: B905
    return np.stack(ends)


def _with_margins(tables: Floats, expected: Floats) -> Floats:
    """Scale rows and columns until their sums are those expected (nearly)."""
    rows, columns = expected.sum(axis=1), expected.sum(axis=0)
    for _ in range(_FITS):
        tables = tables * (rows / np.maximum(tables.sum(axis=-1), _TINY))[..., :, None]
        tables = tables * (columns / np.maximum(tables.sum(axis=-2), _TINY))[..., None, :]
    fitted: Floats = tables / tables.sum(axis=(-2, -1), keepdims=True)
    return fitted
