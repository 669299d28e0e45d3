"""Budgets are exact and round towards keeping the promise; noise is never too small."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr

from privatest.core.errors import ParameterError
from privatest.core.privacy import (
    MINIMUM_EPSILON,
    Budget,
    PermutationSensitivity,
    Sensitivity,
    gaussian_delta,
    gaussian_scale,
)

EPSILONS = st.floats(1e-6, 50)
DELTAS = st.floats(1e-15, 0.99)


# --- Budget ----------------------------------------------------------------------------------


def test_budgets_add_up_as_decimals():
    assert Budget(0.1) + Budget(0.2) == Budget(0.3)
    assert (Budget(0.1) + Budget(0.2)).epsilon == Decimal("0.3")
    total = Budget(0.1)
    for _ in range(999):
        total = total + Budget(0.1)
    assert total == Budget(100)


@pytest.mark.parametrize("value", [0.5, "0.5", Decimal("0.50"), np.float64(0.5)])
def test_a_budget_reads_what_was_typed(value):
    assert Budget(value, value) == Budget("0.5", "0.5")


@pytest.mark.parametrize("value", [2, "2", np.int64(2)])
def test_a_budget_reads_whole_numbers(value):
    assert Budget(value).epsilon == 2


def test_budgets_round_up():
    assert Budget("0.1234567890123456789").epsilon == Decimal("0.123456789012345679")
    with pytest.raises(ParameterError, match="at least 1e-18"):
        Budget(1, "1e-30")  # rounding it up would spend more than was asked for


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "sNaN",
        "inf",
        "Infinity",
        "one",
        "",
        "0,1",
        "1 2",
        True,
        False,
        None,
        [1],
        1j,
        b"1",
        0,
        -1,
        "-0.1",
        9e-7,
        "1e-7",
        1e10,
        10**400,
        "1e9999999",
        "-1e9999999",
    ],
)
def test_a_budget_refuses(value):
    with pytest.raises(ParameterError, match="epsilon must be"):
        Budget(value)


@pytest.mark.parametrize("value", [1, 1.0, "1", -1e-9, math.nan, math.inf, True, "x", None])
def test_a_budget_refuses_a_delta(value):
    with pytest.raises(ParameterError, match="delta must be"):
        Budget(1, value)


def test_the_smallest_epsilon():
    assert Budget(1e-6).epsilon == MINIMUM_EPSILON
    assert Budget(1e-6).pure_epsilon <= 1e-6


def test_deltas_that_leave_nothing_are_refused():
    with pytest.raises(ParameterError, match="delta"):
        Budget(1, 0.5) + Budget(1, 0.5)


def test_a_budget_is_frozen_and_printed():
    budget = Budget(0.1, 1e-6)
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.epsilon = Decimal(9)  # type: ignore[misc]
    assert str(budget) == "epsilon = 0.1, delta = 1e-06"
    assert str(Budget("2.50")) == "epsilon = 2.5"
    assert hash(budget) == hash(Budget("0.1", "0.000001"))


@given(EPSILONS, st.just(0.0) | DELTAS)
def test_floats_of_a_budget_are_rounded_down(epsilon, delta):
    budget = Budget(epsilon, delta)
    floats = budget.as_floats
    assert Decimal(floats[0]) <= budget.epsilon
    assert Decimal(floats[1]) <= budget.delta
    assert floats == pytest.approx((epsilon, delta), rel=1e-12, abs=1e-17)


@given(EPSILONS, DELTAS)
def test_pure_epsilon(epsilon, delta):
    """xi = log((e^eps + delta)/(1 - delta)), and never above it."""
    budget = Budget(epsilon, delta)
    xi = float((budget.epsilon.exp() + budget.delta).ln() - (1 - budget.delta).ln())
    assert budget.pure_epsilon <= xi * (1 + 1e-15)
    assert budget.pure_epsilon == pytest.approx(max(xi, budget.as_floats[0]), rel=1e-12)
    assert budget.pure_epsilon >= budget.as_floats[0]


def test_pure_epsilon_is_what_makes_pure_noise_approximate():
    # xi-private and delta: e^xi <= e^eps + delta (1 + e^xi), attained by randomised response
    budget = Budget(1, 0.01)
    truth = 1 / (1 + math.exp(-budget.pure_epsilon))
    assert truth == pytest.approx(math.e * (1 - truth) + 0.01, rel=1e-12)
    assert Budget(1).pure_epsilon == 1
    assert Budget(800, 0.5).pure_epsilon == pytest.approx(800 + math.log(2))


# --- sensitivities ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, True, "1", None])
def test_a_sensitivity_refuses(value):
    with pytest.raises(ParameterError, match="sensitivity must be"):
        Sensitivity(value)
    with pytest.raises(ParameterError, match="sensitivity must be"):
        PermutationSensitivity(value, 1.0)


def test_permuted_statistics_move_at_least_as_far():
    with pytest.raises(ParameterError, match="at least"):
        PermutationSensitivity(1.0, 0.5)


def test_sensitivities_are_scaled_and_widened():
    sensitivity = PermutationSensitivity(1.0, 2.0)
    assert sensitivity * 3 == PermutationSensitivity(3.0, 6.0)
    assert sensitivity.widened(0.25) == PermutationSensitivity(1.5, 2.5)


# --- Gaussian noise --------------------------------------------------------------------------


def independent_delta(scale, epsilon):
    """The same formula from logarithms of the normal law."""
    first = log_ndtr(0.5 / scale - epsilon * scale)
    second = epsilon + log_ndtr(-0.5 / scale - epsilon * scale)
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


def test_gaussian_scale_at_one_and_a_millionth():
    assert gaussian_scale(1.0, Budget(1, 1e-6)) == pytest.approx(4.2247, abs=5e-5)
    assert gaussian_scale(3.0, Budget(1, 1e-6)) == pytest.approx(3 * 4.224679, rel=1e-5)


@given(st.floats(1e-4, 30), st.floats(1e-12, 0.9))
def test_gaussian_noise_keeps_delta(epsilon, delta):
    budget = Budget(epsilon, delta)
    scale = gaussian_scale(1.0, budget)
    assert gaussian_delta(scale, budget.as_floats[0]) <= budget.as_floats[1]
    declared = float(budget.delta)  # in 18 decimals, rounded up: it is what a result says
    assert delta <= declared <= delta + 1.01e-18
    assert independent_delta(scale, epsilon) <= declared * (1 + 1e-9)
    # and no more noise than that takes
    assert independent_delta(0.999 * scale, epsilon) > delta * (1 - 1e-6)


@given(st.floats(0.05, 100), st.floats(1e-4, 10))
def test_gaussian_delta_is_not_understated(scale, epsilon):
    expected = independent_delta(scale, epsilon)
    assert gaussian_delta(scale, epsilon) >= expected * (1 - 1e-10) - 1e-16
    assert gaussian_delta(scale, epsilon) == pytest.approx(expected, rel=1e-6, abs=1e-14)


def precise_normal_cdf(x: Decimal) -> Decimal:
    """Phi(x) by its series around 0, in the context's digits less those of e^(x²/2)."""
    term = total = x
    for n in range(1, 3000):
        term *= -x * x / (2 * n)
        total += term / (2 * n + 1)
        if abs(term) < Decimal(10) ** -115:
            break
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620")
    pi += Decimal("8.9986280348253421170679821480865132823066470938446095505822317253594e-77")
    return Decimal("0.5") + total / (2 * pi).sqrt()


@pytest.mark.parametrize("delta", ["1e-18", "1e-15", "1e-9", "1e-6", "0.3"])
@pytest.mark.parametrize("epsilon", ["1e-6", "1e-3", "0.1", "1", "10"])
def test_gaussian_delta_in_a_hundred_digits(epsilon, delta):
    """Where the two terms cancel up to 12 digits as well."""
    budget = Budget(epsilon, delta)
    scale = gaussian_scale(1.0, budget)
    with localcontext() as context:
        context.prec = 120
        s, e = Decimal(scale), budget.epsilon
        ends = [precise_normal_cdf(sign / (2 * s) - e * s) for sign in (1, -1)]
        exact = ends[0] - e.exp() * ends[1]
        assert exact <= budget.delta
        assert exact >= budget.delta * (1 - Decimal("1e-6"))
        found = Decimal(gaussian_delta(scale, float(e)))
    assert 1 <= float(found / exact) <= 1 + 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-18), (1e-6, 0.999), (1e6, 1e-18)])
def test_gaussian_scale_at_the_ends(epsilon, delta):
    scale = gaussian_scale(1.0, Budget(epsilon, delta))
    assert math.isfinite(scale)
    assert gaussian_delta(scale, epsilon) <= delta


@pytest.mark.parametrize("epsilon", [690, 700, 714, 715, 721, 740])
@pytest.mark.parametrize("delta", [1e-18, 1e-12, 1e-9, 0.5])
def test_gaussian_delta_where_a_tail_has_few_digits(epsilon, delta):
    """Up to 1.08 times the declared delta was spent."""
    scale = gaussian_scale(1.0, Budget(epsilon, delta))
    first, second = (sign * 0.5 / scale - epsilon * scale for sign in (1, -1))
    exact = math.exp(log_ndtr(first)) - math.exp(epsilon + log_ndtr(second))
    assert exact <= delta * (1 + 1e-6)


def test_gaussian_noise_needs_delta():
    with pytest.raises(ParameterError, match="delta must be above 0"):
        gaussian_scale(1.0, Budget(1))


@pytest.mark.parametrize("parts", [1, 3, 7, 1000])
def test_a_budget_in_equal_parts_is_never_more_than_the_whole(parts):
    whole = Budget("0.1", "1e-7")
    share = whole.divided(parts)
    assert parts * share.epsilon <= whole.epsilon
    assert parts * share.delta <= whole.delta
    assert parts * share.epsilon > whole.epsilon - Decimal("1e-14")


def test_a_budget_is_not_cut_below_the_smallest_one():
    with pytest.raises(ParameterError, match="epsilon must be at least"):
        Budget("0.00001").divided(11)
