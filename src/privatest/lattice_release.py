"""An integer statistic and its law under the null hypothesis: noise, p-value, result.

The law is public, so that one noisy number is all that is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.mechanisms import lattice
from privatest.noise import NoiseSource
from privatest.nulls import LatticeTulap, fold, lattice_tulap
from privatest.privacy import Budget
from privatest.results import Outcome

__all__ = [
    "MECHANISMS",
    "Law",
    "Mechanism",
    "continuous_law",
    "noise_law",
    "pvalue",
    "release",
]

Mechanism = Literal["auto", "tulap", "laplace"]
MECHANISMS: tuple[str, ...] = get_args(Mechanism)

_TULAP_BELOW = 4.16  # epsilon at which Laplace noise starts to have the smaller variance
SMALLEST_PVALUE = 1e-12  # sums of floats are no finer than this

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A law that lies above that of a statistic: values, their masses, and an absolute error.

    Parameters
    ----------
    values, masses : ndarray
        P(T >= t) is at most the mass of values >= t, plus ``error``.
    error : float
        Bound on what the law is too low by, anywhere.
    """

    values: Floats
    masses: Floats
    error: float = 0.0


def pvalue(noisy: float, law: Law, noise: LatticeTulap, *, scale: float = 1.0) -> float:
    """Return P(scale · T + noise >= noisy), rounded up by the law's error; never 0."""
    folded = fold(noisy, law.values * scale, law.masses, noise) + law.error
    return min(1.0, max(folded, SMALLEST_PVALUE))


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


def continuous_law(points: Floats, survival: Floats, error: float) -> Law:
    """Build a law from its survival function at close points: the mass between two is halved."""
    survival = np.minimum.accumulate(np.clip(survival, 0.0, 1.0))
    cells = -np.diff(survival)
    masses = np.concatenate([[1 - survival[0]], cells / 2]) + np.concatenate(
        [cells / 2, survival[-1:]]
    )
    return Law(points, masses, error)
