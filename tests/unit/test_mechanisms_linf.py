"""The l-infinity mechanism: its exact integer law, its grid, and the scale it says it has."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from privatest.core.errors import ParameterError
from privatest.mechanisms.additive import _grid, _linf_radius, geometric, linf_mean, linf_scale
from privatest.noise import SecureNoise, SimulatedNoise


class Scripted:
    """Hands out numbers that the test has chosen."""

    simulated = True

    def __init__(self, laplace: list[int], below: list[int]) -> None:
        self.laplace_, self.below_ = iter(laplace), iter(below)

    def discrete_laplace(self, scale: float) -> int:
        return next(self.laplace_)

    def below(self, limit: int) -> int:
        value = next(self.below_)
        assert 0 <= value < limit
        return value


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_radius_has_its_weight_exactly(dimension):
    """Sum of geometrics times acceptance is (2k+1)^d, up to one constant, in fractions."""
    constants = set()
    for k in range(12):
        accepted = Fraction(math.comb(k + dimension, dimension))  # the weight of the sum, over b^k
        for i in range(1, dimension + 1):
            accepted *= Fraction(2 * k + 1, 2 * k + 2 * i)
        constants.add(accepted / (2 * k + 1) ** dimension)
    assert len(constants) == 1


def test_cubes_mix_to_the_law():
    """Weight (2k+1)^d b^k on cubes of radius k gives P(z) proportional to b^|z|∞, enumerated."""
    b, dimension, largest = Fraction(1, 3), 2, 40
    weights = [(2 * k + 1) ** dimension * b**k for k in range(largest + 1)]
    ratios = set()
    for z in itertools.product(range(-4, 5), repeat=dimension):
        reach = max(map(abs, z))
        mass = sum(weights[k] / (2 * k + 1) ** dimension for k in range(reach, largest + 1))
        tail = b ** (largest + 1) / (1 - b)  # what the cut leaves out
        ratios.add((mass + tail) / b**reach)
    assert len(ratios) == 1


def scripted(laplace: list[int]) -> Any:
    return Scripted(laplace, [])


def test_geometric_is_either_half_of_a_laplace_law():
    b = Fraction(2, 5)
    mass = {j: b ** abs(j) for j in range(-30, 31)}
    found = {k: Fraction(0) for k in range(30)}
    for j, weight in mass.items():
        k = geometric(1.0, scripted([j]))
        if k < 30:
            found[k] += weight
    assert all(found[k + 1] / found[k] == b for k in range(29))


@pytest.mark.parametrize("noise", [SimulatedNoise(0), SecureNoise()])
def test_radius_as_drawn(noise):
    """False alarm 1e-8: SecureNoise has no seed."""
    scale, dimension, count = 1.5, 2, 1000
    k = np.arange(60)
    weights = (2 * k + 1.0) ** dimension * np.exp(-k / scale)
    expected = count * weights / weights.sum()
    drawn = np.array([_linf_radius(dimension, scale, noise) for _ in range(count)])
    cut = 10
    seen = np.bincount(np.minimum(drawn, cut), minlength=cut + 1)
    wanted = np.append(expected[:cut], expected[cut:].sum())
    assert chisquare(seen, wanted).pvalue > 1e-8


def test_one_entry_is_discrete_laplace():
    weights = [(2 * k + 1) * 0.5**k for k in range(200)]
    for z in range(6):
        mass = sum(w / (2 * k + 1) for k, w in enumerate(weights) if k >= z)
        assert mass == pytest.approx(2 * 0.5**z)


@pytest.mark.parametrize("sensitivity", [1e-9, 0.3, 1.0, 2.0, 7e5])
def test_grid(sensitivity):
    steps, grid = _grid(sensitivity, 1)
    assert math.log2(grid).is_integer()
    assert 2**30 < steps <= 2**31
    rng = np.random.default_rng(0)
    a = rng.uniform(-3, 3, size=2000) * sensitivity
    b = a + rng.choice([-1, 1], size=2000) * sensitivity
    moved = [
        abs(round(float(p) / grid) - round(float(q) / grid)) for p, q in zip(a, b, strict=True)
    ]
    assert max(moved) <= steps


def test_variance_is_what_it_says():
    dimension, noise = 5, SimulatedNoise(1)
    scale = linf_scale(0.01, 0.5)
    assert scale == pytest.approx(0.02, rel=1e-8)
    drawn = np.array(
        [
            linf_mean(np.full(dimension, 0.3), sensitivity=0.01, epsilon=0.5, noise=noise)
            for _ in range(4000)
        ]
    )
    variance = (dimension + 1) * (dimension + 2) / 3 * scale**2
    assert drawn.mean() == pytest.approx(0.3, abs=5 * math.sqrt(variance / 4000))
    assert drawn.var() == pytest.approx(variance, rel=0.06)
    # the largest entry is where a product of Laplace laws would differ
    assert np.abs(drawn - 0.3).max(axis=1).mean() == pytest.approx(dimension * scale, rel=0.05)


def test_values_are_on_the_grid_and_nan_is_refused():
    value = linf_mean(np.array([0.1]), sensitivity=1.0, epsilon=1.0, noise=SecureNoise())
    assert (value / _grid(1.0, 1)[1]).tolist() == np.round(value / _grid(1.0, 1)[1]).tolist()
    with pytest.raises(ParameterError, match="finite"):
        linf_mean(np.array([np.nan]), sensitivity=1.0, epsilon=1.0, noise=SecureNoise())


def test_smallest_epsilon_fits_the_samplers():
    drawn = linf_mean(np.zeros(30), sensitivity=1.9, epsilon=3e-7, noise=SecureNoise())
    assert np.isfinite(drawn).all()
    assert np.abs(drawn).max() > 1e5
