"""Tulap noise on integers: its law, and the one that fits a budget.

Proofs: docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.privacy import Budget

__all__ = ["LatticeTulap", "lattice_tulap", "tulap_cdf"]


def tulap_cdf(x: ArrayLike, epsilon: float) -> NDArray[np.float64]:
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
    result: NDArray[np.float64] = np.where(values <= 0, tail, 1 - tail)
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

    def survival(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return P(noise >= x), x in the units of the statistic."""
        # the law is symmetric: lower tails only, which keep their digits where they are small
        beyond = tulap_cdf(-np.asarray(x, dtype=np.float64) / self.width, self.epsilon)
        if self.edge is None:
            return beyond
        cut = float(tulap_cdf(-self.edge / self.width, self.epsilon))
        survival: NDArray[np.float64] = np.clip((beyond - cut) / (1 - 2 * cut), 0.0, 1.0)
        return survival

    def quantile(self, probability: ArrayLike) -> NDArray[np.float64]:
        """Return x with P(noise <= x) = ``probability``, which is above 0 and below 1."""
        given = np.asarray(probability, dtype=np.float64)
        if self.edge is not None:
            cut = float(tulap_cdf(-self.edge / self.width, self.epsilon))
            given = cut + given * (1 - 2 * cut)
        b, step = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        lower = np.minimum(given, 1 - given) * (1 + b)
        near = np.minimum(np.ceil(np.log(lower) / self.epsilon), 0.0)
        place = near - 0.5 + (lower * np.exp(-self.epsilon * near) - b) / step
        result: NDArray[np.float64] = self.width * np.where(given <= 0.5, place, -place)
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
