"""Level and power of comparing shares.

Seeds are fixed. Were they not, a level test would fail by chance in less than one of 700 runs
(three standard errors of a rate, one-sided).
"""

from __future__ import annotations

import numpy as np
import pytest

from privatest.methods.shares import Share, SharePlan, compare, compare_all, plan_share, share
from privatest.noise import SimulatedNoise

RUNS, ALPHA = 200, 0.05
MOST = ALPHA + 3 * (ALPHA * (1 - ALPHA) / RUNS) ** 0.5


def owner(
    plan: SharePlan, n: int, seed: int, place: int, shift: float = 0.0, law: str = "normal"
) -> Share:
    rng = np.random.default_rng([seed, place])
    columns = len(plan.schema.columns)
    x = rng.normal(size=(n, columns)) if law == "normal" else rng.integers(-1, 2, (n, columns))
    x = x + shift * np.eye(columns)[0]
    return share(x, plan=plan, noise=SimulatedNoise(np.random.SeedSequence([seed, place])))


@pytest.mark.parametrize(
    ("law", "epsilon", "n", "m", "options"),
    [
        ("normal", 0.1, 200, 200, {"locations": 5}),
        ("ties", 1.0, 200, 500, {"locations": 5}),
        ("normal", 5.0, 1000, 1000, {"locations": 5}),
        ("ties", 5.0, 500, 500, {"frequencies": 3}),
    ],
)
def test_level(law, epsilon, n, m, options):
    plan = plan_share([(-4, 4)] * 2, epsilon=epsilon, delta=1e-5, **options)
    rejected = sum(
        compare(
            owner(plan, n, seed, 0, law=law),
            owner(plan, m, seed, 1, law=law),
            alpha=ALPHA,
            n_bootstrap=99,
        ).reject
        for seed in range(RUNS)
    )
    assert rejected / RUNS <= MOST


@pytest.mark.parametrize(("n", "m"), [(10, 1000), (30, 3000)])
def test_level_of_unequal_sizes(n, m):
    """The sampling error of the second moment was not redrawn: .09 and .10 were rejected."""
    plan = plan_share([(-4, 4)], epsilon=20, delta=1e-5, locations=3)
    runs = 400
    rejected = sum(
        compare(owner(plan, n, seed, 0), owner(plan, m, seed, 1), n_bootstrap=99).reject
        for seed in range(runs)
    )
    assert rejected / runs <= ALPHA + 3 * (ALPHA * (1 - ALPHA) / runs) ** 0.5


def test_level_of_all_pairs_together():
    plan = plan_share([(-4, 4)] * 2, epsilon=1, delta=1e-5, locations=4)
    runs, rejected = 60, 0
    for seed in range(runs):
        shares = {str(place): owner(plan, 300, seed, place) for place in range(4)}
        pairs = compare_all(shares, alpha=ALPHA, n_bootstrap=199)
        rejected += any(outcome.reject for outcome in pairs.values())
    assert rejected / runs <= ALPHA + 3 * (ALPHA * (1 - ALPHA) / runs) ** 0.5


def test_power():
    """The power is above .95 in other runs; fewer than 24 of 30 would happen once in 1000."""
    plan = plan_share([(-4, 4)] * 2, epsilon=1, delta=1e-5)
    rejected = sum(
        compare(
            owner(plan, 1000, seed, 0), owner(plan, 1000, seed, 1, shift=0.4), n_bootstrap=99
        ).reject
        for seed in range(30)
    )
    assert rejected >= 24
