"""One request over HTTP: to whom a token may be sent, and over what."""

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

_HERE = ("127.0.0.1", "localhost", "::1")
_LARGEST = 1 << 28  # bytes of an answer
_AGENT = "privatest"


class Lost(ServiceError):
    """The connection was lost, or there is none: the same request may be sent again."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """How requests travel."""

    def send(self, method: str, path: str, body: bytes | None) -> Reply:
        """Send to a path below ``/api/v1``; Lost if nobody can know whether it arrived."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nowhere: a token is for the address that somebody typed."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Http:
    """HTTP with the standard library; certificates are verified.

    Attributes
    ----------
    url : str
        The address of the service; ``http://`` only on this machine.
    token : str
        Who asks.
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
        if parts.scheme == "http" and parts.hostname not in _HERE:
            raise ParameterError(
                "url must begin with https: over http everybody on the way reads the token and the "
                "answers. Only this machine (localhost) may be reached without."
            )
        if not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise ParameterError("token must be one word, as `privatest curator token` shows it.")

    def send(self, method: str, path: str, body: bytes | None) -> Reply:
        """Send, and read the whole answer."""
        headers = {"Authorization": f"Bearer {self.token}", "User-Agent": _AGENT}
        headers |= {} if body is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/api/v1{path}", body, headers, method=method
        )
        try:
            return self._reply(request)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise ServiceError(
                    f"The certificate of {self.url} cannot be verified: {reason.verify_message}."
                ) from None
            raise Lost(f"{self.url} does not answer ({type(reason).__name__}).") from None

    def _reply(self, request: urllib.request.Request) -> Reply:
        try:
            with self._opener().open(request, timeout=self.timeout) as answer:
                return Reply(answer.status, dict(answer.headers), _read(answer))
        except urllib.error.HTTPError as refused:  # an answer as well
            with refused:
                return Reply(refused.code, dict(refused.headers), _read(refused))

    def _opener(self) -> urllib.request.OpenerDirector:
        handlers: list[Any] = [_Stay()]
        if urlsplit(self.url).hostname in _HERE:
            handlers.append(urllib.request.ProxyHandler({}))  # no proxy is between here and here
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
        return urllib.request.build_opener(*handlers)


def _read(answer: Any) -> bytes:
    body: bytes = answer.read(_LARGEST + 1)
    if len(body) > _LARGEST:
        raise ServiceError("The answer is too large.")
    promised = answer.headers.get("Content-Length", "")
    if promised.isdigit() and len(body) < int(promised):  # a limited read does not say so
        raise http.client.IncompleteRead(body)
    return body


# Requests and answers as JSON; what is lost is sent again, and refusals are exceptions.


_OWN: Mapping[str, type[PrivatestError]] = {
    kind.__name__: kind
    for kind in (DataError, EngineError, LedgerError, ParameterError, PrivacyError)
}
_BETWEEN = (502, 503, 504)  # of a proxy: the service itself says why, in JSON
_TRIES, _PAUSE, _LONGEST_PAUSE = 5, 0.2, 60.0
_ID = re.compile(r"\b[0-9a-f]{32}\b")


@dataclass(frozen=True, slots=True)
class Talk:
    """Speaks with a service.

    Notes
    -----
    Everything said here may be said twice: looking changes nothing, and an identical request is
    on its way already, or answered from the record at no cost.
    """

    transport: Transport
    sleep: Callable[[float], None] = time.sleep

    def get(self, path: str) -> dict[str, Any]:
        """Look at something."""
        return self._ask("GET", path, None)

    def post(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Say something."""
        return self._ask("POST", path, json.dumps(dict(document), allow_nan=False).encode())

    def _ask(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        pause = _PAUSE
        for left in reversed(range(_TRIES)):
            try:
                reply = self.transport.send(method, path, body)
            except Lost:
                if not left:
                    raise
                reply = None
            if reply is not None and not (left and _passing(reply)):
                return _document(reply)
            self.sleep(pause if reply is None else _seconds(reply, pause))
            pause *= 2
        raise AssertionError("unreachable")


def _passing(reply: Reply) -> bool:
    """Whether the same request may be answered in a moment."""
    return reply.status == 429 or (reply.status in _BETWEEN and "error" not in _talking_read(reply))


def _seconds(reply: Reply, pause: float) -> float:
    given = {name.lower(): value for name, value in reply.headers.items()}.get("retry-after", "")
    return min(float(given), _LONGEST_PAUSE) if given.isdigit() else pause


def _talking_read(reply: Reply) -> dict[str, Any]:
    try:
        document = json.loads(reply.body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _document(reply: Reply) -> dict[str, Any]:
    document = _talking_read(reply)
    if 200 <= reply.status < 300 and document:
        return document
    raise error_of(document, reply.status)


def error_of(document: Mapping[str, Any], status: int = 0) -> PrivatestError:
    """Return a refusal or a failure as the library's own exception."""
    name = str(document.get("error", ""))
    words = str(document.get("message") or "The service gave no answer that can be read.")
    if name == "BudgetError":
        return BudgetError(words, asked=_sums(document, "asked"), left=_sums(document, "left"))
    if name == "RequestFailed" or {"id", "spent"} <= document.keys():
        from privatest.curator.answers import RequestFailed  # noqa: PLC0415

        found = _ID.search(words)
        number = str(document.get("id") or (found[0] if found else "unknown"))
        spent = document.get("spent", "nothing was spent" not in words)
        return RequestFailed(number, spent=bool(spent))
    if name in _OWN:
        return _OWN[name](words)
    if status == 401:
        words = f"{words} `privatest curator token NAME` makes one."
    return ServiceError(words, status=status, name=name)


def _sums(document: Mapping[str, Any], key: str) -> dict[str, Decimal | int]:
    found = document.get(key) or {}
    return {str(name): Decimal(str(value)) for name, value in found.items()}
