"""Under the null hypothesis p-values are uniform and decisions keep their level.

All runs are seeded. Thresholds are set so that correct code would fail with probability
FALSE_ALARM for each check, had the seeds been drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, kstest

from privatest import mmd_test
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.mechanisms import permutation
from privatest.noise import SimulatedNoise

FALSE_ALARM = 1e-5
RUNS = 300
ALPHA = 0.2  # a larger level than usual: 300 runs say more about it

Sampler = Callable[[np.random.Generator, int], NDArray[np.float64]]


def uniform(rng, size):
    return rng.uniform(size=size)


def skewed(rng, size):
    return rng.beta(0.4, 4, size=size)


def tied(rng, size):
    return rng.choice([0.0, 0.5, 1.0], p=[0.7, 0.2, 0.1], size=size)


def constant(rng, size):
    return np.full(size, 0.3)


def square(rng, size):
    return rng.uniform(size=(size, 2)) ** 2


MIXED = Schema(
    {
        "skewed": NumericColumn(0, 1),
        "count": NumericColumn(0, 4, integer=True),
        "kind": CategoricalColumn((0, 1, 2)),
    }
)


def mixed(rng, size):
    """Dependent columns: a skewed number, a count and a category."""
    numbers, counts = skewed(rng, size), np.minimum(rng.poisson(1, size=size), 4)
    kinds = (rng.choice(3, p=[0.7, 0.2, 0.1], size=size) + (counts > 1)) % 3
    return np.column_stack([numbers, counts, kinds])


@dataclass(frozen=True)
class Case:
    """A way of drawing both samples from one law, and of testing them."""

    name: str
    sampler: Sampler
    n: int
    m: int
    epsilon: float = 1.0
    parameters: dict[str, Any] = field(default_factory=dict)

    def samples(self, rng):
        if self.parameters.get("adjacency") != "row" or self.m == 0:
            return self.sampler(rng, self.n), self.sampler(rng, self.m)
        rows = self.sampler(rng, self.n + self.m)
        in_x = rng.uniform(size=len(rows)) < self.n / len(rows)  # sizes are random too
        return rows[in_x], rows[~in_x]

    def run(self, seed, release, **parameters):
        rng = np.random.default_rng([2024, seed])
        x, y = self.samples(rng)
        settings: dict[str, Any] = {
            "bounds": (0, 1),
            "bandwidths": [1.0, 0.25],
            "n_permutations": 39,
        }
        return mmd_test(
            x,
            y,
            epsilon=self.epsilon,
            alpha=ALPHA,
            release=release,
            rng=rng,
            noise=SimulatedNoise(seed),
            **(settings | self.parameters | parameters),
        )


ROW = {"adjacency": "row", "relabel": "permute"}
SWAP = {"adjacency": "row", "relabel": "swap"}
BOTH = {"adjacency": "both", "bin_size": 4}
FAMILY: dict[str, Any] = {"bandwidths": None}  # all statistics that apply
MIXED_FAMILY = FAMILY | {"bounds": MIXED}
OTHERS = ("additive", "pairwise", "kolmogorov", "mean")
FEATURES = {"method": "nystrom", "bandwidths": 0.5, "statistics": ("kernel", *OTHERS)}
CASES = [
    Case("uniform", uniform, 20, 20),
    Case("uniform, small epsilon", uniform, 20, 20, 0.05),
    Case("uniform, large epsilon", uniform, 20, 20, 10),
    Case("skewed, unequal sizes", skewed, 30, 12, 10),
    Case("skewed, u-statistic", skewed, 12, 18, 10, {"estimator": "u"}),
    Case("ties", tied, 20, 20, 10),
    Case("constant", constant, 10, 10),
    Case("smallest samples", tied, 2, 3, 10),
    Case("bins with leftovers", skewed, 23, 31, 10, {"bin_size": 4}),
    Case("bins with leftovers and ties", tied, 31, 14, 10, {"bin_size": 5}),
    Case("both samples", skewed, 20, 15, 10, {"adjacency": "both"}),
    Case("two dimensions", square, 20, 25, 10),
    Case("nystrom", skewed, 25, 20, 10, {"method": "nystrom", "bandwidths": 0.25}),
    Case("fourier", skewed, 25, 20, 10, {"method": "fourier", "bandwidths": 0.25}),
    Case("private groups", uniform, 20, 20, 10, ROW),
    Case("private groups, small epsilon", skewed, 20, 20, 0.05, ROW),
    Case("private groups, unequal and tied", tied, 35, 6, 10, ROW),
    Case("private groups, one is empty", skewed, 30, 0, 10, ROW),
    Case(
        "private groups in blocks with leftovers",
        skewed,
        100,
        47,
        10,
        ROW | {"method": "nystrom", "bandwidths": 0.25},
    ),
    Case("swaps in pairs", skewed, 20, 21, 10, SWAP),
    Case("swaps in pairs, unequal and tied", tied, 35, 6, 10, SWAP),
    Case("family, one column", tied, 20, 20, 10, FAMILY),
    Case("family, mixed columns", mixed, 20, 25, 10, MIXED_FAMILY),
    Case("family, both samples, bins", mixed, 33, 15, 5, MIXED_FAMILY | BOTH),
    Case("family of features", mixed, 25, 20, 10, MIXED_FAMILY | FEATURES),
    Case("family without kernels", mixed, 25, 20, 10, MIXED_FAMILY | {"statistics": OTHERS}),
    Case("family, private groups", mixed, 20, 25, 10, MIXED_FAMILY | ROW),
    Case("family, private groups, small epsilon", mixed, 35, 6, 0.1, MIXED_FAMILY | ROW),
    Case("family, swaps in pairs", mixed, 20, 21, 10, MIXED_FAMILY | SWAP),
    Case(
        "swaps in bins of pairs",
        skewed,
        700,
        405,
        10,
        SWAP | {"method": "nystrom", "bandwidths": 0.25},
    ),
]
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def rejections_within(runs, level, false_alarm):
    """Range of the number of rejections, both ends included."""
    low = binom.ppf(false_alarm / 2, runs, level)
    return low, binom.isf(false_alarm / 2, runs, level)


@EVERY_CASE
def test_pvalues_are_uniform_and_decisions_keep_their_level(case):
    outcomes = [case.run(seed, "pvalue") for seed in range(RUNS)]
    pvalues = np.array([outcome.pvalue for outcome in outcomes])
    assert kstest(pvalues, "uniform").pvalue > FALSE_ALARM
    low, high = rejections_within(RUNS, ALPHA, FALSE_ALARM)
    assert low <= np.sum([outcome.reject for outcome in outcomes]) <= high
    assert pvalues.min() >= 1e-4


@pytest.mark.parametrize(
    "case", [CASES[0], CASES[3], CASES[8], CASES[14], CASES[17]], ids=lambda case: case.name
)
def test_decisions_alone_keep_their_level(case):
    found = sum(case.run(1_000 + seed, "decision").reject for seed in range(RUNS))
    low, high = rejections_within(RUNS, ALPHA, FALSE_ALARM)
    assert low <= found <= high


def test_a_test_without_level_is_caught(monkeypatch):
    """Leave the observed statistic out of its own null: far too many small p-values."""
    survival_mean = permutation.survival_mean
    monkeypatch.setattr(
        permutation,
        "survival_mean",
        lambda value, statistics, scale: survival_mean(value, statistics[1:], scale),
    )
    case = Case("few permutations", skewed, 20, 20, 100, {"n_permutations": 4})
    pvalues = np.array([case.run(seed, "pvalue").pvalue for seed in range(RUNS)])
    assert kstest(pvalues, "uniform").pvalue < FALSE_ALARM
