"""Requests and answers as JSON; what is lost is sent again, and refusals are exceptions."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from privatest.client.transport import Lost, Reply, Transport
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

__all__ = ["Talk", "error_of"]

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
    return reply.status == 429 or (reply.status in _BETWEEN and "error" not in _read(reply))


def _seconds(reply: Reply, pause: float) -> float:
    given = {name.lower(): value for name, value in reply.headers.items()}.get("retry-after", "")
    return min(float(given), _LONGEST_PAUSE) if given.isdigit() else pause


def _read(reply: Reply) -> dict[str, Any]:
    try:
        document = json.loads(reply.body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _document(reply: Reply) -> dict[str, Any]:
    document = _read(reply)
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
