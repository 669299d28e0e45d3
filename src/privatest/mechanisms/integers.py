"""Integers with a bound in the l1 norm + Budget -> noisy integers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, Sensitivity
from privatest.core.validation import reject
from privatest.core.witness import meets, releases
from privatest.mechanisms.counts import CountNoise

__all__ = ["integer_noise", "noisy_integers"]

_LARGEST_SCALE = 2.0**56  # above, noise may leave the range of 64 bits


def integer_noise(sensitivity: Sensitivity, budget: Budget) -> CountNoise:
    """Return the law of the noise; public."""
    rounded = sensitivity.value / budget.pure_epsilon
    if rounded > _LARGEST_SCALE:
        reject("epsilon", "larger, or rows_per_person smaller", float(budget.epsilon))
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
    meets("discrete Laplace", values, "l1", (sensitivity.value,), law.scale)
    drawn = noise.discrete_laplaces(law.scale, values.size)
    # Python's integers: neither sum nor noise can wrap around
    noisy = [int(value) + int(error) for value, error in zip(values, drawn, strict=True)]
    return releases(np.array(noisy, dtype=np.float64))
