"""Rank tests without noise are SciPy's: their noise vanishes as epsilon grows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.noise import SimulatedNoise

RNG = np.random.default_rng(0)
X, Y = RNG.normal(0.25, 1, size=70), RNG.normal(0, 1, size=60)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda **o: pt.wilcoxon(X, bounds=(-5, 5), **o), stats.wilcoxon(X).pvalue),
        (lambda **o: pt.mannwhitneyu(X, Y, **o), stats.mannwhitneyu(X, Y).pvalue),
    ],
)
def test_noise_vanishes(run, expected):
    """Tulap noise is never narrower than the statistic's sensitivity: the decision flipped."""
    results = [run(epsilon=1e5, noise=SimulatedNoise(seed)) for seed in range(20)]
    assert np.ptp([result.pvalue for result in results]) < 1e-3
    assert results[0].pvalue == pytest.approx(expected, rel=0.1)
