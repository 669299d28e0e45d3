"""The conditional randomisation test: exact level, power, its sensitivity, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.data.encoding import encode_pairs
from privatest.data.schema import NumericColumn, Schema
from privatest.methods import conditional as randomisation
from privatest.methods.conditional import resampled_products
from privatest.noise import SimulatedNoise

BOUNDS: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (-1, 1)}


def coin(u, z):
    return u > 1 - z  # a treatment with probability z


def drawn(n, seed, effect=0.0):
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.1, 0.9, size=n)
    x = coin(rng.uniform(size=n), z).astype(float)
    return x, np.clip(z**2 - 0.5 + effect * x + rng.normal(0, 0.2, size=n), -1, 1), z


def run(data, seed=0, **more):
    x, y, z = data
    options: dict[str, Any] = {"epsilon": 1, "rng": seed, "noise": SimulatedNoise(seed)}
    return pt.conditional_randomisation_test(x, y, z, coin, **BOUNDS | options | more)


@pytest.mark.parametrize("n", [5, 200])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_level_is_exact_though_y_depends_on_z(n, alternative):
    """300 runs: .05 is passed by 4 standard errors in fewer than 1 of 10,000 cases."""
    options = {"alternative": alternative, "n_resamples": 39, "epsilon": 5}
    found = [run(drawn(n, seed), seed, **options).reject for seed in range(300)]
    assert np.mean(found) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)


def test_power_and_sides():
    data = drawn(2000, 1, effect=0.3)
    assert run(data).reject
    assert run(data, alternative="greater").reject
    assert not run(data, alternative="less").reject
    assert run(data, release="decision").reject


def test_one_row_moves_every_statistic_by_no_more_than_is_declared():
    """Rows at the corners, drawn values at the ends: the bound of one side is attained."""
    rng = np.random.default_rng(0)
    n, order = 12, np.arange(12)
    worst = {"one": 0.0, "two": 0.0}
    for _ in range(300):
        x, y, z = rng.integers(2, size=(3, n)).astype(float)
        other = [column.copy() for column in (x, y, z)]
        for column in other:
            column[3] = rng.integers(2)
        sums = [
            resampled_products(
                encode_pairs(a, b, (0, 1), (0, 1)),
                c,
                lambda u, given: np.where(given > 0.5, 1.0, 0.0),
                order,
                9,
                np.random.default_rng(1),
            )
            for a, b, c in ((x, y, z), tuple(other))
        ]
        apart = [np.abs(each - each.mean()) for each in sums]
        worst["one"] = max(worst["one"], n * np.abs(sums[0] - sums[1]).max())
        worst["two"] = max(worst["two"], n * np.abs(apart[0] - apart[1]).max())
    assert worst["one"] == pytest.approx(2)
    assert 2 < worst["two"] <= 4


@pytest.mark.parametrize(("alternative", "moved"), [("two-sided", 4), ("less", 2), ("greater", 2)])
def test_the_declared_sensitivity_is_what_a_row_can_move(alternative, moved, monkeypatch):
    seen = []
    monkeypatch.setattr(randomisation, "permutation_result", lambda _, **named: seen.append(named))
    schema = Schema({"v": NumericColumn(0, 1)}, rows_per_person=3)
    bounds: dict[str, Any] = {"bounds_x": schema, "bounds_y": schema, "alternative": alternative}
    for data in (drawn(50, 1), drawn(50, 2)):
        x, y, z = data
        run(({"v": x}, {"v": y}, z), **bounds, n_resamples=9)
    first, second = (named["sensitivity"] for named in seen)
    assert first == second  # public
    assert moved * 3 / 50 <= first.observed == first.permuted < moved * 3 / 50 * (1 + 1e-6)


def test_what_is_not_a_number_does_not_fail():
    x, y, z = drawn(50, 1)
    wrong = pt.conditional_randomisation_test(
        x, y, z, lambda u, z: np.where(z > 0.5, np.nan, np.inf), **BOUNDS, epsilon=1, n_resamples=9
    )
    assert 0 < wrong.to_dict()["pvalue"] <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bounds_x": None}, "bounds_x must be given"),
        ({"n_resamples": 0}, "n_resamples must be"),
        ({"alternative": "more"}, "alternative must be"),
        ({"release": "all"}, "release must be"),
    ],
)
def test_bad_parameters(change, message):
    with pytest.raises(pt.ParameterError, match=message):
        run(drawn(20, 0), **change)


def test_bad_data_and_functions():
    x, y, z = drawn(20, 0)
    with pytest.raises(pt.DataError, match="z must be an array"):
        run((x, y, z[:-1]))
    with pytest.raises(pt.PrivatestError, match="one number for each row"):
        pt.conditional_randomisation_test(x, y, z, lambda u, z: 1.0, **BOUNDS, epsilon=1)
    with pytest.raises(pt.PrivatestError, match="one number for each row") as refused:
        pt.conditional_randomisation_test(
            x, y, z, lambda u, z: np.full(len(u), "secret"), **BOUNDS, epsilon=1
        )
    assert "secret" not in str(refused.value)
    with pytest.raises(pt.ParameterError, match="quantile must be a function"):
        pt.conditional_randomisation_test(x, y, z, 0.5, **BOUNDS, epsilon=1)  # type: ignore[arg-type]


def test_a_function_that_changes_its_rows_has_the_same_law_in_every_draw():
    x, y, z = drawn(50, 1)

    def spoils(u, given):
        found = coin(u, given)
        given *= 0
        return found

    options: dict[str, Any] = {**BOUNDS, "epsilon": 1, "rng": 0, "n_resamples": 9}
    results = [
        pt.conditional_randomisation_test(x, y, z, law, **options, noise=SimulatedNoise(0))
        for law in (coin, spoils)
    ]
    assert results[0].to_dict() == results[1].to_dict()


def test_bounds_that_are_next_to_nothing_do_not_make_rows_vanish():
    x, y, z = drawn(50, 1)
    tiny: dict[str, Any] = {"bounds_x": (0, 1e-150), "bounds_y": (-1, 1), "epsilon": 1}
    found = pt.conditional_randomisation_test(x, y, z, coin, **tiny, n_resamples=9)
    assert 0 < found.to_dict()["pvalue"] <= 1
