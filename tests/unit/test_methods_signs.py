"""Tests of paired data and rank tests of samples, from data to result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import secret_coins
from privatest.core.results import Outcome
from privatest.data.schema import Schema
from privatest.methods.ranks import kruskal, mannwhitneyu, median_test
from privatest.methods.signs import _difference_rows as read_pairs
from privatest.methods.signs import sign_test, symmetry_test, wilcoxon
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import ALTERNATIVES, mann_whitney_law, sign_law, wilcoxon_law
from privatest.numerics.order import mann_whitney, signed_rank, signed_rank_width

SURE: dict[str, Any] = {"epsilon": 1e6}  # so little noise that results are the plain ones
PAIRED: list[Callable[..., Outcome]] = [
    lambda z, **o: symmetry_test(z, statistic="ks", **o),
    lambda z, **o: symmetry_test(z, statistic="kuiper", **o),
    sign_test,
    wilcoxon,
]
TWO_SAMPLES: list[Callable[..., Outcome]] = [mannwhitneyu, median_test, kruskal]


def normal(seed, size, shift=0.0):
    return np.random.default_rng(seed).normal(shift, 1, size=size)


# --- without noise: the classical tests -----------------------------------------------------


def test_symmetry_statistic():
    z = normal(1, 50, 0.3)
    walk = [(z >= t).mean() - (z <= -t).mean() for t in np.abs(z)]
    assert symmetry_test(z, **SURE).statistic == pytest.approx(np.abs(walk).max(), abs=0.0201)


def exact_tail(law, value, alternative):
    """P(T >= value) for T, -T or |T|, without noise."""
    values = {"greater": law.values, "less": -law.values, "two-sided": np.abs(law.values)}
    return law.masses[values[alternative] >= value - 1e-9].sum()


def check_sides(result, law, signed, width, scale, offset):
    """Nearly uniform noise on (-width/2, width/2): the p-value lies between two exact ones."""
    side = result.parameters["alternative"]
    value = {"greater": signed, "less": -signed, "two-sided": abs(signed)}[side]
    low, high = exact_tail(law, value + width, side), exact_tail(law, value - width, side)
    assert low - 1e-9 <= result.pvalue <= high + 1e-9
    shown = (offset - abs(signed) if side == "two-sided" else signed + offset) / scale
    assert abs(result.statistic - shown) <= (width / 2 + 0.5) / scale


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_sign_is_the_binomial_test(alternative):
    z = normal(2, 40, 0.2)
    count, law = int((z > 0).sum()), sign_law(40)
    check_sides(sign_test(z, alternative=alternative, **SURE), law, 2 * count - 40, 2, 2, 40)
    assert exact_tail(law, 2 * count - 40, "greater") == pytest.approx(
        stats.binomtest(count, 40, alternative="greater").pvalue, abs=1e-12
    )


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_sides(alternative):
    z = normal(3, 60, 0.25)
    signed, law = signed_rank(z), wilcoxon_law(60)
    result = wilcoxon(z, alternative=alternative, **SURE)
    check_sides(result, law, signed, signed_rank_width(60), 4, 60 * 61)
    if alternative != "two-sided":  # to noise of nearly nothing it is the number SciPy shows
        expected = stats.wilcoxon(z, alternative=alternative).statistic
        assert abs(result.statistic - expected) <= signed_rank_width(60) / 8 + 1
    assert exact_tail(law, signed, "greater") == pytest.approx(
        stats.wilcoxon(z, alternative="greater", method="exact").pvalue, abs=1e-12
    )


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_mann_whitney_sides(alternative):
    x, y = normal(4, 60, 0.3), normal(5, 40)
    signed, law = mann_whitney(x, y), mann_whitney_law(60, 40)
    result = mannwhitneyu(x, y, alternative=alternative, **SURE)
    check_sides(result, law, signed, 120, 2, 2400)
    assert exact_tail(law, signed, "greater") == pytest.approx(
        stats.mannwhitneyu(x, y, alternative="greater", method="exact").pvalue, abs=1e-12
    )


def test_kruskal_of_two_groups():
    x, y = normal(4, 60, 0.5), normal(5, 40)
    result = kruskal(x, y, noise=SimulatedNoise(1), **SURE)
    law, signed = mann_whitney_law(60, 40), abs(mann_whitney(x, y))
    assert exact_tail(law, signed + 120, "two-sided") <= result.pvalue
    assert result.pvalue <= exact_tail(law, signed - 120, "two-sided") + 1e-9
    assert result.statistic == pytest.approx(stats.kruskal(x, y).statistic, rel=1e-6)


def test_kruskal_of_three_groups():
    samples = normal(4, 60, 0.5), normal(5, 40), normal(6, 20)
    result = kruskal(*samples, noise=SimulatedNoise(1), rng=0, **SURE)
    ranks, factor = stats.rankdata(np.concatenate(samples)), 4 * 119 / 120**2
    places = np.split(ranks, [60, 100])
    plain = factor * sum(len(each) * abs(each.mean() - 60.5) for each in places)
    assert result.statistic == pytest.approx(plain, rel=1e-6)


def test_median_statistic():
    x, y = normal(6, 50, 1.0), normal(7, 51)
    top = np.sort(np.concatenate([x, y]))[50:]
    result = median_test(x, y, alternative="greater", **SURE)
    assert result.statistic == pytest.approx(np.isin(x, top).sum(), abs=0.51)
    assert result.reject
    assert not median_test(x, y, alternative="less", **SURE).reject


# --- what comes back ------------------------------------------------------------------------


@pytest.mark.parametrize("test", PAIRED)
def test_paired_result(test):
    result = test(normal(1, 30), epsilon="0.5", delta="1e-6", noise=SimulatedNoise(0))
    assert isinstance(result, Outcome)
    assert result.sizes == {"n": 30}
    assert result.adjacency == "one"
    assert result.reject == (result.pvalue <= 0.05)
    assert 0 < result.pvalue <= 1
    assert result.simulated
    assert math.isfinite(result.statistic or math.nan)
    assert "number of rows is public" in test(normal(1, 30), epsilon=1).guarantee


@pytest.mark.parametrize("test", TWO_SAMPLES)
@pytest.mark.parametrize("adjacency", ["one", "both"])
def test_two_sample_result(test, adjacency):
    result = test(normal(1, 30), normal(2, 20), epsilon=1, adjacency=adjacency)
    assert result.sizes == {"n": 30, "m": 20}
    assert result.adjacency == adjacency
    assert not result.simulated


def test_three_groups():
    groups = [normal(seed, 40 + seed) for seed in range(3)]
    result = kruskal(*groups, epsilon=1, rng=1, n_resamples=99, noise=SimulatedNoise(2))
    assert result.sizes == {"n1": 40, "n2": 41, "n3": 42}
    assert result.parameters["n_resamples"] == 99
    assert result.pvalue >= 1 / 100
    assert (
        result.pvalue
        == kruskal(*groups, epsilon=1, rng=1, n_resamples=99, noise=SimulatedNoise(2)).pvalue
    )
    groups[0] += 2
    assert kruskal(*groups, epsilon=10, rng=1).reject
    assert "n_resamples" in kruskal(*groups, epsilon=1, rng=1, adjacency="both").parameters


@pytest.mark.parametrize("side", [*ALTERNATIVES, None])
@pytest.mark.parametrize("test", [symmetry_test, sign_test, wilcoxon])
def test_pairs_are_x_minus_y(test, side):
    if (test is symmetry_test) != (side is None):
        return
    options = {} if side is None else {"alternative": side}
    x, y = normal(1, 300), normal(2, 300, 0.2)
    pairs = test(x, y, epsilon=1, noise=SimulatedNoise(3), **options)
    assert pairs == test(x - y, epsilon=1, noise=SimulatedNoise(3), **options)


# --- two columns, two bounds ----------------------------------------------------------------

WIDTHS = [((0, 9), (0, 12)), ((0, 77), (-1e3, 1e5)), ((-1, 9.7), (-1 / 3, 1e-300 + 1e12))]


def pairs_of(x, y, low_high_x, low_high_y, **tables):
    schema = Schema.from_bounds({"x": low_high_x, "y": low_high_y}, **tables)
    return read_pairs(x, y, schema).values


@pytest.mark.parametrize("test", [symmetry_test, sign_test, wilcoxon])
def test_nobody_changed(test):
    """Issue 12: 50 of 50 rejected. A level of .05: more than 9 is a false alarm of 1e-4."""
    schema = Schema.from_bounds({"before": (0, 9), "after": (0, 12)})
    rejected = 0
    for seed in range(50):
        values = np.random.default_rng(seed).integers(0, 9, 200) + 2 / 3
        noise = SimulatedNoise(seed)
        rejected += test(values, values, bounds=schema, epsilon=1, noise=noise).reject
    assert rejected <= 9


@given(
    values=st.lists(st.floats(0, 9), min_size=2, max_size=40),
    widths=st.sampled_from(WIDTHS),
)
def test_equal_values_differ_by_nothing(values, widths):
    x = np.array(values)
    assert not pairs_of(x, x, *widths).any()
    assert not pairs_of(x.astype(np.float32), x.astype(np.float32), *widths).any()


@given(
    values=st.lists(st.tuples(st.floats(), st.floats()), min_size=2, max_size=40),
    widths=st.sampled_from(WIDTHS),
)
def test_differences_are_antisymmetric_and_in_order(values, widths):
    x, y = np.nan_to_num(np.array(values).T, posinf=1.7e308, neginf=-1.7e308)
    forth = pairs_of(x, y, *widths)
    back = pairs_of(y, x, *widths[::-1])
    assert np.array_equal(forth, -back)
    clipped = np.clip(x, *widths[0]) - np.clip(y, *widths[1])
    assert np.array_equal(forth, clipped)


def test_tables_and_arrays_are_read_alike():
    x, y = np.arange(50.0) / 7, np.arange(50.0)[::-1] / 3
    plain = pairs_of(x, y, (0, 9), (0, 12))
    for make in (pa.table, pd.DataFrame, pl.DataFrame):
        table = make({"y": y, "x": x})
        one, other = table[["x"]] if make is pd.DataFrame else table.select(["x"]), table["y"]
        assert np.array_equal(pairs_of(one, other, (0, 9), (0, 12)), plain)


def test_bounds_of_pairs_go_by_name():
    """A series brings its name: here y is described first."""
    frame = pd.DataFrame({"before": [1.0, 20.0], "after": [15.0, 3.0]})
    bounds = {"before": (0, 5), "after": (0, 10)}
    for description in (bounds, Schema.from_bounds(bounds)):
        found = read_pairs(frame["after"], frame["before"], description).values
        assert found.tolist() == [9.0, -2.0]
        found = read_pairs(frame[["after"]], frame[["before"]], description).values
        assert found.tolist() == [9.0, -2.0]
    assert read_pairs(frame["after"], None, {"after": (0, 10)}).values.tolist() == [10, 3]
    with pytest.raises(ParameterError, match="names of x and y"):
        read_pairs(frame["after"].to_numpy(), frame["before"].to_numpy(), bounds)
    with pytest.raises(ParameterError, match="not for plain arrays"):
        read_pairs(frame["after"].to_numpy(), None, {"after": (0, 10)})


def test_units_are_those_of_the_data():
    """Bounds that differ between the columns do not change what a difference is."""
    before = np.arange(0.0, 50.0)
    after = before.copy()  # all differences are 0
    schema = Schema.from_bounds({"before": (0, 77), "after": (0, 1000)}, rows_per_person=3)
    frame = pa.table({"before": before, "after": after})
    sides = frame.select(["before"]), frame.select(["after"])
    result = symmetry_test(*sides, bounds=schema, noise=SimulatedNoise(1), **SURE)
    assert result.unit == "person with at most 3 rows"
    schema = Schema.from_bounds({"z": (-9, 9)}, rows_per_person=3)
    zeros = symmetry_test(np.zeros(50), bounds=schema, noise=SimulatedNoise(1), **SURE)
    assert result.statistic == zeros.statistic


def test_rows_per_person_multiply_the_noise():
    def spread(rows):
        schema = Schema.from_bounds({"v": (-9, 9)}, rows_per_person=rows)
        x, y = normal(1, 100), normal(2, 100)
        given: dict[str, Any] = {"bounds": schema, "epsilon": 1, "alternative": "greater"}
        return np.std(
            [
                mannwhitneyu(x, y, noise=SimulatedNoise(seed), **given).statistic or math.nan
                for seed in range(300)
            ]
        )

    assert spread(10) / spread(1) == pytest.approx(10, rel=0.25)


@pytest.mark.parametrize("constant", [0.0, 5.0, -1e300])
def test_constant_columns_work(constant):
    data = np.full(30, constant)
    for test in PAIRED:
        assert 0 < test(data, epsilon=1).pvalue <= 1
    for test in TWO_SAMPLES:
        assert 0 < test(data, data, epsilon=1).pvalue <= 1
    assert 0 < wilcoxon(np.full(9, -1.7e308), np.full(9, 1.7e308), epsilon=1).pvalue <= 1


def test_coins_are_fair_and_apart():
    tosses = np.array([secret_coins(SimulatedNoise(seed), 4) for seed in range(4000)])
    assert np.abs(tosses.mean(axis=0) - 0.5).max() < 0.035  # 4.4 s.e.
    assert np.abs(np.corrcoef(tosses.T) - np.eye(4)).max() < 0.07


# --- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize("test", PAIRED)
def test_bad_pairs(test):
    with pytest.raises(DataError, match="missing"):
        test(np.array([1.0, np.nan, 2.0]), epsilon=1)
    with pytest.raises(DataError, match="at least 2 pairs"):
        test(np.array([1.0]), epsilon=1)
    with pytest.raises(DataError, match="one numeric column"):
        test(np.ones((4, 2)), epsilon=1)
    with pytest.raises(ParameterError, match="epsilon"):
        test(np.ones(4), epsilon=0)
    with pytest.raises(ParameterError, match="alpha"):
        test(np.ones(4), epsilon=1, alpha=1.0)


def test_unequal_pairs():
    for test in (symmetry_test, sign_test, wilcoxon):
        with pytest.raises(DataError, match="same number of rows"):
            test(np.ones(4), np.ones(5), epsilon=1)


@pytest.mark.parametrize("test", TWO_SAMPLES)
def test_bad_samples(test):
    x, y = np.ones(5), np.ones(4)
    if test is not mannwhitneyu:  # it permutes labels then
        with pytest.raises(ParameterError, match="group sizes"):
            test(x, y, epsilon=1, adjacency="row")
    with pytest.raises(ParameterError, match="adjacency"):
        test(x, y, epsilon=1, adjacency="some")
    with pytest.raises(DataError, match="one numeric column"):
        test(np.ones((4, 2)), np.ones((4, 2)), epsilon=1)
    with pytest.raises(DataError, match="at least 2 rows"):
        test(x, y[:1], epsilon=1)
    with pytest.raises(DataError, match="missing"):
        test(x, np.array([1.0, np.nan]), epsilon=1)


def test_bad_choices():
    with pytest.raises(ParameterError, match="statistic"):
        symmetry_test(np.ones(4), epsilon=1, statistic="median")  # type: ignore[arg-type]
    for test in (sign_test, wilcoxon):
        with pytest.raises(ParameterError, match="alternative"):
            test(np.ones(4), epsilon=1, alternative="more")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="two samples"):
        kruskal(np.ones(4), epsilon=1)
    with pytest.raises(ParameterError, match="n_resamples"):
        kruskal(np.ones(4), np.ones(4), epsilon=1, n_resamples=0)


# --- level ----------------------------------------------------------------------------------

RUNS = 250


def ordered(rng, size):
    return rng.normal(size=size)


def tied(rng, size):
    return rng.integers(-1, 2, size=size).astype(float)


@pytest.mark.statistical
@pytest.mark.parametrize("draw", [ordered, tied])
@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("test", [*PAIRED, *TWO_SAMPLES])
def test_level(test, n, epsilon, draw):
    """P(p <= a) <= a: 252 exact binomial checks of 1.3e-5 each, false alarm below 1 percent.

    The seed is fixed.
    """
    rng = np.random.default_rng([n, int(10 * epsilon)])
    pvalues = []
    for seed in range(RUNS):
        samples = [draw(rng, n)] if test in PAIRED else [draw(rng, n), draw(rng, n // 2)]
        noise = SimulatedNoise(np.random.SeedSequence([seed, n]))
        pvalues.append(test(*samples, epsilon=epsilon, noise=noise).pvalue)
    for a in (0.01, 0.05, 0.1):
        assert np.sum(np.array(pvalues) <= a) <= stats.binom.isf(1.3e-5, RUNS, a)
