"""The tables of a ledger: their newest form, migrations from older ones, prepared statements.

Budgets are stored as text: exact decimals, the same in every database. A migration is plain SQL
that never changes once published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from privatest.core.errors import LedgerError, LedgerMissing
from privatest.ledger.state import DAMAGED

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, Row

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


# Tables in an order in which each comes after those it refers to, and their columns.
_ACCOUNT = ("epsilon", "delta", "limits", "sums")
_TABLES = {
    "datasets": ("id", "name", "settings", *_ACCOUNT, "sequence", "hash", "time"),
    "analysts": ("dataset", "name", *_ACCOUNT),
    "entries": ("dataset", "sequence", "kind", "opens", "closes", "request", "body", "hash"),
}
# A data set has settings, which never change; the head of its chain; and running sums, which
# verify() recomputes. The body of an entry is what was hashed; its other columns repeat parts of
# it for searching.
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


def _select(table: str, rest: str, *more: str) -> str:
    columns = ", ".join((*(f"t.{name}" for name in _TABLES[table]), *more))
    return f"SELECT {columns} FROM privatest_{table} t {rest}"


def _insert(table: str) -> str:
    names = _TABLES[table]
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO privatest_{table} ({', '.join(names)}) VALUES ({values})"


_SET_ACCOUNT = ", ".join(f"{name} = :{name}" for name in _ACCOUNT)
# Statements by their names, the same in both databases but for _POSTGRESQL_STATEMENTS.
_STATEMENTS = {
    "names": "SELECT name FROM privatest_datasets ORDER BY id",
    "largest_id": "SELECT max(id) FROM privatest_datasets",
    "datasets": _select("datasets", "ORDER BY id"),
    "dataset": _select("datasets", "WHERE name = :name"),
    "lock": _select("datasets", "WHERE name = :name"),
    # the reservation's data set, locked, and the digest of its request
    "lock_open": _select(
        "datasets",
        "JOIN privatest_entries e ON e.dataset = t.id WHERE e.opens = :reservation",
        "e.request",
    ),
    "analysts": _select("analysts", "WHERE dataset = :dataset ORDER BY name"),
    "analyst": _select("analysts", "WHERE dataset = :dataset AND name = :name"),
    "entries": _select("entries", "WHERE dataset = :dataset ORDER BY sequence"),
    "last_entries": _select(
        "entries",
        "WHERE dataset = :dataset AND sequence < :before ORDER BY sequence DESC LIMIT :last",
    ),
    "period_start": """SELECT body FROM privatest_entries
        WHERE dataset = :dataset AND kind IN ('created', 'renewed', 'restored')
        ORDER BY sequence DESC LIMIT 1""",
    "closed": """SELECT body FROM privatest_entries
        WHERE dataset = :dataset AND kind = 'closed' ORDER BY sequence DESC LIMIT 1""",
    "entry_hash": """SELECT hash FROM privatest_entries
        WHERE dataset = :dataset AND sequence = :sequence""",
    # reservations that were neither committed nor failed
    "unfinished": _select(
        "entries",
        """LEFT JOIN privatest_entries c ON c.closes = t.opens
        WHERE t.dataset = :dataset AND t.opens IS NOT NULL AND c.closes IS NULL
        ORDER BY t.sequence""",
    ),
    "recorded": """SELECT body FROM privatest_entries
        WHERE dataset = :dataset AND request = :request AND kind = 'committed'
        ORDER BY sequence""",
    "reservation": "SELECT sequence FROM privatest_entries WHERE opens = :reservation",
    "reservations": """SELECT e.opens, e.body, d.name FROM privatest_entries e
        JOIN privatest_datasets d ON d.id = e.dataset
        WHERE substr(e.opens, 1, :length) = :digits LIMIT 2""",
    "end": "SELECT kind, body FROM privatest_entries WHERE closes = :reservation",
    "export": "SELECT body, hash FROM privatest_entries ORDER BY dataset, sequence",
    "orphans": """SELECT dataset FROM privatest_entries
        WHERE dataset NOT IN (SELECT id FROM privatest_datasets)
        UNION SELECT dataset FROM privatest_analysts
        WHERE dataset NOT IN (SELECT id FROM privatest_datasets)""",
    "add_datasets": _insert("datasets"),
    "add_analysts": _insert("analysts"),
    "add_entries": _insert("entries"),
    "set_dataset": f"""UPDATE privatest_datasets
        SET sequence = :sequence, hash = :hash, time = :time, {_SET_ACCOUNT} WHERE id = :dataset""",
    "set_analyst": f"""UPDATE privatest_analysts SET {_SET_ACCOUNT}
        WHERE dataset = :dataset AND name = :name""",
}
# PostgreSQL has functions that its owner made: fewer round trips, and no rights to change.
_POSTGRESQL_STATEMENTS = {
    "lock": "SELECT * FROM privatest_lock(:name)",
    # recording how a request ended need not wait for the disk (Ledger.commit)
    "lock_open": """SELECT *, set_config('synchronous_commit', 'off', true)
        FROM privatest_lock_open(:reservation)""",
    # an entry of a request, which changes the sums of at most one analyst
    "serve": """SELECT privatest_append(:dataset, :sequence, :kind, :opens, :closes, :request,
        :body, :hash, :time, :sums, :analyst, :own)""",
}


@cache
def _statement(dialect: str, name: str) -> Any:
    from sqlalchemy import text  # noqa: PLC0415

    own = _POSTGRESQL_STATEMENTS if dialect == "postgresql" else {}
    return text(own.get(name) or _STATEMENTS[name])


def run(connection: Connection, statement: str, **values: Any) -> CursorResult[Any]:
    """Run a statement by its name."""
    options = {"yield_per": _PIECE} if statement in ("entries", "export") else {}
    prepared = _statement(connection.dialect.name, statement)
    return connection.execute(prepared, values, execution_options=options)


def query(connection: Connection, statement: str, **values: Any) -> Iterator[Row[Any]]:
    """Run a statement, and return its rows after checking their types."""
    return map(sound, run(connection, statement, **values))


def query_one(connection: Connection, statement: str, **values: Any) -> Row[Any] | None:
    """Run a statement that has one row, or none."""
    return sound(run(connection, statement, **values).first())


def copy_rows(source: Connection, target: Connection) -> None:
    """Insert all rows of a ledger into the empty tables of another one, of whatever kind."""
    from sqlalchemy import text  # noqa: PLC0415

    for table in _TABLES:
        options = {"yield_per": _PIECE}
        rows = source.execute(text(_select(table, "")), execution_options=options)
        for piece in rows.partitions(_PIECE):
            values = [dict(sound(row)._mapping) for row in piece]
            target.execute(text(_insert(table)), values)


def delete_rows(connection: Connection) -> None:
    """Delete all rows, to put those of another ledger there in the same transaction."""
    from sqlalchemy import text  # noqa: PLC0415

    drop, make = GUARDS[connection.dialect.name]
    deletions = [f"DELETE FROM privatest_{table}" for table in reversed(_TABLES)]
    for statement in (*drop, *deletions, *make):
        connection.execute(text(statement))


def lock_tables(connection: Connection) -> None:
    """Let nobody else read or write until the transaction ends; SQLite has one writer anyway."""
    from sqlalchemy import text  # noqa: PLC0415

    if connection.dialect.name == "postgresql":
        names = ", ".join(f"privatest_{table}" for table in ("version", *_TABLES))
        connection.execute(text(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))
