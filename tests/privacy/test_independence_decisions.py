"""The exact privacy loss of swaps, of trends and of several tests with one draw of noise.

Order by order: what is computed is the loss for each order of the rows, which is more than the
test needs, as its order is secret.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.core.privacy import Budget, PermutationSensitivity
from privatest.data.schema import Domain
from privatest.mechanisms import permutation
from privatest.mechanisms.permutation import (
    PVALUE_GRID,
    LevelShare,
    any_rejects,
    noise_scale,
    survival_mean,
    two_sided_result,
)
from privatest.noise import SimulatedNoise
from privatest.numerics.dependence import (
    largest,
    signed_covariance_sensitivity,
    swapped_covariance_sensitivity,
    swapped_hsic_sensitivity,
    trends,
    values,
)
from privatest.numerics.features import additive
from tests.privacy import exact
from tests.privacy.exact import PermutedStatistics
from tests.privacy.harness import audit, caught
from tests.sensitivity.cross_moments import permuted_covariances, swapped_covariances, swapped_hsic

LINE = Domain((0,))
FEATURES = additive("gaussian", LINE)
CELLS = np.unique(np.geomspace(1, PVALUE_GRID, 60).round())
CELLS = np.unique(np.append(CELLS, PVALUE_GRID + 1 - CELLS))
ROUNDING = 1e-9


def identity_first(n):
    """All permutations of n rows, the identity twice: as observed and as one of them."""
    return np.array([np.arange(n), *itertools.permutations(range(n))])


def all_signs(n):
    return np.array([np.ones(n // 2), *itertools.product((1.0, -1.0), repeat=n // 2)])


def trend(x, y):
    def on(rows):
        return trends(rows, LINE, 1.0)

    def flat(sums):
        return sums.reshape(len(sums), -1)

    return permuted_covariances(x, y, (on, on), identity_first(len(x)), flat)[0]


def covariance_of_swaps(x, y):
    def on(rows):
        return values(rows, LINE)

    return swapped_covariances(x, y, (on, on), all_signs(len(x)), largest)[0]


def hsic_of_swaps(x, y):
    found, _ = swapped_hsic(x, y, (FEATURES, FEATURES), all_signs(len(x)))
    return found[0]


CASES: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "trend": (trend, signed_covariance_sensitivity, (3, 4)),
    "covariance of swaps": (covariance_of_swaps, swapped_covariance_sensitivity, (4, 5)),
    "hsic of swaps": (
        hsic_of_swaps,
        lambda n: swapped_hsic_sensitivity(FEATURES.spreads[0], FEATURES.spreads[0], n),
        (4,),
    ),
}


def neighbours(statistic, n):
    """All pairs of neighbouring statistics of rows at corners (three points a side if n < 4)."""
    side = (0.0, 0.5, 1.0) if n < 4 else (0.0, 1.0)
    grid = list(itertools.product(side, side))
    found = {}
    for data in itertools.product(grid, repeat=n):
        rows = np.array(data)
        found[data] = tuple(np.round(statistic(rows[:, :1], rows[:, 1:]), 12))
    pairs = set()
    for data, first in found.items():
        for place, row in itertools.product(range(n), grid):
            second = found[(*data[:place], row, *data[place + 1 :])]
            if first != second:
                pairs.add((min(first, second), max(first, second)))
    return sorted(pairs)


def drawn(statistics, counts):
    """The statistics of a test whose random draws were these, so often each."""
    found = np.array(statistics)
    kept = counts > 0
    return PermutedStatistics(float(found[0]), found[1:][kept], counts[kept])


def draws(size, rng):
    """How often each permutation was drawn: all once, one alone many times, and at random."""
    one = np.zeros(size)
    one[rng.integers(size)] = 1e5
    return np.ones(size), one, rng.choice([0.0, 1.0, 30.0], size) + one


@pytest.mark.parametrize("name", CASES)
def test_no_small_data_set_loses_more_than_epsilon(name):
    """Whatever was drawn; p-values too."""
    statistic, sensitivity, sizes = CASES[name]
    for n in sizes:
        bound, epsilon, rng = sensitivity(n), 1.0, np.random.default_rng(n)
        scales = [noise_scale(bound, epsilon, release) for release in ("decision", "pvalue")]
        most = [0.0, 0.0]
        pairs = neighbours(statistic, n)
        chosen = rng.permutation(len(pairs))[:600]  # all, but for the trend of three rows
        for first, second in (pairs[index] for index in chosen):
            for counts in draws(len(first) - 1, rng):
                laws = drawn(first, counts), drawn(second, counts)
                lost = [exact.decision_loss(*laws, scales[0], alpha) for alpha in (0.02, 0.5)]
                most[0] = max(most[0], *lost)
                lost = [exact.pvalue_loss(*laws, scales[1], PVALUE_GRID, CELLS)]
                most[1] = max(most[1], *lost)
        assert max(most) <= epsilon + ROUNDING
        # features of a line do not stand at equal distances, which the bound allows for
        assert most[0] > (0.8 if name == "hsic of swaps" else 0.999) * epsilon
        assert most[1] > 0.7 * epsilon


def test_a_trend_with_less_noise_would_exceed_epsilon():
    """A pair from (0, 0) to (1, 1), and a permutation that parts it from rows at 0."""
    x = y = np.array([[0.0], [0.0], [0.0], [1.0]])
    other = np.array([[1.0], [0.0], [0.0], [1.0]])
    first, second = trend(x, y), trend(other, other)
    orders = identity_first(4)[1:]
    counts = np.where((orders[:, :3] == [1, 2, 0]).all(axis=1), 1e5, 0.0)
    laws = drawn(first, counts), drawn(second, counts)
    scale = noise_scale(signed_covariance_sensitivity(4), 1.0, "decision")
    assert exact.decision_loss(*laws, scale, 0.02) == pytest.approx(1, abs=1e-3)
    assert exact.decision_loss(*laws, 0.95 * scale, 0.02) > 1.04


# --- several tests, one draw -----------------------------------------------------------------


def edge(tests, epsilon):
    """Above which noise, in scales, some test rejects, each at its level."""
    found = []
    for law, bound, level in tests:
        scale = noise_scale(bound, epsilon, "decision")
        found.append(float(law.quantiles(np.array([level]), scale)[0] - law.observed) / scale)
    return min(found)


def test_several_tests_with_one_draw_lose_no_more_than_epsilon():
    """A trend and its mirror image beside a maximum of covariances: all small neighbours."""
    n, epsilon, rng = 4, 1.0, np.random.default_rng(0)
    grid = list(itertools.product((0.0, 1.0), repeat=2))
    signed, norm = signed_covariance_sensitivity(n), PermutationSensitivity(3 / 16, 6 / 16)

    def tests(data, counts):
        rows = np.array(data)
        found = trend(rows[:, :1], rows[:, 1:])
        parts = ((found, signed, 0.01), (-found, signed, 0.01), (np.abs(found), norm, 0.03))
        return [(drawn(own, counts), bound, level) for own, bound, level in parts]

    worst, infinite = 0.0, np.array([np.inf])
    for _ in range(800):
        data = [grid[index] for index in rng.integers(4, size=n)]
        other = [grid[rng.integers(4)], *data[1:]]
        counts = draws(24, rng)[rng.choice(3, p=(0.1, 0.8, 0.1))]  # one alone loses most
        edges = [np.array([edge(tests(each, counts), epsilon)]) for each in (data, other)]
        for low, high in ((edges, [infinite] * 2), ([-infinite] * 2, edges)):
            masses = [exact.log_mass(a, b)[0] for a, b in zip(low, high, strict=True)]
            worst = max(worst, abs(masses[0] - masses[1]))
    assert 0.85 * epsilon < worst <= epsilon + ROUNDING


class Fixed(SimulatedNoise):
    """Noise of a chosen number of scales."""

    def __init__(self, scales: float) -> None:
        super().__init__(0)
        self.scales, self.drawn = scales, 0

    def discrete_laplace(self, scale: float) -> int:
        self.drawn += 1
        return round(self.scales * scale)


def shares():
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=40), 300 * rng.normal(size=40)
    bounds = PermutationSensitivity(0.3, 0.5), PermutationSensitivity(20.0, 90.0)
    return [
        LevelShare(first, bounds[0], Fraction(3, 4)),
        LevelShare(second, bounds[1], Fraction(1, 4)),
    ]


def test_any_rejects_where_the_one_draw_is_above_the_smallest_threshold():
    tests = shares()
    laws = [
        (PermutedStatistics.from_list(test.statistics), test.sensitivity, 0.1 * float(test.share))
        for test in tests
    ]
    for epsilon in (0.3, 2.0):
        smallest = edge(laws, epsilon)
        for step, rejects in ((1e-6, True), (-1e-6, False)):
            noise = Fixed(smallest + step)
            assert any_rejects(tests, 0.1, budget=Budget(epsilon), noise=noise) is rejects
            assert noise.drawn == 1


def test_shares_must_add_up_to_the_level():
    tests = shares()[:1]
    with pytest.raises(AssertionError, match="add up"):
        any_rejects(tests, 0.1, budget=Budget(1), noise=Fixed(0))


def test_every_test_is_computed_whichever_rejects(monkeypatch):
    calls = []

    def counted(*given):
        calls.append(given)
        return survival_mean(*given)

    monkeypatch.setattr("privatest.mechanisms.permutation.survival_mean", counted)
    for scales in (-50.0, 50.0):
        calls.clear()
        any_rejects(shares(), 0.1, budget=Budget(1), noise=Fixed(scales))
        assert len(calls) == 2


def test_a_two_sided_pvalue_is_twice_the_smaller_side(monkeypatch):
    facts: dict[str, Any] = {"adjacency": "one", "method": "", "null_hypothesis": ""}
    facts |= {"sizes": {"n": 4}, "parameters": {}, "rows_per_person": 1}
    for one_sided, expected in ((0.0001, 0.0002), (0.3, 0.6), (0.5, 1.0), (0.9, 0.2002), (1, 2e-4)):
        monkeypatch.setattr(
            "privatest.mechanisms.permutation.smoothed_pvalue", lambda *_, p=one_sided, **__: p
        )
        outcome = two_sided_result(
            np.zeros(3),
            sensitivity=PermutationSensitivity(1, 1),
            budget=Budget(1),
            alpha=0.05,
            noise=SimulatedNoise(0),
            facts=facts,
        )
        assert outcome.pvalue == pytest.approx(expected, abs=1e-12)
        assert outcome.reject == (expected <= 0.05)


# --- the whole test, with its secret order ---------------------------------------------------

# Four rows at (0, 0) of which one moves to (1, 1); for swaps, another stands there already.
ALONE = np.zeros(4), np.array([0.0, 0, 0, 1])
BESIDE = np.array([0.0, 0, 1, 0]), np.array([0.0, 0, 1, 1])


class Chosen:
    """Draws that all part every pair, or turn one of two: a public generator may give them."""

    def permuted(self, rows: Any, *, axis: int, out: Any) -> None:
        assert axis == 1
        out[:] = np.tile([1, 0, 3, 2], (len(rows), 1))

    def integers(self, high: int, size: tuple[int, int]) -> Any:
        assert (high, size[1]) == (2, 2)
        return np.tile([0, 1], (size[0], 1))


@pytest.fixture(autouse=True)
def chosen(monkeypatch):
    module = sys.modules[inspect.unwrap(pt.hsic_test).__module__]
    monkeypatch.setattr(module, "public_generator", lambda rng: Chosen())


def whole(**options):
    noise = SimulatedNoise(5)

    def run(side):
        box: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (0, 1), "n_permutations": 30}
        result = pt.hsic_test(side, side, epsilon=1, noise=noise, **(box | options))
        return result.reject if options["release"] == "decision" else result.pvalue

    return run


TREND: dict[str, Any] = {"release": "decision", "statistics": "trend", "alpha": 0.4}
SWAPS: dict[str, Any] = {"release": "decision", "statistics": "mean", "shuffle": "swap"}
WHOLE: list[tuple[Any, dict[str, Any]]] = [
    (ALONE, TREND),
    (ALONE, TREND | {"statistics": ["mean", "trend"]}),
    (BESIDE, SWAPS),
]


@pytest.mark.parametrize(("data", "options"), WHOLE)
def test_an_audit_finds_no_more_than_epsilon(data, options):
    """By enumeration of the orders a trend loses .95, swaps .72; the noise is seeded."""
    assert audit(whole(**options), *data, runs=400, error=1e-2) <= 1


@pytest.mark.parametrize(("data", "options"), WHOLE)
def test_a_tenth_of_the_noise_is_caught(data, options, monkeypatch):
    scale_of = permutation.noise_scale
    monkeypatch.setattr(permutation, "noise_scale", lambda *given: 0.1 * scale_of(*given))
    assert caught(whole(**options), *data, above=1.2, runs=400)
