"""Tests of means that are valid for every law within the bounds: ``calibration="any"``.

Rows are independent and lie in [-1, 1]; nothing else is assumed. The mean and the mean square were
released with noise. First a confidence region of level 1 - beta for the mean and the variance of
each sample (Chernoff's bound with Hoeffding's moment generating function, noise included). Then the
tail of the contrast, by Chernoff's bound with Bennett's moment generating function for the largest
variance in the region. The p-value is beta plus that bound (Berger and Boos, 1994).

It uses released and public numbers only: post-processing. Proof: docs/proofs/means.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.laws.law import Alternative
from privatest.means.bootstrap import Contrast
from privatest.means.release import Released

__all__ = ["Region", "contrast_pvalue", "contrast_reach", "region"]

SHARE = 0.1  # of alpha, for the confidence regions
_ROUNDS = 30  # of narrowing a region; each of them is valid
_POINTS = 400  # of the exponents over which Chernoff's bound is minimised
_GRID = 2.0**-30  # of the sensitivity: noise is added on a grid at most this wide
_ROUNDING = 1e-12
_SHORTEST = 1e-6

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Region:
    """Where the mean of a sample's rows lies, and the most that their variance can be."""

    low: float
    high: float
    variance: float


def region(sample: Released, beta: float) -> Region:
    """Return a region that misses mean or variance with probability at most ``beta``.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    mean, slack = float(sample.mean[0]), _slack(sample)
    found = Region(-1.0, 1.0, 1.0)
    for _ in range(_ROUNDS):  # a mean in the region stays in it: see the proof
        variance = _largest_variance(sample, found, beta / 2)
        up = _reach([(sample, 1 - found.low, variance)], beta / 4) + slack
        down = _reach([(sample, 1 + found.high, variance)], beta / 4) + slack
        low, high = max(found.low, mean - up), min(found.high, mean + down)
        if low >= high:  # the noise went far beyond the bounds: the event of probability beta
            return Region(-1.0, 1.0, 1.0)
        found = Region(low, high, variance)
    return found


def contrast_pvalue(
    contrast: Contrast, deviation: float, alternative: Alternative, alpha: float
) -> float:
    """Return a p-value that is valid for every law within the bounds.

    Parameters
    ----------
    contrast : Contrast
        One column.
    deviation : float
        Released contrast minus its hypothetical value.
    alternative : {"two-sided", "greater", "less"}
        The side.
    alpha : float
        The public level; a tenth of it pays for the regions, so no p-value is below that.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    up, down = _sides(contrast, alpha)
    slack = sum(map(_slack, contrast.samples))
    above, below = _bound(up, deviation - slack), _bound(down, -deviation - slack)
    tail = {"greater": above, "less": below, "two-sided": 2 * min(above, below)}[alternative]
    return min(1.0, SHARE * alpha + tail)


def contrast_reach(
    contrast: Contrast, alternative: Alternative, alpha: float
) -> tuple[float, float]:
    """Return how far an interval of level 1 - alpha extends below and above the contrast.

    It excludes exactly what :func:`contrast_pvalue` rejects; a one-sided one is open.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    up, down = _sides(contrast, alpha)
    slack = sum(map(_slack, contrast.samples))
    tail = (1 - SHARE) * alpha / (2 if alternative == "two-sided" else 1)
    lower = math.inf if alternative == "less" else _reach(up, tail) + slack
    upper = math.inf if alternative == "greater" else _reach(down, tail) + slack
    return lower, upper


Term = tuple[Released, float, float]  # a sample, how far a row may exceed its mean, variance


def _sides(contrast: Contrast, alpha: float) -> tuple[list[Term], list[Term]]:
    """Return the terms of an upward and of a downward deviation of the contrast."""
    share = SHARE * alpha / len(contrast.samples)
    regions = [region(sample, share) for sample in contrast.samples]
    above = [(s, 1 - r.low, r.variance) for s, r in zip(contrast.samples, regions, strict=True)]
    below = [(s, 1 + r.high, r.variance) for s, r in zip(contrast.samples, regions, strict=True)]
    if len(regions) == 1:
        return above, below
    return [above[0], below[1]], [below[0], above[1]]


def _largest_variance(sample: Released, found: Region, beta: float) -> float:
    """Bound E(X - μ)² for the mean μ, which is in the region, except with probability ``beta``.

    For each exponent λ Markov's inequality of exp(-λ Q), Q the noisy mean of (X - μ)², gives a
    bound in closed form; the smallest one counts.
    """
    plan, mean = sample.plan, float(sample.mean[0])
    furthest = max(abs(found.low), abs(found.high))
    reach = (1 + furthest) ** 2
    # the covariance was cut at 0, which only raises it
    second = float(sample.covariance[0, 0]) / plan.unbiased + mean**2 - plan.variance
    # convex in μ: largest at an end
    observed = max(second - 2 * end * mean + end**2 for end in (found.low, found.high))
    observed = max(observed, 0.0) + 3 * _slack(sample)
    scales = (sample.second_scale, 2 * furthest * plan.mean_scale)
    exponents = _exponents(plan.n, max(scales), plan.budget.delta > 0)
    noise = sum(_log_mgf(exponents * scale, plan.budget.delta > 0) for scale in scales)
    gain = -np.expm1(-exponents * reach / plan.n) / reach
    bounds = -np.expm1((math.log(beta) - exponents * observed - noise) / plan.n) / gain
    most = 1 - min(abs(found.low), abs(found.high)) ** 2 * (found.low * found.high > 0)
    return min(float(np.min(bounds)), most)


def _reach(terms: list[Term], tail: float) -> float:
    """Return what the sum of the terms' noisy mean deviations exceeds with at most this chance."""
    exponents, logs = _cumulants(terms)
    return float(np.min((logs - math.log(tail)) / exponents))


def _bound(terms: list[Term], value: float) -> float:
    """Bound the probability that the sum of the terms' deviations is at least ``value``."""
    if value <= 0:
        return 1.0
    exponents, logs = _cumulants(terms)
    return math.exp(min(0.0, float(np.min(logs - exponents * value))))


def _cumulants(terms: list[Term]) -> tuple[Floats, Floats]:
    """Return exponents and the logarithm of the moment generating function there."""
    normal = terms[0][0].plan.budget.delta > 0
    smallest = min(sample.plan.n for sample, _, _ in terms)
    exponents = _exponents(smallest, max(s.plan.mean_scale for s, _, _ in terms), normal)
    logs = np.zeros_like(exponents)
    for sample, reach, variance in terms:
        n = sample.plan.n
        logs += n * _bennett(exponents / n, variance, reach)
        logs += _log_mgf(exponents * sample.plan.mean_scale, normal)
    return exponents, logs


def _bennett(exponents: Floats, variance: float, reach: float) -> Floats:
    """Return log E exp(λX) for the worst X <= reach with mean 0 and this variance: two values."""
    reach = max(reach, _SHORTEST)  # a larger reach has a larger bound
    rare = variance / (variance + reach**2)
    if rare == 0:
        return np.zeros_like(exponents)
    log: Floats = np.logaddexp(
        math.log(rare) + exponents * reach, math.log1p(-rare) - exponents * variance / reach
    )
    return log


def _log_mgf(scaled: Floats, normal: bool) -> Floats:
    """Return log E exp(λZ) of noise, ``scaled`` = λ times its scale; Laplace's needs λ < 1."""
    log: Floats = scaled**2 / 2 if normal else -np.log1p(-(scaled**2))
    return log


def _exponents(n: int, scale: float, normal: bool) -> Floats:
    """Return public exponents λ: below what the noise allows, and far beyond what is useful."""
    most = 100.0 * n if normal else min(100.0 * n, (1 - 1e-9) / scale)
    return np.geomspace(most * 1e-7, most, _POINTS)


def _slack(sample: Released) -> float:
    """Bound the rounding of a mean, and of a mean square, to the noise's grid and in summing."""
    plan, square = sample.plan, float(sample.mean[0]) ** 2
    grid = 2 * plan.rows_per_person / plan.n + plan.mean_scale + sample.second_scale
    return _GRID * grid + _ROUNDING * (1 + square + plan.variance)
