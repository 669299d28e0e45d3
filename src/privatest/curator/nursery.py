"""The process that workers come from, seen from outside; and places for as many as may run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Event, Lock

from privatest.core.errors import EngineError

__all__ = ["Nursery", "Places"]

_START = 60.0  # seconds in which everything is imported
_ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Nursery:
    """Starts workers, and is started again if it was killed.

    Parameters
    ----------
    program : tuple of str
        What Python runs; see worker.py.
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


class Places:
    """As many places as there are; whoever waits gets one in the order of coming."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken = 0
        self._queue: deque[object] = deque()
        self._open = True
        self._changed = Condition()

    @contextmanager
    def one(self, waiting: Callable[[], None]) -> Iterator[bool]:
        """Take a place for a block; False if there are none any more."""
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
        """Let nobody in any more."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def idle(self, seconds: float) -> bool:
        """Wait until all places are free; return whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._taken, seconds)
