"""What every answer carries, and what every failure looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
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
from privatest.service.house import NotFound
from privatest.service.people import Forbidden, SignInNeeded, TooMany

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Headers", "describe_error", "handle_errors"]

Page = Callable[[Request, int, dict[str, Any]], Response]

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (SignInNeeded, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (TooMany, 429),
    (BudgetError, 409),
    (ParameterError, 422),
    (PrivacyError, 422),
    (DataError, 422),
    (EngineError, 503),
    (LedgerError, 503),
    (RequestFailed, 503),
)
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Headers:
    """Adds to every answer what browsers have to know."""

    __slots__ = ("_app", "_headers")

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        self._app = app
        more = {"strict-transport-security": "max-age=31536000"} if secure else {}
        self._headers = [(k.encode(), v.encode()) for k, v in (_HEADERS | more).items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, with headers."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                named = {name.lower() for name, _ in own}
                if b"cache-control" not in named:  # answers are for one person
                    own.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*own, *self._headers]}
            await send(message)

        await self._app(scope, receive, sending)


def describe_error(error: Exception) -> tuple[int, dict[str, Any]]:
    """Return the status and the document of an error; words of other errors are not told."""
    if not isinstance(error, PrivatestError):
        words = "The service failed; nothing was released."
        return 500, {"format": JSON_FORMAT, "error": "Fault", "message": words}
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    document: dict[str, Any] = {
        "format": JSON_FORMAT,
        "error": type(error).__name__,
        "message": printable(str(error)),
    }
    if isinstance(error, BudgetError):
        for name in ("asked", "left"):
            document[name] = {key: float(value) for key, value in getattr(error, name).items()}
    return status, document


def handle_errors(app: FastAPI, page: Page) -> None:
    """Answer errors with one shape: JSON for programs, a page for people."""

    def answer(request: Request, status: int, document: dict[str, Any], headers: Any) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse(document, status, headers)
        response = page(request, status, document)
        response.headers.update(headers or {})
        return response

    @app.exception_handler(PrivatestError)
    async def own(request: Request, error: PrivatestError) -> Response:
        status, document = describe_error(error)
        headers = {"www-authenticate": "Bearer"} if status == 401 else {}
        if isinstance(error, TooMany):
            headers["retry-after"] = str(error.seconds)
        return await run_in_threadpool(answer, request, status, document, headers)

    @app.exception_handler(RequestValidationError)
    async def shape(request: Request, error: RequestValidationError) -> Response:
        places = [".".join(map(str, each["loc"])) for each in error.errors()]
        words = f"the request has a wrong shape at {printable(', '.join(places)[:500])}."
        if any(each["type"] == "json_invalid" for each in error.errors()):
            words = "the request is not JSON."
        elif places == ["body"]:  # curl -d says that it is a form
            words += " Send a JSON object, with Content-Type: application/json."
        return await run_in_threadpool(
            answer, request, 422, _refusal("ParameterError", words), None
        )

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        words = {404: "There is no such place.", 405: "This place does not take that method."}
        message = words.get(error.status_code, "The request cannot be read.")
        document = _refusal("HTTPError", message)
        return await run_in_threadpool(answer, request, error.status_code, document, error.headers)

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return answer(request, *describe_error(error), None)


def _refusal(name: str, message: str) -> dict[str, Any]:
    return {"format": JSON_FORMAT, "error": name, "message": message}
