"""Mechanisms: how much noise, and on which grid."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget, PermutationSensitivity, Sensitivity, gaussian_scale
from privatest.mechanisms.additive import gaussian, laplace, noisy_argmax
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


@pytest.mark.parametrize(("mechanism", "norm"), [(laplace, "l2"), (gaussian, "l1")])
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


# --- the largest of several values -----------------------------------------------------------


def test_noisy_argmax_draws_for_twice_the_sensitivity():
    noise, declared = Recorder(), Sensitivity(0.3)
    assert noisy_argmax([1.0, 3.0, 2.0], sensitivity=declared, budget=Budget(2), noise=noise) == 1
    assert Fraction(noise.scale) >= Fraction(0.6) / 2
    assert noise.scale == pytest.approx(0.3, rel=1e-14)
    with pytest.raises(ParameterError, match="finite"):
        noisy_argmax([0.0, math.nan], sensitivity=declared, budget=Budget(2), noise=noise)


@pytest.mark.privacy
def test_noisy_argmax_is_private_and_not_more_than_asked():
    """Two values with noise L and L': the first wins if L - L' >= gap, which moves by 2."""

    def first_wins(gap, scale):  # the difference of two Laplace draws
        tail = (2 + abs(gap) / scale) * math.exp(-abs(gap) / scale) / 4
        return tail if gap >= 0 else 1 - tail

    noise = Recorder()
    noisy_argmax([0.0, 0.0], sensitivity=Sensitivity(1.0), budget=Budget(1), noise=noise)
    losses = [
        math.log(first_wins(gap - 1, noise.scale) / first_wins(gap + 1, noise.scale))
        for gap in np.linspace(-60, 60, 241)
    ]
    assert 0.95 < max(losses) <= 1
