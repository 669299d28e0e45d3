"""What every HTTP request passes: rate and body limits, security headers, log and metrics.

Log and metrics know methods, route patterns (never what was typed into them), statuses and times
of requests that read no rows: the time of a job is given by its worker, and is public.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse

from privatest.service.errors import TooMany
from privatest.service.store import UNFINISHED, now

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from privatest.service.state import ServiceState

_MOST_BUCKETS = 10_000
_LARGEST_BODY = 200_000  # bytes
_TOO_LARGE = {"error": "BodyTooLarge", "message": "The body must have at most 200,000 bytes."}
_SECURITY_HEADERS = {
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
_API = "/api/v1"
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class RateLimit:
    """A token bucket for each key, which fills up over a minute."""

    __slots__ = ("_buckets", "_clock", "_lock", "_per_minute")

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock, self._lock = per_minute, clock, Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> None:
        """Take one; raise TooMany with the seconds to wait if there is none."""
        with self._lock:
            moment, most = self._clock(), float(self._per_minute)
            level, before = self._buckets.get(key, (most, moment))
            level = min(most, level + (moment - before) * most / 60)
            if key not in self._buckets and len(self._buckets) >= _MOST_BUCKETS:
                # Forget the older half only: with many addresses somebody could otherwise reset
                # all limits, their own and everybody's.
                newest = sorted(self._buckets.items(), key=lambda bucket: bucket[1][1])
                self._buckets = dict(newest[len(newest) // 2 :])
            self._buckets[key] = (level if level < 1 else level - 1, moment)
            if level < 1:
                raise TooMany(max(1, math.ceil((1 - level) * 60 / most)))


class BodyLimit:
    """Refuse large bodies before they are in memory, whatever their headers say."""

    __slots__ = ("_app",)

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body up to the limit, then pass it on."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":  # disconnected: never handle half a form
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > _LARGEST_BODY:
                refusal = JSONResponse(_TOO_LARGE, 413, {"connection": "close"})
                await refusal(scope, receive, send)
                return
        complete: list[Message] = [{"type": "http.request", "body": bytes(body)}]

        async def replay() -> Message:
            return complete.pop() if complete else await receive()

        await self._app(scope, replay, send)


class SecurityHeaders:
    """Add security headers, and ``no-store`` where nothing else is said, to every answer."""

    __slots__ = ("_app", "_headers")

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        more = {"strict-transport-security": "max-age=31536000"} if secure else {}
        self._app, self._headers = app, _SECURITY_HEADERS | more

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with headers."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("cache-control", "no-store")  # answers are for one person
                headers.update(self._headers)
            await send(message)

        await self._app(scope, receive, with_headers)


class Metrics:
    """Metrics for Prometheus, in a registry of their own."""

    __slots__ = ("_jobs", "_registry", "_requests", "_seconds", "_used")

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "privatest_requests",
            "Requests by place and status.",
            ("method", "place", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "privatest_request_seconds",
            "Time of requests; those that watch a job are left out.",
            ("place",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._jobs = Gauge("privatest_jobs", "Jobs on their way.", ("state",), registry=registry)
        self._used = Gauge(
            "privatest_budget_used",
            "Share of a data set's budget that is spent.",
            ("dataset",),
            registry=registry,
        )

    def count(self, method: str, place: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, place, str(status)).inc()
        if not place.endswith("/events"):
            self._seconds.labels(place).observe(seconds)

    def text(self, state: ServiceState) -> bytes:
        """Return all metrics in Prometheus' text format."""
        unfinished = [job.state for job in state.store.unfinished_jobs()]
        for each in UNFINISHED:
            self._jobs.labels(each).set(unfinished.count(each))
        ledger = state.curator.ledger
        for name in ledger.datasets():
            if name in state.config.datasets:
                self._used.labels(name).set(float(ledger.totals(name).account.used))
        return generate_latest(self._registry)


class RequestLog:
    """Write a line of JSON for each request, and count it."""

    __slots__ = ("_app", "_metrics", "_stream")

    def __init__(self, app: ASGIApp, *, metrics: Metrics, stream: TextIO | None = None) -> None:
        self._app, self._metrics, self._stream = app, metrics, stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and record status and time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 500

        async def with_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, with_status)
        finally:
            self._write(scope, status, time.monotonic() - began)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")  # its pattern: the address itself may hold anything
        place = getattr(route, "path", "") or "nowhere"
        if route is not None and scope["path"].startswith(_API) and not place.startswith(_API):
            place = _API + place  # the routes of a router do not know its prefix
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.count(method, place, status, seconds)
        person = scope.get("state", {}).get("person")
        line = {"time": now(), "method": method, "place": place, "status": status}
        line |= {"ms": round(1000 * seconds), "person": person}
        print(json.dumps(line), file=self._stream or sys.stderr, flush=True)
