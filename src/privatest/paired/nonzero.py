"""How many differences a paired test counts: about as many as are not 0.

A zero says nothing about the direction of a change. Dropped, it changes the size of the sample,
which the law needs. So the number of differences other than 0 is released, with noise; so many
differences count, zeros with coins if there are too few others. Whatever the noise, the law of
signs and of signed ranks is that of so many fair signs. Proof: docs/proofs/rank-tests.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.laws.law import Alternative, Law
from privatest.laws.ties import sure_ties, tie_reach
from privatest.laws.tulap import LatticeTulap
from privatest.mechanisms.lattice import (
    laplace_law,
    lattice_pvalue,
    noise_law,
    noisy_integer,
    part_law,
)
from privatest.statistics.ranks import tie_cubes_width

__all__ = [
    "PairedShares",
    "counted_of",
    "fewest_ties",
    "release_sided",
    "shown_statistic",
    "spent_facts",
    "ties_reach",
]

_NONZERO, _TIES = 0.1, 0.05  # of epsilon
_FEW = 12.0  # n epsilon² below which noise hides more than coins do
_MANY = 2500.0  # n epsilon² from which on ties matter more than noise
_BELOW = 1 - 1e-12  # parts are rounded down, so that they never sum to more than epsilon


@dataclass(frozen=True, slots=True)
class PairedShares:
    """How a budget is divided; public.

    Attributes
    ----------
    budget : Budget
        All of it.
    nonzero, ties : float
        Parts of epsilon for the number of differences other than 0, and for ties; 0 if left out.
    rest : float
        What is left for the statistic.
    rows_per_person : int
        How many rows one person may have.
    """

    budget: Budget
    nonzero: float
    ties: float
    rest: float
    rows_per_person: int

    @classmethod
    def of(cls, n: int, rows_per_person: int, budget: Budget, *, ranks: bool) -> PairedShares:
        """Divide by public numbers only; ties are asked for where ``ranks`` are."""
        epsilon = budget.pure_epsilon * _BELOW
        size = n * (epsilon / rows_per_person) ** 2
        nonzero = _NONZERO if size >= _FEW else 0.0
        ties = _TIES if ranks and size >= _MANY else 0.0
        rest = (1 - nonzero - ties) * epsilon
        return cls(budget, nonzero * epsilon, ties * epsilon, rest, rows_per_person)

    @classmethod
    def whole(cls, budget: Budget, rows_per_person: int) -> PairedShares:
        """Spend all on the statistic."""
        return cls(budget, 0.0, 0.0, budget.pure_epsilon, rows_per_person)

    def noise(self, width: int, step: int) -> LatticeTulap:
        """Return the noise of a statistic that one row moves by at most ``width``."""
        width *= self.rows_per_person
        if not self.nonzero:
            return noise_law(width, self.budget, "auto", step=step)
        return part_law(width, self.rest)

    def ties_noise(self, width: int) -> LatticeTulap:
        """Return the noise of a number of ties that one row moves by at most ``width``."""
        return laplace_law(width * self.rows_per_person, self.ties)


def counted_of(
    nonzero: int, n: int, shares: PairedShares, noise: NoiseSource, *, ranks: bool
) -> tuple[int | None, int]:
    """Release the number of differences other than 0, and return it with how many count.

    Parameters
    ----------
    nonzero : int
        The private number.
    n : int
        Number of differences; all count if nothing is spent on ``nonzero``.
    shares : PairedShares
        What is spent.
    noise : NoiseSource
        The secret randomness.
    ranks : bool
        Whether ranks are tested. Some more count than the released number: a zero that counts costs
        less power than another difference that does not, and lifts ranks above their noise.

    Notes
    -----
    **Sensitivity** 1, times the rows of a person.

    **Privacy** Discrete Laplace noise, ``shares.nonzero``-private.
    """
    if not shares.nonzero:
        return None, n
    law = laplace_law(shares.rows_per_person, shares.nonzero)
    found = round(noisy_integer(nonzero, law=law, noise=noise))
    estimate = min(max(found, 0), n)
    more = shares.rows_per_person / shares.nonzero
    if ranks:  # the noise on ranks is as large as chance for 24/epsilon² differences
        more = 2 * more + min(24 * (shares.rows_per_person / shares.rest) ** 2, 2.0 * estimate)
    return estimate, min(max(found + round(more), 0), n)


def ties_reach(n: int, shares: PairedShares) -> float:
    """Return how many scales of its noise a number of ties must be to be beyond doubt."""
    return tie_reach(n * shares.budget.pure_epsilon / shares.rows_per_person)


def fewest_ties(
    cubes: int, counted: int, shares: PairedShares, n: int, noise: NoiseSource
) -> float:
    """Release the ties, and return how many there are hardly too many of.

    They are counted in multiples of ``counted``, and what is left over is dropped: that moves the
    number by less than 1 more.
    """
    unit = max(counted, 1)
    law = shares.ties_noise(tie_cubes_width(unit) // unit + 1)
    noisy = round(noisy_integer(cubes // unit, law=law, noise=noise))
    return unit * sure_ties(noisy, 1 / law.epsilon, ties_reach(n, shares))


def release_sided(
    value: int, law: Law, noise_law: LatticeTulap, alternative: Alternative, noise: NoiseSource
) -> tuple[float, float]:
    """Release a value, its negative or its absolute value, and return it with its p-value."""
    sided = {"two-sided": abs(value), "greater": value, "less": -value}[alternative]
    noisy = noisy_integer(sided, law=noise_law, noise=noise)
    return lattice_pvalue(law, noisy, noise_law, alternative)


def shown_statistic(
    noisy: float, unit: int, total: int, alternative: Alternative, named: str
) -> dict[str, Any]:
    """Return the statistic that people know: S, or the smaller of S and total/(unit/2) - S."""
    if alternative == "two-sided":
        return {"statistic": (total - noisy) / unit, "statistic_name": named}
    sign = -1 if alternative == "less" else 1
    return {"statistic": (sign * noisy + total) / unit}


def spent_facts(
    budget: Budget, alpha: float, nonzero: int | None, counted: int, noise: NoiseSource
) -> dict[str, Any]:
    """Return the level, what was spent, and how many differences count."""
    released = {} if nonzero is None else {"nonzero": nonzero, "counted": counted}
    return {
        "alpha": alpha,
        "spent": budget,
        "simulated": noise.simulated,
        "estimates": released,
    }
