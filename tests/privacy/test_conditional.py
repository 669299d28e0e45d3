"""The conditional independence test, run many times on neighbours, loses no more than epsilon.

Runs are seeded. Unseeded, an audit would fail by chance with probability 1e-6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.noise import SimulatedNoise
from tests.privacy.harness import audit

BOUNDS: dict[str, Any] = {f"bounds_{name}": (-1, 1) for name in "xyz"}
FIRST = (np.ones(10), np.ones(10), np.zeros(10))
SECOND = tuple(np.concatenate([side[:-1], [-1.0]]) for side in FIRST)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_estimates(delta):
    noise = SimulatedNoise(1)

    def run(data):
        return pt.conditional_independence_test(
            *data, epsilon=1, delta=delta, cells=2, n_bootstrap=19, rng=0, noise=noise, **BOUNDS
        ).estimates["partial_covariance"]

    assert audit(run, FIRST, SECOND, runs=250) <= 1
