"""The published perturbed statistic is not private: its bound is broken by ordinary neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privatest.core.errors import DataError, PrivacyError
from privatest.noise import SecureNoise, SimulatedNoise
from privatest_papers.raj import paper_sensitivity, paper_statistic, paper_tcs_decision


def far_apart(n):
    x, y = np.zeros(n), np.full(n, 10.0)
    other = x.copy()
    other[-1] = 10.0
    return x, other, y, [0.0], 1.0


def alternating(n):
    x, y = np.where(np.arange(n) % 2, 1.0, -1.0), np.full(n, 10.0)
    other = x.copy()
    other[-1] = 10.0
    return x, other, y, [-1.0, 1.0], 0.5


@pytest.mark.parametrize(
    ("make", "n", "first", "second", "bound", "ratio"),
    [
        (far_apart, 10, 10000.0, 80.198, 2311.1, 4.29),
        (far_apart, 1000, 1e6, 499000.5, 16.064, 31188),
        (alternating, 1000, 518483.37, 340765.62, 45.617, 3896),
    ],
)
def test_neighbours_break_the_published_bound(make, n, first, second, bound, ratio):
    x, other, y, locations, variance = make(n)
    values = [paper_statistic(data, y, locations, variance=variance) for data in (x, other)]
    assert values == pytest.approx([first, second], rel=1e-5)
    published = paper_sensitivity(n, len(locations))
    assert published == pytest.approx(bound, rel=1e-4)
    assert abs(values[0] - values[1]) / published == pytest.approx(ratio, rel=1e-3)


def test_ordinary_data_break_it_too():
    rng = np.random.default_rng(0)
    n = 100_000
    x, y = rng.normal(size=n), rng.normal(1, 1, size=n)
    locations = np.linspace(-2, 3, 5)
    before = paper_statistic(x, y, locations, variance=4.0)
    moved = []
    for value in (-4.0, 4.0, 10.0):
        other = x.copy()
        other[0] = value
        moved.append(abs(paper_statistic(other, y, locations, variance=4.0) - before))
    assert max(moved) > 1.2 * paper_sensitivity(n, 5)


@pytest.mark.parametrize("noise", [None, SecureNoise()])
def test_secret_noise_is_refused(noise):
    x, _, y, locations, variance = far_apart(10)
    with pytest.raises(PrivacyError, match="not private"):
        paper_tcs_decision(x, y, locations, variance=variance, epsilon=1, delta=1e-5, noise=noise)


def test_it_decides_with_simulated_noise():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=5000), rng.normal(2, 1, size=5000)
    shared: dict[str, Any] = {"variance": 1.0, "epsilon": 5, "delta": 1e-5, "rng": 0}
    far = paper_tcs_decision(x, y, [0.0, 2.0], noise=SimulatedNoise(0), **shared)
    same = paper_tcs_decision(x, x[::-1], [0.0, 2.0], noise=SimulatedNoise(0), **shared)
    assert (far, same) == (True, False)


def test_samples_of_two_sizes_are_refused():
    with pytest.raises(DataError, match="same number"):
        paper_statistic([0.0, 1.0, 2.0], [0.0, 1.0], [0.0], variance=1.0)
