"""chi2_contingency: SciPy's statistic and p-value at tiny noise, estimates, refusals."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.core.privacy import Budget
from privatest.data.schema import CategoricalColumn
from privatest.mechanisms.additive import count_noise
from privatest.methods.tables import (
    association_ends,
    cell_intervals,
    cramers_v,
    independence_statistic,
    likely_margins,
    margin_scenarios,
    null_counts,
    on_simplex,
    with_total,
)
from privatest.noise import SimulatedNoise

AB, ABC = ["a", "b"], ["a", "b", "c"]
TABLES = [
    np.array([[12, 5], [7, 16]]),
    np.array([[3, 9, 4], [8, 2, 6]]),
    np.array([[30, 20, 5], [10, 20, 9], [9, 4, 3], [1, 8, 15]]),
]


def columns(table):
    """Rows that have this table."""
    cells = np.repeat(np.arange(table.size), table.ravel())
    return np.divmod(cells, table.shape[1])


def asked(table, epsilon, **options):
    x, y = columns(table)
    given: dict[str, Any] = {
        "categories_x": range(table.shape[0]),
        "categories_y": range(table.shape[1]),
    }
    common = {"noise": SimulatedNoise(1), "rng": 2, "epsilon": epsilon}
    return pt.chi2_contingency(x, y, **(given | common | options))


@pytest.mark.parametrize("table", TABLES, ids=["2 x 2", "2 x 3", "4 x 3"])
def test_without_noise_the_statistic_is_that_of_scipy(table):
    result = asked(table, 300)
    expected = stats.chi2_contingency(table, correction=False)
    assert result.statistic == pytest.approx(expected.statistic, rel=1e-6)
    assert np.array_equal(result.estimates["counts"], table)
    assert np.allclose(result.estimates["shares"], table / table.sum())
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)


def test_without_noise_the_pvalue_is_that_of_scipy():
    """Large counts, so that SciPy's limit is right; 3 standard errors of 3999 simulations, and
    the largest of five scenarios."""
    table = np.array([[500, 520, 480], [560, 480, 500]])
    expected = stats.chi2_contingency(table, correction=False).pvalue
    found = asked(table, 300, n_simulations=3999).pvalue
    assert expected - 0.02 < found < expected + 0.045


def test_an_epsilon_without_any_noise():
    assert asked(TABLES[0], 1e5).statistic == pytest.approx(asked(TABLES[0], 300).statistic)


def test_an_empty_row_counts_for_nothing():
    table = np.array([[12, 5], [7, 16], [0, 0]])
    without = stats.chi2_contingency(table[:2], correction=False).statistic
    assert asked(table, 300).statistic == pytest.approx(without, rel=1e-6)


def test_the_statistic_is_the_quadratic_form_of_its_covariance():
    """By a pseudo-inverse of the covariance of residuals, with margins that are far from 0."""
    rng, n, variance = np.random.default_rng(0), 400, 9.0
    for shape in [(2, 2), (3, 4), (5, 2)]:
        z = with_total(n / (shape[0] * shape[1]) + rng.normal(0, 9, size=shape), n)
        p = likely_margins(z.sum(axis=1) / n, shape[1] * variance / n**2)
        q = likely_margins(z.sum(axis=0) / n, shape[0] * variance / n**2)
        left = np.eye(shape[0]) - np.outer(p, np.ones(shape[0]))
        right = np.eye(shape[1]) - np.outer(q, np.ones(shape[1]))
        taken = np.kron(left, right)
        residual = taken @ (z - n * np.outer(p, q)).ravel()
        spread = taken @ np.diag((n * np.outer(p, q) + variance).ravel()) @ taken.T
        form = residual @ np.linalg.pinv(spread, rcond=1e-10) @ residual
        assert independence_statistic(z, n, variance) == pytest.approx(form, rel=1e-6)
        assert independence_statistic(z.T, n, variance) == pytest.approx(form, rel=1e-6)


def test_scenarios_are_independent_tables_around_the_likely_one():
    table = np.array([[80.0, 25], [30, 10]])
    found = margin_scenarios(table, 145, 8.0)
    assert len(found) == 5
    for shares in found:
        assert shares.sum() == pytest.approx(1)
        assert np.allclose(shares, np.outer(shares.sum(axis=1), shares.sum(axis=0)))
    first = [shares.sum(axis=1)[0] for shares in found]
    assert first[1] > first[0] > first[2] > 0.5
    assert len(margin_scenarios(np.full((2, 2), 5.0), 20, 1.0)) == 5  # no direction


def test_scenarios_share_rows_and_keep_their_laws():
    """Means and variances of each cell, at 5 standard errors: false alarms below 1e-4; seeded."""
    p = np.array([[0.5, 0.1, 0.0], [0.2, 0.1, 0.1]])
    q = np.array([[0.3, 0.2, 0.1], [0.3, 0.0, 0.1]])
    n, count = 200, 20_000
    drawn = list(null_counts([p, q, p], n, count, np.random.default_rng(0)))
    for shares, tables in zip((p, q, p), drawn, strict=True):
        assert (tables.sum(axis=(1, 2)) == n).all()
        variance = n * shares * (1 - shares)
        away = np.abs(tables.mean(axis=0) - n * shares)
        assert (away <= 5 * np.sqrt(variance / count)).all()
        assert (np.abs(tables.var(axis=0) - variance) <= 5 * variance * np.sqrt(2.1 / count)).all()
    np.testing.assert_array_equal(drawn[0], drawn[2])
    moved = np.abs(drawn[1] - drawn[0]).sum(axis=(1, 2)).mean() / 2
    assert moved == pytest.approx(n * np.abs(p - q).sum() / 2, rel=0.02)  # as few as possible


def test_on_simplex_is_nearest():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, 4))
    found = on_simplex(vectors)
    assert found.min() >= 0
    assert np.allclose(found.sum(axis=1), 1)
    others = rng.dirichlet(np.ones(4), size=(500, 1))
    assert (((others - vectors) ** 2).sum(-1) >= ((found - vectors) ** 2).sum(-1) - 1e-12).all()


def test_interval_of_v():
    table = np.array([[300, 100], [100, 300]])
    result = asked(table, 1)
    low, high = result.confidence_interval(0.95)
    assert (low, high) == (result.estimates["lower"], result.estimates["upper"])
    assert 0.4 < low < result.estimates["cramers_v"] < high < 0.6
    assert cramers_v(table / 800) == pytest.approx(0.5)
    wider = result.confidence_interval(0.99)
    assert wider.low <= low < high <= wider.high
    assert wider.sampling + wider.privacy == pytest.approx(wider.high - wider.low)
    copied = pickle.loads(pickle.dumps(result)).confidence_interval(0.99)
    assert tuple(copied) == tuple(wider)
    assert "association, Cramér's V (95% interval)" in str(result)


def test_a_table_of_noise_says_nothing_of_v():
    law = count_noise(4, Budget("0.05"))
    low, _, high = association_ends(np.array([[20.0, -30], [3, 12]]), 10, law, 0.95)
    assert (low, high) == (0.0, 1.0)


def test_intervals_of_cells_are_those_of_clopper_and_pearson_without_noise():
    law = count_noise(2, Budget(300))
    found = cell_intervals(np.array([7.0, 13.0, 0.0]), 20, law, 0.95)
    for count, low, high in zip((7, 13, 0), *map(np.ravel, (found.low, found.high)), strict=True):
        exact = stats.binomtest(count, 20).proportion_ci(1 - 0.05 / 3)
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-6)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_intervals_of_cells_allow_for_all_noise(mechanism):
    law = count_noise(2, Budget(1, "1e-6"), mechanism)
    low, high = cell_intervals(np.array([-40.0, 50.0, 130.0]), 100, law, 0.95)
    assert low[0] == 0
    assert high[0] < 0.2
    assert low[1] < 0.4
    assert high[1] > 0.6
    assert high[2] == 1


def test_gaussian_noise_and_several_rows_a_person():
    table = TABLES[2]
    result = asked(table, 1, delta="1e-6", mechanism="gaussian")
    assert result.parameters["mechanism"] == "gaussian"
    schema = pt.Schema({"x": CategoricalColumn(tuple(range(4)))}, rows_per_person=3)
    x, y = columns(table)
    given: dict[str, Any] = {
        "bounds_x": schema,
        "categories_y": range(3),
        "noise": SimulatedNoise(1),
    }
    several = pt.chi2_contingency(x, y, epsilon=1, **given)
    assert "3 rows" in several.unit
    one = asked(table, 1)
    spread = [np.abs(r.estimates["counts"] - table).mean() for r in (one, several)]
    assert spread[1] > 2 * spread[0]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"categories_x": None}, pt.ParameterError, "categories_x must be given"),
        ({"bounds_y": pt.Schema.from_bounds({"y": (0, 1)})}, pt.ParameterError, "categories_y"),
        ({"categories_y": AB}, pt.DataError, "outside its declared categories"),
        ({"categories_y": ["a"]}, pt.ParameterError, "categories_y must be a list of at least"),
        ({"y": ["a"]}, pt.DataError, "same number of rows"),
        ({"x": [], "y": []}, pt.DataError, "at least one row"),
        ({"y": ["a", None]}, pt.DataError, "missing value"),
        ({"n_simulations": 0}, pt.ParameterError, "n_simulations must be an integer"),
        ({"mechanism": "gaussian"}, pt.ParameterError, "delta must be above 0"),
    ],
)
def test_refusals(options, error, words):
    given: dict[str, Any] = {
        "x": ["a", "b"],
        "y": ["c", "a"],
        "categories_x": AB,
        "categories_y": ABC,
    }
    with pytest.raises(error, match=words):
        pt.chi2_contingency(**(given | options), epsilon=1)


def test_numeric_schema_is_refused():
    schema = pt.Schema.from_bounds({"y": (0, 1)})
    with pytest.raises(pt.ParameterError, match="bounds_y must be a Schema of one categorical"):
        pt.chi2_contingency([0, 1], [0, 1], categories_x=[0, 1], bounds_y=schema, epsilon=1)
