"""Raj et al. (2019): where its tests look, chosen by gradient ascent. NOT private.

A REFERENCE FOR COMPARISON, NOT FOR USE. Locations and width are those that part most of what a
fifth of the rows shows, and are used in the clear: no guarantee covers that fifth. Constants are
those of the program that Kim and Schrab publish, and so are its two oddities: widths are sought
around the square of the median squared distance, and the test takes half the variance that the
ascent ends with. Steps have lengths in units of the data, so that its scale matters.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["climbed_locations"]

Floats = NDArray[np.float64]

_SHARE = 5  # one row in so many is for locations
_WIDTHS = 2.0 ** np.linspace(-3, 4, 30)
_STEPS, _LENGTH, _STILL, _RIDGE = 200, 0.1, 1e-3, 1e-5
_ALPHA = 0.05


def climbed_locations(
    x: Floats, y: Floats, rng: np.random.Generator, n_locations: int = 5
) -> tuple[Floats, float, tuple[Floats, Floats]]:
    """Choose locations and a width on a fifth of the rows; the rest is for the test.

    Parameters
    ----------
    x, y : ndarray
        Samples of one size, in random order.
    rng : Generator
        Draws where the ascent starts.
    n_locations : int
        How many.

    Returns
    -------
    locations : ndarray
        One a row.
    variance : float
        sigma² of the kernel of the test.
    left : (ndarray, ndarray)
        What is left of both samples.
    """
    first = len(x) // _SHARE
    known = x[:first], y[:first]
    start = np.vstack([
        _normal(known[0], n_locations // 2, rng),
        _normal(known[1], n_locations - n_locations // 2, rng),
    ])  # fmt: skip
    both = np.vstack(known)
    some = both[rng.choice(len(both), size=min(1000, len(both)), replace=False)]
    typical = float(np.median(_squares(some, some)[np.triu_indices(len(some), k=1)])) / 2
    locations, variance = _climb(known, start, _best_width(known, start, typical**2 * _WIDTHS))
    return locations, variance / 2, (x[first:], y[first:])


def _normal(rows: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Draw from a normal law fitted to rows, a little narrower than they are."""
    ridge = 1e-3 * np.eye(rows.shape[1])
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(rows.T)) + ridge)
    spread = (vectors * np.maximum(values, 1e-3) ** 0.9) @ vectors.T + ridge
    return rng.multivariate_normal(rows.mean(axis=0), spread, size=size)


def _squares(rows: Floats, points: Floats) -> Floats:
    lengths = np.square(rows).sum(axis=1)[:, None] + np.square(points).sum(axis=1)
    squares: Floats = lengths - 2 * rows @ points.T
    return squares


def _best_width(known: tuple[Floats, Floats], points: Floats, variances: Floats) -> float:
    """Return the first of the variances whose test has the most power, to three digits."""
    from scipy.special import chdtri, chndtr  # noqa: PLC0415

    limit = chdtri(len(points), _ALPHA)
    squares = [_squares(rows, points) for rows in known]
    powers = []
    for variance in variances:
        differences = np.exp(squares[0] / (-2 * variance)) - np.exp(squares[1] / (-2 * variance))
        mean = differences.mean(axis=0)
        try:
            value = len(differences) * mean @ np.linalg.solve(np.cov(differences.T), mean)
        except np.linalg.LinAlgError:
            value = -1.0
        # numerically singular: a negative square is no power
        powers.append(round(1 - float(chndtr(limit, len(points), value)), 3) if value > 0 else -1)
    return float(variances[int(np.argmax(powers))])


def _climb(known: tuple[Floats, Floats], points: Floats, variance: float) -> tuple[Floats, float]:
    """Climb the statistic in the locations and the width, with steps that shrink."""
    x, y = known
    n, width, last = len(x), math.sqrt(variance), math.inf
    for step in range(1, _STEPS + 1):
        squares = _squares(x, points), _squares(y, points)
        kernels = [np.exp(each / (-2 * width**2)) for each in squares]
        differences = kernels[0] - kernels[1]
        mean = differences.mean(axis=0)
        centred = differences - mean
        covariance = centred.T @ centred / n + _RIDGE * np.eye(len(points))
        solved = np.linalg.solve(covariance, mean)
        value = float(n * mean @ solved)
        # d value = sum over rows and locations of this weight times d differences
        weights = 2 * np.outer(1 - centred @ solved, solved)
        pulls = weights * kernels[0], -weights * kernels[1]
        slope = sum(
            pull.T @ rows - pull.sum(axis=0)[:, None] * points
            for pull, rows in zip(pulls, known, strict=True)
        )
        steep = float(sum(np.sum(p * s) for p, s in zip(pulls, squares, strict=True))) / width**3
        shrink = _LENGTH / math.sqrt(step)
        norm = float(np.linalg.norm(slope))
        if norm > 0:
            points = points + shrink * slope / norm
        width += shrink * math.copysign(min(abs(steep), 1.0), steep)
        if step > 2 and abs(value - last) <= _STILL:
            break
        last = value
    return points, width**2
