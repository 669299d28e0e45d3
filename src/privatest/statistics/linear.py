"""Five moments of two columns in [-1, 1]: what correlation and slope are made of.

x, y, 2x² - 1, xy and 2y² - 1 all lie in [-1, 1], so one row moves each mean by at most 2/n, all
five at once: noise for the l-infinity norm suits them. Proof: docs/proofs/correlation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.engines.sums import UNIT_ROUNDOFF, sum_rounding, sums_of
from privatest.statistics.moments import moments

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
    (found,) = moments(pairs, psi=_on_the_plane, dimension=2, radius=math.sqrt(2))
    (x, y), ((xx, xy), (_, yy)) = found.mean, found.second
    return np.array([x, y, 2 * xx - 1, xy, 2 * yy - 1])


def _on_the_plane(rows: Floats) -> Floats:
    plane: Floats = 2 * rows
    plane -= 1
    return plane


def line_sensitivity(n: int, rows_per_person: int) -> float:
    """Return how far the moments move in the l-infinity norm, rounding included.

    What a row adds to each mean is at most 1; a mean square is doubled, and so is its rounding.
    """
    rounding = 2 * _mean_rounding(n, 2.0) + 4 * UNIT_ROUNDOFF
    return (2 * rows_per_person / n + 2 * rounding) * (1 + 1e-12)


def _mean_rounding(n: int, largest: float) -> float:
    """Bound the rounding of a mean of terms; fixed point is for ``largest``, or less."""
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
    u, v = np.ascontiguousarray((2 * rows - 1 - products.centre).T)
    uu, uv, vv = products.terms
    squares = (uu * u * u + uv * u * v + vv * v * v) ** 2
    return np.asarray(np.minimum(squares, products.limit))[:, None]


def mean_square_sensitivity(n: int, rows_per_person: int, limit: float) -> float:
    """Return how far :func:`mean_square` moves: terms lie in [0, limit], however rounded."""
    return (limit * rows_per_person / n + 2 * _mean_rounding(n, limit)) * (1 + 1e-12)
