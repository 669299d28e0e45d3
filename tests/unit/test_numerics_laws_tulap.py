"""The Tulap law and integer noise: the published values, the law that is drawn, its privacy."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest

from privatest.core.privacy import Budget
from privatest.mechanisms.lattice import noisy_integer
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.numerics.laws import LatticeTulap, Law, lattice_tulap, tulap_cdf

WIDTHS = [1, 2, 5, 6]
BUDGETS = [Budget(1), Budget("0.5", "0.01"), Budget(1, "0.2"), Budget(3, "1e-9")]


def test_published_values():
    np.testing.assert_allclose(
        tulap_cdf([-1.2, 0, 0.3, 2], 1.0),
        [0.14993904, 0.5, 0.63863515, 0.93233236],
        atol=5e-9,
    )


def integer_law(law: LatticeTulap) -> tuple[np.ndarray, np.ndarray]:
    """Every integer that the noise can be, near enough, with its exact mass."""
    reach = int(law.edge or 60 * law.width / law.epsilon) + 2 * law.width
    integers = np.arange(-reach, reach + 1)
    middle = (law.width - 1) // 2
    blocks = np.floor_divide(integers + middle, law.width)
    masses = np.exp(-law.epsilon * np.abs(blocks))
    if law.edge is not None:
        masses[np.abs(integers - 0.5 * (1 - law.width % 2)) >= law.edge] = 0
    return integers, masses / masses.sum()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_shift_by_the_width_costs_the_budget_and_no_more(width, budget):
    law = lattice_tulap(width, budget)
    _, masses = integer_law(law)
    epsilon, delta = budget.as_floats
    lost = [
        float(np.maximum(masses - math.exp(epsilon) * np.roll(masses, shift), 0).sum())
        for shift in range(-width, width + 1)
    ]
    assert max(lost) <= delta + 1e-13
    further = np.maximum(masses - math.exp(epsilon) * np.roll(masses, 2 * width), 0).sum()
    assert further > max(lost) + 1e-6 * (delta == 0)  # the width is really needed


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_what_is_drawn_has_the_stated_law(width, budget):
    """Seeded; a Kolmogorov-Smirnov test at 1e-5 guards against a wrong law."""
    law = lattice_tulap(width, budget)
    noise = SimulatedNoise(width)
    drawn = [noisy_integer(7, law=law, noise=noise) - 7 for _ in range(4000)]
    assert kstest(drawn, lambda x: 1 - law.survival(x)).pvalue > 1e-5
    if law.edge is not None:
        assert max(map(abs, drawn)) <= law.edge


def one_sided_mass(width: int, epsilon: str, edge: float) -> Fraction:
    """Share of the outermost ``width`` integers on the upper side, in exact arithmetic.

    e^-epsilon is a decimal of 60 digits; the rest are fractions of integers.
    """
    with localcontext() as context:
        context.prec = 60
        ratio = int((-Decimal(epsilon)).exp() * 10**60)
    shift = 0.5 * (1 - width % 2)
    top = math.ceil(edge + shift) - 1  # the largest integer that is drawn
    assert abs(top - shift) < edge <= abs(top + 1 - shift)
    middle, unit = (width - 1) // 2, 10**60
    powers = [unit]
    while len(powers) <= (top + middle) // width:
        powers.append(powers[-1] * ratio // unit)
    upper = [powers[(integer + middle) // width] for integer in range(width - middle, top + 1)]
    around = width * unit  # the integers of block 0
    outermost = ([unit] * width + upper)[-width:]
    return Fraction(sum(outermost), around + 2 * sum(upper))


@pytest.mark.parametrize("delta", ["0.2", "1e-3", "1e-9", "1e-12", "1e-15", "1e-17", "1e-18"])
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.5", "3", "40"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_cut_keeps_delta_however_small(width, epsilon, delta):
    edge = lattice_tulap(width, Budget(epsilon, delta)).edge
    assert edge is not None
    assert one_sided_mass(width, epsilon, edge) <= Fraction(delta)
    if edge > width:  # and no more is cut off than has to be
        assert one_sided_mass(width, epsilon, edge - 1) > Fraction(delta) * (1 - Fraction(1, 10**8))


def test_a_small_survival_keeps_its_digits():
    law = lattice_tulap(1, Budget(1))
    b = math.exp(-1)
    expected = b**50 * (b + (1 - b) / 2) / (1 + b)
    assert float(law.survival(50.0)) == pytest.approx(expected, rel=1e-12)
    assert float(law.survival(-50.0)) == 1


def test_secure_noise_too():
    law = lattice_tulap(3, Budget(1))
    drawn = [noisy_integer(0, law=law, noise=SecureNoise()) for _ in range(1500)]
    # drawn anew each time: false alarm 1e-9
    assert kstest(drawn, lambda x: 1 - law.survival(x)).pvalue > 1e-9


def test_a_pvalue_is_the_tail_of_the_sum():
    law = lattice_tulap(1, Budget(1))
    values, masses = np.array([0.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25])
    expected = sum(m * float(law.survival(1.3 - v)) for v, m in zip(values, masses, strict=True))
    assert Law(values, masses).pvalue(1.3, law) == pytest.approx(expected)
    # S = 20 subsets at .25, noise .3 on 7 (the test of tests): a published check value
    counts = np.arange(21.0)
    binomial = np.array([math.comb(20, k) * 0.25**k * 0.75 ** (20 - k) for k in range(21)])
    assert Law(counts, binomial).pvalue(7.3, law) == pytest.approx(0.1622254056, abs=5e-11)


@pytest.mark.parametrize("delta", ["0.4", "0.01", "1e-3"])
@pytest.mark.parametrize("width", [1, 2, 7])
def test_a_cut_does_not_make_drawing_hopeless(width, delta):
    """With a tiny epsilon nearly all draws were outside the edge: a request never ended."""
    law = lattice_tulap(width, Budget("1e-6", delta))
    assert law.edge is not None
    outside = 2 * float(tulap_cdf(-law.edge / width, law.epsilon))
    assert 1 - outside > 1 / 2500
    # a cut nearer to the middle than this one is, by so much, is still private
    assert float(law.survival(law.edge - width)) <= float(delta)
