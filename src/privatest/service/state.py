"""The state of a running service, and what each person may see of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import BoundedSemaphore
from typing import Annotated, Any, Self

from fastapi import Depends, Request

from privatest.core.errors import ParameterError
from privatest.curator import Curator
from privatest.curator.answers import Rehearsal
from privatest.curator.config import CuratorConfig
from privatest.curator.worker_pool import WorkerPool
from privatest.data.schema import CategoricalColumn, Column, spelling
from privatest.requests.catalogue import METHODS, PARTS, Method
from privatest.service.auth import Person
from privatest.service.errors import NotFound, TooMany
from privatest.service.jobs import JobQueue
from privatest.service.middleware import RateLimit
from privatest.service.store import JobRecord, Store

_REHEARSALS = BoundedSemaphore(2)  # they run in this process


@dataclass(frozen=True, slots=True)
class ServiceState:
    """What a running service holds open.

    Attributes
    ----------
    curator : Curator
        Checks and prices requests; only workers read rows.
    store : Store
        Tokens and jobs.
    jobs : JobQueue
        Unfinished requests.
    rate : RateLimit
        How often a person may send requests.
    """

    curator: Curator
    store: Store
    jobs: JobQueue
    rate: RateLimit

    @classmethod
    def open(cls, config: str | os.PathLike[str]) -> Self:
        """Open everything; rows are not read."""
        with ExitStack() as cleanup:
            curator = cleanup.enter_context(Curator.open(config))
            settings = curator.config.service
            store = Store(settings.database)
            cleanup.callback(store.close)
            workers = cleanup.enter_context(WorkerPool(Path(config), count=settings.workers))
            jobs = JobQueue(store, workers, settings.workers)
            cleanup.pop_all()
        return cls(curator, store, jobs, RateLimit(settings.requests_per_minute))

    @property
    def config(self) -> CuratorConfig:
        """The curator's file."""
        return self.curator.config

    def close(self, *, wait: float = 30.0) -> None:
        """Let requests end, then close everything."""
        self.jobs.close(wait=wait)
        self.store.close()
        self.curator.close()

    def rehearse(self, request: Mapping[str, Any], person: Person) -> Rehearsal:
        """Answer from made-up rows, at no cost; a few at a time."""
        if not _REHEARSALS.acquire(timeout=5):
            raise TooMany(5)
        try:
            return self.curator.rehearse(request, analyst=person.name)
        finally:
            _REHEARSALS.release()

    def submit(self, request: Mapping[str, Any], person: Person) -> JobRecord:
        """Begin a request that the person can pay for."""
        self.curator.price(request, analyst=person.name, afford=True)
        return self.jobs.submit(person.name, request)

    def check_token_owner(self, name: str, scopes: Sequence[str]) -> None:
        """Refuse a token that asks for somebody who is no analyst."""
        if "ask" in scopes and name not in self.config.analysts:
            raise ParameterError("name must be that of an analyst in the curator's file.")

    def revoke_token(self, number: str) -> None:
        """Revoke a token at once: sessions that it opened end too."""
        if not self.store.revoke(number):
            raise NotFound("There is no such token, or it is revoked already.")

    def job(self, number: str, person: Person) -> JobRecord:
        """Return a job that this person may see."""
        job = self.store.job(number)
        if job is None or not self._may_see(job.analyst, _dataset_of(job), person):
            raise NotFound("There is no such job.")
        return job

    def jobs_of(self, person: Person, last: int) -> list[JobRecord]:
        """Return the jobs that this person may see, newest first."""
        everything = person.sees_all or self.config.service.open_history
        may_see = cache(self._may_see)  # asks the ledger once for each analyst and data set
        return [
            job
            for job in self.store.jobs(analyst=None if everything else person.name, last=last)
            if may_see(job.analyst, _dataset_of(job), person)
        ]

    def _may_see(self, analyst: str, name: str, person: Person) -> bool:
        """Return whether somebody may see an analyst's jobs about a data set.

        After a revocation nobody sees their own answers any more; those of others are visible only
        with an open history, and about one's own data sets.
        """
        if person.sees_all:
            return True
        if analyst != person.name:
            return self.config.service.open_history and name in self.visible_datasets(person)
        return not self.curator.is_revoked(name, person.name)

    def visible_datasets(self, person: Person) -> list[str]:
        """Return the names of the data sets that somebody may know of."""
        return self.datasets_of(person.name, everything=person.sees_all)

    def datasets_of(self, analyst: str, *, everything: bool = False) -> list[str]:
        """Return the names of the data sets that an analyst may use, or all."""
        own = self.config.analysts[analyst].datasets if analyst in self.config.analysts else ()
        return [
            name
            for name in self.config.datasets
            if everything or (name in own and not self.curator.is_revoked(name, analyst))
        ]

    def check_visible(self, name: str, person: Person) -> None:
        """Refuse a data set that does not exist or that somebody may not know of."""
        if name not in self.visible_datasets(person):
            raise NotFound("There is no such data set.")

    def describe_dataset(self, name: str, analyst: str) -> dict[str, Any]:
        """Return schema, policy and budgets of a data set, as they are for one analyst."""
        dataset, curator = self.config.datasets[name], self.curator
        reason = curator.not_ready(name)
        registration = curator.registration(name) if reason is None else None
        policy, most = dataset.policy, dataset.policy.largest or dataset.budget
        return {
            "name": name,
            "ready": reason is None,
            "reason": reason,
            "rows": None if registration is None else registration.rows,
            "rows_per_person": dataset.schema.rows_per_person,
            "columns": [
                {"name": column, **_describe_column(about)}
                for column, about in dataset.schema.columns.items()
            ],
            "partition": dataset.partition,
            "policy": {
                "tests": sorted(f"{question}/{method}" for question, method in policy.tests),
                "largest_epsilon": float(most.epsilon),
                "largest_delta": float(most.delta),
                "largest_permutations": policy.permutations,
                "largest_points": policy.points,
                "composition": dataset.composition,
                "each": None if dataset.each is None else float(dataset.each.epsilon),
            },
            "budget": None if registration is None else self._describe_budget(name, analyst),
        }

    def _describe_budget(self, name: str, analyst: str) -> dict[str, Any]:
        """Return the budgets of a data set and of one analyst.

        Which parts of the data others used is theirs to know, and the custodian's.
        """
        totals = self.curator.ledger.totals(name)
        own = totals.analysts.get(analyst)
        whole = totals.account.to_dict()
        del whole["parts"]
        return {
            "dataset": whole,
            "own": None if own is None else own.to_dict(),
            "composition": totals.composition,
        }


def service_state(request: Request) -> ServiceState:
    """Return the state of the application that got a request."""
    state: ServiceState = request.app.state.service
    return state


StateDep = Annotated[ServiceState, Depends(service_state)]


def _dataset_of(job: JobRecord) -> str:
    return str(job.request.get("dataset"))


def _describe_column(column: Column) -> dict[str, Any]:
    if isinstance(column, CategoricalColumn):
        return {
            "type": "categorical",
            "categories": [spelling(category) for category in column.categories],
            "membership": column.membership,
        }
    bounds = [column.lower, column.upper]
    return {"type": "numeric", "bounds": bounds, "integer": column.integer}


def describe_questions() -> dict[str, Any]:
    """Return the catalogue of questions and methods."""
    return {
        question: {
            "parts": list(PARTS[question]),
            "methods": {name: _describe_method(entry) for name, entry in methods.items()},
        }
        for question, methods in METHODS.items()
    }


def _describe_method(entry: Method) -> dict[str, Any]:
    return {
        "about": entry.about,
        "options": sorted(entry.options),
        "needed": list(entry.needed),
        "releases": list(entry.releases),
        "aliases": list(entry.aliases),
        "level": entry.level,
        "needs_delta": bool(entry.needs_delta),
        "public_groups": bool(entry.public_groups),
        "one_column": entry.one_column,
        "categorical": entry.categorical,
        "outcomes": entry.outcomes,
        "several": entry.several,
        "sized": entry.sized,
    }
