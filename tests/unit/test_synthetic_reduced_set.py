"""Algorithm 2: the noisy mean feature, and points and weights that fit it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.data.schema import Domain
from privatest.noise import SimulatedNoise
from privatest.numerics.features import kernel_map
from privatest.numerics.kernels import Kernel, gram
from privatest.synthetic import fourier as module
from privatest.synthetic.fourier import mean_features, noisy_features, reduced_set

BOX = Domain((0, 0))
KERNEL = Kernel("gaussian", 0.3)
BUDGET = Budget(1, 1e-6)


def clusters(size=4_000, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[0.3, 0.3], [0.7, 0.6], [0.2, 0.8]])
    return np.clip(centres[rng.integers(3, size=size)] + 0.05 * rng.normal(size=(size, 2)), 0, 1)


def release(rows, *, domain=BOX, kernel=KERNEL, budget=BUDGET, seed=0, **options: Any):
    given: dict[str, Any] = {"n_frequencies": 500, "rng": 0} | options
    given.setdefault("noise", SimulatedNoise(1_000 + seed))
    return noisy_features(rows, kernel=kernel, domain=domain, budget=budget, **given)


def distance(points, weights, rows, *, kernel=KERNEL, domain=BOX):
    """Exact RKHS distance to the rows."""
    within = weights @ gram(kernel, points, points, domain) @ weights
    across = weights @ gram(kernel, points, rows, domain).mean(axis=1)
    own = gram(kernel, rows, rows, domain).mean()
    return math.sqrt(max(within - 2 * across + own, 0.0))


# --- the noisy mean ----------------------------------------------------------------------------


def test_noise_has_the_declared_scale():
    rows = clusters(500)
    noisy = release(rows, n_frequencies=2_000, frequencies="random")
    public = kernel_map(KERNEL, BOX, 2_000, np.random.default_rng(0), "random")
    exact = mean_features(rows, public)
    # 4,000 draws: the relative error of a standard deviation is 1/sqrt(8000); six of them
    assert np.std(noisy.mean - exact) == pytest.approx(noisy.scale, rel=6 / math.sqrt(8_000))
    assert np.array_equal(noisy.frequencies, public.frequencies)
    assert noisy.simulated


def test_the_lattice_needs_the_least_noise_and_no_rng():
    rows = clusters(200)
    lattice, random = release(rows), release(rows, frequencies="random")
    assert np.ptp(lattice.amplitudes) > 0
    assert np.ptp(random.amplitudes) == 0
    assert lattice.scale < 0.75 * random.scale
    other = release(rows, rng=99)
    assert np.array_equal(lattice.mean, other.mean)


def test_the_constant_feature_is_known():
    noisy = release(clusters(50), budget=Budget("0.001", 1e-6))
    constant = ~noisy.frequencies.any(axis=0)
    assert constant.sum() == 1
    assert noisy.mean[0, constant] == noisy.amplitudes[constant]
    assert noisy.mean[1, constant] == 0


def test_auto_falls_back_on_random_frequencies():
    wide = Domain((0,) * 6)
    rows = wide.points(50)
    noisy = release(rows, domain=wide, kernel=Kernel("gaussian", 0.2), n_frequencies=300)
    assert np.ptp(noisy.amplitudes) == 0
    assert noisy.mean.shape == (2, 300)
    assert np.ptp(release(clusters(50), kernel=Kernel("laplace", 1.0)).amplitudes) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": Budget(1)}, "delta must be above 0"),
        ({"kernel": Kernel("imq", 1.0)}, "kernel must be gaussian or laplace"),
        ({"kernel": Kernel("laplace", 1.0), "frequencies": "lattice"}, "frequencies='random'"),
        ({"frequencies": "lattice", "n_frequencies": 3}, "larger n_frequencies"),
        ({"frequencies": "some"}, "frequencies must be one of"),
        ({"n_frequencies": 0}, "n_frequencies must be an integer"),
        ({"rows_per_person": 0}, "rows_per_person must be an integer"),
        ({"rng": -1}, "rng must be"),
        ({"noise": "loud"}, "noise must be"),
    ],
)
def test_bad_parameters(options, words):
    with pytest.raises(ParameterError, match=words):
        release(clusters(20), **options)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((0, 2)),
        np.zeros((3, 1)),
        np.zeros(3),
        np.full((3, 2), 1.5),
        np.full((3, 2), np.nan),
        np.full((3, 2), -1e-9),
    ],
)
def test_rows_that_are_not_encoded(rows):
    with pytest.raises(DataError, match="rows must be"):
        release(rows)


def test_categories_that_are_not_codes():
    with pytest.raises(DataError, match="rows must be encoded"):
        release(np.array([[0.5, 0.5]]), domain=Domain((0, 3)))


# --- the search ----------------------------------------------------------------------------------


def test_gradient():
    """Against differences of the value in double precision."""
    noisy = release(clusters(100), n_frequencies=40, frequencies="random")
    goal = module._Goal(noisy)
    rng = np.random.default_rng(1)
    points, weights = rng.uniform(size=(7, 2)), rng.normal(size=7)

    def value(points, weights):
        angles = points @ noisy.frequencies
        sums = np.stack([weights @ np.cos(angles), weights @ np.sin(angles)])
        return float(np.sum((sums * noisy.amplitudes - noisy.mean) ** 2))

    found, by_weights, by_points = goal.gradient(points, weights)
    assert found == pytest.approx(value(points, weights), rel=1e-5)
    step = 1e-6
    for index in range(7):
        unit = step * np.eye(7)[index]
        slope = (value(points, weights + unit) - value(points, weights - unit)) / (2 * step)
        assert by_weights[index] == pytest.approx(slope, rel=1e-3, abs=1e-4)
        for column in range(2):
            move = np.zeros((7, 2))
            move[index, column] = step
            slope = (value(points + move, weights) - value(points - move, weights)) / (2 * step)
            assert by_points[index, column] == pytest.approx(slope, rel=1e-3, abs=1e-3)


def test_features_that_are_not_kept_give_the_same_gradient(monkeypatch):
    goal = module._Goal(release(clusters(100)))
    points, weights = BOX.points(50), np.full(50, 0.02)
    kept = goal.gradient(points, weights)
    monkeypatch.setattr(module, "_MOST_KEPT", 0)
    monkeypatch.setattr(module, "_TILE_VALUES", 1_000)
    for first, second in zip(kept, goal.gradient(points, weights), strict=True):
        np.testing.assert_allclose(np.asarray(first), np.asarray(second), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("constraint", "limit"), [("simplex", 0.010), ("equal", 0.011), ("l1", 0.013)]
)
def test_points_fit_the_rows(constraint, limit):
    """The noise alone has norm .027 here; a fit of points sees most of it as noise."""
    rows = clusters()
    noisy = release(rows)
    points, weights = reduced_set(noisy, domain=BOX, n_points=40, constraint=constraint, rng=0)
    assert points.shape == (40, 2)
    assert weights.shape == (40,)
    assert points.min() >= 0
    assert points.max() <= 1
    assert np.abs(weights).sum() <= 1 + 1e-12
    if constraint == "equal":
        assert np.all(weights == 1 / 40)
    if constraint == "simplex":
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1)
    assert distance(points, weights, rows) < limit
    assert noisy.scale * math.sqrt(noisy.mean.size) > 2 * limit


def test_weights_may_be_negative_within_their_bound():
    noisy = release(clusters())
    points, weights = reduced_set(
        noisy, domain=BOX, n_points=20, constraint="l1", weight_bound=0.25, rng=0
    )
    assert np.abs(weights).sum() <= 0.25 + 1e-12
    assert np.abs(weights).sum() > 0.2
    assert points.shape == (20, 2)


def test_one_point_is_the_best_one():
    rows = np.full((2_000, 2), 0.62)
    points, weights = reduced_set(release(rows), domain=BOX, n_points=1, rng=0)
    assert weights.tolist() == [1.0]
    assert np.abs(points - 0.62).max() < 0.02


def test_more_points_do_not_hurt_much():
    rows = clusters()
    found = []
    for count in (10, 40, 160):
        noisy = release(rows)
        found.append(distance(*reduced_set(noisy, domain=BOX, n_points=count, rng=0), rows))
    assert max(found) < 0.010


def test_mixed_rows():
    """Categories are categories, and their shares come out right."""
    domain, kernel = Domain((0, 3)), Kernel("gaussian", 0.5)
    rng = np.random.default_rng(4)
    codes = rng.choice(3, p=[0.6, 0.3, 0.1], size=5_000).astype(float)
    rows = np.column_stack(
        [np.clip(0.2 + 0.3 * codes + 0.05 * rng.normal(size=5_000), 0, 1), codes]
    )
    noisy = release(rows, domain=domain, kernel=kernel)
    points, weights = reduced_set(noisy, domain=domain, n_points=40, rng=0)
    assert set(points[:, 1]) <= {0.0, 1.0, 2.0}
    shares = [weights[points[:, 1] == code].sum() for code in range(3)]
    assert np.abs(np.array(shares) - [0.6, 0.3, 0.1]).max() < 0.03
    means = [
        np.average(points[points[:, 1] == c, 0], weights=weights[points[:, 1] == c]) for c in (0, 1)
    ]
    assert np.abs(np.array(means) - [0.2, 0.5]).max() < 0.03


def test_categories_alone():
    domain = Domain((2, 3))
    rows = np.array([[0.0, 2.0]] * 300 + [[1.0, 0.0]] * 700)
    noisy = release(rows, domain=domain, kernel=Kernel("gaussian", 1.0, 0.2))
    points, weights = reduced_set(noisy, domain=domain, n_points=30, rng=0)
    assert weights[(points == [1, 0]).all(axis=1)].sum() == pytest.approx(0.7, abs=0.05)


def test_snapped_points_get_new_weights():
    noisy = release(clusters())

    def snap(points):
        return np.rint(points * 4) / 4

    points, weights = reduced_set(noisy, domain=BOX, n_points=40, snap=snap, rng=0)
    assert np.array_equal(points, snap(points))
    assert weights.sum() == pytest.approx(1)
    assert distance(points, weights, clusters()) < distance(points, np.full(40, 1 / 40), clusters())


def test_snapped_points_of_equal_weights():
    """There is nothing left to search for once the points are snapped."""

    def snap(points):
        return np.rint(points * 4) / 4

    points, weights = reduced_set(
        release(clusters()), domain=BOX, n_points=30, constraint="equal", snap=snap, rng=0
    )
    assert np.array_equal(points, snap(points))
    assert np.all(weights == 1 / 30)


@pytest.mark.parametrize("bounded", [True, False])
def test_rows_are_gone_through_in_a_secret_order(bounded, monkeypatch):
    """Without bounds a place in a block may turn an angle: a stored order must not count."""
    asked, draw = [], SimulatedNoise.key

    def key(self):
        asked.append(1)
        return draw(self)

    monkeypatch.setattr(SimulatedNoise, "key", key)
    rows = clusters(40) if bounded else 1e15 * clusters(40)
    release(rows, domain=Domain((0, 0), bounded=bounded), kernel=Kernel("gaussian", 3.0))
    assert len(asked) == (not bounded)


def test_without_bounds_public_points_are_needed():
    domain, kernel = Domain((0, 0), bounded=False), Kernel("gaussian", 3.0)
    rows = 10 * clusters() + 1e6  # far from 0: angles of a million
    noisy = release(rows, domain=domain, kernel=kernel, n_frequencies=1_000)
    with pytest.raises(ParameterError, match="start must hold public points"):
        reduced_set(noisy, domain=domain, n_points=5)
    start = np.random.default_rng(0).uniform(-5, 15, size=(500, 2)) + 1e6
    points, weights = reduced_set(noisy, domain=domain, n_points=40, start=start, rng=0)
    assert distance(points, weights, rows, kernel=kernel, domain=domain) < 0.03


def test_a_small_cluster_in_a_large_box_is_found():
    """5 columns: of the even points none is near, but candidates walk to where the mean is."""
    domain, kernel = Domain((0,) * 5), Kernel("gaussian", 0.3)
    rng = np.random.default_rng(2)
    rows = 0.7 + 0.03 * rng.normal(size=(5_000, 5))
    noisy = release(rows, domain=domain, kernel=kernel, frequencies="random", n_frequencies=800)
    points, weights = reduced_set(noisy, domain=domain, n_points=20, rng=0)
    assert np.abs(weights @ points - 0.7).max() < 0.02
    assert distance(points, weights, rows, kernel=kernel, domain=domain) < 0.05


def test_public_points_may_be_given_on_a_box():
    noisy = release(clusters())
    start = np.array([[0.0, 0.0], [1.0, 1.0]])  # no help, and no harm
    points, weights = reduced_set(noisy, domain=BOX, n_points=40, start=start, rng=0)
    assert distance(points, weights, clusters()) < 0.010


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_points": 0}, "n_points must be an integer"),
        ({"constraint": "convex"}, "constraint must be one of"),
        ({"weight_bound": 0.0}, "weight_bound must be"),
        ({"max_iterations": 0}, "max_iterations must be"),
        ({"start": np.zeros((3, 1))}, "start must be rows of 2 columns"),
        ({"start": np.full((3, 2), np.nan)}, "start must hold finite"),
        ({"start": np.full((3, 2), 2.0)}, "within the domain"),
        ({"rng": "x"}, "rng must be"),
    ],
)
def test_bad_search_parameters(options, words):
    with pytest.raises(ParameterError, match=words):
        reduced_set(release(clusters(50)), domain=BOX, **({"n_points": 3} | options))


def test_progress_and_repetition():
    noisy = release(clusters(1_000))
    seen = []
    first = reduced_set(
        noisy, domain=BOX, n_points=30, rng=7, max_iterations=6, progress=lambda *n: seen.append(n)
    )
    again = reduced_set(noisy, domain=BOX, n_points=30, rng=7, max_iterations=6)
    assert seen == [(step, 6) for step in range(1, len(seen) + 1)]
    assert 1 <= len(seen) <= 6
    for ours, theirs in zip(first, again, strict=True):
        assert np.array_equal(ours, theirs)
