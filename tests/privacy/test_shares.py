"""Shares of neighbours, made many times: an attacker who knows where to look finds no more.

Runs are seeded. Unseeded, an audit would fail by chance with probability 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from privatest.methods.shares import SharePlan, compare, plan_share, share
from privatest.noise import SimulatedNoise
from privatest.numerics.moments import svec
from tests.privacy.harness import PLANTED, audit, caught, epsilon_lower_bound

EPSILON, DELTA, RUNS = 0.5, 0.1, 1_500

# neighbours that move a share as far as any can
PLANS = {
    "locations": plan_share(
        (0, 1), epsilon=EPSILON, delta=DELTA, locations=[[0], [1]], bandwidth=0.3
    ),
    "waves": plan_share((0, 1), epsilon=EPSILON, delta=DELTA, frequencies=[[2.5]]),
}
FIRST, SECOND = np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.5, 1.0])


def vector(plan: SharePlan, x: NDArray[np.float64], noise: SimulatedNoise) -> NDArray[np.float64]:
    """Everything that a share releases, each part in units of its noise."""
    released = share(x, plan=plan, noise=noise).moments
    second = svec(released.second) / released.sigma_second
    return np.concatenate([released.mean / released.sigma, second])


def along_the_difference(plan: SharePlan) -> Callable[[NDArray[np.float64]], float]:
    """The best single number to tell the two apart by, from a share without noise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedNoise, "gaussian", lambda self, values, scale, grid: values)
        quiet = SimulatedNoise(0)
        direction = vector(plan, SECOND, quiet) - vector(plan, FIRST, quiet)
    noise = SimulatedNoise(1)
    return lambda x: float(vector(plan, x, noise) @ direction)


@pytest.mark.parametrize("name", PLANS)
def test_shares_lose_no_more_than_their_budget(name):
    mechanism = along_the_difference(PLANS[name])
    first, second = (np.array([mechanism(x) for _ in range(RUNS)]) for x in (FIRST, SECOND))
    assert epsilon_lower_bound(first, second, delta=DELTA) <= EPSILON
    # it would be no attack if it saw nothing: at delta = 0 it does
    assert epsilon_lower_bound(first, second, error=PLANTED) > 0.4 * EPSILON


@pytest.mark.parametrize("name", PLANS)
def test_half_the_noise_is_caught(name, monkeypatch):
    mechanism = along_the_difference(PLANS[name])
    draw = SimulatedNoise.gaussian

    def half(self, values, scale, grid):
        return draw(self, values, scale / 2, grid)

    monkeypatch.setattr(SimulatedNoise, "gaussian", half)
    assert caught(mechanism, FIRST, SECOND, above=EPSILON, runs=RUNS, delta=DELTA)


def test_what_a_comparison_says():
    plan, noise = PLANS["locations"], SimulatedNoise(3)
    other = share(np.zeros(3), plan=plan, noise=noise)

    def statistic(x: NDArray[np.float64]) -> float:
        mine = share(x, plan=plan, noise=noise)
        value = compare(mine, other, n_bootstrap=1).statistic
        assert value is not None
        return value

    assert audit(statistic, FIRST, SECOND, runs=RUNS // 4, delta=DELTA) <= EPSILON
