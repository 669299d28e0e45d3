"""Correlation and slope: SciPy's numbers at tiny noise, laws by enumeration, level, intervals."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.data.schema import NumericColumn
from privatest.mechanisms.lattice import part_law
from privatest.methods import correlation, regression
from privatest.methods.correlation import (
    RankInterval,
    kendall_deviation,
    kendall_ties,
    spearman_ties,
)
from privatest.methods.regression import Line, LineRelease, line_pvalue, shares_of
from privatest.noise import SimulatedNoise
from privatest.numerics import laws
from privatest.numerics.laws import ALTERNATIVES, by_fourier
from privatest.numerics.order import earlier_and_smaller, kendall_score
from privatest.requests.results import result_from_dict

BOX: dict[str, Any] = {"bounds_x": (-4, 4), "bounds_y": (-4, 4)}
RANKED: dict[str, Callable[..., pt.Outcome]] = {
    "kendalltau": pt.kendalltau,
    "spearmanr": pt.spearmanr,
}
BOUNDED: dict[str, Callable[..., pt.Outcome]] = {
    "pearsonr": pt.pearsonr,
    "linregress": pt.linregress,
}


def pairs(n, slope=0.5, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return np.clip(x, -4, 4), np.clip(slope * x + rng.normal(size=n), -4, 4)


# --- statistics and laws -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 64, 65, 200])
def test_pairs_in_order_are_counted(n):
    order = np.random.default_rng(n).permutation(n)
    expected = sum(int((order[i + 1 :] > order[i]).sum()) for i in range(n))
    assert earlier_and_smaller(order) == expected


def test_scores_are_scipys():
    x, y = pairs(301)
    labels, n = np.arange(301), 301
    tau = kendall_score(x, y, labels, labels) / (n * (n - 1) / 2)
    assert kendall_ties(x, y).values == (kendall_score(x, y, labels, labels), 0, 0, 0, 0)
    score, *ties = spearman_ties(x, y).values
    rho = score * 3 / (n * (n * n - 1))
    assert ties == [0, 0]
    assert tau == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert rho == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("n", [2, 5, 6])
def test_laws_by_enumeration(n):
    labels, x = np.arange(n), np.arange(float(n))
    found: dict[str, list[int]] = {"kendall": [], "spearman": []}
    for order in itertools.permutations(range(n)):
        y = np.array(order, dtype=np.float64)
        found["kendall"].append(kendall_score(x, y, labels, labels))
        found["spearman"].append(spearman_ties(x, y).values[0] // 2)
    for name, law in (("kendall", laws.kendall_law(n)), ("spearman", correlation.spearman_law(n))):
        values = np.array(found[name])
        expected = [(values == value).mean() for value in law.values]
        assert law.masses == pytest.approx(expected, abs=1e-14)
        assert sum(expected) == pytest.approx(1)


def test_kendalls_law_by_fourier_is_the_exact_one():
    n = 150
    exact, pairs_of = laws.kendall_law(n), n * (n - 1) // 2
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 72)
    series = by_fourier(lambda t: laws._log_mahonian(n, t), deviation, pairs_of / 2).scaled(2)
    for score in (0, 500, 1500, 2500):
        tails = [law.masses[law.low >= score].sum() for law in (exact, series)]
        assert tails[0] == pytest.approx(tails[1], abs=1e-9)


def test_the_series_of_large_n_is_that_of_all_factors(monkeypatch):
    n, t = 10_001, np.linspace(1e-6, 5e-5, 20)
    series, _ = laws._log_mahonian(n, t)
    monkeypatch.setattr(laws, "_DIRECT", 20_000)
    factors, _ = laws._log_mahonian(n, t)
    assert series == pytest.approx(factors, rel=1e-9)


@pytest.mark.parametrize("n", [12, 13])
def test_spearmans_series_misses_less_than_is_added(n):
    values, masses = correlation._products_of_ranks(n)
    exact = masses[::-1].cumsum()[::-1]
    law = correlation._by_series(n)
    scores = 2.0 * values - n * (n + 1) ** 2 // 2
    series = np.array([law.masses[law.values >= score - 0.5].sum() for score in scores])
    assert np.max(2 * (exact - series)) <= law.error


# --- rank correlations -------------------------------------------------------------------------


@pytest.mark.parametrize("name", RANKED)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_ranks_at_tiny_noise_are_scipys(name, alternative):
    x, y = pairs(80, slope=0.2)
    found = RANKED[name](x, y, epsilon=1e6, alternative=alternative)
    expected = getattr(stats, name)(x, y, alternative=alternative)
    assert found.statistic == pytest.approx(expected.statistic, abs=1e-3)
    assert found.pvalue == pytest.approx(expected.pvalue, abs=4e-3)


@pytest.mark.parametrize("name", RANKED)
@pytest.mark.parametrize("ties", [False, True])
def test_level_of_rank_tests(name, ties):
    # 600 runs: more than 54 rejections have probability below 2e-5
    rng, rejected = np.random.default_rng(7), 0
    for seed in range(600):
        x, y = rng.integers(3, size=(2, 15)) if ties else rng.normal(size=(2, 15))
        noise = SimulatedNoise(seed)
        rejected += RANKED[name](x, y, epsilon=1, noise=noise).reject
    assert rejected <= 54


@pytest.mark.parametrize("name", RANKED)
def test_rank_intervals(name):
    x, y = pairs(500)
    two = RANKED[name](x, y, epsilon=1, noise=SimulatedNoise(0))
    low, high = two.confidence_interval(0.95)
    key = "tau" if name == "kendalltau" else "rho"
    assert (low, high) == (two.estimates["lower"], two.estimates["upper"])
    assert -1 <= low < two.estimates[key] < high <= 1
    wider = two.confidence_interval(0.99)
    assert wider.low < low
    assert wider.high > high
    assert wider.sampling is not None
    assert wider.privacy is not None
    assert wider.sampling + wider.privacy == pytest.approx(wider.high - wider.low)
    assert pickle.loads(pickle.dumps(two)).confidence_interval(0.9).low > low
    assert f"private {'Kendall' if key == 'tau' else 'Spearman'}'s {key}" in str(two)
    for alternative, end in (("greater", (None, 1)), ("less", (-1, None))):
        one = RANKED[name](x, y, epsilon=1, alternative=alternative, noise=SimulatedNoise(0))
        ends = tuple(one.confidence_interval(0.95))
        assert [a == b for a, b in zip(ends, end, strict=True)].count(True) == 1


@pytest.mark.parametrize("name", RANKED)
def test_drowned_rank_intervals_say_nothing(name):
    x, y = pairs(10)
    found = RANKED[name](x, y, epsilon=1e-4, noise=SimulatedNoise(0))
    assert found.estimates["upper"] - found.estimates["lower"] >= 1
    assert -1 <= found.estimates["lower"] <= found.estimates["upper"] <= 1


def test_deviation_of_tau_under_independence_is_the_exact_one():
    n = 40
    assert kendall_deviation(0.0, n) ** 2 == pytest.approx(2 * (2 * n + 5) / (9 * n * (n - 1)))


@pytest.mark.parametrize("name", RANKED)
def test_persons_with_several_rows_cost_more_noise(name):
    x, y = pairs(200)
    for rows in (1, 5):
        described, other = (
            pt.Schema({name: NumericColumn(-4, 4)}, rows_per_person=rows) for name in "xy"
        )
        found = RANKED[name](x, y, epsilon=1, bounds_x=described, bounds_y=other)
        assert isinstance(found.intervals, RankInterval)
        assert 1 / found.intervals.noise.epsilon == pytest.approx(rows * widths_of(name, 200))


def widths_of(name, n):
    return 2 * (n - 1) if name == "kendalltau" else 2 * n * (n - 1) + 0.5 + 2 * (n // 64) / 18


# --- Pearson and the slope ---------------------------------------------------------------------


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_lines_at_tiny_noise_are_scipys(alternative):
    x, y = pairs(400, slope=0.08)
    given = {**BOX, "epsilon": 1e7, "alternative": alternative, "rng": 0}
    r, line = pt.pearsonr(x, y, **given), pt.linregress(x, y, **given)
    expected = stats.linregress(x, y, alternative=alternative)
    assert r.statistic == pytest.approx(expected.rvalue, abs=1e-5)
    for name in ("slope", "intercept", "rvalue"):
        assert line.estimates[name] == pytest.approx(getattr(expected, name), abs=1e-5)
    assert r.pvalue == pytest.approx(expected.pvalue, abs=2e-4)  # 1/(9999 + 1) is added
    assert line.pvalue == pytest.approx(r.pvalue, rel=1e-4)  # other noise


def test_intervals_at_tiny_noise_are_the_classical_ones():
    x, y = pairs(2000)
    # at every epsilon the bought sampling variance has noise of about a seventh of it
    quiet: dict[str, Any] = {**BOX, "epsilon": 1e7, "noise": SimulatedNoise(0), "rng": 0}
    low, high = pt.pearsonr(x, y, **quiet).confidence_interval(0.95)
    expected = stats.pearsonr(x, y).confidence_interval()
    assert (low, high) == pytest.approx(tuple(expected), abs=0.01)
    found, classical = pt.linregress(x, y, **quiet), stats.linregress(x, y)
    low, high = found.confidence_interval(0.95)
    reach = 1.96 * classical.stderr
    assert (low, high) == pytest.approx(
        (classical.slope - reach, classical.slope + reach), abs=0.2 * reach
    )


def test_slopes_are_in_the_units_of_the_data():
    x, y = pairs(5000)
    far: dict[str, Any] = {"bounds_x": (-400, 400), "bounds_y": (5, 13)}
    one = pt.linregress(x, y, **BOX, epsilon=1, noise=SimulatedNoise(3), rng=0)
    two = pt.linregress(100 * x, y + 9, **far, epsilon=1, noise=SimulatedNoise(3), rng=0)
    for name in ("slope", "lower", "upper"):
        assert two.estimates[name] == pytest.approx(one.estimates[name] / 100)
    assert two.estimates["intercept"] == pytest.approx(one.estimates["intercept"] + 9)
    assert two.pvalue == one.pvalue


@pytest.mark.parametrize("kind", ["normal", "constant", "rare"])
@pytest.mark.parametrize(("n", "epsilon"), [(5, 1), (50, 0.1), (50, 10), (1000, 10)])
def test_level_of_line_tests(kind, n, epsilon):
    # 400 runs: more than 41 rejections have probability below 1e-5
    rng, rejected = np.random.default_rng(11), 0
    for seed in range(400):
        x, y = np.clip(rng.normal(size=(2, n)) / 4, -1, 1)
        if kind == "constant":
            x[:] = 1.0
        elif kind == "rare":
            x, y = (rng.random((2, n)) < 0.05) * 1.0
        found = pt.linregress(
            x,
            y,
            bounds_x=(-1, 1),
            bounds_y=(-1, 1),
            epsilon=epsilon,
            n_simulations=199,
            rng=rng,
            noise=SimulatedNoise(seed),
        )
        rejected += found.reject
    assert rejected <= 41


@pytest.fixture(autouse=True)
def _rough_intervals(request, monkeypatch):
    """Intervals are not looked at where only rejections are counted."""
    if request.node.name.startswith("test_level_of"):
        monkeypatch.setattr(correlation, "_STEPS", 0)
        monkeypatch.setattr(regression, "_ANGLES", 3)
        monkeypatch.setattr(regression, "_DRAWS", 50)
        monkeypatch.setattr(regression, "_STEPS", 0)


def test_a_hidden_variance_gives_an_infinite_interval():
    x, y = pairs(50)
    found = pt.linregress(x, y, **BOX, epsilon=0.05, rng=0, noise=SimulatedNoise(0))
    assert (found.estimates["lower"], found.estimates["upper"]) == (-math.inf, math.inf)
    document = json.loads(found.to_json())
    assert document["estimates"]["lower"] is None
    read = result_from_dict(document, found.spent)
    assert isinstance(read, pt.Outcome)
    assert tuple(read.confidence_interval(0.95)) == (-math.inf, math.inf)
    assert "[-inf, inf]" in str(read)


def test_heavy_tails_widen_the_intervals():
    rng = np.random.default_rng(0)
    n = 20_000
    spread = np.sqrt(3 / rng.chisquare(3, size=n))  # errors of y are large where x is
    x, y = np.clip(rng.normal(size=(2, n)) * spread, -16, 16)
    far: dict[str, Any] = {"bounds_x": (-16, 16), "bounds_y": (-16, 16)}
    for test in BOUNDED.values():
        heavy = test(x, y, **far, epsilon=50, noise=SimulatedNoise(1))
        light = test(*pairs(n, 0.0), **BOX, epsilon=50, noise=SimulatedNoise(1))
        widths = [r.estimates["upper"] - r.estimates["lower"] for r in (heavy, light)]
        assert widths[0] > 1.5 * widths[1]


@pytest.mark.parametrize("name", BOUNDED)
def test_line_intervals(name):
    x, y = pairs(3000)
    two = BOUNDED[name](x, y, **BOX, epsilon=1, noise=SimulatedNoise(0), rng=0)
    low, high = two.confidence_interval(0.95)
    assert low < two.statistic < high
    assert two.confidence_interval(0.99).low < low
    again = pickle.loads(pickle.dumps(two)).confidence_interval(0.95)
    assert tuple(again) == (low, high)
    one = BOUNDED[name](
        x, y, **BOX, epsilon=1, alternative="greater", noise=SimulatedNoise(0), rng=0
    )
    assert one.confidence_interval(0.95).high == (1 if name == "pearsonr" else math.inf)
    assert one.confidence_interval(0.95).low > low


def test_pvalues_grow_with_noise():
    line = Line(1000, 0.0, 0.0, 0.1, 0.02, 0.1, 1e-4)
    noisy = Line(1000, 0.0, 0.0, 0.1, 0.02, 0.1, 1e-2)
    found = [
        line_pvalue(each, "two-sided", 999, np.random.default_rng(0)) for each in (line, noisy)
    ]
    assert found[0] == pytest.approx(0.001, rel=1e-5)
    assert found[1] > 0.1


@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 1.0, 7.3, 50.0])
@pytest.mark.parametrize("n", [4, 300, 5000, 10_000_000])
def test_releases_spend_no_more_than_epsilon(n, epsilon, people):
    shares = shares_of(n, people, epsilon)
    spent = shares.ranks, shares.moments, shares.square
    assert sum(map(Fraction, spent)) <= Fraction(epsilon)
    assert sum(spent) > 0.999999 * epsilon
    assert shares.moments > 0.39 * epsilon
    assert (shares.ranks > 0) == (n * (epsilon * (1 - 1e-12) / people) ** 2 < 1e6)
    assert (shares.square > 0) == (n * epsilon * (1 - 1e-12) >= 1000 * people)


def test_ranks_move_by_all_rows_of_a_person(monkeypatch):
    widths = []

    def watched(width, epsilon):
        widths.append(width)
        return part_law(width, epsilon)

    monkeypatch.setattr(regression, "part_law", watched)
    x, y = pairs(100)
    for rows in (1, 4):
        sides = [
            pt.Schema({name: NumericColumn(-4, 4)}, rows_per_person=rows) for name in ("x", "y")
        ]
        pt.pearsonr(x, y, bounds_x=sides[0], bounds_y=sides[1], epsilon=1, n_simulations=19)
    assert widths == [2 * 99, 4 * 2 * 99]


def test_a_pvalue_of_two_looks_is_bonferronis():
    line = Line(1000, 0.0, 0.0, 0.1, 0.02, 0.1, 1e-4)  # its own p-value is the smallest
    rng = np.random.default_rng
    alone = LineRelease(line, None).pvalue("two-sided", 999, rng(0))
    assert alone == pytest.approx(0.001, rel=1e-5)
    assert LineRelease(line, 0.9).pvalue("two-sided", 999, rng(0)) == pytest.approx(alone / 0.15)
    noisy = Line(1000, 0.0, 0.0, 0.1, 0.02, 0.1, 1.0)
    assert LineRelease(noisy, 0.03).pvalue("two-sided", 999, rng(0)) == pytest.approx(0.03 / 0.85)
    assert LineRelease(noisy, 0.9).pvalue("two-sided", 999, rng(0)) == 1


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_ranks_see_what_wide_bounds_hide(alternative):
    """A correlation of .45 in the middle of wide bounds: 10 of 10, and none on the other side."""
    wide: dict[str, Any] = {"bounds_x": (-40, 40), "bounds_y": (-40, 40)}
    found = [
        pt.pearsonr(
            *pairs(600, seed=seed),
            **wide,
            epsilon=1,
            alternative=alternative,
            n_simulations=99,
            noise=SimulatedNoise(seed),
        ).reject
        for seed in range(10)
    ]
    assert sum(found) == (0 if alternative == "less" else 10)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RANKED, *BOUNDED])
def test_what_is_refused(name):
    test = (RANKED | BOUNDED)[name]
    x, y = pairs(20)
    with pytest.raises(DataError, match="same number of rows"):
        test(x, y[:-1], **BOX, epsilon=1)
    with pytest.raises(DataError, match="one numeric column"):
        test(np.stack([x, x], axis=1), y, **BOX, epsilon=1)
    with pytest.raises(DataError, match="at least"):
        test(x[:1], y[:1], **BOX, epsilon=1)
    with pytest.raises(ParameterError, match="alternative"):
        test(x, y, **BOX, epsilon=1, alternative="more")
    with pytest.raises(ParameterError, match="epsilon"):
        test(x, y, **BOX, epsilon=0)


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_must_be_given(name):
    with pytest.raises(ParameterError, match="bounds_y must be given"):
        BOUNDED[name](*pairs(20), bounds_x=(-4, 4), bounds_y=None, epsilon=1)


def test_products_of_ranks_do_not_overflow_in_any_row_order(monkeypatch):
    """The limit on sums is lowered: blocks get as short as they are at a hundred million rows."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=3000))  # the worst order: extreme ranks side by side
    expected = spearman_ties(x, x)
    assert expected.values[0] == 3000 * (3000**2 - 1) // 3
    for bits in (20, 24, 30):
        monkeypatch.setattr(correlation, "_LARGEST", 1 << bits)
        assert spearman_ties(x, x) == expected


@pytest.mark.parametrize("n", [2, 1000, 11_900_000, 100_000_000, 1 << 31])
def test_sums_of_a_block_stay_below_what_64_bits_hold(n):
    assert min(n, correlation._block(n)) * (n - 1) ** 2 < 1 << 63
