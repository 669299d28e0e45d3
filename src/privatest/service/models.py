"""The shapes of requests and answers, with examples: what the OpenAPI description is made of."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from pydantic import BaseModel, Field

from privatest.core.documents import JSON_FORMAT
from privatest.service.tokens import SCOPES

__all__ = [
    "ASKS",
    "VERSION",
    "Document",
    "Documents",
    "ErrorDocument",
    "Health",
    "JobDocument",
    "Jobs",
    "Me",
    "NewQuery",
    "NewToken",
    "TokenDocument",
    "Tokens",
    "refusals",
]

VERSION: str = sys.modules["privatest"].__version__  # it imports what this package may not

ASKS: dict[str, Any] = {
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
_WORDS = {
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
    """Return how a place may refuse; every place that needs a token may do so in three ways."""
    return {code: {"description": _WORDS[code], "model": ErrorDocument} for code in codes}


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
