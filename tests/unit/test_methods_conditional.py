"""Conditional independence: estimates, refusals, what a row can change, and requests."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn, Schema
from privatest.mechanisms.additive import integer_noise, noisy_integers
from privatest.mechanisms.moments import plan_release
from privatest.methods.conditional import choose_grid, regress
from privatest.noise import SimulatedNoise
from privatest.numerics.cells import UNIT, CellSums, Grid, cell_sums_sensitivity, interpolate
from privatest.requests.prepare import prepare
from privatest.requests.request import Request

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


def test_cells_interpolate_linear_functions_exactly():
    grid = Grid((0, 3, 0), (4, 3, 5))
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.random(200), rng.integers(3, size=200), rng.random(200)])

    def plane(at):
        return 0.3 + at[:, 0] - 2 * at[:, 1] + 0.5 * at[:, 2] + at[:, 0] * at[:, 2]

    axes = (np.arange(4) + 0.5) / 4, np.arange(3.0), (np.arange(5) + 0.5) / 5
    centres = np.column_stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")])
    assert np.array_equal(grid.cells(centres), np.arange(grid.count))
    found = interpolate(plane(centres), grid.corners(rows))
    np.testing.assert_allclose(found, plane(rows), atol=1e-12)
    inside = grid.cells(grid.points())
    assert np.array_equal(np.bincount(inside), np.full(grid.count, 4))


def test_sums_of_cells_are_integers_in_any_order():
    grid, rng = Grid((0,), (6,)), np.random.default_rng(0)
    rows = rng.random((1000, 3))
    whole, parts = CellSums(grid), [CellSums(grid) for _ in range(2)]
    whole.update(rows, 0)
    parts[0].update(rows[600:], 600)
    parts[1].update(rows[:600], 0)
    parts[0].merge(parts[1])
    assert np.array_equal(whole.integers, parts[0].integers)
    assert whole.integers[:6].sum() == 500 * UNIT
    expected = np.sum(2 * rows[:, 1] - 1)
    assert whole.sums[0].sum() / UNIT == pytest.approx(expected, abs=1000 / UNIT)
    assert whole.squares[1] * 2 / UNIT == pytest.approx(np.sum((2 * rows[:, 2] - 1) ** 2), rel=1e-3)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e30])
def test_a_row_changes_its_own_product_and_no_other(size):
    """Whatever the first release was: products stay in their public range."""
    rng, grid = np.random.default_rng(0), Grid((0,), (12,))
    law = integer_noise(cell_sums_sensitivity(1), pt.Budget(1))
    made = regress(size * rng.normal(size=50), grid, law, 40)
    made = replace(made, limits=np.array([1e-3, 2.0]))
    rows = rng.random((40, 3))
    first = made.products(rows)
    rows[7] = 1.0
    second = made.products(rows)
    assert np.abs([first, second]).max() <= 1
    np.testing.assert_array_equal(np.delete(first, 7), np.delete(second, 7))


def test_the_number_of_cells_follows_from_public_numbers():
    def sizes(levels, n, epsilon, cells=None, persons=1):
        return choose_grid(Domain(levels), n, pt.Budget(epsilon), cells, persons).sizes

    assert sizes((0,), 100, 1) == (12,)
    assert sizes((0,), 6000, 1) == (100,)
    assert sizes((0,), 6000, 1, persons=2) == (50,)
    assert sizes((0, 4), 6000, 1) == (25, 4)
    assert sizes((0, 0), 6000, 1) == (10, 10)
    assert sizes((3, 4), 6000, 1) == (3, 4)
    assert sizes((0,), 6000, 1000) == (300,)
    assert sizes((0,), 10**7, 10) == (4096,)
    assert sizes((0, 0), 10**7, 10) == (64, 64)
    assert sizes((0, 2), 6000, 1, cells=7) == (7, 2)
    with pytest.raises(DataError, match="at most 2 numeric columns"):
        sizes((0, 0, 0), 6000, 1)
    with pytest.raises(DataError, match="combinations of categories"):
        sizes((0, 500), 6000, 1)
    with pytest.raises(ParameterError, match="at most 64 here"):
        sizes((0, 0), 6000, 1, cells=65)
    with pytest.raises(ParameterError, match="cells must be left out"):
        sizes((3,), 6000, 1, cells=5)


def test_the_two_releases_share_the_budget(monkeypatch):
    spent = []

    def sums(values, *, sensitivity, budget, noise):
        spent.append(budget)
        return noisy_integers(values, sensitivity=sensitivity, budget=budget, noise=noise)

    def plan(n, dimension, budget, persons):
        spent.append(budget)
        return plan_release(n, dimension, budget, persons)

    monkeypatch.setattr("privatest.methods.conditional.noisy_integers", sums)
    monkeypatch.setattr("privatest.methods.conditional.plan_release", plan)
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
    with pytest.raises(DataError, match="must each be one numeric column"):
        run(x, np.column_stack([y, y]), z)
    with pytest.raises(DataError, match="at least 10 rows"):
        run(x[:9], y[:9], z[:9])
    with pytest.raises(ParameterError, match="cells must be"):
        run(x, y, z, cells=1)
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


SHAPES = {
    "fast sine": lambda z: np.sin(9 * z),
    "step": lambda z: np.sign(z - 0.137),
    "kink": lambda z: 2 * np.abs(z - 0.1),
}


@pytest.mark.statistical
@pytest.mark.parametrize("shape", SHAPES)
def test_level_where_polynomials_do_not_fit(shape):
    # 10,000 rows, epsilon 5; with polynomials of degree 3 the rates were 1, 1 and about .45. A
    # rate of .07 fails with probability below 1e-6.
    rejected = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 9])
        z, errors = rng.uniform(-1, 1, size=10_000), rng.normal(size=(2, 10_000))
        x, y = 0.25 * (SHAPES[shape](z) + errors)
        rejected += run(x, y, z, epsilon=5, seed=seed).reject
    assert rejected <= stats.binom.ppf(1 - 1e-6, 60, 0.07)
