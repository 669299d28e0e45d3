"""A law under the null hypothesis, and the p-value of a noisy statistic by it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.laws.tulap import LatticeTulap, fold

__all__ = ["SMALLEST_PVALUE", "Law", "continuous_law", "pvalue"]

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


def continuous_law(points: Floats, survival: Floats, error: float) -> Law:
    """Build a law from its survival function at close points: the mass between two is halved."""
    survival = np.minimum.accumulate(np.clip(survival, 0.0, 1.0))
    cells = -np.diff(survival)
    masses = np.concatenate([[1 - survival[0]], cells / 2]) + np.concatenate(
        [cells / 2, survival[-1:]]
    )
    return Law(points, masses, error)
