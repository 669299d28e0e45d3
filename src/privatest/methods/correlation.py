"""Kendall's and Spearman's rank correlation: tests of independence, and estimates.

They depend on the order of values only, so they need no bounds. A tied pair counts as neither
concordant nor discordant, and tied values have midranks, as in SciPy. How many ties there are
moves the less the more the score moves, so that both are released with the noise of one. The
interval takes the sampling error in Fisher's scale, atanh(correlation), from a Gaussian copula.
Proofs, derivations and errors: docs/proofs/correlation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Interval, Outcome, declare_level, side_alpha
from privatest.core.validation import number, one_of
from privatest.data.encoding import encode_numeric_pairs
from privatest.data.schema import Bounds
from privatest.mechanisms.lattice import integers_scale, noisy_weighted_integers
from privatest.methods.descriptor import INDEPENDENCE, Method, Offered
from privatest.numerics.laws import (
    ALTERNATIVES,
    ROUNDING,
    Alternative,
    LatticeTulap,
    Law,
    kendall_factor,
    kendall_law,
    spearman_factor,
    sure_ties,
    tie_miss,
    tie_reach,
    tied_pvalue,
)
from privatest.numerics.order import (
    Values,
    doubled_ranks,
    earlier_and_smaller,
    tie_cubes,
    tied_pairs,
)

Floats = NDArray[np.float64]
Coefficient = Literal["tau", "rho"]
_LARGEST = 1 << 62  # sums of products in 64 bits stay below; blocks are added in Python's integers
_EXACT_SPEARMAN = 12
_SERIES_MISSES = 0.4  # times n^-2: twice the largest error of a tail, at 13 and 14 rows
_REACH, _CELLS = 12.0, 1 << 13
# Copulas of t with 3 degrees of freedom vary more than a Gaussian one, by 1.17 and 1.14; tables
# of two by two less, by 0.93 and 0.94; skewed ones much more where dependence is strong. With
# factors a + b correlation⁴ all of them are covered between .93 and .99.
_WIDER = {"tau": (1.1, 0.3), "rho": (1.08, 0.35)}
_SMALL = 8.0  # over n²: with few rows tau is often ±1 or next to it, and no normal atanh is
_NODES = 199  # of the normal law
_EDGE = 1 - 1e-9  # atanh is finite up to here
_STEPS = 40
_METHODS = {"tau": "Kendall's rank correlation", "rho": "Spearman's rank correlation"}
_VISIBLE = 6.0  # scales of the noise from which on an estimate allows for ties
_ENDS = 2.5  # scales by which an interval allows for more and for fewer in both columns


# --- statistics and sensitivities ---


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


# --- null law of Spearman's score; Kendall's is in numerics.laws ---


@lru_cache(maxsize=32)
def spearman_law(n: int) -> Law:
    """Return the law of 2 ΣRQ - n (n + 1)²/2 for n rows."""
    centre = n * (n + 1) ** 2 // 2
    if n <= _EXACT_SPEARMAN:
        products, masses = _products_of_ranks(n)
        return Law(np.asarray(2.0 * products - centre, dtype=np.float64), masses)
    return _by_series(n)


def _products_of_ranks(n: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the values of Σ i p(i) and their masses: one rank after the other gets a place.

    The ranks that are used up are a set; the sets of one size are all that has to be kept.
    """
    largest = n * (n + 1) * (2 * n + 1) // 6
    sets = {0: np.eye(1, largest + 1)[0]}
    for place in range(1, n + 1):
        grown: dict[int, Floats] = {}
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


# --- intervals ---


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

    def _scores(self, correlation: float) -> Floats:
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
def _normal_nodes() -> Floats:
    from scipy.special import ndtri  # noqa: PLC0415

    nodes: Floats = ndtri((np.arange(_NODES) + 0.5) / _NODES)
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


# --- tests ---


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
    arguments = epsilon, delta, alpha, alternative, bounds_x, bounds_y, noise
    released = _release_ties(kendall_ties, x, y, *arguments)
    n, top = released.n, released.n * (released.n - 1) // 2
    pairs = released.sure(0), released.sure(1)
    # of sets of ties the sum of cubes is least if all are equal; no ties have none
    kx, ky = (
        max(released.sure(2 + side), (n + 2 * each) ** 2 / n - n) if each else 0.0
        for side, each in enumerate(pairs)
    )
    factor = kendall_factor(n, pairs, (kx, ky))
    products = [(1 - max(2 * released.ties[side] / n**2, 0.5)) / 2 for side in (0, 1)]
    return _outcome(released, "tau", kendall_law(n), top, top, products, factor)


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
    arguments = epsilon, delta, alpha, alternative, bounds_x, bounds_y, noise
    released = _release_ties(spearman_ties, x, y, *arguments)
    n, whole = released.n, released.n**3 - released.n
    factor = spearman_factor(n, (released.sure(0), released.sure(1)))
    products = [(1 - max(released.ties[side] / whole, 0.25)) / 3 for side in (0, 1)]
    # a correlation of 1 has the score (n³ - n)/3
    law = spearman_law(n).scaled(2)
    return _outcome(released, "rho", law, whole / 3, whole, products, factor)


@dataclass(frozen=True, slots=True)
class TiedRelease:
    """A noisy score and its noisy ties, and the public facts of a result.

    Attributes
    ----------
    score : int
        With noise.
    scale : float
        Of the noise on the score.
    ties, tie_scales : tuple of float
        Noisy numbers of ties, and the scales of their noise.
    n : int
        Number of rows.
    reach : float
        Scales of their noise from which on ties are beyond doubt.
    alternative : {"two-sided", "greater", "less"}
        The side.
    facts : mapping
        Public fields of the result.
    """

    score: int
    scale: float
    ties: tuple[float, ...]
    tie_scales: tuple[float, ...]
    n: int
    reach: float
    alternative: Alternative
    facts: Mapping[str, Any]

    def sure(self, place: int) -> float:
        """Return a number of ties that is hardly too large."""
        return sure_ties(self.ties[place], self.tie_scales[place], self.reach)

    def untied(self, side: int, top: float) -> tuple[float, float, float]:
        """Return how much of a column is not tied: the least that noise allows, the estimate, most.

        An estimate is not divided by what is less than some scales of its noise.
        """
        ties, scale = self.ties[side], self.tie_scales[side]
        likely = max(top - ties, 3 * scale) if ties > _VISIBLE * scale else top
        ends = top - ties - _ENDS * scale, top - ties + _ENDS * scale
        low, high = (max(end, scale) for end in ends)
        return min(low, top), min(likely, top), min(high, top)

    def rarity(self, side: int, product: float, top: float) -> float:
        """Return (1 - 2p)²/(p (1 - p)) for a column of two values, a share p of one.

        ``product`` is p (1 - p). A value that most rows have makes a column look so; the product
        is taken as large as its noise.
        """
        return max(1 - 4 * product, 0.0) / max(product, self.tie_scales[side] / top, 1 / self.n)


def _release_ties(
    statistic: Callable[[Values, Values], TiedScore],
    x: Any,
    y: Any,
    epsilon: Amount,
    delta: Amount,
    alpha: float,
    alternative: Alternative,
    bounds_x: Bounds,
    bounds_y: Bounds,
    noise: NoiseSource | None,
) -> TiedRelease:
    """Check the arguments, read two columns and release their score with its ties."""
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("alternative", alternative, ALTERNATIVES)
    source = noise_source(noise)
    # in their own units: values that differ keep their ranks
    sides = encode_numeric_pairs(x, y, bounds_x, bounds_y, rows=2, units="own")
    n, person, spend = len(sides.x), sides.rows_per_person, budget.pure_epsilon
    tied = statistic(sides.x.values, sides.y.values)
    sensitivity = tied.sensitivity * person
    score, *ties = noisy_weighted_integers(
        tied.values, weights=tied.weights, sensitivity=sensitivity, epsilon=spend, noise=source
    )
    units = [1] * (len(ties) - 2) + [tied.unit] * 2  # pairs are counted, cubes rounded
    scale = math.nextafter(sensitivity / spend, math.inf)
    scales = [integers_scale(weight, scale) for weight in tied.weights]
    return TiedRelease(
        score,
        scales[0],
        tuple(float(unit * each) for unit, each in zip(units, ties, strict=True)),
        tuple(unit * each for unit, each in zip(units, scales[1:], strict=True)),
        n,
        tie_reach(n * spend / person),
        alternative,
        {
            "alpha": alpha,
            "spent": budget,
            "simulated": source.simulated,
            "adjacency": "one",
            "null_hypothesis": INDEPENDENCE[alternative],
            "sizes": {"n": n},
            "parameters": {"alternative": alternative},
            "rows_per_person": person,
        },
    )


def _outcome(
    released: TiedRelease,
    coefficient: Coefficient,
    law: Law,
    top: float,
    whole: float,
    products: list[float],
    factor: float,
) -> Outcome:
    """Compute the p-value, the estimate and the interval from what was released.

    ``top`` is the score of a correlation of 1 without ties, ``whole`` what ties are parts of,
    ``products`` p (1 - p) of columns of two values, and ``factor`` the standard deviation of the
    score over that without ties, where they are beyond doubt.
    """
    alternative, noise = released.alternative, LatticeTulap(1, 1 / released.scale, blocks=2)
    two = alternative == "two-sided"
    score = abs(released.score) if two else released.score
    place = (-score if alternative == "less" else score) - 0.5
    miss = tie_miss(released.reach, 2)  # either column's
    side: Alternative = "greater" if two else alternative
    one_sided = tied_pvalue(law, place, noise, side, factor=factor, miss=miss)
    pvalue = min(1.0, 2 * one_sided) if two else one_sided
    untied = [released.untied(column, whole) for column in (0, 1)]
    unit = top / whole
    low, middle, high = (unit * math.sqrt(x * y) for x, y in zip(*untied, strict=True))
    # rho varies as much with ties as without: their share of the variance of ranks is its spread
    likely = math.sqrt(untied[0][1] * untied[1][1])
    spread = factor if coefficient == "tau" else likely / whole
    rarities = [released.rarity(column, products[column], whole) for column in (0, 1)]
    interval = RankInterval(
        coefficient,
        float(released.score),
        (low, middle, high),
        released.n,
        noise,
        alternative,
        max(1.0, spread * top / middle),
        (rarities[0], rarities[1]),
    )
    lower, upper = interval(1 - released.facts["alpha"])
    shares = [1 - each[1] / (top / unit) for each in untied]
    estimates = {coefficient: interval.estimate, "lower": lower, "upper": upper, "ties": shares}
    return Outcome(
        reject=pvalue <= released.facts["alpha"],
        pvalue=pvalue,
        statistic=released.score / middle,
        estimates=estimates,
        estimated=coefficient,
        intervals=interval,
        method=_METHODS[coefficient],
        **released.facts,
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
