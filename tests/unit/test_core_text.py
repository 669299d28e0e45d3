"""Noise against chance: public numbers only, and the same as the tables of planning."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.core.text import NOISE, noise_line, noise_ratio
from privatest.noise import SimulatedNoise
from privatest.planning.tables import tabulated
from privatest.requests.results import result_from_dict

SIZES = {"n": 100, "m": 100}
HIDDEN = "Noise hides the estimate: the interval holds every possible value."


def test_it_falls_with_the_root_of_n_and_with_epsilon():
    one = noise_ratio("mannwhitneyu", SIZES, 1.0)
    assert one is not None
    assert one == pytest.approx(NOISE["mannwhitneyu"][0] / 10)
    assert noise_ratio("mannwhitneyu", SIZES, 0.1) == pytest.approx(10 * one)
    assert noise_ratio("mannwhitneyu", {"n": 400, "m": 400}, 1.0) == pytest.approx(one / 2)
    person = noise_ratio("mannwhitneyu", SIZES, 1.0, rows_per_person=3)
    assert person == pytest.approx(3 * one)
    assert noise_ratio("unheard_of", SIZES, 1.0) is None


def test_private_groups_are_halves_of_the_total():
    total = noise_ratio("mannwhitneyu", {"N": 200}, 1.0, private_groups=True)
    assert total == noise_ratio("mannwhitneyu", {"N": 201}, 1.0, private_groups=True)
    public = noise_ratio("mannwhitneyu", SIZES, 1.0)
    assert total is not None
    assert public is not None
    assert total > public


@pytest.mark.parametrize("reject", [True, False])
def test_a_result_says_it_whatever_it_found(reject, monkeypatch):
    rng = np.random.default_rng(0)
    result = pt.ks_2samp(
        rng.normal(size=50), rng.normal(3, 1, size=50), epsilon=0.05, noise=SimulatedNoise(1)
    )
    other = dataclasses.replace(result, reject=reject, pvalue=0.5, statistic=0.0)
    assert other.noise_note == result.noise_note
    assert str(result).endswith(result.noise_note)
    assert "only large differences can be seen" in result.noise_note
    assert "noise" not in "".join(result.to_dict())
    monkeypatch.setenv("PRIVATEST_QUIET", "1")
    assert result.noise_note == ""
    assert "sampling error" not in str(result)


def test_lines():
    assert "costs the test little power" in noise_line(0.1)
    assert "costs the test some power" in noise_line(1.0)
    assert "2.8 times the sampling error: only large" in noise_line(2.8)
    assert "if the bounds are 8 standard deviations apart" in noise_line(1.0, "ttest_ind")
    assert "bounds" not in noise_line(1.0, "mannwhitneyu")


@pytest.mark.parametrize("n", [200, 500, 1000])
@pytest.mark.parametrize("name", ["pearsonr", "linregress"])
def test_an_interval_that_says_nothing_is_not_said_to_cost_little(name, n):
    """The p-value has little noise and the interval much: each has a sentence of its own."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y = 0.3 * x + rng.normal(size=n)
    result = getattr(pt, name)(
        x, y, bounds_x=(-4, 4), bounds_y=(-4, 4), epsilon=1, rng=0, noise=SimulatedNoise(1)
    )
    low, high = result.confidence_interval()
    *_, about_interval = result.noise_note.split(". ")
    assert result.noise_note.startswith("For the p-value, ")
    limit = 1.0 if name == "pearsonr" else np.inf
    if (low, high) == (-limit, limit):
        assert (
            about_interval == "Noise hides the estimate: the interval holds every possible value."
        )
    else:
        sampling = result.confidence_interval().sampling
        times = (high - low) / sampling
        assert times > 2  # at these sizes and this epsilon the covariance is mostly noise
        assert result.interval_widening == pytest.approx(times)
        assert about_interval == f"Noise makes the interval {times:.2g} times as wide."


def interval_results():
    """A result of every test that shows an interval, with little noise and with much."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(size=300), rng.uniform(size=300)
    bits = [(side > 0.5).astype(int) for side in (x, y)]
    pairs: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (0, 1), "rng": 0}
    tables: dict[str, Any] = {"categories_x": [0, 1], "categories_y": [0, 1], "rng": 0}
    calls = {
        "binom_test": lambda more: pt.binom_test(bits[0], **more),
        "chi2_contingency": lambda more: pt.chi2_contingency(bits[0], bits[1], **tables, **more),
        "f_oneway": lambda more: pt.f_oneway(x, y, bounds=(0, 1), rng=0, **more),
        "hodges_lehmann": lambda more: pt.hodges_lehmann(x, y, bounds=(0, 1), **more),
        "kendalltau": lambda more: pt.kendalltau(x, y, **more),
        "linregress": lambda more: pt.linregress(x, y, **pairs, **more),
        "pearsonr": lambda more: pt.pearsonr(x, y, **pairs, **more),
        "proportions_test": lambda more: pt.proportions_test(*bits, rng=0, **more),
        "spearmanr": lambda more: pt.spearmanr(x, y, **more),
        "ttest_1samp": lambda more: pt.ttest_1samp(x, 0.5, bounds=(0, 1), rng=0, **more),
        "ttest_ind": lambda more: pt.ttest_ind(x, y, bounds=(0, 1), rng=0, **more),
        "ttest_ind, greater": lambda more: pt.ttest_ind(
            x, y, bounds=(0, 1), alternative="greater", rng=0, **more
        ),
    }
    return [pytest.param(call, id=name) for name, call in calls.items()]


@pytest.mark.parametrize("call", interval_results())
def test_every_interval_says_how_much_of_it_is_noise(call):
    """Little noise hardly widens it, much noise does; a document says the same."""
    quiet, loud = (call({"epsilon": e, "noise": SimulatedNoise(3)}) for e in (10_000, 0.1))
    assert quiet.noise_note.endswith("Noise hardly widens the interval.")
    assert loud.interval_widening is not None
    assert loud.interval_widening > 1.1
    assert "Noise h" in loud.noise_note or "Noise makes the interval" in loud.noise_note
    for result in (quiet, loud):
        read: Any = result_from_dict(json.loads(result.to_json()), result.spent)
        assert read.noise_note == result.noise_note
        if np.isfinite(result.interval_widening):
            assert read.interval_widening == pytest.approx(result.interval_widening)


def test_constants_are_those_of_the_tables():
    words = {
        "mann-whitney": "mannwhitneyu",
        "ks": "ks_2samp/ks",
        "kuiper": "ks_2samp/kuiper",
    }
    for place, membership in enumerate(("public", "private")):
        curves = tabulated("two-sample", "shift", 1, membership)
        for method, start in words.items():
            constant = NOISE[start][place]
            assert constant is not None
            assert 0.6 < curves[method].noise / constant < 1.6, (method, membership)
