"""Small tests compute what is public once: counted, as times would depend on the machine."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import privatest as pt
from benchmarks.speed.small import small_tests
from privatest.methods import ranks as kruskal_wallis
from privatest.methods.ranks import null_rank_sums
from privatest.noise import SimulatedNoise

ROWS = 100


def caches() -> dict[str, Any]:
    """Everything of the library that is kept by public parameters."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("privatest."):
            for word, value in vars(module).items():
                if hasattr(value, "cache_info") and value.__module__ == name:
                    found[f"{name}.{word}"] = value
    return found


def misses() -> dict[str, int]:
    return {name: cache.cache_info().misses for name, cache in caches().items()}


@pytest.mark.parametrize("name", small_tests(ROWS))
def test_a_second_call_computes_no_law(name):
    """Other data, other noise, the same public parameters: nothing is computed again.

    So the time of a call does not tell whether the same rows were asked about before.
    """
    for seed in (1, 2):
        small_tests(ROWS, seed, noise=SimulatedNoise(seed))[name]()
    before = misses()
    small_tests(ROWS, 3, noise=SimulatedNoise(3))[name]()
    assert misses() == before


@pytest.fixture
def counted(monkeypatch):
    """How often the law of kruskal is drawn."""
    calls = []

    def drawn(sizes, count, rng):
        calls.append(tuple(sizes))
        return null_rank_sums(sizes, count, rng)

    monkeypatch.setattr(kruskal_wallis, "null_rank_sums", drawn)
    kruskal_wallis._cached_kruskal_law.cache_clear()
    yield calls
    kruskal_wallis._cached_kruskal_law.cache_clear()


def three(seed: int, size: int = 30) -> Any:
    return np.random.default_rng(seed).normal(size=(3, size))


def test_the_law_of_kruskal_is_drawn_once(counted):
    for seed in (None, 5):
        for data in range(3):
            pt.kruskal(*three(data), epsilon=1, rng=seed)
    assert len(counted) == 2
    pt.kruskal(*three(0, size=31), epsilon=1)
    assert counted[-1] == (31, 31, 31)


def test_a_cached_kruskal_law_is_the_one_that_would_be_drawn(counted):
    options: dict[str, Any] = {"epsilon": 1, "rng": 5}
    fresh = [pt.kruskal(*three(1), **options, noise=SimulatedNoise(3)).to_dict() for _ in range(2)]
    by_generator = pt.kruskal(
        *three(1), epsilon=1, rng=np.random.default_rng(5), noise=SimulatedNoise(3)
    )
    assert fresh[0] == fresh[1] == by_generator.to_dict()
    assert len(counted) == 2  # a generator goes on: what it draws is not kept


def test_a_generator_is_not_kept(counted):
    rng = np.random.default_rng(5)
    for _ in range(2):
        pt.kruskal(*three(1), epsilon=1, rng=rng)
    assert len(counted) == 2
