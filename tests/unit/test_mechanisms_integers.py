"""Noise on integers with a bound in the l1 norm."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget, Sensitivity
from privatest.mechanisms.additive import integer_noise, noisy_integers
from privatest.noise import SecureNoise, SimulatedNoise

BOUND = Sensitivity(6.0, "l1")


def test_the_noise_is_discrete_laplace_of_the_stated_scale():
    # P(j) is proportional to exp(-|j|/3): fixed seed; a correct draw fails with probability 1e-6
    drawn = noisy_integers(
        np.zeros(20_000, dtype=np.int64),
        sensitivity=BOUND,
        budget=Budget(2),
        noise=SimulatedNoise(1),
    )
    ratio = np.exp(-1 / 3)
    values = np.arange(-12, 13)
    masses = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    counts = np.array([np.sum(drawn == value) for value in values] + [np.sum(np.abs(drawn) > 12)])
    expected = 20_000 * np.append(masses, 1 - masses.sum())
    assert stats.chisquare(counts, expected).pvalue > 1e-6
    assert integer_noise(BOUND, Budget(2)).scale >= 3


def test_no_sum_wraps_around():
    largest = np.array([2**59, -(2**59)], dtype=np.int64)
    found = noisy_integers(
        largest, sensitivity=Sensitivity(2.0**50, "l1"), budget=Budget(1), noise=SimulatedNoise(0)
    )
    assert np.all(np.abs(found / largest - 1) < 0.1)


@pytest.mark.parametrize("noise", [SecureNoise(), SimulatedNoise(0)])
def test_scales_beyond_64_bits_are_refused(noise):
    huge, little = Sensitivity(2.0**40, "l1"), Budget("0.00001")
    with pytest.raises(ParameterError, match="epsilon"):
        noisy_integers(np.zeros(2, dtype=np.int64), sensitivity=huge, budget=little, noise=noise)
