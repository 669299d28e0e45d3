"""The largest of a family of statistics: how far it moves, and where its offsets lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privatest.core.privacy import PermutationSensitivity
from privatest.mechanisms.permutation import NullLaw, _factors, noise_scale, strongest
from privatest.numerics.portfolio import PooledVariances

SETTINGS: dict[str, Any] = {"rows": 1000, "epsilon": 1.0, "release": "decision"}
SPREADS = np.array([1.0, 0.3, 0.7])
BOUNDS = [PermutationSensitivity(0.002 * c, 0.002 * c) for c in SPREADS]
MOST = np.square(SPREADS) / 2
NULL = NullLaw(
    means=np.array([0.02, 0.006, 0.01]),
    deviations=np.array([0.01, 0.0002, 0.004]),
    variances=MOST / 6,
)


def pooled(values: Any, pairs: int = 500) -> PooledVariances:
    return PooledVariances(np.asarray(values), MOST / pairs, MOST)


def test_rounding_of_offsets_is_part_of_the_sensitivity_of_a_maximum():
    """Statistics a billion times as large as what moves: their last digits move further."""
    rng, delta, count = np.random.default_rng(5), 2.0**-30, 4000
    bounds = [PermutationSensitivity(delta, delta)] * 2
    null = NullLaw(np.full(2, 1e-3), np.full(2, 1e-15))
    first: Any = 1 + rng.integers(2**15, size=(2, count)) * 2.0**-45
    second = first + rng.choice((-delta, delta), size=(2, count))  # exact
    settings: dict[str, Any] = {"rows": 2**30, "epsilon": 1.0, "release": "decision"}
    (before, sensitivity), (after, same) = (
        strongest(values, None, bounds, null, **settings) for values in (first, second)
    )
    assert sensitivity == same
    moved = float(np.abs(before - after).max())
    assert delta / noise_scale(bounds[0], 1.0, "decision") < moved <= sensitivity.observed


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("pairs", [2, 500, 10**6])
def test_offsets_that_follow_the_data_move_no_further_than_declared(epsilon, pairs):
    """Statistics and variances both move as far as they may, in all directions."""
    rng, worst = np.random.default_rng(6), 0.0
    settings = SETTINGS | {"epsilon": epsilon}
    for _ in range(400):
        values = rng.uniform(0, 0.1, size=(3, 20)) * SPREADS[:, None]
        # offsets are steepest where rows hardly vary
        found = rng.choice([0.0, 1e-3, 0.3, 1.0], size=3) * MOST
        moves = pooled(found, pairs).moves
        other = np.clip(found + rng.choice([-1.0, 0.0, 1.0], size=3) * moves, 0, MOST)
        steps = np.array([bound.permuted for bound in BOUNDS])[:, None]
        moved = values + rng.choice([-1.0, 1.0], size=values.shape) * steps
        (first, bound), (second, same) = (
            strongest(each, pooled(own, pairs), BOUNDS, NULL, **settings)
            for each, own in ((values, found), (moved, other))
        )
        assert bound == same
        worst = max(worst, float(np.abs(first - second).max() / bound.permuted))
    assert 0.9 < worst <= 1


def test_an_offset_follows_how_widely_rows_vary():
    """With many pairs and little noise: half as widely, half the offset."""
    scales = np.full(3, 1e-9)
    tight = [PermutationSensitivity(1e-6, 1e-6)] * 3
    factors, _, moves = _factors(pooled(MOST / 24, 10**9), tight, scales, NULL)
    assert factors == pytest.approx(0.5, rel=1e-3)
    assert np.all(moves <= 0.3e-6 * (1 + 1e-9))


def test_where_variances_are_as_usual_or_unknown_offsets_are_public():
    for own, null in (
        (None, NULL),
        (pooled(MOST), NullLaw(NULL.means, NULL.deviations)),
        (pooled(MOST / 6), NULL),
    ):
        factors, _, _ = _factors(own, BOUNDS, np.full(3, 0.004), null)
        assert factors == pytest.approx(1)


def test_a_variance_that_cannot_move_costs_no_noise():
    still = PooledVariances(MOST / 6, np.zeros(3), MOST)
    _, bound = strongest(np.ones((3, 5)), still, BOUNDS, NULL, **SETTINGS)
    _, public = strongest(np.ones((3, 5)), None, BOUNDS, NULL, **SETTINGS)
    assert bound.observed == pytest.approx(public.observed, rel=1e-6)


def test_statistics_without_any_variance():
    """Kernels so wide that they round to 1 everywhere have neither mean nor deviation."""
    flat = NullLaw(np.zeros(3), np.zeros(3), np.zeros(3))
    own = PooledVariances(np.zeros(3), np.full(3, 2.0**-30), np.full(3, 1e-17))
    _, bound = strongest(np.zeros((3, 5)), own, BOUNDS, flat, **SETTINGS)
    assert 0 < bound.observed <= bound.permuted < 1


def test_one_statistic_is_left_as_it_is():
    values = np.arange(4.0)[None, :]
    maximum, bound = strongest(values, None, BOUNDS[:1], None, **SETTINGS)
    assert maximum.tolist() == values[0].tolist()
    assert bound == BOUNDS[0]
