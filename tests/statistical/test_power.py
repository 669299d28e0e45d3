"""The test sees what it should: one check far from the threshold; benchmarks measure the rest."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from privatest import mmd_test
from privatest.noise import SimulatedNoise
from privatest_papers.samplers import perturbed_uniform

RUNS = 40
EXPECTED = 0.93  # epsilon 0.1, n = m = 3000, one bump of amplitude 0.2
REQUIRED = 0.75


def rejections(amplitude):
    found = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([7, seed])
        found += mmd_test(
            perturbed_uniform(3_000, 1, amplitude, rng),
            rng.uniform(size=(3_000, 1)),
            epsilon=0.1,
            release="decision",
            bounds=(0, 1),
            n_permutations=299,
            rng=rng,
            noise=SimulatedNoise(seed),
        ).reject
    return found


def test_one_bump_is_found():
    """False alarm at the expected power: 3e-5."""
    assert binom.cdf(REQUIRED * RUNS - 1, RUNS, EXPECTED) < 1e-4
    assert rejections(0.2) >= REQUIRED * RUNS


def test_no_bump_is_not_found():
    """At level 0.05 more than 10 of 40 happen with probability 2e-6."""
    assert binom.sf(10, RUNS, 0.05) < 1e-5
    assert rejections(0.0) <= 10
