"""Windows around a quantile: there is a good one for every population, and it is found."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.core.noise import AuditHook, SimulatedNoise
from privatest.core.privacy import Budget
from privatest.mechanisms.additive import select_candidate, selection_weights
from privatest.methods.quantiles import Target, count_below, window_scores, windows

CELLS = 1 << 16


@pytest.mark.parametrize("cells", [1, 2, 3, 121, 5000, CELLS])
def test_windows_lie_in_the_grid_and_cover_it(cells):
    found = windows(cells)
    assert (found.first >= 0).all()
    assert (found.last <= cells).all()
    assert ((found.first < found.after_first) & (found.after_first <= found.last)).all()
    assert ((found.first <= found.before_last) & (found.before_last < found.last)).all()
    assert (found.multiplicities >= 1).all()
    shortest = found.last - found.first == (found.last - found.first).min()
    starts, ends = found.first[shortest], found.last[shortest]
    assert (starts[1:] <= ends[:-1]).all()  # without a gap
    assert (starts[0], ends[-1]) == (0, cells)


@pytest.mark.parametrize("seed", range(20))
def test_some_window_passes_both_ranks_whatever_the_population(seed):
    """Rows at one value, at two, at few, or spread: a window has a score of the cap at most."""
    rng = np.random.default_rng(seed)
    kinds = (
        np.full(1000, rng.integers(CELLS)),
        rng.choice(rng.integers(CELLS, size=2), size=1000),
        rng.choice(rng.integers(CELLS, size=7), size=1000),
        rng.integers(CELLS, size=1000),
        np.minimum(rng.lognormal(3, 2, size=1000).astype(int), CELLS - 1),
    )
    for places in kinds:
        below = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=CELLS))])
        assert window_scores(below, windows(CELLS), 420, 580, cap=3).min() <= 3


def test_candidates_are_drawn_by_their_weights():
    """Seeded; 20,000 draws: a chi-squared statistic of 4 degrees above 25 has probability 5e-5."""
    scores, counts = np.array([0, 1, 5, 9, 40]), np.array([1, 3, 1, 2, 50])
    noise, runs = SimulatedNoise(0), 20_000
    draws = [
        select_candidate(scores, counts, sensitivity=2, budget=Budget("1.5"), noise=noise)
        for _ in range(runs)
    ]
    shares = counts * np.exp(-1.5 * scores / 4)
    expected = runs * shares / shares.sum()
    assert (((np.bincount(draws, minlength=5) - expected) ** 2) / expected).sum() < 25
    weights = selection_weights(scores, sensitivity=2, epsilon=1.5)
    np.testing.assert_allclose(weights / 2.0**48, np.exp(-1.5 * scores / 4), rtol=1e-6)


@pytest.mark.parametrize("spread", [200, 2000, 20_000])
def test_edges_lie_where_the_rows_are(spread):
    rng = np.random.default_rng(spread)
    places = np.clip(rng.normal(30_000, spread, size=4000).astype(int), 0, CELLS - 1)
    fine = np.bincount(places, minlength=CELLS)
    target = Target(4000, 2000.0, 31.6, 1)
    for seed in range(20):
        below = count_below(fine, target, Budget(1), SimulatedNoise(seed))
        inner = below.edges[(below.edges > 0) & (below.edges < CELLS)]
        assert np.abs(np.median(inner) - 30_000) < spread
        steps = np.diff(inner)
        assert np.median(steps) < spread / 5
        assert set(below.halves[1:-1]) == {len(below.edges) - 1}  # one law, whatever the edge
        assert not below.ones.any()


def test_window_and_counts_share_the_budget():
    fine = np.bincount(np.arange(1000) * 60, minlength=CELLS)
    hook = AuditHook()
    noise = SimulatedNoise(0, audit=hook)
    count_below(fine, Target(1000, 500.0, 15.8, 1), Budget(1), noise)
    window, counts = hook.calls
    assert (window.mechanism, counts.mechanism) == ("exponential", "discrete Laplace")
    spent = sum(each.bounds[0] / each.scale for each in hook.calls)
    assert 0.999 < spent <= 1


def test_the_number_of_edges_is_public():
    """Rows at one value have as many edges as spread ones, equal ones included."""
    target, found = Target(1000, 500.0, 15.8, 1), set()
    for places in (np.full(1000, 77), np.arange(1000) * 60):
        fine = np.bincount(places, minlength=CELLS)
        found.add(len(count_below(fine, target, Budget(1), SimulatedNoise(0)).edges))
    assert len(found) == 1


def test_large_limits_are_drawn_below_them():
    noise, limit = SimulatedNoise(1), (1 << 70) * 3 + 1
    draws = [noise.below(limit) for _ in range(2000)]
    assert min(draws) >= 0
    assert max(draws) < limit
    assert abs(np.mean([drawn / limit for drawn in draws]) - 0.5) < 0.03
