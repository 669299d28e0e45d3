"""Workers of a Dask cluster: each reads its own rows, and only their summaries are merged.

Nothing is counted twice. A job and a merge begin with an empty summary and change nothing else,
so that those of a lost worker are done again; and one summary a sample comes back, when all of
its jobs are in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from privatest.core.errors import EngineError, PrivatestError
from privatest.data.source import Workers
from privatest.engines import local
from privatest.engines.cluster import Versions, connected, mismatch, versions
from privatest.engines.summaries import Job, Summary, added

__all__ = ["run", "size"]

_MERGED = 8  # summaries that a worker merges at a time
_LOOK = 5.0  # seconds between looks at whether there are workers at all
_GONE = 60.0  # seconds without any after which they count as lost


def size(workers: Workers) -> int:
    """Return how many jobs run at once."""
    threads: dict[str, int] = connected(workers).nthreads()
    return max(1, sum(threads.values()))


def run(jobs: Sequence[tuple[int, Job]], found: list[Summary], workers: Workers) -> None:
    """Run the jobs on the cluster and merge each into its place of ``found``, once.

    Rows that are in memory stay here, and threads of this process add them up.
    """
    away = {place: job.held for place, job in jobs if _travels(job.held)}
    here = [(place, job) for place, job in jobs if place not in away]
    watcher, done = workers.progress, 0
    total = sum(job.stop - job.start for _, job in jobs)

    def seen(rows: int) -> None:
        nonlocal done
        done += rows
        if watcher is not None:
            watcher(done, total)

    client = connected(workers)
    waiting: dict[Any, int] = {}
    roots: dict[int, Any] = {}
    try:
        for place in away:
            roots[place] = _submit(client, [job for own, job in jobs if own == place], waiting)
        if here:
            local.run(here, found, replace(workers, progress=None))
            seen(sum(job.stop - job.start for _, job in here))
        _wait(client, waiting, seen)
        for place, root in roots.items():
            found[place].merge(root.result())
    except CancelledError as error:
        raise EngineError("the connection to the Dask scheduler was lost.") from error
    finally:  # whatever went wrong: nothing is left to do
        with suppress(Exception):
            client.cancel([*waiting, *roots.values()], force=True)


def _travels(held: Any) -> bool:
    """Whether other processes can read the rows: not those of this one's memory."""
    if isinstance(held, np.ndarray):
        return False
    if hasattr(held, "sides"):  # rows that are made of several
        return all(map(_travels, held.sides))
    return all(map(_can_travel, held.source.parts))


def _can_travel(part: Any) -> bool:
    """Whether a part, or the one that it takes its rows from, says nothing else."""
    own = bool(getattr(part, "travels", True))
    return own and (not hasattr(part, "part") or _can_travel(part.part))


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # workers log what they run
class _Work:
    """What the jobs of a sample have in common; it is sent once and may be large."""

    held: Any
    empty: Callable[[], Summary]
    asked_by: Versions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Sealed:
    """Bytes that are not shown in logs: the key of the secret order is among them."""

    content: bytes


def _submit(client: Any, jobs: Sequence[Job], waiting: dict[Any, int]) -> Any:
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


def _wait(client: Any, waiting: dict[Any, int], seen: Callable[[int], None]) -> None:
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
                _raise(api, future)
            seen(waiting.pop(future))


def _raise(api: Any, future: Any) -> None:
    try:
        future.result()
    except api.KilledWorker as error:
        raise EngineError(
            "several workers of the Dask cluster died one after the other at the same rows. "
            "Have they enough memory?"
        ) from error


def _opened(sealed: _Sealed) -> Any:
    import cloudpickle  # noqa: PLC0415

    return cloudpickle.loads(sealed.content)


def _summary(work: _Work, start: int, stop: int) -> Summary:
    different = mismatch(work.asked_by)  # of workers that came after the check
    if different:
        raise EngineError(f"a worker of the Dask cluster was asked by {different}.")
    _one_blas_thread()
    try:
        return added([Job(work.held, work.empty, start, stop)])
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
    """Name the kind of an error: its words may hold values, and workers log them."""
    return EngineError(f"a worker failed with {type(error).__name__}; engine='local' shows where.")


@cache
def _one_blas_thread() -> None:
    """Let BLAS use one thread, for good: workers have threads of their own."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    threadpool_limits(1, user_api="blas")
