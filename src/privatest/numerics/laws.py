"""Laws of statistics under the null hypothesis and of Tulap noise; p-values of noisy statistics.

The law of a statistic does not depend on epsilon, and that of the noise is known, so a p-value is
a sum: p(z) = sum over values t of P(T = t) · P(noise >= z - t). Wide laws are put into cells, each
counted at the end that makes the p-value larger. Derivations and errors: docs/proofs/noise.md,
docs/proofs/rank-tests.md, docs/proofs/correlation.md, docs/proofs/quantiles.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.privacy import Budget
from privatest.numerics.order import Symmetry, Tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES: tuple[str, ...] = get_args(Alternative)
ROUNDING = 1e-12  # sums of floats are no finer than this
_REACH = 10.0  # standard deviations; what lies beyond has mass below 1e-20
_ROUNDING = 1e-11  # arithmetic moves a p-value by less than this for up to 10,000 counts,
_PER_COUNT = 1e-15  # and by less than this times their number: five roundings for each ratio
_LEAST_REACH = 10.0  # scales of the noise: exp(-10) is below 1e-4
_LOWERED = 2.0  # scales by which ties that are beyond doubt are lowered
_CELLS = 1 << 14
_FOURIER_ERROR = 1e-9  # added to p-values: they are never too small
_EXACT_WORK = 1_000_000  # table look-ups for an exact Mann–Whitney law
_FEW = 20  # so small a sample is far from normal: always exact
_EXACT_PAIRS = 300
_EXACT_KENDALL = 200
_SINE = (1 / 6, 1 / 180, 1 / 2835, 1 / 37800, 1 / 467775, 691 / 3831077250)  # -log(sin x/x)
_COSINE = (1 / 2, 1 / 12, 1 / 45, 17 / 2520, 31 / 14175)  # -log cos x
_DIRECT = 10_000  # factors of a characteristic function; for more its logarithm is a series
_SIZE = 1 << 14  # points at which a wide law is computed
_TAIL_ROUNDING = 1e-9  # added to tails, which are never too small
_COARSE = 1e-4  # the same where the lattice is not followed: docs/proofs/quantiles.md


# --- Tulap noise on integers ---


def tulap_cdf(x: ArrayLike, epsilon: float) -> Floats:
    """Return P(J + U <= x), J discrete Laplace of scale 1/epsilon and U uniform on (-1/2, 1/2).

    Awan and Slavkovic (2018), definition 4.1, with b = exp(-epsilon).

    Examples
    --------
    >>> tulap_cdf([-1.2, 0.0, 0.3, 2.0], 1.0).round(8)
    array([0.14993904, 0.5       , 0.63863515, 0.93233236])
    """
    values = np.asarray(x, dtype=np.float64)
    low = -np.abs(values)
    near = np.rint(low)
    b, step = math.exp(-epsilon), -math.expm1(-epsilon)  # step = 1 - b
    tail = np.exp(epsilon * near) * (b + (low - near + 0.5) * step) / (1 + b)
    result: Floats = np.where(values <= 0, tail, 1 - tail)
    return result


@dataclass(frozen=True, slots=True)
class LatticeTulap:
    """The noise of :func:`privatest.mechanisms.lattice.noisy_integer`.

    Tulap on integers, cut off if delta > 0.

    Parameters
    ----------
    width : int
        The noise's unit: a move by at most so many integers passes one block.
    epsilon : float
        Of the noise inside the cut, for each block that is passed.
    edge : float or None
        Where the noise is cut off on both sides.
    blocks : int
        How many blocks the integer statistic may pass: 1, but for Laplace noise.
    """

    width: int
    epsilon: float
    edge: float | None = None
    blocks: int = 1

    def survival(self, x: ArrayLike) -> Floats:
        """Return P(noise >= x), x in the units of the statistic."""
        # the law is symmetric: lower tails only, which keep their digits where they are small
        beyond = tulap_cdf(-np.asarray(x, dtype=np.float64) / self.width, self.epsilon)
        if self.edge is None:
            return beyond
        cut = float(tulap_cdf(-self.edge / self.width, self.epsilon))
        survival: NDArray[np.float64] = np.clip((beyond - cut) / (1 - 2 * cut), 0.0, 1.0)
        return survival

    def quantile(self, probability: ArrayLike) -> Floats:
        """Return x with P(noise <= x) = ``probability``, which is above 0 and below 1."""
        given = np.asarray(probability, dtype=np.float64)
        if self.edge is not None:
            cut = float(tulap_cdf(-self.edge / self.width, self.epsilon))
            given = cut + given * (1 - 2 * cut)
        b, step = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        lower = np.minimum(given, 1 - given) * (1 + b)
        near = np.minimum(np.ceil(np.log(lower) / self.epsilon), 0.0)
        place = near - 0.5 + (lower * np.exp(-self.epsilon * near) - b) / step
        result: Floats = self.width * np.where(given <= 0.5, place, -place)
        return result


@lru_cache(maxsize=256)
def lattice_tulap(width: int, budget: Budget) -> LatticeTulap:
    """Choose the noise for an integer that moves by at most ``width``.

    With delta > 0 it is Tulap noise for epsilon cut off where its outermost ``width`` integers
    on one side have mass at most delta.

    Notes
    -----
    **Privacy** The mass comes from lower tails, accurate to a relative 1e-9 whatever epsilon and
    delta, and that much of delta is left over. Proof: docs/proofs/noise.md.
    """
    epsilon, delta = budget.as_floats
    if delta == 0:
        return LatticeTulap(width, epsilon)

    half = 0.5 * (width % 2)  # cells of the lattice end there, around an odd or even middle

    def outermost(cut: int) -> float:
        # of the lower side: numbers near 1 would have no digits left after subtraction
        end = (cut + half) / width
        beyond, within = tulap_cdf([-end, 1 - end], epsilon)
        # below 0 a shift by 1 is a factor of e^epsilon
        mass = -math.expm1(-epsilon) * within if end >= 1 else within - beyond
        return float(mass / (1 - 2 * beyond))

    target = delta * (1 - 1e-9)
    # Noise is redrawn until it is inside the edge. An edge further out than needed has a smaller
    # delta, so it is private too; this one keeps one of about 2000 draws.
    nearest = math.ceil(width / (2000 * epsilon))
    if nearest > width and outermost(nearest) <= target:
        return LatticeTulap(width, epsilon, nearest + half)
    high = width
    while outermost(high) > target:
        high *= 2
        if high > 1000 * width / epsilon:  # the tail is below every float
            return LatticeTulap(width, epsilon)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if outermost(middle) > target else (low, middle)
    return LatticeTulap(width, epsilon, high + half)


# --- laws and p-values ---


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A law on cells: with probability ``masses[i]`` the statistic is in [low[i], values[i]].

    Parameters
    ----------
    values, masses : ndarray
        P(T >= t) is at most the mass of values >= t, plus ``error``.
    error : float
        At most this much probability is misplaced; it is added to p-values.
    low : ndarray, optional
        Lower ends of the cells, for alternatives other than "greater"; by default each cell is
        one value.
    proved : bool
        Whether ``error`` is a proved bound, up to the arithmetic; otherwise it is measured.
    """

    values: Floats
    masses: Floats
    error: float = ROUNDING
    low: Floats = None  # type: ignore[assignment]
    proved: bool = True

    def __post_init__(self) -> None:
        """Cells are single values unless said otherwise."""
        if self.low is None:
            object.__setattr__(self, "low", self.values)

    def scaled(self, factor: float, shift: float = 0.0) -> Law:
        """Return the law of ``factor`` (above 0) times the statistic, plus ``shift``."""
        low, high = (factor * ends + shift for ends in (self.low, self.values))
        return Law(high, self.masses, self.error, low, self.proved)

    def pvalue(
        self, noisy: float, noise: LatticeTulap, alternative: Alternative = "greater"
    ) -> float:
        """Return P(S + noise >= ``noisy``), rounded up; never 0.

        S is the statistic T ("greater"), -T ("less") or |T| ("two-sided").
        """
        if alternative == "two-sided":
            values = np.maximum(np.abs(self.low), np.abs(self.values))
        else:
            values = self.values if alternative == "greater" else -self.low
        # not a dot product: for so few numbers threads of BLAS cost more than they save
        tail = float(np.sum(self.masses * noise.survival(noisy - values)))
        return min(1.0, tail + max(self.error, ROUNDING))


def continuous_law(points: Floats, survival: Floats, error: float, *, proved: bool = True) -> Law:
    """Build a law from its survival function at close points: the mass between two is halved."""
    survival = np.minimum.accumulate(np.clip(survival, 0.0, 1.0))
    cells = -np.diff(survival)
    masses = np.concatenate([[1 - survival[0]], cells / 2]) + np.concatenate(
        [cells / 2, survival[-1:]]
    )
    return Law(points, masses, error, proved=proved)


def simulated_law(draws: Floats, *, proved: bool = True) -> Law:
    """Build a law from B independent draws: p-values are (1 + sum of P(draw + noise >= z))/(B + 1).

    They are valid for every B. Given all B + 1 statistics and not which one is that of the data, z
    has the survival function G(z), the mean of P(statistic + noise >= z) over them. So G(z) is
    uniform, and the p-value is at least G(z). ``proved`` says whether the draws have the law of the
    statistic.
    """
    share = 1 / (draws.size + 1)
    return Law(draws, np.full(draws.size, share), share + ROUNDING, proved=proved)


# --- counts ---


@lru_cache(maxsize=64)
def binomial_law(n: int, probability: float) -> Law:
    """Return the binomial law.

    Examples
    --------
    The published p-value of the test of tests: 20 subsets of level 1/4, 7 reject, noise 0.3.

    >>> from privatest.numerics.laws import LatticeTulap
    >>> round(binomial_law(20, 0.25).pvalue(7.3, LatticeTulap(1, 1.0)), 9)
    0.162225406
    """
    counts, masses = binomial_masses(n, probability)
    return Law(counts, masses, max(_ROUNDING, _PER_COUNT * counts.size))


def binomial_masses(n: int, probability: float) -> tuple[Floats, Floats]:
    """Return the counts that have any mass to speak of, and their masses."""
    deviation = math.sqrt(n * probability * (1 - probability))
    counts = _window(n * probability, deviation, 0, n)
    odds = math.inf if probability == 1 else probability / (1 - probability)
    return counts, _from_ratios((n - counts[:-1]) / (counts[:-1] + 1) * odds)


@lru_cache(maxsize=64)
def sign_law(n: int) -> Law:
    """Return the law of 2S - n, S binomial(n, 1/2)."""
    counts = _window(n / 2, math.sqrt(n) / 2, 0, n)
    ratios = (n - counts[:-1]) / (counts[:-1] + 1)
    return Law(2 * counts - n, _from_ratios(ratios))


@lru_cache(maxsize=64)
def hypergeometric_law(n: int, m: int) -> Law:
    """Return the law of N S - n h, S the number of x among the h = N - floor(N/2) largest."""
    total = n + m
    top = total - total // 2
    deviation = math.sqrt(top * (total - top) / total * n / total * m / max(total - 1, 1))
    counts = _window(top * n / total, deviation, max(0, top - m), min(n, top))
    below = counts[:-1]
    ratios = (n - below) * (top - below) / ((below + 1) * (m - top + below + 1))
    return Law(total * counts - n * top, _from_ratios(ratios))


def _window(mean: float, deviation: float, low: int, high: int) -> Floats:
    """Return the counts that have any mass to speak of."""
    reach = _REACH * deviation + 10
    first, last = max(low, math.floor(mean - reach)), min(high, math.ceil(mean + reach))
    return np.arange(first, last + 1, dtype=np.float64)


def _from_ratios(ratios: Floats) -> Floats:
    """Return masses from the ratios of neighbours, outwards from the mode: no cancellation."""
    mode = int(np.count_nonzero(ratios >= 1))  # ratios fall
    below = np.cumprod(1 / ratios[:mode][::-1])[::-1]
    masses = np.concatenate([below, [1.0], np.cumprod(ratios[mode:])])
    result: Floats = masses / masses.sum()
    return result


# --- symmetry ---


@lru_cache(maxsize=64)
def symmetry_law(n: int, statistic: Symmetry) -> Law:
    """Return the law of max |S| ("ks") or of the range of S, 0 and n fair steps."""
    last = min(n, math.ceil(_REACH * math.sqrt(n)) + 10)
    if statistic == "ks":
        below = [_stays_within(n, a) for a in range(1, last + 1)]
        survival = 1 - np.array(below)
    else:
        # P(range <= r) = B(r + 1) - B(r)
        walks = [_reflected(n, barrier) for barrier in range(1, last + 1)]
        survival = 1 - np.concatenate([[0.0], np.diff(walks)])
    survival = np.minimum.accumulate(np.clip(survival, 0.0, 1.0))
    masses = survival - np.append(survival[1:], 0.0)
    return Law(np.arange(1.0, last + 1), masses)


def _angles(n: int, share: float) -> int:
    """Return up to which j the power cos(j share)^n <= exp(-n (j share)²/2) is not nothing."""
    return math.ceil(math.sqrt(90 / n) / share)


def _stays_within(n: int, a: int) -> float:
    """Return P(max |S| < a): (1/a) sum of sin(j pi/2) cot(j pi/4a) cos^n(j pi/2a), j odd < 2a."""
    if a == 1:
        return 0.0
    # j and 2a - j together; at j = a the cosine is 0
    last = min(a - 1, _angles(n, math.pi / (2 * a)))
    j = np.arange(1, last + 1, 2, dtype=np.float64)
    quarter = np.tan(j * math.pi / (4 * a))
    pairs = 1 / quarter - (-1) ** (a + n) * quarter
    signs = 1 - 2 * ((j // 2) % 2)
    return float(np.sum(signs * pairs * np.cos(j * math.pi / (2 * a)) ** n) / a)


def _reflected(n: int, barrier: int) -> float:
    """Return B(L) = 2/(L+1) sum of cot²(j pi/(2L+2)) cos^n(j pi/(L+1)) over odd j <= L."""
    side = barrier + 1
    last = _angles(n, math.pi / side)
    j = np.arange(1, side, 2, dtype=np.float64)
    if 2 * last < side:  # the cosines in between are too small to count
        j = j[(j <= last) | (j >= side - last)]
    terms = np.tan(j * math.pi / (2 * side)) ** -2 * np.cos(j * math.pi / side) ** n
    return float(2 / side * np.sum(terms))


# --- ranks ---


@lru_cache(maxsize=32)
def mann_whitney_law(n: int, m: int) -> Law:
    """Return the law of 2U - nm."""
    few, many = min(n, m), max(n, m)
    if few < _FEW or few * few * many <= _EXACT_WORK:
        return Law(2 * np.arange(n * m + 1.0) - n * m, _mann_whitney_masses(few, many))
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    return by_fourier(
        lambda t: _log_mann_whitney(few, many, t), deviation, half_range=n * m / 2
    ).scaled(2)


def _mann_whitney_masses(n: int, m: int) -> Floats:
    """Invert the characteristic function prod_i i sin((m+i)t/2) / ((m+i) sin(it/2)).

    At t = 2 pi k/L with L prime no sine is 0, and angles are reduced as integers, so that each
    factor has full accuracy.
    """
    period = _prime_above(n * m + n + m)
    table = np.log(np.sin(np.pi * np.arange(1, period) / period), dtype=np.float64)
    k = np.arange(1, (period + 1) // 2, dtype=np.int64)
    logs, turns = np.zeros(len(k)), np.zeros(len(k), dtype=np.int64)
    for i in range(1, n + 1):
        for factor, sign in ((m + i, 1), (i, -1)):
            half_turns, rest = np.divmod(factor * k, period)
            logs += sign * (table[rest - 1] - math.log(factor))
            turns += half_turns
    phase = np.pi * ((k * (n * m)) % (2 * period)) / period
    transform = np.exp(logs + np.pi * 1j * (turns % 2) - 1j * phase)
    masses = np.fft.irfft(np.concatenate([[1.0], transform]), n=period)[: n * m + 1]
    return np.clip(masses, 0.0, None)


def _prime_above(number: int) -> int:
    candidate = number + 1 + number % 2
    while any(candidate % d == 0 for d in range(3, math.isqrt(candidate) + 1, 2)):
        candidate += 2
    return candidate


def _log_mann_whitney(n: int, m: int, t: Floats) -> tuple[Floats, Floats]:
    """Return logarithm and sign of the characteristic function of U - nm/2."""
    half = t / 2
    if n > _DIRECT:  # log(sin x / x), and all angles are small
        sums = (_power_sums(size, 2 * len(_SINE)) for size in (n + m, m, n))
        powers = [whole - high - low for whole, high, low in zip(*sums, strict=True)]
        scaled = (half * (n + m)) ** 2
        total = sum(
            -a * scaled**r * (powers[2 * r] / (n + m) ** (2 * r))
            for r, a in enumerate(_SINE, start=1)
        )
        return np.asarray(total), np.ones(len(t))
    sines = (np.sin((m + i) * half) / np.sin(i * half) * (i / (m + i)) for i in range(1, n + 1))
    return _log_product(sines, len(t))


@lru_cache(maxsize=32)
def wilcoxon_law(n: int) -> Law:
    """Return the law of 2W, W the sum of the ranks 1 ... n with fair signs."""
    if n > _EXACT_PAIRS:
        deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 6) / 2
        return by_fourier(
            lambda t: _log_wilcoxon(n, t), deviation, half_range=n * (n + 1) / 4
        ).scaled(4)
    masses = np.zeros(n * (n + 1) // 2 + 1)
    masses[0] = 1.0
    for rank in range(1, n + 1):  # rank is in or out, each with probability 1/2
        masses[rank:] = (masses[rank:] + masses[:-rank]) / 2
        masses[:rank] /= 2
    return Law(4 * np.arange(float(len(masses))) - n * (n + 1), masses)


def _log_wilcoxon(n: int, t: Floats) -> tuple[Floats, Floats]:
    """Return logarithm and sign of prod_i cos(i t/2), the characteristic function of W/2."""
    half = t / 2
    if n > _DIRECT:  # log cos x, and all angles are small
        powers = _power_sums(n, 2 * len(_COSINE))
        total = sum(
            -a * (half * n) ** (2 * r) * (powers[2 * r] / n ** (2 * r))
            for r, a in enumerate(_COSINE, start=1)
        )
        return np.asarray(total), np.ones(len(t))
    return _log_product((np.cos(i * half) for i in range(1, n + 1)), len(t))


@lru_cache(maxsize=32)
def kendall_law(n: int) -> Law:
    """Return the law of concordant minus discordant pairs of n rows."""
    pairs = n * (n - 1) // 2
    if n <= _EXACT_KENDALL:
        return Law(2 * np.arange(pairs + 1.0) - pairs, _mahonian_masses(n))
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 72)
    return by_fourier(lambda t: _log_mahonian(n, t), deviation, half_range=pairs / 2).scaled(2)


def _mahonian_masses(n: int) -> Floats:
    """Return the law of the number of inversions: a sum of uniforms on 0 ... j - 1, j <= n."""
    masses = np.ones(1)
    for j in range(2, n + 1):
        sums = np.cumsum(np.concatenate([masses, np.zeros(j - 1)]))
        sums[j:] -= sums[:-j].copy()
        masses = sums / j
    return np.clip(masses, 0.0, None)


def _log_mahonian(n: int, t: Floats) -> tuple[Floats, Floats]:
    """Return logarithm and sign of prod_j sin(jt/2) / (j sin(t/2))."""
    half = t / 2
    if n > _DIRECT:  # log(sin x / x), and all angles are small
        share, scaled = np.arange(1.0, n + 1) / n, (half * n) ** 2
        total = sum(
            -a * scaled**r * float(np.sum(share ** (2 * r)) - n ** (1.0 - 2 * r))
            for r, a in enumerate(_SINE, start=1)
        )
        return np.asarray(total), np.ones(len(t))
    sines = (np.sin(j * half) / (j * np.sin(half)) for j in range(2, n + 1))
    return _log_product(sines, len(t))


def _power_sums(n: int, highest: int) -> list[int]:
    """Return 1^p + ... + n^p for p = 0, 1, ..., exactly, without going through the terms.

    (n + 1)^(p + 1) - 1 is the sum over k <= p of binomial(p + 1, k) times the sum of k-th powers.
    """
    sums: list[int] = []
    for power in range(highest + 1):
        rest = sum(math.comb(power + 1, k) * found for k, found in enumerate(sums))
        sums.append(((n + 1) ** (power + 1) - 1 - rest) // (power + 1))
    return sums


def _log_product(factors: Iterable[Floats], size: int) -> tuple[Floats, Floats]:
    """Return logarithm and sign of a product, element by element."""
    logs, signs = np.zeros(size), np.ones(size)
    for factor in factors:
        logs += np.log(np.abs(factor))
        signs *= np.sign(factor)
    return logs, signs


def by_fourier(
    log_transform: Callable[[Floats], tuple[Floats, Floats]], deviation: float, half_range: float
) -> Law:
    """Return the symmetric law on -half_range, -half_range + 1, ... from its transform.

    P(T < x) = 1/2 + (x + sum_k f(2 pi k/L) sin(2 pi k x/L) / sin(pi k/L)) / L for x between two
    lattice points, up to the mass more than L - |x| away from 0.
    """
    period = math.ceil(2 * _REACH * deviation)
    k = np.arange(1.0, 33.0)  # to ten inverse standard deviations
    logs, signs = log_transform(2 * np.pi * k / period)
    small = np.flatnonzero(logs < -42)  # below 1e-18, and so is all that follows
    kept = slice(0, int(small[0]) if len(small) else len(k))
    weights = (signs * np.exp(logs) / np.sin(np.pi * k / period))[kept]
    first = max(0, math.ceil(half_range - _REACH * deviation)) - half_range
    points = round(-2 * first) + 1
    step = -(-points // _CELLS)
    low: Floats = first + step * np.arange(-(-points // step), dtype=np.float64)
    edges = np.append(low, low[-1] + step) - 0.5
    waves = np.sin(np.outer(edges, 2 * np.pi * k[kept] / period)) @ weights
    below = np.clip(0.5 + (edges + waves) / period, 0.0, 1.0)
    below[0], below[-1] = 0.0, 1.0
    masses = np.clip(np.diff(below), 0.0, None)
    return Law(low + (step - 1), masses, _FOURIER_ERROR, low)


# --- ties: a smaller variance, from noisy counts ---


def tie_reach(size: float) -> float:
    """Return how many scales of its noise a number of ties must be to be beyond doubt.

    ``size`` is the number of rows times epsilon. As that grows so does the number, and it is a
    smaller share of what the ties may be.
    """
    return max(_LEAST_REACH, 1.2 * math.sqrt(math.sqrt(size)))


def tie_miss(reach: float, numbers: int = 1) -> float:
    """Return at most how often any of so many numbers passes ``reach`` where there are no ties."""
    return numbers * math.exp(-reach)


def sure_ties(noisy: float, scale: float, reach: float) -> float:
    """Return a number of ties that is hardly too large: 0 unless some are beyond doubt."""
    return noisy - _LOWERED * scale if noisy > reach * scale else 0.0


def bounded_pvalue(worst: float, within: float, miss: float) -> float:
    """Return a p-value from one for all values of a nuisance and one for a confidence set.

    Parameters
    ----------
    worst : float
        The largest p-value over all values that the nuisance may have.
    within : float
        The largest over a confidence set.
    miss : float
        How often the set misses the true value, at most.

    Notes
    -----
    Berger and Boos (1994) add ``miss``, so that no p-value is below it. Here the set is used only
    for p-values above the root of ``miss``, and all are raised by that share of themselves.
    """
    least = math.sqrt(miss)
    return min(1.0, min(worst, max(within, least)) / (1 - least))


def wilcoxon_factor(counted: int, cubes: float) -> float:
    """Return the standard deviation of W with ties over that without.

    ``cubes`` is the sum of t³ - t over sets of t equal sizes of differences.
    """
    whole = 2 * counted * (counted + 1) * (2 * counted + 1)
    return math.sqrt(1 - min(max(cubes, 0.0), counted**3 - counted) / whole) if whole else 1.0


def spearman_factor(n: int, cubes: tuple[float, float]) -> float:
    """Return the standard deviation of Spearman's score with ties over that without."""
    whole = n**3 - n
    left = [1 - min(max(each, 0.0), whole) / whole for each in cubes]
    return math.sqrt(left[0] * left[1])


def kendall_factor(n: int, pairs: tuple[float, float], cubes: tuple[float, float]) -> float:
    """Return the standard deviation of Kendall's score with ties over that without.

    ``pairs`` are the numbers of tied pairs of each column, ``cubes`` the sums of t³ - t.
    """
    m, whole = n * (n - 1), n**3 - n
    (px, py), (kx, ky) = (
        tuple(min(max(each, 0.0), top) for each in both)
        for both, top in ((pairs, m / 2), (cubes, float(whole)))
    )
    plain = m * (2 * n + 5) / 18
    tied = plain - (2 * kx + 6 * px + 2 * ky + 6 * py) / 18 + 2 * px * py / m
    if n > 2:
        tied += max(kx - 6 * px, 0.0) * max(ky - 6 * py, 0.0) / (9 * m * (n - 2))
    return math.sqrt(min(max(tied / plain, 0.0), 1.0))


def tied_pvalue(
    law: Law,
    place: float,
    noise: LatticeTulap,
    alternative: Alternative,
    *,
    factor: float,
    miss: float,
) -> float:
    """Return the p-value of a noisy score whose law has the shape of ``law`` and ties.

    Parameters
    ----------
    law : Law
        Without ties.
    place : float
        The p-value is P(score + noise >= place), the score as ``alternative`` has it.
    noise, alternative
        As in :meth:`Law.pvalue`.
    factor : float
        The standard deviation with ties over that without; 1 where there are no ties, but for
        the chance ``miss``.
    miss : float
        See :func:`bounded_pvalue`.
    """
    worst = law.pvalue(place, noise, alternative)
    tied = law.scaled(factor).pvalue(place, noise, alternative) if factor > 0 else 1.0
    # below the centre of a one-sided test a smaller spread makes the p-value larger
    return bounded_pvalue(worst, tied, miss) if place > 0 else max(worst, tied)


# --- noisy counts below the edges of a grid ---


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """How the count below each edge is put together, edges 0 ... cells; public.

    Attributes
    ----------
    shares : ndarray of shape (levels, cells + 1)
        The weight of nodes to the left of the path; those to the right have 1 minus it.
    ones, halves : ndarray of int
        How many noisy counts enter with weight ±1 and ±1/2.
    """

    shares: Floats
    ones: Integers
    halves: Integers


@lru_cache(maxsize=32)
def paths(tree: Tree) -> Paths:
    """Choose, for each edge, the sum with the least noise; by public numbers only.

    Nodes left of the path weigh a, those right of it -(1 - a), and the path's own node at a level
    a - a', with a' the share of the next level, or 1 below the last. An even tree has a = 1/2 at
    every edge: then all nodes weigh 1/2, whichever edge it is.
    """
    digits = _digits(tree)
    best = np.full(digits.shape[1], np.inf)
    shares = np.ones(digits.shape)
    ones, halves = (np.zeros(digits.shape[1], dtype=np.int64) for _ in range(2))
    for choice in itertools.product((0.5,) if tree.even else (1.0, 0.5, 0.0), repeat=tree.levels):
        weights = _weights(digits, choice, tree.base)
        trial = {size: sum(number for w, number in weights if w == size) for size in (1.0, 0.5)}
        variance = trial[1.0] + trial[0.5] / 4
        better = np.broadcast_to(variance < best, best.shape)
        best = np.where(better, variance, best)
        shares[:, better] = np.array(choice)[:, None]
        ones = np.where(better, trial[1.0], ones)
        halves = np.where(better, trial[0.5], halves)
    for edge in (0, -1):  # none, and all there are: public numbers
        ones[edge] = halves[edge] = 0
    return Paths(shares, ones.astype(np.int64), halves.astype(np.int64))


def _digits(tree: Tree) -> Integers:
    """Return which child the path to each edge takes at each level."""
    edges = np.arange(tree.cells + 1) % tree.base**tree.levels  # the last is taken from the total
    powers = tree.base ** np.arange(tree.levels - 1, -1, -1)
    digits: Integers = (edges // powers[:, None]) % tree.base
    return digits


def _weights(
    digits: Integers, choice: tuple[float, ...], base: int
) -> list[tuple[float, Integers]]:
    """Return the sizes of weights, and how many noisy counts have each, for every edge."""
    found = []
    for level, share in enumerate(choice):
        following = choice[level + 1] if level + 1 < len(choice) else 1.0
        left = digits[level]
        found += [(share, left), (1 - share, base - 1 - left)]
        found.append((abs(share - following), np.ones_like(left)))
    return found


def cumulated(nodes: Floats, tree: Tree, total: float) -> Floats:
    """Return the counts below edges 0 ... cells from those of all nodes, noisy or not."""
    digits, chosen = _digits(tree), paths(tree).shares
    below = np.zeros(tree.cells + 1)
    start, parent = 0, np.zeros(tree.cells + 1, dtype=np.int64)
    whole = np.full(tree.cells + 1, float(total))
    for level in range(tree.levels):
        size = tree.base ** (level + 1)
        table = nodes[start : start + size].reshape(-1, tree.base)
        sums = np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1)], axis=1)
        left = sums[parent, digits[level]]
        right = sums[parent, -1] - left
        share = chosen[level]
        below += share * left + (1 - share) * (whole - right)
        whole = table[parent, digits[level]]
        parent = parent * tree.base + digits[level]
        start += size
    below[0], below[-1] = 0.0, total
    return below


def noisy_tails(
    law: Law, scale: float, ones: int, halves: int, points: Floats
) -> tuple[Floats, Floats]:
    """Return P(S + noise <= z) and P(S + noise >= z) at points z, rounded up.

    Parameters
    ----------
    law : Law
        Of S, on integers.
    scale : float
        Of each discrete Laplace number.
    ones, halves : int
        How many of them are added, with weight 1 and 1/2.
    points : ndarray
        Multiples of 1/2.
    """
    units = ones + halves / 4
    reach = 25 * scale + 9 * scale * math.sqrt(units) if units else 0.0
    first, last = float(law.low[0]) - reach, float(law.values[-1]) + reach
    step = max(0.5, (last - first) / _SIZE)
    if step < 2:  # so many points can be afforded, and none is rounded
        step = 0.5
    first = math.floor(first / step) * step
    size = 1 << math.ceil(math.log2((last - first) / step + 2))
    noise = _noise_transform(size, step, scale, ones, halves)
    slack, error = (1e-6, _TAIL_ROUNDING) if step == 0.5 else (step, _COARSE)

    def drawn(places: Integers) -> Floats:
        masses = np.bincount(places, weights=law.masses, minlength=size)
        return np.fft.irfft(np.fft.rfft(masses) * noise, n=size)

    low, high = (np.rint((ends - first) / step).astype(np.int64) for ends in (law.low, law.values))
    below = drawn(low)
    above = below if np.array_equal(low, high) else drawn(high)
    where = (points - first) / step
    tails = []
    for law_drawn, at in ((below, where), (above[::-1], size - 1 - where)):
        sums = np.concatenate([[0.0], np.cumsum(law_drawn)])
        index = np.floor(at + slack / step).astype(np.int64) + 1
        tail = sums[np.clip(index, 0, size)]
        tails.append(np.clip(tail + error + law.error, 0.0, 1.0))
    return tails[0], tails[1]


def _noise_transform(size: int, step: float, scale: float, ones: int, halves: int) -> Floats:
    """Return the characteristic function of all of the noise, at the waves of a lattice."""
    waves = np.fft.rfftfreq(size) * 2 * math.pi
    noise: Floats = np.ones_like(waves)
    for count, weight in ((ones, 1.0), (halves, 0.5)):
        if count:
            noise *= np.power(_transform(waves * weight / step, scale), count)
    return noise


def _transform(angles: NDArray[np.floating[Any]], scale: float) -> Floats:
    """Return the characteristic function of a discrete Laplace number."""
    # (1 - p)²/(1 - 2p cos t + p²), written without differences of nearly equal numbers
    shrunk = math.sinh(0.5 / scale) if scale > 1e-3 else math.inf
    if math.isinf(shrunk):
        return np.ones_like(angles)
    result: Floats = 1 / (1 + (np.sin(angles / 2) / shrunk) ** 2)
    return result
