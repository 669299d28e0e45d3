"""Search for neighbours that move a table of counts by more than 2, or by more than sqrt(2)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.data.schema import MISSING_TEXT, CategoricalColumn, Domain, Schema
from privatest.methods.tables import cell_counts, read_category
from tests.sensitivity.harness import Space, assert_sensitivity

LEVELS = (3, 4)
LABELS = ("a", "b", "c", "other")
# an empty text is missing, and counted to a category; numbers and text may mean the same
SPELLED = ("a", "b", "c", MISSING_TEXT[0])


def table(rows):
    """Counts of coded rows by the whole path: text, categories, missing values, counting."""
    first = Schema({"x": CategoricalColumn((0, 1, 2))})
    second = Schema({"y": CategoricalColumn(LABELS, missing="other")})
    x, _ = read_category(rows[:, 0], None, first, "x")
    y, _ = read_category([SPELLED[int(code)] for code in rows[:, 1]], None, second, "y")
    return cell_counts([x, y], LEVELS)


def norms(base):
    """Distances from a fixed table: they move by no more than the table does."""

    def statistic(rows, _):
        away = table(rows) - base
        return np.abs(away).sum(), np.linalg.norm(away), *away.ravel()

    return statistic


@pytest.mark.parametrize("n", [1, 3, 12])
def test_table_of_counts(n):
    bound = np.array([2, math.sqrt(2) * (1 + 1e-12), *[1] * 12])
    base = np.zeros(LEVELS)
    space = Space(Domain(LEVELS), n, 0)
    found = assert_sensitivity(norms(base), bound, space, restarts=3, steps=60)
    assert found == 1
    base[1, 2] = n
    assert assert_sensitivity(norms(base), bound, space, restarts=3, steps=60) >= 1 - 1e-9


def test_a_smaller_bound_is_caught():
    base = np.zeros(LEVELS)
    base[0, 0] = 3
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(
            norms(base), np.array([1, *[9] * 13]), Space(Domain(LEVELS), 3, 0), restarts=8
        )


def test_the_total_is_n_whatever_the_rows():
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = np.stack([rng.integers(level, size=30) for level in LEVELS], axis=1)
        assert table(rows.astype(float)).sum() == 30
