"""Neighbours cannot move tables and sums of places further than declared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.synthetic.tables import (
    MomentRequest,
    TableRequest,
    cells_from,
    count_table,
    exact_sums,
    schema_cells,
    table_sensitivity,
)

SCHEMA = Schema(
    {
        "a": CategoricalColumn(tuple("xyz")),
        "b": NumericColumn(-1, 5, atoms=(0, 5)),
        "c": NumericColumn(0, 3000, integer=True, atoms=(0,)),
    }
)
CELLS = schema_cells(SCHEMA)


def random_rows(rng, count):
    """Corners, atoms, edges of bins, their neighbours, and anything between."""
    rows = np.empty((count, 3))
    rows[:, 0] = rng.integers(3, size=count)
    edges = np.concatenate([CELLS[1].lowest, CELLS[1].highest])
    odd = rng.choice(
        np.concatenate([edges, np.nextafter(edges, -9), np.nextafter(edges, 9)]), count
    )
    rows[:, 1] = np.where(rng.random(count) < 0.5, odd, rng.uniform(-1, 5, count)).clip(-1, 5)
    rows[:, 2] = rng.choice([0, 1, 2999, 3000, *rng.integers(3001, size=9)], size=count)
    return rows


def coded(rows):
    return np.column_stack([cells.codes(rows[:, i]) for i, cells in enumerate(CELLS)])


def random_tables(rng):
    """Any columns, once or twice, in any groups of cells."""
    tables = []
    for _ in range(rng.integers(1, 6)):
        columns = tuple(rng.permutation(3)[: rng.integers(1, 3)].tolist())
        groups = []
        for column in columns:
            size = len(CELLS[column])
            drawn = rng.integers(1 + rng.integers(size), size=size)
            groups.append(np.unique(drawn, return_inverse=True)[1])
        tables.append(TableRequest(columns, tuple(groups)))
    return tables


@pytest.mark.parametrize("person", [1, 2, 5])
def test_no_neighbours_move_tables_further(person):
    rng, most = np.random.default_rng(person), 0.0
    for _ in range(400):
        rows, tables = random_rows(rng, 6), random_tables(rng)
        other = rows.copy()
        own = rng.permutation(6)[:person]
        other[own] = random_rows(rng, 1) if rng.integers(2) else random_rows(rng, person)
        if rng.integers(2):
            rows[own] = rows[own[0]]
        moved = sum(
            float(((count_table(coded(rows), t) - count_table(coded(other), t)) ** 2).sum())
            for t in tables
        )
        most = max(most, np.sqrt(moved) / table_sensitivity(len(tables), person).value)
    assert 0.999 < most <= 1


@pytest.mark.parametrize("person", [1, 2])
def test_no_neighbours_move_a_look_further(person):
    """Whatever cells earlier looks left: a row is in one cell of each column that is open."""
    rng, most = np.random.default_rng(person), 0.0
    columns: list[Any] = [*SCHEMA.columns.values()]
    for _ in range(200):
        places = [1, 2] if rng.integers(2) else [int(rng.integers(1, 3))]
        rows = random_rows(rng, 6)
        other = rows.copy()
        other[:person] = random_rows(rng, 1) if rng.integers(2) else random_rows(rng, person)
        if rng.integers(2):
            rows[:person] = rows[0]
        moved = 0.0
        for place in places:
            more = random_rows(rng, 30)[:, place]
            cells = cells_from(columns[place], np.union1d(CELLS[place].lowest, more))
            wanted = TableRequest((0,), (np.arange(len(cells)),))
            one, two = (
                count_table(cells.codes(each[:, place])[:, None], wanted) for each in (rows, other)
            )
            moved += float(((one - two) ** 2).sum())
        most = max(most, np.sqrt(moved) / table_sensitivity(len(places), person).value)
    assert 0.999 < most <= 1


WANTED = [
    MomentRequest((1, 2)),
    MomentRequest((), ((1, 0),)),
    MomentRequest((), (), ((1, 2),)),
    MomentRequest((1, 2), ((1, 0), (2, 0)), ((1, 2),)),
]


@pytest.mark.parametrize("person", [1, 3])
@pytest.mark.parametrize("wanted", WANTED)
def test_no_neighbours_move_sums_further(wanted, person):
    """Corners, equal cells and other cells: each kind of sum attains its bound by itself."""
    rng, most, bound = np.random.default_rng(person), 0.0, wanted.sensitivity(person).value
    lower, width = SCHEMA.box.lower, SCHEMA.box.width
    for _ in range(400):
        pair = []
        for _ in range(2):
            rows = random_rows(rng, person)
            corner = rng.integers(2, size=2)
            if rng.random() < 0.7:  # all of a person's rows in one corner
                rows[:, 1:] = lower[1:] + corner * width[1:]
            rows[:, 0] = rng.integers(2) if rng.integers(2) else rows[:, 0]
            places = ((rows - lower) / np.where(width > 0, width, 1)).clip(0, 1)
            sums = exact_sums(places, coded(rows), [len(cells) for cells in CELLS], wanted)
            pair.append(np.concatenate(sums).astype(np.float64))
        most = max(most, float(np.linalg.norm(pair[0] - pair[1])) / bound)
    assert most <= 1
    assert most > (1 - 1e-9 if len(wanted) != 5 else 0.9)


def test_a_row_is_in_one_cell_whatever_the_others_are():
    rng = np.random.default_rng(0)
    rows = random_rows(rng, 200)
    alone = np.vstack([coded(row[None, :]) for row in rows])
    assert np.array_equal(alone, coded(rows))
    for cells, codes in zip(CELLS, alone.T, strict=True):
        assert codes.min() >= 0
        assert codes.max() < len(cells)
