"""What the service remembers besides the ledger: tokens, and jobs with their answers.

Answers in here were paid for. Tokens are kept as digests: whoever reads this cannot sign in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal

from privatest.ledger.database import Database

__all__ = ["Job", "Store", "Token", "now"]

_MOST_KEPT = 1000  # jobs of one analyst: a request that is answered from the record costs nothing
State = Literal["waiting", "running", "answered", "refused", "failed"]


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept.

    Attributes
    ----------
    id : str
        What it is called when it is revoked.
    name : str
        Whose it is.
    scopes : tuple of str
        What its owner may do with it: ask, custodian, auditor.
    created, expires : str
        When, in UTC.
    revoked : str or None
        When it was, if it was.
    """

    id: str
    name: str
    scopes: tuple[str, ...]
    created: str
    expires: str
    revoked: str | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it opens anything now."""
        return self.revoked is None and now() < self.expires

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; the token itself is not among them."""
        return {n: getattr(self, n) for n in self.__slots__} | {"scopes": list(self.scopes)}


@dataclass(frozen=True, slots=True)
class Job:
    """A request on its way, or at its end.

    Attributes
    ----------
    id, analyst : str
        Its number, and who asked.
    request : mapping
        What was asked.
    state : {"waiting", "running", "answered", "refused", "failed"}
        How far it is.
    asked, ended : str
        When, in UTC; the end is a public time too (docs/proofs/curator.md).
    document : mapping or None
        The answer, or why there is none.
    """

    id: str
    analyst: str
    request: Mapping[str, Any]
    state: State
    asked: str
    ended: str | None = None
    document: Mapping[str, Any] | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("waiting", "running")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@cache
def _tables() -> SimpleNamespace:
    from sqlalchemy import Column, Integer, MetaData, String, Table, Text  # noqa: PLC0415

    meta = MetaData()
    tokens = Table(
        "service_tokens",
        meta,
        Column("id", String(16), primary_key=True),
        Column("digest", String(64), nullable=False, unique=True),
        *(Column(n, String(200), nullable=False) for n in ("name", "scopes", "created", "expires")),
        Column("revoked", String(40)),
    )
    jobs = Table(
        "service_jobs",
        meta,
        Column("place", Integer, primary_key=True, autoincrement=True),  # in order of asking
        Column("id", String(32), nullable=False, unique=True),
        Column("analyst", String(200), nullable=False, index=True),
        Column("request", Text, nullable=False),
        Column("state", String(10), nullable=False),
        Column("asked", String(40), nullable=False),
        Column("ended", String(40)),
        Column("document", Text),
    )
    return SimpleNamespace(meta=meta, tokens=tokens, jobs=jobs)


class Store:
    """Tokens and jobs, in SQLite or PostgreSQL."""

    __slots__ = ("_database",)

    def __init__(self, location: str) -> None:
        self._database = Database(location, create=True, timeout=30.0)
        try:
            with self._database.writing() as connection:
                _tables().meta.create_all(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def add_token(self, token: Token, digest: str) -> None:
        """Keep a token by its digest."""
        row = token.to_dict() | {"scopes": " ".join(token.scopes), "digest": digest}
        with self._database.writing() as connection:
            connection.execute(_tables().tokens.insert().values(**row))

    def token(self, digest: str) -> Token | None:
        """Return the token with this digest."""
        from sqlalchemy import select  # noqa: PLC0415

        table = _tables().tokens
        with self._database.reading() as connection:
            row = connection.execute(select(table).where(table.c.digest == digest)).one_or_none()
        return None if row is None else _token(row)

    def token_numbered(self, number: str) -> Token | None:
        """Return the token with this id."""
        from sqlalchemy import select  # noqa: PLC0415

        table = _tables().tokens
        with self._database.reading() as connection:
            row = connection.execute(select(table).where(table.c.id == number)).one_or_none()
        return None if row is None else _token(row)

    def tokens(self) -> list[Token]:
        """Return all tokens, newest first."""
        from sqlalchemy import select  # noqa: PLC0415

        table = _tables().tokens
        with self._database.reading() as connection:
            rows = connection.execute(select(table).order_by(table.c.created.desc())).all()
        return [_token(row) for row in rows]

    def revoke(self, number: str) -> bool:
        """Close a token for ever; return whether there was one open."""
        table = _tables().tokens
        change = table.update().where(table.c.id == number, table.c.revoked.is_(None))
        with self._database.writing() as connection:
            return connection.execute(change.values(revoked=now())).rowcount > 0

    def add_job(self, job: Job) -> None:
        """Keep a job; of each analyst the newest are kept. Answers stay in the ledger."""
        from sqlalchemy import select  # noqa: PLC0415

        table = _tables().jobs
        row = job.to_dict() | {"request": json.dumps(job.request), "document": None}
        own = table.c.analyst == job.analyst
        places = select(table.c.place).where(own).order_by(table.c.place.desc())
        with self._database.writing() as connection:
            connection.execute(table.insert().values(**row))
            oldest = connection.execute(places.offset(_MOST_KEPT).limit(1)).scalar()
            if oldest is not None:
                connection.execute(table.delete().where(own, table.c.place <= oldest))

    def change_job(
        self, number: str, state: State, document: Mapping[str, Any] | None = None
    ) -> None:
        """Say how far a job is, and how it ended."""
        table = _tables().jobs
        values: dict[str, Any] = {"state": state}
        if document is not None:
            values |= {"document": json.dumps(document, allow_nan=False), "ended": now()}
        with self._database.writing() as connection:
            connection.execute(table.update().where(table.c.id == number).values(**values))

    def job(self, number: str) -> Job | None:
        """Return a job."""
        from sqlalchemy import select  # noqa: PLC0415

        table = _tables().jobs
        with self._database.reading() as connection:
            row = connection.execute(select(table).where(table.c.id == number)).one_or_none()
        return None if row is None else _job(row)

    def jobs(self, *, analyst: str | None = None, last: int = 50) -> list[Job]:
        """Return jobs, newest first; of one analyst, or of all."""
        from sqlalchemy import select  # noqa: PLC0415

        table = _tables().jobs
        query = select(table).order_by(table.c.place.desc()).limit(last)
        if analyst is not None:
            query = query.where(table.c.analyst == analyst)
        with self._database.reading() as connection:
            return [_job(row) for row in connection.execute(query)]

    def unended(self) -> list[Job]:
        """Return jobs that a service left when it was stopped."""
        from sqlalchemy import select  # noqa: PLC0415

        table = _tables().jobs
        query = select(table).where(table.c.state.in_(("waiting", "running")))
        with self._database.reading() as connection:
            return [_job(row) for row in connection.execute(query)]


def _token(row: Any) -> Token:
    words = (row.id, row.name, tuple(row.scopes.split()), row.created, row.expires, row.revoked)
    return Token(*words)


def _job(row: Any) -> Job:
    document = None if row.document is None else json.loads(row.document)
    request = json.loads(row.request)
    return Job(row.id, row.analyst, request, row.state, row.asked, row.ended, document)
