"""Where things are kept if nobody says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["default_ledger"]


def default_ledger() -> str:
    """Return where the ledger is if nobody says: PRIVATEST_LEDGER, or the state folder."""
    given = os.environ.get("PRIVATEST_LEDGER")
    if given:
        return given
    home = Path.home()
    if sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    return str(folder / "privatest" / "ledger.db")
