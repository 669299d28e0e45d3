"""The paper's constants are not enough, and its test does what its tables say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privatest.core.errors import DataError, PrivacyError
from privatest.mechanisms.additive import signed_sums_norm
from privatest.mechanisms.covariance import ed_scales
from privatest.noise import SecureNoise, SimulatedNoise
from privatest_papers.dunsche import (
    PAPER_EIGENVALUE_SENSITIVITY,
    hotelling_decision,
    paper_covariance,
    paper_ed_scales,
)

ROOT = math.sqrt(3)


def pair(apart: float = 0.04, angle: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours in [-1, 1]² whose centred covariances are far apart; the last row differs."""
    step = apart * np.array([math.cos(angle), math.sin(angle)])
    corner = np.array([-1.0, -1.0])
    rows = np.repeat([corner, corner + step], 5000, axis=0)
    return np.vstack([rows, [[1.0, 1.0]]]), np.vstack([rows, [[-1.0, 1.0]]])


def scatters(*shape: float) -> list[np.ndarray]:
    """nC/(d m²), as algorithm 4 gets it."""
    return [len(rows) * np.cov(rows.T) / 2 for rows in pair(*shape)]


def test_eigenvalues_move_further_than_published():
    first, second = (np.linalg.eigvalsh(matrix) for matrix in scatters())
    assert first == pytest.approx([0.77086, 5.18954], abs=1e-4)
    assert second == pytest.approx([1.98020, 2.02020], abs=1e-4)
    moved = np.abs(first - second).sum()
    assert moved == pytest.approx(4.379, abs=1e-3)
    assert moved > 2 * PAPER_EIGENVALUE_SENSITIVITY


def test_the_whole_mechanism_loses_more_than_epsilon():
    """Exact loss at d = 2, epsilon 5: eigenvalues in the limit, axes by integration."""
    epsilon = 5.0
    scale, concentration = paper_ed_scales(2, epsilon)
    first, second = scatters(0.12, 0.5)
    moved = np.abs(np.linalg.eigvalsh(first) - np.linalg.eigvalsh(second)).sum()
    angle = np.pi * np.arange(20_000) / 20_000
    u = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    logs = []
    for matrix in (first, second):
        form = concentration * np.einsum("ni,ij,nj->n", u, matrix, u)
        logs.append(form - np.log(np.mean(np.exp(form - form.max()))) - form.max())
    loss = moved / scale + np.max(np.abs(logs[0] - logs[1]))
    assert 1.05 < loss / epsilon < 1.1


def test_uncentred_the_same_pair_is_covered():
    moments = [rows.T @ rows / 2 for rows in pair()]
    moved = signed_sums_norm(np.linalg.eigvalsh(moments[0]) - np.linalg.eigvalsh(moments[1]))
    assert moved <= ed_scales(10_001, 2, epsilon=1.0).eigenvalues / 2


def rejection_rate(
    calibration: Any, dimension: int, n: int, epsilon: float, runs: int, a: float = 0.0
) -> float:
    shift, rejections = a / math.sqrt(dimension), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(-ROOT, ROOT, size=(2, n, dimension))
        rejections += hotelling_decision(
            x,
            y + shift,
            bound=ROOT + shift,
            epsilon=epsilon,
            calibration=calibration,
            rng=seed,
            noise=SimulatedNoise(seed),
        )
    return rejections / runs


@pytest.mark.parametrize(
    ("calibration", "n", "epsilon", "published"),
    [
        ("asymptotic", 100, 0.1, 0.738),
        ("asymptotic", 1000, 0.5, 0.154),
        ("bootstrap", 100, 0.1, 0.052),
        ("bootstrap", 1000, 1.0, 0.05),
    ],
)
def test_table_1(calibration, n, epsilon, published):
    """One dimension, 300 runs against 1000: apart by more than this once in 10,000 times."""
    runs = 300
    error = math.sqrt(published * (1 - published) * (1 / runs + 1 / 1000))
    assert rejection_rate(calibration, 1, n, epsilon, runs) == pytest.approx(
        published, abs=3.9 * error
    )


def test_no_power_in_ten_dimensions():
    assert rejection_rate("bootstrap", 10, 300, 1.0, runs=40, a=1.0) < 0.4


def test_without_noise_it_is_the_covariance():
    rows = np.random.default_rng(0).uniform(-1, 1, size=(200, 3)) * [1, 0.5, 0.2]
    covariance = np.cov(rows.T)
    released = paper_covariance(covariance, 200, bound=1.0, epsilon=1e9, noise=SimulatedNoise(0))
    np.testing.assert_allclose(released, covariance, atol=1e-3)


def test_secret_noise_is_refused():
    for noise in (None, SecureNoise()):
        with pytest.raises(PrivacyError, match="hotelling_test"):
            hotelling_decision([0.0, 1.0], [0.0, 1.0], bound=1, epsilon=1, noise=noise)
    with pytest.raises(DataError, match="2 rows"):
        hotelling_decision([0.0], [0.0, 1.0], bound=1, epsilon=1, noise=SimulatedNoise(0))
