"""The tables of a ledger: their newest form, how older ones are migrated, prepared statements.

Budgets are stored as text: exact decimals, the same in every database. A migration is plain SQL
that never changes once published; a test checks that all of them together give these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from privatest.core.errors import LedgerError, LedgerMissing
from privatest.ledger.chain import DAMAGED
from privatest.ledger.postgresql import FUNCTIONS

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

__all__ = [
    "GUARDS",
    "MIGRATIONS",
    "is_newest",
    "migrate",
    "sound",
    "statements",
    "tables",
    "version_of",
]

_NUMBERS = ("id", "dataset", "sequence", "version")
_OPTIONAL = ("opens", "closes", "request")
_LARGEST = 2**62  # no ledger gets there, and adding one still fits the column

R = TypeVar("R", bound="Row[Any] | None")


def sound(row: R) -> R:
    """Return a row after checking the types of its values.

    SQLite stores any type in any column, so a damaged file can yield bytes for text.
    """
    for name, value in () if row is None else row._mapping.items():
        if name in _NUMBERS:
            good = type(value) is int and 0 <= value <= _LARGEST
        else:
            good = isinstance(value, str) or (value is None and name in _OPTIONAL)
        if not good:
            raise LedgerError(DAMAGED.format(what=f"a {name}"))
    return row


@cache
def tables() -> SimpleNamespace:
    """Describe the tables; on first use, because importing SQLAlchemy is slow."""
    from sqlalchemy import (  # noqa: PLC0415
        BigInteger,
        Column,
        ForeignKey,
        Index,
        Integer,
        MetaData,
        PrimaryKeyConstraint,
        String,
        Table,
        Text,
    )

    metadata = MetaData()
    version = Table("privatest_version", metadata, Column("version", Integer, primary_key=True))
    # The settings of a data set, which never change; the head of its chain; running sums, which
    # verify() recomputes.
    datasets = Table(
        "privatest_datasets",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("name", String(200), nullable=False, unique=True),
        Column("settings", Text, nullable=False),
        Column("epsilon", String(80), nullable=False),
        Column("delta", String(80), nullable=False),
        Column("limits", Text, nullable=False),
        Column("sums", Text, nullable=False),
        Column("sequence", BigInteger, nullable=False),
        Column("hash", String(64), nullable=False),
        Column("time", String(40), nullable=False),
    )
    analysts = Table(
        "privatest_analysts",
        metadata,
        Column("dataset", Integer, ForeignKey(datasets.c.id), nullable=False),
        Column("name", String(200), nullable=False),
        Column("epsilon", String(80), nullable=False),
        Column("delta", String(80), nullable=False),
        Column("limits", Text, nullable=False),
        Column("sums", Text, nullable=False),
        PrimaryKeyConstraint("dataset", "name"),
    )
    # The chain. The body is what was hashed; the other columns repeat parts of it for searching.
    entries = Table(
        "privatest_entries",
        metadata,
        Column("dataset", Integer, ForeignKey(datasets.c.id), nullable=False),
        Column("sequence", BigInteger, nullable=False),
        Column("kind", String(20), nullable=False),
        Column("opens", String(40), unique=True),
        Column("closes", String(40), unique=True),
        Column("request", String(64)),
        Column("body", Text, nullable=False),
        Column("hash", String(64), nullable=False),
        PrimaryKeyConstraint("dataset", "sequence"),
    )
    Index("privatest_recall", entries.c.dataset, entries.c.request, entries.c.sequence)
    return SimpleNamespace(
        metadata=metadata, version=version, datasets=datasets, analysts=analysts, entries=entries
    )


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
# The chain is append-only: this stops mistakes, and makes tampering inconvenient.
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
    # also entries of more kinds (transactions.KINDS), which an older privatest must not add to
    {"sqlite": (), "postgresql": FUNCTIONS},
)
"""The statements from version i to version i + 1, for each database."""

GUARDS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "sqlite": (
        tuple(f"DROP TRIGGER privatest_no_{word}" for word in ("update", "delete")),
        _FIRST_SQLITE,
    ),
    "postgresql": (
        ("DROP TRIGGER privatest_append_only ON privatest_entries",),
        _FIRST_POSTGRESQL[1:],
    ),
}
"""How to lift the guards of the chain, and to put them back: only a restore does."""

_MIGRATION_LOCK = 7_720_846_411_253_201_007  # arbitrary; others are unlikely to use it


def version_of(connection: Connection) -> int | None:
    """Return the version of the tables; None if there is no ledger."""
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
            raise LedgerMissing(
                "There is no ledger here: create one first (privatest ledger init)."
            )
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


@cache
def statements(dialect: str) -> SimpleNamespace:
    """Build the statements that every request runs, once: building costs more than running.

    PostgreSQL gets functions that its owner made: fewer round trips, and no rights to change.
    """
    from sqlalchemy import bindparam, insert, select, text, update  # noqa: PLC0415

    datasets, analysts, entries = tables().datasets, tables().analysts, tables().entries
    own = (analysts.c.dataset == bindparam("of_dataset")) & (analysts.c.name == bindparam("whose"))
    names = [column.name for column in entries.c]
    head = ("sequence", "hash", "time", "sums", "epsilon", "delta", "limits")
    append = insert(entries).values({name: bindparam(name) for name in names})
    move_head = (
        update(datasets)
        .where(datasets.c.id == bindparam("of_dataset"))
        .values({name: bindparam(f"new_{name}") for name in head})
    )
    found = SimpleNamespace(
        lock=select(datasets).where(datasets.c.name == bindparam("of_name")),
        # the reservation's data set, locked, and the digest of its request
        lock_open=select(datasets, entries.c.request)
        .join(entries, entries.c.dataset == datasets.c.id)
        .where(entries.c.opens == bindparam("reservation")),
        analyst=select(analysts).where(own),
        spend_of_analyst=update(analysts).where(own).values(sums=bindparam("new_own")),
        append=(append, move_head),
        serve=None,
    )
    if dialect == "postgresql":
        found.lock = text("SELECT * FROM privatest_lock(:of_name)")
        # recording how a request ended need not wait for the disk (Ledger.commit)
        found.lock_open = text(
            "SELECT *, set_config('synchronous_commit', 'off', true) "
            "FROM privatest_lock_open(:reservation)"
        )
        found.append = (move_head.add_cte(append.cte("appended")),)
        found.serve = text(
            "SELECT privatest_append(:of_dataset, :sequence, :kind, :opens, :closes, :request, "
            ":body, :hash, :new_time, :new_sums, :whose, :new_own)"
        )
    return found
