"""Limits that everybody meets: how often, and how much at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from privatest.service.people import TooMany

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BodyLimit", "RateLimit"]

_MOST_KNOWN = 10_000
_LARGEST_BODY = 200_000  # bytes
_TOO_LARGE = b'{"error":"BodyTooLarge","message":"The body must have at most 200,000 bytes."}'


class RateLimit:
    """A bucket of requests for each person, which fills up over a minute."""

    __slots__ = ("_buckets", "_clock", "_lock", "_per_minute")

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock, self._lock = per_minute, clock, Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, who: str) -> None:
        """Take one; TooMany with the seconds to wait if there is none."""
        with self._lock:
            moment, most = self._clock(), float(self._per_minute)
            full, before = self._buckets.get(who, (most, moment))
            full = min(most, full + (moment - before) * most / 60)
            if who not in self._buckets and len(self._buckets) >= _MOST_KNOWN:
                self._forget()
            self._buckets[who] = (full if full < 1 else full - 1, moment)
            if full < 1:
                raise TooMany(max(1, math.ceil((1 - full) * 60 / most)))

    def _forget(self) -> None:
        """Forget who was seen last long ago: strangers must neither fill the memory nor clear it.

        Only half of them, the older ones: with many addresses somebody could otherwise have all
        limits begin anew, their own and everybody's.
        """
        newest = sorted(self._buckets.items(), key=lambda bucket: bucket[1][1])
        self._buckets = dict(newest[len(newest) // 2 :])


class BodyLimit:
    """Refuses large bodies before they are in memory, whatever their headers say."""

    __slots__ = ("_app",)

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body up to the limit, then hand it on."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":  # gone: half of a form must not be taken for it
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > _LARGEST_BODY:
                headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
                await send({"type": "http.response.start", "status": 413, "headers": headers})
                await send({"type": "http.response.body", "body": _TOO_LARGE})
                return
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self._app(scope, replay, send)
