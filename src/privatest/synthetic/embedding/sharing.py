"""Noise for all of a budget, or for what counts of atoms leave of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, Sensitivity, gaussian_scale
from privatest.mechanisms.additive import gaussian, gaussian_part, gaussian_part_scale

__all__ = ["with_rest"]

Floats = NDArray[np.float64]


def with_rest(
    values: Floats,
    *,
    sensitivity: Sensitivity,
    budget: Budget,
    share: Fraction | None,
    noise: NoiseSource,
) -> tuple[Floats, float]:
    """Add Gaussian noise for the share that atoms left, and return its standard deviation too.

    Notes
    -----
    **Sensitivity** As declared, in l2.

    **Privacy** Without a share (None), (epsilon, delta)-private by itself; with one, together
    with the counts of atoms.
    """
    known: dict[str, Any] = {"sensitivity": sensitivity, "budget": budget, "noise": noise}
    if share is None:
        return gaussian(values, **known), gaussian_scale(sensitivity.value, budget)
    scale = gaussian_part_scale(values.size, sensitivity, budget, share)
    return gaussian_part(values, share=share, **known), scale
