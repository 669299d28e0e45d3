"""Test of tests and SARRM: published values, exact level, exact privacy."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.mechanisms.lattice import PublicNull, lattice_outcome
from privatest.mechanisms.subsample import (
    COIN,
    SarrmParameters,
    rejections_width,
    sarrm_loss,
    sarrm_parameters,
    sarrm_rejects,
)
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import LatticeTulap, binomial_law, lattice_tulap, tulap_cdf

# epsilon, alpha, k, p, alpha_0
SARRM_TABLE = [
    (0.1, 0.05, 33, 0.600097, 0.004952),
    (0.5, 0.05, 6, 0.724718, 0.026181),
    (1.0, 0.05, 3, 0.816324, 0.065827),
    (1.0, 0.01, 5, 0.824113, 0.027907),
    (5.0, 0.05, 1, 0.995525, 0.132057),
]


class Fixed(SimulatedNoise):
    """Noise that a test chooses."""

    def __init__(self, discrete=0, uniform=0, coin=None):
        super().__init__(0)
        self.discrete, self.uniform, self.coin, self.thrown = discrete, uniform, coin, 0

    def discrete_laplace(self, scale):
        return self.discrete

    def below(self, limit):
        self.thrown += 1
        if self.coin is None:  # an integer of the noise, or the middle of its cell
            return self.uniform if limit < COIN else COIN // 2
        return self.coin


def laplace_mass(j: int, epsilon: float) -> float:
    return math.tanh(epsilon / 2) * math.exp(-epsilon * abs(j))


# --- test of tests ---------------------------------------------------------------------------


def tot_pvalue(noisy: float, n_subsets: int, sub_alpha: float, noise: LatticeTulap) -> float:
    """The p-value without what is added for rounding."""
    law = binomial_law(n_subsets, sub_alpha)
    found = law.pvalue(noisy, noise)
    return found if found == 1 else found - law.error


def release(rejections, n_subsets, adjacency, budget, noise):
    """The noisy count of subsets of level 1/4, and its p-value."""
    found = lattice_outcome(
        rejections,
        PublicNull(binomial_law(n_subsets, 0.25), rejections_width(n_subsets, adjacency)),
        mechanism="tulap",
        budget=budget,
        alpha=0.05,
        noise=noise,
        facts={"adjacency": adjacency, "method": "", "null_hypothesis": "", "sizes": {}},
    )
    return found.statistic, found.pvalue


@pytest.mark.parametrize(("rejections", "expected"), [(7, 0.1622254056), (12, 0.0027131812)])
def test_published_pvalues(rejections, expected):
    found = tot_pvalue(rejections + 0.3, 20, 0.25, LatticeTulap(1, 1.0))
    assert found == pytest.approx(expected, abs=5e-11)


@pytest.mark.parametrize(("size", "level"), [(1, 0.5), (20, 0.25), (54, 0.001), (5000, 0.97)])
def test_pvalue_uses_the_binomial_law(size, level):
    masses = stats.binom.pmf(np.arange(size + 1), size, level)
    for noisy in (-3.2, 0.4, size * level, size + 1.7):
        expected = masses @ tulap_cdf((np.arange(size + 1) - noisy) / 2, 0.8)
        found = tot_pvalue(noisy, size, level, LatticeTulap(2, 0.8))
        assert found == pytest.approx(expected, abs=1e-12)


def test_pvalue_falls_with_the_noisy_count():
    values = [tot_pvalue(z, 30, 0.25, LatticeTulap(1, 0.5)) for z in np.linspace(-40, 70, 200)]
    assert values == sorted(values, reverse=True)
    assert values[0] > 1 - 1e-8
    assert values[-1] < 1e-8


def test_pvalue_uses_equation_22():
    # one subset of level 1/2 rejects or not: two terms
    b, z = math.exp(-0.7), 1.4

    def cdf(x):
        near = round(x)
        return b**-near / (1 + b) * (b + (x - near + 0.5) * (1 - b))

    found = tot_pvalue(z, 1, 0.5, LatticeTulap(1, 0.7))
    assert found == pytest.approx(0.5 * (cdf(0 - z) + cdf(1 - z)), rel=1e-13)


def test_release_is_the_noisy_count_and_its_pvalue():
    noisy, pvalue = release(7, 20, "one", Budget(1), Fixed(discrete=2))
    assert noisy == pytest.approx(9, abs=1e-12)
    exact = tot_pvalue(noisy, 20, 0.25, LatticeTulap(1, 1.0))
    assert exact < pvalue < exact + 2e-11


def test_a_delta_sharpens_the_law_of_the_noise():
    budgets = (Budget(1), Budget(1, 0.1))
    values = [release(12, 20, "one", budget, Fixed())[1] for budget in budgets]
    assert values[1] < values[0]
    assert values[1] == pytest.approx(tot_pvalue(12, 20, 0.25, lattice_tulap(1, budgets[1])))


@pytest.mark.parametrize(
    ("adjacency", "rows", "subsets", "expected"),
    [("one", 1, 9, 1), ("both", 1, 9, 2), ("one", 5, 9, 5), ("both", 5, 9, 9), ("row", 2, 9, 2)],
)
def test_sensitivity_of_the_count(adjacency, rows, subsets, expected):
    assert rejections_width(subsets, adjacency, rows) == expected


def log_ratio(first: float, second: float) -> float:
    return abs(math.log(first) - math.log(second))


@pytest.mark.privacy
@pytest.mark.parametrize("adjacency", ["one", "both"])
def test_release_is_private_and_not_more_than_asked(adjacency):
    # Every draw of the integer noise, with its probability: the exact law.
    epsilon, subsets, reach = 0.9, 6, 30
    width = rejections_width(subsets, adjacency)

    def law(rejections: int) -> dict[tuple[float, float], float]:
        masses: dict[tuple[float, float], float] = defaultdict(float)
        for discrete in range(-reach, reach + 1):
            for uniform in range(width):
                noise = Fixed(discrete, uniform)
                released = release(rejections, subsets, adjacency, Budget(epsilon), noise)
                masses[released] += laplace_mass(discrete, epsilon) / width
        return masses

    laws = [law(rejections) for rejections in range(subsets + 1)]
    losses = [
        log_ratio(laws[a][released], laws[b][released])
        for a in range(subsets + 1)
        for b in range(a + 1, min(a + width, subsets) + 1)
        for released in laws[a].keys() & laws[b].keys()
    ]
    assert max(losses) <= epsilon + 1e-9
    assert max(losses) > epsilon - 1e-9  # and the budget is used
    # one step further is not covered, so that a wrong sensitivity would be seen
    further = [
        log_ratio(laws[0][released], laws[width + 1][released])
        for released in laws[0].keys() & laws[width + 1].keys()
    ]
    assert max(further) > epsilon + 0.1


@pytest.mark.privacy
def test_cells_of_the_pvalue_are_private():
    epsilon, subsets, levels = 1.0, 20, np.arange(1, 100) / 100
    edges = [invert(level, subsets, epsilon) for level in levels]
    for rejections in range(subsets):
        first, second = (
            np.diff(tulap_cdf(np.array([-1e3, *edges[::-1], 1e3]) - count, epsilon))
            for count in (rejections, rejections + 1)
        )
        assert np.abs(np.log(first / second)).max() <= epsilon + 1e-9


def invert(level: float, subsets: int, epsilon: float) -> float:
    low, high = -50.0, 80.0
    for _ in range(100):
        middle = (low + high) / 2
        above = tot_pvalue(middle, subsets, 0.25, LatticeTulap(1, epsilon)) > level
        low, high = (middle, high) if above else (low, middle)
    return high


# --- SARRM -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "alpha", "k", "truth", "sub_alpha"), SARRM_TABLE)
def test_published_parameters(epsilon, alpha, k, truth, sub_alpha):
    found = sarrm_parameters(epsilon, alpha)
    assert found.k == k
    assert found.n_subsets == 2 * k + 1
    assert found.truth == pytest.approx(truth, abs=6e-7)
    assert found.sub_alpha == pytest.approx(sub_alpha, abs=6e-7)


@pytest.mark.parametrize(("epsilon", "alpha", "k", "truth", "sub_alpha"), SARRM_TABLE)
def test_parameters_give_the_level_and_no_more(epsilon, alpha, k, truth, sub_alpha):
    found = sarrm_parameters(epsilon, alpha)
    turned = 1 - found.truth + (2 * found.truth - 1) * found.sub_alpha
    level = stats.binom.sf(k, 2 * k + 1, turned)
    assert alpha * (1 - 1e-6) < level <= alpha


def test_a_smaller_k_would_not_serve():
    for epsilon, alpha, least in [(0.1, 0.05, 0.0025), (1.0, 0.01, 0.1), (0.02, 0.2, 0.005)]:
        k = sarrm_parameters(epsilon, alpha, least).k
        assert sarrm_parameters(epsilon, alpha, k=k).sub_alpha >= least
        assert sarrm_parameters(epsilon, alpha, k=k - 1).sub_alpha < least


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0, 60.0])
def test_sub_alpha_grows_with_k(epsilon):
    # bisection for k rests on it
    for alpha in (1e-6, 0.001, 0.05, 0.3, 0.49):
        values = [sarrm_parameters(epsilon, alpha, k=k).sub_alpha for k in (*range(1, 40), 500)]
        assert values == sorted(values)
    for alpha in (0.6, 0.95):
        assert all(sarrm_parameters(epsilon, alpha, k=k).sub_alpha >= 0.5 for k in range(1, 40))


def majority(ones: int, k: int, flips: int) -> Fraction:
    """P(more than k ones are left) if ``ones`` of 2k + 1 sub-tests reject; exact."""
    flip = Fraction(flips, COIN)
    law = [Fraction(1)]
    for index in range(2 * k + 1):
        up = 1 - flip if index < ones else flip
        stay, rise = [mass * (1 - up) for mass in law], [mass * up for mass in law]
        law = [a + b for a, b in zip([*stay, Fraction(0)], [Fraction(0), *rise], strict=True)]
    return sum(law[k + 1 :], Fraction(0))


def log_of(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)  # may be as small as 2^-53


@pytest.mark.privacy
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0, 54.0])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_decision_is_private_for_every_vector_of_rejections(epsilon, k):
    # the law of the decision depends on how many reject only, not on which
    flips = sarrm_parameters(epsilon, 0.05, k=k).flips
    rejects = [majority(ones, k, flips) for ones in range(2 * k + 2)]
    losses = [
        abs(log_of(first) - log_of(second))
        for law in (rejects, [1 - mass for mass in rejects])
        for first, second in pairwise(law)
    ]
    assert max(losses) <= epsilon
    assert max(losses) == pytest.approx(sarrm_loss(k, flips / COIN), rel=1e-9)
    assert flips == 1 or max(losses) > epsilon * (1 - 1e-6)  # the budget is used


@pytest.mark.privacy
def test_a_rarer_flip_is_not_private():
    found = sarrm_parameters(1.0, 0.05)
    flips = round(found.flips * 0.999)
    assert log_of(majority(1, found.k, flips) / majority(0, found.k, flips)) > 1.0


def test_loss_is_equation_24():
    for k, flip in [(1, 0.3), (3, 0.18), (10, 0.4), (40, 0.45)]:
        one_rejects = flip * stats.binom.sf(k, 2 * k, flip)
        one_rejects += (1 - flip) * stats.binom.sf(k - 1, 2 * k, flip)
        none_rejects = stats.binom.sf(k, 2 * k + 1, flip)
        assert sarrm_loss(k, flip) == pytest.approx(math.log(one_rejects / none_rejects), rel=1e-9)


def test_the_printed_coin_breaks_the_level():
    # Algorithm 3 prints p = e^eps/(1 + e^eps); with alpha_0 from (24) and (25) that gives .125
    found = sarrm_parameters(1.0, 0.05)
    printed = math.e / (1 + math.e)
    turned = 1 - printed + (2 * printed - 1) * found.sub_alpha
    assert stats.binom.sf(found.k, found.n_subsets, turned) == pytest.approx(0.125, abs=5e-4)


def test_extreme_budgets():
    large = sarrm_parameters(1000.0, 0.05)
    assert (large.k, large.flips) == (1, 1)
    assert large.truth < 1
    small = sarrm_parameters(1e-4, 0.05)
    assert sarrm_loss(small.k, small.flips / COIN) <= 1e-4
    assert 0.0025 <= small.sub_alpha < 0.0026


def test_majority_after_coins():
    parameters = SarrmParameters(k=2, flips=10, sub_alpha=0.1)
    kept, turned = Fixed(coin=10), Fixed(coin=9)
    assert sarrm_rejects([True, True, True, False, False], parameters, kept)
    assert not sarrm_rejects([True, True, False, False, False], parameters, kept)
    assert not sarrm_rejects([True, True, True, False, False], parameters, turned)
    assert sarrm_rejects([True, True, False, False, False], parameters, turned)
    assert kept.thrown == turned.thrown == 10  # one coin each, whatever the rejections are


def test_as_many_rejections_as_subsets():
    with pytest.raises(ParameterError, match="as many as there are subsets"):
        sarrm_rejects([True], SarrmParameters(2, 10, 0.1), Fixed())
