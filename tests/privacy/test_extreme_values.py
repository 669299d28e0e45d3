"""Values at the ends of the floats: no warning and no exception tells of them.

A warning that some values give and others do not is an output that nobody has paid for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.noise import SimulatedNoise

BEYOND = np.longdouble(10) ** (4000 if np.finfo(np.longdouble).max > np.finfo(float).max else 300)
VALUES: dict[str, Any] = {
    "squares overflow": [1.2e154, -1.2e154, 3.0, 1e300],
    "largest": [1.7e308, -1.7e308, 0.5, 1.0],
    "smallest": [5e-324, -5e-324, 0.0, -0.0],
    "extended": np.array([BEYOND, -BEYOND, np.longdouble(1) / 3, 1 / BEYOND]),
    "whole": np.array([2**63 - 1, -(2**63), 0, 1]),
    "equal": [0.5] * 4,
    "infinite": [np.inf, -np.inf, 0.2, 0.7],
}
SIZE = 60
BUDGET: dict[str, Any] = {"epsilon": 1}
APPROXIMATE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
Run = Callable[[Any, Any, dict[str, Any]], object]


def two(test: Callable[..., object], **options: Any) -> Run:
    return lambda x, y, common: test(x, y, **BUDGET | options | common)


def one(test: Callable[..., object], *arguments: Any, **options: Any) -> Run:
    return lambda x, _, common: test(x, *arguments, **BUDGET | options | common)


def sides(test: Callable[..., object], **options: Any) -> Run:
    def run(x, y, common):
        given = dict(common)
        bounds = given.pop("bounds")
        return test(x, y, bounds_x=bounds, bounds_y=bounds, **BUDGET | options | given)

    return run


def mean_gap(x, y):
    return x.mean() - y.mean()


FEW: dict[str, Any] = {"n_permutations": 9}
UNBOUNDED: dict[str, Run] = {
    **{
        f"mmd {kernel} {adjacency}": two(
            pt.mmd_test, kernel=kernel, adjacency=adjacency, bandwidths=[1e-99, 1.0], **FEW
        )
        for kernel in ("gaussian", "laplace", "imq")
        for adjacency in ("one", "row")
    },
    "mmd u": two(pt.mmd_test, estimator="u", bandwidths=1.0, **FEW),
    "hsic": sides(pt.hsic_test, bandwidths_x=1.0, bandwidths_y=1.0, **FEW),
    "hsic u": sides(pt.hsic_test, bandwidths_x=1.0, bandwidths_y=1.0, estimator="u", **FEW),
    "ks": two(pt.ks_2samp),
    "ks row": two(pt.ks_2samp, adjacency="row", **FEW),
    "mannwhitneyu": two(pt.mannwhitneyu),
    "mannwhitneyu row": two(pt.mannwhitneyu, adjacency="row", **FEW),
    "median": two(pt.median_test),
    "wilcoxon": two(pt.wilcoxon),
    "sign": two(pt.sign_test),
    "symmetry": two(pt.symmetry_test),
    "ks normal": one(pt.ks_1samp, "norm(0, 1)"),
    "own": lambda x, y, common: pt.permutation_test(
        (x, y), mean_gap, sensitivity=1e280, check_sensitivity=False, **BUDGET | FEW | common
    ),
    "own, naive": lambda x, y, common: pt.permutation_test(
        (x, y),
        mean_gap,
        sensitivity=1e280,
        check_sensitivity=False,
        privatization="naive",
        **BUDGET | {"n_permutations": 19} | common,
    ),
}
BOUNDED: dict[str, Run] = UNBOUNDED | {
    "mmd grid": two(pt.mmd_test, **FEW),
    "mmd wide": two(pt.mmd_test, kernel="imq", bandwidths=[1e99, 1.0], **FEW),
    "mmd points": two(pt.mmd_test, method="nystrom", **FEW),
    "hsic family": sides(pt.hsic_test, **FEW),
    "hsic wide": sides(pt.hsic_test, bandwidths_x=[9e98, 1.0], bandwidths_y=[9e98, 1.0], **FEW),
    **{
        f"ipm {distance}": two(pt.ipm_test, distance=distance, **FEW)
        for distance in ("mean", "wasserstein", "kolmogorov")
    },
    "me": two(pt.me_test, locations=[[0.5]], **APPROXIMATE),
    "scf": two(pt.scf_test, frequencies=[[0.5]], **APPROXIMATE),
    "me permutation": two(pt.me_permutation_test, locations=[[0.5]], **FEW),
    "scf permutation": two(pt.scf_permutation_test, frequencies=[[0.5]], **FEW),
    "t": two(pt.ttest_ind),
    "t delta": two(pt.ttest_ind, **APPROXIMATE),
    "t one sample": one(pt.ttest_1samp, 0.5),
    "mean": one(pt.private_mean),
    "covariance": one(pt.private_covariance, **APPROXIMATE),
    "family": one(pt.ks_family, "normal"),
    "covariance of three": lambda x, y, common: pt.private_covariance(
        np.stack([x, y, x], axis=1), **BUDGET | common
    ),
    "hotelling": lambda x, y, common: pt.hotelling_test(
        np.stack([x, y], axis=1), np.stack([y, x], axis=1), **BUDGET | common
    ),
    "t of pairs": two(pt.ttest_rel),
    "tost": two(pt.tost_ind, low=-0.1, high=0.1),
    "anova": two(pt.f_oneway),
    "kruskal": lambda x, y, common: pt.kruskal(x, y, x[::2], **BUDGET | common),
    "kendall": sides(pt.kendalltau),
    "spearman": sides(pt.spearmanr),
    "pearson": sides(pt.pearsonr),
    "line": sides(pt.linregress),
    "quantile": one(pt.private_quantile),
    "shift": two(pt.hodges_lehmann),
    "share": one(pt.private_share, success=1),
    "given": lambda x, y, common: pt.conditional_independence_test(
        x,
        y,
        x[::-1],
        bounds_x=common["bounds"],
        bounds_y=common["bounds"],
        bounds_z=common["bounds"],
        rng=1,
        noise=common["noise"],
        **BUDGET,
    ),
    "release": one(pt.release, method="subspace", **APPROXIMATE),
    "release tables": one(pt.release, method="tables", **APPROXIMATE),
    "release features": one(pt.release, method="features", **APPROXIMATE),
    "sarrm": two(pt.sarrm_test, pvalue="mannwhitneyu"),
    "tests": two(pt.test_of_tests, pvalue="mannwhitneyu"),
}


def sample(values: Any, seed: int) -> Any:
    array = np.asarray(values)
    return array[np.random.default_rng(seed).integers(len(array), size=SIZE)]


def run_quietly(run: Run, values: Any, bounds: Any) -> None:
    common = {"bounds": bounds, "rng": 1, "noise": SimulatedNoise(1)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            run(sample(values, 1), sample(values, 2), common)
        except TypeError as error:  # not every test has public randomness
            if "'rng'" not in str(error):
                raise
            common = {"bounds": bounds, "noise": SimulatedNoise(1)}
            run(sample(values, 1), sample(values, 2), common)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", BOUNDED)
def test_with_bounds_every_value_is_taken_without_a_word(name, kind):
    run_quietly(BOUNDED[name], VALUES[kind], (0, 1))


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", UNBOUNDED)
def test_without_bounds_every_float_is_taken_without_a_word(name, kind):
    if np.isfinite(np.asarray(VALUES[kind], dtype=np.longdouble)).all() and kind != "extended":
        run_quietly(UNBOUNDED[name], VALUES[kind], None)
        return
    with pytest.raises(pt.DataError, match="infinite value"):  # documented: the caller's error
        run_quietly(UNBOUNDED[name], VALUES[kind], None)


NARROW_AND_WIDE = {
    "narrowest": (0, 1e-150),
    "narrowest, off 0": (-7e-151, 5e-151),
    "narrow": (-1e-100, 0),
    "wide": (-1e150, 1e150),
    "wider": (0, 1e155),
    "widest": (-8e307, 8e307),
}


@pytest.mark.parametrize("bounds", NARROW_AND_WIDE.values(), ids=NARROW_AND_WIDE)
@pytest.mark.parametrize("name", BOUNDED)
def test_what_bounds_do_is_public(name, bounds):
    """Bounds are taken or refused, for all values alike, and no value makes a warning."""
    low, high = bounds
    inside = [low, high, low / 2, high / 3, (low + high) / 2]
    kinds = VALUES | {"inside": inside, "lower": [low], "upper": [high]}
    found = {kind: outcome(BOUNDED[name], values, bounds) for kind, values in kinds.items()}
    assert len(set(found.values())) == 1, found


@pytest.mark.parametrize("test", [pt.pearsonr, pt.linregress, pt.kendalltau, pt.hsic_test])
@pytest.mark.parametrize("bounds", [((0, 1e-150), (-1e150, 1e150)), ((-1e150, 0), (0, 1e-150))])
def test_sides_of_other_sizes(test, bounds):
    def run(x, y, common):
        options = BUDGET | FEW if test is pt.hsic_test else BUDGET
        del common["bounds"]
        return test(x, y, bounds_x=bounds[0], bounds_y=bounds[1], **options | common)

    inside = [end for pair in bounds for end in pair]
    found = {
        kind: outcome(run, values, None) for kind, values in (VALUES | {"inside": inside}).items()
    }
    assert set(found.values()) == {"taken"}, found


def outcome(run: Run, values: Any, bounds: Any) -> str:
    try:
        run_quietly(run, values, bounds)
    except pt.ParameterError as error:
        return f"refused: {error}"
    return "taken"


@pytest.mark.parametrize("bounds", [(0, 5e-324), (0, 1e-310), (-1e-300, 1e-300), (1.0, 1.0)])
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_next_to_each_other_are_refused(name, bounds):
    with pytest.raises(pt.ParameterError, match="bounds must be"):
        run_quietly(BOUNDED[name], VALUES["equal"], bounds)
