"""A noisy statistic against its null law: the area drawn is the p-value that was released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.noise import SimulatedNoise

pytest.importorskip("matplotlib")

from privatest.display.plots import null_of, plot_null_law

RNG = np.random.default_rng(3)
X, Y = RNG.random(60), RNG.random(50) ** 2
FIVE = pt.Schema.from_bounds({"a": (0, 1)}, rows_per_person=5)
TESTS: dict[str, Any] = {
    "mann-whitney": lambda **o: pt.mannwhitneyu(X, Y, **o),
    "mann-whitney less": lambda **o: pt.mannwhitneyu(X, Y, alternative="less", **o),
    "mann-whitney greater": lambda **o: pt.mannwhitneyu(X, Y, alternative="greater", **o),
    "five rows a person": lambda **o: pt.mannwhitneyu({"a": X}, {"a": Y}, bounds=FIVE, **o),
    "both": lambda **o: pt.mannwhitneyu(X, Y, adjacency="both", **o),
    "median": lambda **o: pt.median_test(X, Y, **o),
    "median greater": lambda **o: pt.median_test(X, Y, alternative="greater", **o),
    "ks": lambda **o: pt.ks_2samp(X, Y, **o),
    "ks less": lambda **o: pt.ks_2samp(X, Y, alternative="less", **o),
    "ks by Laplace": lambda **o: pt.ks_2samp(X, Y, mechanism="laplace", **o),
    "kuiper": lambda **o: pt.ks_2samp(X, Y, statistic="kuiper", **o),
    "one sample": lambda **o: pt.ks_1samp(X, "uniform", **o),
    "cvm": lambda **o: pt.ks_1samp(X, "uniform", statistic="cvm", **o),
    "sign": lambda **o: pt.sign_test(X[:50], Y, **o),
    "wilcoxon": lambda **o: pt.wilcoxon(X[:50], Y, alternative="greater", **o),
    "symmetry": lambda **o: pt.symmetry_test(X[:50], Y, **o),
}


def filled(axes: Any) -> float:
    """The share of the drawn area that is filled."""
    whole, part = (patch.get_data() for patch in axes.patches)
    widths = np.diff(whole.edges)
    return float(np.sum(part.values * widths) / np.sum(whole.values * widths))


@pytest.mark.parametrize(
    ("name", "delta"), [*((name, 0) for name in TESTS), ("ks", 1e-3), ("mann-whitney less", 1e-3)]
)
def test_the_area_is_the_pvalue(name, delta):
    outcome = TESTS[name](epsilon=1, delta=delta, noise=SimulatedNoise(1))
    assert filled(plot_null_law(outcome)) == pytest.approx(outcome.pvalue, abs=0.01)


def test_a_wrong_pvalue_is_not_drawn():
    from dataclasses import replace

    outcome = TESTS["ks"](epsilon=1)
    with pytest.raises(pt.ParameterError, match="not that of a law"):
        null_of(replace(outcome, pvalue=min(1.0, outcome.pvalue / 2 + 0.3)))


def test_tests_without_a_public_law_are_refused():
    outcome = pt.mmd_test(X, Y, bounds=(0, 1), epsilon=1, n_permutations=9)
    with pytest.raises(pt.ParameterError, match="law under the null hypothesis is public"):
        plot_null_law(outcome)
