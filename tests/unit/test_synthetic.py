"""release: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget, gaussian_scale
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.numerics.kernels import Kernel, gram
from privatest.synthetic import SyntheticData, release
from privatest.synthetic.embedding import (
    best_points,
    bounded_weights,
    box_points,
    coefficients,
    denoise,
    embedding_distance,
    equal_weights,
    kernel_sums,
    mean_kernel,
    moments,
    nonnegative_weights,
    point_means,
    signed_weights,
    span,
    to_simplex,
)

RNG = np.random.default_rng(0)
X = RNG.beta(2, 4, size=(3000, 2))
MIXED = Schema(
    {
        "visits": NumericColumn(0, 20, integer=True),
        "plan": CategoricalColumn(("basic", "plus", "pro")),
        "score": NumericColumn(-1, 1),
    }
)
TABLE = {
    "visits": RNG.poisson(3, size=2000),
    "plan": RNG.choice(["basic", "plus"], size=2000),
    "score": RNG.uniform(-1, 1, size=2000),
}
FLAT = Domain((0, 0))


def run(x=X, **options):
    settings: dict[str, Any] = {
        "bounds": (0, 1),
        "epsilon": 1,
        "delta": 1e-6,
        "n_points": 60,
        "rng": 0,
    }
    return release(x, **({"noise": SimulatedNoise(1)} | settings | options))


def distance(synthetic, rows):
    """RKHS distance to the embedding of encoded rows of the unit square."""
    kernel, points = synthetic.facts.kernel, synthetic.points
    weights = np.concatenate([synthetic.weights, np.full(len(rows), -1 / len(rows))])
    both = np.vstack([points, rows])
    return math.sqrt(max(weights @ gram(kernel, both, both, FLAT) @ weights, 0.0))


# --- the subspace ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [Kernel("gaussian", 0.4), Kernel("laplace", 1.0), Kernel("imq", 0.5)]
)
def test_coordinates_are_those_of_a_projection(kernel):
    points, rows = FLAT.points(40), X[:200]
    space = span(points, kernel, FLAT, 1e-10)
    matrix = gram(kernel, points, points, FLAT)
    assert space.coordinates @ space.coordinates.T == pytest.approx(matrix, abs=1e-4)
    assert np.allclose(np.triu(space.triangle, 1), 0)
    found = coefficients(space, kernel_sums(space, rows), len(rows))
    height = gram(kernel, points, rows, FLAT).mean(axis=1)
    best = np.linalg.lstsq(matrix, height, rcond=1e-12)[0]
    assert found @ found == pytest.approx(best @ height, rel=1e-6)


def test_points_within_the_tolerance_add_no_direction():
    close = np.array([[0.2, 0.2], [0.2, 0.2 + 1e-6], [0.9, 0.9]])
    assert span(close, Kernel("gaussian", 0.5), FLAT).rank == 2
    assert span(close, Kernel("gaussian", 0.5), FLAT, 1e-10).rank == 2


# --- shrinkage and weights -------------------------------------------------------------------


def noisy_problem(sigma=0.003, count=80):
    space = span(FLAT.points(count), Kernel("gaussian", 0.3), FLAT)
    exact = coefficients(space, kernel_sums(space, X), len(X))
    noisy = exact + np.random.default_rng(4).normal(scale=sigma, size=space.rank)
    return space.coordinates, exact, noisy, denoise(noisy, moments(space.coordinates), sigma)


def test_shrinkage_takes_noise_off():
    _, exact, noisy, denoised = noisy_problem(0.02)
    assert np.linalg.norm(denoised.values - exact) < 0.8 * np.linalg.norm(noisy - exact)


def test_without_noise_nothing_is_shrunk():
    _, exact, noisy, denoised = noisy_problem(1e-9)
    assert denoised.values == pytest.approx(noisy, abs=1e-6)
    assert exact == pytest.approx(noisy, abs=1e-6)


def test_one_public_point_is_scaled_and_not_taken_for_the_data():
    points = moments(np.array([[1.0]]))
    assert denoise(np.array([0.5]), points, 0.004).values == pytest.approx([0.5], abs=0.01)


def test_draws_have_the_spread_of_the_noise_where_nothing_is_shrunk():
    *_, denoised = noisy_problem(1e-7)
    draws = denoised.draws(4000, np.random.default_rng(1))
    assert np.std(draws, axis=1) == pytest.approx(1e-7, rel=0.1)


def test_signed_weights_meet_the_target():
    coordinates, _, _, denoised = noisy_problem()
    weights = signed_weights(coordinates, denoised.values[:, None])[:, 0]
    assert coordinates.T @ weights == pytest.approx(denoised.values, abs=1e-7)
    few = coordinates[:10]  # cannot reach it: the nearest they can
    weights = signed_weights(few, denoised.values[:, None])[:, 0]
    residual = few.T @ weights - denoised.values
    assert few @ residual == pytest.approx(0, abs=1e-6)


def test_nonnegative_weights_are_the_nearest():
    from scipy.optimize import nnls

    coordinates, _, _, denoised = noisy_problem()
    weights = nonnegative_weights(coordinates, denoised.values[:, None])[:, 0]
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    heavy = 1e3  # the sum of the weights as one more equation
    system = np.vstack([coordinates.T, np.full(len(coordinates), heavy)])
    best, _ = nnls(system, np.append(denoised.values, heavy))
    ours = np.linalg.norm(coordinates.T @ weights - denoised.values)
    assert ours <= 1.02 * np.linalg.norm(coordinates.T @ best - denoised.values) + 1e-6


def test_simplex_projection_of_what_is_in_it():
    inside = np.array([[0.2, 1.0], [0.5, 0.0], [0.3, 0.0]])
    assert to_simplex(inside) == pytest.approx(inside)
    assert to_simplex(np.array([[5.0], [0.0]])) == pytest.approx(np.array([[1.0], [0.0]]))


def test_bounded_weights_keep_their_bound():
    coordinates, _, noisy, _ = noisy_problem()
    start = signed_weights(coordinates, noisy[:, None])
    assert np.abs(start).sum() > 2
    bounded = bounded_weights(coordinates, noisy[:, None], start, 1.5)
    assert np.abs(bounded).sum() == pytest.approx(1.5)
    assert np.array_equal(bounded_weights(coordinates, noisy[:, None], start, 1e9), start)


def test_equal_weights_are_as_near_as_herding_gets():
    coordinates, exact, _, _ = noisy_problem()
    chosen = equal_weights(coordinates, exact, 200)
    assert np.linalg.norm(coordinates[chosen].mean(axis=0) - exact) < 0.03
    assert np.linalg.norm(coordinates.mean(axis=0) - exact) > 0.2


def test_the_best_points_is_better_than_the_first_points():
    coordinates, exact, _, _ = noisy_problem()
    for count in (3, 10):
        chosen = best_points(coordinates, exact, count)
        assert len(set(chosen)) == count
        errors = []
        for kept in (chosen, np.arange(count)):
            weights = signed_weights(coordinates[kept], exact[:, None])[:, 0]
            errors.append(np.linalg.norm(coordinates[kept].T @ weights - exact))
        assert errors[0] < 0.5 * errors[1]
    everything = best_points(coordinates, exact, 10_000)
    assert len(set(everything)) == len(everything) <= len(coordinates)
    assert np.array_equal(everything[:10], best_points(coordinates, exact, 10))
    noise = np.random.default_rng(0).normal(scale=0.01, size=len(exact))
    assert len(best_points(coordinates, noise, 60, 0.01)) < 10  # there is nothing to be seen
    assert len(best_points(coordinates, noise, 60)) == 60


# --- distances -------------------------------------------------------------------------------


def test_distances_in_blocks_are_those_of_the_whole_matrix(monkeypatch):
    monkeypatch.setattr("privatest.synthetic.embedding._STRIP", 1024)
    rows = np.random.default_rng(7).uniform(size=(2300, 2))
    kernel, points = Kernel("gaussian", 0.4), FLAT.points(30)
    shares: list[float] = []
    own = mean_kernel(rows, kernel, FLAT, shares.append)
    assert own == pytest.approx(gram(kernel, rows, rows, FLAT).mean(), rel=1e-12)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    means = point_means(points, rows, kernel, FLAT)
    assert means == pytest.approx(gram(kernel, points, rows, FLAT).mean(axis=1), rel=1e-12)
    weights = np.full(30, 1 / 30)
    square = weights @ gram(kernel, points, points, FLAT) @ weights - 2 * weights @ means + own
    found = embedding_distance(weights, points, means, own, kernel, FLAT)
    assert found == pytest.approx(math.sqrt(square), rel=1e-9)


# --- points ----------------------------------------------------------------------------------


def test_box_points_are_different_rows_of_the_schema():
    points = box_points(MIXED, 300)
    assert len(np.unique(points, axis=0)) == len(points) == 300
    visits = points[:, 0] * 20
    assert visits == pytest.approx(np.rint(visits))
    assert set(points[:, 1]) == {0, 1, 2}
    assert {0, 20} <= set(np.rint(visits).astype(int))


def test_a_schema_with_few_rows_has_few_points():
    small = Schema({"a": NumericColumn(0, 4, integer=True), "b": CategoricalColumn((0, 1))})
    assert len(box_points(small, 100)) == 10


# --- release ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["signed", "bounded", "nonnegative", "equal"])
def test_every_kind_of_weights_is_near_the_data(weights):
    synthetic = run(weights=weights, weight_bound=1.5)
    assert distance(synthetic, X) < 0.05
    assert len(synthetic) == 60
    total = np.abs(synthetic.weights).sum()
    assert total <= 1.5 + 1e-9 if weights == "bounded" else total > 0.5
    if weights == "nonnegative":
        assert synthetic.weights.min() >= 0
        assert synthetic.weights.sum() == pytest.approx(1)
    if weights == "equal":
        assert synthetic.weights == pytest.approx(1 / 60)
    truth = X[:, 0].mean()
    estimate = synthetic.mean("x1")
    assert abs(estimate.value - truth) < 0.05
    low, high = estimate.limits or (
        estimate.value - 1.96 * estimate.error,
        estimate.value + 1.96 * estimate.error,
    )
    assert low < truth < high < low + 0.15


def test_features_are_near_the_data_too():
    synthetic = run(method="features", n_points=40, n_frequencies=500)
    assert distance(synthetic, X) < 0.05
    assert synthetic.weights.min() >= 0
    assert 0 < synthetic.mean("x1").error < 0.05
    for weights in ("bounded", "equal"):
        other = run(method="features", n_points=20, n_frequencies=300, weights=weights)
        assert 0 < other.mean("x1").error < 0.1


def test_the_papers_setting_without_bounds():
    """gamma = 1e-4/2 on raw data: a bandwidth in the data's own units."""
    rows = 100 * X
    synthetic = run(rows, bounds=None, public_points=rows[:50], bandwidth=2e4**0.5, n_points=None)
    assert np.array_equal(synthetic.points, rows[:50])
    assert synthetic.facts.kernel == Kernel("gaussian", 2e4**0.5)
    assert synthetic.facts.schema is None
    scale = gaussian_scale(math.sqrt(2) / len(rows), Budget(1, 1e-6))
    assert synthetic.facts.sigma == pytest.approx(scale, rel=1e-3)


def test_mixed_rows_are_rows_of_the_schema():
    for method in ("subspace", "features"):
        synthetic = run(TABLE, bounds=MIXED, method=method, n_points=50, n_frequencies=300)
        columns = synthetic.columns
        assert set(columns["plan"]) <= {"basic", "plus", "pro"}
        assert columns["visits"].dtype == np.int64
        assert columns["visits"].min() >= 0
        assert columns["visits"].max() <= 20
        assert columns["score"].min() >= -1
        assert columns["score"].max() <= 1
        assert abs(synthetic.mean("visits").value - 3) < 1.5
    MIXED.encode(dict(columns))  # raises unless they are valid


def test_more_public_points_than_rows_wanted_are_searched():
    pool = np.random.default_rng(3).uniform(size=(200, 2))
    chosen = run(public_points=pool, n_points=12)
    first = run(public_points=pool[:12], n_points=None)
    assert len(chosen) <= 12
    assert {*map(tuple, chosen.points)} <= {*map(tuple, pool)}
    assert distance(chosen, X) < 0.7 * distance(first, X)


def test_data_of_any_form_gives_the_same_release():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    forms = [frame, pl.from_pandas(frame), pa.table({"a": X[:, 0], "b": X[:, 1]}), {**frame}]
    releases = [run(form) for form in forms]
    for synthetic in releases:
        assert list(synthetic.columns) == ["a", "b"]
        assert np.array_equal(synthetic.weights, releases[0].weights)
    assert list(run(X).columns) == ["x1", "x2"]
    assert np.array_equal(run(X).weights, releases[0].weights)


def test_named_columns_of_public_points_are_found_by_name():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    public = frame[["b", "a"]].head(30)
    for bounds in (None, (0, 1)):
        synthetic = run(frame, bounds=bounds, public_points=public, bandwidth=0.5, n_points=None)
        assert synthetic.columns["a"] == pytest.approx(X[:30, 0])


def test_other_names_than_those_of_x_are_refused():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    other = frame.head(9).rename(columns={"b": "c"})
    with pytest.raises(DataError, match="public_points must have the columns of x: a, b"):
        run(frame, bounds=None, public_points=other, bandwidth=1)
    with pytest.raises(DataError, match="column 'b' of public_points is missing"):
        run(frame, public_points=other)
    unnamed = run(frame, bounds=None, public_points=X[:9], bandwidth=1, n_points=None)
    assert unnamed.columns["b"] == pytest.approx(X[:9, 1])


def test_rows_of_a_person_multiply_the_noise():
    one = Schema({"a": NumericColumn(0, 1), "b": NumericColumn(0, 1)})
    five = Schema(one.columns, rows_per_person=5)
    scales = [run(bounds=schema).facts.sigma for schema in (one, five)]
    assert scales[1] == pytest.approx(5 * scales[0], rel=1e-3)
    assert run(bounds=five).facts.unit == "person with at most 5 rows"


def test_default_number_of_points():
    assert len(run(n_points=None)) == 500
    assert len(run(X[:100], n_points=None)) == 100


def test_simulated_noise_is_marked():
    assert run().facts.simulated
    assert "NOT private" in str(run())
    secure = run(noise=None)
    assert not secure.facts.simulated
    assert "Privacy spent: epsilon = 1, delta = 1e-06" in str(secure)


def test_public_randomness_does_not_move_the_weights():
    first, second = run(rng=1), run(rng=2)
    assert np.array_equal(first.weights, second.weights)
    assert not np.array_equal(first.draws, second.draws)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "delta is 0": ({"delta": 0}, "delta must be above 0: synthetic data needs Gaussian noise"),
    "epsilon": ({"epsilon": -1}, "epsilon"),
    "duplicate points": ({"public_points": X[[0, 1, 0]]}, "public_points must be distinct"),
    "clipped to the same": ({"public_points": [[2, 2], [3, 3]]}, "clipping to the bounds"),
    "no points": ({"public_points": np.empty((0, 2))}, "at least one row"),
    "M > N": ({"n_points": 5000}, "n_points must be at most the number of rows of x, 3000"),
    "M > N, public": (
        {"public_points": np.random.default_rng(1).random((4000, 2)), "n_points": None},
        "n_points must be at most",
    ),
    "M > N, features": ({"n_points": 5000, "method": "features"}, "n_points must be at most"),
    "no M": ({"n_points": 0}, "n_points must be an integer of at least 1"),
    "unbounded kernel": ({"kernel": "linear"}, "'linear' is not bounded"),
    "unknown kernel": ({"kernel": "magic"}, "kernel must be one of"),
    "two bandwidths": ({"kernel": Kernel("gaussian", 1), "bandwidth": 2}, "bandwidth must be"),
    "bandwidth": ({"bandwidth": 0}, "bandwidth must be"),
    "no bandwidth": ({"bounds": None, "public_points": X[:9]}, "bandwidth must be given"),
    "nothing public": ({"bounds": None, "bandwidth": 1}, "public_points or bounds"),
    "method": ({"method": "magic"}, "method must be one of"),
    "weights": ({"weights": "heavy"}, "weights must be one of"),
    "signed features": ({"weights": "signed", "method": "features"}, "needs method='subspace'"),
    "bound": ({"weight_bound": 0}, "weight_bound"),
    "tolerance": ({"tolerance": 0}, "tolerance"),
    "frequencies": ({"n_frequencies": 0}, "n_frequencies"),
    "rng": ({"rng": "seed"}, "rng must be"),
    "noise": ({"noise": 7}, "noise must be"),
    "bounds": ({"bounds": (1, 0)}, "bounds"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters(name):
    options, message = BAD[name]
    with pytest.raises(ParameterError, match=message):
        run(**options)


@pytest.mark.parametrize(
    ("x", "options"),
    [
        (np.empty((0, 2)), {}),
        (np.array([[0.1, np.nan]]), {}),
        (X, {"public_points": X[:5, :1]}),
        (X, {"public_points": [["a", "b"]]}),
        (X, {"bounds": None, "bandwidth": 1, "public_points": X[:5, :1]}),
    ],
)
def test_bad_data(x, options):
    with pytest.raises(DataError):
        run(x, **options)


def test_a_release_is_synthetic_data():
    synthetic = run()
    assert isinstance(synthetic, SyntheticData)
    assert repr(synthetic) == "SyntheticData(60 rows of x1, x2; epsilon = 1, delta = 1e-06)"


def test_many_points_that_hold_only_noise_do_not_hurt():
    """A prior on a quarter of the points is a rule as well; the better one is taken."""
    from privatest.synthetic.embedding import denoise, moments, nested_moments

    rng = np.random.default_rng(5)
    near = np.zeros((500, 60))
    near[:, :5] = rng.normal(size=(500, 5))  # where the truth is
    far = rng.normal(size=(1500, 60))
    coordinates = np.vstack([near, far])
    known, *fewer = nested_moments(coordinates)
    assert len(fewer) == 1
    truth = near[0]
    errors = []
    for _ in range(40):
        noisy = truth + rng.normal(scale=0.3, size=60)
        alone, nested = denoise(noisy, known, 0.3), denoise(noisy, known, 0.3, fewer)
        assert nested.widest == alone.widest  # error bars go by all points
        errors.append([np.linalg.norm(found.values - truth) for found in (alone, nested)])
    alone_error, nested_error = np.mean(errors, axis=0)
    assert nested_error < 0.8 * alone_error
    assert len(nested_moments(coordinates[:1999])) == 1
    np.testing.assert_array_equal(moments(coordinates).mean, known.mean)
