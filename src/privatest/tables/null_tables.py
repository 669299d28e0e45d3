"""Noisy tables under independence: a statistic that knows the noise, margins, simulation.

All of it is post-processing of a released table. Proof: docs/proofs/contingency.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privatest.mechanisms.additive import CountNoise

__all__ = [
    "independence_pvalue",
    "independence_statistic",
    "likely_margins",
    "margin_scenarios",
    "null_counts",
    "on_simplex",
    "simulate",
    "with_total",
]

Floats = NDArray[np.float64]

_LEAST_VARIANCE = 1e-9  # of the noise: an empty row or column must not divide by 0
_FEW = 8  # categories, up to which exchanging neighbours is the fastest way to sort
_REACH = 2.0  # how many standard errors the margins of a scenario are from the released ones
_AT_ONCE = 1 << 13  # cells of tables whose statistics are computed together: they stay in a cache
_CLOSE = 1e-9  # statistics of equal tables differ by rounding


def with_total(tables: Floats, n: int) -> Floats:
    """Take the same from each cell so that the table has the public total."""
    excess = tables.sum(axis=(-2, -1), keepdims=True) - n
    spread: Floats = tables - excess / (tables.shape[-2] * tables.shape[-1])
    return spread


def on_simplex(vectors: Floats, axis: int = -1) -> Floats:
    """Return the nearest vectors, along an axis, that are not negative and sum to 1."""
    ordered = -_sorted(-vectors, axis)
    excess = np.cumsum(ordered, axis=axis) - 1
    along = [1] * vectors.ndim
    along[axis] = vectors.shape[axis]
    places = np.arange(1, vectors.shape[axis] + 1).reshape(along)
    kept = (ordered - excess / places > 0).sum(axis=axis, keepdims=True)
    cut = np.take_along_axis(excess, kept - 1, axis=axis) / kept
    found: Floats = np.maximum(vectors - cut, 0.0)
    return found


def _sorted(vectors: Floats, axis: int) -> Floats:
    """Sort; many short vectors along the first axis by exchanging neighbours, all at once."""
    if axis != 0 or len(vectors) > _FEW or vectors.ndim == 1:
        return np.sort(vectors, axis=axis)
    rows = vectors.copy()
    for last in range(len(rows) - 1, 0, -1):
        for first in range(last):
            lower = np.minimum(rows[first], rows[first + 1])
            np.maximum(rows[first], rows[first + 1], out=rows[first + 1])
            rows[first] = lower
    return rows


def likely_margins(shares: Floats, variance: float, axis: int = -1) -> Floats:
    """Shrink noisy margins towards equal shares by as much as is noise (James and Stein).

    Parameters
    ----------
    shares : ndarray
        Margins divided by n, along the axis.
    variance : float
        Of the noise of a share.
    axis : int
        Where the categories are.
    """
    k = shares.shape[axis]
    away = shares - 1 / k
    far = np.maximum((away**2).sum(axis=axis, keepdims=True), 1e-300)
    return on_simplex(1 / k + np.maximum(0.0, 1 - (k - 1) * variance / far) * away, axis)


def independence_statistic(tables: Floats, n: int, variance: float) -> Floats:
    """Return the chi-squared distance of noisy tables from independence.

    With margins p and q of the table, v_ij = n p_i q_j + variance is how much cell ij varies by
    chance and by noise. The statistic is the least sum of (z_ij - n p_i q_j - a_i q_j -
    p_i b_j)²/v_ij over all a and b: the quadratic form of what is left when errors of the margins
    are taken out, by its own covariance. Without noise it is Pearson's chi-squared.

    Parameters
    ----------
    tables : ndarray of shape (..., r, c)
        Noisy counts.
    n : int
        The public total.
    variance : float
        Of the noise of a cell.
    """
    if tables.shape[-2] < tables.shape[-1]:  # the system below has a row for each column
        tables = tables.swapaxes(-1, -2)
    rows, columns = tables.shape[-2:]
    parts = np.empty(tables.shape[:-2])
    flat, found = tables.reshape(-1, rows, columns), parts.reshape(-1)
    step = max(1, _AT_ONCE // (rows * columns))
    for start in range(0, len(flat), step):
        part = slice(start, start + step)
        found[part] = _distances(flat[part], n, variance)
    return parts


def _distances(tables: Floats, n: int, variance: float) -> Floats:
    """Return the statistic of some tables: rows at least as many as columns."""
    rows, columns = tables.shape[-2:]
    # rows and columns first, tables last: sums over a few cells are sums of long vectors
    z = np.ascontiguousarray(np.moveaxis(with_total(tables, n), (-2, -1), (0, 1)))
    p = likely_margins(z.sum(axis=1) / n, columns * variance / n**2, 0)[:, None]
    q = likely_margins(z.sum(axis=0) / n, rows * variance / n**2, 0)[None]
    product = n * p * q
    weight = 1 / (product + max(variance, _LEAST_VARIANCE))
    residual = z - product
    # normal equations of a and b; a is eliminated, and b is found up to a multiple of q
    share, weighted = p * q * weight, residual * weight
    own_a, own_b = (q**2 * weight).sum(axis=1), (p**2 * weight).sum(axis=0)
    right_a, right_b = (weighted * q).sum(axis=1), (weighted * p).sum(axis=0)
    right = right_b - ((right_a / own_a)[:, None] * share).sum(axis=0)
    left, same, line = (_cells_last(each) for each in (share / own_a[:, None], share, q))
    system = -(left.swapaxes(-1, -2) @ same)
    system += own_b.sum(axis=0)[..., None, None] * line.swapaxes(-1, -2) * line
    system[..., np.arange(columns), np.arange(columns)] += np.moveaxis(own_b, 0, -1)
    b = np.linalg.solve(system, np.moveaxis(right, 0, -1)[..., None])[..., 0]
    taken = (right_a**2 / own_a).sum(axis=0) + (right * np.moveaxis(b, -1, 0)).sum(axis=0)
    found: Floats = np.maximum(_cells_last(residual * weighted).sum(axis=(-2, -1)) - taken, 0.0)
    return found


def _cells_last(tables: Floats) -> Floats:
    """Return tables of shape (r, c, ...) as (..., r, c)."""
    return np.ascontiguousarray(np.moveaxis(tables, (0, 1), (-2, -1)))


def simulate(shares: Floats, n: int, noise: Floats, rng: np.random.Generator) -> Floats:
    """Draw tables of n rows with given shares, one for each table of noise, and add that."""
    cells = shares.reshape(*shares.shape[:-2], 1, -1)
    total = cells.sum(axis=-1, keepdims=True)
    size = (*shares.shape[:-2], len(noise))
    drawn = rng.multinomial(n, cells / total, size=size).reshape(*size, *shares.shape[-2:])
    return drawn + noise


def null_counts(
    scenarios: Sequence[Floats], n: int, count: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Yield tables of n rows for each scenario; those of one are those of the first, but few rows.

    A row of cell i stays there with probability min(1, q_i/p_i), p the shares of the first scenario
    and q those of another; else it goes to a cell with q_j > p_j, with probability proportional to
    q_j - p_j. So it is in cell j with probability q_j, exactly, and as few rows as possible differ.
    Were tables drawn anew, the largest of several shares of them would be too large by chance.
    """
    shape, p = scenarios[0].shape, (scenarios[0] / scenarios[0].sum()).ravel()
    first = rng.multinomial(n, p, size=count)
    yield first.reshape(count, *shape).astype(np.float64)
    for scenario in scenarios[1:]:
        q = (scenario / scenario.sum()).ravel()
        stays = np.minimum(1.0, q / np.maximum(p, 1e-300))
        kept, more = rng.binomial(first, stays), np.maximum(q - p, 0.0)
        if more.sum() > 0:
            kept = kept + rng.multinomial(n - kept.sum(axis=1), more / more.sum())
        yield kept.reshape(count, *shape).astype(np.float64)


def margin_scenarios(table: Floats, n: int, variance: float) -> list[Floats]:
    """Return independent tables of shares whose margins go with a released table.

    The likely margins, and those 2 standard errors nearer to a single category and nearer to equal
    shares, in all four ways: a law under the null hypothesis depends on how unequal the margins
    are. If noise hides them all rows may be in one cell, and there the statistic, which takes them
    for equal, is largest.
    """
    z = with_total(table, n)
    rows, columns = z.shape
    left = _margin_range(z.sum(axis=1) / n, n, columns * variance / n**2)
    right = _margin_range(z.sum(axis=0) / n, n, rows * variance / n**2)
    pairs = ((0, 0), (1, 1), (2, 2), (1, 2), (2, 1))
    return [np.outer(left[i], right[j]) for i, j in pairs]


def _margin_range(shares: Floats, n: int, variance: float) -> tuple[Floats, Floats, Floats]:
    """Return likely margins, more unequal ones, and more equal ones."""
    k = len(shares)
    away = shares - 1 / k
    far = math.sqrt(float(away @ away))
    towards = away / far if far > 0 else np.eye(k)[0] - 1 / k
    inside = on_simplex(shares)
    reach = _REACH * math.sqrt(float(towards**2 @ (inside * (1 - inside) / n + variance)))
    # one category in place of many: under noise an even direction would lead to two or three
    way = np.eye(k)[int(np.argmax(shares))] - shares
    unequal = on_simplex(shares + min(1.0, reach / max(math.hypot(*way), 1e-300)) * way)
    equal = on_simplex(1 / k + max(0.0, far - reach) * towards)
    return likely_margins(shares, variance), unequal, equal


def independence_pvalue(
    table: Floats, n: int, law: CountNoise, simulations: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the statistic and its p-value: the largest over scenarios of the margins.

    Parameters
    ----------
    table : ndarray of shape (r, c)
        The released table.
    n, law
        The public total, and the law of the noise.
    simulations, rng
        Number of tables for each scenario, and public randomness.
    """
    own = float(independence_statistic(table, n, law.variance))
    noise = law.draws((simulations, *table.shape), rng)
    most = 0
    scenarios = margin_scenarios(table, n, law.variance)
    for counts in null_counts(scenarios, n, simulations, rng):
        drawn = independence_statistic(counts + noise, n, law.variance)
        most = max(most, int((drawn >= own * (1 - _CLOSE)).sum()))
    return own, (1 + most) / (simulations + 1)
