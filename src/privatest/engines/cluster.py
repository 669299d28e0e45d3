"""Clusters that were asked for: reached once, checked before anything is paid for, closed at exit.

Whoever can reach a scheduler can run programs on its workers, so those that are started here
speak to each other by certificates that nobody else has.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import platform
import signal
import sys
import warnings
from contextlib import suppress
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np

from privatest.core.errors import EngineError
from privatest.data.source import Workers

__all__ = ["Versions", "check", "close", "connected", "versions"]

_PATIENCE = 5.0  # seconds until a scheduler counts as unreachable
_FIRST_WORKER = 10.0  # seconds in which a cluster must have a worker

_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Versions = tuple[str, str, str]
_NAMES = ("Python", "NumPy", "privatest")

_open: dict[tuple[int, str | None, int | None], Any] = {}  # clients of this process
_connecting = Lock()


def check(workers: Workers) -> None:
    """Refuse workers that cannot be used; to be called before a budget is reserved."""
    if workers.engine == "dask":
        _compare(connected(workers))  # again: others may have come since


def connected(workers: Workers) -> Any:
    """Return a client of the cluster, the same at every call; its workers are checked first."""
    key = (os.getpid(), workers.scheduler, workers.threads)  # a fork has to connect anew
    with _connecting:
        client = _open.get(key)
        if client is not None and _usable(client):
            return client
        _forget(key)
        client = _open[key] = _reached(workers)
        try:
            _compare(client)
        except BaseException:
            _forget(key)
            raise
        return client


def close() -> None:
    """Leave all clusters, and end those that were started here."""
    for key in list(_open):
        _forget(key)


def versions() -> Versions:
    """Return what a worker must have in common with whoever asks it."""
    python = ".".join(platform.python_version_tuple()[:2])
    own: str = sys.modules["privatest"].__version__  # it imports what this package may not
    return python, np.__version__, own


def mismatch(theirs: Versions) -> str:
    """Say what is different on a worker; nothing if all is the same."""
    pairs = zip(_NAMES, theirs, versions(), strict=True)
    return ", ".join(f"{name} {its} instead of {own}" for name, its, own in pairs if its != own)


def _usable(client: Any) -> bool:
    """Whether it is connected; and, if workers were started here, all are there or start again."""
    cluster = getattr(client, "started_here", None)
    complete = cluster is None or len(cluster.workers) == len(cluster.worker_spec)
    return bool(client.status == "running" and complete)


def _reached(workers: Workers) -> Any:
    if find_spec("distributed") is None:
        raise EngineError("engine='dask' needs Dask: pip install 'privatest[dask]'.")
    import distributed  # noqa: PLC0415

    api: Any = distributed  # it has no types
    atexit.register(close)
    if workers.scheduler is None:
        return _started(api, workers.threads)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions: they are compared below
            return api.Client(workers.scheduler, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError, RuntimeError) as error:
        kind = type(error).__name__
    gc.collect()  # now, and not in a thread of the next client, which would wait for itself
    raise EngineError(
        f"no Dask scheduler answers at {workers.scheduler!r} ({kind}). Is it running, and is this "
        "the address that it printed? TLS needs the certificates of the cluster in Dask's "
        "configuration."
    )


def _started(api: Any, count: int | None) -> Any:
    """Start processes on this machine, of one thread each, and return their client."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise EngineError(_GUARD)  # a worker that imports its script would start workers
    import dask  # noqa: PLC0415

    options: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],  # no pages about what is done
        "distributed.worker.http.routes": [],
        # not Dask's own, by which freed memory is given back at once: a third of the time
        "distributed.nanny.pre-spawn-environ": dict.fromkeys(_ONE_THREAD, 1),
    }
    try:
        with dask.config.set(options):
            cluster = api.LocalCluster(
                n_workers=count or os.cpu_count() or 1,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                memory_limit=0,  # nothing private is spilled to disk; a block at a time is held
                silence_logs=50,
                preload=[__name__],
                security=api.Security.temporary(),
            )
    except (OSError, RuntimeError) as error:
        raise EngineError(
            f"workers could not be started on this machine ({type(error).__name__}). {_GUARD}"
        ) from error
    client = api.Client(cluster, set_as_default=False)
    client.started_here = cluster
    return client


def dask_setup(worker: object) -> None:
    """Leave interrupts to whoever asked; called by Dask in each process that is started here."""
    del worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)


_GUARD = (
    "A script that uses engine='dask' has to be one that can be imported: put its calls below "
    'if __name__ == "__main__":'
)


def _compare(client: Any) -> None:
    """Refuse a cluster without workers, or with any that would compute something else."""
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER)
        found = client.run(versions, on_error="return")
    except (OSError, RuntimeError) as error:  # TimeoutError is an OSError
        raise EngineError("the Dask cluster has no workers. Start some, and try again.") from error
    for theirs in found.values():
        if not isinstance(theirs, tuple):
            raise EngineError(
                f"a worker of the Dask cluster cannot load privatest ({type(theirs).__name__}). "
                "Install the same version on all workers."
            )
        different = mismatch(theirs)
        if different:
            raise EngineError(
                f"a worker of the Dask cluster has {different}. The same answer needs the same "
                "versions: start workers from the same environment."
            )


def _forget(key: tuple[int, str | None, int | None]) -> None:
    client = _open.pop(key, None)
    if client is None or key[0] != os.getpid():
        return
    with suppress(Exception):  # it may be gone already
        client.close(timeout=_PATIENCE)
    cluster = getattr(client, "started_here", None)
    if cluster is not None:
        with suppress(Exception):
            cluster.close(timeout=_PATIENCE)
