"""Five moments of two columns in [-1, 1]: what correlation and slope are made of.

x, y, 2x² - 1, xy and 2y² - 1 all lie in [-1, 1], so one row moves each mean by at most 2/n, all
five at once: noise for the l-infinity norm suits them. Proof: docs/proofs/correlation.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.engines.sums import sum_rounding, sums_of

__all__ = [
    "Products",
    "line_moments",
    "line_sensitivity",
    "mean_square",
    "mean_square_sensitivity",
]

Floats = NDArray[np.float64]


def line_moments(pairs: Sample) -> Floats:
    """Return the means of x, y, 2x² - 1, xy and 2y² - 1; x and y are mapped from [0, 1] to [-1, 1].

    Examples
    --------
    >>> rows = np.array([[0.5, 1.0], [1.0, 0.0]])
    >>> line_moments(Sample(rows, None)).tolist()
    [0.5, 0.0, 0.0, -0.5, 1.0]
    """
    return sums_of(pairs, _line_terms, 5, 1.0) / len(pairs)


def _line_terms(rows: Floats) -> Floats:
    u, v = (2 * rows - 1).T
    return np.stack([u, v, 2 * u * u - 1, u * v, 2 * v * v - 1], axis=1)


def line_sensitivity(n: int, rows_per_person: int) -> float:
    """Return how far the moments move in the l-infinity norm, rounding included.

    Each term is at most 1, however rounded: it is what a row adds.
    """
    return (2 * rows_per_person / n + 2 * _mean_rounding(n, 1.0)) * (1 + 1e-12)


def _mean_rounding(n: int, largest: float) -> float:
    relative, fixed = sum_rounding(n, largest)
    return relative * largest + fixed / n


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


def mean_square(pairs: Sample, products: Products) -> float:
    """Return the mean of min(p², limit)."""
    terms = partial(_squares, products)
    return float(sums_of(pairs, terms, 1, products.limit)[0] / len(pairs))


def _squares(products: Products, rows: Floats) -> Floats:
    u, v = (2 * rows - 1 - products.centre).T
    uu, uv, vv = products.terms
    squares = (uu * u * u + uv * u * v + vv * v * v) ** 2
    return np.minimum(squares, products.limit)[:, None]


def mean_square_sensitivity(n: int, rows_per_person: int, limit: float) -> float:
    """Return how far :func:`mean_square` moves: terms lie in [0, limit], however rounded."""
    return (limit * rows_per_person / n + 2 * _mean_rounding(n, limit)) * (1 + 1e-12)
