"""A distribution function that a user names or supplies, checked before it sees data."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.user_code import UserCodeError, run_user_code
from privatest.core.validation import reject
from privatest.goodness_of_fit.closed_forms import CLOSED_FORMS, closed_form

__all__ = ["ReferenceCdf", "distribution_name", "read_cdf"]

Floats = NDArray[np.float64]

_SPELLING = 'a function, a frozen scipy distribution, "norm(0, 1)" or ("norm", (0, 1))'
_AS_TEXT = 'a distribution with its parameters, such as "norm(0, 1)"'
_CALL = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(?:\(([^()]*)\))?\s*", re.ASCII)
_PARAMETER = re.compile(r"(?:([A-Za-z_]\w*)\s*=\s*)?(\S+)", re.ASCII)
_TOLERANCE = 1e-9  # by which rounding may break an order
_UNKNOWN = 0.5  # stands for a probability that is not a number, or that could not be computed
_HARMLESS = 0.0  # a public number, on which the function was tried
_EACH = 8  # of the numbers on which a function is tried, so many-th are tried alone too


@dataclass(frozen=True, slots=True)
class ReferenceCdf:
    """A distribution function and its name.

    Parameters
    ----------
    function : callable
        Of an array of floats of any length, value by value.
    name : str
        For results.
    """

    function: Callable[[Floats], Any]
    name: str

    def limits(self, values: Floats) -> tuple[Floats, Floats]:
        """Return F(x-) and F(x) for private values; anything else is replaced by a probability.

        Nothing is raised, whatever the function raises: an error would reveal a value.
        """
        left = _call(self.function, np.nextafter(values, -np.inf))
        right = _call(self.function, values)
        # A function that is not monotone between probes: still two numbers of one record.
        return np.minimum(left, right), right

    def at(self, cuts: Floats) -> Floats:
        """Return F at public, increasing cut points, itself increasing."""
        return np.maximum.accumulate(_call(self.function, cuts))


def read_cdf(cdf: object) -> ReferenceCdf:
    """Find the function that is meant; refuse what is not a distribution function."""
    if isinstance(cdf, str):
        found = _named(*_parse(cdf))
    elif isinstance(cdf, tuple) and len(cdf) == 2 and isinstance(cdf[0], str):
        found = _named(cdf[0], _numbers(cdf[1]), {})
    elif callable(getattr(cdf, "cdf", None)):
        found = ReferenceCdf(cdf.cdf, _frozen_name(cdf))  # type: ignore[attr-defined]
    elif callable(cdf):
        found = ReferenceCdf(cdf, "the given distribution")
    else:
        reject("cdf", _SPELLING, cdf)
    _probe(found.function)
    return found


def distribution_name(text: str) -> str:
    """Return the name in ``name(1, 2, scale=3)``; nothing is evaluated."""
    return _parse(text)[0]


def _numbers(values: object, expected: str = _SPELLING) -> list[float]:
    try:
        return [float(value) for value in values]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        reject("cdf", expected, values)


def _parse(text: str) -> tuple[str, list[float], dict[str, float]]:
    """Read ``name(1, 2, scale=3)``; nothing is evaluated."""
    call = _CALL.fullmatch(text)
    if call is None:
        reject("cdf", _AS_TEXT, text)
    plain: list[float] = []
    named: dict[str, float] = {}
    for part in (call[2] or "").split(",") if (call[2] or "").strip() else []:
        parameter = _PARAMETER.fullmatch(part.strip())
        if parameter is None:
            reject("cdf", _AS_TEXT, text)
        (value,) = _numbers([parameter[2]], _AS_TEXT)
        if parameter[1]:
            named[parameter[1]] = value
        else:
            plain.append(value)
    return call[1], plain, named


def _named(name: str, plain: Sequence[float], named: dict[str, float]) -> ReferenceCdf:
    shown = [f"{value:g}" for value in plain] + [f"{key}={v:g}" for key, v in named.items()]
    words = f"{name}({', '.join(shown)})"
    if name in CLOSED_FORMS:
        return ReferenceCdf(closed_form(name, plain, named), words)
    import scipy.stats  # noqa: PLC0415 -- slow to import

    family = getattr(scipy.stats, name, None)
    if not isinstance(family, (scipy.stats.rv_continuous, scipy.stats.rv_discrete)):
        raise ParameterError("cdf", f"must name a distribution of scipy.stats; {name!r} is not one")
    try:
        frozen = family(*plain, **named)
    except (TypeError, ValueError):
        raise ParameterError(
            "cdf", f"must have parameters that {name} takes, not ({', '.join(shown)})"
        ) from None
    return ReferenceCdf(frozen.cdf, words)


def _frozen_name(frozen: Any) -> str:
    family = getattr(getattr(frozen, "dist", None), "name", None)
    if not isinstance(family, str):
        return "the given distribution"
    values = [f"{value}" for value in getattr(frozen, "args", ())]
    values += [f"{key}={value}" for key, value in getattr(frozen, "kwds", {}).items()]
    return f"{family}({', '.join(values)})"


def _call(function: Callable[[Floats], Any], values: Floats) -> Floats:
    """Return a probability for each value, also where the function fails.

    A function that fails on an array may do so because of one record. Then values are tried one
    by one, and those that fail are left out: the others are evaluated in an array as before, so
    that they keep their probabilities to the last bit, and one record moves one probability.
    """
    try:
        return _probabilities(function, values)
    except UserCodeError:
        singles = np.array([_single(function, value) for value in values[:, None]])
    failing = np.isnan(singles)
    try:
        found = _probabilities(function, np.where(failing, _HARMLESS, values))
    except UserCodeError:
        found = singles
    return np.where(failing, _UNKNOWN, found)


def _single(function: Callable[[Floats], Any], value: Floats) -> float:
    """Return the probability of one value, NaN if the function fails."""
    try:
        return float(_probabilities(function, value)[0])
    except UserCodeError:
        return math.nan


def _probabilities(function: Callable[[Floats], Any], values: Floats) -> Floats:
    found = run_user_code(lambda: _as_numbers(function(values.copy()), values.shape))
    found[~np.isfinite(found)] = _UNKNOWN
    return np.asarray(np.clip(found, 0.0, 1.0))


def _as_numbers(result: object, shape: tuple[int, ...]) -> Floats:
    """Return numbers in the shape of what the function was given: it may squeeze a single one."""
    return np.array(result, dtype=np.float64).reshape(shape)


def _probe(function: Callable[[Floats], Any]) -> None:
    """Try the function on public numbers, near and far: together, in two parts, and alone."""
    far = np.logspace(-6, 15, 127)
    grid = np.unique(np.concatenate([-far, far, np.linspace(-20, 20, 401), [_HARMLESS]]))
    pieces = [grid, *np.split(grid, [99]), *grid[::_EACH, None]]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [np.array(function(piece.copy()), dtype=np.float64) for piece in pieces]
    except Exception as error:
        raise ParameterError(
            f"cdf must take an array of numbers, also of one; it failed with "
            f"{type(error).__name__}."
        ) from None
    if any(own.size != piece.size for own, piece in zip(found, pieces, strict=True)) or not (
        np.isfinite(found[0]).all()
    ):
        raise ParameterError("cdf must return a finite number for each number of an array.")
    values, *others = (own.ravel() for own in found)
    if values.min() < -_TOLERANCE or values.max() > 1 + _TOLERANCE:
        raise ParameterError("cdf must lie between 0 and 1.")
    if np.diff(values).min() < -_TOLERANCE:
        raise ParameterError("cdf must not decrease anywhere.")
    expected = np.concatenate([values, values[::_EACH]])
    if not np.allclose(np.concatenate(others), expected, rtol=0, atol=_TOLERANCE):
        raise ParameterError("cdf must evaluate each number on its own, not by its neighbours.")
