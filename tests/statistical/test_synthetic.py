"""Releases get better with shrinkage, never worse with more points, and know their error.

Noise and data are seeded: the tests always give the same answer. Each threshold leaves room of
at least five standard errors of what is averaged, so that another seed would pass as well.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.noise import SimulatedNoise
from privatest.numerics.kernels import Kernel
from privatest.synthetic import release
from privatest.synthetic.embedding import (
    coefficients,
    denoise,
    embedding_distance,
    kernel_sums,
    mean_kernel,
    moments,
    point_means,
    span,
)

PLANE = Domain((0, 0), bounded=False)
KERNEL = Kernel("gaussian", 1.0)
SIZES = (1, 3, 10, 30, 100, 200)


def mixture(n, seed):
    """Rows of a mixture of normals, as in the paper but smaller."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [2, 1], [-1, 2], [1, -2]])
    return centres[rng.choice(4, size=n, p=[0.4, 0.3, 0.2, 0.1])] + rng.normal(
        scale=0.5, size=(n, 2)
    )


ROWS = mixture(2000, 0)
LEAKED = mixture(200, 1)  # published rows of the same population
SPREAD = np.random.default_rng(2).normal(scale=3, size=(200, 2))
OWN = mean_kernel(ROWS, KERNEL, PLANE)


def bump(centre, columns):
    return np.exp(-((columns["x1"] - centre[0]) ** 2) - (columns["x2"] - centre[1]) ** 2)


def distances(points, sigma, *, shrink, runs=20):
    """Mean RKHS distance to the data for each number of public points."""
    found = []
    for size in SIZES:
        space = span(points[:size], KERNEL, PLANE)
        exact = coefficients(space, kernel_sums(space, ROWS), len(ROWS))
        known = moments(space.coordinates)
        left, total = max(OWN - float(exact @ exact), 0.0), 0.0
        for seed in range(runs):
            noise = np.random.default_rng([seed, size]).normal(scale=sigma, size=space.rank)
            noisy = exact + noise
            guess = denoise(noisy, known, sigma).values if shrink else noisy
            total += np.sqrt(left + np.sum((guess - exact) ** 2))
        found.append(total / runs)
    return np.array(found)


@pytest.mark.parametrize("points", [LEAKED, SPREAD], ids=["leaked", "spread"])
@pytest.mark.parametrize("sigma", [0.0003, 0.003, 0.03])
def test_shrinkage_is_never_worse_and_more_points_never_hurt(points, sigma):
    plain, shrunk = (distances(points, sigma, shrink=shrink) for shrink in (False, True))
    assert (shrunk <= 1.03 * plain).all()
    best = np.minimum.accumulate(shrunk)
    assert (shrunk <= 1.1 * best).all()
    if sigma == 0.03:  # where there is much noise a good part of it goes
        assert shrunk[-1] < 0.7 * plain[-1]
        assert plain[-1] > 1.1 * plain.min()  # without shrinkage more points do hurt


def test_the_distance_of_a_release_is_the_one_computed_here():
    """The whole path, with the released weights, against coordinates."""
    budget: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
    total = 0.0
    for seed in range(5):
        synthetic = release(
            ROWS, public_points=LEAKED, kernel=KERNEL, noise=SimulatedNoise(seed), **budget
        )
        means = point_means(LEAKED, ROWS, KERNEL, PLANE)
        total += embedding_distance(synthetic.weights, LEAKED, means, OWN, KERNEL, PLANE) / 5
    expected = distances(LEAKED, synthetic.facts.sigma, shrink=True)[-1]
    assert total == pytest.approx(expected, rel=0.25)


def test_of_many_candidates_more_rows_never_hurt():
    """The best points are chosen after the noise, and no more than it lets see."""
    found = []
    for size in (1, 3, 10, 30, 100):
        total = 0.0
        for seed in range(6):
            synthetic = release(
                ROWS,
                public_points=SPREAD,
                n_points=size,
                kernel=KERNEL,
                epsilon=1,
                delta=1e-6,
                noise=SimulatedNoise(seed),
            )
            points = synthetic.points
            means = point_means(points, ROWS, KERNEL, PLANE)
            total += embedding_distance(synthetic.weights, points, means, OWN, KERNEL, PLANE) / 6
        found.append(total)
    assert (np.array(found) <= 1.1 * np.minimum.accumulate(found)).all()
    assert found[2] < 0.5 * distances(SPREAD, 1e-9, shrink=False, runs=1)[2]  # the first ten


@pytest.mark.parametrize(
    ("points", "weights"),
    [(LEAKED, "signed"), (SPREAD, "signed"), (LEAKED, "nonnegative")],
    ids=["leaked-signed", "spread-signed", "leaked-nonnegative"],
)
def test_error_bars_are_as_long_as_the_errors(points, weights):
    """Of smooth functions that the points can stand for, where the noise is all there is."""
    centres = np.array([[0, 0], [2, 1], [-1, 2], [1, -2], [0.5, 0.5]])
    truths = point_means(centres, ROWS, KERNEL, PLANE)
    ratios = []
    for seed in range(3 if weights == "nonnegative" else 12):
        synthetic = release(
            ROWS,
            public_points=points,
            kernel=KERNEL,
            epsilon=1,
            delta=1e-6,
            weights=weights,
            noise=SimulatedNoise(seed),
            rng=seed,
        )
        for centre, truth in zip(centres, truths, strict=True):
            estimate = synthetic.mean(partial(bump, centre))
            ratios.append((estimate.value - truth) / estimate.error)
    # the root of the mean square of 15 or 60 dependent ratios; about 1 if bars are right
    assert 0.4 < float(np.sqrt(np.mean(np.square(ratios)))) < 1.7
