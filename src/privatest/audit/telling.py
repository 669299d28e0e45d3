"""Neighbours that a permutation test tells apart well: many permuted statistics fall, one rises.

Noise meets the observed statistic only, and it is ranked among all. So neighbours lose most if the
observed one moves up by its bound and those above it down by theirs. Rows at two opposite corners
move statistics by whole bounds, and which way depends on the public relabelling: so the seed and
the corners are searched. What is climbed is not the loss itself, which may sit in an event that
never happens, but what so many draws would show of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privatest.audit.neighbours import Pair, Row, in_arms, kept, values
from privatest.audit.permutation_law import Array, Statistics

if TYPE_CHECKING:
    from privatest.audit.cases import Case

__all__ = ["telling_pair", "turned", "visible_loss"]

_COUNTED = 50_000  # draws on either side
_DEVIATIONS, _RARE = 5.2, 12  # as Clopper and Pearson's limits at 2.5e-7, about
_LEVELS = np.concatenate([np.geomspace(0.002, 0.5, 40), 1 - np.geomspace(0.5, 0.002, 40)[1:]])
_GROUPS = ("group", "arm")


def visible_loss(first: Statistics, second: Statistics, scale: float) -> float:
    """Return the bound on epsilon that 50,000 p-values of each are expected to prove."""
    p, q = (own.chances_below(_LEVELS, scale) for own in (first, second))
    return max(_bound(p, q), _bound(q, p), _bound(1 - p, 1 - q), _bound(1 - q, 1 - p), 0.0)


def _bound(often: Array, seldom: Array) -> float:
    rest, other = (np.sqrt(x * (1 - x) / _COUNTED) for x in (often, seldom))
    low = np.maximum(often - _DEVIATIONS * rest, 1e-300)
    high = seldom + _DEVIATIONS * other + _RARE / _COUNTED
    return float(np.log(low / high).max())


def telling_pair(case: Case, size: int, seed: int) -> Pair:
    """Return rows at corners, as many of each kind: nothing depends on anything."""
    corners = {name: values(case.schema, name)[:2] for name in case.schema.columns}
    rows: list[Row] = []
    for place in range(size):
        slow = () if case.private_groups or case.public_groups else ("y", "colour")
        row = {n: two[(place // 2 if n in slow else place) % 2] for n, two in corners.items()}
        rows.append(row | {"group": corners["group"][place >= size // 2]})
    rows = in_arms(rows, case.schema, size // 2)
    other = rows[0] | {name: corners[name][1] for name in case.columns if name not in _GROUPS}
    return Pair(rows, 0, other, "telling corners", (), seed)


def turned(pair: Pair, case: Case, rng: np.random.Generator) -> Pair:
    """Return a pair nearby: one or two rows at other corners, another place or another seed."""
    rows, other = [dict(row) for row in pair.rows], dict(pair.other)
    kind, place, some = int(rng.integers(14)), pair.place, rng.integers(len(rows), size=2)
    if kind < 4:
        return replace(pair, seed=int(rng.integers(100_000)))
    if kind == 4:
        place = int(some[0])
    elif kind == 5:
        _turn(other, case, rng)
    else:
        for one in some[: 1 + (kind < 8)]:
            _turn(rows[one], case, rng)
    return Pair(rows, place, other | kept(rows[place], case.schema), pair.style, (), pair.seed)


def _turn(row: Row, case: Case, rng: np.random.Generator) -> None:
    """Move a row to the other corner: on one side of two, or all of it where groups differ."""
    names = [name for name in case.columns if name not in _GROUPS]
    if not (case.private_groups or case.public_groups):
        names = [names[rng.integers(len(names))]]
    for name in names:
        low, high = values(case.schema, name)[:2]
        row[name] = high if row[name] == low else low
