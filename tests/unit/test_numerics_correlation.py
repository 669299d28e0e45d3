"""The regularised correlation and the curve that straightens it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from privatest.methods.embedding import (
    Scale,
    correlation,
    correlation_rounding,
    paired_scale,
    straightened,
    two_sample_scale,
)
from privatest.numerics.moments import Moments


def curve(x, slant):
    return float(straightened(np.array([x]), Scale(1.0, 1.0, slant, 1.0, 1.0))[0])


@pytest.mark.parametrize(("x", "value"), [(1.0, 0.5), (2.0, 0.977597), (10.0, 3.091314)])
def test_paired_curve_has_the_published_values(x, value):
    assert curve(x, None) == pytest.approx(value, abs=5e-7)


@pytest.mark.parametrize("slant", [0.0, 1e-9, 0.1, 1 - math.sqrt(0.5), 0.9])
@pytest.mark.parametrize("x", [1e-7, 0.3, 2.0, 30.0])
def test_curve_is_the_integral_of_the_inverse_slope(x, slant):
    angles = np.linspace(0, math.pi / 2, 20001)

    def inverse(t):
        return 1 / np.max(np.sin(angles) * (1 + t * (np.cos(angles) + slant * np.sin(angles))))

    assert curve(x, slant) == pytest.approx(quad(inverse, 0, x)[0], rel=1e-7)


@pytest.mark.parametrize("slant", [None, 0.0, 0.3])
def test_curve_increases_with_slope_at_most_one(slant):
    x = np.linspace(0, 20, 4001)
    values = straightened(x, Scale(1.0, 1.0, slant, 1.0, 1.0))
    steps = np.diff(values) / np.diff(x)
    assert values[0] == 0
    assert steps.min() > 0
    assert steps.max() <= 1 + 1e-9


def test_wide_spread_gives_the_specification():
    scale = two_sample_scale(300, 200, radius=1.0, spread=2.0, condition=10.0)
    assert scale.sensitivity == pytest.approx(10 / (500 - 5))
    assert scale.stretch == pytest.approx(math.sqrt(5) / math.sqrt(1.5))
    assert scale.ridge == pytest.approx(0.2)


def test_a_smaller_spread_needs_less_noise():
    wide, narrow = (
        two_sample_scale(500, 500, radius=1.0, spread=spread, condition=4.0)
        for spread in (2.0, math.sqrt(2))
    )
    assert narrow.sensitivity < 0.72 * wide.sensitivity


@pytest.mark.parametrize(("n", "m"), [(30, 30), (12, 40)])
def test_correlation_is_that_of_rows_with_a_constant(n, m):
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(n + m, 3)) / 4
    labels = np.concatenate([np.full(n, math.sqrt(m / n)), np.full(m, -math.sqrt(n / m))])
    scale = two_sample_scale(n, m, radius=1.3, spread=2.0, condition=3.0)
    rows = np.column_stack([np.full(n + m, scale.constant), psi])
    mean = (labels[:, None] * rows).mean(axis=0)
    matrix = rows.T @ rows / len(rows) + scale.ridge * np.eye(4)
    expected = math.sqrt(mean @ np.linalg.solve(matrix, mean))
    pooled = Moments(n + m, psi.mean(axis=0), psi.T @ psi / len(psi))
    found = correlation((labels[:, None] * psi).mean(axis=0)[None], pooled, scale)
    assert found[0] == pytest.approx(expected, rel=1e-12)
    assert found[0] < 1


def test_rounding_is_far_below_the_sensitivity():
    scale = two_sample_scale(2_000_000, 2_000_000, radius=1.0, spread=1.4, condition=2.0)
    error = correlation_rounding(10, scale, 1.0, (1e-12, 1e-12, 1e-12))
    assert 0 < error < 1e-3 * scale.sensitivity


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="condition"):
        two_sample_scale(3, 3, radius=1.0, spread=2.0, condition=8.0)
    with pytest.raises(ValueError, match="condition"):
        paired_scale(4, reach=1.0, condition=5.0)
