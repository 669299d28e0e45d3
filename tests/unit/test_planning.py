"""Planning: one curve in four directions, a ranking, and refusals that say what is possible."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from itertools import pairwise

import pytest

from privatest import planning, simulation
from privatest.core.errors import ParameterError
from privatest.core.text import reach
from privatest.planning.simulation import Power, power
from privatest.planning.studies import search, solve
from privatest.planning.tables import tabulated
from privatest.requests.catalogue import METHODS

SHIFT = simulation.shift(0.3)


def test_four_directions_agree():
    plan = planning.sample_size("mann-whitney", SHIFT, epsilon=1)
    (n, m) = plan.n
    assert n == m
    assert plan.power == pytest.approx(0.8, abs=0.01)
    back = planning.expected_power("mann-whitney", SHIFT, n=n, epsilon=1)
    assert back.power == plan.power
    seen = planning.detectable_effect("mann-whitney", SHIFT, n=n, epsilon=1)
    assert seen.effect == pytest.approx(0.3, rel=0.02)
    cost = planning.epsilon_needed("mann-whitney", SHIFT, n=n)
    assert cost.epsilon == pytest.approx(1, rel=0.25)


def test_the_price_of_privacy_is_told_and_falls_with_epsilon():
    dear, cheap = (planning.sample_size("mann-whitney", SHIFT, epsilon=e) for e in (0.1, 1))
    assert dear.without_noise == cheap.without_noise
    # two samples of normal values: t-test 175, Mann–Whitney 183 people in each group
    assert cheap.without_noise is not None
    assert 160 < cheap.without_noise < 215
    assert dear.price is not None
    assert cheap.price is not None
    assert dear.price > cheap.price > 1
    assert "price of privacy" in str(dear)


def test_tables_and_simulation_agree():
    # 400 runs: 4 standard errors are .09; the curve may be off by .03
    for test, n, epsilon, membership in (
        ("mann-whitney", 150, 0.3, "public"),
        ("ks", 300, 0.2, "public"),
    ):
        told = planning.expected_power(test, SHIFT, n=n, epsilon=epsilon, membership=membership)
        found = power(test, SHIFT, n=n, epsilon=epsilon, membership=membership, runs=400)
        assert abs(told.power - found.rate) < 0.12


def test_a_refined_size_is_near_that_of_the_tables():
    told = planning.sample_size("ks", simulation.shift(1.0), epsilon=1)
    found = planning.sample_size("ks", simulation.shift(1.0), epsilon=1, refine=True, runs=150)
    assert found.source.startswith("simulation")
    assert 0.7 < found.n[0] / told.n[0] < 1.4
    assert found.low is not None


def test_what_is_impossible_says_what_is_possible():
    with pytest.raises(ParameterError, match="power must be above alpha"):
        planning.sample_size("ks", SHIFT, 0.05, epsilon=1)
    with pytest.raises(ParameterError, match=r"without noise the same test has power 0\.\d\d"):
        planning.epsilon_needed("ks", SHIFT, n=30)
    with pytest.raises(ParameterError, match="the largest shift that the bounds allow"):
        planning.detectable_effect("ks", SHIFT, n=10, epsilon=0.01)
    with pytest.raises(ParameterError, match="does not see a scale; its power"):
        planning.sample_size("mann-whitney", simulation.scale(1.3), epsilon=1)
    with pytest.raises(ParameterError, match="effect must not be 0"):
        planning.sample_size("ks", simulation.shift(0), epsilon=1)
    with pytest.raises(ParameterError, match="effect must be a sampler"):
        planning.sample_size("ks", 0.3, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="needs public membership"):
        planning.sample_size("ttest", SHIFT, epsilon=1, membership="private")


def test_ranks_beat_kernels_against_a_shift_of_private_groups():
    ranking = planning.recommend("two-sample", 180, epsilon=1, membership="private", effect=0.3)
    powers = {choice.method: choice.power for choice in ranking.choices}
    assert ranking.best.method == "mann-whitney"
    assert powers["mmd"] is not None
    assert powers["mann-whitney"] is not None
    assert powers["mmd"] < powers["mann-whitney"] - 0.1
    assert "ttest" in ranking.excluded


def test_a_change_of_spread_is_not_left_to_ranks():
    ranking = planning.recommend("two-sample", 180, epsilon=1, looking_for="scale")
    blind = {c.method for c in ranking.choices if "does not see" in c.reason}
    assert "mann-whitney" in blind
    assert ranking.best.method not in blind


@pytest.mark.parametrize("question", ["two-sample", "independence", "paired"])
def test_every_question_has_a_ranking(question):
    ranking = planning.recommend(question, 200, epsilon=1)
    assert ranking.best.power == pytest.approx(0.8, abs=0.01)
    known = {*ranking.excluded} | {choice.method for choice in ranking.choices}
    assert known == {*METHODS[question]}
    json.dumps(ranking.to_dict())


@pytest.mark.parametrize(
    ("columns", "kind"), [("binary", "proportions"), ("categorical", "tables"), (5, "shift")]
)
def test_columns_decide_what_is_looked_for(columns, kind):
    ranking = planning.recommend("two-sample", 300, columns, epsilon=1)
    assert ranking.looking_for == kind
    assert ranking.best.power is not None


def test_sampling_error_goes_with_the_harmonic_mean_and_noise_with_the_smaller():
    assert reach((100, 100), 1) == pytest.approx((10, 10))
    chance, budget = reach((100, 300), 1)
    assert chance == pytest.approx(math.sqrt(150))
    assert budget == pytest.approx(100 / math.sqrt(150))


def test_power_by_the_tables_grows_with_n_and_epsilon():
    for kind in ("shift", "scale"):
        for membership in ("public", "private"):
            for name, curve in tabulated("two-sample", kind, 1, membership).items():
                powers = [curve.power(0.3, (n, n), 0.5) for n in (30, 100, 300, 1000, 3000)]
                assert powers == sorted(powers), (name, kind, membership)
                powers = [curve.power(0.3, (300, 300), e) for e in (0.05, 0.2, 1, 5)]
                assert all(b > a - 0.02 for a, b in pairwise(powers)), name


def test_tables_are_small_and_dated():
    page = files("privatest.planning").joinpath("power.json").read_text()
    assert len(page) < 300_000
    assert {"made", "by", "alpha", "curves"} <= {*json.loads(page)}


def test_search_finds_a_known_crossing():
    def measure(value: float, runs: int, step: int) -> Power:
        rate = 0.5 * math.erfc(-(math.log(value / 100) * 1.5 + 0.84) / math.sqrt(2))
        hits = round(rate * runs)
        return Power(hits / runs, 0, 1, hits, runs, "", "", (1,), 1, 0, 0.05, "public", 0, ())

    found = search(measure, 0.8, 5.0, 2.0, 1e4, 400)
    assert found.value == pytest.approx(100, rel=0.05)
    assert search(measure, 0.8, 5.0, 2.0, 50.0, 400).value is None
    assert solve(lambda x: x / 10, 0.5, 0.1, 100) == pytest.approx(5, rel=1e-4)
