"""hsic_test: what it computes, what it refuses, what it says."""

from __future__ import annotations

import inspect
import sys
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn, Schema
from privatest.mechanisms import permutation
from privatest.noise import SimulatedNoise
from privatest.numerics.dependence import (
    block_shuffles,
    hsic,
    hsic_sensitivity,
    hsic_u,
    permuted_hsic_exact,
)
from privatest.numerics.features import nystrom, stacked, tabulated
from privatest.numerics.kernels import Kernel, gram, kernel_grid
from tests.sensitivity.cross_moments import permuted_hsic

LINE = Domain((0,))
BOX: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (0, 1)}
WIDE = Kernel("gaussian", 1.0)


def pairs(n: int, seed: int = 0, share: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Uniform pairs; y equals x for a share of them."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(size=n), rng.uniform(size=n)
    return x, np.where(rng.uniform(size=n) < share, x, y)


def test_published_value():
    x, y = np.array([[0], [0.3], [0.7], [1]]), np.array([[0.1], [0.9], [0.4], [0.6]])
    assert hsic(x, y, (WIDE, WIDE), (LINE, LINE)) == pytest.approx(0.070815074202, abs=1e-12)
    bound = hsic_sensitivity(WIDE.spread(LINE), WIDE.spread(LINE), 4)
    assert bound.permuted == pytest.approx(0.474090419121, abs=1e-12)
    assert bound.observed == pytest.approx(0.474090419121 / 2 * 1.5**0.5, abs=1e-12)


def test_u_statistic_is_the_average_over_quadruples():
    rows = np.random.default_rng(1).uniform(size=(6, 2))
    left, right = rows[:, :1], rows[:, 1:]
    k, m = gram(WIDE, left, left, LINE), gram(WIDE, right, right, LINE)
    brute = np.mean(
        [k[i, j] * (m[i, j] + m[r, s] - 2 * m[i, r]) for i, j, r, s in permutations(range(6), 4)]
    )
    assert hsic_u(rows[:, :1], rows[:, 1:], (WIDE, WIDE), (LINE, LINE)) == pytest.approx(brute)


def test_permuted_u_statistics_are_those_of_permuted_rows():
    """Row sums are taken once and shuffled, for all pairs of kernels."""
    x, y = (side[:, None] for side in pairs(9, share=0.5))
    grid = (WIDE, Kernel("gaussian", 0.2))
    shuffles = np.array([np.random.default_rng(seed).permutation(9) for seed in range(4)])
    domains = (LINE, LINE)
    values, _ = permuted_hsic_exact(x, y, (grid, grid), domains, shuffles, unbiased=True)
    expected = [
        [hsic_u(x, y[shuffle], (first, second), domains) for shuffle in shuffles]
        for first in grid
        for second in grid
    ]
    np.testing.assert_allclose(values, expected, atol=1e-14)


@pytest.mark.parametrize("n", [5, 64, 333])
def test_features_agree_with_exact_kernels(n):
    """Observed statistics agree pair by pair, leftover rows and all, within the stated error."""
    x, y = (side[:, None] for side in pairs(n, share=0.3))
    grid = kernel_grid("gaussian", None, LINE)
    maps = stacked(nystrom(grid, LINE.points(64), LINE))
    values, errors = permuted_hsic(
        x, y, (maps, maps), block_shuffles(n, 3, np.random.default_rng(0))
    )
    exact, _ = permuted_hsic_exact(x, y, (grid, grid), (LINE, LINE), np.arange(n)[None, :])
    assert values.shape == (36, 4)
    # public points cut off eigenvalues below 1e-6 of the largest
    np.testing.assert_allclose(values[:, 0], exact[:, 0], atol=2e-5)
    assert (errors < 1e-6).all()


@pytest.mark.parametrize("table", [True, False])
def test_permuted_features_are_statistics_of_permuted_rows(table):
    """With as many blocks as rows a shuffle of blocks is a shuffle of rows."""
    x, y = (side[:, None] for side in pairs(20))
    grid = (WIDE, Kernel("gaussian", 0.5))
    maps = (
        tabulated(grid, LINE, max_rank=24)
        if table
        else stacked(nystrom(grid, LINE.points(20), LINE))
    )
    assert maps is not None
    values, _ = permuted_hsic(x, y, (maps, maps), block_shuffles(20, 4, np.random.default_rng(5)))
    shuffles = np.tile(np.arange(20), (5, 1))
    np.random.default_rng(5).permuted(shuffles[1:], axis=1, out=shuffles[1:])
    exact = [
        [hsic(x, y[shuffle], (first, second), (LINE, LINE)) for shuffle in shuffles]
        for first in grid
        for second in grid
    ]
    np.testing.assert_allclose(values, exact, atol=2e-3 if table else 1e-5)


@pytest.mark.parametrize("options", [{}, {"method": "exact"}, {"estimator": "u"}])
def test_finds_dependence_and_not_independence(options):
    x, y = pairs(200, share=0.9)
    loud: dict[str, Any] = {
        "epsilon": 1000,
        "n_permutations": 199,
        "rng": 0,
        "noise": SimulatedNoise(1),
    }
    assert pt.hsic_test(x, y, **BOX, **loud, **options).reject
    x, y = pairs(200, seed=3)
    assert not pt.hsic_test(x, y, **BOX, **loud, **options).reject


def test_categories_frames_and_rows_per_person():
    x, y = pairs(400, share=0.8)
    frame = pd.DataFrame({"age": 100 * x, "kind": np.where(y < 0.5, "a", "b")})
    side_x = Schema({"age": NumericColumn(0, 100)}, rows_per_person=2)
    side_y = Schema({"kind": CategoricalColumn(("a", "b"))}, rows_per_person=2)
    result = pt.hsic_test(
        frame[["age"]], frame[["kind"]], epsilon=1000, bounds_x=side_x, bounds_y=side_y
    )
    assert result.reject
    assert "at most 2 rows" in str(result)
    assert result.sizes == {"n": 400}
    with pytest.raises(ParameterError, match="rows_per_person"):
        pt.hsic_test(frame[["age"]], y, epsilon=1, bounds_x=side_x, bounds_y=(0, 1))


def family(x, y, **options):
    """Run on a box and return which statistics were used."""
    usual = BOX | {"epsilon": 1, "n_permutations": 9}
    result = pt.hsic_test(x, y, **(usual | options))
    return result.parameters["statistics"]


def test_which_statistics_are_used():
    """By columns, bounds and what is asked; never by values."""
    x, y = pairs(50)
    square = np.column_stack([x, y])
    assert family(x, y) == ("kernel", "kolmogorov", "mean")
    assert family(square, y) == ("kernel", "additive", "kolmogorov", "mean")
    assert family(x, y, bandwidths_x=1.0) == ("kernel",)
    assert family(x, y, method="exact") == ("kernel",)
    assert family(x, y, estimator="u") == ("kernel",)
    assert family(x, y, bounds_x=None, bandwidths_x=1.0) == ("kernel",)
    assert family(x, y, statistics="mean") == ("mean",)
    assert family(x, y, statistics=["mean", "kernel"]) == ("kernel", "mean")
    assert family(x, y, bandwidths_x=1.0, statistics=["mean", "kernel"]) == ("kernel", "mean")
    only = pt.hsic_test(x, y, epsilon=1, statistics="mean", **BOX).parameters
    assert "bandwidths_x" not in only
    many = np.random.default_rng(0).uniform(size=(30, 200))
    assert family(many, many) == ("kernel",)  # too many pairs of columns
    with pytest.raises(ParameterError, match="too many columns"):
        family(many, many, statistics="additive")


def test_which_decisions_look_for_a_trend():
    """By columns, level and permutations; p-values by themselves only."""
    x, y = pairs(50)
    square = np.column_stack([x, y])
    decision: dict[str, Any] = {"release": "decision", "n_permutations": 999}
    every = ("kernel", "kolmogorov", "mean", "trend")
    assert family(x, y, **decision) == every
    assert family(x, y, **(decision | {"n_permutations": 199})) == every[:-1]
    assert family(x, y, alpha=0.01, **decision) == every[:-1]
    assert family(square, y, **decision) == ("kernel", "additive", "kolmogorov", "mean", "trend")
    assert "trend" not in family(square, square, **decision)  # too many pairs of columns
    assert family(square, square, statistics="trend", release="decision") == ("trend",)
    assert family(x, y, statistics="trend") == ("trend",)
    for sides, asked in (((x, y), ["mean", "trend"]), ((square, y), "trend")):
        with pytest.raises(ParameterError, match="release='decision'"):
            family(*sides, statistics=asked)


def test_which_rows_change_places():
    """By public numbers: n epsilon² with a person's rows, and what is released."""
    x, y = pairs(100)
    side = Schema({"v": NumericColumn(0, 1)}, rows_per_person=2)

    def shuffle(**options: Any) -> Any:
        result = pt.hsic_test(x, y, **({**BOX} | {"n_permutations": 9} | options))
        return result.parameters["shuffle"]

    assert shuffle(epsilon=1.5) == "swap"
    assert shuffle(epsilon=1.5, release="decision") == "permute"
    assert shuffle(epsilon=1.8) == "permute"
    assert shuffle(epsilon=1.8, shuffle="swap") == "swap"
    assert shuffle(epsilon=0.1, shuffle="permute") == "permute"
    assert shuffle(epsilon=0.1, method="exact") == "permute"
    frames = {"bounds_x": side, "bounds_y": side}
    assert shuffle(epsilon=3.0, **frames) == "swap"


@pytest.mark.parametrize("width_of", [(1e-3, 0.125), (2.0, 0.25), (5.0, 0.375), (50.0, 0.5)])
def test_the_more_noise_the_steeper_a_trend(width_of, monkeypatch):
    epsilon, width = width_of
    plans = []
    module = sys.modules[inspect.unwrap(pt.hsic_test).__module__]
    compute = module.compute

    def watched(plan: Any, *given: Any) -> Any:
        plans.append(plan)
        return compute(plan, *given)

    monkeypatch.setattr(module, "compute", watched)
    pt.hsic_test(*pairs(50), epsilon=epsilon, statistics="trend", **BOX)
    assert plans[0].trend_width == width


@pytest.mark.parametrize("release", ["pvalue", "decision"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_trend_is_found_up_or_down(release, sign):
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    y = sign * 0.25 * x + rng.normal(size=3000)
    options: dict[str, Any] = {"bounds_x": (-4, 4), "bounds_y": (-4, 4), "rng": 0}
    options |= {"noise": SimulatedNoise(1), "statistics": "trend", "release": release}
    assert pt.hsic_test(x, y, epsilon=1, **options).reject
    assert not pt.hsic_test(x, rng.permutation(y), epsilon=1, **options).reject


def test_a_trend_is_tested_by_both_signs(monkeypatch):
    """Not by its size, which moves three times as far; and the level is shared in equal parts."""
    seen: list[Any] = []
    real = permutation.shared_result

    def watched(tests: Any, **given: Any) -> Any:
        seen.extend(tests)
        return real(tests, **given)

    monkeypatch.setattr(permutation, "shared_result", watched)
    pt.hsic_test(*pairs(80), epsilon=1, release="decision", **BOX)
    family, up, down = seen
    assert family.share == Fraction(3, 4)
    assert up.share == down.share == Fraction(1, 8)
    np.testing.assert_array_equal(up.statistics, -down.statistics)
    assert (up.statistics < 0).any()
    assert up.sensitivity.permuted == pytest.approx(1 / 80)


def test_a_trend_of_two_categories():
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=1000)
    value = np.clip(0.5 + 0.1 * rng.normal(size=1000) + 0.05 * kind, 0, 1)
    side = Schema({"kind": CategoricalColumn(("a", "b"))})
    frame = pd.DataFrame({"kind": np.array(["a", "b"])[kind]})
    outcome = pt.hsic_test(
        frame, value, epsilon=1, bounds_x=side, bounds_y=(0, 1), statistics="trend"
    )
    assert outcome.reject
    assert outcome.method == "independence test by a trend"


@pytest.mark.parametrize("statistics", ["kernel", "additive", "kolmogorov", "mean", "trend", None])
def test_every_statistic_finds_a_strong_dependence(statistics):
    rng = np.random.default_rng(2)
    x, y = rng.uniform(size=(400, 3)), rng.uniform(size=(400, 2))
    loud: dict[str, Any] = {"epsilon": 100, "rng": 0, "noise": SimulatedNoise(1)}
    loud |= {"statistics": statistics, "n_permutations": 199, "release": "decision"}
    assert not pt.hsic_test(x, y, **BOX, **loud).reject
    y[:, 1] = x[:, 0]
    assert pt.hsic_test(x, y, **BOX, **loud).reject


def test_categories_are_functions_of_their_own():
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=300)
    side = Schema({"kind": CategoricalColumn(("a", "b", "c"))})
    frame = pd.DataFrame({"kind": np.array(["a", "b", "c"])[kind]})
    for statistic in ("kernel", "additive", "kolmogorov", "mean"):
        result = pt.hsic_test(
            frame, frame, epsilon=100, bounds_x=side, bounds_y=side, statistics=statistic
        )
        assert result.reject


def test_results_hold_public_facts_only():
    outcome = pt.hsic_test(*pairs(50), epsilon=1, **BOX)
    assert outcome.statistic is None
    assert "the number of rows is public" in outcome.guarantee
    decision = pt.hsic_test(*pairs(50), epsilon=1, release="decision", **BOX)
    assert not hasattr(decision, "pvalue")
    assert set(outcome.parameters) == {
        *("kernel_x", "kernel_y", "bandwidths_x", "bandwidths_y", "estimator"),
        *("statistics", "computation", "shuffle", "n_permutations"),
    }


def test_results_say_which_statistics_took_part():
    def told(**options: Any) -> tuple[str, set[str]]:
        outcome = pt.hsic_test(*pairs(50), **(BOX | {"epsilon": 1, "n_permutations": 19} | options))
        return outcome.method, set(outcome.parameters)

    every, parameters = told()
    assert every == "independence test by the largest of kernel, kolmogorov, mean"
    assert told(statistics="kernel") == ("HSIC independence test", parameters)
    assert told(estimator="u") == ("HSIC independence test", parameters)
    both, _ = told(release="decision", n_permutations=999)
    assert both == every + " and by a trend"
    one = "independence test by the largest of mean"
    assert told(statistics="mean") == (one, {"statistics", "shuffle", "n_permutations"})


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"epsilon": 0}, ParameterError, "epsilon"),
        ({"alpha": 1}, ParameterError, "alpha"),
        ({"release": "statistic"}, ParameterError, "release"),
        ({"estimator": "w"}, ParameterError, "estimator"),
        ({"method": "fourier"}, ParameterError, "method"),
        ({"method": "nystrom", "estimator": "u"}, ParameterError, "diagonal"),
        ({"method": "nystrom", "bounds_x": None, "bandwidths_x": 1}, ParameterError, "bounds"),
        ({"bounds_x": None}, ParameterError, "bandwidths must be given"),
        ({"bounds_y": (1, 0)}, ParameterError, "bounds"),
        ({"n_permutations": 0}, ParameterError, "n_permutations"),
        ({"kernel_x": "cubic"}, ParameterError, "kernel"),
        ({"shuffle": "mix"}, ParameterError, "shuffle"),
        ({"shuffle": "swap", "method": "exact"}, ParameterError, "shuffle='swap' needs"),
        ({"statistics": "median"}, ParameterError, "statistics"),
        ({"statistics": []}, ParameterError, "one or more of kernel"),
        ({"statistics": "mean", "method": "exact"}, ParameterError, "statistics other than"),
        ({"statistics": "additive", "bandwidths_x": 0.3}, ParameterError, "bandwidths needs"),
        ({"statistics": ["mean"], "bandwidths_y": [0.3]}, ParameterError, "bandwidths needs"),
    ],
)
def test_bad_parameters(change, error, words, monkeypatch):
    monkeypatch.setattr(
        "privatest.core.noise.SecureNoise.discrete_laplace", lambda *_: pytest.fail("noise")
    )
    with pytest.raises(error, match=words):
        pt.hsic_test(*pairs(20), **({"epsilon": 1} | BOX | change))


def test_bad_data():
    x, y = pairs(20)
    with pytest.raises(DataError, match="same number of rows"):
        pt.hsic_test(x, y[:-1], epsilon=1, **BOX)
    with pytest.raises(DataError, match="at least 4"):
        pt.hsic_test(x[:3], y[:3], epsilon=1, **BOX)
    with pytest.raises(DataError, match="missing value"):
        pt.hsic_test(np.append(x[1:], np.nan), y, epsilon=1, **BOX)


def test_what_only_kernels_of_all_columns_see_is_found():
    """y is x1 xor x2: no pair of columns is related. Seeded; power is above .99."""
    x = np.random.default_rng(1).integers(2, size=(1000, 5)).astype(float)
    y = np.column_stack([x[:, 0] != x[:, 1]] * 5).astype(float)
    bounds: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (0, 1)}
    result = pt.hsic_test(x, y, epsilon=1, rng=0, noise=SimulatedNoise(0), **bounds)
    assert result.pvalue < 0.01
