"""ks_2samp: every adjacency, ties, validity, and bad input."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from privatest.core.errors import DataError, ParameterError
from privatest.core.results import Outcome
from privatest.data.schema import NumericColumn, Schema
from privatest.methods import ks
from privatest.noise import SecureNoise, SimulatedNoise

CANARY = 8675309.0

ks_2samp: Callable[..., Outcome] = ks.ks_2samp  # wrong types are passed on purpose


@pytest.fixture
def no_noise(monkeypatch):
    """Let every draw of secret randomness fail."""

    def fail(*_):
        raise AssertionError("noise was drawn")

    for name in ("laplace", "gaussian", "discrete_laplace", "below", "permutation"):
        monkeypatch.setattr(SecureNoise, name, fail)


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
@pytest.mark.parametrize("sizes", [(80, 80), (60, 91)])
@pytest.mark.parametrize("delta", [0, 1e-5])
def test_decides(statistic, adjacency, sizes, delta):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal(sizes[0]), rng.standard_normal(sizes[1])
    options = {"statistic": statistic, "adjacency": adjacency, "delta": delta, "epsilon": 50}
    alike, apart = ks_2samp(x, y, **options), ks_2samp(x, y + 2, **options)
    assert isinstance(alike, Outcome)
    assert (alike.reject, apart.reject) == (False, True)
    assert (
        alike.method
        == f"two-sample {'Kuiper' if statistic == 'kuiper' else 'Kolmogorov-Smirnov'} test"
    )
    if adjacency == "row":
        assert apart.statistic is None
        assert dict(apart.sizes) == {"N": sum(sizes)}
        assert apart.pvalue * 10_000 == pytest.approx(round(apart.pvalue * 10_000))
    else:
        assert dict(apart.sizes) == {"n": sizes[0], "m": sizes[1]}
        if statistic == "ks":
            exact = stats.ks_2samp(x, y + 2).statistic
            assert apart.statistic == pytest.approx(exact, abs=3 * sum(sizes) / math.prod(sizes))


def test_only_the_order_matters():
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal(30), rng.standard_normal(41)
    for adjacency in ("one", "row"):
        options = {"epsilon": 1, "adjacency": adjacency, "rng": 0}
        plain = ks_2samp(x, y, noise=SimulatedNoise(1), **options)
        for change in (np.exp, lambda v: 1e300 * v, lambda v: v**3):
            changed = ks_2samp(change(x), change(y), noise=SimulatedNoise(1), **options)
            assert changed == plain


def test_swapped_samples_and_mechanisms():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal(50), rng.standard_normal(70)
    for mechanism in ("auto", "tulap", "laplace"):
        options = {"epsilon": 6, "mechanism": mechanism}
        first = ks_2samp(x, y, noise=SimulatedNoise(1), **options)
        second = ks_2samp(y, x, noise=SimulatedNoise(1), **options)
        assert first.pvalue == second.pvalue


def test_a_constant_column_and_schemas():
    schema = Schema({"a": NumericColumn(0, 1)}, rows_per_person=3)
    x = {"a": np.full(20, 0.5)}
    for adjacency in ("one", "both", "row"):
        result = ks_2samp(x, x, epsilon=1, adjacency=adjacency, bounds=schema)
        assert 0 < result.pvalue <= 1
        assert result.unit == "person with at most 3 rows"


def test_an_empty_private_group():
    result = ks_2samp(np.zeros((0, 1)), np.arange(10.0), epsilon=1, adjacency="row")
    assert dict(result.sizes) == {"N": 10}


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 1, "delta": 2}, "delta"),
        ({"epsilon": 1, "alpha": 1}, "alpha"),
        ({"epsilon": 1, "statistic": "cvm"}, "statistic"),
        ({"epsilon": 1, "adjacency": "none"}, "adjacency"),
        ({"epsilon": 1, "mechanism": "gauss"}, "mechanism"),
        ({"epsilon": 1, "mechanism": "tulap", "adjacency": "row"}, "mechanism"),
        ({"epsilon": 1, "n_permutations": 0}, "n_permutations"),
        ({"epsilon": 1, "rng": "x"}, "rng"),
        ({"epsilon": 1, "noise": 1}, "noise"),
        ({"epsilon": 1, "bounds": (3, 3)}, "bounds"),
    ],
)
def test_bad_parameters(no_noise, options, fragment):
    with pytest.raises(ParameterError, match=fragment) as caught:
        ks_2samp([1.0, CANARY], [2.0, 3.0], **options)
    assert "8675309" not in str(caught.value)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0], [1.0, 2.0]),
        ([], [1.0, 2.0]),
        ([1.0, np.nan], [1.0, 2.0]),
        ([1.0, 2.0], [1.0, np.inf]),
        (np.zeros((4, 2)), np.zeros((4, 2))),
        (["a", "b"], ["c", "d"]),
    ],
)
def test_bad_data(no_noise, x, y):
    with pytest.raises(DataError):
        ks_2samp(x, y, epsilon=1)


LAWS = {
    "continuous": lambda rng, size: rng.standard_cauchy(size),
    "heavy ties": lambda rng, size: rng.choice([0.0, 1.0, 5.0], p=[0.7, 0.2, 0.1], size=size),
}


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize(
    ("sizes", "adjacency"),
    [
        ((20, 20), "one"),
        ((20, 20), "both"),
        ((20, 33), "one"),
        ((200, 200), "one"),
        ((200, 90), "both"),
    ],
)
def test_pvalues_are_valid(law, epsilon, sizes, adjacency):
    """P(p <= a) is at most a, up to 4 standard errors: false alarms 3e-5 for each check."""
    runs = 120
    rng = np.random.default_rng([*sizes, int(10 * epsilon)])
    for statistic in ("ks", "kuiper"):
        pvalues = np.array(
            [
                ks_2samp(
                    LAWS[law](rng, sizes[0]),
                    LAWS[law](rng, sizes[1]),
                    epsilon=epsilon,
                    statistic=statistic,
                    adjacency=adjacency,
                    noise=SimulatedNoise(run),
                ).pvalue
                for run in range(runs)
            ]
        )
        for level in (0.01, 0.05, 0.1):
            assert np.mean(pvalues <= level) <= level + 4 * math.sqrt(level / runs)
        if law == "continuous":
            assert np.mean(pvalues <= 0.5) >= 0.5 - 0.05 - 4 * 0.5 / math.sqrt(runs)


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_private_groups_are_exactly_uniform(law, statistic):
    """By a KS test of p-values: false alarms 1e-4 each."""
    rng = np.random.default_rng(5)
    pvalues = []
    for run in range(120):
        rows, in_x = LAWS[law](rng, 50), rng.random(50) < 0.4
        result = ks_2samp(
            rows[in_x],
            rows[~in_x],
            epsilon=2,
            statistic=statistic,
            adjacency="row",
            n_permutations=99,
            rng=run,
            noise=SimulatedNoise(run),
        )
        pvalues.append(result.pvalue)
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-4
