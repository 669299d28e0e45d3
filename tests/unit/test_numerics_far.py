"""Statistics of the order of rows that are not held: what sorting all of them gives."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privatest as pt
from privatest.data import summaries
from privatest.data.encoding import Sample
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.numerics import ecdf as far_statistics
from privatest.numerics import order as value_cells
from privatest.numerics import order as value_order
from privatest.numerics.ecdf import (
    Side,
    TwoSampleStatistic,
    far_kruskal_wallis,
    far_mann_whitney,
    far_median_balance,
    far_signed_rank,
    far_symmetry,
    far_two_sample,
    two_sample,
)
from privatest.numerics.order import (
    keys_of,
    kruskal_wallis,
    mann_whitney,
    median_balance,
    signed_rank,
    symmetry,
    tied_groups,
)

DISTANCES: list[tuple[TwoSampleStatistic, Side]] = [
    ("ks", "two-sided"),
    ("ks", "greater"),
    ("ks", "less"),
    ("kuiper", "two-sided"),
]


SYMMETRIES: tuple[TwoSampleStatistic, ...] = ("ks", "kuiper")


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    """Cells, slices and passes as of a billion rows, with a few hundred."""
    monkeypatch.setattr(value_cells, "CELLS", 64)
    monkeypatch.setattr(value_order, "SLICE_ROWS", 50)
    monkeypatch.setattr(far_statistics, "_SMALL", 4)
    monkeypatch.setattr(far_statistics, "_OPEN", 5)


def sample(values) -> Sample:
    return Sample(np.asarray(values, dtype=np.float64)[:, None], None)


def counted_passes(monkeypatch) -> list[int]:
    """A list that grows by the number of samples that a pass goes through."""
    passes: list[int] = []

    def counting(*asked):
        passes.append(len(asked))
        return summaries.summarise(*asked)

    monkeypatch.setattr(value_cells, "summarise", counting)
    return passes


def noise(seed=0):
    return SimulatedNoise(seed)


def distinct(seed, *sizes):
    """Values of many magnitudes and both signs, none twice."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=sum(sizes)) * 10.0 ** rng.choice([-300, -3, 0, 0, 0, 0, 9], sum(sizes))
    assert len(np.unique(np.abs(values))) == len(values)
    return np.split(values + 0.0, np.cumsum(sizes)[:-1])


@pytest.mark.parametrize("seed", range(25))
def test_without_ties_they_are_those_of_sorted_rows(seed):
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(2, 300, size=3)
    x, y, z = distinct(seed, n, m, k)
    y += rng.choice([0.0, 0.3])
    labels = np.arange(n + m)
    for statistic, side in DISTANCES:
        found = far_two_sample(sample(x), sample(y), statistic, noise(), side)
        assert found == two_sample(x, y, statistic, labels, side)
    assert far_mann_whitney(sample(x), sample(y), noise()) == mann_whitney(x, y, labels)
    assert far_median_balance(sample(x), sample(y), noise()) == median_balance(x, y, labels)
    found = far_kruskal_wallis([sample(x), sample(y), sample(z)], noise())
    assert found == kruskal_wallis([x, y, z], np.arange(n + m + k))
    coins = np.ones(n, dtype=np.bool_)
    assert far_signed_rank(sample(x), noise()) == signed_rank(x, np.arange(n), coins)
    for walk in SYMMETRIES:
        assert far_symmetry(sample(x), walk, noise()) == symmetry(x, walk, np.arange(n), coins)


X, Y = np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 2.0, -0.0])
Z = np.array([0.0, -0.0, 1.0, -1.0, 2.0])
TIED = {
    "ks": (
        lambda z: far_two_sample(sample(X), sample(Y), "ks", z, "two-sided"),
        lambda labels, _: two_sample(X, Y, "ks", labels),
        7,
        0,
    ),
    "mann-whitney": (
        lambda z: far_mann_whitney(sample(X), sample(Y), z),
        lambda labels, _: mann_whitney(X, Y, labels),
        7,
        0,
    ),
    "median": (
        lambda z: far_median_balance(sample(X), sample(Y), z),
        lambda labels, _: median_balance(X, Y, labels),
        7,
        0,
    ),
    "kruskal": (
        lambda z: far_kruskal_wallis([sample(X), sample(Y[:2]), sample(Y[2:])], z),
        lambda labels, _: kruskal_wallis([X, Y[:2], Y[2:]], labels),
        7,
        0,
    ),
    "symmetry": (
        lambda z: far_symmetry(sample(Z), "kuiper", z),
        lambda labels, coins: symmetry(Z, "kuiper", labels, coins),
        5,
        2,
    ),
    "signed ranks": (
        lambda z: far_signed_rank(sample(Z), z),
        lambda labels, coins: signed_rank(Z, labels, coins),
        5,
        2,
    ),
}


@pytest.mark.parametrize(("name", "rows"), [*((name, 2) for name in TIED), ("ks", 50)])
def test_ties_have_the_law_of_all_labels_and_coins(name, rows, monkeypatch):
    """Pearson's statistic of 200 seeds, beyond its 1 - 10⁻⁶ quantile only if the law is wrong.

    Slices of two rows take every way there is: cells of one value that are drawn in stretches.
    """
    from scipy.stats import chi2

    monkeypatch.setattr(value_order, "SLICE_ROWS", rows)
    far, exact, size, zeros = TIED[name]
    law: Counter[int] = Counter()
    for labels in permutations(range(size)):
        for code in range(2**zeros):
            coins = np.array([bool(code >> place & 1) for place in range(zeros)] + [True] * size)
            law[exact(np.array(labels), coins[:size])] += 1
    runs = 200
    seen = Counter(far(noise(seed)) for seed in range(runs))
    assert set(seen) <= set(law)
    expected = {value: runs * count / law.total() for value, count in law.items()}
    distance = sum((seen[value] - mean) ** 2 / mean for value, mean in expected.items())
    assert distance <= chi2.isf(1e-6, max(len(law) - 1, 1))


def test_one_value_of_more_rows_than_a_slice_is_drawn_in_stretches(monkeypatch):
    monkeypatch.setattr(value_order, "SLICE_ROWS", 1_000)
    counts = np.array([70_001, 0, 3_002])
    parts = list(tied_groups(counts, noise()))
    assert [len(part) for part in parts] == [1_000] * 73 + [3]
    groups = np.concatenate(parts)
    assert np.bincount(groups).tolist() == counts.tolist()
    of_second_half = (groups[len(groups) // 2 :] == 2).sum()
    assert abs(of_second_half - 1_501) < 5 * np.sqrt(3_002) / 2  # 5 standard deviations


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_keys_have_the_order_of_the_values(values):
    values = np.array(values)
    keys = keys_of(values)
    assert np.array_equal(np.less.outer(keys, keys), np.less.outer(values, values))
    assert np.array_equal(np.equal.outer(keys, keys), np.equal.outer(values, values))


def test_a_sample_that_is_a_copy_takes_as_many_passes_as_there_are_slices(monkeypatch):
    """All cells stay open to the end: every one holds a tie whose order decides."""
    (x,) = distinct(1, 400)
    passes = counted_passes(monkeypatch)
    assert far_two_sample(sample(x), sample(x), "ks", noise(), "two-sided") == 400
    assert len(passes) < 200


PUBLIC = {
    "ks_2samp": ("ks", lambda x, y, noise: pt.ks_2samp(x, y, epsilon=1, noise=noise)),
    "mannwhitneyu": (
        "ranks",
        lambda x, y, noise: pt.mannwhitneyu(x, y, epsilon=1, noise=noise),
    ),
    "median_test": (
        "ranks",
        lambda x, y, noise: pt.median_test(x, y, epsilon=1, noise=noise),
    ),
    "kruskal": (
        "ranks",
        lambda x, y, noise: pt.kruskal(
            x[:90], y, x[90:], epsilon=1, rng=0, n_resamples=9, noise=noise
        ),
    ),
    "symmetry_test": (
        "signs",
        lambda x, y, noise: pt.symmetry_test(x - y[:200], epsilon=1, noise=noise),
    ),
    # with so little epsilon all rows count, however many are read
    "wilcoxon": (
        "signs",
        lambda x, y, noise: pt.wilcoxon(x, y[:200], epsilon=0.1, noise=noise),
    ),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_tests_use_them_for_many_rows_unless_time_must_not_tell(name, monkeypatch):
    module, test = PUBLIC[name]
    x, y = distinct(7, 200, 260)
    # the integer that noise would be added to
    monkeypatch.setattr(
        f"privatest.methods.{module}.lattice_outcome", lambda found, *_, **__: found
    )
    monkeypatch.setattr("privatest.methods.signs.release_statistic", lambda found, *_: (found, 1.0))
    exact, passes = test(x, y, SecureNoise()), counted_passes(monkeypatch)
    assert test(x, y, SecureNoise()) == exact
    assert not passes
    monkeypatch.setattr(value_order, "HELD_ROWS", 100)
    assert test(x, y, SecureNoise()) == exact
    assert passes
    passes.clear()
    assert test(x, y, SecureNoise(constant_time=True)) == exact
    assert not passes


def test_the_key_of_the_coins_is_not_shown():
    assert "secret" not in repr(far_statistics._BySign(b"secret", 1.0))
