"""Counts of people in cells + Budget -> noisy counts.

A replaced row leaves one cell and enters another, so a table moves by 2 in the l1 norm and by
sqrt(2) in the l2 norm, however many cells it has. Proof: docs/proofs/counts.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Budget, Sensitivity
from privatest.core.validation import one_of, reject
from privatest.mechanisms.additive import gaussian, gaussian_noise_scale

__all__ = [
    "COUNT_MECHANISMS",
    "CountMechanism",
    "CountNoise",
    "count_noise",
    "noisy_counts",
    "with_noise",
]

_LARGEST_COUNT, _LARGEST_SUM, _LARGEST_DRAW = 1 << 60, 1 << 61, 1 << 62

CountMechanism = Literal["auto", "laplace", "gaussian"]
COUNT_MECHANISMS: tuple[str, ...] = get_args(CountMechanism)


@dataclass(frozen=True, slots=True)
class CountNoise:
    """The noise of each cell; public.

    Attributes
    ----------
    kind : {"laplace", "gaussian"}
        Discrete Laplace on integers, or Gaussian.
    scale : float
        P(j) is proportional to exp(-abs(j)/scale), or the standard deviation.
    """

    kind: Literal["laplace", "gaussian"]
    scale: float

    @property
    def variance(self) -> float:
        """Variance of a cell's noise."""
        if self.kind == "gaussian":
            return self.scale**2
        return 2 * math.exp(-1 / self.scale) / math.expm1(-1 / self.scale) ** 2

    def draws(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return simulated noise from public randomness, for laws under a null hypothesis."""
        if self.kind == "gaussian":
            return rng.normal(scale=self.scale, size=shape)
        success = -math.expm1(-1 / self.scale)
        first, second = rng.geometric(success, size=(2, *shape))
        return np.asarray(first - second, dtype=np.float64)


def count_noise(
    size: int, budget: Budget, mechanism: CountMechanism = "auto", *, rows_per_person: int = 1
) -> CountNoise:
    """Choose the noise for a table of ``size`` cells; by public numbers only.

    Parameters
    ----------
    size : int
        Number of cells.
    budget : Budget
        Gaussian noise needs delta > 0.
    mechanism : {"auto", "laplace", "gaussian"}
        "auto" takes the smaller variance: nearly always Laplace, as one row moves two cells only.
    rows_per_person : int
        How many rows a person may have.
    """
    one_of("mechanism", mechanism, COUNT_MECHANISMS)
    if mechanism == "gaussian" and budget.delta == 0:
        reject("delta", "above 0 for Gaussian noise", float(budget.delta))
    scale = math.nextafter(2 * rows_per_person / budget.pure_epsilon, math.inf)
    laplace = CountNoise("laplace", scale)
    if mechanism == "laplace" or budget.delta == 0:
        return laplace
    widened = gaussian_noise_scale(size, _l2(rows_per_person), budget)
    normal = CountNoise("gaussian", widened)
    return normal if mechanism == "gaussian" or normal.variance < laplace.variance else laplace


def noisy_counts(
    counts: NDArray[np.int64],
    *,
    law: CountNoise,
    budget: Budget,
    rows_per_person: int = 1,
    noise: NoiseSource,
) -> NDArray[np.float64]:
    """Add noise to each cell of a table.

    Parameters
    ----------
    counts : ndarray of int
        The private table, any shape, whose total is public.
    law : CountNoise
        From :func:`count_noise`, with the same budget and rows per person.
    budget, rows_per_person
        What is spent, and how many rows a person may have.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** 2 rows_per_person in the l1 norm, sqrt(2) rows_per_person in the l2 norm:
    each replaced row moves one cell down by 1 and another up.

    **Privacy** The noisy table is (epsilon, delta)-private: exact discrete Laplace noise on
    integers, or the analytic Gaussian mechanism. Proof: docs/proofs/counts.md.
    """
    if law.kind == "gaussian":
        values = counts.astype(np.float64)
        return gaussian(values, sensitivity=_l2(rows_per_person), budget=budget, noise=noise)
    repeat = partial(
        noisy_counts, counts=counts, law=law, budget=budget, rows_per_person=rows_per_person
    )
    record(noise, "discrete Laplace", counts, "l1", (2.0 * rows_per_person,), law.scale, repeat)
    drawn = noise.discrete_laplaces(law.scale, counts.size).reshape(counts.shape)
    return released(noise, with_noise(counts, drawn))


def with_noise(counts: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return counts + noise cut at ±2^61, added as integers of 64 bits that cannot overflow.

    Notes
    -----
    **Privacy** A draw beyond ±2^62, saturated or not, puts the sum beyond ±2^61 whatever the count
    is, so what comes out is a function of the exact sum: docs/proofs/noise.md.
    """
    near = np.clip(counts, -_LARGEST_COUNT, _LARGEST_COUNT)
    total = near + np.clip(drawn, -_LARGEST_DRAW, _LARGEST_DRAW)
    cut: NDArray[np.float64] = np.clip(total, -_LARGEST_SUM, _LARGEST_SUM).astype(np.float64)
    return cut


def _l2(rows_per_person: int) -> Sensitivity:
    # k rows that leave one cell for another: k sqrt(2), the furthest they can go together
    return Sensitivity(rows_per_person * math.sqrt(2) * (1 + 1e-15), "l2")
