"""Search for neighbours that move KS-type statistics further than declared.

Labels, which break ties, belong to places, so that neighbours share them, as in the proof.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.methods.ks import two_sample_law
from privatest.numerics.distances import LineMetric
from privatest.numerics.ecdf import (
    LATTICE,
    ONE_SAMPLE_STATISTICS,
    on_lattice,
    one_sample,
    one_sample_width,
    two_sample,
    two_sample_width,
)
from privatest.numerics.permutation import private_groups_sensitivity
from tests.sensitivity.harness import (
    Space,
    assert_permutation_sensitivity,
    assert_sensitivity,
)

LINE = Domain((0,), bounded=False)


def values(rng, count):
    """Ties, outliers to 1e15, tiny differences, or anything."""
    style = rng.integers(5)
    if style == 0:
        return rng.integers(0, 3, count).astype(float)
    if style == 1:
        return rng.choice([-1e15, 0.0, 1e-15, 1e15], count)
    if style == 2:
        return 1 + rng.integers(0, 4, count) * np.finfo(float).eps
    if style == 3:
        return rng.standard_cauchy(count) * 10.0 ** rng.integers(-3, 12)
    return rng.random(count)


def of_groups(statistic, total, seed=0, coarse=0.0, side="two-sided"):
    """The statistic with fixed labels of places; coarse values have ties everywhere."""
    labels = np.random.default_rng(seed).permutation(total)

    def value(rows, first):
        column = np.floor(rows[:, 0] / coarse) if coarse else rows[:, 0]
        order = np.concatenate([labels[first], labels[~first]])
        return two_sample(column[first], column[~first], statistic, order, side)

    return value


def largest_ratio(law, width):
    """In units of the width: a statistic of few records has not the range to move that far."""
    possible = law.values[law.masses > 1e-12]
    return min(1.0, (possible.max() - possible.min()) / width)


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
@pytest.mark.parametrize("adjacency", ["one", "both"])
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 5), (6, 4), (9, 9)])
def test_two_samples_and_that_the_bound_is_attained(statistic, adjacency, n, m):
    width = two_sample_width(n, m, adjacency)
    space = Space(LINE, n, m, adjacency)
    reached = max(
        assert_sensitivity(of_groups(statistic, n + m, seed), width, space, restarts=8)
        for seed in range(3)
    )
    assert reached == largest_ratio(two_sample_law(statistic, n, m), width)


@pytest.mark.parametrize("side", ["greater", "less"])
@pytest.mark.parametrize("adjacency", ["one", "both"])
@pytest.mark.parametrize(("n", "m", "coarse"), [(3, 5, 0.0), (6, 4, 20.0), (9, 9, 0.0)])
def test_one_side_and_that_the_bound_is_attained(side, adjacency, n, m, coarse):
    width, space = two_sample_width(n, m, adjacency), Space(LINE, n, m, adjacency)
    reached = max(
        assert_sensitivity(of_groups("ks", n + m, seed, coarse, side), width, space, restarts=6)
        for seed in range(3)
    )
    assert reached == 1 if not coarse else reached > 0.3


@pytest.mark.parametrize("side", ["greater", "less"])
def test_one_side_of_one_sample_on_the_lattice(side):
    rng = np.random.default_rng(6)
    largest = 0
    for _ in range(1500):
        n = int(rng.integers(2, 201))
        u = probabilities(rng, n)
        before = on_lattice(one_sample(u, "ks", side))
        u[rng.integers(n)] = probabilities(rng, 1)[0] if rng.integers(2) else rng.integers(2)
        moved = abs(on_lattice(one_sample(u, "ks", side)) - before)
        assert moved <= one_sample_width(n)
        largest = max(largest, moved)
    assert largest >= LATTICE - 1  # attained


@pytest.mark.parametrize("coarse", [20.0, 1000.0])
@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
@pytest.mark.parametrize("adjacency", ["one", "both"])
@pytest.mark.parametrize(("n", "m"), [(3, 5), (9, 9)])
def test_two_samples_where_ties_decide(statistic, adjacency, n, m, coarse):
    """Four values; two, as of a Bernoulli law."""
    width, space = two_sample_width(n, m, adjacency), Space(LINE, n, m, adjacency)
    for seed in range(3):
        statistic_of = of_groups(statistic, n + m, seed, coarse)
        assert assert_sensitivity(statistic_of, width, space, restarts=4) > 0.3


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_two_samples_of_any_size(statistic):
    rng = np.random.default_rng(4)
    for _ in range(800):
        n, m = (int(size) for size in rng.integers(2, 201, 2))
        x, y, labels = values(rng, n), values(rng, m), rng.permutation(n + m)
        before = two_sample(x, y, statistic, labels)
        x[rng.integers(n)] = values(rng, 1)[0]
        moved = two_sample(x, y, statistic, labels)
        assert abs(moved - before) <= m <= two_sample_width(n, m, "one")
        y[rng.integers(m)] = values(rng, 1)[0]
        after = two_sample(x, y, statistic, labels)
        assert abs(after - moved) <= n
        assert abs(after - before) <= two_sample_width(n, m, "both")


def test_every_small_neighbour_with_ties():
    """All data of values 0, 1, 2, all replacements, several labels: nothing moves too far."""
    n, m = 2, 3
    data = np.array(list(itertools.product([0.0, 1.0, 2.0], repeat=n + m)))
    differ = data[:, None] != data[None]
    bound = m * differ[..., :n].sum(axis=2) + n * differ[..., n:].sum(axis=2)
    neighbours = differ.sum(axis=2) == 1
    rng, furthest = np.random.default_rng(8), 0
    for statistic in ("ks", "kuiper"):
        for _ in range(10):
            labels = rng.permutation(n + m)
            values = np.array([two_sample(d[:n], d[n:], statistic, labels) for d in data])
            moved = np.abs(values[:, None] - values)
            assert (moved <= bound).all()
            furthest = max(furthest, moved[neighbours].max())
    assert furthest == two_sample_width(n, m, "one")


def probabilities(rng, count):
    """Values of F(x): ties, ends, exact ranks, or anything."""
    style = rng.integers(5)
    if style == 0:
        return rng.integers(0, 4, count) / 3
    if style == 1:
        return rng.choice([0.0, 1e-300, 0.5, 1 - 1e-16, 1.0], count)
    if style == 2:
        return rng.permutation(np.arange(count) + rng.integers(2)) / count
    if style == 3:
        return np.full(count, rng.random())
    return rng.beta(0.3, 0.3, count)


@pytest.mark.parametrize("statistic", ONE_SAMPLE_STATISTICS)
def test_one_sample_on_the_lattice(statistic):
    rng = np.random.default_rng(5)
    largest = 0
    for _ in range(1500):
        n = int(rng.integers(2, 201))
        u = probabilities(rng, n)
        before = on_lattice(one_sample(u, statistic))
        u[rng.integers(n)] = probabilities(rng, 1)[0] if rng.integers(2) else rng.integers(2)
        moved = abs(on_lattice(one_sample(u, statistic)) - before)
        assert moved <= one_sample_width(n)
        largest = max(largest, moved)
    if statistic in ("ks", "kuiper"):
        assert largest >= LATTICE - 1  # attained
    else:
        assert largest >= 0.5 * LATTICE


def test_there_is_a_spare_step_for_rounding():
    """Half a step for each of two neighbours; more where a sample has more than 2^26 rows."""
    for n in (2, 1000, 1 << 26, 1 << 30):
        assert one_sample_width(n) >= LATTICE + 2 * max(0.5, 0.5 * n / 2**26)


@pytest.mark.parametrize("n", [10_000, 1_000_000])
def test_rounding_errors_stay_within_the_spare_step(n):
    """Against the same statistic in extended precision."""
    u = np.random.default_rng(n).random(n)
    above = n * np.sort(u).astype(np.longdouble) - np.arange(n)
    below, middle = above - 1, above - 0.5
    parts = np.where((above > 0) & (below < 0), above**2 + below**2, 2 * abs(middle))
    precise: dict[Any, Any] = {
        "ks": max(above.max(), -below.min()),
        "kuiper": above.max() - below.min(),
        "cvm": np.sqrt(np.longdouble(1) / 12 + np.mean(middle**2)),
        "wasserstein": parts.mean() / 2,
    }
    for statistic, value in precise.items():
        error = abs(one_sample(u, statistic) - value) * LATTICE
        assert error < 0.05


@pytest.mark.parametrize("kind", ["kolmogorov", "kuiper", "above", "below"])
@pytest.mark.parametrize(("n", "m"), [(3, 5), (1, 8), (12, 12)])
def test_private_groups(kind, n, m):
    metric = LineMetric(np.ones((1, 1)), kind, 1.0)

    def statistic(rows, labels):
        weights = (labels - labels.mean()) / len(labels)
        return metric.values(rows, lambda order: lambda _: weights[None, order], 1)[0][0, 0]

    observed, permuted = assert_permutation_sensitivity(
        statistic,
        private_groups_sensitivity(1.0, n + m),
        Space(LINE, n, m, "row"),
        restarts=6,
        steps=100,
    )
    assert observed > 0.9
    assert permuted > 0.55  # further than the observed one may move


def test_the_search_catches_a_bound_that_is_too_small():
    """The bound for one replaced record, where two are replaced."""
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(
            of_groups("kuiper", 18),
            two_sample_width(9, 9, "one"),
            Space(LINE, 9, 9, "both"),
        )


def test_the_search_catches_labels_that_depend_on_the_data():
    """Ties that are broken anew, by the values: a replaced record then reorders all others."""

    def value(rows, first):
        column = np.floor(rows[:, 0] / 20.0)
        labels = np.random.default_rng(int(abs(column.sum()))).permutation(len(column))
        return two_sample(column[first], column[~first], "ks", labels)

    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(value, two_sample_width(9, 9, "one"), Space(LINE, 9, 9))
