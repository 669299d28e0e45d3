"""chisquare: SciPy's statistic and p-value at tiny noise, shares in all forms, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privatest as pt
from privatest.data.schema import CategoricalColumn
from privatest.methods.tables import expected_shares
from privatest.noise import SimulatedNoise

X = np.repeat(["a", "b", "c"], [30, 50, 20])
ABC = ("a", "b", "c")


def asked(f_exp=None, epsilon=300, **options):
    given: dict[str, Any] = {
        "categories": ABC,
        "noise": SimulatedNoise(1),
        "rng": 1,
        "epsilon": epsilon,
    }
    return pt.chisquare(X, f_exp, **(given | options))


@pytest.mark.parametrize("shares", [None, [0.2, 0.5, 0.3], [25, 50, 25]])
def test_without_noise_it_is_that_of_scipy(shares):
    """The p-value within 0.03: 3 standard errors of 9999 simulations, and SciPy's limit."""
    frequencies = None if shares is None else 100 * np.array(shares) / sum(shares)
    expected = stats.chisquare([30, 50, 20], frequencies)
    statistic, pvalue = asked(shares, n_simulations=9999)
    assert statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert pvalue == pytest.approx(expected.pvalue, abs=0.03)


def test_the_statistic_is_smaller_where_noise_is_large():
    assert asked(epsilon=300).statistic > 5 * asked(epsilon=0.05).statistic


def test_shares_by_name_and_in_order():
    assert np.allclose(expected_shares({"c": 1, "a": 2, "b": 1}, ABC), [0.5, 0.25, 0.25])
    assert np.allclose(expected_shares({0: 0.1, 1: 0.9}, (0, 1)), [0.1, 0.9])
    assert np.allclose(expected_shares(None, ABC), 1 / 3)


@pytest.mark.parametrize(
    "shares",
    [[0.5, 0.5], [0.5, 0.5, 0], [1, 2, np.nan], [1, 1, np.inf], {"a": 1}, ["x", 1, 2], "abc", 3],
)
def test_bad_shares(shares):
    with pytest.raises(pt.ParameterError, match="f_exp must"):
        asked(shares)


def test_estimates_and_intervals():
    result = asked(epsilon=1)
    found = result.estimates
    assert found["shares"].sum() == pytest.approx(1)
    assert (found["lower"] <= found["shares"]).all()
    assert (found["shares"] <= found["upper"]).all()
    interval = result.confidence_interval(0.99)
    assert (interval.low <= found["lower"]).all()
    assert (interval.high >= found["upper"]).all()
    text = str(result)
    assert "private shares (simultaneous 95% intervals)" in text
    assert "    a: 0." in text


def test_frames_and_schemas():
    frame = pd.DataFrame({"arm": X})
    series = pd.Series(X, name="arm")
    schema = pt.Schema({"arm": CategoricalColumn(ABC)})
    plain = asked().statistic
    for data in (frame, series, {"arm": X}):
        common: dict[str, Any] = {"epsilon": 300, "noise": SimulatedNoise(1)}
        assert pt.chisquare(data, bounds=schema, **common).statistic == plain
        assert pt.chisquare(data, categories=ABC, **common).statistic == plain
    with pytest.raises(pt.DataError, match="one column"):
        pt.chisquare({"a": X, "b": X}, categories=ABC, epsilon=1)


def test_categories_must_be_given():
    with pytest.raises(pt.ParameterError, match="categories must be given"):
        pt.chisquare(X, epsilon=1)
    with pytest.raises(pt.DataError, match="at least one row"):
        pt.chisquare([], categories=ABC, epsilon=1)
