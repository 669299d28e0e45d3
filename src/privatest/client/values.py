"""Arguments as the plain values of a request."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.data.categories import spelling

__all__ = ["plain", "translated"]

_LISTS = ("columns", "x", "y", "given")
_ONE = ("column", "before", "after")


def translated(name: str, value: Any) -> Any:
    """Return an argument as the word ``name`` of a request says it."""
    if value is None:
        return None
    if name in _LISTS:
        return [value] if isinstance(value, str) else [*map(str, value)]
    if name in _ONE:
        return _one(name, value)
    if name == "groups":
        return [spelling(plain(name, each)) for each in value]
    if name == "shares":
        return _shares(value)
    if name == "dist" and not isinstance(value, str):
        raise ParameterError('cdf must be text here, such as "norm(40, 10)".')
    return plain(name, value)


def plain(name: str, value: Any) -> Any:
    """Return text, numbers and lists of them; what else there is cannot travel."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(name, item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(name, item) for item in value]
    if value is not None and type(value) not in (str, int, float, bool):
        raise ParameterError(f"{name} must be text, numbers, or true and false: it is sent.")
    return value


def _one(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) == 1:
        return value[0]
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be the name of one column.")
    return value


def _shares(value: Any) -> str:
    """Write expected shares as a request does."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        raise ParameterError("f_exp must be a mapping of categories to shares here, or left out.")
    named = {spelling(plain("f_exp", key)): float(share) for key, share in value.items()}
    if any("," in key for key in named):
        raise ParameterError("f_exp: a category with a comma cannot be named in a request.")
    return ",".join(f"{key}={share!r}" for key, share in named.items())
