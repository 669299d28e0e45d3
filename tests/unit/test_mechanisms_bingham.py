"""Axes follow Bingham's law: against integrals at q = 2, 3 and importance sampling at q = 5, 10.

Seeds are fixed. Were they not, each comparison would fail by chance about once in 10,000 runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from privatest.mechanisms.bingham import Draw, _flat_bingham, bingham, orthogonal_axes, secret_draws
from privatest.noise import SecureNoise, SimulatedNoise

DRAWS, FALSE_ALARM = 20_000, 1e-4


def matrix(size: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((size, size))
    return rows @ rows.T


def drawn(stack: np.ndarray, c: float, normals: Draw, uniforms: Draw) -> np.ndarray:
    return bingham(stack, np.linalg.eigvalsh(stack), c, normals, uniforms)


def draws(a: np.ndarray, c: float, seed: int = 1, count: int = DRAWS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return drawn(np.tile(a, (count, 1, 1)), c, rng.standard_normal, rng.random)


def flat_draws(a: np.ndarray, c: float, seed: int = 1, count: int = DRAWS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    top = np.full(count, np.linalg.eigvalsh(a)[-1])
    stack = np.tile(a, (count, 1, 1))
    return _flat_bingham(stack, top, c, rng.standard_normal, rng.random)


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


@pytest.mark.parametrize("draw", [draws, flat_draws])
@pytest.mark.parametrize("c", [0.01, 0.5])
def test_circle(draw, c):
    a = matrix(2)
    angle = np.linspace(0, np.pi, 20_001)
    u = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    density = np.exp(c * np.einsum("ni,ij,nj->n", u, a, u))
    cdf = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    drawn = draw(a, c)
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


@pytest.mark.parametrize(("size", "c"), [(5, 0.05), (5, 2.0), (10, 0.05), (10, 1.0)])
def test_importance_sampling(size, c):
    """Weights of angular central Gaussian draws, whose density is known."""
    a = matrix(size)
    values, vectors = np.linalg.eigh(a)
    slopes = c * (values[-1] - values)
    rng = np.random.default_rng(5)
    shape = 1 + slopes  # any positive numbers would do
    points = rng.standard_normal((150_000, size)) / np.sqrt(shape)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    log_weights = -(points**2) @ slopes + size / 2 * np.log((points**2) @ shape)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    u = points @ vectors.T
    expected = (u * weights[:, None]).T @ u
    upper = np.triu_indices(size)
    centred = (u[:, :, None] * u[:, None, :])[:, upper[0], upper[1]] - expected[upper]
    errors = np.sqrt((weights**2) @ centred**2)
    assert_second_moments(draws(a, c), expected, errors)


def test_many_matrices_at_once_do_not_mix():
    stack = np.stack([np.diag([1.0, 0, 0]), np.diag([0, 1.0, 0]), np.diag([0, 0, 1.0])])
    rng = np.random.default_rng(2)
    u = drawn(np.tile(stack, (50, 1, 1)), 1e6, rng.standard_normal, rng.random)
    assert np.abs(u).argmax(axis=1).tolist() == [0, 1, 2] * 50


def test_proposals_are_taken_often():
    """The best b accepts about half, at every concentration: no endless loop."""
    for c in (0.0, 1.0, 1e3, 1e9):
        asked: list[int] = []
        rng = np.random.default_rng(3)

        def uniforms(size, asked=asked, rng=rng):
            asked.append(size)
            return rng.random(size)

        drawn(
            np.tile(matrix(6), (500, 1, 1)), c, np.random.default_rng(4).standard_normal, uniforms
        )
        assert sum(asked) < 500 * 20


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
    rng = np.random.default_rng(6)
    axes = orthogonal_axes(np.tile(a, (DRAWS, 1, 1)), c, rng.standard_normal, rng.random)
    np.testing.assert_allclose(
        axes @ np.swapaxes(axes, 1, 2), np.tile(np.eye(3), (DRAWS, 1, 1)), atol=1e-12
    )
    for index, expected in enumerate((first, second, np.eye(3) - first - second)):
        assert_second_moments(axes[:, index], expected, 1e-4)


def test_secret_normals_are_normal():
    for noise in (SecureNoise(), SimulatedNoise(0)):
        normals, uniforms = secret_draws(noise)
        assert kstest(normals(5_000), "norm").pvalue > 1e-6  # SecureNoise has no seed
        assert 0 < uniforms(10).min() < uniforms(10).max() < 1
