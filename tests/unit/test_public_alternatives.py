"""Which way round: every test with a side agrees with its namesake in SciPy, and says so.

Epsilon is so large that the noise is next to none. The shift is so clear that SciPy's p-values
are below 1e-9 or above .999, so that what little noise there is cannot change a decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.core.errors import ParameterError
from privatest.methods import two_groups as common
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import ALTERNATIVES

N, M = 400, 300


def sign(x, y, alternative):
    return stats.binomtest(int((x > y).sum()), len(x), alternative=alternative)


def median(x, y, alternative):
    middle = np.median(np.concatenate([x, y]))
    counts = [[(s > middle).sum(), (s <= middle).sum()] for s in (x, y)]
    return stats.fisher_exact(counts, alternative=alternative)


def one_mean(test):
    return lambda x, y, **options: test(x, y.mean(), **options)


def one_law(test):
    return lambda x, y, **options: test(x, stats.norm.cdf, **options)


def differences(test):
    return lambda x, y, **options: test(x - y, **options)


BOUNDS = {"bounds": (-9, 9)}
Test = Callable[..., Any]
# ours, SciPy's, our further arguments, whether rows are pairs
SIDED: dict[str, tuple[Test, Test, dict[str, Any], bool]] = {
    "wilcoxon": (pt.wilcoxon, stats.wilcoxon, {}, True),
    "wilcoxon, bounds": (pt.wilcoxon, stats.wilcoxon, BOUNDS, True),
    "wilcoxon, differences": (differences(pt.wilcoxon), stats.wilcoxon, {}, True),
    "sign_test": (pt.sign_test, sign, {}, True),
    "sign_test, differences": (differences(pt.sign_test), sign, {}, True),
    "mannwhitneyu": (pt.mannwhitneyu, stats.mannwhitneyu, {}, False),
    "median_test": (pt.median_test, median, {}, False),
    "ttest_ind": (pt.ttest_ind, stats.ttest_ind, BOUNDS, False),
    "ttest_ind, unequal": (
        lambda x, y, **o: pt.ttest_ind(x, y, equal_var=False, **o),
        lambda x, y, **o: stats.ttest_ind(x, y, equal_var=False, **o),
        BOUNDS,
        False,
    ),
    "ttest_1samp": (
        one_mean(pt.ttest_1samp),
        one_mean(stats.ttest_1samp),
        BOUNDS,
        False,
    ),
    "ttest_rel": (pt.ttest_rel, stats.ttest_rel, BOUNDS, True),
    "ks_2samp": (pt.ks_2samp, stats.ks_2samp, {}, False),
    "ks_1samp": (one_law(pt.ks_1samp), one_law(stats.ks_1samp), {}, False),
}
UNSIDED: dict[str, tuple[Test, Test, dict[str, Any], bool]] = {
    "kruskal": (pt.kruskal, stats.kruskal, {}, False),
    "ks_2samp": (pt.ks_2samp, stats.ks_2samp, {}, False),
    "ks_1samp": (
        lambda x, _, **o: pt.ks_1samp(x, "norm", **o),
        lambda x, _: stats.ks_1samp(x, stats.norm.cdf),
        {},
        False,
    ),
}


def drawn(shift: float, paired: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(shift, 1, N), rng.normal(0, 1, N if paired else M)


@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("name", SIDED)
def test_sides_are_those_of_scipy(name, alternative, shift):
    ours, scipys, options, paired = SIDED[name]
    x, y = drawn(shift, paired)
    found = ours(x, y, alternative=alternative, epsilon=1e6, noise=SimulatedNoise(0), **options)
    expected = scipys(x, y, alternative=alternative).pvalue
    if shift:
        assert min(expected, 1 - expected) < 1e-4
        assert found.pvalue == pytest.approx(expected, abs=2e-3)
    else:
        assert found.pvalue == pytest.approx(expected, abs=0.15)  # steps of a lattice
    assert found.parameters["alternative"] == alternative


@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("name", UNSIDED)
def test_tests_without_sides(name, shift):
    ours, scipys, options, paired = UNSIDED[name]
    x, y = drawn(shift, paired)
    found = ours(x, y, epsilon=1e6, noise=SimulatedNoise(0), **options)
    assert found.reject == (scipys(x, y).pvalue <= 0.05)


@pytest.mark.parametrize("name", ["wilcoxon", "sign_test", "mannwhitneyu", "median_test"])
def test_swapping_the_samples_swaps_the_sides(name):
    ours, _, options, paired = SIDED[name]
    x, y = drawn(0.1, paired)
    one = ours(x, y, alternative="greater", epsilon=1e6, noise=SimulatedNoise(0), **options)
    other = ours(y, x, alternative="less", epsilon=1e6, noise=SimulatedNoise(0), **options)
    assert one.pvalue == pytest.approx(other.pvalue, abs=0.03)


SENTENCES = {
    "wilcoxon": ("symmetrically about 0 or a number below", "about 0 or a number above"),
    "sign_test": (
        "positive differences are at most as likely as negative ones",
        "negative differences are at most as likely as positive ones",
    ),
    "mannwhitneyu": (
        "the first sample does not tend to larger values",
        "the first sample does not tend to smaller values",
    ),
    "median_test": (
        "the first sample does not tend to larger values",
        "the first sample does not tend to smaller values",
    ),
    "ttest_ind": (
        "the mean of the first sample is at most that of the second",
        "the mean of the first sample is at least that of the second",
    ),
    "ttest_1samp": ("the mean is at most", "the mean is at least"),
    "ttest_rel": (
        "the mean of the differences is at most",
        "the mean of the differences is at least",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_hypothesis_that_is_rejected_is_the_false_one(name):
    """x lies above y: what "greater" has to reject is a sentence that is not true of them."""
    ours, _, options, paired = SIDED[name]
    x, y = drawn(1.0, paired)
    above, below = SENTENCES[name]
    greater = ours(x, y, alternative="greater", epsilon=1e6, **options)
    less = ours(x, y, alternative="less", epsilon=1e6, **options)
    assert greater.reject
    assert above in greater.verdict
    assert not less.reject
    assert below in less.verdict


@pytest.mark.parametrize("relabel_below", [0, 10**9])
@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_private_groups_have_the_same_sides(alternative, relabel_below, monkeypatch):
    """Labels permuted, or swapped in pairs."""
    monkeypatch.setattr(common, "_EQUAL_POWER", {"pvalue": relabel_below, "decision": 0})
    x, y = drawn(1.0, False)
    options: dict[str, Any] = {
        "adjacency": "row",
        "epsilon": 50,
        "noise": SimulatedNoise(0),
        "rng": 0,
    }
    found = pt.ks_2samp(x, y, alternative=alternative, **options)
    expected = stats.ks_2samp(x, y, alternative=alternative).pvalue
    assert (found.pvalue < 0.05) == (expected < 0.05)


def test_only_the_largest_difference_has_a_side():
    x, y = drawn(0.0, False)
    with pytest.raises(ParameterError, match="alternative"):
        pt.ks_2samp(x, y, statistic="kuiper", alternative="less", epsilon=1)
    with pytest.raises(ParameterError, match="alternative"):
        pt.ks_1samp(x, "norm", statistic="cvm", alternative="less", epsilon=1)


def test_a_distribution_function_above_is_of_smaller_values():
    x, y = drawn(1.0, False)
    two = pt.ks_2samp(x, y, alternative="less", epsilon=1e6)
    one = pt.ks_1samp(x, "norm", alternative="less", epsilon=1e6)
    assert two.reject
    assert one.reject
    assert "nowhere below the second's" in two.verdict
    assert "nowhere below that of norm" in one.verdict
