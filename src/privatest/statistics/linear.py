"""Five moments of two columns in [-1, 1]: what correlation and slope are made of.

x, y, 2x² - 1, xy and 2y² - 1 all lie in [-1, 1], so one row moves each mean by at most 2/n, all
five at once: noise for the l-infinity norm suits them. Proof: docs/proofs/correlation.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.moments import BLOCK

__all__ = [
    "Products",
    "line_moments",
    "line_sensitivity",
    "mean_square",
    "mean_square_sensitivity",
]

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


@dataclass(frozen=True, slots=True)
class Products:
    """What each row adds to a slope or a correlation: a quadratic form with public numbers.

    Attributes
    ----------
    centre : pair of float
        u = x - centre[0] and v = y - centre[1].
    terms : tuple of three float
        A row's p is terms[0] u² + terms[1] u v + terms[2] v².
    limit : float
        p² counts at most this much.
    """

    centre: tuple[float, float]
    terms: tuple[float, float, float]
    limit: float


def mean_square(x: Floats, y: Floats, products: Products) -> float:
    """Return the mean of min(p², limit)."""
    total, (uu, uv, vv) = 0.0, products.terms
    for start in range(0, len(x), BLOCK):
        u = x[start : start + BLOCK] - products.centre[0]
        v = y[start : start + BLOCK] - products.centre[1]
        squares = (uu * u * u + uv * u * v + vv * v * v) ** 2
        total += float(np.minimum(squares, products.limit).sum())
    return total / len(x)


def mean_square_sensitivity(n: int, rows_per_person: int, limit: float) -> float:
    """Return how far :func:`mean_square` moves: terms lie in [0, limit], however rounded."""
    rounding = (BLOCK + n / BLOCK + 8) * _UNIT_ROUNDOFF * 1.01
    return limit * (rows_per_person / n + 2 * rounding) * (1 + 1e-12)
