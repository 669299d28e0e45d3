"""Copies of a ledger: a whole one for safekeeping, and lines of JSON to read.

Both hold answers, so both are for their owner alone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.core.errors import LedgerError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["backup", "log_is_needed", "new_file"]


@contextmanager
def new_file(file: str | os.PathLike[str], what: str) -> Iterator[Path]:
    """Make an empty file that only its owner may read; take it away if the block fails."""
    path = Path(file)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise LedgerError(f"The {what} cannot be written: {path.name!r} exists already.") from None
    except OSError as error:
        raise LedgerError(f"The {what} cannot be written: {error.strerror}.") from None
    try:
        yield path
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise LedgerError(f"The {what} cannot be written: {error.strerror}.") from None
        raise


def backup(connection: Connection, path: Path) -> None:
    """Copy a SQLite ledger as of this moment, with what is still in its write-ahead log."""
    source: Any = connection.connection.driver_connection
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as target:
            source.backup(target)
            # one file that is whole by itself; opening it as a ledger turns the log on again
            target.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error:
        raise LedgerError(
            "The backup cannot be written: is the disk full, or the ledger damaged?"
        ) from None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def log_is_needed(file: Path) -> bool:
    """Return whether a log with entries lies beside a ledger's file."""
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size > 0
    except OSError:
        return False
