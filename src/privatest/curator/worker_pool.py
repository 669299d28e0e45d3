"""Requests of others, each in a process of its own, answered at public times.

The asker sees an answer, a refusal or one fixed failure, and when it comes. Refusals depend on
public facts and come at once. All else comes at a multiple of a response time that follows from
public sizes, and a worker's place stays taken until then. Proof: docs/proofs/curator.md.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Condition, Event, Lock
from types import TracebackType
from typing import Any, Literal, Self

from privatest.core.errors import EngineError, ParameterError, PrivatestError
from privatest.core.validation import integer_at_least
from privatest.curator.answers import NOT_OPEN, RequestFailed, log_failure
from privatest.curator.config import CuratorConfig
from privatest.curator.timing import RECORDING, next_multiple
from privatest.ledger import Ledger

Kind = Literal["answer", "refused", "failed"]
_LOG = logging.getLogger("privatest.curator")  # to standard error, where nobody says otherwise
_CLOSING = "The curator is closing; ask again later."
_MARKING = 60.0  # seconds in which those that were ended are marked
_START = 60.0  # seconds in which everything is imported
_ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class ForkServer:
    """The process that workers are forked from; it is started again if it was killed.

    Parameters
    ----------
    program : tuple of str
        What Python runs; see worker_process.py.
    """

    def __init__(self, program: tuple[str, ...]) -> None:
        if not hasattr(socket, "send_fds") or not hasattr(os, "fork"):
            raise EngineError("workers need Linux or macOS: here a process cannot be forked.")
        self.ended = Event()
        self._program = program
        self._lock = Lock()
        self._start()

    def worker(self) -> socket.socket:
        """Return the channel to a new worker; EngineError if there is none."""
        with self._lock:
            if self.ended.is_set():
                raise EngineError("the workers have ended.")
            try:
                return self._worker()
            except OSError:  # somebody killed it
                self._stop()
                self._start()
                return self._worker()

    def kill(self) -> None:
        """End it and all workers at once."""
        with self._lock:
            self.ended.set()
            self._stop()

    def _worker(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"1"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return ours

    def _start(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", *self._program, str(theirs.fileno())],
                env={**os.environ, **_ONE},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # a traceback may hold rows
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # one group, with all workers
            )
        self._control.settimeout(_START)
        with suppress(OSError):
            if self._control.recv(1):
                self._control.settimeout(None)
                return
        self._stop()
        raise EngineError("the workers did not start.")

    def _stop(self) -> None:
        self._control.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class FifoSemaphore:
    """A FIFO semaphore that can be closed."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken = 0
        self._queue: deque[object] = deque()
        self._open = True
        self._changed = Condition()

    @contextmanager
    def one(self, waiting: Callable[[], None]) -> Iterator[bool]:
        """Take a place for a block; False if the semaphore is closed."""
        me = object()
        with self._changed:
            self._queue.append(me)
            at_once = not self._open or self._mine(me)
        if not at_once:
            waiting()
        with self._changed:
            self._changed.wait_for(lambda: not self._open or self._mine(me))
            self._queue.remove(me)
            got = self._open
            self._taken += got
            self._changed.notify_all()
        try:
            yield got
        finally:
            with self._changed:
                self._taken -= got
                self._changed.notify_all()

    def _mine(self, me: object) -> bool:
        return self._taken < self._count and self._queue[0] is me

    def close(self) -> None:
        """Give out no more places."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def idle(self, seconds: float) -> bool:
        """Wait until all places are free; return whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._taken, seconds)


@dataclass(frozen=True, slots=True)
class Reply:
    """What is said to whoever asked.

    Attributes
    ----------
    kind : {"answer", "refused", "failed"}
        Which of the three it is.
    document : mapping
        Plain values. Of an answer: ``Answer.to_dict()``, ``words`` and ``label``. Of a refusal:
        the ``error`` and its ``message``, and for a budget what was ``asked`` and what is ``left``.
        Of a failure: ``id``, ``spent`` and the fixed ``message``.
    """

    kind: Kind
    document: Mapping[str, Any]


class WorkerEnded(Exception):
    """A worker ended without a word: for the custodian's log."""


class WorkerPool:
    """Runs requests in processes of their own; at most ``count`` at once, others wait in order.

    Parameters
    ----------
    config : str or path
        ``curator.toml``; read anew for each request.
    count : int
        Places for requests. One is taken until the public time of its answer.
    public_times : bool
        Whether answers wait for public times. Without, whoever asks must be trusted.

    Notes
    -----
    **Privacy**: the reply is that of ``Curator.run``. Its time, that of the reservation and
    that of the record are multiples of a response time, which follows from public sizes; how many
    multiples is all that the data can change. A worker that dies is a failure like any other.
    """

    program: tuple[str, ...] = ("-m", "privatest.curator.worker_process")

    def __init__(self, config: str | Path, *, count: int = 2, public_times: bool = True) -> None:
        self._config = Path(config).absolute()
        self._public_times = public_times
        self._semaphore = FifoSemaphore(integer_at_least("count", count, 1))
        self._fork_server = ForkServer(self.program)

    def __enter__(self) -> Self:
        """Use the workers for a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close them at the end of the block."""
        self.close()

    def run(
        self,
        request: Mapping[str, Any],
        *,
        analyst: str,
        progress: Callable[[str], None] | None = None,
    ) -> Reply:
        """Answer a request; return at a public time.

        Parameters
        ----------
        request : mapping
            What is asked; plain values that JSON has.
        analyst : str
            Who asks. Nobody checks it here.
        progress : callable, optional
            Is told "waiting", "running" and "until the public time", at public times.

        Notes
        -----
        **Sensitivity**, **Privacy**: as ``Curator.run``.
        """

        def tell(words: str) -> None:
            if progress is not None:
                with suppress(Exception):  # whoever listens must not change what happens
                    progress(words)

        try:
            document = json.loads(json.dumps(dict(request)))
        except (TypeError, ValueError, RecursionError):
            return _refused(ParameterError("the request must be plain values, as JSON has."))
        with self._semaphore.one(lambda: tell("waiting")) as free:
            if not free:
                return _refused(EngineError(_CLOSING))
            tell("running")
            try:
                channel = self._fork_server.worker()
            except EngineError as error:
                return _refused(error)
            with closing(channel):
                return self._in_worker(channel, _PendingRequest(analyst), document, tell)

    def close(self, *, wait: float = 30.0) -> None:
        """Refuse new requests, let running ones end for ``wait`` seconds, then end them.

        Those that are ended stay spent, and are marked as failed.
        """
        self._semaphore.close()
        self._semaphore.idle(wait)
        self._fork_server.kill()
        self._semaphore.idle(_MARKING)

    def _in_worker(
        self,
        channel: socket.socket,
        run: _PendingRequest,
        document: Mapping[str, Any],
        tell: Callable[[str], None],
    ) -> Reply:
        job = {
            "config": str(self._config),
            "request": document,
            "analyst": run.analyst,
            "number": run.number,
            "start": run.start,
            "public_times": self._public_times,
        }
        with suppress(OSError), channel.makefile("r", encoding="utf-8") as lines:
            channel.sendall(json.dumps(job).encode() + b"\n")
            for line in lines:
                if not line.endswith("\n"):  # it died while it spoke
                    break
                told = json.loads(line)
                if "kind" in told:
                    self._wait_until(run, _on_time(run, told["due"]))
                    if told["document"].get("message") == NOT_OPEN:
                        self._tell_custodian()
                    return Reply(told["kind"], told["document"])
                run = replace(run, period=told["period"], dataset=told["dataset"])
                tell("until the public time")
        return self._died(run)

    def _tell_custodian(self) -> None:
        """Write why the curator cannot be opened: about its own files, and not for analysts."""
        try:
            Ledger.open(CuratorConfig.load(self._config).ledger).close()
        except PrivatestError as error:
            _LOG.error("%s %s", NOT_OPEN, error)

    def _died(self, run: _PendingRequest) -> Reply:
        """Give the one failure, and mark it, at a public time like any other end."""
        spent, due = run.period is not None, None  # as far as anybody knows
        with ExitStack() as stack:
            book: tuple[CuratorConfig, Ledger] | None = None
            with suppress(PrivatestError):  # opened before: afterwards there is no time for it
                config = CuratorConfig.load(self._config)
                book = config, stack.enter_context(Ledger.open(config.ledger))
            if self._public_times and run.period is not None:
                due = next_multiple(time.monotonic() - run.start + RECORDING, run.period)
                self._wait_until(run, due - RECORDING)
            if book is not None:
                spent = _mark(run, *book)
        self._wait_until(run, _on_time(run, due))
        failed = RequestFailed(run.number, spent=spent)
        document = {"id": run.number, "spent": spent, "message": str(failed)}
        return Reply("failed", document)

    def _wait_until(self, run: _PendingRequest, due: float | None) -> None:
        """Wait until some seconds after the start, unless everything is being ended."""
        if due is not None:
            self._fork_server.ended.wait(max(0.0, run.start + due - time.monotonic()))


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    """One request on its way."""

    analyst: str
    number: str = field(default_factory=lambda: uuid.uuid4().hex)
    start: float = field(default_factory=time.monotonic)
    period: float | None = None
    dataset: str = ""


def _mark(run: _PendingRequest, config: CuratorConfig, ledger: Ledger) -> bool:
    """Close the reservation of a worker that died; return whether there was one."""
    spent = True
    with suppress(PrivatestError):
        spent = ledger.holds(run.number)
        if spent:
            with suppress(PrivatestError):  # it was closed, in its last moment
                ledger.fail(run.number, reason=WorkerEnded.__name__)
    with suppress(OSError):
        facts = {"dataset": run.dataset, "analyst": run.analyst, "spent": str(spent)}
        log_failure(config.log, run.number, WorkerEnded(), **facts)
    return spent


def _on_time(run: _PendingRequest, due: float | None) -> float | None:
    """Return when to reply: if recording took too long, at the next quarter."""
    elapsed = time.monotonic() - run.start
    if due is None or run.period is None or elapsed <= due:
        return due
    return next_multiple(elapsed, run.period / 4)


def _refused(error: PrivatestError) -> Reply:
    return Reply("refused", {"error": type(error).__name__, "message": str(error)})
