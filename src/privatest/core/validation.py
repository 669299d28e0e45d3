"""Checks of public parameters."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import NoReturn

import numpy as np

from privatest.core.errors import ParameterError

Rng = None | int | np.random.Generator
"""Public randomness: permutations, null simulations, random frequencies. Never noise."""

_LONGEST_QUOTE = 60


def reject(
    name: str, expected: str, got: object, *, remedy: Mapping[str, str] | None = None
) -> NoReturn:
    """Raise a ParameterError that says what was expected and what was passed."""
    raise ParameterError(name, f"must be {expected}", given=_shown(got), remedy=remedy)


def printable(text: str) -> str:
    r"""Escape what a terminal would act on or not show: "\x1b" for example.

    For names that come from a file: whoever wrote it must not be able to move the cursor.
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def listed(names: Iterable[str]) -> str:
    """Return names for a message, in one printable line; one with a comma in double quotes."""
    return ", ".join(f'"{name}"' if "," in name else name for name in map(printable, names))


def _shown(value: object) -> str:
    """Quote a plain value; name only the type of what may be data passed by mistake."""
    if value is None or isinstance(value, (bool, int, float, Decimal, np.number)):
        return repr(value)
    if isinstance(value, str) and len(value) <= _LONGEST_QUOTE:
        return repr(value)
    return f"a value of type {type(value).__name__}"


def of_type(value: object, *kinds: type) -> bool:
    """Return whether a value has one of these types, whatever its annotation promises."""
    return isinstance(value, kinds)


def number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
) -> float:
    """Return a finite real number within the given limits."""
    # a float, as nearly always, is not looked up among the kinds of numbers
    if not isinstance(value, float) and (isinstance(value, bool) or not isinstance(value, Real)):
        reject(name, _finite(above, at_least, below), value)
    try:
        result = float(value)
    except OverflowError:  # too large for a float
        reject(name, _finite(above, at_least, below), "a huge integer")
    if (
        not math.isfinite(result)
        or (above is not None and result <= above)
        or (at_least is not None and result < at_least)
        or (below is not None and result >= below)
    ):
        reject(name, _finite(above, at_least, below), value)
    return result


def _finite(above: float | None, at_least: float | None, below: float | None) -> str:
    """Say which numbers are expected; made for a refusal only, as tests check many numbers."""
    limits = [
        f"{word} {limit:g}"
        for word, limit in (("above", above), ("at least", at_least), ("below", below))
        if limit is not None
    ]
    return " and ".join(["a finite number", *limits])


def integer_at_least(name: str, value: object, minimum: int) -> int:
    """Return an integer not below ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        reject(name, f"an integer of at least {minimum}", value)
    return int(value)


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        reject(name, "one of " + ", ".join(repr(choice) for choice in choices), value)
    return value


def boolean(name: str, value: object) -> None:
    """Refuse what is not True or False."""
    if not isinstance(value, bool):
        reject(name, "True or False", value)


def public_generator(rng: Rng) -> np.random.Generator:
    """Return a generator of public randomness; its seed may be known to everybody."""
    usable = rng is None or isinstance(rng, np.random.Generator)
    if usable or (isinstance(rng, Integral) and rng >= 0):
        return np.random.default_rng(rng)
    reject("rng", "None, an integer of at least 0 or a numpy Generator", rng)
