"""Zeros and ties: with little noise SciPy's numbers, functions of the data and not of coins."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.mechanisms.lattice import noisy_weighted_integers
from privatest.methods.signs import PairedShares
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import (
    ALTERNATIVES,
    bounded_pvalue,
    kendall_factor,
    spearman_factor,
    wilcoxon_factor,
)
from privatest.requests.results import result_from_dict

LITTLE = 1e4  # of noise: epsilon
CORRELATIONS: dict[str, Callable[..., pt.Outcome]] = {
    "kendalltau": pt.kendalltau,
    "spearmanr": pt.spearmanr,
}


def changes(n, *, zeros, rounded, seed=0):
    """Return differences, some of them 0."""
    rng = np.random.default_rng(seed)
    d = rng.normal(0.15, 1, size=n)
    d[: int(zeros * n)] = 0
    return np.rint(2 * d) / 2 if rounded else d


# --- zeros -------------------------------------------------------------------------------------


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.95, 1.0])
def test_the_sign_test_is_that_of_differences_other_than_0(alternative, zeros):
    d = changes(200, zeros=zeros, rounded=True)
    up, down = int((d > 0).sum()), int((d < 0).sum())
    found = [
        pt.sign_test(d, epsilon=LITTLE, alternative=alternative, noise=SimulatedNoise(seed))
        for seed in range(5)
    ]
    assert {each.pvalue for each in found} == {found[0].pvalue}
    expected = 1.0
    if up + down:
        expected = stats.binomtest(up, up + down, alternative=alternative).pvalue
    assert found[0].pvalue == pytest.approx(expected, rel=1e-6)
    shown = min(up, down) if alternative == "two-sided" else up
    assert found[0].statistic == shown
    assert found[0].estimates == {"nonzero": up + down, "counted": up + down}


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("n", [60, 400])
def test_wilcoxon_is_scipys_with_zeros_and_ties(alternative, rounded, n):
    d = changes(n, zeros=0.5, rounded=rounded)
    found = [
        pt.wilcoxon(d, epsilon=LITTLE, alternative=alternative, noise=SimulatedNoise(seed))
        for seed in range(5)
    ]
    # the noise on ties is left
    assert np.ptp([each.pvalue for each in found]) < 1e-4
    expected = stats.wilcoxon(d, alternative=alternative)
    assert found[0].statistic == expected.statistic
    # SciPy takes a normal law, ours is exact without ties
    assert found[0].pvalue == pytest.approx(expected.pvalue, rel=0.08)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_all_differences_are_0(alternative):
    assert pt.wilcoxon(np.zeros(100), epsilon=LITTLE, alternative=alternative).pvalue == 1


@pytest.mark.parametrize(("test", "least"), [(pt.sign_test, 0.82), (pt.wilcoxon, 0.82)])
def test_zeros_cost_little_power(test, least):
    """80% zeros: with a coin for each the power was .34 and .53; now .92 (200 runs).

    Fewer than 164 of 200 rejections have probability below 1e-4 for a power of .91.
    """
    rng, rejected = np.random.default_rng(3), 0
    for seed in range(200):
        signs = rng.choice([1.0, -1.0, 0.0], p=[0.125, 0.075, 0.8], size=1000)
        d = signs * (1 + rng.random(1000))
        rejected += test(d, epsilon=1, noise=SimulatedNoise(seed)).reject
    assert rejected >= 200 * least


@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 1.0, 7.3, 1e4])
@pytest.mark.parametrize("n", [2, 300, 10_000_000])
def test_parts_sum_to_at_most_epsilon(n, epsilon, people):
    budget = pt.Budget(epsilon)
    for ranks in (False, True):
        shares = PairedShares.of(n, people, budget, ranks=ranks)
        assert shares.nonzero + shares.ties + shares.rest <= epsilon
        law = shares.noise(4, 2)
        if shares.nonzero:
            spent = law.epsilon * law.blocks
            assert spent <= shares.rest * (1 + 1e-12)
            assert law.width * law.blocks == 4 * people


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 30.0])
@pytest.mark.parametrize("zeros", [0.0, 0.7])
@pytest.mark.parametrize("test", [pt.sign_test, pt.wilcoxon])
def test_level_with_zeros(test, zeros, epsilon):
    """800 runs at level .05: more than 67 rejections have probability below 2e-5."""
    rng, rejected = np.random.default_rng(5), 0
    for seed in range(800):
        d = np.where(rng.random(60) < zeros, 0.0, rng.normal(size=60))
        rejected += test(d, epsilon=epsilon, noise=SimulatedNoise(seed)).reject
    assert rejected <= 67


# --- ties --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORRELATIONS)
def test_a_column_agrees_with_itself(name):
    x = np.random.default_rng(0).integers(0, 2, size=500).astype(float)
    found = CORRELATIONS[name](x, x, epsilon=LITTLE)
    assert found.statistic == pytest.approx(1, abs=1e-3)
    key = "tau" if name == "kendalltau" else "rho"
    assert found.estimates["lower"] <= found.estimates[key] <= found.estimates["upper"]
    opposite = CORRELATIONS[name](x, -x, epsilon=LITTLE)
    assert opposite.statistic == pytest.approx(-1, abs=1e-3)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("levels", [2, 3, 10])
@pytest.mark.parametrize("name", CORRELATIONS)
def test_rank_correlations_with_ties_are_scipys(name, levels, alternative):
    rng = np.random.default_rng(levels)
    x = rng.normal(size=400)
    y = 0.1 * x + rng.normal(size=400)
    x, y = np.floor(levels * stats.norm.cdf(x)), np.floor(levels * stats.norm.cdf(y - 0.5))
    found = CORRELATIONS[name](x, y, epsilon=LITTLE, alternative=alternative)
    expected = getattr(stats, name)(x, y, alternative=alternative)
    assert found.statistic == pytest.approx(expected.statistic, abs=1e-3)
    assert found.pvalue == pytest.approx(expected.pvalue, rel=0.05)
    ties = found.estimates["ties"]
    if name == "kendalltau":
        counts = [np.unique(side, return_counts=True)[1] for side in (x, y)]
        shares = [float((c * (c - 1)).sum() / (400 * 399)) for c in counts]
        assert ties == pytest.approx(shares, abs=1e-3)


@pytest.mark.parametrize("name", CORRELATIONS)
@pytest.mark.parametrize("epsilon", [1.0, 20.0])
@pytest.mark.parametrize("levels", [2, 4])
def test_level_with_ties(name, levels, epsilon):
    """600 runs at level .05: more than 54 rejections have probability below 2e-5."""
    rng, rejected = np.random.default_rng(levels), 0
    for seed in range(600):
        x, y = rng.integers(levels, size=(2, 50)).astype(float)
        noise = SimulatedNoise(seed)
        rejected += CORRELATIONS[name](x, y, epsilon=epsilon, noise=noise).reject
    assert rejected <= 54


@pytest.mark.parametrize("name", CORRELATIONS)
def test_a_constant_column_has_no_correlation(name):
    x, y = np.zeros(300), np.random.default_rng(0).normal(size=300)
    found = CORRELATIONS[name](x, y, epsilon=LITTLE)
    assert found.pvalue > 0.9
    assert -1 <= found.estimates["lower"] <= 0 <= found.estimates["upper"] <= 1


@pytest.mark.parametrize("seed", range(4))
def test_variances_with_ties_are_those_of_all_orders(seed):
    """Permuted columns and drawn signs, 4000 times: five standard errors of a variance."""
    rng = np.random.default_rng(seed)
    n = 12
    x, y = rng.integers(seed + 2, size=(2, n)).astype(float)
    sets = [np.unique(side, return_counts=True)[1].astype(float) for side in (x, y)]
    pairs = float((sets[0] * (sets[0] - 1)).sum() / 2), float((sets[1] * (sets[1] - 1)).sum() / 2)
    cubes = float((sets[0] ** 3 - sets[0]).sum()), float((sets[1] ** 3 - sets[1]).sum())
    ranks = stats.rankdata(x), stats.rankdata(y)
    u, v = (2 * r - n - 1 for r in ranks)
    signs_x, signs_y = (np.sign(np.subtract.outer(side, side)) for side in (x, y))
    orders = [rng.permutation(n) for _ in range(4000)]
    kendall = np.var([(signs_x * signs_y[np.ix_(o, o)]).sum() / 2 for o in orders])
    spearman = np.var([u @ v[o] for o in orders])
    plain = n * (n - 1) * (2 * n + 5) / 18, ((n**3 - n) / 3) ** 2 / (n - 1)
    assert kendall == pytest.approx(kendall_factor(n, pairs, cubes) ** 2 * plain[0], rel=0.12)
    assert spearman == pytest.approx(spearman_factor(n, cubes) ** 2 * plain[1], rel=0.12)
    squares = (ranks[0] ** 2).sum()
    whole = n * (n + 1) * (2 * n + 1) / 6
    assert wilcoxon_factor(n, cubes[0]) ** 2 * whole == pytest.approx(squares)


@pytest.mark.parametrize("miss", [1e-6, 1e-3])
def test_a_bounded_pvalue_is_valid(miss):
    """Uniform where the set holds, and 0 where it misses: P(p <= a) is at most a for all a."""
    for a in np.geomspace(1e-7, 1, 300):
        low, high = 0.0, 1.0  # the uniform number up to which p <= a
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if bounded_pvalue(middle, middle, miss) <= a else (low, middle)
            )
        missed = bounded_pvalue(1.0, 0.0, miss) <= a
        assert (1 - miss) * low + miss * (1.0 if missed else low) <= a * (1 + 1e-12)


def test_integers_together_are_private(monkeypatch):
    """The log ratio of two released pairs of integers is at most epsilon, from the scales drawn."""
    scales: list[float] = []

    def recorded(_: SimulatedNoise, scale: float) -> int:
        scales.append(scale)
        return 0

    monkeypatch.setattr(SimulatedNoise, "discrete_laplace", recorded)
    weights, sensitivity, epsilon = (1.0, 0.25), 6.0, 0.7
    noisy_weighted_integers(
        (5, 9),
        weights=weights,
        sensitivity=sensitivity,
        epsilon=epsilon,
        noise=SimulatedNoise(0),
    )
    for moved in ((6, 0), (0, 24), (5, 4), (2, 16)):  # all of them sensitivity apart
        assert sum(w * m for w, m in zip(weights, moved, strict=True)) == sensitivity
        loss = sum(m / scale for m, scale in zip(moved, scales, strict=True))
        assert 0.999 * epsilon < loss <= epsilon


# --- what is shown -----------------------------------------------------------------------------


def test_kruskal_of_two_samples_shows_h():
    rng = np.random.default_rng(0)
    x, y, z = (rng.normal(shift, 1, size=50) for shift in (0, 0.4, 0.2))
    found = pt.kruskal(x, y, epsilon=LITTLE)
    assert found.statistic == pytest.approx(stats.kruskal(x, y).statistic, rel=1e-6)
    three = pt.kruskal(x, y, z, epsilon=LITTLE, rng=0)
    assert "not H" in str(three)
    assert "not H" in json.loads(three.to_json())["statistic_name"]


def test_two_sided_statistics_are_named():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=50), rng.normal(0.4, 1, size=60)
    found = pt.mannwhitneyu(x, y, epsilon=LITTLE)
    u = stats.mannwhitneyu(x, y).statistic
    assert found.statistic == min(u, 3000 - u)
    assert "smaller of U and nm - U" in str(found)
    assert "smaller of U and nm - U" in found._repr_html_()
    assert found.to_dict()["statistic_name"] == "the smaller of U and nm - U"
    one_sided = pt.mannwhitneyu(x, y, epsilon=LITTLE, alternative="less")
    assert one_sided.statistic == u
    assert "statistic_name" not in one_sided.to_dict()
    assert "distance" in pt.median_test(x, y, epsilon=LITTLE).statistic_name


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_sided_correlations_are_not_two_sided(alternative):
    rng = np.random.default_rng(1)
    x = np.clip(rng.normal(size=200), -5, 5)
    y = np.clip(0.12 * x + rng.normal(size=200), -5, 5)
    bounds: dict[str, Any] = {"bounds_x": (-5, 5), "bounds_y": (-5, 5), "rng": 0}
    for seed in range(3):
        noise = SimulatedNoise(seed)
        found = pt.pearsonr(x, y, epsilon=LITTLE, alternative=alternative, noise=noise, **bounds)
        expected = stats.pearsonr(x, y, alternative=alternative).pvalue
        assert found.pvalue == pytest.approx(expected, rel=0.02)


# Two-sided documents of an earlier version: distances without a name, and all rows count.
# Method, sizes, epsilon, statistic, p-value, and the integer that had the noise.
EARLIER = [
    ("Mann–Whitney U test", {"n": 60, "m": 50}, 1.0, 194.06376633596366, 0.28905651611301414, 388),
    ("Mann–Whitney U test", {"n": 60, "m": 50}, 8.0, 304.31376633596363, 0.06816317597679289, 609),
    (
        "Wilcoxon signed-rank test for paired data",
        {"n": 60},
        1.0,
        499.53019434454296,
        0.0027784649995017323,
        1998,
    ),
    ("sign test for paired data", {"n": 60}, 8.0, 9.647684281613737, 0.012417446419688236, 19),
]


@pytest.mark.parametrize(("method", "sizes", "epsilon", "statistic", "pvalue", "noisy"), EARLIER)
def test_documents_of_earlier_versions_are_read(method, sizes, epsilon, statistic, pvalue, noisy):
    document = {
        "pvalue": pvalue,
        "statistic": statistic,
        "reject": pvalue <= 0.05,
        "alpha": 0.05,
        "epsilon": epsilon,
        "delta": 0.0,
        "adjacency": "one",
        "unit": "row",
        "method": method,
        "null_hypothesis": "there is no difference",
        "sizes": sizes,
        "parameters": {"alternative": "two-sided"},
        "simulated": True,
    }
    outcome = result_from_dict(document, pt.Budget(epsilon))
    assert isinstance(outcome, pt.Outcome)
    written = outcome.to_dict()
    assert {key: written[key] for key in document} == document
    assert str(statistic)[:5] in str(outcome)
    pytest.importorskip("matplotlib")
    from privatest.display.plots import null_of

    assert null_of(outcome).noisy == pytest.approx(noisy, abs=1)


@pytest.mark.parametrize("test", [pt.sign_test, pt.wilcoxon, pt.kendalltau, pt.kruskal])
def test_documents_come_back_whole(test):
    rng = np.random.default_rng(2)
    x, y = np.rint(rng.normal(size=(2, 80)))
    found = test(x, y, epsilon=1)
    document = json.loads(found.to_json())
    read = result_from_dict(document, found.spent)
    assert isinstance(read, pt.Outcome)
    assert json.loads(read.to_json()) == document
    assert str(read) == str(found)
