"""Lower bounds on epsilon of whole correlation tests, on neighbours that are far apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.mechanisms.lattice import part_law
from privatest.methods import correlation as rank_intervals
from privatest.methods import regression as line
from privatest.methods import regression as line_release
from privatest.noise import SimulatedNoise
from tests.privacy.harness import audit, audit_all, caught

EPSILON, RUNS = 1.0, 1500

# one row goes from one corner to the next: it passes all others
FALLING = ([1.0, 2, 3, 0], [3.0, 2, 1, 9]), ([1.0, 2, 3, 9], [3.0, 2, 1, 9])
RISING = ([1.0, 2, 3, 0], [1.0, 2, 3, 9]), ([1.0, 2, 3, 9], [1.0, 2, 3, 9])
RANKED = {"kendalltau": (pt.kendalltau, FALLING), "spearmanr": (pt.spearmanr, RISING)}
MIDDLE = ([0.0] * 4, [0.0] * 4), ([0.0] * 3 + [1.0], [0.0] * 3 + [1.0])
BOX = {"bounds_x": (-1, 1), "bounds_y": (-1, 1), "n_simulations": 19, "rng": 0}


@pytest.fixture(autouse=True)
def _rough_intervals(monkeypatch):
    """Intervals are computed from what is audited, and take most of the time."""
    monkeypatch.setattr(rank_intervals, "_STEPS", 0)
    for name, few in {"_ANGLES": 3, "_CORRELATIONS": 3, "_DRAWS": 20, "_STEPS": 0}.items():
        monkeypatch.setattr(line, name, few)


def score(test: Callable[..., Any], **options: Any) -> Callable[[Any], float]:
    noise = SimulatedNoise(1)
    return lambda d: test(*map(np.array, d), epsilon=EPSILON, noise=noise, **options).statistic


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
@pytest.mark.parametrize("name", RANKED)
def test_ranks(name, alternative):
    test, neighbours = RANKED[name]
    found = audit(score(test, alternative=alternative), *neighbours, runs=RUNS)
    assert found <= EPSILON


@pytest.mark.parametrize("test", [pt.pearsonr, pt.linregress])
def test_moments(test):
    noise = SimulatedNoise(1)

    def run(data: Any) -> Any:
        return test(*map(np.array, data), epsilon=EPSILON, noise=noise, **BOX)

    def smaller_square(found: Any) -> float:
        return float(min(found.intervals.line.xx, found.intervals.line.yy))

    scores = (smaller_square, lambda found: found.statistic)
    assert audit_all(run, *MIDDLE, *scores, runs=RUNS // 3) <= EPSILON


WIDE = {"bounds_x": (0, 1000), "bounds_y": (0, 1000), "n_simulations": 19, "rng": 0}


def small(test: Callable[..., Any], **options: Any) -> Callable[[Any], float]:
    """Return minus the p-value: the moments of so wide bounds say nothing, the ranks do."""
    noise = SimulatedNoise(1)
    return lambda d: (
        -test(*map(np.array, d), epsilon=EPSILON, noise=noise, **WIDE, **options).pvalue
    )


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_ranks_beside_moments(alternative):
    """Half of epsilon goes to the ranks, so no more than that may be lost by them."""
    found = audit(small(pt.pearsonr, alternative=alternative), *FALLING, runs=RUNS // 3)
    assert found <= EPSILON / 2


def test_ranks_that_spend_too_much_are_caught(monkeypatch):
    monkeypatch.setattr(line_release, "part_law", lambda w, epsilon: part_law(w, 6 * epsilon))
    assert caught(small(pt.pearsonr, alternative="less"), *FALLING, above=EPSILON, runs=500)


@pytest.mark.parametrize("test", [pt.pearsonr, pt.linregress])
def test_sampling_variance(test):
    rng, noise = np.random.default_rng(0), SimulatedNoise(1)
    x, y = np.clip(rng.normal(scale=0.05, size=(2, 1200)), -1, 1)
    far = x.copy(), y.copy()
    far[0][0] = far[1][0] = 1.0  # its square is cut off

    def excess(data: Any) -> float:
        found = test(*data, epsilon=EPSILON, noise=noise, **BOX)
        return float(found.intervals.line.excess)

    assert excess((x, y)) != 1  # it was paid for
    assert audit(excess, (x, y), far, runs=RUNS // 5) <= EPSILON


@pytest.mark.parametrize("name", RANKED)
def test_half_the_noise_is_caught(name, monkeypatch):
    draw = SimulatedNoise.discrete_laplace
    monkeypatch.setattr(SimulatedNoise, "discrete_laplace", lambda s, scale: draw(s, scale / 2))
    test, neighbours = RANKED[name]
    assert caught(score(test), *neighbours, above=EPSILON, runs=2_000)
