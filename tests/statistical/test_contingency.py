"""Level and power of the tests of tables, and coverage; the full grid is in benchmarks/level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.core.privacy import Budget
from privatest.mechanisms.additive import count_noise
from privatest.methods.tables import (
    association_ends,
    cell_intervals,
    cramers_v,
    fit_pvalue,
    independence_pvalue,
)
from privatest.noise import SimulatedNoise

RUNS = 300


def drawn(shares, n, epsilon, runs, seed=0):
    rng, law = np.random.default_rng(seed), count_noise(shares.size, Budget(epsilon))
    counts = rng.multinomial(n, shares.ravel(), size=runs).reshape(runs, *shares.shape)
    return counts + law.draws(counts.shape, rng), law, rng


@pytest.mark.parametrize(
    ("n", "epsilon", "rare"), [(5, 1, 0.3), (20, 10, 0.1), (50, 0.2, 0.02), (200, 0.05, 0.1)]
)
def test_level_of_independence_at_small_expected_counts(n, epsilon, rare):
    """Rejections of 300 at .05: above 29 with probability 1e-3 for an exact test."""
    shares = np.outer([1 - rare, rare], [1 - rare, rare])
    tables, law, rng = drawn(shares, n, epsilon, RUNS)
    pvalues = [independence_pvalue(table, n, law, 99, rng)[1] for table in tables]
    assert np.sum(np.array(pvalues) <= 0.05) <= 29


@pytest.mark.parametrize(("n", "epsilon"), [(5, 0.2), (5, 10), (100, 1)])
def test_level_of_fit_is_exact(n, epsilon):
    """Rejections of 1000 at .05: above 72, or of .2: outside 160 to 240, with probability 2e-3."""
    rng, p = np.random.default_rng(1), np.array([0.9, 0.07, 0.03])
    law = count_noise(3, Budget(epsilon))
    tables = rng.multinomial(n, p, size=1000) + law.draws((1000, 3), rng)
    pvalues = np.array([fit_pvalue(table, n, p, law, 99, rng)[1] for table in tables])
    assert np.sum(pvalues <= 0.05) <= 72
    assert np.sum(pvalues <= 0.2) <= 240


def test_coverage():
    """Of 80 intervals of V at .95 at most 11, and of tables of cells at most 11, miss: 2e-3."""
    shares = np.array([[0.35, 0.15], [0.15, 0.35]])
    tables, law, _ = drawn(shares, 300, 0.5, 80)
    v, missed, cells = cramers_v(shares), 0, 0
    for table in tables:
        low, _, high = association_ends(table, 300, law, 0.95)
        missed += not low <= v <= high
        each = cell_intervals(table, 300, law, 0.95)
        cells += not ((each.low <= shares) & (shares <= each.high)).all()
    assert missed <= 11
    assert cells <= 11


def test_power():
    """V = .3 with 500 rows at epsilon .5 is found nearly always."""
    rng = np.random.default_rng(2)
    x = rng.integers(3, size=500)
    y = np.where(rng.uniform(size=500) < 0.4, x, rng.integers(3, size=500))
    given: dict[str, Any] = {"categories_x": range(3), "categories_y": range(3)}
    for seed in range(5):
        noise = SimulatedNoise(seed)
        assert pt.chi2_contingency(x, y, **given, epsilon=0.5, noise=noise).reject
        assert not pt.chisquare(x, categories=range(3), epsilon=0.5, noise=noise).pvalue < 1e-3
