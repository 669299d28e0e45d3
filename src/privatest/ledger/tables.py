"""The tables of a ledger: their newest form, migrations from older ones, prepared statements.

Budgets are stored as text: exact decimals, the same in every database. A migration is plain SQL
that never changes once published; a test checks that all of them together give these tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from privatest.core.errors import LedgerError, LedgerMissing
from privatest.ledger.state import DAMAGED

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

_NUMBERS = ("id", "dataset", "sequence", "version")
_OPTIONAL = ("opens", "closes", "request")
LARGEST = 2**62  # no ledger gets there, and adding one still fits the column
_PIECE = 1000  # rows

R = TypeVar("R", bound="Row[Any] | None")


def sound(row: R) -> R:
    """Return a row after checking the types of its values.

    SQLite stores any type in any column, so a damaged file can yield bytes for text.
    """
    for name, value in () if row is None else row._mapping.items():
        if name in _NUMBERS:
            good = type(value) is int and 0 <= value <= LARGEST
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

# Functions of a PostgreSQL ledger: a role that may call them can ask, and change nothing else.
# They run with the rights of the ledger's owner, append one entry to the end of a chain, check
# its digest, and never lower a sum. Budgets, analysts and renewals stay with the owner.
_COLUMNS = (
    "id",
    "name",
    "settings",
    "epsilon",
    "delta",
    "limits",
    "sums",
    "sequence",
    "hash",
)
_TYPES = (
    "INTEGER",
    "VARCHAR",
    "TEXT",
    "VARCHAR",
    "VARCHAR",
    "TEXT",
    "TEXT",
    "BIGINT",
    "VARCHAR",
)
_ROW = ", ".join(f"{name} {kind}" for name, kind in zip(_COLUMNS, _TYPES, strict=True))
_NAMES = ", ".join(f"d.{name}" for name in _COLUMNS)

_CALLABLE = (
    "privatest_lock(text)",
    "privatest_lock_open(text)",
    "privatest_append(integer, bigint, text, text, text, text, text, text, text, text, text, text)",
)

_LOCK = f"""CREATE FUNCTION privatest_lock(of_name TEXT)
    RETURNS TABLE ({_ROW}, "time" VARCHAR) LANGUAGE sql SECURITY DEFINER AS $$
    SELECT {_NAMES}, d.time FROM privatest_datasets d WHERE d.name = of_name FOR UPDATE $$"""

_LOCK_OPEN = f"""CREATE FUNCTION privatest_lock_open(reservation TEXT)
    RETURNS TABLE ({_ROW}, "time" VARCHAR, request VARCHAR) LANGUAGE sql SECURITY DEFINER AS $$
    SELECT {_NAMES}, d.time, e.request FROM privatest_datasets d
    JOIN privatest_entries e ON e.dataset = d.id WHERE e.opens = reservation FOR UPDATE OF d $$"""

# Whether no sum of the whole, and none of a part, is smaller than before.
_GROWS = """CREATE FUNCTION privatest_grows(before JSONB, after JSONB)
    RETURNS BOOLEAN LANGUAGE sql IMMUTABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM jsonb_each_text(before -> 'whole') o
        WHERE coalesce((after #>> ARRAY['whole', o.key])::NUMERIC, -1) < o.value::NUMERIC
    ) AND NOT EXISTS (
        SELECT FROM jsonb_each(before -> 'parts') p, jsonb_each_text(p.value) o
        WHERE coalesce((after #>> ARRAY['parts', p.key, o.key])::NUMERIC, -1) < o.value::NUMERIC
    ) $$"""

_APPEND = """CREATE FUNCTION privatest_append(
        of_dataset INTEGER, of_sequence BIGINT, of_kind TEXT, of_opens TEXT, of_closes TEXT,
        of_request TEXT, of_body TEXT, of_hash TEXT, of_time TEXT, of_sums TEXT,
        of_analyst TEXT, of_own TEXT)
    RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE old privatest_datasets%ROWTYPE; own TEXT;
    BEGIN
        SELECT * INTO STRICT old FROM privatest_datasets WHERE id = of_dataset FOR UPDATE;
        IF of_kind NOT IN ('reserved', 'committed', 'failed') OR of_sequence <> old.sequence + 1
            OR of_time < old.time OR NOT privatest_grows(old.sums::JSONB, of_sums::JSONB)
            OR of_kind <> 'reserved' AND (of_sums <> old.sums OR of_analyst IS NOT NULL)
            OR (of_kind = 'reserved') <> (of_opens IS NOT NULL)
            OR (of_kind = 'reserved') <> (of_closes IS NULL)
            OR of_hash <> encode(sha256(convert_to(old.hash || E'\\n' || of_body, 'UTF8')), 'hex')
        THEN
            RAISE EXCEPTION 'privatest: entries are never changed';
        END IF;
        INSERT INTO privatest_entries VALUES (of_dataset, of_sequence, of_kind, of_opens,
            of_closes, of_request, of_body, of_hash);
        UPDATE privatest_datasets SET sequence = of_sequence, hash = of_hash, time = of_time,
            sums = of_sums WHERE id = of_dataset;
        IF of_analyst IS NOT NULL THEN
            SELECT sums INTO STRICT own FROM privatest_analysts
                WHERE dataset = of_dataset AND name = of_analyst FOR UPDATE;
            IF NOT privatest_grows(own::JSONB, of_own::JSONB) THEN
                RAISE EXCEPTION 'privatest: entries are never changed';
            END IF;
            UPDATE privatest_analysts SET sums = of_own
                WHERE dataset = of_dataset AND name = of_analyst;
        END IF;
    END $$"""

# Temporary tables come last: a caller's own must not be taken for the ledger's.
_PINNED = tuple(
    f"""DO $$ BEGIN EXECUTE format(
        'ALTER FUNCTION {function} SET search_path = %I, pg_temp', current_schema()); END $$"""
    for function in _CALLABLE
)
_OWNERS = tuple(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC" for function in _CALLABLE)

_FUNCTIONS = (_GROWS, _LOCK, _LOCK_OPEN, _APPEND, *_PINNED, *_OWNERS)

MIGRATIONS: Sequence[Mapping[str, Sequence[str]]] = (
    {"sqlite": _FIRST + _FIRST_SQLITE, "postgresql": _FIRST + _FIRST_POSTGRESQL},
    # also entries of more kinds , which an older privatest must not add to
    {"sqlite": (), "postgresql": _FUNCTIONS},
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
def statements(dialect: str) -> Mapping[str, Any]:
    """Build all statements once: building costs more than running.

    PostgreSQL gets functions that its owner made: fewer round trips, and no rights to change.
    """
    from sqlalchemy import (  # noqa: PLC0415
        bindparam,
        func,
        insert,
        literal_column,
        select,
        text,
        update,
    )

    datasets, analysts, entries = tables().datasets, tables().analysts, tables().entries
    closing = entries.alias()
    here: Any = bindparam("of_dataset")
    chain = entries.c.dataset == here
    own = (analysts.c.dataset == here) & (analysts.c.name == bindparam("whose"))
    opens = entries.c.opens == bindparam("reservation")
    known = select(datasets.c.id)
    account = ("epsilon", "delta", "limits", "sums")
    found: dict[str, Any] = {
        "names": select(datasets.c.name).order_by(datasets.c.id),
        "datasets": select(datasets).order_by(datasets.c.id),
        "dataset": select(datasets).where(datasets.c.name == bindparam("of_name")),
        "largest": select(func.max(datasets.c.id)),
        "analysts": select(analysts).where(analysts.c.dataset == here).order_by(analysts.c.name),
        "analyst": select(analysts).where(own),
        "entries": select(entries).where(chain).order_by(entries.c.sequence),
        "last_entries": select(entries)
        .where(chain, entries.c.sequence < bindparam("before"))
        .order_by(entries.c.sequence.desc())
        .limit(bindparam("last")),
        "last_of_kinds": select(entries.c.body)
        .where(chain, entries.c.kind.in_(bindparam("kinds", expanding=True)))
        .order_by(entries.c.sequence.desc())
        .limit(1),
        "entry_hash": select(entries.c.hash).where(
            chain, entries.c.sequence == bindparam("of_sequence")
        ),
        # reservations that were neither committed nor failed
        "unfinished": select(entries)
        .outerjoin(closing, closing.c.closes == entries.c.opens)
        .where(chain, entries.c.opens.is_not(None), closing.c.closes.is_(None))
        .order_by(entries.c.sequence),
        "recorded": select(entries.c.body)
        .where(chain, entries.c.request == bindparam("request"), entries.c.kind == "committed")
        .order_by(entries.c.sequence),
        "reservation": select(entries.c.sequence).where(opens),
        "reservations": select(entries.c.opens, entries.c.body, datasets.c.name)
        .join(datasets, datasets.c.id == entries.c.dataset)
        .where(func.substr(entries.c.opens, 1, bindparam("length")) == bindparam("digits"))
        .limit(2),
        "end": select(entries.c.kind, entries.c.body).where(
            entries.c.closes == bindparam("reservation")
        ),
        "export": select(entries.c.body, entries.c.hash).order_by(
            entries.c.dataset, entries.c.sequence
        ),
        "orphans": select(literal_column("1")).where(
            select(entries).where(entries.c.dataset.not_in(known)).exists()
            | select(analysts).where(analysts.c.dataset.not_in(known)).exists()
        ),
        # the reservation's data set, locked, and the digest of its request
        "lock_open": select(datasets, entries.c.request)
        .join(entries, entries.c.dataset == datasets.c.id)
        .where(opens),
        "add_dataset": insert(datasets),
        "add_analyst": insert(analysts),
        "add_entry": insert(entries).values({c.name: bindparam(c.name) for c in entries.c}),
        "move_head": update(datasets)
        .where(datasets.c.id == here)
        .values({n: bindparam(f"new_{n}") for n in ("sequence", "hash", "time", *account)}),
        "set_analyst": update(analysts)
        .where(own)
        .values({name: bindparam(f"new_{name}") for name in account}),
    }
    found["lock"] = found["dataset"]
    if dialect == "postgresql":
        found["lock"] = text("SELECT * FROM privatest_lock(:of_name)")
        # recording how a request ended need not wait for the disk (Ledger.commit)
        found["lock_open"] = text(
            "SELECT *, set_config('synchronous_commit', 'off', true) "
            "FROM privatest_lock_open(:reservation)"
        )
        # an entry of a request, whose sums are those of at most one analyst
        found["serve"] = text(
            "SELECT privatest_append(:of_dataset, :sequence, :kind, :opens, :closes, :request, "
            ":body, :hash, :new_time, :new_sums, :whose, :new_own)"
        )
    return found


def query(connection: Connection, statement: str, **values: Any) -> Iterator[Row[Any]]:
    """Run a statement by its name, and return its rows after checking their types."""
    prepared = statements(connection.dialect.name)[statement]
    options = {"yield_per": _PIECE} if statement in ("entries", "export") else {}
    return map(sound, connection.execute(prepared, values, execution_options=options))


def query_one(connection: Connection, statement: str, **values: Any) -> Row[Any] | None:
    """Run a statement that has one row, or none."""
    prepared = statements(connection.dialect.name)[statement]
    return sound(connection.execute(prepared, values).first())


def query_value(connection: Connection, statement: str, **values: Any) -> Any:
    """Run a statement that has one number, or none; its type is not checked."""
    return connection.scalar(statements(connection.dialect.name)[statement], values)


def copy_rows(source: Connection, target: Connection) -> None:
    """Insert all rows of a ledger into the empty tables of another one, of whatever kind."""
    from sqlalchemy import insert, select  # noqa: PLC0415

    for table in (tables().datasets, tables().analysts, tables().entries):
        rows = source.execute(select(table), execution_options={"yield_per": _PIECE})
        for piece in rows.partitions(_PIECE):
            target.execute(insert(table), [dict(sound(row)._mapping) for row in piece])


def delete_rows(connection: Connection) -> None:
    """Delete all rows, to put those of another ledger there in the same transaction."""
    from sqlalchemy import delete, text  # noqa: PLC0415

    drop, make = GUARDS[connection.dialect.name]
    for statement in drop:
        connection.execute(text(statement))
    for table in (tables().entries, tables().analysts, tables().datasets):
        connection.execute(delete(table))
    for statement in make:
        connection.execute(text(statement))
