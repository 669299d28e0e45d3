"""Tests of means for every law within the bounds: the lemmas of docs/proofs/means.md."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from privatest.core.privacy import Budget
from privatest.mechanisms.moments import ReleasedMoments, plan_release
from privatest.methods.mean_inference import (
    Contrast,
    _bennett,
    _log_mgf,
    contrast_pvalue,
    contrast_reach,
    region,
)
from privatest.noise import SimulatedNoise

N = 40
BUDGETS = [Budget(1), Budget(5), Budget(1, "1e-6")]


def released(mean: float, square: float, budget: Budget, n: int = N) -> ReleasedMoments:
    """What a release of these moments, noise included, leaves."""
    plan = plan_release(n, 1, budget, 1)
    variance = max(square - mean**2 + plan.variance, 0.0) * plan.unbiased
    return ReleasedMoments(plan, np.array([mean]), np.array([[variance]]), np.zeros(1))


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 1)), min_size=2, max_size=5),
    st.floats(0.01, 30),
)
def test_bennetts_bound_holds_for_any_law(law, exponent):
    values, weights = np.array(law).T
    weights = weights / weights.sum()
    centred = values - weights @ values
    exact = math.log(weights @ np.exp(exponent * centred))
    bound = _bennett(np.array([exponent]), float(weights @ centred**2), 1 - weights @ values)[0]
    assert exact <= bound + 1e-9 * (1 + abs(bound))


@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0])
def test_discrete_noise_has_no_larger_moments(scale):
    """The noise that is drawn is discrete: its generating function is below that of Laplace's."""
    z = np.arange(-int(400 * scale), int(400 * scale) + 1)
    weights = np.exp(-np.abs(z) / scale)
    weights /= weights.sum()
    for share in (0.1, 0.5, 0.9):
        exponent = share / scale
        exact = math.log(weights @ np.exp(exponent * z))
        assert exact <= _log_mgf(np.array([share]), False)[0] + 1e-12


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("beta", [0.05, 0.005])
def test_the_region_misses_no_more_than_it_says_without_noise(share, beta):
    """Rows at the two bounds, every number of ones with its exact probability."""
    chance, missed, mean = binom.pmf(np.arange(N + 1), N, share), 0.0, 2 * share - 1
    for ones, weight in enumerate(chance):
        found = region(released(2 * ones / N - 1, 1.0, Budget(10**5)), beta)
        inside = found.low <= mean <= found.high and 1 - mean**2 <= found.variance
        missed += 0.0 if inside else weight
    assert missed <= beta


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("share", [0.02, 0.5])
def test_the_region_misses_no_more_than_it_says_with_noise(share, budget):
    """Seeded; were it not, 1 in 10,000 runs would pass the limit (exact binomial tail)."""
    rng, runs, missed, mean, beta = np.random.default_rng(0), 400, 0, 2 * share - 1, 0.05
    plan = plan_release(N, 1, budget, 1)
    draw = rng.normal if budget.delta > 0 else rng.laplace
    second = plan.sigma_second if plan.ed is None else plan.ed.eigenvalues / N
    for _ in range(runs):
        ones = rng.binomial(N, share)
        noisy = 2 * ones / N - 1 + draw(scale=plan.mean_scale)
        found = region(released(noisy, max(1 + draw(scale=second), 0.0), budget), beta)
        missed += not (found.low <= mean <= found.high and 1 - mean**2 <= found.variance)
    assert missed <= binom.isf(1e-4, runs, beta)


def test_the_interval_is_what_is_not_rejected():
    one = released(0.3, 0.2, Budget(5), n=5000)
    two = released(-0.1, 0.1, Budget(5), n=3000)
    for contrast in (
        Contrast((one,), (1.0,), 5000.0),
        Contrast((one, two), (0.5, 0.5), 1875.0, False),
    ):
        for side in ("two-sided", "greater", "less"):
            lower, upper = contrast_reach(contrast, side, 0.05)
            for sign, reach in ((1, lower), (-1, upper)):
                if reach == math.inf:
                    continue
                at = [
                    contrast_pvalue(contrast, sign * reach * factor, side, 0.05)
                    for factor in (0.999, 1.001)
                ]
                assert at[0] > 0.05 >= at[1]


def test_the_release_is_the_one_that_is_assumed():
    """Mean and mean square have the noise that the bounds allow for."""
    from privatest.data.encoding import Sample
    from privatest.mechanisms.moments import cube_moments, release_sample

    rows = np.random.default_rng(1).uniform(size=(200, 1))
    plan = plan_release(200, 1, Budget(1), 1)
    (moments,) = cube_moments(Sample(rows, None))
    means, squares = [], []
    for seed in range(2000):
        found = release_sample(moments, plan, SimulatedNoise(seed))
        means.append(float(found.mean[0]) - float(moments.mean[0]))
        raw = float(found.covariance[0, 0]) / plan.unbiased + float(found.mean[0]) ** 2
        squares.append(raw - plan.variance - float(moments.second[0, 0]))
    # a mean of |noise| is its scale; 5 standard errors
    assert np.mean(np.abs(means)) == pytest.approx(plan.mean_scale, rel=5 / 2000**0.5)
    scale = found.second_scale
    assert np.mean(np.abs(squares)) == pytest.approx(scale, rel=5 / 2000**0.5)
