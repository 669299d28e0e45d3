"""Bins that are finer where there are many rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.data.encoding import Sample
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic import SyntheticData, release, storage
from privatest.synthetic.tables import (
    LOOK,
    LOOKS,
    cells_from,
    column_cells,
    plan_tables,
    planned_rounds,
    refine_cells,
    schema_cells,
    table_scale,
)

BUDGET = Budget(1, "1e-6")
WIDE = Schema({"x": NumericColumn(0, 1000), "g": CategoricalColumn((0, 1))})


def lognormal(n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"x": np.minimum(rng.lognormal(0, 1, n), 1000), "g": rng.integers(2, size=n)}


def released(rows: Any, schema: Schema = WIDE, seed: int = 1, **options: Any) -> SyntheticData:
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "method": "tables", **options}
    return release(rows, bounds=schema, noise=SimulatedNoise(seed), rng=seed, **asked)


def test_the_median_of_skewed_rows_is_right():
    """With even bins nearly all rows are in the first."""
    rows = lognormal(20_000)
    even, adaptive = (released(rows, bins=bins) for bins in ("even", "adaptive"))
    truth = float(np.median(rows["x"]))
    assert abs(even.quantile("x", 0.5).value - truth) > truth
    found = adaptive.quantile("x", 0.5)
    assert abs(found.value - truth) < 0.05 * truth
    assert found.limits is not None
    assert found.limits[0] <= truth <= found.limits[1] < 2 * truth
    assert adaptive.facts.parameters["shares"]["bins"] == pytest.approx(0.1)
    assert adaptive.facts.starts["x"] == tuple(sorted(adaptive.facts.starts["x"]))
    assert not even.facts.starts


def test_an_atom_that_nobody_told_of_is_found():
    """A value of integers that a third of all rows has ends up in a cell of its own."""
    rng = np.random.default_rng(0)
    pay = np.where(rng.random(5000) < 0.3, 12350, rng.integers(100_001, size=5000))
    made = released({"pay": pay}, Schema({"pay": NumericColumn(0, 100_000, integer=True)}))
    found = made.probability("pay == 12350")
    assert 0 < found.error < 0.02
    assert abs(found.value - np.mean(pay == 12350)) < 4 * found.error


def test_even_rows_cost_one_look():
    rng = np.random.default_rng(0)
    made = released({"x": rng.uniform(0, 1000, 5000), "g": rng.integers(2, size=5000)})
    assert not made.facts.starts
    shares = made.facts.parameters["shares"]
    assert shares["bins"] == pytest.approx(float(LOOK))
    assert sum(shares.values()) == pytest.approx(1)


def test_looks_are_bought_where_heavy_bins_stand_out():
    least = next(n for n in range(100, 1000) if plan_tables(WIDE, n, BUDGET).bins)
    assert 300 < least < 600
    assert plan_tables(WIDE, least, Budget("0.1", "1e-6")).bins == 0
    assert plan_tables(WIDE, 10**6, BUDGET, bins="even").bins == 0
    few = Schema({"x": NumericColumn(0, 1000, integer=True), "g": CategoricalColumn((0, 1))})
    assert plan_tables(few, 10**6, BUDGET).bins == 0  # every value has its own cell


def test_looks_are_foretold():
    told = planned_rounds(WIDE, 20_000, BUDGET, "tables")
    assert told[0].share == pytest.approx(0.1)
    assert told[0].tables == LOOKS
    assert told[0].sigma == pytest.approx(told[2].sigma * (0.3 / 2 * 30) ** 0.5)
    assert sum(part.share for part in told) == pytest.approx(1)
    assert len(planned_rounds(WIDE, 20_000, BUDGET, "tables", {"bins": "even"})) == len(told) - 1
    with pytest.raises(ParameterError, match="bins must be"):
        planned_rounds(WIDE, 20_000, BUDGET, "tables", {"bins": "odd"})


@pytest.mark.parametrize("integer", [False, True])
def test_cells_stay_a_partition(integer):
    """Whatever is looked at: public cells stay, atoms have their own, and every value is in one."""
    column = NumericColumn(-50, 5000, integer=integer, atoms=(0, 17))
    schema = Schema({"x": column})
    public = column_cells(column)
    rng = np.random.default_rng(0)
    for seed in range(5):
        centre, width = rng.uniform(-40, 4000), 10.0 ** rng.uniform(-6, 3)
        x = np.clip(rng.normal(centre, width, 3000), -50, 5000)
        x[:500] = 17
        x = np.rint(x) if integer else x
        (cells,), spent = refine_cells(
            Sample(x[:, None], None), schema, [public], budget=BUDGET, noise=SimulatedNoise(seed)
        )
        assert set(public.lowest.tolist()) <= set(cells.lowest.tolist())
        assert (np.diff(cells.lowest) > 0).all()
        assert ((cells.lowest == 17) & (cells.highest == 17)).sum() == 1
        codes = cells.codes(x)
        assert (cells.lowest[codes] <= x).all()
        assert (x <= cells.highest[codes]).all()
        if integer:
            assert (cells.lowest[1:] == cells.highest[:-1] + 1).all()
        assert spent <= LOOKS * LOOK
        assert spent % LOOK == Fraction(0)


def test_counts_are_few():
    """Rows at many points: cells do not explode."""
    x = np.repeat(np.linspace(1, 999, 8), 1000) + 1e-7
    (cells,), _ = refine_cells(
        Sample(x[:, None], None),
        Schema({"x": NumericColumn(0, 1000)}),
        schema_cells(Schema({"x": NumericColumn(0, 1000)})),
        budget=Budget(5, "1e-6"),
        noise=SimulatedNoise(0),
    )
    assert len(cells) < 128 + 8 * LOOKS * 16


def test_files_keep_the_bins(tmp_path):
    made = released(lognormal(5000), n_points=200)
    made.save(tmp_path / "made.parquet")
    again = SyntheticData.load(tmp_path / "made.parquet")
    assert again.facts == made.facts
    assert again.quantile("x", 0.3) == made.quantile("x", 0.3)
    assert SyntheticData.from_dict(made.to_dict()).facts.starts == made.facts.starts


def test_files_without_them_are_as_before(tmp_path, monkeypatch):
    """So that programs of before read them; those that hold bins are refused by these."""
    even, adaptive = (
        released(lognormal(5000), n_points=200, bins=bins) for bins in ("even", "adaptive")
    )
    paths = [tmp_path / "even.parquet", tmp_path / "adaptive.parquet"]
    even.save(paths[0])
    adaptive.save(paths[1])
    monkeypatch.setattr(storage, "_VERSION", 2)
    assert SyntheticData.load(paths[0]).facts == even.facts
    with pytest.raises(DataError, match="newer version"):
        SyntheticData.load(paths[1])


@pytest.mark.parametrize(
    "starts", [(0.0, 2.0, 1.0), (1.0, 2.0), (0.0, 11.0), (0.0, 2.0), (0.0, 2.0, 2.0)]
)
def test_starts_that_make_no_cells_are_refused(starts):
    with pytest.raises(ValueError, match="must rise"):
        cells_from(NumericColumn(0, 10, atoms=(5,)), np.array(starts))


def test_releases_with_other_bins_are_compared():
    """The same law twice, and a shift within one even bin, which only finer bins can show."""
    rows = [lognormal(20_000, seed) for seed in range(3)]
    rows[2]["x"] = rows[2]["x"] * 1.3
    made = [released(each, seed=seed, n_points=100) for seed, each in enumerate(rows)]
    assert made[0].facts.starts != made[1].facts.starts
    assert pt.compare_releases(made[0], made[1]).pvalue > 0.01
    assert pt.compare_releases(made[0], made[2]).pvalue < 0.01


def test_bins_are_for_tables():
    with pytest.raises(ParameterError, match="bins needs method='tables'"):
        release(np.zeros((10, 1)), bounds=(0, 1), epsilon=1, delta=1e-6, bins="even")
    with pytest.raises(ParameterError, match="bins must be"):
        released(lognormal(10), bins="fine")


def test_noise_of_looks_follows_from_the_columns_that_are_open():
    """The second column has no heavy bin, and is not looked at again."""
    scales = []

    class Noise(SimulatedNoise):
        def gaussian(self, values, scale, grid):
            scales.append(scale)
            return super().gaussian(values, scale, grid)

    schema = Schema({"x": NumericColumn(0, 1000), "y": NumericColumn(0, 1)})
    rng = np.random.default_rng(0)
    rows = np.column_stack([lognormal(4000)["x"], rng.random(4000)])
    refine_cells(Sample(rows, None), schema, schema_cells(schema), budget=BUDGET, noise=Noise(0))
    both, one = (table_scale(columns, 1, BUDGET, LOOK) for columns in (2, 1))
    assert scales == pytest.approx([both, one, one])
