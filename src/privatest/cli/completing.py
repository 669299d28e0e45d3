"""What the Tab key offers where an option or argument takes one of a few names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["completing"]


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion for Typer; the names are looked up when the key is pressed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete
