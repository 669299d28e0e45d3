"""A number of successes with noise: its tail, and the share of successes that fits it.

K is binomial(n, share) and the noise is continuous, so Z = K + noise has a continuous law whose
tail P(Z >= z) grows strictly with the share. An interval for the share is found by inversion,
without approximation. Proof: docs/proofs/proportions.md.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.laws.counts import binomial_masses
from privatest.laws.tulap import LatticeTulap

__all__ = [
    "NO_NOISE",
    "Survival",
    "noisy_tail",
    "open_end",
    "open_interval",
    "share_interval",
    "tulap_variance",
]

NO_NOISE = LatticeTulap(1, 500.0)  # a count spread evenly over its unit, and no noise else
_PRECISE = 1e-12  # of an angle


class Survival(Protocol):
    """Noise of which the tail is known."""

    def survival(self, x: ArrayLike, /) -> NDArray[np.float64]:
        """Return P(noise >= x)."""


def noisy_tail(n: int, share: float, noisy: float, noise: Survival) -> float:
    """Return P(K + noise >= ``noisy``), K binomial(n, share)."""
    counts, masses = binomial_masses(n, share)
    return float(np.sum(masses * noise.survival(noisy - counts)))


def share_interval(
    n: int, noisy: float, noise: Survival, below: float, above: float
) -> tuple[float, float]:
    """Return the shares that fit a noisy count.

    Parameters
    ----------
    n : int
        Number of rows.
    noisy : float
        The noisy number of successes.
    noise : Survival
        Its noise.
    below, above : float
        Probability with which the lower end is above the true share, and the upper end below;
        0 leaves an end open.

    Returns
    -------
    tuple of float
        Ends in [0, 1]. A count far beyond 0 or n, which noise alone can bring about, gives
        both ends there: the interval is never empty.
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
