"""One error template, and nothing slips through it."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from privatest.core.errors import DataError, ParameterError, PrivacyError, PrivatestError
from privatest.core.validation import integer_at_least, number, one_of, public_generator, reject


def test_the_template():
    with pytest.raises(ParameterError, match=r"^alpha must be small; got 3\.$"):
        reject("alpha", "small", 3)


def test_values_that_may_be_data_are_not_quoted():
    """An array passed by mistake may be the data: only its type is named."""
    for value in (np.array([0.7346291]), [0.7346291]):
        with pytest.raises(ParameterError) as caught:
            reject("alpha", "a number", value)
        assert "7346291" not in repr((str(caught.value), caught.value.args, vars(caught.value)))


def test_fields_of_an_error_make_its_sentence():
    with pytest.raises(ParameterError) as caught:
        reject("alpha", "small", 3, remedy={"beta": ""})
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.parameter, error.rule, error.given) == ("alpha", "must be small", "3")
    assert error.remedy == {"beta": ""}
    assert error.naming("--alpha") == "--alpha must be small; got 3."
    error.rename({"alpha": "level", "level": "other"})
    assert str(error) == "level must be small; got 3."
    assert str(ParameterError("no name", "must be empty")) == "no name must be empty."


def test_a_sentence_concerns_no_parameter():
    error = ParameterError("alpha and beta do not go together.")
    error.rename({"alpha": "level"})
    assert (error.parameter, error.rule) == ("", "")
    assert str(error) == error.naming("--x") == "alpha and beta do not go together."


def test_a_part_of_a_parameter_is_renamed_with_it():
    error = ParameterError("cdf: scale", "must be above 0")
    error.rename({"cdf": "dist"})
    assert str(error) == "dist: scale must be above 0."


def test_errors_are_value_errors_of_ours():
    assert issubclass(ParameterError, ValueError)
    assert issubclass(DataError, ValueError)
    assert {e.__base__ for e in (ParameterError, DataError, PrivacyError)} == {PrivatestError}


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.int8(1)])
def test_number_gives_a_plain_float(value):
    assert type(number("x", value)) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "1", None, 1j, 10**400])
def test_number_refuses(value):
    with pytest.raises(ParameterError, match="x must be a finite number"):
        number("x", value)


@pytest.mark.parametrize(
    ("value", "limits", "passes"),
    [
        (0, {"above": 0}, False),
        (1e-300, {"above": 0}, True),
        (0, {"at_least": 0}, True),
        (-1e-300, {"at_least": 0}, False),
        (1, {"below": 1}, False),
        (0.5, {"above": 0, "below": 1}, True),
    ],
)
def test_limits_of_a_number(value, limits, passes):
    if passes:
        assert number("x", value, **limits) == value
        return
    with pytest.raises(ParameterError, match="x must be"):
        number("x", value, **limits)


def test_an_integer_is_plain_and_large_enough():
    assert type(integer_at_least("k", np.int64(3), 1)) is int
    for value in (0, -1, 1.0, True, "1", None, math.nan):
        with pytest.raises(ParameterError, match="k must be an integer of at least 1"):
            integer_at_least("k", value, 1)


def test_one_of_names_the_choices():
    assert one_of("kernel", "a", ("a", "b")) == "a"
    for value in ("c", "", None, 1, ["a"]):
        with pytest.raises(ParameterError, match="kernel must be one of 'a', 'b'"):
            one_of("kernel", value, ("a", "b"))


def test_public_generators():
    generator = np.random.default_rng(1)
    assert public_generator(generator) is generator
    seeds: tuple[Any, ...] = (5, np.int64(5), 5)
    draws = [public_generator(seed).uniform() for seed in seeds]
    assert len(set(draws)) == 1
    assert public_generator(None).uniform() != public_generator(None).uniform()


@pytest.mark.parametrize("rng", ["5", 1.5, -1, np.random.RandomState(0)])
def test_public_generators_refuse(rng):
    with pytest.raises(ParameterError, match="rng must be"):
        public_generator(rng)
