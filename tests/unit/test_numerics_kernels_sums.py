"""Sums over bins, and quadratic forms by halves, against plain ones."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from privatest.numerics.kernels import UNIT_ROUNDOFF, quadratic_forms, sum_rows


@pytest.mark.parametrize("size", [1, 2, 127, 128, 129, 143, 300, 517])
def test_quadratic_forms(size):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, 3))
    matrix, vectors = (
        np.exp(-np.square(root[:, None] - root[None]).sum(-1)),
        rng.normal(size=(4, size)),
    )
    found = quadratic_forms(matrix, vectors)
    for vector, value in zip(vectors, found, strict=True):
        whole = np.abs(vector) @ matrix @ np.abs(vector)
        assert (
            abs(value - np.longdouble(vector) @ matrix @ vector) <= 2 * size * UNIT_ROUNDOFF * whole
        )


def test_quadratic_forms_have_the_declared_error():
    """Weights of one sign and entries that round: against exact arithmetic."""
    rng = np.random.default_rng(7)
    size = 130
    matrix = rng.uniform(0.5, 1, size=(size, size))
    matrix = np.maximum(matrix, matrix.T)
    vector = rng.uniform(0.5, 1, size=size)
    exact = sum(
        Fraction(float(vector[i])) * Fraction(float(matrix[i, j])) * Fraction(float(vector[j]))
        for i in range(size)
        for j in range(size)
    )
    found = Fraction(float(quadratic_forms(matrix, vector[None])[0]))
    assert abs(found - exact) <= 2 * size * Fraction(UNIT_ROUNDOFF) * exact
    assert abs(found - exact) < Fraction(1, 10**10) * exact


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [[1] * 9, [3, 3, 3, 3], [3, 3, 3, 1], [2, 2, 5, 2, 2], [0, 0, 4, 4], [4, 4, 0, 1, 0], [0, 7],
     [7], [1, 40, 40], [0, 0, 0]],
)  # fmt: skip
def test_sum_rows_of_bins_of_any_sizes(sizes, weighted, order):
    """Equal bins, leftovers, empty bins, a single one, long ones; integers are summed exactly."""
    rng = np.random.default_rng(len(sizes))
    edges = np.append(0, np.cumsum(sizes))
    matrix = np.asarray(rng.integers(-99, 99, size=(edges[-1], 4)).astype(float), order=order)
    weights = rng.integers(-9, 9, size=edges[-1]).astype(float) if weighted else None
    own = matrix if weights is None else matrix * weights[:, None]
    expected = [own[start:stop].sum(axis=0) for start, stop in itertools.pairwise(edges)]
    np.testing.assert_array_equal(sum_rows(matrix, edges, weights), expected)
