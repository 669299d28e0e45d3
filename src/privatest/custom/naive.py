"""Composition over all B + 1 statistics: private whole, and weak. For comparison only."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, PermutationSensitivity, Sensitivity
from privatest.core.results import Decision, Outcome
from privatest.custom.space import Rows
from privatest.mechanisms.additive import laplace
from privatest.mechanisms.permutation import Release

__all__ = ["naive_result"]


def naive_result(
    statistics: Rows,
    *,
    sensitivity: PermutationSensitivity,
    budget: Budget,
    alpha: float,
    release: Release,
    noise: NoiseSource,
    facts: Mapping[str, Any],
) -> Decision:
    """Add noise to every statistic and rank the observed one.

    Notes
    -----
    **Sensitivity** The vector of statistics moves by at most observed + B permuted in l1.

    **Privacy** All noisy statistics together are (epsilon, delta)-private, and so is what is
    computed from them: any p-value or decision. Proof: docs/proofs/custom-statistics.md.
    """
    total = sensitivity.observed + (len(statistics) - 1) * sensitivity.permuted
    bound = Sensitivity(total, "l1", facts["adjacency"])
    noisy = [
        laplace(float(value), sensitivity=bound, budget=budget, noise=noise) for value in statistics
    ]
    rank = Fraction(sum(value >= noisy[0] for value in noisy), len(noisy))
    shared: dict[str, Any] = {"alpha": alpha, "spent": budget, "simulated": noise.simulated}
    shared |= facts
    shared["reject"] = rank <= Fraction(Decimal(repr(alpha)))
    return Decision(**shared) if release == "decision" else Outcome(pvalue=float(rank), **shared)
