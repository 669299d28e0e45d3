"""Sums by cells: no replaced row moves them further than declared, and one nearly does."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.numerics.cells import UNIT, CellSums, Grid, cell_sums_sensitivity

GRIDS = [Grid((0,), (12,)), Grid((0, 3), (5, 3)), Grid((4,), (4,))]
ENDS = np.array([0.0, 1.0, 0.5, 0.25, 1e-9, 1 - 1e-9, 1 / 12, 0.3])


def integers(grid, rows):
    found = CellSums(grid)
    found.update(rows, 0)
    return found.integers


def draw(grid, rng, count):
    """Return rows whose values are often at ends of bounds and of cells."""
    columns = [
        rng.integers(levels, size=count)
        if levels
        else np.where(rng.random(count) < 0.5, rng.choice(ENDS, size=count), rng.random(count))
        for levels in (*grid.levels, 0, 0)
    ]
    return np.column_stack(columns).astype(np.float64)


@pytest.mark.privacy
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("persons", [1, 3])
def test_no_neighbour_moves_further(grid, persons):
    rng, bound = np.random.default_rng(persons), cell_sums_sensitivity(persons).value
    worst = 0
    for _ in range(4000):
        rows = draw(grid, rng, 10)
        others = rows.copy()
        others[:persons] = draw(grid, rng, persons)
        worst = max(worst, int(np.abs(integers(grid, rows) - integers(grid, others)).sum()))
    assert worst <= bound
    assert worst >= persons * 5 * UNIT


@pytest.mark.privacy
def test_the_bound_is_nearly_attained():
    grid = GRIDS[0]
    rows = np.full((5, 3), 1.0)
    others = rows.copy()
    others[0] = 0.0
    moved = np.abs(integers(grid, rows) - integers(grid, others)).sum()
    assert moved == 6 * UNIT
    assert cell_sums_sensitivity(1).value == 6 * UNIT + 2


@pytest.mark.privacy
def test_all_pairs_of_values_stay_within_the_bound():
    # the square may change by half of what the value does: with other weights this would fail
    values = np.linspace(-UNIT, UNIT, 801).astype(np.int64)
    squares = values**2 // (2 * UNIT)
    moved = np.abs(values)[:, None] + np.abs(values) + np.abs(squares[:, None] - squares)
    assert moved.max() <= 2 * UNIT + 1
