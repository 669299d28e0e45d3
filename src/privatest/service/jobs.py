"""Requests on their way: in order, one at a time for each worker, with an end that is kept."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Protocol

from privatest.core.documents import fingerprint
from privatest.core.errors import ParameterError
from privatest.service.store import Job, State, Store, now

__all__ = ["Jobs"]

_MOST_WAITING = 20  # of one analyst
_ENDS: Mapping[str, State] = {"answer": "answered", "refused": "refused", "failed": "failed"}
_STOPPED = {
    "message": "The service was stopped before there was an answer. If the request had begun, its "
    "budget is spent: the history says so."
}


class _Reply(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def document(self) -> Mapping[str, Any]: ...


class _Workers(Protocol):
    def run(
        self,
        request: Mapping[str, Any],
        *,
        analyst: str,
        progress: Callable[[str], None] | None = None,
    ) -> _Reply: ...
    def close(self, *, wait: float = ...) -> None: ...


class Jobs:
    """Runs requests with workers, and keeps how they ended.

    Notes
    -----
    **Privacy**: a worker gives its reply at a public time, and only then is the job's end
    written; no time in the store tells more than that one.
    """

    __slots__ = ("_lock", "_store", "_threads", "_unended", "_workers")

    def __init__(self, store: Store, workers: _Workers, count: int) -> None:
        self._store, self._workers = store, workers
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="job")
        self._lock = Lock()
        self._unended: dict[str, tuple[str, str]] = {}  # what is asked by whom: the job
        for left in store.unended():  # of a service that was stopped
            store.change_job(left.id, "failed", _STOPPED)

    def submit(self, analyst: str, request: Mapping[str, Any]) -> Job:
        """Begin a request; the same one of the same analyst on its way is not begun again."""
        same = fingerprint({"analyst": analyst, "request": dict(request)})
        with self._lock:
            found = self._unended.get(same)
            known = None if found is None else self._store.job(found[0])
            if known is not None:
                return known
            if sum(who == analyst for _, who in self._unended.values()) >= _MOST_WAITING:
                raise ParameterError(f"at most {_MOST_WAITING} requests of one analyst may wait.")
            job = Job(uuid.uuid4().hex, analyst, dict(request), "waiting", now())
            self._store.add_job(job)
            self._unended[same] = (job.id, analyst)
            self._threads.submit(self._run, job, same)
        return job

    def close(self, *, wait: float) -> None:
        """Let what runs end, for a while; what waits is marked as stopped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._workers.close(wait=wait)
        self._threads.shutdown(wait=True)
        for left in self._store.unended():
            self._store.change_job(left.id, "failed", _STOPPED)

    def _run(self, job: Job, same: str) -> None:
        try:
            self._store.change_job(job.id, "running")
            reply = self._workers.run(job.request, analyst=job.analyst)
            self._store.change_job(job.id, _ENDS[reply.kind], reply.document)
        except Exception:  # never with its words: they may be about data
            self._store.change_job(job.id, "failed", _STOPPED)
        finally:
            with self._lock:
                self._unended.pop(same, None)
