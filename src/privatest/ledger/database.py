"""Connections, transactions and the words for what goes wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.core.errors import LedgerError, ParameterError
from privatest.ledger.chain import DAMAGED
from privatest.ledger.troubles import Phase, explained

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

__all__ = ["Database"]

_INHERITED: list[Engine] = []


class Database:
    """A SQLite file or a PostgreSQL database; forks and lost connections are taken care of."""

    __slots__ = ("_engine", "_process", "_timeout", "url")

    def __init__(self, location: str | os.PathLike[str], *, create: bool, timeout: float) -> None:
        self.url = _url(location)
        if self.url.get_backend_name() == "sqlite":
            _prepare_file(Path(self.url.database or ""), create)
        self._timeout = timeout
        self._engine = _engine(self.url, timeout)
        self._process = os.getpid()

    @property
    def kind(self) -> str:
        """Return ``"sqlite"`` or ``"postgresql"``."""
        return self.url.get_backend_name()

    @property
    def file(self) -> Path:
        """The file of a SQLite ledger."""
        return Path(self.url.database or "")

    def close(self) -> None:
        """Give connections back to the operating system."""
        self._own_connections()
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that only reads, and sees one moment of the ledger."""
        with self._transaction(write=False) as connection:
            yield connection

    @contextmanager
    def writing(self, *, flush: bool = True) -> Iterator[Connection]:
        """Open a transaction that is on disk when the block is left without an error.

        Without ``flush`` it is in the operating system's hands, in order: it outlives the
        process, and the next flush takes it along, but a power cut may lose it.
        """
        with self._transaction(write=True, flush=flush) as connection:
            yield connection

    def _own_connections(self) -> None:
        """After a fork, leave the parent's connections alone, and do not even close them."""
        if os.getpid() != self._process:
            _INHERITED.append(self._engine)
            self._engine = _engine(self.url, self._timeout)
            self._process = os.getpid()

    @contextmanager
    def _transaction(self, *, write: bool, flush: bool = True) -> Iterator[Connection]:
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError  # noqa: PLC0415

        self._own_connections()
        phase: Phase = "connect"
        try:
            with self._engine.connect() as connection:
                phase = "work"
                changed = connection.execution_options(privatest_write=write, privatest_flush=flush)
                if not write and self.kind == "postgresql":
                    changed = connection.execution_options(isolation_level="REPEATABLE READ")
                with changed.begin():
                    yield changed
                    phase = "commit" if write else "work"  # leaving the block commits
        except DBAPIError as error:
            raise LedgerError(explained(error, phase, self.url)) from None
        except UnicodeDecodeError:  # Python's driver, on an error of SQLite about a damaged file
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
    """Make the file for its owner alone, or say that it is not there."""
    if path.is_dir():
        raise LedgerError("The ledger must be a file; this is a directory.")
    if path.exists():
        return
    if not create:
        raise LedgerError(
            f"There is no ledger at {path.name}: make one first (privatest ledger init)."
        )
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise LedgerError(f"The ledger cannot be made: {error.strerror}.") from None


def _engine(url: URL, timeout: float) -> Engine:
    from sqlalchemy import create_engine, event  # noqa: PLC0415

    if url.get_backend_name() == "postgresql":
        try:
            return create_engine(
                url,
                hide_parameters=True,
                pool_recycle=60,  # what lay idle for long may be dead; asking each time costs more
                isolation_level="READ COMMITTED",  # who waited for the lock reads what is new
                connect_args={
                    "connect_timeout": max(2, int(timeout)),
                    "tcp_user_timeout": int(timeout * 1000),  # a network that went silent
                    "options": f"-c lock_timeout={int(timeout * 1000)} -c synchronous_commit=on",
                },
            )
        except ImportError:
            raise LedgerError("PostgreSQL needs psycopg: install privatest[postgres].") from None
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": timeout})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        for pragma in ("journal_mode=WAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        # FULL: what was granted is on the disk before anybody hears of it
        level = "FULL" if options.get("privatest_flush", True) else "NORMAL"
        connection.exec_driver_sql(f"PRAGMA synchronous={level}")
        # IMMEDIATE: who reads in order to write takes the lock before reading
        write = options.get("privatest_write", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine
