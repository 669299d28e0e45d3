"""Private quantiles and shifts: estimates, intervals, refusals, and laws of their noise."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.data.schema import NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import binomial_law, cumulated, noisy_tails, paths
from privatest.numerics.order import Tree, _parts, even_tree, pair_counts, tree_counts, tree_of
from privatest.requests.results import result_from_dict

X = np.random.default_rng(0).normal(3, 1, size=2000)
Y = np.random.default_rng(1).normal(2, 1, size=1500)
QUIET = 1e5


def quantile(x=X, q=0.5, epsilon=QUIET, seed=0, bounds=(-10, 10), **more):
    return pt.private_quantile(
        x, q, bounds=bounds, epsilon=epsilon, noise=SimulatedNoise(seed), **more
    )


def shift(x=X, y=Y, epsilon=QUIET, seed=0, bounds=(-10, 10), **more):
    return pt.hodges_lehmann(
        x, y, bounds=bounds, epsilon=epsilon, noise=SimulatedNoise(seed), **more
    )


# --- counts below edges ----------------------------------------------------------------------


@pytest.mark.parametrize("cells", [2, 5, 63, 100, 1024, 5000])
def test_counts_below_edges_are_put_together_without_error(cells):
    tree = tree_of(cells)
    counts = np.random.default_rng(cells).integers(0, 9, size=cells)
    below = cumulated(tree_counts(counts, tree).astype(float), tree, counts.sum())
    np.testing.assert_allclose(below, np.concatenate([[0], np.cumsum(counts)]), atol=1e-9)


def test_weights_are_those_that_the_noise_has():
    tree = Tree(27, 3, 3)
    size = 3 + 9 + 27
    base = cumulated(np.zeros(size), tree, 0.0)
    columns = [cumulated(row, tree, 0.0) - base for row in np.eye(size)]
    weights = np.abs(np.array(columns))  # nodes × edges
    made = paths(tree)
    np.testing.assert_array_equal((weights == 1).sum(axis=0), made.ones)
    np.testing.assert_array_equal((weights == 0.5).sum(axis=0), made.halves)
    assert set(np.unique(weights)) <= {0.0, 0.5, 1.0}


def test_pairs_are_counted_exactly():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 10**6, size=(2, 9))
    plain = np.zeros(17, dtype=np.int64)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            plain[i - j + 8] += a * b
    np.testing.assert_array_equal(pair_counts(first, second), plain)


@pytest.mark.parametrize(
    ("n", "q", "scale", "ones", "halves"),
    [(30, 0.3, 2.0, 2, 3), (12, 0.5, 0.4, 0, 5), (500, 0.9, 6.0, 4, 0), (40, 0.5, 1.0, 0, 0)],
)
def test_law_of_a_noisy_count_is_that_of_the_convolution(n, q, scale, ones, halves):
    reach = 400
    steps = np.arange(-reach, reach + 1)
    noise = np.exp(-np.abs(steps) / scale)
    noise /= noise.sum()
    wide = np.zeros(4 * reach + 1)
    wide[::2] = noise
    law = np.zeros(2 * n + 1)
    law[::2] = stats.binom.pmf(np.arange(n + 1), n, q)
    first = 0
    for piece, times, start in ((wide, ones, -2 * reach), (noise, halves, -reach)):
        for _ in range(times):
            law, first = np.convolve(law, piece), first + start
    values = (first + np.arange(len(law))) / 2
    points = np.array([n * q + d / 2 for d in range(-12, 13)])
    points = np.round(2 * points) / 2
    low, high = noisy_tails(binomial_law(n, q), scale, ones, halves, points)
    np.testing.assert_allclose(low, [law[values <= z].sum() for z in points], atol=1e-8)
    np.testing.assert_allclose(high, [law[values >= z].sum() for z in points], atol=1e-8)


def test_wide_laws_are_close_to_normal_and_not_too_narrow():
    law, scale = binomial_law(10**6, 0.5), 20_000.0
    deviation = np.hypot(500, np.sqrt(2 * 9) * scale)
    low, high = noisy_tails(law, scale, 8, 4, np.array([5e5 - 2 * deviation, 5e5 + 2 * deviation]))
    assert low[0] == pytest.approx(high[1], abs=2e-4)
    assert stats.norm.sf(2) - 2e-3 < low[0] < stats.norm.sf(2) + 2e-3


# --- quantiles -------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_without_noise_it_is_the_quantile_up_to_a_cell(q):
    found = quantile(q=q)
    assert found.quantile == pytest.approx(np.quantile(X, q), abs=2 * 20 / 1024)
    ranks = stats.binom.ppf([0.025, 0.975], len(X), q).astype(int)
    np.testing.assert_allclose([found.lower, found.upper], np.sort(X)[ranks], atol=0.06)


@pytest.mark.parametrize(("level", "q"), [(0.95, 0.5), (0.95, 0.2), (0.8, 0.5)])
def test_without_noise_intervals_are_those_of_order_statistics(level, q):
    x = np.arange(1, 100)  # each value is its rank, and a cell is a tenth wide
    found = quantile(x, q, bounds=(0, 100), cells=1000).confidence_interval(level)
    first, last = stats.binom.ppf([(1 - level) / 2, (1 + level) / 2], 99, q)
    assert (found.low, found.high) == pytest.approx((first, last + 1), abs=0.11)


def test_other_levels_and_quantiles_cost_nothing():
    found = quantile(epsilon=1)
    assert found.at(0.5).to_dict() == found.to_dict()
    wide, narrow = found.confidence_interval(0.99), found.confidence_interval(0.5)
    assert wide.low <= found.lower <= narrow.low <= narrow.high <= found.upper <= wide.high
    assert wide.sampling + wide.privacy == pytest.approx(wide.high - wide.low)
    assert found.at(0.9).quantile > found.quantile
    assert (
        pt.private_median(X, bounds=(-10, 10), epsilon=1, noise=SimulatedNoise(0)).to_dict()
        == found.to_dict()
    )


def test_noise_that_drowns_the_data_gives_the_bounds():
    found = quantile(X[:20], epsilon=0.01)
    assert (found.lower, found.upper) == (-10, 10)


def test_integers_are_their_own_grid():
    schema = Schema({"age": NumericColumn(0, 100, integer=True)})
    ages = np.random.default_rng(0).poisson(30, size=3000)
    found = quantile(ages, bounds=schema)
    assert found.quantile == np.median(ages)
    assert found.lower.is_integer()
    assert found.upper <= found.lower + 1


def test_results_are_written_and_read():
    found = quantile(epsilon=1)
    document = json.loads(found.to_json())
    again = result_from_dict(document, found.spent)
    assert isinstance(again, type(found))
    assert again.to_dict() == found.to_dict()
    assert again.confidence_interval(0.95).low == found.lower
    with pytest.raises(ParameterError, match="confidence_level must be"):
        again.confidence_interval(0.9)
    with pytest.raises(ParameterError, match="one quantile only"):
        again.at(0.1)
    copy = pickle.loads(pickle.dumps(found))
    assert tuple(copy.confidence_interval(0.8)) == tuple(found.confidence_interval(0.8))
    assert "NOT private" in str(found)
    assert "median" in found._repr_html_()


# --- shifts ----------------------------------------------------------------------------------


def test_without_noise_it_is_the_median_of_differences():
    found = shift(cells=4096)
    assert found.statistic == pytest.approx(np.median(X[:, None] - Y[None, :]), abs=0.02)
    assert found.reject
    low, high = found.confidence_interval(0.95)
    assert low < 1 < high
    assert high - low < 0.3
    assert (found.estimates["lower"], found.estimates["upper"]) == (low, high)


@pytest.mark.parametrize("seed", range(5))
def test_the_decision_is_that_of_the_interval(seed):
    rng = np.random.default_rng(seed)
    found = shift(rng.normal(0.4, 1, size=400), rng.normal(size=300), epsilon=2, seed=seed)
    low, high = found.confidence_interval(0.95)
    assert found.reject == (high <= 0 or low > 0)


def test_integer_shifts():
    schema = Schema({"visits": NumericColumn(0, 60, integer=True)})
    rng = np.random.default_rng(0)
    x, y = rng.poisson(20, size=2000) + 3, rng.poisson(20, size=2000)
    found = shift(x, y, bounds=schema)
    assert found.statistic == 3
    assert found.estimates["lower"] <= 3 <= found.estimates["upper"] <= 4


def test_shifts_survive_pickling_and_print():
    found = pickle.loads(pickle.dumps(shift(epsilon=1)))
    assert found.confidence_interval(0.5).low >= found.confidence_interval(0.9).low
    assert "shift" in str(found)


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [quantile, shift])
def test_bounds_and_cells_are_checked(call):
    with pytest.raises(ParameterError, match="bounds must be given"):
        call(bounds=None)
    for cells in (1, 70_000, 2.5):
        with pytest.raises(ParameterError, match="cells must be"):
            call(cells=cells)
    with pytest.raises(DataError, match="one numeric column"):
        call(np.ones((9, 2)), **({"y": np.ones((9, 2))} if call is shift else {}))
    with pytest.raises(DataError, match="at least 2 rows"):
        call(np.ones(1))


def test_other_parameters_are_checked():
    for q in (0, 1, "half"):
        with pytest.raises(ParameterError, match="q must be"):
            quantile(q=q)
    with pytest.raises(ParameterError, match="adjacency must be"):
        shift(adjacency="row")


# --- coverage --------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "epsilon", "q"), [(100, 5, 0.5), (1000, 1, 0.9)])
def test_coverage(n, epsilon, q):
    """Seeded; a true coverage of .95 fails with probability below 1e-3."""
    rng, covers = np.random.default_rng(n), 0
    for seed in range(150):
        found = quantile(rng.exponential(size=n), q, epsilon=epsilon, seed=seed, bounds=(0, 10))
        covers += found.lower <= -np.log(1 - q) <= found.upper
    assert covers >= 132


def test_level_of_a_shift():
    """Seeded; a true level of .05 fails with probability below 1e-3."""
    rng, rejected = np.random.default_rng(0), 0
    for seed in range(60):
        x, y = rng.poisson(3, size=60), rng.poisson(3, size=40)
        rejected += shift(x, y, epsilon=3, seed=seed, bounds=(0, 20), cells=64).reject
    assert rejected <= 9


@pytest.mark.parametrize(("q", "level"), [(0.5, 0.95), (0.5, 0.6), (0.2, 0.9)])
def test_without_noise_the_interval_is_that_of_order_statistics(q, level):
    """Each integer once: a place is kept if no tail of the binomial number is half of alpha."""
    n = 101
    schema = Schema({"x": NumericColumn(0, n - 1, integer=True)})
    found = pt.private_quantile(
        {"x": np.arange(n)}, q, bounds=schema, epsilon=1e6, noise=SimulatedNoise(0)
    )
    below = stats.binom(n, q)
    places = np.arange(n)  # of place v: v values below it, v + 1 not above it
    tails = np.minimum(below.cdf(places + 1), below.sf(places - 1))
    kept = places[2 * tails > 1 - level]
    assert tuple(found.confidence_interval(level)) == (kept[0], kept[-1])


AGES = Schema({"age": NumericColumn(0, 120, integer=True)})


def mean_width(call, runs=60):
    """The mean width of intervals at 95%; runs are seeded."""
    ends = [call(np.random.default_rng(seed), seed) for seed in range(runs)]
    return np.mean([high - low for low, high in ends])


@pytest.mark.parametrize(
    ("n", "epsilon", "most"), [(200, 0.5, 24), (1000, 0.1, 22), (1000, 0.5, 7), (10_000, 0.1, 4)]
)
def test_intervals_are_not_drowned_by_edges_that_nobody_needs(n, epsilon, most):
    """Seeded. With 1,024 cells for every n and epsilon they are 110, 110, 9.7 and 4.3 wide."""

    def ages(rng, seed):
        x = np.clip(rng.normal(45, 18, size=n), 0, 120)
        found = quantile(x, epsilon=epsilon, seed=seed, bounds=(0, 120))
        return found.lower, found.upper

    assert mean_width(ages) < most


def test_shifts_are_not_drowned_either():
    """Seeded. With 1,024 cells the mean width is 37."""

    def both(rng, seed):
        x, y = rng.normal(3.5, 1, size=200), rng.normal(3, 1, size=200)
        estimates = shift(x, y, epsilon=0.5, seed=seed).estimates
        return estimates["lower"], estimates["upper"]

    assert mean_width(both, runs=30) < 6


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_wide_bounds_cost_little(scale):
    """Rows in a thousandth of the bounds, and in a third of them: the window finds them."""

    def far(rng, seed):
        x = rng.normal(17.3, scale, size=5000)
        found = quantile(x, epsilon=1, seed=seed, bounds=(-100, 100))
        return found.lower, found.upper

    assert mean_width(far, runs=20) < 0.15 * scale


@pytest.mark.parametrize("epsilon", [10_000, 1_000_000])
@pytest.mark.parametrize("q", [0.5, 0.25])
@pytest.mark.parametrize("n", [200, 1000])
def test_with_much_epsilon_intervals_are_those_of_order_statistics(n, q, epsilon):
    """The usual ranks at every level, up to one rank and the width of a cell."""
    x = np.sort(np.random.default_rng(n).normal(3, 1, size=n))
    found = quantile(x, q, epsilon=epsilon)
    for level in (0.5, 0.9, 0.95, 0.99):
        below = stats.binom.ppf([(1 - level) / 2, (1 + level) / 2], n, q).astype(int)
        low, high = found.confidence_interval(level)
        cell = 0.02
        assert x[below[0] - 2] - cell <= low <= x[below[0]] + cell
        assert x[below[1] - 1] - cell <= high <= x[below[1] + 1] + cell
    assert found.quantile == pytest.approx(np.quantile(x, q), abs=0.02)


def test_other_quantiles_of_one_release_lie_where_they_should():
    x = np.random.default_rng(0).normal(3, 1, size=2000)
    found = quantile(x, 0.5, epsilon=10_000)
    for q in (0.05, 0.25, 0.9):
        other = found.at(q)
        assert other.lower <= stats.norm(3, 1).ppf(q) <= other.upper
        assert other.upper - other.lower < 1


@pytest.mark.parametrize("values", [[7], [0, 120], [3, 3, 3, 90], [10, 20, 30]])
def test_integers_with_many_ties(values):
    ages = np.random.default_rng(0).choice(values, size=3000)
    found = quantile(ages, epsilon=1, bounds=AGES)
    assert found.lower <= np.median(ages) <= found.upper
    assert found.lower.is_integer()
    assert found.upper.is_integer()
    few = quantile({"age": ages}, epsilon=20, bounds=AGES, seed=3)
    assert few.lower <= np.median(ages) <= few.upper
    if len(set(values)) == 1:
        assert (few.lower, few.upper) == (7, 7)


@pytest.mark.parametrize("kind", ["atoms", "spread"])
@pytest.mark.parametrize(("n", "epsilon"), [(150, 1.2), (400, 0.5), (400, 3)])
def test_coverage_where_a_window_is_chosen(kind, n, epsilon):
    """Seeded; a true coverage of .95 fails with probability below 1e-3 in each of six cells."""
    rng, covers = np.random.default_rng(n), 0
    for seed in range(150):
        x = rng.poisson(4, size=n) if kind == "atoms" else rng.gamma(2, size=n)
        truth = 4 if kind == "atoms" else stats.gamma(2).median()
        found = quantile(x, epsilon=epsilon, seed=seed, bounds=(0, 25))
        covers += found.lower <= truth <= found.upper
    assert covers >= 132


def test_one_law_of_noise_for_all_edges_of_an_even_tree():
    """Which edge is next to the quantile depends on rows: the noise must not tell it."""
    tree = even_tree(9)
    columns = [cumulated(row, tree, 0.0) - cumulated(0 * row, tree, 0.0) for row in np.eye(9)]
    weights = np.abs(np.array(columns))
    assert (weights[:, 1:-1] == 0.5).all()
    assert not weights[:, [0, -1]].any()
    made = paths(tree)
    assert made.halves.tolist() == [0, *[9] * 8, 0]
    assert not made.ones.any()


def test_steps_depend_on_public_sizes_only():
    """One value more in a cell must not take a step more: an analyst can watch the clock."""
    for high in (2047, 2048):
        counts = np.array([high, 5000 - high])
        assert len(_parts(counts)) == 2
