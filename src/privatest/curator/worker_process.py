"""The process in which one request runs, and the fork server that starts it.

The fork server imports everything once, touches no data, opens no ledger and draws no noise. For
each request it forks a worker, which ends with its request: nothing that a request leaves in
memory is there for the next one. A worker's limits follow from public sizes. If it exceeds them,
it dies and says nothing.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from privatest.core.errors import BudgetError, EngineError, LedgerError, PrivatestError
from privatest.curator.answers import NOT_OPEN, RequestFailed, log_failure
from privatest.curator.curator import Curator
from privatest.curator.timing import (
    ADMISSION_LIMITS,
    RECORDING,
    ResourceLimits,
    ResponseTimes,
    Schedule,
    next_multiple,
    resource_limits,
)
from privatest.requests.catalogue import METHODS

if TYPE_CHECKING:
    from privatest.curator.config import DatasetConfig
    from privatest.curator.registration import Registration
    from privatest.requests.request import Prepared

_PROGRAM = 2 << 30  # bytes of the program itself, with all that it imports
# What functions import when they are called; a request should not pay for it.
_LATER = (
    *("opendp.measurements", "pandas", "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet"),
    *("scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.optimize", "scipy.stats"),
    *("sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql"),
)


def fork_server(control: socket.socket) -> None:
    """Fork a worker for each connection that comes with a message; end when the pool has ended."""
    for name in _LATER:
        with suppress(ImportError):  # not all of them are needed everywhere
            import_module(name)
    dict(METHODS)  # imports the modules of all methods
    gc.collect()
    gc.freeze()  # workers share these pages
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: their silence is enough
    for stop in (signal.SIGINT, signal.SIGTERM):  # it is for whoever started this to end it
        signal.signal(stop, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    control.sendall(b"1")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        (descriptor,) = descriptors
        if os.fork() == 0:
            control.close()
            _work(socket.socket(fileno=descriptor))
        os.close(descriptor)


def _work(channel: socket.socket) -> None:
    """Answer the one request that comes along the channel, and end."""
    import resource  # noqa: PLC0415 - Windows has none, and has to import this file too

    import numpy as np  # noqa: PLC0415

    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold rows
        set_limits(ADMISSION_LIMITS)
        np.random.seed()  # noqa: NPY002 - nobody here uses it; all workers would have the same
        with channel.makefile("r", encoding="utf-8") as lines:
            job = json.loads(lines.readline())
        schedule = WorkerSchedule(channel, job)
        told = answer_job(job, schedule)
        if told is not None:
            channel.sendall(json.dumps({**told, "due": schedule.due}).encode() + b"\n")
        os._exit(0)
    finally:  # no traceback, no handler of anybody's: they may print rows
        os._exit(1)


def set_limits(allowed: ResourceLimits) -> None:
    """Let the system end this process after a time, and refuse it more memory than allowed."""
    import resource  # noqa: PLC0415 - as above

    signal.setitimer(signal.ITIMER_REAL, allowed.seconds)  # its signal ends the process
    most = _PROGRAM + allowed.memory
    # address space is taken for stacks and arenas of threads too, and costs nothing
    for kind, size in ((resource.RLIMIT_DATA, most), (resource.RLIMIT_AS, 4 * most)):
        hard = resource.getrlimit(kind)[1]
        soft = size if hard == resource.RLIM_INFINITY else min(size, hard)
        with suppress(ValueError, OSError):  # a system without this limit
            resource.setrlimit(kind, (soft, hard))


class WorkerSchedule(Schedule):
    """Waits for public times, and tells whoever started the worker what they have to know."""

    def __init__(self, channel: socket.socket, job: Mapping[str, Any]) -> None:
        self.number: str = job["number"]
        self.times = ResponseTimes()
        self.start: float = job["start"]
        self.public_times: bool = job["public_times"]
        self.period: float | None = None
        self.due: float | None = None  # seconds after the start
        self._channel = channel

    def on_admission(
        self, prepared: Prepared, dataset: DatasetConfig, registration: Registration
    ) -> None:
        """Set limits by public sizes, and tell the time of the answer."""
        allowed = resource_limits(prepared, dataset, registration, self.times)
        self.period = allowed.period
        set_limits(allowed.after(self._elapsed))
        words = {"period": allowed.period, "dataset": dataset.name}
        self._channel.sendall(json.dumps(words).encode() + b"\n")

    def wait_to_reserve(self) -> None:
        """Wait for the next quarter: the reservation is seen in what is left."""
        if self.period is not None and self.public_times:
            self._wait_until(next_multiple(self._elapsed, self.period / 4))

    def wait_to_end(self) -> None:
        """Wait until it is nearly time: recording takes a moment."""
        if self.period is None or self.due is not None:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)  # it is ready: from here on it only waits
        if self.public_times:
            self.due = next_multiple(self._elapsed + RECORDING, self.period)
            self._wait_until(self.due - RECORDING)

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self.start

    def _wait_until(self, due: float) -> None:
        time.sleep(max(0.0, due - self._elapsed))


def answer_job(job: Mapping[str, Any], schedule: WorkerSchedule) -> dict[str, Any] | None:
    """Return the kind of reply and its document; None if it is not known what was spent."""
    with ExitStack() as cleanup:
        try:
            curator = cleanup.enter_context(Curator.open(job["config"]))
            schedule.times = ResponseTimes.load(curator.config.times)
        except PrivatestError:  # its words are for the custodian, who sees them by asking at once
            return error_document(EngineError(NOT_OPEN))
        try:
            answer = curator.run(job["request"], analyst=job["analyst"], schedule=schedule)
            words = {"words": answer.words, "label": answer.label}
            return {"kind": "answer", "document": answer.to_dict() | words}
        except Exception as error:
            schedule.wait_to_end()
            if isinstance(error, PrivatestError) and not isinstance(error, LedgerError):
                return error_document(error)
            facts = {"analyst": job["analyst"], "spent": "see the ledger"}
            log_failure(curator.config.log, schedule.number, error, **facts)
    return None


def error_document(error: PrivatestError) -> dict[str, Any]:
    """Write a refusal or a failure as plain values; both say public things only."""
    if isinstance(error, RequestFailed):
        failed = {"id": error.id, "spent": error.spent, "message": str(error)}
        return {"kind": "failed", "document": failed}
    document: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, BudgetError):
        sums = {"asked": error.asked, "left": error.left}
        document |= {k: {n: str(v) for n, v in each.items()} for k, each in sums.items()}
    return {"kind": "refused", "document": document}


def main() -> None:
    """Start the fork server on the descriptor that was passed."""
    with socket.socket(fileno=int(sys.argv[1])) as control:
        fork_server(control)


if __name__ == "__main__":
    main()
