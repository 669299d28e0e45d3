"""Every result with an interval has one at every level, also after it was pickled."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.data.schema import CategoricalColumn, Schema

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0, 8, 120), RNG.uniform(1, 9, 100)
WON: tuple[Any, Any] = (RNG.integers(0, 2, 120), RNG.integers(0, 2, 100))
KIND = RNG.integers(0, 3, 120)
THREE = Schema({"kind": CategoricalColumn((0, 1, 2))})
ONE: dict[str, Any] = {"epsilon": 5, "bounds": (0, 10)}
SIDES: dict[str, Any] = {"epsilon": 5, "bounds_x": (0, 10), "bounds_y": (0, 10)}
PAIRS: tuple[Any, Any] = X, np.resize(Y, 120)

CALLED: Any = pt  # whose arguments are unpacked
ESTIMATING: dict[str, Callable[..., Any]] = {
    "ttest_ind": lambda **o: CALLED.ttest_ind(X, Y, **ONE, **o),
    "ttest_1samp": lambda **o: CALLED.ttest_1samp(X, 4, **ONE, **o),
    "ttest_rel": lambda **o: CALLED.ttest_rel(*PAIRS, **ONE, **o),
    "tost_ind": lambda **o: CALLED.tost_ind(X, Y, -1, 1, **ONE, **o),
    "tost_rel": lambda **o: CALLED.tost_rel(*PAIRS, -1, 1, **ONE, **o),
    "hotelling_test": lambda **o: CALLED.hotelling_test(X, Y, **ONE, **o),
    "hotelling_1samp": lambda **o: CALLED.hotelling_1samp(X, 4, **ONE, **o),
    "f_oneway": lambda **o: CALLED.f_oneway(X, Y, Y, **ONE, **o),
    "private_mean": lambda **o: CALLED.private_mean(X, **ONE, **o),
    "private_median": lambda **o: CALLED.private_median(X, **ONE, **o),
    "private_quantile": lambda **o: CALLED.private_quantile(X, 0.3, **ONE, **o),
    "private_share": lambda **o: CALLED.private_share(WON[0], epsilon=5, **o),
    "hodges_lehmann": lambda **o: CALLED.hodges_lehmann(X, Y, cells=64, **ONE, **o),
    "binom_test": lambda **o: CALLED.binom_test(WON[0], 0.5, epsilon=5, **o),
    "proportions_test": lambda **o: CALLED.proportions_test(*WON, epsilon=5, n_simulations=99, **o),
    "tost_proportions": lambda **o: CALLED.tost_proportions(*WON, -0.5, 0.5, epsilon=5, **o),
    "pearsonr": lambda **o: CALLED.pearsonr(*PAIRS, **SIDES, **o),
    "linregress": lambda **o: CALLED.linregress(*PAIRS, **SIDES, **o),
    "spearmanr": lambda **o: CALLED.spearmanr(*PAIRS, epsilon=5, **o),
    "kendalltau": lambda **o: CALLED.kendalltau(*PAIRS, epsilon=5, **o),
    "chi2_contingency": lambda **o: CALLED.chi2_contingency(
        {"kind": KIND}, {"kind": KIND}, epsilon=5, bounds_x=THREE, bounds_y=THREE, **o
    ),
    "chisquare": lambda **o: CALLED.chisquare({"kind": KIND}, epsilon=5, bounds=THREE, **o),
    "conditional_independence_test": lambda **o: CALLED.conditional_independence_test(
        *PAIRS, X[::-1], epsilon=5, bounds_x=(0, 10), bounds_y=(0, 10), bounds_z=(0, 10), **o
    ),
}
# p-values and decisions, or not the answer of a test: nothing is estimated with an interval
WITHOUT = {
    *(
        "adjust",
        "budget",
        "connect",
        "compare",
        "compare_all",
        "compare_releases",
        "distinguishing_features",
        "report",
    ),
    "conditional_randomisation_test",
    *("hsic_test", "ipm_test", "kruskal", "ks_1samp", "ks_2samp", "ks_family", "mannwhitneyu"),
    *("me_permutation_test", "me_test", "median_test", "mmd_test", "optimise_frequencies"),
    *("optimise_locations", "permutation_test", "plan_share", "private_covariance", "release"),
    *("sarrm_test", "scan", "scan_sql", "scf_permutation_test", "scf_test", "share", "sign_test"),
    *("speaking_features", "symmetry_test", "test_of_tests", "wilcoxon"),
}


def test_every_function_is_here():
    functions = {name for name in pt.__all__ if inspect.isfunction(getattr(pt, name))}
    assert functions == {*ESTIMATING, *WITHOUT}
    assert not {*ESTIMATING} & WITHOUT


def ends(interval: Any) -> tuple[Any, Any]:
    assert isinstance(interval, pt.Interval)
    return np.asarray(interval.low, float), np.asarray(interval.high, float)


@pytest.mark.parametrize("name", ESTIMATING)
def test_intervals_at_every_level(name):
    result = ESTIMATING[name]()
    copy = pickle.loads(pickle.dumps(result))
    narrow, wide = (ends(result.confidence_interval(level)) for level in (0.8, 0.99))
    assert (narrow[0] >= wide[0]).all()
    assert (narrow[1] <= wide[1]).all()
    for level in (0.8, 0.95, 0.99):
        expected, found = (ends(each.confidence_interval(level)) for each in (result, copy))
        assert np.array_equal(expected, found)


@pytest.mark.parametrize("name", ESTIMATING)
def test_the_interval_shown_is_that_of_its_level(name):
    result = ESTIMATING[name]()
    if isinstance(result, pt.Outcome):
        shown = result.estimates["lower"], result.estimates["upper"]
        level = result.parameters.get("interval_level", 1 - result.alpha)
    else:
        shown, level = (result.lower, result.upper), result.confidence
    for end, expected in zip(ends(result.confidence_interval(level)), shown, strict=True):
        assert end.tolist() == pytest.approx(np.asarray(expected, float).tolist())
