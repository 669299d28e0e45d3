"""The regularised correlation of features and labels, and the statistic made of it.

Rows a_i = (h, psi_i), labels y_i of mean square 1, m = mean(y_i a_i), Lambda = mean(a_i a_i'):

    r = sqrt(m' (Lambda + gamma I)^-1 m)  in [0, 1)

One row moves r further the larger r is. S = G(r) undoes that, so that one bound is tight
everywhere. Raj et al. (2019) perturb N r² by a bound that is wrong; bounds and proofs here:
docs/proofs/embedding-tests.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.moments import Moments

__all__ = [
    "Scale",
    "correlation",
    "correlation_rounding",
    "paired_scale",
    "straightened",
    "two_sample_scale",
]

_UNIT_ROUNDOFF = 2.0**-53
_STRAIGHTENING_ERROR = 1e-12  # of G in floating point, relative to 1 + G
_NEWTON_STEPS = 12


@dataclass(frozen=True, slots=True)
class Scale:
    """The public constants of a straightened correlation.

    Attributes
    ----------
    constant : float
        h, the coordinate that all rows share; 0 for paired rows.
    ridge : float
        gamma.
    slant : float or None
        epsilon of G for rows with a constant; None is G for paired rows.
    stretch : float
        G is taken at stretch · r.
    sensitivity : float
        How far S moves when one row is replaced.
    """

    constant: float
    ridge: float
    slant: float | None
    stretch: float
    sensitivity: float


def two_sample_scale(n: int, m: int, *, radius: float, spread: float, condition: float) -> Scale:
    """Return the constants for two samples of sizes ``n`` and ``m``.

    Parameters
    ----------
    n, m : int
        Public sizes; labels are sqrt(m/n) on the first sample and -sqrt(n/m) on the second.
    radius, spread : float
        No feature vector is longer than ``radius``; no two are further apart than ``spread``.
    condition : float
        K: gamma = 2 radius²/K. Large K looks at every direction of the features alike, small K
        needs less noise.

    Notes
    -----
    **Sensitivity** With h = radius, U² = K/(2 radius²), e = radius - spread/2 the statistic
    S = G(U h r/Y) moves by at most spread · h U²/(N - M), M = spread U² (e + sqrt(h² + e²))/2.
    Proof: docs/proofs/embedding-tests.md. For spread = 2 radius this is K/(N - K/2).
    """
    total, apart = n + m, min(spread, 2 * radius)
    steepest = condition / (2 * radius**2)  # U²
    slack = max(radius - apart / 2, 0.0)
    slope = apart * steepest * (slack + math.hypot(radius, slack)) / 2
    if total <= 2 * slope:
        raise ValueError("condition is too large for so few rows")
    label = math.sqrt(max(n, m) / min(n, m))
    return Scale(
        constant=radius,
        ridge=1 / steepest,
        slant=slack / radius,
        stretch=math.sqrt(steepest) * radius / label,
        sensitivity=apart * radius * steepest / (total - slope),
    )


def paired_scale(n: int, *, reach: float, condition: float) -> Scale:
    """Return the constants for ``n`` paired rows, differences of norm at most ``reach``.

    Notes
    -----
    **Sensitivity** gamma = reach²/K; S = G(sqrt(K) r) moves by at most K/(n - K/2) when both
    halves of a pair are replaced. Proof: docs/proofs/embedding-tests.md.
    """
    if n <= condition:
        raise ValueError("condition is too large for so few rows")
    return Scale(
        constant=0.0,
        ridge=reach**2 / condition,
        slant=None,
        stretch=math.sqrt(condition),
        sensitivity=condition / (n - condition / 2),
    )


def correlation(
    products: NDArray[np.float64], pooled: Moments, scale: Scale
) -> NDArray[np.float64]:
    """Return r for each row of ``products``, the means of label · features.

    The mean label is 0 for two samples, so that the constant coordinate of m is 0 and enters
    through its part of Lambda only: with it eliminated the matrix that is left is
    M - h²/(h² + gamma) mean mean' + gamma I, which lies between gamma I and M + gamma I.
    """
    weight = scale.constant**2 / (scale.constant**2 + scale.ridge)
    matrix = pooled.second - weight * np.outer(pooled.mean, pooled.mean)
    matrix = (matrix + matrix.T) / 2 + scale.ridge * np.eye(len(matrix))
    lower = np.linalg.cholesky(matrix)
    whitened = np.linalg.solve(lower, products.T)
    lengths: NDArray[np.float64] = np.sqrt(np.sum(whitened**2, axis=0))
    return np.minimum(lengths, 1.0)


def correlation_rounding(
    dimension: int, scale: Scale, radius: float, errors: tuple[float, float, float]
) -> float:
    """Bound the rounding error of S, given those of products, mean and second moment (l2).

    r = |A^(-1/2) m| with A >= gamma I: an error of m adds at most its size/sqrt(gamma), one of
    A at most r |E|/gamma; the factorisation is exact for a matrix 8 dimension² u |A| away.
    """
    products, mean, second = errors
    matrix = second + 2.01 * radius * mean + mean**2
    matrix += 8 * (dimension + 2) ** 2 * _UNIT_ROUNDOFF * (radius**2 + scale.ridge)
    moved = products / math.sqrt(scale.ridge) + 1.01 * matrix / scale.ridge
    # G has slope at most 1 in stretch · r
    return scale.stretch * moved + _STRAIGHTENING_ERROR * (1 + scale.stretch)


def straightened(correlations: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    """Return S = G(stretch · r): increasing, 0 at 0, of slope at most 1.

    Examples
    --------
    >>> paired = Scale(0.0, 1.0, None, 1.0, 1.0)
    >>> straightened(np.array([2.0, 10.0]), paired).round(6).tolist()
    [0.977597, 3.091314]
    """
    at = scale.stretch * np.asarray(correlations, dtype=np.float64)
    if scale.slant is None:
        return _paired_curve(at)
    return _curve(at, scale.slant)


def _paired_curve(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """x/2 up to 1, then 1/2 + 2 [ln((x + 1)/2) + 1/(x + 1) - 1/2]."""
    far = np.maximum(x, 1.0)
    curve: NDArray[np.float64] = np.where(
        x <= 1, x / 2, 0.5 + 2 * (np.log((far + 1) / 2) + 1 / (far + 1) - 0.5)
    )
    return curve


def _curve(x: NDArray[np.float64], slant: float) -> NDArray[np.float64]:
    """G in its parameter k in [0, a), x = k sqrt(1 + k²)/(1 - 2 slant k - k²)."""
    root = math.hypot(1.0, slant)
    pole, other = 1 / (root + slant), root + slant  # 1 - 2 slant k - k² = (pole - k)(other + k)
    k = np.full_like(x, pole)
    for _ in range(_NEWTON_STEPS):  # increasing and convex in k: from above, it never overshoots
        root_k = np.sqrt(1 + k**2)
        value = k * root_k - x * (pole - k) * (other + k)
        k = k - value / ((1 + 2 * k**2) / root_k + 2 * x * (slant + k))
    k = np.clip(k, 0.0, pole)
    first, second = (1 - slant * pole) / (2 * root), (1 + slant * other) / (2 * root)
    shear = np.log1p(-slant * k) / slant if slant > 0 else -k
    logs = second * np.log1p(k / other) - first * np.log1p(-k / pole)
    curve: NDArray[np.float64] = 4 * logs + shear - 2 * k
    return curve
