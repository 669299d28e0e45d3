"""ks_1samp: distributions in every spelling, validity, bad input, and what must not leak."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from privatest.core.errors import DataError, ParameterError
from privatest.core.results import Outcome
from privatest.data.schema import NumericColumn, Schema
from privatest.methods import ks as goodness_of_fit
from privatest.methods.ks import read_cdf
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.numerics.ecdf import ONE_SAMPLE_STATISTICS

CANARY = 8675309.0

ks_1samp: Callable[..., Outcome] = goodness_of_fit.ks_1samp  # wrong types are passed on purpose


def normal_cdf(x):
    return stats.norm.cdf(x)


@pytest.fixture
def no_noise(monkeypatch):
    """Let every draw of secret randomness fail."""

    def fail(*_):
        raise AssertionError("noise was drawn")

    for name in ("laplace", "gaussian", "discrete_laplace", "below", "permutation"):
        monkeypatch.setattr(SecureNoise, name, fail)


@pytest.mark.parametrize("statistic", ONE_SAMPLE_STATISTICS)
@pytest.mark.parametrize("mechanism", ["auto", "tulap", "laplace"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_decides_and_shows_the_distance(statistic, mechanism, delta):
    x = stats.norm.ppf((np.random.default_rng(1).permutation(300) + 0.2) / 300)
    options = {"statistic": statistic, "mechanism": mechanism, "delta": delta}
    close = ks_1samp(x, "norm(0, 1)", epsilon=100, **options)
    far = ks_1samp(x, "norm(1, 1)", epsilon=100, **options)
    assert isinstance(close, Outcome)
    assert not close.reject
    assert far.reject
    assert 0 < far.pvalue < 1e-3
    expected = {
        "ks": stats.kstest(x, "norm").statistic,
        "cvm": math.sqrt(stats.cramervonmises(x, "norm").statistic / 300),
    }
    if statistic in expected:
        assert close.statistic == pytest.approx(expected[statistic], abs=3 / 300)
    assert dict(close.sizes) == {"n": 300}
    assert close.null_hypothesis == "the data come from norm(0, 1)"
    assert (close.adjacency, close.unit, close.simulated) == ("one", "row", False)


@pytest.mark.parametrize(
    ("cdf", "name"),
    [
        ("norm(0,1)", "norm(0, 1)"),
        (" norm ( 0 , scale=1 ) ", "norm(0, scale=1)"),
        ("norm", "norm()"),
        ("norm()", "norm()"),
        (("norm", (0, 1)), "norm(0, 1)"),
        (stats.norm(0, 1), "norm(0, 1)"),
        (stats.norm(loc=0), "norm(loc=0)"),
        (normal_cdf, "the given distribution"),
        (stats.norm.cdf, "the given distribution"),
    ],
)
def test_spellings_of_one_distribution(cdf, name):
    x = np.random.default_rng(2).standard_normal(50)
    result = ks_1samp(x, cdf, epsilon=1, rng=0, noise=SimulatedNoise(3))
    again = ks_1samp(x, stats.norm(), epsilon=1, rng=0, noise=SimulatedNoise(3))
    assert result.pvalue == pytest.approx(again.pvalue, abs=1e-9)
    assert result.parameters["distribution"] == name
    assert result.simulated


@pytest.mark.parametrize(
    "cdf", ["gamma(2, scale=3)", "t(2.5)", "expon", "poisson(3)", "uniform(-1, 2)"]
)
def test_distributions_with_shapes(cdf):
    assert read_cdf(cdf).name.startswith(cdf.split("(")[0])


@pytest.mark.parametrize(
    "cdf",
    [
        *("", "norm(", "norm(a b)", "norm(0, x)", "os.system('x')", "norm(__import__)", "kstest"),
        *(
            "rv_continuous",
            "norm(0, 1, 2, 3)",
            "norm(0, -1)",
            "norm(nan)",
            "gamma",
            "mean",
            "nope(1)",
        ),
        *(None, 3, ("norm",), ("norm", 3), ("norm", ("x",)), [0, 1]),
        lambda x: 1 - stats.norm.cdf(x),  # decreases
        stats.norm.pdf,
        lambda x: 2 * stats.norm.cdf(x),  # leaves [0, 1]
        lambda x: stats.norm.cdf(x) - 0.5,
        lambda x: x * np.nan,
        lambda x: 0.5,  # not a number for each
        lambda x: stats.norm.cdf(x - x.mean()),  # mixes records
        math.erf,  # takes no arrays
        lambda x: "text",
        lambda: 1,
    ],
)
def test_no_distribution_function(no_noise, cdf):
    class Untouchable:
        def __array__(self, *_, **__):
            raise AssertionError("the data was read")

    with pytest.raises(ParameterError, match="cdf"):
        ks_1samp(Untouchable(), cdf, epsilon=1)


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1, "delta": 1}, "delta"),
        ({"epsilon": 1, "alpha": 0}, "alpha"),
        ({"epsilon": 1, "statistic": "ad"}, "statistic"),
        ({"epsilon": 1, "mechanism": "gaussian"}, "mechanism"),
        ({"epsilon": 1, "rng": "x"}, "rng"),
        ({"epsilon": 1, "noise": 3}, "noise"),
        ({"epsilon": 1, "bounds": (1, 0)}, "bounds"),
    ],
)
def test_bad_parameters(no_noise, options, fragment):
    with pytest.raises(ParameterError, match=fragment):
        ks_1samp([1.0, CANARY], "norm", **options)


@pytest.mark.parametrize(
    "x",
    [
        *([], [1.0], [1.0, np.nan], [1.0, np.inf], np.zeros((5, 2)), ["a", "b"]),
        {"a": ["x", "y"]},
    ],
)
def test_bad_data(no_noise, x):
    with pytest.raises(DataError):
        ks_1samp(x, "norm", epsilon=1)
    schema = Schema.from_text('[columns.a]\ntype = "categorical"\ncategories = ["x", "y"]')
    with pytest.raises(DataError):
        ks_1samp({"a": ["x", "y"]}, "norm", epsilon=1, bounds=schema)


@pytest.mark.parametrize("fault", [ValueError, MemoryError, RecursionError, ZeroDivisionError])
def test_a_cdf_that_fails_on_a_record_moves_that_record_alone(fault):
    # whether there is an answer would otherwise tell who is in the data
    def fragile(x):
        if np.any(x == CANARY):
            raise fault(f"bad value {x}")
        return stats.norm.cdf(x)

    values = np.array([-1.0, CANARY, 0.3, 2.0])
    left, right = read_cdf(fragile).limits(values)
    np.testing.assert_allclose(right, [stats.norm.cdf(-1), 0.5, *stats.norm.cdf([0.3, 2.0])])
    assert (left <= right).all()
    assert 0 < ks_1samp(values, fragile, epsilon=1).pvalue <= 1


def test_a_cdf_of_another_shape_on_data_moves_no_other_record():
    def shrinking(x):
        return stats.norm.cdf(x[x != CANARY])

    _, right = read_cdf(shrinking).limits(np.array([-1.0, CANARY, 0.3]))
    np.testing.assert_allclose(right, [stats.norm.cdf(-1), 0.5, stats.norm.cdf(0.3)])


def test_values_that_are_no_probabilities_get_a_fixed_one():
    def odd(x):
        values = stats.norm.cdf(x)
        values[x == CANARY] = np.nan
        values[x == -CANARY] = 7
        return values

    left, right = read_cdf(odd).limits(np.array([0.0, CANARY, -CANARY]))
    np.testing.assert_allclose(right, [0.5, 0.5, 1.0])
    assert (left <= right).all()


def test_a_constant_column_works():
    for statistic in ONE_SAMPLE_STATISTICS:
        result = ks_1samp(np.full(40, 3.0), "norm", epsilon=1, statistic=statistic)
        assert 0 < result.pvalue <= 1


def test_data_frames_and_rows_per_person():
    import pandas as pd

    x = np.random.default_rng(3).random(200)
    schema = Schema({"a": NumericColumn(0, 1)}, rows_per_person=5)
    result = ks_1samp(pd.DataFrame({"a": x, "b": x}), "uniform", epsilon=1, bounds=schema)
    assert result.unit == "person with at most 5 rows"
    options = {"epsilon": 1, "rng": 0}
    one = [ks_1samp(x, "uniform", noise=SimulatedNoise(s), **options) for s in range(40)]
    many = [
        ks_1samp(x, "uniform", noise=SimulatedNoise(s), bounds=schema, **options) for s in range(40)
    ]
    spread = np.std([r.statistic or 0 for r in many]) / np.std([r.statistic or 0 for r in one])
    assert spread == pytest.approx(5, rel=0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("statistic", ONE_SAMPLE_STATISTICS)
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("n", [20, 200])
def test_pvalues_are_valid(statistic, epsilon, n):
    """P(p <= a) is at most a, up to 4 standard errors: false alarms 3e-5 for each check."""
    runs = 120
    rng = np.random.default_rng([n, int(10 * epsilon), len(statistic)])
    pvalues = np.array(
        [
            ks_1samp(
                rng.standard_normal(n),
                normal_cdf,
                epsilon=epsilon,
                statistic=statistic,
                rng=run,
                noise=SimulatedNoise(run),
            ).pvalue
            for run in range(runs)
        ]
    )
    for level in (0.01, 0.05, 0.1):
        assert np.mean(pvalues <= level) <= level + 4 * math.sqrt(level / runs)
    assert np.mean(pvalues <= 0.5) >= 0.5 - 4 * 0.5 / math.sqrt(runs)  # and not idle


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("cdf", "draw", "bounds"),
    [
        ("poisson(1.5)", lambda rng: rng.poisson(1.5, 60), None),
        ("poisson(1.5)", lambda rng: rng.poisson(1.5, 60), (0, 3)),
        ("norm", lambda rng: rng.standard_normal(60), (-0.5, 1)),  # most values are clipped
    ],
)
def test_jumps_and_clipping_do_not_hurt_validity(cdf, draw, bounds):
    """Uniform p-values by a KS test of them: false alarms 1e-4 each."""
    rng = np.random.default_rng(6)
    for statistic in ("ks", "kuiper"):
        pvalues = [
            ks_1samp(
                draw(rng),
                cdf,
                epsilon=3,
                statistic=statistic,
                bounds=bounds,
                rng=run,
                noise=SimulatedNoise(run),
            ).pvalue
            for run in range(100)
        ]
        assert stats.kstest(pvalues, "uniform").pvalue > 1e-4
