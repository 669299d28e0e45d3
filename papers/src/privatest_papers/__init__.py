"""Published methods as published, for comparison. They take simulated noise only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import DataError, PrivacyError
from privatest.core.noise import NoiseSource, SimulatedNoise

__all__ = ["finite_rows", "simulated"]


def simulated(noise: NoiseSource | None, instead: str) -> SimulatedNoise:
    """Return simulated noise, and refuse any other; ``instead`` names the private tests."""
    if not isinstance(noise, SimulatedNoise):
        raise PrivacyError(
            "noise must be SimulatedNoise(seed): this is the paper's test as published, kept for "
            f"comparison and not private here. For private data use {instead}."
        )
    return noise


def finite_rows(name: str, data: ArrayLike, fewest: int = 2) -> NDArray[np.float64]:
    """Return data as rows of finite numbers; a 1-D array is one column."""
    rows = np.asarray(data, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) < fewest or not np.isfinite(rows).all():
        raise DataError(f"{name} must have at least {fewest} rows of finite numbers.")
    return rows
