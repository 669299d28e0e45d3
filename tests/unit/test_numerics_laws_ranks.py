"""Laws under the null hypothesis: the published values, and enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from privatest.numerics import laws as rank_laws
from privatest.numerics import order as ranks
from privatest.numerics.laws import (
    ALTERNATIVES,
    LatticeTulap,
    binomial_law,
    hypergeometric_law,
    sign_law,
)


def survival(law):
    return law.masses[::-1].cumsum()[::-1]


def walks(n):
    return np.cumsum(np.array(list(itertools.product([-1, 1], repeat=n))), axis=1)


def test_published_symmetry_laws():
    assert survival(rank_laws.symmetry_law(4, "ks")) == pytest.approx([1, 0.75, 0.25, 0.125])
    assert survival(rank_laws.symmetry_law(4, "kuiper")) == pytest.approx([1, 0.875, 0.375, 0.125])


@pytest.mark.parametrize("n", [1, 2, 5, 10, 13])
def test_symmetry_laws_by_enumeration(n):
    paths = walks(n)
    high, low = np.maximum(paths.max(axis=1), 0), np.minimum(paths.min(axis=1), 0)
    values = {"ks": np.maximum(high, -low), "kuiper": high - low}
    for statistic, value in values.items():
        law = rank_laws.symmetry_law(n, statistic)
        expected = [(value == k).mean() for k in law.values]
        assert law.masses == pytest.approx(expected, abs=1e-13)


def killed_walk(n, barrier):
    mass = np.zeros(2 * barrier + 1)
    mass[barrier] = 1
    for _ in range(n):
        step = np.zeros_like(mass)
        step[1:] += mass[:-1] / 2
        step[:-1] += mass[1:] / 2
        step[[0, -1]] = 0
        mass = step
    return mass.sum()


@pytest.mark.parametrize("n", [60, 1001])
def test_symmetry_law_of_long_walks(n):
    tail = survival(rank_laws.symmetry_law(n, "ks"))
    for barrier in (2, 5, int(math.sqrt(n)), int(2.5 * math.sqrt(n))):
        assert tail[barrier - 1] == pytest.approx(1 - killed_walk(n, barrier), abs=1e-13)


def test_published_count_pvalues():
    law = sign_law(10)
    unit, doubled = LatticeTulap(1, 1.0), LatticeTulap(2, 1.0)
    assert binomial_law(10, 0.5).pvalue(8.2, unit) == pytest.approx(0.06222427, abs=5e-9)
    assert law.pvalue(2 * 8.2 - 10, doubled, "greater") == pytest.approx(0.06222427, abs=5e-9)
    assert law.pvalue(2 * 3.2, doubled, "two-sided") == pytest.approx(0.11565301, abs=5e-9)
    # by symmetry
    assert law.pvalue(6.4, doubled, "less") == pytest.approx(law.pvalue(6.4, doubled, "greater"))


@pytest.mark.parametrize("n", [1, 10, 501, 100_000])
def test_binomial(n):
    law = sign_law(n)
    assert law.masses == pytest.approx(stats.binom.pmf((law.values + n) / 2, n, 0.5), abs=1e-13)
    assert law.masses.sum() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 5), (7, 4), (3, 30), (500, 431)])
def test_hypergeometric(n, m):
    law, total = hypergeometric_law(n, m), n + m
    top = total - total // 2
    count = (law.values + n * top) / total
    assert law.masses == pytest.approx(stats.hypergeom.pmf(count, total, n, top), abs=1e-13)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 5), (4, 3), (6, 6)])
def test_mann_whitney_by_enumeration(n, m):
    law = rank_laws.mann_whitney_law(n, m)
    chosen = np.array(list(itertools.combinations(range(1, n + m + 1), n)))
    values = 2 * chosen.sum(axis=1) - n * (n + 1) - n * m
    assert law.masses == pytest.approx([(values == v).mean() for v in law.values], abs=1e-14)


@pytest.mark.parametrize(("n", "m"), [(10, 40), (60, 70)])
def test_mann_whitney_is_scipys(n, m):
    law = rank_laws.mann_whitney_law(n, m)
    x, y = np.arange(n) + 0.3 * m, np.arange(m) + 0.5
    exact = stats.mannwhitneyu(x, y, alternative="greater", method="exact")
    tail = law.masses[law.values >= 2 * exact.statistic - n * m].sum()
    assert tail == pytest.approx(exact.pvalue, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(20, 100), (60, 60), (100, 100), (20, 2500)])
def test_fourier_laws_are_exact_too(monkeypatch, n, m):
    exact = rank_laws.mann_whitney_law.__wrapped__(n, m)
    monkeypatch.setattr(rank_laws, "_EXACT_WORK", 0)
    quick = rank_laws.mann_whitney_law.__wrapped__(n, m)
    assert quick.error > exact.error
    below = np.interp(quick.values[:-1], exact.values, exact.masses.cumsum())
    assert quick.masses.cumsum()[:-1] == pytest.approx(below, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_wilcoxon_by_enumeration(n):
    law = rank_laws.wilcoxon_law(n)
    signs = np.array(list(itertools.product([-1, 1], repeat=n)))
    values = 2 * signs @ np.arange(1, n + 1)
    assert law.masses == pytest.approx([(values == v).mean() for v in law.values], abs=1e-14)


@pytest.mark.parametrize("n", [100, 300, 450])
def test_wilcoxon_fourier(monkeypatch, n):
    monkeypatch.setattr(rank_laws, "_EXACT_PAIRS", 1000)
    exact = rank_laws.wilcoxon_law.__wrapped__(n)
    monkeypatch.setattr(rank_laws, "_EXACT_PAIRS", 0)
    quick = rank_laws.wilcoxon_law.__wrapped__(n)
    below = np.interp(quick.values[:-1], exact.values, exact.masses.cumsum())
    assert quick.masses.cumsum()[:-1] == pytest.approx(below, abs=1e-12)


def test_series_of_large_samples(monkeypatch):
    laws = {}
    for limit in (20_000, 10_000):
        monkeypatch.setattr(rank_laws, "_DIRECT", limit)
        laws[limit] = (
            rank_laws.mann_whitney_law.__wrapped__(10_001, 30_000),
            rank_laws.wilcoxon_law.__wrapped__(10_001),
        )
    for direct, series in zip(*laws.values(), strict=True):
        assert direct.masses.cumsum() == pytest.approx(series.masses.cumsum(), abs=1e-11)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_cells_only_make_pvalues_larger(monkeypatch, alternative):
    exact = rank_laws.wilcoxon_law.__wrapped__(200)
    monkeypatch.setattr(rank_laws, "_EXACT_PAIRS", 0)
    monkeypatch.setattr(rank_laws, "_CELLS", 512)
    coarse = rank_laws.wilcoxon_law.__wrapped__(200)
    noise = LatticeTulap(ranks.signed_rank_width(200), 2.0)
    for noisy in np.linspace(-4000, 20000, 60):
        true, rough = (law.pvalue(noisy, noise, alternative) for law in (exact, coarse))
        assert true <= rough <= true + 0.02


def test_laws_of_a_million_are_normal():
    """0.2 percent: the laws are not quite normal, the cells are rounded up."""
    deviation = math.sqrt(1e12 * 2e6 / 12)
    law = rank_laws.mann_whitney_law(1_000_000, 1_000_000)
    assert survival(law)[np.searchsorted(law.low, 2 * 1.96 * deviation)] == pytest.approx(
        stats.norm.sf(1.96), rel=2e-3
    )
    law = rank_laws.wilcoxon_law(1_000_000)
    deviation = math.sqrt(1e18 / 3)
    assert survival(law)[np.searchsorted(law.low, 2 * 1.96 * deviation)] == pytest.approx(
        stats.norm.sf(1.96), rel=2e-3
    )


def test_masses_are_probabilities():
    for law in (
        rank_laws.symmetry_law(5000, "ks"),
        rank_laws.symmetry_law(5000, "kuiper"),
        rank_laws.mann_whitney_law(5, 90_000),
        rank_laws.mann_whitney_law(3000, 500),
        rank_laws.wilcoxon_law(4000),
    ):
        assert law.masses.min() >= 0
        assert law.masses.sum() == pytest.approx(1, abs=1e-12)
        assert (law.low <= law.values).all()


def test_a_pvalue_is_never_zero():
    law = rank_laws.mann_whitney_law(30, 30)
    assert law.pvalue(1e12, LatticeTulap(60, 5.0), "greater") > 0
    assert law.pvalue(-1e12, LatticeTulap(60, 5.0), "greater") == 1


@pytest.mark.parametrize("sizes", [(10_001, 14_000), (400_000_000, 600_000_000)])
def test_many_rows_need_no_more_than_sums_of_powers(sizes):
    """A billion rows are read a slice at a time: their law must not hold a number for each."""
    n, m = sizes
    for law, variance in (
        (rank_laws.mann_whitney_law(n, m), n * m * (n + m + 1) / 3),
        (rank_laws.wilcoxon_law(n), 4 * n * (n + 1) * (2 * n + 1) / 6),
    ):
        deviation = math.sqrt(variance)
        for place in (-2.0, 0.5, 3.0):
            above = law.masses[law.values > place * deviation].sum()
            assert above == pytest.approx(stats.norm.sf(place), rel=0.02)
