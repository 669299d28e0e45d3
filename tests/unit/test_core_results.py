"""Results: what they say, in every form, and that they cannot be changed."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pytest

from privatest import (
    hotelling_1samp,
    hotelling_test,
    me_test,
    mmd_test,
    scf_test,
    ttest_1samp,
    ttest_ind,
)
from privatest.core.privacy import Budget
from privatest.core.results import Decision, Outcome
from privatest.noise import SimulatedNoise

COMMON: dict[str, Any] = {
    "reject": True,
    "alpha": 0.05,
    "spent": Budget(0.1, 1e-6),
    "adjacency": "one",
    "method": "a test <of> sorts",
    "null_hypothesis": "nothing happens",
    "sizes": {"n": 1200, "m": 3},
    "parameters": {"bandwidths": (1.0, 0.5), "kernel": "gaussian"},
}
DECISION = Decision(**COMMON)
OUTCOME = Outcome(**COMMON, pvalue=0.0123)
KEYS = {
    "reject",
    "alpha",
    "epsilon",
    "delta",
    "adjacency",
    "unit",
    "rows_per_person",
    "method_id",
    "method",
    "null_hypothesis",
    "sizes",
    "parameters",
    "simulated",
}


def test_json_of_a_decision():
    found = json.loads(DECISION.to_json())
    assert set(found) == KEYS
    assert found["epsilon"] == 0.1
    assert found["delta"] == 1e-6
    assert found["sizes"] == {"n": 1200, "m": 3}
    assert found["parameters"] == {"bandwidths": [1.0, 0.5], "kernel": "gaussian"}
    assert found["reject"] is True
    assert found["simulated"] is False


def test_json_of_an_outcome():
    found = json.loads(OUTCOME.to_json(indent=2))
    assert set(found) == KEYS | {"pvalue", "statistic"}
    assert found["pvalue"] == 0.0123
    assert found["statistic"] is None
    assert "\n" in OUTCOME.to_json(indent=2)


def test_json_never_holds_what_is_not_json():
    with pytest.raises(ValueError, match="not JSON compliant"):
        Outcome(**COMMON, pvalue=float("nan")).to_json()


def test_json_of_a_test_with_numpy_parameters():
    numbers: dict[str, Any] = {
        "alpha": np.float64(0.05),
        "bandwidths": np.array([1.0, 0.5]),
        "n_permutations": np.int64(9),
        "bin_size": np.int64(1),
    }
    x, noise = np.linspace(0, 1, 5), SimulatedNoise(0)
    outcome = mmd_test(x, x**2, epsilon=1, bounds=(0, 1), noise=noise, **numbers)
    found = json.loads(outcome.to_json())
    assert found["parameters"]["n_permutations"] == 9
    assert found["parameters"]["bandwidths"] == [1.0, 0.5]


def test_results_are_frozen():
    for result in (DECISION, OUTCOME):
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.reject = False  # type: ignore[misc]
        with pytest.raises(TypeError):
            result.sizes["n"] = 7  # type: ignore[index]
        with pytest.raises(TypeError):
            result.parameters["kernel"] = "other"  # type: ignore[index]
        with pytest.raises((AttributeError, TypeError)):
            result.extra = 1  # type: ignore[attr-defined]


def test_the_callers_mappings_are_copied():
    sizes = {"n": 1}
    result = Decision(**(COMMON | {"sizes": sizes}))
    sizes["n"] = 2
    assert result.sizes == {"n": 1}
    assert result.to_dict()["sizes"] is not result.sizes


@pytest.mark.parametrize("result", [DECISION, OUTCOME], ids=["decision", "outcome"])
def test_results_can_be_stored_and_copied(result):
    """Simulations send results between processes."""
    assert pickle.loads(pickle.dumps(result)) == result
    assert copy.deepcopy(result) == result


def test_printed_form():
    lines = str(OUTCOME).splitlines()
    assert lines[0] == "We reject the hypothesis that nothing happens at level 0.05."
    assert lines[1].split() == ["p-value", "0.0123"]
    assert any("n = 1,200, m = 3" in line for line in lines)
    assert lines[-1].startswith("Privacy spent: epsilon = 0.1, delta = 1e-06 (")
    assert "statistic" not in str(OUTCOME)
    assert "statistic" in str(Outcome(**COMMON, pvalue=0.5, statistic=1.5))
    accepted = Decision(**(COMMON | {"reject": False}))
    assert str(accepted).startswith("We do not reject")


def test_html_is_escaped():
    html = OUTCOME._repr_html_()
    assert "a test &lt;of&gt; sorts" in html
    assert "<of>" not in html
    assert "p-value" in html


@pytest.mark.parametrize(
    ("adjacency", "words"),
    [("one", "within its group"), ("both", "in each group"), ("row", "only the total is public")],
)
def test_the_guarantee_names_the_unit_and_the_neighbours(adjacency, words):
    changed = COMMON | {"adjacency": adjacency, "rows_per_person": 5}
    guarantee = Decision(**changed).guarantee
    assert words in guarantee
    assert "one person with at most 5 rows replaced" in guarantee


def test_simulated_results_say_so():
    result = Outcome(**COMMON, simulated=True)
    for text in (str(result), result._repr_html_()):
        assert "NOT private" in text
        assert "Privacy spent" not in text
    assert result.to_dict()["simulated"] is True


# --- estimates ------------------------------------------------------------------------------


def bounded_test(test: Any, *data: Any, **options: Any) -> Any:
    return test(*data, bounds=(0, 10), epsilon=1, rng=0, noise=SimulatedNoise(0), **options)


def shown(result: Any) -> tuple[str, str]:
    return str(result), result._repr_html_()


def test_a_t_test_shows_the_difference_and_its_interval():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 8, size=2000), rng.uniform(1, 9, size=1500)
    for result in (bounded_test(ttest_ind, x, y), bounded_test(hotelling_test, x, y)):
        found = result.estimates
        values = [float(np.ravel(found[name])[0]) for name in ("difference", "lower", "upper")]
        means = [float(np.ravel(found[name])[0]) for name in ("mean_x", "mean_y")]
        for text in shown(result):
            assert "private difference of means, first minus second (95% interval)" in text
            assert "{:.4g} [{:.4g}, {:.4g}]".format(*values) in text
            assert "means {:.4g} and {:.4g}".format(*means) in text
    for text in shown(bounded_test(ttest_1samp, x, 5)):
        assert "private mean (95% interval)" in text


def test_several_columns_are_named_and_matrices_left_out():
    rng = np.random.default_rng(0)
    x = {"age": rng.uniform(0, 8, 500), "<b>visits": rng.uniform(0, 8, 500)}
    result = bounded_test(hotelling_test, x, x, alpha=0.01)
    text, html = shown(result)
    assert "private differences of means, first minus second (simultaneous 99% intervals):" in text
    assert "    age: " in text
    assert "&lt;b&gt;visits" in html
    assert "<b>visits" not in html
    assert "covariance" not in text + html
    unnamed = bounded_test(hotelling_1samp, rng.uniform(0, 8, size=(500, 2)), 4)
    assert "    column 2: " in str(unnamed)
    assert "private means (simultaneous 95% intervals)" in str(unnamed)


def test_an_embedding_test_says_where():
    x, y = np.full(5000, 0.2), np.full(5000, 0.8)
    common: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1, "delta": 1e-6}
    for text in shown(me_test(x, y, locations=[0.0, 0.5], **common)):
        assert "where the samples differ most" in text
        assert "at (0)" in text
    for text in shown(scf_test(x, y, frequencies=[[3.0]], **common)):
        assert "at (sin, 3)" in text


def test_names_cannot_reach_the_terminal():
    named = dataclasses.replace(
        OUTCOME,
        estimates={"mean": [1.0], "lower": [0.0], "upper": [2.0]},
        estimated="mean",
        parameters={"columns": ["a\x1b[2J\u202eb"]},
    )
    for text in shown(named):
        assert "a\\x1b[2J\\u202eb" in text
        assert all(char.isprintable() or char == "\n" for char in text)


@pytest.mark.parametrize("html", [False, True])
def test_tests_without_estimates_show_none(html):
    x = np.linspace(0, 1, 9)
    text = shown(mmd_test(x, x**2, epsilon=1, bounds=(0, 1), n_permutations=19))[html]
    assert "private difference" not in text
    assert "differ most" not in text
