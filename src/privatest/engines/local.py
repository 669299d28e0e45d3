"""Threads of this process: each reads and adds up stretches of rows of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import groupby
from operator import itemgetter
from threading import Lock
from typing import Any, TypeVar

from privatest.data.source import Workers
from privatest.data.stream import BLOCK_ROWS
from privatest.engines.summaries import Job, Summary, added

__all__ = ["one_blas_thread", "run", "size", "within_block"]

_FEW = 4 * BLOCK_ROWS  # rows of all samples together that one thread adds up at once
_THREADED = 1 << 22  # numbers, or products of them by the dozen, for which threads are worth it

Item = TypeVar("Item")
Value = TypeVar("Value")


def size(workers: Workers) -> int:
    """Return how many jobs run at once."""
    return workers.threads or _processors()


@cache
def _processors() -> int:
    """Count them once: that takes longer than adding up a few rows."""
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread: ours would compete with its own, and sums depend on their number."""
    found = _controller().lib_controllers
    if all(library.num_threads == 1 for library in found if library.user_api == "blas"):
        return nullcontext()  # asking is quicker than setting and setting back
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context


@cache
def _controller() -> Any:
    """Find BLAS, once: that takes longer than a small test."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 -- not needed to import

    return ThreadpoolController()


def within_block(
    function: Callable[[Item], Value], items: Iterable[Item], rows: int, work: int
) -> Iterator[Value]:
    """Map over parts of a block of rows, in order.

    By threads where all ``rows`` are so few that one of :func:`run` has them all.
    """
    alone = rows > _FEW or work < _THREADED
    threads = 1 if alone else _processors()
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, items)


def run(jobs: Sequence[tuple[int, Job]], found: list[Summary], workers: Workers) -> None:
    """Run the jobs and merge them into their places of ``found``.

    A thread holds one block and one summary, of all its jobs of a sample: memory does not grow
    with the data, and is used again.
    """
    watcher, lock, done, stopped = workers.progress, Lock(), 0, False
    total = sum(job.stop - job.start for _, job in jobs)
    waiting = iter(jobs)

    def seen(rows: int) -> None:
        nonlocal done
        with lock:
            done += rows
            if watcher is not None:
                watcher(done, total)

    def taken() -> Iterator[tuple[int, Job]]:
        while True:
            with lock:
                asked = None if stopped else next(waiting, None)
            if asked is None:
                return
            yield asked

    def work() -> None:
        nonlocal stopped
        try:
            for place, own in groupby(taken(), itemgetter(0)):
                summary = added((job for _, job in own), seen)
                with lock:
                    found[place].merge(summary)
        except BaseException:
            stopped = True  # what others have begun they finish
            raise

    threads = min(size(workers), len(jobs)) if total > _FEW else 1
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
