"""The public set of encoded rows, and its even points."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.data.schema import Domain


def test_columns():
    domain = Domain((0, 3, 0, 2))
    assert domain.dimension == 4
    assert domain.numeric == [0, 2]
    assert domain.categorical == [1, 3]
    with pytest.raises(dataclasses.FrozenInstanceError):
        domain.bounded = False  # type: ignore[misc]
    assert hash(domain) == hash(Domain((0, 3, 0, 2)))  # a key of caches


@pytest.mark.parametrize("levels", [(0,), (0, 0), (0,) * 10, (0, 3), (4,), (2, 0, 5)])
@pytest.mark.parametrize("count", [1, 64, 300])
def test_points_lie_in_the_domain(levels, count):
    points = Domain(levels).points(count)
    assert points.shape == (count, len(levels))
    for column, level in enumerate(levels):
        values = points[:, column]
        assert values.min() >= 0
        if level:
            assert np.array_equal(values, np.floor(values))
            assert values.max() <= level - 1
        else:
            assert values.max() <= 1


def test_points_are_the_same_every_time():
    assert np.array_equal(Domain((0, 3)).points(50), Domain((0, 3)).points(50))


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_points_are_spread_evenly(dimension):
    points = Domain((0,) * dimension).points(200)
    for column in points.T:
        counts = np.histogram(column, bins=10, range=(0, 1))[0]
        assert counts.min() >= 15  # 20 expected; random points would leave fewer
        assert counts.max() <= 25
    assert len(np.unique(points, axis=0)) == 200


def test_every_category_has_its_share():
    points = Domain((0, 4)).points(200)
    assert np.bincount(points[:, 1].astype(int)).min() >= 40


def test_an_unbounded_domain_has_no_points():
    with pytest.raises(ParameterError, match="bounds must be given"):
        Domain((0,), bounded=False).points(10)
