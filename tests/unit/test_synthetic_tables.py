"""Releases by tables: cells, groups, the fit, rows that obey the schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic import SyntheticData, release
from privatest.synthetic.embedding import to_simplex
from privatest.synthetic.tables import (
    MOST_CELLS,
    MomentRequest,
    column_cells,
    merged,
    plan_tables,
    planned_rounds,
    schema_cells,
)
from privatest.synthetic.tables_fit import denoised, draw_values

SCHEMA = Schema(
    {
        "plan": CategoricalColumn(("basic", "plus", "never")),
        "spent": NumericColumn(0, 20, atoms=(0,)),
        "visits": NumericColumn(0, 30, integer=True),
    }
)


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    plan = rng.integers(2, size=n)
    spent = np.where(rng.random(n) < 0.4, 0.0, rng.gamma(2.0, 1.0 + plan)).clip(0, 20)
    names = np.array(["basic", "plus"], dtype=object)
    return {"plan": names[plan], "spent": spent, "visits": rng.poisson(2 + 3 * plan).clip(0, 30)}


def released(n=4000, **options):
    budget = {"epsilon": 1, "delta": 1e-6} | options
    return release(table(n), bounds=SCHEMA, rng=0, noise=SimulatedNoise(0), **budget)


def test_a_release_obeys_the_schema_and_is_near_the_data():
    made, truth = released(), table(4000)
    assert made.facts.method.startswith("tables")
    assert len(made) == 4000
    assert set(made.columns["plan"]) <= {"basic", "plus", "never"}
    assert made.columns["visits"].dtype.kind == "i"
    assert made.columns["spent"].min() >= 0
    assert made.columns["spent"].max() <= 20
    conditions = {
        "spent == 0": truth["spent"] == 0,
        "plan == 'plus'": truth["plan"] == "plus",
        "plan == 'plus' and visits > 4": (truth["plan"] == "plus") & (truth["visits"] > 4),
    }
    for condition, rows in conditions.items():
        assert float(made.probability(condition)) == pytest.approx(rows.mean(), abs=0.02)


def test_what_was_measured_is_saved(tmp_path):
    made = released(400)
    made.save(tmp_path / "made.parquet")
    again = SyntheticData.load(tmp_path / "made.parquet")
    assert len(again.measured) == len(made.measured) == 8
    for one, other in zip(made.measured, again.measured, strict=True):
        assert one.columns == other.columns
        assert one.sigma == other.sigma
        assert np.array_equal(one.counts, other.counts)
        assert all(map(np.array_equal, one.groups, other.groups))


@pytest.mark.parametrize("n", [1, 10])
def test_few_rows(n):
    made = released(n)
    assert len(made) == n
    assert made.draws.shape == (n, 0)


def test_atoms_are_cells_of_their_own():
    cells = column_cells(NumericColumn(0, 10, atoms=(0, 5, 10)))
    codes = cells.codes(np.array([0.0, 1e-300, 5.0, np.nextafter(5, 0), np.nextafter(5, 9), 10.0]))
    assert len(set(codes)) == 6
    single = cells.lowest == cells.highest
    assert set(cells.lowest[single]) == {0.0, 5.0, 10.0}


@pytest.mark.parametrize(
    "column",
    [
        NumericColumn(-3, 7),
        NumericColumn(-3, 7, atoms=(-3, 0.1)),
        NumericColumn(0, 10_000, integer=True, atoms=(0, 17)),
        NumericColumn(1, 20, integer=True),
        CategoricalColumn(tuple("abcd")),
        NumericColumn(1, np.nextafter(1, 2)),
    ],
)
def test_values_lie_in_their_cells(column):
    cells = column_cells(column)
    codes = np.repeat(np.arange(len(cells)), 50)
    shares = np.random.default_rng(0).dirichlet(np.ones(len(cells)))
    values = draw_values(cells, codes, shares, np.random.default_rng(1))
    assert np.array_equal(cells.codes(values), codes)
    if getattr(column, "integer", False):
        assert np.array_equal(values, np.rint(values))


def test_groups_hold_enough_and_follow_the_order():
    counts = np.random.default_rng(0).gamma(0.5, 100, size=200)
    groups = merged(counts, 500.0, ordered=True)
    assert np.array_equal(np.unique(np.diff(groups)), [0, 1])
    assert np.bincount(groups, weights=counts).min() >= 250
    groups = merged(counts, 500.0, ordered=False)
    assert np.bincount(groups, weights=counts).min() >= 250


def test_nearest_shares():
    assert to_simplex(np.array([3.0, -5.0, 1.0]), 4.0).tolist() == [3.0, 0.0, 1.0]
    found = denoised(np.array([900.0, 5.0, -7.0, 2.0, 3.0, -1.0]), 5.0)
    assert found.sum() == pytest.approx(1)
    assert found[0] > 0.98


def test_too_many_categories_are_refused():
    schema = Schema({"code": CategoricalColumn(tuple(range(MOST_CELLS + 1)))})
    with pytest.raises(ParameterError, match=r"at most 20,000 categories.*it has 20,001"):
        schema_cells(schema)


def test_ten_million_cells_in_a_pair_are_merged():
    codes = tuple(range(3200))
    schema = Schema({"a": CategoricalColumn(codes), "b": CategoricalColumn(codes)})
    data = {"a": [0, 1, 2] * 100, "b": [7, 7, 8] * 100}
    made = release(data, bounds=schema, epsilon=1, delta=1e-6, noise=SimulatedNoise(0), rng=0)
    assert made.measured[-1].counts.size < 20_000


def test_too_many_columns_are_refused():
    names = [f"c{place}" for place in range(101)]
    schema = Schema.from_bounds(dict.fromkeys(names, (0, 1)))
    with pytest.raises(ParameterError, match="at most 100 columns; there are 101"):
        plan_tables(schema, 1000, Budget(1, 1e-6))


def test_shares_of_rounds_add_up():
    for columns in (1, 2, 4, 5, 30):
        for kind in (NumericColumn(0, 1), CategoricalColumn((0, 1))):
            schema = Schema({f"c{place}": kind for place in range(columns)})
            plan = plan_tables(schema, 1000, Budget(1, 1e-6))
            assert plan.bins + plan.means + plan.one_way + plan.coarse + plan.fine == 1
            assert sum(part.share for part in plan.rounds) == pytest.approx(1)


def test_rounds_are_foretold():
    made = released(400)
    told = planned_rounds(SCHEMA, 400, Budget(1, 1e-6), "auto")
    tables = [table for table in made.measured if table.is_table]
    assert told[1].sigma == pytest.approx(tables[0].sigma)
    assert told[2].sigma == pytest.approx(tables[-1].sigma)
    assert told[0].sigma == pytest.approx(made.measured[-2].sigma / 20)
    assert planned_rounds(SCHEMA, 400, Budget(1, 1e-6), "auto", {"kernel": "gaussian"}) == []


def test_auto_goes_by_what_is_public():
    rows = np.random.default_rng(0).uniform(size=(300, 2))
    options: dict[str, Any] = {
        "bounds": (0, 1),
        "epsilon": 1,
        "delta": 1e-6,
        "noise": SimulatedNoise(0),
    }
    assert release(rows, **options).facts.method.startswith("subspace")
    assert release(np.tile(rows, 2), **options).facts.method.startswith("tables")
    few = options | {"kernel": "laplace", "n_points": 20}
    assert release(np.tile(rows, 2), **few).facts.method.startswith("subspace")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "laplace"}, "kernel must not be given"),
        ({"weights": "signed"}, "needs method='subspace'"),
        ({"n_points": 2_000_000}, "n_points must be at most"),
        ({"bounds": None}, "bounds must be given"),
    ],
)
def test_what_tables_do_not_take(options, message):
    arguments: dict[str, Any] = {
        "bounds": (0, 1),
        "epsilon": 1,
        "delta": 1e-6,
        "method": "tables",
    } | options
    with pytest.raises(ParameterError, match=message):
        release(np.zeros((10, 1)), **arguments)


def test_the_number_of_rows_is_free():
    assert len(released(300, n_points=1000)) == 1000
    assert len(released(300, n_points=7)) == 7


def test_pairs_that_would_not_be_seen_are_not_bought():
    schema = Schema({"a": NumericColumn(0, 1), "b": CategoricalColumn((0, 1))})
    for epsilon, least in (("1", 60), ("0.1", 510)):
        plans = [plan_tables(schema, n, Budget(epsilon, "1e-6")) for n in (least - 1, least)]
        assert [plan.fine > 0 for plan in plans] == [False, True]
        assert plans[0].one_way > 2 * plans[1].one_way
        assert plans[0].means + plans[0].one_way == 1
    rows = {"a": np.linspace(0, 1, 30), "b": [0, 1] * 15}
    made = release(
        rows, bounds=schema, epsilon=1, delta=1e-6, method="tables", noise=SimulatedNoise(1), rng=1
    )
    assert {table.columns for table in made.measured} == {("a",), ("b",)}
    assert "not measured together" in made.probability("a > 0.5 and b == 1").reason


def test_sums_and_products_are_bought_where_they_say_something():
    schema = Schema(
        {"a": NumericColumn(0, 1), "b": CategoricalColumn((0, 1)), "c": NumericColumn(-2, 4)}
    )
    plans = [plan_tables(schema, n, Budget(1, "1e-6")) for n in (500, 5000)]
    assert [plan.more for plan in plans] == [False, True]
    assert plans[1].moments == MomentRequest((0, 2), ((0, 1), (2, 1)), ((0, 2),))
    rng = np.random.default_rng(0)
    a, b = rng.random(5000), rng.integers(2, size=5000)
    rows = {"a": a, "b": b, "c": 6 * a * b - 2}
    made = release(
        rows, bounds=schema, epsilon=5, delta=1e-6, n_points=300, noise=SimulatedNoise(1), rng=1
    )
    sums = {table.columns: table for table in made.measured if table.is_sums}
    (product,) = [table for table in made.measured if table.is_product]
    expected = [((rows["c"] - 1) * (b == value)).mean() for value in (0, 1)]
    assert sums["c", "b"].counts == pytest.approx(expected, abs=5 * sums["c", "b"].sigma)
    own = ((a - 0.5) * (rows["c"] - 1)).mean()
    assert float(product.counts) == pytest.approx(own, abs=5 * product.sigma)
