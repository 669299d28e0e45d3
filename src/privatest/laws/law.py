"""The law of a statistic under the null hypothesis, and p-values of its noisy value.

The law of a statistic does not depend on epsilon, and that of the noise is known, so a p-value
is a sum: p(z) = sum over values t of P(T = t) · P(noise >= z - t). Nothing is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.laws.tulap import LatticeTulap

__all__ = ["ALTERNATIVES", "ROUNDING", "Alternative", "Law", "continuous_law", "simulated_law"]

Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES: tuple[str, ...] = get_args(Alternative)
ROUNDING = 1e-12  # sums of floats are no finer than this

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A law on cells: with probability ``masses[i]`` the statistic is in [low[i], values[i]].

    Parameters
    ----------
    values, masses : ndarray
        P(T >= t) is at most the mass of values >= t, plus ``error``.
    error : float
        At most this much probability is misplaced; it is added to p-values.
    low : ndarray, optional
        Lower ends of the cells, for alternatives other than "greater"; by default each cell is
        one value.
    proved : bool
        Whether ``error`` is a proved bound, up to the arithmetic; otherwise it is measured.
    """

    values: Floats
    masses: Floats
    error: float = ROUNDING
    low: Floats = None  # type: ignore[assignment]
    proved: bool = True

    def __post_init__(self) -> None:
        """Cells are single values unless said otherwise."""
        if self.low is None:
            object.__setattr__(self, "low", self.values)

    def scaled(self, factor: float, shift: float = 0.0) -> Law:
        """Return the law of ``factor`` (above 0) times the statistic, plus ``shift``."""
        low, high = (factor * ends + shift for ends in (self.low, self.values))
        return Law(high, self.masses, self.error, low, self.proved)

    def pvalue(
        self, noisy: float, noise: LatticeTulap, alternative: Alternative = "greater"
    ) -> float:
        """Return P(S + noise >= ``noisy``), rounded up; never 0.

        S is the statistic T ("greater"), -T ("less") or |T| ("two-sided").
        """
        if alternative == "two-sided":
            values = np.maximum(np.abs(self.low), np.abs(self.values))
        else:
            values = self.values if alternative == "greater" else -self.low
        # not a dot product: for so few numbers threads of BLAS cost more than they save
        tail = float(np.sum(self.masses * noise.survival(noisy - values)))
        return min(1.0, tail + max(self.error, ROUNDING))


def continuous_law(points: Floats, survival: Floats, error: float, *, proved: bool = True) -> Law:
    """Build a law from its survival function at close points: the mass between two is halved."""
    survival = np.minimum.accumulate(np.clip(survival, 0.0, 1.0))
    cells = -np.diff(survival)
    masses = np.concatenate([[1 - survival[0]], cells / 2]) + np.concatenate(
        [cells / 2, survival[-1:]]
    )
    return Law(points, masses, error, proved=proved)


def simulated_law(draws: Floats, *, proved: bool = True) -> Law:
    """Build a law from B independent draws: p-values are (1 + sum of P(draw + noise >= z))/(B + 1).

    They are valid for every B. Given all B + 1 statistics and not which one is that of the data, z
    has the survival function G(z), the mean of P(statistic + noise >= z) over them. So G(z) is
    uniform, and the p-value is at least G(z). ``proved`` says whether the draws have the law of the
    statistic.
    """
    share = 1 / (draws.size + 1)
    return Law(draws, np.full(draws.size, share), share + ROUNDING, proved=proved)
