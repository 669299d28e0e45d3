"""Subsample and aggregate: run a test on disjoint subsets and hide how many of them reject.

A replaced row lies in one subset, so it changes one rejection, whatever the test is. The test
of tests (Kazan et al. 2023) adds Tulap noise to the number of rejections. SARRM (Peña and
Barrientos 2022) flips each rejection with a small probability and takes the majority.
Proofs: docs/proofs/subsample.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Adjacency
from privatest.core.validation import number

COIN = 1 << 53  # a decision is flipped with probability flips/COIN, exactly
LEAST_SUB_ALPHA = 0.0025  # of SARRM's sub-tests, as in Peña and Barrientos
MOST_SUB_ALPHA = 0.4  # that may be required: 1/2 is never reached


def rejections_width(n_subsets: int, adjacency: Adjacency, rows_per_person: int = 1) -> int:
    """How far the number of rejecting subsets moves.

    Notes
    -----
    **Sensitivity** A row lies in one subset: 1 for "one" and for pairs, 2 for "both",
    times the rows a person may have, and never more than the number of subsets.
    """
    rows = rows_per_person * (2 if adjacency == "both" else 1)
    return min(rows, n_subsets)


# --- SARRM -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SarrmParameters:
    """Parameters of SARRM, all public.

    Parameters
    ----------
    k : int
        2k + 1 subsets; the test rejects if more than k of them do after flipping.
    flips : int
        A sub-test's decision is flipped with probability flips/2^53.
    sub_alpha : float
        Level of the sub-tests.
    """

    k: int
    flips: int
    sub_alpha: float

    @property
    def n_subsets(self) -> int:
        """Number of subsets."""
        return 2 * self.k + 1

    @property
    def truth(self) -> float:
        """Probability that a decision is not flipped."""
        return 1 - self.flips / COIN


def sarrm_loss(k: int, flip: float) -> float:
    """Privacy loss of SARRM: the largest log ratio of its decision between neighbours.

    Equation (24) of Kim and Schrab (2023), log P(B1 > k)/P(B0 > k), without its tails, which
    underflow: log(1 + (1-2r)/(r + h)) with r = ``flip`` and h = P(W > k)/P(W = k), W binomial
    (2k, r), a sum of positive terms. What is cut off its end makes the loss larger.
    """
    terms = np.arange(1, min(k, 8 * math.isqrt(k) + 64) + 1)
    odds = flip / (1 - flip)
    tail = float(np.cumprod((k - terms + 1) / (k + terms) * odds).sum())
    return math.log1p((1 - 2 * flip) / (flip + tail))


def sarrm_parameters(
    epsilon: float, alpha: float, least: float = LEAST_SUB_ALPHA, k: int | None = None
) -> SarrmParameters:
    """Return the smallest k, or the given one, whose sub-tests have at least level ``least``.

    Bisection is right: up to alpha = 1/2 the level of the sub-tests grows with k, and above it
    is at least 1/2 for every k.

    Examples
    --------
    >>> found = sarrm_parameters(1.0, 0.05)
    >>> found.k, round(found.truth, 6), round(found.sub_alpha, 6)
    (3, 0.816324, 0.065827)
    """
    if k is not None:
        return _sarrm(k, epsilon, alpha)
    number("least", least, above=0, below=MOST_SUB_ALPHA)
    low, high = 0, 1
    while _sarrm(high, epsilon, alpha).sub_alpha < least:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _sarrm(middle, epsilon, alpha).sub_alpha < least:
            low = middle
        else:
            high = middle
    return _sarrm(high, epsilon, alpha)


@lru_cache(maxsize=256)
def _sarrm(k: int, epsilon: float, alpha: float) -> SarrmParameters:
    from scipy.special import betaincinv  # noqa: PLC0415 -- not needed to import privatest

    # The rarest flip that is private, on the coin's grid; 1e-9 covers rounding in the loss.
    low, high = 0, COIN // 2
    while high - low > 1:
        middle = (low + high) // 2
        if sarrm_loss(k, middle / COIN) * (1 + 1e-9) <= epsilon:
            high = middle
        else:
            low = middle
    flip = high / COIN
    # P(Bin(2k+1, q) > k) = alpha, with the regularised incomplete beta function; rounded down
    majority = float(betaincinv(k + 1.0, k + 1.0, alpha)) * (1 - 1e-10)
    truthful = 1 - 2 * flip
    level = (majority - flip) / truthful if truthful > 0 else -math.inf
    return SarrmParameters(k, high, min(level, 1.0))


def sarrm_rejects(
    rejections: Sequence[bool], parameters: SarrmParameters, noise: NoiseSource
) -> bool:
    """Release the majority of the sub-tests' rejections, each flipped with a small probability.

    Notes
    -----
    **Sensitivity** One rejection changes: a row lies in one subset.

    **Privacy** The decision, and nothing else, costs ``sarrm_loss(k, flips/2^53)``. A coin is a
    uniform integer below 2^53 compared with ``flips``: its probability is exact.
    """
    if len(rejections) != parameters.n_subsets:
        raise ParameterError("rejections must be as many as there are subsets; nothing was drawn.")
    repeat = partial(sarrm_rejects, rejections=rejections, parameters=parameters)
    record(noise, "flipped coins", rejections, "l1", (1.0,), parameters.flips, repeat)
    # every coin is tossed, whatever the rejections are
    flipped = [noise.below(COIN) < parameters.flips for _ in rejections]
    flips = zip(rejections, flipped, strict=True)
    return released(noise, sum(a != b for a, b in flips) > parameters.k)
