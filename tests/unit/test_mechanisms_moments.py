"""Means and second moments, alone and released together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.core.privacy import Budget, gaussian_scale
from privatest.data.encoding import Sample
from privatest.mechanisms.moments import (
    moment_scale,
    nearest_psd,
    release_moments,
    svec_noise,
)
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.numerics.moments import (
    joint_sensitivity,
    moments,
    moments_rounding,
    smat,
    svec,
    svec_size,
)

BUDGET = Budget(1, "1e-5")


def moments_of(rows):
    (found,) = moments(Sample(rows, None), psi=np.copy, dimension=rows.shape[1], radius=1.0)
    return found


def test_moments_in_blocks_are_those_of_all_rows():
    rows = np.random.default_rng(0).normal(size=(70_000, 3))
    found = moments_of(rows)
    assert found.n == 70_000
    np.testing.assert_allclose(found.mean, rows.mean(axis=0), rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.second, rows.T @ rows / 70_000, rtol=0, atol=1e-13)


def test_no_rows_have_moments_of_zero():
    none = moments_of(np.empty((0, 2)))
    assert none.n == 0
    assert not none.mean.any()
    assert not none.second.any()


def test_moments_hide_their_data():
    assert "0.123456" not in repr(moments_of(np.full((1, 1), 0.123456)))


def test_rounding_errors_stay_below_their_bound():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(150_000, 2)).astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    exact = np.array([math.fsum(column) for column in rows.T]) / len(rows)
    found = moments_of(rows)
    mean_error, second_error = moments_rounding(len(rows), 1.0, 2)
    assert np.linalg.norm(found.mean - exact) <= mean_error
    exact_second = math.fsum(rows[:, 0] * rows[:, 1]) / len(rows)
    assert abs(found.second[0, 1] - exact_second) <= second_error
    assert second_error < 1e-11


def test_rounding_of_equal_rows_stays_below_its_bound():
    """Their errors add up: to 14 roundings where this was written, so that one is not enough."""
    mean_error, second_error = moments_rounding(150_000, 1.0, 1)
    for value in np.random.default_rng(0).uniform(0.5, 1, size=20):
        found = moments_of(np.full((150_000, 1), value))
        assert abs(found.mean[0] - value) <= mean_error
        assert abs(found.second[0, 0] - np.longdouble(value) ** 2) <= second_error


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_svec_keeps_the_norm_and_comes_back(dimension, seed):
    matrix = np.random.default_rng(seed).normal(size=(2, dimension, dimension))
    matrix = matrix + matrix.transpose(0, 2, 1)
    stacked = svec(matrix)
    assert stacked.shape == (2, svec_size(dimension))
    np.testing.assert_allclose(
        np.linalg.norm(stacked, axis=1), np.linalg.norm(matrix, axis=(1, 2)), rtol=1e-12
    )
    np.testing.assert_allclose(smat(stacked), matrix, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("power", "sigma"), [(1.0, 0.00769089), (1.25, 0.00859868)])
def test_published_scale_of_the_pooled_release(power, sigma):
    """Raj et al. unpaired, n = 1000 + 1000: difference, pooled mean and second moment."""
    alpha = math.hypot(1 / 1000, 1 / 4000)
    beta = 1000 / (2000 * 1000 * math.sqrt(power))
    moved = joint_sensitivity(alpha, beta, radius=math.sqrt(power))
    assert gaussian_scale(moved, BUDGET) == pytest.approx(sigma, abs=5e-9)


@pytest.mark.parametrize("spread", [None, 0.1, 0.5, 0.7, 1.0, math.sqrt(2), 1.9, 5.0])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (1, 0.2), (0.2, 1), (1e-3, 1)])
@pytest.mark.parametrize("radius", [1.0, 2.5])
def test_joint_sensitivity_is_the_largest_movement(spread, alpha, beta, radius):
    """Neither broken nor loose: a grid over pairs of rows in the plane comes close to it."""
    bound = joint_sensitivity(
        alpha, beta, radius=radius, spread=None if spread is None else spread * radius
    )
    lengths = np.linspace(0, radius, 61)[:, None, None]
    others = np.linspace(0, radius, 121)[None, :, None]
    cosines = np.cos(np.linspace(0, np.pi, 181))[None, None, :]
    product = lengths * others * cosines
    distance = lengths**2 + others**2 - 2 * product
    squares = lengths**4 + others**4 - 2 * product**2
    moved = alpha**2 * distance + beta**2 * squares
    allowed = distance <= (2.0 if spread is None else spread) ** 2 * radius**2 * (1 + 1e-9)
    largest = math.sqrt(moved[allowed].max())
    assert largest <= bound * (1 + 1e-9)
    assert largest >= 0.95 * bound


@pytest.mark.slow
@pytest.mark.statistical
def test_released_moments_are_the_moments_plus_noise_of_the_stated_scale():
    rows = np.random.default_rng(2).uniform(-1, 1, size=(500, 3)) / math.sqrt(3)
    sample = moments_of(rows)
    drawn = [
        release_moments(sample, radius=1.0, budget=BUDGET, noise=SimulatedNoise(seed))
        for seed in range(400)
    ]
    scale = moment_scale(500, 3, radius=1.0, budget=BUDGET)
    assert (drawn[0].sigma, drawn[0].sigma_second) == scale
    errors = np.array([noisy.mean - sample.mean for noisy in drawn]) / scale[0]
    matrix_errors = np.array([svec(noisy.second - sample.second) for noisy in drawn]) / scale[1]
    # 1200 and 2400 draws: five standard errors, false alarms below 1e-5
    assert abs(errors.std() - 1) < 5 / math.sqrt(2 * errors.size)
    assert abs(matrix_errors.std() - 1) < 5 / math.sqrt(2 * matrix_errors.size)
    assert abs(errors.mean()) < 5 / math.sqrt(errors.size)


def test_balance_moves_noise_from_one_part_to_the_other():
    first = moment_scale(500, 3, radius=1.0, budget=BUDGET, balance=0.5)
    second = moment_scale(500, 3, radius=1.0, budget=BUDGET, balance=2.0)
    assert first[0] > second[0]
    assert first[1] < second[1]


def test_more_rows_of_a_person_and_rounding_cost_noise():
    one = moment_scale(500, 3, radius=1.0, budget=BUDGET)
    three = moment_scale(500, 3, radius=1.0, budget=BUDGET, rows_per_person=3)
    rough = moment_scale(500, 3, radius=1.0, budget=BUDGET, feature_error=1e-3)
    assert three[0] == pytest.approx(3 * one[0], rel=1e-6)
    assert rough[0] > one[0]


def test_secure_release_is_not_the_moments():
    sample = moments_of(np.zeros((50, 2)))
    noisy = release_moments(sample, radius=1.0, budget=BUDGET, noise=SecureNoise())
    assert np.all(noisy.mean != 0)
    np.testing.assert_array_equal(noisy.second, noisy.second.T)


def test_nearest_psd_cuts_negative_eigenvalues_only():
    rng = np.random.default_rng(3)
    stack = svec_noise(4, 1.0, rng, 20)
    cut = nearest_psd(stack)
    assert np.linalg.eigvalsh(cut).min() > -1e-12
    np.testing.assert_allclose(
        np.linalg.eigvalsh(cut), np.maximum(np.linalg.eigvalsh(stack), 0), atol=1e-12
    )
    good = stack[0] @ stack[0].T
    np.testing.assert_allclose(nearest_psd(good), good, atol=1e-10)
