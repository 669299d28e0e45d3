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

from privatest.synthetic.tables.grouping import grouped
from privatest.synthetic.tables.measuring import Tables

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
