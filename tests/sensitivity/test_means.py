"""Means, eigenvalues and axes never move further than declared; the bounds are attained."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy.special import ive

from privatest.core.privacy import Budget
from privatest.core.secret_order import secret_bins
from privatest.data.encoding import Sample
from privatest.data.engines import BLOCK_ROWS
from privatest.data.summaries import summarise
from privatest.mechanisms.additive import signed_sums_norm
from privatest.mechanisms.covariance import ed_scales, orthogonal_axes
from privatest.mechanisms.moments import (
    _mean_sensitivity,
    _moved,
    _second_rounding,
    cube_moments,
    moment_scale,
    plan_release,
)
from privatest.noise import SimulatedNoise
from privatest.numerics.moments import MomentSums, moments
from privatest.numerics.permutation import BinnedMoments, binned_rounding

TOLERANCE = 1e-9


def start(n: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of the cube: corners, ties, a thin cloud, or anything."""
    style = rng.integers(4)
    rows = rng.uniform(-1, 1, size=(n, dimension))
    if style == 0:
        rows = np.sign(rows)
    elif style == 1:
        rows = np.repeat(rows[:1], n, axis=0)
    elif style == 2:  # nearly singular
        rows[:, 1:] *= 1e-3
    return rows


def climb(
    movement: Callable[[np.ndarray, np.ndarray], float],
    n: int,
    dimension: int,
    *,
    replaced: int = 1,
    restarts: int = 8,
    steps: int = 100,
    seed: int = 0,
) -> float:
    """Largest movement that hill climbing over neighbours finds."""
    rng = np.random.default_rng(seed)
    best = 0.0
    for _ in range(restarts):
        rows, new = start(n, dimension, rng), start(replaced, dimension, rng)
        value = -1.0
        for _ in range(steps):
            trial, trial_new = rows.copy(), new.copy()
            kind = rng.integers(4)
            if kind == 0:
                trial[rng.integers(n)] = start(1, dimension, rng)[0]
            elif kind == 1:
                trial_new[rng.integers(replaced)] = start(1, dimension, rng)[0]
            elif kind == 2:
                trial += 0.2 * rng.standard_normal(trial.shape)
            else:
                trial_new += 0.2 * rng.standard_normal(trial_new.shape)
            trial, trial_new = np.clip(trial, -1, 1), np.clip(trial_new, -1, 1)
            other = trial.copy()
            other[:replaced] = trial_new
            found = movement(trial, other)
            if found >= value:
                value, rows, new = found, trial, trial_new
        best = max(best, value)
    return best


def unit_squares(rows: np.ndarray) -> np.ndarray:
    """Σ x x' with rows of the cube divided by sqrt(d)."""
    return np.asarray(rows.T @ rows / rows.shape[1])


def eigenvalues(rows: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh(unit_squares(rows))


@pytest.mark.parametrize(("n", "dimension"), [(2, 1), (5, 3), (9, 10)])
def test_means(n, dimension):
    def movement(rows, other):
        return float(np.abs(rows.mean(axis=0) - other.mean(axis=0)).max())

    found = climb(movement, n, dimension)
    assert 0.99 * 2 / n < found <= _mean_sensitivity(n, dimension, 1)
    assert climb(movement, 5, dimension, replaced=3) <= _mean_sensitivity(5, dimension, 3)


@pytest.mark.parametrize(("n", "dimension"), [(2, 2), (6, 2), (5, 3), (12, 10)])
def test_eigenvalues(n, dimension):
    """Neither rises nor falls of the sorted eigenvalues sum to more than 1, nearly attained."""

    def movement(rows, other):
        return float(signed_sums_norm(eigenvalues(rows) - eigenvalues(other)))

    half = 0.5  # of an epsilon of 1
    bound = ed_scales(n, dimension, epsilon=1.0).eigenvalues * half
    found = climb(movement, n, dimension)
    assert found <= bound * (1 + TOLERANCE)
    assert found > 0.8 * bound
    three = ed_scales(n, dimension, epsilon=1.0, rows_per_person=2).eigenvalues * half
    assert climb(movement, n, dimension, replaced=2) <= three * (1 + TOLERANCE)


def test_eigenvalue_bound_is_attained():
    rows = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    other = np.array([[1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])
    rows, other = np.vstack([rows, rows[:1]]), np.vstack([other, rows[:1]])
    # (3, 1) and (2, 2): one falls by 1 and the other rises by 1
    change = eigenvalues(rows) - eigenvalues(other)
    assert signed_sums_norm(change) == pytest.approx(1.0)
    assert np.abs(change).sum() == pytest.approx(2.0)


def test_one_column_moves_by_one():
    def movement(rows, other):
        return abs(float(eigenvalues(rows)[0] - eigenvalues(other)[0]))

    bound = ed_scales(5, 1, epsilon=1.0).eigenvalues
    assert 0.99 < climb(movement, 5, 1) <= bound


def test_quadratic_forms():
    """u'(C' - C)u lies in [-1, 1] for every unit u: the bounds on λ- and λ+."""

    def movement(rows, other):
        return float(np.abs(np.linalg.eigvalsh(unit_squares(other) - unit_squares(rows))).max())

    for dimension in (2, 3, 10):
        assert 0.9 < climb(movement, 4, dimension) <= 1 + TOLERANCE


# --- the axes: their exact loss, by integration ----------------------------------------------

ANGLES = np.pi * np.arange(2000) / 2000
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)


def log_mean_exp(values: np.ndarray, weights: np.ndarray | float) -> float:
    top = values.max()
    return float(top + np.log(np.sum(weights * np.exp(values - top))))


def circle_loss(first: np.ndarray, second: np.ndarray, c: float) -> float:
    """Largest |log f/f'| of the chain in two dimensions: only the first axis is random."""
    forms = [c * np.einsum("ni,ij,nj->n", CIRCLE, a, CIRCLE) for a in (first, second)]
    logs = [form - log_mean_exp(form, 1 / len(ANGLES)) for form in forms]
    return float(np.abs(logs[0] - logs[1]).max())


def sphere_grid(points: int = 40) -> tuple[np.ndarray, np.ndarray]:
    z, weights = np.polynomial.legendre.leggauss(points)
    z, weights = (z + 1) / 2, weights / 2
    angle = 2 * np.pi * np.arange(2 * points) / (2 * points)
    ring = np.sqrt(1 - z**2)[:, None]
    x, y = ring * np.cos(angle), ring * np.sin(angle)
    grid = np.stack([x, y, np.broadcast_to(z[:, None], x.shape)], axis=-1)
    return grid.reshape(-1, 3), np.repeat(weights, 2 * points) / (2 * points)


def chain_loss(first: np.ndarray, second: np.ndarray, c: float, axes: np.ndarray) -> float:
    """Largest |log f/f'| of the chain in three dimensions, over the given sets of axes."""
    grid, weights = sphere_grid()
    total = np.zeros(len(axes))
    for sign, a in ((1, first), (-1, second)):
        total += sign * c * np.einsum("nki,ij,nkj->n", axes[:, :2], a, axes[:, :2])
        total -= sign * log_mean_exp(c * np.einsum("ni,ij,nj->n", grid, a, grid), weights)
        for index, v in enumerate(axes):  # the second axis lies on the circle of the last two
            circle = CIRCLE[::20] @ v[1:]
            forms = c * np.einsum("ni,ij,nj->n", circle, a, circle)
            total[index] -= sign * log_mean_exp(forms, 1 / len(circle))
    return float(np.abs(total).max())


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 6.0])
def test_axes_in_two_dimensions(epsilon):
    scales = ed_scales(6, 2, epsilon=epsilon)

    def movement(rows, other):
        return circle_loss(unit_squares(rows), unit_squares(other), scales.concentration)

    assert climb(movement, 6, 2, restarts=5) <= epsilon / 2 * (1 + TOLERANCE)


def worst_pair(dimension: int, copies: int) -> tuple[np.ndarray, np.ndarray]:
    """One axis is far ahead; a row on it is replaced by one across."""
    ahead, across = np.ones(dimension), np.resize([1.0, -1.0], dimension)
    rows = np.tile(ahead, (copies, 1))
    other = rows.copy()
    other[0] = across
    return rows, other


def test_axes_bound_is_attained_in_two_dimensions():
    """A concentration ten percent larger would lose more than its share."""
    rows, other = worst_pair(2, 4000)
    scales = ed_scales(len(rows), 2, epsilon=1.0)
    matrices = unit_squares(rows), unit_squares(other)
    share = 0.5
    assert 0.99 * share < circle_loss(*matrices, scales.concentration) <= share
    assert circle_loss(*matrices, 1.1 * scales.concentration) > share


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_axes_in_three_dimensions(epsilon):
    scales = ed_scales(5, 3, epsilon=epsilon)
    rng = np.random.default_rng(1)
    axes = orthogonal_axes(
        *np.linalg.eigh(np.zeros((40, 3, 3))), 0.0, rng.standard_normal, rng.random
    )

    def movement(rows, other):
        first, second = unit_squares(rows), unit_squares(other)
        # the worst axes are near those of the change and of the matrices
        own = [
            np.linalg.eigh(a)[1].T[order]
            for a in (first, second, first - second)
            for order in ([0, 1, 2], [2, 1, 0])
        ]
        return chain_loss(first, second, scales.concentration, np.concatenate([axes[:8], own]))

    assert climb(movement, 5, 3, restarts=3, steps=30) <= epsilon / 2 * (1 + TOLERANCE)


def log_sphere(a: np.ndarray, c: float) -> float:
    """log of the mean of exp(c v'Av) over the sphere, A = diag(a): an integral in one variable."""
    u, weights = np.polynomial.legendre.leggauss(2000)
    u, weights = (u + 1) / 2, weights / 2
    middle, half = c * (a[1] + a[2]) / 2, c * abs(a[1] - a[2]) / 2
    rest = 1 - u**2
    return log_mean_exp(c * a[0] * u**2 + (middle + half) * rest, weights * ive(0, half * rest))


def log_circle(a: float, b: float, c: float) -> float:
    return c * max(a, b) + math.log(ive(0, c * abs(a - b) / 2))


def test_rounded_axes_lose_no_more_than_their_share():
    """Rounding adds up to 4 (d - 1) s: at the first axis and the second, at top and bottom.

    Both matrices are computed with an error of at most s. The axis of e1 is far ahead, a row on e2
    is replaced by one on e1, and the axes that are drawn are e3, e2, e1.
    """
    s, n = 1.0, 10
    c = ed_scales(n, 3, epsilon=1.0, error=s).concentration
    exact = np.array([1e5, 1.0, 0.0])
    first = exact + s * np.array([-1, 1, 1])
    second = exact + [1, -1, 0] + s * np.array([1, -1, -1])
    loss = 0.0
    for sign, a in ((1, second), (-1, first)):
        loss += sign * (log_sphere(a, c) - c * a[2])  # e3 on the sphere
        loss += sign * (log_circle(a[0], a[1], c) - c * a[1])  # e2 on the circle that is left
    assert 0.99 * 0.5 < loss <= 0.5


# --- rounding, and the published constants ---------------------------------------------------


def test_fixed_point_of_many_rows():
    """Ten billion rows in a hundred columns, every block half a step off: the mean's slack holds.

    Columns are summed in steps for rows of norm 10, not 1.
    """
    n, dimension = 10**10, 100
    blocks = -(-n // BLOCK_ROWS)
    sums = MomentSums(np.abs, dimension, n, math.sqrt(dimension)).total
    terms = (100.49 * sums.step, 100.51 * sums.step)  # of a block; in two data sets
    moved = blocks * (round(100.51) - round(100.49)) * sums.step / n
    for term in terms:
        sums.units[:] = 0
        sums.add(np.full(dimension, term))
        assert sums.units[0] == round(term / sums.step)
    assert moved - blocks * (terms[1] - terms[0]) / n <= _mean_sensitivity(n, dimension, 1) - 2 / n


def test_rounding_is_paid_for_in_every_sample_of_a_person():
    """Rows of a person in five samples are rounded five times: five times all of one row's."""
    n, budget = 10**12, Budget(1, "1e-6")
    for dimension in (1, 4):
        one, five = (ed_scales(n, dimension, epsilon=1.0, rows_per_person=k) for k in (1, 5))
        assert five.eigenvalues >= 5 * one.eigenvalues * (1 - 1e-9)
        assert five.concentration <= one.concentration / 5 * (1 + 1e-9)
        noisy = [
            moment_scale(n, dimension, radius=1.0, budget=budget, rows_per_person=k)[0]
            for k in (1, 5)
        ]
        assert noisy[1] >= 5 * noisy[0] * (1 - 1e-9)


@pytest.mark.parametrize("n", [3, 50, 20_000])
def test_rounding_is_within_its_bound(n):
    rng = np.random.default_rng(n)
    rows = rng.uniform(-1, 1, size=(n, 4))
    (found,) = moments(Sample(rows, None), psi=np.copy, dimension=4, radius=2.0)
    exact = rows.astype(np.longdouble)
    slack = (_mean_sensitivity(n, 4, 1) - 2 / n) / 2
    assert np.abs(found.mean - exact.sum(axis=0) / n).max() <= slack
    error = found.second * n / 4 - exact.T @ exact / 4
    assert float(np.sqrt(np.square(error).sum())) <= _second_rounding(n, 4)


@pytest.mark.parametrize("n", [7, 100_000])
@pytest.mark.parametrize("shift", [0.0, 0.9])
def test_a_moved_second_moment_is_within_its_bound(n, shift):
    """About a point near a corner, of rows near it and far from it: against extended precision."""
    rng = np.random.default_rng(n)
    rows = rng.uniform(shift, 1, size=(n, 3))
    rows[0] = 0.0
    (found,) = cube_moments(Sample(rows, None))
    about = found.mean * 0.99
    away = 2 * rows.astype(np.longdouble) - 1 - about
    reach = float(np.linalg.norm(1 + np.abs(about)))
    error = (_moved(found, about) * n - away.T @ away) / reach**2
    assert float(np.sqrt(np.square(error).sum())) <= _second_rounding(n, 3)


@pytest.mark.parametrize("sizes", [[1, 2, 3], [30_000, 40_000, 0, 50_000, 5]])
def test_means_by_way_of_bins_are_within_their_bound(sizes):
    n, rng = sum(sizes), np.random.default_rng(1)
    rows = rng.uniform(-1, 1, size=(n, 2)) / np.sqrt(2)
    bins = secret_bins(sizes, SimulatedNoise(0))
    made = partial(BinnedMoments, np.copy, 2, bins, (n, max(sizes)), 1.0)
    (found,) = summarise((Sample(rows, None), made))
    weights = rng.choice([-1.0, 1.0], size=len(sizes)) / n
    own = bins.of_rows(0, n)
    exact = [np.longdouble(math.fsum(rows[own == place, 0])) for place in range(len(sizes))]
    mean, second = binned_rounding(n, n, len(sizes), max(sizes), 1.0, 0.0, 2)
    assert abs(weights @ found.sums.value[:, 0] - weights @ np.array(exact)) <= mean
    products = math.fsum(rows[:, 0] * rows[:, 1]) / n
    assert abs(found.second.value[0, 1] / n - products) <= second


def test_rounding_costs_next_to_nothing():
    for n in (100, 10**6):
        plan = plan_release(n, 10, Budget(1), 1)
        assert plan.mean_scale < 2 / (n * 0.7) * (1 + 1e-5)
        assert plan.ed is not None
        assert plan.ed.eigenvalues < 2 / 0.3 * (1 + 1e-4)
