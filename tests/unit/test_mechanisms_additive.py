"""Mechanisms: how much noise, on which grid, and the exact law of Tulap."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget, PermutationSensitivity, Sensitivity, gaussian_scale
from privatest.mechanisms import additive as mechanisms
from privatest.mechanisms.additive import gaussian, laplace, tulap
from privatest.noise import SecureNoise, SimulatedNoise


class Recorder(SimulatedNoise):
    """Adds nothing, and remembers what it was asked for."""

    def __init__(self, discrete=0, uniform=None):
        super().__init__(0)
        self.discrete, self.uniform = discrete, uniform
        self.scale, self.grid, self.width = math.nan, 0, 0

    def laplace(self, value, scale):
        self.scale = scale
        return value

    def gaussian(self, values, scale, grid):
        self.scale, self.grid = scale, grid
        return values

    def discrete_laplace(self, scale):
        self.scale = scale
        return self.discrete

    def below(self, limit):
        self.width = limit
        return limit // 2 if self.uniform is None else self.uniform


@pytest.mark.parametrize("budget", [Budget(0.1), Budget(1), Budget(3, 0.01), Budget(1e-6)])
@pytest.mark.parametrize("sensitivity", [1e-9, 0.3, 1.0, 1e6])
def test_laplace_scale(sensitivity, budget):
    noise = Recorder()
    declared = Sensitivity(sensitivity)
    assert laplace(2.5, sensitivity=declared, budget=budget, noise=noise) == 2.5
    assert Fraction(noise.scale) >= Fraction(sensitivity) / Fraction(budget.pure_epsilon)
    assert noise.scale == pytest.approx(sensitivity / budget.pure_epsilon, rel=1e-14)


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4)])
def test_gaussian_scale_covers_rounding_to_the_grid(shape):
    noise, declared, budget = Recorder(), Sensitivity(0.3, "l2"), Budget(1, 1e-6)
    values = np.ones(shape)
    noisy = gaussian(values, sensitivity=declared, budget=budget, noise=noise)
    assert np.array_equal(noisy, values)
    widened = 0.3 + 2.0**noise.grid * math.sqrt(values.size)
    assert noise.scale >= gaussian_scale(widened, budget) * (1 - 1e-15)
    assert noise.scale == pytest.approx(gaussian_scale(0.3, budget), rel=1e-8)
    assert 2.0**noise.grid <= 0.3 * 2.0**-80


@pytest.mark.parametrize("sensitivity", [5e-324, 1e-320, 1e-300, 1e-290, 9e289])
@pytest.mark.parametrize("value", [0.0, -1e308, 1.7e308])
def test_every_sensitivity_gets_its_noise(sensitivity, value):
    """Tiny ones are raised: a float without digits cannot be rounded up by a part of itself."""
    noise, budget = Recorder(), Budget("1e-6", "1e-18")
    laplace(value, sensitivity=Sensitivity(sensitivity), budget=budget, noise=noise)
    assert math.isfinite(noise.scale)
    assert Fraction(noise.scale) >= Fraction(sensitivity) / Fraction(budget.pure_epsilon)
    vector = Sensitivity(sensitivity, "l2")
    gaussian(np.array([value]), sensitivity=vector, budget=budget, noise=noise)
    assert math.isfinite(noise.scale)
    assert noise.scale > 1e6 * sensitivity
    assert noise.grid >= -1074
    for source in (SimulatedNoise(1), SecureNoise()):
        scalar = Sensitivity(sensitivity)
        shared: dict[str, Any] = {"budget": budget, "noise": source}
        assert math.isfinite(laplace(value, sensitivity=scalar, **shared))
        assert math.isfinite(tulap(value, sensitivity=scalar, **shared))
        assert np.isfinite(gaussian(np.array([value]), sensitivity=vector, **shared)).any() or (
            abs(value) > 1e307
        )


@pytest.mark.parametrize("sensitivity", [1e290, 1e300, 1.7e308])
def test_a_sensitivity_whose_noise_is_no_float_is_refused(sensitivity):
    """Not by an exception of OpenDP's, and before anything is drawn."""
    with pytest.raises(ParameterError, match=r"below 1e\+290"):
        Sensitivity(sensitivity)
    with pytest.raises(ParameterError, match=r"below 1e\+290"):
        PermutationSensitivity(1.0, sensitivity)


def test_gaussian_noise_needs_delta():
    with pytest.raises(ParameterError, match="delta"):
        gaussian(np.ones(2), sensitivity=Sensitivity(1.0, "l2"), budget=Budget(1), noise=Recorder())


@pytest.mark.parametrize(("mechanism", "norm"), [(laplace, "l2"), (tulap, "l2"), (gaussian, "l1")])
def test_the_wrong_norm_is_refused(mechanism, norm):
    declared = Sensitivity(1.0, norm)
    with pytest.raises(ParameterError, match=r"sensitivity\.norm"):
        mechanism(1.0, sensitivity=declared, budget=Budget(1, 0.1), noise=Recorder())


def test_secure_mechanisms_run():
    noise, budget = SecureNoise(), Budget(1e6, 0.5)
    declared = Sensitivity(1.0)
    noisy_value = laplace(2.0, sensitivity=declared, budget=budget, noise=noise)
    assert noisy_value == pytest.approx(2, abs=1e-3)  # 1000 scales of noise
    values = np.array([2.0, -3.0])
    noisy = gaussian(values, sensitivity=Sensitivity(1.0, "l2"), budget=budget, noise=noise)
    assert noisy == pytest.approx(values, abs=0.1)
    # uniform noise over a width of one sensitivity is always there
    assert abs(tulap(2.0, sensitivity=declared, budget=budget, noise=noise) - 2) <= 0.500001


# --- Tulap -----------------------------------------------------------------------------------


def tulap_law(value, sensitivity, budget, reach=9):
    """P(release) on a coarse grid, from all draws of the two parts of the noise."""
    width = 1 << mechanisms.TULAP_BITS
    law: dict[float, float] = defaultdict(float)
    for discrete in range(-reach, reach + 1):
        for uniform in range(width):
            noise = Recorder(discrete, uniform)
            release = tulap(value, sensitivity=sensitivity, budget=budget, noise=noise)
            assert noise.width == width
            decay = math.exp(-1 / noise.scale)
            law[release] += (1 - decay) / (1 + decay) * decay ** abs(discrete) / width
    return law


@pytest.mark.parametrize("size", [1.0, 0.3])
@pytest.mark.parametrize("start", [0.0, 0.5, 10.49, -3.2, 1e3])
def test_tulap_is_exactly_private(start, size, monkeypatch):
    monkeypatch.setattr(mechanisms, "TULAP_BITS", 6)
    sensitivity, budget = Sensitivity(size), Budget(1)
    grid = size / 63
    first = tulap_law(start, sensitivity, budget)
    worst = []
    for share in (1.0, 0.999, 0.5, 1 / 63, 0.5 / 63, -1.0):
        # a half step off the grid: rounding then adds a step
        second = tulap_law(start + share * size, sensitivity, budget)
        # near the ends of the enumeration one of the two is cut off
        common = [key for key in first if key in second and abs(key - start) < 6 * size]
        assert len(common) > 500
        worst.append(max(abs(math.log(first[key] / second[key])) for key in common))
    assert max(worst) <= 1 + 1e-9
    assert max(worst) > 1 - 1e-9  # attained: Tulap wastes nothing
    assert max(abs(a - b) for a, b in zip(sorted(first), sorted(first)[1:], strict=False)) < (
        1.001 * grid
    )


def test_tulap_with_half_the_width_would_not_be(monkeypatch):
    monkeypatch.setattr(mechanisms, "TULAP_BITS", 6)
    laws = [tulap_law(value, Sensitivity(0.5), Budget(1)) for value in (0.0, 1.0)]
    common = [key for key in laws[0] if key in laws[1] and abs(key) < 2]
    assert max(abs(math.log(laws[0][key] / laws[1][key])) for key in common) > 1.9


def test_tulap_of_a_huge_value_keeps_its_steps():
    """T/g beyond 2^53: a float quotient would be off by many steps."""
    declared, budget = Sensitivity(1.0), Budget(1)
    releases = [
        tulap(1e6, sensitivity=declared, budget=budget, noise=Recorder(0, uniform))
        for uniform in (0, 1 << 39, (1 << 40) - 1)
    ]
    assert releases[1] == pytest.approx(1e6, abs=1e-9)
    assert releases[0] == pytest.approx(1e6 - 0.5, abs=1e-9)
    assert releases[2] == pytest.approx(1e6 + 0.5, abs=1e-9)


def test_tulap_grid():
    noise = Recorder()
    release = tulap(0.0, sensitivity=Sensitivity(2.0), budget=Budget(0.5), noise=noise)
    assert release == 0
    assert noise.width == 1 << mechanisms.TULAP_BITS
    assert noise.scale >= 2.0
