"""From any older version of the tables to the newest, in one transaction.

Each migration is plain SQL that never changes again once it was published. The tables of
tables.py must be what all of them together give; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from privatest.core.errors import LedgerError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["MIGRATIONS", "is_newest", "migrate", "version_of"]

_FIRST = (
    """CREATE TABLE privatest_datasets (
        id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(200) NOT NULL,
        settings TEXT NOT NULL, epsilon VARCHAR(80) NOT NULL, delta VARCHAR(80) NOT NULL,
        limits TEXT NOT NULL, sums TEXT NOT NULL, sequence BIGINT NOT NULL,
        hash VARCHAR(64) NOT NULL, time VARCHAR(40) NOT NULL, UNIQUE (name))""",
    """CREATE TABLE privatest_analysts (
        dataset INTEGER NOT NULL REFERENCES privatest_datasets (id),
        name VARCHAR(200) NOT NULL, epsilon VARCHAR(80) NOT NULL, delta VARCHAR(80) NOT NULL,
        limits TEXT NOT NULL, sums TEXT NOT NULL, PRIMARY KEY (dataset, name))""",
    """CREATE TABLE privatest_entries (
        dataset INTEGER NOT NULL REFERENCES privatest_datasets (id),
        sequence BIGINT NOT NULL, kind VARCHAR(20) NOT NULL, opens VARCHAR(40),
        closes VARCHAR(40), request VARCHAR(64), body TEXT NOT NULL,
        hash VARCHAR(64) NOT NULL, PRIMARY KEY (dataset, sequence),
        UNIQUE (opens), UNIQUE (closes))""",
    "CREATE INDEX privatest_recall ON privatest_entries (dataset, request, sequence)",
)
# The chain is append-only: a mistake is stopped, tampering is at least not convenient.
_FIRST_SQLITE = tuple(
    f"""CREATE TRIGGER privatest_no_{word.lower()} BEFORE {word} ON privatest_entries
        BEGIN SELECT RAISE(ABORT, 'privatest: entries are never changed'); END"""
    for word in ("UPDATE", "DELETE")
)
_FIRST_POSTGRESQL = (
    """CREATE FUNCTION privatest_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'privatest: entries are never changed'; END $$""",
    """CREATE TRIGGER privatest_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
        ON privatest_entries FOR EACH STATEMENT EXECUTE FUNCTION privatest_refuse()""",
)

MIGRATIONS: Sequence[Mapping[str, Sequence[str]]] = (
    {"sqlite": _FIRST + _FIRST_SQLITE, "postgresql": _FIRST + _FIRST_POSTGRESQL},
)
"""What takes version i to version i + 1, for each database."""

_MIGRATION_LOCK = 7_720_846_411_253_201_007  # any number that others are unlikely to use


def version_of(connection: Connection) -> int | None:
    """Return the version of the tables; None where there is no ledger."""
    from sqlalchemy import inspect, text  # noqa: PLC0415

    if not inspect(connection).has_table("privatest_version"):
        return None
    found = connection.execute(text("SELECT version FROM privatest_version")).scalars().all()
    if len(found) != 1 or type(found[0]) is not int or found[0] < 0:
        raise LedgerError("The ledger does not say which version it is: it is damaged.")
    return found[0]


def is_newest(connection: Connection) -> bool:
    """Return whether there is nothing to migrate."""
    return version_of(connection) == len(MIGRATIONS)


def migrate(connection: Connection, *, create: bool) -> None:
    """Bring the tables to the newest version, inside the caller's transaction."""
    from sqlalchemy import text  # noqa: PLC0415

    if connection.dialect.name == "postgresql":  # SQLite's transaction holds its only lock
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
    version = version_of(connection)
    if version is None:
        if not create:
            raise LedgerError("There is no ledger here: make one first (privatest ledger init).")
        connection.execute(text("CREATE TABLE privatest_version (version INTEGER PRIMARY KEY)"))
        connection.execute(text("INSERT INTO privatest_version VALUES (0)"))
        version = 0
    if version > len(MIGRATIONS):
        raise LedgerError(
            f"The ledger has version {version}, this privatest knows versions up to "
            f"{len(MIGRATIONS)}: use the newer privatest that wrote it."
        )
    for step in MIGRATIONS[version:]:
        for statement in step[connection.dialect.name]:
            connection.execute(text(statement))
    if version < len(MIGRATIONS):
        connection.execute(text(f"UPDATE privatest_version SET version = {len(MIGRATIONS)}"))
