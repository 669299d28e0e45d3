"""Null laws against enumeration, the specification's numbers, SciPy and simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy import stats
from scipy.special import kolmogorov

from privatest.core.privacy import Budget
from privatest.mechanisms.lattice import noise_law
from privatest.methods import ks as null_laws
from privatest.methods import ks as one_sample_laws
from privatest.methods.ks import kuiper_cdf, kuiper_limit, one_sample_law, two_sample_law
from privatest.numerics.ecdf import LATTICE, one_sample, one_sample_width, two_sample
from privatest.numerics.laws import Law, continuous_law, lattice_tulap, simulated_law


def survival(law):
    """P(T >= value) at each value."""
    return law.masses[::-1].cumsum()[::-1]


def enumerated(n, m, statistic):
    """All values of J with their probabilities."""
    order = np.arange(n + m, dtype=float)
    values = [
        two_sample(order[list(chosen)], np.delete(order, chosen), statistic, np.arange(n + m))
        for chosen in combinations(range(n + m), n)
    ]
    return np.array(values)


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        ("ks", [1, 1, 0.87301587, 0.35714286, 0.07936508, 0.00793651]),
        ("kuiper", [1, 1, 0.99206349, 0.75396825, 0.27777778, 0.03968254]),
    ],
)
def test_published_two_sample_laws(statistic, expected):
    law = two_sample_law(statistic, 5, 5)
    np.testing.assert_array_equal(law.values, 5 * np.arange(6))
    np.testing.assert_allclose(survival(law), expected, atol=5e-9)


@pytest.mark.parametrize("pooled", [[0, 0, 0, 0, 0], [0, 0, 0, 0, 1], [2, 1, 1, 2, 3]])
@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_ties_broken_by_labels_leave_the_law_as_it_is(statistic, pooled):
    """All samples and labels, each as likely as any other: no chance is involved."""
    data, everything = np.array(pooled, dtype=float), range(5)
    found = np.array(
        [
            two_sample(data[list(chosen)], np.delete(data, chosen), statistic, np.array(labels))
            for chosen in combinations(everything, 2)
            for labels in permutations(everything)
        ]
    )
    law = two_sample_law(statistic, 2, 3)
    shares = [np.mean(found == value) for value in law.values]
    np.testing.assert_allclose(law.masses, shares, atol=1e-12)
    assert sum(shares) == pytest.approx(1)


@pytest.mark.parametrize("sizes", [(2, 2), (6, 6), (4, 6), (3, 7), (5, 7), (2, 9), (8, 6)])
@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_two_sample_laws_by_enumeration(sizes, statistic):
    values = enumerated(sizes[0], sizes[1], statistic)
    law = two_sample_law(statistic, *sizes)
    exact = [np.mean(values >= value) for value in law.values]
    np.testing.assert_allclose(survival(law), exact, atol=3e-14)
    assert law.values[-1] == sizes[0] * sizes[1]


@pytest.mark.parametrize("sizes", [(2, 2), (6, 6), (4, 6), (5, 7), (2, 9), (8, 6)])
@pytest.mark.parametrize("side", ["greater", "less"])
def test_one_sided_laws_by_enumeration(sizes, side):
    n, m = sizes
    order = np.arange(n + m, dtype=float)
    values = np.array(
        [
            two_sample(order[list(chosen)], np.delete(order, chosen), "ks", np.arange(n + m), side)
            for chosen in combinations(range(n + m), n)
        ]
    )
    law = two_sample_law("ks", n, m, one_sided=True)
    exact = [np.mean(values >= value) for value in law.values]
    np.testing.assert_allclose(survival(law), exact, atol=3e-14)


@pytest.mark.parametrize("sizes", [(20, 21), (40, 60), (30, 3000), (200, 300)])
def test_one_sided_limit_is_above_the_exact_law(sizes):
    n, m = sizes
    step, unit = math.gcd(n, m), math.sqrt(n * m * (n + m))
    thresholds = np.unique(np.ceil(np.linspace(0.1, 3, 60) * unit / step)).astype(np.int64) * step
    thresholds = thresholds[thresholds <= n * m]
    far = math.ceil(5 * unit / step) * step
    below = null_laws._ks_walk(n, m, thresholds, step, least=far)
    assert np.all(1 - below <= np.exp(-2 * np.square(thresholds / unit)) + 1e-12)
    large = two_sample_law("ks", 3000, 4000, one_sided=True)
    at = 1.2239 * math.sqrt(3000 * 4000 * 7000)
    assert large.masses[large.values >= at].sum() == pytest.approx(0.05, abs=1e-3)


@pytest.mark.parametrize("n", [2, 7, 64, 70, 400, 2000])
def test_one_sided_law_of_one_sample(n):
    """Birnbaum and Tingey's sum, in exact fractions."""
    law = one_sample_law("ks", n, one_sided=True)
    for share in (0.3, 0.8, 1.3):
        d = Fraction(round(share * math.sqrt(n) * 1000), 1000 * n)
        if d >= 1:
            continue
        j = np.arange(math.floor(n * (1 - d)) + 1)
        terms = [
            math.log(math.comb(n, k))
            + (n - k) * math.log(1 - d - Fraction(int(k), n))
            + (k - 1) * math.log(d + Fraction(int(k), n))
            for k in map(int, j)
            if 1 - d - Fraction(k, n) > 0
        ]
        exact = float(d) * float(np.exp(terms).sum())
        found = law.masses[law.values >= float(d) * n].sum()
        if n <= 1000:
            assert found == pytest.approx(exact, abs=law.error + 1.5e-3)  # half a cell
        else:  # a bound, which is 1 where it is no theorem
            assert exact <= found <= max(1.04 * exact + 1.5e-3, exact > 0.45)


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_thresholds_between_which_end_points_are_upper(monkeypatch, statistic):
    exact = two_sample_law.__wrapped__(statistic, 9, 17)
    monkeypatch.setattr(null_laws, "_MOST_THRESHOLDS", 10)
    coarse = two_sample_law.__wrapped__(statistic, 9, 17)
    assert len(coarse.values) < len(exact.values)
    noise = lattice_tulap(17, Budget(1))
    for noisy in np.linspace(0, 153, 20):
        low, high = exact.pvalue(noisy, noise), coarse.pvalue(noisy, noise)
        assert low <= high * (1 + 1e-12)
        assert high <= 1.2 * low


@pytest.mark.parametrize("n", [30, 1000])
def test_equal_sizes_agree_with_the_walk_and_scipy(n):
    for statistic, walk in (("ks", null_laws._ks_walk), ("kuiper", null_laws._kuiper_walk)):
        law = two_sample_law(statistic, n, n)
        some = np.unique(np.linspace(0.6, 2.4, 8) * math.sqrt(n / 2) // 1).astype(np.int64) + 1
        below = walk(n, n, some * n, n) if n < 100 else None
        if below is not None:
            np.testing.assert_allclose(survival(law)[some], 1 - below, atol=1e-12)
    law = two_sample_law("ks", n, n)
    for k in (n // 20 + 1, n // 10):
        x = np.arange(n, dtype=float)
        exact = stats.ks_2samp(x, x + k - 0.5, method="exact")
        assert round(exact.statistic * n) == k
        assert survival(law)[k] == pytest.approx(exact.pvalue, rel=1e-9)


@pytest.mark.parametrize("sizes", [(20, 21), (40, 80), (40, 60), (30, 3000), (50, 50), (200, 200)])
def test_limit_law_is_above_the_exact_one(sizes):
    n, m = sizes
    step, unit = math.gcd(n, m), math.sqrt(n * m * (n + m))
    thresholds = np.unique(np.ceil(np.linspace(0.3, 3, 60) * unit / step)).astype(np.int64) * step
    thresholds = thresholds[thresholds <= n * m]
    for walk, limit in (
        (null_laws._ks_walk, kolmogorov),
        (null_laws._kuiper_walk, kuiper_limit),
    ):
        excess = 1 - walk(n, m, thresholds, step) - limit(thresholds / unit)
        assert excess.max() <= null_laws._LIMIT_ERROR / m + 1e-12


def test_published_pvalue_of_two_samples():
    law = two_sample_law("ks", 5, 5)
    assert law.pvalue(4.3 * 5, lattice_tulap(5, Budget(1))) == pytest.approx(0.09632468, abs=5e-9)


def test_large_sizes_and_caches():
    law = two_sample_law("ks", 10**6, 10**6)
    assert law is two_sample_law("ks", 10**6, 10**6)
    at = 1.358 * math.sqrt(2 * 1e18)
    assert law.masses[law.values >= at].sum() == pytest.approx(kolmogorov(1.358), abs=2e-4)
    uneven = two_sample_law("kuiper", 10**6, 3 * 10**6)
    assert 0 < uneven.error < 1e-6
    assert uneven.masses.sum() == pytest.approx(1)


# --- one sample ------------------------------------------------------------------------------


def test_published_kuiper_values():
    assert kuiper_cdf(3, 0.8, 2)[1] == pytest.approx(0.42666667, abs=5e-9)  # v = .6
    assert kuiper_cdf(10, 0.0, 5)[4] == pytest.approx(0.6872208, abs=5e-8)  # v = .4


@pytest.mark.parametrize(("mechanism", "expected"), [("tulap", 0.052390), ("laplace", 0.052723)])
def test_published_pvalue_of_one_sample(mechanism, expected):
    law = one_sample_law("ks", 100)
    noise = noise_law(one_sample_width(100), Budget("0.5"), mechanism)
    assert law.scaled(LATTICE).pvalue(15 * LATTICE, noise) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize("n", [2, 3, 5, 20, 100, 140, 1000])
def test_ks_is_kstwo(n):
    law = one_sample_law("ks", n)
    x = law.values / math.sqrt(n)
    found, error = one_sample_laws._ks(x, n)
    chosen = np.linspace(50, len(x) - 2, 40).astype(int)
    exact = stats.kstwo.sf(x[chosen] / math.sqrt(n), n)
    np.testing.assert_allclose(found[chosen], exact, atol=error)


@pytest.mark.parametrize("one_sided", [False, True])
def test_massarts_bound_is_above_the_exact_law_and_near_it(monkeypatch, one_sided):
    """With the mass of cells as it is put on points, and down to where it matters."""
    monkeypatch.setattr(one_sample_laws, "_EXACT_KS", 100)
    for n, most in ((150, 1.13), (1000, 1.05)):
        law = one_sample_law.__wrapped__("ks", n, one_sided=one_sided)
        x = law.values / math.sqrt(n)
        above = law.masses[::-1].cumsum()[::-1]  # P(value >= x)
        chosen = np.linspace(1, len(x) - 2, 200).astype(int)
        exact = stats.ksone if one_sided else stats.kstwo
        survival = exact.sf(x[chosen] / math.sqrt(n), n)
        assert (above[chosen] >= survival).all()
        matters = (survival < 0.2) & (survival > 0.01)
        assert (above[chosen] <= most * survival)[matters].all()
        end = x[-2]  # a cell below the last point, beyond which nothing is known but the bound
        assert law.error == pytest.approx((1 if one_sided else 2) * math.exp(-2 * end**2), rel=1e-9)


def test_kuipers_limit_is_as_good_as_it_says(monkeypatch):
    monkeypatch.setattr(one_sample_laws, "_EXACT_KUIPER", 100)
    x = np.linspace(0.3, 3, 60)
    approximate, error = one_sample_laws._kuiper(x, 400)
    monkeypatch.undo()
    exact, _ = one_sample_laws._kuiper(x, 400)
    assert error == pytest.approx(0.3 / 400)
    assert 3e-4 < np.abs(exact - approximate).max() <= error


@pytest.mark.parametrize("n", [2, 5, 50, 10_000])
def test_cvm_is_what_scipy_computes(n):
    u = np.random.default_rng(n).beta(1.5, 1, size=n if n < 100 else 40)
    u = u if n < 100 else np.clip(np.arange(0.5, n) / n + 0.005, 0, 1)
    expected = stats.cramervonmises(u, "uniform")
    x = np.array([one_sample(u, "cvm") / math.sqrt(n)])
    found, _ = one_sample_laws._cvm(x, n)
    assert found[0] == pytest.approx(expected.pvalue, abs=2e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("statistic", ["ks", "kuiper", "cvm", "wasserstein"])
@pytest.mark.parametrize("n", [2, 5, 21, 33, 200])
def test_laws_against_simulation(statistic, n):
    """8000 draws; correct laws fail with probability about 1e-6 at each of three levels."""
    rng = np.random.default_rng([n, len(statistic)])
    draws = np.array([one_sample(u, statistic) for u in rng.random((8000, n))])
    law = one_sample_law(statistic, n)
    upper = survival(law) + law.error
    for level in (0.01, 0.05, 0.5):
        if law.error > level:  # Cramér-von Mises of two or three values says so little
            continue
        at = law.values[np.argmax(upper <= level)]
        rate = np.mean(draws >= at)
        wide = 5 * math.sqrt(level * (1 - level) / len(draws))
        assert rate <= level + wide
        if statistic != "wasserstein" and n > 2:
            assert rate >= level - wide - 0.03 * law.error * n**2 - 0.01 * level


def test_wasserstein_quantile_of_the_specification():
    law = one_sample_law("wasserstein", 200)
    at = law.values[np.argmax(survival(law) <= 0.05)] / math.sqrt(200)
    assert at == pytest.approx(0.583, abs=0.003)


# --- p-values --------------------------------------------------------------------------------


def test_noise_by_statistic_and_budget():
    assert noise_law(7, Budget(1), "auto").width == 7
    assert noise_law(7, Budget(5), "auto").width == 1
    assert noise_law(7, Budget(5), "auto", step=4).width == 7
    assert noise_law(7, Budget(5), "auto", step=3).width == 1
    assert noise_law(7, Budget(5, "1e-6"), "auto").width == 7
    laplace = noise_law(7, Budget(1), "laplace")
    assert laplace.epsilon <= 1 / 7
    assert laplace.survival(21.0) == pytest.approx(0.5 * math.exp(-3), rel=1e-2)


def test_pvalues_are_never_zero_nor_above_one():
    law = continuous_law(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 0.0)
    np.testing.assert_allclose(law.masses, [0.5, 0.5])
    noise = lattice_tulap(1, Budget(2))
    assert law.pvalue(1e9, noise) > 0
    assert law.pvalue(-1e9, noise) == pytest.approx(1)
    assert Law(law.values, law.masses, 0.5).pvalue(-1e9, noise) == 1


def level_at(alpha, law_of_draws, noise):
    """P(p <= alpha), exactly: the statistic and two draws are uniform on 0, 5 and 10."""
    rates = []
    for statistic, *draws in product((0.0, 5.0, 10.0), repeat=3):
        law, low, high = law_of_draws(np.array(draws)), -100.0, 100.0
        for _ in range(60):  # the p-value falls with the noisy statistic
            middle = (low + high) / 2
            low, high = (middle, high) if law.pvalue(middle, noise) > alpha else (low, middle)
        rates.append(float(noise.survival(high - statistic)))
    return np.mean(rates)


@pytest.mark.parametrize("alpha", [0.34, 0.4, 0.5, 0.7, 0.9])
def test_two_simulations_give_a_valid_pvalue(alpha):
    noise = lattice_tulap(3, Budget(1))
    assert level_at(alpha, simulated_law, noise) <= alpha


def test_draws_alone_would_not():
    noise = lattice_tulap(3, Budget(1))
    assert level_at(0.05, lambda draws: Law(draws, np.full(2, 0.5)), noise) > 0.07
