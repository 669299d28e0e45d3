"""Intervals of every level from one release, the paired t-test, and equivalence of means."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.data.schema import Schema
from privatest.methods.mean_inference import MeanEstimate
from privatest.noise import SimulatedNoise
from privatest.requests.results import result_from_dict

RNG = np.random.default_rng(5)
BEFORE = RNG.uniform(2, 6, size=300)
AFTER = BEFORE + RNG.normal(0.3, 1, size=300)
X, Y = RNG.uniform(2, 8, size=(400, 2)), RNG.uniform(3, 8, size=(300, 2))
TESTS = {
    "ttest_1samp": (pt.ttest_1samp, (BEFORE, 4.0)),
    "ttest_ind": (pt.ttest_ind, (X[:, 0], Y[:, 0])),
    "ttest_rel": (pt.ttest_rel, (AFTER, BEFORE)),
    "tost_ind": (pt.tost_ind, (X[:, 0], Y[:, 0], -1, 1)),
    "tost_rel": (pt.tost_rel, (AFTER, BEFORE, -1, 1)),
    "hotelling_1samp": (pt.hotelling_1samp, (X, 5.0)),
    "hotelling_test": (pt.hotelling_test, (X, Y)),
}


def run(test, *data, seed=0, **options):
    settings = {"bounds": (0, 10), "epsilon": 1.0, "rng": seed}
    return test(*data, noise=SimulatedNoise(seed), **(settings | options))


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("name", TESTS)
def test_recorded_interval_is_the_one_of_its_level(name, delta):
    test, data = TESTS[name]
    result = pickle.loads(pickle.dumps(run(test, *data, delta=delta)))
    level = 0.9 if "tost" in name else 0.95
    interval = result.confidence_interval(level)
    np.testing.assert_allclose(interval.low, result.estimates["lower"], rtol=1e-12)
    np.testing.assert_allclose(interval.high, result.estimates["upper"], rtol=1e-12)
    again = result.confidence_interval(level)
    assert np.all(again.low == interval.low)
    wider = result.confidence_interval(0.999)
    assert np.all(np.asarray(wider.low) <= interval.low)
    assert np.all(np.asarray(wider.high) >= interval.high)
    width = np.asarray(interval.high) - interval.low
    np.testing.assert_allclose(interval.sampling + interval.privacy, width)
    read = result_from_dict(result.to_dict(), Budget(1, delta))
    assert isinstance(read, pt.Outcome)
    np.testing.assert_allclose(read.confidence_interval(level).low, interval.low)
    with pytest.raises(ParameterError, match="confidence_level"):
        read.confidence_interval(0.8)
    with pytest.raises(ParameterError, match="confidence_level"):
        result.confidence_interval(0.999999)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_without_noise_intervals_are_those_of_scipy(alternative):
    options = {"epsilon": 1e6}
    sided = {"alternative": alternative}
    pairs = [
        (
            run(pt.ttest_rel, AFTER, BEFORE, **options, **sided),
            stats.ttest_rel(AFTER, BEFORE, **sided),
        ),
        (
            run(pt.ttest_ind, X[:, 0], Y[:, 0], **options, **sided),
            stats.ttest_ind(X[:, 0], Y[:, 0], **sided),
        ),
    ]
    for ours, scipys in pairs:
        found, expected = ours.confidence_interval(0.9), scipys.confidence_interval(0.9)
        for one, other in zip(found, expected, strict=True):
            assert one == pytest.approx(np.clip(other, -10, 10), abs=0.02)
        assert found.privacy < 0.03


def test_noise_is_told_apart_from_chance():
    few, many = (run(pt.ttest_1samp, BEFORE, 4, epsilon=e).confidence_interval() for e in (0.2, 50))
    assert few.privacy > few.sampling
    assert many.privacy < 0.3 * many.sampling


def test_estimates_of_means_have_intervals_of_every_level():
    estimate = pickle.loads(pickle.dumps(run(pt.private_mean, X)))
    np.testing.assert_allclose(estimate.confidence_interval(0.95).low, estimate.lower)
    assert np.all(estimate.confidence_interval(0.5).low > estimate.lower)
    assert "intervals" not in estimate.to_dict()
    read = MeanEstimate.from_dict(estimate.to_dict(), Budget(1))
    np.testing.assert_allclose(read.confidence_interval(0.95).high, estimate.upper)
    with pytest.raises(ParameterError, match=r"0\.95"):
        read.confidence_interval(0.9)


def test_differences_know_their_bounds_and_names():
    frame = pd.DataFrame({"after": AFTER, "before": BEFORE})
    schema = Schema.from_bounds({"before": (0, 10), "after": (-2, 12)}, rows_per_person=2)
    result = run(pt.ttest_rel, frame[["after"]], frame[["before"]], bounds=schema)
    assert result.parameters["columns"] == ["after - before"]
    assert result.unit == "person with at most 2 rows"
    sided = run(pt.ttest_rel, AFTER, BEFORE, bounds=((-2, 12), (0, 10)), alternative="greater")
    assert sided.estimates["upper"] == pytest.approx(12)
    assert "columns" not in sided.parameters


@pytest.mark.parametrize("seed", range(8))
def test_equivalence_is_an_interval_within_limits(seed):
    """The interval of level 1 - 2 alpha lies inside exactly if the test rejects."""
    limit = 0.2 + 0.1 * seed
    for name in ("tost_ind", "tost_rel"):
        test, data = TESTS[name]
        result = run(test, *data[:2], -limit, limit + 0.3, seed=seed, epsilon=3)
        inside = -limit < result.estimates["lower"] and result.estimates["upper"] < limit + 0.3
        assert inside == result.reject
    assert "90% interval" in str(result)


def test_equivalence_without_noise_is_two_t_tests():
    x, y = X[:, 0], Y[:, 0]
    middle = x.mean() - y.mean()
    options = {"epsilon": 1e6}
    result = run(pt.tost_ind, x, y, middle - 0.2, middle + 0.3, **options)
    expected = stats.ttest_ind(x - (middle - 0.2), y, alternative="greater")
    assert result.pvalue == pytest.approx(expected.pvalue, abs=0.01)
    assert result.statistic == pytest.approx(expected.statistic, rel=0.02)


def test_bad_parameters():
    with pytest.raises(ParameterError, match="low must be below high"):
        run(pt.tost_ind, X[:, 0], Y[:, 0], 1, -1)
    with pytest.raises(ParameterError, match="alpha"):
        run(pt.tost_rel, AFTER, BEFORE, -1, 1, alpha=0.5)
    with pytest.raises(DataError, match="one numeric column"):
        run(pt.ttest_rel, X, X)
    with pytest.raises(DataError, match="same number of rows"):
        run(pt.ttest_rel, AFTER, BEFORE[1:])
    with pytest.raises(ParameterError, match="bounds"):
        run(pt.ttest_rel, AFTER, BEFORE, bounds=None)


@pytest.mark.parametrize("name", TESTS)
def test_estimates_are_possible_and_lie_in_their_intervals(name):
    test, data = TESTS[name]
    few = [part[:5] if isinstance(part, np.ndarray) else part for part in data]
    for seed in range(6):
        shown = run(test, *few, seed=seed, epsilon=0.05).estimates
        middle = shown["difference"] if "difference" in shown else shown["mean"]
        assert np.all((shown["lower"] <= middle) & (middle <= shown["upper"]))
        for mean in ("mean_x", "mean_y"):
            assert np.all(np.abs(np.asarray(shown.get(mean, 5.0)) - 5) <= 5)
        assert np.all(np.abs(middle) <= 10)


def test_an_estimated_mean_and_those_of_groups_are_cut_to_the_bounds():
    estimate = run(pt.private_mean, X[:5], epsilon=0.01, seed=3)
    assert np.any(estimate.mean != estimate.region_centre)
    assert np.all((estimate.lower <= estimate.mean) & (estimate.mean <= estimate.upper))
    groups = run(pt.f_oneway, X[:5, 0], Y[:5, 0], X[:5, 1], epsilon=0.01, seed=3).estimates
    assert np.all((groups["lower"] <= groups["mean"]) & (groups["mean"] <= groups["upper"]))


def test_words_of_one_mean_and_of_differences():
    head = "Private mean of 300 rows, with its 95% interval:"
    assert str(run(pt.private_mean, BEFORE)).startswith(head)
    for name in ("ttest_rel", "tost_rel"):
        test, data = TESTS[name]
        assert "private mean of differences, first minus second (" in str(run(test, *data))
    assert "(90%)" in str(run(pt.private_mean, X).confidence_interval(0.9))


def test_a_calibration_for_any_law_is_wider():
    x, y = X[:60, 0], Y[:60, 0]
    options = {"epsilon": 1e6, "bounds": (0, 100)}
    widths = {}
    for how in ("classical", "any"):
        interval = run(pt.ttest_ind, x, y, calibration=how, **options).confidence_interval(0.99)
        widths[how] = interval.high - interval.low
    classical = stats.ttest_ind(x, y).confidence_interval(0.99)
    assert widths["classical"] == pytest.approx(classical.high - classical.low, rel=0.01)
    assert widths["any"] > 2 * widths["classical"]
