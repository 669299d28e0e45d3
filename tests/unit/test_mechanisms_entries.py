"""The second moment entry by entry: what a replaced row moves, and what noise it gets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.mechanisms.additive import (
    entries_deviation,
    entries_scale,
    entry_noise,
    noisy_entries,
)
from privatest.mechanisms.moments import plan_release
from privatest.noise import SecureNoise, SimulatedNoise


def moved(x, y):
    """How far a replaced row moves n times the second moment, as the mechanism weighs it."""
    change = np.outer(y, y) - np.outer(x, x)
    off = change - np.diag(np.diag(change))
    return max(np.abs(np.diag(change)).max(), np.abs(off).max() / 2)


@pytest.mark.parametrize("dimension", [2, 3])
def test_no_replaced_row_moves_an_entry_further_than_declared(dimension):
    corners = [np.array(c) for c in itertools.product((-1.0, 0.0, 1.0), repeat=dimension)]
    rng = np.random.default_rng(0)
    inside = [rng.uniform(-1, 1, size=dimension) for _ in range(300)]
    pairs = [*itertools.product(corners, corners), *itertools.pairwise(inside)]
    worst = max(moved(x, y) for x, y in pairs)
    assert worst == 1.0  # attained, and never more
    scale = entries_scale(100, epsilon=2.0)
    assert 1 / 200 < scale < 1 / 200 * (1 + 1e-8)
    assert entries_scale(100, epsilon=2.0, rows_per_person=3) == pytest.approx(3 * scale)
    assert entries_scale(100, epsilon=2.0, error=1e-3) == pytest.approx(scale + 1e-3)


@pytest.mark.parametrize("dimension", [2, 3])
def test_noise_has_the_stated_size_and_the_bootstrap_draws_the_same(dimension):
    """Mean squares of 1500 and 40,000 draws, within 6 standard errors: false alarm 1e-8."""
    noise, n, epsilon = SimulatedNoise(3), 50, 1.5
    second = np.diag(np.full(dimension, 0.3))
    drawn = np.array(
        [noisy_entries(second, n=n, epsilon=epsilon, noise=noise) for _ in range(1500)]
    )
    scale = entries_scale(n, epsilon=epsilon)
    simulated = entry_noise(dimension, scale, 40_000, np.random.default_rng(4))
    expected = dimension * entries_deviation(dimension, scale) ** 2
    for found in (drawn - second, simulated):
        assert np.array_equal(found, np.swapaxes(found, 1, 2))
        squares = np.square(found).sum(axis=(1, 2))
        error = squares.std() / np.sqrt(len(squares))
        assert abs(squares.mean() - expected) < 6 * error


def test_what_is_released_lies_on_the_grid_of_the_noise():
    """No low bits of the data: neighbours with different bits land on the same grid."""
    grid = 2.0**-30 / 64  # at most 2^-30 of 1/n, for n = 50
    for value in (0.1, 0.1 + 2.0**-50, 1 / 3):
        second = np.array([[0.5, value], [value, 0.5]])
        found = noisy_entries(second, n=50, epsilon=1, noise=SecureNoise())
        steps = found / grid
        assert np.array_equal(steps, np.rint(steps))


def test_two_and_three_columns_have_no_axes():
    for dimension in (1, 2, 3, 4):
        plan = plan_release(100, dimension, Budget(1), 1)
        assert (plan.ed is None) == (dimension in (2, 3)) == (plan.entries > 0)
    assert plan_release(100, 2, Budget(1, 1e-6), 1).entries == 0


def test_a_matrix_is_needed():
    with pytest.raises(ParameterError, match="square"):
        noisy_entries(np.zeros((2, 3)), n=5, epsilon=1, noise=SimulatedNoise(0))
