"""Whole tests other than MMD, run many times on neighbours: they lose no more than epsilon.

Runs are seeded. Unseeded, an audit would fail by chance with probability 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.methods import fit_families as family
from privatest.noise import SimulatedNoise
from tests.privacy.harness import audit, caught

EPSILON, RUNS = 1.0, 1500

UP, DOWN, ZEROS = np.array([1.0, 1.0, 1.0, 1.0]), -np.ones(4), np.zeros(4)
ONE_DOWN = np.array([1.0, 1.0, 1.0, -1.0])
HALVES, ONE_MOVED = np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.999, 0.4, 0.6, 0.8])

# What a test releases, and two neighbours that move its statistic far.
Case = tuple[Callable[..., Any], Any, Any]
LATTICE: dict[str, Case] = {
    "ks_1samp": (lambda x, **o: pt.ks_1samp(x, "uniform(0,1)", **o), HALVES, ONE_MOVED),
    "ks_2samp": (lambda d, **o: pt.ks_2samp(*d, **o), (UP, ZEROS), (UP, [1.0, 0, 0, 0])),
    "ks_1samp, grid": (
        lambda x, **o: pt.ks_1samp(x, "uniform(0,1)", grid=[0.3, 0.5, 0.9], **o),
        HALVES,
        ONE_MOVED,
    ),
    "ks_2samp, grid": (
        lambda d, **o: pt.ks_2samp(*d, grid=[0.5], **o),
        (UP, ZEROS),
        (UP, [1.0, 0, 0, 0]),
    ),
    "ks_1samp, one side": (
        lambda x, **o: pt.ks_1samp(x, "uniform(0,1)", alternative="greater", **o),
        HALVES,
        ONE_MOVED,
    ),
    "ks_2samp, one side": (
        lambda d, **o: pt.ks_2samp(*d, alternative="less", **o),
        (UP, ZEROS),
        (UP, [1.0, 0, 0, 0]),
    ),
    "kuiper": (
        lambda d, **o: pt.ks_2samp(*d, statistic="kuiper", **o),
        (UP, ZEROS),
        (UP, [1.0, 0, 0, 0]),
    ),
    "mannwhitneyu": (lambda d, **o: pt.mannwhitneyu(*d, **o), (UP, ZEROS), (UP, [2.0, 0, 0, 0])),
    "median_test": (lambda d, **o: pt.median_test(*d, **o), (UP, ZEROS), (UP, [2.0, 0, 0, 0])),
    "kruskal": (lambda d, **o: pt.kruskal(*d, **o), (UP, ZEROS), (UP, [2.0, 0, 0, 0])),
    "symmetry_test": (pt.symmetry_test, UP, ONE_DOWN),
    "sign_test": (pt.sign_test, UP, ONE_DOWN),
    "wilcoxon": (pt.wilcoxon, np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, -5])),
    "ks_family": (
        lambda x, **o: pt.ks_family(x, "norm", bounds=(-5, 5), **o),
        np.array([-1.0, 0, 0.5, 1]),
        np.array([5.0, 0, 0.5, 1]),
    ),
}
PAIRS = (np.array([0.0, 0, 0, 1]), np.array([0.0, 0, 0, 1]))
OTHER_PAIRS = (np.array([0.0, 0, 0, 0]), np.array([0.0, 0, 0, 0]))
PERMUTATION: dict[str, Case] = {
    "hsic_test": (
        lambda d, **o: pt.hsic_test(
            *d, bounds_x=(0, 1), bounds_y=(0, 1), bandwidths_x=1, bandwidths_y=1, **o
        ),
        PAIRS,
        OTHER_PAIRS,
    ),
    "mmd_test, three samples": (  # a record changes its values and its group
        lambda d, **o: pt.mmd_test(*d, adjacency="row", bounds=(0, 1), bandwidths=1, **o),
        (UP, ZEROS, ZEROS),
        (UP[:-1], ZEROS, [*ZEROS, 0.0]),
    ),
    "ipm_test": (
        lambda d, **o: pt.ipm_test(*d, distance="mean", bounds=(0, 1), **o),
        (UP, ZEROS),
        (UP, [1.0, 0, 0, 0]),
    ),
    "ipm_test, cells": (
        lambda d, **o: pt.ipm_test(*d, distance="wasserstein", bounds=(0, 1), grid=4, **o),
        (UP, ZEROS),
        (UP, [1.0, 0, 0, 0]),
    ),
    "ks_2samp, private groups on a grid": (
        lambda d, **o: pt.ks_2samp(*d, adjacency="row", grid=[0.5], **o),
        (UP, ZEROS),
        (UP[:-1], [*ZEROS, 0.0]),
    ),
}


def statistic(call: Callable[..., Any]) -> Callable[[Any], float]:
    noise = SimulatedNoise(1)
    return lambda data: call(data, epsilon=EPSILON, noise=noise).statistic


def pvalue(call: Callable[..., Any]) -> Callable[[Any], float]:
    noise = SimulatedNoise(1)
    return lambda data: call(data, epsilon=EPSILON, noise=noise, n_permutations=19, rng=0).pvalue


@pytest.mark.parametrize("name", LATTICE)
def test_noisy_statistics(name, monkeypatch):
    distance, known = family.ks_fit, {}

    def remembered(sample: Any, *others: Any) -> int:
        """The distance draws no noise, and takes most of the time of ks_family."""
        key = sample.x.tobytes(), sample.low, sample.high
        if key not in known:
            known[key] = distance(sample, *others)
        return known[key]

    monkeypatch.setattr(family, "ks_fit", remembered)
    call, first, second = LATTICE[name]
    assert audit(statistic(call), first, second, runs=RUNS) <= EPSILON


@pytest.mark.parametrize("name", PERMUTATION)
def test_smoothed_pvalues(name):
    call, first, second = PERMUTATION[name]
    assert audit(pvalue(call), first, second, runs=RUNS // 2) <= EPSILON


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
def test_private_groups_at_ranks(statistic, monkeypatch):
    """What more than 16,384 rows get, with eight."""
    monkeypatch.setattr("privatest.methods.ks.EXACT_ROWS", 0)
    monkeypatch.setattr("privatest.methods.ks.RANK_CELLS", 4)
    monkeypatch.setattr("privatest.methods.ks.swaps_labels", lambda *_: False)

    def call(data: Any, **options: Any) -> Any:
        result = pt.ks_2samp(*data, adjacency="row", statistic=statistic, **options)
        assert result.parameters["rank_cells"] == 4
        return result

    lost = audit(pvalue(call), (UP, ZEROS), (UP[:-1], [*ZEROS, 0.0]), runs=RUNS // 2)
    assert lost <= EPSILON


@pytest.mark.parametrize("name", ["ks_2samp", "sign_test", "symmetry_test", "median_test"])
def test_half_the_noise_is_caught(name, monkeypatch):
    draw = SimulatedNoise.discrete_laplace
    monkeypatch.setattr(SimulatedNoise, "discrete_laplace", lambda s, scale: draw(s, scale / 2))
    call, first, second = LATTICE[name]
    assert caught(statistic(call), first, second, above=EPSILON, runs=5_000)
