"""Noisy counts: how much noise, and that what is declared is what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget, gaussian_scale
from privatest.mechanisms.additive import CountNoise, count_noise, noisy_counts
from privatest.noise import SecureNoise, SimulatedNoise


@pytest.mark.parametrize("rows", [1, 5])
def test_laplace_noise_has_the_scale_of_the_l1_sensitivity(rows):
    law = count_noise(12, Budget("0.5"), rows_per_person=rows)
    assert law.kind == "laplace"
    assert law.scale >= 4 * rows > 0.999999 * law.scale


def test_gaussian_noise_has_the_scale_of_the_l2_sensitivity():
    budget = Budget(1, "1e-6")
    law = count_noise(12, budget, "gaussian", rows_per_person=3)
    assert law.scale >= gaussian_scale(3 * math.sqrt(2), budget)
    assert law.scale == pytest.approx(gaussian_scale(3 * math.sqrt(2), budget), rel=1e-6)


@pytest.mark.parametrize(
    ("budget", "kind"),
    [(Budget(1), "laplace"), (Budget(1, "1e-6"), "laplace"), (Budget("0.1", "0.5"), "gaussian")],
)
def test_auto_takes_the_smaller_variance(budget, kind):
    assert count_noise(9, budget).kind == kind


def test_gaussian_noise_needs_delta():
    with pytest.raises(ParameterError, match="delta must be above 0"):
        count_noise(9, Budget(1), "gaussian")


@pytest.mark.parametrize("law", [CountNoise("laplace", 0.7), CountNoise("laplace", 40.0)])
def test_variance_is_that_of_the_law(law):
    j = np.arange(-4000, 4001)
    masses = np.exp(-np.abs(j) / law.scale)
    assert law.variance == pytest.approx(float(masses @ j**2 / masses.sum()))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("source", [SecureNoise(), SimulatedNoise(3)], ids=["secure", "simulated"])
def test_noise_is_drawn_from_the_declared_law(mechanism, source):
    """Mean and variance of 4,000 cells, within 6 standard errors: false alarms below 1e-7."""
    budget = Budget(1, "1e-3")
    law = count_noise(4000, budget, mechanism)
    noisy = noisy_counts(
        np.full((40, 100), 17, dtype=np.int64), law=law, budget=budget, noise=source
    )
    assert noisy.shape == (40, 100)
    fourth = 6 if mechanism == "laplace" else 3
    drawn = law.draws((4000,), np.random.default_rng(0))
    for values in (noisy.ravel() - 17, drawn):
        assert abs(values.mean()) < 6 * math.sqrt(law.variance / 4000)
        error = law.variance * math.sqrt((fourth + 1) / 4000)
        assert abs(np.mean(values**2) - law.variance) < 6 * error
