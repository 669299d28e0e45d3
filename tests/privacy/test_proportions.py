"""Tests of proportions, whole, run many times on neighbours: they lose no more than epsilon.

Runs are seeded. Unseeded, an audit would fail by chance with probability 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest

import privatest as pt
from privatest.core.privacy import Budget
from privatest.core.results import Interval
from privatest.data.schema import NumericColumn, Schema
from privatest.mechanisms.lattice import noise_law
from privatest.methods import proportions
from privatest.methods import proportions as binomial
from privatest.methods.proportions import PrivateShares, PublicShares, _read
from privatest.methods.proportions import _release_shares as _release
from privatest.noise import SimulatedNoise
from tests.privacy.harness import audit, caught, once

EPSILON, RUNS = 1.0, 1000
ALL, NONE = np.ones(4), np.zeros(4)
ONE_LESS = np.array([0.0, 1, 1, 1])


def share(noise):
    return lambda x: pt.binom_test(x, epsilon=EPSILON, noise=noise).statistic


def released(adjacency, weights, noise, epsilon=EPSILON):
    """What leaves the data for a test of two groups, as one number that tells much."""
    read = once(lambda data: _read(data, None, None, adjacency))

    def run(data):
        found = _release(read(data), Budget(epsilon), adjacency, noise)
        values = found.cells if isinstance(found, PrivateShares) else found.counts
        return float(np.dot(weights, values))

    return run


@pytest.fixture
def no_intervals(monkeypatch):
    """They take long, and follow from the noisy count."""
    monkeypatch.setattr(binomial, "_interval", lambda *_: Interval.around(0.0, 1.0, 0.95, 1.0))


@pytest.mark.usefixtures("no_intervals")
def test_binom_test():
    assert audit(share(SimulatedNoise(1)), ALL, ONE_LESS, runs=RUNS) <= EPSILON


@pytest.mark.usefixtures("no_intervals")
def test_private_share():
    noise = SimulatedNoise(1)
    audited = audit(
        lambda x: pt.private_share(x, epsilon=EPSILON, noise=noise).mean[0],
        ALL,
        ONE_LESS,
        runs=RUNS,
    )
    assert audited <= EPSILON


NEIGHBOURS = [
    ("one", (1, 0), (ALL, NONE), (ONE_LESS, NONE)),
    ("both", (1, -1), (ALL, NONE), (ONE_LESS, [1, 0, 0, 0])),
    ("row", (1, 0, -1, 0), (ALL, NONE), (ALL[1:], [1.0, 0, 0, 0, 0])),
]


@pytest.mark.parametrize(("adjacency", "weights", "first", "second"), NEIGHBOURS)
def test_releases_of_two_groups(adjacency, weights, first, second):
    mechanism = released(adjacency, weights, SimulatedNoise(2))
    assert audit(mechanism, first, second, runs=RUNS) <= EPSILON


@pytest.mark.parametrize(("adjacency", "_", "first", "second"), NEIGHBOURS)
def test_proportions_test(adjacency, _, first, second, monkeypatch):
    """p-values and intervals are left out: they take long, and follow from the noisy counts."""
    for kind in (PublicShares, PrivateShares):
        monkeypatch.setattr(kind, "pvalue", lambda *_: 1.0)
    monkeypatch.setattr(proportions, "_intervals", lambda *_: Interval(0.0, 1.0, 0.95))
    monkeypatch.setattr(proportions, "_estimates", lambda *_: {})
    noise = SimulatedNoise(3)

    def statistic(data):
        return pt.proportions_test(
            *data, epsilon=EPSILON, adjacency=adjacency, rng=0, noise=noise
        ).statistic

    assert audit(statistic, first, second, runs=RUNS) <= EPSILON


@pytest.mark.parametrize(("adjacency", "weights", "first", "second"), NEIGHBOURS)
def test_half_the_noise_is_caught(adjacency, weights, first, second):
    mechanism = released(adjacency, weights, SimulatedNoise(1), 2 * EPSILON)
    assert caught(mechanism, first, second, above=EPSILON, runs=6 * RUNS)


@pytest.mark.parametrize("rows", [2, 5])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_rows_of_a_person_in_several_groups(rows, delta):
    """Exactly: moves by a and by rows - a in two groups cost no more than epsilon together."""
    schema = Schema({"won": NumericColumn(0, 1, integer=True)}, rows_per_person=rows)
    read = _read(({"won": ALL}, {"won": NONE}), schema, None, "one")
    released = _release(read, Budget(1, delta), "one", SimulatedNoise(0))
    assert isinstance(released, PublicShares)
    law = released.noise
    loss = [_largest_loss(law, moved) for moved in range(rows + 1)]
    pure = Budget(1, delta).pure_epsilon
    assert max(loss[a] + loss[rows - a] for a in range(rows + 1)) <= pure * (1 + 1e-8)
    tulap = noise_law(rows, Budget(1), "tulap")  # what it was: this is how it was seen to fail
    assert _largest_loss(tulap, 1) == pytest.approx(1)


def _largest_loss(law, moved):
    """The largest log ratio of probabilities of a lattice law and of that law moved."""
    edges = np.arange(-400, 401) - 0.5 * (law.width % 2)  # cells of the lattice
    mass = law.survival(edges) - law.survival(edges + 1)
    other = law.survival(edges - moved) - law.survival(edges + 1 - moved)
    kept = (mass > 1e-6) & (other > 1e-6)  # smaller ones have lost their digits
    return float(np.max(np.abs(np.log(mass[kept] / other[kept]))))
