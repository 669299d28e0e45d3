"""Errors of the service: exceptions, their HTTP status, and one form of answer for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from privatest.core.documents import JSON_FORMAT
from privatest.core.errors import (
    BudgetError,
    DataError,
    EngineError,
    LedgerError,
    ParameterError,
    PrivacyError,
    PrivatestError,
)
from privatest.core.validation import printable
from privatest.curator.answers import RequestFailed


class SignInNeeded(PrivatestError):
    """There is no valid token; the message does not say why it is invalid."""

    def __init__(self) -> None:
        super().__init__("A valid token is needed: Authorization: Bearer TOKEN.")


class Forbidden(PrivatestError):
    """A known person lacks the scope, or a form did not come from their session."""


class NotFound(PrivatestError):
    """There is no such thing, or this person may not see it: they cannot tell which."""


class TooMany(PrivatestError):
    """A rate limit was exceeded."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        super().__init__(f"Too many requests: try again in {seconds} seconds.")


_STATUS: dict[type[Exception], int] = {
    SignInNeeded: 401,
    Forbidden: 403,
    NotFound: 404,
    TooMany: 429,
    BudgetError: 409,
    ParameterError: 422,
    PrivacyError: 422,
    DataError: 422,
    EngineError: 503,
    LedgerError: 503,
    RequestFailed: 503,
}
_HTTP_ERRORS = {404: "There is no such place.", 405: "This place does not take that method."}


def _document(name: str, message: str) -> dict[str, Any]:
    return {"format": JSON_FORMAT, "error": name, "message": message}


def describe_error(error: Exception) -> tuple[int, dict[str, Any]]:
    """Return status and document of an error; the message of a foreign error stays secret."""
    if not isinstance(error, PrivatestError):
        return 500, _document("Fault", "The service failed; nothing was released.")
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    document = _document(type(error).__name__, printable(str(error)))
    if isinstance(error, BudgetError):
        for name in ("asked", "left"):
            document[name] = {key: float(value) for key, value in getattr(error, name).items()}
    return status, document


def add_error_handlers(
    app: FastAPI, page: Callable[[Request, int, dict[str, Any]], Response]
) -> None:
    """Answer every error with the same document: as JSON below ``/api/``, else as a page."""

    def answer(request: Request, status: int, document: dict[str, Any], headers: Any) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse(document, status, headers)
        response = page(request, status, document)
        response.headers.update(headers or {})
        return response

    @app.exception_handler(PrivatestError)
    def refused(request: Request, error: PrivatestError) -> Response:
        status, document = describe_error(error)
        headers = {"www-authenticate": "Bearer"} if status == 401 else {}
        if isinstance(error, TooMany):
            headers["retry-after"] = str(error.seconds)
        return answer(request, status, document, headers)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        places = [".".join(map(str, each["loc"])) for each in error.errors()]
        message = f"the request has a wrong shape at {printable(', '.join(places)[:500])}."
        if any(each["type"] == "json_invalid" for each in error.errors()):
            message = "the request is not JSON."
        elif places == ["body"]:  # curl -d sends it as a form
            message += " Send a JSON object, with Content-Type: application/json."
        return answer(request, 422, _document("ParameterError", message), None)

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> Response:
        message = _HTTP_ERRORS.get(error.status_code, "The request cannot be read.")
        document = _document("HTTPError", message)
        return answer(request, error.status_code, document, error.headers)

    @app.exception_handler(Exception)
    def fault(request: Request, error: Exception) -> Response:
        return answer(request, *describe_error(error), None)
