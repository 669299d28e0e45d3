"""Axes follow Bingham's law: against integrals at q = 2, 3 and importance sampling at q = 5, 10.

Seeds are fixed. Were they not, each comparison would fail by chance about once in 10,000 runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from privatest.mechanisms.covariance import Draw, orthogonal_axes, rational_root, secret_draws
from privatest.noise import SecureNoise, SimulatedNoise

DRAWS, FALSE_ALARM = 20_000, 1e-4


def matrix(size: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((size, size))
    return rows @ rows.T


def drawn(stack: np.ndarray, c: float, normals: Draw, uniforms: Draw) -> np.ndarray:
    return orthogonal_axes(*np.linalg.eigh(stack), c, normals, uniforms)[:, 0]


def chains(a: np.ndarray, c: float, seed: int = 1, count: int = DRAWS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    spectrum = np.linalg.eigh(np.tile(a, (count, 1, 1)))
    return orthogonal_axes(*spectrum, c, rng.standard_normal, rng.random)


def draws(a: np.ndarray, c: float) -> np.ndarray:
    return chains(a, c)[:, 0]


def sphere(points: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Points on the half of S² with z >= 0 and their areas, by Gauss and equal angles."""
    z, weights = np.polynomial.legendre.leggauss(points)
    z, weights = (z + 1) / 2, weights / 2
    angle = 2 * np.pi * np.arange(points) / points
    ring = np.sqrt(1 - z**2)[:, None]
    x, y = ring * np.cos(angle), ring * np.sin(angle)
    grid = np.stack([x, y, np.broadcast_to(z[:, None], x.shape)], axis=-1)
    return grid.reshape(-1, 3), np.repeat(weights, points)


def assert_second_moments(u: np.ndarray, expected: np.ndarray, errors: np.ndarray | float = 0.0):
    """Compare E[u u'] entry by entry, all at once, with a z-test."""
    size = len(expected)
    upper = np.triu_indices(size)
    products = (u[:, :, None] * u[:, None, :])[:, upper[0], upper[1]]
    spread = np.sqrt(products.var(axis=0) / len(u) + np.square(errors)) + 1e-12
    z = np.abs(products.mean(axis=0) - expected[upper]) / spread
    limit = np.sqrt(chi2.isf(FALSE_ALARM / len(z), 1))
    assert z.max() < limit


@pytest.mark.parametrize("c", [0.01, 0.5])
def test_circle(c):
    a = matrix(2)
    angle = np.linspace(0, np.pi, 20_001)
    u = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    density = np.exp(c * np.einsum("ni,ij,nj->n", u, a, u))
    cdf = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    drawn = draws(a, c)
    angles = np.arctan2(drawn[:, 1], drawn[:, 0]) % np.pi  # axes: u and -u are the same
    result = kstest(angles, lambda t: np.interp(t, angle, cdf / cdf[-1]))
    assert result.pvalue > FALSE_ALARM


@pytest.mark.parametrize("c", [0.05, 1.0, 200.0])
def test_sphere(c):
    a = matrix(3)
    grid, area = sphere()
    log_density = c * np.einsum("ni,ij,nj->n", grid, a, grid)
    weights = area * np.exp(log_density - log_density.max())
    weights /= weights.sum()
    drawn = draws(a, c)
    assert_second_moments(drawn, (grid * weights[:, None]).T @ grid)
    # and the law of one quadratic form, not only its mean
    forms = np.einsum("ni,ij,nj->n", grid, a, grid)
    order = np.argsort(forms)
    cdf = np.cumsum(weights[order])
    ours = np.einsum("ni,ij,nj->n", drawn, a, drawn)
    distance = kstest(ours, lambda t: np.interp(t, forms[order], cdf)).statistic
    assert distance < np.sqrt(np.log(2 / FALSE_ALARM) / (2 * DRAWS)) + 0.002  # the grid's error


def weighted(a: np.ndarray, c: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """E[u u'] by weights of angular central Gaussian draws, whose density is known; and errors."""
    values, vectors = np.linalg.eigh(a)
    slopes = c * (values[-1] - values)
    rng = np.random.default_rng(seed)
    shape = 1 + slopes  # any positive numbers would do
    points = rng.standard_normal((150_000, len(a))) / np.sqrt(shape)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    log_weights = -(points**2) @ slopes + len(a) / 2 * np.log((points**2) @ shape)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    u = points @ vectors.T
    expected = (u * weights[:, None]).T @ u
    upper = np.triu_indices(len(a))
    centred = (u[:, :, None] * u[:, None, :])[:, upper[0], upper[1]] - expected[upper]
    return expected, np.sqrt((weights**2) @ centred**2)


@pytest.mark.parametrize(("size", "c"), [(5, 0.05), (5, 2.0), (10, 0.05), (10, 1.0)])
def test_importance_sampling(size, c):
    a = matrix(size)
    expected, errors = weighted(a, c, 5)
    assert_second_moments(draws(a, c), expected, errors)


@pytest.mark.parametrize("c", [0.02, 0.5, 5.0])
def test_later_axes_of_a_chain(c):
    """Given the axes before it, each of seven is a draw from the matrix restricted to the rest.

    Compared by its mean quadratic form, which a first axis of the same restriction must have too.
    """
    a, count = matrix(7), 4_000
    axes = chains(a, c, seed=7, count=count)
    for step in range(1, 6):
        basis = np.linalg.svd(axes[:, :step])[2][:, step:]
        rest = basis @ a @ np.swapaxes(basis, 1, 2)
        rng = np.random.default_rng([8, step])
        u = drawn(rest, c, rng.standard_normal, rng.random)
        again = np.einsum("ni,nij,nj->n", u, rest, u)
        chain = np.einsum("ni,ij,nj->n", axes[:, step], a, axes[:, step])
        gap = chain - again
        assert abs(gap.mean()) < np.sqrt(chi2.isf(FALSE_ALARM / 5, 1) * gap.var() / count)
        assert kstest(chain, again).pvalue > FALSE_ALARM / 5


def test_many_matrices_at_once_do_not_mix():
    stack = np.stack([np.diag([1.0, 0, 0]), np.diag([0, 1.0, 0]), np.diag([0, 0, 1.0])])
    rng = np.random.default_rng(2)
    u = drawn(np.tile(stack, (50, 1, 1)), 1e6, rng.standard_normal, rng.random)
    assert np.abs(u).argmax(axis=1).tolist() == [0, 1, 2] * 50


def test_roots_of_rational_sums():
    rng = np.random.default_rng(9)
    numerators, poles = rng.uniform(size=(50, 6)), 10 ** rng.uniform(1, 6, size=(50, 6))
    start = np.maximum((numerators / 1e-3 - poles).max(axis=1), 0.0)
    s = rational_root(numerators, poles, 1e-3, start)
    sums = (numerators / (poles + s[:, None])).sum(axis=1)
    inside = (numerators / poles).sum(axis=1) <= 1e-3
    assert 0 < inside.sum() < 50
    np.testing.assert_array_equal(s[inside], 0.0)
    np.testing.assert_allclose(sums[~inside], 1e-3, rtol=1e-8)


def test_proposals_are_taken_often():
    """A b is kept while it accepts well, at every concentration: no endless loop."""
    for c in (0.0, 1.0, 1e3, 1e9):
        asked: list[int] = []
        rng = np.random.default_rng(3)

        def uniforms(size, asked=asked, rng=rng):
            asked.append(size)
            return rng.random(size)

        drawn(
            np.tile(matrix(6), (500, 1, 1)), c, np.random.default_rng(4).standard_normal, uniforms
        )
        assert sum(asked) < 500 * 5 * 8  # five axes each


@pytest.mark.parametrize("c", [0.05, 3.0])
def test_chain_of_axes(c):
    """All of E[v_i v_i'] at d = 3, by integrals over the sphere and then over circles."""
    a = matrix(3)
    grid, area = sphere(60)
    log_density = c * np.einsum("ni,ij,nj->n", grid, a, grid)
    weights = area * np.exp(log_density - log_density.max())
    weights /= weights.sum()
    first = (grid * weights[:, None]).T @ grid
    second = np.zeros((3, 3))
    angle = np.pi * np.arange(200) / 200
    for v, weight in zip(grid, weights, strict=True):
        basis = np.linalg.svd(v[None])[2][1:]
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ basis
        log_circle = c * np.einsum("ni,ij,nj->n", circle, a, circle)
        mass = np.exp(log_circle - log_circle.max())
        second += weight * (circle * (mass / mass.sum())[:, None]).T @ circle
    axes = chains(a, c, seed=6)
    np.testing.assert_allclose(
        axes @ np.swapaxes(axes, 1, 2), np.tile(np.eye(3), (DRAWS, 1, 1)), atol=1e-12
    )
    for index, expected in enumerate((first, second, np.eye(3) - first - second)):
        assert_second_moments(axes[:, index], expected, 1e-4)


def test_secret_normals_are_normal():
    for noise in (SecureNoise(), SimulatedNoise(0)):
        normals, uniforms = secret_draws(noise)
        assert kstest(normals(5_000), "norm").pvalue > 1e-8  # SecureNoise has no seed
        drawn = uniforms(10)
        assert 0 < drawn.min() < drawn.max() < 1
