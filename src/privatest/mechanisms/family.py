"""The largest of a family of statistics, at about the noise of one of them.

Proofs: docs/proofs/portfolio.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.kernels.kernels import UNIT_ROUNDOFF
from privatest.mechanisms.permutation import Release, noise_scale
from privatest.statistics.pooled import PooledVariances

__all__ = ["NullLaw", "strongest"]

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
