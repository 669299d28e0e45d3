"""Whole tests and mechanisms, run many times on neighbours: they lose no more than epsilon.

Half the noise, planted on purpose, is caught. Audits of private code fail by chance with
probability 1e-6 each; runs with simulated noise are seeded and always give the same answer.
An audit that never finds anything proves nothing, so each has to find at least a part of epsilon:
with the real source of noise, which has no seed, what it finds is six standard deviations above.
"""

from __future__ import annotations

import inspect
import sys
from functools import cache

import numpy as np
import pytest

from privatest import mmd_test
from privatest.core.privacy import Budget, PermutationSensitivity, Sensitivity
from privatest.mechanisms import permutation
from privatest.mechanisms.additive import gaussian, laplace
from privatest.mechanisms.lattice import noisy_integer
from privatest.mechanisms.permutation import permutation_result, smoothed_decision, smoothed_pvalue
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.numerics.laws import lattice_tulap
from tests.privacy.harness import ERROR, audit, caught, epsilon_lower_bound, released

MMD = sys.modules[inspect.unwrap(mmd_test).__module__]
EPSILON = 1.0
BUDGET = Budget(1)
EQUAL = PermutationSensitivity(1.0, 1.0)
DOUBLE = PermutationSensitivity(1.0, 2.0)
SURE = 1e-4  # of what an audit of private code finds
SOURCES = [
    pytest.param(lambda: SimulatedNoise(1), 1, 0.4, id="simulated"),
    pytest.param(SecureNoise, 2, 0.1, id="secure"),  # slower, so fewer runs
]


@pytest.fixture
def less_noise(monkeypatch):
    """Plant a bug: all noise of permutation tests shrinks by a factor."""

    def plant(factor):
        scale_of = permutation.noise_scale
        monkeypatch.setattr(
            permutation, "noise_scale", lambda *arguments: factor * scale_of(*arguments)
        )

    return plant


# --- the smoothed permutation test -----------------------------------------------------------


def far_apart(sensitivity):
    """Neighbouring statistics that a decision and a small p-value tell apart best."""
    first = np.zeros(100)
    second = np.full(100, -sensitivity.permuted)
    second[0] = sensitivity.observed
    return first, second


def decision(sensitivity, noise):
    def run(statistics):
        return smoothed_decision(
            statistics, 0.18, sensitivity=sensitivity, budget=BUDGET, noise=noise
        )

    return run


def pvalue(sensitivity, noise):
    def run(statistics):
        return smoothed_pvalue(statistics, sensitivity=sensitivity, budget=BUDGET, noise=noise)

    return run


@pytest.mark.parametrize(("source", "fewer", "least"), SOURCES)
@pytest.mark.parametrize("sensitivity", [EQUAL, DOUBLE], ids=["equal", "double"])
@pytest.mark.parametrize("release", [decision, pvalue])
def test_smoothed_releases(release, sensitivity, source, fewer, least):
    mechanism = release(sensitivity, source())
    found = released(mechanism, *far_apart(sensitivity), runs=6_000 // fewer)
    assert epsilon_lower_bound(*found) <= EPSILON
    assert epsilon_lower_bound(*found, error=SURE) > least


@pytest.mark.parametrize("sensitivity", [EQUAL, DOUBLE], ids=["equal", "double"])
@pytest.mark.parametrize("release", [decision, pvalue])
def test_half_the_noise_is_caught(release, sensitivity, less_noise):
    less_noise(0.5)
    mechanism = release(sensitivity, SimulatedNoise(1))
    assert caught(mechanism, *far_apart(sensitivity), above=1.2 * EPSILON, runs=6_000, error=ERROR)


def test_the_specifications_single_number_is_caught():
    """Permuted statistics that move by 2, with noise for 1: what "both" and "row" would lose."""
    mechanism = decision(EQUAL, SimulatedNoise(1))
    assert caught(mechanism, *far_apart(DOUBLE), above=EPSILON, runs=8_000)


# --- the whole MMD test ----------------------------------------------------------------------
# (x, y) of the two neighbours, at corners of the box; of all small data sets these lose most.

ONE = (np.array([1.0, 1.0]), np.zeros(2)), (np.array([1.0, 1.0]), np.array([1.0, 0.0]))
ROW = (
    (np.array([1.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0])),
    (np.array([1.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0])),
)


def whole_test(adjacency, release, noise):
    def test(samples):
        return mmd_test(
            *samples,
            epsilon=EPSILON,
            alpha=0.5,
            release=release,
            adjacency=adjacency,
            relabel="permute" if adjacency == "row" else "auto",  # swaps: test_pair_swaps.py
            bounds=(0, 1),
            bandwidths=1.0,
            n_permutations=30,
            rng=0,
            noise=noise,
        )

    @cache
    def up_to_noise(which, orders):
        """What the test hands to its mechanism, for a secret order of the rows of each sample."""
        left, handed = list(orders), []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(noise), "permutation", lambda *_: np.array(left.pop(0)))
            patch.setattr(MMD, "permutation_result", lambda *a, **named: handed.append((a, named)))
            test(known[which])
        assert not left
        return handed[0]

    known = {}

    def run(samples):
        if adjacency == "row":
            result = test(samples)
        else:  # few orders, so that what draws no noise is computed once for each of them
            known[id(samples)] = samples
            orders = tuple(tuple(noise.permutation(len(rows)).tolist()) for rows in samples)
            arguments, named = up_to_noise(id(samples), orders)
            result = permutation_result(*arguments, **named)
        return result.reject if release == "decision" else result.pvalue

    return run


@pytest.mark.parametrize(("source", "fewer", "least"), SOURCES)
@pytest.mark.parametrize("release", ["decision", "pvalue"])
@pytest.mark.parametrize(("adjacency", "data"), [("one", ONE), ("row", ROW)], ids=["one", "row"])
def test_mmd_test(adjacency, data, release, source, fewer, least):
    del least  # data of a few rows does not come near the bound
    mechanism = whole_test(adjacency, release, source())
    assert audit(mechanism, *data, runs=1_200 // fewer) <= EPSILON


def test_half_the_noise_in_mmd_test_is_caught(less_noise):
    less_noise(0.5)
    mechanism = whole_test("one", "decision", SimulatedNoise(1))
    assert caught(mechanism, *ONE, above=EPSILON, runs=2_500)


# No data set of a few rows comes near the bound of a p-value, or of private groups: it takes
# more to be seen in a test as a whole. On statistics, half the noise is seen above.


@pytest.mark.parametrize(
    ("adjacency", "data", "release", "share"),
    [("one", ONE, "pvalue", 0.25), ("row", ROW, "decision", 0.125), ("row", ROW, "pvalue", 0.125)],
)
def test_far_too_little_noise_in_mmd_test_is_caught(adjacency, data, release, share, less_noise):
    less_noise(share)
    mechanism = whole_test(adjacency, release, SimulatedNoise(1))
    assert caught(mechanism, *data, above=1.2 * EPSILON, runs=800)


def test_a_release_without_noise_is_caught(monkeypatch):
    monkeypatch.setattr(SimulatedNoise, "discrete_laplace", lambda self, scale: 0)
    assert audit(whole_test("one", "pvalue", SimulatedNoise(1)), *ONE, runs=200) > EPSILON


# --- mechanisms ------------------------------------------------------------------------------

GAUSSIAN_BUDGET = Budget(1, 0.05)  # a large delta: what happens in the tails cannot be audited


def laplace_of(sensitivity, noise):
    declared = Sensitivity(sensitivity)
    return lambda value: laplace(value, sensitivity=declared, budget=BUDGET, noise=noise)


def tulap_of(sensitivity, noise):
    law = lattice_tulap(round(2 * sensitivity), BUDGET)
    return lambda value: noisy_integer(round(2 * value), law=law, noise=noise)


def gaussian_of(sensitivity, noise):
    declared = Sensitivity(sensitivity, "l2")

    def run(value):
        values = np.array([value])
        return gaussian(values, sensitivity=declared, budget=GAUSSIAN_BUDGET, noise=noise)[0]

    return run


MECHANISMS = pytest.mark.parametrize(
    ("mechanism", "delta"), [(laplace_of, 0.0), (tulap_of, 0.0), (gaussian_of, 0.05)]
)


@pytest.mark.parametrize(("source", "fewer", "least"), SOURCES)
@MECHANISMS
def test_mechanism(mechanism, delta, source, fewer, least):
    runs = 5_000 if delta else 5_000 // fewer  # delta hides much of what there is to find
    found = released(mechanism(1.0, source()), 0.0, 1.0, runs=runs)
    assert epsilon_lower_bound(*found, delta=delta) <= EPSILON
    assert epsilon_lower_bound(*found, delta=delta, error=SURE) > least


@MECHANISMS
def test_half_the_noise_in_a_mechanism_is_caught(mechanism, delta):
    # half the sensitivity is half the noise
    noise = SimulatedNoise(1)
    assert audit(mechanism(0.5, noise), 0.0, 1.0, runs=4_000, delta=delta) > 1.2 * EPSILON
