"""Tests of categorical columns: independence of two, and given shares of one.

Rows are counted in the cells of a public table, which is released with noise; everything else is
post-processing. Proofs: docs/proofs/counts.md, docs/proofs/contingency.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Interval, Outcome, declare_level
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    of_type,
    public_generator,
    reject,
)
from privatest.data.encoding import Sample, beside, encode_sample, rows_of_a_person
from privatest.data.reading import read_data
from privatest.data.schema import CategoricalColumn, Category, Schema, spelling
from privatest.data.summaries import counts_of
from privatest.mechanisms.additive import CountMechanism, CountNoise, count_noise, noisy_counts
from privatest.methods.descriptor import Method

Floats = NDArray[np.float64]


# --- Categorical columns as counts in public cells ----------------------------------------------


def read_category(
    data: object, categories: Sequence[Category] | None, bounds: Any, name: str, side: str = ""
) -> tuple[Sample, tuple[Category, ...]]:
    """Read one categorical column; return it as codes, and its public categories.

    ``categories``, or ``bounds``, a schema of one categorical column, describe it. Messages call it
    ``name``; ``side`` is how these parameters end, "_x" or "".
    """
    if (categories is None) == (bounds is None):
        raise ParameterError(
            f"categories{side} must be given, the public list of categories; or bounds{side}, a "
            "Schema that has them: categories found from the data would leak it."
        )
    schema = bounds
    if categories is not None:
        column = _described(categories, side)
        names = read_data(data, name).names or (name,)
        if len(names) > 1:
            raise DataError(f"{name} must be one column.")
        schema = Schema({names[0]: column})
    if not isinstance(schema, Schema) or schema.domain.levels[0] == 0 or len(schema.columns) > 1:
        raise ParameterError(f"bounds{side} must be a Schema of one categorical column.")
    (described,) = schema.columns.values()
    assert isinstance(described, CategoricalColumn)
    return encode_sample(data, schema, name), described.categories


def _described(categories: Sequence[Category], side: str) -> CategoricalColumn:
    """Return the column; a refusal names the parameter."""
    if of_type(categories, str) or not of_type(categories, Iterable):
        raise ParameterError(f"categories{side} must be a list of all possible values.")
    try:
        return CategoricalColumn(tuple(categories))
    except ParameterError as error:
        error.rename({"categories": f"categories{side}"})
        raise


def cell_counts(columns: Sequence[Sample], levels: Sequence[int]) -> NDArray[np.int64]:
    """Count the rows in each cell of the table of some columns.

    A replaced row leaves one cell and enters another: the counts move by 2 in the l1 norm and by
    sqrt(2) in the l2 norm. Proof: docs/proofs/counts.md.
    """
    shape = tuple(levels)
    cells_of = partial(_cells, shape)
    (counts,) = counts_of(beside(*columns), cells_of=cells_of, size=math.prod(shape))
    return counts.reshape(shape)


def _cells(shape: tuple[int, ...], rows: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.asarray(np.ravel_multi_index(tuple(rows.astype(np.intp).T), shape))


def spelled(categories: Sequence[Category]) -> tuple[str, ...]:
    """Return categories as text, for results."""
    return tuple(map(spelling, categories))


# --- Intervals for the shares of all cells ------------------------------------------------------
#
# Exact up to a rounding that widens them.


_STEPS = 4  # blocks of noise in one scale
_FURTHEST = {"laplace": 20.0, "gaussian": 6.0}  # scales; what is beyond counts as infinite
_HALVINGS = 24


def cell_intervals(table: Floats, n: int, law: CountNoise, level: float) -> Interval:
    """Return an interval for the share of each cell, of any shape, all at once.

    For each cell Clopper and Pearson's interval with the noise added to the binomial count, at
    1 - (1 - level)/(number of cells): Bonferroni, so a little more than ``level`` are covered.
    ``n`` and ``law`` are the public total and the law of the noise.
    """
    error = (1 - level) / table.size / 2
    cells = table.ravel()
    low, high = _lower(cells, n, law, error), 1 - _lower(n - cells, n, law, error)
    nearest = np.clip(np.rint(cells), 0, n)
    without = 1 - _binomial_lower(n - nearest, n, error) - _binomial_lower(nearest, n, error)
    shape = table.shape
    return Interval.around(
        low.reshape(shape), high.reshape(shape), level, np.maximum(without, 0.0).reshape(shape)
    )


def _lower(cells: Floats, n: int, law: CountNoise, error: float) -> Floats:
    """Return the smallest share s with P(Binomial(n, s) + noise >= cell) >= error.

    The noise is symmetric, so that the largest share is 1 minus this of n - cell.
    """
    from scipy.special import bdtrc  # noqa: PLC0415

    values, masses = _blocks(law)
    # the count has to be at least this, for each value of the noise
    needed = np.maximum(np.ceil(np.round(cells[:, None] - values, 9)), 0.0)
    low, high = np.zeros(len(cells)), np.ones(len(cells))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        some = bdtrc(np.clip(needed, 1, n) - 1, n, middle[:, None])
        reached = np.where(needed <= 0, 1.0, np.where(needed > n, 0.0, some)) @ masses
        below = reached < error
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def _blocks(law: CountNoise) -> tuple[Floats, Floats]:
    """Return upper ends of blocks of noise, and their masses: never less noise than there is."""
    far = _FURTHEST[law.kind]
    if law.kind == "gaussian":
        from scipy.special import ndtr  # noqa: PLC0415

        ends = np.arange(-far, far, 1 / _STEPS) * law.scale
        below = ndtr(ends / law.scale)
    else:
        step = max(1, math.floor(law.scale / _STEPS))
        most = step * math.ceil(far * law.scale / step)
        ends = np.arange(-most, most + step, step, dtype=np.float64)
        ratio = math.exp(-1 / law.scale)
        # P(noise <= j) of discrete Laplace noise
        below = ratio ** np.where(ends < 0, -ends, ends + 1) / (1 + ratio)
        below = np.where(ends < 0, below, 1 - below)
    return np.append(ends, np.inf), np.diff(below, prepend=0.0, append=1.0)


def _binomial_lower(counts: Floats, n: int, error: float) -> Floats:
    """Clopper and Pearson's lower end."""
    from scipy.special import betaincinv  # noqa: PLC0415

    some = betaincinv(np.maximum(counts, 1), n - counts + 1, error)
    return np.asarray(np.where(counts > 0, some, 0.0))


# --- Noisy tables under independence ------------------------------------------------------------


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
    return np.asarray(np.maximum(vectors - cut, 0.0))


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
    """Shrink noisy shares along an axis towards equal ones, by James and Stein's rule.

    ``variance`` is that of the noise of a share.
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
    are taken out, by its own covariance. Without noise it is Pearson's chi-squared. ``tables`` are
    noisy counts (..., r, c), and ``variance`` is that of the noise of a cell.
    """
    if tables.shape[-2] < tables.shape[-1]:  # the system below has a row for each column
        tables = tables.swapaxes(-1, -2)
    rows, columns = tables.shape[-2:]
    parts = np.empty(tables.shape[:-2])
    flat, found = tables.reshape(-1, rows, columns), parts.reshape(-1)
    step = max(1, _AT_ONCE // (rows * columns))
    for start in range(0, len(flat), step):
        part = slice(start, start + step)
        found[part] = _independence_distances(flat[part], n, variance)
    return parts


def _independence_distances(tables: Floats, n: int, variance: float) -> Floats:
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
    """Return the statistic and its p-value: the largest over scenarios of the margins."""
    own = float(independence_statistic(table, n, law.variance))
    noise = law.draws((simulations, *table.shape), rng)
    most = 0
    scenarios = margin_scenarios(table, n, law.variance)
    for counts in null_counts(scenarios, n, simulations, rng):
        drawn = independence_statistic(counts + noise, n, law.variance)
        most = max(most, int((drawn >= own * (1 - _CLOSE)).sum()))
    return own, (1 + most) / (simulations + 1)


# --- Cramér's V from a noisy table --------------------------------------------------------------
#
# The interval has the values that the released statistic does not contradict: tables from
# independence to beyond what was released are simulated with their noise, by public randomness.


_SEED = 20160619  # public: the same released table has the same interval
_SIMULATIONS, _PLACES = 399, 16
_BELOW, _ABOVE = 7.0, 6.0  # how far tables are looked for, in standard errors
_SHORT = 0.1  # standard errors by which a table may be nearer to independence than it should be
_STEEPEST, _POWER_HALVINGS, _FITS = 30.0, 20, 20
_AHEAD = 3  # halvings that are done together
_TINY = 1e-12  # shares of categories that noise has emptied


def cramers_v(shares: Floats) -> Floats:
    """Return Cramér's V of tables of shares; rows and columns that are empty count for nothing."""
    p, q = shares.sum(axis=-1)[..., :, None], shares.sum(axis=-2)[..., None, :]
    expected = p * q
    away = np.where(expected > 0, (shares - expected) ** 2 / np.maximum(expected, 1e-300), 0.0)
    return np.asarray(np.sqrt(away.sum(axis=(-2, -1)) / (min(shares.shape[-2:]) - 1)))


def association_interval(table: Floats, n: int, law: CountNoise, level: float) -> Interval:
    """Return the interval of V that inverts the statistic; see :func:`association_ends`."""
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
        tables = _tables_by_association(table, n, law, own, turned)
        # empty cells may change the order
        tables = tables[np.argsort(cramers_v(tables), kind="stable")]
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


def _tables_by_association(
    table: Floats, n: int, law: CountNoise, own: float, turned: float
) -> Floats:
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
    return np.asarray(np.sqrt(((shares - expected) ** 2 / varies).sum(axis=(-2, -1))))


def _steeper(shares: Floats, expected: Floats, varies: Floats, places: Floats) -> Floats:
    """Return tables as far away as they should be, where empty cells stop a straight line.

    Ratios to independence are raised to a power, which is found by halving, and the margins are put
    right again: in the end each row has one column, if margins allow.
    """
    ratios = np.log(np.maximum(shares, _TINY) / np.maximum(expected, _TINY))
    ratios = np.where(expected > _TINY, ratios, -np.inf)
    ratios -= np.maximum(ratios.max(axis=-1, keepdims=True), -1e3)  # rows are scaled below
    low, high = np.ones(len(shares)), np.full(len(shares), _STEEPEST)
    for start in range(0, _POWER_HALVINGS, _AHEAD):
        # all powers that the next halvings may ask for, at once: tables are few and small
        halvings = min(_AHEAD, _POWER_HALVINGS - start)
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


# --- Given shares of one column -----------------------------------------------------------------


def expected_shares(given: object, categories: Sequence[Category]) -> Floats:
    """Return public shares in the order of the categories; equal ones if none are given."""
    k = len(categories)
    if given is None:
        return np.full(k, 1 / k)
    if isinstance(given, Mapping):
        named = {spelling(name): share for name, share in given.items()}
        if set(named) != set(spelled(categories)) or len(named) != len(given):
            raise ParameterError("f_exp", "must have a share for each category, and no other")
        given = [named[name] for name in spelled(categories)]
    try:
        shares = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        reject("f_exp", "shares above 0, one for each category", given)
    with np.errstate(invalid="ignore", over="ignore"):
        good = shares.shape == (k,) and np.isfinite(shares.sum()) and bool((shares > 0).all())
    if not good:
        raise ParameterError("f_exp", f"must be {k} numbers above 0, one for each category")
    found: Floats = shares / shares.sum()
    return found


def fit_pvalue(
    table: Floats, n: int, expected: Floats, law: CountNoise, simulations: int, rng: Any
) -> tuple[float, float]:
    """Return the statistic and its Monte Carlo p-value, of a simple null hypothesis."""
    k = len(expected)
    flat = np.eye(k) - 1 / k
    spread = n * (np.diag(expected) - np.outer(expected, expected)) + law.variance * flat
    # the all-ones direction is empty in both terms; filled, the matrix can be inverted
    form = np.linalg.inv(spread + np.full((k, k), np.trace(spread) / k**2))

    def distance(tables: Floats) -> Floats:
        away = (tables - n * expected) @ flat
        return np.asarray(np.einsum("...i,ij,...j->...", away, form, away))

    drawn = rng.multinomial(n, expected, size=simulations) + law.draws((simulations, k), rng)
    own = float(distance(table))
    larger = int((distance(drawn) >= own * (1 - 1e-9)).sum())
    return own, (1 + larger) / (simulations + 1)


# --- Public functions ---------------------------------------------------------------------------


@declare_level("measured")
def chi2_contingency(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    categories_x: Sequence[Category] | None = None,
    categories_y: Sequence[Category] | None = None,
    bounds_x: Any = None,
    bounds_y: Any = None,
    mechanism: CountMechanism = "auto",
    n_simulations: int = 1999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two categorical columns are independent (chi-squared).

    SciPy's function takes a table of counts; this one takes the columns, counts and adds noise.

    Parameters
    ----------
    x, y : array, series or table of one column
        Row i of ``x`` and row i of ``y`` belong to one record.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision, and of the intervals.
    categories_x, categories_y : sequence, optional
        The public categories of each side. They are never found from the data.
    bounds_x, bounds_y : Schema, optional
        A schema of one categorical column for a side, instead of its categories: it also says how
        missing values count and how many rows a person may have.
    mechanism : {"auto", "laplace", "gaussian"}
        The noise of the counts; "auto" takes the smaller variance.
    n_simulations : int
        Number of tables that are simulated for each scenario of the margins.
    rng : None, int or Generator
        Public randomness, for the simulation.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the chi-squared distance of the noisy table from independence, where a
        cell's variance includes its noise. Estimates: ``cramers_v`` with ``lower`` and ``upper``
        (the interval of :meth:`Outcome.confidence_interval`), ``counts`` (noisy, as released),
        ``shares`` (the nearest possible ones) and their simultaneous intervals ``shares_lower``
        and ``shares_upper``.

    Notes
    -----
    Without noise the statistic is Pearson's, that of SciPy with ``correction=False``. The p-value
    is the largest over five scenarios of the margins: the likely ones, and others 2 standard errors
    nearer to one category and to equal shares. Tables are simulated from each, with their noise.
    That the level holds is measured, from 5 rows and expected counts below 1 on, not proved:
    docs/proofs/contingency.md.

    Cramér's V is estimated where the released statistic is the median, so neither chance nor noise
    pushes it up; SciPy's ``association`` is larger on small tables. Its interval inverts the
    statistic in the direction of the released table; its coverage is measured too. The intervals
    of shares cover all cells at once, by Bonferroni's inequality, more often than they say.

    **Sensitivity** 2 in the l1 norm and sqrt(2) in the l2 norm, times the rows of a person: a
    replaced row moves two counts by 1. Proof: docs/proofs/counts.md.

    **Privacy** The table is released with noise at (epsilon, delta), both values of one row
    replaced; n is public. Everything else is computed from it. Proof: docs/proofs/contingency.md.

    References
    ----------
    Gaboardi, Lim, Rogers and Vadhan (2016), Differentially private chi-squared hypothesis testing.
    Rogers and Kifer (2017), A new class of private chi-square hypothesis tests.
    Berger and Boos (1994), P values maximized over a confidence set for the nuisance parameter.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(2, size=2000)
    >>> y = np.where(rng.uniform(size=2000) < 0.3, x, rng.integers(2, size=2000))
    >>> result = pt.chi2_contingency(x, y, categories_x=[0, 1], categories_y=[0, 1], epsilon=1)
    >>> result.reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    simulations = integer_at_least("n_simulations", n_simulations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    left, names_x = read_category(x, categories_x, bounds_x, "x", "_x")
    right, names_y = read_category(y, categories_y, bounds_y, "y", "_y")
    n, rows = len(left), max(map(rows_of_a_person, (left, right)))
    if len(right) != n:
        raise DataError("x and y must have the same number of rows: row i of x belongs to y's.")
    if n < 1:
        raise DataError("x and y must have at least one row.")
    declared = {left.rows_per_person, right.rows_per_person}
    if bounds_x is not None and bounds_y is not None and len(declared) > 1:
        raise ParameterError("bounds_x and bounds_y must have the same rows_per_person.")
    shape = len(names_x), len(names_y)
    law = count_noise(shape[0] * shape[1], budget, mechanism, rows_per_person=rows)
    counts = cell_counts([left, right], shape)
    table = noisy_counts(counts, law=law, budget=budget, rows_per_person=rows, noise=source)
    statistic, pvalue = independence_pvalue(table, n, law, simulations, generator)
    low, middle, high = association_ends(table, n, law, 1 - alpha)
    cells = cell_intervals(table, n, law, 1 - alpha)
    shares = on_simplex((with_total(table, n) / n).ravel()).reshape(shape)
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        adjacency="one",
        method="chi-squared test of independence",
        null_hypothesis="the two columns are independent",
        sizes={"n": n},
        parameters={
            "categories_x": spelled(names_x),
            "categories_y": spelled(names_y),
            "mechanism": law.kind,
            "n_simulations": simulations,
        },
        rows_per_person=max(declared),
        simulated=source.simulated,
        pvalue=pvalue,
        statistic=statistic,
        estimated="cramers_v",
        estimates={
            "cramers_v": middle,
            "lower": low,
            "upper": high,
            "shares": shares,
            "shares_lower": np.asarray(cells.low),
            "shares_upper": np.asarray(cells.high),
            "counts": table,
        },
        intervals=partial(association_interval, table, n, law),
    )


@declare_level("valid")
def chisquare(
    x: Any,
    f_exp: Sequence[float] | Mapping[Any, float] | None = None,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    categories: Sequence[Category] | None = None,
    bounds: Any = None,
    mechanism: CountMechanism = "auto",
    n_simulations: int = 1999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a categorical column has given shares (chi-squared).

    SciPy's function takes counts; this one takes the column, counts it and adds noise.

    Parameters
    ----------
    x : array, series or table of one column
        The column.
    f_exp : sequence or mapping of float, optional
        Public shares or frequencies above 0, in the order of the categories or by category;
        they are divided by their sum. Equal by default.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision, and of the intervals.
    categories : sequence, optional
        The public categories. They are never found from the data.
    bounds : Schema, optional
        A schema of one categorical column, instead of ``categories``: it also says how missing
        values count and how many rows a person may have.
    mechanism : {"auto", "laplace", "gaussian"}
        The noise of the counts; "auto" takes the smaller variance.
    n_simulations : int
        Number of tables that are simulated for the p-value.
    rng : None, int or Generator
        Public randomness, for the simulation.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is (z - n p)' (n (diag p - p p') + s² P)^+ (z - n p) of the noisy counts z
        brought to their public total; s² is the variance of the noise, P takes the mean off.
        Estimates: ``counts`` (noisy, as released), ``shares`` (the nearest possible ones), and
        their simultaneous intervals ``lower`` and ``upper``.

    Notes
    -----
    The null hypothesis has one law, noise included, from which tables are simulated: the p-value
    is exactly valid for every n and epsilon. Without noise the statistic is Pearson's.

    **Sensitivity** 2 in the l1 norm and sqrt(2) in the l2 norm, times the rows of a person: a
    replaced row moves two counts by 1. Proof: docs/proofs/counts.md.

    **Privacy** The counts are released with noise at (epsilon, delta), each row replaced; n is
    public. Everything else is computed from them. Proof: docs/proofs/contingency.md.

    References
    ----------
    Gaboardi, Lim, Rogers and Vadhan (2016), Differentially private chi-squared hypothesis testing.
    Rogers and Kifer (2017), A new class of private chi-square hypothesis tests.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> x = np.random.default_rng(0).choice(["a", "b", "c"], size=2000, p=[0.5, 0.3, 0.2])
    >>> pt.chisquare(x, categories=["a", "b", "c"], epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    simulations = integer_at_least("n_simulations", n_simulations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    sample, named = read_category(x, categories, bounds, "x")
    expected = expected_shares(f_exp, named)
    n, rows = len(sample), rows_of_a_person(sample)
    if n < 1:
        raise DataError("x must have at least one row.")
    law = count_noise(len(named), budget, mechanism, rows_per_person=rows)
    counts = cell_counts([sample], [len(named)])
    table = noisy_counts(counts, law=law, budget=budget, rows_per_person=rows, noise=source)
    statistic, pvalue = fit_pvalue(table, n, expected, law, simulations, generator)
    cells = cell_intervals(table, n, law, 1 - alpha)
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        adjacency="one",
        method="chi-squared test of shares",
        null_hypothesis="the categories have the given shares",
        sizes={"n": n},
        parameters={
            "categories": spelled(named),
            "expected": tuple(expected.tolist()),
            "mechanism": law.kind,
            "n_simulations": simulations,
        },
        rows_per_person=sample.rows_per_person,
        simulated=source.simulated,
        pvalue=pvalue,
        statistic=statistic,
        estimated="shares",
        estimates={
            "shares": on_simplex(table / n + (1 - table.sum() / n) / len(table)),
            "lower": cells.low,
            "upper": cells.high,
            "counts": table,
        },
        intervals=partial(cell_intervals, table, n, law),
    )


# --- Descriptors --------------------------------------------------------------------------------


DESCRIPTORS = (
    Method(
        name="chi2",
        question="independence",
        function=chi2_contingency,
        about="two categorical columns, with their table",
        aliases=("chi2_contingency",),
        columns="one categorical",
        sentence="We tested independence of categories by a chi-squared statistic of a noisy table",
        papers=("gaboardi2016", "rogers2017"),
    ),
    Method(
        name="shares",
        question="fit",
        function=chisquare,
        part="shares",
        columns="one categorical",
        sentence=(
            "We compared shares of categories with given ones by a chi-squared statistic of "
            "noisy counts"
        ),
        papers=("gaboardi2016", "rogers2017"),
    ),
)
