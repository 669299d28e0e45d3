"""Where things are kept if nobody says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["cache_folder", "default_ledger"]


def default_ledger() -> str:
    """Return where the ledger is if nobody says: PRIVATEST_LEDGER, or the state folder."""
    given = os.environ.get("PRIVATEST_LEDGER")
    return given or str(
        _folder("XDG_STATE_HOME", ".local/state", "Application Support") / "ledger.db"
    )


def cache_folder() -> Path:
    """Return where the platform keeps what can be made again."""
    return _folder("XDG_CACHE_HOME", ".cache", "Caches")


def _folder(variable: str, usual: str, library: str) -> Path:
    """Return a folder of privatest, by the platform's custom."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = home / "Library" / library
    else:
        base = Path(os.environ.get(variable) or home / usual)
    return base / "privatest"
