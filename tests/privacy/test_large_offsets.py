"""Statistics far from 0: their p-values stay private, to the last digit of epsilon.

A float far from 0 has few digits left after the point. If a noisy statistic were rounded to
such a float before it is compared, the set of possible p-values would tell neighbours apart.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest.core.privacy import Budget, PermutationSensitivity
from privatest.mechanisms.permutation import PVALUE_GRID, smoothed_decision, smoothed_pvalue
from privatest.methods.custom import permutation_test
from privatest.noise import SimulatedNoise


class Given(SimulatedNoise):
    """Noise of a given number of lattice steps; remembers the scale that was asked for."""

    def __init__(self):
        super().__init__(0)
        self.steps, self.scale = 0, 0.0

    def discrete_laplace(self, scale):
        self.scale = scale
        return self.steps


def first_steps(holds, furthest):
    """The smallest number of steps of noise for which ``holds``, by bisection."""
    low, high = -furthest, furthest
    assert holds(high)
    assert not holds(low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def log_mass(low, high, scale):
    """log P(low <= N < high), N discrete Laplace, in decimals of 50 digits; None: no limit."""
    with localcontext() as context:
        context.prec = 50
        rate = 1 / Decimal(scale)
        one = Decimal(1)
        whole = (1 + (-rate).exp()) / (one - (-rate).exp())  # the sum of all weights

        def upper(start):  # weights from start >= 0 upwards
            return (-rate * start).exp() / (one - (-rate).exp())

        def at_least(start):
            return upper(start) if start > 0 else whole - upper(1 - start)

        first = whole if low is None else at_least(low)
        mirrored = high is not None and high <= 0
        if mirrored:  # the tail below, so that nothing cancels
            mass = upper(1 - high) - (Decimal(0) if low is None else upper(1 - low))
        else:
            mass = first - (Decimal(0) if high is None else at_least(high))
        return float((mass / whole).ln())


def cell_law(statistics, sensitivity, epsilon, cells):
    """log P(p-value = c/10,000) for each c, by running the code on noise of every size."""
    noise = Given()
    common: dict[str, Any] = {"sensitivity": sensitivity, "budget": Budget(epsilon), "noise": noise}
    smoothed_pvalue(statistics, **common)
    spread = np.ptp(statistics / sensitivity.permuted) * (1 + 2 * epsilon)
    furthest = round((spread + 100) * 2.0**47)

    def edge(cell):
        def holds(steps):
            noise.steps = steps
            return round(smoothed_pvalue(statistics, **common) * PVALUE_GRID) <= cell

        return first_steps(holds, furthest)

    law = []
    for cell in cells:
        low = None if cell == PVALUE_GRID else edge(cell)
        high = None if cell == 1 else edge(cell - 1)
        law.append(log_mass(low, high, noise.scale))
    return np.array(law)


def neighbours(offset, unit, spread, count=40):
    """Two groups of statistics that move towards each other, the observed one away."""
    below = round(0.6 * count)
    steps = np.array([-spread] * (below + 1) + [spread] * (count - below), dtype=float)
    steps[0] = -spread + 1
    moves = np.where(steps < 0, 1.0, -1.0)
    moves[0] = -1.0
    first, second = offset + unit * steps, offset + unit * (steps + moves)
    for before, after in zip(first.tolist(), second.tolist(), strict=True):
        assert abs(Fraction(after) - Fraction(before)) == Fraction(unit)  # exactly as declared
    return first, second


OFFSETS = {
    "none": (0.0, 1.0),
    "below 2^52": (2.0**52 - 100, 0.5),
    "2^52": (2.0**52, 1.0),
    "2^53": (2.0**53, 2.0),
    "2^60": (2.0**60, 256.0),
    "-2^52": (-(2.0**52), 1.0),
    "1e300": (1e300, math.ulp(1e300)),
    "n epsilon of 1e7": (0.5, 2.0**-24),
    "tiny": (0.0, 2.0**-900),
}
CELLS = [1, 2, 3, 50, 1000, 2500, 4000, 5000, 6341, 7000, 9000, 9999, 10_000]


@pytest.mark.parametrize("epsilon", [0.5, 3])
@pytest.mark.parametrize(("offset", "unit"), OFFSETS.values(), ids=OFFSETS)
def test_no_cell_of_the_pvalue_loses_more_than_epsilon(offset, unit, epsilon):
    """Probabilities of the code's own cells, without sampling and without tolerance."""
    sensitivity = PermutationSensitivity(unit, unit)
    first, second = neighbours(offset, unit, spread=5)
    laws = [cell_law(each, sensitivity, epsilon, CELLS) for each in (first, second)]
    loss = np.abs(laws[0] - laws[1]).max()
    assert 0.8 * epsilon < loss <= epsilon


def test_the_laws_are_complete():
    statistics = 2.0**52 + np.array([0.0, 1, 1, 3])
    law = cell_law(statistics, PermutationSensitivity(1.0, 1.0), 1, [*range(1, 41)])
    below = cell_law(statistics, PermutationSensitivity(1.0, 1.0), 1, [40])
    assert law[-1] == below[0]
    noise = Given()
    common: dict[str, Any] = {
        "sensitivity": PermutationSensitivity(1.0, 1.0),
        "budget": Budget(1),
        "noise": noise,
    }
    smoothed_pvalue(statistics, **common)

    def holds(steps):
        noise.steps = steps
        return smoothed_pvalue(statistics, **common) <= 40 / PVALUE_GRID

    edge = first_steps(holds, 1 << 60)
    assert np.logaddexp.reduce(law) == pytest.approx(log_mass(edge, None, noise.scale), rel=1e-12)


@pytest.mark.parametrize(("offset", "unit"), OFFSETS.values(), ids=OFFSETS)
@pytest.mark.parametrize("alpha", [1e-12, 0.05, 0.5])
def test_a_decision_loses_no_more_than_epsilon(offset, unit, alpha):
    epsilon, laws = 0.5, []
    for moved in (0, 1):
        statistics = offset + unit * np.array([4.0 + moved, *[-moved] * 30])
        noise = Given()
        common: dict[str, Any] = {
            "sensitivity": PermutationSensitivity(unit, unit),
            "budget": Budget(epsilon),
            "noise": noise,
        }
        smoothed_decision(statistics, alpha, **common)

        def rejects(steps, statistics=statistics, noise=noise, common=common):
            noise.steps = steps
            return smoothed_decision(statistics, alpha, **common)

        edge = first_steps(rejects, 1 << 60)
        laws.append([log_mass(edge, None, noise.scale), log_mass(None, edge, noise.scale)])
    loss = np.abs(np.subtract(laws[0], laws[1])).max()
    assert 0.6 * epsilon < loss <= epsilon


@pytest.mark.parametrize("offset", [0.0, 2.0**52, 2.0**53 - 40], ids=["0", "2^52", "2^53"])
def test_the_set_of_pvalues_does_not_tell_neighbours_apart(offset):
    """A statistic of 2^52 + count, sensitivity 1, epsilon .5: once .998 against .021.

    E holds the p-values seen in 300 runs on one data set; both sets are then tried 300 times
    anew. 5 standard errors: false alarm below 1e-6.
    """

    def count(x, y):
        return offset + x.sum()

    x, y = np.zeros(12), np.zeros(10)  # all permutations alike, whatever the secret order
    other = np.eye(12)[0]
    noise, runs = SimulatedNoise(1), 300

    def pvalues(x):
        return [
            permutation_test(
                (x, y),
                count,
                sensitivity=1,
                epsilon=0.5,
                bounds=(0, 1),
                n_permutations=30,
                rng=5,
                noise=noise,
                check_sensitivity=False,
            ).pvalue
            for _ in range(runs)
        ]

    seen = set(pvalues(x))
    first, second = (np.mean([p in seen for p in pvalues(each)]) for each in (x, other))
    error = 5 * math.sqrt(0.25 / runs) * (1 + math.exp(0.5))
    assert first <= math.exp(0.5) * second + error
    assert second <= math.exp(0.5) * first + error
