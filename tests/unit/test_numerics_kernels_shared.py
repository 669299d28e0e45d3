"""One basis for the features of all bandwidths."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.numerics.features import nystrom, resolved, stacked, tabulated
from privatest.numerics.kernels import Kernel, gram, kernel_grid

LINE = Domain((0,))


def features_of(shared, rows):
    """Features of each kernel."""
    basis = shared.basis(rows)
    every = basis if shared.mix is None else basis @ shared.mix
    return [every[:, owned > 0] for owned in shared.weights.T]


def squared_distances(features):
    """Between all pairs of rows."""
    norms = np.square(features).sum(axis=1)
    return norms[:, None] + norms - 2 * features @ features.T


@pytest.mark.parametrize("family", ["gaussian", "laplace", "imq"])
@pytest.mark.parametrize("domain", [LINE, Domain((5,))], ids=["numeric", "categorical"])
def test_table_features_are_those_of_the_kernels(family, domain):
    kernels = resolved(kernel_grid(family, None, domain), domain.landmarks(), domain)
    table = tabulated(kernels, domain, max_rank=64)
    assert table is not None
    rows = domain.points(50)
    for kernel, features in zip(kernels, features_of(table, rows), strict=True):
        # what is left out is small for a smooth kernel; a Laplace kernel has a cusp
        tolerance = 0.03 if family != "laplace" or domain.categorical else 0.2
        expected = 2 - 2 * gram(kernel, rows, rows, domain)
        np.testing.assert_allclose(
            squared_distances(features), expected, atol=tolerance * expected.max()
        )


@pytest.mark.parametrize("family", ["gaussian", "laplace", "imq"])
def test_no_two_rows_are_further_apart_than_the_spread(family):
    """Between the points of the table, at its ends and next to them."""
    kernels = kernel_grid(family, None, LINE)
    table = tabulated(kernels, LINE, max_rank=24)
    assert table is not None
    rng = np.random.default_rng(0)
    ends = np.array([0.0, 1.0, 1e-9, 1 - 1e-9, 1 / 512, np.nextafter(1, 0)])
    rows = np.concatenate([rng.uniform(size=300), ends, np.arange(513) / 512])[:, None]
    for spread, features, size in zip(
        table.spreads, features_of(table, rows), table.sizes, strict=True
    ):
        norms = np.square(features).sum(axis=1)
        squares = squared_distances(features)
        assert np.sqrt(squares.max()) <= spread
        assert spread <= np.sqrt(squares.max()) * (1 + 1e-6)  # the lattice attains it
        assert np.sqrt(norms.max()) <= size


def test_a_table_is_short_and_loses_little():
    kernels = kernel_grid("gaussian", None, LINE)
    table = tabulated(kernels, LINE, max_rank=24)
    maps = nystrom(kernels, LINE.landmarks(), LINE, max_rank=24)
    side_by_side = stacked(maps)
    assert table is not None
    assert table.width <= 26 < len(table.weights) < side_by_side.width
    rows = np.random.default_rng(1).uniform(size=(100, 1))
    pairs = zip(features_of(table, rows), features_of(side_by_side, rows), strict=True)
    for short, long in pairs:
        expected = squared_distances(long)
        atol = 0.02 * expected.max()
        np.testing.assert_allclose(squared_distances(short), expected, atol=atol)
    np.testing.assert_allclose(table.spreads, side_by_side.spreads, rtol=2e-3)


def test_where_no_table_serves():
    square = Domain((0, 0))
    assert tabulated(kernel_grid("gaussian", None, square), square, max_rank=24) is None
    many = Domain((5000,))
    assert tabulated(kernel_grid("gaussian", None, many), many, max_rank=24) is None
    anywhere = Domain.anywhere(1)
    assert tabulated(kernel_grid("gaussian", 1.0, anywhere), anywhere, max_rank=24) is None


def test_a_kernel_without_shape_has_a_spread_nonetheless():
    """It rounds to 1 everywhere; so does the only category of a column."""
    for kernels, domain in (
        ((Kernel("gaussian", 1e90),), LINE),
        (kernel_grid("gaussian", None, Domain((1,))), Domain((1,))),
    ):
        table = tabulated(kernels, domain, max_rank=24)
        assert table is not None
        assert 0 < min(table.spreads) < 1e-6
        assert np.isfinite(table.basis(domain.points(5))).all()
