"""Requests over HTTP: where a token may be sent, what is sent again, and errors from answers."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import urlsplit

from privatest.core.errors import (
    BudgetError,
    DataError,
    EngineError,
    LedgerError,
    ParameterError,
    PrivacyError,
    PrivatestError,
    ServiceError,
)

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_LARGEST = 1 << 28  # bytes of an answer
_ERRORS: Mapping[str, type[PrivatestError]] = {
    kind.__name__: kind
    for kind in (DataError, EngineError, LedgerError, ParameterError, PrivacyError)
}
_GATEWAY_ERRORS = (502, 503, 504)  # of a proxy: the service itself says why, in JSON
_ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE = 5, 0.2, 60.0
_JOB_NUMBER = re.compile(r"\b[0-9a-f]{32}\b")


class ConnectionLost(ServiceError):
    """The connection was lost, or there is none: the same request may be sent again."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Status, headers and body of an answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        """The body as a JSON object; empty if it is none."""
        try:
            document = json.loads(self.body)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}


class Transport(Protocol):
    """How requests travel."""

    def send(self, method: str, path: str, body: bytes | None) -> HttpReply:
        """Send to a path below ``/api/v1``; ConnectionLost if it may not have arrived."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:  # a token is for the address that was typed
        return None


@dataclass(frozen=True, slots=True)
class Http:
    """HTTP with the standard library; certificates are verified.

    Attributes
    ----------
    url : str
        The address of the service; ``http://`` only on this machine.
    token : str
        The token that is sent.
    timeout : float
        Seconds to wait for each answer.
    """

    url: str
    token: str = field(repr=False)
    timeout: float = 30.0

    def __post_init__(self) -> None:
        """Refuse addresses to which a token must not be sent."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.query:
            raise ParameterError("url must be the address of a service: https://HOST[:PORT].")
        if parts.username is not None or parts.password is not None:
            raise ParameterError("url must not hold a name or a password: pass a token.")
        if parts.scheme == "http" and parts.hostname not in _LOCAL_HOSTS:
            raise ParameterError(
                "url must begin with https: over http everybody on the way reads the token and the "
                "answers. Only this machine (localhost) may be reached without."
            )
        if not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise ParameterError("token must be one word, as `privatest curator token` shows it.")

    def send(self, method: str, path: str, body: bytes | None) -> HttpReply:
        """Send, and read the whole answer."""
        headers = {"Authorization": f"Bearer {self.token}", "User-Agent": "privatest"}
        headers |= {} if body is None else {"Content-Type": "application/json"}
        url = f"{self.url.rstrip('/')}/api/v1{path}"
        request = urllib.request.Request(url, body, headers, method=method)
        handlers: list[Any] = [_NoRedirects()]
        if urlsplit(self.url).hostname in _LOCAL_HOSTS:
            handlers.append(urllib.request.ProxyHandler({}))  # no proxy for this machine
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
        try:
            try:
                answer = urllib.request.build_opener(*handlers).open(request, timeout=self.timeout)
            except urllib.error.HTTPError as refused:  # an answer as well
                answer = refused
            with answer:
                return HttpReply(answer.status, dict(answer.headers), _read_body(answer))
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise ServiceError(
                    f"The certificate of {self.url} cannot be verified: {reason.verify_message}."
                ) from None
            raise ConnectionLost(f"{self.url} does not answer ({type(reason).__name__}).") from None


def _read_body(answer: Any) -> bytes:
    body: bytes = answer.read(_LARGEST + 1)
    if len(body) > _LARGEST:
        raise ServiceError("The answer is too large.")
    promised = answer.headers.get("Content-Length", "")
    if promised.isdigit() and len(body) < int(promised):  # a limited read does not say so
        raise http.client.IncompleteRead(body)
    return body


@dataclass(frozen=True, slots=True)
class Connection:
    """Sends JSON to a service and reads its answers, again where the connection was lost.

    Notes
    -----
    Everything may be sent twice: GET changes nothing, and an identical request is unfinished
    already, or answered from the record at no cost.
    """

    transport: Transport
    sleep: Callable[[float], None] = time.sleep

    def get(self, path: str) -> dict[str, Any]:
        """Return the document at a path."""
        return self._send("GET", path, None)

    def post(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Send a document and return the answer."""
        return self._send("POST", path, json.dumps(dict(document), allow_nan=False).encode())

    def _send(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        pause = _FIRST_PAUSE
        for left in reversed(range(_ATTEMPTS)):
            reply = None
            try:
                reply = self.transport.send(method, path, body)
            except ConnectionLost:
                if not left:
                    raise
            if reply is not None and not (left and _is_temporary(reply)):
                if 200 <= reply.status < 300 and reply.document:
                    return reply.document
                raise error_of(reply.document, reply.status)
            self.sleep(pause if reply is None else _retry_after(reply, pause))
            pause *= 2
        raise AssertionError("unreachable")


def _is_temporary(reply: HttpReply) -> bool:
    """Return whether the same request may be answered in a moment."""
    return reply.status == 429 or (
        reply.status in _GATEWAY_ERRORS and "error" not in reply.document
    )


def _retry_after(reply: HttpReply, pause: float) -> float:
    headers = {name.lower(): value for name, value in reply.headers.items()}
    seconds = headers.get("retry-after", "")
    return min(float(seconds), _LONGEST_PAUSE) if seconds.isdigit() else pause


def error_of(document: Mapping[str, Any], status: int = 0) -> PrivatestError:
    """Return a refusal or a failure as the library's own exception."""
    name = str(document.get("error", ""))
    words = str(document.get("message") or "The service gave no answer that can be read.")
    if name == "BudgetError":
        return BudgetError(
            words, asked=_amounts(document, "asked"), left=_amounts(document, "left")
        )
    if name == "RequestFailed" or {"id", "spent"} <= document.keys():
        from privatest.curator.answers import RequestFailed  # noqa: PLC0415

        found = _JOB_NUMBER.search(words)
        number = str(document.get("id") or (found[0] if found else "unknown"))
        spent = document.get("spent", "nothing was spent" not in words)
        return RequestFailed(number, spent=bool(spent))
    if name in _ERRORS:
        return _ERRORS[name](words)
    if status == 401:
        words = f"{words} `privatest curator token NAME` makes one."
    return ServiceError(words, status=status, name=name)


def _amounts(document: Mapping[str, Any], key: str) -> dict[str, Decimal | int]:
    amounts = document.get(key) or {}
    return {str(name): Decimal(str(value)) for name, value in amounts.items()}
