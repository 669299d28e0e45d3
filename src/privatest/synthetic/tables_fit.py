"""A mixture of products, fitted to noisy tables of one and two columns.

Each of R components has a distribution for each column, and columns are independent within a
component. With P the R × K matrix of all these probabilities, side by side, all tables of two
columns are blocks of P'P/R and all tables of one column are its column means: both are
consistent and non-negative whatever P is. Post-processing: none of this sees private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.tables import Cells, Tables, TablesPlan, grouped, on_simplex

Floats = NDArray[np.float32]

_SPREAD = 0.5  # standard deviation of the logarithms that components start with
_RATE, _FIRST, _SECOND = 0.1, 0.9, 0.99  # Adam
_EXPLAINED = 0.9  # squared residuals over their noise, for each count: below this it is noise
_SMALLEST = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A noisy table to fit, in shares: its columns, its fine groups' groups, and its noise."""

    columns: tuple[int, ...]
    groups: tuple[NDArray[np.intp] | None, ...]
    shares: NDArray[np.float64]
    sigma: NDArray[np.float64] | float


def targets(tables: Tables, names: Sequence[str], n: int) -> list[Target]:
    """Return what the mixture is fitted to: noisy shares of fine or coarse groups."""
    found = []
    for table in tables.measured:
        columns = tuple(names.index(name) for name in table.columns)
        if len(columns) == 1:
            group = tables.fine[columns[0]]
            counts = grouped(table.counts, group)
            # the number of rows is public: it takes out one part of the noise
            cells = np.bincount(group)
            counts += (n - table.counts.sum()) * cells / len(group)
            found.append(Target(columns, (None,), counts / n, table.sigma * np.sqrt(cells) / n))
            continue
        rough = tables.coarse is not None and table.counts.shape != tuple(
            tables.sizes[column] for column in columns
        )
        groups = tuple(tables.coarse[c] if rough and tables.coarse else None for c in columns)
        found.append(Target(columns, groups, table.counts / n, table.sigma / n))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Logarithms of the components' probabilities, R × K, and where each column begins."""

    logits: Floats
    starts: NDArray[np.intp]

    @property
    def shares(self) -> Floats:
        """The probabilities, R × K."""
        return _softmax(self.logits, self.starts)


def _softmax(logits: Floats, starts: NDArray[np.intp]) -> Floats:
    shares = np.empty_like(logits)
    for first, last in pairwise(starts):
        block = logits[:, first:last]
        powers = np.exp(block - block.max(axis=1, keepdims=True))
        shares[:, first:last] = powers / powers.sum(axis=1, keepdims=True)
    return shares


class _Level:
    """Tables of two columns whose columns have the same groups: blocks of one matrix."""

    def __init__(self, sizes: Sequence[int], groups: Sequence[NDArray[np.intp]] | None) -> None:
        self.starts = _starts(sizes)
        self.groups: Floats | None = None
        if groups is not None:
            counts = [int(group.max()) + 1 for group in groups]
            columns = np.concatenate(
                [g + s for g, s in zip(groups, _starts(counts)[:-1], strict=True)]
            )
            self.groups = np.zeros((len(columns), sum(counts)), dtype=np.float32)
            self.groups[np.arange(len(columns)), columns] = 1
            self.starts = _starts(counts)
        total = int(self.starts[-1])
        self.wanted = np.zeros((total, total), dtype=np.float32)
        self.weight = np.zeros((total, total), dtype=np.float32)
        self.count = 0

    def add(self, target: Target, unit: float) -> None:
        one, other = (slice(*self.starts[column : column + 2]) for column in target.columns)
        for rows, columns, table in ((one, other, target.shares), (other, one, target.shares.T)):
            self.wanted[rows, columns] = table
            self.weight[rows, columns] = (unit / np.asarray(target.sigma)) ** 2
        self.count += target.shares.size

    def step(self, shares: Floats) -> tuple[Floats, float]:
        """Return the gradient in the shares, and the sum of squared weighted residuals."""
        used: Floats = shares if self.groups is None else shares @ self.groups
        away: Floats = used.T @ used
        away /= np.float32(len(used))
        away -= self.wanted
        pull = self.weight * away
        lost = float(np.vdot(pull, away)) / 2  # each table stands there twice
        slope: Floats = used @ pull
        if self.groups is not None:
            slope = slope @ self.groups.T
        return slope, lost


def _starts(sizes: Sequence[int]) -> NDArray[np.intp]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def fit_mixture(
    sizes: Sequence[int],
    targets: Sequence[Target],
    coarse: Sequence[NDArray[np.intp]] | None,
    *,
    components: int,
    steps: int,
    rng: np.random.Generator,
    start: Mixture | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Mixture:
    """Fit by Adam until what is left looks like noise, or for a number of steps.

    Parameters
    ----------
    sizes : sequence of int
        Fine groups of each column.
    targets : sequence of Target
        Tables of one column in fine groups, and of two columns in fine or coarse ones.
    coarse : sequence of ndarray or None
        The coarse group of each fine group, for each column.
    components : int
        R, where there is no ``start``.
    steps : int
        At most so many.
    rng : Generator
        Public randomness.
    start : Mixture, optional
        Where to begin; by default near independence.
    progress : callable, optional
        Called with (steps done, steps).
    """
    starts, unit = _starts(sizes), min(float(np.min(t.sigma)) for t in targets)
    fine = _Level(sizes, None)
    rough = None if coarse is None else _Level(sizes, coarse)
    single = np.zeros(starts[-1], dtype=np.float32)
    weight = np.zeros(starts[-1], dtype=np.float32)
    for target in targets:
        if len(target.columns) == 1:
            place = slice(*starts[target.columns[0] : target.columns[0] + 2])
            single[place] = target.shares
            weight[place] = (unit / np.asarray(target.sigma)) ** 2
        else:
            level = fine if target.groups[0] is None else rough
            assert level is not None
            level.add(target, unit)
    levels = [level for level in (fine, rough) if level is not None and level.count]
    enough = _EXPLAINED * unit**2 * (len(single) + sum(level.count for level in levels))
    logits = _begin(single, components, rng) if start is None else start.logits.copy()
    first, second = np.zeros_like(logits), np.zeros_like(logits)
    for step in range(1, steps + 1):
        shares = _softmax(logits, starts)
        away = shares.mean(axis=0) - single
        slope = np.broadcast_to(weight * away, shares.shape)
        lost = float(np.vdot(weight * away, away))
        for level in levels:
            more, loss = level.step(shares)
            slope, lost = slope + more, lost + loss
        if lost <= enough:
            break
        slope = _through_softmax(slope, shares, starts)
        first = _FIRST * first + (1 - _FIRST) * slope
        second = _SECOND * second + (1 - _SECOND) * slope**2
        rate = _RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
        size = np.sqrt(second / (1 - _SECOND**step)) + np.float32(1e-30)
        logits -= np.float32(rate / (1 - _FIRST**step)) * first / size
        if progress is not None:
            progress(step, steps)
    return Mixture(logits, starts)


def _begin(single: Floats, components: int, rng: np.random.Generator) -> Floats:
    base = np.log(np.maximum(single, _SMALLEST))
    spread = rng.standard_normal((components, len(single)), dtype=np.float32)
    logits: Floats = (base + np.float32(_SPREAD) * spread).astype(np.float32)
    return logits


def _through_softmax(slope: Floats, shares: Floats, starts: NDArray[np.intp]) -> Floats:
    """Return the gradient in the logarithms."""
    slope = slope * shares
    for first, last in pairwise(starts):
        block = slope[:, first:last]
        block -= shares[:, first:last] * block.sum(axis=1, keepdims=True)
    return slope


# How the rows of a group lie in its cells, from noisy counts and a noisy mean: post-processing.


_STEEPEST = 0.9  # share of a tail in its first cell
_LEAST_TILT, _STEPS, _TILTS = 0.05, 1.25, 48  # tried, for places between 0 and 1


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """What was measured of one column.

    Attributes
    ----------
    cells : Cells
        Its public cells.
    groups : ndarray
        The group of each cell.
    counts : ndarray
        Noisy counts of the cells.
    sigma : float
        Their noise.
    n : int
        The number of private rows.
    mean : float or None
        The noisy mean, where the lower bound is 0 and the upper 1.
    mean_sigma : float
        Its noise.
    """

    cells: Cells
    groups: NDArray[np.intp]
    counts: NDArray[np.float64]
    sigma: float
    n: int
    mean: float | None = None
    mean_sigma: float = 0.0


def columns_of(tables: Tables, plan: TablesPlan) -> list[Column]:
    """Return what was measured of each column alone."""
    means = dict(zip(plan.moments.means, tables.moments[0].tolist(), strict=True))
    return [
        Column(
            cells,
            group,
            table.counts,
            table.sigma,
            plan.n,
            means.get(place),
            tables.mean_sigma,
        )
        for place, (cells, group, table) in enumerate(
            zip(plan.cells, tables.fine, tables.single, strict=True)
        )
    ]


def cell_shares(column: Column, masses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return shares of the cells, given those of the groups."""
    shares = np.empty(len(column.groups))
    for group, mass in enumerate(masses):
        members = np.flatnonzero(column.groups == group)
        bases = [np.full(len(members), 1 / len(members))]
        if column.cells.ordered and len(members) > 1:
            bases += _tails(column.groups, masses, group, len(members))
        shares[members] = mass * denoised(column.counts[members], column.sigma, bases)
    return shares if column.mean is None else _tilted(shares, masses, column, column.mean)


def denoised(
    counts: NDArray[np.float64], sigma: float, bases: list[NDArray[np.float64]] | None = None
) -> NDArray[np.float64]:
    """Return the shares of the cells within a group, from their noisy counts.

    Of some rules the one with the smallest unbiased estimate of its risk (Stein): counts shrunk
    towards a base, by default equal shares (James and Stein), or cut off at a level that keeps
    their sum.
    """
    size, total = len(counts), float(counts.sum())
    equal = np.full(size, 1 / size)
    bases = bases or [equal]
    if size == 1 or total <= 0:
        return bases[-1]
    rules = [_shrunk(counts, total * base, sigma) for base in bases]
    cut = on_simplex(counts, total)
    risk = float(((cut - counts) ** 2).sum()) + (2 * np.count_nonzero(cut) - size) * sigma**2
    _, best = min([*rules, (risk, cut)], key=lambda rule: rule[0])
    best = np.maximum(best, 0.0)
    found = float(best.sum())
    return best / found if found > 0 else equal


def _shrunk(
    counts: NDArray[np.float64], base: NDArray[np.float64], sigma: float
) -> tuple[float, NDArray[np.float64]]:
    """Return the estimated risk of shrinking towards a base, and the result."""
    away, size = counts - base, len(counts)
    square = max(float(away @ away), 1e-300)
    freedom = max(size - 3, 1)
    kept = max(0.0, 1 - freedom * sigma**2 / square)
    if kept == 0:
        return square - (size - 2) * sigma**2, base
    return size * sigma**2 - (freedom * sigma**2) ** 2 / square, base + kept * away


def _tails(
    groups: NDArray[np.intp], masses: NDArray[np.float64], group: int, size: int
) -> list[NDArray[np.float64]]:
    """Return a base for the outermost groups: a density that falls from that next to it."""
    last = len(masses) - 1
    if last < 1 or group not in (0, last):
        return []
    beside = 1 if group == 0 else last - 1
    first = masses[beside] / np.count_nonzero(groups == beside) / max(masses[group], 1e-300)
    if first <= 1 / size:
        return []
    falling = _falling(min(first, _STEEPEST), size)
    return [falling[::-1] if group == 0 else falling]


def _falling(first: float, size: int) -> NDArray[np.float64]:
    """Return geometric shares whose first is given."""
    low, high = 0.0, 1.0  # of the ratio of neighbours
    for _ in range(60):
        ratio = (low + high) / 2
        if (1 - ratio) / (1 - ratio**size) > first:
            low = ratio
        else:
            high = ratio
    falling = np.power((low + high) / 2, np.arange(size, dtype=np.float64))
    shares: NDArray[np.float64] = falling / falling.sum()
    return shares


def _tilted(
    shares: NDArray[np.float64], masses: NDArray[np.float64], column: Column, mean: float
) -> NDArray[np.float64]:
    """Tilt shares within their groups towards a mean, as far as the counts let them.

    The tilt makes the squares of both misfits, over their noise, least in sum.
    """
    groups, places = column.groups, column.cells.places
    middles = np.bincount(groups, weights=places) / np.bincount(groups)
    off = places - middles[groups]

    def tilted(by: float) -> NDArray[np.float64]:
        powers = by * off
        found = shares * np.exp(powers - _largest(powers, groups, len(masses)))
        sums = np.bincount(groups, weights=found, minlength=len(masses))
        factor = np.where(sums > 0, masses / np.maximum(sums, 1e-300), 0.0)
        moved: NDArray[np.float64] = found * factor[groups]
        return moved

    def misfit(by: float) -> float:
        moved = tilted(by)
        away = (float(moved @ places) - mean) / column.mean_sigma
        changed = (moved - shares) * (column.n / column.sigma)
        return away**2 + float(changed @ changed)

    ahead = float(shares @ places) < mean
    tilts = [0.0, *((1 if ahead else -1) * _LEAST_TILT * _STEPS ** np.arange(_TILTS))]
    return tilted(min(tilts, key=misfit))


def _largest(
    powers: NDArray[np.float64], groups: NDArray[np.intp], count: int
) -> NDArray[np.float64]:
    """Return the largest power of each cell's group, so that none overflows."""
    found = np.full(count, -np.inf)
    np.maximum.at(found, groups, powers)
    return found[groups]


# From a fitted mixture to rows: post-processing.


def group_codes(mixture: Mixture, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return ``count`` rows of the mixture, as groups of cells in each column.

    Components have equal numbers of rows, up to one. Within a component each column's groups
    have their expected numbers, up to one, in random order.
    """
    shares, starts = mixture.shares.astype(np.float64), mixture.starts
    components = rng.permutation(len(shares))
    sizes = np.diff(np.floor(np.linspace(0, count, len(shares) + 1) + 1e-9)).astype(np.intp)
    owner = np.repeat(np.arange(len(shares)), sizes)
    rows = np.empty((count, len(starts) - 1), dtype=np.intp)
    for column, (first, last) in enumerate(pairwise(starts)):
        block = shares[components, first:last]
        block *= (sizes / block.sum(axis=1))[:, None]
        # systematic rounding, from starts that are spread evenly: errors do not add up
        begin = (rng.permutation(len(shares)) + rng.random(len(shares))) / len(shares)
        ends = np.floor(np.cumsum(block, axis=1) + begin[:, None])
        ends[:, -1] = sizes
        numbers = np.diff(np.minimum(ends, ends[:, -1:]), prepend=0).astype(np.intp)
        groups = np.repeat(np.tile(np.arange(last - first), len(shares)), numbers.ravel())
        # a random order within each component
        rows[:, column] = groups[np.lexsort((rng.random(count), owner))]
    order: NDArray[np.intp] = rng.permutation(count)
    return rows[order]


def cell_codes(
    rows: NDArray[np.intp], columns: Sequence[Column], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return a cell for each row's group, by what was measured of each column."""
    found = np.empty_like(rows)
    for place, column in enumerate(columns):
        groups = rows[:, place]
        held = np.bincount(groups, minlength=int(column.groups.max()) + 1)
        shares = cell_shares(column, held / len(rows))
        for group in np.flatnonzero(held):
            members = np.flatnonzero(column.groups == group)
            ends = np.cumsum(shares[members])
            even = (rng.permutation(held[group]) + rng.random()) / held[group]
            chosen = np.searchsorted(ends[:-1], even * ends[-1], side="right")
            found[groups == group, place] = members[chosen]
    return found


def row_values(
    codes: NDArray[np.intp], cells: Sequence[Cells], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return values for the cells, in the columns' own units; categories as 0, 1, ..."""
    values = np.empty(codes.shape)
    for column, own in enumerate(cells):
        shares = np.bincount(codes[:, column], minlength=len(own)) / len(codes)
        values[:, column] = own.values(codes[:, column], shares, rng)
    return values
