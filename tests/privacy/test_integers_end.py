"""Absurd parameters: where integers end, nothing of the data comes out.

Noise of scale 1e19 does not fit 64 bits. If it saturates and a count is added to it, what comes
out is the count, up to the digits of a float.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import privatest as pt
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.data.encoding import encode_sample, encode_samples, rows_of_a_person
from privatest.data.schema import CategoricalColumn, NumericColumn
from privatest.mechanisms.additive import CountNoise, noisy_counts, with_noise
from privatest.mechanisms.lattice import noisy_cumulative, noisy_integer
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.numerics.laws import LatticeTulap
from privatest.numerics.order import tree_of

ABSURD = 10**400
SOURCES = pytest.mark.parametrize(
    "source", [SecureNoise(), SimulatedNoise(1)], ids=["secure", "simulated"]
)


class Saturated(SimulatedNoise):
    """Noise as 64 bits leave it: every draw at an end of the integers."""

    def discrete_laplaces(self, scale, size):
        ends = np.iinfo(np.int64)
        return np.where(np.arange(size) % 2, ends.min, ends.max)


@SOURCES
@pytest.mark.parametrize("scale", [2.0**57, 1e19, 1e30])
def test_noise_wider_than_integers_is_refused(source, scale):
    budget = Budget("1e-6")
    for draw in (
        lambda: source.discrete_laplace(scale),
        lambda: source.discrete_laplaces(scale, 3),
        lambda: noisy_integer(5, law=LatticeTulap(1, 1 / scale, blocks=10**13), noise=source),
        lambda: noisy_counts(
            np.array([1, 2]), law=CountNoise("laplace", scale), budget=budget, noise=source
        ),
        lambda: noisy_cumulative(
            np.array([1, 2]), tree_of(2), moved=int(scale), budget=budget, noise=source
        ),
    ):
        with pytest.raises(ParameterError, match=r"epsilon .* rows_per_person"):
            draw()


def test_a_saturated_draw_hides_the_count():
    """The break: count + 2^63 in 64 bits is the count itself, up to rounding."""
    law, budget = CountNoise("laplace", 1e15), Budget("1e-6")
    released = [
        noisy_counts(
            np.array([count, 200_000 - count]), law=law, budget=budget, noise=Saturated(0)
        ).tolist()
        for count in (0, 150_000)
    ]
    assert released[0] == released[1]
    trees = [
        noisy_cumulative(
            np.array([count, 200_000 - count]),
            tree_of(2),
            moved=1,
            budget=budget,
            noise=Saturated(0),
        ).tolist()
        for count in (0, 150_000)
    ]
    assert trees[0] == trees[1]


def test_what_comes_out_is_a_function_of_the_exact_sum():
    """cut(count + saturated draw) = cut(count + draw), for counts and draws at every edge."""
    powers = (2**power + off for power in (53, 60, 61, 62, 63, 64, 80) for off in (-1, 0, 1))
    edges = [0, *(sign * size for size in powers for sign in (1, -1))]
    counts = [c for c in edges if abs(c) <= 2**60]
    limits = np.iinfo(np.int64)
    for draw in edges:
        saturated = np.full(len(counts), min(max(draw, limits.min), limits.max))
        exact = [float(min(max(count + draw, -(2**61)), 2**61)) for count in counts]
        assert with_noise(np.array(counts), saturated).tolist() == exact


def test_large_draws_go_on(monkeypatch):
    """Beyond 2^62 a draw is drawn on: with the limit at 3, the law is still discrete Laplace."""
    monkeypatch.setattr("privatest.core.noise._DRAWN_ON", 3)
    decay = Fraction(1, 2)
    mass = {j: (1 - decay) / (1 + decay) * decay ** abs(j) for j in range(-60, 61)}
    # what lies beyond, on one side, spread as the second draw spreads it: exactly the law again
    beyond = decay**3 / (1 + decay)
    found = dict.fromkeys(range(3, 40), Fraction(0))
    for again, chance in mass.items():
        place = 3 + (again if again >= 0 else -again - 1)
        if place in found:
            found[place] += beyond * chance
    assert all(found[j] == mass[j] for j in found)
    # and drawn so: five or more in size has probability 1/24, false alarms are below 1e-8
    draws = np.array([SecureNoise().discrete_laplace(1 / math.log(2)) for _ in range(4_000)])
    share, expected = float(np.mean(np.abs(draws) >= 5)), float(2 * decay**5 / (1 + decay))
    assert abs(share - expected) < 6 * math.sqrt(expected / 4_000)


def test_a_person_has_no_more_rows_than_there_are():
    schema = pt.Schema.from_bounds({"x": (0, 1)}, rows_per_person=ABSURD)
    sample = encode_sample({"x": np.zeros(7)}, schema)
    assert rows_of_a_person(sample) == 7
    both = encode_samples({"x": np.zeros(2)}, {"x": np.zeros(5)}, schema)
    assert both.rows_per_person == rows_of_a_person(*both) == 7
    few = pt.Schema.from_bounds({"x": (0, 1)}, rows_per_person=3)
    both = encode_samples({"x": np.zeros(1)}, {"x": np.zeros(5)}, few)
    assert both.rows_per_person == 3  # of them two may lie in y


def _schema(name, rows, column=None):
    described = {name: NumericColumn(0, 1) if column is None else column}
    return pt.Schema(described, rows_per_person=rows)


def _calls():
    rng = np.random.default_rng(5)
    x, y, z = rng.uniform(size=(3, 60))
    f = (x > 0.5).astype(int)

    def one(rows):
        return {"bounds": _schema("x", rows)}

    def two(rows):
        return {"bounds_x": _schema("x", rows), "bounds_y": _schema("y", rows)}

    def codes(name, rows):
        return _schema(name, rows, CategoricalColumn((0, 1)))

    X, Y, Z = {"x": x}, {"x": y}, {"x": z}
    return {
        "private_quantile": lambda r, o: pt.private_quantile(X, **one(r), **o),
        "hodges_lehmann": lambda r, o: pt.hodges_lehmann(X, Y, **one(r), **o),
        "binom_test": lambda r, o: pt.binom_test({"x": f}, bounds=codes("x", r), **o),
        "proportions_test": lambda r, o: pt.proportions_test(
            {"x": f[:20]}, {"x": f[20:]}, bounds=codes("x", r), rng=1, **o
        ),
        "proportions_test/row": lambda r, o: pt.proportions_test(
            {"x": f[:20]}, {"x": f[20:]}, bounds=codes("x", r), adjacency="row", rng=1, **o
        ),
        "chisquare": lambda r, o: pt.chisquare({"x": f}, bounds=codes("x", r), rng=1, **o),
        "chi2_contingency": lambda r, o: pt.chi2_contingency(
            {"x": f}, {"y": f[::-1]}, bounds_x=codes("x", r), bounds_y=codes("y", r), rng=1, **o
        ),
        "ks_1samp": lambda r, o: pt.ks_1samp(X, "uniform", **one(r), mechanism="laplace", **o),
        "ks_2samp": lambda r, o: pt.ks_2samp(X, Y, **one(r), mechanism="laplace", **o),
        "mannwhitneyu": lambda r, o: pt.mannwhitneyu(X, Y, **one(r), **o),
        "kruskal": lambda r, o: pt.kruskal(X, Y, Z, **one(r), rng=1, **o),
        "sign_test": lambda r, o: pt.sign_test(X, **one(r), **o),
        "wilcoxon": lambda r, o: pt.wilcoxon(X, **one(r), **o),
        "kendalltau": lambda r, o: pt.kendalltau(X, {"y": y}, **two(r), **o),
        "pearsonr": lambda r, o: pt.pearsonr(X, {"y": y}, **two(r), rng=1, **o),
        "ttest_1samp": lambda r, o: pt.ttest_1samp(X, 0.5, **one(r), rng=1, **o),
        "private_mean": lambda r, o: pt.private_mean(X, **one(r), rng=1, **o),
        "mmd_test": lambda r, o: pt.mmd_test(X, Y, **one(r), rng=1, **o),
        "hsic_test": lambda r, o: pt.hsic_test(X, {"y": y}, **two(r), rng=1, **o),
    }


@pytest.mark.parametrize("name", _calls())
def test_absurd_rows_per_person_are_all_rows(name):
    """As many rows of a person as one likes: the answer is that for all rows being one person's."""
    call = _calls()[name]
    absurd, all_rows = (
        call(rows, {"epsilon": 5, "noise": SimulatedNoise(3)}).to_dict()
        for rows in (ABSURD, 1 << 20)
    )
    for found in (absurd, all_rows):
        found.pop("unit", None)  # what was declared, in words and as a number
        found.pop("rows_per_person", None)
    assert absurd == all_rows


@pytest.mark.parametrize("name", _calls())
def test_the_least_epsilon_answers(name):
    """Secret noise, and more rows of a person than 64 bits could hide at the least epsilon."""
    assert not _calls()[name](10**13, {"epsilon": "1e-6"}).simulated


def test_of_a_quantile_nothing_is_left():
    """The case that was found: 150,000 of 200,000 rows below 1/2, in one of three runs."""
    x = np.repeat([0.25, 0.75], [150_000, 50_000])
    schema = pt.Schema.from_bounds({"x": (0, 1)}, rows_per_person=10**13)
    for _ in range(5):
        found = pt.private_quantile({"x": x}, bounds=schema, epsilon="1e-6", cells=2)
        assert found.curve is not None
        counts = found.curve.counts
        # noise of scale 4e11: within 512 of the truth with probability 3e-9
        assert abs(counts[1] - 150_000) > 1024
