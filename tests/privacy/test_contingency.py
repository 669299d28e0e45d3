"""Tables and shares, run many times on neighbours: they lose no more than epsilon.

Runs are seeded. Unseeded, an audit would fail by chance with probability 1e-6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.core.privacy import Budget
from privatest.core.results import Interval
from privatest.mechanisms.additive import count_noise, noisy_counts
from privatest.methods import tables as contingency
from privatest.methods import tables as fit
from privatest.methods.tables import cell_counts, read_category
from privatest.noise import SimulatedNoise
from tests.privacy.harness import audit, caught

EPSILON = 1.0
# one row replaced leaves its cell for the one across: two counts move
ROWS = (["a", "a", "b"], ["a", "a", "b"])
MOVED = (["b", "a", "b"], ["b", "a", "b"])


def counted(data):
    """The private table of two columns."""
    sides = [read_category(side, ["a", "b"], None, "x")[0] for side in data]
    return cell_counts(sides, (2, 2))


def released(noise, budget):
    """The difference of the two cells that move."""
    law = count_noise(4, budget)

    def mechanism(counts):
        table = noisy_counts(counts, law=law, budget=budget, noise=noise)
        return table[0, 0] - table[1, 1]

    return mechanism


def test_cells():
    mechanism = released(SimulatedNoise(1), Budget(1))
    assert audit(mechanism, counted(ROWS), counted(MOVED), runs=10_000) <= EPSILON


def test_half_the_noise_is_caught():
    mechanism = released(SimulatedNoise(1), Budget(2))
    assert caught(mechanism, counted(ROWS), counted(MOVED), above=EPSILON, runs=10_000)


@pytest.mark.parametrize("field", ["statistic", "counts"])
def test_whole_test_of_independence(field, monkeypatch):
    """Intervals are left out: they take long, and follow from the noisy table."""
    monkeypatch.setattr(contingency, "association_ends", lambda *_: (0.0, 0.0, 1.0))
    monkeypatch.setattr(contingency, "cell_intervals", lambda *_: Interval(0.0, 1.0, 0.95))
    noise, both = SimulatedNoise(2), ["a", "b"]
    named: dict[str, Any] = {"categories_x": both, "categories_y": both}

    def mechanism(data):
        given: dict[str, Any] = {"epsilon": EPSILON, "n_simulations": 1, "rng": 0, "noise": noise}
        result = pt.chi2_contingency(data[0], data[1], **named, **given)
        if field == "statistic":
            return result.statistic
        return float(result.estimates["counts"][0, 0] - result.estimates["counts"][1, 1])

    assert audit(mechanism, ROWS, MOVED, runs=400) <= EPSILON


def test_whole_test_of_shares(monkeypatch):
    monkeypatch.setattr(fit, "cell_intervals", lambda *_: Interval(0.0, 1.0, 0.95))
    noise = SimulatedNoise(3)

    def mechanism(x):
        given: dict[str, Any] = {"epsilon": EPSILON, "n_simulations": 1, "rng": 0, "noise": noise}
        result = pt.chisquare(x, categories=["a", "b"], **given)
        return float(np.diff(result.estimates["counts"])[0])

    assert audit(mechanism, ["a"] * 4, ["a"] * 3 + ["b"], runs=400) <= EPSILON
