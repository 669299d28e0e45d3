"""How the level of a test is known: declared beside the function, and carried by its results."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.core.results import LEVEL_WORDS, LEVELS, Level, declare_level, declared_level
from privatest.methods.correlation import spearman_law
from privatest.methods.ks import one_sample_law, two_sample_law
from privatest.noise import SimulatedNoise
from privatest.requests.results import result_from_dict

X = np.random.default_rng(0).uniform(size=60)
Y = np.random.default_rng(1).uniform(size=60)
BITS = (X > 0.5).astype(int), (Y > 0.5).astype(int)
PAIRS: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (0, 1), "rng": 0}


@pytest.mark.parametrize(
    ("level", "call"),
    [
        ("valid", lambda more: pt.mmd_test(X, Y, bounds=(0, 1), n_permutations=9, rng=0, **more)),
        ("measured", lambda more: pt.kendalltau(X, Y, **more)),
        ("valid", lambda more: pt.wilcoxon(X[:12], Y[:12], **more)),
        ("measured", lambda more: pt.spearmanr(X[:13], Y[:13], **more)),
        ("measured", lambda more: pt.pearsonr(X, Y, **PAIRS, **more)),
        ("measured", lambda more: pt.proportions_test(*BITS, rng=0, **more)),
        ("measured", lambda more: pt.tost_proportions(*BITS, -0.5, 0.5, **more)),
        ("valid", lambda more: pt.binom_test(BITS[0], **more)),
        ("valid", lambda more: pt.ks_1samp(X, "uniform", **more)),
        ("measured", lambda more: pt.ks_1samp(X, "uniform", statistic="cvm", **more)),
        ("measured", lambda more: pt.ks_family(X, "norm", bounds=(-1, 2), **more)),
        (
            "valid",
            lambda more: pt.ks_family(X, "norm", bounds=(-1, 2), n_simulations=19, rng=0, **more),
        ),
        ("valid", lambda more: pt.kruskal(X, Y, X[:9], n_resamples=99, rng=0, **more)),
        (
            "measured",
            lambda more: pt.kruskal(
                *(np.tile(each, 15) for each in (X, Y, X)), n_resamples=99, rng=0, **more
            ),
        ),
        (
            "valid",
            lambda more: pt.test_of_tests(
                X, Y, pvalue="mmd", bounds=(0, 1), n_permutations=19, rng=0, **more
            ),
        ),
        ("valid", lambda more: pt.test_of_tests(X, Y, pvalue="ttest_ind", **more)),
        ("measured", lambda more: pt.ttest_1samp(X, 0.5, bounds=(0, 1), rng=0, **more)),
        ("valid", lambda more: pt.ttest_1samp(X, 0.5, bounds=(0, 1), calibration="any", **more)),
        ("valid", lambda more: pt.f_oneway(X, Y, X, bounds=(0, 1), calibration="any", **more)),
        ("valid", lambda more: pt.tost_ind(X, Y, -1, 1, bounds=(0, 1), calibration="any", **more)),
    ],
)
def test_a_result_carries_the_level_of_its_law(level, call):
    result = call({"epsilon": 1, "noise": SimulatedNoise(1)})
    assert result.level == level
    assert f"  level     {LEVEL_WORDS[level]}" in str(result)
    document = json.loads(result.to_json())
    assert document["level"] == level
    again: Any = result_from_dict(document, result.spent)
    assert again.level == level
    older = {name: value for name, value in document.items() if name != "level"}
    read: Any = result_from_dict(older, result.spent)
    assert read.level is None
    assert "level     " not in str(read)


def test_laws_know_whether_their_error_is_proved():
    assert spearman_law(12).proved
    assert not spearman_law(13).proved
    assert one_sample_law("ks", 5000).proved
    assert one_sample_law("kuiper", 400).scaled(3).proved
    assert not one_sample_law("kuiper", 401).scaled(3).proved
    assert not one_sample_law("wasserstein", 50).proved
    assert two_sample_law("ks", 2000, 2000).proved
    assert not two_sample_law("ks", 2000, 2001).proved
    assert not two_sample_law("ks", 2000, 2001, one_sided=True).proved


def test_results_of_several_pairs_carry_it():
    plan = pt.plan_share((0, 1), epsilon=2, delta=1e-6, locations=2)
    shares = {name: pt.share(x, plan=plan) for name, x in {"a": X, "b": Y, "c": 1 - X}.items()}
    found = pt.compare_all(shares, n_bootstrap=99)
    assert {outcome.level for outcome in found.values()} == {"measured"}


def test_a_level_that_is_not_declared_is_a_mistake():
    outcome = pt.mannwhitneyu(X, Y, epsilon=1, noise=SimulatedNoise(1))

    @declare_level("measured")
    def wrong() -> pt.Outcome:
        return outcome

    with pytest.raises(AssertionError, match="does not declare"):
        wrong()

    @declare_level("measured", valid="of ranks")
    def right(level: Level | None) -> pt.Outcome:
        return dataclasses.replace(outcome, level=level)

    assert right("valid").level == "valid"
    assert right(None).level == "measured"
    declared = declared_level(right)
    assert declared is not None
    assert declared.words == ("measured", "valid")
    assert str(declared) == "measured; valid: of ranks"
    assert declared_level(len) is None
    with pytest.raises(ValueError, match=", ".join(LEVELS)):
        declare_level("valid", certain="always")
