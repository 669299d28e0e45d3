"""The public set of data sets that private rows are from, read in their own units.

Made-up rows come from here too: what is tried out before private data is touched.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import (
    ADJACENCIES,
    Adjacency,
    Amount,
    Budget,
    PermutationSensitivity,
    Sensitivity,
)
from privatest.core.results import Decision, Outcome, declare_level
from privatest.core.user_code import run_user_code
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.encoding import TwoSamples, encode_pairs, encode_samples
from privatest.data.reading import bounds_of_sides
from privatest.data.schema import Box
from privatest.mechanisms.additive import laplace
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result
from privatest.methods.descriptor import SMOOTHED, Method

Rows = NDArray[np.float64]
Scheme = Literal["two-sample", "independence"]


@dataclass(frozen=True, slots=True)
class Space:
    """Which data sets there are, and which of them are neighbours."""

    x: Box
    y: Box
    n: int
    m: int
    paired: bool  # independence: row i of x and row i of y are one record
    both: bool = False  # neighbours differ by a record in each sample

    def arrange(self, x: Rows, y: Rows, shuffles: NDArray[np.intp]) -> tuple[Rows, Rows]:
        """Permute: stacks (permutations, rows, columns) of both sides, as fresh copies."""
        if self.paired:
            return np.repeat(x[None], len(shuffles), axis=0), y[shuffles]
        pooled = np.concatenate([x, y])
        return pooled[shuffles[:, : len(x)]], pooled[shuffles[:, len(x) :]]

    @property
    def moving(self) -> int:
        """How many rows a permutation is of."""
        return self.m if self.paired else self.n + self.m


def read_space(
    data: Any, bounds: Any, scheme: Scheme, adjacency: Adjacency
) -> tuple[TwoSamples, Space]:
    """Read data in its own units; return the public set of data sets that it is from, too."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ParameterError("data must be a pair (x, y).")  # not quoted: it is private
    paired = scheme == "independence"
    x, y = data
    if paired:
        samples = encode_pairs(x, y, *bounds_of_sides(bounds, x, y), units="own")
        if len(samples.x) < 4:
            raise DataError("x and y must have at least 4 rows.")
    else:
        samples = encode_samples(x, y, bounds, units="own", adjacency=adjacency)
        if min(map(len, samples)) < 2:
            raise DataError("each sample must have at least 2 rows.")
    left, right = samples
    both = adjacency == "both"
    return samples, Space(left.box, right.box, len(left), len(right), paired, both)


def typical(box: Box, rng: np.random.Generator, count: int) -> Rows:
    """Draw rows uniformly within the bounds, or from the standard normal law."""
    shape = (count, len(box.lower))
    return box.at(rng.random(shape)) if box.bounded else rng.standard_normal(shape)


def draw(box: Box, rng: np.random.Generator, count: int) -> Rows:
    """Draw adversarial rows: extremes, ties, heavy tails, or all the same."""
    shape, style = (count, len(box.lower)), rng.integers(5)
    if style == 0:
        return typical(box, rng, count)
    if style == 1:
        corner = rng.integers(2, size=shape)
    elif style == 2:
        corner = np.tile(rng.integers(2, size=(count, 1)), (1, shape[1]))
    elif style == 3:
        return np.tile(typical(box, rng, 1), (count, 1))
    else:
        ties = rng.integers(5, size=shape) / 4.0
        return box.at(ties) if box.bounded else 4.0 * ties - 2.0
    if box.bounded:
        return box.at(corner.astype(np.float64))
    reach = 10.0 ** rng.integers(0, 8) if rng.random() < 0.8 else rng.standard_cauchy(shape)
    wide: Rows = (2.0 * corner - 1.0) * reach
    return wide


def opposite(box: Box, rows: Rows) -> Rows:
    """Mirror rows in the middle of the box: the lower bound becomes the upper one."""
    if not box.bounded:
        return -rows
    mirrored: Rows = np.clip(box.upper - (rows - box.lower), box.lower, box.upper)
    return mirrored


# Composition over all B + 1 statistics: private whole, and weak. For comparison only.


def naive_result(
    statistics: Rows,
    *,
    sensitivity: PermutationSensitivity,
    budget: Budget,
    alpha: float,
    release: Release,
    noise: NoiseSource,
    facts: Mapping[str, Any],
) -> Decision:
    """Add noise to every statistic and rank the observed one.

    Notes
    -----
    **Sensitivity** The vector of statistics moves by at most observed + B permuted in l1.

    **Privacy** All noisy statistics together are (epsilon, delta)-private, and so is what is
    computed from them: any p-value or decision. Proof: docs/proofs/custom-statistics.md.
    """
    total = sensitivity.observed + (len(statistics) - 1) * sensitivity.permuted
    bound = Sensitivity(total, "l1", facts["adjacency"])
    noisy = [
        laplace(float(value), sensitivity=bound, budget=budget, noise=noise) for value in statistics
    ]
    rank = Fraction(sum(value >= noisy[0] for value in noisy), len(noisy))
    shared: dict[str, Any] = {"alpha": alpha, "spent": budget, "simulated": noise.simulated}
    shared |= facts
    shared["reject"] = rank <= Fraction(Decimal(repr(alpha)))
    return Decision(**shared) if release == "decision" else Outcome(pvalue=float(rank), **shared)


# A function of the user's, called with care, and tried out on made-up data first.


TOLERANCE = 1e-9  # relative, for rounding errors; the noise is widened by as much
_BATCH_ENTRIES = 1 << 20  # numbers in a stack of permuted data


class _NotANumberError(Exception):
    """What came back has the wrong type or shape; the text holds nothing of its value."""


@dataclass(frozen=True, slots=True)
class UserStatistic:
    """A function of the user's, called on stacks (permutations, rows, columns)."""

    function: Callable[[Any, Any], Any]
    vectorized: bool

    @property
    def name(self) -> str:
        """What the user calls it."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, x: Rows, y: Rows) -> Rows:
        """Return a number for each member."""
        x, y = (side[..., 0] if side.shape[2] == 1 else side for side in (x, y))
        if self.vectorized:
            return _numbers(self.function(x, y), (len(x),))
        return np.array([_numbers(self.function(*pair), ()) for pair in zip(x, y, strict=True)])

    def settled(self, x: Rows, y: Rows) -> Rows:
        """Return the numbers with 0.0, a public value, for NaN and infinities."""
        values = self(x, y)
        finite: Rows = np.where(np.isfinite(values), values, 0.0)
        return finite


def _numbers(result: object, shape: tuple[int, ...]) -> Rows:
    values = np.asarray(result)
    if values.dtype.kind not in "biuf" or values.shape != shape:
        wanted = f"{shape[0]} numbers for a stack of {shape[0]}" if shape else "one number"
        got = type(result).__name__
        if isinstance(result, np.ndarray):
            got = f"an array of shape {result.shape} and type {result.dtype}"
        raise _NotANumberError(f"must return {wanted}; it returned {got}.")
    return values.astype(np.float64)


@contextmanager
def on_made_up_data(space: Space) -> Iterator[None]:
    """Explain what a statistic does wrong; the data is made up, so the cause may be shown."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except _NotANumberError as error:
        raise ParameterError(f"statistic {error}") from None
    except Exception as error:
        raise ParameterError(
            f"statistic must return a number for all data that its bounds allow; it raised "
            f"{type(error).__name__} on synthetic data of {space.n} and {space.m} rows."
        ) from error


def check_statistic(statistic: UserStatistic, space: Space, sensitivity: float) -> None:
    """Refuse what is not a function from data to finite numbers, on synthetic data."""
    rng = np.random.default_rng(0)
    x = np.stack([typical(space.x, rng, space.n) for _ in range(2)])
    y = np.stack([typical(space.y, rng, space.m) for _ in range(2)])
    given = x.copy(), y.copy()
    with on_made_up_data(space):
        values = statistic(*given)
        again = statistic(x.copy(), y.copy())
        alone = statistic(x[1:2].copy(), y[1:2].copy())
    if not (np.array_equal(given[0], x) and np.array_equal(given[1], y)):
        raise ParameterError("statistic must not change its input; let it work on a copy.")
    if not np.isfinite(values).all():
        drawn = "uniform within the bounds" if space.x.bounded else "standard normal, no bounds"
        raise ParameterError(
            f"statistic must return finite numbers; it returned NaN or an infinity on synthetic "
            f"data ({drawn}, {space.n} and {space.m} rows)."
        )
    slack = TOLERANCE * (np.abs(values).max() + sensitivity)
    if np.abs(values - again).max() > slack:
        raise ParameterError("statistic must return the same number for the same data.")
    if abs(alone[0] - values[1]) > slack:
        raise ParameterError(
            "statistic must treat each member of the stack alone: a member gave one number by "
            "itself and another with others beside it. Reduce over axis 1, not over axis 0."
        )


def permuted_statistics(
    statistic: UserStatistic,
    space: Space,
    x: Rows,
    y: Rows,
    n_permutations: int,
    rng: np.random.Generator,
) -> Rows:
    """Return the statistic of private rows, then those of random permutations."""
    size = max(1, _BATCH_ENTRIES // (x.size + y.size))
    values = []
    for start in range(0, n_permutations + 1, size):
        count = min(size, n_permutations + 1 - start)
        shuffles = np.tile(np.arange(space.moving), (count, 1))
        random = shuffles[1:] if start == 0 else shuffles  # the first is the observed one
        rng.permuted(random, axis=1, out=random)
        values.append(_on_private_data(statistic, *space.arrange(x, y, shuffles)))
    return np.concatenate(values)


def _on_private_data(statistic: UserStatistic, x: Rows, y: Rows) -> Rows:
    return run_user_code(
        lambda: statistic.settled(x, y),
        message="statistic failed on the private data; no noise was drawn. What it said is "
        "withheld, as it may hold values. It must return a number for all data.",
    )


# Walks through made-up data sets, a record at a time, and the step that moves a statistic most.
#
# If two data sets differ in k records and the statistic in more than k sensitivities, some step
# between them breaks the sensitivity, and halving the walk again and again finds one: also a
# jump, and at any size. Data is made as a permutation leaves it, so permutations need no search.


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


# Search made-up data for neighbours that move a statistic further than its author declared.
#
# Walks through data with ties, extremes and clusters, then hill climbing over rows and replaced
# records. Steps are counted, not seconds, and seeded, so that a refusal can be repeated anywhere;
# private data is never seen. What a search can and cannot show: docs/proofs/custom-statistics.md.


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


# Is a statistic of the user's own larger than chance explains? A private answer.


Privatization = Literal["smoothed", "naive"]


class CustomOptions(TypedDict, total=False):
    """What :func:`permutation_test` takes besides data, statistic, budget and ``release``."""

    delta: Amount
    alpha: float
    scheme: Scheme
    privatization: Privatization
    adjacency: Adjacency
    vectorized: bool
    n_permutations: int
    check_sensitivity: bool
    bounds: Any
    rng: Rng
    noise: NoiseSource | None


@overload
def permutation_test(
    data: tuple[Any, Any],
    statistic: Callable[[Any, Any], Any],
    *,
    sensitivity: Declared,
    epsilon: Amount,
    release: Literal["pvalue"] = ...,
    **options: Unpack[CustomOptions],
) -> Outcome: ...
@overload
def permutation_test(
    data: tuple[Any, Any],
    statistic: Callable[[Any, Any], Any],
    *,
    sensitivity: Declared,
    epsilon: Amount,
    release: Release,
    **options: Unpack[CustomOptions],
) -> Decision: ...
@declare_level("valid")
def permutation_test(
    data: tuple[Any, Any],
    statistic: Callable[[Any, Any], Any],
    *,
    sensitivity: Declared,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    scheme: Scheme = "two-sample",
    privatization: Privatization = "smoothed",
    adjacency: Adjacency = "one",
    vectorized: bool = False,
    n_permutations: int = 999,
    check_sensitivity: bool = True,
    bounds: Any = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately with a statistic of your own, whose sensitivity you know.

    The hypothesis is that two samples have one distribution, or that two sides of the same
    rows are independent; it is rejected where the statistic is large among its values on
    permuted data. See the tutorial, docs/tutorials/your-own-statistic.md.

    Parameters
    ----------
    data : (x, y)
        Two samples, or the two sides of the same rows; each an array, data frame or table.
    statistic : callable
        ``statistic(x, y)`` returns a number that is large against the hypothesis. x and y are
        arrays (rows, columns), or (rows,) where there is one column; rows come in a secret
        random order. It is your code and runs on the private data: it must only compute.
    sensitivity : float, PermutationSensitivity or callable
        The most that the statistic moves when one record is replaced, **under every
        permutation**; see Notes. A function is called with (n, m).
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    scheme : {"two-sample", "independence"}
        Permute all rows between x and y, or the rows of y against those of x.
    privatization : {"smoothed", "naive"}
        Noise on the observed statistic only, or noise (n_permutations + 1) times as large on
        every statistic: composition, for comparison. For "naive" take few permutations.
    adjacency : {"one", "both"}
        Two samples: one record is replaced, or one in each. Independence: one pair, always.
    vectorized : bool
        Whether ``statistic`` takes a stack of permutations, x (B, n, d) and y (B, m, d), or
        (B, n) and (B, m) where there is one column, and returns B numbers.
    n_permutations : int
        Number of random permutations.
    check_sensitivity : bool
        Whether to search synthetic data for neighbours that break ``sensitivity``: a fixed
        number of evaluations, about a second for a cheap statistic. Finding none proves nothing.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds. The statistic sees values clipped to them, in their own units, and
        categories as 0, 1, ... For independence (lower, upper) for all columns, names of
        both sides, or (bounds of x, bounds of y). Without bounds data is taken as it is.
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        An Outcome without a statistic for ``release="pvalue"``, else a Decision.

    Raises
    ------
    ParameterError
        The statistic or its sensitivity fails on synthetic data; nothing was drawn or spent.
    PrivatestError
        The statistic raised an exception on the private data. Its text is withheld.

    Notes
    -----
    **Sensitivity** It is yours to prove: for every permutation, the same for both, the
    statistics of permuted neighbours must differ by at most this number. A permutation may put
    a record of the large sample into the small one, both replaced records of "both" into one
    sample, and it parts the two sides of a pair. Where permuted statistics therefore move
    further than the observed one, ``PermutationSensitivity(observed, permuted)`` says so and
    saves noise. The number is for the statistic as computed, NaN and infinities being replaced
    by 0.0; it is widened by a relative 1e-9 for rounding errors, and multiplied by the rows a
    person may have. Proof: docs/proofs/custom-statistics.md.

    **Privacy** Only the p-value or the decision is released, at (epsilon, delta), provided that
    the declared sensitivity is right and the statistic does nothing but compute. The level is
    exact in any case. Proofs: docs/proofs/smoothed-permutation-test.md, and for "naive"
    docs/proofs/custom-statistics.md.

    Examples
    --------
    >>> import numpy as np
    >>> from privatest.methods.custom import permutation_test
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=500), rng.beta(2, 1, size=400)
    >>> def gap(x, y):
    ...     return abs(x.mean() - y.mean())
    >>> permutation_test(
    ...     (x, y), gap, sensitivity=lambda n, m: 1 / min(n, m), bounds=(0, 1), epsilon=1
    ... ).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("release", release, RELEASES)
    _check_options(scheme, privatization, adjacency, n_permutations, alpha)
    _true_or_false(vectorized=vectorized, check_sensitivity=check_sensitivity)
    if not callable(statistic):  # not quoted: data may have been passed here by mistake
        raise ParameterError("statistic must be a function of x and y, after data as (x, y).")
    generator, source = public_generator(rng), noise_source(noise)
    samples, space = read_space(data, bounds, scheme, adjacency)
    user = UserStatistic(statistic, vectorized)
    bound = declared_bound(sensitivity, space.n, space.m)
    check_statistic(user, space, bound.permuted)
    if check_sensitivity:
        search_neighbours(user, space, sensitivity)
    bound = bound * (samples.rows_per_person * (1 + TOLERANCE))
    facts = _facts(space, samples.rows_per_person, user, bound, n_permutations, privatization)
    orders = samples.secret_orders(source, paired=space.paired)
    x, y = (side.rows[order] for side, order in zip(samples, orders, strict=True))
    result = naive_result if privatization == "naive" else permutation_result
    return result(
        permuted_statistics(user, space, x, y, n_permutations, generator),
        sensitivity=bound,
        budget=budget,
        alpha=alpha,
        release=release,
        noise=source,
        facts=facts,
    )


def _check_options(
    scheme: str, privatization: str, adjacency: str, n_permutations: int, alpha: float
) -> None:
    one_of("scheme", scheme, ("two-sample", "independence"))
    one_of("privatization", privatization, ("smoothed", "naive"))
    one_of("adjacency", adjacency, ADJACENCIES)
    integer_at_least("n_permutations", n_permutations, 1)
    if scheme == "two-sample" and adjacency == "row":
        raise ParameterError(
            "adjacency='row' hides the group sizes, but a statistic of x and y sees them: it "
            "would need a bound over all sizes. Use mmd_test or ipm_test, which have one."
        )
    if scheme == "independence" and adjacency == "both":
        raise ParameterError("adjacency='both' is for two samples; here one pair is replaced.")
    smallest = math.ceil(1 / Fraction(Decimal(repr(alpha)))) - 1
    if privatization == "naive" and n_permutations < smallest:
        raise ParameterError(
            f"n_permutations must be at least {smallest} for alpha = {alpha:g} with "
            f"privatization='naive', or the test never rejects; got {n_permutations}."
        )


def _true_or_false(**options: object) -> None:
    for name, value in options.items():
        if not isinstance(value, bool):
            reject(name, "True or False", value)


def _facts(
    space: Space,
    rows_per_person: int,
    statistic: UserStatistic,
    bound: PermutationSensitivity,
    n_permutations: int,
    privatization: Privatization,
) -> dict[str, Any]:
    null = "the two samples come from the same distribution"
    facts: dict[str, Any] = {
        "adjacency": "both" if space.both else "one",
        "method": f"two-sample permutation test of {statistic.name}",
        "null_hypothesis": null,
        "sizes": {"n": space.n, "m": space.m},
        "parameters": {
            "statistic": statistic.name,
            "sensitivity": (bound.observed, bound.permuted),
            "privatization": privatization,
            "n_permutations": n_permutations,
        },
        "rows_per_person": rows_per_person,
    }
    if space.paired:
        facts["adjacency"] = "one"  # one pair, as in hsic_test
        facts["method"] = f"independence permutation test of {statistic.name}"
        facts["null_hypothesis"] = "the two sides are independent"
        facts["sizes"] = {"n": space.n}
    return facts


DESCRIPTORS = (
    Method(
        name="permutation",
        question="",
        function=permutation_test,
        sentence=f"We used a statistic of our own with a declared sensitivity, {SMOOTHED}",
        papers=("kim2023",),
    ),
)
