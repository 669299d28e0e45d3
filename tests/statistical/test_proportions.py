"""Level and coverage of the tests of proportions, at sizes and shares where limits do not help.

Seeds are fixed. Were they not, each case would fail by chance in about one of 1000 runs (three
standard errors).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import kstest

import privatest as pt
from privatest.core.privacy import Budget
from privatest.mechanisms.additive import count_noise
from privatest.methods.proportions import PrivateShares, PublicShares, difference_ends
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import lattice_tulap


def most(share: float, runs: int) -> float:
    return share + 3 * math.sqrt(share * (1 - share) / runs)


@pytest.mark.parametrize(
    ("n", "p", "epsilon"), [(5, 0.5, 0.05), (5, 0.5, 10.0), (400, 0.01, 1.0), (400, 0.01, 10.0)]
)
def test_binomial_pvalues_are_uniform(n, p, epsilon):
    rng, pvalues = np.random.default_rng(1), []
    for seed in range(400):
        x = rng.uniform(size=n) < p
        found = pt.binom_test(
            x, p, epsilon=epsilon, alternative="greater", noise=SimulatedNoise(seed)
        )
        pvalues.append(found.pvalue)
    assert kstest(pvalues, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(
    ("sizes", "p", "budget", "alternative"),
    [
        ((2, 50), 0.1, Budget(1), "two-sided"),
        ((2, 50), 0.1, Budget(1), "greater"),
        ((20, 20), 0.02, Budget(10), "two-sided"),
        ((9, 9), 0.5, Budget(1, "1e-2"), "greater"),
    ],
)
def test_level_of_public_groups(sizes, p, budget, alternative):
    rng, law, runs = np.random.default_rng(2), lattice_tulap(1, budget), 200
    rejected = 0
    for _ in range(runs):
        counts = rng.binomial(sizes, p) + law.quantile(rng.uniform(size=2))
        found = PublicShares(tuple(counts), sizes, law)
        rejected += found.pvalue(alternative, 99, rng) <= 0.05
    assert rejected / runs <= most(0.05, runs)


@pytest.mark.parametrize(("total", "p", "epsilon"), [(10, 0.5, 10.0), (200, 0.02, 1.0)])
def test_level_of_private_groups(total, p, epsilon):
    rng, law, runs = np.random.default_rng(3), count_noise(4, Budget(epsilon)), 200
    rejected = 0
    for _ in range(runs):
        n = rng.binomial(total, 0.3)
        a, c = rng.binomial(n, p), rng.binomial(total - n, p)
        cells = np.array([a, n - a, c, total - n - c]) + law.draws((4,), rng)
        found = PrivateShares(tuple(cells), total, law)
        rejected += found.pvalue("two-sided", 99, rng) <= 0.05
    assert rejected / runs <= most(0.05, runs)


@pytest.mark.parametrize(
    ("sizes", "shares", "epsilon"),
    [((5, 5), (0.1, 0.5), 0.1), ((20, 100), (0.01, 0.1), 1.0), ((100, 100), (0.5, 0.5), 10.0)],
)
def test_coverage_of_differences(sizes, shares, epsilon):
    rng, law, runs = np.random.default_rng(4), lattice_tulap(1, Budget(epsilon)), 400
    covered = 0
    for _ in range(runs):
        counts = rng.binomial(sizes, shares) + law.quantile(rng.uniform(size=2))
        low, high = difference_ends(PublicShares(tuple(counts), sizes, law).ends(0.05))
        covered += low <= shares[0] - shares[1] <= high
    assert 1 - covered / runs <= most(0.1, runs)
    assert covered / runs <= most(0.9, runs) + 0.05


def test_coverage_with_private_groups():
    rng, law, runs, total = np.random.default_rng(5), count_noise(4, Budget(1)), 60, 400
    covered = 0
    for _ in range(runs):
        n = rng.binomial(total, 0.3)
        a, c = rng.binomial(n, 0.3), rng.binomial(total - n, 0.1)
        cells = np.array([a, n - a, c, total - n - c]) + law.draws((4,), rng)
        low, high = difference_ends(PrivateShares(tuple(cells), total, law).ends(0.05))
        covered += low <= 0.2 <= high
    assert 1 - covered / runs <= most(0.1, runs)
