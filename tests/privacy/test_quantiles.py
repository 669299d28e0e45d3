"""Releases of counts below edges, run many times on neighbours: they lose no more than epsilon.

Runs are seeded. Unseeded, an audit would fail by chance with probability 1e-6.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import privatest as pt
from privatest.core.privacy import Budget
from privatest.data.encoding import Sample
from privatest.mechanisms import additive as selection
from privatest.mechanisms.additive import select_candidate
from privatest.mechanisms.lattice import noisy_cumulative
from privatest.noise import SimulatedNoise
from privatest.numerics.order import cell_counts, tree_of
from tests.privacy.harness import audit, caught

EPSILON, RUNS = 1.0, 800
WEIGHTS = selection.selection_weights
LOW, MOVED = np.array([0.1, 0.1, 0.9, 0.9]), np.array([0.1, 0.9, 0.9, 0.9])


def quantile(noise):
    """The noisy count in the middle of the grid, of the whole function."""

    def run(x):
        found = pt.private_quantile(x, bounds=(0, 1), epsilon=EPSILON, cells=2, noise=noise)
        assert found.curve is not None
        return found.curve.counts[1]

    return run


def shift(noise):
    def run(pair):
        options: dict[str, Any] = {"bounds": (0, 1), "epsilon": EPSILON, "cells": 4, "noise": noise}
        intervals = pt.hodges_lehmann(*pair, **options).intervals
        assert isinstance(intervals, partial)
        return intervals.args[0].counts[1]

    return run


def counts(noise, cells):
    """The same, of the mechanism alone, which is fast."""
    tree, edges = tree_of(cells), np.linspace(0, 1, cells + 1)

    def run(x):
        (each,) = cell_counts(Sample(np.asarray(x)[:, None], None), edges=edges)
        drawn = noisy_cumulative(each, tree, moved=1, budget=Budget(EPSILON), noise=noise)
        return drawn[cells // 2]

    return run


def test_quantiles():
    assert audit(quantile(SimulatedNoise(1)), LOW, MOVED, runs=RUNS) <= EPSILON


def test_shifts():
    pairs = (LOW, LOW[:2]), (MOVED, LOW[:2])
    assert audit(shift(SimulatedNoise(2)), *pairs, runs=RUNS) <= EPSILON


def test_trees_of_several_levels():
    assert audit(counts(SimulatedNoise(3), 81), LOW, MOVED, runs=2 * RUNS) <= EPSILON


def window(noise, epsilon):
    """The place of the window that is chosen, of the whole function."""
    far, near = np.full(100, 0.1), np.full(99, 0.9)

    def run(x):
        rows = np.concatenate([far, x, near])
        found = pt.private_median(rows, bounds=(0, 1), epsilon=epsilon, noise=noise)
        assert found.curve is not None
        return float(np.median(found.curve.places))

    return run


def test_windows():
    """Rows at two places, as many at each: one row decides on which side the ranks are passed."""
    assert audit(window(SimulatedNoise(5), 1.0), [0.1], [0.9], runs=RUNS) <= 1.0


def choice(noise):
    """The candidate that is chosen where one score rises as others fall."""

    def run(scores):
        ones = np.ones(len(scores), dtype=np.int64)
        options: dict[str, Any] = {"sensitivity": 1, "budget": Budget(EPSILON), "noise": noise}
        return select_candidate(np.array(scores), ones, **options)

    return run


def test_choices():
    assert audit(choice(SimulatedNoise(6)), [0, 1], [1, 0], runs=4 * RUNS) <= EPSILON


def test_a_choice_that_forgets_the_sum_of_weights_is_caught(monkeypatch):
    """The factor of 1/2 pays for the weights of all others: without it twice epsilon is lost."""
    monkeypatch.setattr(
        selection,
        "selection_weights",
        lambda scores, *, sensitivity, epsilon: WEIGHTS(
            scores, sensitivity=sensitivity, epsilon=2 * epsilon
        ),
    )
    assert caught(choice(SimulatedNoise(7)), [1, 2, 2], [2, 1, 1], above=EPSILON, runs=20_000)


def test_half_the_noise_is_caught(monkeypatch):
    draw = SimulatedNoise.discrete_laplace
    monkeypatch.setattr(SimulatedNoise, "discrete_laplace", lambda s, scale: draw(s, scale / 2))
    assert caught(counts(SimulatedNoise(4), 2), LOW, MOVED, above=EPSILON, runs=6_000)
