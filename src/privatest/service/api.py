"""``/api/v1``: the curator's answers as JSON, for programs with a token.

The documents of prices, answers, budgets and entries have the keys of ``--json``.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from privatest.core.errors import ParameterError
from privatest.service import models
from privatest.service.describing import describe_dataset, describe_questions, visible_datasets
from privatest.service.events import events
from privatest.service.house import House, NotFound
from privatest.service.models import refusals
from privatest.service.people import Person, SignInNeeded, by_token
from privatest.service.queries import ask_release
from privatest.service.tokens import find_token, new_token
from privatest.service.watching import Metrics

__all__ = ["api"]

_bearer = HTTPBearer(auto_error=False, description="A token of `privatest curator token NAME`.")


def _house(request: Request) -> House:
    house: House = request.app.state.house
    return house


TheHouse = Annotated[House, Depends(_house)]


def _person(
    house: TheHouse,
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Person:
    """Return who asks, and count it; strangers are counted by where they come from."""
    address = "" if request.client is None else request.client.host
    try:
        person = by_token(house.store, house.config, None if given is None else given.credentials)
    except SignInNeeded:
        house.rate.take(f"address {address}")
        raise
    request.state.person = person.name  # for the service's own log
    house.rate.take(f"person {person.name}")
    return person


Known = Annotated[Person, Depends(_person)]
Ask = Annotated[dict[str, Any], Body(openapi_examples=models.ASKS)]
Number = Annotated[str, Path(pattern="^[0-9a-f]{1,32}$", description="Number of a job or a token.")]
Name = Annotated[str, Path(min_length=1, max_length=200, description="Name of a data set.")]
Last = Annotated[int, Query(ge=1, le=100, description="How many of the newest.")]

api = APIRouter(prefix="/api/v1", responses=refusals(400))
_guarded = APIRouter(responses=refusals(401, 403, 422, 429, 503))


@api.get("/health", tags=["service"])
def health() -> models.Health:
    """Say that the service answers; no token is needed."""
    return models.Health()


@api.get(
    "/metrics",
    tags=["service"],
    response_class=PlainTextResponse,
    responses=refusals(401, 403, 429, 503),
)
def metrics(
    request: Request,
    house: TheHouse,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> PlainTextResponse:
    """Return counts for Prometheus, for custodians and auditors, or for all if the file says so."""
    if not house.config.service.open_metrics:
        _person(house, request, given).must("custodian", "auditor")
    counts: Metrics = request.app.state.metrics
    return PlainTextResponse(counts.text(house), media_type="text/plain; version=0.0.4")


@_guarded.get("/me", tags=["service"])
def me(person: Known) -> models.Me:
    """Say whose token this is, and what it opens."""
    return models.Me(name=person.name, scopes=list(person.scopes))


@_guarded.get("/questions", tags=["asking"])
def questions(_: Known) -> models.Document:
    """List what can be asked: questions, methods and their options."""
    return models.Document(**describe_questions())


@_guarded.get("/datasets", tags=["asking"])
def datasets(house: TheHouse, person: Known) -> models.Documents:
    """List data sets with their public schemas, policies, and what is left of budgets."""
    names = visible_datasets(house.curator, person.name, everything=person.sees_all)
    return models.Documents(items=[describe_dataset(house.curator, n, person.name) for n in names])


@_guarded.get("/datasets/{name}", tags=["asking"], responses=refusals(404))
def dataset(name: Name, house: TheHouse, person: Known) -> models.Document:
    """Describe one data set."""
    _must_see(house, person, name)
    return models.Document(**describe_dataset(house.curator, name, person.name))


@api.get("/facts/{name}", tags=["asking"], responses=refusals(401, 403, 404, 422, 429, 503))
def facts(
    name: Name,
    request: Request,
    house: TheHouse,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> models.Document:
    """Say how a data set is protected, in the terms of NIST SP 800-226.

    It needs a token, or none where the curator's file says ``open_facts = true``.
    """
    if not house.config.service.open_facts:
        _must_see(house, _person(house, request, given), name)
    elif name not in house.config.datasets:
        raise NotFound("There is no such data set.")
    return models.Document(**house.curator.facts(name))


@_guarded.post("/price", tags=["asking"], responses=refusals(413))
def price(request: Ask, house: TheHouse, person: Known) -> models.Document:
    """Say what a request would cost. No row is looked at, nothing is spent."""
    person.must("ask")
    return models.Document(**house.curator.price(request, analyst=person.name).to_dict())


@_guarded.post("/rehearse", tags=["asking"], responses=refusals(413))
def rehearse(request: Ask, house: TheHouse, person: Known) -> models.Document:
    """Show what an answer would look like, from made-up rows. Nothing is spent."""
    person.must("ask")
    return models.Document(**house.rehearse(request, person).to_dict())


@_guarded.post("/run", tags=["asking"], status_code=202, responses=refusals(409, 413))
def run(request: Ask, house: TheHouse, person: Known) -> models.JobDocument:
    """Begin a request: it is charged, answered by a worker, and kept as a job.

    The same request again costs nothing: its answer is in the record.
    """
    person.must("ask")
    house.curator.price(request, analyst=person.name, afford=True)
    return models.JobDocument(**house.jobs.submit(person.name, request).to_dict())


@_guarded.get("/jobs", tags=["asking"])
def jobs(house: TheHouse, person: Known, last: Last = 50) -> models.Jobs:
    """List jobs, newest first: one's own, or everybody's for custodians and auditors."""
    found = house.jobs_of(person, last)
    return models.Jobs(items=[models.JobDocument(**job.to_dict()) for job in found])


@_guarded.get("/jobs/{number}", tags=["asking"], responses=refusals(404))
def job(number: Number, house: TheHouse, person: Known) -> models.JobDocument:
    """Return a job, with its answer if it has one."""
    return models.JobDocument(**house.job(number, person).to_dict())


@_guarded.get(
    "/jobs/{number}/events",
    tags=["asking"],
    response_class=StreamingResponse,
    responses=refusals(404) | {200: {"content": {"text/event-stream": {}}}},
)
def watch(
    number: Number,
    house: TheHouse,
    person: Known,
    given: Annotated[HTTPAuthorizationCredentials, Depends(_bearer)],
) -> StreamingResponse:
    """Watch a job: server-sent events with its state, and at its end the whole job."""
    house.job(number, person)
    again = partial(by_token, house.store, house.config, given.credentials)
    stream = events(house, number, person, again)
    return StreamingResponse(stream, media_type="text/event-stream")


@_guarded.post("/jobs/{number}/query", tags=["asking"], responses=refusals(404, 413))
def query(
    number: Number, asked: models.NewQuery, house: TheHouse, person: Known
) -> models.Document:
    """Ask a release that was answered: means, shares, quantiles and more, at no cost."""
    return models.Document(**ask_release(house.job(number, person), asked))


@_guarded.get("/history", tags=["looking back"], responses=refusals(404))
def history(
    house: TheHouse, person: Known, dataset: Annotated[str, Query(max_length=200)], last: Last = 50
) -> models.Documents:
    """List the ledger's entries of a data set, for custodians and auditors."""
    person.must("custodian", "auditor")
    _must_see(house, person, dataset)
    found = house.curator.ledger.history(dataset, last=last)
    rows = [{"sequence": e.sequence, "kind": e.kind, "time": e.time, **e.body} for e in found]
    return models.Documents(items=rows)


@_guarded.get("/budgets", tags=["looking back"])
def budgets(house: TheHouse, person: Known) -> models.Documents:
    """List all budgets with those of analysts, for custodians and auditors."""
    person.must("custodian", "auditor")
    ledger = house.curator.ledger
    known = [name for name in ledger.datasets() if name in house.config.datasets]
    return models.Documents(items=[ledger.totals(name).to_dict() for name in known])


@_guarded.get("/tokens", tags=["custody"])
def tokens(house: TheHouse, person: Known) -> models.Tokens:
    """List tokens, for custodians and auditors; the tokens themselves are not kept."""
    person.must("custodian", "auditor")
    found = [models.TokenDocument(**token.to_dict()) for token in house.store.tokens()]
    return models.Tokens(items=found)


@_guarded.post("/tokens", tags=["custody"], status_code=201, responses=refusals(413))
def make_token(wanted: models.NewToken, house: TheHouse, person: Known) -> models.TokenDocument:
    """Make a token, for custodians; it is shown this once."""
    person.must("custodian")
    if "ask" in wanted.scopes and wanted.name not in house.config.analysts:
        raise ParameterError("name must be that of an analyst in the curator's file.")
    text = new_token(house.store, wanted.name, scopes=wanted.scopes, days=wanted.days)
    made = find_token(house.store, text)
    assert made is not None
    return models.TokenDocument(**made.to_dict(), token=text)


@_guarded.delete("/tokens/{number}", tags=["custody"], responses=refusals(404))
def revoke_token(number: Number, house: TheHouse, person: Known) -> models.Document:
    """Revoke a token at once, for custodians."""
    person.must("custodian")
    if not house.store.revoke(number):
        raise NotFound("There is no such token, or it is revoked already.")
    return models.Document.model_validate({"id": number, "revoked": True})


def _must_see(house: House, person: Person, name: str) -> None:
    if name not in visible_datasets(house.curator, person.name, everything=person.sees_all):
        raise NotFound("There is no such data set.")


api.include_router(_guarded)
