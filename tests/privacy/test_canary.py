"""A value planted in the data shows up nowhere: not in results, logs, output or errors."""

from __future__ import annotations

import dataclasses
import json
import logging
import traceback
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.text import Text

import privatest as pt
from privatest import (
    Budget,
    DataError,
    Decision,
    Outcome,
    ParameterError,
    Schema,
    mmd_test,
)
from privatest.core.privacy import PermutationSensitivity, Sensitivity
from privatest.data.schema import CategoricalColumn, NumericColumn
from privatest.display.reports import report_html
from privatest.mechanisms.additive import gaussian, laplace
from privatest.noise import SecureNoise, SimulatedNoise

CANARY = 0.7346291058213646
DIGITS = "7346291"  # whatever the scale it is printed in; for texts without noise
MORE_DIGITS = "734629105821"  # noise spells any seven in one run of 100,000, and these never
NAME = "canary-7346291"
X = np.array([CANARY, 0.1, 0.5, CANARY, 0.9, 0.2])
Y = np.array([0.4, CANARY, 0.3, 0.6, CANARY])

FIELDS = {
    "reject",
    "alpha",
    "spent",
    "adjacency",
    "method",
    "null_hypothesis",
    "sizes",
    "parameters",
    "rows_per_person",
    "simulated",
    "method_id",
    "level",  # from public sizes and parameters
}
PARAMETERS = {
    "statistics",
    "kernel",
    "bandwidths",
    "estimator",
    "computation",
    "n_permutations",
}


def everything_it_says(result):
    """All texts of a result, in every form it can be shown or stored in."""
    return "\n".join(
        [
            repr(result),
            str(result),
            result.to_json(),
            result.to_json(indent=2),
            repr(result.to_dict()),
            result._repr_html_(),
            result.verdict,
            result.guarantee,
            repr(result.facts()),
        ]
    )


# --- results ---------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [SecureNoise, lambda: SimulatedNoise(1)], ids=["secure", "sim"])
@pytest.mark.parametrize("method", ["exact", "nystrom", "fourier"])
@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
@pytest.mark.parametrize("release", ["pvalue", "decision"])
def test_nothing_of_the_data_is_in_a_result(release, adjacency, method, noise, caplog, capfd):
    caplog.set_level(0)
    logging.captureWarnings(False)
    result = mmd_test(
        X,
        Y,
        epsilon=1,
        release=release,
        adjacency=adjacency,
        method=method,
        bounds=(0, 1),
        n_permutations=9,
        noise=noise(),
    )
    printed = capfd.readouterr()
    texts = everything_it_says(result), caplog.text, printed.out, printed.err
    assert not any(MORE_DIGITS in text for text in texts)
    assert texts[1:] == ("", "", "")


REPORTED = {
    "pvalue": lambda: run(X),
    "decision": lambda: run(X, release="decision"),
    "private groups": lambda: run(X, adjacency="row"),
    "statistic": lambda: pt.ks_2samp(X, Y, epsilon=1),
    "difference": lambda: pt.ttest_ind(X, Y, bounds=(0, 1), epsilon=1),
    "mean": lambda: pt.private_mean(X, bounds=(0, 1), epsilon=1),
    "release": lambda: pt.release(X, bounds=(0, 1), epsilon=1, delta=0.01, n_points=5),
}


@pytest.mark.parametrize("name", REPORTED)
def test_nothing_of_the_data_is_in_a_report_or_a_picture(name):
    result = REPORTED[name]()
    assert MORE_DIGITS not in report_html(result)
    if name == "decision":
        return
    texts = [text.get_text() for text in result.plot().figure.findobj(Text)]
    assert texts
    assert not any(MORE_DIGITS in text for text in texts)


def test_a_canary_in_a_report_would_be_seen():
    told = run(X).to_dict() | {"statistic": CANARY}
    assert MORE_DIGITS in report_html(told)


def test_the_canary_would_be_seen():
    planted = Outcome(
        reject=True,
        alpha=0.05,
        spent=Budget(1),
        adjacency="one",
        method="leaky",
        null_hypothesis="nothing",
        sizes={"n": 1},
        statistic=CANARY,
    )
    assert MORE_DIGITS in everything_it_says(planted)


def test_results_have_the_declared_fields_and_no_others():
    assert {field.name for field in dataclasses.fields(Decision)} == FIELDS
    assert {field.name for field in dataclasses.fields(Outcome)} == FIELDS | {
        "pvalue",
        "statistic",
        "estimates",
        "estimated",
        "intervals",  # of released numbers: tests/unit/test_public_intervals.py
        "recorded_widening",  # of released intervals: tests/unit/test_core_text.py
        "statistic_name",  # public words
    }
    outcome = mmd_test(X, Y, epsilon=1, bounds=(0, 1), n_permutations=9)
    decision = mmd_test(X, Y, epsilon=1, bounds=(0, 1), n_permutations=9, release="decision")
    assert type(outcome) is Outcome
    assert type(decision) is Decision
    for result in (outcome, decision):
        assert not hasattr(result, "__dict__")  # slots: nothing can be attached
        assert PARAMETERS <= set(result.parameters) <= PARAMETERS | {"bin_size"}
        assert result.sizes == {"n": 6, "m": 5}
    assert outcome.statistic is None
    assert set(json.loads(decision.to_json())) == (FIELDS - {"spent"}) | {
        "epsilon",
        "delta",
        "unit",
    }


def test_private_groups_show_the_total_only():
    result = mmd_test(X, Y, epsilon=1, bounds=(0, 1), adjacency="row", n_permutations=9)
    assert result.sizes == {"N": 11}
    other = mmd_test(Y, X, epsilon=1, bounds=(0, 1), adjacency="row", n_permutations=9)
    assert result.parameters == other.parameters


# --- errors ----------------------------------------------------------------------------------

CHOICE = Schema({"a": CategoricalColumn(("yes", "no"))})
WHOLE = Schema({"a": NumericColumn(0, 1, integer=True)})
TWO = Schema({"a": NumericColumn(0, 1), "b": NumericColumn(0, 1)})
NUMBER = Schema({"a": NumericColumn(0, 1)})


def run(x, y=Y, **parameters):
    settings: dict[str, Any] = {"epsilon": 1, "bounds": (0, 1), "n_permutations": 9}
    return mmd_test(x, y, **(settings | parameters))


FAILING = {
    "missing": lambda: run(np.append(X, np.nan)),
    "missing in a column": lambda: run({"a": [CANARY, None]}, {"a": [0.1, CANARY]}, bounds=NUMBER),
    "infinite": lambda: run(np.append(X, np.inf), bounds=None, bandwidths=1),
    "masked": lambda: run(np.ma.masked_greater(X, 0.8)),
    "text": lambda: run(np.array([str(CANARY), "0.5"])),
    "text in a column": lambda: run({"a": [str(CANARY), "x"]}, {"a": [0.1]}, bounds=NUMBER),
    "objects": lambda: run(np.array([CANARY, object()], dtype=object)),
    "mixed types": lambda: run({"a": [CANARY, "x"]}, {"a": [0.1, 0.2]}, bounds=NUMBER),
    "complex": lambda: run(X + 1j),
    "ragged": lambda: run([[CANARY, 1], [CANARY]]),
    "three dimensions": lambda: run(np.full((2, 2, 2), CANARY)),
    "a scalar": lambda: run(CANARY),
    "too many columns": lambda: run(np.full((3, 2), CANARY)),
    "columns of a schema": lambda: run(X, bounds=TWO),
    "a column is missing": lambda: run({"b": X}, {"b": Y}, bounds=NUMBER),
    "lengths differ": lambda: run({"a": X, "b": X[:2]}, {"a": Y, "b": Y}, bounds=TWO),
    "unknown category": lambda: run({"a": [NAME, "yes"]}, {"a": ["no", "yes"]}, bounds=CHOICE),
    "number as category": lambda: run({"a": X}, {"a": Y}, bounds=CHOICE),
    "not an integer": lambda: run({"a": X}, {"a": Y}, bounds=WHOLE),
    "dates": lambda: run(pa.table({"a": pa.array([7346291], pa.timestamp("s"))}), bounds=NUMBER),
    "one row": lambda: run(np.array([CANARY])),
    "no rows": lambda: run(np.empty(0), np.full(3, CANARY)),
    "too few rows": lambda: run(X[:1], Y[:1], adjacency="row"),
    "bounds are the data": lambda: run(X, bounds=X),
    "epsilon is the data": lambda: run(X, epsilon=X),
    "alpha is the data": lambda: run(X, alpha=X),
    "bandwidths are the data": lambda: run(X, bandwidths=[list(X)]),
    "rng is the data": lambda: run(X, rng=X),
    "noise is the data": lambda: run(X, noise=X),
    "kernel is the data": lambda: run(X, kernel=X),
    "bin size is the data": lambda: run(X, bin_size=X),
    "estimator": lambda: run(X, estimator="u", method="nystrom"),
    "estimator for groups": lambda: run(X, estimator="u", adjacency="row"),
    "fourier features": lambda: run(X, kernel="imq", method="fourier"),
    "features without bounds": lambda: run(X, bounds=None, bandwidths=1, method="nystrom"),
    "no bandwidths": lambda: run(X, bounds=None),
}


@pytest.mark.parametrize("name", FAILING)
def test_nothing_of_the_data_is_in_an_error(name, caplog, capfd):
    caplog.set_level(0)
    with pytest.raises((DataError, ParameterError)) as caught:
        FAILING[name]()
    text = "".join(traceback.format_exception(caught.value))
    here = [line for line in text.splitlines() if "lambda" not in line]  # this file's own text
    printed = capfd.readouterr()
    assert DIGITS not in "\n".join([*here, caplog.text, printed.out, printed.err])
    assert DIGITS not in repr(caught.value.args)


def test_a_failure_inside_is_not_shown(monkeypatch):
    """Arithmetic that fails on some data gives 0, a public value: neither error nor warning."""

    def broken(*_, out):
        out.fill(np.nan)

    monkeypatch.setattr("privatest.numerics.kernels._radial", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(X, bandwidths=0.1, noise=SimulatedNoise(1))
    assert DIGITS not in result.to_json()
    equal = run(np.zeros_like(X), bandwidths=0.1, noise=SimulatedNoise(1))
    assert result.to_json() == equal.to_json()


# --- noise -----------------------------------------------------------------------------------


def test_simulated_noise_is_marked():
    result = run(X, noise=SimulatedNoise(1))
    assert result.simulated
    assert json.loads(result.to_json())["simulated"] is True
    for text in (str(result), result._repr_html_(), result.guarantee):
        assert "NOT private" in text
        assert "Privacy spent" not in text


def test_secure_noise_is_the_default():
    result = run(X)
    assert not result.simulated
    assert "Privacy spent: epsilon = 1 " in str(result)


def test_secure_noise_has_no_seed():
    with pytest.raises(TypeError):
        SecureNoise(1)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError):
        SecureNoise(seed=1)  # type: ignore[call-arg]
    assert not [name for name in dir(SecureNoise) if "seed" in name or "rng" in name]


def test_public_seeds_do_not_reach_secure_noise():
    # 1 in 10,000 that two p-values agree; 1e-12 that four do
    np.random.default_rng(0)
    assert len({run(X, rng=5).pvalue for _ in range(4)}) > 1


class Quiet:
    """Looks like a source of noise and adds none."""

    simulated = False

    def laplace(self, value, scale):
        return value

    def permutation(self, size):
        return np.arange(size)


@pytest.mark.parametrize("noise", [Quiet(), 7, "secure", np.random.default_rng(0), SecureNoise])
def test_noise_of_another_type_is_refused(noise):
    with pytest.raises(ParameterError, match="noise must be"):
        run(X, noise=noise)


class Disguised(SimulatedNoise):
    """Simulated, and denies it."""

    simulated = False


def disguised_later():
    noise = SimulatedNoise(1)
    noise.simulated = False  # type: ignore[misc]
    return noise


@pytest.mark.parametrize(
    "make", [lambda: Disguised(1), disguised_later], ids=["class", "attribute"]
)
def test_simulated_noise_cannot_hide_that_it_is(make):
    with pytest.raises((ParameterError, AttributeError), match=r"noise must be|no setter"):
        run(X, noise=make())


class Untouched(SimulatedNoise):
    """Fails when anything is drawn from it."""

    def __init__(self):
        super().__init__(0)

    def _refuse(self, *_):
        raise AssertionError("noise was drawn")

    laplace = gaussian = discrete_laplace = below = _refuse


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_never_meets_noise(bad):
    noise, budget = Untouched(), Budget(1, 1e-6)
    with pytest.raises(ParameterError, match="finite"):
        laplace(bad, sensitivity=Sensitivity(1.0), budget=budget, noise=noise)
    vector = np.array([0.0, bad])
    with pytest.raises(ParameterError, match="finite"):
        gaussian(vector, sensitivity=Sensitivity(1.0, "l2"), budget=budget, noise=noise)
    for value in (bad, -1.0, 0.0) if np.isnan(bad) else (bad,):
        with pytest.raises(ParameterError):
            Sensitivity(value)
        with pytest.raises(ParameterError):
            PermutationSensitivity(1.0, value)
