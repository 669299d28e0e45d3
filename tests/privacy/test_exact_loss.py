"""Privacy loss of the smoothed permutation test, computed exactly on adversarial statistics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privatest.core.privacy import Budget, PermutationSensitivity
from privatest.mechanisms.permutation import (
    PVALUE_GRID,
    noise_scale,
    pvalue_loss,
    smoothed_decision,
    smoothed_pvalue,
)
from privatest.noise import SimulatedNoise
from tests.privacy import exact
from tests.privacy.exact import PermutedStatistics

EQUAL = PermutationSensitivity(1.0, 1.0)
DOUBLE = PermutationSensitivity(1.0, 2.0)
SENSITIVITIES = pytest.mark.parametrize("sensitivity", [EQUAL, DOUBLE], ids=["equal", "double"])
# Every 97th cell and both ends: enough for a search; the best find is checked on all cells.
SOME_CELLS = np.unique(np.append(np.arange(1, PVALUE_GRID, 97), [2, 3, PVALUE_GRID])).astype(float)
ALL_CELLS = np.arange(1, PVALUE_GRID + 1.0)
ROUNDING = 1e-7  # of our own arithmetic here: cells are differences of nearby numbers


def worst_case(sensitivity, scale, *, depth=1.5, count=20_000):
    """The neighbours of the proof: masses below and above x that grow in balance.

    x moves up by t, statistics below and above it move towards it, the observed one away.
    """
    observed, permuted = sensitivity.observed / scale, sensitivity.permuted / scale
    shifts = np.linspace(0, permuted, 2001)[:-1]
    p, q = np.expm1(permuted - shifts), np.expm1(permuted + shifts)
    best = np.argmax(shifts + observed + np.log1p(2 * p * q / (p + q)))
    below = round(count * q[best] / (p[best] + q[best]))
    first = PermutedStatistics(
        observed=-depth * scale,
        values=np.array([-(depth + permuted), depth + permuted]) * scale,
        counts=np.array([below, count - below], dtype=float),
    )
    moves = np.array([sensitivity.permuted, -sensitivity.permuted])
    return first, first.moved(-sensitivity.observed, moves)


# --- p-value ---------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@SENSITIVITIES
def test_the_loss_of_a_pvalue_is_attained_and_not_exceeded(sensitivity, epsilon):
    scale = noise_scale(sensitivity, epsilon, "pvalue")
    first, second = worst_case(sensitivity, scale)
    loss = exact.pvalue_loss(first, second, scale, PVALUE_GRID, ALL_CELLS)
    assert 0.99 * epsilon < loss < epsilon + ROUNDING


@SENSITIVITIES
def test_one_percent_less_noise_would_exceed_epsilon(sensitivity):
    scale = 0.985 * noise_scale(sensitivity, 1.0, "pvalue")
    first, second = worst_case(sensitivity, scale)
    assert exact.pvalue_loss(first, second, scale, PVALUE_GRID, ALL_CELLS) > 1


def test_one_number_for_both_would_exceed_epsilon():
    """The noise for (1, 1) does not cover permuted statistics that move by 2."""
    scale = noise_scale(EQUAL, 1.0, "pvalue")
    first, second = worst_case(DOUBLE, scale)
    assert exact.pvalue_loss(first, second, scale, PVALUE_GRID, ALL_CELLS) > 1.5


def climb(loss, sensitivity, scale, rng, steps):
    """Change statistics, counts and moves at random; keep what loses more."""

    def changed(pair):
        first, moves = pair
        values, counts, moves = first.values.copy(), first.counts.copy(), moves.copy()
        observed, index = first.observed, rng.integers(len(values))
        match rng.integers(4):
            case 0:
                observed += rng.normal(scale=scale)
            case 1:
                values[index] += rng.normal(scale=scale)
            case 2:
                counts[index] = np.ceil(counts[index] * rng.lognormal())
            case _:
                moves[rng.integers(len(moves))] = rng.choice([-1, -1, 1, 1, rng.uniform(-1, 1)])
        return PermutedStatistics(observed, values, counts), moves

    def loss_of(pair):
        first, moves = pair
        second = first.moved(moves[0] * sensitivity.observed, moves[1:] * sensitivity.permuted)
        return loss(first, second)

    size = int(rng.integers(1, 7))
    values = rng.choice([0.0, scale, 3 * scale]) * rng.normal(size=size)
    start = PermutedStatistics(
        float(scale * rng.normal()), values, np.ceil(rng.lognormal(2, 2, size))
    )
    pair = start, rng.choice([-1.0, 1.0], size=size + 1)
    best = loss_of(pair)
    for _ in range(steps):
        trial = changed(pair)
        found = loss_of(trial)
        if found >= best:
            best, pair = found, trial
    return best


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@SENSITIVITIES
def test_no_statistics_exceed_the_loss_of_a_pvalue(sensitivity, epsilon):
    scale = noise_scale(sensitivity, epsilon, "pvalue")
    rng = np.random.default_rng(0)

    def loss(first, second):
        return exact.pvalue_loss(first, second, scale, PVALUE_GRID, SOME_CELLS)

    best = max(climb(loss, sensitivity, scale, rng, steps=250) for _ in range(6))
    assert 0.99 * epsilon < best < epsilon + ROUNDING


# --- decision --------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@SENSITIVITIES
def test_the_loss_of_a_decision_is_attained_and_not_exceeded(sensitivity, epsilon, alpha):
    scale = noise_scale(sensitivity, epsilon, "decision")
    first = PermutedStatistics(-9 * scale, np.zeros(1), np.array([1e6]))
    second = first.moved(-sensitivity.observed, np.array([sensitivity.permuted]))
    loss = exact.decision_loss(first, second, scale, alpha)
    assert 0.99 * epsilon < loss < epsilon + ROUNDING


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.5])
@SENSITIVITIES
def test_no_statistics_exceed_the_loss_of_a_decision(sensitivity, alpha):
    scale = noise_scale(sensitivity, 1.0, "decision")
    rng = np.random.default_rng(0)

    def loss(first, second):
        return exact.decision_loss(first, second, scale, alpha)

    best = max(climb(loss, sensitivity, scale, rng, steps=300) for _ in range(6))
    assert 0.99 < best < 1 + ROUNDING


# --- the formula -----------------------------------------------------------------------------


@pytest.mark.parametrize("observed", [0.01, 0.4, 2.0])
@pytest.mark.parametrize("ratio", [1.0, 1.3, 2.0])
def test_the_search_for_the_worst_shift_finds_the_maximum(observed, ratio):
    permuted = observed * ratio
    shifts = np.linspace(0, permuted, 200_001)[:-1]
    p, q = np.expm1(permuted - shifts), np.expm1(permuted + shifts)
    grid = (shifts + observed + np.log1p(2 * p * q / (p + q))).max()
    found = pvalue_loss(observed, permuted)
    assert grid - 1e-13 <= found <= grid + 1e-9


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 100.0, 5_000.0])
@pytest.mark.parametrize("permuted", [1.0, 1.2, 2.0])
def test_noise_keeps_the_formula_within_epsilon(permuted, epsilon):
    scale = noise_scale(PermutationSensitivity(1.0, permuted), epsilon, "pvalue")
    if permuted / scale < 300:  # beyond, the formula overflows; noise is twice the decision's
        assert pvalue_loss(1 / scale, permuted / scale) <= epsilon
    assert scale >= (1 + permuted) / epsilon


# --- the exact laws are those of the code ----------------------------------------------------


def test_quantiles_solve_their_equation():
    rng = np.random.default_rng(2)
    levels = np.array([1e-6, 1e-4, 0.05, 0.3, 0.5, 0.9999])
    for _ in range(50):
        counts = np.ceil(rng.lognormal(2, 2, 5))
        law = PermutedStatistics(float(rng.normal()), rng.normal(scale=3, size=5), counts)
        scale = float(rng.lognormal())
        found = law.survival_mean(law.quantiles(levels, scale), scale)
        assert found == pytest.approx(levels, rel=1e-9)
    assert law.quantiles(np.array([0.0, 1.0]), 1.0).tolist() == [np.inf, -np.inf]


def test_exact_laws_agree_with_the_code():
    """Frequencies in 4000 seeded runs, within 5 standard errors: 12 checks, false alarm 1e-5."""
    statistics = np.array([1.0, 0.3, -0.5, 0.3, 2.0])
    runs, noise = 4_000, SimulatedNoise(11)
    common: dict[str, Any] = {"sensitivity": EQUAL, "budget": Budget(1), "noise": noise}
    law = PermutedStatistics.from_list(statistics)
    cells = np.arange(1, 11.0)
    expected = np.exp(exact.log_cells(law, noise_scale(EQUAL, 1.0, "pvalue"), 10, cells))
    assert expected.sum() == pytest.approx(1)
    pvalues = [smoothed_pvalue(statistics, **common) for _ in range(runs)]
    found = np.histogram(np.ceil(np.multiply(pvalues, 10) - 1e-9), np.arange(0.5, 11))[0] / runs
    assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / runs))
    for alpha in (0.1, 0.4):
        reject = math.exp(exact.rejection(law, noise_scale(EQUAL, 1.0, "decision"), alpha)[0])
        rate = np.mean([smoothed_decision(statistics, alpha, **common) for _ in range(runs)])
        assert abs(rate - reject) < 5 * math.sqrt(reject * (1 - reject) / runs)


# --- what the paper releases -----------------------------------------------------------------


def test_the_rank_pvalue_of_the_paper_is_not_private():
    """Delta = 1, epsilon = 1, noise of scale 2 on every statistic, p = 4/5."""
    first = exact.rank_pvalue_probability((6, 2.8, 2.8, 2.8, -2.8), 2.0, 3)
    second = exact.rank_pvalue_probability((7, 1.8, 1.8, 1.8, -1.8), 2.0, 3)
    assert first == pytest.approx(0.04700173, abs=5e-9)
    assert second == pytest.approx(0.01600476, abs=5e-9)
    assert math.log(first / second) == pytest.approx(1.0773, abs=5e-5)


def test_rank_pvalue_probabilities_add_up():
    law = [exact.rank_pvalue_probability((6, 2.8, 2.8, 2.8, -2.8), 2.0, k) for k in range(5)]
    assert sum(law) == pytest.approx(1, abs=1e-10)
