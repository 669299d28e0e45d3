"""Five moments of two columns in [-1, 1]: what correlation and slope are made of.

x, y, 2x² - 1, xy and 2y² - 1 all lie in [-1, 1], so one row moves each mean by at most 2/n, all
five at once: noise for the l-infinity norm suits them. Proof: docs/proofs/correlation.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.moments import BLOCK

__all__ = ["line_moments", "line_sensitivity"]

_UNIT_ROUNDOFF = 2.0**-53

Floats = NDArray[np.float64]


def line_moments(x: Floats, y: Floats) -> Floats:
    """Return the means of x, y, 2x² - 1, xy and 2y² - 1; x and y lie in [-1, 1].

    Examples
    --------
    >>> line_moments(np.array([0.0, 1.0]), np.array([1.0, -1.0])).tolist()
    [0.5, 0.0, 0.0, -0.5, 1.0]
    """
    total = np.zeros(5)
    for start in range(0, len(x), BLOCK):
        u, v = x[start : start + BLOCK], y[start : start + BLOCK]
        total += np.stack([u, v, 2 * u * u - 1, u * v, 2 * v * v - 1]).sum(axis=1)
    return total / len(x)


def line_sensitivity(n: int, rows_per_person: int) -> float:
    """Return how far the moments move in the l-infinity norm, rounding included.

    Each term is at most 1 and has at most BLOCK + n/BLOCK + 8 roundings on its way.
    """
    rounding = (BLOCK + n / BLOCK + 8) * _UNIT_ROUNDOFF * 1.01
    return (2 * rows_per_person / n + 2 * rounding) * (1 + 1e-12)
