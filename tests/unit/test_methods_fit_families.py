"""ks_family: what it returns, what it refuses, its level, and where its laws come from."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from privatest.core.errors import DataError, ParameterError
from privatest.data.schema import Schema
from privatest.methods.fit_families import (
    BUILT_IN,
    LAWS_VARIABLE,
    SURVIVALS,
    QuantileTable,
    ks_family,
    law_table,
    upper_quantiles,
)
from privatest.noise import SimulatedNoise
from tools import family_laws


def normal(n=100, seed=0):
    return np.random.default_rng(seed).normal(size=n)


def test_result():
    result = ks_family(normal(), "normal", bounds=(-10, 10), epsilon=1, noise=SimulatedNoise(1))
    assert not result.reject
    assert 0 < result.pvalue <= 1
    assert result.adjacency == "one"
    assert dict(result.sizes) == {"n": 100}
    assert dict(result.parameters) == {"statistic": "ks", "family": "norm"}
    assert "the data come from the norm family" in result.verdict
    assert "the number of rows is public" in str(ks_family_secure())
    json.loads(result.to_json())


def ks_family_secure():
    return ks_family(normal(), "norm", bounds=(-10, 10), epsilon=1)


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
@pytest.mark.parametrize("family", BUILT_IN)
def test_right_and_wrong_families(family, statistic):
    """With hardly any noise: data of the family fits, two atoms do not."""
    p = (np.arange(60) + 0.5) / 60
    options: dict[str, Any] = {"bounds": (-1000, 1000), "epsilon": 1000, "statistic": statistic}
    good = ks_family(BUILT_IN[family].ppf(p), family, **options)
    bad = ks_family(np.repeat([1.0, 2.0], 30), family, **options)
    assert good.pvalue > 0.5
    assert bad.pvalue < 0.01
    assert good.statistic == pytest.approx((0.5 if statistic == "ks" else 1.0) / 60, abs=1e-3)


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
@pytest.mark.parametrize("family", BUILT_IN)
def test_a_constant_column_works(family, statistic):
    options: dict[str, Any] = {"bounds": (0, 10), "epsilon": 1000, "statistic": statistic}
    inside = ks_family(np.full(30, 3.0), family, **options)
    assert inside.statistic == pytest.approx(0.5 if statistic == "ks" else 1.0, abs=0.01)
    assert 0 < inside.pvalue < 0.01
    assert ks_family(np.zeros(30), family, **options).pvalue > 0.5  # all at or beyond the bound


def test_schema_bounds_multiply_the_noise():
    schema = Schema.from_bounds({"x": (-10, 10)}, rows_per_person=5)

    def spread(bounds):
        noises = map(SimulatedNoise, range(60))
        options: dict[str, Any] = {"bounds": bounds, "epsilon": 1}
        results = [ks_family(normal(), "norm", noise=noise, **options) for noise in noises]
        return np.std([float(result.statistic or 0.0) for result in results])

    assert 2.5 < spread(schema) / spread((-10, 10)) < 10
    result = ks_family({"x": normal()}, "norm", bounds=schema, epsilon=1)
    assert result.unit == "person with at most 5 rows"


def test_delta_and_laplace():
    for options in ({"delta": 1e-6}, {"mechanism": "laplace"}, {"epsilon": 5}):
        arguments: dict[str, Any] = {"epsilon": 1} | options
        assert ks_family(normal(), "norm", bounds=(-9, 9), **arguments).pvalue > 0


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"family": "nonsense"}, ParameterError, "family must be one of norm"),
        ({"bounds": None}, ParameterError, "bounds must be given"),
        ({"bounds": (1, 1)}, ParameterError, "bounds"),
        ({"statistic": "cvm"}, ParameterError, "statistic must be one of 'ks', 'kuiper'"),
        ({"mechanism": "none"}, ParameterError, "mechanism"),
        ({"alpha": 0}, ParameterError, "alpha"),
        ({"epsilon": 0}, ParameterError, "epsilon"),
        ({"n_simulations": 0}, ParameterError, "n_simulations"),
        ({"rng": "seed"}, ParameterError, "rng"),
        ({"x": [1.0, np.nan]}, DataError, "missing"),
        ({"x": [1.0]}, DataError, "at least 2 rows"),
        ({"x": np.zeros((5, 2))}, DataError, "one numeric column"),
    ],
)
def test_refuses(change, error, words):
    arguments: dict[str, Any] = {
        "x": normal(),
        "family": "norm",
        "bounds": (-5, 5),
        "epsilon": 1,
    } | change
    with pytest.raises(error, match=words):
        ks_family(arguments.pop("x"), arguments.pop("family"), **arguments)


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "runs"), [(50, 500), (200, 300)])
def test_level(n, runs):
    """P(p <= a) <= a + 3.3 s.e.: false-alarm rate below 5e-4 for each of six."""
    rng = np.random.default_rng(n)
    pvalues = np.array(
        [
            ks_family(
                rng.normal(5, 3, size=n),
                "norm",
                bounds=(-100, 100),
                epsilon=1,
                noise=SimulatedNoise(seed),
            ).pvalue
            for seed in range(runs)
        ]
    )
    for level in (0.01, 0.05, 0.1):
        assert (pvalues <= level).mean() <= level + 3.3 * math.sqrt(level * (1 - level) / runs)
    assert (pvalues <= 0.5).mean() > 0.35  # and it is not trivial


@pytest.mark.statistical
def test_simulated_law_agrees_with_the_table():
    """The same noisy distance: p-values differ by the 99% limits and 4 s.e. of 2000 draws."""
    x = np.random.default_rng(3).gamma(4, size=80)
    arguments: dict[str, Any] = {"bounds": (0, 50), "epsilon": 2}
    table = ks_family(x, "norm", **arguments, noise=SimulatedNoise(4))
    simulated = ks_family(
        x, "norm", **arguments, noise=SimulatedNoise(4), n_simulations=2000, rng=5
    )
    assert simulated.statistic == table.statistic
    assert simulated.parameters["n_simulations"] == 2000
    error = 4 * math.sqrt(table.pvalue * (1 - table.pvalue) / 2000)
    assert -error - 0.02 <= simulated.pvalue - table.pvalue <= error


def test_a_family_without_a_table_is_simulated():
    x = np.random.default_rng(0).rayleigh(size=30)
    arguments: dict[str, Any] = {"bounds": (0, 10), "epsilon": 100, "rng": 1}
    result = ks_family(x, "rayleigh", **arguments, noise=SimulatedNoise(2))
    assert result.pvalue > 0.05
    again = ks_family(x, "rayleigh", **arguments, noise=SimulatedNoise(2), n_simulations=999)
    assert again.pvalue == result.pvalue
    far = ks_family(x**9, "rayleigh", bounds=(0, 1000), epsilon=100, rng=1)
    assert far.pvalue == pytest.approx(1 / 1000)  # the least that 999 simulations can say


@pytest.mark.parametrize("family", BUILT_IN)
@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_tables_are_there_and_are_laws(family, statistic):
    table = law_table(family, statistic)
    assert table is not None
    assert table.sizes.tolist() == list(family_laws.SIZES[statistic])
    for n in (2, 9, 17, 60, 3000, 10**6):
        law = table.upper_law(n, 0.5 if statistic == "ks" else 1.0)
        values, masses = law.values, law.masses
        assert (masses >= 0).all()
        assert masses.sum() == pytest.approx(1)
        assert (np.diff(values) >= 0).all()
        assert values[0] > 0
        assert np.isfinite(values).all()


def test_published_quantiles_are_just_below_the_table():
    table = law_table("norm", "ks")
    assert table is not None
    for n, published in ((50, [0.4519, 0.5745, 0.6142]), (1000, [0.470, 0.595, 0.639])):
        law = table.upper_law(n, 0.5)
        values, above = law.values, 1 - np.cumsum(law.masses)
        for survival, value in zip((0.5, 0.1, 0.05), published, strict=True):
            found = values[np.searchsorted(-above, -survival)] * math.sqrt(n)
            assert value - 0.004 <= found <= value + 0.025


@pytest.mark.statistical
def test_upper_quantiles_are_upper():
    """Each limit fails in at most 1% of cases: at most 8 of 200, false-alarm rate 1e-3."""
    rng = np.random.default_rng(8)
    failures = np.zeros(SURVIVALS.size)
    for _ in range(200):
        limits = upper_quantiles(rng.uniform(size=500))
        failures += (1 - np.minimum(limits, 1)) > SURVIVALS
    assert failures.max() <= 8
    assert np.isinf(upper_quantiles(rng.uniform(size=100))[-1])


def test_interpolation():
    law = QuantileTable(np.array([4, 16]), np.stack([np.full(160, 1.0), np.full(160, 2.0)]))
    assert law.covers(4)
    assert not law.covers(3)
    for n, value in ((4, 1.0), (16, 2.0), (9, 1 + 2 / 3)):  # 1/sqrt(9) is 2/3 of the way
        assert law.upper_law(n, 1.0).values[0] * math.sqrt(n) == pytest.approx(value)
    assert law.upper_law(10**8, 1.0).values[0] * 10**4 == pytest.approx(3.0, rel=1e-3)
    falling = QuantileTable(law.sizes, law.quantiles[::-1])
    assert falling.upper_law(10**8, 1.0).values[0] * 10**4 == pytest.approx(1.0)


@pytest.mark.e2e
def test_a_table_of_ones_own(tmp_path, monkeypatch):
    path = tmp_path / "more.npz"
    command = [sys.executable, "-m", "tools.family_laws", "--family", "rayleigh"]
    command += ["--statistic", "ks", "--size", "20", "--size", "40"]
    command += ["--share", "0.02", "--output", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    before = path.read_bytes()
    again = subprocess.run(command, check=True, capture_output=True, text=True)
    assert path.read_bytes() == before  # resumed: nothing left to do
    assert "2 rows" in again.stdout
    assert law_table("rayleigh", "ks") is None
    monkeypatch.setenv(LAWS_VARIABLE, str(path))
    table = law_table("rayleigh", "ks")
    assert table is not None
    assert table.sizes.tolist() == [20, 40]
    assert law_table("norm", "ks") is not None
    monkeypatch.setenv(LAWS_VARIABLE, str(tmp_path / "missing.npz"))
    with pytest.raises(ParameterError, match=LAWS_VARIABLE):
        law_table("norm", "ks")
