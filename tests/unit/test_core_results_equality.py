"""Results are equal if everything released is, on every interpreter and whatever NaN it holds."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import planning, simulation
from privatest.core.results import EqualByValue, ReleasedFacts
from privatest.methods.locations import DistinguishingFeature
from privatest.noise import SimulatedNoise
from privatest.requests.results import ColumnResults


def nan() -> float:
    """Return a NaN that is no other's object, as one read from a file."""
    return float("nan")


def outcome(**changes: Any) -> pt.Outcome:
    facts: dict[str, Any] = {
        "reject": False,
        "alpha": 0.05,
        "spent": pt.Budget(1),
        "adjacency": "one",
        "method": "a test",
        "null_hypothesis": "nothing happens",
        "sizes": {"n": 3},
        "parameters": {"grid": (1.0, nan()), "names": ["a"], "place": np.array([[1.0, nan()]])},
        "statistic": nan(),
        "estimates": {"means": np.array([nan(), 2.0]), "lower": nan()},
    }
    return pt.Outcome(**facts | changes)


def test_nan_equals_nan():
    for make in (
        outcome,
        lambda: pt.Estimate(1.0, nan(), nan(), limits=(nan(), 2.0)),
        lambda: pt.Interval(nan(), np.array([nan(), 1.0]), 0.95),
        lambda: DistinguishingFeature((1.0, nan()), nan(), 0.1, 0.2),
    ):
        one, other = make(), make()
        assert one == other
        assert not one != other  # noqa: SIM202
        assert hash(one) == hash(other)
        assert len({one, other}) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"reject": True},
        {"statistic": 0.0},
        {"statistic": None},
        {"spent": pt.Budget(2)},
        {"sizes": {"n": 4}},
        {"sizes": {"m": 3}},
        {"parameters": {}},
        {"parameters": {"grid": (1.0, 2.0), "names": ["a"], "place": np.array([[1.0, nan()]])}},
        {"estimates": {"means": np.array([nan(), 2.5]), "lower": nan()}},
        {"estimates": {"means": np.array([[nan(), 2.0]]), "lower": nan()}},
        {"estimates": {"means": 2.0, "lower": nan()}},
        {"estimates": {"means": np.array([nan(), 2.0]), "lower": np.array([nan()])}},
        {"estimates": {"means": np.array([nan(), 2.0])}},
    ],
)
def test_one_difference_is_enough(change):
    assert outcome() != outcome(**change)
    assert outcome(**change) == outcome(**change)


def test_other_classes_are_not_equal():
    assert pt.Estimate(1.0, 2.0) != 1.0
    assert outcome() != outcome().to_dict()
    assert pt.Interval(0, 1, 0.9) != pt.Estimate(0, 1, 0.9)


def test_how_intervals_are_computed_is_not_compared():
    """A result read from a record has no function for other levels."""
    assert outcome() == outcome(intervals=lambda level: pt.Interval(0, 1, level))


def test_results_of_equal_runs_and_copies():
    rng = np.random.default_rng(0)
    x, y = rng.random((80, 2)), rng.random((80, 2))
    common: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1}
    runs = (
        lambda noise: pt.hotelling_test(x, y, delta=1e-6, rng=1, noise=noise, **common),
        lambda noise: pt.private_mean(x, delta=1e-6, rng=1, noise=noise, **common),
        lambda noise: pt.private_median(x[:, 0], noise=noise, **common),
        lambda noise: pt.private_covariance(x, delta=1e-6, rng=1, noise=noise, **common),
    )
    for run in runs:
        one = run(SimulatedNoise(1))
        assert one == run(SimulatedNoise(1))
        assert one != run(SimulatedNoise(2))
        for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert again == one


def test_all_results_compare_this_way():
    """What ``dataclass`` writes compares NaN in another way from Python 3.13 on."""
    results = {pt.Outcome, pt.MeanEstimate, pt.CovarianceEstimate, pt.QuantileEstimate}
    results |= {planning.Plan, simulation.Power, ColumnResults}
    kinds: set[Any] = _below(ReleasedFacts)
    assert results <= kinds
    for kind in kinds | {pt.Estimate, pt.Interval, DistinguishingFeature}:
        assert kind.__eq__ is EqualByValue.__eq__, kind


def _below(kind: Any) -> set[Any]:
    found = {kind}
    for each in kind.__subclasses__():
        found |= _below(each)
    return found
