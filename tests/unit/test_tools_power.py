"""Studies of the tables of power: the chance of a data set is what the test itself does."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.noise import SimulatedNoise
from privatest.planning.simulation import ready
from privatest.simulation import dependence, shift
from tools.power_chances import chances_of
from tools.power_tables import fit

NO_NOISE = 1e6


@pytest.mark.parametrize(
    ("method", "sampler", "membership"),
    [
        ("mmd", shift(0.9), "public"),
        ("mmd", shift(0.9), "private"),
        ("hsic", dependence(0.6), "public"),
    ],
)
def test_without_noise_the_chance_is_the_answer(method, sampler, membership):
    call = ready(method, sampler, membership, {"n_permutations": 99})
    answers = []
    for seed in range(8):
        data = sampler.draw(24, np.random.default_rng(seed))
        settings = [{"alpha": 0.05, "noise": SimulatedNoise(seed), "rng": seed} for _ in "ab"]
        found = chances_of(method, call, data, NO_NOISE, [NO_NOISE], **settings[0])[NO_NOISE]
        answer = call(*data, epsilon=NO_NOISE, **settings[1]).reject
        assert round(found) == answer
        answers.append(answer)
    assert len({*answers}) == 2  # the effect is neither hopeless nor certain


def test_a_data_set_serves_all_epsilons_at_which_it_is_permuted_alike():
    data = shift(0.9).draw(40, np.random.default_rng(1))
    epsilons = (0.05, 0.4, 3.2, 10.0)
    for membership, expected in (("public", epsilons), ("private", epsilons[2:])):
        call = ready("mmd", shift(0.9), membership, {"n_permutations": 59})
        settings = {"alpha": 0.05, "noise": SimulatedNoise(1), "rng": 1}
        found = chances_of("mmd", call, data, 3.2, epsilons, **settings)
        assert tuple(found) == expected
        assert 0.05 < found[3.2] < found[10.0]


def test_a_curve_is_fitted_to_chances_as_to_answers():
    rng = np.random.default_rng(2)
    strength = rng.uniform(0.1, 1, 400)
    n, budget = np.full(400, 80.0), rng.uniform(2, 90, 400)
    chance = np.clip(strength, 0.06, 0.94)
    answers = np.column_stack([strength, n, budget, rng.random(400) < chance]).astype(float)
    chances = np.column_stack([strength, n, budget, chance])
    powers = [fit(nodes).power(0.7, (80, 80), 1.0) for nodes in (answers, chances)]
    assert powers[1] == pytest.approx(0.7, abs=0.06)
    assert powers[0] == pytest.approx(powers[1], abs=0.12)
    assert fit(np.vstack([chances, chances])).runs == 400  # of one data set at two epsilons: one
