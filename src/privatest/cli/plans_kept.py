"""Plans that were simulated before, in the user's cache folder. Nobody's data is in them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest import __version__
from privatest.core.documents import cache_folder, fingerprint, write_text

if TYPE_CHECKING:
    from privatest.planning import Plan

__all__ = ["Plans"]


@dataclass(frozen=True, slots=True)
class Plans:
    """The plan that was asked for, if it was made before; and its runs, if it was interrupted."""

    file: Path | None

    @classmethod
    def open(cls, asked: dict[str, Any] | None) -> Plans:
        """Find the place of a plan; None is for those who keep nothing."""
        if asked is None:
            return cls(None)
        return cls(
            cache_folder() / "plans" / f"{fingerprint({**asked, 'version': __version__})[:24]}.json"
        )

    @property
    def runs(self) -> Path | None:
        """Where single runs of the simulation are kept, until the plan is."""
        return None if self.file is None else self.file.with_suffix(".jsonl")

    def find(self) -> Plan | None:
        """Return the plan, or None; a file that cannot be read is as good as none."""
        from privatest.planning import Plan  # noqa: PLC0415

        with suppress(OSError, ValueError, TypeError):
            if self.file is not None and self.file.exists():
                found = json.loads(self.file.read_text(encoding="utf-8"))
                curves = [name for name in found if name.startswith("curve")]
                tuples = {name: tuple(map(tuple, found[name])) for name in curves}
                return Plan(**{**found, **tuples, "n": tuple(found["n"])})
        return None

    def keep(self, plan: Plan) -> None:
        """Keep a plan that took time; where that fails, it is simulated again."""
        if self.file is None or self.runs is None or plan.low is None:
            return
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.file, plan.to_json())
            self.runs.unlink(missing_ok=True)
