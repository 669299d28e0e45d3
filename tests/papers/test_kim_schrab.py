"""The paper's own tests: constants, noise, level, and that they refuse to be used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from privatest.core.errors import DataError, ParameterError, PrivacyError
from privatest.noise import SecureNoise, SimulatedNoise
from privatest_papers import kim_schrab
from privatest_papers.kim_schrab import (
    dp_hsic_decision,
    dp_mmd_decision,
    dp_permutation_decision,
    paper_hsic_sensitivity,
    paper_mmd_sensitivity,
)

X, Y = np.array([0, 0.5, 1]), np.array([0.2, 0.9])
PAIRS = np.array([0, 0.3, 0.7, 1]), np.array([0.1, 0.9, 0.4, 0.6])


ONE_SCALE = 1 - 0.5 / math.e  # where the distribution function of Laplace(1) is at 1


class ChosenNoise(SimulatedNoise):
    """Noise that is 0, but for the places given, where it is 1 scale."""

    def __init__(self, *places: int) -> None:
        super().__init__(0)
        self.places = places

    def uniforms(self, size: int):
        return np.array([ONE_SCALE if place in self.places else 0.5 for place in range(size)])


@pytest.mark.parametrize("noise", [None, SecureNoise()])
def test_refuses_secure_noise(noise):
    calls = [
        lambda: dp_permutation_decision([1, 0], sensitivity=1, epsilon=1, noise=noise),
        lambda: dp_mmd_decision(X, Y, bandwidth=1, epsilon=1, noise=noise),
        lambda: dp_hsic_decision(*PAIRS, bandwidth_x=1, bandwidth_y=1, epsilon=1, noise=noise),
    ]
    for call in calls:
        with pytest.raises(PrivacyError, match="SimulatedNoise"):
            call()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_noise_goes_on_every_statistic(place):
    scale = 2 * 0.5 / (2 + math.log(1 / 0.9))
    options = {"sensitivity": 0.5, "epsilon": 2, "delta": 0.1, "alpha": 0.34}
    for share in (1 - 1e-9, 1 + 1e-9):
        # noise of one scale lifts the observed one above the others, or one of them above it
        gap = share * scale if place == 0 else -share * scale
        found = dp_permutation_decision([0, gap, gap], noise=ChosenNoise(place), **options)
        assert found is ((share < 1) if place == 0 else (share > 1))


@pytest.mark.parametrize(
    ("statistics", "alpha", "reject"),
    [([3, 1, 2, 0], 0.25, True), ([3, 1, 2, 0], 0.24, False), ([3, 3, 2, 0], 0.25, False)],
)
def test_rank(statistics, alpha, reject):
    found = dp_permutation_decision(
        statistics, sensitivity=1, epsilon=1, alpha=alpha, noise=ChosenNoise()
    )
    assert found is reject


@pytest.mark.statistical
def test_level():
    """False alarm: below 1e-4 on each side, by the binomial law."""
    rng, runs, alpha, permutations = np.random.default_rng(0), 2000, 0.1, 9
    noise = SimulatedNoise(1)
    rejections = sum(
        dp_permutation_decision(
            rng.normal(size=permutations + 1), sensitivity=1, epsilon=1, alpha=alpha, noise=noise
        )
        for _ in range(runs)
    )
    assert binom.ppf(1e-4, runs, alpha) <= rejections <= binom.isf(1e-4, runs, alpha)


def test_the_papers_constants():
    assert paper_mmd_sensitivity(3, 2) == pytest.approx(0.707106781187, abs=1e-12)
    assert paper_hsic_sensitivity(4) == pytest.approx(0.75)


@pytest.fixture
def caught(monkeypatch):
    """What is handed to algorithm 1."""
    calls = []

    def spy(statistics, **options):
        calls.append((statistics, options["sensitivity"]))
        return dp_permutation_decision(statistics, **options)

    monkeypatch.setattr(kim_schrab, "dp_permutation_decision", spy)
    return calls


@pytest.mark.parametrize(
    ("kernel", "value"),
    [("gaussian", 0.067153701183), ("laplace", 0.320537777837), ("imq", 0.047392657209)],
)
def test_mmd_of_the_spec(caught, kernel, value):
    dp_mmd_decision(
        X, Y, bandwidth=1, kernel=kernel, epsilon=1, n_permutations=50, noise=SimulatedNoise(0)
    )
    ((statistics, sensitivity),) = caught
    assert statistics[0] == pytest.approx(value, abs=1e-11)
    assert len(statistics) == 51
    assert sensitivity == paper_mmd_sensitivity(3, 2)


def test_hsic_of_the_spec(caught):
    dp_hsic_decision(
        *PAIRS, bandwidth_x=1, bandwidth_y=1, epsilon=1, n_permutations=50, noise=SimulatedNoise(0)
    )
    ((statistics, sensitivity),) = caught
    assert statistics[0] == pytest.approx(0.070815074202, abs=1e-11)
    assert len(np.unique(statistics.round(9))) > 5
    assert sensitivity == 0.75


def test_they_find_a_clear_difference():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(300, 2))
    shared: dict[str, Any] = {"epsilon": 10, "n_permutations": 99, "rng": 0}
    shared["noise"] = SimulatedNoise(0)
    assert dp_mmd_decision(x, x**3, bandwidth=0.5, **shared)
    assert dp_hsic_decision(x, x, bandwidth_x=0.3, bandwidth_y=0.3, **shared)
    other = rng.uniform(size=(300, 2))
    assert not dp_mmd_decision(x, other, bandwidth=0.5, **shared)
    assert not dp_hsic_decision(x, other, bandwidth_x=0.3, bandwidth_y=0.3, **shared)


@pytest.mark.parametrize("statistics", [[], [1], [1, np.nan], [[1, 2], [3, 4]]])
def test_statistics_must_be_numbers(statistics):
    with pytest.raises(ParameterError, match="statistics"):
        dp_permutation_decision(statistics, sensitivity=1, epsilon=1, noise=SimulatedNoise(0))


@pytest.mark.parametrize("sensitivity", [0, -1, np.nan, np.inf, "1", None])
def test_sensitivity_must_be_positive(sensitivity):
    with pytest.raises(ParameterError, match="sensitivity"):
        dp_permutation_decision([1, 2], sensitivity=sensitivity, epsilon=1, noise=SimulatedNoise(0))


@pytest.mark.parametrize(
    ("x", "y", "word"),
    [
        ([1.0], [1.0, 2.0], "x must"),
        ([[[1.0]]], [1.0, 2.0], "x must"),
        ([1.0, np.nan], [1.0, 2.0], "x must"),
        ([[1.0, 2.0]] * 3, [1.0, 2.0], "same columns"),
    ],
)
def test_bad_samples(x, y, word):
    with pytest.raises(DataError, match=word):
        dp_mmd_decision(x, y, bandwidth=1, epsilon=1, noise=SimulatedNoise(0))


def test_pairs_must_match():
    with pytest.raises(DataError, match="same number of rows"):
        dp_hsic_decision(X, Y, bandwidth_x=1, bandwidth_y=1, epsilon=1, noise=SimulatedNoise(0))
