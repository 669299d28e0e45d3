"""Events, composition, and what may decide a grant."""

from __future__ import annotations

import itertools
import json
import math
import time
from decimal import Decimal
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privatest.accounting import (
    Approximate,
    Gaussian,
    Laplace,
    Pure,
    compose,
    covers,
    event_from_dict,
    event_to_dict,
    fits,
    gaussian_epsilon,
    largest_rho,
    most_repeats,
    price,
    zcdp_delta,
    zcdp_price,
)
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget, gaussian_scale

DELTA = Decimal("1e-6")


# --- events ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        Pure(0.1),
        Pure("0.000001", part="north"),
        Approximate("0.5", "1e-9"),
        Gaussian("0.123456789012345678"),
        Laplace(1 / 3),
    ],
)
def test_events_survive_json(event):
    assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event


def test_equal_numbers_are_equal_events():
    assert len({Pure(0.1), Pure("0.10"), Pure(Decimal("0.100"))}) == 1
    assert Pure(0.1) != Pure(0.1, part="a")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pure(0),
        lambda: Pure(-1),
        lambda: Pure(float("nan")),
        lambda: Pure(1, part=""),
        lambda: Approximate(1, 0),
        lambda: Approximate(1, 1),
        lambda: Gaussian(0),
        lambda: Gaussian("many"),
        lambda: Gaussian(True),
        lambda: Gaussian(float("inf")),
        lambda: Laplace(-2),
        lambda: Laplace(10**7),
        lambda: event_from_dict({"kind": "uniform"}),
        lambda: event_from_dict({"kind": "pure", "mu": "1"}),
        lambda: price(Gaussian(1)),
        lambda: compose(["pure"]),  # type: ignore[list-item]
        lambda: compose({Pure(1): -1}),
        lambda: compose([], delta=1),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_scales_are_rounded_down_and_prices_up():
    assert Laplace(Decimal(1) / 3).scale < Decimal(1) / 3
    assert price(Laplace(3)).epsilon * 3 >= 1
    assert Gaussian(Decimal(1) / 3).mu > Decimal(1) / 3


def test_a_calibrated_gaussian_is_covered_by_its_budget():
    budget = Budget("0.7", "1e-5")
    mu = 1 / gaussian_scale(1.0, budget)
    assert covers(budget, Gaussian(mu))
    assert not covers(budget, Gaussian(mu * 1.00001))
    assert not covers(Budget("0.7"), Gaussian("0.001"))
    assert covers(Budget(1), Pure(1))
    assert not covers(Budget("0.999999"), Pure(1))


# --- composition: published figures ------------------------------------------------------------


def test_addition_is_exact():
    assert compose([Pure("0.1")] * 30) == 3
    assert compose([Pure("0.1"), Approximate("0.2", "1e-7")], delta="1e-7") <= Decimal("0.3")
    assert compose([]) == 0


def test_a_hundred_small_events():
    cost = compose([Pure("0.05")] * 100, delta=DELTA)
    assert Decimal("2.2") < cost <= Decimal("2.25")


def test_gaussians_add_their_squares():
    together = compose([Gaussian("0.3"), Gaussian("0.4")], delta=DELTA)
    assert abs(together - gaussian_epsilon(Decimal("0.5"), DELTA)) <= Decimal("1e-6")
    # and that is what the noise needs, from the other side
    assert gaussian_scale(1.0, Budget(together, DELTA)) == pytest.approx(2, abs=1e-6)


def test_nothing_is_enough():
    assert compose([Gaussian(1)]).is_infinite()
    assert compose([Approximate(1, "1e-5")], delta="1e-6").is_infinite()


def test_parts_count_once():
    north = [Pure("0.5", part="north")] * 2
    south = [Pure("0.7", part="south")]
    assert compose(north + south + [Pure("0.25")]) == Decimal("1.25")


def test_fits_and_repeats():
    assert fits([Pure("0.1")] * 29, Pure("0.1"), Budget(3))
    assert not fits([Pure("0.1")] * 30, Pure("0.1"), Budget(3))
    assert fits({}, [Pure("0.1")] * 30, Budget(3))
    assert most_repeats(Pure(4), Budget(3)) == 0
    count = most_repeats(Pure("0.05"), Budget("2.25", DELTA))
    assert count >= 100
    assert not fits({Pure("0.05"): count}, Pure("0.05"), Budget("2.25", DELTA))


def test_thousands_of_events_are_quick():
    compose([Pure("0.05")] * 2, delta=DELTA)  # imports
    start = time.process_time()
    compose([Pure("0.01")] * 5000 + [Gaussian("0.01")] * 5000, delta=DELTA)
    compose([Pure(Decimal(i) / 10**5) for i in range(100, 1100)], delta=DELTA)
    assert time.process_time() - start < 10


# --- never below the truth ----------------------------------------------------------------------


def cells(event, count=12):
    """Output probabilities under two neighbours, cut into cells: cutting hides, never reveals."""
    if isinstance(event, Laplace):
        scale = float(event.scale)
        edges = np.concatenate([[-np.inf], np.linspace(0, 1, count), [np.inf]])

        def mass(centre):
            z = (edges - centre) / scale
            cdf = np.where(
                z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0))
            )
            return np.diff(cdf)

        return list(zip(mass(0), mass(1), strict=True))
    epsilon = float(event.epsilon)
    delta = float(getattr(event, "delta", 0))
    p = (1 - delta) / (1 + math.exp(-epsilon))
    q = (1 - delta) / (1 + math.exp(epsilon))
    return [(p, q), (q, p), (delta, 0.0), (0.0, delta)]


def gaussian_part(mu, epsilon):
    """Delta of Gaussian noise at any real epsilon, for a loss that is there already."""
    if mu == 0:
        return max(0.0, 1 - math.exp(min(epsilon, 0)) if epsilon < 0 else 0.0)

    def cdf(x):
        return 0.5 * math.erfc(-x / math.sqrt(2))

    return cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


def lower_bound(events, epsilon):
    """Delta that a worst case of these events really has at epsilon, at least."""
    mu = math.sqrt(sum(float(e.mu) ** 2 for e in events if isinstance(e, Gaussian)))
    total = 0.0
    for outcome in itertools.product(*(cells(e) for e in events if not isinstance(e, Gaussian))):
        p = math.prod(pair[0] for pair in outcome)
        q = math.prod(pair[1] for pair in outcome)
        if q == 0:
            total += p
        elif p > 0:
            total += p * gaussian_part(mu, epsilon - math.log(p / q))
    return total


def test_the_lower_bound_is_right_for_one_event():
    assert lower_bound([Pure(1)], 0) == pytest.approx(math.tanh(0.5))
    assert lower_bound([Gaussian(1)], 1) == pytest.approx(0.126936737507)
    assert lower_bound([Laplace(1)], 0) == pytest.approx(1 - math.exp(-0.5), rel=3e-2)
    assert lower_bound([Approximate(1, "0.1")], 1) == pytest.approx(0.1)


EVENTS = st.one_of(
    st.integers(1, 150).map(lambda i: Pure(Decimal(i) / 100)),
    st.tuples(st.integers(1, 100), st.integers(1, 50)).map(
        lambda t: Approximate(Decimal(t[0]) / 100, Decimal(t[1]) / 10**5)
    ),
    st.integers(5, 100).map(lambda i: Gaussian(Decimal(i) / 100)),
    st.integers(1, 10).map(Laplace),
)


@settings(max_examples=15)
@given(st.lists(EVENTS, min_size=1, max_size=4), st.sampled_from(["1e-6", "1e-3", "0.05"]))
def test_mixtures_never_cost_less_than_they_reveal(events, delta):
    epsilon = compose(events, delta=delta)
    assume(epsilon.is_finite())
    assert lower_bound(events, float(epsilon)) <= float(delta) * (1 + 1e-9)


def binomial_delta(epsilon, count, at):
    """Exact delta of equal pure events in their worst case."""
    p = 1 / (1 + math.exp(-epsilon))
    total = 0.0
    for k in range(count + 1):
        loss = (2 * k - count) * epsilon
        if loss > at:
            total += math.comb(count, k) * p**k * (1 - p) ** (count - k) * -math.expm1(at - loss)
    return total


@pytest.mark.parametrize("delta", ["1e-9", "1e-6", "1e-2"])
@pytest.mark.parametrize(("epsilon", "count"), [("0.05", 100), ("0.0123", 777), ("0.5", 12)])
def test_equal_events_cost_what_they_reveal(epsilon, count, delta):
    cost = float(compose({Pure(epsilon): count}, delta=delta))
    assert binomial_delta(float(epsilon), count, cost) <= float(delta)
    assert binomial_delta(float(epsilon), count, cost * 0.985) > float(delta)  # and not much more


def test_merging_events_rounds_to_the_safe_side():
    events = [Pure(Decimal(1000 + i) / 10**5) for i in range(200)]
    dearest = compose({Pure("0.012"): 200}, delta=DELTA)
    cheapest = compose({Pure("0.01"): 200}, delta=DELTA)
    assert cheapest < compose(events, delta=DELTA) < dearest * Decimal("1.01")


# --- analysts who choose by the last answer -------------------------------------------------------


def test_exact_composition_must_not_decide_grants():
    """Either pair of requests fits; an analyst who picks the second by the first gets more."""
    total = Budget(1, "0.05")
    first, a, b = Pure("0.99"), Approximate("1e-6", "0.0499"), Pure("0.144")
    assert fits([first], a, total)
    assert fits([first], b, total)
    up = 1 / (1 + math.exp(-0.99))
    # b after the answer with loss .99, a after the one with loss -.99
    delta = up * lower_bound([b], 1 - 0.99) + (1 - up) * lower_bound([a], 1 + 0.99)
    assert delta > 0.06
    # the sums that do decide refuse both
    rho = zcdp_price(first)[0]
    assert rho + zcdp_price(b)[0] > largest_rho(total)
    assert zcdp_price(a)[1] > total.delta / 2


def best_adversary(total, menu, rho):
    """Delta at epsilon of the best adaptive strategy over a menu, within a limit on rho.

    Losses are multiples of the smallest entry of the menu; rho counts in its squares.
    """
    unit = float(menu[0])
    steps = [round(float(e) / unit) for e in menu]
    budget = math.floor(float(rho) / (unit**2 / 2))
    probabilities = [1 / (1 + math.exp(-s * unit)) for s in steps]

    @cache
    def value(loss, left):
        best = max(0.0, -math.expm1(float(total.epsilon) - loss * unit))
        for s, p in zip(steps, probabilities, strict=True):
            if s * s <= left:
                further = p * value(loss + s, left - s * s)
                best = max(best, further + (1 - p) * value(loss - s, left - s * s))
        return best

    return value(0, budget)


@pytest.mark.parametrize(
    ("total", "menu"),
    [
        (Budget(1, "0.05"), ("0.1", "0.2", "0.3")),
        (Budget(2, "0.01"), ("0.2", "0.4", "0.6", "0.8")),
        (Budget("0.5", "0.2"), ("0.1", "0.2", "0.4")),
    ],
)
def test_zcdp_holds_against_the_best_adversary(total, menu):
    rho = largest_rho(total)
    worst = best_adversary(total, menu, rho)
    assert worst <= float(total.delta) / 2  # the other half pays for the requests' own deltas
    # the search does find overspending where there is some
    assert best_adversary(total, menu, 4 * rho) > float(total.delta)


def test_zcdp_conversion():
    rho = largest_rho(Budget(3, DELTA))
    assert zcdp_delta(float(rho), 3.0) <= 0.5e-6
    assert zcdp_delta(float(rho) * 1.001, 3.0) > 0.5e-6
    assert math.floor(rho / zcdp_price(Pure("0.05"))[0]) == 140  # plain addition: 60
    assert zcdp_price(Gaussian("0.2")) == (Decimal("0.02"), Decimal(0))
    assert zcdp_price(Approximate("0.2", "1e-8")) == (Decimal("0.02"), Decimal("1e-8"))
    # never below what Gaussian noise, which is rho-zCDP, really has
    for epsilon in (0.1, 1.0, 4.0):
        assert zcdp_delta(0.02, epsilon) >= gaussian_part(0.2, epsilon)
