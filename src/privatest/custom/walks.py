"""Walks through made-up data sets, a record at a time, and the step that moves a statistic most.

If two data sets differ in k records and the statistic in more than k sensitivities, some step
between them breaks the sensitivity, and halving the walk again and again finds one: also a
jump, and at any size. Data is made as a permutation leaves it, so permutations need no search.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privatest.custom.space import Rows, Space, draw, opposite

__all__ = ["Neighbours", "Value", "draw_walk", "steepest", "varied"]

Value = Callable[[Rows, Rows], float]
Sides = tuple[Rows, Rows]
Places = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two data sets, permuted alike, that differ in one record."""

    before: Sides
    after: Sides
    places: Places  # of the replaced rows in x and y
    parted: bool  # whether only a permutation can put the record there

    def movement(self, value: Value) -> float:
        """How far a statistic moves between them."""
        return abs(value(*self.after) - value(*self.before))


@dataclass(frozen=True, slots=True)
class Walk:
    """From one data set to another, a record at a time."""

    start: Sides
    end: Sides
    steps: int
    ranks: Places  # when each row is replaced; ``steps`` for never
    parted: bool

    def at(self, step: int) -> Sides:
        """Return the data set after so many steps, as fresh arrays."""
        x, y = (
            np.where(rank[:, None] < step, new, old)
            for rank, old, new in zip(self.ranks, self.start, self.end, strict=True)
        )
        return x, y

    def neighbours(self, step: int) -> Neighbours:
        """Return the data sets before and after a step."""
        x, y = (np.flatnonzero(rank == step) for rank in self.ranks)
        return Neighbours(self.at(step), self.at(step + 1), (x, y), self.parted)


def steepest(walk: Walk, value: Value) -> Neighbours:
    """Halve a walk where the statistic moves most, down to one step."""
    marks = sorted({walk.steps * quarter // 4 for quarter in range(5)})
    values = [value(*walk.at(mark)) for mark in marks]
    most = int(np.argmax(np.abs(np.diff(values))))
    low, high = marks[most : most + 2]
    ends = values[most : most + 2]
    while high - low > 1:
        middle = (low + high) // 2
        between = value(*walk.at(middle))
        if abs(between - ends[0]) >= abs(ends[1] - between):
            high, ends = middle, [ends[0], between]
        else:
            low, ends = middle, [between, ends[1]]
    return walk.neighbours(low)


def draw_walk(space: Space, rng: np.random.Generator, *, parted: bool) -> Walk:
    """Draw a walk; ``parted`` lets a permutation part the rows of a record."""
    ranks, steps = _ranks(space, rng, parted=parted)
    places = [np.flatnonzero(rank < steps) for rank in ranks]
    boxes = space.x, space.y
    start = _base(space, rng)
    if space.paired and rng.random() < 0.7:  # what a replaced row stands beside decides much
        for side, box in enumerate(boxes):
            start[side][places[1 - side]] = draw(box, rng, 1)
    end = start[0].copy(), start[1].copy()
    for side, (box, rows) in enumerate(zip(boxes, places, strict=True)):
        if rng.random() < 0.4:
            start[side][rows] = draw(box, rng, 1)
        new = draw(box, rng, 1 if rng.random() < 0.7 else len(rows))
        end[side][rows] = opposite(box, start[side][rows]) if rng.random() < 0.4 else new
    return Walk(start, end, steps, ranks, parted)


def _base(space: Space, rng: np.random.Generator) -> Sides:
    """Draw two sides, often all rows alike, of two samples often both alike."""
    sides = []
    for box, size in ((space.x, space.n), (space.y, space.m)):
        alike = rng.random() < 0.5
        sides.append(np.tile(draw(box, rng, 1), (size, 1)) if alike else draw(box, rng, size))
    if not space.paired and rng.random() < 0.3:
        sides[1][:] = sides[0][0]
    return sides[0], sides[1]


def _ranks(space: Space, rng: np.random.Generator, *, parted: bool) -> tuple[Places, int]:
    """Draw when each row is replaced, and the number of steps."""
    n, m = space.n, space.m
    if space.paired or (space.both and not parted):  # one row of each side in a step
        steps = _length(min(n, m), rng)
        rows_x = rng.permutation(n)[:steps]
        rows_y = rows_x if space.paired else rng.permutation(m)[:steps]
        if space.paired and parted:  # a row of x and another one of y
            order = np.concatenate([rows_x, np.setdiff1d(np.arange(n), rows_x)])
            rows_y = np.roll(order, -steps if 2 * steps <= n else -1)[:steps]
        rank_x, rank_y = np.full(n, steps), np.full(m, steps)
        rank_x[rows_x] = rank_y[rows_y] = np.arange(steps)
        return (rank_x, rank_y), steps
    # any row, or any two where a permutation may have put a record of each sample
    first, last = ((0, n), (n, n + m), (0, n + m))[rng.integers(3)]
    at_once = 2 if space.both else 1
    steps = _length((last - first) // at_once, rng)
    pooled = np.full(n + m, steps)
    rows = first + rng.permutation(last - first)[: steps * at_once]
    pooled[rows] = np.arange(steps * at_once) // at_once
    return (pooled[:n], pooled[n:]), steps


def _length(most: int, rng: np.random.Generator) -> int:
    """Draw a number of steps: one, a few, or a good part of all."""
    lengths = (1, 1, int(rng.integers(1, 9)), math.isqrt(most), most // 2, most)
    return max(1, min(lengths[rng.integers(len(lengths))], most))


def varied(pair: Neighbours, space: Space, rng: np.random.Generator) -> Neighbours:
    """Change neighbours a little: the replaced rows, what replaces them, or other rows."""
    before, after = _copied(pair.before), _copied(pair.after)
    for _ in range(int(rng.integers(1, 4))):
        side = int(rng.integers(2))
        box, replaced = (space.x, space.y)[side], pair.places[side]
        kind = rng.integers(5)
        if kind == 0:
            after[side][replaced] = draw(box, rng, 1)
        elif kind == 1:
            before[side][replaced] = draw(box, rng, 1)
        elif kind == 2 and space.paired:
            _set_others(before, after, side, pair.places, pair.places[1 - side], draw(box, rng, 1))
        elif kind == 3:
            everything = np.arange(len(before[side]))
            alike = rng.random() < 0.5
            rows = draw(box, rng, 1 if alike else len(everything))
            _set_others(before, after, side, pair.places, everything, rows)
        else:
            some = rng.integers(len(before[side]), size=int(rng.integers(1, 4)))
            _set_others(before, after, side, pair.places, some, draw(box, rng, 1))
    return replace(pair, before=before, after=after)


def _copied(sides: Sides) -> Sides:
    return sides[0].copy(), sides[1].copy()


def _set_others(
    before: Sides, after: Sides, side: int, places: Places, rows: NDArray[np.intp], values: Rows
) -> None:
    """Write rows in both data sets, except those that are replaced."""
    kept = before[side][places[side]], after[side][places[side]]
    before[side][rows] = after[side][rows] = values
    before[side][places[side]], after[side][places[side]] = kept
