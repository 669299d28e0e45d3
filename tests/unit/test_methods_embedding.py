"""Embedding tests from the outside: what they take, refuse, release and show."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privatest
from privatest.core.errors import DataError, ParameterError, PrivacyError
from privatest.core.privacy import Budget, gaussian_scale
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn, Schema
from privatest.display.plots import plot_features
from privatest.mechanisms.moments import difference_sensitivity
from privatest.methods.embedding import (
    MomentsRelease,
    StatisticRelease,
    me_permutation_test,
    me_test,
    read_inputs,
    relabelled,
    scf_permutation_test,
    scf_test,
    statistic_pvalue,
    straightened,
    two_sample_scale,
)
from privatest.methods.locations import PrivateChoice, distinguishing_features
from privatest.noise import SimulatedNoise
from privatest.numerics.features import mean_embedding
from privatest.numerics.kernels import Kernel, gram

DELTA = 1e-5
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(800, 2)), RNG.beta(2, 1, size=(600, 2))
ME: dict[str, Any] = {"locations": 4, "bounds": (0, 1), "epsilon": 1}
SCF: dict[str, Any] = {"frequencies": 2, "bounds": (0, 1), "epsilon": 1}


def noise(seed=0):
    return SimulatedNoise(seed)


# --- figures of the specification ------------------------------------------------------------


@pytest.mark.parametrize(("power", "sigma"), [(1.0, 0.00769089), (1.25, 0.00859868)])
def test_noise_of_the_joint_mechanism(power, sigma):
    bound = difference_sensitivity(1000, 1000, radius=math.sqrt(power))
    assert gaussian_scale(bound, Budget(1, "1e-5")) == pytest.approx(sigma, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [
        ("0.1", "1e-5", 0.032521),
        (1, "1e-5", 0.268051),
        (5, "1e-5", 1.121242),
        (1, "1e-6", 0.236704),
    ],
)
def test_noise_of_the_gaussian_mechanism(epsilon, delta, mu):
    assert 1 / gaussian_scale(1.0, Budget(epsilon, delta)) == pytest.approx(mu, abs=5e-7)


def test_a_narrower_spread_needs_less_noise():
    narrow = difference_sensitivity(1000, 1000, radius=1.0, spread=math.sqrt(2))
    assert narrow < 0.8 * difference_sensitivity(1000, 1000, radius=1.0)


# --- releases --------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["moments", "statistic"])
@pytest.mark.parametrize("paired", [False, True])
def test_differences_are_found(release, paired):
    x, y = X[:600], Y
    for test, public in ((me_test, ME), (scf_test, SCF)):
        more: dict[str, Any] = {"delta": DELTA} if release == "moments" else {}
        found = test(
            x,
            y,
            release=release,
            paired=paired,
            rng=0,
            noise=noise(),
            **public | {"epsilon": 5},
            **more,
        )
        assert found.reject
        assert found.simulated
        assert found.spent == Budget(5, DELTA if more else 0)
        assert set(found.sizes) == ({"n"} if paired else {"n", "m"})
        assert bool(found.estimates) == (release == "moments")
        json.loads(found.to_json())
        assert "reject" in str(found)


@pytest.mark.parametrize("release", ["pvalue", "decision"])
@pytest.mark.parametrize("paired", [False, True])
def test_permutation_tests_find_differences(release, paired):
    for test, public in ((me_permutation_test, ME), (scf_permutation_test, SCF)):
        found = test(X[:600], Y, release=release, paired=paired, rng=0, noise=noise(), **public)
        assert found.reject
        assert hasattr(found, "pvalue") == (release == "pvalue")
        json.loads(found.to_json())


def test_secure_noise_is_the_default():
    assert not me_test(X, Y, delta=DELTA, **ME).simulated
    assert not me_test(X, Y, release="statistic", **ME).simulated
    assert not me_permutation_test(X, Y, **ME).simulated


def test_estimates_are_kernel_values_with_their_noise():
    """With a huge budget the released difference is the difference of mean kernel values."""
    found = me_test(X, Y, delta=0.5, noise=noise(), **ME | {"epsilon": 10_000})
    places = np.array(found.parameters["locations"])
    kernel = Kernel("gaussian", found.parameters["bandwidth"])
    values = [gram(kernel, rows, places, Domain((0, 0))) for rows in (X, Y)]
    expected = values[0].mean(axis=0) - values[1].mean(axis=0)
    assert found.estimates["difference"] == pytest.approx(expected, abs=1e-3)
    assert (
        np.abs(found.estimates["difference"] - expected).max() < 6 * found.estimates["noise"].max()
    )
    within = (600 * np.cov(values[0].T) + 800 * np.cov(values[1].T)) / 1400
    assert found.estimates["covariance"] == pytest.approx(within, abs=2e-3)
    assert not found.estimates["difference"].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        found.estimates["noise"][0] = 0


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_of_estimates_is_what_is_said():
    quick: dict[str, Any] = {"delta": DELTA, "release": MomentsRelease(n_bootstrap=1), **ME}
    found = [me_test(X, Y, noise=noise(seed), **quick).estimates for seed in range(300)]
    draws, said = np.array([each["difference"] for each in found]), found[0]["noise"]
    # a standard deviation of 300 draws is within 20% but for a chance of 1e-6
    assert draws.std(axis=0) == pytest.approx(said, rel=0.2)


def test_permuted_statistics_are_those_of_permuted_rows():
    x, y = X[:6], Y[:4]  # bins of one row
    features = mean_embedding(Kernel("gaussian", 0.5), Domain((0, 0)).points(3), Domain((0, 0)))
    inputs = read_inputs(
        x, y, (0, 1), Budget(1, 0), alpha=0.05, adjacency="one", paired=False, noise=noise()
    )
    scale = two_sample_scale(6, 4, radius=1.0, spread=features.spread, condition=2.0)
    found, error = relabelled(inputs, features, scale, 50, np.random.default_rng(1))
    psi = features(np.vstack([x, y]))
    values = set()
    rng = np.random.default_rng(2)
    for trial in range(4000):
        labels = np.where(np.arange(10) < 6, math.sqrt(4 / 6), -math.sqrt(6 / 4))
        labels = labels if trial == 0 else rng.permutation(labels)
        rows = np.column_stack([np.ones(10), psi])
        mean = (labels[:, None] * rows).mean(axis=0)
        matrix = rows.T @ rows / 10 + scale.ridge * np.eye(4)
        r = np.array([math.sqrt(mean @ np.linalg.solve(matrix, mean))])
        value = round(float(straightened(r, scale)[0]), 9)
        values.add(value)
        if trial == 0:
            assert found[0] == pytest.approx(value, abs=1e-8)
    assert {round(float(value), 9) for value in found} <= values
    assert 0 < error < 1e-9


def test_statistic_pvalue_against_draws():
    """The null law is chi² from above, plus the noise."""
    scale = two_sample_scale(500, 500, radius=1.0, spread=2.0, condition=50.0)
    rng = np.random.default_rng(3)
    share = 1 / (1 + scale.ridge)
    r = np.sqrt(np.minimum(share * rng.chisquare(4, size=200_000) / 1000, 1.0))
    draws = straightened(r, scale) + rng.laplace(scale=0.1, size=len(r))
    for value in np.quantile(draws, [0.5, 0.95, 0.999]):
        found = statistic_pvalue(
            value, size=1000, dimension=4, variance=1.0, scale=scale, noise_scale=0.1
        )
        share_above = float(np.mean(draws >= value))
        doubt = 5 * math.sqrt(share_above / len(draws))  # 3e-7 a side; the draws are seeded
        assert share_above - doubt < found < 1.02 * share_above + doubt


# --- schema, categories, locations -----------------------------------------------------------


def test_schema_with_categories():
    schema = Schema(
        {"age": NumericColumn(0, 100), "plan": CategoricalColumn(("basic", "plus"))},
        rows_per_person=2,
    )
    rng = np.random.default_rng(4)
    frames = [
        {"age": rng.uniform(20, top, size=500), "plan": rng.choice(["basic", "plus"], size=500)}
        for top in (60, 90)
    ]
    found = me_test(
        *frames, locations=3, bounds=schema, epsilon=5, delta=DELTA, rng=0, noise=noise()
    )
    assert "at most 2 rows" in replace(found, simulated=False).guarantee
    assert found.unit == "person with at most 2 rows"
    places = [feature.place for feature in distinguishing_features(found)]
    assert all(0 <= age <= 100 and plan in ("basic", "plus") for age, plan in places)
    single = Schema(dict(schema.columns))
    alone = me_test(
        *frames, locations=3, bounds=single, epsilon=5, delta=DELTA, rng=0, noise=noise()
    )
    ratio = found.estimates["noise"] / alone.estimates["noise"]
    assert ratio == pytest.approx(2.0, rel=1e-6)


def test_locations_are_in_the_units_of_the_data():
    wide = me_test(
        10 * X,
        10 * Y,
        locations=[[2.0, 5.0]],
        bounds=(0, 10),
        epsilon=1,
        delta=DELTA,
        rng=0,
        noise=noise(),
    )
    unit = me_test(
        X, Y, locations=[[0.2, 0.5]], bounds=(0, 1), epsilon=1, delta=DELTA, rng=0, noise=noise()
    )
    assert wide.statistic == pytest.approx(unit.statistic)
    assert wide.parameters["locations"] == [[2.0, 5.0]]
    fast = scf_test(
        10 * X,
        10 * Y,
        frequencies=[[0.1, 0.2]],
        bounds=(0, 10),
        epsilon=1,
        delta=DELTA,
        rng=0,
        noise=noise(),
    )
    slow = scf_test(
        X, Y, frequencies=[[1.0, 2.0]], bounds=(0, 1), epsilon=1, delta=DELTA, rng=0, noise=noise()
    )
    assert fast.statistic == pytest.approx(slow.statistic)


def test_unbounded_data_needs_a_bandwidth():
    with pytest.raises(ParameterError, match="bandwidth"):
        me_test(X, Y, locations=[[0.5, 0.5]], epsilon=1, delta=DELTA)
    found = me_test(
        X, Y, locations=[[0.5, 0.5]], bandwidth=1.0, epsilon=1, delta=DELTA, noise=noise()
    )
    assert 0 < found.pvalue <= 1


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "word"),
    [
        ({"adjacency": "row"}, PrivacyError, "group sizes"),
        ({"adjacency": "both", "paired": True}, ParameterError, "paired"),
        ({"paired": True}, DataError, "same number"),
        ({"paired": 1}, ParameterError, "paired"),
        ({"delta": 0, "release": "moments"}, ParameterError, "delta"),
        ({"epsilon": 0}, ParameterError, "epsilon"),
        ({"alpha": 1}, ParameterError, "alpha"),
        ({"release": "pvalue"}, ParameterError, "release"),
        ({"release": StatisticRelease(condition=1e6)}, ParameterError, "condition"),
        ({"release": MomentsRelease}, ParameterError, "release"),
        ({"locations": 0}, ParameterError, "locations"),
        ({"locations": 501}, ParameterError, "locations"),
        ({"locations": [[0.5]]}, ParameterError, "locations"),
        ({"bandwidth": 0}, ParameterError, "bandwidth"),
        ({"kernel": "cubic"}, ParameterError, "kernel"),
        ({"noise": object()}, ParameterError, "noise"),
        ({"rng": "seed"}, ParameterError, "rng"),
    ],
)
def test_me_test_refuses(changes, error, word):
    with pytest.raises(error, match=word):
        me_test(X, Y, **{**ME, "delta": DELTA, **changes})


@pytest.mark.parametrize(
    ("make", "fields", "word"),
    [
        (MomentsRelease, {"null": "chi2"}, "null"),
        (MomentsRelease, {"n_bootstrap": 0}, "n_bootstrap"),
        (StatisticRelease, {"condition": 0.0}, "condition"),
        (PrivateChoice, {"candidates": 4}, "candidates"),
        (PrivateChoice, {"candidates": [4]}, "candidates"),
    ],
)
def test_parts_of_a_call_refuse(make, fields, word):
    with pytest.raises(ParameterError, match=word):
        make(**fields)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"frequencies": 0}, "frequencies"),
        ({"frequencies": [1.0]}, "frequencies"),
        ({"frequencies": [[1.0, math.inf]]}, "frequencies"),
        ({"bounds": None}, "bounds"),
        ({"bandwidth": -1.0}, "bandwidth"),
    ],
)
def test_scf_test_refuses(changes, word):
    with pytest.raises(ParameterError, match=word):
        scf_test(X, Y, **{**SCF, "delta": DELTA, **changes})


def test_permutation_test_refuses():
    with pytest.raises(ParameterError, match="release"):
        me_permutation_test(X, Y, **ME | {"release": "moments"})
    with pytest.raises(ParameterError, match="n_permutations"):
        me_permutation_test(X, Y, n_permutations=0, **ME)
    with pytest.raises(PrivacyError, match="row"):
        me_permutation_test(X, Y, adjacency="row", **ME)
    with pytest.raises(ParameterError, match="PrivateChoice"):
        me_permutation_test(X, Y, **ME | {"locations": PrivateChoice([3, 4])})


# --- distinguishing features --------------------------------------------------------------------


def test_the_clearest_feature_comes_first():
    x, y = np.full(3000, 0.1), np.full(3000, 0.4)
    found = me_test(
        x,
        y,
        locations=[0.1, 0.9],
        bandwidth=0.2,
        bounds=(0, 1),
        epsilon=1,
        delta=DELTA,
        rng=0,
        noise=noise(),
    )
    features = distinguishing_features(found)
    assert [feature.place for feature in features] == [(0.1,), (0.9,)]
    assert features[0].clarity > features[1].clarity
    assert features[0].difference > 0
    assert features[0].error >= features[0].noise > 0


def test_the_former_name_still_works():
    assert privatest.speaking_features is privatest.distinguishing_features


def test_waves_are_named():
    found = scf_test(X, Y, delta=DELTA, noise=noise(), **SCF)
    kinds = [feature.place[0] for feature in distinguishing_features(found)]
    assert sorted(kinds) == ["cos", "cos", "sin", "sin"]


def test_other_outcomes_have_no_features():
    with pytest.raises(ParameterError, match="moments"):
        distinguishing_features(me_test(X, Y, release="statistic", noise=noise(), **ME))


def test_features_are_drawn():
    found = me_test(X, Y, delta=DELTA, noise=noise(), **ME)
    axes = plot_features(found, most=3)
    assert len(axes.get_yticks()) == 3
    figure: Any = axes.figure
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()
    again = plot_features(found, axes=figure.add_subplot())
    assert len(again.get_yticks()) == 4
