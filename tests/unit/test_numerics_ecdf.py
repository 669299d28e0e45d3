"""Statistics of distribution functions against the specification and SciPy."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privatest.numerics.distances import LineMetric, ipm
from privatest.numerics.ecdf import (
    LATTICE,
    ONE_SAMPLE_STATISTICS,
    on_lattice,
    one_sample,
    one_sample_width,
    two_sample,
    two_sample_sorted,
    two_sample_width,
)


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [("ks", 0.2), ("kuiper", 0.35), ("cvm", 0.09128709), ("wasserstein", 0.075)],
)
def test_published_values(statistic, expected):
    u = np.array([0.4, 0.1, 0.95, 0.7])
    assert one_sample(u, statistic) / 4 == pytest.approx(expected, abs=5e-9)


@pytest.mark.parametrize("n", [2, 3, 20, 1000])
@pytest.mark.parametrize("ties", [False, True])
def test_one_sample_agrees_with_scipy(n, ties):
    rng = np.random.default_rng(n)
    u = rng.integers(0, 5, n) / 4 if ties else rng.random(n)
    scaled = {name: one_sample(u, name) / n for name in ("ks", "cvm")}
    assert scaled["ks"] == pytest.approx(stats.kstest(u, "uniform").statistic, abs=1e-12)
    squared = stats.cramervonmises(u, "uniform").statistic / n
    assert scaled["cvm"] ** 2 == pytest.approx(squared, abs=1e-12)


@pytest.mark.parametrize("n", [2, 7, 40])
def test_one_sample_is_the_integral_it_claims_to_be(n):
    u = np.random.default_rng(n).beta(0.5, 2, n)
    t = (np.arange(400_000) + 0.5) / 400_000
    gap = np.searchsorted(np.sort(u), t, side="right") / n - t
    numeric: dict[Any, Any] = {
        "ks": np.abs(gap).max(),
        "kuiper": max(gap.max(), 0) - min(gap.min(), 0),
        "cvm": np.sqrt(np.square(gap).mean()),
        "wasserstein": np.abs(gap).mean(),
    }
    for name, value in numeric.items():
        assert one_sample(u, name) / n == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 5), (20, 31), (300, 7)])
@pytest.mark.parametrize("ties", [False, True])
def test_two_sample_agrees_with_scipy_and_the_metric(n, m, ties):
    rng = np.random.default_rng([n, m])
    x, y = rng.standard_cauchy(n), rng.standard_normal(m)
    labels = rng.permutation(n + m)
    if ties:
        x, y = np.round(x), np.round(y)
    ks, kuiper = two_sample(x, y, "ks", labels), two_sample(x, y, "kuiper", labels)
    assert isinstance(ks, int)
    if ties:  # the distances at the ends of ties are among those of single records
        assert n * m * stats.ks_2samp(x, y, method="asymp").statistic <= ks + 1e-9
        place = np.empty(n + m)
        place[np.lexsort((labels, np.concatenate([x, y])))] = np.arange(n + m)
        x, y = place[:n], place[n:]
    assert ks / (n * m) == pytest.approx(stats.ks_2samp(x, y, method="asymp").statistic, abs=1e-12)
    sides = ("greater", "less")
    one_sided = [stats.ks_2samp(x, y, side, "asymp").statistic for side in sides]
    assert kuiper / (n * m) == pytest.approx(sum(one_sided), abs=1e-12)
    names: tuple[Any, ...] = ("kolmogorov", "kuiper")
    for name, value in zip(names, (ks, kuiper), strict=True):
        metric = LineMetric(np.ones((1, 1)), name, 1.0)
        assert ipm(x[:, None], y[:, None], metric) == pytest.approx(value / (n * m), abs=1e-12)


def test_extremes():
    x = np.array([1e300, -1e300])
    assert two_sample(x, x, "kuiper", np.arange(4)) == 2  # x goes first in both pairs
    assert two_sample(x, x, "kuiper", np.array([3, 0, 1, 2])) == 4  # in the lower pair only
    assert two_sample(np.zeros(3), np.array([-0.0, 1.0]), "ks", np.array([1, 2, 3, 0, 4])) == 3
    assert two_sample(np.zeros(3), np.ones(4), "ks", np.arange(7)) == 12
    assert two_sample(np.ones(3), np.zeros(4), "kuiper", np.arange(7)) == 12
    names: tuple[Any, ...] = ONE_SAMPLE_STATISTICS
    for name in names:
        assert 0 < one_sample(np.full(5, 0.5), name) <= 5
    assert one_sample(np.zeros(7), "ks") == one_sample(np.ones(7), "kuiper") == 7


def test_widths():
    assert (two_sample_width(3, 5, "one"), two_sample_width(3, 5, "both")) == (5, 8)
    assert one_sample_width(10) == LATTICE + 1
    assert one_sample_width(1 << 27) == LATTICE + 3
    assert on_lattice(2.0) == 2 * LATTICE


values = st.lists(st.integers(0, 6), min_size=1, max_size=25)
walks = st.sampled_from(["ks", "kuiper", "greater", "less"])


def coupled(x, y, walk, labels):
    """J of the sorted form, with labels of all records behind its draws."""
    statistic: Any = walk if walk in ("ks", "kuiper") else "ks"
    side: Any = walk if walk in ("greater", "less") else "two-sided"

    def shuffle(count):  # of records of x, then of y, that are in both samples
        assert count <= len(own)
        return np.argsort(np.argsort(own[-count:] if count else own[:0]))

    both = np.concatenate([np.isin(x, y), np.isin(y, x)])
    own = labels[both]
    return two_sample_sorted(x, y, statistic, shuffle, side), statistic, side


@given(values, values, walks, st.integers(0, 2**32 - 1))
def test_labels_of_tied_records_are_enough(x, y, walk, seed):
    """Fewer than 128 records: all are looked at, and the two forms are one number."""
    x, y = np.sort(np.array(x, float)), np.sort(np.array(y, float))
    labels = np.random.default_rng(seed).permutation(len(x) + len(y))
    found, statistic, side = coupled(x, y, walk, labels)
    assert found == two_sample(x, y, statistic, labels, side)


@given(st.integers(0, 2**32 - 1), walks, st.integers(2, 40), st.integers(2, 40), st.integers(1, 5))
def test_most_of_the_walk_need_not_be_looked_at(seed, walk, n, m, step):
    """Without ties between samples: the same number for any step."""
    rng = np.random.default_rng(seed)
    x, y = np.sort(rng.integers(0, 9, n) * 2.0), np.sort(rng.integers(0, 9, m) * 2.0 + 1)
    with patch("privatest.numerics.ecdf._STEP", step):
        found, statistic, side = coupled(x, y, walk, np.arange(n + m))
    assert found == two_sample(x, y, statistic, rng.permutation(n + m), side)


@pytest.mark.parametrize("walk", ["ks", "kuiper", "greater", "less"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_ties_have_the_same_law_for_any_step(walk, step):
    """All orders of labels, once: the multiset of J is that of the whole walk."""
    x, y = np.array([0.0, 1, 1]), np.array([1.0, 1, 2])
    statistic: Any = walk if walk in ("ks", "kuiper") else "ks"
    side: Any = walk if walk in ("greater", "less") else "two-sided"
    laws = []
    for form in ("whole", "sorted"):
        seen: list[float] = []
        sizes: set[int] = set()
        for labels in itertools.permutations(range(6)):
            own = np.array(labels)
            if form == "whole":
                seen.append(two_sample(x, y, statistic, own, side))
                continue

            def shuffle(count, own=own, sizes=sizes):
                sizes.add(count)
                return np.argsort(np.argsort(own[:count]))

            with patch("privatest.numerics.ecdf._STEP", step):
                seen.append(two_sample_sorted(x, y, statistic, shuffle, side))
        assert len(sizes) <= 1
        laws.append(np.unique(seen, return_counts=True))
    np.testing.assert_array_equal(laws[0], laws[1])
