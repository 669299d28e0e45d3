"""Locations that are climbed to see more than those that the ascent starts from."""

from __future__ import annotations

import numpy as np
import pytest

from privatest_papers import raj_locations
from privatest_papers.raj import paper_statistic
from privatest_papers.raj_locations import climbed_locations


@pytest.mark.parametrize("d", [1, 3])
def test_a_fifth_is_for_locations(d):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 200, d))
    locations, variance, left = climbed_locations(x, y, rng)
    assert locations.shape == (5, d)
    assert variance > 0
    assert np.isfinite(locations).all()
    assert (left[0] == x[40:]).all()
    assert (left[1] == y[40:]).all()


def test_it_climbs():
    rng = np.random.default_rng(1)
    known = rng.normal(size=(300, 2)), rng.normal([0.5, 0], 1, size=(300, 2))
    start, width = rng.normal(size=(5, 2)), 2.0

    def height(points, variance):
        return paper_statistic(*known, points, variance=variance, gamma=1e-5)

    points, variance = raj_locations._climb(known, start, width)
    assert height(points, variance) > 1.1 * height(start, width)


def test_its_first_step_is_along_the_slope(monkeypatch):
    monkeypatch.setattr(raj_locations, "_STEPS", 1)
    monkeypatch.setattr(raj_locations, "_LENGTH", 1e-5)
    rng = np.random.default_rng(2)
    known = rng.normal(size=(300, 2)), rng.normal([0.5, 0], 1, size=(300, 2))
    start, width = rng.normal(size=(3, 2)), 1.5

    def height(points, w):
        # of theirs, which divides by n
        ridge = 1e-5 * len(known[0]) / (len(known[0]) - 1)
        return paper_statistic(*known, points, variance=w, gamma=ridge)

    points, variance = raj_locations._climb(known, start, width**2)
    moved = (points - start).ravel() / 1e-5
    slopes = []
    for place in range(start.size):
        shift = np.zeros(start.size)
        shift[place] = 1e-5
        near = [height(start + sign * shift.reshape(start.shape), width**2) for sign in (1, -1)]
        slopes.append((near[0] - near[1]) / 2e-5)
    assert moved == pytest.approx(np.array(slopes) / np.linalg.norm(slopes), abs=1e-4)
    wider = height(start, (width + 1e-5) ** 2) - height(start, (width - 1e-5) ** 2)
    assert np.sign(np.sqrt(variance) - width) == np.sign(wider)


def test_a_strong_difference_is_seen_on_the_rest():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(1000, 1)), rng.normal(1, 1, size=(1000, 1))
    locations, variance, left = climbed_locations(x, y, rng)
    assert paper_statistic(*left, locations, variance=variance) > 100
