"""Search for neighbours that move a statistic further than its declared sensitivity.

One line tests a statistic; the largest ratio found comes back, to assert tightness::

    assert assert_sensitivity(two_sample(mmd), bound, Space(domain, n=5, m=3)) > 0.99

Random restarts from data with ties, extremes and corners of the box, then hill climbing over
the rows, the replaced records, the labels and the permutation. Seeded: a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import Adjacency, PermutationSensitivity
from privatest.data.schema import Domain

Rows = NDArray[np.float64]
Labels = NDArray[np.bool_]
Statistic = Callable[[Rows, Labels], Any]
"""Rows and whether each belongs to the first group -> a number, or several at once."""

TOLERANCE = 1e-9
_UNBOUNDED_REACH = 50.0  # how far rows of an unbounded domain are placed
_STYLES = ("corners", "opposite corners", "ties", "anything", "one corner")
_REMEMBERED = 8  # data sets: the two that a step starts from, and some before them


@dataclass(frozen=True, slots=True)
class Space:
    """Data sets of one shape, and what makes two of them neighbours.

    With ``permuted`` the labels are permuted before the statistic is computed: the same
    permutation for both neighbours, as in a permutation test.
    """

    domain: Domain
    n: int
    m: int
    adjacency: Adjacency = "one"
    permuted: bool = False

    @property
    def total(self) -> int:
        return self.n + self.m

    def rows(self, rng: np.random.Generator, count: int) -> Rows:
        """Rows that are corners, ties or anything."""
        style = _STYLES[rng.integers(len(_STYLES))]
        unit = rng.uniform(size=(count, self.domain.dimension))
        if style == "corners":
            unit = np.round(unit)
        elif style == "opposite corners":  # where a kernel is smallest
            unit[:] = rng.integers(2, size=(count, 1))
        elif style == "ties":
            unit = unit[rng.integers(min(count, 2), size=count)]
        elif style == "one corner":
            unit = np.tile(np.round(unit[:1]), (count, 1))
        return self._place(unit)

    def _place(self, unit: Rows) -> Rows:
        if not self.domain.bounded:
            unit[:, self.domain.numeric] = _UNBOUNDED_REACH * (unit[:, self.domain.numeric] - 0.5)
        for column in self.domain.categorical:
            levels = self.domain.levels[column]
            unit[:, column] = np.minimum(np.floor(unit[:, column] * levels), levels - 1)
        return unit


@dataclass(slots=True)
class Neighbours:
    """Two neighbouring data sets and a permutation of labels."""

    rows: Rows
    labels: Labels
    replaced: NDArray[np.intp]  # one index, or one of each group for "both"
    new_rows: Rows
    new_label: bool
    permutation: NDArray[np.intp]

    def copy(self) -> Neighbours:
        return Neighbours(
            self.rows.copy(),
            self.labels.copy(),
            self.replaced.copy(),
            self.new_rows.copy(),
            self.new_label,
            self.permutation.copy(),
        )

    def first(self) -> tuple[Rows, Labels]:
        return self.rows, self.labels[self.permutation]

    def second(self) -> tuple[Rows, Labels]:
        rows, labels = self.rows.copy(), self.labels.copy()
        rows[self.replaced] = self.new_rows
        labels[self.replaced[0]] = self.new_label
        return rows, labels[self.permutation]


def assert_sensitivity(
    statistic: Statistic,
    bound: Any,
    space: Space,
    *,
    slack: float = 0.0,
    restarts: int = 12,
    steps: int = 120,
    seed: int = 0,
) -> float:
    """Fail if neighbours are found that move the statistic by more than ``bound``.

    ``bound`` is a number, or one for each number the statistic returns; ``slack`` is an
    absolute allowance for rounding. Returns the largest ratio of movement to bound.
    """
    rng = np.random.default_rng(seed)
    limits = np.asarray(bound, dtype=np.float64)
    best, worst = 0.0, None
    value = _remembering(statistic)
    for _ in range(restarts):
        ratio, pair = _climb(value, limits + slack, space, steps, rng)
        if ratio > best:
            best, worst = ratio, pair
    if best > 1 + TOLERANCE:
        raise AssertionError(f"moves by {best:.9f} of its sensitivity between {worst!r}")
    return best


def assert_permutation_sensitivity(
    statistic: Statistic, sensitivity: PermutationSensitivity, space: Space, **search: Any
) -> tuple[float, float]:
    """Attack both numbers of a permutation test; return both largest ratios."""
    shape = space.domain, space.n, space.m, space.adjacency
    return (
        assert_sensitivity(statistic, sensitivity.observed, Space(*shape), **search),
        assert_sensitivity(statistic, sensitivity.permuted, Space(*shape, permuted=True), **search),
    )


def two_sample(function: Callable[[Rows, Rows], Any]) -> Statistic:
    """Make a statistic of two samples one of labelled rows."""
    return lambda rows, labels: function(rows[labels], rows[~labels])


def movement(statistic: Statistic, pair: Neighbours) -> NDArray[np.float64]:
    """How far each number that the statistic returns moves between the neighbours."""
    first = np.asarray(statistic(*pair.first()), dtype=np.float64)
    second = np.asarray(statistic(*pair.second()), dtype=np.float64)
    distance: NDArray[np.float64] = np.abs(first - second)
    if not np.isfinite(distance).all():
        raise AssertionError(f"is not finite for {pair!r}")
    return distance


# --- the search ------------------------------------------------------------------------------


def _remembering(statistic: Statistic) -> Statistic:
    """The same statistic, quicker: half of all steps leave one of the two data sets as it was."""
    known: dict[tuple[bytes, bytes], Any] = {}

    def value(rows: Rows, labels: Labels) -> Any:
        data = rows.tobytes(), labels.tobytes()
        if data not in known:
            if len(known) >= _REMEMBERED:
                del known[next(iter(known))]  # the oldest
            known[data] = statistic(rows, labels)
        return known[data]

    return value


def _climb(
    statistic: Statistic,
    limits: NDArray[np.float64],
    space: Space,
    steps: int,
    rng: np.random.Generator,
) -> tuple[float, Neighbours]:
    pair = _start(space, rng)
    best = float((movement(statistic, pair) / limits).max())
    for _ in range(steps):
        trial = pair.copy()
        for _ in range(int(rng.integers(1, 3))):
            _MOVES[rng.integers(len(_MOVES))](trial, space, rng)
        ratio = float((movement(statistic, trial) / limits).max())
        if ratio >= best:  # equal too: plateaus have to be crossed
            best, pair = ratio, trial
    return best, pair


def _start(space: Space, rng: np.random.Generator) -> Neighbours:
    labels = np.arange(space.total) < space.n
    pair = Neighbours(
        rows=space.rows(rng, space.total),
        labels=labels,
        replaced=np.zeros(1, dtype=np.intp),
        new_rows=space.rows(rng, 1),
        new_label=True,
        permutation=np.arange(space.total),
    )
    _change_replaced(pair, space, rng)
    _permute(pair, space, rng)
    return pair


def _change_rows(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    chosen = rng.integers(space.total, size=int(rng.integers(1, 4)))
    pair.rows[chosen] = space.rows(rng, len(chosen))


def _copy_row(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    target, source = rng.integers(space.total, size=2)
    pair.rows[target] = pair.rows[source]


def _flatten_group(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    """All rows of one group become the same: extremes are rarely found one row at a time."""
    group = pair.labels[pair.permutation] == bool(rng.integers(2))
    pair.rows[group] = space.rows(rng, 1)


def _flatten_all(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    pair.rows[:] = space.rows(rng, 1)


def _change_new_rows(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    pair.new_rows = space.rows(rng, len(pair.replaced))


def _oppose(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    """Move the replaced records to the opposite corner, in all columns at once."""
    far = np.array([max(level - 1, 1) for level in space.domain.levels], dtype=np.float64)
    if space.domain.bounded:
        pair.new_rows = far - pair.rows[pair.replaced]


def _change_replaced(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    if space.adjacency == "both":
        groups = [np.flatnonzero(pair.labels == label) for label in (True, False)]
        pair.replaced = np.array([rng.choice(group) for group in groups])
    else:
        pair.replaced = rng.integers(space.total, size=1)
    pair.new_rows = space.rows(rng, len(pair.replaced))
    pair.new_label = bool(pair.labels[pair.replaced[0]])
    if space.adjacency == "row":
        pair.new_label = bool(rng.integers(2))


def _permute(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    if space.permuted:
        pair.permutation = rng.permutation(space.total)


def _swap(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    if space.permuted:
        chosen = rng.integers(space.total, size=2)
        pair.permutation[chosen] = pair.permutation[chosen[::-1]]


def _flip_labels(pair: Neighbours, space: Space, rng: np.random.Generator) -> None:
    """Private groups: their sizes are part of the data, an empty group too."""
    if space.adjacency == "row":
        chosen = rng.integers(space.total, size=int(rng.integers(1, 4)))
        pair.labels[chosen if rng.integers(4) else slice(None)] = bool(rng.integers(2))


_MOVES = (
    _change_rows,
    _copy_row,
    _flatten_group,
    _flatten_all,
    _change_new_rows,
    _oppose,
    _change_replaced,
    _permute,
    _swap,
    _flip_labels,
)
