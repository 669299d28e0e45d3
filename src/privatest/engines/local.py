"""Threads of this process: each reads and adds up stretches of rows of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from privatest.data.source import Workers
from privatest.engines.progress import told
from privatest.engines.summaries import Job, Summary

__all__ = ["run"]


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

    threads = min(workers.threads or os.cpu_count() or 1, len(jobs))
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 -- not needed to import privatest

    # BLAS by one thread: ours would compete with its own, and sums would depend on their number
    with threadpool_limits(1, user_api="blas"):
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
