"""Hotelling's test, the t-tests, and private means and covariances."""

from __future__ import annotations

import copy
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from scipy.stats import f as f_law

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.data.encoding import Sample
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.mechanisms.moments import cube_moments, plan_release, release_sample
from privatest.methods.mean_inference import Contrast, NoisyStudent, replicate, scenarios
from privatest.methods.means import (
    hotelling_1samp,
    hotelling_test,
    private_covariance,
    private_mean,
    tost_ind,
    ttest_1samp,
    ttest_ind,
)
from privatest.noise import SimulatedNoise

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(2, 8, size=(400, 3)), RNG.uniform(3, 8, size=(300, 3))
BOX = (0.0, 10.0)
BUDGETS = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}]


def release_encoded(rows, plan):
    (found,) = cube_moments(Sample(rows, None))
    return release_sample(found, plan, SimulatedNoise(0))


def run(test, *data, seed=0, **options):
    settings = {"bounds": BOX, "epsilon": 1.0, "rng": seed}
    if test not in (tost_ind, ttest_ind, ttest_1samp):
        settings["n_bootstrap"] = 99
    return test(*data, noise=SimulatedNoise(seed), **(settings | options))


def classical(x, y):
    """Hotelling's t² with pooled covariance."""
    n, m = len(x), len(y)
    pooled = ((n - 1) * np.cov(x.T) + (m - 1) * np.cov(y.T)) / (n + m - 2)
    w = x.mean(axis=0) - y.mean(axis=0)
    return n * m / (n + m) * w @ np.linalg.solve(pooled, w)


@pytest.mark.parametrize("budget", [{"epsilon": 1e7}, {"epsilon": 1e5, "delta": 0.5}])
def test_without_noise_it_is_the_classical_test(budget):
    result = run(hotelling_test, X[:40], Y[:30], n_bootstrap=999, **budget)
    expected = classical(X[:40], Y[:30])
    assert result.statistic == pytest.approx(expected, rel=1e-2)
    # f = n + m - 2: (f - d + 1)/(f d) t² is F with d and f - d + 1 degrees of freedom
    exact = f_law.sf(expected * 66 / (68 * 3), 3, 66)
    assert result.pvalue == pytest.approx(exact, rel=0.05, abs=0.002)
    np.testing.assert_allclose(result.estimates["mean_x"], X[:40].mean(axis=0), atol=1e-2)
    one = run(hotelling_1samp, X, 5.0, **budget)
    np.testing.assert_allclose(one.estimates["covariance"], np.cov(X.T), atol=5e-2)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("reach", [4, 16])
@pytest.mark.parametrize(("n", "p"), [(30, 0.05), (30, 0.001), (100, 0.01), (400, 0.001)])
def test_without_noise_a_t_test_is_that_of_scipy(n, p, reach, alternative):
    """An unseen row at the bounds gave .098 for .05 at n = 100, and .057 for .001."""
    z = stats.norm.ppf((np.arange(n) + 0.5) / n)
    z /= z.std(ddof=1)
    side = -1 if alternative == "less" else 1
    tail = p / 2 if alternative == "two-sided" else p
    x = z + side * stats.t.isf(tail, n - 1) / n**0.5
    for seed in range(3):
        options = {"bounds": (-reach, reach), "epsilon": 10_000, "alternative": alternative}
        found = run(ttest_1samp, x, 0.0, seed=seed, **options)
        assert found.pvalue == pytest.approx(p, rel=0.05)
        known = stats.ttest_1samp(x, 0.0, alternative=alternative)
        assert found.statistic == pytest.approx(known.statistic, rel=0.01)
        ends = np.clip(known.confidence_interval(0.95), -reach, reach)
        shown = found.estimates["lower"], found.estimates["upper"]
        np.testing.assert_allclose(shown, ends, atol=0.02 * x.std() / n**0.5)


@pytest.mark.parametrize("equal", [True, False])
def test_without_noise_two_samples_are_those_of_scipy(equal):
    rng = np.random.default_rng(3)
    x, y = rng.normal(5, 0.5, size=40), rng.normal(5.3, 0.8, size=25)
    for alternative in ("two-sided", "less", "greater"):
        sided = {"equal_var": equal, "alternative": alternative}
        found = run(ttest_ind, x, y, epsilon=1e5, **sided)
        assert found.pvalue == pytest.approx(stats.ttest_ind(x, y, **sided).pvalue, rel=0.02)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("t", [1.7, -2.5])
def test_quadrature_is_what_simulation_gives(budget, t):
    """1,000,000 simulated releases, seeded: 5 standard errors and 3% for the lattice."""
    plan = plan_release(100, 1, Budget(budget["epsilon"], budget.get("delta", 0)), 1)
    sample = release_encoded(RNG.beta(9, 1, size=(100, 1)), plan)
    contrast = Contrast((sample,), (1.0,), 100.0)
    case = scenarios(contrast)[0]
    draws = replicate(contrast, case, 1_000_000, np.random.default_rng(0))
    drawn = draws.deviations[:, 0] / np.sqrt(draws.diagonals[:, 0] / 100)
    law = NoisyStudent(contrast, (float(case[0][0, 0]),))
    for side in ("greater", "less", "two-sided"):
        above = {"greater": drawn >= t, "less": drawn <= t, "two-sided": abs(drawn) >= abs(t)}
        rate = float(np.mean(above[side]))
        assert law.pvalue(t, side) == pytest.approx(rate, rel=0.03, abs=5 * (rate / 1e6) ** 0.5)


@pytest.mark.parametrize("epsilon", [1, 10, 100, 1e4, 1e7])
@pytest.mark.parametrize("n", [3, 5, 10, 30, 100, 400])
def test_a_large_effect_has_a_small_p_value_on_its_own_side(n, epsilon):
    """Student's tail over its quadrature was 1e14 far out: "less" had p = 0, "greater" p = 1."""
    z = stats.norm.ppf((np.arange(n) + 0.5) / n)
    for spread in (0.0, 0.2, 1.0):
        x = 8 + spread * z
        found = {
            side: run(ttest_1samp, x, 2.0, epsilon=epsilon, alternative=side)
            for side in ("greater", "less", "two-sided")
        }
        assert found["less"].pvalue > 0.5
        assert not found["less"].reject
        assert 0 < found["greater"].pvalue < 0.5
        if n * epsilon >= 100:  # at n = 3 Student's own p-value is .009
            assert found["two-sided"].pvalue < (0.01 if n == 3 else 0.003)
        different = run(tost_ind, x, x - 5, -2, 3, epsilon=epsilon)  # by 5: not equivalent
        assert different.pvalue > 0.5


def test_tails_fall_with_t():
    plan = plan_release(30, 1, Budget(10), 1)
    contrast = Contrast((release_encoded(np.full((30, 1), 0.5), plan),), (1.0,), 30.0)
    law = NoisyStudent(contrast, (0.01,))
    for side in ("greater", "two-sided"):
        found = [law.pvalue(t, side) for t in np.geomspace(0.01, 1e4, 200)]
        assert np.all(np.diff(found) <= 0)
        assert found[-1] > 0


def test_former_names_of_calibrations():
    with pytest.warns(DeprecationWarning, match="classical"):
        old = run(ttest_1samp, X[:, 0], 5.0, calibration="normal")
    assert old.parameters["calibration"] == "classical"
    assert old.pvalue == run(ttest_1samp, X[:, 0], 5.0).pvalue


def test_second_moment_is_taken_about_the_released_mean():
    """Only where the mean is clearly off the centre, and only where there are axes."""
    rows = np.full((2000, 4), [0.5, 0.95, 0.5, 0.5])
    plan = plan_release(2000, 4, Budget(5), 1)
    sample = release_encoded(rows, plan)
    assert sample.about[0] == 0
    assert sample.about[1] == pytest.approx(0.9, abs=0.05)
    assert sample.unit == pytest.approx((3 + 1.9**2) / 2000, rel=0.1)
    for few in (1, 3):
        part = release_encoded(rows[:, 1 : 1 + few], plan_release(2000, few, Budget(5), 1))
        assert not part.about.any()


@pytest.mark.parametrize("budget", BUDGETS)
def test_region_and_decision_agree(budget):
    for seed in range(12):
        result = run(hotelling_test, X, Y, seed=seed, **(budget | {"epsilon": 0.3}))
        w, shape = result.estimates["region_centre"], result.estimates["region_shape"]
        distance = w @ np.linalg.solve(shape, w)
        assert distance == pytest.approx(result.statistic)
        assert (distance > result.estimates["region_radius"]) == result.reject
        assert result.reject == (result.pvalue <= 0.05)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("calibration", ["classical", "any"])
def test_interval_and_decision_agree(alternative, calibration):
    seen = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(0, 9, size=150), rng.uniform(seed % 3, 9 - (seed + 1) % 3, size=150)
        result = run(ttest_ind, x, y, seed=seed, alternative=alternative, calibration=calibration)
        inside = result.estimates["lower"] <= 0 <= result.estimates["upper"]
        assert inside != result.reject
        seen.add(result.reject)
    assert seen == {True, False}


def test_one_sided_intervals_end_at_the_bounds():
    result = run(ttest_ind, X[:, 0], Y[:, 0], alternative="greater")
    assert result.estimates["upper"] == pytest.approx(10.0)
    result = run(ttest_1samp, X[:, 0], 5.0, alternative="less")
    assert result.estimates["lower"] == pytest.approx(0.0)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 1e3, 1e5])
def test_no_interval_leaves_what_is_possible(epsilon):
    x, y = X[:10, :2], Y[:10, :2]
    for seed in range(5):
        found = [
            (run(hotelling_test, x, y, epsilon=epsilon, seed=seed).estimates, -10, 10),
            (run(ttest_ind, x[:, 0], y[:, 0], epsilon=epsilon, seed=seed).estimates, -10, 10),
            (run(hotelling_1samp, x, 5.0, epsilon=epsilon, seed=seed).estimates, 0, 10),
            (run(private_mean, x, epsilon=epsilon, seed=seed).to_dict(), 0, 10),
        ]
        for shown, low, high in found:
            lower, upper = np.atleast_1d(shown["lower"]), np.atleast_1d(shown["upper"])
            assert np.all((low - 1e-9 <= lower) & (lower <= upper) & (upper <= high + 1e-9))


@pytest.mark.parametrize("budget", BUDGETS)
def test_one_column_is_the_t_test(budget):
    x, y = X[:, 0], Y[:, 0]
    wide, narrow = run(hotelling_test, x, y, **budget), run(ttest_ind, x, y, **budget)
    assert narrow.statistic**2 == pytest.approx(wide.statistic)
    assert narrow.pvalue == wide.pvalue
    assert narrow.estimates["lower"] == pytest.approx(float(wide.estimates["lower"][0]))
    wide, narrow = run(hotelling_1samp, x, 5.0, **budget), run(ttest_1samp, x, 5.0, **budget)
    assert narrow.statistic**2 == pytest.approx(wide.statistic)
    assert narrow.pvalue == wide.pvalue


def test_sides_of_the_t_test():
    high, low = Y[:, 0] + 1, X[:, 0]
    up = run(ttest_ind, high, low, alternative="greater")
    down = run(ttest_ind, high, low, alternative="less")
    assert up.pvalue + down.pvalue == pytest.approx(1)
    assert up.statistic == down.statistic > 0
    assert up.pvalue < 0.05


@pytest.mark.parametrize("budget", BUDGETS)
def test_units_do_not_matter(budget):
    scales = np.array([1.0, 1e-3, 1e6])
    plain = run(hotelling_test, X, Y, **budget)
    scaled = run(
        hotelling_test, X * scales - 7, Y * scales - 7, bounds=np.outer(scales, BOX) - 7, **budget
    )
    assert scaled.pvalue == pytest.approx(plain.pvalue, rel=1e-6)
    assert scaled.statistic == pytest.approx(plain.statistic, rel=1e-6)
    np.testing.assert_allclose(
        scaled.estimates["difference"], plain.estimates["difference"] * scales, rtol=1e-6
    )


def test_the_budget_of_each_sample():
    """A record is in one sample, so each gets all of it; in both, so each gets half."""
    noise = {}
    for adjacency in ("one", "both"):
        result = run(hotelling_test, X, Y, adjacency=adjacency, epsilon="0.1")
        assert result.spent == Budget("0.1")
        assert result.adjacency == adjacency
        noise[adjacency] = result.estimates["mean_x"] - X.mean(axis=0)
    np.testing.assert_allclose(noise["both"], 2 * noise["one"], rtol=1e-6)


def test_plans():
    def ridge(plan):
        rows = np.full((plan.n, plan.dimension), 0.5)
        return release_encoded(rows, plan).ridge

    budget = Budget(1)
    one, five = plan_release(1000, 10, budget, 1), plan_release(1000, 10, budget, 5)
    assert one.mean_scale == pytest.approx(2 / (1000 * 0.7), rel=1e-6)
    assert one.variance == pytest.approx(11 * 12 / 3 * one.mean_scale**2)
    # in ten columns noise on an eigenvalue has variance 70/11 of its scale squared
    size = (70 / 11 / 2) ** 0.5 / 0.15
    assert ridge(one) == pytest.approx(size * 10 / 1000, rel=1e-6)
    assert ridge(plan_release(1000, 1, budget, 1)) == pytest.approx(1 / 0.3 / 1000, rel=1e-6)
    assert five.mean_scale == pytest.approx(5 * one.mean_scale, rel=1e-6)
    assert ridge(five) == pytest.approx(5 * ridge(one), rel=1e-6)
    gaussian = plan_release(1000, 10, Budget(1, "1e-6"), 1)
    assert gaussian.variance == pytest.approx(gaussian.mean_scale**2)
    assert ridge(gaussian) == pytest.approx(gaussian.sigma_second * 5**0.5)


def test_schema():
    schema = Schema(
        {name: NumericColumn(*BOX) for name in "abc"} | {"d": CategoricalColumn(("u", "v"))}, 4
    )
    table = dict(zip("abc", X.T, strict=True))
    result = run(hotelling_test, table, table, bounds=schema.select(["a", "b", "c"]))
    assert result.unit == "person with at most 4 rows"
    assert result.parameters["columns"] == ["a", "b", "c"]
    with pytest.raises(DataError, match="'d' is categorical"):
        run(private_mean, table | {"d": ["u"] * len(X)}, bounds=schema)


def test_what_comes_back():
    result = run(hotelling_test, X, Y)
    assert set(result.to_dict()["estimates"]) == {
        "mean_x",
        "mean_y",
        "difference",
        "lower",
        "upper",
        "covariance",
        "region_shape",
        "region_radius",
        "region_centre",
    }
    json.loads(result.to_json())
    assert copy.deepcopy(result).pvalue == result.pvalue
    assert result.simulated
    assert "NOT private" in str(result)
    for estimate in (run(private_mean, X), run(private_covariance, X)):
        assert "NOT private" in str(estimate)
        assert json.loads(estimate.to_json())["epsilon"] == 1
        with pytest.raises(ValueError, match="read-only"):
            estimate.mean[0] = 0
    assert "epsilon = 1" in str(private_mean(X, bounds=BOX, epsilon=1, n_bootstrap=19))


def test_private_mean_is_the_one_sample_test():
    estimate, test = run(private_mean, X), run(hotelling_1samp, X, 5.0)
    np.testing.assert_array_equal(estimate.mean, test.estimates["mean"])
    np.testing.assert_allclose(estimate.lower, test.estimates["lower"])
    assert np.all(estimate.lower < estimate.mean)
    assert estimate.confidence == 0.95


def test_covariance_gets_most_of_its_budget():
    errors: dict[str, list[float]] = {"mean": [], "covariance": []}
    exact = np.cov(X.T)
    for seed in range(30):
        for name, function in (("mean", private_mean), ("covariance", private_covariance)):
            released = run(function, X, seed=seed, epsilon=3.0, n_bootstrap=19)
            errors[name].append(float(np.linalg.norm(released.covariance - exact)))
    assert np.mean(errors["covariance"]) < 0.7 * np.mean(errors["mean"])
    assert np.all(released.lower < released.upper)


# --- what is refused, and what only looks bad ------------------------------------------------

FUNCTIONS = [
    (hotelling_test, (X, Y)),
    (hotelling_1samp, (X, 5.0)),
    (private_mean, (X,)),
    (private_covariance, (X,)),
    (ttest_ind, (X[:, 0], Y[:, 0])),
    (ttest_1samp, (X[:, 0], 5.0)),
]


@pytest.mark.parametrize(("function", "data"), FUNCTIONS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": None}, "bounds must be given"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": (0, 1e200)}, "bounds"),
        ({"epsilon": 0}, "epsilon"),
        ({"alpha": 1.5}, "alpha"),
        ({"rng": "x"}, "rng"),
    ],
)
def test_bad_parameters(function, data, options, words):
    with pytest.raises(ParameterError, match=words):
        run(function, *data, **options)


def test_other_bad_parameters():
    for options, words in (
        ({"adjacency": "row"}, "sizes of the groups"),
        ({"adjacency": "none"}, "adjacency"),
        ({"n_bootstrap": 18}, "alpha must be at least 0.0526 with 18 bootstrap"),
        ({"n_bootstrap": 9.5}, "n_bootstrap"),
        ({"equal_covariance": "yes"}, "equal_covariance"),
        ({"adjacency": "both", "epsilon": "0.0000015"}, "epsilon"),
    ):
        with pytest.raises(ParameterError, match=words):
            run(hotelling_test, X, Y, **options)
    for mean in ([1, 2], "x", np.nan):
        with pytest.raises(ParameterError, match="mean must be"):
            run(hotelling_1samp, X, mean)
    with pytest.raises(ParameterError, match="alternative"):
        run(ttest_ind, X[:, 0], Y[:, 0], alternative="up")
    with pytest.raises(ParameterError, match="calibration"):
        run(ttest_ind, X[:, 0], Y[:, 0], calibration="magic")
    with pytest.raises(DataError, match="one column"):
        run(ttest_ind, X, Y)
    with pytest.raises(DataError, match="at least 2 rows"):
        run(hotelling_test, X[:1], Y)
    with pytest.raises(DataError, match="at least 2 rows"):
        run(private_mean, X[:1])


@pytest.mark.parametrize("budget", [*BUDGETS, {"epsilon": 1e-5}, {"epsilon": 1000.0}])
@pytest.mark.parametrize(
    "data",
    [
        np.full((50, 3), 4.0),  # constant
        np.hstack([X[:50, :2], X[:50, :1]]),  # collinear
        np.hstack([X[:50, :1], np.full((50, 1), 10.0)]),  # one column constant, at a bound
        X[:4, [0, 1, 2, 0, 1, 2]],  # more columns than rows
        X[:2],  # two rows
        np.full((50, 2), 1e9),  # all of it clipped
    ],
)
def test_hard_data_gives_a_valid_answer(data, budget):
    for seed in range(3):
        result = run(hotelling_test, data, data[::-1], seed=seed, **budget)
        assert 0 < result.pvalue <= 1
        assert np.isfinite(result.statistic)
        json.loads(result.to_json())  # no infinity, no NaN
        json.loads(run(private_covariance, data, seed=seed, **budget).to_json())


def test_errors_do_not_quote_data():
    canary = 0.73462910
    bad = np.array([[canary, np.nan], [canary, 1.0]])
    for function in (hotelling_test, hotelling_1samp):
        with pytest.raises(DataError) as caught:
            run(function, bad, bad)
        assert "7346" not in str(caught.value)
    with pytest.raises(ParameterError) as caught_:
        run(hotelling_test, X, Y, bounds=np.full((3, 5), canary))
    assert "7346" not in str(caught_.value)


# --- words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alternative", "two", "one"),
    [
        ("two-sided", "the two samples have the same mean", "the mean is 5"),
        ("greater", "of the first sample is at most that of the second", "the mean is at most 5"),
        ("less", "of the first sample is at least that of the second", "the mean is at least 5"),
    ],
)
def test_the_hypothesis_has_a_side(alternative, two, one):
    x = np.linspace(0, 9, 50)
    options = {"bounds": (0, 10), "epsilon": 1, "alternative": alternative}
    result = run(ttest_ind, x, x, **options)
    assert result.null_hypothesis.endswith(two)
    assert result.null_hypothesis in str(result)
    assert run(ttest_1samp, x, 5, **options).null_hypothesis == one


def test_means_of_a_frame_have_the_names_of_its_columns():
    rng = np.random.default_rng(0)
    columns = {"age": rng.uniform(0, 9, 99), "<visits>\x1b[2J": rng.uniform(0, 9, 99)}
    for data in (columns, pd.DataFrame(columns), pa.table(columns), pl.DataFrame(columns)):
        for function in (private_mean, private_covariance):
            estimate = run(function, data, bounds=(0, 10), epsilon=1)
            assert estimate.columns == tuple(columns)
            assert "  age " in str(estimate)
            assert "\x1b" not in str(estimate)
            assert "column 1" not in str(estimate)
    for series in (pd.DataFrame(columns)["age"], pl.DataFrame(columns)["age"]):
        assert "  age " in str(run(private_mean, series, bounds=(0, 10), epsilon=1))
    assert "  column 2 " in str(run(private_mean, np.ones((9, 2)), bounds=(0, 9), epsilon=1))


def test_html_forms():
    rng = np.random.default_rng(0)
    columns = {"age": rng.uniform(0, 9, 99), "<visits>": rng.uniform(0, 9, 99)}
    mean = run(private_mean, columns, bounds=(0, 10), epsilon=1)
    covariance = run(private_covariance, columns, bounds=(0, 10), epsilon=1)
    for estimate in (mean, covariance):
        text = estimate._repr_html_()
        assert text.startswith("<table><caption>Private ")
        assert "<th>&lt;visits&gt;</th>" in text
        assert "<visits>" not in text
        assert "NOT private" in text
    assert f"<td>{mean.mean[0]:.6g}</td>" in mean._repr_html_()
    assert f"<td>{covariance.covariance[0, 1]:.6g}</td>" in covariance._repr_html_()


# --- bounds by name -------------------------------------------------------------------------


def test_bounds_by_name():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"visits": rng.uniform(0, 9, 99), "age": rng.uniform(15, 45, 99)})
    named = {"age": (15, 45), "visits": (0, 9)}
    by_place = [(0, 9), (15, 45)]
    means = run(private_mean, frame, bounds=named, epsilon=1e6)
    assert means.columns == ("age", "visits")
    plain = run(private_mean, frame, bounds=by_place, epsilon=1e6)
    np.testing.assert_allclose(means.mean, plain.mean[::-1], atol=1e-3)
    run(hotelling_test, frame, frame, bounds=named, epsilon=1)
    run(hotelling_1samp, frame, [30, 4], bounds=named, epsilon=1)
    run(private_covariance, frame, bounds=named, epsilon=1)
    for data in (frame["age"], frame[["age"]], pl.DataFrame(frame.to_dict("list"))["age"]):
        run(ttest_ind, data, data, bounds={"age": (15, 45)}, epsilon=1)
        run(ttest_1samp, data, 30, bounds={"age": (15, 45)}, epsilon=1)
    with pytest.raises(ParameterError, match=r"not for plain arrays\.$"):
        run(private_mean, frame.to_numpy(), bounds=named, epsilon=1)
    with pytest.raises(ParameterError, match="the name of the series"):
        run(private_mean, frame["age"], bounds=named, epsilon=1)
    with pytest.raises(DataError, match="'weight' of x is missing"):
        run(private_mean, frame, bounds={"weight": (0, 9)}, epsilon=1)
    with pytest.raises(ParameterError, match="column 'age': bounds must be two finite numbers"):
        run(private_mean, frame, bounds={"age": 45}, epsilon=1)
