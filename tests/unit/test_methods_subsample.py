"""test_of_tests and sarrm_test: any p-value function, its faults, the level, neighbours."""

from __future__ import annotations

import itertools
import json
import math
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.core.errors import DataError, ParameterError, PrivacyError, PrivatestError
from privatest.core.results import Decision, Outcome
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn, Schema
from privatest.methods import subsample as running
from privatest.methods.subsample import (
    DEPENDENCE,
    TWO_SAMPLE,
    Pooled,
    hsic_pvalue,
    mmd_pvalue,
    read_sides,
    sarrm_test,
    sub_test,
    test_of_tests,
    units_of,
)
from privatest.noise import SimulatedNoise
from privatest.numerics.kernels import Kernel
from privatest.numerics.laws import LatticeTulap, binomial_law
from privatest.numerics.permutation import mmd

UNIT = Domain((0,))
RNG = np.random.default_rng(5)
X, Y = RNG.uniform(size=300), RNG.uniform(size=250)


@pytest.fixture
def no_noise(monkeypatch):
    """Make it an error to draw noise."""

    def refuse(*_):
        raise AssertionError("noise was drawn")

    for name in ("permutation", "below", "discrete_laplace", "laplace"):
        monkeypatch.setattr(SimulatedNoise, name, refuse)


def seeded(seed=0) -> dict[str, Any]:
    return {"rng": seed, "noise": SimulatedNoise(seed)}


def half(x, y):
    return 0.5


# --- what comes back -------------------------------------------------------------------------


def test_outcome_of_a_test_of_tests():
    shifted = Y + 0.8
    result = test_of_tests(X, shifted, pvalue="mmd", epsilon=2, bounds=(0, 2), **seeded())
    assert isinstance(result, Outcome)
    assert result.reject
    assert result.pvalue <= 0.05
    assert result.statistic == pytest.approx(15, abs=8)  # about all of 15 subsets
    assert dict(result.sizes) == {"n": 300, "m": 250}
    assert (result.adjacency, result.simulated) == ("one", True)
    expected = {"pvalue": "mmd", "n_subsets": 15, "sub_alpha": 0.25, "n_permutations": 199}
    assert dict(result.parameters) == expected
    assert json.loads(result.to_json())["method"] == "test of tests of mmd"


def test_decision_of_sarrm():
    result = sarrm_test(X, Y + 0.8, pvalue="mmd", epsilon=5, bounds=(0, 2), **seeded())
    assert type(result) is Decision
    assert result.reject
    assert result.parameters["n_subsets"] == 3
    assert result.parameters["truth_probability"] == pytest.approx(0.995525, abs=1e-6)
    # 52/394 is the multiple closest to .132057 that at most 399 permutations can have
    assert result.parameters["n_permutations"] <= 399
    assert 0.1319 < result.parameters["sub_alpha"] <= 0.132057
    assert json.loads(result.to_json())["method"] == "SARRM test of mmd"


@pytest.mark.parametrize("test", [test_of_tests, sarrm_test])
def test_independence(test):
    result = test(X, 0.1 * RNG.normal(size=300) + X, pvalue="pearsonr", epsilon=5, **seeded())
    assert result.reject
    assert dict(result.sizes) == {"n": 300}
    assert result.adjacency == "one"
    assert result.null_hypothesis == "the two sides are independent"
    bounds = {"bounds_x": (0, 1), "bounds_y": (-1, 2)}
    assert test(X, X, pvalue="hsic", epsilon=5, **bounds, **seeded()).reject


@pytest.mark.parametrize(
    "name",
    [
        "anderson_ksamp",
        "brunnermunzel",
        "cramervonmises_2samp",
        "epps_singleton_2samp",
        "kruskal",
        "ks_2samp",
        "mannwhitneyu",
        "ttest_ind",
    ],
)
def test_two_sample_names(name):
    assert test_of_tests(X, Y + 0.7, pvalue=name, epsilon=3, n_subsets=9, **seeded()).reject


@pytest.mark.parametrize("name", ["ansari", "mood"])
def test_names_for_scale(name):
    assert test_of_tests(X, 0.5 + 6 * (Y - 0.5), pvalue=name, epsilon=2, **seeded()).reject


@pytest.mark.parametrize("name", ["kendalltau", "spearmanr"])
def test_dependence_names(name):
    assert test_of_tests(X, X**3, pvalue=name, epsilon=2, **seeded()).reject


def test_pytest_does_not_collect_it():
    assert vars(test_of_tests)["__test__"] is False


def test_the_seed_decides_a_simulation():
    first, second = (
        test_of_tests(X, Y, pvalue="mmd", epsilon=1, bounds=(0, 1), **seeded(3)) for _ in range(2)
    )
    assert first == second


def test_delta_is_spent():
    result = test_of_tests(X, Y, pvalue="ks_2samp", epsilon=1, delta="1e-6", **seeded())
    assert (float(result.spent.epsilon), float(result.spent.delta)) == (1.0, 1e-6)


# --- what a function sees --------------------------------------------------------------------


class Recorder:
    """A p-value function that keeps what it saw; the first call is the synthetic one."""

    def __init__(self, value=0.5):
        self.value, self.calls = value, []

    def __call__(self, x, y):
        self.calls.append((np.array(x), np.array(y)))
        return self.value


def test_subsets_are_disjoint_and_hold_every_row():
    seen = Recorder()
    test_of_tests(X, Y, pvalue=seen, epsilon=1, **seeded())
    first, second = (np.concatenate(side) for side in zip(*seen.calls[1:], strict=True))
    assert np.array_equal(np.sort(first), np.sort(X))
    assert np.array_equal(np.sort(second), np.sort(Y))
    assert not np.array_equal(first, X)  # in a secret order
    assert {len(x) for x, _ in seen.calls[1:]} == {20}
    assert {len(y) for _, y in seen.calls[1:]} == {16, 17}


def test_pairs_stay_together():
    seen = Recorder()
    sarrm_test(X, X + 7, pvalue=seen, epsilon=3, scheme="independence", **seeded())
    assert all(np.array_equal(x + 7, y) for x, y in seen.calls[1:])
    assert len(seen.calls) == 4


def test_rows_come_in_their_own_units_clipped():
    seen = Recorder()
    rows = np.arange(100) % 10
    test_of_tests(rows, rows, pvalue=seen, epsilon=1, bounds=(2, 6), **seeded())
    values = np.concatenate([x for x, _ in seen.calls[1:]])
    assert set(values) == {2.0, 3.0, 4.0, 5.0, 6.0}
    assert seen.calls[0][0].min() >= 2
    assert seen.calls[0][0].max() <= 6


def test_several_columns_come_as_rows_and_categories_as_codes():
    seen = Recorder()
    schema = Schema({"v": NumericColumn(0, 10), "c": CategoricalColumn(("a", "b", "c"))})
    table = {"v": np.arange(50) / 5, "c": ["a", "c"] * 25}
    test_of_tests(table, table, pvalue=seen, epsilon=1, bounds=schema, **seeded())
    assert all(x.shape == (len(x), 2) for x, _ in seen.calls)
    assert {float(code) for x, _ in seen.calls[1:] for code in x[:, 1]} == {0.0, 2.0}
    assert {float(code) for code in seen.calls[0][0][:, 1]} <= {0.0, 1.0, 2.0}


def test_a_function_may_change_its_arguments():
    def hostile(x, y):
        x[:] = y[:] = 0
        return 0.5

    before = X.copy()
    test_of_tests(X, Y, pvalue=hostile, epsilon=1, **seeded())
    assert np.array_equal(X, before)


@pytest.mark.parametrize(
    "value", [0.0, 0, 1, np.float32(0.1), np.array([0.2]), SimpleNamespace(pvalue=0.01)]
)
def test_forms_of_a_pvalue(value):
    result = test_of_tests(X, Y, pvalue=Recorder(value), epsilon=50, **seeded())
    assert result.reject == (value != 1)


def test_a_test_of_scipy_as_a_function():
    result = test_of_tests(X, Y + 1, pvalue=stats.ttest_ind, epsilon=3, **seeded())
    assert result.reject
    assert result.parameters["pvalue"] == "ttest_ind"


# --- faults ----------------------------------------------------------------------------------


def raises(x, y):
    raise KeyError("secret")


@pytest.mark.parametrize("test", [test_of_tests, sarrm_test])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, y: 1.5, "it did not"),
        (lambda x, y: -1e-9, "it did not"),
        (lambda x, y: math.nan, "it did not"),
        (lambda x, y: True, "it did not"),
        (lambda x, y: "0.1", "it did not"),
        (lambda x, y: np.array([0.1, 0.2]), "it did not"),
        (raises, "it raised KeyError"),
        (lambda x: 0.1, "it raised TypeError"),
    ],
)
@pytest.mark.usefixtures("no_noise")
def test_faults_on_synthetic_rows_are_errors_before_noise(test, function, message):
    with pytest.raises(ParameterError, match=rf"in \[0, 1\]; on public synthetic.*{message}"):
        test(X, Y, pvalue=function, epsilon=3, **seeded())


@pytest.mark.parametrize("fault", ["raise", "warn", math.nan, 1.5, -1, "text", None])
def test_faults_on_private_rows_count_as_one(fault):
    def pvalue(x, y):
        if np.isin(x, X).any():
            if fault == "raise":
                raise ValueError(x)
            if fault == "warn":
                warnings.warn(f"saw {x}", stacklevel=1)
                return 1.0
            return fault
        return 0.5

    got = test_of_tests(X, Y, pvalue=pvalue, epsilon=1, **seeded())
    expected = test_of_tests(X, Y, pvalue=Recorder(1.0), epsilon=1, **seeded())
    assert (got.statistic, got.pvalue) == (expected.statistic, expected.pvalue)


TWO = np.ones((60, 2))


@pytest.mark.parametrize(
    ("x", "y", "options", "error"),
    [
        (X[:3], Y, {"pvalue": half}, DataError),
        (X, Y[:7], {"pvalue": "ks_2samp"}, DataError),
        (X, Y, {"pvalue": half, "scheme": "independence"}, DataError),
        (X, Y, {"pvalue": "pearsonr"}, DataError),
        (TWO, TWO, {"pvalue": "ttest_ind"}, DataError),
        (X, Y, {"pvalue": "t-test"}, ParameterError),
        (X, Y, {"pvalue": X}, ParameterError),
        (X, Y, {"pvalue": "mmd"}, ParameterError),  # no bounds, no bandwidth
        (X, Y, {"pvalue": "mmd", "bandwidth": (1, 2)}, ParameterError),
        (X, Y, {"pvalue": "mmd", "bandwidth": 0}, ParameterError),
        (X, Y, {"pvalue": half, "bandwidth": 1}, ParameterError),
        (X, Y, {"pvalue": "ttest_ind", "scheme": "independence"}, ParameterError),
        (X, Y, {"pvalue": half, "scheme": "paired"}, ParameterError),
        (X, X, {"pvalue": "pearsonr", "bounds": (0, 1)}, ParameterError),
        (X, X, {"pvalue": "pearsonr", "adjacency": "both"}, ParameterError),
        (X, Y, {"pvalue": half, "bounds_x": (0, 1)}, ParameterError),
        (X, Y, {"pvalue": half, "adjacency": "two"}, ParameterError),
        (X, Y, {"pvalue": half, "adjacency": "row"}, PrivacyError),
        (X, Y, {"pvalue": half, "epsilon": 0}, ParameterError),
        (X, Y, {"pvalue": half, "alpha": 1}, ParameterError),
        (X, Y, {"pvalue": half, "n_subsets": 126}, ParameterError),
        (X, Y, {"pvalue": half, "n_subsets": 0}, ParameterError),
        (X, Y, {"pvalue": half, "n_permutations": 0}, ParameterError),
        (np.ones(13_000), np.ones(13_000), {"pvalue": "hsic", "n_subsets": 3}, ParameterError),
    ],
)
@pytest.mark.parametrize("test", [test_of_tests, sarrm_test])
@pytest.mark.usefixtures("no_noise")
def test_bad_input_is_refused_before_noise(test, x, y, options, error):
    bounds = {"bounds_x": (0, 1), "bounds_y": (0, 1)} if "n_subsets" in options else {}
    bounds = bounds if isinstance(options["pvalue"], str) else {}
    with pytest.raises(error) as caught:
        test(
            x,
            y,
            **(
                {
                    "epsilon": 9,
                }
                | seeded()
                | bounds
                | options
            ),
        )
    assert isinstance(caught.value, PrivatestError)
    assert str(X[0])[:6] not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"sub_alpha": 0},
        {"sub_alpha": 1},
        {"pvalue": "mmd", "bounds": (0, 1), "n_permutations": 2},  # .25 is below 1/3
    ],
)
@pytest.mark.usefixtures("no_noise")
def test_bad_levels_of_a_test_of_tests(options):
    with pytest.raises(ParameterError):
        test_of_tests(
            X,
            Y,
            **(
                {
                    "pvalue": half,
                    "epsilon": 1,
                }
                | seeded()
                | options
            ),
        )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"adjacency": "both"}, PrivacyError),
        ({"bounds": Schema.from_bounds({"v": (0, 1)}, rows_per_person=2)}, PrivacyError),
        ({"n_subsets": 4}, ParameterError),
        ({"n_subsets": 5}, ParameterError),  # 7 are needed at epsilon = 1
        ({"min_sub_alpha": 0.45}, ParameterError),
        ({"alpha": 1e-300}, ParameterError),  # the level of a subset is no float
    ],
)
@pytest.mark.usefixtures("no_noise")
def test_what_sarrm_refuses(options, error):
    with pytest.raises(error):
        sarrm_test(
            X,
            Y,
            **(
                {
                    "pvalue": half,
                    "epsilon": 1,
                }
                | seeded()
                | options
            ),
        )


@pytest.mark.parametrize(
    ("options", "least"), [({"epsilon": 0.1}, 134), ({"epsilon": 1, "min_sub_alpha": 0.1}, 18)]
)
def test_sarrm_names_the_smallest_size_that_works(options, least):
    def run(n):
        return sarrm_test(np.arange(n), np.arange(999), pvalue=half, **options, **seeded())

    with pytest.raises(ParameterError) as caught:
        run(5)
    found = re.search(r"smallest n that works is (\d+)", str(caught.value))
    assert found is not None
    assert int(found[1]) == least
    run(least)
    with pytest.raises(ParameterError):
        run(least - 1)


# --- choices ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 0.25),
        ({"alpha": 0.011}, 0.055),
        ({"alpha": 0.2}, 0.5),
        ({"sub_alpha": 0.3}, 0.3),
        ({"pvalue": "mmd", "bounds": (0, 1), "n_permutations": 9, "sub_alpha": 0.39}, 0.3),
        ({"pvalue": "mmd", "bounds": (0, 1), "alpha": 0.011}, 11 / 200),
    ],
)
def test_level_of_the_sub_tests(options, expected):
    result = test_of_tests(X, Y, **({"pvalue": half, "epsilon": 1} | options), **seeded())
    assert result.parameters["sub_alpha"] == expected


def test_number_of_subsets():
    def count(n, pvalue=half, n_subsets=None):
        result = test_of_tests(X[:n], Y, pvalue=pvalue, epsilon=1, n_subsets=n_subsets, **seeded())
        return result.parameters["n_subsets"]

    assert [count(n) for n in (4, 100, 240)] == [2, 10, 15]
    assert [count(n, pvalue="ks_2samp") for n in (8, 30, 100)] == [1, 3, 10]  # 8 rows at least
    assert count(100, n_subsets=50) == 50


def test_more_subsets_for_sarrm():
    result = sarrm_test(X, Y, pvalue=half, epsilon=1, n_subsets=9, **seeded())
    assert result.parameters["n_subsets"] == 9
    assert result.parameters["sub_alpha"] > 0.0659


@pytest.mark.parametrize(
    ("options", "width"),
    [
        ({}, 1),
        ({"adjacency": "both"}, 2),
        ({"bounds": Schema.from_bounds({"v": (0, 1)}, rows_per_person=3)}, 3),
        ({"n_subsets": 2, "bounds": Schema.from_bounds({"v": (0, 1)}, rows_per_person=3)}, 2),
    ],
)
def test_more_noise_for_both_and_for_several_rows(options, width):
    found = test_of_tests(X, Y, pvalue=half, epsilon=1, **options, **seeded(4))
    count, law = found.parameters["n_subsets"], LatticeTulap(width, 1.0)
    assert found.statistic is not None
    assert found.pvalue == pytest.approx(
        binomial_law(count, 0.25).pvalue(found.statistic, law), abs=1e-10
    )


# --- permutation p-values --------------------------------------------------------------------


def test_mmd_pvalue_is_the_rank():
    kernel, rng = Kernel("gaussian", 0.25), np.random.default_rng(1)
    x, y = X[:9, None], Y[:7, None] * 0.6
    pooled, order = np.vstack([x, y]), np.tile(np.arange(16) < 9, (39, 1))
    np.random.default_rng(1).permuted(order, axis=1, out=order)
    values = [mmd(pooled[row], pooled[~row], kernel, UNIT) for row in order]
    expected = (1 + sum(value >= mmd(x, y, kernel, UNIT) - 1e-9 for value in values)) / 40
    assert mmd_pvalue(x, y, kernel, UNIT, 39, rng) == expected


def test_equal_rows_have_pvalue_one():
    rng, kernel, rows = np.random.default_rng(0), Kernel("gaussian", 0.25), np.full((20, 1), 0.3)
    assert mmd_pvalue(rows, rows, kernel, UNIT, 99, rng) == 1.0
    assert hsic_pvalue(rows, rows, (kernel, kernel), (UNIT, UNIT), 99, rng) == 1.0
    many = np.full((300, 1), 0.3)
    assert hsic_pvalue(many, many, (kernel, kernel), (UNIT, UNIT), 99, rng) == 1.0


def named(name):
    scheme: Any = "independence" if name in DEPENDENCE else "two-sample"
    return sub_test(name, read_sides(X, X, scheme, "one", (None, None, None), "own"), None)


def test_kruskal_on_eight_rows_has_its_level():
    # All 12,870 ways to assign 16 rows. SciPy's own p-value is at most .25 in .2786 of them. A
    # correct test fails with probability below 1e-6, over the permutations that are drawn.
    test, rows = named("kruskal"), X[:16]
    rejected = 0
    for number, chosen in enumerate(itertools.combinations(range(16), 8)):
        inside = np.isin(np.arange(16), chosen)
        pvalue = test.pvalue(rows[inside], rows[~inside], 39, np.random.default_rng(number))
        rejected += pvalue <= 0.25
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], 12_870, 0.25)
    assert low <= rejected <= high


LAWS = {
    "normal": lambda rng: rng.normal(size=8),
    "lognormal": lambda rng: rng.lognormal(sigma=1.5, size=8),
    "three values": lambda rng: rng.integers(3, size=8) * 1.0,
    "constant": lambda rng: np.ones(8),
}


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", [*TWO_SAMPLE, *DEPENDENCE])
def test_named_tests_have_their_level_on_eight_rows(name, law):
    # Exactly uniform on the multiples of 1/20; 104 limits with false alarms of 1e-6 each.
    test, draw = named(name), LAWS[law]
    found = []
    for number in range(1500):
        rng = np.random.default_rng([number, 3])
        found.append(test.pvalue(draw(rng), draw(rng), 19, np.random.default_rng(number)))
    for level in (0.05, 0.25):
        low, high = stats.binom.ppf([5e-7, 1 - 5e-7], 1500, level)
        assert low <= np.sum(np.array(found) <= level + 1e-12) <= high


def scipy_statistic(name, x, y):
    """Return what grows with the evidence of SciPy's test, at fixed sizes and pooled values."""
    if name == "anderson_ksamp":
        return stats.anderson_ksamp([x, y]).statistic
    if name in ("ansari", "mood"):  # one-sided tests agree with the two-sided statistic's side
        scores = stats.rankdata(np.concatenate([x, y]))
        if name == "ansari":
            mean = np.minimum(scores, len(scores) + 1 - scores).mean() * len(x)
            return abs(stats.ansari(x, y).statistic - mean)
        return abs(stats.mood(x, y).statistic)
    found = getattr(stats, name)(x, y)
    if name == "mannwhitneyu":
        return abs(found.statistic - len(x) * len(y) / 2)
    return abs(found.statistic)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", [*TWO_SAMPLE, *DEPENDENCE])
def test_statistics_are_those_of_scipy(name, ties):
    rng = np.random.default_rng(11)
    pooled: Any = rng.normal(size=40) if not ties else rng.integers(6, size=40) * 1.0
    own, theirs = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(60):
            rng.shuffle(pooled)
            if name in TWO_SAMPLE:
                x, y = pooled[:17], pooled[17:]
                sorted_rows = Pooled(pooled)
                inside = (sorted_rows.order < 17).astype(float)[None]
                own.append(TWO_SAMPLE[name](sorted_rows, inside)[0])
            else:
                x, y = pooled[:20], pooled[20:] + 0.3 * pooled[:20]
                if name != "pearsonr":  # at fixed ties
                    x, y = np.sort(X[:20].round(ties)), rng.permutation(Y[:20].round(ties))
                own.append(DEPENDENCE[name](x, y)(np.arange(20)[None])[0])
            theirs.append(scipy_statistic(name, x, y))
    order = np.argsort(theirs, kind="stable")
    ranked = np.array(own)[order]
    assert np.all(np.diff(ranked) >= -1e-9)
    distinct = np.diff(np.array(theirs)[order]) > 1e-6
    assert np.all(np.diff(ranked)[distinct] > 0)


@pytest.mark.parametrize("name", [*TWO_SAMPLE, *DEPENDENCE])
def test_extreme_rows_do_not_warn_and_are_ordered(name):
    test = named(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (1e-320, 1e-300, 1.0, 1e300, 1.7e308):
            rows = scale * np.linspace(-1, 1, 16)
            value = test.function(rows[:8], rows[8:], 19, np.random.default_rng(0))
            assert isinstance(value, float)
            assert 0.05 <= value <= 1


def test_a_result_says_that_a_function_vouches_for_its_level():
    by_function = test_of_tests(X, Y, pvalue=stats.kruskal, epsilon=1, **seeded())
    assert by_function.method.endswith("at a level that rests on its own p-values")
    by_name = sarrm_test(X, Y, pvalue="kruskal", epsilon=5, **seeded())
    assert by_name.method == "SARRM test of kruskal"


@pytest.mark.statistical
def test_kruskal_in_many_small_subsets_has_its_level():
    # n = m = 2,000, 250 subsets of 8 + 8 rows: SciPy's p-values rejected 21 of 60 at .05. A
    # correct test fails with probability below 1e-6.
    rejected = 0
    for seed in range(120):
        x, y = np.random.default_rng([seed, 4]).normal(size=(2, 2000))
        options = {"n_subsets": 250, "n_permutations": 39} | seeded(seed)
        rejected += test_of_tests(x, y, pvalue="kruskal", epsilon=1, **options).reject
    assert rejected <= stats.binom.ppf(1 - 1e-6, 120, 0.05)


def test_blocks_of_rows_give_valid_pvalues():
    # exact laws: a share above the bound has probability below 1e-4
    kernel, rng = Kernel("gaussian", 0.25), np.random.default_rng(7)

    def pvalue(x, y):
        return hsic_pvalue(x, y, (kernel, kernel), (UNIT, UNIT), 19, rng)

    draws = np.array([pvalue(*rng.uniform(size=(2, 270, 1))) for _ in range(300)])
    for level in (0.05, 0.25, 0.5):
        assert np.sum(draws <= level) <= stats.binom.ppf(1 - 1e-4, 300, level)
    rows = rng.uniform(size=(270, 1))
    assert pvalue(rows, rows) == 0.05


# --- level and neighbours --------------------------------------------------------------------


ONE_BOX: dict[str, Any] = {"bounds": (0, 1)}
TWO_BOXES: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (0, 1)}


def null_pvalues(pvalue, bounds):
    found = []
    for seed in range(300):
        x, y = np.random.default_rng([seed, 1]).uniform(size=(2, 64))
        options = bounds | {"n_permutations": 19} | seeded(seed)
        found.append(test_of_tests(x, y, pvalue=pvalue, epsilon=1.5, **options).pvalue)
    return np.array(found)


@pytest.mark.statistical
@pytest.mark.parametrize(("pvalue", "bounds"), [("mmd", ONE_BOX), ("hsic", TWO_BOXES)])
def test_pvalues_are_uniform_under_the_null_hypothesis(pvalue, bounds):
    # Fixed seeds; a correct test fails with probability below 1e-4.
    assert stats.kstest(null_pvalues(pvalue, bounds), "uniform").pvalue > 1e-4


@pytest.mark.statistical
def test_pvalues_are_uniform_where_the_sub_test_is_discrete():
    # Fixed seeds; a correct test fails with probability below 1e-4.
    assert stats.kstest(null_pvalues("ks_2samp", {}), "uniform").pvalue > 1e-4


@pytest.mark.statistical
def test_sarrm_has_its_level():
    # A correct test leaves these bounds with probability below 2e-4.
    rejected = 0
    for seed in range(400):
        x, y = np.random.default_rng([seed, 2]).uniform(size=(2, 70))
        options = {"alpha": 0.2, "n_permutations": 99} | ONE_BOX | seeded(seed)
        rejected += sarrm_test(x, y, pvalue="mmd", epsilon=2, **options).reject
    low, high = stats.binom.ppf([1e-4, 1 - 1e-4], 400, 0.2)
    assert low <= rejected <= high


@pytest.mark.privacy
@pytest.mark.parametrize("pvalue", ["mmd", "extreme"])
@pytest.mark.parametrize("replaced", [1, 2])
def test_a_replaced_row_changes_one_subset(pvalue, replaced):
    def extreme(x, y):
        return 0.0 if x.max() > 0.99 or y.min() < 0.01 else 1.0

    moved = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(0.02, 0.98, size=(2, 40))
        other_x, other_y = x.copy(), y.copy()
        other_x[rng.integers(40)] = 1.0
        if replaced == 2:
            other_y[rng.integers(40)] = 0.0
        first, second = (
            rejecting(*data, extreme if pvalue == "extreme" else pvalue, seed)
            for data in ((x, y), (other_x, other_y))
        )
        moved.add(int(np.sum(first != second)))
    assert max(moved) == replaced  # never more, and attained


def rejecting(x, y, pvalue, seed):
    sides = read_sides(x, y, "two-sample", "one", ((0, 1), None, None), units_of(pvalue))
    plan = running.SubsetPlan(sub_test(pvalue, sides, None), 8, 0.25, 19)
    found = running.rejections(sides, plan, np.random.default_rng(seed), SimulatedNoise(seed))
    return np.array(found)
