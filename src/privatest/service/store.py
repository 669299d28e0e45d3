"""The service's own database: tokens, and jobs with their answers.

Answers in it were paid for. Tokens are stored as digests, so reading it lets nobody sign in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Column, Integer, MetaData, Row, Select, String, Table, Text, select

from privatest.ledger.database import Database

State = Literal["waiting", "running", "answered", "refused", "failed"]
UNFINISHED: tuple[State, ...] = ("waiting", "running")
_JOBS_PER_ANALYST = 1000  # a request that is answered from the record costs nothing
_METADATA = MetaData()
_TOKENS = Table(
    "service_tokens",
    _METADATA,
    Column("id", String(16), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    *(Column(n, String(200), nullable=False) for n in ("name", "scopes", "created", "expires")),
    Column("revoked", String(40)),
)
_JOBS = Table(
    "service_jobs",
    _METADATA,
    Column("place", Integer, primary_key=True, autoincrement=True),  # in order of submission
    Column("id", String(32), nullable=False, unique=True),
    Column("analyst", String(200), nullable=False, index=True),
    Column("request", Text, nullable=False),
    Column("state", String(10), nullable=False),
    Column("asked", String(40), nullable=False),
    Column("ended", String(40)),
    Column("document", Text),
)


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret: id, owner, scopes, and times in UTC."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created: str
    expires: str
    revoked: str | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and now() < self.expires

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without the secret."""
        return {n: getattr(self, n) for n in self.__slots__} | {"scopes": list(self.scopes)}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A request, its state, and its answer or the reason why there is none.

    The time of the end is public too (docs/proofs/curator.md).
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
        return self.state not in UNFINISHED

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


class Store:
    """Tokens and jobs, in SQLite or PostgreSQL."""

    __slots__ = ("_database",)

    def __init__(self, location: str) -> None:
        self._database = Database(location, create=True, timeout=30.0)
        try:
            with self._database.writing() as connection:
                _METADATA.create_all(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        with self._database.reading() as connection:
            return connection.execute(query).all()

    def _tokens(self, query: Select[Any]) -> list[Token]:
        found = []
        for row in self._rows(query):
            scopes = tuple(row.scopes.split())
            found.append(Token(row.id, row.name, scopes, row.created, row.expires, row.revoked))
        return found

    def _jobs(self, query: Select[Any]) -> list[JobRecord]:
        found = []
        for row in self._rows(query):
            request = json.loads(row.request)
            document = None if row.document is None else json.loads(row.document)
            found.append(
                JobRecord(row.id, row.analyst, request, row.state, row.asked, row.ended, document)
            )
        return found

    def add_token(self, token: Token, digest: str) -> None:
        """Add a token by the digest of its secret."""
        row = token.to_dict() | {"scopes": " ".join(token.scopes), "digest": digest}
        with self._database.writing() as connection:
            connection.execute(_TOKENS.insert().values(**row))

    def token(self, *, digest: str | None = None, number: str | None = None) -> Token | None:
        """Return the token with this digest, or with this id."""
        same = _TOKENS.c.id == number if digest is None else _TOKENS.c.digest == digest
        return next(iter(self._tokens(select(_TOKENS).where(same))), None)

    def tokens(self) -> list[Token]:
        """Return all tokens, newest first."""
        return self._tokens(select(_TOKENS).order_by(_TOKENS.c.created.desc()))

    def revoke(self, number: str) -> bool:
        """Revoke a token; return whether it existed and was not revoked before."""
        change = _TOKENS.update().where(_TOKENS.c.id == number, _TOKENS.c.revoked.is_(None))
        with self._database.writing() as connection:
            return connection.execute(change.values(revoked=now())).rowcount > 0

    def add_job(self, job: JobRecord) -> None:
        """Add a job, and delete the oldest of an analyst who has too many."""
        row = job.to_dict() | {"request": json.dumps(job.request), "document": None}
        own = _JOBS.c.analyst == job.analyst
        places = select(_JOBS.c.place).where(own).order_by(_JOBS.c.place.desc())
        with self._database.writing() as connection:
            connection.execute(_JOBS.insert().values(**row))
            oldest = connection.execute(places.offset(_JOBS_PER_ANALYST).limit(1)).scalar()
            if oldest is not None:
                connection.execute(_JOBS.delete().where(own, _JOBS.c.place <= oldest))

    def change_job(
        self, number: str, state: State, document: Mapping[str, Any] | None = None
    ) -> None:
        """Set the state of a job; with a document it has ended."""
        values: dict[str, Any] = {"state": state}
        if document is not None:
            values |= {"document": json.dumps(document, allow_nan=False), "ended": now()}
        with self._database.writing() as connection:
            connection.execute(_JOBS.update().where(_JOBS.c.id == number).values(**values))

    def job(self, number: str) -> JobRecord | None:
        """Return the job with this id."""
        return next(iter(self._jobs(select(_JOBS).where(_JOBS.c.id == number))), None)

    def jobs(self, *, analyst: str | None = None, last: int = 50) -> list[JobRecord]:
        """Return the newest jobs, of one analyst or of all."""
        query = select(_JOBS).order_by(_JOBS.c.place.desc()).limit(last)
        return self._jobs(query if analyst is None else query.where(_JOBS.c.analyst == analyst))

    def unfinished_jobs(self) -> list[JobRecord]:
        """Return the jobs that wait or run."""
        return self._jobs(select(_JOBS).where(_JOBS.c.state.in_(UNFINISHED)))
