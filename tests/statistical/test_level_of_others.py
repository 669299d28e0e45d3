"""Level of hsic_test, ipm_test, mannwhitneyu, ks_2samp, symmetry_test, pearsonr: uniform p-values.

Seeds are fixed. Were they not, a Kolmogorov-Smirnov test at 1e-4 would fail by chance in one
of 10,000 runs for each case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

import privatest as pt
from privatest.data.encoding import Sample
from privatest.methods.regression import Line, leap_pvalue, line_moments, line_pvalue
from privatest.noise import SimulatedNoise

RUNS, FALSE_ALARM = 250, 1e-4


def draws(law: str, size: int, rng: np.random.Generator) -> np.ndarray:
    if law == "ties":
        return rng.integers(0, 3, size=size) / 2
    return rng.beta(0.4, 4, size=size)


@pytest.mark.parametrize("law", ["skewed", "ties"])
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
@pytest.mark.parametrize("options", [{"method": "nystrom"}, {"method": "exact"}])
def test_hsic(law, epsilon, options):
    pvalues = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        outcome = pt.hsic_test(
            draws(law, 37, rng),
            draws(law, 37, rng),
            epsilon=epsilon,
            bounds_x=(0, 1),
            bounds_y=(0, 1),
            bandwidths_x=[1, 0.25],
            bandwidths_y=[1, 0.25],
            n_permutations=49,
            rng=seed,
            noise=SimulatedNoise(seed),
            **options,
        )
        pvalues.append(outcome.pvalue)
    assert kstest(pvalues, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("law", ["skewed", "ties"])
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
@pytest.mark.parametrize("options", [{"statistics": "trend"}, {"shuffle": "swap"}])
def test_trends_and_swaps(law, epsilon, options):
    pvalues = [independent(law, epsilon, seed, **options).pvalue for seed in range(RUNS)]
    assert kstest(pvalues, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("law", ["skewed", "ties"])
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_decisions_of_several_tests_keep_their_level(law, epsilon):
    """At most .3; a binomial test at 1e-4 allows 103 of 250. And not far below: .15 at least."""
    options: dict[str, Any] = {"release": "decision", "alpha": 0.3}
    options["statistics"] = ["kernel", "kolmogorov", "mean", "trend"]
    rejected = sum(independent(law, epsilon, seed, **options).reject for seed in range(RUNS))
    assert 0.15 * RUNS < rejected <= 103


def independent(law: str, epsilon: float, seed: int, **options: Any) -> Any:
    rng = np.random.default_rng(seed)
    return pt.hsic_test(
        draws(law, 37, rng),
        draws(law, 37, rng),
        epsilon=epsilon,
        bounds_x=(0, 1),
        bounds_y=(0, 1),
        n_permutations=49,
        rng=seed,
        noise=SimulatedNoise(seed),
        **options,
    )


@pytest.mark.parametrize("distance", ["mean", "wasserstein", "kolmogorov"])
@pytest.mark.parametrize("relabel", ["public groups", "permute", "swap"])
def test_ipm(distance, relabel):
    row: dict[str, Any] = {"adjacency": "row", "relabel": relabel}
    groups = {} if relabel == "public groups" else row
    for epsilon in (0.1, 10.0):
        pvalues = []
        for seed in range(RUNS):
            rng = np.random.default_rng(seed)
            outcome = pt.ipm_test(
                draws("ties", 40, rng),
                draws("ties", 71, rng),
                distance=distance,
                bounds=(0, 1),
                epsilon=epsilon,
                n_permutations=49,
                rng=seed,
                noise=SimulatedNoise(seed),
                **groups,
            )
            pvalues.append(outcome.pvalue)
        assert kstest(pvalues, "uniform").pvalue > FALSE_ALARM


def private_ranks(x: np.ndarray, y: np.ndarray, alternative: Any, epsilon: float, seed: int) -> Any:
    return pt.mannwhitneyu(
        x,
        y,
        alternative=alternative,
        adjacency="row",
        epsilon=epsilon,
        n_permutations=49,
        rng=seed,
        noise=SimulatedNoise(seed),
    )


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize(("total", "epsilon"), [(111, 0.1), (111, 10.0), (1_100, 10.0)])
def test_mann_whitney_with_private_groups(alternative, total, epsilon):
    """Sizes are random, values tied; 1,100 rows are permuted in blocks of two."""
    pvalues = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        rows, in_x = draws("ties", total, rng), rng.uniform(size=total) < 0.3
        outcome = private_ranks(rows[in_x], rows[~in_x], alternative, epsilon, seed)
        pvalues.append(outcome.pvalue)
    assert kstest(pvalues, "uniform").pvalue > FALSE_ALARM


def test_one_sided_with_private_groups_keeps_its_level_beyond_equality():
    """x tends to smaller values: "greater" rejects less often than alpha, and "less" more."""
    rejected = {"greater": 0, "less": 0}
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=60), rng.normal(0.4, 1, size=40)
        for alternative in rejected:
            rejected[alternative] += private_ranks(x, y, alternative, 3.0, seed).reject
    assert rejected["greater"] <= 0.02 * RUNS
    assert rejected["less"] > 0.3 * RUNS


# --- ties and zeros: broken by secret labels, so that exact laws hold -----------------------

DISCRETE = {
    "bernoulli": lambda rng, size: (rng.random(size) < 0.1).astype(float),
    "poisson": lambda rng, size: rng.poisson(1.0, size).astype(float),
    "constant": lambda rng, size: np.zeros(size),
}
CHANGES = {
    "many zeros": lambda rng, size: rng.choice([-1.0, 0.0, 1.0], size, p=[0.05, 0.9, 0.05]),
    "no change": lambda rng, size: np.zeros(size),
    "whole numbers": lambda rng, size: np.rint(rng.normal(0, 1.5, size)),
    "counts": lambda rng, size: rng.poisson(1.0, size) - rng.poisson(1.0, size) + 0.0,
}
TIED_RUNS = 2000


def assert_uniform(pvalues: list[float]) -> None:
    """By a KS test at 1e-4; and the rate at .05 by 4 standard errors: false alarms 6e-5."""
    assert kstest(pvalues, "uniform").pvalue > FALSE_ALARM
    assert abs(np.mean(np.array(pvalues) <= 0.05) - 0.05) < 4 * (0.05 * 0.95 / TIED_RUNS) ** 0.5


@pytest.mark.parametrize("law", DISCRETE)
@pytest.mark.parametrize(
    ("statistic", "sizes", "adjacency", "epsilon"),
    [
        ("ks", (100, 100), "one", 1.0),
        ("kuiper", (100, 100), "one", 1.0),
        ("ks", (30, 50), "both", 5.0),
        ("kuiper", (21, 30), "one", 0.2),
    ],
)
def test_ks_with_ties(law, statistic, sizes, adjacency, epsilon):
    pvalues = []
    for seed in range(TIED_RUNS):
        rng = np.random.default_rng(seed)
        x, y = (DISCRETE[law](rng, size) for size in sizes)
        outcome = pt.ks_2samp(
            x,
            y,
            statistic=statistic,
            adjacency=adjacency,
            epsilon=epsilon,
            noise=SimulatedNoise(seed),
        )
        pvalues.append(outcome.pvalue)
    assert_uniform(pvalues)


@pytest.mark.parametrize("law", CHANGES)
@pytest.mark.parametrize(("statistic", "n", "epsilon"), [("ks", 100, 1.0), ("kuiper", 40, 5.0)])
def test_symmetry_with_ties_and_zeros(law, statistic, n, epsilon):
    pvalues = []
    for seed in range(TIED_RUNS):
        z = CHANGES[law](np.random.default_rng(seed), n)
        noise = SimulatedNoise(seed)
        outcome = pt.symmetry_test(z, statistic=statistic, epsilon=epsilon, noise=noise)
        pvalues.append(outcome.pvalue)
    assert_uniform(pvalues)


@pytest.mark.parametrize(("n", "epsilon"), [(1000, 10.0), (100, 0.3)])
def test_pearson_with_rare_values(n, epsilon):
    """Rejections of 2500 at .05: above 150 with probability .01 for an exact test.

    One row that is rare in both columns moves the covariance at a leap (n = 1000), and noise on
    means near a bound hides how much noise the covariance has (n = 100). Without regard to these
    there were 161 and 180.
    """
    rng, rejected = np.random.default_rng(1), 0
    scale = 2 / (n * epsilon * (0.9 if n * epsilon >= 1000 else 1.0))
    for _ in range(2500):
        rows = (rng.random((2, n)) < 0.01).astype(float).T
        noise = rng.gamma(6, scale) * rng.uniform(-1, 1, size=5)
        line = Line.of(n, line_moments(Sample(rows, None)) + noise, scale)
        # below n epsilon² = 1,000,000 both count
        both = (test(line, "greater", 199, rng) for test in (line_pvalue, leap_pvalue))
        rejected += max(both) <= 0.05
    assert rejected <= 150


def test_interval_of_tau_in_five_rows():
    """Misses of 400 at .95: above 30 with probability .01; there were 33 without regard to n."""
    missed = 0
    for seed in range(400):
        x, y = np.random.default_rng(seed).normal(size=(2, 5))
        noise = SimulatedNoise(seed)
        low, high = pt.kendalltau(x, y, epsilon=10, noise=noise).confidence_interval(0.95)
        missed += not low <= 0 <= high
    assert missed <= 30
