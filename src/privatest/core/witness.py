"""A private number at the moment it meets noise, told to an audit and to nobody else.

Every mechanism says here what it adds noise to, how far that may move between neighbours, and how
large the noise is. An audit runs a test on made-up neighbours and compares. Without one nothing
is kept, and what a test releases is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Meeting", "Norm", "Witness", "meets", "releases", "witnessing"]

Norm = Literal["absolute", "l1", "l2", "linf", "signed sums", "permutation"]
"""How a movement is measured; "permutation" has one bound for the first entry, one for others."""

T = TypeVar("T")

_WITNESS: ContextVar[Witness | None] = ContextVar("witness", default=None)


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
    """

    mechanism: str
    values: NDArray[np.float64]
    norm: Norm
    bounds: tuple[float, ...]
    scale: float

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
        witness.meetings.append(Meeting(mechanism, kept, norm, bounds, float(scale)))


def releases(value: T) -> T:
    """Return what a mechanism gives out; an audit may have it replaced by a neighbour's."""
    witness = _WITNESS.get()
    if witness is None:
        return value
    if witness.given is not None:
        value = next(witness.given, value)
    witness.released.append(value)
    return value
