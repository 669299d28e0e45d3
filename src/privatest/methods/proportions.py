"""Shares of successes: one group, groups of public sizes, and two private groups.

Numbers of successes are released with noise; everything else is post-processing.
Proof: docs/proofs/proportions.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget
from privatest.core.results import Interval, Outcome, declare_level, side_alpha
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.columns import category_blocks, one_column, refuse_missing
from privatest.data.encoding import Sample, encode_sample, rows_of_a_person
from privatest.data.reading import check_person_rows, group_names, read_data, resolve_samples
from privatest.data.schema import (
    MISSING,
    UNKNOWN,
    Bounds,
    CategoricalColumn,
    Categories,
    Category,
    Schema,
    spelling,
)
from privatest.data.sources import Held, Source, Stream
from privatest.data.summaries import Counts, summarise
from privatest.mechanisms.additive import CountNoise, count_noise, noisy_counts
from privatest.mechanisms.lattice import Mechanism, noise_law, noisy_integer
from privatest.methods.descriptor import Method, Offered
from privatest.methods.mean_inference import MeanEstimate
from privatest.numerics.laws import (
    ALTERNATIVES,
    Alternative,
    LatticeTulap,
    binomial_law,
    binomial_masses,
)

Floats = NDArray[np.float64]
Rule = Callable[[Floats], NDArray[np.bool_]]
"""Which of some rows are a success; it travels to other processes."""
Shares = tuple[Floats, Floats, Floats]
"""Estimates of the groups' shares, and lower and upper ends."""
Wanted = Literal["both", "least difference", "largest difference"]
"""Which ends are computed: all, or those behind one end of the first share minus the second."""


# --- Successes: a public rule, never found from the data ----------------------------------------


def success_counts(*groups: tuple[Sample, Rule]) -> list[int]:
    """Return the number of successes of each group, in one pass."""
    reducers = ((sample, partial(Counts, rule, 2)) for sample, rule in groups)
    return [int(summary.counts[1]) for summary in summarise(*reducers)]


def success_width() -> int:
    """Return the sensitivity of a number of successes: a replaced row is a success or not."""
    return 1


def outcome_table(counts: Sequence[int], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return successes and failures (columns) of each group (rows).

    A replaced row that may change its group leaves one cell and enters another: the table of
    :mod:`privatest.mechanisms.additive`, whose bounds it has.
    """
    pairs = zip(counts, sizes, strict=True)
    return np.array([(won, size - won) for won, size in pairs], dtype=np.int64)


_WORDS = {"true": 1.0, "false": 0.0}
_TRUE = ("1", "true")  # a success by default


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Rows of one column, and the public rule that says which are a success."""

    sample: Sample
    won: Rule

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.sample)

    @property
    def rows_per_person(self) -> int:
        """The most rows that one person has, as declared."""
        return self.sample.rows_per_person

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the column is called."""
        return self.sample.names


def person_of(groups: Sequence[Outcomes]) -> int:
    """Return the most rows that one person has in all groups together."""
    return rows_of_a_person(*(group.sample for group in groups))


def read_outcomes(data: Any, bounds: Bounds, success: Category | None, name: str) -> Outcomes:
    """Read one column of 0 and 1, true and false, or categories; ``name`` is for messages.

    ``success`` is what counts as a success; None is 1 or true.
    """
    if success is not None and not isinstance(success, (str, bool, int, float)):
        raise ParameterError("success must be a category: text, a number, true or false.")
    if bounds is None and success is not None:
        return Outcomes(Sample(_labelled(data, success, name), None), partial(_equals, 1.0))
    sample = encode_sample(data, bounds, name, units="own")
    if sample.width != 1:
        raise DataError(f"{name} must be one column.")
    column = None if sample.schema is None else next(iter(sample.schema.columns.values()))
    if isinstance(column, CategoricalColumn):
        return Outcomes(sample, partial(_equals, float(_code(column, success))))
    if success is None:
        return Outcomes(sample, partial(_is_one, name))
    return Outcomes(sample, partial(_equals, _number(success)))


def _equals(value: float, rows: Floats) -> NDArray[np.bool_]:
    return np.asarray(rows[:, 0] == value)


def _is_one(name: str, rows: Floats) -> NDArray[np.bool_]:
    won: NDArray[np.bool_] = rows[:, 0] == 1
    if not (won | (rows[:, 0] == 0)).all():
        raise DataError(f"{name} must hold 0 and 1; or name the value that is a success.")
    return won


def check_success(schema: Schema, success: Category | None) -> None:
    """Refuse a success that the column cannot have; nothing is read."""
    for column in schema.columns.values():
        if isinstance(column, CategoricalColumn):
            _code(column, success)
        elif success is not None:
            if not column.lower <= _number(success) <= column.upper:
                raise ParameterError("success must be within the bounds of the column.")
        elif (column.lower, column.upper) != (0, 1) or not column.integer:
            # any other column may hold a value that is neither, and failing would tell of it
            raise ParameterError(
                "success must be given: only integers between 0 and 1 have an obvious one."
            )


def _labelled(data: Any, success: Category, name: str) -> Held:
    """Return 1 for a success and 0 for all else, of a column that nobody has described."""
    table = read_data(data, name)
    if table.width != 1:
        raise DataError(f"{name} must be one column.")
    if isinstance(data, Source):
        return Stream(data, partial(_write_labels, success=success, name=name), 1)
    return _encoded_labels(data, success, name)


def _write_labels(batch: Any, out: Floats, success: Category, name: str) -> None:
    out[:] = _encoded_labels(batch, success, name)


def _encoded_labels(data: Any, success: Category, name: str) -> Floats:
    column = one_column(read_data(data, name).column(0), name)
    labels = Categories.labelled([spelling(success)])
    codes = np.concatenate([np.empty(0, np.intp), *category_blocks(column, labels, name)])
    if (codes == MISSING).any():
        refuse_missing(name)
    return np.asarray(codes == 0, dtype=np.float64)[:, None]


def _code(column: CategoricalColumn, success: Category | None) -> int:
    categories = Categories.declared(column.categories)
    if success is None:
        known = [categories.codes[word] for word in _TRUE if word in categories.codes]
        if len(known) != 1:
            raise ParameterError("success must be given: which category is a success?")
        return known[0]
    code = categories.code_of(success)
    if code in (UNKNOWN, MISSING):
        raise ParameterError("success must be one of the declared categories.")
    return code


def _number(success: Category) -> float:
    if isinstance(success, str) and success.lower() in _WORDS:  # of a column of true and false
        return _WORDS[success.lower()]
    try:
        return float(success)
    except ValueError:
        raise ParameterError("success must be a number, as the column is numeric.") from None


# --- The share of one group ---------------------------------------------------------------------
#
# K is binomial(n, share) and the noise is continuous, so K + noise has a continuous law whose tail
# grows strictly with the share. An interval is found by inversion, without approximation.


class Survival(Protocol):
    """Noise of which the tail is known."""

    def survival(self, x: ArrayLike, /) -> Floats:
        """Return P(noise >= x)."""


NO_NOISE = LatticeTulap(1, 500.0)  # a count spread evenly over its unit, and no noise else
_PRECISE = 1e-12  # of an angle


def noisy_tail(n: int, share: float, noisy: float, noise: Survival) -> float:
    """Return P(K + noise >= ``noisy``), K binomial(n, share)."""
    counts, masses = binomial_masses(n, share)
    return float(np.sum(masses * noise.survival(noisy - counts)))


def share_interval(
    n: int, noisy: float, noise: Survival, below: float, above: float
) -> tuple[float, float]:
    """Return the ends in [0, 1] of the shares that fit a noisy count.

    The lower end is above the true share with probability ``below``, the upper end below it with
    probability ``above``; 0 leaves an end open. A count far beyond 0 or n gives both ends there, so
    the interval is never empty.
    """
    low = _share_at(n, noisy, noise, below) if below > 0 else 0.0
    high = _share_at(n, noisy, noise, 1 - above) if above > 0 else 1.0
    return low, high


def open_interval(n: int, noisy: float, noise: LatticeTulap, side: float) -> tuple[float, float]:
    """Return the same ends as if shares below 0 and above 1 existed, for differences of shares.

    A count of n times such a share would be no random number, so that noise alone decides. Ends
    that stop at 0 or 1 would make a noisy count seem more certain than it is.
    """
    return open_end(n, noisy, noise, side), open_end(n, noisy, noise, 1 - side)


def open_end(n: int, noisy: float, noise: LatticeTulap, tail: float) -> float:
    """Return one of these ends: the share at which P(Z >= noisy) is ``tail``."""
    end = _share_at(n, noisy, noise, tail)
    return (noisy - float(noise.quantile(1 - tail))) / n if end in (0.0, 1.0) else end


def _share_at(n: int, noisy: float, noise: Survival, tail: float) -> float:
    """Return the share at which P(Z >= noisy) is ``tail``."""
    from scipy.optimize import brentq  # noqa: PLC0415

    known: dict[float, float] = {}  # the search asks for both ends again

    def excess(angle: float) -> float:  # shares near 0 or 1 need more digits
        if angle not in known:
            known[angle] = noisy_tail(n, math.sin(angle) ** 2, noisy, noise) - tail
        return known[angle]

    if excess(0.0) >= 0:
        return 0.0
    if excess(math.pi / 2) <= 0:
        return 1.0
    return math.sin(brentq(excess, 0.0, math.pi / 2, xtol=_PRECISE)) ** 2


def tulap_variance(noise: LatticeTulap) -> float:
    """Return the variance of the noise; a cut makes it a little smaller than this."""
    b = math.exp(-noise.epsilon)
    return noise.width**2 * (2 * b / math.expm1(-noise.epsilon) ** 2 + 1 / 12)


# --- Shares of groups of public sizes: a noisy count for each -----------------------------------


FEW = 10  # successes or failures: with fewer, intervals of differences misjudge a single one
_POINTS = 33  # common shares that are tried
_AT_ONCE = 2048  # simulated counts whose statistics are computed together: they stay in a cache
_REACH = 1.65  # noise variances: up to there beyond 0 and n the statistic is monotone


@dataclass(frozen=True, slots=True)
class PublicShares:
    """Noisy numbers of successes of groups with public sizes, and the noise of each."""

    counts: tuple[float, ...]
    sizes: tuple[int, ...]
    noise: LatticeTulap
    finest: ClassVar[float] = 1e-9  # the smallest level at which ends can be computed

    @property
    def scarce(self) -> bool:
        """Whether a group has fewer than ten successes or failures, by what was released."""
        pairs = zip(self.counts, self.sizes, strict=True)
        return any(min(count, n - count) < FEW for count, n in pairs)

    @property
    def estimates(self) -> Floats:
        """Shares in [0, 1]."""
        return np.clip(np.array(self.counts) / self.sizes, 0, 1)

    def ends(self, side: float, wanted: Wanted = "both") -> Shares:
        """Return shares as if those beyond 0 and 1 existed; each end is missed with ``side``."""
        groups = zip(self.sizes, self.counts, *sides_of(wanted, len(self.sizes)), strict=True)
        pairs = [
            (
                open_end(n, z, self.noise, side) if lower else math.nan,
                open_end(n, z, self.noise, 1 - side) if upper else math.nan,
            )
            for n, z, lower, upper in groups
        ]
        low, high = np.transpose(pairs)
        return np.array(self.counts) / self.sizes, low, high

    def within(self, side: float) -> Shares:
        """Return shares in [0, 1], of counts that are cut at 0 and n."""
        return self._closed(side, self.noise)

    def without_noise(self, side: float) -> Shares:
        """Return shares as if the counts had no noise."""
        return self._closed(side, NO_NOISE)

    def _closed(self, side: float, noise: LatticeTulap) -> Shares:
        cut = np.clip(self.counts, 0, self.sizes).tolist()
        pairs = zip(self.sizes, cut, strict=True)
        low, high = np.transpose([share_interval(n, z, noise, side, side) for n, z in pairs])
        return self.estimates, low, high

    def statistic(self, counts: Floats) -> Floats:
        """Return how far noisy counts (groups first) are from one common share.

        Of two groups a signed z, which grows with the first count and falls with the second; of
        more a chi-squared. Its variance includes that of the noise.
        """
        variance = tulap_variance(self.noise)
        sizes = np.array(self.sizes, dtype=np.float64).reshape(-1, *[1] * (counts.ndim - 1))
        reach = _REACH * variance
        counts = np.minimum(np.maximum(counts, -reach), sizes + reach)
        pooled = np.clip(counts.sum(axis=0) / sizes.sum(), 0, 1)
        spread = pooled * (1 - pooled) / sizes + variance / sizes**2
        shares = counts / sizes
        if len(sizes) == 2:
            difference = shares[0] - shares[1]
            signed: Floats = difference / np.sqrt(spread.sum(axis=0))
            return signed
        weights = 1 / spread
        middle = (weights * shares).sum(axis=0) / weights.sum(axis=0)
        total: Floats = (weights * (shares - middle) ** 2).sum(axis=0)
        return total

    def pvalue(
        self, alternative: Alternative, n_simulations: int, rng: np.random.Generator
    ) -> float:
        """Return the largest p-value over common shares that fit, plus what they may miss."""
        missed = 1 / (n_simulations + 1)
        side = missed / (2 * len(self.sizes))
        ends = [
            share_interval(n, z, self.noise, side, side)
            for n, z in zip(self.sizes, self.counts, strict=True)
        ]
        low, high = max(end[0] for end in ends), min(end[1] for end in ends)
        if low > high:  # no common share fits; one-sided, shares in the other order may
            order = {"greater": ends[0][1] < ends[1][0], "less": ends[1][1] < ends[0][0]}
            return 1.0 if order.get(alternative, False) else missed
        observed = turned(self.statistic(np.array(self.counts)), alternative)
        uniforms = rng.uniform(size=(2, len(self.sizes), n_simulations))
        noise = self.noise.quantile(np.clip(uniforms[0], 1e-300, None))
        most = 0
        groups = list(zip(self.sizes, map(Uniforms.of, uniforms[1]), strict=True))
        for share in share_grid(low, high, _POINTS):
            counts = np.stack([binomial_draws(n, share, drawn) for n, drawn in groups])
            counts += noise
            larger = 0
            for start in range(0, n_simulations, _AT_ONCE):
                drawn = self.statistic(counts[:, start : start + _AT_ONCE])
                larger += int(np.count_nonzero(turned(drawn, alternative) >= observed))
            most = max(most, larger)
        return min(1.0, (1 + most) * missed + missed)


def sides_of(wanted: Wanted, groups: int) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Return of which groups the lower ends are wanted, and of which the upper ends."""
    if wanted == "both":
        return (True,) * groups, (True,) * groups
    first, second = (True, False), (False, True)
    return (first, second) if wanted == "least difference" else (second, first)


def turned(statistic: Floats, alternative: Alternative) -> Floats:
    """Orient a signed statistic so that large values favour the alternative."""
    if alternative == "two-sided":
        return np.abs(statistic)
    return statistic if alternative == "greater" else -statistic


def share_grid(low: float, high: float, points: int) -> list[float]:
    """Return shares between two, closer together near 0 and 1, where laws change faster."""
    first, last = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
    count = points if high > low else 1
    grid = np.sin(np.linspace(first, last, count)) ** 2
    return np.clip(grid, 0, 1).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class Uniforms:
    """Random numbers in their order of size, and the place of each in the order they came in."""

    ordered: Floats
    places: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, numbers: Floats) -> Uniforms:
        """Sort them once: many laws are drawn from them."""
        order = np.argsort(numbers, kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return cls(numbers[order], places)


def binomial_draws(n: int, share: float, uniforms: Uniforms) -> Floats:
    """Return binomial numbers by inversion: the same random numbers for every share."""
    counts, masses = binomial_masses(n, share)
    # of sorted numbers those of a count are neighbours: it is enough to look for the edges
    edges = np.searchsorted(uniforms.ordered, np.cumsum(masses[:-1]), side="left")
    ends = np.concatenate([[0], edges, [len(uniforms.ordered)]])
    drawn: Floats = np.repeat(counts, np.diff(ends))
    return drawn if uniforms.places is None else drawn[uniforms.places]


# --- Shares of two private groups: a noisy 2 x 2 table ------------------------------------------


_NUISANCE_POINTS = 7  # of each nuisance: the share of a group, and that of successes
_DRAWS, _SEED = 9999, 0  # of intervals: public and fixed, so that they can be repeated
_FAR = 60.0  # shares beyond which no end is looked for


@dataclass(frozen=True, slots=True)
class SumOfTwo:
    """The noise of a margin: a sum of the noise of two cells."""

    cell: CountNoise

    def survival(self, x: ArrayLike) -> Floats:
        """Return P(noise >= x)."""
        values = np.asarray(x, dtype=np.float64)
        if self.cell.kind == "gaussian":
            from scipy.special import ndtr  # noqa: PLC0415

            normal: Floats = ndtr(-values / (self.cell.scale * math.sqrt(2)))
            return normal
        # P(j) is proportional to q^|j| (|j| + (1 + q²)/(1 - q²))
        q, step = math.exp(-1 / self.cell.scale), -math.expm1(-1 / self.cell.scale)
        least = np.ceil(values)
        start = np.maximum(least, 1 - least)  # P(noise >= -k) = 1 - P(noise >= k + 1)
        inner = start + (1 + q * q) / (step * (1 + q)) + q / step
        tail = (step / (1 + q)) ** 2 * np.exp(-start / self.cell.scale) * inner / step
        result: Floats = np.where(least >= 1, tail, 1 - tail)
        return result


@dataclass(frozen=True, slots=True)
class PrivateShares:
    """A noisy table of two private groups, their public total, and the noise of each cell.

    ``cells`` are successes and failures of the first group, then those of the second.
    """

    cells: tuple[float, float, float, float]
    total: int
    noise: CountNoise
    finest: ClassVar[float] = 10 / (_DRAWS + 1)

    @property
    def scarce(self) -> bool:
        """Whether a group has fewer than ten successes or failures, by what was released."""
        return min(self.cells) < FEW

    @property
    def estimates(self) -> Floats:
        """Shares in [0, 1]."""
        return np.clip(self._raw(), 0, 1)

    def _raw(self) -> Floats:
        table = np.reshape(self.cells, (2, 2))
        sizes = table.sum(axis=1)
        return np.where(sizes >= 1, table[:, 0] / np.maximum(sizes, 1), 0.5)

    def ends(self, side: float, wanted: Wanted = "both") -> Shares:
        """Return shares with ends that are each missed with ``side``; they may be infinite."""
        groups = zip((self.cells[:2], self.cells[2:]), *sides_of(wanted, 2), strict=True)
        ends = [self._ends(*cells, side, *wanted_ends) for cells, *wanted_ends in groups]
        low, high = np.transpose(ends)
        return self._raw(), low, high

    def within(self, side: float) -> Shares:
        """Return shares in [0, 1]."""
        _, low, high = self.ends(side)
        return self.estimates, np.clip(low, 0, 1), np.clip(high, 0, 1)

    def without_noise(self, side: float) -> Shares:
        """Return shares as if the table had no noise."""
        sizes = [self._size(sum(self.cells[:2])), self._size(sum(self.cells[2:]))]
        pairs = [
            share_interval(n, n * share, NO_NOISE, side, side)
            for n, share in zip(sizes, self.estimates.tolist(), strict=True)
        ]
        low, high = np.transpose(pairs)
        return self.estimates, low, high

    def _size(self, noisy: float) -> int:
        return round(min(max(noisy, 1.0), self.total))

    def _ends(
        self, won: float, lost: float, side: float, lower: bool, upper: bool
    ) -> tuple[float, float]:
        """Return shares s at which won - s (won + lost), whose mean is 0, is not too far from 0.

        An end that is not wanted is NaN. The size of the group is known up to noise only: if it may
        be 0, every share fits.
        """
        size = won + lost
        if size < 1 or float(SumOfTwo(self.noise).survival(size)) > side:
            return -math.inf, math.inf
        n = self._size(size)
        noise, uniforms = _draws(self.noise)

        def beyond(share: float) -> float:
            known = min(max(share, 0.0), 1.0)
            drawn = binomial_draws(n, known, uniforms) - n * known
            drawn += (1 - share) * noise[0] - share * noise[1]
            return float(np.count_nonzero(drawn >= won - share * size)) / _DRAWS

        middle = won / size
        low = _sign_change(lambda share: beyond(share) - side, middle, -_FAR) if lower else math.nan
        high = (
            _sign_change(lambda share: 1 - beyond(share) - side, middle, _FAR)
            if upper
            else math.nan
        )
        return low, high

    def statistic(self, cells: Floats) -> Floats:
        """Return a signed z of noisy tables (cells last): positive if the first share is larger.

        Its variance includes that of the noise, with its part of second order: it is positive
        whatever the table.
        """
        a, b, c, d = np.moveaxis(cells, -1, 0)
        n, v = self.total, self.noise.variance
        first = np.clip((a + b) / n, 0, 1)
        won = np.clip((a + c) / n, 0, 1)
        shares = first * (1 - first) * won * (1 - won)
        slopes = (first**2 + (1 - first) ** 2) * (won**2 + (1 - won) ** 2)
        result: Floats = (a * d - b * c) / n / np.sqrt(n * shares + v * slopes + 2 * (v / n) ** 2)
        return result

    def pvalue(
        self, alternative: Alternative, n_simulations: int, rng: np.random.Generator
    ) -> float:
        """Return the largest p-value over group shares and common shares that fit."""
        missed = 1 / (n_simulations + 1)
        a, b, c, _ = self.cells
        firsts, wons = (self._margin(noisy, missed / 4) for noisy in (a + b, a + c))
        observed = turned(self.statistic(np.array(self.cells)), alternative)
        noise, seed = self.noise.draws((n_simulations, 4), rng), int(rng.integers(2**63))
        most, apart = 0, np.ascontiguousarray(noise.T)
        for first in firsts:
            same = np.random.default_rng(seed)  # the same random numbers for every pair
            sizes = same.binomial(self.total, first, size=n_simulations)
            others, state = self.total - sizes, same.bit_generator.state
            for won in wons:
                same.bit_generator.state = state
                here, there = same.binomial(sizes, won), same.binomial(others, won)
                cells = np.stack([here, sizes - here, there, others - there]) + apart
                drawn = turned(self.statistic(cells.T), alternative)
                most = max(most, int(np.count_nonzero(drawn >= observed)))
        return min(1.0, (1 + most) * missed + missed)

    def _margin(self, noisy: float, side: float) -> list[float]:
        """Return shares of all rows that fit a noisy margin."""
        law = SumOfTwo(self.noise)
        low, _ = share_interval(self.total, noisy, law, side, 0)
        _, high = share_interval(self.total, noisy + 1, law, 0, side)  # P(at most noisy)
        return share_grid(low, max(low, high), _NUISANCE_POINTS)


@lru_cache(maxsize=8)
def _draws(noise: CountNoise) -> tuple[Floats, Uniforms]:
    """Return noise of two cells and uniform numbers, always the same, sorted by the latter."""
    rng = np.random.default_rng(_SEED)
    cells = noise.draws((2, _DRAWS), rng) + rng.uniform(-0.5, 0.5, size=(2, _DRAWS))
    uniforms = rng.uniform(size=_DRAWS)
    order = np.argsort(uniforms)
    return cells[:, order], Uniforms(uniforms[order])


def _sign_change(excess: Callable[[float], float], middle: float, far: float) -> float:
    """Return where a function that is positive in the middle becomes negative, or infinity."""
    step = math.copysign(1 / 64, far)
    inside, outside = middle, middle + step
    while excess(outside) >= 0:
        step *= 2
        inside, outside = outside, outside + step
        if abs(outside) > abs(far):
            return math.copysign(math.inf, far)
    for _ in range(18):
        half = 0.5 * (inside + outside)
        inside, outside = (half, outside) if excess(half) >= 0 else (inside, half)
    return outside


# --- Difference and ratio of two shares, from intervals of each ---------------------------------
#
# MOVER (Newcombe 1998; Donner and Zou 2012) recovers from the ends of an interval how uncertain its
# estimate is on that side, and adds up the squares.


_HALVINGS = 16  # of the logarithm of a level


def difference_ends(shares: Shares) -> tuple[float, float]:
    """Return the ends for the first share minus the second, within [-1, 1]."""
    middle, low, high = (part.tolist() for part in shares)
    difference = middle[0] - middle[1]
    down = math.hypot(middle[0] - low[0], high[1] - middle[1])
    up = math.hypot(high[0] - middle[0], middle[1] - low[1])
    return min(max(difference - down, -1.0), 1.0), min(max(difference + up, -1.0), 1.0)


def difference_interval(
    released: PublicShares | PrivateShares, alternative: Alternative, level: float
) -> Interval:
    """Return the confidence interval of the difference; a one-sided one ends at -1 or 1."""
    side = side_alpha(level, alternative)
    low, high = _opened(difference_ends(released.ends(side)), alternative)
    first, last = _opened(difference_ends(released.without_noise(side)), alternative)
    return Interval.around(low, high, level, last - first)


def _opened(ends: tuple[float, float], alternative: Alternative) -> tuple[float, float]:
    return (
        -1.0 if alternative == "less" else ends[0],
        1.0 if alternative == "greater" else ends[1],
    )


def ratio_ends(shares: Shares) -> tuple[float, float | None]:
    """Return the ends for the first share over the second; None is infinity.

    They are the r at which an end of the interval for p1 - r p2 is 0.
    """
    (p1, p2), (low1, low2), (high1, high2) = (part.tolist() for part in shares)
    lower = _root(p1, p2, low1, high2, -1)
    upper = _root(p1, p2, high1, low2, 1)
    return lower or 0.0, upper


def _root(p1: float, p2: float, end1: float, end2: float, sign: int) -> float | None:
    """Solve (p1 - r p2)² = (p1 - end1)² + r² (p2 - end2)²."""
    inside = (p1 * p2) ** 2 - end1 * end2 * (2 * p1 - end1) * (2 * p2 - end2)
    root = math.sqrt(max(inside, 0.0))
    # the two forms of the solution, of which one has no cancellation and no division by 0
    if sign < 0:
        below = p1 * p2 + root
        return end1 * (2 * p1 - end1) / below if below > 0 else 0.0
    if end2 <= 0:
        return None
    return (p1 * p2 + root) / (end2 * (2 * p2 - end2))


def equivalence(released: PublicShares | PrivateShares, low: float, high: float) -> float:
    """Return the larger of two p-values: that the difference is at most ``low``, at least ``high``.

    Each is the level at which a one-sided interval just ends there. Where successes or failures
    are scarce, MOVER misjudges a single one (level .07): there the ends of both shares count in
    full, each at half the level, which is valid by Bonferroni's inequality.
    """
    return max(_level_at(released, low, 0), _level_at(released, high, 1))


def _level_at(released: PublicShares | PrivateShares, target: float, end: int) -> float:
    """Return the smallest level at which an end of the interval is inside of ``target``."""
    sign = -1.0 if end == 0 else 1.0
    wanted: Wanted = "least difference" if end == 0 else "largest difference"

    def end_at(level: float) -> float:
        side = level / 2 if released.scarce else level
        shares = released.ends(side, wanted)
        if released.scarce:
            _, (low1, low2), (high1, high2) = (part.tolist() for part in shares)
            return float(low1 - high2 if end == 0 else high1 - low2)
        return difference_ends(shares)[end]

    middle = end_at(0.5)
    if sign * (target - middle) <= 0:
        return 1.0  # at least one half; equivalence is not shown at any level that is used
    finest = math.log(released.finest)

    def inside(level: float) -> bool:
        return sign * (target - end_at(level)) > 0

    good, bad = math.log(0.5), finest
    if inside(math.exp(finest)):
        return math.exp(finest)
    for _ in range(_HALVINGS):
        half = 0.5 * (good + bad)
        good, bad = (half, bad) if inside(math.exp(half)) else (good, half)
    return math.exp(good)


# --- Public functions ---------------------------------------------------------------------------


_SHARE_NULLS = {"two-sided": "", "greater": "at most ", "less": "at least "}


@declare_level("valid")
def binom_test(
    x: Any,
    p: float = 0.5,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    success: Category | None = None,
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether the share of successes is a given one.

    Parameters
    ----------
    x : array, series or table of one column
        One outcome per row: 0 and 1, true and false, or categories.
    p : float
        The hypothesised share, which is public; in [0, 1].
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision; the confidence interval has level 1 - alpha.
    alternative : {"two-sided", "greater", "less"}
        "greater": successes are more frequent than ``p``.
    success : str, int, float or bool, optional
        The value that is a success; all others are failures. By default 1 or true.
    bounds : None, pair or Schema
        Not needed. A schema describes the categories and says how many rows a person may have.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the private number of successes, which may be below 0 or above n. In
        ``estimates``: the ``proportion`` and its confidence interval ``lower`` to ``upper``.

    Notes
    -----
    p-values and intervals are exact at every n, p and epsilon: the law of a binomial number with
    Tulap noise is known. One-sided tests are the most powerful private ones (Awan and Slavkovic
    2018). The two-sided p-value is twice the smaller one-sided one. If noise takes the count far
    beyond 0 or n, the interval is a single point there.

    **Sensitivity** 1, times the rows of a person. Proof: docs/proofs/proportions.md.

    **Privacy** The number of successes is released with Tulap noise at (epsilon, delta);
    everything else is computed from it.

    References
    ----------
    Awan and Slavkovic (2018), Differentially private uniformly most powerful tests for binomial
    data.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.random.default_rng(0).uniform(size=2000) < 0.6
    >>> result = binom_test(answers, 0.5, epsilon=1)
    >>> result.reject
    True
    >>> low, high = result.confidence_interval(0.99)
    >>> bool(0.5 < low < high < 0.7)
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("alternative", alternative, ALTERNATIVES)
    share = number("p", p, at_least=0)
    if share > 1:
        reject("p", "a number of at least 0 and at most 1", p)
    source = noise_source(noise)
    outcomes = read_outcomes(x, bounds, success, "x")
    n = len(outcomes)
    noisy, law = _release_count(outcomes, budget, source)
    pvalue = _pvalue(n, share, noisy, law, alternative)
    intervals = partial(_interval, n, noisy, law, alternative)
    low, high = intervals(1 - alpha)
    shown = {"p": share, "alternative": alternative, "success": success}
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        simulated=source.simulated,
        pvalue=pvalue,
        statistic=noisy,
        adjacency="one",
        method="binomial test",
        null_hypothesis=f"the share of successes is {_SHARE_NULLS[alternative]}{share:g}",
        sizes={"n": n},
        parameters={name: value for name, value in shown.items() if value is not None},
        rows_per_person=outcomes.rows_per_person,
        estimated="proportion",
        estimates={"proportion": float(np.clip(noisy / n, 0, 1)), "lower": low, "upper": high},
        intervals=intervals,
    )


def private_share(
    x: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    success: Offered[Category | None] = None,
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> MeanEstimate:
    """Estimate the share of successes privately, with an exact confidence interval.

    Parameters
    ----------
    x, epsilon, delta, alpha, success, bounds, noise
        As in :func:`privatest.binom_test`; the interval has level 1 - alpha.

    Returns
    -------
    MeanEstimate
        The share is the mean of outcomes that are 0 and 1.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.binom_test`.

    **Privacy** As in :func:`privatest.binom_test`.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.random.default_rng(0).uniform(size=2000) < 0.6
    >>> estimate = private_share(answers, epsilon=1)
    >>> bool(0.5 < estimate.lower[0] < estimate.upper[0] < 0.7)
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    source = noise_source(noise)
    outcomes = read_outcomes(x, bounds, success, "x")
    noisy, law = _release_count(outcomes, budget, source)
    intervals = partial(_as_means, len(outcomes), noisy, law)
    low, high = intervals(1 - alpha)
    share = float(np.clip(noisy / len(outcomes), 0, 1))
    return MeanEstimate(
        mean=np.array([share]),
        lower=low,
        upper=high,
        covariance=np.array([[share * (1 - share)]]),
        # the interval need not be symmetric: its longer side
        region_shape=np.array([np.maximum(high - share, share - low) ** 2]),
        region_radius=1.0,
        confidence=1 - alpha,
        spent=budget,
        n=len(outcomes),
        columns=outcomes.names,
        rows_per_person=outcomes.rows_per_person,
        simulated=source.simulated,
        estimated="share",
        intervals=intervals,
    )


def _release_count(
    outcomes: Outcomes, budget: Budget, noise: NoiseSource
) -> tuple[float, LatticeTulap]:
    """Release the number of successes."""
    if len(outcomes) < 1:
        raise DataError("x must have at least 1 row.")
    law = noise_law(success_width() * person_of([outcomes]), budget, "auto")
    (count,) = success_counts((outcomes.sample, outcomes.won))
    return noisy_integer(count, law=law, noise=noise), law


def _pvalue(
    n: int, share: float, noisy: float, noise: LatticeTulap, alternative: Alternative
) -> float:
    law = binomial_law(n, share)
    greater = law.pvalue(noisy, noise, "greater")
    less = law.pvalue(-noisy, noise, "less")
    if alternative == "two-sided":
        return min(1.0, 2 * min(greater, less))
    return greater if alternative == "greater" else less


def _interval(
    n: int, noisy: float, noise: LatticeTulap, alternative: Alternative, level: float
) -> Interval:
    side = side_alpha(level, alternative)
    sides = (side * (alternative != "less"), side * (alternative != "greater"))
    low, high = share_interval(n, noisy, noise, *sides)
    first, last = share_interval(n, float(np.clip(noisy, 0, n)), NO_NOISE, *sides)
    return Interval.around(low, high, level, last - first)


def _as_means(n: int, noisy: float, noise: LatticeTulap, level: float) -> Interval:
    """Return the two-sided interval as that of a mean: one entry for each column."""
    interval = _interval(n, noisy, noise, "two-sided", level)
    low, high, sampling = (np.array([end]) for end in (*interval, interval.sampling))
    return Interval.around(low, high, level, sampling)


_SAME = "the groups have the same share of successes"
_GROUP_NULLS = {
    "two-sided": _SAME,
    "greater": "the first group's share of successes is at most that of the second",
    "less": "the first group's share of successes is at least that of the second",
}


@declare_level("measured")
def proportions_test(
    *samples: Any,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Offered[Alternative] = "two-sided",
    adjacency: Adjacency | None = None,
    success: Offered[Category | None] = None,
    bounds: Bounds = None,
    n_simulations: int = 9999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether groups have the same share of successes (an A/B test).

    Parameters
    ----------
    *samples : array, series or table of one column
        Two groups or more; one outcome per row: 0 and 1, true and false, or categories. Or one
        frame that ``group`` splits.
    group, groups, columns
        How a frame is split and which column is compared, as in :func:`privatest.mmd_test`.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision; confidence intervals have level 1 - alpha.
    alternative : {"two-sided", "greater", "less"}
        Of two groups; "greater": successes are more frequent in the first.
    adjacency : {"one", "both", "row"}, optional
        What is hidden: one record's outcome within its group, one record in each group, or (two
        groups) a record together with its group, so that group sizes are private. By default
        "one" for samples, and "row" for a frame, as in :func:`privatest.mmd_test`.
    success : str, int, float or bool, optional
        The value that is a success; all others are failures. By default 1 or true.
    bounds : None, pair or Schema
        Not needed. A schema describes the categories and says how many rows a person may have.
    n_simulations : int
        Number of simulated data sets for each common share that is tried. The smallest p-value
        is about 2/n_simulations.
    rng : None, int or Generator
        Public randomness, for the simulations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is a private z (two groups) or chi-squared (more), with the noise in its
        variance. In ``estimates``: the ``proportions``; of two groups their ``difference``
        (first minus second) with its confidence interval ``lower`` to ``upper``, and their
        ``ratio`` with ``ratio_lower`` and ``ratio_upper`` (None: it may be infinite); of more the
        simultaneous intervals of the proportions.

    Notes
    -----
    The common share under the null hypothesis is unknown. The p-value is the largest over all
    shares that fit the released counts, plus the probability that the true one does not
    (Berger and Boos 1994): it is valid at every size and share, up to the grid of shares.
    Intervals are by MOVER from exact intervals of the shares; their coverage was measured. They
    are another method than the p-value: near the level an interval may contain 0 though the test
    rejects, or the other way round. One-sided tests have one-sided intervals.

    **Sensitivity** 1 for each count, times the rows of a person; for "row" 2 in the l1 norm for
    the table of groups and outcomes. Proof: docs/proofs/proportions.md.

    **Privacy** The number of successes of each group is released with Tulap noise: at (epsilon,
    delta) for "one", as a record is in one group, and at even parts of it for "both". For "row"
    the table is released with discrete Laplace (or Gaussian) noise at (epsilon, delta).
    Everything else is computed from that.

    References
    ----------
    Berger and Boos (1994); Donner and Zou (2012); Awan and Slavkovic (2018).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.uniform(size=3000) < 0.12, rng.uniform(size=2500) < 0.2
    >>> result = proportions_test(a, b, epsilon=1, rng=0)
    >>> result.reject
    True
    >>> low, high = result.confidence_interval(0.9)
    >>> bool(-0.2 < low < high < 0)
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("alternative", alternative, ALTERNATIVES)
    integer_at_least("n_simulations", n_simulations, 99)
    layout = resolve_samples(
        samples,
        bounds,
        adjacency,
        several=True,
        group=group,
        groups=groups,
        columns=columns,
    )
    chosen = layout.adjacency
    if alternative != "two-sided" and layout.count != 2:
        raise ParameterError("alternative must be 'two-sided' for more than two groups.")
    generator, source = public_generator(rng), noise_source(noise)
    data, described = layout.read(samples)
    outcomes = _read(data, described, success, chosen)
    released = _release_shares(outcomes, budget, chosen, source)
    pvalue = released.pvalue(alternative, n_simulations, generator)
    intervals = partial(_intervals, released, alternative)
    shown = {
        "alternative": alternative,
        "success": success,
        "n_simulations": n_simulations,
        "group_names": group_names(len(data), bounds, adjacency, group, groups),
    }
    return Outcome(
        reject=pvalue <= alpha,
        pvalue=pvalue,
        statistic=_statistic(released),
        estimated="difference_of_proportions" if len(outcomes) == 2 else "proportions",
        estimates=_estimates(released, alternative, 1 - alpha),
        intervals=intervals,
        method="test of equal proportions",
        null_hypothesis=_GROUP_NULLS[alternative],
        **_facts(outcomes, budget, alpha, chosen, source, shown),
    )


@declare_level("measured")
def tost_proportions(
    x: Any,
    y: Any,
    low: Offered[float],
    high: Offered[float],
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    adjacency: Adjacency = "one",
    success: Offered[Category | None] = None,
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two shares of successes are equivalent: two one-sided tests.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two groups, as in :func:`privatest.proportions_test`.
    low, high : float
        Public limits: the shares are equivalent if their difference, x minus y, is between.
    epsilon, delta, adjacency, success, bounds, noise
        As in :func:`privatest.proportions_test`.
    alpha : float
        Level of the decision, below 0.5; intervals have level 1 - 2 alpha, as is usual, and that
        of the difference lies within (low, high) if the test rejects; and only then, unless a
        group has fewer than ten successes or failures, where the test is more careful.

    Returns
    -------
    Outcome
        Rejecting means that the shares are equivalent. The statistic is the z of
        :func:`privatest.proportions_test`, which is 0 for equal shares; the decision is by the
        interval. The estimates are as there.

    Notes
    -----
    Both tests use one release, and the p-value is the larger one. Each is by MOVER, as the
    interval: its level was measured.

    **Sensitivity** As in :func:`privatest.proportions_test`.

    **Privacy** As in :func:`privatest.proportions_test`.

    References
    ----------
    Schuirmann (1987).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.uniform(size=9000) < 0.2, rng.uniform(size=9000) < 0.2
    >>> tost_proportions(a, b, -0.05, 0.05, epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=0.5)
    low, high = number("low", low), number("high", high)
    if not -1 <= low < high <= 1:
        raise ParameterError("low and high must be limits of a difference: -1 <= low < high <= 1.")
    source = noise_source(noise)
    outcomes = _read((x, y), bounds, success, adjacency)
    released = _release_shares(outcomes, budget, adjacency, source)
    pvalue = equivalence(released, low, high)
    level = 1 - 2 * alpha
    shown = {"low": low, "high": high, "success": success, "interval_level": level}
    return Outcome(
        reject=pvalue <= alpha,
        pvalue=pvalue,
        statistic=_statistic(released),
        estimated="difference_of_proportions",
        estimates=_estimates(released, "two-sided", level),
        intervals=partial(_intervals, released, "two-sided"),
        method="equivalence of two proportions (TOST)",
        null_hypothesis=f"the shares of successes differ by {low:g} or less, or {high:g} or more",
        **_facts(outcomes, budget, alpha, adjacency, source, shown),
    )


def _read(
    samples: Sequence[Any], bounds: Bounds, success: Category | None, adjacency: Adjacency
) -> tuple[Outcomes, ...]:
    """Read the groups; refusals go by public sizes only."""
    one_of("adjacency", adjacency, ADJACENCIES)
    if len(samples) < 2:
        raise ParameterError("samples must be two groups or more; binom_test takes one.")
    if adjacency == "row" and len(samples) != 2:
        raise ParameterError(
            "adjacency='row' (private groups) is for two groups: one value and 'rest', or pass "
            "adjacency='one', if everybody may know who is in which group.",
            remedy={"membership": "public"},
        )
    bounds = check_person_rows(bounds, samples, together=adjacency != "both")
    names = ["x", "y"] if len(samples) == 2 else [f"sample {i + 1}" for i in range(len(samples))]
    if adjacency == "row":  # messages must not tell the group of a row
        names = ["x or y"] * 2
    pairs = zip(samples, names, strict=True)
    outcomes = tuple(read_outcomes(data, bounds, success, name) for data, name in pairs)
    sizes = list(map(len, outcomes))
    if adjacency == "row":
        if sum(sizes) < 4:
            raise DataError("the two groups must have at least 4 rows together.")
    elif min(sizes) < 1:
        raise DataError("each group must have at least 1 row.")
    return outcomes


def _release_shares(
    groups: tuple[Outcomes, ...], budget: Budget, adjacency: Adjacency, noise: NoiseSource
) -> PublicShares | PrivateShares:
    rows, sizes = person_of(groups), tuple(map(len, groups))
    won = success_counts(*((group.sample, group.won) for group in groups))
    if adjacency == "row":
        law = count_noise(4, budget, rows_per_person=rows)
        table = outcome_table(won, sizes).ravel()
        cells = noisy_counts(table, law=law, budget=budget, rows_per_person=rows, noise=noise)
        return PrivateShares(tuple(cells.tolist()), sum(sizes), law)
    each = budget if adjacency == "one" else budget.divided(len(won))
    # Rows of one person may lie in several groups. Tulap noise can cost all of epsilon for a
    # move by 1, in each group; with Laplace noise the costs of the moves add up to epsilon.
    kind: Mechanism = "auto" if rows == 1 or adjacency == "both" else "laplace"
    lattice = noise_law(success_width() * rows, each, kind)
    counts = [noisy_integer(own, law=lattice, noise=noise) for own in won]
    return PublicShares(tuple(counts), sizes, lattice)


def _statistic(released: PublicShares | PrivateShares) -> float:
    if isinstance(released, PrivateShares):
        return float(released.statistic(np.array(released.cells)))
    return float(released.statistic(np.array(released.counts)))


def _intervals(
    released: PublicShares | PrivateShares, alternative: Alternative, level: float
) -> Interval:
    """Return the interval of the difference, or simultaneous ones of more than two shares."""
    groups = len(released.estimates)
    if groups == 2:
        return difference_interval(released, alternative, level)
    side = (1 - level ** (1 / groups)) / 2  # the groups' noise and rows are independent
    _, low, high = released.within(side)
    _, first, last = released.without_noise(side)
    return Interval.around(low, high, level, last - first)


def _estimates(
    released: PublicShares | PrivateShares, alternative: Alternative, level: float
) -> dict[str, Any]:
    shares, interval = released.estimates, _intervals(released, alternative, level)
    estimates: dict[str, Any] = {
        "proportions": shares,
        "lower": interval.low,
        "upper": interval.high,
    }
    if len(shares) > 2:
        return estimates
    lower, upper = ratio_ends(released.within(side_alpha(level, alternative)))
    ratio = float(shares[0] / shares[1]) if shares[1] > 0 else None
    return estimates | {
        "difference": float(shares[0] - shares[1]),
        "ratio": ratio,
        "ratio_lower": 0.0 if alternative == "less" else lower,
        "ratio_upper": None if alternative == "greater" else upper,
    }


def _facts(
    groups: tuple[Outcomes, ...],
    budget: Budget,
    alpha: float,
    adjacency: Adjacency,
    source: NoiseSource,
    parameters: dict[str, Any],
) -> dict[str, Any]:
    """Return the public fields of a result."""
    names = ("n", "m") if len(groups) == 2 else [f"n{i + 1}" for i in range(len(groups))]
    sizes = dict(zip(names, map(len, groups), strict=True))
    return {
        "alpha": alpha,
        "spent": budget,
        "adjacency": adjacency,
        "sizes": {"N": sum(sizes.values())} if adjacency == "row" else sizes,
        "parameters": {name: value for name, value in parameters.items() if value is not None},
        "rows_per_person": groups[0].rows_per_person,
        "simulated": source.simulated,
    }


# --- Descriptors --------------------------------------------------------------------------------


DESCRIPTORS = (
    Method(
        name="proportion",
        question="two-sample",
        function=proportions_test,
        about="shares of successes",
        aliases=("proportions_test",),
        columns="one binary",
        sentence="We compared shares of successes by noisy counts",
        papers=("awan2018",),
    ),
    Method(
        name="tost-proportion",
        question="two-sample",
        function=tost_proportions,
        about="equivalence of shares",
        aliases=("tost_proportions",),
        columns="one binary",
        sentence="We tested equivalence of shares by two one-sided tests on noisy counts",
        papers=("schuirmann1987", "awan2018"),
    ),
    Method(
        name="proportion",
        question="mean",
        function=private_share,
        also=("binom_test",),
        about="share of successes in one column",
        part="success",
        columns="one binary",
        sentence="We estimated a share from a noisy count, with an exact interval",
        papers=("awan2018",),
    ),
)
