"""Copies of a ledger's rows, from one database to another, whatever kind they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from privatest.core.errors import LedgerError
from privatest.ledger.database import Database, backup
from privatest.ledger.forks import in_use
from privatest.ledger.tables import GUARDS, migrate, sound, tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["copy_file", "copy_to_file", "empty", "fill"]

_PIECE = 1000  # rows


def copy_to_file(connection: Connection, path: Path) -> None:
    """Write a ledger to an SQLite file that exists, as one transaction sees it."""
    if connection.dialect.name == "sqlite":
        backup(connection, path)
        return
    target = Database(path, create=True, timeout=30)
    try:
        with target.writing() as own:
            migrate(own, create=True)
            fill(own, connection)
    finally:
        target.close()
    with in_use(), closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it


def copy_file(source: Path, target: Path) -> None:
    """Copy an SQLite ledger without writing to it."""
    try:
        address = f"{source.absolute().as_uri()}?mode=ro"
        with (
            in_use(),
            closing(sqlite3.connect(address, uri=True)) as read,
            closing(sqlite3.connect(target)) as written,
        ):
            read.backup(written)
    except sqlite3.Error:
        raise LedgerError(
            f"{source.name!r} cannot be read: it is no ledger, or it is damaged."
        ) from None


def fill(target: Connection, source: Connection) -> None:
    """Insert all rows of another ledger into empty tables."""
    from sqlalchemy import insert, select  # noqa: PLC0415

    for table in (tables().datasets, tables().analysts, tables().entries):
        rows = source.execute(select(table), execution_options={"yield_per": _PIECE})
        for piece in rows.partitions(_PIECE):
            target.execute(insert(table), [dict(sound(row)._mapping) for row in piece])


def empty(connection: Connection) -> None:
    """Delete all rows, to put those of another ledger there in the same transaction."""
    from sqlalchemy import delete, text  # noqa: PLC0415

    drop, make = GUARDS[connection.dialect.name]
    for statement in drop:
        connection.execute(text(statement))
    for table in (tables().entries, tables().analysts, tables().datasets):
        connection.execute(delete(table))
    for statement in make:
        connection.execute(text(statement))
