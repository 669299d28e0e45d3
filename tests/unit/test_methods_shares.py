"""Plans and shares: what they hold, and how they are compared."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privatest import DataError, ParameterError, Schema
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn
from privatest.methods.locations import ChosenFrequencies, ChosenLocations, distinguishing_features
from privatest.methods.shares import Share, SharePlan, compare, compare_all, holm, plan_share, share
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.numerics.features import mean_embedding
from privatest.numerics.kernels import Kernel
from privatest.numerics.moments import NoisyMoments

MIXED = Schema(
    {
        "visits": NumericColumn(0, 80, integer=True, missing=3),
        "plan, old": CategoricalColumn(("basic", 1, 2.5, True), missing="basic"),
        "age": NumericColumn(-0.1, 1e-300 + 100),
    },
    rows_per_person=3,
)
PLAN = plan_share((0, 1), epsilon=1, delta="1e-6", locations=3)


def made(seed: int = 0, n: int = 300, plan: SharePlan = PLAN, *, low: float = 0.0) -> Share:
    x = np.random.default_rng(seed).uniform(low, 1, size=(n, len(plan.schema.columns)))
    return share(x, plan=plan, noise=SimulatedNoise(seed))


# --- plans -----------------------------------------------------------------------------------


def test_default_plan_knows_no_data():
    plan = plan_share([(0, 2), (-1, 1)], epsilon=0.1, delta=1e-6)
    assert np.array_equal(plan.points, Domain((0, 0)).points(10))
    assert plan.bandwidth == math.sqrt(2) / 4
    assert (plan.kernel, plan.features, plan.balance) == ("gaussian", "mean embedding", 1.0)
    assert list(plan.schema.columns) == ["x1", "x2"]
    assert plan_share([(0, 2), (-1, 1)], epsilon=0.1, delta=1e-6).digest == plan.digest
    assert plan_share((0, 1), epsilon=1, delta=1e-6, kernel="laplace").bandwidth == 0.25


def test_locations_are_given_in_the_units_of_the_data():
    table = pd.DataFrame({"age": [20.0, 1000.0], "visits": [40, 80]})
    bounds = {"visits": (0, 80), "age": (0, 100)}
    plan = plan_share(bounds, epsilon=1, delta=1e-6, locations=table)
    assert plan.points.tolist() == [[0.5, 0.2], [1.0, 1.0]]
    array = plan_share(bounds, epsilon=1, delta=1e-6, locations=[[40, 20], [80, 1000]])
    assert array.digest == plan.digest


def test_drawn_frequencies_are_public_and_repeatable():
    first = plan_share([(0, 1)] * 3, epsilon=1, delta=1e-6, frequencies=4)
    assert first.points.shape == (4, 3)
    assert first.embedding().dimension == 8
    again = plan_share([(0, 1)] * 3, epsilon=1, delta=1e-6, frequencies=4)
    assert again.digest == first.digest
    other = plan_share([(0, 1)] * 3, epsilon=1, delta=1e-6, frequencies=4, rng=1)
    assert other.digest != first.digest


def test_a_plan_takes_what_was_optimised():
    places = ChosenLocations(np.array([[2.0], [7.0]]), 0.3, 1.0)
    options: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
    by_hand = plan_share((0, 10), locations=places.locations, bandwidth=0.3, **options)
    assert plan_share((0, 10), locations=places, **options).digest == by_hand.digest
    with pytest.raises(ParameterError, match="bandwidth must be left out"):
        plan_share((0, 10), locations=places, bandwidth=0.2, **options)
    waves = ChosenFrequencies(np.array([[0.5]]), 1.0)
    by_hand = plan_share((0, 10), frequencies=waves.frequencies, **options)
    assert plan_share((0, 10), frequencies=waves, **options).digest == by_hand.digest


PLANS = {
    "default": PLAN,
    "mixed": plan_share(MIXED, epsilon="0.12345678901234567", delta="1e-18", kernel="imq"),
    "waves": plan_share([(0, 1), (1e-9, math.pi)], epsilon=3, delta=0.1, frequencies=2),
    "smooth waves": plan_share((0, 1), epsilon=1, delta=1e-6, frequencies=[[7.1]], bandwidth=0.3),
    "narrow": plan_share((0, 1), epsilon=1e-6, delta=1e-6, bandwidth=1e-6, balance=0.3),
}


@pytest.mark.parametrize("name", PLANS)
def test_plan_round_trip(name, tmp_path):
    plan = PLANS[name]
    plan.save(tmp_path / "plan.json")
    back = SharePlan.load(tmp_path / "plan.json")
    assert back.digest == plan.digest
    assert back.parameters == plan.parameters
    assert back.budget == plan.budget
    assert back.schema == plan.schema
    assert np.array_equal(back.points, plan.points)
    assert back.scales(100) == plan.scales(100)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_every_public_parameter_is_in_the_digest():
    base: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "locations": 3, "bandwidth": 0.5}
    base["balance"] = 1.0
    changes: list[dict[str, Any]] = [
        {"epsilon": 2},
        {"delta": 1e-7},
        {"locations": 4},
        {"bandwidth": 0.6},
        {"balance": 2.0},
        {"kernel": "imq"},
    ]
    plans = [plan_share((0, 1), **(base | change)) for change in ({}, *changes)]
    schemas = [
        Schema({"x1": NumericColumn(0, 2)}),
        Schema({"x2": NumericColumn(0, 1)}),
        Schema({"x1": NumericColumn(0, 1, integer=True)}),
        Schema({"x1": NumericColumn(0, 1, missing=0)}),
        Schema({"x1": NumericColumn(0, 1)}, rows_per_person=2),
    ]
    plans += [plan_share(schema, **base) for schema in schemas]
    assert len({plan.digest for plan in plans}) == len(plans)


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ({"epsilon": 0}, "epsilon must be"),
        ({"delta": 0}, "delta must be above 0"),
        ({"locations": 0}, "locations must be"),
        ({"locations": 257}, "locations must be"),
        ({"locations": 10**12}, "locations must be"),
        ({"locations": np.empty((0, 1))}, "locations must"),
        ({"locations": [[1.0, 2.0]]}, "locations must"),
        ({"locations": [[math.nan]]}, "missing value"),
        ({"frequencies": 2.5}, "frequencies must be"),
        ({"frequencies": 10**12}, "frequencies must be"),
        ({"frequencies": [[1.0, 2.0]]}, "frequencies must be"),
        ({"frequencies": [[math.inf]]}, "frequencies must be"),
        ({"frequencies": [["a"]]}, "frequencies must be"),
        ({"frequencies": 3, "locations": 3}, "not both"),
        ({"kernel": "cubic"}, "kernel must be"),
        ({"bandwidth": 0}, "bandwidth must be"),
        ({"bandwidth": 1e-7}, "bandwidth must be"),
        ({"bandwidth": 1e7}, "bandwidth must be"),
        ({"balance": 0}, "balance must be"),
        ({"balance": 1e4}, "balance must be"),
    ],
)
def test_plans_that_cannot_be(arguments, fragment):
    given = {"epsilon": 1, "delta": 1e-6} | arguments
    with pytest.raises((ParameterError, DataError), match=fragment):
        plan_share((0, 1), **given)


@pytest.mark.parametrize("bounds", [None, (1, 0), "ab", [[0, 1, 2]], {}, (0, math.inf), [("a", 1)]])
def test_bounds_that_cannot_be(bounds):
    with pytest.raises(ParameterError):
        plan_share(bounds, epsilon=1, delta=1e-6)


def test_frequencies_need_numbers():
    with pytest.raises(ParameterError, match="numeric"):
        plan_share(MIXED, epsilon=1, delta=1e-6, frequencies=2)


# --- shares ----------------------------------------------------------------------------------


class Quiet:
    """What the noise was asked for, without the noise."""

    def __init__(self, monkeypatch) -> None:
        self.scale = math.nan
        monkeypatch.setattr(SimulatedNoise, "gaussian", self.gaussian)

    def gaussian(self, values, scale, grid):
        self.scale = scale
        return values


def test_a_share_holds_the_moments_of_features(monkeypatch):
    quiet = Quiet(monkeypatch)
    plan = plan_share((0, 10), epsilon=1, delta=1e-6, locations=4, bandwidth=0.3, balance=2)
    x = np.random.default_rng(0).uniform(0, 10, size=50)
    made = share(x, plan=plan, noise=SimulatedNoise(0))
    kernel, domain = Kernel("gaussian", 0.3), Domain((0,))
    features = mean_embedding(kernel, plan.points, domain)(x[:, None] / 10)
    np.testing.assert_allclose(made.moments.mean, features.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(made.moments.second, features.T @ features / 50, atol=1e-12)
    assert (made.moments.sigma, made.moments.sigma_second) == (quiet.scale, 2 * quiet.scale)
    assert plan.scales(50) == (quiet.scale, 2 * quiet.scale)
    assert made.n == 50


def test_regression_of_the_scale():
    """The joint sensitivity at P = 1 without a spread is sqrt(4.5)/n; mu(1, 1e-5) = .268051."""
    waves = plan_share((0, 1), epsilon=1, delta="1e-5", frequencies=[[1e4]])  # spread 2
    sigma, _ = waves.scales(1000)
    assert sigma == pytest.approx(math.sqrt(4.5) / 1000 / 0.268051, rel=1e-5)


def test_rows_per_person_multiply_the_noise():
    schemas = [Schema({"a": NumericColumn(0, 1)}, rows_per_person=k) for k in (1, 4)]
    plans = [plan_share(schema, epsilon=1, delta=1e-6) for schema in schemas]
    assert plans[1].scales(100)[0] == pytest.approx(4 * plans[0].scales(100)[0], rel=1e-6)
    made = share({"a": [0.1, 0.2, 0.3]}, plan=plans[1])
    assert "person with at most 4 rows" in str(made)


def test_noise_is_secret_by_default(monkeypatch):
    drawn = []
    original = SecureNoise.gaussian

    def watched(self, values, scale, grid):
        drawn.append(scale)
        return original(self, values, scale, grid)

    monkeypatch.setattr(SecureNoise, "gaussian", watched)
    made = share(np.linspace(0, 1, 20), plan=PLAN)
    assert drawn == [made.moments.sigma]
    assert made.simulated is False
    assert "Privacy spent: epsilon = 1, delta = 1e-06" in made.guarantee
    seeded = share(np.linspace(0, 1, 20), plan=PLAN, noise=SimulatedNoise(1))
    assert "NOT private" in seeded.guarantee
    with pytest.raises(ParameterError, match="noise must be"):
        share(np.linspace(0, 1, 20), plan=PLAN, noise=object())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PLANS)
def test_share_round_trip_is_exact(name, tmp_path):
    plan = PLANS[name]
    count = len(plan.schema.columns)
    x = np.random.default_rng(1).integers(0, 2, size=(40, count))
    table = {n: x[:, i] for i, n in enumerate(plan.schema.columns)}
    if name == "mixed":
        table["plan, old"] = np.where(x[:, 1] > 0, "basic", "2.5")
    first = share(table, plan=plan, noise=SimulatedNoise(3))
    first.save(tmp_path / "a.json")
    back = Share.load(tmp_path / "a.json")
    assert back.checksum == first.checksum
    for part in ("mean", "second"):
        assert np.array_equal(getattr(back.moments, part), getattr(first.moments, part))
    for part in ("n", "sigma", "sigma_second"):
        assert getattr(back.moments, part) == getattr(first.moments, part)
    assert (back.simulated, back.plan.digest) == (True, plan.digest)
    document = json.loads(first.to_json())
    assert document.keys() == {
        *("format", "version", "plan", "digest", "n", "sigma", "sigma_second"),
        *("mean", "second", "simulated", "checksum"),
    }


def test_parts_in_place_of_a_plan():
    x = np.linspace(0, 1, 30)
    one = share(x, bounds=(0, 1), epsilon=1, delta="1e-6", locations=3, noise=SimulatedNoise(0))
    assert one.checksum == share(x, plan=PLAN, noise=SimulatedNoise(0)).checksum
    with pytest.raises(ParameterError, match=r"pass a plan or epsilon, locations, not both"):
        share(x, plan=PLAN, epsilon=1, locations=3)
    with pytest.raises(ParameterError, match="pass a plan, or bounds, delta"):
        share(x, epsilon=1)
    with pytest.raises(ParameterError, match="plan must be a SharePlan"):
        share(x, plan="plan.json")  # type: ignore[arg-type]


@pytest.mark.parametrize("x", [[0.5], [], [math.nan, 1], [["a"], ["b"]], [[0.1, 0.2]] * 3])
def test_data_that_does_not_fit_is_refused_before_noise_is_drawn(x, monkeypatch):
    monkeypatch.setattr(SimulatedNoise, "gaussian", None)
    with pytest.raises(DataError):
        share(x, plan=PLAN, noise=SimulatedNoise(0))


# --- comparing -------------------------------------------------------------------------------


def test_compare():
    a, b, c = made(0), made(1, n=200), made(2, low=0.8)
    same, different = compare(a, b), compare(a, c)
    assert not same.reject
    assert different.reject
    assert different.pvalue == 1 / 1000
    assert same.sizes == {"n": 300, "m": 200}
    assert (same.spent, same.adjacency, same.unit) == (PLAN.budget, "one", "row")
    assert same.simulated is True
    assert "any number of times" in same.parameters["cost"]
    assert same.parameters["plan"] == PLAN.digest
    json.loads(same.to_json())


def test_estimates_tell_where_the_difference_is():
    x, y = np.full(4000, 2.0), np.full(4000, 8.0)
    plan = plan_share((0, 10), epsilon=5, delta=1e-6, locations=[[2], [8]], bandwidth=0.1)
    shares = [share(data, plan=plan, noise=SimulatedNoise(3)) for data in (x, y)]
    outcome = compare(*shares)
    noise = outcome.estimates["noise"]
    assert np.all(np.abs(outcome.estimates["difference"] - [1, -1]) < 5 * noise)
    assert outcome.parameters["locations"] == [[2.0], [8.0]]
    assert [feature.place for feature in distinguishing_features(outcome)] in (
        [(2,), (8,)],
        [(8,), (2,)],
    )
    waves = plan_share((0, 10), epsilon=5, delta=1e-6, frequencies=[[0.1]])
    shares = [share(data, plan=waves, noise=SimulatedNoise(4)) for data in (x, y)]
    outcome = compare(*shares)
    expected = [math.cos(0.2) - math.cos(0.8), math.sin(0.2) - math.sin(0.8)]
    noise = outcome.estimates["noise"]
    assert np.all(np.abs(outcome.estimates["difference"] - expected) < 5 * noise)


def test_everybody_gets_the_same_answer():
    a, b = made(0), made(1)
    first = compare(a, b)
    assert compare(a, b).pvalue == compare(b, a).pvalue == first.pvalue
    assert compare(Share.from_json(a.to_json()), b).pvalue == first.pvalue
    assert compare(a, b).statistic == compare(b, a).statistic
    assert compare(a, b, rng=1).pvalue == compare(b, a, rng=1).pvalue != first.pvalue


def test_secure_shares_give_a_private_outcome():
    a, b = (share(np.linspace(0, 1, 50), plan=PLAN) for _ in range(2))
    assert compare(a, b).simulated is False
    mixed = compare(a, made(0))
    assert mixed.simulated is True
    assert "NOT private" in str(mixed)


def test_shares_of_different_plans_are_refused_by_name():
    other = plan_share((0, 1), epsilon=1, delta="1e-6", locations=4, kernel="imq")
    with pytest.raises(ParameterError, match="differ in kernel, locations"):
        compare(made(0), made(1, plan=other))
    with pytest.raises(ParameterError, match="the two shares are the same"):
        compare(made(0), made(0))


@pytest.mark.parametrize("arguments", [{"alpha": 0}, {"alpha": 1}, {"n_bootstrap": 0}, {"rng": -1}])
def test_compare_refuses(arguments):
    with pytest.raises(ParameterError):
        compare(made(0), made(1), **arguments)
    with pytest.raises(ParameterError):
        compare_all({"a": made(0), "b": made(1)}, **arguments)


@pytest.mark.parametrize("given", [None, "a.json", NoisyMoments(2, np.ones(1), np.eye(1), 1, 1)])
def test_only_shares_are_compared(given):
    with pytest.raises(ParameterError, match="b must be a Share"):
        compare(made(0), given)


def test_holm():
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert holm([0.5, 0.9, 0.001, 0.02]) == [1.0, 1.0, 0.004, 0.06]
    assert holm([0.2]) == [0.2]


def test_compare_all():
    shares = {"a": made(0), "b": made(1), "c": made(2, low=0.8)}
    pairs = compare_all(shares)
    assert list(pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [outcome.reject for outcome in pairs.values()] == [False, True, True]
    raw = [outcome.parameters["raw_pvalue"] for outcome in pairs.values()]
    assert [outcome.pvalue for outcome in pairs.values()] == holm(raw)
    assert raw[0] == compare(shares["a"], shares["b"], n_bootstrap=999).pvalue
    assert min(raw) * 3 <= 0.005
    with pytest.raises(ParameterError, match="at least two"):
        compare_all({"a": made(0)})
    with pytest.raises(ParameterError, match="shares must be"):
        compare_all([made(0), made(1)])  # type: ignore[arg-type]


@pytest.mark.slow
def test_many_owners_can_still_be_told_apart():
    shares = {str(seed): made(seed, low=0.8 * (seed == 9)) for seed in range(10)}
    pairs = compare_all(shares)
    assert {pair for pair, outcome in pairs.items() if outcome.reject} == {
        (str(seed), "9") for seed in range(9)
    }
