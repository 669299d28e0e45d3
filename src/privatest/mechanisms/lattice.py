"""An integer statistic and its law under the null hypothesis: noise, p-value, result.

The law is public, so that one noisy number is all that is released.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.core.results import Outcome
from privatest.laws.law import Law, pvalue
from privatest.laws.tulap import LatticeTulap, lattice_tulap
from privatest.mechanisms.additive import lattice

__all__ = [
    "MECHANISMS",
    "Mechanism",
    "noise_law",
    "release",
]

Mechanism = Literal["auto", "tulap", "laplace"]
MECHANISMS: tuple[str, ...] = get_args(Mechanism)

_TULAP_BELOW = 4.16  # epsilon at which Laplace noise starts to have the smaller variance


def noise_law(
    width: int, budget: Budget, mechanism: Mechanism, *, coarse: bool = False
) -> LatticeTulap:
    """Choose the noise for an integer that moves by at most ``width``.

    Parameters
    ----------
    width : int
        The sensitivity.
    budget : Budget
        Tulap noise is cut off if delta > 0; Laplace noise is a little smaller then.
    mechanism : {"auto", "tulap", "laplace"}
        Laplace noise is discrete Laplace on all integers: Tulap of width 1, epsilon / width.
    coarse : bool
        Whether the statistic takes few values, as far apart as the noise is wide; then Tulap
        is the better one at every epsilon.
    """
    epsilon, delta = budget.as_floats
    if mechanism == "auto":
        mechanism = "tulap" if coarse or delta > 0 or epsilon < _TULAP_BELOW else "laplace"
    if mechanism == "tulap":
        return lattice_tulap(width, budget)
    return LatticeTulap(1, math.nextafter(budget.pure_epsilon / width, 0.0))


def release(
    value: int,
    law: Law,
    *,
    noise_law: LatticeTulap,
    scale: float = 1.0,
    unit: float,
    budget: Budget,
    alpha: float,
    noise: NoiseSource,
    facts: dict[str, Any],
) -> Outcome:
    """Release an integer statistic and the p-value that follows from it.

    Parameters
    ----------
    value : int
        The private statistic.
    law : Law
        Its law under the null hypothesis, times ``scale``.
    noise_law : LatticeTulap
        From :func:`noise_law`.
    unit : float
        What the statistic is divided by for people.
    budget, alpha, noise, facts
        What is spent, the level, the secret randomness, the public fields of the result.

    Notes
    -----
    **Sensitivity** The width that ``noise_law`` was made for.

    **Privacy** One number is released; its p-value needs nothing else that is private.
    """
    noisy = lattice(value, law=noise_law, noise=noise)
    p = pvalue(noisy, law, noise_law, scale=scale)
    shared: dict[str, Any] = {"alpha": alpha, "spent": budget, "simulated": noise.simulated}
    return Outcome(reject=p <= alpha, pvalue=p, statistic=noisy / unit, **shared, **facts)
