"""Scores of candidates + Budget -> one candidate, by the exponential mechanism on integers.

Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.core.witness import meets, releases

__all__ = ["select_candidate", "selection_weights"]

_BITS = 36  # the weight of a candidate with score 0, before its multiplicity, is about 2^36
_LARGEST_TOTAL = 1 << 62

Integers = NDArray[np.int64]


def selection_weights(
    scores: Integers, multiplicities: Integers, *, sensitivity: int, epsilon: float
) -> Integers:
    """Return integer weights that change by a factor of at most exp(epsilon/2) between neighbours.

    A score v of 0 or more has weight 2^36 exp(-epsilon v/(2 sensitivity)), rounded, plus a
    constant that pays for the rounding, times the multiplicity of the candidate.
    """
    # float exponents are wrong by less than 1e-13 of a weight where it is not rounded to 0
    exponents = np.maximum(-(0.5 * epsilon / sensitivity) * scores, -700.0)
    rounded = np.rint(math.ldexp(1.0, _BITS) * np.exp(exponents)).astype(np.int64)
    # weights rounded by at most 1 keep the ratio r = exp(epsilon/2) from (r + 1)/(r - 1) on
    constant = math.ceil(1 / math.tanh(epsilon / 4) * (1 + 1e-9)) + 1
    largest = (1 << _BITS) + constant
    if largest * int(multiplicities.sum()) >= _LARGEST_TOTAL:
        raise AssertionError("weights must add up to less than 2^62")
    weights: Integers = (rounded + constant) * multiplicities
    return weights


def select_candidate(
    scores: Integers,
    multiplicities: Integers,
    *,
    sensitivity: int,
    budget: Budget,
    noise: NoiseSource,
) -> int:
    """Return the index of a candidate with a low score (McSherry and Talwar's mechanism).

    Parameters
    ----------
    scores : ndarray of int
        The private scores, 0 or more; the lowest is the best.
    multiplicities : ndarray of int
        Public: as how many candidates each of them counts.
    sensitivity : int
        The most by which any score moves between neighbours.
    budget : Budget
        With delta > 0 the choice is a little better.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, of each score; all of them may move at once, in either direction.

    **Privacy** The index, and nothing else, is (epsilon, delta)-private: a uniform integer below
    the sum of integer weights chooses, so no float is rounded after the weights are made.
    """
    epsilon = budget.pure_epsilon
    meets("exponential", scores, "linf", (float(sensitivity),), sensitivity / epsilon)
    weights = selection_weights(scores, multiplicities, sensitivity=sensitivity, epsilon=epsilon)
    sums = np.cumsum(weights)
    drawn = noise.below(int(sums[-1]))
    return releases(int(np.searchsorted(sums, drawn, side="right")))
