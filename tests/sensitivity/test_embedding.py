"""Attacks on what the embedding tests declare: features, joint moments, correlation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.core.privacy import PermutationSensitivity
from privatest.data.schema import Domain
from privatest.mechanisms.moments import difference_sensitivity
from privatest.methods.embedding import correlation, paired_scale, straightened, two_sample_scale
from privatest.numerics.features import mean_embedding, smooth_characteristic
from privatest.numerics.kernels import Kernel
from privatest.numerics.moments import Moments, joint_sensitivity, svec
from tests.sensitivity.harness import Space, assert_permutation_sensitivity

SPREADS = (0.3, 0.66, 1.0, math.sqrt(2), 2.0)


def labels_of(n, m):
    return np.concatenate([np.full(n, math.sqrt(m / n)), np.full(m, -math.sqrt(n / m))])


def straight(psi, labels, scale):
    """S of rows and labels, from the definition's own parts."""
    pooled = Moments(len(psi), psi.mean(axis=0), psi.T @ psi / len(psi))
    products = (labels[:, None] * psi).mean(axis=0)
    return float(straightened(correlation(products[None], pooled, scale), scale)[0])


def into_ball(rows, radius=1.0):
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True) / radius, 1.0)


def into_pair(rows, spread, radius=1.0):
    """Two vectors of the ball, moved together until they are ``spread`` apart; or many such."""
    ends = into_ball(rows, radius)
    first, second = ends[..., 0, :], ends[..., 1, :]
    distance = np.linalg.norm(first - second, axis=-1, keepdims=True)
    share = np.minimum(spread / np.maximum(distance, 1e-300), 1.0)
    middle = (first + second) / 2
    return middle + (first - middle) * share, middle + (second - middle) * share


# --- features --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "laplace", "imq"])
@pytest.mark.parametrize("width", [0.1, 0.7, 5.0])
def test_mean_embedding_stays_in_its_ball_and_spread(family, width):
    rng = np.random.default_rng(0)
    domain = Domain((0, 0, 3))
    locations = domain.points(9)
    features = mean_embedding(Kernel(family, width), locations, domain)
    corners = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in range(3)], dtype=float)
    rows = np.vstack([corners, locations, np.column_stack([rng.random((200, 2)), np.zeros(200)])])
    psi = features(rows)
    slack = 2 * features.rounding
    assert np.linalg.norm(psi, axis=1).max() <= features.radius + slack
    distances = np.linalg.norm(psi[:, None] - psi[None], axis=2)
    assert distances.max() <= features.spread + slack
    assert distances.max() > 0.1 * features.spread  # the check has something to check


@pytest.mark.parametrize("bandwidth", [None, 0.2, 2.0])
@pytest.mark.parametrize("speed", [0.3, 3.0, 40.0])
def test_characteristic_features_stay_in_their_ball_and_spread(bandwidth, speed):
    rng = np.random.default_rng(1)
    features = smooth_characteristic(
        speed * rng.normal(size=(6, 2)), bandwidth, Domain((0, 0), bounded=True)
    )
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0.5, 0.5]])
    rows = np.vstack([corners, rng.random((300, 2))])
    psi = features(rows)
    assert np.linalg.norm(psi, axis=1).max() <= features.radius + features.rounding
    distances = np.linalg.norm(psi[:, None] - psi[None], axis=2)
    assert distances.max() <= features.spread
    assert distances.max() > 0.1 * features.spread


@pytest.mark.parametrize("speed", [1e-3, 3.0, 1e4])
@pytest.mark.parametrize("bandwidth", [None, 0.3, 3.0])
@pytest.mark.parametrize("columns", [1, 2, 60])
def test_rounding_of_characteristic_features(columns, bandwidth, speed):
    """Against features in longer floats, of the same frequencies and rows."""
    rng = np.random.default_rng(columns)
    box = Domain((0,) * columns)
    features = smooth_characteristic(speed * rng.uniform(-1, 1, (5, columns)), bandwidth, box)
    rows = rng.random((400, columns))
    longer = rows.astype(np.longdouble)
    angles = longer @ features.frequencies.astype(np.longdouble)
    exact = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(np.longdouble(5))
    if bandwidth is not None:
        squares = np.square(longer - 0.5).sum(axis=1) / (2 * np.longdouble(bandwidth) ** 2)
        exact *= np.exp(-squares)[:, None]
    error = np.linalg.norm((features(rows) - exact).astype(np.float64), axis=1).max()
    assert error <= features.rounding
    assert features.rounding < max(1e-13, 1e-13 * speed * columns)  # not a bound of anything


# --- joint moments ---------------------------------------------------------------------------


def moved(pair, alpha, beta):
    """How far joint moments move, for each of many pairs."""
    squares = [end[..., :, None] * end[..., None, :] for end in pair]
    first = np.sum((pair[0] - pair[1]) ** 2, axis=-1)
    second = np.sum((squares[0] - squares[1]) ** 2, axis=(-2, -1))
    return np.sqrt(alpha**2 * first + beta**2 * second)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("beta", [0.05, 0.7, 1.0, 30.0])
@pytest.mark.parametrize("radius", [1.0, 1.7])
def test_joint_sensitivity_holds_and_is_attained(spread, beta, radius):
    rng = np.random.default_rng(2)
    bound = joint_sensitivity(1.0, beta, radius=radius, spread=radius * spread)
    pairs = into_pair(4 * rng.normal(size=(3000, 2, 3)), radius * spread, radius)
    # on the sphere, or one behind the other, at every distance
    distance = np.linspace(0, radius * spread, 400)[1:]
    half, zero, end = distance / 2, np.zeros(399), np.full(399, radius)
    height = np.sqrt(np.maximum(radius**2 - half**2, 0.0))
    on_sphere = np.stack([height, half], axis=-1), np.stack([height, -half], axis=-1)
    in_line = np.stack([end, zero], axis=-1), np.stack([radius - distance, zero], axis=-1)
    best = max(moved(each, 1.0, beta).max() for each in (pairs, on_sphere, in_line))
    assert best <= bound * (1 + 1e-9)
    assert best >= 0.9999 * bound


def squares(samples):
    return np.swapaxes(samples, -1, -2) @ samples


@pytest.mark.parametrize(("n", "m"), [(3, 3), (2, 7), (9, 4)])
@pytest.mark.parametrize("spread", [0.5, math.sqrt(2), 2.0])
def test_difference_sensitivity(n, m, spread):
    rng = np.random.default_rng(3)
    bound = difference_sensitivity(n, m, radius=1.0, spread=spread, balance=0.8)
    both = difference_sensitivity(n, m, radius=1.0, spread=spread, balance=0.8, adjacency="both")

    def released(x, y):  # of each of many pairs of samples
        second = (m * squares(x) / n + n * squares(y) / m) / (n + m)
        pooled = np.concatenate([x, y], axis=1).mean(axis=1)
        means = x.mean(axis=1) - y.mean(axis=1)
        return np.concatenate([means, pooled / 2, svec(second) / 0.8], axis=-1)

    rows = into_ball(3 * rng.normal(size=(1500, n + m, 2)))
    x, y = rows[:, :n].copy(), rows[:, n:].copy()
    other_x, other_y = x.copy(), y.copy()
    for sample, other in ((x, other_x), (y, other_y)):
        sample[:, 0], other[:, 0] = into_pair(5 * rng.normal(size=(1500, 2, 2)), spread)
    base = released(x, y)
    moves = [released(*other) - base for other in ((other_x, y), (x, other_y), (other_x, other_y))]
    *one, best_both = (np.linalg.norm(move, axis=-1).max() for move in moves)
    best = max(one)
    assert 0.9 * bound < best <= bound * (1 + 1e-9)
    assert 0.6 * both < best_both <= both * (1 + 1e-9)


# --- the straightened correlation ------------------------------------------------------------


def climb(value, start, change, steps, rng):
    state, best, size = start, value(start), 1.0
    for _ in range(steps):
        trial = change(state, size)
        found = value(trial)
        if found >= best:
            state, best, size = trial, found, min(1.2 * size, 3.0)
        else:
            size = max(0.97 * size, 1e-3)
    return best


@pytest.mark.parametrize("spread", [0.5, math.sqrt(2), 2.0])
@pytest.mark.parametrize("condition", [0.5, 2.0, 8.0])
@pytest.mark.parametrize(("n", "m"), [(5, 5), (3, 17), (20, 20)])
def test_no_climb_breaks_the_straightened_correlation(spread, condition, n, m):
    rng = np.random.default_rng([n, m, int(condition)])
    scale = two_sample_scale(n, m, radius=1.0, spread=spread, condition=condition)
    best = 0.0
    for restart in range(3):
        labels = rng.permutation(labels_of(n, m))
        largest = int(np.argmax(np.abs(labels)))  # the replaced row has the heavier label
        labels[[0, largest]] = labels[[largest, 0]]
        tilt = labels[:, None] * rng.normal(size=2) * (1, 3, 0.2)[restart]
        rows = tilt + 0.3 * rng.normal(size=(n + m, 2))

        def value(state, labels=labels):
            psi, pair = into_ball(state[0]), into_pair(state[1], spread)
            values = []
            for end in pair:
                psi[0] = end
                values.append(straight(psi, labels, scale))
            return abs(values[0] - values[1]) / scale.sensitivity

        def change(state, size, labels=labels):
            rows, pair = state[0].copy(), state[1].copy()
            if rng.random() < 0.5:
                pair += size * rng.normal(size=pair.shape)
            side = [slice(None), labels > 0, labels < 0][rng.integers(3)]
            if rng.random() < 0.5:
                side = rng.integers(n + m, size=2)
            rows[side] += size * rng.normal(size=2)
            return rows, pair

        best = max(best, climb(value, (rows, 3 * rng.normal(size=(2, 2))), change, 250, rng))
    assert best <= 1 + 1e-9
    assert best > 0.2


def test_the_straightened_correlation_is_tight_where_it_is_small():
    n, spread = 5000, 2.0
    scale = two_sample_scale(n, n, radius=1.0, spread=spread, condition=0.5)
    psi, labels = np.zeros((2 * n, 1)), labels_of(n, n)
    psi[:2] = 1.0
    before = straight(psi, labels, scale)
    psi[0] = -1.0
    moved_by = before - straight(psi, labels, scale)
    assert 0.99 * scale.sensitivity < moved_by <= scale.sensitivity


def test_the_published_kind_of_bound_would_be_broken():
    """The search can fail: at a large correlation r moves further than a bound for small r."""
    n = 50
    scale = two_sample_scale(n, n, radius=1.0, spread=2.0, condition=8.0)
    psi = np.concatenate([np.full((n, 1), 0.1), np.full((n, 1), 0.0)])
    labels = labels_of(n, n)

    def r(rows):
        pooled = Moments(len(rows), rows.mean(axis=0), rows.T @ rows / len(rows))
        return float(correlation((labels[:, None] * rows).mean(axis=0)[None], pooled, scale)[0])

    other = psi.copy()
    other[0] = -1.0
    assert abs(r(psi) - r(other)) > 0.3 * scale.sensitivity / scale.stretch


@pytest.mark.parametrize("condition", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("n", [13, 40])
def test_no_climb_breaks_paired_rows(condition, n):
    rng = np.random.default_rng([n, int(condition)])
    scale = paired_scale(n, reach=1.3, condition=condition)
    best = 0.0
    for restart in range(4):
        signs = rng.choice([-1.0, 1.0], size=n) if restart % 2 else np.ones(n)
        rows = rng.normal(size=2) * (0.1, 1.0)[restart // 2] + 0.2 * rng.normal(size=(n, 2))

        def value(state, signs=signs):
            rows, ends = into_ball(state[0], 1.3), into_ball(state[1], 1.3)
            values = []
            for end in ends:
                rows[0] = end
                values.append(straight(rows, signs, scale))
            return abs(values[0] - values[1]) / scale.sensitivity

        def change(state, size):
            rows, pair = state[0].copy(), state[1].copy()
            if rng.random() < 0.5:
                pair += size * rng.normal(size=pair.shape)
            side = slice(None) if rng.random() < 0.4 else rng.integers(n, size=3)
            rows[side] += size * rng.normal(size=2)
            return rows, pair

        best = max(best, climb(value, (rows, rng.normal(size=(2, 2))), change, 300, rng))
    assert 0.5 < best <= 1 + 1e-9


@pytest.mark.parametrize("domain", [Domain((0,)), Domain((0, 3))])
@pytest.mark.parametrize("adjacency", ["one", "both"])
def test_whole_statistic_on_rows(domain, adjacency):
    """Rows of a domain, through kernel and whitening, with permuted labels."""
    n, m = 7, 5
    features = mean_embedding(Kernel("gaussian", 0.4), domain.points(3), domain)
    scale = two_sample_scale(n, m, radius=features.radius, spread=features.spread, condition=4.0)

    def statistic(rows, labels):
        y = np.where(labels, math.sqrt(m / n), -math.sqrt(n / m))
        return straight(features(rows), y, scale)

    steps = 2 if adjacency == "both" else 1
    bound = PermutationSensitivity(steps * scale.sensitivity, steps * scale.sensitivity)
    found = assert_permutation_sensitivity(
        statistic, bound, Space(domain, n, m, adjacency), restarts=6, steps=80
    )
    assert min(found) > 0.2
