"""permutation_test: what a statistic sees, what it may do, what is refused and when."""

from __future__ import annotations

import functools
import json
import re
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from privatest.core.errors import DataError, ParameterError, PrivatestError
from privatest.core.privacy import Budget, PermutationSensitivity, Sensitivity
from privatest.core.results import Decision, Outcome
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema
from privatest.mechanisms.additive import laplace
from privatest.mechanisms.permutation import permutation_result, smoothed_decision, smoothed_pvalue
from privatest.methods import custom as probe
from privatest.methods import custom as statistic
from privatest.methods import custom as testing
from privatest.methods.custom import (
    Neighbours,
    Space,
    UserStatistic,
    draw,
    permutation_test,
    typical,
)
from privatest.noise import SecureNoise, SimulatedNoise

CANARY = 7.1317513


def gap(x, y):
    return abs(x.mean() - y.mean())


def gaps(x, y):
    return abs(x.mean(axis=1) - y.mean(axis=1))


def distance(x, y):
    return np.linalg.norm(x.mean(axis=0) - y.mean(axis=0))


def distances(x, y):
    return np.linalg.norm(x.mean(axis=1) - y.mean(axis=1), axis=1)


def covariance(x, y):
    return abs(np.mean((x - x.mean()) * (y - y.mean())))


def covariances(x, y):
    centred = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    return abs(np.mean(centred[0] * centred[1], axis=1))


def unit_gap(n, m):
    return 1 / min(n, m)


def unit_covariance(n, m):
    step = (n - 1) / n**2
    return PermutationSensitivity(step, 2 * step)


def samples(n=30, m=20, columns=None, seed=0):
    rng = np.random.default_rng(seed)
    shape = () if columns is None else (columns,)
    return rng.random((n, *shape)), rng.random((m, *shape)) ** 2


def run(data=None, function=gap, **options: Any) -> Any:
    """A quick test with sensible values for what is left out."""
    chosen: dict[str, Any] = {
        "sensitivity": unit_gap,
        "epsilon": 1,
        "bounds": (0, 1),
        "n_permutations": 99,
        "rng": 1,
        "check_sensitivity": False,
        "noise": SimulatedNoise(2),
    }
    return permutation_test(samples() if data is None else data, function, **chosen | options)


@pytest.fixture
def no_noise(monkeypatch):
    """Let every draw of secret randomness fail."""

    def draw(*_):
        raise AssertionError("noise was drawn")

    for name in ("laplace", "gaussian", "discrete_laplace", "below", "permutation"):
        monkeypatch.setattr(SecureNoise, name, draw)


@pytest.fixture
def caught(monkeypatch):
    """What is handed to the noise."""
    calls: list[tuple[Any, dict[str, Any]]] = []
    real = permutation_result

    def spy(statistics, **options):
        calls.append((statistics, options))
        return real(statistics, **options)

    monkeypatch.setattr(testing, "permutation_result", spy)
    return calls


def refused(error: type[PrivatestError], *arguments: Any, **options: Any) -> str:
    """The message of a refusal before any noise is drawn; it is one line without data."""
    with pytest.raises(error) as caught:
        run(*arguments, **{"noise": None} | options)
    message = str(caught.value)
    assert str(CANARY) not in message
    assert "\n" not in message
    return message


# --- statistics and what is released --------------------------------------------------------


def test_the_observed_statistic_is_the_first(caught):
    x, y = samples()
    run((x, y))
    ((statistics, _),) = caught
    assert statistics[0] == pytest.approx(gap(x, y), abs=1e-13)
    assert statistics.shape == (100,)
    assert len(np.unique(statistics)) == 100


def test_two_sample_permutations_are_uniform(caught):
    """Three of five rows: each of the ten choices turns up about equally often."""
    x, y = np.array([1.0, 2, 4]), np.array([8.0, 16])
    run((x, y), lambda x, y: x.sum(), bounds=None, n_permutations=5000, sensitivity=1)
    values, counts = np.unique(caught[0][0][1:], return_counts=True)
    assert len(values) == 10
    assert counts.min() > 400  # 500 expected; 4.7 standard deviations


def test_independence_permutes_y_against_x(caught):
    x, y = np.arange(4.0), 10.0 ** np.arange(4)
    run(
        (x, y),
        lambda x, y: (x * y).sum(),
        bounds=None,
        scheme="independence",
        n_permutations=5000,
        sensitivity=1,
    )
    statistics = caught[0][0]
    assert statistics[0] == 3210
    values, counts = np.unique(statistics[1:], return_counts=True)
    assert len(values) == 24
    assert counts.min() > 140  # 208 expected; 4.8 standard deviations


def test_pvalue_and_decision_are_those_of_the_smoothed_test(caught):
    outcome = run(noise=SimulatedNoise(5), delta=1e-6)
    decision = run(noise=SimulatedNoise(5), release="decision", delta=1e-6)
    (statistics, options), _ = caught

    def shuffled() -> SimulatedNoise:
        noise = SimulatedNoise(5)
        noise.permutation(30)
        noise.permutation(20)
        return noise

    shared = {"sensitivity": options["sensitivity"], "budget": Budget(1, 1e-6)}
    assert outcome.pvalue == smoothed_pvalue(statistics, noise=shuffled(), **shared)
    assert decision.reject == smoothed_decision(statistics, 0.05, noise=shuffled(), **shared)


def test_results_say_what_was_done():
    outcome = run(function=gap, delta=1e-6, alpha=0.1, adjacency="both")
    assert type(outcome) is Outcome
    assert outcome.statistic is None
    assert outcome.simulated
    facts = json.loads(outcome.to_json())
    assert facts["method"] == "two-sample permutation test of gap"
    assert facts["sizes"] == {"n": 30, "m": 20}
    assert facts["adjacency"] == "both"
    assert facts["parameters"]["sensitivity"] == [pytest.approx(0.05)] * 2
    decision = run(release="decision", noise=None)
    assert type(decision) is Decision
    assert not decision.simulated
    pairs = samples(30, 30)
    facts = run(pairs, covariance, sensitivity=unit_covariance, scheme="independence").to_dict()
    assert facts["sizes"] == {"n": 30}
    assert facts["null_hypothesis"] == "the two sides are independent"


def test_statistics_without_a_name():
    assert "partial" in run(function=functools.partial(gap)).method


def test_a_clear_difference_is_found_with_secure_noise():
    rng = np.random.default_rng(0)
    data = rng.random(500), 0.4 + 0.6 * rng.random(400)
    assert run(data, noise=None, rng=None, check_sensitivity=True).reject


@pytest.mark.parametrize(
    ("scheme", "columns", "plain", "stacked", "sensitivity"),
    [
        ("two-sample", None, gap, gaps, unit_gap),
        ("two-sample", 3, distance, distances, lambda n, m: 3**0.5 / min(n, m)),
        ("independence", None, covariance, covariances, unit_covariance),
    ],
)
@pytest.mark.parametrize("privatization", ["smoothed", "naive"])
def test_vectorized_and_plain_agree(scheme, columns, plain, stacked, sensitivity, privatization):
    data = samples(30, 30, columns)
    for seed in range(10):
        shared: dict[str, Any] = {"scheme": scheme, "sensitivity": sensitivity, "rng": seed}
        shared |= {"privatization": privatization, "n_permutations": 19}
        first = run(data, plain, noise=SimulatedNoise(seed), **shared)
        second = run(data, stacked, noise=SimulatedNoise(seed), vectorized=True, **shared)
        assert first.pvalue == second.pvalue
        assert first.reject == second.reject


def test_batches_change_nothing(caught, monkeypatch):
    run(function=gaps, vectorized=True)
    for entries in (1, 7 * 50):
        monkeypatch.setattr(statistic, "_BATCH_ENTRIES", entries)
        run(function=gaps, vectorized=True)
    first, *others = (statistics for statistics, _ in caught)
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-15)


def test_large_stacks_are_cut():
    seen = []

    def watched(x, y):
        seen.append(x.size + y.size)
        return gaps(x, y)

    run(samples(3000, 2000), watched, vectorized=True, n_permutations=999)
    assert max(seen) <= 1 << 20
    assert len(seen) > 5


@pytest.mark.statistical
@pytest.mark.parametrize("scheme", ["two-sample", "independence"])
@pytest.mark.parametrize(
    "options",
    [{}, {"release": "decision"}, {"privatization": "naive"}],
    ids=["pvalue", "decision", "naive"],
)
def test_level(scheme, options):
    """Exact, ties or not. False alarm: below 1e-4 on each side, by the binomial law."""
    runs, alpha, rng = 1200, 0.1, np.random.default_rng(3)
    function = covariances if scheme == "independence" else gaps
    noise = SimulatedNoise(4)
    rejections = 0
    for _ in range(runs):
        data = rng.integers(3, size=12) / 2, rng.integers(3, size=12) / 2
        rejections += run(
            data,
            function,
            vectorized=True,
            scheme=scheme,
            sensitivity=0.01,
            alpha=alpha,
            n_permutations=9,
            rng=rng,
            noise=noise,
            **options,
        ).reject
    assert binom.ppf(1e-4, runs, alpha) <= rejections <= binom.isf(1e-4, runs, alpha)


# --- what the statistic sees ----------------------------------------------------------------


def seen_by_statistic(data, **options):
    """The arrays of the first call on private data."""
    calls = []

    def watched(x, y):
        calls.append((x.copy(), y.copy()))
        return 0.0

    before = []
    real = statistic.permuted_statistics

    def spy(*arguments):
        before.append(len(calls))
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "permuted_statistics", spy)
        run(data, watched, **{"sensitivity": 1} | options)
    return calls[before[0]]


def test_values_are_clipped_in_their_own_units():
    ages = np.array([30, 18, 77, 200, -np.inf])
    x, y = seen_by_statistic((ages, np.array([0.1, 0.7, 76.9, 3])), bounds=(0, 77))
    assert sorted(x) == [0, 18, 30, 77, 77]
    assert sorted(y) == [0.1, 0.7, 3, 76.9]


@pytest.mark.parametrize(
    "bounds", [(0, 77), (-3, 1e6), (1 / 3, 2 / 3), (-1e300, 1e300), (0, 1e-150)]
)
def test_values_within_bounds_are_seen_to_the_last_bit(bounds):
    """Equal values stay equal and different ones different, whatever the bounds are."""
    inside = np.random.default_rng(0).uniform(bounds[0] / 2, bounds[1] / 2, size=50)
    values = np.concatenate([bounds, inside, np.nextafter(inside, np.inf)])
    x, _ = seen_by_statistic((values, values[:2]), bounds=bounds)
    assert sorted(x) == sorted(np.clip(values, *bounds))


def test_without_bounds_data_is_taken_as_it_is():
    data = np.array([1e300, -5.25, CANARY]), np.array([0.1, 0.2])
    x, y = seen_by_statistic(data, bounds=None)
    assert sorted(x) == sorted(data[0])
    assert sorted(y) == sorted(data[1])


def test_schema_gives_codes_and_units():
    columns: dict[str, Column] = {
        "age": NumericColumn(0, 120, integer=True, missing=50),
        "plan": CategoricalColumn(("basic", "plus", "all")),
    }
    table = {"plan": ["plus", "all", "basic"], "age": [30, None, 200]}
    x, _ = seen_by_statistic((table, table), bounds=Schema(columns))
    assert sorted(x.tolist()) == [[30, 1], [50, 2], [120, 0]]


@pytest.mark.parametrize("columns", [None, 1])
def test_one_column_has_one_dimension(columns):
    x, y = seen_by_statistic(samples(5, 4, columns))
    assert x.shape == (5,)
    assert y.shape == (4,)


def test_several_columns_have_two_dimensions():
    x, y = seen_by_statistic(samples(5, 4, 2))
    assert x.shape == (5, 2)
    assert y.shape == (4, 2)


def test_sides_may_differ_in_columns():
    data = samples(5, 5)[0], samples(5, 5, 3)[1]
    x, y = seen_by_statistic(data, scheme="independence", bounds=((0, 1), [(0, 1)] * 3))
    assert (x.shape, y.shape) == ((5,), (5, 3))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "list"])
def test_containers(kind):
    x, y = samples()
    convert = {"arrow": pa.array, "list": list}.get(kind)
    if convert is None:
        convert = pytest.importorskip(kind).Series
    assert run((convert(x), convert(y))).pvalue == run((x, y)).pvalue


def test_rows_come_in_a_secret_order():
    x = np.arange(40.0)
    orders = [seen_by_statistic((x, x), bounds=None, noise=SimulatedNoise(k)) for k in range(2)]
    for side in range(2):
        assert not np.array_equal(orders[0][side], orders[1][side])
        assert not np.array_equal(orders[0][side], x)
        assert np.array_equal(np.sort(orders[0][side]), x)
    assert not np.array_equal(*orders[0])  # each sample by itself


def test_partners_stay_together():
    x = np.arange(40.0)
    seen_x, seen_y = seen_by_statistic((x, x + 100), bounds=None, scheme="independence")
    assert np.array_equal(seen_y, seen_x + 100)
    assert not np.array_equal(seen_x, x)


def test_data_is_left_alone():
    """Even by a statistic that changes its input on private data only."""
    x, y = samples()
    kept = x.copy(), y.copy()

    def sneaky(x, y):
        value = gap(x, y)
        if np.isin(kept[0][0], np.concatenate([x, y])):
            x[:] = y[:] = 0
        return value

    honest = run((x, y), bounds=None)
    assert run((x, y), sneaky, bounds=None).pvalue == honest.pvalue
    assert np.array_equal(x, kept[0])
    assert np.array_equal(y, kept[1])


# --- a statistic that does not behave -------------------------------------------------------


def sorts_in_place(x, y):
    x.sort()
    return gap(x, y)


def empties_y(x, y):
    value = gap(x, y)
    y[:] = 0
    return value


def counter():
    calls = iter(range(10**6))
    return lambda x, y: float(next(calls))


def raises(x, y):
    raise ZeroDivisionError("division by zero")


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, y: np.nan, "finite numbers; it returned NaN or an infinity"),
        (lambda x, y: np.inf, "finite numbers"),
        (lambda x, y: x, "one number; it returned an array of shape (30,)"),
        (lambda x, y: np.array([1.0]), "shape (1,)"),
        (lambda x, y: None, "it returned NoneType"),
        (lambda x, y: "1", "it returned str"),
        (lambda x, y: 1j, "it returned complex"),
        (lambda x, y: (1.0, 2.0), "it returned tuple"),
        (lambda x, y: [[1.0], [2.0, 3.0]], "ValueError"),
        (sorts_in_place, "must not change its input"),
        (empties_y, "must not change its input"),
        (counter(), "same number for the same data"),
        (raises, "raised ZeroDivisionError on synthetic data of 30 and 20 rows"),
        (lambda x: 1.0, "raised TypeError"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_bad_statistics(function, words, check):
    message = refused(ParameterError, function=function, check_sensitivity=check)
    assert message.startswith("statistic must")
    assert words in message


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (gap, "2 numbers for a stack of 2; it returned float"),
        (lambda x, y: gaps(x, y)[:, None], "shape (2, 1)"),
        (lambda x, y: gaps(x, y)[:1], "shape (1,)"),
        (lambda x, y: x.mean(axis=0), "shape (30,)"),
        (lambda x, y: gaps(x, y) / x.std(), "each member of the stack alone"),
        (lambda x, y: gaps(x, y) * np.nan, "finite"),
        (lambda x, y: gaps(x, y) + np.sum(x.sort(axis=1) or 0.0), "not change its input"),
    ],
)
def test_bad_vectorized_statistics(function, words):
    assert words in refused(ParameterError, function=function, vectorized=True)


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("function", [None, 3, "gap", np.full(3, CANARY), [CANARY]])
def test_what_is_no_function(function):
    assert "statistic must be a function" in refused(ParameterError, function=function)


def test_the_cause_on_made_up_data_is_shown():
    with pytest.raises(ParameterError) as caught:
        run(function=raises)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("returned", [np.float32(0.5), np.array(0.5), 1, True, np.int8(1)])
def test_kinds_of_numbers(returned):
    assert run(function=lambda x, y: returned).pvalue > 0


def with_canary() -> tuple[np.ndarray, np.ndarray]:
    x, y = samples()
    x[3] = CANARY
    return x, y


def has_canary(*arrays):
    return any(np.isin(CANARY, array).any() for array in arrays)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_values_on_private_data_count_as_zero(caught, value):
    run(
        with_canary(),
        lambda x, y: value if has_canary(x) else 1 + gap(x, y),
        bounds=None,
    )
    statistics = caught[0][0]
    assert statistics[0] == 0.0
    assert 0 < np.count_nonzero(statistics) < 100


@pytest.mark.parametrize(
    "failing",
    [
        lambda x, y: 1 / 0,
        lambda x, y: (_ for _ in ()).throw(ValueError(f"bad value {CANARY}")),
        lambda x, y: x,
        lambda x, y: None,
    ],
)
def test_failures_on_private_data_say_nothing(failing, monkeypatch):
    monkeypatch.setattr(SecureNoise, "laplace", lambda *_: pytest.fail("noise was drawn"))

    def function(x, y):
        return failing(x, y) if has_canary(x, y) else gap(x, y)

    with pytest.raises(PrivatestError, match="failed on the private data") as caught:
        run(with_canary(), function, bounds=None, noise=None)
    assert str(CANARY) not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not isinstance(caught.value, ParameterError)


def test_warnings_about_private_data_are_not_shown():
    def noisy(x, y):
        warnings.warn(f"odd value {x[0]}", stacklevel=2)
        return gap(x, y) + 0 * np.log(x * 0.0).clip(-1, 0).sum()

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        run(function=noisy)
    assert shown == []


# --- the declared sensitivity ---------------------------------------------------------------


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("value", [0, -1, -1e-300, np.nan, np.inf, "0.1", None, True, 1j, [0.1]])
@pytest.mark.parametrize("as_function", [False, True])
def test_bad_sensitivities(value, as_function):
    declared = (lambda n, m: value) if as_function else value
    message = refused(ParameterError, sensitivity=declared)
    assert message.startswith("sensitivity must be")


@pytest.mark.usefixtures("no_noise")
def test_a_sensitivity_function_that_fails():
    message = refused(ParameterError, sensitivity=lambda n, m: 1 / 0)
    assert message == (
        "sensitivity must be defined for n = 30 and m = 20; it raised ZeroDivisionError."
    )


def test_a_sensitivity_function_gets_the_sizes():
    sizes = []

    def declared(n, m):
        sizes.append((n, m))
        return 0.1

    run(sensitivity=declared)
    assert sizes == [(30, 20)]


@pytest.mark.parametrize(
    ("scheme", "function", "sensitivity", "options"),
    [
        ("two-sample", gap, unit_gap, {}),
        ("two-sample", gap, 1 / 20, {}),
        (
            "two-sample",
            gap,
            lambda n, m: PermutationSensitivity(1 / n + 1 / m, 2 / min(n, m)),
            {"adjacency": "both"},
        ),
        ("independence", covariance, unit_covariance, {}),
    ],
)
def test_right_sensitivities_pass_and_smaller_ones_do_not(scheme, function, sensitivity, options):
    data = samples(20, 20) if scheme == "independence" else samples()
    shared = {"scheme": scheme, "check_sensitivity": True, **options}
    run(data, function, sensitivity=sensitivity, **shared)

    def smaller(n, m):
        bound = sensitivity(n, m) if callable(sensitivity) else sensitivity
        return bound * 0.97

    declared = smaller if callable(sensitivity) else smaller(0, 0)
    message = refused(ParameterError, data, function, sensitivity=declared, **shared)
    assert message.startswith("sensitivity must hold for all neighbours: ")
    run(data, function, sensitivity=declared, **shared | {"check_sensitivity": False})


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("data", "function", "sensitivity", "options"),
    [
        (samples(), gap, lambda n, m: 1 / max(n, m), {}),
        (samples(), gap, unit_gap, {"adjacency": "both"}),
        (samples(), gap, lambda n, m: 1 / n + 1 / m, {"adjacency": "both"}),
        (samples(), gap, unit_gap, {"bounds": (0, 100)}),
        (samples(), gap, unit_gap, {"bounds": None}),
        (samples(20, 20), covariance, lambda n, m: (n - 1) / n**2, {"scheme": "independence"}),
        (samples(), lambda x, y: abs(np.median(x) - np.median(y)), unit_gap, {}),
        (samples(), lambda x, y: abs(np.median(x) - np.median(y)), 1 / 20, {}),
        (samples(), lambda x, y: abs(x.max() - y.max()), 0.5, {}),
        (samples(), lambda x, y: gap(x, y) / np.hypot(x.std(), y.std()), unit_gap, {}),
        (samples(400, 300), gap, 1 / 400, {}),
        (samples(30, 20, 3), distance, unit_gap, {}),
    ],
)
def test_common_mistakes_are_found(data, function, sensitivity, options):
    message = refused(
        ParameterError,
        data,
        function,
        sensitivity=sensitivity,
        **{"check_sensitivity": True} | options,
    )
    assert "was declared, but it moves by" in message


def test_the_neighbours_found_can_be_checked():
    message = refused(
        ParameterError, sensitivity=lambda n, m: 0.5 / min(n, m), check_sensitivity=True
    )
    found = re.fullmatch(
        r"sensitivity must hold for all neighbours: (\S+) was declared, but it moves by (\S+) on "
        r"synthetic (?:permuted )?neighbours \(n = (\d+), m = (\d+)\), from (\S+) at "
        r"x = (\[.*?\]), y = (\[.*?\]) to (\S+) at ([xy])\[(\d+)\] = (\S+)\.",
        message,
    )
    assert found
    declared, moved, n, m, before, x, y, after, side, index, new = found.groups()
    sides = {"x": np.array(json.loads(x)), "y": np.array(json.loads(y))}
    assert (len(sides["x"]), len(sides["y"])) == (int(n), int(m)) == (5, 4)
    assert gap(**sides) == pytest.approx(float(before), abs=1e-4)
    sides[side][int(index)] = float(new)
    assert gap(**sides) == pytest.approx(float(after), abs=1e-4)
    assert abs(float(after) - float(before)) == pytest.approx(float(moved), abs=1e-4)
    assert float(moved) > float(declared) == 0.125


def test_the_observed_bound_is_attacked_without_permutations():
    message = refused(
        ParameterError,
        samples(20, 20),
        covariance,
        sensitivity=lambda n, m: PermutationSensitivity(0.1 / n, 4 / n),
        scheme="independence",
        check_sensitivity=True,
    )
    assert "on synthetic neighbours" in message


def test_both_parts_of_a_pair_are_shown():
    box = Schema.from_bounds({"a": (0, 1)}).box
    space = Space(box, box, 3, 3, paired=True)
    zeros, ones = np.zeros((3, 1)), np.ones(1)
    after = zeros.copy()
    after[1] = ones
    row = np.array([1])
    pair = Neighbours((zeros, zeros), (after, after), (row, row), parted=False)
    user = UserStatistic(covariance, vectorized=False)
    text = probe._describe(probe._Counted(user, space, 9), pair, 0.125)
    assert text == (
        "0.125 was declared, but it moves by 0.222222 on synthetic neighbours (n = 3, m = 3), "
        "from 0 at x = [0, 0, 0], y = [0, 0, 0] to 0.222222 at x[1] = 1 and y[1] = 1."
    )


def test_the_search_never_sees_private_data(monkeypatch):
    """Rows outside of what made-up data can be: a statistic would see them."""
    seen = []

    def watched(x, y):
        seen.append(has_canary(x, y))
        return gap(x, y)

    refused(ParameterError, with_canary(), watched, sensitivity=1e-9, check_sensitivity=True)
    assert len(seen) > 10
    assert not any(seen)


def test_the_search_depends_on_public_things_only():
    first, second = (
        refused(
            ParameterError, samples(seed=seed), sensitivity=0.04, check_sensitivity=True, rng=seed
        )
        for seed in (1, 2)
    )
    assert first == second


def test_a_function_of_sizes_may_be_for_large_samples_only():
    """Small sizes, where it or the statistic is not defined, are left out of the search."""

    def picky(x, y):
        if len(x) < 10:
            raise ValueError
        return gap(x, y)

    run(function=picky, sensitivity=lambda n, m: 1 / min(n, m), check_sensitivity=True)
    run(sensitivity=lambda n, m: 2 / (min(n, m) - 10), check_sensitivity=True)
    message = refused(
        ParameterError,
        function=picky,
        sensitivity=lambda n, m: 0.9 / min(n, m),
        check_sensitivity=True,
    )
    assert "n = 30, m = 20" in message


def test_an_exception_on_extreme_data_is_found():
    def fragile(x, y):
        if len(np.unique(x)) == 1:
            raise ValueError("all the same")
        return gap(x, y)

    message = refused(ParameterError, function=fragile, sensitivity=0.05, check_sensitivity=True)
    assert "must return a number for all data that its bounds allow" in message


def test_long_data_is_abbreviated():
    message = refused(ParameterError, samples(2000, 2000), sensitivity=1e-9, check_sensitivity=True)
    assert len(message) < 600
    assert "..." in message


@pytest.mark.parametrize("rows", [1, 5])
def test_rows_per_person_multiply(caught, rows):
    schema = Schema.from_bounds({"value": (0, 1)}, rows_per_person=rows)
    result = run(bounds=schema, sensitivity=PermutationSensitivity(0.1, 0.2))
    used = caught[0][1]["sensitivity"]
    assert (used.observed, used.permuted) == pytest.approx((0.1 * rows, 0.2 * rows), rel=1e-8)
    assert used.observed > 0.1 * rows  # widened
    assert result.unit == schema.unit


def test_made_up_data_fits_the_schema():
    schema = Schema(
        {
            "age": NumericColumn(0, 9, integer=True),
            "plan": CategoricalColumn(("a", "b", "c")),
            "score": NumericColumn(-0.5, 0.5),
        }
    )
    box, rng = schema.box, np.random.default_rng(0)
    for drawn in (typical, draw):
        rows = np.concatenate([drawn(box, rng, 20) for _ in range(40)])
        assert set(rows[:, 0]) == set(range(10))
        assert set(rows[:, 1]) == {0, 1, 2}
        assert (np.abs(rows[:, 2]) <= 0.5).all()


# --- naive composition ----------------------------------------------------------------------


@pytest.fixture
def scales(monkeypatch):
    """No noise, but the scales it would have are kept."""
    kept: list[float] = []

    def record(self: SimulatedNoise, value: float, scale: float) -> float:
        kept.append(scale)
        return value

    monkeypatch.setattr(SimulatedNoise, "laplace", record)
    return kept


def test_naive_noise_pays_for_every_statistic(scales):
    run(
        sensitivity=PermutationSensitivity(0.1, 0.3),
        privatization="naive",
        n_permutations=49,
        epsilon=2,
        noise=SimulatedNoise(0),
    )
    assert scales == [pytest.approx((0.1 + 49 * 0.3) / 2, rel=1e-8)] * 50
    assert scales[0] >= (0.1 + 49 * 0.3) / 2


def test_naive_is_composition(scales):
    """The same noise as fifty releases of one statistic at a fiftieth of the budget."""
    noise = SimulatedNoise(0)
    result = run(sensitivity=0.1, privatization="naive", n_permutations=49, noise=noise)
    bound = Sensitivity(result.parameters["sensitivity"][0])
    laplace(0.0, sensitivity=bound, budget=Budget("0.02"), noise=noise)
    assert scales[0] == pytest.approx(scales[-1], rel=1e-12)


@pytest.mark.usefixtures("scales")
def test_naive_pvalue_is_a_rank():
    x = np.linspace(0, 1, 20)
    outcome = run((x, x**0.2), privatization="naive", n_permutations=19, noise=SimulatedNoise(0))
    assert outcome.pvalue == 1 / 20
    assert outcome.reject
    tied = run((x, x), lambda x, y: 1.0, privatization="naive", noise=SimulatedNoise(0))
    assert tied.pvalue == 1.0
    assert not tied.reject
    decision = run(privatization="naive", release="decision", noise=SimulatedNoise(0))
    assert type(decision) is Decision


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(("alpha", "needed"), [(0.05, 19), (0.1, 9), (0.03, 33), (0.5, 1)])
def test_naive_needs_enough_permutations(alpha, needed):
    if needed > 1:
        message = refused(
            ParameterError, privatization="naive", alpha=alpha, n_permutations=needed - 1
        )
        assert f"n_permutations must be at least {needed} for alpha" in message
    run(privatization="naive", alpha=alpha, n_permutations=needed)


# --- parameters and data --------------------------------------------------------------------


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": 1}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"release": "rank"}, "release must be one of 'pvalue', 'decision'"),
        ({"scheme": "paired"}, "scheme must be one of 'two-sample', 'independence'"),
        ({"privatization": "none"}, "privatization must be one of"),
        ({"adjacency": "two"}, "adjacency must be one of"),
        ({"vectorized": 1}, "vectorized must be True or False"),
        ({"check_sensitivity": None}, "check_sensitivity must be True or False"),
        ({"n_permutations": 0}, "n_permutations"),
        ({"n_permutations": 9.5}, "n_permutations"),
        ({"rng": "seed"}, "rng"),
        ({"noise": 3}, "noise"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": [(0, 1), (0, 1)]}, "bounds"),
    ],
)
def test_bad_parameters(options, words):
    assert words in refused(ParameterError, with_canary(), **options)


@pytest.mark.usefixtures("no_noise")
def test_private_groups_are_refused_with_the_reason():
    message = refused(ParameterError, adjacency="row")
    assert "hides the group sizes, but a statistic of x and y sees them" in message
    assert "mmd_test" in message
    assert "ipm_test" in message


@pytest.mark.usefixtures("no_noise")
def test_pairs_have_one_adjacency():
    assert "one pair is replaced" in refused(
        ParameterError, samples(9, 9), scheme="independence", adjacency="both"
    )


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("data", [np.full(5, CANARY), (np.ones(4),), None, {"x": 1}, "xy"])
def test_data_must_be_a_pair(data):
    with pytest.raises(ParameterError, match=r"data must be a pair \(x, y\)"):
        permutation_test(data, gap, sensitivity=1, epsilon=1)


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("x", "y", "options", "words"),
    [
        (np.full(1, CANARY), np.ones(4), {}, "at least 2 rows"),
        (np.ones(4), np.empty(0), {}, "at least 2 rows"),
        (np.full(3, CANARY), np.ones(3), {"scheme": "independence"}, "at least 4 rows"),
        (np.full(9, CANARY), np.ones(8), {"scheme": "independence"}, "same number of rows"),
        (np.array([CANARY, np.nan, 1]), np.ones(3), {}, "missing"),
        (np.array([CANARY, np.inf, 1]), np.ones(3), {"bounds": None}, "infinite"),
        (np.full((4, 2), CANARY), np.ones(4), {}, "same columns"),
        ([str(CANARY)] * 4, np.ones(4), {}, "numbers"),
    ],
)
def test_bad_data(x, y, options, words):
    assert words in refused(DataError, (x, y), **options)


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    "bounds",
    [
        Schema.from_bounds({"x": (0, 1)}),
        (0, 1, 2),
        5,
        {"x": (0, 1)},
        ((0, 1), (1, 0)),
        ((0, 1), 3),
        (Schema.from_bounds({"x": (0, 1)}, rows_per_person=2), (0, 1)),
    ],
)
def test_bad_bounds_of_pairs(bounds):
    message = refused(
        ParameterError, samples(9, 9), covariance, scheme="independence", bounds=bounds
    )
    assert "bounds" in message


@pytest.mark.parametrize(
    "bounds",
    [None, (0, 1), np.array([0, 1]), ((0, 1), (0, 1)), (None, (0, 1)), np.array([[0, 1], [0, 1]])],
)
def test_bounds_of_pairs(bounds):
    data = samples(9, 9)
    result = run(
        data, covariance, sensitivity=unit_covariance, scheme="independence", bounds=bounds
    )
    assert 0 < result.pvalue <= 1


def test_canary_stays_out_of_results():
    result = run(with_canary(), bounds=None)
    for text in (str(result), repr(result), result.to_json(), result._repr_html_()):
        assert str(CANARY) not in text


def test_same_seeds_same_result():
    assert run(noise=SimulatedNoise(9), rng=3) == run(noise=SimulatedNoise(9), rng=3)
    generator = np.random.default_rng(3)
    assert (
        run(noise=SimulatedNoise(9), rng=generator).pvalue
        == run(noise=SimulatedNoise(9), rng=3).pvalue
    )
