"""Connections, transactions, copies, and error messages of the database behind a ledger.

A driver's own message may quote a path, a password or a statement, so it is never repeated.

No connection to a SQLite ledger is open while the process forks. SQLite keeps a table of the locks
that its process holds. A fork copies the table but not the locks: the child believes that it holds
locks, the parent's last close deletes the write-ahead log under it, and what the child is granted
from then on is written to a file without a name. So a fork waits for transactions to end and
closes idle connections first; either process opens its own again when it needs them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

from privatest.core.errors import LedgerError, LedgerMissing, ParameterError
from privatest.ledger.state import DAMAGED
from privatest.ledger.tables import copy_rows, migrate

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

Phase = Literal["connect", "work", "commit"]
"""How far a transaction got. After a failure in the last phase it may still have succeeded."""

_WRITABLE = (
    "whoever uses it, even to look, must be allowed to write: to the file and its folder, or to "
    "the database"
)
_SYMPTOMS = (
    ("readonly", f"it is read-only; {_WRITABLE}"),
    ("read-only", f"it is read-only; {_WRITABLE}"),
    ("permission denied", "permission is denied"),
    ("locked", "another process holds it"),
    ("lock timeout", "another process holds it"),
    ("full", "the disk is full"),
    ("no space", "the disk is full"),
    ("malformed", "the file is damaged"),
    ("corrupt", "the file is damaged"),
    ("could not decode", "the file is damaged"),
    ("no such table", "the file is damaged"),
    ("no such column", "the file is damaged"),
    ("not a database", "the file is not a ledger, or it is damaged"),
    ("unable to open", f"the file cannot be opened; {_WRITABLE}"),
    ("disk i/o", "the disk cannot be read or written"),
    ("never changed", "entries are never changed"),
)
# While connecting, "does not exist" refers to a database or a user, never to a table.
_CONNECTING = (
    ("password", "the server does not accept the user's password"),
    ("pg_hba", "the server does not admit this user from this host"),
    ("authentication", "the server does not accept this user"),
    ("role", "the server has no such user"),
    ("database", "the server has no database {database}"),
    ("translate host name", "there is no host {host}"),
    ("resolve", "there is no host {host}"),
    ("name or service", "there is no host {host}"),
    ("too many", "the server has too many connections"),
    ("connection slots", "the server has too many connections"),
    ("starting up", "the server is starting or stopping"),
    ("shutting down", "the server is starting or stopping"),
    ("refused", "no server listens at {place}"),
    ("no such file", "no server listens at {place}"),
    ("timeout", "no server answers at {place}"),
    ("timed out", "no server answers at {place}"),
)
_NOTHING = "Nothing was granted."
_UNKNOWN = (
    "The ledger cannot be used: {reason} while an entry was being written. It is not known whether "
    "it was written, and so whether budget was spent. Release nothing. When the ledger is back, "
    "`privatest ledger history NAME` shows the entry if it was: then its cost is spent."
)


def explained(error: Any, phase: Phase, url: URL) -> str:
    """Explain a failure, and what it means for the budget; ``error`` is SQLAlchemy's."""
    message = str(error.orig).lower()
    if phase == "connect" and url.get_backend_name() == "postgresql":
        return f"The ledger cannot be used: {_not_connected(message, url)}. {_NOTHING}"
    reason = next((ours for theirs, ours in _SYMPTOMS if theirs in message), None)
    if reason is None:
        lost = error.connection_invalidated or "connect" in message
        reason = "the connection was lost" if lost else type(error.orig).__name__
    if phase == "commit" and _may_have_happened(error):
        return _UNKNOWN.format(reason=reason)
    return f"The ledger cannot be used: {reason}. {_NOTHING}"


def _not_connected(message: str, url: URL) -> str:
    # the driver quotes what it connects to; do not mistake that for the reason
    for own in filter(None, (url.database, url.username, url.host)):
        message = message.replace(f'"{own.lower()}"', "")
    socket = url.query.get("host")
    host = url.host or (socket if isinstance(socket, str) else "") or "the usual place"
    place = f"{host}, port {url.port}" if url.port else host
    found = next((ours for theirs, ours in _CONNECTING if theirs in message), None)
    words = found or "there is no connection to {place}"
    return words.format(database=repr(url.database), host=host, place=place)


def _may_have_happened(error: Any) -> bool:
    """Return whether a transaction may be in the database although its COMMIT failed.

    SQLite rolls a failed COMMIT back, unless the final fsync failed. A server may have committed
    without being able to confirm it, unless it reports a rollback itself (class 40).
    """
    name = getattr(error.orig, "sqlite_errorname", None)
    if name is not None:
        return "FSYNC" in name
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or state is None or not state.startswith(("23", "40"))


# --- forks ----------------------------------------------------------------------------------------

_PATIENCE = 30.0  # seconds that a fork waits for transactions of other threads


class _ForkHook:
    """How to close the idle connections of one database."""

    __slots__ = ("__weakref__", "idle")

    def __init__(self, idle: Callable[[], None]) -> None:
        self.idle = idle


class _ForkGate:
    """Who is in a transaction; its lock is held while the process forks."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.active: Counter[int] = Counter()  # by thread
        self.databases: WeakSet[_ForkHook] = WeakSet()
        self.process = os.getpid()
        self.closed = False  # whether no connection was open when the process forked
        self.unsafe = False  # whether this process was forked while one was

    def before(self) -> None:
        self.changed.acquire()
        self.closed = False
        own = threading.get_ident()
        self.changed.wait_for(lambda: not any(t != own for t in self.active), _PATIENCE)
        for database in list(self.databases):
            database.idle()
        self.closed = not self.active

    def in_parent(self) -> None:
        self.changed.release()

    def in_child(self) -> None:
        """Begin anew: other threads, and whoever waits for the lock, are in the parent alone."""
        self.unsafe = self.unsafe or (bool(self.databases) and not self.closed)
        self.changed = threading.Condition(threading.RLock())
        self.active.clear()
        self.process, self.closed = os.getpid(), False


_gate = _ForkGate()
if hasattr(os, "register_at_fork"):  # elsewhere processes do not fork
    os.register_at_fork(
        before=_gate.before, after_in_parent=_gate.in_parent, after_in_child=_gate.in_child
    )


def close_at_forks(idle: Callable[[], None]) -> _ForkHook:
    """Have ``idle`` called before each fork, as long as what is returned is kept."""
    made = _ForkHook(idle)
    with _gate.changed:
        _gate.databases.add(made)
    return made


@contextmanager
def in_use() -> Iterator[None]:
    """Use a connection to a SQLite ledger: forks by other threads wait until the block ends.

    Raises
    ------
    LedgerError
        In a process that was forked inside such a block, or by a program that does not tell Python.
    """
    forked_unseen = os.getpid() != _gate.process and _gate.databases
    if _gate.unsafe or forked_unseen:
        raise LedgerError(
            "The ledger cannot be used: this process was forked while a ledger was open, and "
            "SQLite's locks do not survive that. Nothing was granted. Fork before a ledger is "
            "opened, or start processes with multiprocessing's 'spawn'."
        )
    own = threading.get_ident()
    with _gate.changed:
        _gate.active[own] += 1
    try:
        yield
    finally:
        with _gate.changed:
            _gate.active[own] -= 1
            if _gate.active[own] <= 0:
                del _gate.active[own]
            _gate.changed.notify_all()


# --- connections ----------------------------------------------------------------------------------

_INHERITED: list[Engine] = []


class Database:
    """A SQLite file or a PostgreSQL database; handles forks and lost connections."""

    __slots__ = ("_at_forks", "_engine", "_process", "_timeout", "url")

    def __init__(self, location: str | os.PathLike[str], *, create: bool, timeout: float) -> None:
        self.url = _url(location)
        if self.url.get_backend_name() == "sqlite":
            _prepare_file(Path(self.url.database or ""), create)
        self._timeout = timeout
        self._engine = _engine(self.url, timeout)
        self._process = os.getpid()
        self._at_forks = close_at_forks(self._engine.dispose) if self.kind == "sqlite" else None

    @property
    def kind(self) -> str:
        """Return ``"sqlite"`` or ``"postgresql"``."""
        return self.url.get_backend_name()

    @property
    def file(self) -> Path:
        """The file of a SQLite ledger."""
        return Path(self.url.database or "")

    def close(self) -> None:
        """Close all connections."""
        self._own_connections()
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read-only transaction on a snapshot of the ledger."""
        with self._transaction(write=False) as connection:
            yield connection

    @contextmanager
    def writing(self, *, flush: bool = True) -> Iterator[Connection]:
        """Open a transaction that is on disk when the block ends without an error.

        Without ``flush`` it is left to the operating system, in order: it survives the process,
        and the next flush includes it, but a power cut may lose it.
        """
        with self._transaction(write=True, flush=flush) as connection:
            yield connection

    def _own_connections(self) -> None:
        """After a fork, leave the parent's connections to a server alone: do not even close them.

        Those to a file were closed before the fork.
        """
        if os.getpid() != self._process and self.kind == "postgresql":
            _INHERITED.append(self._engine)
            self._engine = _engine(self.url, self._timeout)
        self._process = os.getpid()

    def _known_to_forks(self) -> AbstractContextManager[None]:
        return in_use() if self.kind == "sqlite" else nullcontext()

    @contextmanager
    def _transaction(self, *, write: bool, flush: bool = True) -> Iterator[Connection]:
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError  # noqa: PLC0415

        self._own_connections()
        phase: Phase = "connect"
        try:
            with self._known_to_forks(), self._engine.connect() as connection:
                phase = "work"
                changed = connection.execution_options(privatest_write=write, privatest_flush=flush)
                if not write and self.kind == "postgresql":
                    changed = connection.execution_options(isolation_level="REPEATABLE READ")
                with changed.begin():
                    yield changed
                    phase = "commit" if write else "work"  # leaving the block commits
        except DBAPIError as error:
            raise LedgerError(explained(error, phase, self.url)) from None
        except UnicodeDecodeError:  # from Python's driver, if SQLite reports a damaged file
            raise LedgerError(DAMAGED.format(what="the file")) from None
        except UnicodeEncodeError:
            raise ParameterError("a name must be text that can be written in UTF-8.") from None
        except SQLAlchemyError as error:
            name = type(error).__name__
            raise LedgerError(f"The ledger cannot be used ({name}); nothing was granted.") from None


def _url(location: str | os.PathLike[str]) -> URL:
    from sqlalchemy import URL, make_url  # noqa: PLC0415
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    text = os.fspath(location)
    if not text:
        raise ParameterError("The ledger must be a file name or a PostgreSQL address.")
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).absolute()))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ParameterError("The address of the ledger cannot be read.") from None
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database and ":memory:" not in url.database:
        return url
    raise ParameterError("The ledger must be a file, sqlite:///file or postgresql://address.")


def _prepare_file(path: Path, create: bool) -> None:
    """Create the file, readable by its owner only; or raise an error if there is none."""
    if path.is_dir():
        raise LedgerError("The ledger must be a file; this is a directory.")
    if path.exists():
        return
    if not create:
        raise LedgerMissing(
            f"There is no ledger at {path.name}: create one first (privatest ledger init)."
        )
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise LedgerError(f"The ledger cannot be created: {error.strerror}.") from None


def _engine(url: URL, timeout: float) -> Engine:
    from sqlalchemy import create_engine, event  # noqa: PLC0415

    if url.get_backend_name() == "postgresql":
        try:
            return create_engine(
                url,
                hide_parameters=True,
                pool_recycle=60,  # an idle connection may be dead; a ping each time costs more
                isolation_level="READ COMMITTED",  # after waiting for the lock, read what is new
                connect_args={
                    "connect_timeout": max(2, int(timeout)),
                    "tcp_user_timeout": int(timeout * 1000),  # for a network that went silent
                    "options": f"-c lock_timeout={int(timeout * 1000)} -c synchronous_commit=on",
                },
            )
        except ImportError:
            raise LedgerError("PostgreSQL needs psycopg: install privatest[postgres].") from None
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": timeout})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # BEGIN is issued below
        try:
            for pragma in ("journal_mode=WAL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()  # SQLAlchemy does not, if this listener fails
            raise

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        # FULL: a grant is on disk before it is acknowledged
        level = "FULL" if options.get("privatest_flush", True) else "NORMAL"
        connection.exec_driver_sql(f"PRAGMA synchronous={level}")
        # IMMEDIATE: a writer takes the lock before it reads
        write = options.get("privatest_write", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


# --- files and copies -----------------------------------------------------------------------------


@contextmanager
def new_file(file: str | os.PathLike[str], what: str) -> Iterator[Path]:
    """Create an empty file that only its owner may read; delete it if the block fails."""
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
    """Copy a SQLite ledger as of now, including what is still in its write-ahead log."""
    source: Any = connection.connection.driver_connection
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as target:
            source.backup(target)
            # a single self-contained file; opening it as a ledger turns the log on again
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
    """Return whether there is a log with entries beside a ledger's file."""
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size > 0
    except OSError:
        return False


def copy_to_file(connection: Connection, path: Path) -> None:
    """Write a ledger to an SQLite file that exists, as one transaction sees it."""
    if connection.dialect.name == "sqlite":
        backup(connection, path)
        return
    target = Database(path, create=True, timeout=30)
    try:
        with target.writing() as own:
            migrate(own, create=True)
            copy_rows(connection, own)
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
