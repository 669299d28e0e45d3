"""Engines that add up blocks of rows: threads of this process, or workers of a Dask cluster.

Each job is a stretch of rows, summarised apart; only summaries are merged. A summary's numbers are
integers, or floats that are rounded to fixed point once a block: they do not depend on the order
in which blocks are added. Proof: docs/proofs/exact-sums.md.

With Dask nothing is counted twice. A job and a merge begin with an empty summary and change
nothing else, so that those of a lost worker are done again; and one summary a sample comes back,
when all of its jobs are in it. Whoever can reach a scheduler can run programs on its workers, so
workers that are started here speak to each other by certificates that nobody else has.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import platform
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from operator import itemgetter
from threading import Lock
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import EngineError, PrivatestError
from privatest.core.validation import integer_at_least, one_of, reject

BLOCK_ROWS = 1 << 16  # rows of a block; the last one may be shorter
_FEW = 4 * BLOCK_ROWS  # rows of all samples together that one thread adds up at once
_THREADED = 1 << 22  # numbers, or products of them by the dozen, for which threads are worth it

_TIMEOUT = 5.0  # seconds until a scheduler counts as unreachable
_FIRST_WORKER = 10.0  # seconds in which a cluster must have a worker
_LOOK = 5.0  # seconds between looks at whether there are workers at all
_GONE = 60.0  # seconds without any after which they count as lost
_MERGED = 8  # summaries that a worker merges at a time
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_GUARD = (
    "A script that uses engine='dask' has to be one that can be imported: put its calls below "
    'if __name__ == "__main__":'
)

Engine = Literal["local", "dask"]
ENGINES: tuple[Engine, ...] = ("local", "dask")
Item = TypeVar("Item")
Value = TypeVar("Value")

# --- workers, jobs and summaries ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Who reads and adds up.

    Parameters
    ----------
    engine : {"local", "dask"}
        Threads of this process, or workers of a Dask cluster.
    threads : int or None
        Of the local engine; by default one for each processor.
    scheduler : str or None
        Address of the cluster, such as "tcp://host:8786"; by default one on this machine.
    progress : callable, optional
        Called with the rows done and all rows of a pass, in this process only.
    """

    engine: Engine = "local"
    threads: int | None = None
    scheduler: str | None = None
    progress: Callable[[int, int], None] | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[EngineConfig], tuple[object, ...]]:
        """Leave the progress callback here when rows are read by another process."""
        return EngineConfig, (self.engine, self.threads, self.scheduler)

    def __post_init__(self) -> None:
        """Refuse options that do not go together."""
        one_of("engine", self.engine, ENGINES)
        if self.threads is not None:
            integer_at_least("threads", self.threads, 1)
        if self.scheduler is not None and self.engine != "dask":
            reject("scheduler", "left out: it needs engine='dask'", self.scheduler)


class Summary(Protocol):
    """What is known of the rows so far.

    Blocks come in any order, and there may be others between two of them. One that puts some work
    off has a method ``close`` too, which is called after the last block.
    """

    def update(self, rows: NDArray[np.float64], start: int) -> None:
        """Add a block of encoded rows; ``start`` is the number of the first in its sample."""

    def merge(self, other: Self) -> None:
        """Add another summary, of other blocks of the same sample. It is not used again."""


class BlockReader(Protocol):
    """Rows that are read block by block."""

    @property
    def travels(self) -> bool:
        """Whether other processes can read them."""

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield the number of its first row, and each block."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class BlockJob:
    """Rows ``start`` to ``stop`` of one sample, for a worker; ``start`` begins a block."""

    held: BlockReader
    empty: Callable[[], Summary]
    start: int
    stop: int

    def add_to(self, summary: Summary, seen: Callable[[int], None] | None = None) -> None:
        """Read the rows and add them."""
        for first, rows in self.held.blocks(self.start, self.stop):
            summary.update(rows, first)
            if seen is not None:
                seen(len(rows))


def added(jobs: Iterable[BlockJob], seen: Callable[[int], None] | None = None) -> Summary:
    """Return the summary of jobs of one sample, which must not be empty."""
    summary: Summary | None = None
    for job in jobs:
        summary = job.empty() if summary is None else summary
        job.add_to(summary, seen)
    assert summary is not None
    getattr(summary, "close", lambda: None)()
    return summary


class _RowCounter:
    """Reports how many rows of a pass are done."""

    def __init__(self, jobs: Sequence[tuple[int, BlockJob]], workers: EngineConfig) -> None:
        self.progress, self.lock, self.done = workers.progress, Lock(), 0
        self.total = sum(job.stop - job.start for _, job in jobs)

    def add(self, rows: int) -> None:
        with self.lock:
            self.done += rows
            if self.progress is not None:
                self.progress(self.done, self.total)


# --- threads --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Threads of this process: each reads and adds up stretches of rows of its own."""

    workers: EngineConfig

    def size(self) -> int:
        """Return how many jobs run at once."""
        return self.workers.threads or _processors()

    def run(self, jobs: Sequence[tuple[int, BlockJob]], totals: list[Summary]) -> None:
        """Run the jobs and merge each into its place of ``totals``.

        A thread holds one block and one summary, of all its jobs of a sample: memory does not grow
        with the data, and is used again.
        """
        counter, lock, stopped = _RowCounter(jobs, self.workers), Lock(), False
        waiting = iter(jobs)

        def taken() -> Iterator[tuple[int, BlockJob]]:
            while True:
                with lock:
                    job = None if stopped else next(waiting, None)
                if job is None:
                    return
                yield job

        def work() -> None:
            nonlocal stopped
            try:
                for place, own in groupby(taken(), itemgetter(0)):
                    summary = added((job for _, job in own), counter.add)
                    with lock:
                        totals[place].merge(summary)
            except BaseException:
                stopped = True  # what others have begun they finish
                raise

        threads = min(self.size(), len(jobs)) if counter.total > _FEW else 1
        with one_blas_thread():
            if threads <= 1:
                work()
                return
            with ThreadPoolExecutor(threads) as pool:
                busy = [pool.submit(work) for _ in range(threads)]
                try:
                    for finished in busy:
                        finished.result()  # raises what a thread raised
                finally:
                    stopped = True


def within_block(
    function: Callable[[Item], Value], items: Iterable[Item], rows: int, work: int
) -> Iterator[Value]:
    """Map over parts of a block of rows, in order.

    By threads where all ``rows`` are so few that one thread of :class:`LocalEngine` has them all.
    """
    alone = rows > _FEW or work < _THREADED
    threads = 1 if alone else _processors()
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, items)


@cache
def _processors() -> int:
    """Count them once: that takes longer than adding up a few rows."""
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread: ours would compete with its own, and sums depend on their number."""
    libraries = _controller().lib_controllers
    if all(library.num_threads == 1 for library in libraries if library.user_api == "blas"):
        return nullcontext()  # asking is quicker than setting and setting back
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context


@cache
def _controller() -> Any:
    """Find BLAS, once: that takes longer than a small test."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 -- not needed to import

    return ThreadpoolController()


# --- Dask: jobs -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """Workers of a Dask cluster: each reads its own rows, and only their summaries are merged."""

    workers: EngineConfig

    def size(self) -> int:
        """Return how many jobs run at once."""
        threads: dict[str, int] = connected(self.workers).nthreads()
        return max(1, sum(threads.values()))

    def run(self, jobs: Sequence[tuple[int, BlockJob]], totals: list[Summary]) -> None:
        """Run the jobs on the cluster and merge each into its place of ``totals``, once.

        Rows that are in memory stay here, and threads of this process add them up.
        """
        away = {place for place, job in jobs if job.held.travels}
        here = [(place, job) for place, job in jobs if place not in away]
        counter = _RowCounter(jobs, self.workers)
        client = connected(self.workers)
        waiting: dict[Any, int] = {}
        roots: dict[int, Any] = {}
        try:
            for place in away:
                own = [job for other, job in jobs if other == place]
                roots[place] = _submit(client, own, waiting)
            if here:
                LocalEngine(replace(self.workers, progress=None)).run(here, totals)
                counter.add(sum(job.stop - job.start for _, job in here))
            _wait(client, waiting, counter)
            for place, root in roots.items():
                totals[place].merge(root.result())
        except CancelledError as error:
            raise EngineError("the connection to the Dask scheduler was lost.") from error
        finally:  # whatever went wrong: nothing is left to do
            with suppress(Exception):
                client.cancel([*waiting, *roots.values()], force=True)


def engine_for(workers: EngineConfig) -> LocalEngine | DaskEngine:
    """Return the engine of these workers."""
    return DaskEngine(workers) if workers.engine == "dask" else LocalEngine(workers)


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # workers log what they run
class _Work:
    """What the jobs of a sample have in common; it is sent once and may be large."""

    held: BlockReader
    empty: Callable[[], Summary]
    versions: Versions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Sealed:
    """Bytes that are not shown in logs: the key of the secret order is among them."""

    content: bytes


def _submit(client: Any, jobs: Sequence[BlockJob], waiting: dict[Any, int]) -> Any:
    """Hand out the jobs of one sample, and merge by a tree; return its root."""
    import cloudpickle  # noqa: PLC0415 -- comes with Dask

    first = jobs[0]
    try:
        content = cloudpickle.dumps(_Work(first.held, first.empty, versions()))
    except Exception as error:
        raise EngineError(
            "these rows cannot be read by other processes: use engine='local'."
        ) from error

    def submit(function: Callable[..., Any], *arguments: Any, rows: int = 0, depth: int = 0) -> Any:
        # what can be merged is merged first: workers hold few summaries at a time
        future = client.submit(function, *arguments, pure=False, priority=depth)
        waiting[future] = rows
        return future

    # a task, where scattered data would be lost with the workers that hold it
    work = submit(_opened, _Sealed(content))
    level = [submit(_summary, work, job.start, job.stop, rows=job.stop - job.start) for job in jobs]
    depth = 0
    while len(level) > 1:
        depth += 1
        level = [
            submit(_merged, work, *level[at : at + _MERGED], depth=depth)
            for at in range(0, len(level), _MERGED)
        ]
    return level[0]


def _wait(client: Any, waiting: dict[Any, int], counter: _RowCounter) -> None:
    """Return when all is done; raise the first error at once."""
    import distributed  # noqa: PLC0415

    api: Any = distributed
    last = time.monotonic()
    while waiting:
        try:
            with client.as_current():
                done, _ = api.wait(list(waiting), timeout=_LOOK, return_when="FIRST_COMPLETED")
        except TimeoutError:
            if client.status == "running" and client.nthreads():
                last = time.monotonic()
            elif time.monotonic() - last > _GONE:
                raise EngineError("all workers of the Dask cluster are gone.") from None
            continue
        last = time.monotonic()
        for future in done:
            if future.status != "finished":
                try:
                    future.result()
                except api.KilledWorker as error:
                    raise EngineError(
                        "several workers of the Dask cluster died one after the other at the same "
                        "rows. Have they enough memory?"
                    ) from error
            counter.add(waiting.pop(future))


def _opened(sealed: _Sealed) -> Any:
    import cloudpickle  # noqa: PLC0415

    return cloudpickle.loads(sealed.content)


def _summary(work: _Work, start: int, stop: int) -> Summary:
    different = mismatch(work.versions)  # of workers that came after the check
    if different:
        raise EngineError(f"a worker of the Dask cluster was asked by {different}.")
    _limit_blas()
    try:
        return added([BlockJob(work.held, work.empty, start, stop)])
    except PrivatestError:
        raise
    except Exception as error:
        raise _failed(error) from None


def _merged(work: _Work, *summaries: Summary) -> Summary:
    total = work.empty()
    try:
        for summary in summaries:
            # its own may be asked for again, and must not have changed
            total.merge(deepcopy(summary))
    except Exception as error:
        raise _failed(error) from None
    return total


def _failed(error: Exception) -> EngineError:
    """Name the kind of an error: its message may hold values, and workers log them."""
    return EngineError(f"a worker failed with {type(error).__name__}; engine='local' shows where.")


@cache
def _limit_blas() -> None:
    """Let BLAS use one thread, for good: workers have threads of their own."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    threadpool_limits(1, user_api="blas")


# --- Dask: clusters -------------------------------------------------------------------------

Versions = tuple[str, str, str]  # of Python, NumPy and privatest

_clients: dict[tuple[int, str | None, int | None], Any] = {}  # of this process
_connecting = Lock()


def check_workers(workers: EngineConfig) -> None:
    """Refuse workers that cannot be used; to be called before a budget is reserved."""
    if workers.engine == "dask":
        _require_same_versions(connected(workers))  # again: others may have come since


def connected(workers: EngineConfig) -> Any:
    """Return a client of the cluster, the same at every call; its workers are checked first."""
    key = (os.getpid(), workers.scheduler, workers.threads)  # a fork has to connect anew
    with _connecting:
        client = _clients.get(key)
        if client is not None and _usable(client):
            return client
        _disconnect(key)
        client = _clients[key] = _connect(workers)
        try:
            _require_same_versions(client)
        except BaseException:
            _disconnect(key)
            raise
        return client


def disconnect_all() -> None:
    """Leave all clusters, and end those that were started here."""
    for key in list(_clients):
        _disconnect(key)


def versions() -> Versions:
    """Return what a worker must have in common with the process that asks it."""
    python = ".".join(platform.python_version_tuple()[:2])
    own: str = sys.modules["privatest"].__version__  # it imports what this package may not
    return python, np.__version__, own


def mismatch(theirs: Versions) -> str:
    """Return the versions that differ, in words; "" if none does."""
    pairs = zip(("Python", "NumPy", "privatest"), theirs, versions(), strict=True)
    return ", ".join(f"{name} {its} instead of {own}" for name, its, own in pairs if its != own)


def _usable(client: Any) -> bool:
    """Whether it is connected; and, if workers were started here, all are there or start again."""
    cluster = getattr(client, "started_here", None)
    complete = cluster is None or len(cluster.workers) == len(cluster.worker_spec)
    return bool(client.status == "running" and complete)


def _connect(workers: EngineConfig) -> Any:
    if find_spec("distributed") is None:
        raise EngineError("engine='dask' needs Dask: pip install 'privatest[dask]'.")
    import distributed  # noqa: PLC0415

    api: Any = distributed  # it has no types
    atexit.register(disconnect_all)
    if workers.scheduler is None:
        return _start_cluster(api, workers.threads)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions: they are compared below
            return api.Client(workers.scheduler, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError, RuntimeError) as error:
        kind = type(error).__name__
    gc.collect()  # now, and not in a thread of the next client, which would wait for itself
    raise EngineError(
        f"no Dask scheduler answers at {workers.scheduler!r} ({kind}). Is it running, and is this "
        "the address that it printed? TLS needs the certificates of the cluster in Dask's "
        "configuration."
    )


def _start_cluster(api: Any, count: int | None) -> Any:
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
    """Leave interrupts to the main process; called by Dask in each process started here."""
    del worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _require_same_versions(client: Any) -> None:
    """Refuse a cluster without workers, or with any that would compute something else."""
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER)
        of_workers = client.run(versions, on_error="return")
    except (OSError, RuntimeError) as error:  # TimeoutError is an OSError
        raise EngineError("the Dask cluster has no workers. Start some, and try again.") from error
    for theirs in of_workers.values():
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


def _disconnect(key: tuple[int, str | None, int | None]) -> None:
    client = _clients.pop(key, None)
    if client is None or key[0] != os.getpid():
        return
    with suppress(Exception):  # it may be gone already
        client.close(timeout=_TIMEOUT)
    cluster = getattr(client, "started_here", None)
    if cluster is not None:
        with suppress(Exception):
            cluster.close(timeout=_TIMEOUT)
