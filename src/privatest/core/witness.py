"""A private number at the moment it meets noise, told to an audit and to nobody else.

Every mechanism says here what it adds noise to, how far that may move between neighbours, and how
large the noise is. An audit runs a test on made-up neighbours and compares. Without one nothing
is kept, and what a test releases is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Call", "Meeting", "Norm", "Witness", "meets", "releases", "witnessing"]

Norm = Literal["absolute", "l1", "l2", "linf", "signed sums", "spectral", "permutation"]
"""How a movement is measured; "permutation" has one bound for the first entry, one for others."""

T = TypeVar("T")

_WITNESS: ContextVar[Witness | None] = ContextVar("witness", default=None)


@dataclass(frozen=True, slots=True)
class Call:
    """The mechanism that drew the noise, with its arguments: an audit calls it again.

    Attributes
    ----------
    function : callable
        The mechanism.
    arguments : mapping
        What it was given; ``noise`` is one of them.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    def again(self, noise: Any) -> Any:
        """Return what the mechanism gives out on the same numbers, with other noise."""
        return self.function(**{**self.arguments, "noise": noise})

    def same(self, other: Call | None) -> bool:
        """Return whether both are one and the same call: one draw may meet several numbers."""
        if other is None or self.function is not other.function:
            return False
        return all(value is other.arguments[name] for name, value in self.arguments.items())


@dataclass(frozen=True, slots=True)
class Meeting:
    """Numbers that meet noise.

    Attributes
    ----------
    mechanism : str
        Which noise.
    values : ndarray
        The numbers themselves: private, were the rows not made up.
    norm : Norm
        How their movement is measured.
    bounds : tuple of float
        How far they may move; for "permutation" the observed one and the permuted ones.
    scale : float
        Of the noise.
    call : Call or None
        Who drew it.
    """

    mechanism: str
    values: NDArray[np.float64]
    norm: Norm
    bounds: tuple[float, ...]
    scale: float
    call: Call | None = None

    @property
    def public(self) -> tuple[object, ...]:
        """What has to be the same for neighbours: all but the numbers."""
        return self.mechanism, self.values.shape, self.norm, self.bounds, self.scale

    def ratio(self, other: Meeting) -> float:
        """Return how far the numbers moved, in units of what was declared."""
        # integers beyond 2^53 are compared before they are rounded, by whoever made them floats
        moved = np.abs(self.values - other.values).ravel()
        signed = (self.values - other.values).ravel()
        if self.norm == "permutation":
            return float(max(moved[0] / self.bounds[0], moved[1:].max(initial=0) / self.bounds[1]))
        found = {
            "absolute": moved.max(initial=0),
            "linf": moved.max(initial=0),
            "l1": moved.sum(),
            "l2": np.sqrt((moved**2).sum()),
            "signed sums": max(np.maximum(signed, 0).sum(), np.maximum(-signed, 0).sum()),
            "spectral": np.linalg.norm(np.atleast_2d(self.values - other.values), 2),
        }
        return float(found[self.norm] / self.bounds[0])


@dataclass(slots=True)
class Witness:
    """What was seen of one run.

    Attributes
    ----------
    meetings : list of Meeting
        In order.
    released : list
        What mechanisms gave out, in order.
    given : iterator or None
        What they shall give out instead, from the run of a neighbour: what is asked of the data
        next may depend on it, and then both have to be asked the same.
    """

    meetings: list[Meeting] = field(default_factory=list)
    released: list[Any] = field(default_factory=list)
    given: Iterator[Any] | None = None


@contextmanager
def witnessing(given: Iterable[Any] | None = None) -> Iterator[Witness]:
    """See all that meets noise in a block; with ``given``, let mechanisms give out that."""
    witness = Witness(given=None if given is None else iter(given))
    token = _WITNESS.set(witness)
    try:
        yield witness
    finally:
        _WITNESS.reset(token)


def meets(
    mechanism: str, values: ArrayLike, norm: Norm, bounds: tuple[float, ...], scale: float
) -> None:
    """Tell an audit, if there is one."""
    witness = _WITNESS.get()
    if witness is not None:
        kept = np.array(values, dtype=np.float64)
        call = _caller(sys._getframe(1))
        witness.meetings.append(Meeting(mechanism, kept, norm, bounds, float(scale), call))


def _caller(frame: FrameType | None) -> Call | None:
    """Find the mechanism: the function, public in its module, from which noise is drawn."""
    while frame is not None and frame.f_code.co_name.startswith("_"):
        frame = frame.f_back
    if frame is None:
        return None
    code, function = frame.f_code, frame.f_globals.get(frame.f_code.co_name)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if function is None or "noise" not in names:
        return None
    return Call(function, {name: frame.f_locals[name] for name in names})


def releases(value: T) -> T:
    """Return what a mechanism gives out; an audit may have it replaced by a neighbour's."""
    witness = _WITNESS.get()
    if witness is None:
        return value
    if witness.given is not None:
        value = next(witness.given, value)
    witness.released.append(value)
    return value
