"""Integers with a bound in the l1 norm + Budget -> noisy integers."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Budget, Sensitivity
from privatest.mechanisms.counts import CountNoise, with_noise

__all__ = ["integer_noise", "noisy_integers"]


def integer_noise(sensitivity: Sensitivity, budget: Budget) -> CountNoise:
    """Return the law of the noise; public."""
    rounded = sensitivity.value / budget.pure_epsilon
    return CountNoise("laplace", math.nextafter(rounded, math.inf))


def noisy_integers(
    values: NDArray[np.int64], *, sensitivity: Sensitivity, budget: Budget, noise: NoiseSource
) -> NDArray[np.float64]:
    """Add discrete Laplace noise to each integer.

    Notes
    -----
    **Sensitivity** The bound in the l1 norm that is passed, a whole number.

    **Privacy** epsilon, by exact discrete Laplace noise of scale sensitivity/epsilon on integers.
    Proof: docs/proofs/conditional.md.
    """
    law = integer_noise(sensitivity, budget)
    repeat = partial(noisy_integers, values=values, sensitivity=sensitivity, budget=budget)
    record(noise, "discrete Laplace", values, "l1", (sensitivity.value,), law.scale, repeat)
    drawn = noise.discrete_laplaces(law.scale, values.size)
    return released(noise, with_noise(values, drawn))
