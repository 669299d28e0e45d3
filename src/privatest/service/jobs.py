"""Jobs: a queue of requests for the workers, and their states as server-sent events."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool

from privatest.core.documents import fingerprint
from privatest.core.errors import ParameterError, PrivatestError
from privatest.service.store import JobRecord, State, Store, now

_MOST_WAITING = 20  # of one analyst
_ENDS: Mapping[str, State] = {"answer": "answered", "refused": "refused", "failed": "failed"}
_STOPPED = {
    "message": "The service was stopped before there was an answer. If the request had begun, its "
    "budget is spent: the history says so."
}
_POLL_SECONDS = 0.25
_KEEP_ALIVE = 40  # polls without news, after which a comment keeps the connection open
_MOST_POLLS = 14_400  # an hour
_MOST_STREAMS = 20  # of one person
_streams: Counter[str] = Counter()  # touched by the event loop alone


class _Workers(Protocol):  # curator.WorkerPool, and what tests use instead
    def run(self, request: Mapping[str, Any], *, analyst: str) -> Any: ...
    def close(self, *, wait: float = ...) -> None: ...


class JobQueue:
    """Runs requests with workers, and stores how they ended.

    Notes
    -----
    **Privacy**: a worker gives its reply at a public time, and only then is the end of the job
    stored; no time in the store tells more than that one.
    """

    __slots__ = ("_lock", "_store", "_threads", "_unfinished", "_workers")

    def __init__(self, store: Store, workers: _Workers, count: int) -> None:
        self._store, self._workers = store, workers
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="job")
        self._lock = Lock()
        self._unfinished: dict[str, tuple[str, str]] = {}  # request and analyst: job and analyst
        self._fail_unfinished()  # those of a service that was stopped

    def submit(self, analyst: str, request: Mapping[str, Any]) -> JobRecord:
        """Begin a request; an unfinished identical one of the same analyst is returned instead."""
        same = fingerprint({"analyst": analyst, "request": dict(request)})
        with self._lock:
            number, _ = self._unfinished.get(same, ("", ""))
            known = self._store.job(number) if number else None
            if known is not None:
                return known
            if sum(who == analyst for _, who in self._unfinished.values()) >= _MOST_WAITING:
                raise ParameterError(f"at most {_MOST_WAITING} requests of one analyst may wait.")
            job = JobRecord(uuid.uuid4().hex, analyst, dict(request), "waiting", now())
            self._store.add_job(job)
            self._unfinished[same] = (job.id, analyst)
            self._threads.submit(self._run, job, same)
        return job

    def close(self, *, wait: float) -> None:
        """Let running jobs end, for a while; mark waiting ones as stopped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._workers.close(wait=wait)
        self._threads.shutdown(wait=True)
        self._fail_unfinished()

    def _fail_unfinished(self) -> None:
        for job in self._store.unfinished_jobs():
            self._store.change_job(job.id, "failed", _STOPPED)

    def _run(self, job: JobRecord, same: str) -> None:
        try:
            self._store.change_job(job.id, "running")
            reply = self._workers.run(job.request, analyst=job.analyst)
            self._store.change_job(job.id, _ENDS[reply.kind], reply.document)
        except Exception:  # its message may be about data
            self._store.change_job(job.id, "failed", _STOPPED)
        finally:
            with self._lock:
                self._unfinished.pop(same, None)


async def job_events(person: str, look: Callable[[], JobRecord]) -> AsyncIterator[str]:
    """Yield each state of a job once, then the whole job, as server-sent events.

    ``look`` checks at each poll that the person may still see the job: the stream ends for those
    who were signed out or revoked meanwhile.
    """
    if _streams[person] >= _MOST_STREAMS:
        yield "retry: 10000\n\n"
        return
    _streams[person] += 1
    try:
        async for event in _poll(look):
            yield event
    finally:
        _streams[person] -= 1
        if not _streams[person]:
            del _streams[person]


async def _poll(look: Callable[[], JobRecord]) -> AsyncIterator[str]:
    state, quiet = "", 0
    for _ in range(_MOST_POLLS):
        try:
            job = await run_in_threadpool(look)
        except PrivatestError:
            return
        if job.state != state:
            state, quiet = job.state, 0
            yield _event("state", {"id": job.id, "state": state})
        if job.is_done:
            yield _event("done", job.to_dict())
            return
        quiet += 1
        if quiet % _KEEP_ALIVE == 0:
            yield ": still here\n\n"
        await asyncio.sleep(_POLL_SECONDS)


def _event(name: str, document: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(document, allow_nan=False)}\n\n"
