"""Who wants to know how far a pass has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["told", "watching"]

Watcher = Callable[[int, int], None]
"""Rows done, and rows in all."""

_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell ``watcher`` of the passes within; sizes of samples are what it learns."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def told() -> Watcher | None:
    """Return who is watching."""
    return _WATCHER.get()
