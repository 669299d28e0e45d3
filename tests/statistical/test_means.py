"""Level and power of tests of means, a small part of benchmarks/level and benchmarks/power.

Seeds are fixed. Were they not, a limit would be passed by chance in at most one of 1000 runs of
the file (exact binomial tails).
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom

from privatest.methods.means import (
    hotelling_1samp,
    hotelling_test,
    private_covariance,
    private_mean,
    ttest_1samp,
    ttest_ind,
)
from privatest.noise import SimulatedNoise

ROOT = math.sqrt(3)
ALPHA, FALSE_ALARM = 0.05, 5e-5


def draw(law: str, n: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    low = 0.5 if law == "off-centre" else -ROOT
    return rng.uniform(low, ROOT, size=(n, dimension))


def most(runs: int, rate: float = ALPHA) -> int:
    """More rejections than this have probability below FALSE_ALARM."""
    return int(binom.isf(FALSE_ALARM, runs, rate))


@pytest.mark.nightly
@pytest.mark.parametrize("law", ["centred", "off-centre"])
@pytest.mark.parametrize(
    "budget", [{"epsilon": 0.1}, {"epsilon": 1.0}, {"epsilon": 1, "delta": 1e-6}]
)
@pytest.mark.parametrize(("dimension", "n", "m"), [(1, 100, 300), (3, 300, 100)])
def test_level(law, budget, dimension, n, m):
    runs, rejections = 200 if dimension == 1 else 80, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        x, y = draw(law, n, dimension, rng), draw(law, m, dimension, rng)
        rejections += hotelling_test(
            x,
            y,
            bounds=(-ROOT, ROOT),
            n_bootstrap=59,
            rng=seed,
            noise=SimulatedNoise(seed),
            **budget,
        ).reject
    assert rejections <= most(runs)


@pytest.mark.parametrize(("equal", "holds"), [(True, False), (False, True)])
def test_level_with_unequal_variances(equal, holds):
    """The small sample varies more: Welch's form knows it, the pooled one does not, as in SciPy."""
    runs, rejections = 200, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(-1, 1, size=200), rng.uniform(-0.1, 0.1, size=2000)
        rejections += ttest_ind(
            x, y, bounds=(-1, 1), epsilon=20, equal_var=equal, noise=SimulatedNoise(seed)
        ).reject
    assert (rejections <= most(runs)) == holds


@pytest.mark.parametrize("alternative", ["less", "greater"])
def test_level_one_sided(alternative):
    runs, rejections = 200, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        x, y = rng.beta(1, 6, size=200), rng.beta(1, 6, size=200)
        rejections += ttest_ind(
            x,
            y,
            bounds=(0, 1),
            epsilon=1,
            alternative=alternative,
            noise=SimulatedNoise(seed),
        ).reject
    assert rejections <= most(runs)


def test_intervals_cover():
    """Simultaneous intervals of means and of covariances, and the region of the test."""
    runs = 100
    missed = {"mean": 0, "covariance": 0, "region": 0}
    truth = np.full(2, (ROOT + 0.5) / 2)
    variance = (ROOT - 0.5) ** 2 / 12 * np.eye(2)
    for seed in range(runs):
        x = draw("off-centre", 400, 2, np.random.default_rng(seed))
        options: dict[str, Any] = {"bounds": (-ROOT, ROOT), "epsilon": 1.0}
        options |= {"n_bootstrap": 59, "rng": seed}
        mean = private_mean(x, noise=SimulatedNoise(seed), **options)
        missed["mean"] += not np.all((mean.lower <= truth) & (truth <= mean.upper))
        test = hotelling_1samp(x, truth, noise=SimulatedNoise(seed), **options)
        missed["region"] += test.reject
        found = private_covariance(x, noise=SimulatedNoise(seed), **options)
        missed["covariance"] += not np.all((found.lower <= variance) & (variance <= found.upper))
    assert max(missed.values()) <= most(runs)


def power(dimension: int, n: int, epsilon: float, runs: int, **options) -> float:
    """Rejections on the data of section 4 of the paper, a = 1."""
    shift, rejections = 1 / math.sqrt(dimension), 0
    reach = ROOT + shift
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        x, y = draw("centred", n, dimension, rng), draw("centred", n, dimension, rng) + shift
        rejections += hotelling_test(
            x,
            y,
            bounds=(-reach, reach),
            epsilon=epsilon,
            n_bootstrap=39,
            rng=seed,
            noise=SimulatedNoise(seed),
            **options,
        ).reject
    return rejections / runs


def test_power():
    """Asked for .75 and .9; measured .9 and .98 in benchmarks, with more replicates."""
    assert power(10, 300, 1.0, runs=40) >= 0.75
    assert power(10, 3000, 0.1, runs=40) >= 0.9


def rejections(test: Any, runs: int, **budget: float) -> int:
    """Count rejections of a true hypothesis; ``test(data, **options)`` returns a result."""
    count = 0
    for seed in range(runs):
        options = {"bounds": (-1, 1), **budget}
        count += test(
            np.random.default_rng([seed, 8]), noise=SimulatedNoise(seed), **options
        ).reject
    return count


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("spread", "budget"),
    [(0.01, {"epsilon": 20}), (0.03, {"epsilon": 5}), (0.01, {"epsilon": 20, "delta": 1e-6})],
)
def test_level_off_centre_with_a_spread_near_the_noise(spread, budget):
    """Noise on the mean moves the variance too: .14 and .09 were rejected."""

    def test(data, **options):
        return ttest_1samp(data.normal(0.7, spread, size=1000), 0.7, **options)

    assert rejections(test, 400, **budget) <= most(400)


@pytest.mark.parametrize("two", [False, True])
def test_level_of_several_columns_off_centre(two):
    """The mean was the leading axis of the second moment: .27 and .14 were rejected."""

    def test(data, **options):
        x, y = data.normal(0.7, 0.1, size=(2, 3000, 2))
        options |= {"n_bootstrap": 59, "rng": 1}
        return hotelling_test(x, y, **options) if two else hotelling_1samp(x, [0.7, 0.7], **options)

    assert rejections(test, 200, epsilon=20) <= most(200)


def test_several_columns_off_centre_have_power():
    """Five columns off their centre never rejected."""

    def test(data, **options):
        options |= {"n_bootstrap": 59, "rng": 1}
        return hotelling_1samp(data.normal(0.7, 0.1, size=(3000, 5)), [0.69] * 5, **options)

    assert rejections(test, 20, epsilon=20) == 20


def draw_law(law: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows in [-1, 1]; the mean of rare rows, of which ``law`` says how many, is at theirs."""
    if law.startswith("rare"):
        return np.where(rng.random(n) < float(law[5:]) / n, 1.0, -1.0)
    if law == "lognormal":
        return 0.9 - 0.05 * np.exp(rng.standard_normal(n)).clip(max=30)
    return rng.normal(0, 0.3, size=n)


def compared(ours: Any, scipys: Any, law: str, sizes: tuple[int, ...], runs: int, **options: Any):
    """Count rejections of a true hypothesis by both tests on the same rows."""
    found, own = 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, *sizes])
        rows = [draw_law(law, rng, n) for n in sizes]
        found += ours(*rows, noise=SimulatedNoise(seed), bounds=(-1, 1), **options).pvalue <= ALPHA
        own += scipys(*rows).pvalue <= ALPHA
    return found, most(runs, max(ALPHA, own / runs))


@pytest.mark.nightly
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 5}, {"epsilon": 1, "delta": 1e-6}])
@pytest.mark.parametrize("ones", [10, 20.5])
def test_level_with_rare_rows_is_that_of_the_classical_test(ones, budget):
    """A hard switch was too liberal beyond 18 rare rows, and too careful before it."""
    mean = 2 * ones / 1000 - 1
    found, allowed = compared(
        lambda x, **o: ttest_1samp(x, mean, alternative="less", **o),
        lambda x: stats.ttest_1samp(x, mean, alternative="less"),
        f"rare {ones}",
        (1000,),
        400,
        **budget,
    )
    assert found <= allowed


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("law", "sizes"),
    [("lognormal", (10, 1000)), ("rare 20", (30, 600)), ("normal", (5, 5)), ("normal", (10, 100))],
)
def test_level_of_unequal_and_tiny_samples(law, sizes):
    found, allowed = compared(ttest_ind, stats.ttest_ind, law, sizes, 300, epsilon=20)
    assert found <= allowed


@pytest.mark.parametrize("epsilon", [1, 20])
@pytest.mark.parametrize("ones", [0.6, 3, 20.5])
def test_any_law_has_its_level_whatever_the_rows(ones, epsilon):
    """A t-test without noise rejects up to .5 of these: most samples contain none of the ones."""
    runs, rejections, mean = 300, 0, 2 * ones / 300 - 1
    for seed in range(runs):
        x = draw_law(f"rare {ones}", np.random.default_rng([seed, 4]), 300)
        rejections += ttest_1samp(
            x,
            mean,
            alternative="less",
            bounds=(-1, 1),
            epsilon=epsilon,
            calibration="any",
            noise=SimulatedNoise(seed),
        ).reject
    assert rejections <= most(runs)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [5, 20])
def test_coverage_of_a_mean_off_centre(epsilon):
    """The interval held the mean in .87 and .74 of the cases."""

    def misses(data, **options):
        found = private_mean(data.normal(0.7, 0.1 / epsilon, size=1000), **options)
        return SimpleNamespace(reject=not found.lower[0] <= 0.7 <= found.upper[0])

    assert rejections(misses, 300, epsilon=epsilon) <= most(300)
