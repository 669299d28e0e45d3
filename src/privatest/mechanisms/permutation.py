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
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome

__all__ = [
    "PVALUE_GRID",
    "Release",
    "noise_scale",
    "on_steps",
    "permutation_result",
    "pvalue_loss",
    "smoothed_decision",
    "smoothed_pvalue",
    "survival_mean",
]

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
