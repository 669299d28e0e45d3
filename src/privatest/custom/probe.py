"""Search made-up data for neighbours that move a statistic further than its author declared.

Random restarts from data with ties, extremes and clusters, then hill climbing over rows,
replaced records and permutations. Seeded, so that a refusal can be repeated; private data is
never seen. What a search can and cannot show: docs/proofs/custom-statistics.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privatest.custom.space import Rows, Space
from privatest.custom.statistic import TOLERANCE, UserStatistic, on_made_up_data
from privatest.errors import ParameterError
from privatest.privacy import PermutationSensitivity
from privatest.validation import number

__all__ = ["Declared", "declared_bound", "search_neighbours"]

Bound = float | PermutationSensitivity
Declared = Bound | Callable[[int, int], Bound]
"""What a user may declare: numbers for the sizes at hand, or a function of (n, m)."""

_SMALL_SIZES = ((5, 4), (4, 9))  # where a declared function is searched as well
_SECONDS_SMALL, _SECONDS = 0.2, 0.6  # of searching at one of those, and at the real sizes
_CLIMBS = 10
_STEPS = 60  # of one climb


def declared_bound(sensitivity: Declared, n: int, m: int) -> PermutationSensitivity:
    """Return what was declared for these sizes."""
    value = sensitivity
    if callable(sensitivity):
        try:
            value = sensitivity(n, m)
        except Exception as error:
            raise ParameterError(
                f"sensitivity must be defined for n = {n} and m = {m}; "
                f"it raised {type(error).__name__}."
            ) from error
    if isinstance(value, PermutationSensitivity):
        return value
    step = number("sensitivity", value, above=0)
    return PermutationSensitivity(step, step)


def search_neighbours(statistic: UserStatistic, space: Space, sensitivity: Declared) -> None:
    """Refuse a declared sensitivity that synthetic neighbours break."""
    violation = None
    for n, m in _SMALL_SIZES if callable(sensitivity) else ():
        small = replace(space, n=min(n, space.n), m=min(n if space.paired else m, space.m))
        try:
            declared = declared_bound(sensitivity, small.n, small.m)
            violation = violation or _find_violation(statistic, small, declared, _SECONDS_SMALL)
        except ParameterError:
            continue  # it, or its sensitivity, may be made for larger samples
    declared = declared_bound(sensitivity, space.n, space.m)
    violation = violation or _find_violation(statistic, space, declared, _SECONDS)
    if violation:
        raise ParameterError(f"sensitivity must hold for all neighbours: {violation}")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Neighbours: x and y, the records to be replaced, and a permutation."""

    x: Rows
    y: Rows
    chosen: tuple[int | None, int | None]  # of x, of y
    news: tuple[Rows, Rows]
    shuffle: NDArray[np.intp]

    def stacks(self, space: Space) -> tuple[Rows, Rows]:
        """Both data sets, permuted, as a stack of two."""
        others = []
        for rows, index, new in zip((self.x, self.y), self.chosen, self.news, strict=True):
            other = rows.copy()
            if index is not None:
                other[index] = new
            others.append(other)
        first = space.arrange(self.x, self.y, self.shuffle[None])
        second = space.arrange(others[0], others[1], self.shuffle[None])
        return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])


def _find_violation(
    statistic: UserStatistic, space: Space, bound: PermutationSensitivity, seconds: float
) -> str | None:
    """Search for neighbours that move the statistic further than declared; describe them."""
    deadline = time.perf_counter() + seconds
    searches = [(bound.permuted, _MOVES)]
    if bound.observed < bound.permuted:
        searches.append((bound.observed, _MOVES_OBSERVED))
    rng = np.random.default_rng(0)
    for climb in range(_CLIMBS * len(searches)):
        limit, moves = searches[climb % len(searches)]
        with on_made_up_data(space):
            pair, moved = _climb(statistic, space, moves, rng, deadline)
        if moved > limit * (1 + TOLERANCE):
            return _describe(statistic, space, pair, limit)
        if time.perf_counter() > deadline:
            break
    return None


def _climb(
    statistic: UserStatistic,
    space: Space,
    moves: tuple[_Move, ...],
    rng: np.random.Generator,
    deadline: float,
) -> tuple[_Pair, float]:
    """Change a pair of neighbours step by step, keeping what moves the statistic no less."""
    x, y = space.x.draw(rng, space.n), space.y.draw(rng, space.m)
    pair = _choose(_Pair(x, y, (0, 0), (x[0], y[0]), np.arange(space.moving)), space, rng)
    moved = float(np.ptp(statistic.settled(*pair.stacks(space))))
    for _ in range(_STEPS):
        if time.perf_counter() > deadline:
            break
        trial = pair
        for _ in range(int(rng.integers(1, 4))):
            trial = moves[rng.integers(len(moves))](trial, space, rng)
        trial_moved = float(np.ptp(statistic.settled(*trial.stacks(space))))
        if trial_moved >= moved:  # equal too: plateaus have to be crossed
            pair, moved = trial, trial_moved
    return pair, moved


def _choose(pair: _Pair, space: Space, rng: np.random.Generator) -> _Pair:
    """Replace other records."""
    i, j = int(rng.integers(space.n)), int(rng.integers(space.m))
    chosen: tuple[int | None, int | None] = (i, i) if space.paired else (i, j)
    if not space.paired and not space.both:
        chosen = (i, None) if rng.random() < 0.5 else (None, j)
    return _renew(replace(pair, chosen=chosen), space, rng)


def _renew(pair: _Pair, space: Space, rng: np.random.Generator) -> _Pair:
    """Replace them by other values."""
    return replace(pair, news=(space.x.draw(rng, 1)[0], space.y.draw(rng, 1)[0]))


def _redraw(pair: _Pair, space: Space, rng: np.random.Generator) -> _Pair:
    """Draw a few rows anew, or a whole side, or copy a row over others."""
    side = "x" if rng.random() < 0.5 else "y"
    rows, box = getattr(pair, side).copy(), getattr(space, side)
    count = len(rows) if rng.random() < 0.3 else int(rng.integers(1, 4))
    where = rng.choice(len(rows), size=min(count, len(rows)), replace=False)
    if rng.random() < 0.3:
        rows[where] = rows[rng.integers(len(rows))]
    else:
        rows[where] = box.draw(rng, len(where))
    return replace(pair, **{side: rows})


def _cluster(pair: _Pair, space: Space, rng: np.random.Generator) -> _Pair:
    """Let the permuted sides consist of a few equal rows: halves of one value or two."""
    values = [(space.x.draw(rng, 1), space.y.draw(rng, 1)) for _ in range(2)]
    x, y = space.arrange(pair.x, pair.y, pair.shuffle[None])
    for side, rows in enumerate((x[0], y[0])):
        half = (len(rows) + int(rng.integers(2))) // 2  # also one more: it decides a median
        for part in (slice(None, half), slice(half, None)):
            # two sides of pairs differ in columns, two samples do not
            rows[part] = values[rng.integers(2)][side if space.paired else 0]
    unshuffled = np.argsort(pair.shuffle)
    if space.paired:
        return replace(pair, x=x[0], y=y[0][unshuffled])
    pooled = np.concatenate([x[0], y[0]])[unshuffled]
    return replace(pair, x=pooled[: space.n], y=pooled[space.n :])


def _permute(pair: _Pair, _: Space, rng: np.random.Generator) -> _Pair:
    """Swap two rows of the permutation, or draw another one."""
    shuffle = pair.shuffle.copy()
    if rng.random() < 0.5:
        swapped = rng.integers(len(shuffle), size=2)
        shuffle[swapped] = shuffle[swapped[::-1]]
    else:
        shuffle = rng.permutation(len(shuffle))
    return replace(pair, shuffle=shuffle)


_Move = Callable[[_Pair, Space, np.random.Generator], _Pair]
_MOVES_OBSERVED: tuple[_Move, ...] = (_choose, _renew, _redraw, _redraw, _cluster)
_MOVES = (*_MOVES_OBSERVED, _permute)


def _describe(statistic: UserStatistic, space: Space, pair: _Pair, limit: float) -> str:
    x, y = pair.stacks(space)
    before, after = statistic.settled(x, y)
    permuted = not np.array_equal(pair.shuffle, np.arange(space.moving))
    changes = [
        f"{side}[{index}] = {_shown(rows[1, index])}"
        for side, rows in (("x", x), ("y", y))
        for index in np.flatnonzero((rows[0] != rows[1]).any(axis=1))
    ]
    return (
        f"{limit:g} was declared, but it moves by {abs(after - before):g} on synthetic "
        f"{'permuted ' if permuted else ''}neighbours (n = {space.n}, m = {space.m}), from "
        f"{before:g} at x = {_shown(x[0])}, y = {_shown(y[0])} to {after:g} at "
        f"{' and '.join(changes)}."
    )


def _shown(rows: Rows) -> str:
    """Write rows as they could be typed, long ones with their ends only."""
    rows = rows[..., 0] if rows.shape[-1] == 1 else rows
    text = np.array2string(
        rows, threshold=12, separator=", ", formatter={"float_kind": lambda value: f"{value:.6g}"}
    )
    return " ".join(text.split())
