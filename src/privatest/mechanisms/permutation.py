"""The smoothed permutation test: what can be released if the null distribution is private.

Noise goes on the observed statistic only; the noisy value is ranked among all statistics,
each smoothed by the law of the noise. Under the null hypothesis the p-value is exactly
uniform before it is rounded up, ties or not, and it is private as a whole. Proofs:
docs/proofs/smoothed-permutation-test.md. The rank p-value of Kim and Schrab's algorithm 1 is
not private and is not offered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome
from privatest.numerics.independence import DependencePlan, DependenceStatistics
from privatest.numerics.kernels import UNIT_ROUNDOFF
from privatest.numerics.portfolio import PooledVariances

Release = Literal["pvalue", "decision"]
RELEASES: tuple[str, ...] = get_args(Release)

PVALUE_GRID = 10_000  # a p-value is released as a multiple of 1/10,000, rounded up

# Statistics and noise are integers on a lattice of about 2^-46 noise scales. That and rounding
# in survival_mean act as if an edge of a cell of the p-value had moved by 2e-14 scales; a cell
# is at least 2e-4 scales wide, so neighbours' probabilities change by a factor below 1 + 4e-10.
_LATTICE_BITS = 46
_ARITHMETIC_LOSS = 1e-9
_FURTHEST = 700.0  # noise scales: weights beyond count as e^-700
_LN2 = Fraction(Decimal(2).ln(Context(prec=60)))
_MOST_HALVINGS = 4096  # a tail below 2^-4096 decides by its sign only


def pvalue_loss(observed: float, permuted: float) -> float:
    """Privacy loss of the smoothed p-value when statistics move by that many noise scales.

    max over 0 <= t <= permuted of t + observed + log1p(2pq/(p+q)), p = expm1(permuted - t),
    q = expm1(permuted + t): a concave function of t, so a ternary search finds its maximum.
    """

    def loss(t: float) -> float:
        p, q = math.expm1(permuted - t), math.expm1(permuted + t)
        return t + observed + math.log1p(2 * p * q / (p + q))

    low, high = 0.0, permuted * (1 - 1e-12)
    for _ in range(100):
        third = (high - low) / 3
        if loss(low + third) < loss(high - third):
            low += third
        else:
            high -= third
    return max(loss(low), loss(high))


def noise_scale(sensitivity: PermutationSensitivity, epsilon: float, release: Release) -> float:
    """Laplace scale on the observed statistic that makes the release epsilon-private.

    Notes
    -----
    **Privacy** A decision costs (observed + permuted)/scale; the whole p-value costs
    :func:`pvalue_loss`, 12.5% more noise when both are equal.
    """
    # the factor is for the roundings of sensitivities and scales themselves
    target = epsilon * (1 - 1e-9) - _ARITHMETIC_LOSS
    if release == "decision":
        return (sensitivity.observed + sensitivity.permuted) / target
    # rounded up, so that nearly equal ratios share one solution
    observed = max(sensitivity.observed, 1e-12 * sensitivity.permuted)
    ratio = math.ceil(sensitivity.permuted / observed * 1e12) / 1e12
    return observed * _pvalue_scale(ratio, target)


@lru_cache(maxsize=256)
def _pvalue_scale(ratio: float, target: float) -> float:
    """Smallest scale with pvalue_loss(1/scale, ratio/scale) <= target, by bisection."""
    low = (1 + ratio) / target
    high = 2 * low
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        if ratio / middle < 300 and pvalue_loss(1 / middle, ratio / middle) <= target:
            high = middle
        else:
            low = middle
    return high


def permutation_result(
    statistics: NDArray[np.float64],
    *,
    sensitivity: PermutationSensitivity,
    budget: Budget,
    alpha: float,
    release: Release,
    noise: NoiseSource,
    facts: Mapping[str, Any],
) -> Decision:
    """Draw the noise and make the result; ``facts`` are its public fields.

    Notes
    -----
    **Sensitivity** and **Privacy** as in :func:`smoothed_pvalue` and :func:`smoothed_decision`.
    """
    shared: dict[str, Any] = {"alpha": alpha, "spent": budget, "simulated": noise.simulated}
    shared |= facts
    if release == "decision":
        reject = smoothed_decision(
            statistics, alpha, sensitivity=sensitivity, budget=budget, noise=noise
        )
        return Decision(reject=reject, **shared)
    pvalue = smoothed_pvalue(statistics, sensitivity=sensitivity, budget=budget, noise=noise)
    return Outcome(reject=pvalue <= alpha, pvalue=pvalue, **shared)


def survival_mean(value: int, points: Sequence[int], scale: float) -> Fraction:
    """Return mean of S((value - t_i)/scale), S the survival function of Laplace(0, 1).

    Differences of integers are exact, however large. With whole ones counted as integers and
    tails relative to the nearest point's, the error is below 1e-14 of the sum of the smaller of
    S and 1 - S: as if ``value`` had moved by 1e-14 scales. Rounding never decides between
    far-apart points.
    """
    furthest = math.ceil(_FURTHEST * scale)
    small = max(abs(value), furthest, *map(abs, points)) < 2**61  # else Python's integers
    distances = value - np.array(points, dtype=np.int64 if small else object)
    sizes = abs(distances)
    nearest = int(sizes.min())
    tails = np.exp(-(np.minimum(sizes - nearest, furthest).astype(np.float64) / scale))
    above = distances <= 0
    balance = Fraction(math.fsum(tails[~above])) - Fraction(math.fsum(tails[above]))
    # e^-(nearest/scale) as a power of 2 and a rest, since a float would underflow
    halvings, rest = divmod(Fraction(nearest) / Fraction(scale), _LN2)
    tail = Fraction(math.exp(-rest)) / (2 << min(halvings, _MOST_HALVINGS))
    return (int(np.count_nonzero(above)) + tail * balance) / len(points)


def on_steps(
    statistics: NDArray[np.float64],
    sensitivity: PermutationSensitivity,
    epsilon: float,
    release: Release,
) -> tuple[list[int], float]:
    """Round statistics down to integers; return them and the noise's scale in lattice steps.

    What is not finite becomes 0, a public value: refusing it would reveal something about the data.

    Notes
    -----
    **Sensitivity** floor(T/h) moves by at most floor(Delta/h) + 1, and h is public.
    """
    _, exponent = math.frexp(noise_scale(sensitivity, epsilon, release))
    exponent -= _LATTICE_BITS + 1  # h = 2^exponent
    in_steps = PermutationSensitivity(
        *(
            float(math.floor(math.ldexp(bound, -exponent)) + 1)
            for bound in (sensitivity.observed, sensitivity.permuted)
        )
    )
    mantissas, powers = np.frexp(np.where(np.isfinite(statistics), statistics, 0.0))
    whole = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    shifts = (powers.astype(np.int64) - 53 - exponent).tolist()
    points = [
        part << shift if shift >= 0 else part >> -shift
        for part, shift in zip(whole, shifts, strict=True)
    ]
    return points, noise_scale(in_steps, epsilon, release)


def smoothed_pvalue(
    statistics: NDArray[np.float64],
    *,
    sensitivity: PermutationSensitivity,
    budget: Budget,
    noise: NoiseSource,
) -> float:
    """Release a private p-value; ``statistics[0]`` is the observed one.

    Notes
    -----
    **Sensitivity** Every statistic moves by at most what ``sensitivity`` says.

    **Privacy** The p-value, rounded up to a multiple of 1/10,000, is (epsilon, delta)-private
    as a whole: any number of decisions may be read off it.
    """
    repeat = partial(smoothed_pvalue, statistics=statistics, sensitivity=sensitivity, budget=budget)
    exact = _noisy_survival(statistics, sensitivity, budget, "pvalue", noise, repeat)
    return released(noise, max(1, math.ceil(exact * PVALUE_GRID)) / PVALUE_GRID)


def smoothed_decision(
    statistics: NDArray[np.float64],
    alpha: float,
    *,
    sensitivity: PermutationSensitivity,
    budget: Budget,
    noise: NoiseSource,
) -> bool:
    """Release a private decision at level ``alpha``; ``statistics[0]`` is the observed one.

    Notes
    -----
    **Sensitivity** Every statistic moves by at most what ``sensitivity`` says.

    **Privacy** The decision, and nothing else, is (epsilon, delta)-private.
    """
    repeat = partial(
        smoothed_decision,
        statistics=statistics,
        alpha=alpha,
        sensitivity=sensitivity,
        budget=budget,
    )
    exact = _noisy_survival(statistics, sensitivity, budget, "decision", noise, repeat)
    return released(noise, exact <= Fraction(Decimal(repr(alpha))))


def _noisy_survival(
    statistics: NDArray[np.float64],
    sensitivity: PermutationSensitivity,
    budget: Budget,
    release: Release,
    noise: NoiseSource,
    repeat: partial[Any],
) -> Fraction:
    points, scale = on_steps(statistics, sensitivity, budget.pure_epsilon, release)
    bounds = (sensitivity.observed, sensitivity.permuted)
    record(noise, "smoothed permutation", statistics, "permutation", bounds, scale, repeat)
    return survival_mean(points[0] + noise.discrete_laplace(scale), points, scale)


# The largest of several statistics, at about the noise of one: docs/proofs/portfolio.md.


Floats = NDArray[np.float64]

# Where one statistic alone would reject: that many standard deviations under the null hypothesis
# and that many noise scales above its mean. benchmarks/power/portfolio.py compares.
_DEVIATIONS, _NOISE_SCALES = 2.5, 2.5
# Where noise is small beside the deviations, statistics are compared in tenths of these: noise of
# a tenth of a deviation is no loss, and a statistic with a tiny noise scale must not outvote all.
_TENTH = 0.1
# What an offset that follows the data may add to the noise, as a share of it: at most this share
# of a deviation, since more noise would cost more power than a better offset brings.
_OF_A_DEVIATION, _LEAST_SHARE, _MOST_SHARE = 0.03, 0.02, 0.3
_ROUNDINGS = 16.0  # units of roundoff in an offset, a difference and a quotient


@dataclass(frozen=True, slots=True)
class NullLaw:
    """What each statistic would be like under the null hypothesis and a public law of the data.

    Attributes
    ----------
    means, deviations : ndarray
        Of each statistic.
    variances : ndarray, optional
        Of the features of each statistic, if they have one.
    """

    means: Floats
    deviations: Floats
    variances: Floats | None = None


def strongest(
    values: Floats,
    pooled: PooledVariances | None,
    sensitivities: Sequence[PermutationSensitivity],
    null: NullLaw | None,
    *,
    rows: int,
    epsilon: float,
    release: Release,
) -> tuple[Floats, PermutationSensitivity]:
    """Reduce statistics × permutations to one for each permutation, max_k (T_k - t_k)/v_k.

    With s_k the scale of the noise that T_k alone would need, v_k² = s_k² + (sd_k/10)²: the
    maximum needs hardly more noise than each of them. t_k is about where T_k alone would reject,
    k m_k + sqrt((2.5 k sd_k)² + (2.5 s_k)²), with mean and deviation of the public law ``null``,
    and k² the ratio of the variance that rows have (``pooled``, private) to that of the public
    law, both plus a public w_k. Without ``pooled`` k is 1; without ``null`` t_k is 0 and v_k is
    s_k.

    Notes
    -----
    **Sensitivity** v_k is public, t_k is the same for all permutations and moves by at most
    (m_k + 2.5 sd_k) times how far k moves, so the maximum moves by at most the largest
    (Delta_k + that)/v_k. T_k is 0 where all ``rows`` are equal, so it is at most rows · Delta_k;
    rounding is off by at most 16 units of (T_k + t_k)/v_k. Proof: docs/proofs/portfolio.md.
    """
    if len(values) == 1:
        return values[0], sensitivities[0]
    scales = _scales(sensitivities, epsilon, release)
    offsets, most, moves = np.zeros((3, len(scales)))
    deviations = np.zeros(len(scales))
    if null is not None:
        deviations = null.deviations
        factors, largest, moves = _factors(pooled, sensitivities, scales, null)
        offsets, most = (_offsets(null, scales, k) for k in (factors, largest))
    bounds = [
        PermutationSensitivity(bound.observed + move, bound.permuted + move)
        for bound, move in zip(sensitivities, moves, strict=True)
    ]
    scales = _scales(bounds, epsilon, release)
    weights = np.hypot(scales, _TENTH * deviations)
    statistics = ((values - offsets[:, None]) / weights[:, None]).max(axis=0)
    relative = [
        (bound * (1 / weight)).widened(
            _ROUNDINGS * UNIT_ROUNDOFF * (rows * bound.permuted + reach) / weight
        )
        for bound, weight, reach in zip(bounds, weights, most, strict=True)
    ]
    return statistics, PermutationSensitivity(
        max(bound.observed for bound in relative), max(bound.permuted for bound in relative)
    )


def _scales(
    sensitivities: Sequence[PermutationSensitivity], epsilon: float, release: Release
) -> Floats:
    return np.array([noise_scale(bound, epsilon, release) for bound in sensitivities])


def _offsets(null: NullLaw, scales: Floats, factors: Floats) -> Floats:
    """Where each statistic alone would about reject, if it varies ``factors`` times as widely."""
    spread = np.hypot(_DEVIATIONS * factors * null.deviations, _NOISE_SCALES * scales)
    offsets: Floats = factors * null.means + spread
    return offsets


def _factors(
    pooled: PooledVariances | None,
    sensitivities: Sequence[PermutationSensitivity],
    scales: Floats,
    null: NullLaw,
) -> tuple[Floats, Floats, Floats]:
    """Return k of each statistic (private), the largest it can be, and how far offsets move.

    k = sqrt((V + w)/(U + w)), V and U the variances of the data and of the public law. It is
    steepest at V = 0, with slope 1/(2 sqrt(w (U + w))), and w is such that an offset moves by no
    more than the share of the sensitivity that is granted.
    """
    count = len(scales)
    if pooled is None or null.variances is None:
        return np.ones(count), np.ones(count), np.zeros(count)
    usual = null.variances
    slope = null.means + _DEVIATIONS * null.deviations  # of an offset in k, at most
    ratio = np.divide(null.deviations, scales)
    share = np.clip(_OF_A_DEVIATION * ratio, _LEAST_SHARE, _MOST_SHARE)
    granted = share * np.array([bound.observed for bound in sensitivities])
    # sqrt(w (U + w)) = slope · move/(2 granted), solved for w
    needed = slope * pooled.moves / (2 * granted)
    root = usual + np.sqrt(usual**2 + 4 * needed**2)
    # a kernel that is 1 everywhere has neither variance nor slope
    added = np.divide(2 * needed**2, root, out=np.ones(count), where=root > 0)
    added = np.maximum(added, np.finfo(np.float64).tiny)
    factors, largest = (
        np.sqrt((found + added) / (usual + added)) for found in (pooled.values, pooled.most)
    )
    # sqrt(w + move) - sqrt(w), without cancellation
    rise = pooled.moves / (np.sqrt(added + pooled.moves) + np.sqrt(added))
    moves = slope * rise / np.sqrt(usual + added) * (1 + 1e-12)
    return factors, largest, moves


# Several permutation tests decided by one draw of noise. A maximum of statistics needs noise for
# the change of one member as observed and of another when permuted. Separate tests need only
# their own, share the draw and share the level. Proof: docs/proofs/smoothed-permutation-test.md.


@dataclass(frozen=True, slots=True)
class LevelShare:
    """One test: its statistics, the observed one first, and its share of the level."""

    statistics: NDArray[np.float64]
    sensitivity: PermutationSensitivity
    share: Fraction


def any_rejects(
    tests: Sequence[LevelShare], alpha: float, *, budget: Budget, noise: NoiseSource
) -> bool:
    """Release whether any of several smoothed tests rejects, each at its share of ``alpha``.

    Notes
    -----
    **Sensitivity** Every statistic of a test moves by at most what its sensitivity says.

    **Privacy** Each test rejects if the one draw, in its own noise scale, is above a threshold
    that moves by at most epsilon between neighbours; so does the smallest threshold. The
    decision is (epsilon, delta)-private, and its level at most ``alpha`` as shares add up to 1.
    """
    if sum(test.share for test in tests) != 1:
        raise AssertionError("shares of the level must add up to 1")
    level = Fraction(Decimal(repr(alpha)))
    grids = [
        on_steps(test.statistics, test.sensitivity, budget.pure_epsilon, "decision")
        for test in tests
    ]
    unit = max(scale for _, scale in grids)
    repeat = partial(any_rejects, tests=tests, alpha=alpha, budget=budget)
    for test, (_, scale) in zip(tests, grids, strict=True):
        bounds = (test.sensitivity.observed, test.sensitivity.permuted)
        record(noise, "one draw", test.statistics, "permutation", bounds, scale, repeat)
    draw = Fraction(noise.discrete_laplace(unit)) / Fraction(unit)
    rejected = [
        survival_mean(points[0] + math.floor(draw * Fraction(scale)), points, scale)
        <= test.share * level
        for test, (points, scale) in zip(tests, grids, strict=True)
    ]
    return released(noise, any(rejected))  # all are computed: time would tell which one rejected


def shared_result(
    tests: Sequence[LevelShare],
    *,
    budget: Budget,
    alpha: float,
    noise: NoiseSource,
    facts: Mapping[str, Any],
) -> Decision:
    """Decide by one draw of noise and make the result; ``facts`` are its public fields.

    Notes
    -----
    **Sensitivity** and **Privacy** as in :func:`any_rejects`.
    """
    reject = any_rejects(tests, alpha, budget=budget, noise=noise)
    return Decision(
        reject=reject, alpha=alpha, spent=budget, simulated=noise.simulated, **dict(facts)
    )


def two_sided_result(
    statistics: NDArray[np.float64],
    *,
    sensitivity: PermutationSensitivity,
    budget: Budget,
    alpha: float,
    noise: NoiseSource,
    facts: Mapping[str, Any],
) -> Outcome:
    """Release a two-sided p-value of a signed statistic: twice the smaller of p and 1 - p.

    Notes
    -----
    **Sensitivity** and **Privacy** as in :func:`privatest.mechanisms.permutation.smoothed_pvalue`,
    of whose p this is a function. That p was rounded up, so 1 - p is raised by one step.
    """
    steps = round(
        PVALUE_GRID
        * smoothed_pvalue(statistics, sensitivity=sensitivity, budget=budget, noise=noise)
    )
    pvalue = min(2 * steps, 2 * (PVALUE_GRID + 1 - steps), PVALUE_GRID) / PVALUE_GRID
    return Outcome(
        reject=pvalue <= alpha,
        pvalue=pvalue,
        alpha=alpha,
        spent=budget,
        simulated=noise.simulated,
        **dict(facts),
    )


def dependence_result(
    plan: DependencePlan, statistics: DependenceStatistics, release: Release, **shared: Any
) -> Decision:
    """Weigh the statistics and release what was asked for."""
    tests, family = [], statistics.family
    if family is not None:
        maxima, sensitivity = strongest(
            family.values,
            None,
            family.sensitivities,
            None if family.null is None else NullLaw(*family.null),
            rows=len(plan.sides[0]),
            epsilon=shared["budget"].pure_epsilon,
            release=release,
        )
        if statistics.trends is None:
            return permutation_result(maxima, sensitivity=sensitivity, release=release, **shared)
        tests.append(LevelShare(maxima, sensitivity, 1 - plan.trend_share))
    assert statistics.trends is not None
    covariances, bound = statistics.trends
    if release == "pvalue":
        return two_sided_result(covariances[0], sensitivity=bound, **shared)
    share = plan.trend_share / (2 * len(covariances))
    tests += [LevelShare(sign * own, bound, share) for own in covariances for sign in (1.0, -1.0)]
    return shared_result(tests, **shared)
