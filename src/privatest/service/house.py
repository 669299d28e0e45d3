"""All that a running service holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, Self

from privatest.core.errors import PrivatestError
from privatest.curator import Curator
from privatest.curator.answers import Rehearsal
from privatest.curator.config import CuratorConfig
from privatest.service.describing import visible_datasets
from privatest.service.jobs import Jobs
from privatest.service.limits import RateLimit
from privatest.service.people import Person, TooMany
from privatest.service.store import Job, Store

__all__ = ["House", "NotFound"]

_REHEARSING = BoundedSemaphore(2)  # they run in this process


class NotFound(PrivatestError):
    """There is no such thing, or it is not this person's to see: they cannot tell which."""


@dataclass(frozen=True, slots=True)
class House:
    """The curator and what serves it.

    Attributes
    ----------
    curator : Curator
        Checks and prices requests; rows are looked at by workers only.
    store : Store
        Tokens and jobs.
    jobs : Jobs
        Requests on their way.
    rate : RateLimit
        How often a person may ask.
    """

    curator: Curator
    store: Store
    jobs: Jobs
    rate: RateLimit

    @classmethod
    def open(cls, config: str | os.PathLike[str]) -> Self:
        """Open everything; rows are not read."""
        from privatest.curator.workers import Workers  # noqa: PLC0415 - it starts processes

        with ExitStack() as cleanup:
            curator = cleanup.enter_context(Curator.open(config))
            settings = curator.config.service
            store = Store(settings.database)
            cleanup.callback(store.close)
            workers = cleanup.enter_context(Workers(Path(config), count=settings.workers))
            jobs = Jobs(store, workers, settings.workers)
            cleanup.pop_all()
        return cls(curator, store, jobs, RateLimit(settings.requests_per_minute))

    @property
    def config(self) -> CuratorConfig:
        """What the custodian wrote."""
        return self.curator.config

    def close(self, *, wait: float = 30.0) -> None:
        """Let requests end, then close everything."""
        self.jobs.close(wait=wait)
        self.store.close()
        self.curator.close()

    def rehearse(self, request: Mapping[str, Any], person: Person) -> Rehearsal:
        """Answer from made-up rows, at no cost; a few at a time."""
        if not _REHEARSING.acquire(timeout=5):
            raise TooMany(5)
        try:
            return self.curator.rehearse(request, analyst=person.name)
        finally:
            _REHEARSING.release()

    def job(self, number: str, person: Person) -> Job:
        """Return a job that this person may see."""
        found = self.store.job(number)
        if found is None or not self._shows(found, person):
            raise NotFound("There is no such job.")
        return found

    def jobs_of(self, person: Person, last: int) -> list[Job]:
        """Return the jobs that this person may see, newest first."""
        everything = person.sees_all or self.config.service.open_history
        found = self.store.jobs(analyst=None if everything else person.name, last=last)
        shown: dict[tuple[str, str], bool] = {}  # asked of the ledger once for each data set
        for job in found:
            key = (job.analyst, str(job.request.get("dataset")))
            if key not in shown:
                shown[key] = self._shows(job, person)
        return [j for j in found if shown[j.analyst, str(j.request.get("dataset"))]]

    def _shows(self, job: Job, person: Person) -> bool:
        """Return whether somebody may see a job.

        Whoever was revoked sees no answer any more, not even their own; and of others' answers
        nobody sees those about a data set that is not theirs.
        """
        if person.sees_all:
            return True
        name = str(job.request.get("dataset"))
        if job.analyst != person.name:
            known = visible_datasets(self.curator, person.name, everything=False)
            return self.config.service.open_history and name in known
        return not self.curator.is_revoked(name, person.name)
