"""Mean and second moment of features never move further together than declared."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.data.encoding import Sample
from privatest.data.schema import Domain
from privatest.numerics.features import mean_embedding, smooth_characteristic
from privatest.numerics.kernels import Kernel
from privatest.numerics.moments import joint_sensitivity, moments, svec
from tests.sensitivity.harness import Neighbours, Space, movement

N = 4


def searched(embedding, ratio: float) -> float:
    """Largest ratio of the l2 movement to its bound, by random search over neighbours."""
    bound = joint_sensitivity(
        1 / N, 1 / (N * ratio), radius=embedding.radius, spread=embedding.spread
    )

    def released(rows, labels):
        (sample,) = moments(
            Sample(rows, None), psi=embedding, dimension=embedding.dimension, radius=1.0
        )
        return np.concatenate([sample.mean, svec(sample.second) / ratio])

    space = Space(embedding_domain(embedding), n=N - 1, m=1)
    rng = np.random.default_rng(0)
    best = 0.0
    for _ in range(3000):
        pair = Neighbours(
            rows=space.rows(rng, N),
            labels=np.arange(N) < N - 1,
            replaced=np.array([0]),
            new_rows=space.rows(rng, 1),
            new_label=True,
            permutation=np.arange(N),
        )
        best = max(best, float(np.linalg.norm(movement(released, pair))) / bound)
    return best


def embedding_domain(embedding) -> Domain:
    return getattr(embedding, "domain", None) or Domain((0,) * embedding.frequencies.shape[0])


@pytest.mark.parametrize("ratio", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("bandwidth", [0.2, 1.0])
def test_mean_embedding(ratio, bandwidth):
    domain = Domain((0, 0))
    embedding = mean_embedding(Kernel("gaussian", bandwidth), domain.points(6), domain)
    found = searched(embedding, ratio)
    assert 0.2 < found <= 1


def test_mean_embedding_is_tight_where_rows_are_locations():
    domain = Domain((0,))
    embedding = mean_embedding(Kernel("gaussian", 0.1), np.array([[0.0], [1.0]]), domain)
    assert 0.99 < searched(embedding, 1.0) <= 1


def test_mean_embedding_with_categories():
    domain = Domain((0, 3))
    embedding = mean_embedding(Kernel("gaussian", 0.5), domain.points(6), domain)
    assert 0.2 < searched(embedding, 1.0) <= 1


@pytest.mark.parametrize("bandwidth", [None, 0.4])
def test_smooth_characteristic_function(bandwidth):
    frequencies = np.random.default_rng(1).normal(scale=3, size=(3, 2))
    embedding = smooth_characteristic(frequencies, bandwidth, Domain((0, 0)))
    assert 0.2 < searched(embedding, 1.0) <= 1


def test_features_keep_their_length_and_distance():
    rng = np.random.default_rng(2)
    domain = Domain((0, 0, 0))
    rows = np.vstack([rng.uniform(size=(300, 3)), np.round(rng.uniform(size=(100, 3)))])
    for embedding in (
        mean_embedding(Kernel("gaussian", 0.3), domain.points(20), domain),
        mean_embedding(Kernel("laplace", 0.3), domain.points(20), domain),
        mean_embedding(Kernel("gaussian", 0.3), np.repeat(domain.points(2), 5, axis=0), domain),
        smooth_characteristic(rng.normal(scale=2, size=(5, 3)), 0.5, domain),
        smooth_characteristic(rng.normal(scale=0.2, size=(5, 3)), None, domain),
    ):
        features = embedding(rows)
        assert np.linalg.norm(features, axis=1).max() <= embedding.radius + embedding.rounding
        apart = np.linalg.norm(features[:, None] - features[None], axis=2).max()
        assert apart <= embedding.spread + 2 * embedding.rounding


def test_the_search_can_fail():
    """Half of the bound is broken: a test that cannot fail shows nothing."""
    domain = Domain((0,))
    embedding = mean_embedding(Kernel("gaussian", 0.1), np.array([[0.0], [1.0]]), domain)
    assert math.isclose(embedding.spread, math.sqrt(2), rel_tol=1e-6)
    assert 2 * searched(embedding, 1.0) > 1
