"""SQLite connections that somebody forgot to close, on every interpreter.

Python 3.13 warns of them, earlier ones do not; neither says where they were opened.
"""

from __future__ import annotations

import sqlite3
import traceback
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
LIBRARIES = "site-packages"
_connect = sqlite3.connect
_open: dict[int, str] = {}  # by connection, where it was opened


class WatchedConnection(sqlite3.Connection):
    """A connection that warns if it is collected while it is open."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        _open[id(self)] = _place()

    def close(self) -> None:
        super().close()
        _open.pop(id(self), None)

    def __del__(self) -> None:
        place = _open.get(id(self))
        if place is not None:
            self.close()
            message = f"SQLite connection not closed: {place}"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)


def _place() -> str:
    """Return the lines of this project that led here, the last first."""
    lines = [
        f"{Path(frame.filename).relative_to(HERE)}:{frame.lineno}"
        for frame in traceback.extract_stack(limit=40)
        if Path(frame.filename).is_relative_to(HERE)
        and frame.filename != __file__
        and LIBRARIES not in frame.filename
    ]
    return ", ".join(reversed(lines))


def unclosed(file: str) -> list[str]:
    """Return where the open connections were opened for which a file of tests is responsible."""
    return [place for place in list(_open.values()) if Path(file).name in place]


def watch_connections() -> None:
    """Make every connection a watched one."""

    def connect(*arguments: Any, **options: Any) -> Any:
        return _connect(*arguments, **{"factory": WatchedConnection} | options)

    sqlite3.connect = sqlite3.dbapi2.connect = connect
