"""Tests of proportions: exact laws, reading of outcomes, results."""

from __future__ import annotations

import pickle
import time
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.core.privacy import Budget
from privatest.mechanisms.additive import CountNoise
from privatest.methods.proportions import (
    NO_NOISE,
    PrivateShares,
    PublicShares,
    SumOfTwo,
    _read,
    difference_ends,
    noisy_tail,
    open_interval,
    ratio_ends,
    share_interval,
)
from privatest.methods.proportions import _release_shares as _release
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import LatticeTulap, binomial_masses, lattice_tulap

LAWS = [LatticeTulap(1, 1.0), LatticeTulap(3, 0.1), lattice_tulap(2, Budget(1, "1e-2")), NO_NOISE]
MANY: dict[str, Any] = {"epsilon": 200, "noise": SimulatedNoise(0)}  # hardly any noise


@pytest.mark.parametrize("law", LAWS)
def test_quantiles_invert_the_law(law):
    shares = np.linspace(1e-6, 1 - 1e-6, 501)
    assert np.allclose(1 - law.survival(law.quantile(shares)), shares, atol=1e-12)


@pytest.mark.parametrize(("n", "p"), [(7, 0.0), (7, 1.0), (30, 0.2), (10**6, 0.3), (10**8, 0.5)])
def test_binomial_masses(n, p):
    counts, masses = binomial_masses(n, p)
    assert np.allclose(np.cumsum(masses), stats.binom.cdf(counts, n, p), atol=1e-12 * len(counts))


def test_tail_is_that_of_a_sum():
    law, rng = LatticeTulap(1, 0.7), np.random.default_rng(0)
    drawn = rng.binomial(20, 0.3, size=200_000) + law.quantile(rng.uniform(size=200_000))
    # five standard errors: a false alarm in 1e-6 of seeds
    assert noisy_tail(20, 0.3, 8.4, law) == pytest.approx(np.mean(drawn >= 8.4), abs=0.0055)


@pytest.mark.parametrize("noisy", [-2.0, 0.3, 7.9, 20.4, 29.7, 40.0])
@pytest.mark.parametrize("law", LAWS)
def test_interval_ends_have_their_tails(noisy, law):
    low, high = share_interval(30, noisy, law, 0.03, 0.02)
    assert 0 <= low <= high <= 1
    if 0 < low < 1:
        assert noisy_tail(30, low, noisy, law) == pytest.approx(0.03, abs=1e-9)
    if 0 < high < 1:
        assert noisy_tail(30, high, noisy, law) == pytest.approx(0.98, abs=1e-9)
    below, above = open_interval(30, noisy, law, 0.02)
    assert below < above


def test_open_ends_go_beyond():
    low, high = open_interval(5, 2.0, LatticeTulap(1, 0.1), 0.025)
    assert low < 0
    assert high > 1


def test_without_noise_the_interval_lies_within_clopper_and_pearson():
    low, high = share_interval(80, 30.0, NO_NOISE, 0.025, 0.025)
    exact = stats.binomtest(30, 80).proportion_ci()
    assert exact.low < low < 30 / 80 < high < exact.high


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_binom_test_is_scipys_with_tiny_noise(alternative):
    x = np.repeat([1, 0], [30, 50])
    found = pt.binom_test(x, 0.45, alternative=alternative, **MANY)
    exact, mid = (stats.binomtest(30, 80, 0.45, alternative=alternative).pvalue for _ in "ab")
    mid -= stats.binom.pmf(30, 80, 0.45)
    if alternative != "two-sided":
        assert mid <= found.pvalue <= exact
    assert found.statistic == pytest.approx(30, abs=0.5)
    assert found.estimates["lower"] < 30 / 80 < found.estimates["upper"]


def test_one_sided_intervals_end_at_0_and_1():
    x = np.repeat([True, False], [30, 50])
    assert pt.binom_test(x, epsilon=1, alternative="less").confidence_interval().low == 0
    assert pt.binom_test(x, epsilon=1, alternative="greater").confidence_interval(0.9).high == 1
    found = pt.proportions_test(x, x, epsilon=1, alternative="greater", rng=0)
    assert found.confidence_interval().high == 1
    assert found.estimates["ratio_upper"] is None
    found = pt.proportions_test(x, x, epsilon=1, alternative="less", rng=0)
    assert found.estimates["ratio_lower"] == 0


def test_words_of_shares():
    x = np.repeat([True, False], [30, 50])
    shown = str(pt.private_share(x, epsilon=1, alpha=0.025))
    assert shown.startswith("Private share of 80 rows, with its 97.5% interval:")
    assert "\n    group 3: " in str(pt.proportions_test(x, x, x, epsilon=1, n_simulations=99))
    frame = {"won": x.astype(int), "plan": ["a", "b"] * 40}
    named: dict[str, Any] = {"group": "plan", "groups": ["b", "a"], "columns": "won"}
    found = pt.proportions_test(frame, **named, epsilon=1, adjacency="one", n_simulations=99)
    assert "private proportions, b and a (95% intervals)" in str(found)


def test_equivalence_shows_the_interval_that_decides():
    x = np.repeat([True, False], [300, 500])
    found = pt.tost_proportions(x, x, -0.03, 0.03, epsilon=5, noise=SimulatedNoise(0))
    low, high = found.confidence_interval(0.9)
    assert (found.estimates["lower"], found.estimates["upper"]) == (low, high)
    assert found.reject == (-0.03 < low < high < 0.03)
    assert "90% intervals" in str(found)
    with pytest.raises(pt.ParameterError, match=r"alpha must be .* below 0.5"):
        pt.tost_proportions(x, x, -0.1, 0.1, epsilon=1, alpha=0.5)


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ([1, 0, 1, 1, 0], {}),
        ([True, False, True, True, False], {}),
        (["yes", "no", "yes", "yes", "maybe"], {"success": "yes"}),
        ([3.0, 2.0, 3.0, 3.0, 1.0], {"success": 3}),
        ([3, 2, 3, 3, 1], {"success": "3", "bounds": (0, 5)}),
        ([9, 0, 7, 1, -3], {"bounds": (0, 1)}),
    ],
)
def test_what_a_success_is(data, options):
    assert pt.binom_test(data, **MANY, **options).statistic == pytest.approx(3, abs=0.5)


def test_successes_of_a_schema():
    text = '[columns.plan]\ntype = "categorical"\ncategories = ["no", "yes"]\nmissing = "no"\n'
    schema = pt.Schema.from_text("rows_per_person = 2\n" + text)
    frame = {"plan": ["yes", None, "no", "yes"]}
    found = pt.binom_test(frame, success="yes", bounds=schema, **MANY)
    assert found.unit == "person with at most 2 rows"
    assert found.statistic == pytest.approx(2, abs=1)
    with pytest.raises(pt.ParameterError, match="which category is a success"):
        pt.binom_test(frame, bounds=schema, epsilon=1)
    with pytest.raises(pt.ParameterError, match="one of the declared categories"):
        pt.binom_test(frame, bounds=schema, success="perhaps", epsilon=1)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([0, 1, 2], {}, "0 and 1"),
        (["a", "b"], {}, "real numbers"),
        ([], {}, "at least 1 row"),
        ([[0, 1], [1, 0]], {}, "one column"),
        ([[0, 1], [1, 0]], {"success": 1}, "one column"),
        ([1.0, np.nan], {"success": 1}, "missing"),
    ],
)
def test_refused_data(data, options, message):
    with pytest.raises(pt.DataError, match=message):
        pt.binom_test(data, epsilon=1, **options)


def test_refused_parameters():
    x = [0, 1, 1]
    for p in (-0.1, 1.1):
        with pytest.raises(pt.ParameterError, match=r"^p must"):
            pt.binom_test(x, p, epsilon=1)
    with pytest.raises(pt.ParameterError, match="success must be a number"):
        pt.binom_test(x, success="yes", bounds=(0, 1), epsilon=1)
    with pytest.raises(pt.ParameterError, match="success must be a category"):
        pt.binom_test(x, success=cast(Any, [1]), epsilon=1)
    with pytest.raises(pt.ParameterError, match="two groups or more"):
        pt.proportions_test(x, epsilon=1)
    with pytest.raises(pt.ParameterError, match="more than two groups"):
        pt.proportions_test(x, x, x, alternative="less", epsilon=1)
    with pytest.raises(pt.ParameterError, match="is for two groups"):
        pt.proportions_test(x, x, x, adjacency="row", epsilon=1)
    with pytest.raises(pt.DataError, match="4 rows together"):
        pt.proportions_test(x, [], adjacency="row", epsilon=1)
    with pytest.raises(pt.DataError, match="at least 1 row"):
        pt.proportions_test(x, [], epsilon=1)
    with pytest.raises(pt.ParameterError, match="low and high"):
        pt.tost_proportions(x, x, 0.1, -0.1, epsilon=1)


@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
def test_two_groups_agree_with_the_classical_test(adjacency):
    x, y = np.repeat([1, 0], [130, 870]), np.repeat([1, 0], [100, 900])
    found = pt.proportions_test(x, y, adjacency=adjacency, rng=0, **MANY)
    pooled = 230 / 2000
    z = 0.03 / np.sqrt(pooled * (1 - pooled) * 2 / 1000)
    assert found.statistic == pytest.approx(z, abs=0.05)
    assert found.pvalue == pytest.approx(2 * stats.norm.sf(z), abs=0.008)
    assert found.estimates["difference"] == pytest.approx(0.03, abs=0.002)
    assert found.estimates["ratio"] == pytest.approx(1.3, abs=0.03)
    assert found.estimates["lower"] == pytest.approx(0.03 - 1.96 * 0.01428, abs=0.003)
    assert found.estimates["upper"] == pytest.approx(0.03 + 1.96 * 0.01428, abs=0.003)
    again = pickle.loads(pickle.dumps(found))
    assert again.confidence_interval(0.8).low == found.confidence_interval(0.8).low


def test_private_groups_may_be_empty():
    found = pt.proportions_test([0, 1] * 10, [], adjacency="row", epsilon=1, rng=0)
    assert found.sizes == {"N": 20}
    assert -1 <= found.estimates["lower"] <= found.estimates["upper"] <= 1


def test_several_groups():
    same = [np.repeat([1, 0], [20, 80])] * 3
    assert pt.proportions_test(*same, rng=0, **MANY).pvalue > 0.5
    other = [*same, np.repeat([1, 0], [80, 20])]
    found = pt.proportions_test(*other, rng=0, **MANY)
    assert found.reject
    assert found.estimates["proportions"].shape == (4,)
    assert np.shape(found.confidence_interval().low) == (4,)


def test_order_of_the_shares_decides_where_no_common_share_fits():
    shares = PublicShares((100.0, 900.0), (1000, 1000), LatticeTulap(1, 1.0))
    rng = np.random.default_rng(0)
    assert shares.pvalue("greater", 99, rng) == 1
    assert shares.pvalue("less", 99, rng) == shares.pvalue("two-sided", 99, rng) == 0.01


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("sizes", [(3, 3), (2, 30), (12, 5)])
def test_statistic_is_monotone(sizes, epsilon):
    """One-sided tests need it: shares in the order of the hypothesis are no worse than equal."""
    shares = PublicShares((0.0, 0.0), sizes, LatticeTulap(1, epsilon))
    axes = [np.linspace(-8, n + 8, 161) for n in sizes]
    values = shares.statistic(np.stack(np.meshgrid(*axes, indexing="ij"), axis=0))
    assert np.diff(values, axis=0).min() >= -1e-12
    assert np.diff(values, axis=1).max() <= 1e-12


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_of_a_margin(kind):
    cell, rng = CountNoise(kind, 2.2), np.random.default_rng(1)
    drawn = cell.draws((2, 200_000), rng).sum(axis=0)
    for x in (-6, -1.5, 0, 1, 2, 7.5):
        assert float(SumOfTwo(cell).survival(x)) == pytest.approx(np.mean(drawn >= x), abs=0.0055)


def test_shares_of_a_group_that_may_be_empty_are_unknown():
    shares = PrivateShares((1.0, -2.0, 30.0, 60.0), 100, CountNoise("laplace", 2.0))
    _, low, high = shares.ends(0.025)
    assert (low[0], high[0]) == (-np.inf, np.inf)
    assert difference_ends(shares.ends(0.025)) == (-1, 1)
    assert 0.2 < low[1] < 1 / 3 < high[1] < 0.5


def test_ratio_ends_are_where_the_difference_ends_at_0():
    middle, low, high = (np.array(pair) for pair in ([0.3, 0.2], [0.25, 0.16], [0.36, 0.25]))
    for ratio, end in zip(ratio_ends((middle, low, high)), (0, 1), strict=True):
        scale = np.array([1, ratio])
        ends = difference_ends((middle * scale, low * scale, high * scale))
        assert ends[end] == pytest.approx(0, abs=1e-12)
    nothing = np.array([0.3, 0.0]), np.array([0.2, 0.0]), np.array([0.4, 0.1])
    lower, upper = ratio_ends(nothing)
    assert lower >= 0
    assert upper is None


def test_equivalence_is_the_interval_of_twice_alpha():
    x, y = np.repeat([1, 0], [500, 1500]), np.repeat([1, 0], [480, 1520])
    found = pt.tost_proportions(x, y, -0.05, 0.05, **MANY)
    low, high = found.confidence_interval(1 - 2 * found.pvalue)
    assert min(abs(low + 0.05), abs(high - 0.05)) == pytest.approx(0, abs=1e-4)
    assert not pt.tost_proportions(x, y, -0.05, 0.012, **MANY).reject
    assert pt.tost_proportions(x, y, -0.05, 0.0, **MANY).pvalue == 1
    private = pt.tost_proportions(x, y, -0.05, 0.05, adjacency="row", **MANY)
    assert private.reject


def test_private_share():
    found = pt.private_share(np.repeat([1, 0], [30, 70]), **MANY)
    assert found.mean[0] == pytest.approx(0.3, abs=0.01)
    assert found.lower[0] < 0.3 < found.upper[0]
    assert "0.3" in str(found)


def test_a_million_rows_take_less_than_a_second():
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(size=500_000) < 0.3 for _ in range(2))
    pt.proportions_test(x[:10], y[:10], epsilon=1)  # imports
    start = time.process_time()
    pt.proportions_test(x, y, epsilon=1, rng=0)
    assert time.process_time() - start < 2  # about a third


def test_both_groups_share_the_budget():
    groups = [np.repeat([1, 0], [5, 5])] * 3
    read = _read(groups, None, None, "both")
    split = _release(read, Budget(3), "both", SimulatedNoise(0)).noise
    whole = _release(read, Budget(3), "one", SimulatedNoise(0)).noise
    assert isinstance(split, LatticeTulap)
    assert isinstance(whole, LatticeTulap)
    assert (split.epsilon, whole.epsilon) == pytest.approx((1, 3))


def test_a_rare_share_needs_more_than_one_guess():
    """At the smallest share that fits hardly anything varies."""
    shares = PublicShares((2.9, 0.4), (50, 50), LatticeTulap(1, 10.0))
    assert shares.pvalue("two-sided", 999, np.random.default_rng(0)) > 0.05
