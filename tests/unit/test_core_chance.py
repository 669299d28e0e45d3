"""Noise against chance: public numbers only, and the same as the tables of planning."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import privatest as pt
from privatest.core.chance import NOISE, noise_line, noise_ratio
from privatest.noise import SimulatedNoise
from privatest.planning.tables import tabulated

SIZES = {"n": 100, "m": 100}


def test_it_falls_with_the_root_of_n_and_with_epsilon():
    one = noise_ratio("Mann–Whitney U test", SIZES, 1.0)
    assert one is not None
    assert one == pytest.approx(NOISE["Mann–Whitney"][0] / 10)
    assert noise_ratio("Mann–Whitney U test", SIZES, 0.1) == pytest.approx(10 * one)
    assert noise_ratio("Mann–Whitney U test", {"n": 400, "m": 400}, 1.0) == pytest.approx(one / 2)
    person = noise_ratio("Mann–Whitney U test", SIZES, 1.0, unit="person with at most 3 rows")
    assert person == pytest.approx(3 * one)
    assert noise_ratio("a test of one's own", SIZES, 1.0) is None


def test_private_groups_are_halves_of_the_total():
    total = noise_ratio("Mann–Whitney U test", {"N": 200}, 1.0, private_groups=True)
    assert total == noise_ratio("Mann–Whitney U test", {"N": 201}, 1.0, private_groups=True)
    public = noise_ratio("Mann–Whitney U test", SIZES, 1.0)
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
    assert "privacy costs little" in noise_line(0.1)
    assert "both decide" in noise_line(1.0)
    assert "2.8 times sampling error: only large" in noise_line(2.8)


def test_constants_are_those_of_the_tables():
    words = {
        "mann-whitney": "Mann–Whitney",
        "ks": "two-sample Kolmogorov",
        "kuiper": "two-sample Kuiper",
    }
    for place, membership in enumerate(("public", "private")):
        curves = tabulated("two-sample", "shift", 1, membership)
        for method, start in words.items():
            constant = NOISE[start][place]
            assert constant is not None
            assert 0.6 < curves[method].noise / constant < 1.6, (method, membership)
