"""A distribution function that a user names or writes, tried out before it meets data."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.errors import DataError, ParameterError
from privatest.validation import reject

__all__ = ["ReferenceCdf", "read_cdf"]

Floats = NDArray[np.float64]

_SPELLING = 'a function, a frozen scipy distribution, "norm(0, 1)" or ("norm", (0, 1))'
_CALL = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(?:\(([^()]*)\))?\s*", re.ASCII)
_PARAMETER = re.compile(r"(?:([A-Za-z_]\w*)\s*=\s*)?(\S+)", re.ASCII)
_TOLERANCE = 1e-9  # by which rounding may break an order
_UNKNOWN = 0.5  # stands for a probability that is not a number


@dataclass(frozen=True, slots=True)
class ReferenceCdf:
    """A distribution function and its name.

    Parameters
    ----------
    function : callable
        Of an array of floats, value by value.
    name : str
        For results.
    """

    function: Callable[[Floats], Any]
    name: str

    def limits(self, values: Floats) -> tuple[Floats, Floats]:
        """Return F(x-) and F(x) for private values; what is no probability becomes one."""
        try:
            left = _call(self.function, np.nextafter(values, -np.inf))
            right = _call(self.function, values)
        except Exception:
            # its message may quote a value
            raise DataError("cdf failed on the data; it must take every number.") from None
        # A function that is not monotone between probes: still two numbers of one record.
        return np.minimum(left, right), right


def read_cdf(cdf: object) -> ReferenceCdf:
    """Find the function that is meant, and refuse it if it is no distribution function."""
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


def _numbers(values: object) -> list[float]:
    try:
        return [float(value) for value in values]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        reject("cdf", _SPELLING, values)


def _parse(text: str) -> tuple[str, list[float], dict[str, float]]:
    """Read ``name(1, 2, scale=3)``; nothing is evaluated."""
    call = _CALL.fullmatch(text)
    if call is None:
        reject("cdf", _SPELLING, text)
    plain: list[float] = []
    named: dict[str, float] = {}
    for part in (call[2] or "").split(",") if (call[2] or "").strip() else []:
        parameter = _PARAMETER.fullmatch(part.strip())
        if parameter is None:
            reject("cdf", _SPELLING, text)
        (value,) = _numbers([parameter[2]])
        if parameter[1]:
            named[parameter[1]] = value
        else:
            plain.append(value)
    return call[1], plain, named


def _named(name: str, plain: Sequence[float], named: dict[str, float]) -> ReferenceCdf:
    import scipy.stats  # noqa: PLC0415 -- slow to import

    family = getattr(scipy.stats, name, None)
    if not isinstance(family, (scipy.stats.rv_continuous, scipy.stats.rv_discrete)):
        raise ParameterError(f"cdf must name a distribution of scipy.stats; {name!r} is none.")
    shown = [f"{value:g}" for value in plain] + [f"{key}={v:g}" for key, v in named.items()]
    try:
        frozen = family(*plain, **named)
    except (TypeError, ValueError):
        raise ParameterError(
            f"cdf: {name} does not take the parameters ({', '.join(shown)})."
        ) from None
    return ReferenceCdf(frozen.cdf, f"{name}({', '.join(shown)})")


def _frozen_name(frozen: Any) -> str:
    family = getattr(getattr(frozen, "dist", None), "name", None)
    if not isinstance(family, str):
        return "the given distribution"
    values = [f"{value}" for value in getattr(frozen, "args", ())]
    values += [f"{key}={value}" for key, value in getattr(frozen, "kwds", {}).items()]
    return f"{family}({', '.join(values)})"


def _call(function: Callable[[Floats], Any], values: Floats) -> Floats:
    """Return probabilities in [0, 1], one for each value."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning may quote a value
        found = np.array(function(values.copy()), dtype=np.float64)
    if found.shape != values.shape:
        raise ValueError
    found[~np.isfinite(found)] = _UNKNOWN
    return np.asarray(np.clip(found, 0.0, 1.0))


def _probe(function: Callable[[Floats], Any]) -> None:
    """Try the function on public numbers, near and far."""
    far = np.logspace(-6, 15, 127)
    grid = np.unique(np.concatenate([-far, far, np.linspace(-20, 20, 401)]))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = np.array(function(grid.copy()), dtype=np.float64)
            parts = [np.array(function(part), dtype=np.float64) for part in np.split(grid, [99])]
    except Exception as error:
        raise ParameterError(
            f"cdf must take an array of numbers; it failed with {type(error).__name__}."
        ) from None
    if values.shape != grid.shape or not np.isfinite(values).all():
        raise ParameterError("cdf must return a finite number for each number of an array.")
    if values.min() < -_TOLERANCE or values.max() > 1 + _TOLERANCE:
        raise ParameterError("cdf must lie between 0 and 1.")
    if np.diff(values).min() < -_TOLERANCE:
        raise ParameterError("cdf must not decrease anywhere.")
    if not np.allclose(values, np.concatenate(parts), rtol=0, atol=_TOLERANCE):
        raise ParameterError("cdf must treat each number by itself, whatever comes with it.")
