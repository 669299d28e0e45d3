"""Where the time that a computation takes must not follow from people's values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["is_steady", "steady"]

_STEADY: ContextVar[bool] = ContextVar("steady", default=False)


@contextmanager
def steady() -> Iterator[None]:
    """Take the way whose time follows from public sizes, where a quicker one would tell more.

    A curator does so: those who ask may hold a watch. Whoever holds the data need not.
    """
    token = _STEADY.set(True)
    try:
        yield
    finally:
        _STEADY.reset(token)


def is_steady() -> bool:
    """Return whether this is such a place."""
    return _STEADY.get()
