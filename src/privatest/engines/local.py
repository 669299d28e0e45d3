"""Threads of this process: each reads and adds up stretches of rows of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from privatest.data.source import Workers
from privatest.data.stream import BLOCK_ROWS
from privatest.engines.progress import told
from privatest.engines.summaries import Job, Summary

_FEW = 4 * BLOCK_ROWS  # rows of all samples together that one thread adds up at once

__all__ = ["one_blas_thread", "run", "size", "within_block"]

_THREADED = 1 << 22  # numbers, or products of them by the dozen, for which threads are worth it

Item = TypeVar("Item")
Value = TypeVar("Value")


def size(workers: Workers) -> int:
    """Return how many jobs run at once."""
    return workers.threads or os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread: ours would compete with its own, and sums depend on their number."""
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
    threads = os.cpu_count() or 1
    if threads == 1 or rows > _FEW or work < _THREADED:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, items)


def run(jobs: Sequence[tuple[int, Job]], found: list[Summary], workers: Workers) -> None:
    """Run the jobs and merge each into its place of ``found``.

    A thread holds one block and one summary: memory does not grow with the data.
    """
    watcher, lock, done = told(), Lock(), 0
    total = sum(job.stop - job.start for _, job in jobs)

    def seen(rows: int) -> None:
        nonlocal done
        with lock:
            done += rows
            if watcher is not None:
                watcher(done, total)

    def one(asked: tuple[int, Job]) -> None:
        place, job = asked
        summary = job.run(seen)
        with lock:
            found[place].merge(summary)

    threads = min(size(workers), len(jobs)) if total > _FEW else 1
    with one_blas_thread():
        if threads <= 1:
            for asked in jobs:
                one(asked)
            return
        with ThreadPoolExecutor(threads) as pool:
            waiting = [pool.submit(one, asked) for asked in jobs]
            try:
                for finished in waiting:
                    finished.result()  # raises what a thread raised
            finally:
                pool.shutdown(cancel_futures=True)
