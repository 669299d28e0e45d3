"""Alternatives that power is measured on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def bump(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """P of Kim and Schrab (2023), section 6.2: up on (0, 1/2), down on (1/2, 1)."""
    with np.errstate(divide="ignore", over="ignore"):
        rise = np.exp(1 - 1 / np.maximum(1 - (4 * x - 1) ** 2, 1e-300)) * (x < 0.5)
        fall = np.exp(1 - 1 / np.maximum(1 - (4 * x - 3) ** 2, 1e-300)) * (x > 0.5)
    result: NDArray[np.float64] = rise - fall
    return result


def perturbed_uniform(
    size: int,
    dimension: int,
    amplitude: float,
    rng: np.random.Generator,
    bumps: int = 1,
) -> NDArray[np.float64]:
    """Rows with density 1 + amplitude · prod_j P(bumps · x_j mod 1) on the unit cube."""
    rows = np.empty((0, dimension))
    while len(rows) < size:
        proposed = rng.uniform(size=(2 * size + 16, dimension))
        density = 1 + amplitude * np.prod(bump(bumps * proposed % 1), axis=1)
        rows = np.vstack([rows, proposed[rng.uniform(0, 1 + amplitude, len(density)) < density]])
    return rows[:size]
