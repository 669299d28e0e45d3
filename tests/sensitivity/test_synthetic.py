"""Neighbours cannot move the coefficients of a release further than declared.

The coefficients are a mean over rows of a vector for each row, added up without rounding
errors: they move by the distance of two rows' vectors, over n. So pairs of rows are searched.
"""

from __future__ import annotations

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.numerics.kernels import Kernel
from privatest.synthetic.embedding import coefficient_sensitivity, coefficients, kernel_sums, span
from tests.sensitivity.harness import Space

DOMAINS = {
    "d=1": Domain((0,)),
    "d=2": Domain((0, 0)),
    "d=5": Domain((0,) * 5),  # distances by a matrix product
    "number and category": Domain((0, 3)),
    "categories only": Domain((4, 2)),
    "unbounded": Domain((0, 0), bounded=False),
}
CASES = [
    pytest.param(Kernel(family, bandwidth), domain, id=f"{family}-{name}-w={bandwidth}")  # type: ignore[arg-type]
    for index, (name, domain) in enumerate(DOMAINS.items())
    for turn, family in enumerate(("gaussian", "laplace", "imq"))
    for bandwidth in [(0.1, 1.0, 5.0)[(index + turn) % 3]]
]


def vectors(space, rows, n=1):
    return np.array([coefficients(space, kernel_sums(space, row[None, :]), n) for row in rows])


def furthest(space, rng, count=60, steps=150):
    """Largest distance between two rows' vectors: all pairs of odd rows, then climbing."""
    places = Space(space.domain, count, 0)
    rows = np.vstack([space.points[:20], *(places.rows(rng, count // 4) for _ in range(4))])
    found = vectors(space, rows)
    distances = np.linalg.norm(found[:, None] - found[None, :], axis=2)
    left, right = np.unravel_index(int(np.argmax(distances)), distances.shape)
    pair, best = rows[[left, right]], float(distances.max())
    for _ in range(steps):
        trial = pair.copy()
        if rng.integers(2) and len(space.domain.numeric):
            column = rng.choice(space.domain.numeric)
            trial[rng.integers(2), column] += rng.normal(scale=0.1)
            if space.domain.bounded:
                trial[:, column] = np.clip(trial[:, column], 0, 1)
        else:
            trial[rng.integers(2)] = places.rows(rng, 1)[0]
        moved = float(np.linalg.norm(np.subtract(*vectors(space, trial))))
        if moved >= best:
            pair, best = trial, moved
    return best


def corners(domain):
    """Public points at two opposite corners, where neighbours move furthest, and others."""
    if not domain.bounded:
        return np.random.default_rng(3).normal(scale=20, size=(12, domain.dimension))
    far = np.array([max(level - 1, 1) for level in domain.levels], dtype=float)
    return np.unique(np.vstack([np.zeros_like(far), far, domain.points(10)]), axis=0)


@pytest.mark.parametrize(("kernel", "domain"), CASES)
def test_coefficients_move_by_no_more_than_declared(kernel, domain):
    space = span(corners(domain), kernel, domain)
    bound = coefficient_sensitivity(space, 1).value
    best = furthest(space, np.random.default_rng(1))
    assert best <= bound
    if domain.bounded:  # the corners are public points: nothing is lost in the projection
        assert best > 0.999 * bound


def test_a_bound_that_is_too_small_is_caught():
    space = span(corners(DOMAINS["d=2"]), Kernel("gaussian", 1.0), DOMAINS["d=2"])
    assert (
        furthest(space, np.random.default_rng(1)) > 0.95 * coefficient_sensitivity(space, 1).value
    )


def test_the_papers_constant_is_larger():
    """2/n there; at most sqrt(2)/n here, and less on a box."""
    for kernel in (Kernel("gaussian", 0.1), Kernel("gaussian", 3.0)):
        space = span(corners(DOMAINS["d=1"]), kernel, DOMAINS["d=1"])
        assert coefficient_sensitivity(space, 100).value <= 1.0001 * 2**0.5 / 100
    assert coefficient_sensitivity(space, 100).value < 0.5 / 100


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9])
def test_a_basis_of_points_that_nearly_coincide(tolerance):
    """Rounding errors are magnified by the basis; the declared sensitivity covers them."""
    rng = np.random.default_rng(5)
    domain, kernel = DOMAINS["d=2"], Kernel("gaussian", 1.5)
    points = rng.uniform(size=(300, 2))
    points[::3] = points[1::3] + rng.normal(scale=1e-5, size=(100, 2))
    space = span(np.clip(points, 0, 1), kernel, domain, tolerance)
    bound = coefficient_sensitivity(space, 1)
    assert furthest(space, rng, steps=40) <= bound.value
    assert bound.value < 1.05 * kernel.spread(domain)  # and it costs little


@pytest.mark.parametrize("rows_per_person", [1, 3])
def test_data_sets_that_differ_in_one_person(rows_per_person):
    rng = np.random.default_rng(2)
    domain, kernel, n = DOMAINS["number and category"], Kernel("gaussian", 0.7), 40
    space = span(corners(domain), kernel, domain)
    bound = coefficient_sensitivity(space, n, rows_per_person).value
    places, best = Space(domain, n, 0), 0.0
    for _ in range(200):
        rows = places.rows(rng, n)
        other = rows.copy()
        replaced = rng.choice(n, size=rows_per_person, replace=False)
        rows[replaced], other[replaced] = places.rows(rng, 1), places.rows(rng, 1)
        other = other[rng.permutation(n)]  # in another order: sums must not depend on it
        moved = [coefficients(space, kernel_sums(space, data), n) for data in (rows, other)]
        best = max(best, float(np.linalg.norm(moved[0] - moved[1])) / bound)
    assert 0.9 < best <= 1


def test_sums_do_not_depend_on_the_order_of_rows_or_on_blocks():
    rng = np.random.default_rng(0)
    domain = DOMAINS["d=2"]
    space = span(domain.points(50), Kernel("gaussian", 0.3), domain)
    rows = rng.uniform(size=(10_001, 2))
    total = kernel_sums(space, rows)
    assert np.array_equal(total, kernel_sums(space, rows[::-1]))
    parts = kernel_sums(space, rows[:777]) + kernel_sums(space, rows[777:])
    assert np.array_equal(total, parts)


def test_rounding_errors_of_a_row_are_as_small_as_stated():
    """Against a projection in exact rational arithmetic, on the computed Gram matrix."""
    from fractions import Fraction

    domain, kernel = DOMAINS["d=1"], Kernel("gaussian", 0.5)
    space = span(np.linspace(0, 1, 9)[:, None], kernel, domain, 1e-9)
    sums = kernel_sums(space, np.array([[0.37]]))
    triangle = [[Fraction(float(entry)) for entry in row] for row in space.triangle]
    solved: list[Fraction] = []
    for row, total in zip(triangle, sums, strict=True):
        done = sum((a * b for a, b in zip(row, solved, strict=False)), Fraction(0))
        solved.append((Fraction(int(total), 2**36) - done) / row[len(solved)])
    error = coefficients(space, sums, 1) - np.array([float(value) for value in solved])
    widened = coefficient_sensitivity(space, 10**9).value - kernel.spread(domain) / 10**9
    assert np.linalg.norm(error) < widened
