"""Conditional independence: estimates, refusals, what a row can change, and requests."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.data.domain import Domain
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.independence.residuals import Regressions, features
from privatest.means.release import Released, plan_release
from privatest.noise import SimulatedNoise
from privatest.questions import Request
from privatest.questions.preparing import prepare

BOUNDS: dict[str, Any] = {f"bounds_{name}": (-1, 1) for name in "xyz"}


def draw(n=4000, effect=0.0, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, size=n)
    errors = rng.normal(size=(2, n))
    return 0.2 * (z + errors[0]), 0.2 * (z**2 + z + errors[1] + effect * errors[0]), z


def run(x, y, z, *, epsilon=100.0, delta=1e-6, seed=0, **more):
    noise = SimulatedNoise(seed)
    options = BOUNDS | {"n_bootstrap": 199, "rng": seed} | more
    return pt.conditional_independence_test(
        x, y, z, epsilon=epsilon, delta=delta, noise=noise, **options
    )


def test_with_little_noise_it_is_the_covariance_of_residuals():
    x, y, z = draw(effect=0.3)
    found = run(x, y, z)
    powers = np.vander(z, 4)
    left = [v - powers @ np.linalg.lstsq(powers, v, rcond=None)[0] for v in (x, y)]
    expected = np.mean(left[0] * left[1])
    assert found.estimates["partial_covariance"] == pytest.approx(expected, rel=0.1)
    assert found.reject
    low, high = found.confidence_interval(0.95)
    assert low < 0.04 * 0.3 < high
    assert (low, high) == (found.estimates["lower"], found.estimates["upper"])
    assert pickle.loads(pickle.dumps(found)).confidence_interval(0.8).low > low
    assert "given the rest" in str(found)


def test_dependence_through_z_alone_is_not_dependence():
    x, y, z = draw()
    assert not run(x, y, z).reject
    assert np.corrcoef(x, y)[0, 1] > 0.2


def test_categories_may_be_given():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=4000)
    x, y = (0.2 * (group - 1 + rng.normal(size=4000)) for _ in range(2))
    schema = Schema({"g": CategoricalColumn(("a", "b", "c"))})
    z = pa.table({"g": np.array(["a", "b", "c"])[group]})
    assert not run(x, y, z, bounds_z=schema).reject
    assert run(x, y, rng.uniform(-1, 1, size=4000)).reject


def test_pure_epsilon_works():
    x, y, z = draw(n=20_000, effect=0.5)
    assert run(x, y, z, epsilon=10, delta=0).reject


def test_features_are_in_the_cube():
    rows = np.column_stack([np.linspace(0, 1, 50), np.arange(50) % 3])
    found = features(rows, Domain((0, 3)), 4)
    assert found.shape == (50, 6)
    assert np.abs(found).max() == 1.0
    np.testing.assert_allclose(found[:, 1], (3 * (2 * rows[:, 0] - 1) ** 2 - 1) / 2, atol=1e-12)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_a_row_changes_its_own_product_and_no_other(size):
    """Whatever the first release was: products stay in their public range."""
    rng = np.random.default_rng(0)
    plan = plan_release(40, 5, pt.Budget(1), 1)
    released = Released(plan, size * rng.normal(size=5), np.eye(5), np.zeros(5))
    made = Regressions(released, size * rng.normal(size=(3, 2)), np.array([1e-3, 2.0]))
    rows, both = rng.uniform(-1, 1, size=(40, 3)), rng.uniform(-1, 1, size=(40, 2))
    first = made.products(rows, both)
    rows[7], both[7] = 1.0, -1.0
    second = made.products(rows, both)
    assert np.abs([first, second]).max() <= 1
    np.testing.assert_array_equal(np.delete(first, 7), np.delete(second, 7))


def test_the_two_releases_share_the_budget(monkeypatch):
    spent = []

    def plan(n, dimension, budget, persons):
        spent.append(budget)
        return plan_release(n, dimension, budget, persons)

    monkeypatch.setattr("privatest.independence.conditional.plan_release", plan)
    run(*draw(n=50), epsilon="0.3", delta="1e-6")
    assert len(spent) == 2
    assert (spent[0] + spent[1]).epsilon <= pt.Budget("0.3").epsilon
    assert (spent[0] + spent[1]).delta <= pt.Budget(1, "1e-6").delta


def test_refusals():
    x, y, z = draw(n=50)
    with pytest.raises(ParameterError, match="bounds_z must be given"):
        run(x, y, z, bounds_z=None)
    with pytest.raises(DataError, match="z must have as many rows"):
        run(x, y, z[:-1])
    with pytest.raises(DataError, match="y must be one numeric column"):
        run(x, np.column_stack([y, y]), z)
    with pytest.raises(DataError, match="at least 10 rows"):
        run(x[:9], y[:9], z[:9])
    with pytest.raises(ParameterError, match="degree must be"):
        run(x, y, z, degree=0)
    with pytest.raises(ParameterError, match="epsilon must be"):
        run(x, y, z, epsilon=1e-6)


def test_requests():
    schema = Schema({name: NumericColumn(-1, 1) for name in "abc"})
    asked = {"question": "independence", "x": ["a"], "y": ["b"], "epsilon": 5, "delta": 1e-6}
    request = Request.from_dict(asked | {"given": ["c"]})
    assert request.method == "gcm"
    table = pa.table(dict(zip("abc", draw(effect=1.0), strict=True)))
    found = prepare(request, schema).run(table, noise=SimulatedNoise(0))
    assert isinstance(found, pt.Outcome)
    assert found.reject
    with pytest.raises(ParameterError, match="given does not go with method hsic"):
        prepare(Request.from_dict(asked | {"given": ["c"], "method": "hsic"}), schema)
    for given in ([], ["a"]):
        with pytest.raises(ParameterError, match="given must name columns"):
            prepare(Request.from_dict(asked | {"given": given, "method": "gcm"}), schema)


def test_level_and_power():
    """Seeded; a true level of .05 fails with probability below 1e-3."""
    false = sum(run(*draw(1000, seed=s), epsilon=3, seed=s).reject for s in range(40))
    true = sum(run(*draw(1000, 0.6, seed=s), epsilon=5, seed=s).reject for s in range(20))
    assert false <= 8
    assert true >= 15
