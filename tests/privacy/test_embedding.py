"""Embedding tests run many times on neighbours: they lose no more than epsilon.

Runs are seeded. Unseeded, an audit would fail by chance with probability 1e-6.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from privatest.core.privacy import Budget
from privatest.data.schema import Domain
from privatest.mechanisms import moments as mechanism
from privatest.methods import embedding as embedding_statistic
from privatest.methods.embedding import (
    MomentsRelease,
    StatisticRelease,
    me_permutation_test,
    me_test,
    read_inputs,
    scf_test,
    select_privately,
    two_sample_scale,
)
from privatest.noise import SimulatedNoise
from privatest.numerics.features import mean_embedding
from privatest.numerics.kernels import Kernel
from tests.privacy.harness import audit, caught, once

EPSILON, DELTA, RUNS = 1.0, 0.1, 800  # a large delta: its tail is what few runs can see

# Few rows at the two ends of a narrow kernel: one replaced row moves everything far.
N = 6
X, Y = np.zeros(N), np.ones(N)
OTHER = X.copy()
OTHER[0] = 1.0
DATA, NEIGHBOUR = (X, Y), (OTHER, Y)
SHARED: dict[str, Any] = {
    "locations": [0.0, 1.0],
    "bounds": (0, 1),
    "bandwidth": 0.3,
    "epsilon": EPSILON,
}


def seeds():
    seed = 0

    def following():
        nonlocal seed
        seed += 1
        return SimulatedNoise(seed)

    return following


def moments(draw):
    def release(data):
        found = me_test(
            *data, delta=DELTA, release=MomentsRelease(n_bootstrap=1), rng=0, noise=draw(), **SHARED
        )
        # along the way from one neighbour to the other
        return float(found.estimates["difference"] @ np.array([1.0, -1.0]))

    return release


def statistic(draw, **more):
    def release(data):
        found = me_test(*data, release=StatisticRelease(0.5), noise=draw(), **SHARED | more)
        return found.statistic

    return release


def permutation(draw):
    def release(data):
        found = me_permutation_test(
            *data, n_permutations=39, condition=0.5, rng=0, noise=draw(), **SHARED
        )
        return found.pvalue

    return release


def waves(draw):
    def release(data):
        found = scf_test(
            *data,
            frequencies=[np.pi],
            bounds=(0, 1),
            release=StatisticRelease(condition=0.5),
            epsilon=EPSILON,
            noise=draw(),
        )
        return found.statistic

    return release


CLOSE = mean_embedding(Kernel("gaussian", 0.3), np.array([[0.0]]), Domain((0,)))
FAR = mean_embedding(Kernel("gaussian", 0.3), np.array([[1.0]]), Domain((0,)))


def choice(draw):
    """Release which of two locations is chosen."""

    read = once(
        lambda data: read_inputs(
            data[0],
            data[1],
            bounds=(0, 1),
            budget=Budget(EPSILON, 0),
            alpha=0.05,
            adjacency="one",
            paired=False,
            noise=SimulatedNoise(0),
        )
    )

    def release(data):
        inputs = dataclasses.replace(read(data), noise=draw())
        return select_privately(inputs, [CLOSE, FAR])[0]

    return release


CASES = {
    "moments": (moments, DELTA),
    "statistic": (statistic, 0.0),
    "permutation": (permutation, 0.0),
    "waves": (waves, 0.0),
    "paired": (lambda draw: statistic(draw, paired=True), 0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_loses_no_more_than_epsilon(name):
    make, delta = CASES[name]
    lost = audit(make(seeds()), DATA, NEIGHBOUR, runs=RUNS, delta=delta)
    assert lost <= EPSILON
    assert lost > -1  # the audit saw both data sets


def test_a_choice_loses_no_more_than_epsilon(monkeypatch):
    """All rows choose here, so that the replaced one always counts."""
    monkeypatch.setattr(embedding_statistic, "_split", lambda inputs: (inputs, inputs))
    first = np.full(5, 0.5), np.full(5, 0.5)
    neighbours = [(np.append(first[0], end), np.append(first[1], 0.5)) for end in (0.0, 1.0)]
    assert audit(choice(seeds()), *neighbours, runs=RUNS) <= EPSILON
    true = embedding_statistic.embedding_scale

    def weak(*args):
        scale = true(*args)
        return dataclasses.replace(scale, sensitivity=scale.sensitivity / 8)

    monkeypatch.setattr(embedding_statistic, "embedding_scale", weak)
    assert caught(choice(seeds()), *neighbours, above=EPSILON, runs=RUNS)


def test_moments_with_half_of_the_noise_are_caught(monkeypatch):
    true = mechanism.difference_sensitivity
    monkeypatch.setattr(mechanism, "difference_sensitivity", lambda *a, **k: true(*a, **k) / 2)
    data = DATA, NEIGHBOUR
    assert caught(moments(seeds()), *data, above=EPSILON, runs=2 * RUNS, delta=DELTA)


# A p-value of few rows is far less telling than the noisy statistic: the bug has to be larger.
@pytest.mark.parametrize(
    ("make", "factor", "runs"), [(statistic, 2, 3 * RUNS), (permutation, 16, RUNS)]
)
def test_a_statistic_with_too_little_noise_is_caught(monkeypatch, make, factor, runs):
    def weak(*args, **kwargs):
        scale = two_sample_scale(*args, **kwargs)
        return dataclasses.replace(scale, sensitivity=scale.sensitivity / factor)

    monkeypatch.setattr(embedding_statistic, "two_sample_scale", weak)
    assert caught(make(seeds()), DATA, NEIGHBOUR, above=EPSILON, runs=runs)


def test_nothing_else_leaves():
    """A value that no other row has appears nowhere in a result."""
    x = np.append(np.linspace(0, 1, 50), 0.123456789)
    y = np.linspace(0, 1, 51)
    for found in (
        me_test(x, y, delta=DELTA, noise=SimulatedNoise(1), **SHARED),
        me_test(x, y, release="statistic", noise=SimulatedNoise(1), **SHARED),
        me_permutation_test(x, y, noise=SimulatedNoise(1), **SHARED),
    ):
        text = json.dumps(found.to_dict()) + repr(found) + str(found)
        assert "123456789" not in text
