"""Noise for vectors whose increases sum to at most 1, and their decreases too.

The norm is |z| = max(sum of the positive entries, minus the sum of the negative ones), whose unit
ball is {a - b: a, b >= 0, |a|₁, |b|₁ <= 1}: the eigenvalues of a sum of squares move so. Its ball
is smaller than that of the l1 norm of radius 2, so noise shaped like it is smaller too.
Proof: docs/proofs/covariance.md.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import SMALLEST_SENSITIVITY
from privatest.mechanisms.additive import geometric

__all__ = [
    "signed_sums",
    "signed_sums_deviation",
    "signed_sums_draws",
    "signed_sums_norm",
    "signed_sums_scale",
]

_GRID_BITS = 30  # the grid is at most 2^-30 of the sensitivity

Floats = NDArray[np.float64]


def signed_sums_norm(z: Floats) -> Floats:
    """Return the larger of the sums of positive and of negative entries, along the last axis."""
    largest: Floats = np.maximum(np.maximum(z, 0.0).sum(-1), np.maximum(-z, 0.0).sum(-1))
    return largest


def signed_sums(
    values: Floats, *, sensitivity: float, epsilon: float, noise: NoiseSource
) -> Floats:
    """Add noise to a vector of which neither increases nor decreases sum to more than a bound.

    Parameters
    ----------
    values : ndarray
        The private vector, of one dimension.
    sensitivity : float
        How far it moves between neighbours, in the norm of :func:`signed_sums_norm`.
    epsilon : float
        What is spent, a part of a budget.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, plus the rounding to the noise's grid g: an integer S with
    S g >= sensitivity + d g.

    **Privacy** Integer noise z with P(z) proportional to exp(-epsilon |z|/S), drawn exactly:
    epsilon-private by the triangle inequality.
    """
    if not np.isfinite(values).all():
        raise ParameterError("value must be a vector of finite numbers: noise was not drawn.")
    steps, grid = _grid(sensitivity, len(values))
    scale = math.nextafter(steps / epsilon, math.inf)
    repeat = partial(signed_sums, values=values, sensitivity=sensitivity, epsilon=epsilon)
    record(noise, "signed sums", values, "signed sums", (sensitivity,), scale * grid, repeat)
    drawn = _integers(len(values), scale, noise)
    # a quotient by a power of two is exact; so is the sum of integers
    noisy = [round(float(value) / grid) + z for value, z in zip(values, drawn, strict=True)]
    return released(noise, np.array([float(integer) * grid for integer in noisy]))


def signed_sums_scale(sensitivity: float, epsilon: float, dimension: int) -> float:
    """Return the s of the density exp(-|z|/s) of :func:`signed_sums`' noise; public."""
    steps, grid = _grid(sensitivity, dimension)
    return math.nextafter(steps / epsilon, math.inf) * grid


def signed_sums_deviation(dimension: int) -> float:
    """Return the standard deviation of each entry of the noise, for a scale of 1."""
    sides = [math.comb(dimension, j) ** 2 for j in range(dimension + 1)]
    # of j entries of one sign, uniform where their sum is at most 1, each has this mean square
    squares = [2 * j / (dimension * (j + 1) * (j + 2)) for j in range(dimension + 1)]
    mean = 2 * sum(s * w for s, w in zip(squares, sides, strict=True)) / sum(sides)
    return math.sqrt((dimension + 1) * (dimension + 2) * mean)


def signed_sums_draws(count: int, dimension: int, scale: float, rng: np.random.Generator) -> Floats:
    """Draw such noise in floating point: for a bootstrap, not for privacy."""
    places = np.empty((count, 2 * dimension), dtype=np.intp)
    places[:] = np.arange(2 * dimension)
    rng.permuted(places, axis=1, out=places)
    positive = np.any(
        places[:, :dimension, None] == np.arange(dimension), axis=1
    )  # a random half of 2d places
    parts = rng.standard_exponential((count, dimension))
    rest = rng.standard_exponential((count, 2))
    up = np.where(positive, parts, 0.0)
    down = parts - up
    up /= (up.sum(axis=1) + rest[:, 0])[:, None]
    down /= (down.sum(axis=1) + rest[:, 1])[:, None]
    radius: Floats = rng.gamma(dimension + 1, scale, size=(count, 1))
    return radius * (up - down)


def _grid(sensitivity: float, dimension: int) -> tuple[int, float]:
    """Return the sensitivity in steps of the grid, and the grid, a power of two."""
    sensitivity = max(sensitivity, SMALLEST_SENSITIVITY)
    grid = math.ldexp(1.0, math.floor(math.log2(sensitivity)) - _GRID_BITS)
    return math.floor(sensitivity / grid) + dimension, grid


def _integers(dimension: int, scale: float, noise: NoiseSource) -> list[int]:
    """Draw integers z with probability proportional to exp(-|z|/scale), exactly."""
    while True:
        # weight binomial(k + d, d) exp(-k/scale), and the places of entries that are not negative
        k = sum(geometric(scale, noise) for _ in range(dimension + 1))
        places = [place for place in _subset(2 * dimension, dimension, noise) if place < dimension]
        j, below = len(places), dimension - len(places)
        # uniform points of radius k with these signs: their number over what was proposed
        if all(noise.below(k + j + 1 + i) < k - i for i in range(below)):
            break
    ups = [b - a - 1 for a, b in pairwise([-1, *_subset(k + j, j, noise)])]
    downs = [b - a for a, b in pairwise([-1, *_subset(k, below, noise)])]
    return [ups.pop() if place in places else -downs.pop() for place in range(dimension)]


def _subset(limit: int, size: int, noise: NoiseSource) -> list[int]:
    """Draw a subset of ``range(limit)``, all of one size equally likely, in ascending order."""
    chosen: set[int] = set()
    for last in range(limit - size, limit):  # Floyd's algorithm
        drawn = noise.below(last + 1)
        chosen.add(last if drawn in chosen else drawn)
    return sorted(chosen)
