"""Rank statistics against SciPy, and against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from privatest.core.errors import ParameterError
from privatest.core.secret_order import row_coins
from privatest.data.encoding import Sample
from privatest.noise import SimulatedNoise
from privatest.numerics import order as ranks
from privatest.numerics.laws import symmetry_law, wilcoxon_law


def samples(seed, n, m, *, ties=False):
    rng = np.random.default_rng(seed)
    if ties:
        return rng.integers(0, 4, n).astype(float), rng.integers(0, 4, m).astype(float)
    return rng.normal(size=n), rng.standard_cauchy(size=m)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("n", "m"), [(2, 2), (7, 30), (200, 150)])
def test_mann_whitney_is_scipys(n, m, ties):
    x, y = samples(1, n, m, ties=ties)
    ours = (ranks.mann_whitney(x, y) + n * m) / 2
    assert ours == pytest.approx(stats.mannwhitneyu(x, y).statistic, abs=1e-12)


def test_random_ties_are_midranks_on_average():
    x, y = samples(2, 3, 3, ties=True)
    broken = [ranks.mann_whitney(x, y, np.array(p)) for p in itertools.permutations(range(6))]
    assert np.mean(broken) == pytest.approx(ranks.mann_whitney(x, y), abs=1e-12)


def test_labels_do_nothing_where_there_are_no_ties():
    x, y = samples(3, 20, 30)
    labels = np.random.default_rng(0).permutation(50)
    assert ranks.mann_whitney(x, y, labels) == ranks.mann_whitney(x, y)
    assert ranks.kruskal_wallis([x, y], labels) == ranks.kruskal_wallis([x, y])
    assert ranks.signed_rank(x, np.arange(20)[::-1]) == ranks.signed_rank(x)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [2, 15, 300])
def test_wilcoxon_is_scipys_with_pratts_zeros(n, ties):
    x, _ = samples(4, n, 2, ties=ties)
    d = x - 1.0 if ties else x
    for side, sign in (("greater", 1), ("less", -1)):
        plus = stats.wilcoxon(
            sign * d, zero_method="pratt", alternative=side, method="asymptotic"
        ).statistic
        positive, total = d * sign > 0, stats.rankdata(np.abs(d))
        assert plus == pytest.approx(total[positive].sum(), abs=1e-12)
    half = total[d > 0].sum() - total[d < 0].sum()
    assert ranks.signed_rank(d) == pytest.approx(2 * half, abs=1e-12)


def test_wilcoxon_zeros_take_their_coin():
    d = np.array([0.0, 2.0, 0.0])
    labels = np.arange(3)
    values = {ranks.signed_rank(d, labels, np.array([a, False, b])) for a in (0, 1) for b in (0, 1)}
    assert values == {2 * (3 + s + 2 * t) for s in (-1, 1) for t in (-1, 1)}


def test_kruskal_wallis_two_groups_is_mann_whitney():
    x, y = samples(5, 9, 14, ties=True)
    assert ranks.kruskal_wallis([x, y]) == 2 * abs(ranks.mann_whitney(x, y))


@pytest.mark.parametrize("ties", [False, True])
def test_kruskal_wallis_by_mean_ranks(ties):
    groups = [*samples(6, 5, 8, ties=ties), samples(7, 11, 2, ties=ties)[0]]
    pooled = stats.rankdata(np.concatenate(groups))
    parts = np.split(pooled, [5, 13])
    expected = sum(len(part) * abs(part.mean() - 12.5) for part in parts)
    assert ranks.kruskal_wallis(groups) / 2 == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 8), (6, 3)])
def test_median_counts_the_upper_half(n, m):
    x, y = samples(8, n, m)
    total = n + m
    top = np.sort(np.concatenate([x, y]))[total // 2 :]
    count = np.isin(x, top).sum()
    balance = ranks.median_balance(x, y, np.arange(total))
    assert balance == total * count - n * len(top)


def slow_symmetry(z, statistic):
    thresholds = np.unique(np.abs(z[z != 0]))
    walk = np.array([0] + [(z >= t).sum() - (z <= -t).sum() for t in thresholds])
    return walk.max() - walk.min() if statistic == "kuiper" else np.abs(walk).max()


def without_ties(z, labels, coins):
    """Values with the same order of |z|, ties by falling label, and the same signs, coins too."""
    places = np.empty(len(z))
    places[np.lexsort((-labels, np.abs(z)))] = np.arange(1, len(z) + 1)
    return np.where(z == 0, np.where(coins, 1, -1), np.sign(z)) * places


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_symmetry_by_its_definition(statistic):
    rng = np.random.default_rng(9)
    for _ in range(200):
        z = rng.integers(-4, 6, size=rng.integers(1, 12)).astype(float)
        labels, coins = rng.permutation(len(z)), rng.random(len(z)) < 0.5
        found = ranks.symmetry(z, statistic, labels, coins)
        assert found == slow_symmetry(without_ties(z, labels, coins), statistic)
        assert found >= slow_symmetry(z, statistic)  # ties and zeros at once: a part of the walk
    alternating = np.array([True, False, True, False, True])
    assert ranks.symmetry(np.zeros(5), statistic, np.arange(5), alternating) == 1
    assert ranks.symmetry(np.zeros(5), statistic, np.array([0, 4, 1, 3, 2]), alternating) == 3


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
@pytest.mark.parametrize("sizes", [[0, 0, 0, 0], [0, 1, 1, 2], [3, 3, 3, 3], [0, 0, 1, 2]])
def test_symmetry_has_its_law_whatever_the_ties(statistic, sizes):
    """All signs, labels and coins, each as likely as any other: no chance is involved."""
    signs = list(itertools.product([-1.0, 1.0], repeat=4))
    coins = list(itertools.product([False, True], repeat=4)) if 0 in sizes else [(True,) * 4]
    found = [
        ranks.symmetry(np.array(s) * sizes, statistic, np.array(order), np.array(c))
        for s in signs
        for order in itertools.permutations(range(4))
        for c in coins
    ]
    law = symmetry_law(4, statistic)
    shares = [np.mean(np.array(found) == value) for value in law.values]
    np.testing.assert_allclose(law.masses, shares, atol=1e-12)
    assert sum(shares) == pytest.approx(1)


def test_signs():
    d = np.array([[1.0], [-1.0], [0.0], [0.0], [5.0]])
    counts = ranks.sign_counts(Sample(d, None))
    assert counts == (2, 1)
    for seed in range(5):
        coins = row_coins(SimulatedNoise(seed).key(), 0, 5)
        positive = 2 + coins[0] + coins[1]
        assert ranks.sign_balance(counts, 5, 5, SimulatedNoise(seed)) == 2 * positive - 5
        assert ranks.sign_balance(counts, 5, 3, SimulatedNoise(seed)) == 1


def test_signs_that_are_left_out_are_a_random_choice():
    # 4000 runs: five standard errors
    drawn = [ranks.sign_balance((6, 3), 9, 4, SimulatedNoise(seed)) for seed in range(4000)]
    law = stats.hypergeom(9, 6, 4)
    for count in range(1, 5):
        share = np.mean(np.array(drawn) == 2 * count - 4)
        assert share == pytest.approx(law.pmf(count), abs=5 * (0.25 / 4000) ** 0.5)


@pytest.mark.parametrize("counted", [2, 3, 4])
@pytest.mark.parametrize("sizes", [[0, 0, 1, 2], [0, 1, 2, 3], [4, 3, 2, 1], [0, 0, 0, 0]])
def test_signed_ranks_have_their_law_however_many_count(sizes, counted):
    """All signs, labels and coins, each as likely as any other: no chance is involved."""
    found: list[int] = []
    for signs in itertools.product([-1.0, 1.0], repeat=4):
        d = np.array(signs) * sizes
        for labels in map(np.array, itertools.permutations(range(4))):
            order = ranks.counted_first(d, labels, counted)
            for tosses in map(np.array, itertools.product([False, True], repeat=4)):
                if (d != 0).sum() <= counted:  # zeros break no ties of others
                    found.append(ranks.signed_midrank(d[order], tosses[order]))
                found.append(ranks.signed_rank(d[order], np.arange(counted), tosses[order]))
    law = wilcoxon_law(counted)
    shares = [np.mean(np.array(found) == value) for value in law.values]
    np.testing.assert_allclose(law.masses, shares, atol=1e-12)


def test_widths_of_the_published_table():
    assert ranks.mann_whitney_width(30, 50, "one") == 2 * 50
    assert ranks.mann_whitney_width(30, 50, "both") == 2 * 79
    assert ranks.kruskal_wallis_width((30, 50), "one") == 4 * 50
    assert ranks.kruskal_wallis_width((30, 50), "both") == 4 * 79
    assert ranks.kruskal_wallis_width((30, 50, 20), "one") == 4 * 80
    total = 100
    factor = 4 * (total - 1) / total**2
    assert factor / 2 * ranks.kruskal_wallis_width((30, 50, 20), "one") < 8
    assert ranks.signed_rank_width(40) == 160
    assert (ranks.symmetry_width(), ranks.sign_width()) == (2, 2)
    assert ranks.median_width(3, 4, "both") == 7


@pytest.mark.parametrize(
    "width",
    [
        lambda: ranks.mann_whitney_width(3, 3, "row"),
        lambda: ranks.kruskal_wallis_width((3, 3), "row"),
        lambda: ranks.median_width(3, 3, "row"),
    ],
)
def test_private_groups_are_refused(width):
    with pytest.raises(ParameterError, match="group sizes"):
        width()


def test_labels_order_ties():
    rng = np.random.default_rng(10)
    for _ in range(50):
        values, labels = rng.integers(0, 3, size=9).astype(float), rng.permutation(9)
        expected = np.empty(9, dtype=int)
        expected[np.lexsort((labels, values))] = 2 * np.arange(1, 10)
        assert (ranks.doubled_ranks(values, labels) == expected).all()
