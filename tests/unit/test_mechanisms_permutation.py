"""The smoothed permutation test: published values, rounding, both releases."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatest.core.privacy import Budget, PermutationSensitivity
from privatest.mechanisms.permutation import (
    PVALUE_GRID,
    noise_scale,
    on_steps,
    smoothed_decision,
    smoothed_pvalue,
    survival_mean,
)
from privatest.noise import SimulatedNoise

ONE = PermutationSensitivity(1.0, 1.0)
BUDGET = Budget(1)


class Fixed(SimulatedNoise):
    """Noise of so many scales; the observed statistic is 0 in these tests or near it."""

    def __init__(self, scales):
        super().__init__(0)
        self.scales = scales
        self.scale = math.nan

    def discrete_laplace(self, scale):
        self.scale = scale
        return round(self.scales * scale)


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
    found = survival_mean(32, [30, 10, 20, 15], 5.0)
    assert float(found) == pytest.approx(0.100836076149, rel=1e-11)


def precise_survival_mean(value, points, scale):
    """The same in decimals of 80 digits."""
    with localcontext() as context:
        context.prec, context.Emin = 80, -10_000
        total = Decimal(0)
        for point in points:
            distance = Decimal(value - point) / Decimal(scale)
            tail = (-min(abs(distance), Decimal(5000))).exp() / 2  # as good as 0
            total += tail if distance > 0 else 1 - tail
        return total / len(points)


POINTS = st.integers(-(10**7), 10**7) | st.integers(-(10**20), 10**20)


@given(POINTS, st.lists(POINTS, min_size=1, max_size=8), st.floats(1e3, 1e7))
def test_survival_mean_is_as_accurate_as_the_proof_says(value, points, scale):
    """As if the value had moved by 1e-14 scales."""
    found = survival_mean(value, points, scale)
    tails = [Fraction(precise_survival_mean(abs(value - p), [0], scale)) for p in points]
    with localcontext() as context:
        context.prec = 80
        exact = Fraction(precise_survival_mean(value, points, scale))
    assert 0 < found < 1 or min(abs(value - point) for point in points) > 2000 * scale
    allowed = Fraction(1, 10**14) * sum(tails) / len(points)
    # beyond 2^-4096 only the sign counts, and 80 digits cannot show it
    assert abs(found - exact) <= allowed + Fraction(1, 10**75)


@pytest.mark.parametrize("distance", [50, 800, 5_000, 10**9, 10**300])
def test_far_from_all_points_the_balance_decides(distance):
    """Half of the points above and half below: a cell of the p-value ends at 1/2 exactly."""
    scale = 1e3
    points = [-distance, -distance, distance, distance + 1]
    assert survival_mean(0, points, scale) > Fraction(1, 2)  # one above is further off
    assert survival_mean(1, points, scale) < Fraction(1, 2)


def test_survival_mean_far_out():
    # 1 - S of far-away points does not drown the small differences of others
    points = [10**9, 10**9, -(10**9)]
    assert float(survival_mean(0, points, 1e3)) == pytest.approx(2 / 3, rel=1e-15)
    found = survival_mean(10**9 + 40_000, points, 1e3)
    assert float(found) == pytest.approx(math.exp(-40) / 3, rel=1e-13)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=6),
    st.floats(-30, 30),
    st.sampled_from([1e-320, 1e-290, 1.0, 9e289]),
)
def test_a_pvalue_is_rounded_up_to_the_grid(statistics, scales, bound):
    noise = Fixed(scales)
    sensitivity = PermutationSensitivity(bound, bound)
    common: dict[str, Any] = {"sensitivity": sensitivity, "budget": BUDGET}
    pvalue = smoothed_pvalue(np.array(statistics), noise=noise, **common)
    points, scale = on_steps(np.array(statistics), sensitivity, 1.0, "pvalue")
    assert noise.scale == scale
    exact = survival_mean(points[0] + round(scales * scale), points, scale)
    steps = round(pvalue * PVALUE_GRID)
    assert pvalue == steps / PVALUE_GRID
    assert 1 <= steps <= PVALUE_GRID
    assert steps - 1 < exact * PVALUE_GRID <= steps


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
    st.floats(1e-290, 9e289),
    st.floats(1, 3),
    st.sampled_from([1e-6, 0.5, 1.0, 30.0, 1e9]),
    st.sampled_from(["pvalue", "decision"]),
)
def test_the_lattice_is_exact_and_fine(statistics, observed, ratio, epsilon, release):
    sensitivity = PermutationSensitivity(observed, min(observed * ratio, 9e289))
    points, scale = on_steps(np.array(statistics), sensitivity, epsilon, release)
    in_floats = noise_scale(sensitivity, epsilon, release)
    step = Fraction(2) ** (math.frexp(in_floats)[1] - 47)
    assert points == [math.floor(Fraction(value) / step) for value in statistics]
    assert 2**46 <= scale <= 2**47 * (1 + 1e-6)
    # rounding down moves a difference by at most a step, and the scale pays for it
    assert scale * step >= Fraction(in_floats) * (1 - Fraction(1, 10**12))
    assert scale * step <= Fraction(in_floats) * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 2])
def test_what_is_not_finite_counts_as_zero(bad, place):
    """To refuse it would tell of the data; 0 is a public value."""
    statistics, settled = np.array([3.0, 1.0, 2.0]), np.array([3.0, 1.0, 2.0])
    statistics[place], settled[place] = bad, 0.0
    for scales in (-2.0, 0.3):
        common: dict[str, Any] = {"sensitivity": ONE, "budget": BUDGET, "noise": Fixed(scales)}
        assert smoothed_pvalue(statistics, **common) == smoothed_pvalue(settled, **common)
        found = smoothed_decision(statistics, 0.5, **common)
        assert found == smoothed_decision(settled, 0.5, **common)


@pytest.mark.parametrize(("scales", "pvalue"), [(1e4, 1e-4), (-1e4, 1.0)])
def test_pvalues_at_the_ends(scales, pvalue):
    found = smoothed_pvalue(np.zeros(9), sensitivity=ONE, budget=BUDGET, noise=Fixed(scales))
    assert found == pvalue


@given(st.floats(0.001, 0.999), st.floats(-20, 20))
def test_a_decision_compares_the_exact_pvalue_with_alpha(alpha, scales):
    statistics, noise = np.array([0.0, 1.0, -2.0, 1.0]), Fixed(scales)
    found = smoothed_decision(statistics, alpha, sensitivity=ONE, budget=BUDGET, noise=noise)
    points, scale = on_steps(statistics, ONE, 1.0, "decision")
    exact = survival_mean(points[0] + round(scales * scale), points, scale)
    assert found == (exact <= Fraction(str(alpha)))
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
        scale = noise_scale(ONE, xi, release)  # type: ignore[arg-type]
        assert noise.scale / 2**46 * 2 ** (math.frexp(scale)[1] - 1) == pytest.approx(scale)


def test_the_order_of_permuted_statistics_does_not_matter():
    points = np.random.default_rng(0).integers(-5000, 5000, size=50).tolist()
    shuffled = [points[0], *np.random.default_rng(1).permutation(points[1:]).tolist()]
    for value in (-1000, 300, 2000):
        assert survival_mean(value, points, 700.0) == survival_mean(value, shuffled, 700.0)
