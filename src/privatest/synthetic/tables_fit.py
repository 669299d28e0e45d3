"""Rows that fit noisy tables of one and two columns: a mixture of products, and draws from it.

Each of R components has a distribution for each column, and columns are independent within a
component. With P the R × K matrix of all these probabilities, side by side, all tables of two
columns are blocks of P'P/R and all tables of one column are its column means: both are
consistent and non-negative whatever P is. Post-processing: none of this sees private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.answers import Floats
from privatest.synthetic.embedding import to_simplex
from privatest.synthetic.tables import (
    Codes,
    ColumnCells,
    NoisyTables,
    TablesPlan,
    decode_column,
    grouped,
)

Singles = NDArray[np.float32]

_COMPONENTS, _STEPS, _FEWEST = 500, 600, 16
_STEEPEST = 0.9  # share of a tail in its first cell
_LEAST_TILT, _TILT_RATIO, _TILTS = 0.05, 1.25, 48  # tried, for places between 0 and 1
_SPREAD = 0.5  # standard deviation of the logarithms that components start with
_RATE, _FIRST, _SECOND = 0.1, 0.9, 0.99  # Adam
_EXPLAINED = 0.9  # squared residuals over their noise, for each count: below this it is noise
_SMALLEST = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class FitTarget:
    """A noisy table to fit, in shares, of fine or coarse groups."""

    columns: tuple[int, ...]
    shares: Floats
    sigma: Floats | float
    coarse: bool = False


def fit_targets(tables: NoisyTables, names: Sequence[str], n: int) -> list[FitTarget]:
    """Return what the mixture is fitted to: noisy shares of fine or coarse groups."""
    targets = []
    for table in tables.measured:
        columns = tuple(names.index(name) for name in table.columns)
        if len(columns) == 1:
            group = tables.fine[columns[0]]
            counts = grouped(table.counts, group)
            # the number of rows is public: it takes out one part of the noise
            cells = np.bincount(group)
            counts += (n - table.counts.sum()) * cells / len(group)
            targets.append(FitTarget(columns, counts / n, table.sigma * np.sqrt(cells) / n))
        else:
            fine = tuple(tables.sizes[column] for column in columns)
            coarse = tables.coarse is not None and table.counts.shape != fine
            targets.append(FitTarget(columns, table.counts / n, table.sigma / n, coarse))
    return targets


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Logarithms of the components' probabilities, R × K, and where each column begins."""

    logits: Singles
    starts: Codes

    @property
    def shares(self) -> Singles:
        """The probabilities, R × K."""
        return _softmax(self.logits, self.starts)


def _softmax(logits: Singles, starts: Codes) -> Singles:
    shares = np.empty_like(logits)
    for first, last in pairwise(starts):
        block = logits[:, first:last]
        powers = np.exp(block - block.max(axis=1, keepdims=True))
        shares[:, first:last] = powers / powers.sum(axis=1, keepdims=True)
    return shares


class _Level:
    """Tables of two columns whose columns have the same groups: blocks of one matrix."""

    def __init__(self, sizes: Sequence[int], groups: Sequence[Codes] | None) -> None:
        self.starts = _starts(sizes)
        self.groups: Singles | None = None
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

    def add(self, target: FitTarget, unit: float) -> None:
        one, other = (slice(*self.starts[column : column + 2]) for column in target.columns)
        for rows, columns, table in ((one, other, target.shares), (other, one, target.shares.T)):
            self.wanted[rows, columns] = table
            self.weight[rows, columns] = (unit / np.asarray(target.sigma)) ** 2
        self.count += target.shares.size

    def step(self, shares: Singles) -> tuple[Singles, float]:
        """Return the gradient in the shares, and the sum of squared weighted residuals."""
        used: Singles = shares if self.groups is None else shares @ self.groups
        residual: Singles = used.T @ used
        residual /= np.float32(len(used))
        residual -= self.wanted
        weighted = self.weight * residual
        loss = float(np.vdot(weighted, residual)) / 2  # each table stands there twice
        slope: Singles = used @ weighted
        if self.groups is not None:
            slope = slope @ self.groups.T
        return slope, loss


def _starts(sizes: Sequence[int]) -> Codes:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def fit_mixture(
    sizes: Sequence[int],
    targets: Sequence[FitTarget],
    coarse: Sequence[Codes] | None,
    *,
    components: int,
    steps: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> Mixture:
    """Fit by Adam, from near independence, until what is left looks like noise.

    Parameters
    ----------
    sizes : sequence of int
        Fine groups of each column.
    targets : sequence of FitTarget
        Tables of one column in fine groups, and of two columns in fine or coarse ones.
    coarse : sequence of ndarray or None
        The coarse group of each fine group, for each column.
    components, steps : int
        R, and the most steps.
    rng : Generator
        Public randomness.
    progress : callable, optional
        Called with (steps done, steps).
    """
    starts, unit = _starts(sizes), min(float(np.min(t.sigma)) for t in targets)
    levels = [_Level(sizes, None), *([] if coarse is None else [_Level(sizes, coarse)])]
    single = np.zeros(starts[-1], dtype=np.float32)
    weight = np.zeros(starts[-1], dtype=np.float32)
    for target in targets:
        if len(target.columns) == 1:
            place = slice(*starts[target.columns[0] : target.columns[0] + 2])
            single[place] = target.shares
            weight[place] = (unit / np.asarray(target.sigma)) ** 2
        else:
            levels[target.coarse].add(target, unit)
    levels = [level for level in levels if level.count]
    enough = _EXPLAINED * unit**2 * (len(single) + sum(level.count for level in levels))
    spread = rng.standard_normal((components, len(single)), dtype=np.float32)
    logits = np.log(np.maximum(single, _SMALLEST)) + np.float32(_SPREAD) * spread
    logits = logits.astype(np.float32)
    first, second = np.zeros_like(logits), np.zeros_like(logits)
    for step in range(1, steps + 1):
        shares = _softmax(logits, starts)
        residual = shares.mean(axis=0) - single
        slope = np.broadcast_to(weight * residual, shares.shape)
        loss = float(np.vdot(weight * residual, residual))
        for level in levels:
            more, own = level.step(shares)
            slope, loss = slope + more, loss + own
        if loss <= enough:
            break
        slope = slope * shares  # the gradient in the logarithms
        for begin, end in pairwise(starts):
            block = slope[:, begin:end]
            block -= shares[:, begin:end] * block.sum(axis=1, keepdims=True)
        first = _FIRST * first + (1 - _FIRST) * slope
        second = _SECOND * second + (1 - _SECOND) * slope**2
        rate = _RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
        size = np.sqrt(second / (1 - _SECOND**step)) + np.float32(1e-30)
        logits -= np.float32(rate / (1 - _FIRST**step)) * first / size
        if progress is not None:
            progress(step, steps)
    return Mixture(logits, starts)


# --- cells within groups -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class NoisyColumn:
    """What was measured of one column.

    Attributes
    ----------
    cells : ColumnCells
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

    cells: ColumnCells
    groups: Codes
    counts: Floats
    sigma: float
    n: int
    mean: float | None = None
    mean_sigma: float = 0.0


def noisy_columns(tables: NoisyTables, plan: TablesPlan) -> list[NoisyColumn]:
    """Return what was measured of each column alone."""
    means = dict(zip(plan.moments.means, tables.moments[0].tolist(), strict=True))
    parts = zip(plan.cells, tables.fine, tables.single, strict=True)
    return [
        NoisyColumn(
            cells, group, table.counts, table.sigma, plan.n, means.get(place), tables.mean_sigma
        )
        for place, (cells, group, table) in enumerate(parts)
    ]


def cell_shares(column: NoisyColumn, masses: Floats) -> Floats:
    """Return shares of the cells, given those of the groups."""
    shares = np.empty(len(column.groups))
    for group, mass in enumerate(masses):
        members = np.flatnonzero(column.groups == group)
        bases = [np.full(len(members), 1 / len(members))]
        if column.cells.ordered and len(members) > 1:
            bases += _tails(column.groups, masses, group, len(members))
        shares[members] = mass * denoised(column.counts[members], column.sigma, bases)
    return shares if column.mean is None else _tilted(shares, masses, column, column.mean)


def denoised(counts: Floats, sigma: float, bases: list[Floats] | None = None) -> Floats:
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
    cut = to_simplex(counts, total)
    risk = float(((cut - counts) ** 2).sum()) + (2 * np.count_nonzero(cut) - size) * sigma**2
    _, best = min([*rules, (risk, cut)], key=lambda rule: rule[0])
    best = np.maximum(best, 0.0)
    mass = float(best.sum())
    return best / mass if mass > 0 else equal


def _shrunk(counts: Floats, base: Floats, sigma: float) -> tuple[float, Floats]:
    """Return the estimated risk of shrinking towards a base, and the result."""
    difference, size = counts - base, len(counts)
    square = max(float(difference @ difference), 1e-300)
    freedom = max(size - 3, 1)
    factor = max(0.0, 1 - freedom * sigma**2 / square)
    if factor == 0:
        return square - (size - 2) * sigma**2, base
    return size * sigma**2 - (freedom * sigma**2) ** 2 / square, base + factor * difference


def _tails(groups: Codes, masses: Floats, group: int, size: int) -> list[Floats]:
    """Return a base for the outermost groups: a density that falls from that next to it."""
    last = len(masses) - 1
    if last < 1 or group not in (0, last):
        return []
    neighbour = 1 if group == 0 else last - 1
    first = masses[neighbour] / np.count_nonzero(groups == neighbour) / max(masses[group], 1e-300)
    if first <= 1 / size:
        return []
    falling = _geometric(min(first, _STEEPEST), size)
    return [falling[::-1] if group == 0 else falling]


def _geometric(first: float, size: int) -> Floats:
    """Return geometric shares whose first is given."""
    low, high = 0.0, 1.0  # of the ratio of neighbours
    for _ in range(60):
        ratio = (low + high) / 2
        if (1 - ratio) / (1 - ratio**size) > first:
            low = ratio
        else:
            high = ratio
    falling = np.power((low + high) / 2, np.arange(size, dtype=np.float64))
    return np.asarray(falling / falling.sum(), dtype=np.float64)


def _tilted(shares: Floats, masses: Floats, column: NoisyColumn, mean: float) -> Floats:
    """Tilt shares within their groups towards a mean, as far as the counts let them.

    The tilt makes the squares of both misfits, over their noise, least in sum.
    """
    groups, places = column.groups, column.cells.places
    middles = np.bincount(groups, weights=places) / np.bincount(groups)
    centred = places - middles[groups]

    def tilted(tilt: float) -> Floats:
        powers = tilt * centred
        largest = np.full(len(masses), -np.inf)  # of each group, so that none overflows
        np.maximum.at(largest, groups, powers)
        weighted = shares * np.exp(powers - largest[groups])
        sums = np.bincount(groups, weights=weighted, minlength=len(masses))
        factor = np.where(sums > 0, masses / np.maximum(sums, 1e-300), 0.0)
        return np.asarray(weighted * factor[groups], dtype=np.float64)

    def misfit(tilt: float) -> float:
        moved = tilted(tilt)
        missing = (float(moved @ places) - mean) / column.mean_sigma
        changed = (moved - shares) * (column.n / column.sigma)
        return missing**2 + float(changed @ changed)

    ahead = float(shares @ places) < mean
    tilts = [0.0, *((1 if ahead else -1) * _LEAST_TILT * _TILT_RATIO ** np.arange(_TILTS))]
    return tilted(min(tilts, key=misfit))


# --- rows ----------------------------------------------------------------------------------------


def draw_groups(mixture: Mixture, count: int, rng: np.random.Generator) -> Codes:
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
    return np.asarray(rows[rng.permutation(count)])


def draw_cells(rows: Codes, columns: Sequence[NoisyColumn], rng: np.random.Generator) -> Codes:
    """Return a cell for each row's group, by what was measured of each column."""
    codes = np.empty_like(rows)
    for place, column in enumerate(columns):
        groups = rows[:, place]
        counts = np.bincount(groups, minlength=int(column.groups.max()) + 1)
        shares = cell_shares(column, counts / len(rows))
        for group in np.flatnonzero(counts):
            members = np.flatnonzero(column.groups == group)
            ends = np.cumsum(shares[members])
            even = (rng.permutation(counts[group]) + rng.random()) / counts[group]
            chosen = np.searchsorted(ends[:-1], even * ends[-1], side="right")
            codes[groups == group, place] = members[chosen]
    return codes


def draw_values(
    cells: ColumnCells, codes: Codes, shares: Floats, rng: np.random.Generator
) -> Floats:
    """Draw a value for each code: within a cell by a density with a slope towards its neighbours.

    ``shares`` are the cells' shares of all rows. Values of a cell are spread evenly over the
    law, so that their mean is that of the law, and handed out in random order.
    """
    values = cells.lowest[codes]
    slopes = _density_slopes(cells, shares)
    for cell in np.unique(codes[cells.highest[codes] > values]):
        rows = np.flatnonzero(codes == cell)
        places = (rng.permutation(len(rows)) + rng.random()) / len(rows)
        slope = slopes[cell]
        if abs(slope) >= 1e-9:  # quantiles of the density 1 + slope (2x - 1) on [0, 1]
            root = np.sqrt((1 - slope) ** 2 + 4 * slope * places)
            places = ((root - (1 - slope)) / (2 * slope)).clip(0, 1)
        low, high = float(cells.lowest[cell]), float(cells.highest[cell])
        if cells.whole:
            values[rows] = np.minimum(low + np.floor(places * (high - low + 1)), high)
        else:
            inside = low * (1 - places) + high * places
            values[rows] = np.clip(inside, low, cells.largest[cell])
    return values


def _density_slopes(cells: ColumnCells, shares: Floats) -> Floats:
    """Return how much more likely the upper end of a cell is than its middle, in [-1, 1]."""
    widths = cells.highest - cells.lowest + (1.0 if cells.whole else 0.0)
    wide = np.flatnonzero(cells.wide)
    slopes = np.zeros(len(cells))
    if len(wide) < 2:
        return slopes
    # in a public unit, a power of two: shares over widths of any size stay within the floats
    heights = shares[wide] / np.ldexp(widths[wide], -int(np.frexp(widths[wide].max())[1]))
    around = np.concatenate([[heights[0]], heights, [heights[-1]]])
    # from the middle of the cell below to that of the cell above; at the ends from its own
    steps = np.full(len(wide), 4.0)
    steps[[0, -1]] = 2.0
    rises = (around[2:] - around[:-2]) / (steps * np.maximum(heights, 1e-300))
    slopes[wide] = rises.clip(-1, 1)
    return slopes


def fit_rows(
    tables: NoisyTables,
    plan: TablesPlan,
    count: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, NDArray[Any]]:
    """Return ``count`` rows that fit noisy tables, as columns in their own units."""
    mixture = fit_mixture(
        tables.sizes,
        fit_targets(tables, plan.names, plan.n),
        tables.coarse,
        components=min(_COMPONENTS, max(count, _FEWEST)),
        steps=_STEPS,
        rng=rng,
        progress=progress,
    )
    codes = draw_cells(draw_groups(mixture, count, rng), noisy_columns(tables, plan), rng)
    columns: dict[str, NDArray[Any]] = {}
    for place, (name, column) in enumerate(plan.schema.columns.items()):
        cells, own = plan.cells[place], codes[:, place]
        shares = np.bincount(own, minlength=len(cells)) / len(own)
        values = decode_column(column, draw_values(cells, own, shares, rng))
        values.flags.writeable = False
        columns[name] = values
    return columns
