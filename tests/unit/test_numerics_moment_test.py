"""The tester's part: pooled noisy moments, their statistic and its null law."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.numerics.moments import (
    NoisyMoments,
    PooledMoments,
    moment_pvalue,
    pool_releases,
    pooled_covariance,
)


def noisy(rows, sigma=0.0, sigma_second=0.0):
    second = rows.T @ rows / len(rows)
    return NoisyMoments(len(rows), rows.mean(axis=0), second, sigma, sigma_second)


def samples(shift=0.0, seed=0, n=400, m=300):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) / 4, rng.normal(size=(m, 3)) / 4 + shift


def test_pooling_keeps_means_and_covariances():
    x, y = samples()
    pooled = pool_releases(noisy(x, 0.01, 0.02), noisy(y, 0.03, 0.01))
    expected = (300 * np.cov(x.T, bias=True) + 400 * np.cov(y.T, bias=True)) / 700
    assert pooled_covariance(pooled) == pytest.approx(expected)
    assert pooled.sigma_difference == pytest.approx(math.hypot(0.01, 0.03))
    mean_x = pooled.centre + pooled.share * pooled.difference
    assert mean_x == pytest.approx(x.mean(axis=0))
    # the parts' noise is uncorrelated: cov = (1 - share) sigma_x² - share sigma_y²
    assert (1 - pooled.share) * 0.01**2 == pytest.approx(pooled.share * 0.03**2)
    assert pooled.sigma_centre == pytest.approx(
        math.hypot((1 - pooled.share) * 0.01, pooled.share * 0.03)
    )
    assert pooled.sigma_second == pytest.approx(math.hypot(300 * 0.02, 400 * 0.01) / 700)


def statistic(pooled):
    return moment_pvalue(pooled, n_bootstrap=9, rng=np.random.default_rng(0))[0]


def test_statistic_is_the_quadratic_form():
    x, y = samples(0.02)
    pooled = pool_releases(noisy(x, 0.001, 0.0005), noisy(y, 0.001, 0.0005))
    matrix = pooled_covariance(pooled) + pooled.ridge * np.eye(3)
    w = x.mean(axis=0) - y.mean(axis=0)
    expected = 400 * 300 / 700 * w @ np.linalg.solve(matrix, w)
    assert statistic(pooled) == pytest.approx(expected)
    assert pooled.ridge > pooled.harmonic * pooled.sigma_difference**2


def test_negative_eigenvalues_are_cut():
    pooled = PooledMoments(
        n_x=100,
        n_y=100,
        difference=np.array([0.1, 0.0]),
        centre=np.zeros(2),
        second=np.diag([-0.5, 1.0]),
        sigma_difference=0.1,
        sigma_centre=0.1,
        sigma_second=0.1,
        share=0.5,
    )
    assert statistic(pooled) == pytest.approx(50 * 0.01 / pooled.ridge)


@pytest.mark.parametrize("null", ["corrected", "asymptotic"])
def test_far_apart_is_rejected_and_equal_is_not(null):
    rng = np.random.default_rng(1)
    far = pool_releases(*(noisy(rows, 1e-4, 1e-4) for rows in samples(0.3)))
    same = pool_releases(*(noisy(rows, 1e-4, 1e-4) for rows in samples(0.0)))
    assert moment_pvalue(far, null=null, n_bootstrap=199, rng=rng)[1] <= 0.005
    assert moment_pvalue(same, null=null, n_bootstrap=199, rng=rng)[1] > 0.05


def test_asymptotic_null_without_noise_is_chi_squared():
    from scipy.stats import chi2

    x, y = samples(0.03)
    pooled = pool_releases(noisy(x, 1e-9, 1e-9), noisy(y, 1e-9, 1e-9))
    statistic, pvalue = moment_pvalue(pooled, null="asymptotic", rng=np.random.default_rng(0))
    assert pvalue == pytest.approx(chi2.sf(statistic, 3))
    corrected = moment_pvalue(pooled, n_bootstrap=4000, rng=np.random.default_rng(0))[1]
    # a standard error of the bootstrap is below .008
    assert corrected == pytest.approx(pvalue, abs=0.04)


def test_pvalue_is_reproducible_and_never_zero():
    pooled = pool_releases(*(noisy(rows, 1e-4, 1e-4) for rows in samples(0.5)))
    values = [
        moment_pvalue(pooled, n_bootstrap=99, rng=np.random.default_rng(3))[1] for _ in range(2)
    ]
    assert values == [0.01, 0.01]
