"""Means and covariances, run many times on neighbours: no part loses more than its share.

Runs are seeded. Unseeded, an audit would fail by chance with probability 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privatest.core.privacy import Budget
from privatest.data.encoding import Sample
from privatest.mechanisms import moments as release
from privatest.mechanisms.additive import linf_mean, signed_sums
from privatest.mechanisms.covariance import covariance_ed
from privatest.methods.anova import f_oneway
from privatest.methods.means import hotelling_1samp, hotelling_test, tost_ind, ttest_rel
from privatest.noise import SimulatedNoise
from privatest.numerics.moments import Moments
from tests.privacy.harness import audit, audit_all, caught, once

BOX = (-1.0, 1.0)
Floats = np.ndarray
Score = Callable[[Floats, Floats], Any]


def neighbours(dimension: int) -> tuple[Floats, Floats]:
    """Two records; the first turns from one corner to the opposite one, or to one across."""
    rows = np.ones((2, dimension))
    other = rows.copy()
    other[0] = -1.0
    return rows, other


def moments_of(rows: Floats) -> Moments:
    (found,) = release.cube_moments(Sample((rows + 1) / 2, None))
    return found


def across(dimension: int) -> tuple[Floats, Floats]:
    """The mean square matrix changes most: one record leaves the diagonal."""
    rows, other = np.ones((3, dimension)), np.ones((3, dimension))
    other[0] = np.resize([1.0, -1.0], dimension) if dimension > 1 else 0.0
    return rows, other


# Numbers that tell the two apart: what an attacker would look at.
SCORES: dict[str, Score] = {
    "first mean": lambda mean, _: float(mean[0]),
    "smallest mean": lambda mean, _: float(mean.min()),
    "all means": lambda mean, _: float(mean.sum()),
    "trace": lambda _, matrix: float(np.trace(matrix)),
    "diagonal form": lambda _, matrix: float(matrix.sum()),
    "both": lambda mean, matrix: float(mean.sum() + matrix.sum() / len(mean)),
}


def parts(mean: Floats, matrix: Floats) -> tuple[Floats, Floats]:
    """Both, so that several scores see the same runs."""
    return mean, matrix


def seen(*names: str) -> list[Callable[[Any], float]]:
    def through(score: Score) -> Callable[[Any], float]:
        return lambda found: float(score(*found))

    return [through(SCORES[name]) for name in names]


def released(score: Score, budget: Budget, dimension: int, n: int) -> Callable[[Floats], Any]:
    """All that is released of one sample, seen through a score; the rest follows from it."""
    noise, plan = SimulatedNoise(0), release.plan_release(n, dimension, budget, 1)
    moments = once(moments_of)

    def run(rows: Floats) -> Any:
        found = release.release_sample(moments(rows), plan, noise)
        return score(found.mean, found.covariance)

    return run


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("pair", [neighbours, across])
def test_release(dimension, pair):
    first, second = pair(dimension)
    mechanism = released(parts, Budget(1), dimension, len(first))
    scores = seen("all means", "diagonal form", "both")
    assert audit_all(mechanism, first, second, *scores, runs=500) <= 1.0


@pytest.mark.parametrize("dimension", [1, 2])
def test_release_with_delta(dimension):
    first, second = neighbours(dimension)
    mechanism = released(SCORES["both"], Budget(1, "0.001"), dimension, len(first))
    assert audit(mechanism, first, second, runs=1000, delta=1e-3) <= 1.0


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_whole_test(dimension):
    """What follows from the release loses no more than it."""
    noise = SimulatedNoise(2)
    options: dict[str, Any] = {"bounds": BOX, "epsilon": 1.0, "n_bootstrap": 19, "rng": 0}

    def run(rows: Floats) -> Any:
        return hotelling_test(rows, -np.ones_like(rows), noise=noise, **options)

    scores = (lambda r: r.statistic, lambda r: r.pvalue)
    assert audit_all(run, *neighbours(dimension), *scores, runs=100) <= 1.0


def three_groups(rows: Floats, **options: Any) -> Any:
    """The row that changes is in the first of three groups."""
    others = -np.ones(3), np.zeros(4)
    return f_oneway(rows[:, 0], *others, n_bootstrap=19, rng=0, **options)


def pairs(rows: Floats, **options: Any) -> Any:
    return ttest_rel(rows[:, 0] / 2, -rows[:, 0] / 2, **options)


def equivalence(rows: Floats, **options: Any) -> Any:
    return tost_ind(rows[:, 0], -np.ones(3), -1, 1, **options)


@pytest.mark.nightly
@pytest.mark.parametrize("test", [three_groups, pairs, equivalence])
def test_whole_tests_of_one_column(test):
    noise = SimulatedNoise(5)
    options: dict[str, Any] = {"bounds": BOX, "epsilon": 1.0}
    scores = (lambda r: r.statistic, lambda r: np.ravel(r.estimates["lower"])[0])

    def run(rows: Floats) -> Any:
        return test(rows, noise=noise, **options)

    assert audit_all(run, *neighbours(1), *scores, runs=100) <= 1.0


# --- each part by itself, and bugs planted in it ---------------------------------------------


def mean_alone(score: Score, epsilon: float, noise: Any) -> Callable[[Floats], Any]:
    def run(rows: Floats) -> Any:
        mean = rows.mean(axis=0)
        released = linf_mean(mean, sensitivity=2 / len(rows), epsilon=epsilon, noise=noise)
        return score(released, np.eye(len(mean)))

    return run


def squares_alone(score: Score, epsilon: float, noise: Any) -> Callable[[Floats], Any]:
    def run(rows: Floats) -> Any:
        matrix = rows.T @ rows / rows.shape[1]
        released = covariance_ed(matrix, n=len(rows), epsilon=epsilon, noise=noise)
        return score(np.zeros(len(matrix)), released)

    return run


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_mean(dimension):
    mechanism = mean_alone(parts, 1.0, SimulatedNoise(3))
    scores = seen("first mean", "smallest mean", "all means")
    assert audit_all(mechanism, *neighbours(dimension), *scores, runs=2000) <= 1.0


def test_mean_is_nearly_as_private_as_it_says():
    """The audit is no blunt tool: the first mean of one column shows most of epsilon."""
    mechanism = mean_alone(SCORES["first mean"], 1.0, SimulatedNoise(4))
    assert caught(mechanism, *neighbours(1), above=0.75, runs=10_000)


@pytest.mark.parametrize("dimension", [1, 3])
def test_half_the_noise_on_the_mean_is_caught(dimension, monkeypatch):
    draw = SimulatedNoise.discrete_laplace
    monkeypatch.setattr(SimulatedNoise, "discrete_laplace", lambda s, scale: draw(s, scale / 2))
    mechanism = mean_alone(SCORES["smallest mean"], 1.0, SimulatedNoise(5))
    assert caught(mechanism, *neighbours(dimension), above=1.0, runs=6000)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_squares(dimension):
    mechanism = squares_alone(parts, 1.0, SimulatedNoise(6))
    scores = seen("trace", "diagonal form")
    assert audit_all(mechanism, *across(dimension), *scores, runs=700) <= 1.0


# How far apart the ends are, how far either is out, and the sum.
EIGENVALUES: list[Callable[[Floats], float]] = [
    lambda z: float(z[-1] - z[0]),
    lambda z: float(max(z[-1] - 9.5, 4.5 - z[0])),
    lambda z: float(z.sum()),
]


@pytest.mark.parametrize("fallen", [0.0, 1.0])
@pytest.mark.parametrize("dimension", [2, 4])
def test_eigenvalues_alone(fallen, dimension):
    """One rises by 1, and another stays or falls by 1: either costs epsilon and no more."""
    first = np.linspace(5.0, 9.0, dimension)
    second, noise = first.copy(), SimulatedNoise(11)
    second[-1] += 1.0
    second[0] -= fallen

    def run(values: Floats) -> Floats:
        return signed_sums(values, sensitivity=1.0, epsilon=1.0, noise=noise)

    assert audit_all(run, first, second, *EIGENVALUES, runs=2000) <= 1.0


def test_half_the_noise_on_eigenvalues_is_caught(monkeypatch):
    draw = SimulatedNoise.discrete_laplace
    monkeypatch.setattr(SimulatedNoise, "discrete_laplace", lambda s, scale: draw(s, scale / 2))
    mechanism = squares_alone(SCORES["trace"], 1.0, SimulatedNoise(7))
    assert caught(mechanism, *across(1), above=1.0, runs=10_000)


def test_spending_the_budget_twice_is_caught(monkeypatch):
    monkeypatch.setattr(release, "_shares", lambda budget, share: (2 * budget.pure_epsilon,) * 2)
    mechanism = released(SCORES["all means"], Budget(1), 1, 2)
    assert caught(mechanism, *neighbours(1), above=1.0, runs=5000)


def test_rows_of_a_person_are_hidden_together():
    """Three replaced rows, declared as one person's; undeclared they are found."""
    rows, other = np.ones((6, 1)), np.ones((6, 1))
    other[:3] = -1.0

    def mechanism(rows_per_person: int) -> Callable[[Floats], float]:
        noise, moments = SimulatedNoise(9), once(moments_of)
        plan = release.plan_release(6, 1, Budget(1), rows_per_person)
        return lambda data: float(release.release_sample(moments(data), plan, noise).mean[0])

    assert audit(mechanism(3), rows, other, runs=1200) <= 1.0
    assert caught(mechanism(1), rows, other, above=1.0, runs=1200)


def test_a_canary_does_not_come_out():
    """Seeded, and seven digits: noise spells four of them in one run of fifty."""
    canary, digits = 0.73462910, "7346291"
    rows = np.full((4, 2), canary)
    assert digits in str(rows)
    for epsilon in (1.0, 1e4):
        noise = SimulatedNoise(10)
        options: dict[str, Any] = {"bounds": BOX, "epsilon": epsilon, "n_bootstrap": 19}
        result = hotelling_1samp(rows, 0.0, noise=noise, **options)
        assert digits not in repr(result) + str(result) + result.to_json()
