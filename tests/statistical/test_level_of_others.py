"""Level of hsic_test and ipm_test: p-values are uniform where the null hypothesis holds.

Seeds are fixed. Were they not, a Kolmogorov-Smirnov test at 1e-4 would fail by chance in one
of 10,000 runs for each case.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

import privatest as pt
from privatest.noise import SimulatedNoise

RUNS, FALSE_ALARM = 250, 1e-4


def draws(law: str, size: int, rng: np.random.Generator) -> np.ndarray:
    if law == "ties":
        return rng.integers(0, 3, size=size) / 2
    return rng.beta(0.4, 4, size=size)


@pytest.mark.parametrize("law", ["skewed", "ties"])
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
@pytest.mark.parametrize("options", [{"method": "nystrom"}, {"method": "exact"}])
def test_hsic(law, epsilon, options):
    pvalues = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        outcome = pt.hsic_test(
            draws(law, 37, rng),
            draws(law, 37, rng),
            epsilon=epsilon,
            bounds_x=(0, 1),
            bounds_y=(0, 1),
            bandwidths_x=[1, 0.25],
            bandwidths_y=[1, 0.25],
            n_permutations=49,
            rng=seed,
            noise=SimulatedNoise(seed),
            **options,
        )
        pvalues.append(outcome.pvalue)
    assert kstest(pvalues, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("distance", ["mean", "wasserstein", "kolmogorov"])
@pytest.mark.parametrize("adjacency", ["one", "row"])
def test_ipm(distance, adjacency):
    for epsilon in (0.1, 10.0):
        pvalues = []
        for seed in range(RUNS):
            rng = np.random.default_rng(seed)
            outcome = pt.ipm_test(
                draws("ties", 40, rng),
                draws("ties", 71, rng),
                distance=distance,
                adjacency=adjacency,
                bounds=(0, 1),
                epsilon=epsilon,
                n_permutations=49,
                rng=seed,
                noise=SimulatedNoise(seed),
            )
            pvalues.append(outcome.pvalue)
        assert kstest(pvalues, "uniform").pvalue > FALSE_ALARM
