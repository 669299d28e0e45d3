"""The audit itself: its bounds hold, it sees what is broken, it passes what is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from tests.privacy.harness import ERROR, _lower, _upper, audit, caught, epsilon_lower_bound


def randomised_response(epsilon, rng):
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    return lambda answer: answer if rng.uniform() < truth else 1 - answer


@pytest.mark.parametrize(("successes", "runs"), [(0, 10), (3, 10), (10, 10), (180, 1000)])
def test_clopper_pearson(successes, runs):
    low = float(_lower(np.array(successes), runs, 1e-3))
    high = float(_upper(np.array(successes), runs, 1e-3))
    assert 0 <= low <= successes / runs <= high <= 1
    if successes:
        assert binom.sf(successes - 1, runs, low) == pytest.approx(1e-3, rel=1e-6)
    if successes < runs:
        assert binom.cdf(successes, runs, high) == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_randomised_response_is_measured(epsilon):
    found = audit(randomised_response(epsilon, np.random.default_rng(1)), 0, 1, runs=20_000)
    assert 0.85 * epsilon - 0.1 < found < epsilon


def test_twice_the_loss_is_caught():
    broken = randomised_response(2.0, np.random.default_rng(2))
    assert audit(broken, 0, 1, runs=4_000) > 1


@pytest.mark.parametrize(("epsilon", "runs"), [(2.0, 1_000), (1.3, 4_000), (1.0, 8_000)])
def test_what_is_clear_is_caught_early(epsilon, runs):
    """At epsilon 2 an eighth of 8,000 runs do, at 1.3 it takes half, at 1 nothing is proved."""
    respond, answers = randomised_response(epsilon, np.random.default_rng(6)), []

    def counted(answer):
        answers.append(answer)
        return respond(answer)

    assert caught(counted, 0, 1, above=1.0, runs=8_000) == (epsilon > 1)
    assert len(answers) == 2 * runs


def test_what_does_not_look_at_data_has_no_loss():
    rng = np.random.default_rng(3)
    assert audit(lambda _: rng.normal(), 0, 1, runs=10_000) < 0.02


def test_what_shows_the_data_has_an_unbounded_loss():
    assert audit(float, 0, 1, runs=10_000) > 5


def test_delta_is_taken_off():
    # shows the data once in twenty times, which delta = 0.06 allows
    rng = np.random.default_rng(4)

    def leaky(data):
        return float(data) if rng.uniform() < 0.05 else -1.0

    assert audit(leaky, 0, 1, runs=20_000) > 2
    assert audit(leaky, 0, 1, runs=20_000, delta=0.06) < 0.1


def test_the_bound_is_exceeded_as_rarely_as_stated():
    """With error 5% on a mechanism at its limit: 11 of 200 expected at most; 1e-6: over 29."""
    rng = np.random.default_rng(5)
    truth = math.e / (1 + math.e)
    above = 0
    for _ in range(200):
        first = (rng.uniform(size=400) < truth).astype(float)
        second = (rng.uniform(size=400) >= truth).astype(float)
        above += epsilon_lower_bound(first, second, error=0.05) > 1
    assert above <= binom.isf(1e-6, 200, 0.05)
    assert ERROR < 1e-5
