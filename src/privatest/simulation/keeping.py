"""Finished runs in a file of JSON lines, so that an interrupted simulation goes on.

What a run found is a plain value: whether a test rejected, or a list of numbers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from privatest.core.documents import fingerprint
from privatest.core.errors import ParameterError

__all__ = ["Kept"]


@dataclass(slots=True)
class Kept:
    """Blocks of runs of one simulation. Only made-up data is ever in such a file."""

    path: Path | None
    key: str
    blocks: dict[int, list[Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None, about: Mapping[str, Any]) -> Kept:
        """Read the blocks of the simulation that ``about`` describes in full."""
        if path is None:
            return cls(None, "")
        if "<" in json.dumps(about):  # <lambda>, <locals>: another function may have this name
            raise ParameterError(
                "cache must be None for a test or a sampler that is not a function of a module: "
                "nothing tells it from others."
            )
        kept = cls(Path(path), fingerprint({**about, "version": _version()})[:16])
        for line in _lines(kept.path):
            try:
                entry = json.loads(line)
                if entry["key"] == kept.key:
                    kept.blocks[int(entry["first"])] = list(entry["found"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that was cut short by an interruption
        return kept

    def find(self, first: int, count: int) -> list[Any] | None:
        """Return what is known of so many runs."""
        known = self.blocks.get(first, [])
        return known[:count] if len(known) >= count else None

    def keep(self, first: int, found: list[Any]) -> None:
        """Write a block; a line at a time, so that nothing is lost but the last one."""
        if self.path is None:
            return
        self.blocks[first] = found
        line = json.dumps({"key": self.key, "first": first, "found": found})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError as error:
            raise ParameterError(f"cache cannot be written: {error.strerror}.") from None


def _version() -> str:
    """Return the version of the package: another one may test otherwise."""
    try:
        return metadata.version("privatest")
    except metadata.PackageNotFoundError:
        return "unknown"


def _lines(path: Path | None) -> list[str]:
    if path is None or not path.exists():
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ParameterError("cache must be a file of JSON lines that can be read.") from None
