"""Feature maps contract, approximate their kernels, and do not depend on data."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.data.schema import Domain
from privatest.numerics.features import fourier, nystrom
from privatest.numerics.kernels import Kernel, gram, kernel_grid
from privatest.numerics.permutation import mmd

LINE = Domain((0,))
DOMAINS = [LINE, Domain((0, 0)), Domain((0, 3)), Domain((0,) * 5)]


def rows_of(domain, count, seed):
    rows = np.random.default_rng(seed).uniform(size=(count, domain.dimension))
    rows[: count // 3] = np.round(rows[: count // 3])
    for column in domain.categorical:
        rows[:, column] = np.floor(np.minimum(rows[:, column], 0.999) * domain.levels[column])
    return rows


def features(maps, index, rows):
    raw = [matrix.copy() for matrix in maps.raw(rows)][index]
    return maps.project(index, raw)


# --- Nyström ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "laplace", "imq"])
@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_nystrom_is_a_contraction(family, domain):
    kernels = kernel_grid(family, [2.0, 0.5, 0.1], domain)
    maps = nystrom(kernels, domain.points(48), domain)
    rows = rows_of(domain, 60, 1)
    for index, kernel in enumerate(kernels):
        mapped = features(maps, index, rows)
        squared = ((mapped[:, None] - mapped[None]) ** 2).sum(axis=2)
        true = 2 - 2 * gram(kernel, rows, rows, domain)
        assert np.all(squared <= true + 1e-9)
        assert np.sqrt(squared.max()) <= maps.spreads[index]
        assert np.linalg.norm(mapped, axis=1).max() <= 1 + 1e-9
        assert maps.spreads[index] == pytest.approx(kernel.spread(domain), rel=1e-6)


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_nystrom_mmd_is_below_the_exact_one(domain):
    kernels = kernel_grid("gaussian", None, domain)
    maps = nystrom(kernels, domain.points(48), domain)
    x, y = rows_of(domain, 30, 2), rows_of(domain, 40, 3) ** 2
    y = np.round(y) if domain.categorical else y
    for index, kernel in enumerate(kernels):
        gap = features(maps, index, x).mean(axis=0) - features(maps, index, y).mean(axis=0)
        assert np.linalg.norm(gap) <= mmd(x, y, kernel, domain) + 1e-7


def test_nystrom_is_exact_where_the_landmarks_span_everything():
    maps = nystrom(kernel_grid("gaussian", None, LINE), LINE.points(64), LINE)
    x, y = rows_of(LINE, 50, 4), rows_of(LINE, 60, 5) ** 2
    for index, kernel in enumerate(kernel_grid("gaussian", None, LINE)):
        gap = features(maps, index, x).mean(axis=0) - features(maps, index, y).mean(axis=0)
        assert np.linalg.norm(gap) == pytest.approx(mmd(x, y, kernel, LINE), rel=0.02, abs=2e-3)


def test_landmarks_that_coincide_are_no_trouble():
    landmarks = np.repeat(LINE.points(5), 3, axis=0)
    maps = nystrom([Kernel("gaussian", 0.5)], landmarks, LINE)
    rows = rows_of(LINE, 40, 6)
    mapped = features(maps, 0, rows)
    assert np.all(np.isfinite(mapped))
    squared = ((mapped[:, None] - mapped[None]) ** 2).sum(axis=2)
    assert np.all(squared <= 2 - 2 * gram(Kernel("gaussian", 0.5), rows, rows, LINE) + 1e-9)


def test_stacks_of_sums_and_no_sums_are_projected_too():
    maps = nystrom(kernel_grid("gaussian", None, LINE), LINE.points(16), LINE)
    sums = np.random.default_rng(0).normal(size=(3, 4, 16))
    projected = maps.project(0, sums)
    assert projected[1, 2] == pytest.approx(maps.project(0, sums[1, 2]))
    assert maps.project(0, np.zeros((0, 16))).shape == (0, projected.shape[2])


def test_sums_are_projected_as_rows_are():
    maps = nystrom(kernel_grid("gaussian", None, LINE), LINE.points(32), LINE)
    rows = rows_of(LINE, 25, 7)
    for index, raw in enumerate(maps.raw(rows)):
        summed = maps.project(index, raw.sum(axis=0))
        assert summed == pytest.approx(maps.project(index, raw).sum(axis=0), abs=1e-8)


# --- Fourier ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "tolerance"), [("gaussian", 0.05), ("laplace", 0.05)])
def test_fourier_features_approximate_the_kernel(family, tolerance):
    # an entry's standard error is below 1/sqrt(8000) = 0.011: five of them for 400 entries
    domain, kernel = Domain((0, 0)), Kernel(family, 0.8)
    maps = fourier([kernel], 4_000, domain, np.random.default_rng(0))
    rows = rows_of(domain, 20, 8)
    mapped = features(maps, 0, rows)
    assert np.abs(mapped @ mapped.T - gram(kernel, rows, rows, domain)).max() < tolerance


def test_fourier_mmd_is_close_to_the_gaussian_one():
    kernel = Kernel("gaussian", 0.5)
    maps = fourier([kernel], 4_000, LINE, np.random.default_rng(1))
    x, y = rows_of(LINE, 80, 9), rows_of(LINE, 80, 10) ** 2
    gap = features(maps, 0, x).mean(axis=0) - features(maps, 0, y).mean(axis=0)
    assert np.linalg.norm(gap) == pytest.approx(mmd(x, y, kernel, LINE), rel=0.1)


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_fourier_spread_bounds_and_features_have_norm_one(family):
    domain = Domain((0, 0))
    maps = fourier(kernel_grid(family, [3.0, 0.3], domain), 64, domain, np.random.default_rng(2))
    rows = np.vstack([rows_of(domain, 40, 11), [[0, 0], [1, 1], [0, 1], [1, 0]]])
    for index, spread in enumerate(maps.spreads):
        mapped = features(maps, index, rows)
        assert np.linalg.norm(mapped, axis=1) == pytest.approx(1)
        squared = ((mapped[:, None] - mapped[None]) ** 2).sum(axis=2)
        assert np.sqrt(squared.max()) <= spread <= 2


def test_fourier_frequencies_are_public_randomness():
    draws = [
        fourier([Kernel("gaussian", 1.0)], 8, LINE, np.random.default_rng(s)) for s in (1, 1, 2)
    ]
    assert np.array_equal(draws[0].maps[0].frequencies, draws[1].maps[0].frequencies)
    assert not np.array_equal(draws[0].maps[0].frequencies, draws[2].maps[0].frequencies)


@pytest.mark.parametrize(
    ("kernel", "domain"),
    [
        (Kernel("imq", 1.0), LINE),
        (Kernel("gaussian", 1.0), Domain((0, 3))),
        (Kernel("gaussian", 1.0), Domain((0,), bounded=False)),
    ],
)
def test_fourier_features_that_do_not_exist(kernel, domain):
    with pytest.raises(ParameterError, match="Fourier features need"):
        fourier([kernel], 8, domain, np.random.default_rng(0))
