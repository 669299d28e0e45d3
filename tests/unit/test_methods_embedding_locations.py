"""Locations that never leak: optimised on public data, or bought."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad

from privatest.core.errors import DataError, ParameterError, PrivacyError
from privatest.data.schema import NumericColumn, Schema
from privatest.methods.embedding import MomentsRelease, me_permutation_test, me_test, scf_test
from privatest.methods.locations import (
    PrivateChoice,
    optimise_frequencies,
    optimise_locations,
    power_criterion,
    wave_criterion,
)
from privatest.noise import SimulatedNoise

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(300, 2)), RNG.normal(size=(300, 2))
Y[:, 0] += 1
TEST: dict[str, Any] = {"bounds": (-4, 4), "epsilon": 1, "delta": 1e-5}


def test_the_gradient_is_that_of_the_criterion():
    start = np.append(RNG.uniform(-1, 1, size=6), 0.3)

    def criterion(point):
        return power_criterion(point[:-1].reshape(3, 2), point[-1], X[:40], Y[:30], 0.1)

    error = check_grad(lambda p: criterion(p)[0], lambda p: criterion(p)[1], start)
    assert error < 1e-6
    assert np.linalg.norm(criterion(start)[1]) > 1e-3


def test_the_gradient_of_waves():
    start = RNG.uniform(-3, 3, size=6)

    def criterion(point):
        return wave_criterion(point.reshape(3, 2), X[:40], Y[:30], 0.1)

    error = check_grad(lambda p: criterion(p)[0], lambda p: criterion(p)[1], start)
    assert error < 1e-6
    assert np.linalg.norm(criterion(start)[1]) > 1e-3


def test_optimised_frequencies_find_a_hidden_wave():
    """A density of one frequency along the first column: 8 radians per unit."""
    rng = np.random.default_rng(6)
    x, y = rng.uniform(-4, 4, size=(2, 2000, 2))
    y = y[rng.random(2000) < (1 + np.cos(8 * y[:, 0])) / 2]
    chosen = optimise_frequencies(
        x, y, n_frequencies=1, sizes=(2000, 2000), fastest=80.0, n_starts=1, rng=0, **TEST
    )
    assert np.abs(chosen.frequencies[0]) == pytest.approx([8.0, 0.0], abs=0.3)
    with pytest.raises(ParameterError, match="fastest"):
        optimise_frequencies(x, y, n_frequencies=1, sizes=(9, 9), fastest=0, **TEST)


def test_optimised_locations_look_where_the_difference_is():
    chosen = optimise_locations(X, Y, n_locations=2, sizes=(2000, 2000), n_starts=2, rng=0, **TEST)
    assert chosen.locations.shape == (2, 2)
    assert np.all(np.abs(chosen.locations) <= 4)
    # along the first column, where the samples differ
    assert np.ptp(chosen.locations[:, 0]) > 1
    drawn = [
        power_criterion(
            RNG.uniform(size=(2, 2)), float(np.log(0.5)), (X + 4) / 8, (Y + 4) / 8, 0.05
        )[0]
        for _ in range(20)
    ]
    assert chosen.criterion > np.mean(drawn)


def test_what_was_optimised_is_given_to_a_test_as_it_is():
    places = optimise_locations(X, Y, n_locations=2, sizes=(900, 900), n_starts=1, rng=0, **TEST)
    by_hand: dict[str, Any] = {"locations": places.locations, "bandwidth": places.bandwidth}
    seeded: dict[str, Any] = {"rng": 0, **TEST}
    for test in (me_test, me_permutation_test):
        found = test(X, Y, locations=places, noise=SimulatedNoise(0), **seeded)
        again = test(X, Y, noise=SimulatedNoise(0), **by_hand, **seeded)
        assert found.to_json() == again.to_json()
        with pytest.raises(ParameterError, match="bandwidth"):
            test(X, Y, locations=places, bandwidth=0.2, **seeded)
        with pytest.raises(ParameterError, match="kernel"):
            test(X, Y, locations=places, kernel="imq", **seeded)
    waves = optimise_frequencies(X, Y, n_frequencies=1, sizes=(900, 900), n_starts=1, rng=0, **TEST)
    found = scf_test(X, Y, frequencies=waves, noise=SimulatedNoise(0), **seeded)
    again = scf_test(X, Y, frequencies=waves.frequencies, noise=SimulatedNoise(0), **seeded)
    assert found.to_json() == again.to_json()


def test_optimiser_refuses():
    with pytest.raises(ParameterError, match="numeric"):
        optimise_locations(
            X, Y, n_locations=2, sizes=(9, 9), bounds=None, bandwidth=1.0, epsilon=1, delta=0.1
        )
    with pytest.raises(ParameterError, match="n_locations"):
        optimise_locations(X, Y, n_locations=0, sizes=(9, 9), **TEST)
    with pytest.raises(ParameterError, match="sizes"):
        optimise_locations(X, Y, n_locations=1, sizes=(9, 1), **TEST)


def test_a_good_candidate_is_bought():
    good, bad = [[-1.0, 0.0], [2.0, 0.0]], [[0.5, 3.9]]
    picks = []
    for seed in range(10):
        found = me_test(
            np.tile(X, (10, 1)),
            np.tile(Y, (10, 1)),
            locations=PrivateChoice([bad, good]),
            release=MomentsRelease(n_bootstrap=19),
            bandwidth=0.3,
            noise=SimulatedNoise(seed),
            **TEST,
        )
        picks.append(len(found.parameters["locations"]))
        assert found.sizes == {"n": 2400, "m": 2400}  # the fifth that chose does not test
        assert found.reject
    assert picks.count(2) >= 9


def test_choice_needs_one_row_per_person():
    schema = Schema({"a": NumericColumn(-4, 4), "b": NumericColumn(-4, 4)}, rows_per_person=2)
    choice = PrivateChoice([[[0.0, 0.0]], [[1.0, 1.0]]])
    cases: list[dict[str, Any]] = [{"bounds": schema}, {"adjacency": "both"}]
    for more in cases:
        with pytest.raises(PrivacyError, match="one row per person"):
            me_test(X, Y, locations=choice, **{**TEST, **more})
    with pytest.raises(DataError, match="at least 10"):
        me_test(X[:9], Y, locations=choice, **TEST)
