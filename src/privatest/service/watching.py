"""What the service tells its keepers: a line for each request, and counts. Never a value.

Both know only methods, the names of places (not what was typed into them), statuses and times of
requests that read no rows: a job's time is given by its worker, and is public.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from privatest.service.store import now

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from privatest.service.house import House

__all__ = ["Metrics", "Watching"]

_API = "/api/v1"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counts for Prometheus, in a registry of their own."""

    __slots__ = ("_jobs", "_registry", "_requests", "_seconds", "_used")

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "privatest_requests",
            "Requests by place and status.",
            ("method", "place", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "privatest_request_seconds",
            "Time of requests; those that watch a job are left out.",
            ("place",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._jobs = Gauge(
            "privatest_jobs", "Jobs on their way.", ("state",), registry=self._registry
        )
        self._used = Gauge(
            "privatest_budget_used",
            "Share of a data set's budget that is spent.",
            ("dataset",),
            registry=self._registry,
        )

    def count(self, method: str, place: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, place, str(status)).inc()
        if not place.endswith("/events"):
            self._seconds.labels(place).observe(seconds)

    def text(self, house: House) -> bytes:
        """Return all counts in Prometheus' text format."""
        unended = [job.state for job in house.store.unended()]
        for state in ("waiting", "running"):
            self._jobs.labels(state).set(unended.count(state))
        ledger = house.curator.ledger
        for name in ledger.datasets():
            if name in house.config.datasets:
                self._used.labels(name).set(float(ledger.totals(name).account.used))
        return bytes(generate_latest(self._registry))


class Watching:
    """Writes a line of JSON for each request, and counts it."""

    __slots__ = ("_app", "_metrics", "_stream")

    def __init__(self, app: ASGIApp, *, metrics: Metrics, stream: TextIO | None = None) -> None:
        self._app, self._metrics, self._stream = app, metrics, stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, and write how it went."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            self._write(scope, status, time.monotonic() - began)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        # the place as it is declared: what somebody typed may be anything
        route = scope.get("route")
        place = getattr(route, "path", "") or "nowhere"
        if route is not None and scope["path"].startswith(_API) and not place.startswith(_API):
            place = _API + place  # a router's routes do not know where it is
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.count(method, place, status, seconds)
        person = scope.get("state", {}).get("person")
        line = {"time": now(), "method": method, "place": place, "status": status}
        line |= {"ms": round(1000 * seconds), "person": person}
        print(json.dumps(line), file=self._stream or sys.stderr, flush=True)


_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
