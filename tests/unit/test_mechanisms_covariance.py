"""The ED mechanism: scales, what it returns, and that replicates have the same law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, laplace

from privatest.core.errors import ParameterError
from privatest.mechanisms.covariance import (
    assembled,
    covariance_ed,
    ed_replicates,
    ed_scales,
    less_a_square,
)
from privatest.mechanisms.moments import nearest_psd
from privatest.noise import SecureNoise, SimulatedNoise

N = 500


def squares(dimension: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).uniform(-1, 1, size=(N, dimension)) * np.arange(
        1, dimension + 1
    )
    x /= dimension**1.5
    assert np.linalg.norm(x, axis=1).max() <= 1
    return x.T @ x


def test_scales():
    one, several = ed_scales(N, 1, epsilon=0.3), ed_scales(N, 10, epsilon=0.3)
    assert one.eigenvalues == pytest.approx(1 / 0.3)
    assert several.eigenvalues == pytest.approx(1 / 0.15)
    assert several.concentration == pytest.approx(0.15 / 10)
    # rounded so that the promise is kept
    assert several.eigenvalues > 1 / 0.15
    assert several.concentration < 0.15 / 10


def test_rows_of_a_person_multiply():
    one, five = ed_scales(N, 3, epsilon=1.0), ed_scales(N, 3, epsilon=1.0, rows_per_person=5)
    assert five.eigenvalues == pytest.approx(5 * one.eigenvalues)
    assert five.concentration == pytest.approx(one.concentration / 5)


def test_rounding_errors_widen():
    exact, rounded = ed_scales(N, 3, epsilon=1.0), ed_scales(N, 3, epsilon=1.0, error=0.1)
    assert rounded.eigenvalues == pytest.approx((1 + 2 * 3 * 0.1) / 0.5)
    assert rounded.concentration == pytest.approx(exact.concentration / (1 + 4 * 2 / 3 * 0.1))


@pytest.mark.parametrize("noise", [SimulatedNoise(0), SecureNoise()])
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_is_a_covariance(dimension, noise):
    for epsilon in (0.01, 1.0):
        released = covariance_ed(squares(dimension), n=N, epsilon=epsilon, noise=noise)
        assert released.shape == (dimension, dimension)
        np.testing.assert_allclose(released, released.T, atol=1e-9 * np.abs(released).max() + 1e-12)
        assert np.linalg.eigvalsh(released)[0] >= -1e-8 * (1 + np.abs(released).max())


@pytest.mark.parametrize("dimension", [1, 2, 6])
def test_no_privacy_no_error(dimension):
    exact = squares(dimension)
    released = covariance_ed(exact, n=N, epsilon=1e9, noise=SimulatedNoise(0))
    np.testing.assert_allclose(released, exact, atol=2e-2)


def test_one_dimension_is_laplace_cut_at_zero():
    """False alarm 1e-6; the seed is fixed."""
    noise = SimulatedNoise(0)
    drawn = [
        covariance_ed(np.array([[40.0]]), n=N, epsilon=0.5, noise=noise)[0, 0] for _ in range(2000)
    ]
    assert kstest(drawn, laplace(40.0, 2.0).cdf).pvalue > 1e-6
    assert (
        min(covariance_ed(np.zeros((1, 1)), n=N, epsilon=0.5, noise=noise)[0, 0] for _ in range(20))
        == 0
    )


@pytest.mark.parametrize("epsilon", [0.5, 200.0])
def test_replicates_have_the_law_of_the_release(epsilon):
    """Two samples of a number that depends on axes and eigenvalues; false alarm 1e-6."""
    exact, noise, rng = squares(3), SimulatedNoise(3), np.random.default_rng(4)
    ours = np.array([covariance_ed(exact, n=N, epsilon=epsilon, noise=noise) for _ in range(600)])
    scales = ed_scales(N, 3, epsilon=epsilon)
    replicates = assembled(*ed_replicates(np.tile(exact, (600, 1, 1)), scales, rng))
    for i, j in ((0, 0), (0, 2), (1, 2)):
        assert kstest(ours[:, i, j], replicates[:, i, j]).pvalue > 1e-6


@pytest.mark.parametrize("size", [1, 2, 6])
def test_less_a_square_is_the_nearest_psd_matrix(size):
    """Squares from far too small to far too large: the negative eigenvalue is cut, if there is."""
    rng = np.random.default_rng(size)
    values = 10 ** rng.uniform(-6, 2, size=(60, size))
    axes = np.linalg.qr(rng.standard_normal((60, size, size)))[0]
    m = 10 ** rng.uniform(-5, 3, size=(60, 1)) * rng.standard_normal((60, size))
    m[0] = 0.0
    plain = assembled(values, axes) - m[:, :, None] * m[:, None, :]
    negative = np.linalg.eigvalsh(plain)[:, 0] < 0
    assert 5 < negative.sum() < 55
    found, scale = less_a_square(values, axes, m), np.abs(plain).max(axis=(1, 2))
    gap = np.abs(found - nearest_psd(plain)).max(axis=(1, 2))
    assert (gap / scale).max() < 1e-8


def test_what_is_no_matrix_is_refused():
    for bad in (np.full((2, 2), np.nan), np.ones((2, 3))):
        with pytest.raises(ParameterError, match="finite square matrix"):
            covariance_ed(bad, n=N, epsilon=1.0, noise=SimulatedNoise(0))
