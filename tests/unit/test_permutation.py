"""The smoothed permutation test: published values, rounding, both releases."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.noise import SimulatedNoise
from privatest.permutation import (
    PVALUE_GRID,
    noise_scale,
    smoothed_decision,
    smoothed_pvalue,
    survival_mean,
)
from privatest.privacy import Budget, PermutationSensitivity

ONE = PermutationSensitivity(1.0, 1.0)
BUDGET = Budget(1)


class Fixed(SimulatedNoise):
    """Noise that puts the observed statistic where a test wants it."""

    def __init__(self, result):
        super().__init__(0)
        self.result = result
        self.scale = math.nan

    def laplace(self, value, scale):
        self.scale = scale
        return self.result


# --- noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "scale"), [(1.0, 2.247708770), (0.1, 22.499768542), (3.0, 0.743646495)]
)
def test_published_scales_of_a_pvalue(epsilon, scale):
    found = noise_scale(ONE, epsilon, "pvalue")
    assert found == pytest.approx(scale, rel=1e-6)
    assert found > scale  # widened for rounding


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [(0.01, 2.25), (0.1, 2.249977), (1.0, 2.247709), (3.0, 2.230939), (10.0, 2.137188)],
)
def test_published_factors_of_a_pvalue(epsilon, factor):
    assert noise_scale(ONE, epsilon, "pvalue") * epsilon == pytest.approx(factor, rel=2e-6)


@given(st.floats(1e-6, 1e4), st.floats(1e-9, 1e6), st.floats(1, 2))
def test_a_decision_costs_both_movements(epsilon, observed, ratio):
    sensitivity = PermutationSensitivity(observed, observed * ratio)
    scale = noise_scale(sensitivity, epsilon, "decision")
    assert (sensitivity.observed + sensitivity.permuted) / scale <= epsilon
    assert scale == pytest.approx((1 + ratio) * observed / epsilon, rel=1e-2)


@given(st.floats(1e-3, 20), st.floats(1, 2))
def test_a_pvalue_needs_a_little_more_noise_than_a_decision(epsilon, ratio):
    sensitivity = PermutationSensitivity(1.0, ratio)
    pvalue = noise_scale(sensitivity, epsilon, "pvalue")
    decision = noise_scale(sensitivity, epsilon, "decision")
    assert 1 <= pvalue / decision <= 1.17


def test_noise_grows_with_the_sensitivity():
    for release in ("decision", "pvalue"):
        scales = [
            noise_scale(PermutationSensitivity(1.0, ratio), 1.0, release)
            for ratio in (1.0, 1.5, 2.0)
        ]
        assert scales == sorted(scales)
        tripled = noise_scale(PermutationSensitivity(3.0, 6.0), 1.0, release)
        assert tripled == pytest.approx(3 * scales[-1], rel=1e-9)


# --- the p-value -----------------------------------------------------------------------------


def test_published_smoothed_pvalue():
    found = survival_mean(0.32, np.array([0.3, 0.1, 0.2, 0.15]), 0.05)
    assert float(found) == pytest.approx(0.100836076149, rel=1e-11)


def plain_survival_mean(value, statistics, scale):
    distances = [(Fraction(value) - Fraction(t)) / Fraction(scale) for t in statistics]
    tails = [0.5 * math.exp(-abs(distance)) for distance in distances]
    return sum(t if d > 0 else 1 - t for t, d in zip(tails, distances, strict=True)) / len(tails)


@given(
    st.floats(-20, 20),
    st.lists(st.floats(-20, 20), min_size=1, max_size=8),
    st.floats(0.01, 10),
)
def test_survival_mean(value, statistics, scale):
    found = survival_mean(value, np.array(statistics), scale)
    assert 0 <= found <= 1
    expected = plain_survival_mean(value, statistics, scale)
    assert float(found) == pytest.approx(expected, rel=1e-10, abs=1e-14)


def test_survival_mean_far_out():
    # 1 - S of far-away statistics does not drown the small differences of others
    statistics = np.array([1e6, 1e6, -1e6])
    assert survival_mean(0.0, statistics, 1.0) == Fraction(2, 3)
    assert survival_mean(1e6 + 40, statistics, 1.0) == Fraction(math.exp(-40)) / 3


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=6), st.floats(-30, 30))
def test_a_pvalue_is_rounded_up_to_the_grid(statistics, noisy):
    noise = Fixed(noisy)
    pvalue = smoothed_pvalue(np.array(statistics), sensitivity=ONE, budget=BUDGET, noise=noise)
    exact = survival_mean(noisy, np.array(statistics), noise.scale)
    steps = round(pvalue * PVALUE_GRID)
    assert pvalue == steps / PVALUE_GRID
    assert 1 <= steps <= PVALUE_GRID
    assert steps - 1 <= exact * PVALUE_GRID <= steps


@pytest.mark.parametrize(("noisy", "pvalue"), [(1e9, 1e-4), (-1e9, 1.0)])
def test_pvalues_at_the_ends(noisy, pvalue):
    found = smoothed_pvalue(np.zeros(9), sensitivity=ONE, budget=BUDGET, noise=Fixed(noisy))
    assert found == pvalue


@given(st.floats(0.001, 0.999), st.floats(-20, 20))
def test_a_decision_compares_the_exact_pvalue_with_alpha(alpha, noisy):
    statistics, noise = np.array([0.0, 1.0, -2.0, 1.0]), Fixed(noisy)
    found = smoothed_decision(statistics, alpha, sensitivity=ONE, budget=BUDGET, noise=noise)
    assert found == (survival_mean(noisy, statistics, noise.scale) <= Fraction(str(alpha)))
    assert type(found) is bool


def test_alpha_is_what_was_typed():
    # all statistics at 0 and noise to the median: p = 1/2 exactly
    common: dict[str, Any] = {"sensitivity": ONE, "budget": BUDGET, "noise": Fixed(0.0)}
    assert smoothed_decision(np.zeros(4), 0.5, **common)
    assert not smoothed_decision(np.zeros(4), math.nextafter(0.5, 0), **common)


def test_releases_use_the_noise_of_their_theorem():
    for function, release in ((smoothed_pvalue, "pvalue"), (smoothed_decision, "decision")):
        noise = Fixed(0.0)
        alpha = (0.05,) if release == "decision" else ()
        function(np.zeros(3), *alpha, sensitivity=ONE, budget=Budget(0.5, 0.01), noise=noise)
        xi = Budget(0.5, 0.01).pure_epsilon
        assert xi > 0.5
        assert noise.scale == noise_scale(ONE, xi, release)  # type: ignore[arg-type]


def test_the_order_of_permuted_statistics_does_not_matter():
    statistics = np.random.default_rng(0).normal(size=50)
    shuffled = np.append(statistics[:1], np.random.default_rng(1).permutation(statistics[1:]))
    for value in (-1.0, 0.3, 2.0):
        assert survival_mean(value, statistics, 0.7) == survival_mean(value, shuffled, 0.7)
