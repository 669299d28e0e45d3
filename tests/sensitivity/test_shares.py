"""What a share releases never moves further than its noise was made for: the whole path.

The noise is watched, not drawn: the vector that it would be added to, and its scale.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from privatest import Schema
from privatest.data.schema import CategoricalColumn, NumericColumn
from privatest.methods.shares import SharePlan, plan_share, share
from privatest.noise import SimulatedNoise

EPSILON, DELTA, TOLERANCE = 1.0, 1e-5, 1e-8
MIXED = Schema({"a": NumericColumn(0, 10), "b": CategoricalColumn(("x", "y", "z"))})
PLANS: dict[str, SharePlan] = {
    name: plan_share(bounds, epsilon=EPSILON, delta=DELTA, **options)  # type: ignore[arg-type]
    for name, bounds, options in [
        ("one column", (0, 10), {"locations": 3}),
        ("two columns", [(0, 10)] * 2, {"locations": 5, "kernel": "laplace"}),
        ("many columns", [(0, 10)] * 6, {"locations": 4, "kernel": "imq", "bandwidth": 0.5}),
        ("ends", (0, 10), {"locations": [[0], [10]], "bandwidth": 0.2}),
        ("mixed", MIXED, {"locations": 6}),
        ("nearly equal locations", (0, 10), {"locations": [[5], [5 + 1e-9]], "balance": 0.5}),
        ("wave", (0, 10), {"frequencies": [[2.0]]}),
        ("middle wave", (0, 10), {"frequencies": [[0.12]], "balance": 3}),
        ("slow wave", (0, 10), {"frequencies": [[0.04]], "balance": 3}),
        ("waves", [(0, 10)] * 2, {"frequencies": 3}),
        ("smooth waves", (0, 10), {"frequencies": [[0.9], [0.1]], "bandwidth": 0.2}),
    ]
}


def largest_mu(epsilon: float, delta: float) -> float:
    """Distance in noise scales that the Gaussian mechanism hides; raj.md: mu(1, 1e-5) = .268051."""

    def excess(mu: float) -> float:
        lost = math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
        return float(norm.cdf(-epsilon / mu + mu / 2) - lost - delta)

    return float(brentq(excess, 1e-3, 10, xtol=1e-15))


@pytest.fixture
def seen(monkeypatch):
    """Return what a share releases, without noise and in units of it."""
    kept: list[NDArray[np.float64]] = []

    def gaussian(self, values, scale, grid):
        kept.append(values / scale)
        return values

    monkeypatch.setattr(SimulatedNoise, "gaussian", gaussian)

    def released(table, plan: SharePlan) -> NDArray[np.float64]:
        share(table, plan=plan, noise=SimulatedNoise(0))
        return kept.pop()

    return released


def rows(plan: SharePlan, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Corners, one point, or anything; also outside of the bounds, which clips."""
    unit = rng.uniform(-0.1, 1.1, size=(count, len(plan.schema.columns)))
    style = rng.integers(3)
    return np.round(unit) if style == 0 else np.tile(unit[:1], (count, 1)) if style == 1 else unit


def table(plan: SharePlan, unit: NDArray[np.float64]) -> dict[str, object]:
    named: dict[str, object] = {}
    for index, (name, column) in enumerate(plan.schema.columns.items()):
        values = unit[:, index]
        if isinstance(column, CategoricalColumn):
            named[name] = [column.categories[int(v)] for v in np.clip(3 * values, 0, 2)]
        else:
            named[name] = 10 * values
    return named


def largest_ratio(plan: SharePlan, released, *, persons_rows: int = 1, seed: int = 0) -> float:
    """Random restarts and hill climbing over both versions of one person's rows."""
    rng = np.random.default_rng(seed)
    hidden = largest_mu(EPSILON, DELTA)
    best = 0.0
    for _ in range(8):
        other = rows(plan, 2, rng)
        pair = rows(plan, 2, rng)

        def ratio(pair: NDArray[np.float64], other: NDArray[np.float64] = other) -> float:
            first, second = (
                released(table(plan, np.vstack([other, np.tile(row, (persons_rows, 1))])), plan)
                for row in pair
            )
            return float(np.linalg.norm(first - second)) / hidden

        current = ratio(pair)
        for step in range(30):
            trial = pair.copy()
            trial[rng.integers(2)] += rng.normal(scale=0.5 / (1 + step / 8), size=pair.shape[1])
            if (found := ratio(trial)) >= current:
                current, pair = found, trial
        best = max(best, current)
    return best


def test_the_mechanism_hides_what_the_paper_says():
    assert largest_mu(1, 1e-5) == pytest.approx(0.268051, abs=5e-7)
    assert largest_mu(5, 1e-5) == pytest.approx(1.121242, abs=5e-7)


@pytest.mark.parametrize("name", PLANS)
def test_no_neighbours_move_a_share_too_far(name, seen):
    assert largest_ratio(PLANS[name], seen) <= 1 + TOLERANCE


def test_the_bound_is_reached(seen):
    assert largest_ratio(PLANS["wave"], seen) > 0.999
    assert largest_ratio(PLANS["middle wave"], seen) > 0.999


def test_a_person_with_several_rows(seen):
    for name in ("wave", "middle wave"):
        plan = PLANS[name]
        several = plan_share(
            Schema(plan.schema.columns, rows_per_person=3),
            epsilon=EPSILON,
            delta=DELTA,
            frequencies=plan.points / 10,  # per unit of the data
            balance=plan.balance,
        )
        assert 0.999 < largest_ratio(several, seen, persons_rows=3) <= 1 + TOLERANCE
        # and the search sees it where the plan does not know of them
        assert largest_ratio(plan, seen, persons_rows=3) > 2.9
