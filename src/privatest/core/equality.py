"""Equality of results: by value, with NaN equal to NaN and arrays compared element by element.

The ``__eq__`` that ``dataclass`` writes cannot compare arrays. It compares fields as a tuple up to
Python 3.12 and one by one from 3.13 on, so whether a NaN equals itself depends on the interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from numbers import Number
from typing import Any

import numpy as np

__all__ = ["EqualByValue"]


class EqualByValue:
    """Base of dataclasses, declared with ``eq=False``, that are equal if all their fields are."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Return whether the class and all fields are the same."""
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(_compared(self), _compared(other), strict=True)
        return all(_same(one, another) for one, another in pairs)

    def __hash__(self) -> int:
        """Return a hash of the texts and numbers; NaN has no hash of its own."""
        simple = (each for each in _compared(self) if isinstance(each, (str, Number)))
        return hash((type(self), *(each for each in simple if each == each)))  # noqa: PLR0124


def _compared(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, each.name) for each in fields(value) if each.compare)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and _same(one.tolist(), other.tolist())
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)) and isinstance(other, type(one)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124
