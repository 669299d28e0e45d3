"""HSIC and integral probability metrics never move further than they say."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from privatest.core.privacy import PermutationSensitivity
from privatest.data.schema import Domain
from privatest.numerics.dependence import hsic, hsic_sensitivity, hsic_u, hsic_u_sensitivity
from privatest.numerics.distances import LineMetric, ipm, metric, sliced_diameter
from privatest.numerics.features import nystrom, stacked, tabulated
from privatest.numerics.kernels import Kernel
from privatest.numerics.permutation import mmd_sensitivity, private_groups_sensitivity
from tests.sensitivity.cross_moments import permuted_hsic

LINE, SQUARE, MIXED = Domain((0,)), Domain((0, 0)), Domain((0, 3))
TOLERANCE = 1e-9


def draw(domain: Domain, count: int, rng: np.random.Generator) -> np.ndarray:
    """Corners, ties or anything, valid in the domain."""
    style = rng.integers(3)
    unit = rng.uniform(size=(count, domain.dimension))
    if style == 0:
        unit = np.round(unit)
    elif style == 1:
        unit = np.repeat(unit[:1], count, axis=0)
        unit[rng.uniform(size=count) < 0.3] = rng.integers(2, size=domain.dimension)
    for column in domain.categorical:
        levels = domain.levels[column]
        unit[:, column] = np.minimum(np.floor(unit[:, column] * levels), levels - 1)
    return unit


def largest_hsic_ratio(
    value, bound: PermutationSensitivity, domains, n: int, *, permuted: bool, trials: int
) -> float:
    """Random neighbours, then hill climbing on the rows, for the largest |T - T'|/bound."""
    rng = np.random.default_rng([n, permuted, trials])
    limit = bound.permuted if permuted else bound.observed
    best = 0.0
    for _ in range(trials):
        x, y = draw(domains[0], n, rng), draw(domains[1], n, rng)
        pi = rng.permutation(n) if permuted else np.arange(n)
        record = int(rng.integers(n))
        new_x, new_y = draw(domains[0], 1, rng)[0], draw(domains[1], 1, rng)[0]

        def ratio(x, y, new_x, new_y, pi=pi, record=record):
            other_x, other_y = x.copy(), y.copy()
            other_x[record], other_y[record] = new_x, new_y
            return abs(value(x, y[pi]) - value(other_x, other_y[pi])) / limit

        current = ratio(x, y, new_x, new_y)
        for _ in range(30):
            row = int(rng.integers(n))
            next_x, next_y = x.copy(), y.copy()
            next_x[row], next_y[row] = draw(domains[0], 1, rng)[0], draw(domains[1], 1, rng)[0]
            candidate = (next_x, next_y, draw(domains[0], 1, rng)[0], draw(domains[1], 1, rng)[0])
            if (found := ratio(*candidate)) > current:
                current, (x, y, new_x, new_y) = found, candidate
        best = max(best, current)
    return best


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("domains", [(LINE, LINE), (SQUARE, LINE), (MIXED, MIXED)])
@pytest.mark.parametrize("family", ["gaussian", "laplace", "imq"])
def test_hsic(family, domains, permuted):
    for n, bandwidth in product((4, 7), (0.3, 2.0)):
        kernels = (Kernel(family, bandwidth), Kernel(family, 1.0))
        bound = hsic_sensitivity(kernels[0].spread(domains[0]), kernels[1].spread(domains[1]), n)
        ratio = largest_hsic_ratio(
            lambda x, y, kernels=kernels: hsic(x, y, kernels, domains),
            bound,
            domains,
            n,
            permuted=permuted,
            trials=12,
        )
        assert ratio <= 1 + TOLERANCE


def test_a_permutation_parts_a_pair_and_the_permuted_bound_is_needed():
    """All rows at 0; the replaced pair and the rows it is permuted onto are at 1."""
    kernels = (Kernel("gaussian", 0.1),) * 2
    n = 40
    x, y = np.zeros((n, 1)), np.zeros((n, 1))
    x[1] = y[2] = 1.0
    pi = np.arange(n)
    pi[[0, 1, 2]] = [2, 0, 1]  # y_2 sits with x_0, y_0 with x_1
    other_x, other_y = x.copy(), y.copy()
    other_x[0] = other_y[0] = 1.0
    moved = abs(
        hsic(x, y[pi], kernels, (LINE, LINE)) - hsic(other_x, other_y[pi], kernels, (LINE, LINE))
    )
    bound = hsic_sensitivity(kernels[0].spread(LINE), kernels[1].spread(LINE), n)
    assert bound.observed < moved <= bound.permuted


def test_the_observed_bound_is_of_the_right_size():
    """Found by search: the observed statistic really reaches C, below sqrt(3/2) C."""
    kernels = (Kernel("gaussian", 0.2),) * 2
    bound = hsic_sensitivity(kernels[0].spread(LINE), kernels[1].spread(LINE), 5)
    ratio = largest_hsic_ratio(
        lambda x, y: hsic(x, y, kernels, (LINE, LINE)),
        bound,
        (LINE, LINE),
        5,
        permuted=False,
        trials=150,
    )
    assert 0.75 < ratio <= 1 + TOLERANCE
    planted = PermutationSensitivity(bound.observed * 0.7, bound.permuted)
    assert ratio * bound.observed > planted.observed  # a bound planted too small is caught


def test_vectors_behind_the_observed_bound():
    """|a'⊗b' - a⊗b| <= sqrt(3/2) for vectors of norm <= 1 at distance <= 1; it is attained."""
    rng = np.random.default_rng(1)
    largest = 0.0
    for _ in range(20_000):
        a, b, other_a, other_b = (v / max(np.linalg.norm(v), 1) for v in rng.normal(size=(4, 3)))
        a, other_a = (
            a / max(1, np.linalg.norm(a - other_a)),
            other_a / max(1, np.linalg.norm(a - other_a)),
        )
        b, other_b = (
            b / max(1, np.linalg.norm(b - other_b)),
            other_b / max(1, np.linalg.norm(b - other_b)),
        )
        largest = max(largest, float(np.linalg.norm(np.outer(a, b) - np.outer(other_a, other_b))))
    assert largest <= math.sqrt(1.5) + TOLERANCE
    a, other = np.array([1.0, 0.0]), np.array([0.5, math.sqrt(0.75)])
    attained = np.linalg.norm(np.outer(a, a) - np.outer(other, other))
    assert attained == pytest.approx(math.sqrt(1.5))
    for n in (
        4,
        50,
    ):  # what the code declares is this number, though no data set was found to reach it
        assert hsic_sensitivity(1.0, 1.0, n).observed >= attained * (n - 1) / n**2


@pytest.mark.parametrize("permuted", [False, True])
def test_hsic_u(permuted):
    for n in (4, 6):
        kernels = (Kernel("gaussian", 0.5), Kernel("gaussian", 1.0))
        bound = hsic_u_sensitivity(kernels[0].spread(LINE), kernels[1].spread(LINE), n)
        ratio = largest_hsic_ratio(
            lambda x, y, kernels=kernels: hsic_u(x, y, kernels, (LINE, LINE)),
            bound,
            (LINE, LINE),
            n,
            permuted=permuted,
            trials=15,
        )
        assert ratio <= 1 + TOLERANCE


def test_permuted_hsic_u_attains_its_bound():
    """A third of the other rows agree with the changed one, two thirds are elsewhere."""
    kernels = (Kernel("gaussian", 0.1),) * 2
    n = 200
    x = np.repeat([0.0, 1.0], [n - n // 3, n // 3])[:, None]
    y = x.copy()
    x[0], y[0] = 0.0, 1.0  # the row whose x is replaced
    x[1], y[1] = 1.0, 0.0  # the row whose y is: as if a permutation had parted them
    other_x, other_y = x.copy(), y.copy()
    other_x[0] = other_y[1] = 1.0
    values = [hsic_u(*data, kernels, (LINE, LINE)) for data in ((x, y), (other_x, other_y))]
    bound = hsic_u_sensitivity(kernels[0].spread(LINE), kernels[1].spread(LINE), n)
    assert 0.97 < abs(values[1] - values[0]) / bound.permuted <= 1 + TOLERANCE


def test_the_sum_behind_the_bound_of_hsic_u():
    """The identity of the proof, and its bound, for random signs and kernels."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(4, 12))
        gram_matrix = np.exp(
            -(np.subtract.outer(*[rng.uniform(size=n)] * 2) ** 2) * rng.uniform(0, 50)
        )
        spread = 1 - gram_matrix.min()
        hollow = gram_matrix - np.eye(n)
        sums = hollow.sum(axis=0)
        centred = hollow - (sums + sums[:, None]) / (n - 2) + sums.sum() / ((n - 1) * (n - 2))
        signs = rng.choice([-1.0, 1.0], size=n - 1)
        plus, minus = (np.flatnonzero(signs == sign) + 1 for sign in (1, -1))
        p, q = len(plus) / (n - 1), len(minus) / (n - 1)
        if not p * q:
            continue
        total = float(signs @ centred[0, 1:])
        difference = gram_matrix[:, plus].mean(axis=1) - gram_matrix[:, minus].mean(axis=1)
        middle = difference[1:].mean()
        bracket = (n - 3) * (difference[0] - middle) - 2 * middle
        assert total == pytest.approx(2 * p * q * (n - 1) / (n - 2) * bracket, abs=1e-9)
        assert total <= 16 / 27 * (n - 1) * spread + TOLERANCE


@pytest.mark.parametrize("make", ["side by side", "table"])
@pytest.mark.parametrize("permuted", [False, True])
def test_hsic_of_features(make, permuted):
    """As the test computes it, for two bandwidths at once."""
    kernels = (Kernel("gaussian", 0.5), Kernel("gaussian", 0.1))
    table = tabulated(kernels, LINE, max_rank=24)
    assert table is not None
    features = stacked(nystrom(kernels, LINE.points(12), LINE)) if make != "table" else table
    for index, spread in enumerate(features.spreads):
        bound = hsic_sensitivity(spread, spread, 5)

        def value(x, y, index=index):
            shuffles = np.arange(5)[None, :]
            values, errors = permuted_hsic(x, y, (features, features), shuffles)
            assert errors.max() < 1e-9
            return float(values[3 * index, 0])

        trials = 12 if permuted else 25
        ratio = largest_hsic_ratio(value, bound, (LINE, LINE), 5, permuted=permuted, trials=trials)
        assert 0.3 < ratio <= 1 + TOLERANCE


METRICS = [
    ("mean", SQUARE, "l1"),
    ("mean", SQUARE, "l2"),
    ("mean", SQUARE, "linf"),
    ("wasserstein", LINE, "l2"),
    ("wasserstein", SQUARE, "l2"),
    ("wasserstein", Domain((0,) * 5), "l2"),
    ("kolmogorov", LINE, "l2"),
    ("kolmogorov", SQUARE, "l2"),
    ("total-variation", Domain((3, 2)), "l2"),
]


@pytest.mark.parametrize(("distance", "domain", "norm"), METRICS)
def test_metrics_move_by_their_diameter(distance, domain, norm):
    """Any labels with n and m members are a permutation, so random labels cover them all."""
    chosen = metric(distance, domain, norm)
    rng = np.random.default_rng(7)
    largest = 0.0
    for _ in range(400):
        n, m = (int(size) for size in rng.integers(2, 7, size=2))
        rows = draw(domain, n + m, rng)
        other = rows.copy()
        other[rng.integers(n + m)] = draw(domain, 1, rng)[0]
        order = rng.permutation(n + m)
        values = [ipm(data[order[:n]], data[order[n:]], chosen) for data in (rows, other)]
        bound = mmd_sensitivity(chosen.diameter, n, m, "one").permuted
        largest = max(largest, abs(values[0] - values[1]) / bound)
    corner = np.zeros((6, domain.dimension))
    other = corner.copy()
    other[0] = [max(level - 1, 1) for level in domain.levels]
    moved = ipm(other[:3], other[3:], chosen) - ipm(corner[:3], corner[3:], chosen)
    assert largest <= 1 + TOLERANCE
    # public thresholds stay off the corner, and sliced distances have a corner of their own
    if distance not in ("kolmogorov", "wasserstein") or domain is LINE:
        assert moved == pytest.approx(chosen.diameter / 3)


def farthest_corner(directions: np.ndarray, seed: int) -> np.ndarray:
    """Climb from random corners u to a largest mean |direction · u|: a search, not a proof."""
    rng = np.random.default_rng(seed)
    best, most = np.ones(len(directions)), 0.0
    for _ in range(60):
        u = rng.choice([-1.0, 1.0], size=len(directions))
        for _ in range(50):  # the best corner for the signs of the projections, until it stays
            u = np.where(directions @ np.sign(directions.T @ u) >= 0, 1.0, -1.0)
        if np.abs(directions.T @ u).mean() > most:
            best, most = u, float(np.abs(directions.T @ u).mean())
    return best


@pytest.mark.parametrize("dimension", [2, 3, 5, 10, 16, 17, 40, 100])
@pytest.mark.parametrize(("n", "m"), [(3, 3), (2, 7)])
def test_sliced_wasserstein_attains_its_diameter(dimension, n, m):
    """A row replaced by the opposite corner: the whole bound up to 16 columns, never above."""
    chosen = metric("wasserstein", Domain((0,) * dimension))
    assert isinstance(chosen, LineMetric)
    corner = (1 + farthest_corner(chosen.directions, dimension)) / 2
    rows = np.tile(corner, (n + m, 1))
    other = rows.copy()
    other[0] = 1 - corner
    moved = ipm(other[:n], other[n:], chosen) - ipm(rows[:n], rows[n:], chosen)
    ratio = moved / mmd_sensitivity(chosen.diameter, n, n, "one").permuted
    assert ratio <= 1 + TOLERANCE
    assert ratio > (0.98 if dimension <= 16 else 0.7)
    reach = np.abs(chosen.directions).sum(axis=0).mean()  # of each direction's own worst pair
    assert chosen.diameter < (0.76 if dimension == 2 else 0.62) * reach


def test_corners_are_enumerated_once_or_bounded():
    """All corners by brute force; beyond sixteen columns the bound is above the best corner."""
    rng = np.random.default_rng(11)
    for dimension in (1, 2, 7):
        directions = rng.normal(size=(dimension, 9))
        corners = np.array(list(product([-1.0, 1.0], repeat=dimension)))
        longest = np.abs(corners @ directions).mean(axis=1).max()
        assert longest <= sliced_diameter(directions) <= longest * (1 + 1e-11)
    wide = np.zeros((17, 5))  # one column only: the bound is the reach, not the eigenvalue
    wide[3] = [1.0, -2.0, 0.5, 0.0, 1.0]
    assert sliced_diameter(wide) == pytest.approx(0.9)
    equal = np.ones((18, 4))  # one direction along the diagonal: the bound is attained
    assert sliced_diameter(equal) == pytest.approx(18.0)


@pytest.mark.parametrize(("distance", "domain", "norm"), METRICS)
def test_metrics_with_private_groups(distance, domain, norm):
    chosen = metric(distance, domain, norm)
    rng = np.random.default_rng(8)

    def value(rows, labels):
        n = int(labels.sum())
        if n in (0, len(rows)):
            return 0.0
        return n * (len(rows) - n) / len(rows) ** 2 * ipm(rows[labels], rows[~labels], chosen)

    for _ in range(300):
        total = int(rng.integers(4, 9))
        rows, labels = draw(domain, total, rng), rng.uniform(size=total) < 0.4
        other_rows, other_labels = rows.copy(), labels.copy()
        record = int(rng.integers(total))
        other_rows[record] = draw(domain, 1, rng)[0]
        other_labels[record] = rng.uniform() < 0.5
        bound = private_groups_sensitivity(chosen.diameter, total)
        moved = abs(value(rows, labels) - value(other_rows, other_labels))
        assert moved <= bound.observed * (1 + TOLERANCE)
        pi = rng.permutation(total)
        moved = abs(value(rows, labels[pi]) - value(other_rows, other_labels[pi]))
        assert moved <= bound.permuted * (1 + TOLERANCE)
