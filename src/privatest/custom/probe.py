"""Search made-up data for neighbours that move a statistic further than its author declared.

Walks through data with ties, extremes and clusters, then hill climbing over rows and replaced
records. Steps are counted, not seconds, and seeded, so that a refusal can be repeated anywhere;
private data is never seen. What a search can and cannot show: docs/proofs/custom-statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.privacy import PermutationSensitivity
from privatest.core.validation import number
from privatest.custom.space import Rows, Space
from privatest.custom.statistic import TOLERANCE, UserStatistic, on_made_up_data
from privatest.custom.walks import Neighbours, draw_walk, steepest, varied

__all__ = ["Declared", "declared_bound", "search_neighbours"]

Bound = float | PermutationSensitivity
Declared = Bound | Callable[[int, int], Bound]
"""What a user may declare: numbers for the sizes at hand, or a function of (n, m)."""

_SMALL_SIZES = ((5, 4), (4, 9))  # where a declared function is searched as well
_SMALL_EVALUATIONS = 1500  # at each of them
_EVALUATIONS = 200, 4000  # at the real sizes, at least and at most
_ENTRIES, _ENTRIES_OF_A_CALL = 5e7, 1e4  # of all data that is tried; a call costs as much as these
_CLIMBING = 0.4  # of all evaluations are for climbing, the rest for walks
_CLIMBS = 4
_ROUNDING = 2.0**-50  # of a statistic, relative to its size: what a message blames on it


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
            violation = violation or _find_violation(statistic, small, declared, _SMALL_EVALUATIONS)
        except ParameterError:
            continue  # it, or its sensitivity, may be made for larger samples
    declared = declared_bound(sensitivity, space.n, space.m)
    violation = violation or _find_violation(statistic, space, declared, _evaluations(space))
    if violation:
        raise ParameterError(f"sensitivity must hold for all neighbours: {violation}")


def _evaluations(space: Space) -> int:
    """How often the statistic is computed: about a second for a cheap one, whatever the size."""
    entries = space.n * len(space.x.lower) + space.m * len(space.y.lower)
    return int(np.clip(_ENTRIES / (entries + _ENTRIES_OF_A_CALL), *_EVALUATIONS))


def _find_violation(
    statistic: UserStatistic, space: Space, bound: PermutationSensitivity, evaluations: int
) -> str | None:
    """Search for neighbours that move the statistic further than declared; describe them."""
    searches = [(bound.observed, False)]
    if space.paired or space.both:  # a permutation may part the rows of a record
        searches.append((bound.permuted, True))
    rng = np.random.default_rng(0)
    for limit, parted in searches:
        value = _Counted(statistic, space, evaluations // len(searches))
        found = _search(value, space, limit, rng, parted=parted)
        if found is not None:
            return _describe(value, found, limit)
    return None


@dataclass(slots=True)
class _Counted:
    """A statistic of one data set, and how often it may still be computed."""

    statistic: UserStatistic
    space: Space
    left: int

    def __call__(self, x: Rows, y: Rows) -> float:
        self.left -= 1
        with on_made_up_data(self.space):
            return float(self.statistic.settled(x[None], y[None])[0])


def _search(
    value: _Counted, space: Space, limit: float, rng: np.random.Generator, *, parted: bool
) -> Neighbours | None:
    """Walk, then climb from the best neighbours that walks have found."""
    found: list[tuple[float, Neighbours]] = []
    climbing = int(_CLIMBING * value.left)
    while value.left > climbing:
        pair = steepest(draw_walk(space, rng, parted=parted), value)
        moved = pair.movement(value)
        if _breaks(moved, limit):
            return pair
        found = sorted([*found, (moved, pair)], key=lambda one: -one[0])[:_CLIMBS]
    for climb, (moved, pair) in enumerate(found):
        stop = climbing * (len(found) - 1 - climb) // len(found)
        while value.left > stop:
            trial = varied(pair, space, rng)
            further = trial.movement(value)
            if further >= moved:  # equal too: plateaus have to be crossed
                pair, moved = trial, further  # noqa: PLW2901
                if _breaks(moved, limit):
                    return pair
    return None


def _breaks(moved: float, limit: float) -> bool:
    """Whether noise falls short of a movement of the number as computed, its rounding included."""
    return moved > limit * (1 + TOLERANCE)


def _describe(value: _Counted, pair: Neighbours, limit: float) -> str:
    before, after = value(*pair.before), value(*pair.after)
    x, y = pair.before
    changes = [
        f"{side}[{index}] = {_shown(rows[index])}"
        for side, rows, places in zip("xy", pair.after, pair.places, strict=True)
        for index in places
    ]
    return (
        f"{limit:g} was declared, but it moves by {abs(after - before):g} on synthetic "
        f"{'permuted ' if pair.parted else ''}neighbours (n = {len(x)}, m = {len(y)}), from "
        f"{before:g} at x = {_shown(x)}, y = {_shown(y)} to {after:g} at "
        f"{' and '.join(changes)}.{_rounding_hint(before, after, limit)}"
    )


def _rounding_hint(before: float, after: float, limit: float) -> str:
    if abs(after - before) - limit > _ROUNDING * max(abs(before), abs(after)):
        return ""
    return " So large a number is rounded by as much: leave out its constant part, or declare more."


def _shown(rows: Rows) -> str:
    """Write rows as they could be typed, long ones with their ends only."""
    rows = rows[..., 0] if rows.shape[-1] == 1 else rows
    text = np.array2string(
        rows, threshold=12, separator=", ", formatter={"float_kind": lambda value: f"{value:.6g}"}
    )
    return " ".join(text.split())
