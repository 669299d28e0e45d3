"""Laws of Kendall's and Spearman's rank correlation under independence.

They depend on the number of rows alone. Kendall's is exact for every number; Spearman's up to 12
rows, from there on it is an Edgeworth series, and what that may miss is added to the p-value.
Derivations and errors: docs/proofs/correlation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Interval, Outcome, declare_level, side_alpha
from privatest.core.validation import number, one_of
from privatest.data.columns import Units
from privatest.data.encoding import TwoSamples, encode_pairs, refuse_wide_bounds
from privatest.data.schema import Bounds
from privatest.mechanisms.lattice import integers_scale, noisy_weighted_integers
from privatest.methods.descriptor import Method, Offered
from privatest.numerics.laws import (
    ALTERNATIVES,
    ROUNDING,
    Alternative,
    LatticeTulap,
    Law,
    by_fourier,
    kendall_factor,
    spearman_factor,
    sure_ties,
    tie_miss,
    tie_reach,
    tied_pvalue,
)
from privatest.numerics.order import Labels, Values, doubled_ranks, tie_cubes, tied_pairs

Array = NDArray[np.float64]

_EXACT_KENDALL = 200
_EXACT_SPEARMAN = 12
_SERIES_MISSES = 0.4  # times n^-2: twice the largest error of a tail, at 13 and 14 rows
_DIRECT = 10_000  # factors of a characteristic function; for more its logarithm is a series
_REACH, _CELLS = 12.0, 1 << 13


@lru_cache(maxsize=32)
def kendall_law(n: int) -> Law:
    """Return the law of concordant minus discordant pairs of n rows."""
    pairs = n * (n - 1) // 2
    if n <= _EXACT_KENDALL:
        return Law(2 * np.arange(pairs + 1.0) - pairs, _mahonian_masses(n))
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 72)
    return by_fourier(lambda t: _log_mahonian(n, t), deviation, half_range=pairs / 2).scaled(2)


def _mahonian_masses(n: int) -> Array:
    """Return the law of the number of inversions: a sum of uniforms on 0 ... j - 1, j <= n."""
    masses = np.ones(1)
    for j in range(2, n + 1):
        sums = np.cumsum(np.concatenate([masses, np.zeros(j - 1)]))
        sums[j:] -= sums[:-j].copy()
        masses = sums / j
    return np.clip(masses, 0.0, None)


def _log_mahonian(n: int, t: Array) -> tuple[Array, Array]:
    """Return logarithm and sign of prod_j sin(jt/2) / (j sin(t/2))."""
    half = t / 2
    if n > _DIRECT:  # log(sin x / x), and all angles are small
        series = (1 / 6, 1 / 180, 1 / 2835, 1 / 37800, 1 / 467775, 691 / 3831077250)
        share, scaled = np.arange(1.0, n + 1) / n, (half * n) ** 2
        total = sum(
            -a * scaled**r * float(np.sum(share ** (2 * r)) - n ** (1.0 - 2 * r))
            for r, a in enumerate(series, start=1)
        )
        return np.asarray(total), np.ones(len(t))
    logs, signs = np.zeros(len(t)), np.ones(len(t))
    for j in range(2, n + 1):
        ratio = np.sin(j * half) / (j * np.sin(half))
        logs += np.log(np.abs(ratio))
        signs *= np.sign(ratio)
    return logs, signs


@lru_cache(maxsize=32)
def spearman_law(n: int) -> Law:
    """Return the law of 2 ΣRQ - n (n + 1)²/2 for n rows."""
    centre = n * (n + 1) ** 2 // 2
    if n <= _EXACT_SPEARMAN:
        products, masses = _products_of_ranks(n)
        return Law(np.asarray(2.0 * products - centre, dtype=np.float64), masses)
    return _by_series(n)


def _products_of_ranks(n: int) -> tuple[NDArray[np.int64], Array]:
    """Return the values of Σ i p(i) and their masses: one rank after the other gets a place.

    The ranks that are used up are a set; the sets of one size are all that has to be kept.
    """
    largest = n * (n + 1) * (2 * n + 1) // 6
    sets = {0: np.eye(1, largest + 1)[0]}
    for place in range(1, n + 1):
        grown: dict[int, Array] = {}
        for used, masses in sets.items():
            for rank in range(1, n + 1):
                if not used & (1 << rank):
                    moved = grown.setdefault(used | 1 << rank, np.zeros(largest + 1))
                    moved[place * rank :] += masses[: largest + 1 - place * rank]
        sets = grown
    (counts,) = sets.values()
    values = np.flatnonzero(counts)
    return values, counts[values] / math.factorial(n)


def _by_series(n: int) -> Law:
    """Return the law in cells of equal width, from an Edgeworth series with the exact kurtosis."""
    from scipy.special import ndtr  # noqa: PLC0415

    top = n * (n * n - 1) // 6  # at correlation 1
    deviation = top / math.sqrt(n - 1)
    kurtosis = 3 * (-38 * n * n - 10 * n + 72) / (25 * n * (n * n - 1))
    reach = min(float(top), _REACH * deviation)
    step = 2 * max(1, math.ceil(2 * reach / (2 * _CELLS)))  # values are 2 apart
    cells = math.ceil((reach + 1) / step)
    low = -top % 2 + step * np.arange(-cells, cells + 1.0)
    z = (np.append(low, low[-1] + step) - 1) / deviation  # half-way between two values
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    below = ndtr(z) - density * kurtosis / 24 * (z**3 - 3 * z)
    below = np.maximum.accumulate(np.clip(below, 0.0, 1.0))
    below[0], below[-1] = 0.0, 1.0
    return Law(
        low + (step - 2), np.diff(below), _SERIES_MISSES / n**2 + ROUNDING, low, proved=False
    )


# Kendall's and Spearman's rank correlation as integers, with their ties, each beside its width.
#
# They depend on the order of values only, so they need no bounds. A tied pair counts as neither
# concordant nor discordant, and tied values have midranks, as in SciPy. How many ties there are
# moves the less the more the score moves, so that both are released with the noise of one.
# Proofs: docs/proofs/correlation.md.


_LARGEST = 1 << 62  # sums of products in 64 bits stay below; blocks are added in Python's integers


def kendall_score(x: Values, y: Values, labels_x: Labels, labels_y: Labels) -> int:
    """Return concordant minus discordant pairs, ties broken by the labels.

    Examples
    --------
    >>> x, y, labels = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), np.arange(3)
    >>> kendall_score(x, y, labels, labels)
    1
    """
    n = len(x)
    in_order = np.empty(n, dtype=np.int64)
    in_order[doubled_ranks(x, labels_x) // 2 - 1] = doubled_ranks(y, labels_y) // 2 - 1
    return 2 * earlier_and_smaller(in_order) - n * (n - 1) // 2


def earlier_and_smaller(permutation: NDArray[np.int64]) -> int:
    """Return the number of pairs of a permutation of 0, 1, ... that stand in order.

    The places are listed by value; then, one bit of the place after the other, each list is cut
    into its lower and its upper half of places. A place of the upper half is after all of the
    lower half, and after each cut the lists are in order of value again: n log2(n) steps.
    """
    n = len(permutation)
    bits = max(n - 1, 1).bit_length()
    size = 1 << bits
    places: NDArray[np.signedinteger[Any]]
    places = np.arange(size, dtype=np.int32 if bits < 31 else np.int64)  # filled up: see below
    places[permutation] = np.arange(n)
    found = 0
    for bit in reversed(range(bits)):
        upper = (places & (1 << bit)) != 0
        # before the k-th upper place in all lists are as many lower ones as its index minus k;
        # lists have half of each kind, so those of earlier lists are known
        lists, half = size >> (bit + 1), 1 << bit
        found += int(np.flatnonzero(upper).sum()) - _sum_to(size // 2 - 1)
        found -= half * half * _sum_to(lists - 1)
        halves = places[~upper].reshape(lists, half), places[upper].reshape(lists, half)
        places = np.concatenate(halves, axis=1).reshape(-1)
    added = size - n  # each of these is after all others, and larger
    return found - added * n - _sum_to(added - 1)


def _sum_to(last: int) -> int:
    return last * (last + 1) // 2


def kendall_width(n: int) -> int:
    """Return how far :func:`kendall_score` moves: 2 (n - 1), all pairs of one row."""
    return 2 * (n - 1)


@dataclass(frozen=True, slots=True)
class TiedScore:
    """A score and the numbers of its ties, and how far they move together.

    Attributes
    ----------
    values : tuple of int
        The score; for Kendall the tied pairs of x and of y; multiples of ``unit`` in the sums of
        t³ - t over sets of t equal values of x and of y.
    weights : tuple of float
        Public: the sum of weight · |movement| is at most ``sensitivity``.
    sensitivity : float
        For one replaced row.
    unit : int
        Public.
    """

    values: tuple[int, ...]
    weights: tuple[float, ...]
    sensitivity: float
    unit: int


def kendall_ties(x: Values, y: Values) -> TiedScore:
    """Return concordant minus discordant pairs, and ties.

    Notes
    -----
    **Sensitivity** 2 (n - 1), as without ties. A pair that is tied before or after moves the score
    by at most 1, which leaves 1 to its ties: tied pairs weigh 3/8 for each column, the sums of
    t³ - t, in multiples of n, 1/32.

    Examples
    --------
    >>> kendall_ties(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])).values
    (2, 1, 0, 2, 0)
    """
    n = len(x)
    first, second = (np.unique(side, return_inverse=True)[1] for side in (x, y))
    order = np.lexsort((second, first))
    place = np.empty(n, dtype=np.int64)
    place[np.argsort(second[order], kind="stable")] = np.arange(n)
    pairs = tied_pairs(x), tied_pairs(y)
    both = tied_pairs(first.astype(np.int64) * n + second)  # of whole rows
    # tied pairs of either column stand in order here
    concordant = earlier_and_smaller(place) - sum(pairs) + both
    untied = n * (n - 1) // 2 - sum(pairs) + both
    cubes = tie_cubes(x) // n, tie_cubes(y) // n
    weights = (1.0, 3 / 8, 3 / 8, 1 / 32, 1 / 32)
    return TiedScore((2 * concordant - untied, *pairs, *cubes), weights, 2.0 * (n - 1), n)


def spearman_ties(x: Values, y: Values) -> TiedScore:
    """Return the sum of products of twice the centred midranks, and ties.

    Spearman's correlation is that over the root of (n³ - n - Kx)(n³ - n - Ky)/9, K the sums of
    t³ - t over sets of t equal values.

    Notes
    -----
    **Sensitivity** 2n (n - 1) + 1/2 without ties, and less for a row that leaves or enters ties: a
    sum of t³ - t weighs 1/18, and its rounding to multiples of n/64 is added.

    Examples
    --------
    >>> spearman_ties(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])).values
    (6, 6, 0)
    """
    n = len(x)
    u, v = doubled_ranks(x) - (n + 1), doubled_ranks(y) - (n + 1)
    block = _block(n)
    parts = range(0, n, block)
    score = sum(int(u[start : start + block] @ v[start : start + block]) for start in parts)
    unit = max(1, n // 64)
    weight = unit / 18
    return TiedScore(
        (score, tie_cubes(x) // unit, tie_cubes(y) // unit),
        (1.0, weight, weight),
        2.0 * spearman_width(n) + 0.5 + (2 * weight if unit > 1 else 0.0),
        unit,
    )


def _block(n: int) -> int:
    """Return how many products of ranks, each below n², fit into 64 bits in any row order."""
    return max(1, _LARGEST // max(n, 1) ** 2)


def spearman_width(n: int) -> int:
    """Return how far half the score moves without ties: n (n - 1), from one corner to the next."""
    return n * (n - 1)


# What the tests of one column against another share: checked arguments, columns, public facts.


_NULLS = {
    "two-sided": "the two columns are independent",
    "greater": "the two columns are independent or fall together",
    "less": "the two columns are independent or rise together",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Checked arguments of a test of correlation."""

    budget: Budget
    alpha: float
    alternative: Alternative
    noise: NoiseSource

    @classmethod
    def checked(
        cls,
        epsilon: Amount,
        delta: Amount,
        alpha: object,
        alternative: Alternative,
        noise: NoiseSource | None,
    ) -> Asked:
        """Check them, before any data is read."""
        one_of("alternative", alternative, ALTERNATIVES)
        level = number("alpha", alpha, above=0, below=1)
        return cls(Budget(epsilon, delta), level, alternative, noise_source(noise))

    def facts(self, sides: TwoSamples, method: str, **parameters: Any) -> dict[str, Any]:
        """Return public fields of a result."""
        return {
            "adjacency": "one",
            "method": method,
            "null_hypothesis": _NULLS[self.alternative],
            "sizes": {"n": len(sides.x)},
            "parameters": {"alternative": self.alternative, **parameters},
            "rows_per_person": sides.rows_per_person,
        }


def numeric_pairs(
    x: Any,
    y: Any,
    bounds_x: Bounds,
    bounds_y: Bounds,
    *,
    rows: int,
    units: Units = "box",
) -> TwoSamples:
    """Read one numeric column a side, with at least so many rows."""
    sides = encode_pairs(x, y, bounds_x, bounds_y, units=units)
    if any(side.domain.levels != (0,) for side in sides):
        raise DataError("x and y must each be one numeric column; hsic_test takes several.")
    if units == "box":  # numbers are added, not only put in order
        refuse_wide_bounds(*sides)
    if len(sides.x) < rows:
        raise DataError(f"x and y must have at least {rows} rows.")
    return sides


# Confidence intervals for Kendall's tau and Spearman's rho, from one noisy score.
#
# The score is the sample's correlation times a public number, plus noise of a known law. The
# sampling error is nearly normal in Fisher's scale, atanh(correlation), and its deviation is taken
# to be that of a Gaussian copula with the same correlation, made a little wider:
# docs/proofs/correlation.md.


Coefficient = Literal["tau", "rho"]

# Copulas of t with 3 degrees of freedom vary more than a Gaussian one, by 1.17 and 1.14; tables
# of two by two less, by 0.93 and 0.94; skewed ones much more where dependence is strong. With
# factors a + b correlation⁴ all of them are covered between .93 and .99.
_WIDER = {"tau": (1.1, 0.3), "rho": (1.08, 0.35)}
_SMALL = 8.0  # over n²: with few rows tau is often ±1 or next to it, and no normal atanh is
_NODES = 199  # of the normal law
_EDGE = 1 - 1e-9  # atanh is finite up to here
_STEPS = 40


def kendall_deviation(tau: float, n: int) -> float:
    """Return the standard deviation of atanh(tau) in n rows with a Gaussian copula."""
    tau = min(max(tau, 1 / n - 1), 1 - 1 / n)  # closer to 1 are single pairs, not a spread
    projection = 1 / 9 - (2 / math.pi * math.asin(math.sin(math.pi * tau / 2) / 2)) ** 2
    spread = 1 - tau**2
    return math.sqrt(2 / (n * (n - 1)) * (spread + 2 * (n - 2) * projection)) / spread


def spearman_deviation(rho: float, n: int) -> float:
    """Return the standard deviation of atanh(rho) in n rows: Bonett and Wright (2000)."""
    return math.sqrt((1 + rho**2 / 2) / max(n - 3, 1))


@dataclass(frozen=True, slots=True)
class RankInterval:
    """What an interval needs: released and public numbers only.

    Attributes
    ----------
    coefficient : {"tau", "rho"}
        What is estimated.
    noisy : float
        The released score.
    tops : tuple of float
        The score of a correlation of 1: the least that noise on ties allows, the estimate, the
        most.
    n : int
        Number of rows.
    noise : LatticeTulap
        The law of the noise.
    alternative : {"two-sided", "greater", "less"}
        Which ends there are; a missing one is -1 or 1.
    spread : float
        How many times as much the correlation varies as without ties.
    rarities : pair of float
        (1 - 2p)²/(p (1 - p)) of each column if it has two values, else 0 or nearly so.
    """

    coefficient: Coefficient
    noisy: float
    tops: tuple[float, float, float]
    n: int
    noise: LatticeTulap
    alternative: Alternative
    spread: float = 1.0
    rarities: tuple[float, float] = (0.0, 0.0)

    @property
    def estimate(self) -> float:
        """The private correlation."""
        return min(max(self.noisy / self.tops[1], -1.0), 1.0)

    def __call__(self, level: float) -> Interval:
        """Return the correlations for which the released score is not in a tail."""
        side = side_alpha(level, self.alternative)
        low = -1.0 if self.alternative == "less" else _root(lambda c: self._above(c) - side)
        high = 1.0 if self.alternative == "greater" else _root(lambda c: side - self._below(c))
        low, high = min(low, self.estimate), max(high, self.estimate)
        return Interval.around(low, high, level, self._without_noise(side))

    def _deviation(self, correlation: float) -> float:
        formula = kendall_deviation if self.coefficient == "tau" else spearman_deviation
        factor, strong = _WIDER[self.coefficient]
        small = _SMALL / self.n**2 if self.coefficient == "tau" else 0.0
        wider = factor + small + strong * correlation**4
        return self.spread * wider * self._rare(correlation) * formula(correlation, self.n)

    def _rare(self, correlation: float) -> float:
        """Return how much wider tables of two by two are whose values are not equally frequent.

        The variance of phi (Yule), over that of equally frequent values.
        """
        (x, y), square = self.rarities, correlation**2
        more = abs(correlation) * (1 + square / 2) * math.sqrt(x * y) - 0.75 * square * (x + y)
        return math.sqrt(1 + max(more, 0.0) / max(1 - square, 0.05))

    def _scores(self, correlation: float) -> NDArray[np.float64]:
        """Return quantiles of the score without noise, for each number of ties."""
        inside = min(max(correlation, -_EDGE), _EDGE)
        sample = np.tanh(math.atanh(inside) + self._deviation(inside) * _normal_nodes())
        return np.outer(np.unique(self.tops), sample)

    def _above(self, correlation: float) -> float:
        """Return the probability of a score as high as the released one."""
        tails = self.noise.survival(self.noisy - self._scores(correlation))
        return float(tails.mean(axis=1).max())

    def _below(self, correlation: float) -> float:
        tails = self.noise.survival(self._scores(correlation) - self.noisy)
        return float(tails.mean(axis=1).max())

    def _without_noise(self, side: float) -> float:
        from scipy.special import ndtri  # noqa: PLC0415

        inside = min(max(self.estimate, -_EDGE), _EDGE)
        reach = -float(ndtri(side)) * self._deviation(inside)
        low, high = (math.tanh(math.atanh(inside) + sign * reach) for sign in (-1, 1))
        ends = {"two-sided": (low, high), "greater": (low, 1.0), "less": (-1.0, high)}
        return ends[self.alternative][1] - ends[self.alternative][0]


@lru_cache(maxsize=1)
def _normal_nodes() -> NDArray[np.float64]:
    from scipy.special import ndtri  # noqa: PLC0415

    nodes: NDArray[np.float64] = ndtri((np.arange(_NODES) + 0.5) / _NODES)
    return nodes


def _root(rising: Callable[[float], float]) -> float:
    """Return where a rising function passes 0 in [-1, 1], or the end that is nearest to it."""
    low, high = -1.0, 1.0
    if rising(low) >= 0:
        return low
    if rising(high) <= 0:
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


# Do two columns rise together? Kendall's tau and Spearman's rho.


@declare_level("measured")  # with ties; without them it is proved
def kendalltau(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Offered[Alternative] = "two-sided",
    bounds_x: Bounds = None,
    bounds_y: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two columns are independent, by Kendall's tau; and estimate tau.

    Parameters
    ----------
    x, y : array, series or table of one column
        Row i of ``x`` and row i of ``y`` belong to one record.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision, and of the interval: 1 - alpha.
    alternative : {"two-sided", "greater", "less"}
        "greater": y rises with x. Named in advance it needs less data than "two-sided".
    bounds_x, bounds_y : None, pair or Schema
        Not needed. A schema checks and clips values and says how many rows a person may have.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the private tau-b, SciPy's, which noise may carry beyond 1; ``estimates``
        have it as "tau", cut to [-1, 1], with its interval "lower" to "upper", and the private
        shares of pairs that are tied in x and in y as "ties".

    Notes
    -----
    Without ties the p-value is exact for every n. With ties the score varies less. By how much is
    found from noisy numbers of ties, of which only so many count as the noise cannot explain: then
    the p-value is approximate, and as epsilon grows it becomes SciPy's asymptotic one.

    The interval takes the variance of tau from a Gaussian copula, a tenth wider, and more where
    there are ties. It covers with .93 to .99 for linear dependence with normal, skewed or heavy
    tails and for rounded values; for dependence that is not monotone (a cross, a circle) it can be
    too short.

    **Sensitivity** 2 (n - 1) of the score and its ties together, weighted so that the score has all
    of it, times the rows of a person: one row is in n - 1 pairs, and a pair that it ties moves the
    score by 1 and not by 2. Proof: docs/proofs/correlation.md.

    **Privacy** Concordant minus discordant pairs and four numbers of ties are released together
    with discrete Laplace noise, at (epsilon, delta); the rest follows from that.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> kendalltau(x, x + rng.normal(size=2000), epsilon=1).reject
    True
    """
    asked = Asked.checked(epsilon, delta, alpha, alternative, noise)
    # in their own units: values that differ keep their ranks
    sides = numeric_pairs(x, y, bounds_x, bounds_y, rows=2, units="own")
    found = _Released.of(kendall_ties(sides.x.values, sides.y.values), sides, asked)
    n, top = found.n, found.n * (found.n - 1) // 2
    pairs = [found.sure(1), found.sure(2)]
    # of sets of ties the sum of cubes is least if all are equal; no ties have none
    cubes = [
        max(found.sure(3 + side), (n + 2 * each) ** 2 / n - n) if each else 0.0
        for side, each in enumerate(pairs)
    ]
    factor = kendall_factor(n, _both(pairs), _both(cubes))
    untied = [_untied(top, found.ties[side], found.scales[1 + side]) for side in (0, 1)]
    products = [(1 - max(2 * found.ties[side] / n**2, 0.5)) / 2 for side in (0, 1)]
    rarities = _rarities(products, found, top)
    law = kendall_law(n)
    return _outcome(asked, found, law, top, untied, factor, factor, rarities, sides, "tau")


@declare_level("measured")  # with ties, and with more than 12 rows
def spearmanr(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Offered[Alternative] = "two-sided",
    bounds_x: Bounds = None,
    bounds_y: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two columns are independent, by Spearman's rho; and estimate rho.

    Parameters
    ----------
    x, y, epsilon, delta, alpha, alternative, bounds_x, bounds_y, noise
        As in :func:`kendalltau`.

    Returns
    -------
    Outcome
        The statistic is the private rho of midranks, SciPy's, which noise may carry beyond 1;
        ``estimates`` have it as "rho", cut to [-1, 1], with its interval "lower" to "upper", and
        "ties": by which share ties lower the variances of the ranks of x and of y.

    Notes
    -----
    Without ties the p-value is exact up to 12 rows, and from there on too large by at most about
    1/n². With ties it is approximate, as in :func:`kendalltau`, and becomes SciPy's as epsilon
    grows.

    The interval is that of Bonett and Wright (2000) with the noise, and a little wider. It
    covers with .93 to .99 for linear dependence with normal, skewed or heavy tails and for
    rounded values; for dependence that is not monotone it can be too short.

    **Sensitivity** 2n (n - 1) + 1/2 of the score and its ties together, weighted so that the score
    has all of it: 6/(n + 1) of rho; times the rows of a person. Proof: docs/proofs/correlation.md.

    **Privacy** The centred sum of products of midranks and two numbers of ties are released
    together with discrete Laplace noise, at (epsilon, delta); the rest follows from that.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> spearmanr(x, x + rng.normal(size=2000), epsilon=1).reject
    True
    """
    asked = Asked.checked(epsilon, delta, alpha, alternative, noise)
    # in their own units: values that differ keep their ranks
    sides = numeric_pairs(x, y, bounds_x, bounds_y, rows=2, units="own")
    found = _Released.of(spearman_ties(sides.x.values, sides.y.values), sides, asked)
    n, whole = found.n, found.n**3 - found.n
    factor = spearman_factor(n, (found.sure(1), found.sure(2)))
    untied = [_untied(whole, found.ties[side], found.scales[1 + side]) for side in (0, 1)]
    # a correlation of 1 has the score (n³ - n)/3, and rho varies as much with ties as without
    law = spearman_law(n).scaled(2)
    spread = _middle(untied) / whole
    products = [(1 - max(found.ties[side] / whole, 0.25)) / 3 for side in (0, 1)]
    rarities = _rarities(products, found, whole)
    return _outcome(asked, found, law, whole / 3, untied, factor, spread, rarities, sides, "rho")


_METHODS = {"tau": "Kendall's rank correlation", "rho": "Spearman's rank correlation"}
_VISIBLE = 6.0  # scales of the noise from which on an estimate allows for ties
_ENDS = 2.5  # scales by which an interval allows for more and for fewer in both columns


@dataclass(frozen=True, slots=True)
class _Released:
    """The noisy score and ties.

    Attributes
    ----------
    score : int
        With noise.
    ties : tuple of float
        With noise.
    scales : tuple of float
        Of the noise of the score and of the ties.
    n : int
        Number of rows.
    reach : float
        Scales of their noise from which on ties are beyond doubt.
    """

    score: int
    ties: tuple[float, ...]
    scales: tuple[float, ...]
    n: int
    reach: float

    @classmethod
    def of(cls, tied: TiedScore, sides: TwoSamples, asked: Asked) -> _Released:
        """Release a score with its ties."""
        n, epsilon = len(sides.x), asked.budget.pure_epsilon
        sensitivity = tied.sensitivity * sides.rows_per_person
        score, *ties = noisy_weighted_integers(
            tied.values,
            weights=tied.weights,
            sensitivity=sensitivity,
            epsilon=epsilon,
            noise=asked.noise,
        )
        units = [1] * (len(ties) - 1) + [tied.unit] * 2  # pairs are counted, cubes rounded
        scale = math.nextafter(sensitivity / epsilon, math.inf)
        scales = [
            unit * integers_scale(weight, scale)
            for weight, unit in zip(tied.weights, units, strict=True)
        ]
        return cls(
            score,
            tuple(float(unit * each) for unit, each in zip(units[1:], ties, strict=True)),
            tuple(scales),
            n,
            tie_reach(n * epsilon / sides.rows_per_person),
        )

    @property
    def noise(self) -> LatticeTulap:
        """The law of the noise on the score."""
        return LatticeTulap(1, 1 / self.scales[0], blocks=2)

    def sure(self, place: int) -> float:
        """Return a number of ties that is hardly too large."""
        return sure_ties(self.ties[place - 1], self.scales[place], self.reach)


def _both(values: Any) -> tuple[float, float]:
    first, second = values
    return first, second


def _untied(top: float, ties: float, scale: float) -> tuple[float, float, float]:
    """Return how much is not tied: the least, the estimate and the most that noise allows.

    An estimate is not divided by what is less than some scales of its noise.
    """
    likely = max(top - ties, 3 * scale) if ties > _VISIBLE * scale else top
    ends = top - ties - _ENDS * scale, top - ties + _ENDS * scale
    low, high = (max(end, scale) for end in ends)
    return min(low, top), min(likely, top), min(high, top)


def _rarities(products: list[float], found: _Released, top: float) -> tuple[float, float]:
    """Return (1 - 2p)²/(p (1 - p)) for columns of two values, a share p of one, from p (1 - p).

    A value that most rows have makes a column look so; the product is taken as large as its noise.
    """
    noise = [found.scales[1 + side] / top for side in (0, 1)]
    return _both(
        max(1 - 4 * product, 0.0) / max(product, error, 1 / found.n)
        for product, error in zip(products, noise, strict=True)
    )


def _middle(untied: list[tuple[float, float, float]]) -> float:
    return math.sqrt(untied[0][1] * untied[1][1])


def _outcome(
    asked: Asked,
    found: _Released,
    law: Law,
    top: float,
    untied: list[tuple[float, float, float]],
    factor: float,
    spread: float,
    rarities: tuple[float, float],
    sides: TwoSamples,
    coefficient: Coefficient,
) -> Outcome:
    """Compute the p-value, the estimate and the interval from what was released.

    ``top`` is the score of a correlation of 1 without ties, ``factor`` the standard deviation of
    the score over that without ties where they are beyond doubt, ``spread`` its estimate.
    """
    alternative, noise = asked.alternative, found.noise
    two = alternative == "two-sided"
    side: Alternative = "greater" if two else alternative
    score = {"two-sided": abs(found.score), "greater": found.score, "less": -found.score}
    place = score[alternative] - 0.5
    miss = tie_miss(found.reach, 2)  # either column's
    one_sided = tied_pvalue(law, place, noise, side, factor=factor, miss=miss)
    pvalue = min(1.0, 2 * one_sided) if two else one_sided
    tops = [math.sqrt(first * second) for first, second in zip(*untied, strict=True)]
    scale = top / (found.n**3 - found.n if coefficient == "rho" else top) if found.n > 1 else 1.0
    low, middle, high = (scale * each for each in tops)
    interval = RankInterval(
        coefficient,
        float(found.score),
        (low, middle, high),
        found.n,
        noise,
        alternative,
        max(1.0, spread * top / middle),
        rarities,
    )
    lower, upper = interval(1 - asked.alpha)
    shares = [1 - each[1] / (top / scale) for each in untied]
    estimates = {coefficient: interval.estimate, "lower": lower, "upper": upper, "ties": shares}
    return Outcome(
        reject=pvalue <= asked.alpha,
        pvalue=pvalue,
        statistic=found.score / middle,
        estimates=estimates,
        estimated=coefficient,
        intervals=interval,
        alpha=asked.alpha,
        spent=asked.budget,
        simulated=asked.noise.simulated,
        **asked.facts(sides, _METHODS[coefficient]),
    )


DESCRIPTORS = (
    Method(
        name="kendall",
        question="independence",
        function=kendalltau,
        about="one column a side, by pairs",
        aliases=("kendalltau",),
        columns="one numeric",
        unbounded=True,
        sentence="We used Kendall's rank correlation with discrete Laplace noise",
        papers=("dwork2006",),
    ),
    Method(
        name="spearman",
        question="independence",
        function=spearmanr,
        about="one column a side, by ranks",
        aliases=("spearmanr",),
        columns="one numeric",
        unbounded=True,
        sentence="We used Spearman's rank correlation with discrete Laplace noise",
        papers=("dwork2006",),
    ),
)
