"""Noise in the norm of signed sums: its exact integer law, its grid, and its standard deviation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from privatest.core.errors import ParameterError
from privatest.mechanisms import additive as module
from privatest.mechanisms.additive import (
    _grid,
    _signed_sums_noise,
    _subset,
    signed_sums,
    signed_sums_deviation,
    signed_sums_draws,
    signed_sums_norm,
    signed_sums_scale,
)
from privatest.noise import SecureNoise, SimulatedNoise


class Rejected(Exception):
    """The path of draws ended in a rejection."""


class Path:
    """Hands out one path through all draws below limits, and remembers what comes next."""

    def __init__(self, path: list[int]) -> None:
        self.path, self.limits = path, list[int]()

    def below(self, limit: int) -> int:
        self.limits.append(limit)
        if len(self.limits) > len(self.path):
            self.path.append(0)
        return self.path[len(self.limits) - 1]


def enumerated(run: Callable[[Any], object]) -> dict[object, Fraction]:
    """The exact law of a function of draws: every path, with its probability."""
    found: dict[object, Fraction] = {}
    path: list[int] = []
    while True:
        noise = Path(path)
        try:
            result = run(noise)
        except Rejected:
            result = None
        chance = Fraction(1, math.prod(noise.limits))
        found[result] = found.get(result, Fraction(0)) + chance
        path = noise.path[: len(noise.limits)]
        while path and path[-1] == noise.limits[len(path) - 1] - 1:
            path.pop()
        if not path:
            return found
        path[-1] += 1


@pytest.mark.parametrize(("limit", "size"), [(1, 1), (5, 0), (5, 2), (6, 3), (4, 4)])
def test_subsets_are_equally_likely(limit, size):
    law = enumerated(lambda noise: tuple(_subset(limit, size, noise)))
    expected = Fraction(1, math.comb(limit, size))
    assert law == dict.fromkeys(itertools.combinations(range(limit), size), expected)


@pytest.mark.parametrize(("dimension", "largest"), [(1, 5), (2, 4), (3, 2)])
def test_every_point_of_a_ball_is_equally_likely(monkeypatch, dimension, largest):
    """Given the sum k of geometric numbers, of weight binomial(k + d, d): enumerated in fractions.

    So P(z) is proportional to the sum of b^k over k >= |z|, that is to b^|z|.
    """
    constants = set()
    for k in range(largest + 1):

        def run(noise, k=k):
            sums = iter([k, *[0] * dimension])

            def geometric(scale, noise):
                for drawn in sums:
                    return drawn
                raise Rejected

            monkeypatch.setattr(module, "geometric", geometric)
            return tuple(_signed_sums_noise(dimension, 1.0, noise))

        law = enumerated(run)
        law.pop(None, None)
        box = itertools.product(range(-k, k + 1), repeat=dimension)
        ball = {z for z in box if signed_sums_norm(np.array(z, dtype=float)) <= k}
        assert set(law) == ball
        constants |= {chance * math.comb(k + dimension, dimension) for chance in law.values()}
    assert len(constants) == 1


@pytest.mark.parametrize("noise", [SimulatedNoise(0), SecureNoise()], ids=["simulated", "secure"])
def test_integers_as_drawn(noise):
    """False alarm 1e-8: SecureNoise has no seed."""
    count, scale = 3000, 1.2
    points = list(itertools.product(range(-15, 16), repeat=2))
    norms = signed_sums_norm(np.array(points, dtype=float))
    weights = dict(zip(points, np.exp(-norms / scale), strict=True))
    total = sum(weights.values())
    seen = Counter(tuple(_signed_sums_noise(2, scale, noise)) for _ in range(count))
    near = [z for z in points if count * weights[z] / total > 20]
    expected = [count * weights[z] / total for z in near]
    found = [seen[z] for z in near]
    result = chisquare([*found, count - sum(found)], [*expected, count - sum(expected)])
    assert result.pvalue > 1e-8


@pytest.mark.parametrize("dimension", [1, 2, 5, 10])
def test_release_and_draws_have_one_law(dimension):
    """The release on its grid, and what a bootstrap draws; false alarm 1e-6."""
    noise, rng = SimulatedNoise(1), np.random.default_rng(2)
    scale = signed_sums_scale(0.7, 0.5, dimension)
    assert scale == pytest.approx(1.4, rel=1e-7)
    start = np.linspace(0, 3, dimension)
    ours = [
        signed_sums(start, sensitivity=0.7, epsilon=0.5, noise=noise) - start for _ in range(2500)
    ]
    theirs = signed_sums_draws(40_000, dimension, scale, rng)
    for feature in (signed_sums_norm, lambda z: z[..., 0], lambda z: z.sum(-1)):
        assert kstest(feature(np.array(ours)), feature(theirs)).pvalue > 1e-6
    spread = signed_sums_deviation(dimension) * scale
    assert theirs.std() == pytest.approx(spread, rel=0.02)


def test_less_noise_than_laplace_noise_of_the_same_privacy():
    """Variance over that of Laplace noise for an l1 movement of 2."""
    shares = [signed_sums_deviation(d) ** 2 / 8 for d in (2, 3, 5, 10)]
    assert shares == pytest.approx([0.417, 0.525, 0.655, 0.795], abs=1e-3)
    assert signed_sums_deviation(1) == pytest.approx(math.sqrt(2))  # Laplace's law


@pytest.mark.parametrize("sensitivity", [1e-9, 0.3, 1.0, 7e5])
@pytest.mark.parametrize("dimension", [1, 3, 10])
def test_neighbours_on_the_grid(sensitivity, dimension):
    """Rounded neighbours are within the integer sensitivity, even if all entries round away."""
    steps, grid = _grid(sensitivity, dimension)
    assert math.log2(grid).is_integer()
    assert steps <= 2**31 + dimension
    rng = np.random.default_rng(0)
    for _ in range(300):
        a = rng.uniform(0, 50, size=dimension) * sensitivity
        change = rng.standard_normal(dimension)
        b = a + change / max(signed_sums_norm(change), 1e-9) * sensitivity
        moved = [round(q / grid) - round(p / grid) for p, q in zip(a, b, strict=True)]
        assert signed_sums_norm(np.array(moved, dtype=float)) <= steps
    a = (np.arange(dimension) + 0.5 - 1e-6) * grid  # each rounds down, and up after a tiny step
    jumped = np.round((a + 2e-6 * grid) / grid) - np.round(a / grid)
    assert signed_sums_norm(jumped) <= steps - math.floor(sensitivity / grid)


def test_bad_values_are_refused_and_a_small_epsilon_is_not():
    with pytest.raises(ParameterError, match="finite"):
        signed_sums(np.array([np.nan]), sensitivity=1.0, epsilon=1.0, noise=SecureNoise())
    drawn = signed_sums(np.zeros(30), sensitivity=1.9, epsilon=3e-7, noise=SecureNoise())
    assert np.isfinite(drawn).all()
    assert np.abs(drawn).max() > 1e5
