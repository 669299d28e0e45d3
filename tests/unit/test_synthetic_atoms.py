"""Atoms of a release by a kernel are counted on their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privatest.data.schema import NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic import SyntheticData, release
from privatest.synthetic.tables import ATOM_SHARE, atom_groups, column_cells, has_atoms

WITH = Schema({"x": NumericColumn(0, 12, atoms=(0,)), "y": NumericColumn(15, 60)})
WITHOUT = Schema({"x": NumericColumn(0, 12), "y": NumericColumn(15, 60)})


def data(seed, n=5000):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(n) < 0.68, 0.0, rng.uniform(0, 12, n))
    return {"x": x, "y": rng.uniform(15, 60, n)}


def released(rows, schema=WITH, **options):
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "n_points": 60, "method": "subspace"}
    return release(rows, bounds=schema, noise=SimulatedNoise(3), rng=1, **(given | options))


def test_groups_are_atoms_and_what_is_between_them():
    for atoms, count in (((0,), 2), ((12,), 2), ((3,), 3), ((0, 12), 3), ((1, 2), 5)):
        column = NumericColumn(0, 12, atoms=atoms)
        cells = column_cells(column)
        groups = atom_groups(cells, column.atoms)
        assert groups[0] == 0
        assert set(np.diff(groups)) <= {0, 1}
        assert groups[-1] + 1 == count
        for atom in atoms:
            assert np.count_nonzero(groups == groups[cells.codes(np.array([float(atom)]))[0]]) == 1


FEATURES = {"method": "features", "n_points": 20, "n_frequencies": 200}


@pytest.mark.parametrize("options", [{}, FEATURES])
def test_shares_at_an_atom_have_bars_and_without_atoms_they_have_none(options):
    rows = data(0)
    made = released(rows, **options)
    for condition in ("x == 0", "x > 0"):
        found = made.probability(condition)
        own = np.mean(rows["x"] == 0) if "==" in condition else np.mean(rows["x"] > 0)
        assert found.error < 0.01
        assert abs(found.value - own) < 4 * found.error
        assert found.sampling == pytest.approx(np.sqrt(own * (1 - own) / 5000), rel=0.05)
    assert np.isnan(released(rows, WITHOUT, **options).probability("x > 0").error)


@pytest.mark.parametrize("options", [{}, FEATURES])
def test_the_rest_of_the_budget_is_for_coefficients(options):
    rows = data(2)
    with_atoms, without = released(rows, **options), released(rows, WITHOUT, **options)
    assert has_atoms(WITH)
    assert not has_atoms(WITHOUT)
    assert without.measured == ()
    ratio = with_atoms.facts.sigma / without.facts.sigma
    assert ratio == pytest.approx(float(1 - ATOM_SHARE) ** -0.5, rel=1e-9)


@pytest.mark.parametrize("options", [{}, FEATURES])
def test_counts_are_stored_and_read_again(options, tmp_path):
    made = released(data(3), **options)
    made.save(tmp_path / "made.parquet")
    again = SyntheticData.load(tmp_path / "made.parquet")
    assert again.probability("x > 0") == made.probability("x > 0")
    assert str(again.mean("x")) == str(made.mean("x"))


def test_other_conditions_are_asked_as_before():
    found = released(data(4)).probability("x > 0 and y > 30")
    assert found.limits is not None
