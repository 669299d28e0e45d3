"""Scores of candidates + Budget -> one candidate, by the exponential mechanism on integers.

Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Budget

__all__ = ["select_candidate", "selection_weights"]

_BITS = 48  # the weight of a candidate with score 0, before its multiplicity, is about 2^48
_HALF = 24  # sums of weights are kept in two parts
_MASK = (1 << _HALF) - 1
_DRAWN = 192  # bits of the uniform number: what they leave out is below what the constant adds

Integers = NDArray[np.int64]


def selection_weights(scores: Integers, *, sensitivity: int, epsilon: float) -> Integers:
    """Return integer weights that change by a factor of at most exp(epsilon/2) between neighbours.

    A score v of 0 or more has weight 2^48 exp(-epsilon v/(2 sensitivity)), rounded, plus a
    constant that pays for the rounding.
    """
    exponents = np.maximum(-(0.5 * epsilon / sensitivity) * scores, -700.0)
    rounded = np.rint(np.ldexp(np.exp(exponents), _BITS)).astype(np.int64)
    # numbers that are off by at most 1 keep the ratio r = e^(epsilon/2) if (r + 1)/(r - 1) is added
    constant = math.ceil(1 / math.tanh(epsilon / 4) * (1 + 1e-9)) + 1
    weights: Integers = rounded + constant
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

    **Privacy** The index, and nothing else, is (epsilon, delta)-private: a uniform number of 192
    bits chooses among integer weights, so no float is rounded after the weights are made.
    """
    epsilon = budget.pure_epsilon
    repeat = partial(
        select_candidate,
        scores=scores,
        multiplicities=multiplicities,
        sensitivity=sensitivity,
        budget=budget,
    )
    scale = sensitivity / epsilon
    record(noise, "exponential", scores, "linf", (float(sensitivity),), scale, repeat)
    weights = selection_weights(scores, sensitivity=sensitivity, epsilon=epsilon)
    high = np.cumsum((weights >> _HALF) * multiplicities)
    low = np.cumsum((weights & _MASK) * multiplicities)

    def below(candidate: int) -> int:
        """Return the weight of all candidates up to this one."""
        return (int(high[candidate]) << _HALF) + int(low[candidate])

    # a limit that is public, so that nothing about the weights shows in how the number is drawn
    drawn = noise.below(1 << _DRAWN) * below(len(scores) - 1) >> _DRAWN
    return released(noise, bisect_right(range(len(scores)), drawn, key=below))
