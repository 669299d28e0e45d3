"""Search for neighbours that move a rank statistic by more than its declared width.

Labels and coins belong to places, so that neighbours share them: the coupling of the proofs.
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from privatest.core.noise import SimulatedNoise
from privatest.data.encoding import Sample
from privatest.data.schema import Domain
from privatest.numerics import order as ranks
from privatest.numerics.ecdf import two_sample, two_sample_width
from tests.sensitivity.harness import Space, assert_sensitivity

SIZES = [(2, 2), (3, 8), (9, 4), (20, 21)]
LINE = Domain((0,))  # ties at corners and elsewhere
FREE = Domain((0,), bounded=False)


def shuffled(count, seed=3):
    return np.random.default_rng(seed).permutation(count)


def coins(count, seed=4):
    return np.random.default_rng(seed).integers(2, size=count).astype(bool)


def two(function, total, *, labelled):
    """A statistic of two samples as one of labelled rows; ties are broken by place."""

    labels = shuffled(total)

    def statistic(rows, first):
        order = np.concatenate([labels[first], labels[~first]])
        given = (order,) if labelled else ()
        return function(rows[first, 0], rows[~first, 0], *given)

    return statistic


@pytest.mark.parametrize("adjacency", ["one", "both"])
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("labelled", [True, False])
def test_mann_whitney(n, m, adjacency, labelled):
    width = ranks.mann_whitney_width(n, m, adjacency)
    space = Space(LINE, n, m, adjacency)
    signed = two(ranks.mann_whitney, n + m, labelled=labelled)

    def both_forms(rows, first):
        value = signed(rows, first)
        return value, abs(value)

    assert_sensitivity(both_forms, width, space, restarts=8)


def test_mann_whitney_width_is_attained():
    rows = np.array([1.0] * 5 + [0.0] * 3)
    moved = rows.copy()
    moved[5] = 2.0  # one y from below all x to above all
    far = ranks.mann_whitney(rows[:5], rows[5:]) - ranks.mann_whitney(moved[:5], moved[5:])
    assert far == 2 * 5 == ranks.mann_whitney_width(5, 3, "one")
    moved[0] = -1.0  # and one x from above all y to below all
    far = ranks.mann_whitney(rows[:5], rows[5:]) - ranks.mann_whitney(moved[:5], moved[5:])
    assert far == 2 * 7 == ranks.mann_whitney_width(5, 3, "both")


@pytest.mark.parametrize("adjacency", ["one", "both"])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_median(n, m, adjacency):
    statistic = two(ranks.median_balance, n + m, labelled=True)
    width = ranks.median_width(n, m, adjacency)
    assert assert_sensitivity(statistic, width, Space(LINE, n, m, adjacency)) == 1


def test_the_published_median_test_is_caught():
    """Midranks: all of x may change sides at once, where the paper says that one does."""

    def published(x, y):
        pooled = np.concatenate([x, y])
        middle = (len(pooled) + 1) / 2
        return int((ranks.doubled_ranks(pooled)[: len(x)] > 2 * middle).sum())

    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(two(published, 41, labelled=False), 1, Space(LINE, 20, 21))
    # all of x is tied at the middle: one y that changes sides takes 50 records with it
    x, y = np.ones(50), np.repeat([0.0, 2.0], 25)
    moved = y.copy()
    moved[-1] = 0.0
    assert published(x, moved) - published(x, y) == 50


@pytest.mark.parametrize("sizes", [(2, 2), (3, 5), (2, 3, 4), (6, 2, 3, 5)])
@pytest.mark.parametrize("adjacency", ["one", "both"])
@pytest.mark.parametrize("labelled", [True, False])
def test_kruskal_wallis(sizes, adjacency, labelled):
    rng = np.random.default_rng(5)
    width, total = ranks.kruskal_wallis_width(sizes, adjacency), sum(sizes)
    cuts = np.cumsum(sizes)[:-1]
    labels = shuffled(total) if labelled else None

    def value(rows):
        return ranks.kruskal_wallis(np.split(rows, cuts), labels)

    best = 0
    for _ in range(20):
        rows = rng.integers(0, rng.integers(2, 8), size=total).astype(float)
        for _ in range(60):
            base = rows.copy()
            if rng.random() < 0.7:
                base[rng.integers(total)] = rng.integers(-1, 9)
            moved = base.copy()
            if adjacency == "one":
                moved[rng.integers(total)] = rng.integers(-1, 9)
            else:
                for group in np.split(np.arange(total), cuts):
                    moved[rng.choice(group)] = rng.integers(-1, 9)
            far = abs(value(base) - value(moved))
            assert far <= width
            if far >= best:
                best, rows = far, base
    assert best >= (0.7 if adjacency == "one" else 0.4) * width


def test_kruskal_wallis_width_is_attained():
    smallest, others = np.array([5.0, 9.0]), np.arange(4.0)
    moved = np.array([-1.0, 9.0])
    widths = ranks.kruskal_wallis_width((2, 4), "one"), 4 * 4
    assert widths[0] == widths[1]
    # signed halves: what one record adds to both groups
    far = ranks.mann_whitney(smallest, others) - ranks.mann_whitney(moved, others)
    assert 2 * far == widths[0]


SINGLE = [2, 3, 8, 25]


def one_sample(function):
    return lambda rows, _: function(rows[:, 0])


def symmetry(n, statistic, seed=3):
    given = {"labels": shuffled(n, seed), "coins": coins(n, seed)}
    return partial(ranks.symmetry, statistic=statistic, **given)


@pytest.mark.parametrize("n", SINGLE)
@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_symmetry(n, statistic):
    width, space = ranks.symmetry_width(), Space(FREE, n, 0)
    found = assert_sensitivity(one_sample(symmetry(n, statistic)), width, space)
    assert found == (1 if n > 2 else 0.5)  # a walk of two steps reaches 1 or 2
    for seed, divisor in itertools.product(range(3), (20, 40)):  # ties, and ever more zeros
        given = symmetry(n, statistic, seed)
        grid = one_sample(lambda z, of=given, d=divisor: of(np.rint(z / d)))
        assert assert_sensitivity(grid, width, space, restarts=4) >= 0.5


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_symmetry_of_every_small_neighbour_with_ties(statistic):
    """All data of values -1, 0, 1, 2, all replacements, several labels and coins."""
    data = np.array(list(itertools.product([-1.0, 0.0, 1.0, 2.0], repeat=4)))
    replaced = (data[:, None] != data[None]).sum(axis=2)
    for seed in range(12):
        values = np.array([symmetry(4, statistic, seed)(z) for z in data])
        assert (np.abs(values[:, None] - values) <= ranks.symmetry_width() * replaced).all()


@pytest.mark.parametrize("n", SINGLE)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_signs(n, share):
    """However many count: zeros with coins, or some of the others left out."""
    counted = max(1, round(share * n))
    for seed in range(3):
        measured = one_sample(
            lambda z, seed=seed: ranks.sign_balance(
                ranks.sign_counts(Sample(np.rint(z / 20)[:, None], None)),
                n,
                counted,
                SimulatedNoise(seed),
            )
        )
        assert assert_sensitivity(measured, ranks.sign_width(), Space(FREE, n, 0)) == 1


def test_signs_of_every_small_neighbour():
    """All numbers of positive, negative and zero differences of 6, all replacements."""
    data = [(up, down) for up in range(7) for down in range(7 - up)]
    for seed, counted in itertools.product(range(30), range(7)):
        found = {each: ranks.sign_balance(each, 6, counted, SimulatedNoise(seed)) for each in data}
        for (up, down), value in found.items():
            near = [(up - 1, down + 1), (up - 1, down), (up, down - 1)]
            moved = [abs(found[each] - value) for each in near if min(each) >= 0]
            assert max(moved, default=0) <= ranks.sign_width()


@pytest.mark.parametrize("midranks", [False, True])
def test_signed_ranks_of_those_that_count(midranks):
    """All data of values -2 ... 2, all replacements, however many count; ties too."""
    data = np.array(list(itertools.product([-2.0, -1.0, 0.0, 1.0, 2.0], repeat=4)))
    replaced = (data[:, None] != data[None]).sum(axis=2) == 1
    for seed, counted in itertools.product(range(6), range(1, 5)):
        labels, tosses = shuffled(4, seed), coins(4, seed)
        found, ties = [], []
        for d in data:
            order = ranks.counted_first(d, labels, counted)
            chosen, signs = d[order], tosses[order]
            if midranks:
                found.append(ranks.signed_midrank(chosen, signs))
            else:
                found.append(ranks.signed_rank(chosen, np.arange(counted), signs))
            ties.append(ranks.tie_cubes(np.abs(chosen[chosen != 0])))
        for values, width in (
            (found, ranks.signed_rank_width(counted)),
            (ties, ranks.tie_cubes_width(counted)),
        ):
            moved = np.abs(np.subtract.outer(values, values))[replaced].max()
            assert moved <= width
            assert moved >= width / 2 or width == 0


@pytest.mark.parametrize("n", SINGLE)
@pytest.mark.parametrize("labelled", [True, False])
def test_signed_ranks(n, labelled):
    given = (shuffled(n), coins(n)) if labelled else ()
    for divisor in (1e-15, 20.0):  # outliers; ties and zeros
        measured = one_sample(lambda z, d=divisor: ranks.signed_rank(np.rint(z / d), *given))
        found = assert_sensitivity(
            measured, ranks.signed_rank_width(n), Space(FREE, n, 0), restarts=6
        )
    assert found > 0.6
    largest = np.arange(1.0, n + 1)
    turned = largest.copy()
    turned[-1] *= -1
    far = ranks.signed_rank(largest) - ranks.signed_rank(turned)
    assert far == ranks.signed_rank_width(n)


@pytest.mark.parametrize("n", [50, 200])
def test_larger_samples(n):
    m = n + 7
    measured = two(ranks.mann_whitney, n + m, labelled=True)
    assert_sensitivity(
        measured, ranks.mann_whitney_width(n, m, "one"), Space(LINE, n, m), restarts=6
    )
    walk = one_sample(symmetry(n, "kuiper"))
    assert_sensitivity(walk, ranks.symmetry_width(), Space(FREE, n, 0), restarts=6)


# --- the whole release, averaged over secret labels and coins -------------------------------


def released_law(values, width, epsilon, reach):
    """Exact law of value + integer noise, for values that are drawn evenly from a list."""
    k = np.arange(-reach, reach + 1)
    law = np.zeros(len(k))
    share = np.exp(-epsilon)
    for value, count in zip(*np.unique(values, return_counts=True), strict=True):
        block = (k - value + (width - 1) // 2) // width
        mass = (1 - share) / (1 + share) * share ** np.abs(block) / width
        law += mass * count / len(values)
    return law


def orders(count):
    return [np.array(order) for order in itertools.permutations(range(count))]


def orders_and_coins(count):
    tosses = map(np.array, itertools.product([False, True], repeat=count))
    return itertools.product(orders(count), tosses)


PAIRS = {
    "mann-whitney": (
        lambda d, e: [ranks.mann_whitney(v[:2], v[2:], p) for v in (d, e) for p in orders(5)],
        ranks.mann_whitney_width(2, 3, "one"),
    ),
    "median": (
        lambda d, e: [ranks.median_balance(v[:2], v[2:], p) for v in (d, e) for p in orders(5)],
        ranks.median_width(2, 3, "one"),
    ),
    "kruskal": (
        lambda d, e: [ranks.kruskal_wallis([v[:2], v[2:]], p) for v in (d, e) for p in orders(5)],
        ranks.kruskal_wallis_width((2, 3), "one"),
    ),
    "wilcoxon": (
        lambda d, e: [
            ranks.signed_rank(v - 1, p, c) for v in (d, e) for p, c in orders_and_coins(5)
        ],
        ranks.signed_rank_width(5),
    ),
    "symmetry": (
        lambda d, e: [
            ranks.symmetry(v - 1, "ks", p, c) for v in (d, e) for p, c in orders_and_coins(5)
        ],
        ranks.symmetry_width(),
    ),
    "symmetry, kuiper": (
        lambda d, e: [
            ranks.symmetry(v - 1, "kuiper", p, c) for v in (d, e) for p, c in orders_and_coins(5)
        ],
        ranks.symmetry_width(),
    ),
    "ks": (
        lambda d, e: [two_sample(v[:2], v[2:], "ks", p) for v in (d, e) for p in orders(5)],
        two_sample_width(2, 3, "one"),
    ),
    "kuiper": (
        lambda d, e: [two_sample(v[:2], v[2:], "kuiper", p) for v in (d, e) for p in orders(5)],
        two_sample_width(2, 3, "one"),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_exact_privacy_loss_of_a_release(name, share):
    """Labels differ between neighbours, whose rows may be stored in any order: enumerated.

    With half of the width the loss must be found to exceed epsilon.
    """
    compute, width = PAIRS[name]
    rng, epsilon, worst = np.random.default_rng(6), 0.7, 0.0
    for _ in range(12):
        data = rng.integers(0, 3, size=5).astype(float)
        other = data.copy()
        other[rng.integers(5)] = rng.integers(-9, 9)
        stored = other.copy()
        stored[:2], stored[2:] = np.sort(other[:2]), np.sort(other[2:])
        values = compute(data, stored)
        half = len(values) // 2
        first, second = (
            released_law(part, int(share * width), epsilon, 400)
            for part in (values[:half], values[half:])
        )
        worst = max(worst, float(np.abs(np.log(first / second)).max()))
    if share == 1:
        assert worst <= epsilon + 1e-9
    else:
        assert worst > epsilon + 0.01
