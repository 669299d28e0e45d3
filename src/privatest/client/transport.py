"""One request over HTTP: to whom a token may be sent, and over what."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from privatest.core.errors import ParameterError, ServiceError

__all__ = ["Http", "Lost", "Reply", "Transport"]

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
