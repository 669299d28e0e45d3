"""Several permutation tests, decided by one draw of noise.

A maximum of statistics needs noise for the movement of one member as observed and of another
when permuted. Tests that are kept apart need only what each of them needs alone, share the
draw of noise, and share the level. Decisions only. Proof: docs/proofs/smoothed-permutation-test.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome
from privatest.mechanisms.permutation import (
    PVALUE_GRID,
    on_steps,
    smoothed_pvalue,
    survival_mean,
)

__all__ = ["Share", "any_rejects", "shared_result", "two_sided_result"]


@dataclass(frozen=True, slots=True)
class Share:
    """One test: its statistics, the observed one first, and its share of the level."""

    statistics: NDArray[np.float64]
    sensitivity: PermutationSensitivity
    share: Fraction


def any_rejects(
    tests: Sequence[Share], alpha: float, *, budget: Budget, noise: NoiseSource
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
    tests: Sequence[Share],
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
