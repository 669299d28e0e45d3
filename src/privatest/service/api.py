"""``/api/v1``: the curator's answers as JSON, for programs with a token.

The documents of prices, answers, budgets and entries have the keys of ``--json``. Models and
examples below are what the OpenAPI document is made of.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field

from privatest.core.documents import JSON_FORMAT
from privatest.core.errors import ParameterError
from privatest.core.validation import one_of
from privatest.service.auth import SCOPES, Person, find_token, new_token, person_by_token
from privatest.service.errors import NotFound, SignInNeeded
from privatest.service.jobs import job_events
from privatest.service.state import ServiceState, StateDep, describe_questions
from privatest.service.store import JobRecord
from privatest.synthetic import SyntheticData
from privatest.synthetic.queries import WEIGHTS, answer_query, check_options, describe_answer
from privatest.synthetic.queries import Query as ReleaseQuery

VERSION: str = sys.modules["privatest"].__version__  # it imports what this package may not

_EXAMPLES: dict[str, Any] = {
    "two groups": {
        "summary": "Do two groups differ in these columns?",
        "value": {
            "dataset": "visits",
            "question": "two-sample",
            "method": "mmd",
            "columns": ["visits", "age"],
            "group": "plan",
            "groups": ["basic", "plus"],
            "epsilon": 0.5,
        },
    },
    "independence": {
        "summary": "Are two columns related?",
        "value": {
            "dataset": "visits",
            "question": "independence",
            "x": ["age"],
            "y": ["visits"],
            "epsilon": 0.5,
        },
    },
    "mean": {
        "summary": "Means with a confidence region",
        "value": {"dataset": "visits", "question": "mean", "columns": ["visits"], "epsilon": 0.2},
    },
}
_REFUSALS = {
    400: "The body cannot be read.",
    401: "No token, or one that opens nothing.",
    403: "A token without the scope that this needs.",
    404: "There is no such thing, or it is not yours to see.",
    409: "The budget is too small; nothing was spent.",
    413: "The body is too large.",
    422: "The request cannot be used as it is; nothing was spent.",
    429: "Too many requests; Retry-After says when to come back.",
    503: "The ledger or the workers cannot be reached.",
}


class ErrorDocument(BaseModel):
    """Why there is no answer."""

    format: int = JSON_FORMAT
    error: str = Field(examples=["ParameterError"])
    message: str = Field(examples=["epsilon must be given: what may the answer cost?"])
    asked: dict[str, float] | None = None
    left: dict[str, float] | None = None


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals of a route, for OpenAPI."""
    return {code: {"description": _REFUSALS[code], "model": ErrorDocument} for code in codes}


class Health(BaseModel):
    """That the service answers."""

    format: int = JSON_FORMAT
    status: str = "ok"
    version: str = VERSION


class Me(BaseModel):
    """Who asks."""

    format: int = JSON_FORMAT
    name: str
    scopes: list[str]


class Document(BaseModel):
    """One document, with the keys that ``--json`` prints."""

    format: int = JSON_FORMAT
    model_config = {"extra": "allow"}


class Documents(BaseModel):
    """Several documents."""

    format: int = JSON_FORMAT
    items: list[dict[str, Any]]


class JobDocument(BaseModel):
    """A request on its way, or at its end."""

    format: int = JSON_FORMAT
    id: str
    analyst: str
    request: dict[str, Any]
    state: str = Field(description="waiting, running, answered, refused or failed")
    asked: str = Field(description="When it was asked, in UTC.")
    ended: str | None = Field(description="When it ended, a public time.")
    document: dict[str, Any] | None = Field(description="The answer, or why there is none.")


class Jobs(BaseModel):
    """Several jobs, newest first."""

    format: int = JSON_FORMAT
    items: list[JobDocument]


Word = Annotated[str, Field(max_length=1000)]


class NewQuery(BaseModel):
    """A question to a release, in the words of ``privatest query``."""

    question: str = Field(max_length=20, examples=["mean"])
    words: list[Word] = Field(default=[], max_length=50, examples=[["visits"]])
    where: str | None = Field(default=None, max_length=1000, examples=["age < 50"])
    by: str | None = Field(default=None, max_length=200, examples=["plan"])
    weights: str | None = Field(default=None, max_length=20, examples=[None])
    model_config = {"extra": "forbid"}


class NewToken(BaseModel):
    """A token to be made."""

    name: str = Field(min_length=1, max_length=200, examples=["ada"])
    scopes: list[str] = Field(default=["ask"], max_length=len(SCOPES), examples=[["ask"]])
    days: int = Field(default=90, ge=1, le=3650)


class TokenDocument(BaseModel):
    """A token as it is kept; the token itself is shown once, when it is made."""

    format: int = JSON_FORMAT
    id: str
    name: str
    scopes: list[str]
    created: str
    expires: str
    revoked: str | None = None
    token: str | None = Field(default=None, description="The token itself, shown once.")


class Tokens(BaseModel):
    """All tokens, newest first."""

    format: int = JSON_FORMAT
    items: list[TokenDocument]


# --- routes ---------------------------------------------------------------------------------

_bearer = HTTPBearer(auto_error=False, description="A token of `privatest curator token NAME`.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def _by_bearer(state: ServiceState, given: HTTPAuthorizationCredentials | None) -> Person:
    token = None if given is None else find_token(state.store, given.credentials)
    return person_by_token(token, state.config)


def _person(state: StateDep, request: Request, given: Bearer) -> Person:
    """Return who sends the request, within their rate limit; strangers are limited by address."""
    address = "" if request.client is None else request.client.host
    try:
        person = _by_bearer(state, given)
    except SignInNeeded:
        state.rate.take(f"address {address}")
        raise
    request.state.person = person.name  # for the service's own log
    state.rate.take(f"person {person.name}")
    return person


Known = Annotated[Person, Depends(_person)]
Ask = Annotated[dict[str, Any], Body(openapi_examples=_EXAMPLES)]
Number = Annotated[str, Path(pattern="^[0-9a-f]{1,32}$", description="Number of a job or a token.")]
Name = Annotated[str, Path(min_length=1, max_length=200, description="Name of a data set.")]
Last = Annotated[int, Query(ge=1, le=100, description="How many of the newest.")]

api = APIRouter(prefix="/api/v1", responses=refusals(400))
_guarded = APIRouter(responses=refusals(401, 403, 422, 429, 503))


@api.get("/health", tags=["service"])
def health() -> Health:
    """Say that the service answers; no token is needed."""
    return Health()


@api.get(
    "/metrics",
    tags=["service"],
    response_class=PlainTextResponse,
    responses=refusals(401, 403, 429, 503),
)
def metrics(request: Request, state: StateDep, given: Bearer) -> PlainTextResponse:
    """Return counts for Prometheus, for custodians and auditors, or for all if the file says so."""
    if not state.config.service.open_metrics:
        _person(state, request, given).must("custodian", "auditor")
    text = request.app.state.metrics.text(state)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


@_guarded.get("/me", tags=["service"])
def me(person: Known) -> Me:
    """Say whose token this is, and what it opens."""
    return Me(name=person.name, scopes=list(person.scopes))


@_guarded.get("/questions", tags=["asking"])
def questions(_: Known) -> Document:
    """List what can be asked: questions, methods and their options."""
    return Document(**describe_questions())


@_guarded.get("/datasets", tags=["asking"])
def datasets(state: StateDep, person: Known) -> Documents:
    """List data sets with their public schemas, policies, and what is left of budgets."""
    names = state.visible_datasets(person)
    return Documents(items=[state.describe_dataset(name, person.name) for name in names])


@_guarded.get("/datasets/{name}", tags=["asking"], responses=refusals(404))
def dataset(name: Name, state: StateDep, person: Known) -> Document:
    """Describe one data set."""
    state.check_visible(name, person)
    return Document(**state.describe_dataset(name, person.name))


@api.get("/facts/{name}", tags=["asking"], responses=refusals(401, 403, 404, 422, 429, 503))
def facts(name: Name, request: Request, state: StateDep, given: Bearer) -> Document:
    """Say how a data set is protected, in the terms of NIST SP 800-226.

    It needs a token, or none where the curator's file says ``open_facts = true``.
    """
    if not state.config.service.open_facts:
        state.check_visible(name, _person(state, request, given))
    elif name not in state.config.datasets:
        raise NotFound("There is no such data set.")
    return Document(**state.curator.facts(name))


@_guarded.post("/price", tags=["asking"], responses=refusals(413))
def price(request: Ask, state: StateDep, person: Known) -> Document:
    """Say what a request would cost. No row is looked at, nothing is spent."""
    person.must("ask")
    return Document(**state.curator.price(request, analyst=person.name).to_dict())


@_guarded.post("/rehearse", tags=["asking"], responses=refusals(413))
def rehearse(request: Ask, state: StateDep, person: Known) -> Document:
    """Show what an answer would look like, from made-up rows. Nothing is spent."""
    person.must("ask")
    return Document(**state.rehearse(request, person).to_dict())


@_guarded.post("/run", tags=["asking"], status_code=202, responses=refusals(409, 413))
def run(request: Ask, state: StateDep, person: Known) -> JobDocument:
    """Begin a request: it is charged, answered by a worker, and kept as a job.

    The same request again costs nothing: its answer is in the record.
    """
    person.must("ask")
    return JobDocument(**state.submit(request, person).to_dict())


@_guarded.get("/jobs", tags=["asking"])
def jobs(state: StateDep, person: Known, last: Last = 50) -> Jobs:
    """List jobs, newest first: one's own, or everybody's for custodians and auditors."""
    found = state.jobs_of(person, last)
    return Jobs(items=[JobDocument(**job.to_dict()) for job in found])


@_guarded.get("/jobs/{number}", tags=["asking"], responses=refusals(404))
def job(number: Number, state: StateDep, person: Known) -> JobDocument:
    """Return a job, with its answer if it has one."""
    return JobDocument(**state.job(number, person).to_dict())


@_guarded.get(
    "/jobs/{number}/events",
    tags=["asking"],
    response_class=StreamingResponse,
    responses=refusals(404) | {200: {"content": {"text/event-stream": {}}}},
)
def watch(number: Number, state: StateDep, person: Known, given: Bearer) -> StreamingResponse:
    """Watch a job: server-sent events with its state, and at its end the whole job."""
    state.job(number, person)
    stream = job_events(person.name, lambda: state.job(number, _by_bearer(state, given)))
    return StreamingResponse(stream, media_type="text/event-stream")


@_guarded.post("/jobs/{number}/query", tags=["asking"], responses=refusals(404, 413))
def query(number: Number, asked: NewQuery, state: StateDep, person: Known) -> Document:
    """Ask a release that was answered: means, shares, quantiles and more, at no cost."""
    return Document(**_query_release(state.job(number, person), asked))


def _query_release(job: JobRecord, query: NewQuery) -> dict[str, Any]:
    """Return the document of ``privatest query --json`` for the release of a job."""
    if job.state != "answered" or job.document is None or "parquet" not in job.document:
        raise ParameterError("the job must be a release that was answered: only rows can be asked.")
    if query.weights is not None:
        one_of("weights", query.weights, WEIGHTS)
    check_options(query.question, query.where, query.by, query.weights)
    asked = ReleaseQuery.parse(query.question, query.words, query.where, query.by)
    release = SyntheticData.from_dict(job.document)
    asked.check(release)
    return describe_answer(asked, answer_query(release, asked, query.weights), release)


@_guarded.get("/history", tags=["looking back"], responses=refusals(404))
def history(
    state: StateDep, person: Known, dataset: Annotated[str, Query(max_length=200)], last: Last = 50
) -> Documents:
    """List the ledger's entries of a data set, for custodians and auditors."""
    person.must("custodian", "auditor")
    state.check_visible(dataset, person)
    entries = state.curator.ledger.history(dataset, last=last)
    rows = [{"sequence": e.sequence, "kind": e.kind, "time": e.time, **e.body} for e in entries]
    return Documents(items=rows)


@_guarded.get("/budgets", tags=["looking back"])
def budgets(state: StateDep, person: Known) -> Documents:
    """List all budgets with those of analysts, for custodians and auditors."""
    person.must("custodian", "auditor")
    ledger = state.curator.ledger
    known = [name for name in ledger.datasets() if name in state.config.datasets]
    return Documents(items=[ledger.totals(name).to_dict() for name in known])


@_guarded.get("/tokens", tags=["custody"])
def tokens(state: StateDep, person: Known) -> Tokens:
    """List tokens, for custodians and auditors; the tokens themselves are not kept."""
    person.must("custodian", "auditor")
    return Tokens(items=[TokenDocument(**token.to_dict()) for token in state.store.tokens()])


@_guarded.post("/tokens", tags=["custody"], status_code=201, responses=refusals(413))
def make_token(wanted: NewToken, state: StateDep, person: Known) -> TokenDocument:
    """Make a token, for custodians; it is shown this once."""
    person.must("custodian")
    state.check_token_owner(wanted.name, wanted.scopes)
    text = new_token(state.store, wanted.name, scopes=wanted.scopes, days=wanted.days)
    token = find_token(state.store, text)
    assert token is not None
    return TokenDocument(**token.to_dict(), token=text)


@_guarded.delete("/tokens/{number}", tags=["custody"], responses=refusals(404))
def revoke_token(number: Number, state: StateDep, person: Known) -> Document:
    """Revoke a token at once, for custodians."""
    person.must("custodian")
    state.revoke_token(number)
    return Document.model_validate({"id": number, "revoked": True})


api.include_router(_guarded)
