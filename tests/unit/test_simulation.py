"""Power by simulation: reproducible, resumable, and on made-up data only."""

from __future__ import annotations

import json

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import privatest as pt
from privatest import simulation as sim
from privatest.core.errors import ParameterError
from privatest.planning.simulation import _mapped, run_seeds

SAMPLERS = [
    sim.shift(0.3),
    sim.shift(0.3, columns=3),
    sim.shift(0.3, question="paired"),
    sim.heavy_tails(0.5),
    sim.scale(1.3),
    sim.shape(0.5),
    sim.mixture(0.3),
    sim.atoms(0.1),
    sim.dependence(0.3),
    sim.dependence(0.3, form="curve"),
    sim.proportions(0.1),
    sim.tables(0.1),
    sim.tables(0.1, question="independence"),
    sim.resample(np.arange(50.0), bounds=(0, 60), effect=3),
]


def test_a_seed_decides_everything():
    first, again = (
        sim.power("mann-whitney", sim.shift(0.5), n=60, epsilon=1, runs=60, seed=3) for _ in "ab"
    )
    assert first == again
    other = sim.power("mann-whitney", sim.shift(0.5), n=60, epsilon=1, runs=60, seed=4)
    assert other.seeds != first.seeds
    fewer = sim.power("mann-whitney", sim.shift(0.5), n=60, epsilon=1, runs=20, seed=3)
    assert fewer.seeds == first.seeds[:20] == run_seeds(3, 20)


def test_processes_do_not_change_the_answer():
    rates = [sim.power("ks", sim.shift(0.5), n=60, epsilon=1, runs=60, workers=k) for k in (1, 2)]
    assert rates[0] == rates[1]


def test_power_is_that_of_the_rank_benchmark():
    # benchmarks/power/ranks.py: .948 of 2000 runs; 5 standard errors of 200 runs and of those
    found = sim.power("mann-whitney", sim.shift(1.0, bounds=(-5, 5)), n=200, epsilon=0.1, runs=200)
    assert abs(found.rate - 0.948) < 5 * np.sqrt(0.05 * 0.95 * (1 / 200 + 1 / 2000))
    assert found.low < found.rate < found.high
    assert found.simulated


def test_no_effect_is_the_level():
    # 300 runs at level .05: more than 30 have probability 1e-4
    assert sim.power("ks", sim.shift(0.0), n=50, epsilon=1, runs=300).rejections <= 30


def test_an_interrupted_simulation_goes_on(tmp_path):
    cache, done = tmp_path / "runs.jsonl", []

    def stop(finished, runs):
        done.append(finished)
        if finished >= 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sim.power("ks", sim.shift(0.5), n=60, epsilon=1, runs=100, cache=cache, progress=stop)
    assert len(cache.read_text().splitlines()) == 2
    with cache.open("a") as file:
        file.write('{"key": "cut sho')  # the machine went down
    rest: list[int] = []
    whole = sim.power(
        "ks",
        sim.shift(0.5),
        n=60,
        epsilon=1,
        runs=100,
        cache=cache,
        progress=lambda finished, _: rest.append(finished),
    )
    assert rest[0] == 50
    assert whole == sim.power("ks", sim.shift(0.5), n=60, epsilon=1, runs=100)
    assert {"key", "first", "found"} == {*json.loads(cache.read_text().splitlines()[0])}


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: f"{sampler.question} {sampler}")
def test_samplers_stay_within_their_bounds(sampler):
    drawn = sampler.draw(500, np.random.default_rng(0))
    assert len(drawn) == 2
    if sampler.remake is not None:
        other = sampler.with_effect(sampler.effect)
        assert other.described() == sampler.described()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sim.shift(3), "effect must keep values within the bounds"),
        (lambda: sim.scale(5), "effect must keep values within the bounds"),
        (lambda: sim.scale(0), "effect must be a finite number and above 0"),
        (lambda: sim.shape(1.5), "effect must be a share"),
        (lambda: sim.proportions(0.6), "effect must leave a share from 0 to 1"),
        (lambda: sim.atoms(0.7), "effect must leave a share of zeros"),
        (lambda: sim.tables(0.7), "effect must be at most 0.5"),
        (lambda: sim.dependence(1), "effect must be a finite number"),
        (lambda: sim.resample(np.arange(9.0), bounds=(0, 8), effect=5), "effect must keep values"),
        (lambda: sim.shift(0.1, base="nothing"), "base must be one of"),
    ],
)
def test_effects_that_leave_the_bounds_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def drawn_outside(sizes, rng):
    return tuple(rng.normal(size=size) * 9 for size in sizes)


def test_own_samplers_must_stay_within_their_bounds():
    sampler = sim.custom(drawn_outside, bounds=(-1, 1))
    with pytest.raises(ParameterError, match="sampler must stay within its bounds"):
        sim.power("ks", sampler, n=30, epsilon=1, runs=5)


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="needs public membership"):
        sim.power("ttest", sim.shift(0.3), n=30, epsilon=1, membership="private")
    with pytest.raises(ParameterError, match="takes one numeric column"):
        sim.power("ks", sim.shift(0.3, columns=2), n=30, epsilon=1)
    with pytest.raises(ParameterError, match="method must be one of"):
        sim.power("nothing", sim.shift(0.3), n=30, epsilon=1)
    with pytest.raises(ParameterError, match="sampler must be a Sampler"):
        sim.power("ks", 0.3, n=30, epsilon=1)  # type: ignore[arg-type]
    own = sim.custom(lambda sizes, rng: (rng.random(9), rng.random(9)), bounds=(0, 1))
    with pytest.raises(ParameterError, match="workers must be 1"):
        sim.power("ks", own, n=9, epsilon=1, runs=60, workers=2)
    with pytest.raises(ParameterError, match="cache must be None"):
        sim.power("ks", own, n=9, epsilon=1, runs=60, cache=tmp_path / "runs.jsonl")


def test_a_function_has_the_name_of_the_catalogue():
    assert sim.power(pt.ks_2samp, sim.shift(0.3), n=30, epsilon=1, runs=5).test == "ks"
    kuiper = sim.power(pt.ks_2samp, sim.shift(0.3), n=30, epsilon=1, runs=5, statistic="kuiper")
    assert kuiper.runs == 5


def _threads(seeds):
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_each_of_several_processes_has_one_thread():
    """Otherwise two processes of two threads take four times as long on two processors."""
    with threadpool_limits(2, user_api="blas"):
        found = list(_mapped(_threads, [(1,), (2,)], 2))
    assert {threads for each in found for threads in each} == {1}
