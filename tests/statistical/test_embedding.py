"""Level and power of the embedding tests. Seeds are fixed.

Were they not, a level test would fail by chance with probability 1e-4 (binomial quantile), a
power test far less often.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from privatest.methods.embedding import (
    MomentsRelease,
    StatisticRelease,
    me_permutation_test,
    me_test,
    scf_test,
)
from privatest.noise import SimulatedNoise

ALPHA, FALSE_ALARM, RUNS = 0.1, 1e-4, 120
DELTA = 1e-5


def runs(test, shift, n, m, **options):
    """Count rejections for Gaussian rows in two columns."""
    count = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([seed, n, m])
        x, y = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
        y[:, 0] += shift
        options["noise"] = SimulatedNoise(seed)
        if test is scf_test:
            public: dict[str, Any] = {"frequencies": [[1.0, 0.3], [0.5, -1.0]]}
        else:
            public = {"locations": [[-1.0, 0.0], [1.0, 0.5], [0.0, -1.0]], "bandwidth": 0.3}
        found = test(x, y, bounds=(-4, 4), alpha=ALPHA, rng=seed, **public, **options)
        count += found.reject
    return count


ASYMPTOTIC = MomentsRelease(null="asymptotic")
MOMENTS: dict[str, Any] = {"delta": DELTA, "release": MomentsRelease(n_bootstrap=99)}
STATISTIC: dict[str, Any] = {"release": "statistic"}
PERMUTED: dict[str, Any] = {"release": "decision", "n_permutations": 99}


@pytest.mark.parametrize(
    ("test", "options"),
    [
        (me_test, MOMENTS | {"epsilon": 0.5}),
        (me_test, MOMENTS | {"epsilon": 5}),
        (me_test, MOMENTS | {"epsilon": 1, "paired": True}),
        (scf_test, MOMENTS | {"epsilon": 2}),
        (me_test, STATISTIC | {"epsilon": 1}),
        (me_test, {"release": StatisticRelease(condition=10.0), "epsilon": 20}),
        (me_test, STATISTIC | {"epsilon": 1, "paired": True}),
        (me_permutation_test, PERMUTED | {"epsilon": 1}),
        (me_permutation_test, PERMUTED | {"epsilon": 1, "paired": True}),
    ],
)
def test_level(test, options):
    n, m = (400, 400) if options.get("paired") else (500, 300)
    assert runs(test, 0.0, n, m, **options) <= binom.isf(FALSE_ALARM, RUNS, ALPHA)


def test_the_asymptotic_null_fails_as_the_paper_says():
    found = runs(me_test, 0.0, 300, 300, epsilon=0.5, delta=DELTA, release=ASYMPTOTIC)
    assert found > 0.5 * RUNS


@pytest.mark.parametrize(
    ("test", "options"),
    [
        (me_test, MOMENTS | {"epsilon": 1}),
        (scf_test, MOMENTS | {"epsilon": 1}),
        (me_test, STATISTIC | {"epsilon": 1}),
        (me_permutation_test, PERMUTED | {"epsilon": 1}),
    ],
)
def test_power(test, options):
    assert runs(test, 0.6, 1000, 1000, **options) > 0.8 * RUNS
