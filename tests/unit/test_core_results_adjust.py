"""Adjusted p-values against SciPy and by hand, and intervals of results."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

import privatest as pt
from privatest.core.privacy import Budget


def outcome(pvalue: float, alpha: float = 0.05, **more) -> pt.Outcome:
    return pt.Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=Budget(1),
        adjacency="one",
        method="a test",
        null_hypothesis="nothing happens",
        sizes={"n": 10},
        pvalue=pvalue,
        **more,
    )


def by_method(pvalues, method):
    return [result.pvalue for result in pt.adjust([*map(outcome, pvalues)], method=method)]


PVALUES = st.lists(st.floats(1e-9, 1), min_size=1, max_size=12)


@given(PVALUES, st.sampled_from(["bh", "by"]))
def test_false_discovery_rates_are_those_of_scipy(pvalues, method):
    expected = false_discovery_control(pvalues, method=method)
    np.testing.assert_allclose(by_method(pvalues, method), expected)


@given(PVALUES)
def test_holm_is_never_worse_than_bonferroni_and_never_better_than_the_smallest(pvalues):
    holm, bonferroni = by_method(pvalues, "holm"), by_method(pvalues, "bonferroni")
    assert all(a <= b for a, b in zip(holm, bonferroni, strict=True))
    assert min(holm) == min(1.0, min(pvalues) * len(pvalues))


def test_holm_by_hand():
    assert by_method([0.03, 0.01, 0.04], "holm") == pytest.approx([0.06, 0.03, 0.06])
    assert [r.reject for r in pt.adjust([*map(outcome, [0.03, 0.01, 0.04])])] == [0, 1, 0]


def test_adjusted_results_say_so():
    (first, _) = pt.adjust([outcome(0.01), outcome(0.5)])
    assert first.parameters["adjusted"] == "holm, 2 tests"


@pytest.mark.parametrize("results", [[], [1.0], [outcome(0.1), outcome(0.1, 0.01)]])
def test_what_cannot_be_adjusted_is_refused(results):
    with pytest.raises(pt.ParameterError, match="results must be"):
        pt.adjust(results)


def test_a_decision_has_no_p_value_to_adjust():
    plain = {name: getattr(outcome(0.1), name) for name in pt.Decision.__slots__}
    with pytest.raises(pt.ParameterError, match="a decision has none"):
        pt.adjust([pt.Decision(**plain)])  # type: ignore[list-item]


def test_a_result_unpacks_as_scipy_does():
    statistic, pvalue = outcome(0.25, statistic=3.0)
    assert (statistic, pvalue) == (3.0, 0.25)


def half_wide(level: float) -> pt.Interval:
    return pt.Interval.around(0.0, level, level, level / 2)


def test_intervals_of_a_result():
    result = outcome(0.25, intervals=half_wide)
    low, high = result.confidence_interval(0.8)
    assert (low, high) == (0.0, 0.8)
    found = pickle.loads(pickle.dumps(result)).confidence_interval()
    assert found.sampling == found.privacy == 0.475
    assert "chance" in str(found)
    with pytest.raises(pt.ParameterError, match="confidence_level must be"):
        result.confidence_interval(1.0)


def test_intervals_of_what_was_recorded_have_the_level_of_the_record():
    result = outcome(0.25, estimates={"mean": 1.0, "lower": 0.5, "upper": 1.5})
    assert tuple(result.confidence_interval()) == (0.5, 1.5)
    with pytest.raises(pt.ParameterError, match=r"must be 0\.95"):
        result.confidence_interval(0.9)
    with pytest.raises(pt.ParameterError, match="estimates nothing"):
        outcome(0.25).confidence_interval()


def test_an_adjusted_result_says_so_wherever_it_is_shown():
    (first, _) = pt.adjust([outcome(0.01), outcome(0.5)])
    assert "0.02 (adjusted: holm, 2 tests)" in str(first)
    assert "adjusted: holm, 2 tests" in first._repr_html_()
    assert first.to_dict()["parameters"]["adjusted"] == "holm, 2 tests"
    with pytest.raises(pt.ParameterError, match="adjusted before"):
        pt.adjust([first, outcome(0.2)])
