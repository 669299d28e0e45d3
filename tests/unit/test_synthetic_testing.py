"""Tests on releases: what they refuse, and what they say."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import privatest as pt
from privatest.core.errors import ParameterError
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic.testing import NoisyCounts, coarsened, common_groups

SCHEMA = Schema(
    {
        "plan": CategoricalColumn(("a", "b", "c")),
        "visits": NumericColumn(0, 10, integer=True),
    }
)


def data(n: int, seed: int, dependence: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    plan = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    visits = np.minimum(rng.poisson(2 + dependence * plan), 10)
    return {"plan": np.array([*"abc"])[plan], "visits": visits}


def made(n: int = 3000, seed: int = 0, dependence: float = 0.0, **options: Any) -> Any:
    settings: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "method": "tables", "n_points": 100}
    settings |= {"noise": SimulatedNoise(seed), "rng": seed, "bounds": SCHEMA} | options
    return pt.release(data(n, seed, dependence), **settings)


@pytest.fixture(scope="module")
def releases() -> list[Any]:
    return [made(seed=1), made(2000, seed=2), made(seed=3, dependence=1.0)]


def test_true_and_false_hypotheses(releases):
    """The false ones are 20 standard errors away."""
    first, _, other = releases
    assert not first.test("plan == 'a'", equals=0.5, alpha=1e-4).reject
    assert first.test("plan == 'a'", equals=0.6).reject
    assert not first.test("visits", equals=2.0, alpha=1e-4).reject
    assert first.test("visits", equals=3.0).reject
    assert not first.test("visits", independent_of="plan", alpha=0.002).reject
    assert other.test("visits", independent_of="plan").reject
    assert other.test("visits > 2", equals=0.32, where="plan == 'c'").reject
    found = first.test("plan", independent_of="visits")
    assert found.null_hypothesis == "plan and visits are independent"
    assert found.sizes == {"n": 3000}
    assert "nothing more" in found.parameters["cost"]
    assert found.simulated


def test_two_releases(releases):
    first, second, other = releases
    same = pt.compare_releases(first, second, alpha=0.001)
    assert not same.reject
    assert same.sizes == {"n": 3000, "m": 2000}
    assert set(same.parameters["tables"]) == {"plan", "visits", "plan × visits"}
    different = pt.compare_releases(first, other)
    assert different.reject
    assert different.parameters["most different"] in ("visits", "plan × visits")
    # everybody gets the same p-value, and the order does not matter for what is rejected
    assert pt.compare_releases(first, other).pvalue == different.pvalue
    assert pt.compare_releases(other, first).reject


def test_refused(releases):
    first = releases[0]
    kernel = made(method="subspace", n_points=60)
    with pytest.raises(ParameterError, match="no measured tables"):
        pt.compare_releases(first, kernel)
    with pytest.raises(ParameterError, match="no measured tables"):
        kernel.test("plan", independent_of="visits")
    with pytest.raises(ParameterError, match="are the same"):
        pt.compare_releases(first, first)
    narrow = Schema({**SCHEMA.columns, "visits": NumericColumn(0, 11, integer=True)})
    with pytest.raises(ParameterError, match="same schema"):
        pt.compare_releases(first, made(bounds=narrow))
    with pytest.raises(ParameterError, match="a must be a SyntheticData"):
        pt.compare_releases(cast(Any, "a.parquet"), first)
    with pytest.raises(ParameterError, match="either equals or independent_of"):
        first.test("plan")
    with pytest.raises(ParameterError, match="between 0 and 1"):
        first.test("plan == 'a'", equals=2)
    with pytest.raises(ParameterError, match="no column 'gone'"):
        first.test("plan", independent_of="gone")
    with pytest.raises(ParameterError, match="were not measured together"):
        first.test("plan", independent_of="plan")
    bare = kernel.transform(lambda columns: {"visits": columns["visits"]})
    with pytest.raises(ParameterError, match="keeps nothing that was measured"):
        bare.test("visits", equals=2)


def test_a_mean_of_a_kernel_release_can_be_tested():
    kernel = made(method="subspace", n_points=60)
    assert not kernel.test("visits", equals=2.0, alpha=1e-4).reject
    assert kernel.test("visits", equals=6.0).reject


def test_common_groups():
    first, second = np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 1, 2, 3, 4])
    assert common_groups(first, second).tolist() == [0, 0, 0, 0, 1, 2]
    assert common_groups(second, first).tolist() == [0, 0, 0, 0, 1, 2]
    table = np.arange(8.0).reshape(4, 2)
    whole = np.array([0, 0, 0, 0, 1, 2])
    counts, sizes = coarsened(table, (first, np.arange(2)), (whole, np.arange(2)))
    assert counts.tolist() == [[2.0, 4.0], [4.0, 5.0], [6.0, 7.0]]
    assert sizes.tolist() == [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]


def test_people_with_several_rows_vary_more():
    """Five equal rows a person: counts vary by five times the variance."""
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.5])
    one, five = (
        np.var(NoisyCounts(shares, 1e-9, 1000, rows).drawn(shares, 4000, rng)[:, 0])
        for rows in (1, 5)
    )
    assert five / one == pytest.approx(5, rel=0.15)
